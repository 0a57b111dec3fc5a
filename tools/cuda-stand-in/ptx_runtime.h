// What a translated kernel needs to run on the CPU: its numbers, its memory, its threads and the matrix units.
//
// Blocks run one after the other. Threads of a kernel in which they wait for each other have a stack each and are
// switched at the places where they wait; otherwise they run one after the other. Accesses outside of the buffers
// of the launch, or with a wrong alignment, end the kernel with a message.
// Registers of matrix units are laid out as PTX defines for `mma`, and by ourselves for `wmma`, where it does not.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef unsigned __int128 u128;
typedef __int128 s128;

// Numbers: bits to values and back.

static inline float F(u32 bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline u32 UF(float x) { u32 bits; memcpy(&bits, &x, 4); return bits; }
static inline double D(u64 bits) { double x; memcpy(&x, &bits, 8); return x; }
static inline u64 UD(double x) { u64 bits; memcpy(&bits, &x, 8); return bits; }
static inline float H(u16 bits) { _Float16 x; memcpy(&x, &bits, 2); return (float)x; }
static inline u16 UH(float x) { _Float16 half = (_Float16)x; u16 bits; memcpy(&bits, &half, 2); return bits; }
static inline float B(u16 bits) { return F((u32)bits << 16); }
static inline u16 UB(float x) {
    u32 bits = UF(x);
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff; // NaN
    return (u16)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// TF32 has the exponent of f32 and 10 bits of mantissa. A conversion rounds to nearest, ties away from zero; matrix
// units ignore the lower bits of what they are given.
#ifdef EXACT_TF32
#define TF32_BITS 0xffffffffu
static inline u32 round_tf32(float x) { return UF(x); }
#else
#define TF32_BITS 0xffffe000u
static inline u32 round_tf32(float x) {
    u32 bits = UF(x);
    return (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & TF32_BITS;
}
#endif

static inline s128 clamp(double x, s128 lowest, s128 highest) {
    if (isnan(x)) return 0;
    return x <= (double)lowest ? lowest : x >= (double)highest ? highest : (s128)x;
}
static inline s128 clamp_integer(s128 x, s128 lowest, s128 highest) {
    return x < lowest ? lowest : x > highest ? highest : x;
}

static inline u64 reverse_bits(u64 x, int width) {
    u64 result = 0;
    for (int i = 0; i < width; i++) result |= (x >> i & 1) << (width - 1 - i);
    return result;
}
static inline u64 extract_bits(u64 x, u32 start, u32 length, u32 width, int is_signed) {
    start &= 255, length &= 255;
    u64 sign = length == 0 ? 0 : start + length - 1 < width ? start + length - 1 : width - 1, result = 0;
    u64 fill = is_signed && length ? x >> sign & 1 : 0;
    for (u32 i = 0; i < width; i++) {
        u64 bit = i < length && start + i < width ? x >> (start + i) & 1 : fill;
        result |= bit << i;
    }
    return result;
}
static inline u64 insert_bits(u64 from, u64 into, u32 start, u32 length, u32 width) {
    start &= 255, length &= 255;
    for (u32 i = 0; i < length && start + i < width; i++) {
        into &= ~(1ull << (start + i));
        into |= (from >> i & 1) << (start + i);
    }
    return into;
}
static inline u32 permute_bytes(u32 low, u32 high, u32 selector) {
    u64 bytes = (u64)high << 32 | low;
    u32 result = 0;
    for (int i = 0; i < 4; i++) {
        u32 number = selector >> (4 * i) & 15;
        u8 byte = bytes >> (8 * (number & 7));
        if (number & 8) byte = byte & 0x80 ? 255 : 0;
        result |= (u32)byte << (8 * i);
    }
    return result;
}
static inline u32 logic(u32 a, u32 b, u32 c, u32 table) {
    u32 result = 0;
    for (int i = 0; i < 8; i++)
        if (table >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return result;
}

// Threads.

typedef struct Warp Warp;
typedef struct {
    u32 tx, ty, tz, lane, warp_id;
    Warp *warp;
    void *stack;
    int state, site;
    u32 mask;
} Lane;
enum { READY, AT_WARP, AT_BLOCK, DONE };
struct Warp {
    // Values that lanes bring to a place where they wait, and those of the group that came together.
    u32 brought[32][24], shared[32][24];
    Lane *lanes[32];
    int count;
    u32 group;
    // Whether the product of the group is still to be computed.
    int fresh;
    float product[32 * 32];
};
typedef struct {
    u32 x, y, z;
} Index;
static Index GRID, BLOCK, AT;
static Lane *running;

static char message[256];
static jmp_buf on_fault;
__attribute__((noinline, noreturn)) static void fault(const char *what, u64 address, u64 size) {
    snprintf(message, sizeof message, "%s: address %llx, %llu bytes; thread %u %u %u of block %u %u %u", what,
             (unsigned long long)address, (unsigned long long)size, running->tx, running->ty, running->tz, AT.x, AT.y, AT.z);
    longjmp(on_fault, 1);
}

// Memory.

static u8 *SHARED;
static u32 shared_bytes;
static void (*range_of)(u64 address, u64 *lo, u64 *hi);
// The range that was used last.
static u64 range_lo = 1, range_hi = 0;

static inline void *global_memory(u64 address, u64 size, u64 align) {
    if (__builtin_expect(address & (align - 1), 0)) fault("misaligned access of global memory", address, size);
    if (__builtin_expect(address < range_lo || address + size > range_hi, 0)) {
        range_of(address, &range_lo, &range_hi);
        if (address < range_lo || address + size > range_hi) fault("access outside of every buffer", address, size);
    }
    return (void *)address;
}
static inline void *shared_memory(u64 address, u64 size, u64 align) {
    if (__builtin_expect((address & (align - 1)) || address + size > shared_bytes, 0))
        fault("access outside of shared memory, or misaligned", address, size);
    return SHARED + address;
}
static inline void *any_memory(u64 address, u64 size, u64 align) {
    if (address >= (u64)SHARED && address + size <= (u64)SHARED + shared_bytes) return (void *)address;
    // Local arrays of the thread.
    u64 frame = (u64)__builtin_frame_address(0);
    if (address > frame - 256 && address < frame + (1u << 16)) return (void *)address;
    return global_memory(address, size, align);
}
static inline void *memory_in(int space, u64 address, u64 size) {
    if (space == 1) return shared_memory(address, size, size);
    return space == 0 ? global_memory(address, size, size) : any_memory(address, size, size);
}

#ifdef COUNT_COSTS
// Bytes of global memory, operations on floats, and those of matrix units. See `costs_of` in ptx_instructions.py.
static double cost_read, cost_written, cost_flops, cost_matrix;
#endif

// Switching between threads: saves the registers that a call preserves on the old stack, and continues on the other.
extern void switch_stack(void **from, void *to);
__asm__(".text\n.type switch_stack,@function\nswitch_stack:\n"
        " pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
        " movq %rsp,(%rdi)\n movq %rsi,%rsp\n"
        " popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret\n");
static void *scheduler;

static void park(Lane *me, int state, int site, u32 mask) {
    me->state = state, me->site = site, me->mask = mask;
    switch_stack(&me->stack, scheduler);
}
static u32 group_at(Lane *me, int site, u32 mask) {
    park(me, AT_WARP, site, mask);
    return me->warp->group;
}
static void wait_for_block(Lane *me, int site) { park(me, AT_BLOCK, site, 0); }

static u32 shuffle(Lane *me, int site, int mode, u32 value, u32 b, u32 c, u32 mask, u8 *inside) {
    Warp *warp = me->warp;
    warp->brought[me->lane][0] = value;
    group_at(me, site, mask);
    u32 segment = c >> 8 & 31, limit = c & 31;
    s32 lane = me->lane, last = (lane & segment) | (limit & ~segment), first = lane & segment, source;
    b &= 31;
    if (mode == 0) source = lane - (s32)b, *inside = source >= last;
    else if (mode == 1) source = lane + b, *inside = source <= last;
    else if (mode == 2) source = lane ^ b, *inside = source <= last;
    else source = first | (b & ~segment), *inside = source <= last;
    if (!*inside) source = lane;
    if (!(warp->group >> source & 1)) fault("shuffle from a lane that is not in the group", source, 0);
    return warp->shared[source][0];
}
static u32 ballot(Lane *me, int site, int yes, u32 mask) {
    me->warp->brought[me->lane][0] = !!yes;
    u32 group = group_at(me, site, mask) & mask, result = 0;
    for (int i = 0; i < 32; i++)
        if (group >> i & 1 && me->warp->shared[i][0]) result |= 1u << i;
    return result;
}
static u32 reduce(Lane *me, int site, int operation, u32 value, u32 mask) {
    me->warp->brought[me->lane][0] = value;
    u32 group = group_at(me, site, mask) & mask, result = 0;
    for (int i = 0, first = 1; i < 32; i++) {
        if (!(group >> i & 1)) continue;
        u32 x = me->warp->shared[i][0];
        if (first) { result = x, first = 0; continue; }
        switch (operation) {
        case 0: result += x; break;
        case 1: result = x < result ? x : result; break;
        case 2: result = x > result ? x : result; break;
        case 3: result = (s32)x < (s32)result ? x : result; break;
        case 4: result = (s32)x > (s32)result ? x : result; break;
        case 5: result &= x; break;
        case 6: result |= x; break;
        default: result ^= x; break;
        }
    }
    return result;
}

// Matrix units. Kinds of elements: 0 TF32, 1 f16, 2 bf16; 16-bit elements are packed in pairs.

static inline float element(const u32 *registers, int i, int kind) {
    if (kind == 0) return F(registers[i] & TF32_BITS);
    u16 bits = registers[i / 2] >> (i % 2 * 16);
    return kind == 1 ? H(bits) : B(bits);
}
// Brings both factors to the group; true for the lane that computes the product.
static int gather(Lane *me, int site, const u32 *a, int a_count, const u32 *b, int b_count) {
    Warp *warp = me->warp;
    memcpy(warp->brought[me->lane], a, a_count * 4);
    memcpy(warp->brought[me->lane] + a_count, b, b_count * 4);
    if (group_at(me, site, ~0u) != ~0u) fault("matrix product without the whole warp", warp->group, 0);
    int first = warp->fresh;
    warp->fresh = 0;
    return first;
}
// mma.m16n8k*, with the registers of the PTX manual.
static void multiply_16_8(Lane *me, int site, int k_count, int kind, u32 *a, int a_count, u32 *b, int b_count, u32 *c, u32 *d) {
    Warp *warp = me->warp;
    if (gather(me, site, a, a_count, b, b_count)) {
        static float left[16][16], right[16][8];
        for (int lane = 0; lane < 32; lane++) {
            int group = lane >> 2, thread = lane & 3;
            const u32 *registers = warp->shared[lane];
            for (int i = 0; i < 16 * k_count / 32; i++) {
                int low = kind == 0 ? !(i & 1) : !(i >> 1 & 1);
                int column = kind == 0 ? thread + (i >> 1) * 4 : thread * 2 + (i & 1) + (i >= 4 ? 8 : 0);
                left[low ? group : group + 8][column] = element(registers, i, kind);
            }
            for (int i = 0; i < k_count * 8 / 32; i++) {
                int row = kind == 0 ? thread + i * 4 : thread * 2 + (i & 1) + (i >= 2 ? 8 : 0);
                right[row][group] = element(registers + a_count, i, kind);
            }
        }
        for (int row = 0; row < 16; row++)
            for (int column = 0; column < 8; column++) {
                float sum = 0;
                for (int k = 0; k < k_count; k++) sum += left[row][k] * right[k][column];
                warp->product[row * 8 + column] = sum;
            }
    }
    int group = me->lane >> 2, thread = me->lane & 3;
    for (int i = 0; i < 4; i++) {
        int row = i < 2 ? group : group + 8, column = thread * 2 + (i & 1);
        d[i] = UF(F(c[i]) + warp->product[row * 8 + column]);
    }
}
static void load_matrix(Lane *me, int site, int count, int transposed, u64 address, u32 *out) {
    Warp *warp = me->warp;
    warp->brought[me->lane][0] = (u32)address;
    if (group_at(me, site, ~0u) != ~0u) fault("ldmatrix without the whole warp", warp->group, 0);
    for (int matrix = 0; matrix < count; matrix++) {
        out[matrix] = 0;
        for (int half = 0; half < 2; half++) {
            int row = me->lane >> 2, column = (me->lane & 3) * 2 + half;
            u16 *values = shared_memory(warp->shared[matrix * 8 + (transposed ? column : row)][0], 16, 16);
            out[matrix] |= (u32)values[transposed ? row : column] << (16 * half);
        }
    }
}
// wmma: lane `l` has the elements from `l * count` of the tile in rows.
static void *tile_place(int space, u64 address, u64 stride, int is_row, int element, int columns, int size) {
    u64 row = element / columns, column = element % columns;
    return memory_in(space, address + (is_row ? row * stride + column : column * stride + row) * size, size);
}
static void load_tile(Lane *me, int site, int space, u64 address, u64 stride, int is_row, int rows, int columns, int size, u32 *out) {
    int count = rows * columns / 32;
    group_at(me, site, ~0u);
    for (int i = 0; i < count; i++) {
        void *place = tile_place(space, address, stride, is_row, me->lane * count + i, columns, size);
        if (size == 4) out[i] = *(u32 *)place;
        else out[i / 2] = i & 1 ? out[i / 2] | (u32) * (u16 *)place << 16 : *(u16 *)place;
    }
}
static void store_tile(Lane *me, int site, int space, u64 address, u64 stride, int is_row, int rows, int columns, int size, u32 *in) {
    int count = rows * columns / 32;
    group_at(me, site, ~0u);
    for (int i = 0; i < count; i++) {
        void *place = tile_place(space, address, stride, is_row, me->lane * count + i, columns, size);
        if (size == 4) *(u32 *)place = in[i];
        else *(u16 *)place = in[i / 2] >> (i % 2 * 16);
    }
}
static void multiply_tile(Lane *me, int site, int m, int n, int k_count, int kind, u32 *a, int a_count, u32 *b, int b_count,
                          u32 *c, u32 *d, int half) {
    Warp *warp = me->warp;
    int a_each = m * k_count / 32, b_each = k_count * n / 32, c_each = m * n / 32;
    if (gather(me, site, a, a_count, b, b_count)) {
        static float left[32 * 16], right[32 * 16];
        for (int i = 0; i < m * k_count; i++) left[i] = element(warp->shared[i / a_each], i % a_each, kind);
        for (int i = 0; i < k_count * n; i++) right[i] = element(warp->shared[i / b_each] + a_count, i % b_each, kind);
        for (int row = 0; row < m; row++)
            for (int column = 0; column < n; column++) {
                float sum = 0;
                for (int k = 0; k < k_count; k++) sum += left[row * k_count + k] * right[k * n + column];
                warp->product[row * n + column] = sum;
            }
    }
    u32 out[8] = {0};
    for (int i = 0; i < c_each; i++) {
        float product = warp->product[me->lane * c_each + i];
        if (half) out[i / 2] |= (u32)UH(H(c[i / 2] >> (i % 2 * 16)) + product) << (i % 2 * 16);
        else out[i] = UF(F(c[i]) + product);
    }
    memcpy(d, out, (half ? c_each / 2 : c_each) * 4);
}

// The kernel, and the loop over its blocks.

static void thread_of_kernel(Lane *me);
static void load_params(void **params);
static const int WAITS;
static const u32 STATIC_SHARED;

#define STACK (64 * 1024)
static u8 *stacks;
static Lane lanes[1024];
static Warp warps[32];

static void lane_main(void) {
    Lane *me = running;
    thread_of_kernel(me);
    me->state = DONE;
    void *unused;
    switch_stack(&unused, scheduler);
    abort();
}

// The place with the smallest number at which all lanes that are expected have arrived; their mask, or 0.
static u32 complete_group(const Warp *warp, u32 done) {
    for (int after = -1;;) {
        int site = -1;
        for (int i = 0; i < warp->count; i++) {
            const Lane *lane = warp->lanes[i];
            if (lane->state == AT_WARP && lane->site > after && (site < 0 || lane->site < site)) site = lane->site;
        }
        if (site < 0) return 0;
        u32 here = 0, expected = 0;
        for (int i = 0; i < warp->count; i++)
            if (warp->lanes[i]->state == AT_WARP && warp->lanes[i]->site == site)
                here |= 1u << i, expected |= warp->lanes[i]->mask;
        if (!(expected & ~(here | done))) return here;
        after = site;
    }
}
// Runs the lanes of a warp until each is done or waits for the block.
static void run_warp(Warp *warp) {
    for (;;) {
        for (int i = 0; i < warp->count; i++) {
            if (warp->lanes[i]->state != READY) continue;
            running = warp->lanes[i];
            switch_stack(&scheduler, running->stack);
        }
        u32 done = 0, waiting = 0;
        for (int i = 0; i < 32; i++) {
            if (i >= warp->count || warp->lanes[i]->state == DONE) done |= 1u << i;
            else if (warp->lanes[i]->state == AT_WARP) waiting |= 1u << i;
        }
        if (!waiting) return;
        u32 group = complete_group(warp, done);
        if (!group) fault("a warp waits for lanes that do not come", waiting, 0);
        memcpy(warp->shared, warp->brought, sizeof warp->shared);
        warp->group = group, warp->fresh = 1;
        for (int i = 0; i < warp->count; i++)
            if (group >> i & 1) warp->lanes[i]->state = READY;
    }
}
static void start_lane(u32 number) {
    Lane *lane = &lanes[number];
    Warp *warp = &warps[number / 32];
    *lane = (Lane){number % BLOCK.x, number / BLOCK.x % BLOCK.y, number / (BLOCK.x * BLOCK.y), number % 32, number / 32, warp};
    warp->lanes[number % 32] = lane;
    warp->count = number % 32 + 1;
    // As `switch_stack` leaves a stack: six registers, then where to continue.
    void **top = (void **)(stacks + (size_t)(number + 1) * STACK - 64);
    *--top = NULL;
    *--top = (void *)lane_main;
    for (int i = 0; i < 6; i++) *--top = NULL;
    lane->stack = top;
}
static void run_block(void) {
    u32 threads = BLOCK.x * BLOCK.y * BLOCK.z, done = 0;
    for (u32 i = 0; i < threads; i++) start_lane(i);
    while (done < threads) {
        for (u32 i = 0; i < (threads + 31) / 32; i++) run_warp(&warps[i]);
        done = 0;
        for (u32 i = 0; i < threads; i++) {
            if (lanes[i].state == DONE) done++;
            else lanes[i].state = READY;
        }
    }
}
static void run_threads_in_turn(void) {
    Lane lane = {0};
    running = &lane;
    for (lane.tz = 0; lane.tz < BLOCK.z; lane.tz++)
        for (lane.ty = 0; lane.ty < BLOCK.y; lane.ty++)
            for (lane.tx = 0; lane.tx < BLOCK.x; lane.tx++) {
                u32 number = lane.tx + BLOCK.x * (lane.ty + BLOCK.y * lane.tz);
                lane.lane = number % 32, lane.warp_id = number / 32;
                thread_of_kernel(&lane);
            }
}

static void run_current_block(void) {
    // NaN for every float that is read before it is written.
    memset(SHARED, 0xFF, shared_bytes);
    if (WAITS) run_block();
    else run_threads_in_turn();
}
static void run_all_blocks(void) {
    for (AT.z = 0; AT.z < GRID.z; AT.z++)
        for (AT.y = 0; AT.y < GRID.y; AT.y++)
            for (AT.x = 0; AT.x < GRID.x; AT.x++) run_current_block();
}
static const char *run_blocks(const unsigned *grid, const unsigned *block, unsigned dynamic, void **params,
                              void (*ranges)(u64, u64 *, u64 *), void (*blocks)(void)) {
    range_of = ranges, range_lo = 1, range_hi = 0;
    GRID = (Index){grid[0], grid[1], grid[2]}, BLOCK = (Index){block[0], block[1], block[2]};
    shared_bytes = STATIC_SHARED + dynamic;
    SHARED = aligned_alloc(1024, (shared_bytes + 2047) / 1024 * 1024);
    load_params(params);
    if (WAITS && !stacks)
        stacks = mmap(NULL, (size_t)1025 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const char *failed = NULL;
    if (setjmp(on_fault)) failed = message;
    else blocks();
    free(SHARED);
    return failed;
}

#ifdef COUNT_COSTS
static void run_middle_block(void) {
    AT = (Index){GRID.x / 2, GRID.y / 2, GRID.z / 2};
    run_current_block();
}
// The costs of the block in the middle of the grid: bytes read, bytes written, operations, those of matrix units.
__attribute__((visibility("default"))) const char *cost_of_block(const unsigned *grid, const unsigned *block, unsigned dynamic,
                                                                 void **params, void (*ranges)(u64, u64 *, u64 *), double *costs) {
    cost_read = cost_written = cost_flops = cost_matrix = 0;
    const char *failed = run_blocks(grid, block, dynamic, params, ranges, run_middle_block);
    costs[0] = cost_read, costs[1] = cost_written, costs[2] = cost_flops, costs[3] = cost_matrix;
    return failed;
}
#endif

__attribute__((visibility("default"))) const char *run_kernel(const unsigned *grid, const unsigned *block, unsigned dynamic,
                                                              void **params, void (*ranges)(u64, u64 *, u64 *)) {
    return run_blocks(grid, block, dynamic, params, ranges, run_all_blocks);
}
