// The cards that CUDA_STAND_IN_CARDS can name, and the attributes that the driver reports for them.
#include "driver.h"

#include <stdlib.h>
#include <string.h>

#define MIB (1024ull * 1024)

static const Card CARDS[] = {
    {"t4", "Tesla T4", 75, 14930 * MIB, 40, 1590000, 5001000, 256, 4 << 20, 1024, 16, 65536, 65536},
    {"a100-40", "NVIDIA A100-SXM4-40GB", 80, 40339 * MIB, 108, 1410000, 1215000, 5120, 40 << 20, 2048, 32, 167936, 166912},
    {"rtx3060-12", "NVIDIA GeForce RTX 3060", 86, 12044 * MIB, 28, 1777000, 7501000, 192, 2359296, 1536, 16, 102400, 101376},
    {"rtx3090", "NVIDIA GeForce RTX 3090", 86, 24253 * MIB, 82, 1695000, 9751000, 384, 6 << 20, 1536, 16, 102400, 101376},
    {"rtx4060ti-16", "NVIDIA GeForce RTX 4060 Ti", 89, 16072 * MIB, 34, 2535000, 9001000, 128, 32 << 20, 1536, 24, 102400, 101376},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 89, 24217 * MIB, 128, 2520000, 10501000, 384, 72 << 20, 1536, 24, 102400, 101376},
    {"h100-80", "NVIDIA H100 80GB HBM3", 90, 81079 * MIB, 132, 1980000, 2619000, 5120, 50 << 20, 2048, 32, 233472, 232448},
};

static Card cards[MAX_CARDS];
static int cards_found;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const Card *card_named(const char *key) {
    for (size_t i = 0; i < sizeof CARDS / sizeof *CARDS; i++)
        if (strcmp(CARDS[i].key, key) == 0) return &CARDS[i];
    fprintf(stderr, "cuda stand-in: CUDA_STAND_IN_CARDS names the unknown card `%s`\n", key);
    abort();
}

static void read_cards(void) {
    const char *listed = getenv("CUDA_STAND_IN_CARDS");
    char *names = strdup(listed ? listed : "rtx4090,rtx4090"), *rest = names, *key;
    const char *memory = getenv("CUDA_STAND_IN_MEMORY");
    while ((key = strsep(&rest, ",")) && cards_found < MAX_CARDS) {
        if (!*key) continue;
        cards[cards_found] = *card_named(key);
        if (memory) cards[cards_found].memory = strtoull(memory, NULL, 10) * MIB;
        cards_found++;
    }
    free(names);
}

int card_count(void) {
    pthread_once(&once, read_cards);
    return cards_found;
}

const Card *card(int device) {
    return device >= 0 && device < card_count() ? &cards[device] : NULL;
}

// Numbers of CUdevice_attribute.
API cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    const Card *c = card(device);
    if (!c) return INVALID_DEVICE;
    switch (attribute) {
    case 1: case 2: case 3: *value = 1024; break;     // threads of a block, its x and y
    case 4: *value = 64; break;                       // z of a block
    case 5: *value = 2147483647; break;               // x of a grid
    case 6: case 7: *value = 65535; break;            // y and z of a grid
    case 8: *value = 49152; break;                    // shared memory of a block without opt-in
    case 9: *value = 65536; break;                    // constant memory
    case 10: *value = 32; break;                      // warp
    case 12: case 82: *value = 65536; break;          // registers of a block, of a multiprocessor
    case 13: *value = c->clock_khz; break;
    case 14: *value = 512; break;                     // texture alignment
    case 16: *value = c->processors; break;
    case 33: *value = device + 1; break;              // PCI bus
    case 34: case 50: *value = 0; break;              // PCI device, PCI domain
    case 36: *value = c->memory_clock_khz; break;
    case 37: *value = c->bus_bits; break;
    case 38: *value = c->l2_bytes; break;
    case 39: *value = c->threads_per_sm; break;
    case 40: *value = 2; break;                       // copy engines
    case 41: case 83: case 115: *value = 1; break;    // unified addressing, managed memory, memory pools
    case 51: *value = 32; break;                      // texture pitch alignment
    case 75: *value = c->capability / 10; break;
    case 76: *value = c->capability % 10; break;
    case 81: *value = c->shared_per_sm; break;
    case 97: *value = c->shared_per_block; break;
    case 106: *value = c->blocks_per_sm; break;
    default:
        *value = 0;                                   // features that none of these has, such as integrated
        note("attribute %d: 0", attribute);
    }
    return OK;
}

API cuDeviceGetCount(int *n) {
    *n = card_count();
    return OK;
}

API cuDeviceGet(CUdevice *device, int index) {
    if (!card(index)) return INVALID_DEVICE;
    *device = index;
    return OK;
}

API cuDeviceGetName(char *name, int length, CUdevice device) {
    if (!card(device)) return INVALID_DEVICE;
    snprintf(name, length, "%s", card(device)->name);
    return OK;
}

API cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    if (!card(device)) return INVALID_DEVICE;
    *bytes = card(device)->memory;
    return OK;
}

API cuDeviceGetUuid_v2(void *uuid, CUdevice device) {
    memset(uuid, 0x42 + device, 16);
    return OK;
}

API cuDeviceGetUuid(void *uuid, CUdevice device) {
    return cuDeviceGetUuid_v2(uuid, device);
}

API cuDeviceGetPCIBusId(char *text, int length, CUdevice device) {
    snprintf(text, length, "0000:%02X:00.0", device + 1);
    return OK;
}

// No peer access: copies between two cards pass through the host, as on most consumer cards.
API cuDeviceCanAccessPeer(int *can, CUdevice from, CUdevice to) {
    (void)from, (void)to;
    *can = 0;
    return OK;
}

API cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice from, CUdevice to) {
    (void)attribute, (void)from, (void)to;
    *value = 0;
    return OK;
}
