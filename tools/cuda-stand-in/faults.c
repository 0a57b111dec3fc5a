// Injected trouble: calls that fail and work that is late. Both are read from the environment once; what is not
// understood ends the program, so that no test runs without the trouble that it asks for.
#define _GNU_SOURCE
#include "driver.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

// CUDA_STAND_IN_FAIL=WHAT:N[+][@DEVICE].
static struct {
    const char *what;
    Count counts;       // the calls that are counted
    CUresult result;
    uint64_t at;
    int onwards;        // every call from the N-th on
    int device;         // -1: any
    uint64_t seen;
} rule;
static const char *fail_after;
static int is_armed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static _Atomic unsigned longest[WORK_KINDS];
static _Atomic uint64_t seed;
static _Atomic int is_random;

static void read_rule(const char *text) {
    // A lost card gives no reliable code: CUDA_ERROR_UNKNOWN is one of those that are seen.
    static const struct { const char *what; Count counts; CUresult result; } known[] = {
        {"alloc", COUNT_ALLOC, OUT_OF_MEMORY},
        {"launch", COUNT_LAUNCH, LAUNCH_FAILED},
        {"copy", COUNT_COPY_TO_DEVICE, ECC_UNCORRECTABLE},
        {"lost", COUNT_LAUNCH, UNKNOWN},
        {"capture", COUNT_CAPTURE, NOT_SUPPORTED},
        {"graph", COUNT_INSTANTIATE, OUT_OF_MEMORY},
        {"replay", COUNT_GRAPH, UNKNOWN},
    };
    char what[16], plus[2] = "";
    unsigned long long at;
    int length = 0, device = -1;
    if (sscanf(text, "%15[a-z]:%llu%n%1[+]%n", what, &at, &length, plus, &length) < 2 || !at) refuse("CUDA_STAND_IN_FAIL", text);
    if (text[length] && (sscanf(text + length, "@%d%n", &device, &(int){0}) != 1 || device < 0)) refuse("CUDA_STAND_IN_FAIL", text);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(what, known[i].what)) continue;
        rule.what = known[i].what, rule.counts = known[i].counts, rule.result = known[i].result;
    }
    if (!rule.what) refuse("CUDA_STAND_IN_FAIL", text);
    rule.at = at, rule.onwards = plus[0] == '+', rule.device = device;
}

// CUDA_STAND_IN_DELAY=launch=50us,copy=2ms.
static void read_delays(const char *text) {
    for (const char *at = text; *at;) {
        char name[16], unit[3];
        unsigned amount;
        int length = 0, found = 0;
        if (sscanf(at, "%15[a-z]=%u%2[mus]%n", name, &amount, unit, &length) != 3) refuse("CUDA_STAND_IN_DELAY", text);
        unsigned scale = !strcmp(unit, "ms") ? 1000 : !strcmp(unit, "us") ? 1 : 0;
        for (int kind = 0; kind < WORK_KINDS; kind++) {
            if (strcmp(name, work_names[kind])) continue;
            longest[kind] = amount * scale;
            found = 1;
        }
        // A second at most: every delay is shorter than the limit of a wait.
        if (!found || !scale || amount > 1000000 / scale) refuse("CUDA_STAND_IN_DELAY", text);
        at += length;
        if (*at && *at++ != ',') refuse("CUDA_STAND_IN_DELAY", text);
    }
}

// For tests: from now on work is late by a random time of at most these.
__attribute__((visibility("default"))) void cuda_stand_in_delay(const char *delays, uint64_t with_seed) {
    for (int kind = 0; kind < WORK_KINDS; kind++) longest[kind] = 0;
    read_delays(delays);
    seed = with_seed;
    is_random = 1;
}

void start_faults(void) {
    const char *fail = getenv("CUDA_STAND_IN_FAIL"), *delay = getenv("CUDA_STAND_IN_DELAY");
    const char *chance = getenv("CUDA_STAND_IN_SEED");
    fail_after = getenv("CUDA_STAND_IN_FAIL_AFTER");
    if (fail) read_rule(fail);
    if (delay) read_delays(delay);
    if (chance) {
        char *end;
        seed = strtoull(chance, &end, 10);
        if (end == chance || *end) refuse("CUDA_STAND_IN_SEED", chance);
        is_random = 1;
    }
}

// Whether calls are counted yet: from the start, or since a file exists.
static int counts_calls(void) {
    glob_t found;
    if (!fail_after || is_armed) return 1;
    is_armed = glob(fail_after, 0, NULL, &found) == 0;
    if (is_armed) note("counting for %s: %s exists", rule.what, found.gl_pathv[0]);
    globfree(&found);
    return is_armed;
}

CUresult injected(Count kind) {
    // Copies are of one kind here.
    if (kind == COUNT_COPY_TO_HOST || kind == COUNT_COPY_ON_DEVICE) kind = COUNT_COPY_TO_DEVICE;
    if (!rule.what || kind != rule.counts) return OK;
    if (rule.device >= 0 && rule.device != current_context->device) return OK;
    pthread_mutex_lock(&lock);
    int hits = counts_calls() && (++rule.seen == rule.at || (rule.onwards && rule.seen > rule.at));
    pthread_mutex_unlock(&lock);
    if (!hits) return OK;
    note("injected: %s fails on device %d with %d", rule.what, current_context->device, rule.result);
    return rule.result;
}

unsigned delay_of(WorkKind kind, int stream, uint64_t number) {
    if (!is_random || !longest[kind]) return longest[kind];
    // SplitMix64 of the seed and the place of the work: the same for any order in which threads run.
    uint64_t x = seed * 0x9e3779b97f4a7c15ull + (uint64_t)stream * 0xbf58476d1ce4e5b9ull + number;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return (unsigned)((x ^ x >> 31) % (longest[kind] + 1));
}
