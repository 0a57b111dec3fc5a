// CUDA graphs: what a stream captures is kept in order instead of run, and a launch of the graph runs all of it. One stream
// for each capture: a capture that would need a second one is refused. Calls that CUDA forbids during a capture are
// refused and spoil it, as on a card.
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>

// Types of nodes, numbers of cuda.h.
enum { NODE_KERNEL = 0, NODE_COPY = 1, NODE_SET = 2, NODE_ALLOC = 10 };
// Of CUstreamCaptureMode: calls of any thread, of this thread, of none are checked.
enum { MODE_GLOBAL, MODE_OF_THREAD, MODE_RELAXED };

typedef struct {
    int type;
    CUresult (*run)(void *);
    void *argument;     // of this node, freed with the graph
} Node;

// A recording, and what is made of it. A graph and everything instantiated from it share one.
typedef struct {
    Node *nodes;
    size_t used, room;
    int users;
    int device;
    // Begun once; see `cuGraphLaunch`.
    int launched, allocates;
    pthread_mutex_t running;
} Graph;

typedef struct Capture {
    const void *stream;
    pthread_t thread;
    int mode;
    // The capture is spoilt: it gives no graph.
    int invalid;
    Graph *graph;
    struct Capture *next;
} Capture;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Capture *captures;
static _Atomic int capturing;

// With the lock: the link to the capture of a stream, or the end of the list.
static Capture **link_of(const void *stream) {
    Capture **link = &captures;
    while (*link && (*link)->stream != stream) link = &(*link)->next;
    return link;
}

int is_capturing(const void *stream) {
    if (!capturing) return 0;
    pthread_mutex_lock(&lock);
    int found = *link_of(stream) != NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

CUresult spoil_capture(const void *stream, const char *call, CUresult result) {
    pthread_mutex_lock(&lock);
    Capture *capture = *link_of(stream);
    if (capture) capture->invalid = 1;
    pthread_mutex_unlock(&lock);
    note("capture: stream %d is spoilt by %s with %d", stream_id(stream), call, result);
    fprintf(stderr, "cuda stand-in: %s while stream %d captures\n", call, stream_id(stream));
    return result;
}

CUresult unsafe_call(const char *call) {
    if (!capturing) return OK;
    const void *stream = NULL;
    pthread_mutex_lock(&lock);
    for (Capture *at = captures; at && !stream; at = at->next)
        if (at->mode == MODE_GLOBAL || (at->mode == MODE_OF_THREAD && pthread_equal(at->thread, pthread_self()))) stream = at->stream;
    pthread_mutex_unlock(&lock);
    return stream ? spoil_capture(stream, call, CAPTURE_UNSUPPORTED) : OK;
}

CUresult record(const void *stream, WorkKind kind, CUresult (*run)(void *), void *argument) {
    static const int types[WORK_KINDS] = {[WORK_LAUNCH] = NODE_KERNEL, [WORK_COPY] = NODE_COPY, [WORK_SET] = NODE_SET,
                                          [WORK_EVENT] = -1, [WORK_FREE] = -1};
    CUresult result = OK;
    pthread_mutex_lock(&lock);
    Capture *capture = *link_of(stream);
    if (!capture || capture->invalid || types[kind] < 0) result = CAPTURE_INVALIDATED;
    if (!result && capture->graph->used == capture->graph->room) {
        Graph *graph = capture->graph;
        size_t room = graph->room ? 2 * graph->room : 256;
        Node *nodes = realloc(graph->nodes, room * sizeof *nodes);
        if (nodes) graph->nodes = nodes, graph->room = room;
        else result = OUT_OF_MEMORY;
    }
    if (!result) capture->graph->nodes[capture->graph->used++] = (Node){types[kind], run, argument};
    pthread_mutex_unlock(&lock);
    if (result) free(argument);
    return result;
}

static CUresult run_nothing(void *argument) {
    (void)argument;
    return OK;
}

CUresult record_allocation(const void *stream) {
    CUresult result = record(stream, WORK_SET, run_nothing, NULL);
    pthread_mutex_lock(&lock);
    Capture *capture = *link_of(stream);
    if (!result && capture) capture->graph->nodes[capture->graph->used - 1].type = NODE_ALLOC, capture->graph->allocates = 1;
    pthread_mutex_unlock(&lock);
    return result;
}

// With the lock.
static void release(Graph *graph) {
    if (--graph->users) return;
    for (size_t i = 0; i < graph->used; i++) free(graph->nodes[i].argument);
    pthread_mutex_destroy(&graph->running);
    free(graph->nodes);
    free(graph);
}

API cuStreamBeginCapture_v2(void *stream, int mode) {
    CUresult failure = context_failure();
    if (failure) return failure;
    if ((failure = injected(COUNT_CAPTURE))) return failure;
    if (mode < MODE_GLOBAL || mode > MODE_RELAXED) return INVALID_VALUE;
    // The default stream cannot capture.
    if ((uintptr_t)stream <= 2) return CAPTURE_UNSUPPORTED;
    if (is_capturing(stream)) return ILLEGAL_STATE;
    Capture *capture = malloc(sizeof *capture);
    Graph *graph = calloc(1, sizeof *graph);
    if (!capture || !graph) return free(capture), free(graph), OUT_OF_MEMORY;
    graph->users = 1, graph->device = current_context->device;
    pthread_mutex_init(&graph->running, NULL);
    pthread_mutex_lock(&lock);
    *capture = (Capture){stream, pthread_self(), mode, 0, graph, captures};
    captures = capture;
    capturing++;
    pthread_mutex_unlock(&lock);
    note("capture device %d stream %d begins", current_context->device, stream_id(stream));
    return OK;
}

// Ends the capture in any case.
API cuStreamEndCapture(void *stream, void **result) {
    *result = NULL;
    pthread_mutex_lock(&lock);
    Capture **link = link_of(stream), *capture = *link;
    int other = capture && capture->mode != MODE_RELAXED && !pthread_equal(capture->thread, pthread_self());
    CUresult failure = !capture ? ILLEGAL_STATE : other ? CAPTURE_WRONG_THREAD : capture->invalid ? CAPTURE_INVALIDATED : OK;
    size_t nodes = capture ? capture->graph->used : 0;
    if (capture && !other) {
        *link = capture->next;
        capturing--;
        if (failure) release(capture->graph);
        else *result = capture->graph;
        free(capture);
    }
    pthread_mutex_unlock(&lock);
    note("capture stream %d ends with %d: %zu nodes", stream_id(stream), failure, nodes);
    return failure ? failure : context_failure();
}

// CUstreamCaptureStatus: none, active, invalidated.
API cuStreamIsCapturing(void *stream, int *status) {
    pthread_mutex_lock(&lock);
    Capture *capture = *link_of(stream);
    *status = !capture ? 0 : capture->invalid ? 2 : 1;
    pthread_mutex_unlock(&lock);
    return OK;
}

// The address of a node is its handle.
API cuGraphGetNodes(void *handle, void **nodes, size_t *number) {
    Graph *graph = handle;
    for (size_t i = 0; nodes && i < *number; i++) nodes[i] = i < graph->used ? &graph->nodes[i] : NULL;
    *number = nodes && *number < graph->used ? *number : graph->used;
    return OK;
}

API cuGraphNodeGetType(void *node, int *type) {
    *type = ((const Node *)node)->type;
    return OK;
}

// What is instantiated is the graph itself: it cannot be changed.
API cuGraphInstantiateWithFlags(void **executable, void *handle, unsigned long long flags) {
    Graph *graph = handle;
    CUresult failure = context_failure();
    if (failure) return failure;
    if (flags) return NOT_SUPPORTED;
    if ((failure = injected(COUNT_INSTANTIATE))) return failure;
    pthread_mutex_lock(&lock);
    graph->users++;
    pthread_mutex_unlock(&lock);
    *executable = graph;
    return OK;
}

static CUresult destroy(void *handle) {
    pthread_mutex_lock(&lock);
    release(handle);
    pthread_mutex_unlock(&lock);
    return OK;
}

API cuGraphDestroy(void *graph) { return destroy(graph); }
API cuGraphExecDestroy(void *executable) { return destroy(executable); }

API cuGraphUpload(void *executable, void *stream) {
    (void)executable;
    return is_capturing(stream) ? spoil_capture(stream, "cuGraphUpload", CAPTURE_UNSUPPORTED) : context_failure();
}

static CUresult run_graph(void *argument) {
    Graph *graph = *(Graph **)argument;
    CUresult failure = OK;
    // Two launches of one graph never overlap.
    pthread_mutex_lock(&graph->running);
    for (size_t i = 0; i < graph->used && !failure; i++) failure = graph->nodes[i].run(graph->nodes[i].argument);
    pthread_mutex_unlock(&graph->running);
    destroy(graph);
    return failure;
}

// One launch, whatever it holds. A graph that allocates can be launched once: nothing frees its memory.
API cuGraphLaunch(void *executable, void *stream) {
    Graph *graph = executable;
    CUresult failure = context_failure();
    if (failure) return failure;
    if (is_capturing(stream)) return spoil_capture(stream, "cuGraphLaunch", CAPTURE_UNSUPPORTED);
    if (graph->device != current_context->device) return INVALID_HANDLE;
    Graph **argument = malloc(sizeof *argument);
    if (!argument) return OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    int again = graph->launched && graph->allocates;
    if (!again) graph->users++, graph->launched = 1;
    pthread_mutex_unlock(&lock);
    if (again) return free(argument), INVALID_VALUE;
    *argument = graph;
    count(COUNT_LAUNCH, 1);
    count(COUNT_GRAPH, 1);
    note("launch device %d stream %d graph of %zu nodes", current_context->device, stream_id(stream), graph->used);
    failure = injected(COUNT_GRAPH);
    if (!failure) failure = injected(COUNT_LAUNCH);
    return submit(stream, WORK_LAUNCH, "graph", run_graph, argument, failure);
}
