/* Code that does not depend on the precision: compiler-specific macros, the clock, and fast functions for float. */
#ifndef PTNCN_SCALARS_H
#define PTNCN_SCALARS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "step.h"

#define PARALLEL_SIZE (1 << 16) /* smallest matrix that is worth several threads */
#define BLOCK_COLUMNS 1024      /* columns at a time: a few rows of this width fit in the second-level cache */
#define TILE_ROWS 6          /* rows of sums that fit into registers */
#define PANEL_ROWS 256        /* rows of weights read at a time, to stay in the first-level cache */
#define PACK_ROWS 256        /* rows of activities packed side by side at a time */

enum { HELD, WRITTEN, FOR_RATE, FOR_ANGLE, FOR_MEMORY }; /* activities from which a memory's matrices learn */
#define ACTIVITIES (5 + FOR_MEMORY)

#if defined(__GNUC__)
#define VECTORS 1
#define ALIGNED __attribute__((aligned(64)))
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define PREFETCH(address) __builtin_prefetch(address)
#define RESTRICT __restrict__
#elif defined(_MSC_VER)
#define VECTORS 0
#define ALIGNED __declspec(align(64))
#define ALWAYS_INLINE static __forceinline
#define PREFETCH(address) ((void)(address))
#define RESTRICT __restrict
#else
#define VECTORS 0
#define ALIGNED
#define ALWAYS_INLINE static inline
#define PREFETCH(address) ((void)(address))
#define RESTRICT restrict
#endif

#if defined(__x86_64__) && defined(__GNUC__)
#define AVX2 1
#else
#define AVX2 0
#endif

static inline int has_avx2(void) {
#if AVX2
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 0;
#endif
}

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static inline double seconds(const double *clock) {
    struct timespec now = {0, 0};
    if (clock) timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Add the time elapsed `since` to one of the CLOCKS */
static inline void add_elapsed(double *clock, int entry, double since) {
    if (clock) clock[entry] += seconds(clock) - since;
}

/* One block of memory, divided into pieces aligned to 64 bytes */
typedef struct {
    char *next;
    int64_t left;
} Arena;

#define PIECE(count, type) (((int64_t)(count) * (int64_t)sizeof(type) + 63) / 64 * 64)

static inline void *take(Arena *arena, int64_t bytes) {
    char *piece = arena->next;
    arena->next += bytes;
    arena->left -= bytes;
    return arena->left >= 0 ? piece : NULL;
}

/* A new block of `bytes`, which the caller frees, or NULL */
static inline void *open_arena(Arena *arena, int64_t bytes) {
    if ((uint64_t)bytes >= SIZE_MAX / 2) return NULL;
    char *block = malloc((size_t)bytes + 64);
    if (!block) return NULL;
    arena->next = block + (64 - (uintptr_t)block % 64);
    arena->left = bytes;
    return block;
}

/* For float: accurate to 2 units in the last place, in a form that compilers vectorise.
 * eˣ = 2ᵏ eʳ with |r| at most ½ ln 2, and a polynomial for eʳ. Adding 1.5 · 2²³ rounds x / ln 2 to k. */
static inline float fast_exp(float x) {
    union { float real; uint32_t bits; } k, power;
    x = x < -87.3f ? -87.3f : x > 88.3f ? 88.3f : x;
    k.real = x * 1.44269504f + 12582912.0f;
    float r = k.real - 12582912.0f, p = 1.98756915e-4f;
    power.bits = (k.bits + 127) << 23;
    r = (x - r * 0.693359375f) + r * 2.12194440e-4f;
    p = p * r + 1.39819995e-3f;
    p = p * r + 8.33345191e-3f;
    p = p * r + 4.16657959e-2f;
    p = p * r + 1.66666655e-1f;
    p = p * r + 0.5f;
    return (p * r * r + r + 1) * power.real;
}

/* An odd polynomial near 0, where 1 − 2 / (e²ˣ + 1) loses digits */
static inline float fast_tanh(float x) {
    float square = x * x, p = -5.70498873e-3f, size = x < 0 ? -x : x;
    p = p * square + 2.06390888e-2f;
    p = p * square - 5.37397156e-2f;
    p = p * square + 1.33314422e-1f;
    p = p * square - 3.33332819e-1f;
    float small = p * square * x + x, large = 1 - 2 / (fast_exp(2 * size) + 1);
    large = x < 0 ? -large : large;
    return size < 0.625f ? small : large;
}

#endif
