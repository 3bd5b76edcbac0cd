/* A step of a P-TNCN, and updates with moments, without an interpreter: see step.inc.
 * Each is here for float and for double and, on x86, once more for processors with AVX2; `has_avx2` tells which. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define SOFTMAX 9
#define LARGE (1 << 16)                   /* weights that are worth the waking of threads */
#define BLOCK 1024                         /* columns at a time: a few rows of them stay in the second cache */
#define TILE (64 / (int64_t)sizeof(REAL)) /* columns in two registers */
#define TALL 6                             /* rows of sums that the registers have room for */
#define DEEP 256                           /* rows of weights that are read at a time, to stay in the first cache */
#define PACK 256                           /* rows whose activities are laid side by side at a time */

#if defined(__x86_64__) && defined(__GNUC__)
#define AVX2 1
#else
#define AVX2 0
#endif

/* What the time of a step is spent on, for those who ask */
enum { SENDING, ACTIVATING, NORMS, MOVING, PHASES };

static inline double seconds(const double *clock) {
    struct timespec now = {0, 0};
    if (clock) clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline void spent(double *clock, int on, double since) {
    if (clock) clock[on] += seconds(clock) - since;
}

int has_avx2(void) {
#if AVX2
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 0;
#endif
}

/* For float, eight at a time once the compiler has put them into a loop; within 2 units in the last place.
 * eˣ = 2ᵏ eʳ with |r| at most ½ ln 2, and a polynomial for eʳ. */
static inline float fast_exp(float x) {
    x = x < -87.3f ? -87.3f : x > 88.3f ? 88.3f : x;
    union { float real; uint32_t bits; } k = {x * 1.44269504f + 12582912.0f}, power; /* rounded by what is too large for it */
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

/* An odd polynomial next to 0, where the other form would lose digits */
static inline float fast_tanh(float x) {
    float square = x * x, p = -5.70498873e-3f, size = x < 0 ? -x : x;
    p = p * square + 2.06390888e-2f;
    p = p * square - 5.37397156e-2f;
    p = p * square + 1.33314422e-1f;
    p = p * square - 3.33332819e-1f;
    float near = p * square * x + x, far = 1 - 2 / (fast_exp(2 * size) + 1);
    far = x < 0 ? -far : far;
    return size < 0.625f ? near : far;
}

#define REAL float
#define TANH fast_tanh
#define EXP fast_exp
#define ERF erff
#define SQRT sqrtf
#define NAME(x) x##_float32
#include "step.inc"
#if AVX2
#undef NAME
#define NAME(x) x##_float32_avx2
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "step.inc"
#pragma GCC pop_options
#endif
#undef REAL
#undef TANH
#undef EXP
#undef ERF
#undef SQRT
#undef NAME

#define REAL double
#define TANH tanh
#define EXP exp
#define ERF erf
#define SQRT sqrt
#define NAME(x) x##_float64
#include "step.inc"
#if AVX2
#undef NAME
#define NAME(x) x##_float64_avx2
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "step.inc"
#pragma GCC pop_options
#endif
