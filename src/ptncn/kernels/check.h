/* Checks of the arguments of a call, made before any access, against the memory that it will access. */
#ifndef PTNCN_CHECK_H
#define PTNCN_CHECK_H

#include "step.h"

#define REFUSE_UNLESS(condition, refusal) do { if (!(condition)) return refusal; } while (0)

/* Limits that keep every product of sizes within 63 bits */
enum { MOST_LAYERS = 1 << 10, MOST_UNITS = 1 << 26, MOST_ROWS = 1 << 22, MOST_THREADS = 1 << 10 };

static int within(int64_t value, int64_t low, int64_t high) { return value >= low && value <= high; }
static int has(Span span, int64_t count) { return span.data != 0 && span.count == count; }
static int absent(Span span) { return span.data == 0 && span.count == 0; }
static int absent_or(Span span, int64_t count) { return absent(span) || has(span, count); }

static int check_rule(const Rule *rule) {
    REFUSE_UNLESS(within(rule->optimizer, 0, OPTIMIZERS - 1), BAD_CODE);
    return DONE;
}

/* A matrix that may be absent, with the moments that a rule needs; without a rule (NULL) it is only read */
static int check_matrix(const Matrix *m, int64_t from, int64_t to, const Rule *rule) {
    if (absent(m->weight)) return DONE;
    REFUSE_UNLESS(has(m->weight, from * to), BAD_COUNT);
    const int factored = rule && rule->optimizer == ADAFACTOR;
    if (rule) {
        REFUSE_UNLESS(absent_or(m->first, factored ? from : from * to), BAD_COUNT);
        REFUSE_UNLESS(absent_or(m->second, factored ? to : from * to), BAD_COUNT);
    }
    REFUSE_UNLESS(absent(m->pre) == absent(m->post), BAD_COUNT);
    if (!absent(m->pre)) {
        const int64_t capacity = m->pre.count / from;
        REFUSE_UNLESS(within(capacity, 1, MOST_ROWS) && has(m->pre, capacity * from) && has(m->post, capacity * to),
                      BAD_COUNT);
    }
    if (rule) {
        const int64_t code = rule->optimizer;
        REFUSE_UNLESS(absent(m->pre) || code == SGD || factored, BAD_QUEUE);
        REFUSE_UNLESS(!absent(m->first) || code == SGD || code == RMSPROP, BAD_MOMENTS);
        REFUSE_UNLESS(!absent(m->second) || code == SGD || code == MOMENTUM || code == NESTEROV, BAD_MOMENTS);
    }
    return DONE;
}

/* H of layer k = 1 … L */
static int64_t units_of(const Network *net, int64_t k) { return ((const int64_t *)net->memory.data)[k - 1]; }
static int is_traced(const Network *net, int64_t k) { return ((const int64_t *)net->traced.data)[k - 1] != 0; }

/* Max-norm and weight decay apply to matrices between layers, and to G, which reads a memory */
static int is_regularized(int kind) { return kind == R || kind == W || kind == E || kind == G; }
static int is_vector(int kind) { return kind == B || kind == C || kind == RATE || kind == ANGLE; }
static const Rule *rule_of(const Step *step, int kind) {
    return kind == E ? &step->rule_error : is_regularized(kind) ? &step->rule : &step->rule_bias;
}

/* Shapes of the matrices of layer k; the rows of R are those of the layer below, the layer itself, and the one above */
static void shape_of(const Network *net, int64_t k, int kind, int64_t *from, int64_t *to) {
    const int64_t *n = net->sizes.data, H = units_of(net, k);
    *from = *to = 1;
    switch (kind) {
    case R: *from = n[k - 1] + n[k] + (k < net->layers ? n[k + 1] : 0), *to = n[k]; break;
    case W: *from = n[k], *to = n[k - 1]; break;
    case E: *from = n[k - 1], *to = n[k]; break;
    case B: *to = n[k]; break;
    case C: *to = n[k - 1]; break;
    case G: *from = 2 * H, *to = n[k]; break;
    case WRITE: *from = n[k - 1], *to = 2 * H; break;
    default: *to = H; /* RATE, ANGLE */
    }
}

static int check_network(const Network *net) {
    REFUSE_UNLESS(net->bytes == (int64_t)sizeof(Network) && net->version == PTNCN_VERSION, BAD_VERSION);
    REFUSE_UNLESS(net->real_bytes == 4 || net->real_bytes == 8, BAD_CODE);
    REFUSE_UNLESS(within(net->layers, 1, MOST_LAYERS) && within(net->corrections, 1, INT32_MAX), BAD_SIZE);
    REFUSE_UNLESS(has(net->sizes, net->layers + 1) && has(net->phi, net->layers) && has(net->phi_o, net->layers),
                  BAD_COUNT);
    REFUSE_UNLESS(has(net->matrices, net->layers * KINDS), BAD_COUNT);
    REFUSE_UNLESS(has(net->memory, net->layers) && has(net->traced, net->layers), BAD_COUNT);
    const int64_t *sizes = net->sizes.data, *phi = net->phi.data, *phi_o = net->phi_o.data;
    for (int64_t k = 0; k <= net->layers; k++) REFUSE_UNLESS(within(sizes[k], 1, MOST_UNITS), BAD_SIZE);
    for (int64_t k = 1; k <= net->layers; k++) REFUSE_UNLESS(within(units_of(net, k), 0, MOST_UNITS / 2), BAD_SIZE);
    for (int64_t k = 0; k < net->layers; k++)
        REFUSE_UNLESS(within(phi[k], 0, ACTIVATIONS - 1) && within(phi_o[k], 0, ACTIVATIONS - 1), BAD_CODE);
    REFUSE_UNLESS(within(net->error_rule, 0, ERROR_RULES - 1) && within(net->rescale, 0, RESCALINGS - 1), BAD_CODE);
    REFUSE_UNLESS(within(net->reduction, 0, REDUCTIONS - 1) && within(net->teaching, 0, TEACHINGS - 1), BAD_CODE);
    return DONE;
}

static int check_matrices(const Network *net, const Step *step) {
    const int64_t *queued = step->queued.data;
    const Matrix *matrices = net->matrices.data;
    const int learns = step->phase == LEARN;
    REFUSE_UNLESS(absent_or(step->queued, net->layers * KINDS), BAD_COUNT);
    for (int64_t i = 0; i < net->layers * KINDS; i++) {
        const Matrix *m = matrices + i;
        const int kind = (int)(i % KINDS), taught = learns && !(kind == E && net->error_rule == FIXED);
        const int remembers = units_of(net, 1 + i / KINDS) > 0;
        int64_t from, to;
        if (kind >= G && !remembers) {
            REFUSE_UNLESS(absent(m->weight) && absent(m->pre), BAD_COUNT);
            continue;
        }
        shape_of(net, 1 + i / KINDS, kind, &from, &to);
        REFUSE_UNLESS(kind == B || kind == C || !absent(m->weight), BAD_COUNT);
        REFUSE_UNLESS(absent(m->pre) || !(is_vector(kind) || (kind == WRITE && is_traced(net, 1 + i / KINDS))),
                      BAD_QUEUE);
        const int refusal = check_matrix(m, from, to, taught ? rule_of(step, kind) : 0);
        if (refusal) return refusal;
        const int64_t room = m->pre.count / from, used = queued ? queued[i] : 0;
        REFUSE_UNLESS(within(used, 0, room), BAD_QUEUE);
        if (taught && !absent(m->pre)) REFUSE_UNLESS(step->postpone ? used + step->rows <= room : used == 0, BAD_QUEUE);
    }
    return DONE;
}

static int check_memories(const Network *net, const Step *step) {
    const int64_t *n = net->sizes.data, rows = step->rows;
    const Held *held = step->held.data;
    REFUSE_UNLESS(absent_or(step->held, net->layers), BAD_COUNT);
    for (int64_t k = 1; k <= net->layers; k++) {
        const int64_t twice = 2 * units_of(net, k), row = n[k - 1] * twice;
        if (!twice) continue;
        REFUSE_UNLESS(held, BAD_COUNT);
        const Held *own = held + k - 1;
        REFUSE_UNLESS(row <= INT64_MAX / rows, BAD_SIZE);
        REFUSE_UNLESS(has(own->h, rows * twice) && has(own->rate, rows * twice) && has(own->angle, rows * twice),
                      BAD_COUNT);
        REFUSE_UNLESS(is_traced(net, k) ? has(own->trace, rows * row) : absent(own->trace), BAD_COUNT);
    }
    return DONE;
}

static int check_step(const Network *net, const Step *step) {
    REFUSE_UNLESS(step->bytes == (int64_t)sizeof(Step) && step->version == PTNCN_VERSION, BAD_VERSION);
    int refusal = check_network(net);
    if (refusal) return refusal;
    REFUSE_UNLESS(within(step->rows, 1, MOST_ROWS) && within(step->threads, 1, MOST_THREADS), BAD_SIZE);
    REFUSE_UNLESS(within(step->phase, 0, PHASES - 1) && within(step->split, 0, SPLITS - 1), BAD_CODE);
    if (step->split != UNDIVIDED) {
        REFUSE_UNLESS(within(step->parts, 1, MOST_UNITS) && within(step->part, 0, step->parts - 1), BAD_SIZE);
        REFUSE_UNLESS(step->exchange && step->arrive, BAD_COUNT);
    }
    const int64_t *n = net->sizes.data, L = net->layers, rows = step->rows;
    int64_t total = 0;
    for (int64_t k = 0; k <= L; k++) total += n[k];
    REFUSE_UNLESS(has(step->corrected, rows * total), BAD_COUNT);
    REFUSE_UNLESS(has(step->logits, rows * n[0]) && has(step->prediction, rows * n[0]), BAD_COUNT);
    REFUSE_UNLESS(has(step->z, rows * (total - n[0])), BAD_COUNT);
    REFUSE_UNLESS(absent_or(step->clock, CLOCKS), BAD_COUNT);
    if (step->phase != PREDICT) {
        REFUSE_UNLESS(has(step->x, rows * n[0]), BAD_COUNT);
        REFUSE_UNLESS(has(step->e, rows * (total - n[L])) && has(step->y, rows * (total - n[0])), BAD_COUNT);
        REFUSE_UNLESS(absent_or(step->uncorrected, rows * total), BAD_COUNT);
        REFUSE_UNLESS(absent_or(step->displacement, rows * (total - n[0])), BAD_COUNT);
        REFUSE_UNLESS(net->teaching == COUPLED ? absent(step->squares) : has(step->squares, L), BAD_COUNT);
        REFUSE_UNLESS(absent_or(step->observed, rows) && absent_or(step->teaches, rows), BAD_COUNT);
    }
    if (step->phase == LEARN) {
        REFUSE_UNLESS(!net->presynaptic_z || !absent(step->uncorrected), BAD_COUNT);
        REFUSE_UNLESS(net->error_rule != TEMPORAL || !absent(step->displacement), BAD_COUNT);
        const Rule *rules[] = {&step->rule, &step->rule_error, &step->rule_bias};
        for (int i = 0; i < 3; i++) {
            if ((refusal = check_rule(rules[i]))) return refusal;
            REFUSE_UNLESS(rules[i]->optimizer == step->rule.optimizer, BAD_CODE);
        }
    }
    if ((refusal = check_memories(net, step))) return refusal;
    return check_matrices(net, step);
}

/* Whether floats lie within slot 0 */
static int inside(Span span, const Slots *slots) {
    const float *first = slots->room.data, *own = span.data;
    return absent(span) || (own >= first && span.count <= slots->stride && own - first <= slots->stride - span.count);
}

static int check_slots(const Network *net, const Step *step, const Slots *slots) {
    REFUSE_UNLESS(slots->bytes == (int64_t)sizeof(Slots) && slots->version == PTNCN_VERSION, BAD_VERSION);
    const int refusal = check_step(net, step);
    if (refusal) return refusal;
    REFUSE_UNLESS(net->real_bytes == 4 && step->phase == LEARN && net->teaching == COUPLED, BAD_CODE);
    REFUSE_UNLESS(step->rows == 1 && absent(step->observed) && absent(step->teaches), BAD_COUNT);
    REFUSE_UNLESS(absent(step->held) && absent(step->queued) && step->split == UNDIVIDED, BAD_QUEUE);
    const int64_t *n = net->sizes.data, *row_slots = slots->which.data, rows = slots->which.count;
    const int64_t count = slots->steps.count;
    int64_t hidden = 0;
    for (int64_t k = 1; k <= net->layers; k++) hidden += n[k];
    REFUSE_UNLESS(within(slots->parts, 1, MOST_THREADS) && within(slots->part, 0, slots->parts - 1), BAD_SIZE);
    REFUSE_UNLESS(within(slots->stride, 1, MOST_UNITS) && within(count, 1, MOST_ROWS) && within(rows, 1, MOST_ROWS),
                  BAD_SIZE);
    REFUSE_UNLESS(has(slots->room, count * slots->stride) && has(slots->steps, count), BAD_COUNT);
    REFUSE_UNLESS(has(slots->which, rows) && has(slots->x, rows * n[0]) && has(slots->y, rows * hidden), BAD_COUNT);
    REFUSE_UNLESS(inside(step->corrected, slots) && inside(step->uncorrected, slots)
                  && inside(step->displacement, slots), BAD_COUNT);
    const Matrix *matrices = net->matrices.data;
    for (int64_t i = 0; i < net->layers * KINDS; i++) {
        const Matrix *m = matrices + i;
        REFUSE_UNLESS(absent(m->pre) && inside(m->weight, slots) && inside(m->first, slots)
                      && inside(m->second, slots), BAD_COUNT);
    }
    for (int64_t i = 0; i < rows; i++) REFUSE_UNLESS(within(row_slots[i], 0, count - 1), BAD_SIZE);
    return DONE;
}

static int check_update(const Update *u) {
    REFUSE_UNLESS(u->bytes == (int64_t)sizeof(Update) && u->version == PTNCN_VERSION, BAD_VERSION);
    REFUSE_UNLESS(u->real_bytes == 4 || u->real_bytes == 8, BAD_CODE);
    REFUSE_UNLESS(within(u->from, 1, 3 * (int64_t)MOST_UNITS) && within(u->to, 1, MOST_UNITS), BAD_SIZE);
    REFUSE_UNLESS(within(u->rows, 1, MOST_ROWS) && within(u->threads, 1, MOST_THREADS), BAD_SIZE);
    const int refusal = check_rule(&u->rule);
    if (refusal) return refusal;
    REFUSE_UNLESS(u->rule.optimizer != ADAFACTOR, BAD_CODE); /* its updates are applied as SGD with scaled factors */
    REFUSE_UNLESS(!absent(u->matrix.weight) && absent(u->matrix.pre), BAD_COUNT);
    REFUSE_UNLESS(has(u->pre, u->rows * u->from) && has(u->post, u->rows * u->to), BAD_COUNT);
    return check_matrix(&u->matrix, u->from, u->to, &u->rule);
}

static int check_product(const Product *p) {
    REFUSE_UNLESS(p->bytes == (int64_t)sizeof(Product) && p->version == PTNCN_VERSION, BAD_VERSION);
    REFUSE_UNLESS(p->real_bytes == 4 || p->real_bytes == 8, BAD_CODE);
    REFUSE_UNLESS(within(p->from, 1, 3 * (int64_t)MOST_UNITS) && within(p->to, 1, MOST_UNITS), BAD_SIZE);
    REFUSE_UNLESS(within(p->rows, 1, MOST_ROWS) && within(p->threads, 1, MOST_THREADS), BAD_SIZE);
    REFUSE_UNLESS(has(p->x, p->rows * p->from) && has(p->weight, p->from * p->to), BAD_COUNT);
    REFUSE_UNLESS(has(p->out, p->rows * p->to), BAD_COUNT);
    return DONE;
}

#endif
