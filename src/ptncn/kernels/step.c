/* Entry points of the kernel: steps of a P-TNCN, and of optimisers with moments.
 * The code in *.inc is compiled for float and for double and, on x86, once more for processors with AVX2. */
#include "step.h"
#include <stdlib.h>
#include "check.h"
#include "scalars.h"

#if defined(__clang__)
#define BEGIN_AVX2 _Pragma("clang attribute push(__attribute__((target(\"avx2,fma\"))), apply_to = function)")
#define END_AVX2 _Pragma("clang attribute pop")
#else
#define BEGIN_AVX2 _Pragma("GCC push_options") _Pragma("GCC target(\"avx2,fma\")")
#define END_AVX2 _Pragma("GCC pop_options")
#endif

#define REAL float
#define REAL_TANH fast_tanh
#define REAL_EXP fast_exp
#define REAL_ERF erff
#define REAL_SQRT sqrtf
#define NAME(x) x##_float32
#include "products.inc"
#include "optimizers.inc"
#include "run.inc"
#include "memory.inc"
#include "step.inc"
#if AVX2
#undef NAME
#define NAME(x) x##_float32_avx2
BEGIN_AVX2
#include "products.inc"
#include "optimizers.inc"
#include "run.inc"
#include "memory.inc"
#include "step.inc"
END_AVX2
#endif
#undef REAL
#undef REAL_TANH
#undef REAL_EXP
#undef REAL_ERF
#undef REAL_SQRT
#undef NAME

#define REAL double
#define REAL_TANH tanh
#define REAL_EXP exp
#define REAL_ERF erf
#define REAL_SQRT sqrt
#define NAME(x) x##_float64
#include "products.inc"
#include "optimizers.inc"
#include "run.inc"
#include "memory.inc"
#include "step.inc"
#if AVX2
#undef NAME
#define NAME(x) x##_float64_avx2
BEGIN_AVX2
#include "products.inc"
#include "optimizers.inc"
#include "run.inc"
#include "memory.inc"
#include "step.inc"
END_AVX2
#endif

int ptncn_step(const Network *net, const Step *step) {
    const int refusal = net && step ? check_step(net, step) : BAD_VERSION;
    if (refusal) return refusal;
#if AVX2
    if (has_avx2()) return net->real_bytes == 4 ? step_float32_avx2(net, step) : step_float64_avx2(net, step);
#endif
    return net->real_bytes == 4 ? step_float32(net, step) : step_float64(net, step);
}

static Span shifted(Span span, int64_t floats) {
    if (span.data) span.data = (float *)span.data + floats;
    return span;
}

/* One row for the network in a slot; `net` is a copy with its matrices redirected to that slot */
static int step_in_slot(const Network *template, Network *net, Step step, const Slots *slots, int64_t row) {
    const int64_t *n = net->sizes.data, n0 = n[0], slot = ((const int64_t *)slots->which.data)[row];
    const int64_t shift = slot * slots->stride, hidden = slots->y.count / slots->which.count;
    const Matrix *from = template->matrices.data;
    Matrix *to = net->matrices.data;
    for (int64_t i = 0; i < net->layers * KINDS; i++) {
        to[i].weight = shifted(from[i].weight, shift);
        to[i].first = shifted(from[i].first, shift);
        to[i].second = shifted(from[i].second, shift);
    }
    step.corrected = shifted(step.corrected, shift);
    step.uncorrected = shifted(step.uncorrected, shift);
    step.displacement = shifted(step.displacement, shift);
    float *x = (float *)slots->x.data + row * n0, *y = (float *)slots->y.data + row * hidden;
    int64_t *steps = (int64_t *)slots->steps.data + slot, missing = 0;
    for (int64_t i = 0; i < n0; i++) missing += x[i] != x[i];
    if (missing == n0 && !*steps) { /* there is no prediction yet to replace missing values */
        for (int64_t i = 0; i < hidden; i++) y[i] = 0;
        return DONE;
    }
    if (missing) {
        step.phase = PREDICT;
        const int refusal = ptncn_step(net, &step);
        if (refusal) return refusal;
        const float *prediction = step.prediction.data;
        for (int64_t i = 0; i < n0; i++)
            if (x[i] != x[i]) x[i] = prediction[i];
    }
    step.phase = slots->learn && *steps && missing < n0 ? LEARN : OBSERVE;
    step.x.data = x, step.y.data = y;
    ++*steps;
    return ptncn_step(net, &step);
}

int ptncn_steps(const Network *net, const Step *step, const Slots *slots) {
    int refusal = net && step && slots ? check_slots(net, step, slots) : BAD_VERSION;
    if (refusal) return refusal;
    Network own = *net;
    own.matrices.data = calloc((size_t)net->matrices.count, sizeof(Matrix));
    if (!own.matrices.data) return NO_MEMORY;
    const int64_t *row_slots = slots->which.data;
    for (int64_t row = 0; row < slots->which.count && !refusal; row++)
        if (row_slots[row] % slots->parts == slots->part) refusal = step_in_slot(net, &own, *step, slots, row);
    free(own.matrices.data);
    return refusal;
}

int ptncn_update(const Update *update) {
    const int refusal = update ? check_update(update) : BAD_VERSION;
    if (refusal) return refusal;
#if AVX2
    if (has_avx2()) return update->real_bytes == 4 ? update_float32_avx2(update) : update_float64_avx2(update);
#endif
    return update->real_bytes == 4 ? update_float32(update) : update_float64(update);
}

int ptncn_multiply(const Product *product) {
    const int refusal = product ? check_product(product) : BAD_VERSION;
    if (refusal) return refusal;
#if AVX2
    if (has_avx2()) return product->real_bytes == 4 ? product_float32_avx2(product) : product_float64_avx2(product);
#endif
    return product->real_bytes == 4 ? product_float32(product) : product_float64(product);
}

#define FIELD(type, name) #type " " #name ","
const char *ptncn_layout(void) {
    return "Span:" SPAN_FIELDS(FIELD) ";Matrix:" MATRIX_FIELDS(FIELD) ";Rule:" RULE_FIELDS(FIELD)
        ";Network:" NETWORK_FIELDS(FIELD) ";Held:" HELD_FIELDS(FIELD) ";Step:" STEP_FIELDS(FIELD)
        ";Update:" UPDATE_FIELDS(FIELD)
        ";Product:" PRODUCT_FIELDS(FIELD) ";Slots:" SLOTS_FIELDS(FIELD);
}

#define MESSAGE(code, message) message,
const char *ptncn_message(int refusal) {
    static const char *const messages[] = {REFUSALS(MESSAGE)};
    return refusal >= 0 && refusal < REFUSAL_COUNT ? messages[refusal] : "unknown refusal";
}
