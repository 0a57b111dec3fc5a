// Start, contexts, counters, the log, names of errors and the lookup of functions.
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>

static FILE *call_log;
static _Atomic uint64_t counts[COUNT_KINDS];

const char *working_directory(void) {
    const char *directory = getenv("CUDA_STAND_IN_DIR");
    return directory ? directory : "cuda-stand-in";
}

__attribute__((constructor)) static void start(void) {
    char path[4096];
    mkdir(working_directory(), 0755);
    const char *log = getenv("CUDA_STAND_IN_LOG");
    if (log) snprintf(path, sizeof path, "%s", log);
    else snprintf(path, sizeof path, "%s/calls.log", working_directory());
    call_log = fopen(path, "a");
    if (!call_log) {
        fprintf(stderr, "cuda stand-in: cannot write %s\n", path);
        abort();
    }
    setvbuf(call_log, NULL, _IOLBF, 0);
    start_faults();
    start_streams();
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

void refuse(const char *variable, const char *value) {
    fprintf(stderr, "cuda stand-in: %s=%s is not understood, see README.md\n", variable, value);
    abort();
}

void count(Count kind, uint64_t amount) { atomic_fetch_add(&counts[kind], amount); }
uint64_t counted(Count kind) { return counts[kind]; }

// For tests: the counters so far, at most `length` of them.
__attribute__((visibility("default"))) int cuda_stand_in_counts(uint64_t *values, int length) {
    for (int i = 0; i < length && i < COUNT_KINDS; i++) values[i] = counts[i];
    return COUNT_KINDS;
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

CUresult context_failure(void) { return current_context ? current_context->failure : INVALID_CONTEXT; }

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

API cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0;
    *greatest = -5;
    return OK;
}

// Errors, and the lookup of functions.

API cuGetErrorName(CUresult result, const char **name) {
    switch (result) {
    case OK: *name = "CUDA_SUCCESS"; break;
    case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case INVALID_PTX: *name = "CUDA_ERROR_INVALID_PTX"; break;
    case ILLEGAL_ADDRESS: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    case OUT_OF_RESOURCES: *name = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"; break;
    case ECC_UNCORRECTABLE: *name = "CUDA_ERROR_ECC_UNCORRECTABLE"; break;
    case NOT_READY: *name = "CUDA_ERROR_NOT_READY"; break;
    case LAUNCH_TIMEOUT: *name = "CUDA_ERROR_LAUNCH_TIMEOUT"; break;
    case UNKNOWN: *name = "CUDA_ERROR_UNKNOWN"; break;
    case NOT_SUPPORTED: *name = "CUDA_ERROR_NOT_SUPPORTED"; break;
    case CAPTURE_UNSUPPORTED: *name = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"; break;
    case CAPTURE_INVALIDATED: *name = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"; break;
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
