/* The interface between Python and C.
 *
 * Each structure is a list of fields, from which C declares it and `ptncn_layout` describes it. Python builds its own
 * structures from that description, so there is no second list to maintain. All memory is passed as spans. Before
 * anything is written, `check.h` checks every count, code and size against what the call will access, and refuses
 * unknown codes. Scratch memory belongs to the call; nothing is kept between calls. */
#ifndef PTNCN_STEP_H
#define PTNCN_STEP_H

#include <stdint.h>

#include "export.h"

#define PTNCN_VERSION 6

/* Codes. Their values are part of the interface: append new ones at the end. */
enum { PREDICT, OBSERVE, LEARN, PHASES };                                                 /* Step.phase */
enum { SGD, MOMENTUM, NESTEROV, RMSPROP, ADAM, ADAFACTOR, OPTIMIZERS };                   /* Rule.optimizer */
enum { IDENTITY, TANH, SIGMOID, RELU, RELU6, LEAKY_RELU, GELU, SIGN, STEP, SOFTMAX, ACTIVATIONS };
enum { FIXED, TEMPORAL, TRANSPOSE, ERROR_RULES };                                         /* Network.error_rule */
enum { NONE, UNIT, CLIP, RESCALINGS };                                                    /* Network.rescale */
enum { SUM, MEAN, SUM_THEN_MEAN, REDUCTIONS };                                            /* Network.reduction */
enum { COUPLED, SMALL, TEACHINGS };                                                       /* Network.teaching */
enum { PRODUCTS, ACTIVATING, NORMS, UPDATES, CLOCKS };                                    /* Step.clock */
enum { R, W, E, B, C, G, WRITE, RATE, ANGLE, KINDS };                                     /* Network.matrices */
enum { UNDIVIDED, BY_ROWS, BY_COLUMNS, SPLITS };                                          /* Step.split */

/* Memory that C may access: an address and a number of elements; NULL and 0 if it is absent. */
#define SPAN_FIELDS(F) F(pointer, data) F(int64_t, count)

/* A matrix (from, to) of reals, with its moments and queue; any of them may be absent. */
#define MATRIX_FIELDS(F)                                                                                          \
    F(Span, weight) F(Span, first) F(Span, second) /* (from, to) and moments like it; ADAFACTOR: (from), (to) */  \
    F(Span, pre) F(Span, post)                     /* (capacity, from), (capacity, to): queued outer products */

/* The step of an optimiser */
#define RULE_FIELDS(F)                                                                                            \
    F(int64_t, optimizer) F(double, keep) F(double, rate) F(double, momentum) F(double, beta1) F(double, beta2)   \
    F(double, eps) F(double, root)

/* A network. Calls change only the contents of its matrices. */
#define NETWORK_FIELDS(F)                                                                                         \
    F(int64_t, bytes) F(int64_t, version)          /* sizeof(Network) and PTNCN_VERSION */                        \
    F(int64_t, real_bytes)                         /* 4 for float, 8 for double */                                \
    F(int64_t, layers)                                                                                            \
    F(Span, sizes)                                 /* int64_t (layers + 1): n0 … nL */                            \
    F(Span, phi) F(Span, phi_o)                    /* int64_t (layers): activations of states and predictions */  \
    F(Span, matrices)                              /* Matrix (layers · KINDS): of layer 1, … */                   \
    F(Span, memory) F(Span, traced)                /* int64_t (layers): units H, 0 for none; whether B has a trace */ \
    F(int64_t, corrections) F(int64_t, presynaptic_z) F(int64_t, teach_with_displacement)                         \
    F(int64_t, error_rule) F(int64_t, rescale) F(int64_t, reduction) F(int64_t, teaching)                         \
    F(double, beta) F(double, gamma) F(double, lam) F(double, temporal_sign) F(double, radius)                    \
    F(double, max_norm)                            /* 0: rows of weights are not projected */                     \
    F(double, kappa) F(double, reach)              /* sizes of small displacements; where φ has no slope */

/* The memory of a layer (memory.inc): complex numbers, as (2, H), for each row; the trace of B is (rows, n₋, 2, H) */
#define HELD_FIELDS(F) F(Span, h) F(Span, trace) F(Span, rate) F(Span, angle)

/* One call. With N = n0 + … + nL, reals are: */
#define STEP_FIELDS(F)                                                                                            \
    F(int64_t, bytes) F(int64_t, version) F(int64_t, rows) F(int64_t, threads) F(int64_t, phase)                  \
    F(int64_t, postpone)                           /* queue updates of matrices that have queues */               \
    F(Span, x)                                     /* (rows, n0) */                                               \
    F(Span, corrected) F(Span, uncorrected)        /* (rows, N) [x, y…] and [x, z…]; the latter for some rules */ \
    F(Span, displacement)                          /* (rows, N − n0) [e_z…], where the rule for E needs it */     \
    F(Span, logits) F(Span, prediction)            /* (rows, n0) */                                               \
    F(Span, e) F(Span, z) F(Span, y)               /* layer after layer: 0 … L−1, then 1 … L twice */             \
    F(Span, observed) F(Span, teaches)             /* uint8_t (rows), or absent: all rows */                      \
    F(Span, squares)                               /* (layers) moving mean squares of E e, for SMALL */           \
    F(double, square_decay) F(double, square_weight) /* the sum of the weights in them; 0 if all are 1 */         \
    F(Span, held)                                  /* Held (layers), or absent where there is no memory */        \
    F(Span, queued)                                /* int64_t (layers · KINDS): rows in each queue, or absent */  \
    F(Span, clock)                                 /* double (CLOCKS): seconds are added, or absent */            \
    F(Rule, rule) F(Rule, rule_error) F(Rule, rule_bias) /* for most weights, for E, and for biases */            \
    F(int64_t, split) F(int64_t, part) F(int64_t, parts) /* this process's part of the products with R, W, E */   \
    F(Exchange, exchange) F(Arrive, arrive)        /* how it gets the other parts; NULL if undivided */

/* A step of an optimiser alone: weights (from, to) step against preᵀ post */
#define UPDATE_FIELDS(F)                                                                                          \
    F(int64_t, bytes) F(int64_t, version) F(int64_t, real_bytes) F(int64_t, from) F(int64_t, to)                  \
    F(int64_t, rows) F(int64_t, threads) F(Matrix, matrix) F(Span, pre) F(Span, post) F(Rule, rule)

/* A single product: out = x W, (rows, to) from (rows, from) and (from, to) */
#define PRODUCT_FIELDS(F)                                                                                         \
    F(int64_t, bytes) F(int64_t, version) F(int64_t, real_bytes) F(int64_t, from) F(int64_t, to)                  \
    F(int64_t, rows) F(int64_t, threads) F(Span, x) F(Span, weight) F(Span, out)

/* Networks that differ only in their numbers, one in each slot of `room`, and rows for some of them. The network and
 * the step of the call describe slot 0. NaN in a row is replaced by the prediction of its network. */
#define SLOTS_FIELDS(F)                                                                                           \
    F(int64_t, bytes) F(int64_t, version) F(int64_t, learn)                                                       \
    F(int64_t, part) F(int64_t, parts)             /* this call processes the slots that are `part` modulo `parts` */ \
    F(Span, room) F(int64_t, stride)               /* float (slots, stride): weights, moments and state of each */ \
    F(Span, steps)                                 /* int64_t (slots): rows that each has processed */            \
    F(Span, which)                                 /* int64_t (rows): the slot of each row */                     \
    F(Span, x) F(Span, y)                          /* float (rows, n0) and (rows, N − n0) */

typedef void *pointer;
typedef void (*Exchange)(void *out, int64_t rows, int64_t to); /* start fetching the other parts of (rows, to) */
typedef int64_t (*Arrive)(void);                                /* wait for them; not 0 if they do not arrive */
#define DECLARE(type, name) type name;
typedef struct { SPAN_FIELDS(DECLARE) } Span;
typedef struct { MATRIX_FIELDS(DECLARE) } Matrix;
typedef struct { RULE_FIELDS(DECLARE) } Rule;
typedef struct { NETWORK_FIELDS(DECLARE) } Network;
typedef struct { HELD_FIELDS(DECLARE) } Held;
typedef struct { STEP_FIELDS(DECLARE) } Step;
typedef struct { UPDATE_FIELDS(DECLARE) } Update;
typedef struct { PRODUCT_FIELDS(DECLARE) } Product;
typedef struct { SLOTS_FIELDS(DECLARE) } Slots;

/* Why a call was refused before anything was written */
#define REFUSALS(F)                                                                                               \
    F(DONE, "done")                                                                                               \
    F(BAD_VERSION, "the structure is not of this version of the kernel")                                          \
    F(BAD_SIZE, "a number of layers, units, rows or threads is out of range")                                     \
    F(BAD_CODE, "a code is not known to this kernel")                                                             \
    F(BAD_COUNT, "a tensor does not have the size that the network and the batch require")                        \
    F(BAD_QUEUE, "a queue of updates has no room for this batch")                                                 \
    F(BAD_MOMENTS, "the optimiser's moments are missing")                                                         \
    F(NO_MEMORY, "not enough memory for a step")                                                                  \
    F(LOST_PART, "another process did not send its part of a product")
#define LIST(code, message) code,
enum { REFUSALS(LIST) REFUSAL_COUNT };

EXPORT int ptncn_step(const Network *net, const Step *step);
EXPORT int ptncn_steps(const Network *net, const Step *step, const Slots *slots); /* row after row */
EXPORT int ptncn_update(const Update *update);
EXPORT int ptncn_multiply(const Product *product);
EXPORT const char *ptncn_layout(void);           /* "Span 16: pointer data, int64_t count; Matrix …" */
EXPORT const char *ptncn_message(int refusal);

#endif
