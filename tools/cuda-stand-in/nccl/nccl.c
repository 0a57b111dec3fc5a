// A libnccl that is installed and must not be used. CubeCL finds it and would send tensors between two cards through it:
// every call that would start that says so and fails, so that a run which makes one cannot end well.
#include <stdio.h>

#define API __attribute__((visibility("default"))) int

enum { INTERNAL_ERROR = 3 };

static int refuse(const char *call) {
    fprintf(stderr, "NCCL was called: %s\n", call);
    return INTERNAL_ERROR;
}

// A test can see that the library was found.
__attribute__((constructor)) static void found(void) { fputs("NCCL was found\n", stderr); }

API ncclGetUniqueId(void *id) { return (void)id, refuse("ncclGetUniqueId"); }
API ncclGroupStart(void) { return refuse("ncclGroupStart"); }
API ncclGroupEnd(void) { return refuse("ncclGroupEnd"); }

API ncclCommInitAll(void **comms, int count, const int *devices) {
    return (void)comms, (void)count, (void)devices, refuse("ncclCommInitAll");
}

API ncclSend(const void *from, unsigned long count, int type, int peer, void *comm, void *stream) {
    return (void)from, (void)count, (void)type, (void)peer, (void)comm, (void)stream, refuse("ncclSend");
}

API ncclRecv(void *to, unsigned long count, int type, int peer, void *comm, void *stream) {
    return (void)to, (void)count, (void)type, (void)peer, (void)comm, (void)stream, refuse("ncclRecv");
}
