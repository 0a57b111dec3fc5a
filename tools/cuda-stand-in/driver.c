// Start, contexts, streams, events, counters and injected errors. Streams are synchronous: a call returns when
// its work is done, so events are always reached and a synchronisation never waits.
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// The newest CUDA version that the driver claims to support. `make_stand_in` compiles a driver of CUDA 12.0 too.
#ifndef STAND_IN_VERSION
#define STAND_IN_VERSION 12090
#endif

static FILE *call_log;
static _Atomic uint64_t counts[COUNT_KINDS];

const char *working_directory(void) {
    const char *directory = getenv("CUDA_STAND_IN_DIR");
    return directory ? directory : "cuda-stand-in";
}

__attribute__((constructor)) static void start(void) {
    char path[4096];
    mkdir(working_directory(), 0755);
    snprintf(path, sizeof path, "%s/calls.log", working_directory());
    call_log = fopen(path, "a");
    if (!call_log) {
        fprintf(stderr, "cuda stand-in: cannot write %s\n", path);
        abort();
    }
    setvbuf(call_log, NULL, _IOLBF, 0);
}

__attribute__((destructor)) static void stop(void) {
    note("end: %lu launches, %lu modules, %lu allocations, %lu synchronisations", counts[COUNT_LAUNCH],
         counts[COUNT_MODULE], counts[COUNT_ALLOC], counts[COUNT_SYNC]);
}

void note(const char *format, ...) {
    char line[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fprintf(call_log, "%s\n", line);
}

void count(Count kind, uint64_t amount) { atomic_fetch_add(&counts[kind], amount); }

// For tests: the counters so far, at most `length` of them.
__attribute__((visibility("default"))) int cuda_stand_in_counts(uint64_t *values, int length) {
    for (int i = 0; i < length && i < COUNT_KINDS; i++) values[i] = counts[i];
    return COUNT_KINDS;
}

// CUDA_STAND_IN_FAIL=alloc:N, launch:N or lost:N. The N-th call fails; a lost card fails from then on.
CUresult injected(Count kind) {
    const char *wanted = getenv("CUDA_STAND_IN_FAIL");
    if (!wanted) return OK;
    const char *colon = strchr(wanted, ':');
    uint64_t at = colon ? strtoull(colon + 1, NULL, 10) : 0;
    if (kind == COUNT_ALLOC && !strncmp(wanted, "alloc:", 6) && counts[kind] == at) return OUT_OF_MEMORY;
    if (kind == COUNT_LAUNCH && !strncmp(wanted, "launch:", 7) && counts[kind] == at) return LAUNCH_FAILED;
    if (!strncmp(wanted, "lost:", 5) && counts[COUNT_LAUNCH] >= at) return LAUNCH_FAILED;
    return OK;
}

API cuInit(unsigned flags) {
    (void)flags;
    return OK;
}

API cuDriverGetVersion(int *version) {
    *version = STAND_IN_VERSION;
    return OK;
}

// Contexts.

__thread Context *current_context;
static Context contexts[MAX_CARDS];

API cuDevicePrimaryCtxRetain(void **context, CUdevice device) {
    if (!card(device)) return INVALID_DEVICE;
    contexts[device].device = device;
    contexts[device].retained++;
    *context = &contexts[device];
    return OK;
}

API cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    if (!card(device)) return INVALID_DEVICE;
    *flags = 0;
    *active = contexts[device].retained > 0;
    return OK;
}

API cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    if (!card(device) || !contexts[device].retained) return INVALID_DEVICE;
    contexts[device].retained--;
    return OK;
}

API cuCtxSetCurrent(void *context) {
    current_context = context;
    return OK;
}

API cuCtxGetCurrent(void **context) {
    *context = current_context;
    return OK;
}

API cuCtxGetDevice(CUdevice *device) {
    if (!current_context) return INVALID_CONTEXT;
    *device = current_context->device;
    return OK;
}

API cuCtxSynchronize(void) {
    count(COUNT_SYNC, 1);
    return injected(COUNT_SYNC);
}

API cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0;
    *greatest = -5;
    return OK;
}

// Streams.

API cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
    static atomic_int streams;
    (void)flags, (void)priority;
    if (!current_context) return INVALID_CONTEXT;
    Stream *made = calloc(1, sizeof *made);
    made->context = current_context;
    made->id = ++streams;
    *stream = made;
    return OK;
}

API cuStreamCreate(void **stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }

API cuStreamDestroy_v2(void *stream) {
    free(stream);
    return OK;
}

API cuStreamSynchronize(void *stream) {
    (void)stream;
    count(COUNT_SYNC, 1);
    return injected(COUNT_SYNC);
}

API cuStreamQuery(void *stream) {
    (void)stream;
    return injected(COUNT_SYNC);
}

API cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
    (void)stream, (void)event, (void)flags;
    return OK;
}

// Events.

typedef struct {
    double at;
    int recorded;
} Event;

static double clock_now;
static pthread_mutex_t clock_lock = PTHREAD_MUTEX_INITIALIZER;

void advance_clock(double milliseconds) {
    pthread_mutex_lock(&clock_lock);
    clock_now += milliseconds;
    pthread_mutex_unlock(&clock_lock);
}

API cuEventCreate(void **event, unsigned flags) {
    (void)flags;
    *event = calloc(1, sizeof(Event));
    return OK;
}

API cuEventDestroy_v2(void *event) {
    free(event);
    return OK;
}

API cuEventRecord(void *event, void *stream) {
    (void)stream;
    *(Event *)event = (Event){.at = clock_now, .recorded = 1};
    return OK;
}

API cuEventQuery(void *event) {
    (void)event;
    return injected(COUNT_SYNC);
}

API cuEventSynchronize(void *event) {
    (void)event;
    count(COUNT_SYNC, 1);
    return injected(COUNT_SYNC);
}

API cuEventElapsedTime(float *milliseconds, void *from, void *to) {
    Event *a = from, *b = to;
    if (!a->recorded || !b->recorded) return INVALID_HANDLE;
    *milliseconds = (float)(b->at - a->at);
    return OK;
}

#if STAND_IN_VERSION >= 12080
API cuEventElapsedTime_v2(float *milliseconds, void *from, void *to) {
    return cuEventElapsedTime(milliseconds, from, to);
}
#endif

// Errors, and the lookup of functions.

API cuGetErrorName(CUresult result, const char **name) {
    switch (result) {
    case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case INVALID_PTX: *name = "CUDA_ERROR_INVALID_PTX"; break;
    case ILLEGAL_ADDRESS: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    case OUT_OF_RESOURCES: *name = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"; break;
    case LAUNCH_FAILED: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
    default: *name = "CUDA_ERROR_OF_THE_STAND_IN"; break;
    }
    return OK;
}

API cuGetErrorString(CUresult result, const char **text) { return cuGetErrorName(result, text); }

API cuGetExportTable(const void **table, const void *id) {
    (void)id;
    *table = NULL;
    return NOT_FOUND;
}

API cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status) {
    (void)version, (void)flags;
    *function = dlsym(RTLD_DEFAULT, symbol);
    if (status) *status = *function ? 0 : 1;
    return *function ? OK : NOT_FOUND;
}

API cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags) {
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
