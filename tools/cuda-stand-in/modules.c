// Kernels: PTX is checked by NVIDIA's ptxas, translated to C by ptx_to_c.py, compiled, and loaded. A launch is
// checked against the limits of the card and then computed. What cannot be checked or translated is an error.
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Runs a kernel on all blocks of a grid; NULL, or why it failed. See ptx_runtime.h.
typedef const char *(*Run)(const unsigned *grid, const unsigned *block, unsigned shared, void **params,
                           void (*range_of)(uint64_t, uint64_t *, uint64_t *));

// The costs of one block; see ptx_runtime.h.
typedef const char *(*Cost)(const unsigned *grid, const unsigned *block, unsigned shared, void **params,
                            void (*range_of)(uint64_t, uint64_t *, uint64_t *), double *costs);

#define MAX_PARAMS 128

typedef struct {
    uint64_t hash;
    char *ptx;
    char name[256];
    // What ptxas reports; registers are 0 without it.
    int registers, shared, stack, spilled;
    // Bytes of each parameter.
    int param_sizes[MAX_PARAMS], params;
    Run run;
    Cost cost;
    // A translated kernel has static state.
    pthread_mutex_t running;
} Module;

static Module **modules;
static int modules_used, modules_room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// FNV-1a.
static uint64_t hash_of(const char *text) {
    uint64_t hash = 14695981039346656037ull;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 1099511628211ull;
    return hash;
}

static void path_of(char *path, size_t size, uint64_t hash, const char *ending) {
    snprintf(path, size, "%s/%016lx%s", working_directory(), hash, ending);
}

// Replaces a file whole: other processes may write the same one.
static int write_file(const char *path, const char *text) {
    char draft[4200];
    snprintf(draft, sizeof draft, "%s.%d", path, getpid());
    FILE *file = fopen(draft, "w");
    if (!file) return -1;
    fputs(text, file);
    return fclose(file) || rename(draft, path);
}

// The number before a phrase of ptxas, such as 16 in "Used 8 registers, 16 bytes smem".
static int number_before(const char *line, const char *phrase) {
    const char *at = strstr(line, phrase);
    if (!at) return 0;
    while (at > line && at[-1] >= '0' && at[-1] <= '9') at--;
    return atoi(at);
}

static void read_report(Module *module, const char *path) {
    char line[1024];
    FILE *file = fopen(path, "r");
    if (!file) return;
    while (fgets(line, sizeof line, file)) {
        const char *used = strstr(line, "Used ");
        if (used) module->registers = atoi(used + 5), module->shared = number_before(line, " bytes smem");
        if (strstr(line, " bytes spill stores")) {
            module->stack = number_before(line, " bytes stack frame");
            module->spilled = number_before(line, " bytes spill stores");
        }
    }
    fclose(file);
}

// Whether ptxas accepts the module for the card. The architecture is the one that the PTX names, which must not be
// newer than the card.
static CUresult check_ptx(Module *module, const char *ptx) {
    char target[32] = "", path[4096], report[4096], command[16384];
    const char *named = strstr(ptx, ".target ");
    int capability = card(current_context->device)->capability;
    if (!named || sscanf(named, ".target %31[a-z_0-9]", target) != 1 || atoi(target + 3) > capability) {
        fprintf(stderr, "cuda stand-in: PTX for `%s` on a card of sm_%d\n", target, capability);
        return INVALID_PTX;
    }
    const char *ptxas = getenv("CUDA_STAND_IN_PTXAS");
    if (!ptxas) return OK;
    path_of(path, sizeof path, module->hash, ".ptx");
    path_of(report, sizeof report, module->hash, ".ptxas");
    if (access(report, F_OK)) {
        int length = snprintf(command, sizeof command, "'%s' -arch=%s -v '%s' -o /dev/null >'%s.%d' 2>&1", ptxas, target, path,
                              report, getpid());
        char draft[4200];
        snprintf(draft, sizeof draft, "%s.%d", report, getpid());
        if (length >= (int)sizeof command || system(command)) {
            note("ptxas refuses %s", path);
            fprintf(stderr, "cuda stand-in: ptxas refuses %s, see %s\n", path, draft);
            return INVALID_PTX;
        }
        if (rename(draft, report)) return INVALID_PTX;
    }
    read_report(module, report);
    return OK;
}

// Translates a module and loads a function of the object; NULL if it cannot.
static void *translated(const Module *module, const char *ending, const char *option, const char *function) {
    const char *translator = getenv("CUDA_STAND_IN_TRANSLATOR");
    char path[4096], object[4096], command[16384];
    if (!translator) {
        fprintf(stderr, "cuda stand-in: set CUDA_STAND_IN_TRANSLATOR, or CUDA_STAND_IN_RUN=check\n");
        return NULL;
    }
    path_of(path, sizeof path, module->hash, ".ptx");
    path_of(object, sizeof object, module->hash, ending);
    if (access(object, F_OK)) {
        snprintf(command, sizeof command, "python3 '%s' '%s' '%s' %s >&2", translator, path, object, option);
        if (system(command)) {
            note("not translated: %s", path);
            fprintf(stderr, "cuda stand-in: %s cannot be translated\n", path);
            return NULL;
        }
    }
    void *library = dlopen(object, RTLD_NOW | RTLD_LOCAL), *found = library ? dlsym(library, function) : NULL;
    if (!found) fprintf(stderr, "cuda stand-in: %s\n", dlerror());
    return found;
}

// TF32 rounding is compiled in, so both kinds have an object of their own.
static CUresult translate(Module *module) {
    const char *tf32 = getenv("CUDA_STAND_IN_TF32");
    const char *ending = tf32 && !strcmp(tf32, "exact") ? ".exact.so" : ".so";
    module->run = (Run)translated(module, ending, "", "run_kernel");
    return module->run ? OK : NOT_SUPPORTED;
}

static _Atomic int counts_costs;

// For kernel reports: from now on, or no longer, one block of each launch is computed to count its costs.
// Earlier launches are done when it returns.
__attribute__((visibility("default"))) void cuda_stand_in_count_costs(int on) {
    counts_costs = on;
    wait_for_all();
    note("costs %s", on ? "begin" : "end");
}

// Computes the middle block, and writes what all blocks would cost if they did the same.
static void note_costs(Module *module, const unsigned *grid, const unsigned *block, unsigned shared, void **params) {
    double costs[4], blocks = (double)grid[0] * grid[1] * grid[2];
    pthread_mutex_lock(&module->running);
    if (!module->cost) module->cost = (Cost)translated(module, ".costs.so", "--costs", "cost_of_block");
    const char *fault = module->cost ? module->cost(grid, block, shared, params, range_of, costs) : "not translated";
    if (fault) note("cost unknown module %016lx: %s", module->hash, fault);
    else note("cost module %016lx block %u shared %u blocks %.0f read %.0f written %.0f flops %.0f matrix %.0f", module->hash,
              block[0] * block[1] * block[2], shared, blocks, blocks * costs[0], blocks * costs[1], blocks * costs[2],
              blocks * costs[3]);
    pthread_mutex_unlock(&module->running);
}

static _Atomic int stopped;

// For tests that count: from now on kernels are checked and counted, and not executed.
__attribute__((visibility("default"))) void cuda_stand_in_stop_computing(void) { stopped = 1; }

static int is_executed(void) {
    const char *run = getenv("CUDA_STAND_IN_RUN");
    return !stopped && (!run || strcmp(run, "check"));
}

static Module *loaded(uint64_t hash) {
    for (int i = 0; i < modules_used; i++)
        if (modules[i]->hash == hash) return modules[i];
    return NULL;
}

static CUresult load(Module **result, const char *ptx) {
    char path[4096];
    uint64_t hash = hash_of(ptx);
    if ((*result = loaded(hash))) return OK;
    Module *module = calloc(1, sizeof *module);
    module->hash = hash;
    module->ptx = strdup(ptx);
    pthread_mutex_init(&module->running, NULL);
    path_of(path, sizeof path, hash, ".ptx");
    if (access(path, F_OK) && write_file(path, ptx)) return INVALID_PTX;
    CUresult failure = check_ptx(module, ptx);
    if (!failure && is_executed()) failure = translate(module);
    if (failure) return free(module->ptx), free(module), failure;
    if (modules_used == modules_room) {
        modules_room = modules_room ? 2 * modules_room : 256;
        modules = realloc(modules, modules_room * sizeof *modules);
    }
    modules[modules_used++] = *result = module;
    count(COUNT_MODULE, 1);
    return OK;
}

API cuModuleLoadData(void **module, const void *image) {
    CUresult failure = context_failure();
    if (!failure) failure = unsafe_call("cuModuleLoadData");
    if (failure) return failure;
    pthread_mutex_lock(&lock);
    CUresult result = load((Module **)module, image);
    pthread_mutex_unlock(&lock);
    return result;
}

API cuModuleUnload(void *module) {
    (void)module;
    return OK;
}

// Reads the sizes of the parameters, such as `.param .u64 a` and `.param .align 64 .b8 b[128]`, up to the closing
// parenthesis; -1 for what it does not know.
static int read_params(Module *module, const char *at) {
    const char *end = strchr(at, ')');
    module->params = 0;
    for (at = strstr(at, ".param"); at && end && at < end; at = strstr(at + 1, ".param")) {
        const char *stop = at + strcspn(at, ",)");
        int size = 0, count = 1;
        for (const char *word = at + 6; word < stop; word++) {
            int bits;
            if (*word == '.' && strchr("bufs", word[1]) && sscanf(word + 2, "%d", &bits) == 1) size = bits / 8;
            if (*word == '[') count = atoi(word + 1);
        }
        if (!size || count <= 0 || module->params == MAX_PARAMS) return -1;
        module->param_sizes[module->params++] = size * count;
    }
    return end ? 0 : -1;
}

// One kernel for each module, as the compiler of the program writes them.
API cuModuleGetFunction(void **function, void *handle, const char *name) {
    Module *module = handle;
    char entry[300];
    snprintf(entry, sizeof entry, ".entry %s(", name);
    const char *found = strstr(module->ptx, entry);
    if (!found) return NOT_FOUND;
    if (read_params(module, found + strlen(entry))) return INVALID_PTX;
    snprintf(module->name, sizeof module->name, "%s", name);
    note("module %016lx %s registers %d shared %d stack %d spilled %d", module->hash, name, module->registers,
         module->shared, module->stack, module->spilled);
    *function = module;
    return OK;
}

// Attribute 8: the largest dynamic shared memory.
API cuFuncSetAttribute(void *function, int attribute, int value) {
    Module *module = function;
    if (!current_context) return INVALID_CONTEXT;
    int limit = card(current_context->device)->shared_per_block;
    return attribute == 8 && value + module->shared > limit ? INVALID_VALUE : OK;
}

// What CUDA's table of limits says about a launch.
static CUresult check_launch(const Module *module, const unsigned *grid, const unsigned *block, unsigned shared) {
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    int limit = card(current_context->device)->shared_per_block;
    if (!grid[0] || !grid[1] || !grid[2] || !threads) return INVALID_VALUE;
    if (block[0] > 1024 || block[1] > 1024 || block[2] > 64 || threads > 1024) return INVALID_VALUE;
    if (grid[0] > 2147483647u || grid[1] > 65535 || grid[2] > 65535) return INVALID_VALUE;
    if ((int64_t)shared + module->shared > limit) return INVALID_VALUE;
    // Registers are allocated by warp, in units of 256.
    uint64_t warps = (threads + 31) / 32, each = ((uint64_t)module->registers * 32 + 255) / 256 * 256;
    return warps * each > 65536 ? OUT_OF_RESOURCES : OK;
}

// Measurements of the tuner are loops of seconds on a card: they are counted, and not executed.
static int is_measurement(const char *name) {
    return strstr(name, "launch_overhead") || strstr(name, "throughput") || strstr(name, "prime_buffer");
}

// A launch in a queue. Parameters are copied at the call, as CUDA does.
typedef struct {
    Module *module;
    unsigned grid[3], block[3], shared;
    int counts_costs;
    void *params[MAX_PARAMS];
    char values[] __attribute__((aligned(16)));
} Launch;

static Launch *new_launch(Module *module, void **params) {
    size_t size = 0, at = 0;
    for (int i = 0; i < module->params; i++) size += (size_t)(module->param_sizes[i] + 15) / 16 * 16;
    Launch *launch = calloc(1, sizeof *launch + size);
    for (int i = 0; launch && i < module->params; i++) {
        launch->params[i] = memcpy(launch->values + at, params[i], (size_t)module->param_sizes[i]);
        at += (size_t)(module->param_sizes[i] + 15) / 16 * 16;
    }
    return launch;
}

static CUresult run_launch(void *argument) {
    Launch *launch = argument;
    Module *module = launch->module;
    int measurement = is_measurement(module->name);
    // The tuner repeats a measurement that is shorter than 20 ms with more and more iterations. It reads the clock of the
    // card for launches, and that of the host for everything else.
    advance_clock(strstr(module->name, "launch_overhead") ? 1.0 : 0.005);
    if (strstr(module->name, "throughput")) usleep(21000);
    if (launch->counts_costs && !measurement) note_costs(module, launch->grid, launch->block, launch->shared, launch->params);
    if (measurement || !module->run || stopped) return OK;
    pthread_mutex_lock(&module->running);
    const char *fault = module->run(launch->grid, launch->block, launch->shared, launch->params, range_of);
    if (fault) fprintf(stderr, "cuda stand-in: %s (%016lx): %s\n", module->name, module->hash, fault);
    pthread_mutex_unlock(&module->running);
    return fault ? ILLEGAL_ADDRESS : OK;
}

API cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared, void *stream, void **params, void **extra) {
    Module *module = function;
    CUresult failure = context_failure();
    if (failure) return failure;
    if (extra) return NOT_SUPPORTED;
    unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
    // A launch that a graph keeps is none.
    int kept = is_capturing(stream);
    if (!kept) count(COUNT_LAUNCH, 1);
    note(kept ? "node device %d stream %d module %016lx %s grid %u %u %u block %u %u %u shared %u" : "launch device %d stream %d module %016lx %s grid %u %u %u block %u %u %u shared %u", current_context->device,
         stream_id(stream), module->hash, module->name, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared);
    if ((failure = check_launch(module, grid, block, shared))) {
        fprintf(stderr, "cuda stand-in: launch of %s fails with %d: grid %u %u %u, block %u %u %u, shared memory %u\n",
                module->name, failure, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared);
        return failure;
    }
    Launch *launch = new_launch(module, params);
    if (!launch) return OUT_OF_MEMORY;
    launch->module = module, launch->shared = shared, launch->counts_costs = counts_costs;
    memcpy(launch->grid, grid, sizeof grid);
    memcpy(launch->block, block, sizeof block);
    return submit(stream, WORK_LAUNCH, module->name, run_launch, launch, kept ? OK : injected(COUNT_LAUNCH));
}
