/* A step of a P-TNCN on few rows, and updates with moments, without an interpreter: see step.inc.
 * Each is here for float and for double and, on x86, once more for processors with AVX2; `has_avx2` tells which. */
#include <math.h>
#include <stdint.h>

#define SOFTMAX 9
#define LARGE (1 << 16)                   /* weights that are worth the waking of threads */
#define BLOCK 1024                         /* columns at a time: four rows of them stay in the first cache */
#define TILE (64 / (int64_t)sizeof(REAL)) /* columns in two registers */

#if defined(__x86_64__) && defined(__GNUC__)
#define AVX2 1
#else
#define AVX2 0
#endif

int has_avx2(void) {
#if AVX2
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 0;
#endif
}

#define REAL float
#define TANH tanhf
#define EXP expf
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
