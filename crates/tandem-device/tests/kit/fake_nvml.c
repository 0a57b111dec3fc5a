// Stands in for NVIDIA's management library in tests: two cards, the second of which counts the
// activity of its multiprocessors. Signatures and struct layouts are those of NVIDIA's nvml.h.
#include <stddef.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };

typedef struct card { int newer; } card;
static card cards[2] = { { 0 }, { 1 } };

int nvmlInit_v2(void) { return SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    if (length < 8) return INVALID_ARGUMENT;
    strcpy(version, "580.10");
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, card **device) {
    if (index > 1) return INVALID_ARGUMENT;
    *device = &cards[index];
    return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, card **device) {
    if (strcmp(bus, "0000:0a:00.0") != 0) return NOT_FOUND;
    *device = &cards[1];
    return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, card **device) {
    if (strcmp(uuid, "GPU-new") != 0) return NOT_FOUND;
    *device = &cards[1];
    return SUCCESS;
}

typedef struct { unsigned gpu, memory; } utilization;

int nvmlDeviceGetUtilizationRates(card *device, utilization *rates) {
    rates->gpu = device->newer ? 100 : 97;
    rates->memory = 40;
    return SUCCESS;
}

typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;

int nvmlDeviceGetMemoryInfo_v2(card *device, memory_v2 *memory) {
    (void)device;
    if (memory->version != (sizeof(memory_v2) | 2u << 24)) return INVALID_ARGUMENT;
    memory->total = 24576ull << 20;
    memory->reserved = 0;
    memory->used = 3ull << 20;
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

int nvmlDeviceGetTemperature(card *device, int sensor, unsigned *degrees) {
    (void)device;
    if (sensor != 0) return INVALID_ARGUMENT;
    *degrees = 61;
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(card *device, unsigned *milliwatts) {
    if (!device->newer) return NOT_SUPPORTED;
    *milliwatts = 250500;
    return SUCCESS;
}

typedef struct { unsigned version, supported; } gpm_support;

int nvmlGpmQueryDeviceSupport(card *device, gpm_support *support) {
    support->supported = (unsigned)device->newer;
    return SUCCESS;
}

// A sample is the number of looks at the time it was taken.
static long samples[64];
static long looks;

int nvmlGpmSampleAlloc(long **sample) {
    for (int i = 0; i < 64; i++) {
        if (samples[i] == 0) {
            samples[i] = -1;
            *sample = &samples[i];
            return SUCCESS;
        }
    }
    return INVALID_ARGUMENT;
}

int nvmlGpmSampleFree(long *sample) { *sample = 0; return SUCCESS; }

int nvmlGpmSampleGet(card *device, long *sample) {
    if (!device->newer) return NOT_SUPPORTED;
    *sample = ++looks;
    return SUCCESS;
}

typedef struct {
    unsigned id;
    int result;
    double value;
    struct { char *short_name, *long_name, *unit; } info;
} metric;

typedef struct { unsigned version, count; long *before, *after; metric metrics[]; } metrics;

int nvmlGpmMetricsGet(metrics *request) {
    // Two looks in this order, and the activity of the multiprocessors (2).
    if (request->count != 1 || *request->before >= *request->after) return INVALID_ARGUMENT;
    if (request->metrics[0].id != 2) return INVALID_ARGUMENT;
    request->metrics[0].result = SUCCESS;
    request->metrics[0].value = 25.0;
    return SUCCESS;
}
