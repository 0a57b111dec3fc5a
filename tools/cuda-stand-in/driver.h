// What the files of the stand-in driver share: types of the CUDA driver interface, the cards, the counters.
// See README.md for what it does and which variables it reads.
#ifndef STAND_IN_DRIVER_H
#define STAND_IN_DRIVER_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// The newest CUDA version that the driver claims to support. `make_stand_in` compiles older drivers too.
#ifndef STAND_IN_VERSION
#define STAND_IN_VERSION 12090
#endif

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;

// Numbers of cuda.h.
enum {
    OK = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    INVALID_PTX = 218,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    ECC_UNCORRECTABLE = 214,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    OUT_OF_RESOURCES = 701,
    LAUNCH_TIMEOUT = 702,
    LAUNCH_FAILED = 719,
    NOT_SUPPORTED = 801,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_ISOLATION = 905,
    CAPTURED_EVENT = 907,
    CAPTURE_WRONG_THREAD = 908,
    UNKNOWN = 999,
};

#define API __attribute__((visibility("default"))) CUresult
#define MAX_CARDS 8

// Properties of a card, from NVIDIA's data sheets and CUDA's table of compute capabilities.
typedef struct {
    const char *key;
    const char *name;
    int capability;         // 89 is sm_89
    uint64_t memory;        // bytes that the driver reports
    int processors;         // streaming multiprocessors
    int clock_khz;
    int memory_clock_khz;
    int bus_bits;
    int l2_bytes;
    int threads_per_sm;
    int blocks_per_sm;
    int shared_per_sm;
    int shared_per_block;   // with opt-in
} Card;

int card_count(void);
const Card *card(int device);

typedef struct Stream Stream;

// A device's primary context.
typedef struct {
    int device;
    _Atomic int retained;
    // The first failure of its work. As in CUDA, every later call returns it.
    _Atomic CUresult failure;
    // The legacy default stream, made when it is first used.
    Stream *legacy;
} Context;

extern __thread Context *current_context;
// The failure of the current context, or that there is none.
CUresult context_failure(void);

// What is counted, in the order of `cuda_stand_in_counts`.
typedef enum {
    COUNT_LAUNCH,
    COUNT_COPY_TO_DEVICE,
    COUNT_COPY_TO_HOST,
    COUNT_COPY_ON_DEVICE,
    COUNT_SYNC,
    COUNT_ALLOC,
    COUNT_MODULE,
    COUNT_BYTES_TO_DEVICE,
    COUNT_BYTES_TO_HOST,
    // Launches of graphs; each is one of all launches, too.
    COUNT_GRAPH,
    // Only counted for CUDA_STAND_IN_FAIL.
    COUNT_CAPTURE,
    COUNT_INSTANTIATE,
    COUNT_KINDS,
} Count;

void count(Count kind, uint64_t amount);
uint64_t counted(Count kind);

// Ends the program, because a variable is wrong.
void refuse(const char *variable, const char *value) __attribute__((noreturn));
// One line in calls.log of the working directory.
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *working_directory(void);

// Streams (streams.c): queues of work, each with a thread of its own.

typedef enum { WORK_LAUNCH, WORK_COPY, WORK_SET, WORK_EVENT, WORK_FREE, WORK_KINDS } WorkKind;
extern const char *const work_names[WORK_KINDS];

void start_streams(void);
// Puts work at the end of a stream of the current context. `argument` is freed after `run`; `failure` is what happens
// instead of `run`, unless it is OK. `name` lives as long as the program.
CUresult submit(void *handle, WorkKind kind, const char *name, CUresult (*run)(void *), void *argument, CUresult failure);
// Waits for all that a stream, or every stream of the current context, was given so far. `why` is for the log.
CUresult wait_for_stream(void *handle, const char *why);
CUresult wait_for_context(const char *why);
// Waits for every stream of every context; not counted.
void wait_for_all(void);
int stream_id(const void *handle);
// In work of a stream: what it took by the clock of the card. It is unknown, so every launch takes the same.
void advance_clock(double milliseconds);

// Captures (graphs.c).

// Whether a stream keeps its work for a graph instead of running it.
int is_capturing(const void *stream);
// Adds work to what a stream captures; takes `argument`.
CUresult record(const void *stream, WorkKind kind, CUresult (*run)(void *), void *argument);
// The same for an allocation, which is made at once.
CUresult record_allocation(const void *stream);
// A call that may wait for the card or that waits for other work is refused while a stream captures, and spoils the capture.
// OK where nothing does.
CUresult unsafe_call(const char *call);
// The same for a call on a stream that captures, with this result.
CUresult spoil_capture(const void *stream, const char *call, CUresult result);

// Injected trouble (faults.c).

void start_faults(void);
// What CUDA_STAND_IN_FAIL asks for at this launch, copy or allocation of the current context, or OK.
CUresult injected(Count kind);
// Microseconds by which CUDA_STAND_IN_DELAY delays the n-th work of a stream.
unsigned delay_of(WorkKind kind, int stream, uint64_t number);

// Memory (memory.c).

// The allocation of the current device that contains an address; lo > hi if there is none.
void range_of(uint64_t address, uint64_t *lo, uint64_t *hi);

#endif
