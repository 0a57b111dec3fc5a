// What the files of the stand-in driver share: types of the CUDA driver interface, the cards, the counters.
// See README.md for what it does and which variables it reads.
#ifndef STAND_IN_DRIVER_H
#define STAND_IN_DRIVER_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
    OUT_OF_RESOURCES = 701,
    LAUNCH_FAILED = 719,
    NOT_SUPPORTED = 801,
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

// A device's primary context.
typedef struct {
    int device;
    _Atomic int retained;
} Context;

extern __thread Context *current_context;

typedef struct {
    Context *context;
    int id;
} Stream;

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
    COUNT_KINDS,
} Count;

void count(Count kind, uint64_t amount);
// The error that CUDA_STAND_IN_FAIL asks for at this call, or OK.
CUresult injected(Count kind);

// One line in calls.log of the working directory.
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *working_directory(void);

// The allocation of the current device that contains an address; lo > hi if there is none.
void range_of(uint64_t address, uint64_t *lo, uint64_t *hi);

// The clock of events: what cards would take is unknown, so every launch takes the same.
void advance_clock(double milliseconds);

#endif
