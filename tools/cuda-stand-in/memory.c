// Device memory and copies. Memory is the host's, with an owner for each range, so that a kernel that leaves its
// buffers is found, and with the size of the card as limit, so that running out is real.
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
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static CUresult allocate(CUdeviceptr *pointer, size_t size) {
    if (!current_context) return INVALID_CONTEXT;
    if (!size) return INVALID_VALUE;
    count(COUNT_ALLOC, 1);
    CUresult failure = injected(COUNT_ALLOC);
    if (failure) return failure;
    int device = current_context->device;
    size_t rounded = (size + 511) / 512 * 512;
    pthread_mutex_lock(&lock);
    if (in_use[device] + rounded + RESERVED > card(device)->memory) {
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

API cuMemAlloc_v2(CUdeviceptr *pointer, size_t size) { return allocate(pointer, size); }
API cuMemAllocAsync(CUdeviceptr *pointer, size_t size, void *stream) { return (void)stream, allocate(pointer, size); }
API cuMemFree_v2(CUdeviceptr pointer) { return release(pointer); }
API cuMemFreeAsync(CUdeviceptr pointer, void *stream) { return (void)stream, release(pointer); }

API cuMemAllocHost_v2(void **pointer, size_t size) {
    return posix_memalign(pointer, 256, size ? size : 1) ? OUT_OF_MEMORY : OK;
}

API cuMemFreeHost(void *pointer) {
    free(pointer);
    return OK;
}

API cuMemGetInfo_v2(size_t *available, size_t *total) {
    if (!current_context) return INVALID_CONTEXT;
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

API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, void *stream) {
    (void)stream;
    count(COUNT_COPY_TO_DEVICE, 1);
    count(COUNT_BYTES_TO_DEVICE, size);
    if (size && !is_own(to, size)) return ILLEGAL_ADDRESS;
    memcpy((void *)to, from, size);
    return injected(COUNT_COPY_TO_DEVICE);
}

API cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, void *stream) {
    (void)stream;
    count(COUNT_COPY_TO_HOST, 1);
    count(COUNT_BYTES_TO_HOST, size);
    if (size && !is_own(from, size)) return ILLEGAL_ADDRESS;
    memcpy(to, (void *)from, size);
    return injected(COUNT_COPY_TO_HOST);
}

API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, void *stream) {
    (void)stream;
    count(COUNT_COPY_ON_DEVICE, 1);
    if (size && (!is_own(to, size) || !is_own(from, size))) return ILLEGAL_ADDRESS;
    memmove((void *)to, (void *)from, size);
    return injected(COUNT_COPY_ON_DEVICE);
}

API cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t size, void *stream) {
    (void)stream;
    if (size && !is_own(to, size)) return ILLEGAL_ADDRESS;
    memset((void *)to, value, size);
    return injected(COUNT_COPY_ON_DEVICE);
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
    (void)stream;
    int host_to = copy->to_type == 1, host_from = copy->from_type == 1;
    count(host_to ? COUNT_COPY_TO_HOST : host_from ? COUNT_COPY_TO_DEVICE : COUNT_COPY_ON_DEVICE, 1);
    if (host_to) count(COUNT_BYTES_TO_HOST, copy->width * copy->height);
    if (host_from) count(COUNT_BYTES_TO_DEVICE, copy->width * copy->height);
    const char *from = host_from ? copy->from_host : (const char *)copy->from_device;
    char *to = host_to ? copy->to_host : (char *)copy->to_device;
    for (size_t y = 0; y < copy->height; y++) {
        const char *source = from + (copy->from_y + y) * copy->from_pitch + copy->from_x;
        char *target = to + (copy->to_y + y) * copy->to_pitch + copy->to_x;
        if (!host_from && !is_own((CUdeviceptr)source, copy->width)) return ILLEGAL_ADDRESS;
        if (!host_to && !is_own((CUdeviceptr)target, copy->width)) return ILLEGAL_ADDRESS;
        memcpy(target, source, copy->width);
    }
    return injected(COUNT_COPY_TO_DEVICE);
}
