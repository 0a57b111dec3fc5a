// Streams and events. A stream is a queue with a thread of its own: calls return when their work is in the queue, and
// only a synchronisation waits for it. Every wait ends: when nothing was finished for CUDA_STAND_IN_LIMIT seconds, with a
// message that names the stream.
#define _GNU_SOURCE
#include "driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// As many calls wait in a queue, about as on a card; the next one waits for room.
#define QUEUE_ROOM 1024
#define NON_BLOCKING 1
// A wait takes at most so many times the limit, even if other streams make progress.
#define LONGEST_WAIT 10

typedef struct Work {
    WorkKind kind;
    const char *name;
    CUresult (*run)(void *);
    void *argument;
    CUresult failure;
    struct Work *next;
} Work;

// Never freed: other streams may still wait for what it did.
struct Stream {
    Context *context;
    int id;
    int is_blocking;    // ordered with the legacy default stream
    int is_closed;
    Work *first, **end;
    uint64_t submitted, done;
    double clock;       // milliseconds of work so far
    pthread_cond_t arrived;
    Stream *next;
};

typedef struct {
    // Calls of cuEventRecord, and how many of them were reached. Freed when nothing refers to it any more.
    uint64_t recorded, reached;
    int users;
    Context *context;
    int stream;
    double at;
    // The stream that captured it, if that was the last record.
    const void *captured;
} Event;

const char *const work_names[WORK_KINDS] = {"launch", "copy", "set", "event", "free"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress;
static pthread_condattr_t monotonic;
static uint64_t finished;
static Stream *streams;
static __thread Stream *current_stream;
static double limit_seconds = 120;
static int traces;

void start_streams(void) {
    const char *limit = getenv("CUDA_STAND_IN_LIMIT"), *trace = getenv("CUDA_STAND_IN_TRACE");
    char *end;
    if (limit && ((limit_seconds = strtod(limit, &end)) <= 0 || *end)) refuse("CUDA_STAND_IN_LIMIT", limit);
    if (trace && strcmp(trace, "1")) refuse("CUDA_STAND_IN_TRACE", trace);
    traces = trace != NULL;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&progress, &monotonic);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// With the lock: waits until a counter has a value.
static CUresult wait_for_count(const uint64_t *counter, uint64_t value, int device, int stream) {
    double began = now(), since = began;
    uint64_t before = finished;
    while (*counter < value) {
        double until = since + limit_seconds;
        struct timespec time = {.tv_sec = (time_t)until, .tv_nsec = (long)(1e9 * (until - (double)(time_t)until))};
        int late = pthread_cond_timedwait(&progress, &lock, &time) == ETIMEDOUT && before == finished;
        if (before != finished) before = finished, since = now();
        if (*counter >= value || (!late && now() - began < LONGEST_WAIT * limit_seconds)) continue;
        note("late: stream %d of device %d", stream, device);
        fprintf(stderr, "cuda stand-in: stream %d of device %d did not finish within %g s: %lu of %lu done\n", stream, device,
                limit_seconds, *counter, value);
        return LAUNCH_TIMEOUT;
    }
    return OK;
}

static void trace(const char *what, const Stream *stream, const Work *work, unsigned delay) {
    if (traces) note("%s device %d stream %d %s delay %u %s", what, stream->context->device, stream->id, work_names[work->kind],
                     delay, work->name);
}

// How often each kind of work was held back, and how often it was let go.
static uint64_t held[WORK_KINDS], let_go[WORK_KINDS];

// For tests: from now on work of a kind does not begin, or begins again.
__attribute__((visibility("default"))) void cuda_stand_in_hold(int kind, int on) {
    pthread_mutex_lock(&lock);
    if (on) held[kind] = let_go[kind] + 1;
    else let_go[kind] = held[kind];
    pthread_cond_broadcast(&progress);
    pthread_mutex_unlock(&lock);
}

// The thread of a stream.
static void *serve(void *argument) {
    Stream *stream = current_stream = argument;
    current_context = stream->context;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!stream->first && !stream->is_closed) pthread_cond_wait(&stream->arrived, &lock);
        Work *work = stream->first;
        if (!work) break;
        unsigned delay = delay_of(work->kind, stream->id, stream->done);
        trace("begin", stream, work, delay);
        CUresult late = wait_for_count(&let_go[work->kind], held[work->kind], stream->context->device, stream->id);
        pthread_mutex_unlock(&lock);
        if (delay) usleep(delay);
        // Nothing runs in a context that has failed; events are reached there, too, so that waits end.
        CUresult result = stream->context->failure && work->kind != WORK_EVENT ? OK
                          : late                                                  ? late
                          : work->failure                                       ? work->failure
                                                                                : work->run(work->argument);
        CUresult none = OK;
        if (result) __atomic_compare_exchange_n((CUresult *)&stream->context->failure, &none, result, 0, __ATOMIC_SEQ_CST,
                                                __ATOMIC_SEQ_CST);
        pthread_mutex_lock(&lock);
        trace("end", stream, work, delay);
        if (!(stream->first = work->next)) stream->end = &stream->first;
        stream->done++, finished++;
        free(work->argument);
        free(work);
        pthread_cond_broadcast(&progress);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

// With the lock.
static Stream *new_stream(Context *context, int is_blocking) {
    static int made;
    pthread_t thread;
    Stream *stream = calloc(1, sizeof *stream);
    if (!stream) return NULL;
    stream->context = context, stream->is_blocking = is_blocking, stream->id = ++made, stream->end = &stream->first;
    pthread_cond_init(&stream->arrived, &monotonic);
    if (pthread_create(&thread, NULL, serve, stream)) return free(stream), NULL;
    pthread_detach(thread);
    char name[16];
    snprintf(name, sizeof name, "stream %d", stream->id);
    pthread_setname_np(thread, name);
    stream->next = streams;
    return streams = stream;
}

// With the lock: the stream of a handle, unless its context has failed. 0 and 1 are the legacy default stream.
static CUresult resolve(void *handle, Stream **stream) {
    if ((uintptr_t)handle > 2) {
        *stream = handle;
        return (*stream)->is_closed ? INVALID_HANDLE : (*stream)->context->failure;
    }
    CUresult failure = context_failure();
    if (failure) return failure;
    if ((uintptr_t)handle == 2) return NOT_SUPPORTED;
    if (!current_context->legacy) current_context->legacy = new_stream(current_context, 1);
    *stream = current_context->legacy;
    return *stream ? OK : OUT_OF_MEMORY;
}

// With the lock.
static CUresult append(Stream *stream, Work work) {
    if (stream->submitted - stream->done >= QUEUE_ROOM) {
        CUresult late = wait_for_count(&stream->done, stream->submitted - QUEUE_ROOM + 1, stream->context->device, stream->id);
        if (late) return free(work.argument), late;
    }
    Work *added = malloc(sizeof *added);
    if (!added) return free(work.argument), OUT_OF_MEMORY;
    *added = work;
    *stream->end = added;
    stream->end = &added->next;
    stream->submitted++;
    pthread_cond_signal(&stream->arrived);
    return OK;
}

typedef struct {
    Stream *stream;
    uint64_t done;
} Join;

static CUresult run_join(void *argument) {
    Join *join = argument;
    pthread_mutex_lock(&lock);
    CUresult late = wait_for_count(&join->stream->done, join->done, join->stream->context->device, join->stream->id);
    if (join->stream->clock > current_stream->clock) current_stream->clock = join->stream->clock;
    pthread_mutex_unlock(&lock);
    return late;
}

// With the lock: work of the legacy stream begins after that of all blocking streams of the context, and theirs after its.
static CUresult join_legacy(Stream *stream) {
    Stream *legacy = stream->context->legacy;
    for (Stream *other = streams; stream->is_blocking && other; other = other->next) {
        int ordered = other->context == stream->context && other->is_blocking && other != stream;
        if (!ordered || (stream != legacy && other != legacy) || other->done == other->submitted) continue;
        Join *join = malloc(sizeof *join);
        if (!join) return OUT_OF_MEMORY;
        *join = (Join){other, other->submitted};
        CUresult failure = append(stream, (Work){.kind = WORK_EVENT, .name = "default stream", .run = run_join, .argument = join});
        if (failure) return failure;
    }
    return OK;
}

CUresult submit(void *handle, WorkKind kind, const char *name, CUresult (*run)(void *), void *argument, CUresult failure) {
    Stream *stream;
    if (is_capturing(handle)) return record(handle, kind, run, argument);
    pthread_mutex_lock(&lock);
    CUresult result = resolve(handle, &stream);
    if (!result) result = join_legacy(stream);
    if (result) free(argument);
    else result = append(stream, (Work){kind, name, run, argument, failure, NULL});
    pthread_mutex_unlock(&lock);
    return result;
}

static void note_sync(const char *why, int device, int stream) {
    char thread[16] = "";
    count(COUNT_SYNC, 1);
    if (!traces) return;
    // A thread without a name has that of the program.
    if (gettid() == getpid()) strcpy(thread, "main");
    else pthread_getname_np(pthread_self(), thread, sizeof thread);
    note("sync device %d stream %d thread %s by %s", device, stream, thread, why);
}

CUresult wait_for_stream(void *handle, const char *why) {
    Stream *stream;
    CUresult unsafe = unsafe_call(why);
    if (unsafe) return unsafe;
    pthread_mutex_lock(&lock);
    CUresult result = resolve(handle, &stream);
    if (!result) {
        note_sync(why, stream->context->device, stream->id);
        result = wait_for_count(&stream->done, stream->submitted, stream->context->device, stream->id);
    }
    pthread_mutex_unlock(&lock);
    return result ? result : stream->context->failure;
}

// Waits for the streams of a context, or of all of them (NULL).
static CUresult wait_for_streams(const Context *context) {
    CUresult result = OK;
    pthread_mutex_lock(&lock);
    for (Stream *stream = streams; stream && !result; stream = stream->next)
        if (!context || stream->context == context)
            result = wait_for_count(&stream->done, stream->submitted, stream->context->device, stream->id);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult wait_for_context(const char *why) {
    CUresult result = context_failure();
    if (!result) result = unsafe_call(why);
    if (result) return result;
    note_sync(why, current_context->device, 0);
    result = wait_for_streams(current_context);
    return result ? result : context_failure();
}

void wait_for_all(void) { wait_for_streams(NULL); }

int stream_id(const void *handle) { return (uintptr_t)handle > 2 ? ((const Stream *)handle)->id : 0; }

void advance_clock(double milliseconds) { current_stream->clock += milliseconds; }

API cuCtxSynchronize(void) { return wait_for_context("cuCtxSynchronize"); }

API cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
    (void)priority;
    CUresult failure = context_failure();
    if (failure) return failure;
    pthread_mutex_lock(&lock);
    *stream = new_stream(current_context, !(flags & NON_BLOCKING));
    pthread_mutex_unlock(&lock);
    return *stream ? OK : OUT_OF_MEMORY;
}

API cuStreamCreate(void **stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }

// What is in the queue is still done.
API cuStreamDestroy_v2(void *handle) {
    Stream *stream;
    pthread_mutex_lock(&lock);
    CUresult result = (uintptr_t)handle > 2 ? resolve(handle, &stream) : INVALID_HANDLE;
    if (!result) {
        stream->is_closed = 1;
        pthread_cond_signal(&stream->arrived);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

API cuStreamSynchronize(void *stream) { return wait_for_stream(stream, "cuStreamSynchronize"); }

API cuStreamQuery(void *handle) {
    Stream *stream;
    CUresult unsafe = unsafe_call("cuStreamQuery");
    if (unsafe) return unsafe;
    pthread_mutex_lock(&lock);
    CUresult result = resolve(handle, &stream);
    if (!result && stream->done < stream->submitted) result = NOT_READY;
    pthread_mutex_unlock(&lock);
    return result;
}

// Events.

// A record, or the wait for it, in a queue.
typedef struct {
    Event *event;
    uint64_t number;
} Moment;

// With the lock.
static void release(Event *event) {
    if (!--event->users) free(event);
}

static CUresult run_record(void *argument) {
    Moment *moment = argument;
    pthread_mutex_lock(&lock);
    if (moment->number > moment->event->reached) {
        moment->event->reached = moment->number;
        moment->event->at = current_stream->clock;
    }
    release(moment->event);
    pthread_mutex_unlock(&lock);
    return OK;
}

static CUresult run_wait(void *argument) {
    Moment *moment = argument;
    Event *event = moment->event;
    pthread_mutex_lock(&lock);
    CUresult late = wait_for_count(&event->reached, moment->number, event->context->device, event->stream);
    if (event->at > current_stream->clock) current_stream->clock = event->at;
    release(event);
    pthread_mutex_unlock(&lock);
    return late;
}

// With the lock: the event has one user more when it is in the queue.
static CUresult append_moment(Stream *stream, Event *event, const char *name, CUresult (*run)(void *)) {
    Moment *moment = malloc(sizeof *moment);
    if (!moment) return OUT_OF_MEMORY;
    *moment = (Moment){event, event->recorded};
    event->users++;
    CUresult result = append(stream, (Work){.kind = WORK_EVENT, .name = name, .run = run, .argument = moment});
    if (result) release(event);
    return result;
}

API cuEventCreate(void **event, unsigned flags) {
    (void)flags;
    CUresult failure = context_failure();
    if (failure) return failure;
    Event *made = calloc(1, sizeof *made);
    if (!made) return OUT_OF_MEMORY;
    made->users = 1, made->context = current_context;
    *event = made;
    return OK;
}

API cuEventDestroy_v2(void *event) {
    pthread_mutex_lock(&lock);
    release(event);
    pthread_mutex_unlock(&lock);
    return OK;
}

API cuEventRecord(void *handle, void *on) {
    Event *event = handle;
    Stream *stream;
    int captured = is_capturing(on);
    pthread_mutex_lock(&lock);
    event->captured = captured ? on : NULL;
    if (captured) return pthread_mutex_unlock(&lock), OK;
    CUresult result = resolve(on, &stream);
    if (!result) result = join_legacy(stream);
    if (!result && event->context != stream->context) result = INVALID_HANDLE;
    if (!result) {
        event->recorded++;
        event->stream = stream->id;
        result = append_moment(stream, event, "record", run_record);
        if (result) event->recorded--;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

// The stream waits, not the caller; for the record before this call, if there is one.
API cuStreamWaitEvent(void *on, void *handle, unsigned flags) {
    Event *event = handle;
    Stream *stream;
    (void)flags;
    // In a capture, a stream is behind its own events. One of outside is no work of the graph, and another stream would be
    // part of the capture, which this driver lacks.
    if (is_capturing(on)) return event->captured == on ? OK : spoil_capture(on, "a wait for an event of outside", CAPTURE_ISOLATION);
    if (event->captured) return spoil_capture(event->captured, "a wait of another stream", NOT_SUPPORTED);
    pthread_mutex_lock(&lock);
    CUresult result = resolve(on, &stream);
    if (!result && event->reached < event->recorded) result = append_moment(stream, event, "wait", run_wait);
    pthread_mutex_unlock(&lock);
    return result;
}

// With a capture: an event of it has no state, and of others none is known.
static CUresult event_in_capture(const Event *event, const char *call) {
    return event->captured && is_capturing(event->captured) ? spoil_capture(event->captured, call, CAPTURED_EVENT) : unsafe_call(call);
}

API cuEventQuery(void *handle) {
    Event *event = handle;
    CUresult unsafe = event_in_capture(event, "cuEventQuery");
    if (unsafe) return unsafe;
    pthread_mutex_lock(&lock);
    CUresult result = event->context->failure ? event->context->failure : event->reached < event->recorded ? NOT_READY : OK;
    pthread_mutex_unlock(&lock);
    return result;
}

API cuEventSynchronize(void *handle) {
    Event *event = handle;
    CUresult unsafe = event_in_capture(event, "cuEventSynchronize");
    if (unsafe) return unsafe;
    pthread_mutex_lock(&lock);
    note_sync("cuEventSynchronize", event->context->device, event->stream);
    CUresult late = wait_for_count(&event->reached, event->recorded, event->context->device, event->stream);
    pthread_mutex_unlock(&lock);
    return late ? late : event->context->failure;
}

API cuEventElapsedTime(float *milliseconds, void *from, void *to) {
    Event *a = from, *b = to;
    pthread_mutex_lock(&lock);
    CUresult result = !a->recorded || !b->recorded                             ? INVALID_HANDLE
                      : a->reached < a->recorded || b->reached < b->recorded ? NOT_READY
                                                                               : OK;
    *milliseconds = (float)(b->at - a->at);
    pthread_mutex_unlock(&lock);
    return result;
}

#if STAND_IN_VERSION >= 12080
API cuEventElapsedTime_v2(float *milliseconds, void *from, void *to) {
    return cuEventElapsedTime(milliseconds, from, to);
}
#endif
