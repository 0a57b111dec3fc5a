// Device memory and copies. Memory is the host's, with an owner for each range, so that a kernel that leaves its
// buffers is found, and with the size of the card as limit, so that running out is real. Copies read their source when
// the stream reaches them; a source that changed since the call is an error.
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>
#include <string.h>

// Held by the driver and the display on a real card.
#define RESERVED (600ull << 20)
// New memory is filled up to here, so that a kernel that reads before it writes is found.
#define FILLED (1ull << 20)

typedef struct {
    uint64_t start;
    size_t size;
    int device;
} Range;

static Range *ranges;
static size_t ranges_used, ranges_room;
static size_t in_use[MAX_CARDS], peak[MAX_CARDS];
// Memory that a stream will free.
static _Atomic int frees_waiting[MAX_CARDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int has_room(int device, size_t size) { return in_use[device] + size + RESERVED <= card(device)->memory; }

static CUresult allocate(CUdeviceptr *pointer, size_t size) {
    CUresult failure = context_failure();
    if (failure) return failure;
    if (!size) return INVALID_VALUE;
    count(COUNT_ALLOC, 1);
    if ((failure = injected(COUNT_ALLOC))) return failure;
    int device = current_context->device;
    size_t rounded = (size + 511) / 512 * 512;
    pthread_mutex_lock(&lock);
    if (!has_room(device, rounded) && frees_waiting[device]) {
        pthread_mutex_unlock(&lock);
        if ((failure = wait_for_context("an allocation"))) return failure;
        pthread_mutex_lock(&lock);
    }
    if (!has_room(device, rounded)) {
        note("device %d: no room for %zu bytes, %zu in use", device, size, in_use[device]);
        pthread_mutex_unlock(&lock);
        return OUT_OF_MEMORY;
    }
    void *memory;
    if (posix_memalign(&memory, 512, rounded)) {
        pthread_mutex_unlock(&lock);
        return OUT_OF_MEMORY;
    }
    memset(memory, 0xCD, size < FILLED ? size : FILLED);
    if (ranges_used == ranges_room) {
        ranges_room = ranges_room ? 2 * ranges_room : 256;
        ranges = realloc(ranges, ranges_room * sizeof *ranges);
    }
    ranges[ranges_used++] = (Range){(uint64_t)memory, rounded, device};
    in_use[device] += rounded;
    if (in_use[device] > peak[device]) {
        peak[device] = in_use[device];
        note("device %d: %zu bytes in use", device, in_use[device]);
    }
    pthread_mutex_unlock(&lock);
    *pointer = (CUdeviceptr)memory;
    return OK;
}

static CUresult release(CUdeviceptr pointer) {
    CUresult result = INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < ranges_used; i++) {
        if (ranges[i].start != pointer) continue;
        in_use[ranges[i].device] -= ranges[i].size;
        ranges[i] = ranges[--ranges_used];
        free((void *)pointer);
        result = OK;
        break;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

void range_of(uint64_t address, uint64_t *lo, uint64_t *hi) {
    *lo = 1, *hi = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < ranges_used; i++) {
        Range *range = &ranges[i];
        int inside = address >= range->start && address < range->start + range->size;
        if (!inside || range->device != current_context->device) continue;
        *lo = range->start, *hi = range->start + range->size;
        break;
    }
    pthread_mutex_unlock(&lock);
}

static CUresult run_free(void *argument) {
    frees_waiting[current_context->device]--;
    return release(*(CUdeviceptr *)argument);
}

API cuMemAlloc_v2(CUdeviceptr *pointer, size_t size) {
    CUresult failure = unsafe_call("cuMemAlloc");
    return failure ? failure : allocate(pointer, size);
}

API cuMemAllocAsync(CUdeviceptr *pointer, size_t size, void *stream) {
    CUresult failure = allocate(pointer, size);
    return failure || !is_capturing(stream) ? failure : record_allocation(stream);
}

// Waits for the card, as NVIDIA's does.
API cuMemFree_v2(CUdeviceptr pointer) {
    CUresult failure = wait_for_context("cuMemFree");
    return failure ? failure : release(pointer);
}

API cuMemFreeAsync(CUdeviceptr pointer, void *stream) {
    CUresult failure = context_failure();
    // A graph may free only what it allocated.
    if (!failure && is_capturing(stream)) failure = spoil_capture(stream, "cuMemFreeAsync", INVALID_VALUE);
    CUdeviceptr *argument = failure ? NULL : malloc(sizeof *argument);
    if (!argument) return failure ? failure : OUT_OF_MEMORY;
    *argument = pointer;
    frees_waiting[current_context->device]++;
    return submit(stream, WORK_FREE, "", run_free, argument, OK);
}

// Page-locked memory of the host.

typedef struct Pinned {
    char *start;
    size_t size;
    struct Pinned *next;
} Pinned;

static Pinned *pinned;

static int is_pinned(const char *start, size_t size) {
    pthread_mutex_lock(&lock);
    Pinned *at = pinned;
    while (at && !(start >= at->start && start + size <= at->start + at->size)) at = at->next;
    pthread_mutex_unlock(&lock);
    return at != NULL;
}

API cuMemAllocHost_v2(void **pointer, size_t size) {
    CUresult failure = context_failure();
    if (!failure) failure = unsafe_call("cuMemAllocHost");
    if (failure) return failure;
    Pinned *made = malloc(sizeof *made);
    if (!made || posix_memalign(pointer, 256, size ? size : 1)) return free(made), OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    *made = (Pinned){*pointer, size, pinned};
    pinned = made;
    pthread_mutex_unlock(&lock);
    return OK;
}

// Waits for the card, as NVIDIA's does.
API cuMemFreeHost(void *pointer) {
    CUresult failure = wait_for_context("cuMemFreeHost");
    if (failure) return failure;
    pthread_mutex_lock(&lock);
    Pinned **link = &pinned, *found;
    while (*link && (*link)->start != pointer) link = &(*link)->next;
    if ((found = *link)) *link = found->next;
    pthread_mutex_unlock(&lock);
    if (!found) return INVALID_VALUE;
    free(found);
    free(pointer);
    return OK;
}

API cuMemGetInfo_v2(size_t *available, size_t *total) {
    CUresult failure = context_failure();
    if (failure) return failure;
    *total = card(current_context->device)->memory;
    *available = *total - RESERVED - in_use[current_context->device];
    return OK;
}

// Whether `size` bytes from here are memory of the current device.
static int is_own(CUdeviceptr start, size_t size) {
    uint64_t lo, hi;
    range_of(start, &lo, &hi);
    return start >= lo && start + size <= hi;
}

// Copies. All are those of rectangles: a plain one has one row.

typedef struct {
    const char *from;
    char *to;
    size_t from_pitch, to_pitch, width, height;
    int host_from, host_to;
    // Part of a graph, which reads its source at each launch.
    int kept;
    uint64_t hash;      // of a source on the host, at the call
} Copy;

// FNV-1a, by words.
static uint64_t hash_of_source(const Copy *copy) {
    uint64_t hash = 14695981039346656037ull;
    for (size_t y = 0; y < copy->height; y++) {
        const char *row = copy->from + y * copy->from_pitch;
        for (size_t x = 0; x < copy->width; x += 8) {
            uint64_t word = 0;
            memcpy(&word, row + x, copy->width - x < 8 ? copy->width - x : 8);
            hash = (hash ^ word) * 1099511628211ull;
        }
    }
    return hash;
}

static CUresult run_copy(void *argument) {
    const Copy *copy = argument;
    if (copy->host_from && !copy->kept && hash_of_source(copy) != copy->hash) {
        note("changed: the source of a copy of %zu bytes to device %d", copy->width * copy->height, current_context->device);
        fprintf(stderr, "cuda stand-in: the source of a copy of %zu bytes to device %d changed before the copy ran\n",
                copy->width * copy->height, current_context->device);
        return ILLEGAL_ADDRESS;
    }
    for (size_t y = 0; y < copy->height; y++) {
        const char *from = copy->from + y * copy->from_pitch;
        char *to = copy->to + y * copy->to_pitch;
        if (!copy->width) continue;
        if (!copy->host_from && !is_own((CUdeviceptr)from, copy->width)) return ILLEGAL_ADDRESS;
        if (!copy->host_to && !is_own((CUdeviceptr)to, copy->width)) return ILLEGAL_ADDRESS;
        memmove(to, from, copy->width);
    }
    return OK;
}

static CUresult copy_async(Copy copy, void *stream) {
    CUresult failure = context_failure();
    if (failure) return failure;
    Count kind = copy.host_to ? COUNT_COPY_TO_HOST : copy.host_from ? COUNT_COPY_TO_DEVICE : COUNT_COPY_ON_DEVICE;
    copy.kept = is_capturing(stream);
    if (!copy.kept) count(kind, 1);
    if (!copy.kept && copy.host_to) count(COUNT_BYTES_TO_HOST, copy.width * copy.height);
    if (!copy.kept && copy.host_from) count(COUNT_BYTES_TO_DEVICE, copy.width * copy.height), copy.hash = hash_of_source(&copy);
    Copy *argument = malloc(sizeof *argument);
    if (!argument) return OUT_OF_MEMORY;
    *argument = copy;
    const char *name = copy.host_to ? "to host" : copy.host_from ? "to device" : "on device";
    size_t last = copy.height ? (copy.height - 1) * copy.to_pitch + copy.width : 0;
    failure = submit(stream, WORK_COPY, name, run_copy, argument, copy.kept ? OK : injected(kind));
    // CUDA returns from a copy to memory that is not page-locked when it is done.
    if (failure || !copy.host_to || is_pinned(copy.to, last)) return failure;
    return wait_for_stream(stream, "a copy to pageable memory");
}

API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, void *stream) {
    return copy_async((Copy){.from = from, .to = (char *)to, .width = size, .height = 1, .host_from = 1}, stream);
}

API cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, void *stream) {
    return copy_async((Copy){.from = (const char *)from, .to = to, .width = size, .height = 1, .host_to = 1}, stream);
}

API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, void *stream) {
    return copy_async((Copy){.from = (const char *)from, .to = (char *)to, .width = size, .height = 1}, stream);
}

// CUDA_MEMCPY2D. Memory types: 1 is the host, 2 a device.
typedef struct {
    size_t from_x, from_y;
    int from_type;
    const void *from_host;
    CUdeviceptr from_device;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    int to_type;
    void *to_host;
    CUdeviceptr to_device;
    void *to_array;
    size_t to_pitch;
    size_t width, height;
} Copy2d;

API cuMemcpy2DAsync_v2(const Copy2d *copy, void *stream) {
    int host_to = copy->to_type == 1, host_from = copy->from_type == 1;
    const char *from = host_from ? copy->from_host : (const char *)copy->from_device;
    char *to = host_to ? copy->to_host : (char *)copy->to_device;
    return copy_async((Copy){.from = from + copy->from_y * copy->from_pitch + copy->from_x,
                             .to = to + copy->to_y * copy->to_pitch + copy->to_x,
                             .from_pitch = copy->from_pitch, .to_pitch = copy->to_pitch,
                             .width = copy->width, .height = copy->height, .host_from = host_from, .host_to = host_to},
                      stream);
}

typedef struct {
    CUdeviceptr to;
    size_t size;
    unsigned char value;
} Fill;

static CUresult run_fill(void *argument) {
    Fill *fill = argument;
    if (fill->size && !is_own(fill->to, fill->size)) return ILLEGAL_ADDRESS;
    memset((void *)fill->to, fill->value, fill->size);
    return OK;
}

API cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t size, void *stream) {
    Fill *fill = malloc(sizeof *fill);
    if (!fill) return OUT_OF_MEMORY;
    *fill = (Fill){to, size, value};
    return submit(stream, WORK_SET, "", run_fill, fill, OK);
}
