/* A step of a small P-TNCN without an interpreter: see step.inc. */
#include <math.h>
#include <stdint.h>

#define SOFTMAX 9
#define BLOCK 512 /* columns at a time: four rows of them stay in the first cache */
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("arch=haswell", "default"), flatten))
#else
#define CLONES
#endif

#define REAL float
#define NAME(x) x##_float32
#define TANH tanhf
#define EXP expf
#define ERF erff
#define SQRT sqrtf
#include "step.inc"
#undef REAL
#undef NAME
#undef TANH
#undef EXP
#undef ERF
#undef SQRT

#define REAL double
#define NAME(x) x##_float64
#define TANH tanh
#define EXP exp
#define ERF erf
#define SQRT sqrt
#include "step.inc"
