/* Forecasts of many streams: the compiled form of `ptncn.streaming.forecaster.reference`, which explains the model.
 * A stream's state is one row of doubles; `lay_out` orders its parts as in `ptncn.streaming.forecaster.layout`. All
 * sizes are checked before anything is written.
 *
 * Successive rows of a stream make a run: `prepare` updates what all columns share, then `advance` takes each column
 * through the run, so that its part of the state stays in the caches; threads may share the columns. The numbers
 * of all horizons are in contiguous arrays (lanes), so that loops over horizons become vector instructions. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"

#define EXPERTS 12 /* copy, two seasonal copies, median, drift, growth, and the blocks below */
#define RULES 6
#define BLOCKS 6   /* network, long and short autoregression, two profiles, nonlinear autoregression */
#define SEASONS 2
#define WIDEST 4096 /* features of a block */
#define CLIP 6.0
#define REACH 20.0
#define EVERY 4
#define FIRST_BOUND 2.5
#define PRIOR 2.0
#define TOWARD 0.75
#define SEASONED 400.0
#define LEAST_BOUND 0.1
#define WIDEN 1.2
#define OWED 2000.0
#define LATE 8.0
#define WILD 5.0
#define WILD_FROM 10
#define GROSS 2.0
#define EXCUSED 0.7
#define REPAID 2500.0 /* rows */
#define PROVEN 100 /* forecasts scored before an error may be gross */
#define SETTLED 8
#define YOUNG 20.0
#define MEMORY 1000
#define DRIFT 1000 /* rows over which the mean change is taken */
#define GAIN 20.0
#define LASTING 2000 /* rows of a longer mean of the errors; a usual error is at least this share of it: */
#define LEAST_SHARE 0.1
#define MIDDLE 0.01
#define TINY 1e-150 /* smallest usual error for comparisons: its square does not underflow */
#define AWAKE 32 /* rows before the nonlinear units start */
#define OUTGROWN 1.6
#define MOST_GROWTH 3.0 /* of the logarithm */
#define LONGEST 128 /* rows of a run */
#define TILE 8      /* rows, and horizons, that readouts take together */
enum { NETWORK, LONG, SHORT, PROFILE, NONLINEAR = PROFILE + SEASONS };

typedef struct {
    int64_t columns, horizon, states, extra, history, lags, few, short_lags, profile_lags, unit_lags, units;
    double forgetting, quick, ridge, clip, fade, smoothing, level, step, widen, debt, trust, unit_ridge;
} Setting;

typedef struct {
    /* features; blocks of this kind in a stream; targets that share P; stored rows */
    int64_t n, groups, targets, slots;
    int64_t P, W, usual, z, gain;
} Block;

typedef struct {
    int64_t count, look, mean, variance, reach, median, deviation, drift, growth, centre, span, begun, history, season, profile, residual, moved, regret, square, size, lasting, low, high, spread, owed, scored, trust;
    int64_t made, outputs, base, last, scale, medians, drifts, growths, excused, total;
    Block block[BLOCKS];
} Layout;

static int64_t place(int64_t *at, int64_t size) {
    int64_t begin = *at;
    *at += size;
    return begin;
}

static int lay_out(const Setting *s, Layout *l) {
    int64_t C = s->columns, H = s->horizon, at = 0;
    const int64_t sizes[] = {C, H, s->states + 1, s->extra + 1, s->history, s->lags, s->few, s->short_lags,
                             s->profile_lags, s->unit_lags, s->units + 1};
    for (int i = 0; i < 11; i++)
        if (sizes[i] < 1 || sizes[i] > 1 << 20) return 0;
    if (s->history < 2 * s->lags + 2 || s->history < s->few + 1 || s->lags < s->short_lags) return 0;
    if (s->history < 2 * s->unit_lags) return 0;
    l->count = place(&at, 1), l->look = place(&at, 1);
    l->mean = place(&at, C), l->variance = place(&at, C), l->reach = place(&at, C);
    l->median = place(&at, C), l->deviation = place(&at, C), l->drift = place(&at, C), l->growth = place(&at, C);
    l->centre = place(&at, C), l->span = place(&at, C), l->begun = place(&at, C);
    l->history = place(&at, C * s->history);
    l->season = place(&at, C * SEASONS);
    l->profile = place(&at, C * SEASONS * (s->history / 2));
    l->residual = place(&at, C * SEASONS * s->profile_lags), l->moved = place(&at, C * SEASONS);
    l->regret = place(&at, C * H * EXPERTS), l->square = place(&at, C * H * EXPERTS);
    l->size = place(&at, C * H), l->lasting = place(&at, C * H), l->scored = place(&at, C * H), l->trust = place(&at, C * H * 2);
    l->low = place(&at, C * H), l->high = place(&at, C * H), l->spread = place(&at, C * H), l->owed = place(&at, C * H);
    int64_t lines = C * (H * (H + 1) / 2); /* as many places for each horizon as it has steps */
    l->made = place(&at, lines * 3), l->outputs = place(&at, lines * BLOCKS), l->base = place(&at, lines * SEASONS);
    l->last = place(&at, H * C), l->scale = place(&at, H * C);
    l->medians = place(&at, H * C), l->drifts = place(&at, H * C), l->growths = place(&at, H * C);
    int64_t n[BLOCKS] = {1 + s->states + s->extra + C * (s->few + 1), s->lags + 2, s->short_lags + 2,
                         s->profile_lags + 1, s->profile_lags + 1, s->units ? 1 + s->unit_lags + s->units : 0};
    for (int j = 0; j < BLOCKS; j++) {
        Block *b = &l->block[j];
        b->n = n[j], b->groups = j == NETWORK ? 1 : C, b->targets = j == NETWORK ? C * H : H;
        b->slots = H;
        if (j == NONLINEAR && s->unit_lags < H) b->targets = b->slots = s->unit_lags;
        if (n[j] > WIDEST) return 0;
        b->P = place(&at, b->groups * n[j] * (n[j] + 1) / 2);
        b->W = place(&at, b->groups * b->targets * n[j]);
        b->usual = place(&at, b->groups * b->targets * 2); /* the usual error, and errors counted */
        b->z = place(&at, b->slots * b->groups * n[j]), b->gain = place(&at, b->slots * b->groups * n[j]);
    }
    l->excused = place(&at, C * H);
    l->total = at;
    return 1;
}

#ifdef _MSC_VER
#define INLINE static __forceinline
#else
#define INLINE static inline __attribute__((always_inline))
#endif

INLINE double larger(double a, double b) { return a > b ? a : b; }
INLINE double within(double x, double limit) { return x > limit ? limit : x < -limit ? -limit : x; }

enum { MEAN, VARIANCE, SCALE, LEVEL, FIRST, FACTS };

/* A run of rows of one stream. */
typedef struct {
    const Setting *set;
    const Layout *at;
    double *x; /* the stream */
    int64_t time, rows; /* number of the first row; number of rows */
    const double *weights; /* of the nonlinear units: a row of biases, then one for each lag */
    const double *values;  /* (rows, C) */
    /* From `prepare`: (rows, n) features and gains of the network's block; the columns of P with which its weights are
     * pulled, and by how much, one for each of EVERY rows; (rows, C, FACTS) facts. */
    double *z, *gain, *pulled, *pulls, *facts;
    double *past, *k; /* scratch memory of `prepare`: rows and lags, n */
} Run;

/* A thread's working memory for one column; H numbers each unless noted. */
typedef struct {
    double *fade, *calm, *steps;                       /* tables */
    double *last, *scale, *medians, *drifts, *growths; /* H + rows: when forecasts were made, the newest first */
    double *experts, *made;                            /* EXPERTS H, 3 H */
    double *pred, *base, *ahead;                       /* NONLINEAR TILE H, SEASONS TILE H, TILE SEASONS H */
    double *mixed, *sum, *error, *keep;
    double *k, *z, *window; /* of the largest block; lags of the nonlinear units */
    double *of[NONLINEAR], *gain[NONLINEAR], *pulled[NONLINEAR], *pulls; /* of TILE rows of the column's own blocks */
    int64_t *kept, *back; /* places of the forecasts whose values arrive now; SEASONS H rows back */
    int64_t seasons[SEASONS], rows;
    double median, deviation, drift, growth;
} Lanes;

INLINE double *carve(double **at, int64_t size) {
    double *begin = *at;
    *at += size;
    return begin;
}

static int64_t widest(const Layout *l) {
    int64_t n = 1;
    for (int j = 0; j < BLOCKS; j++)
        if (l->block[j].n > n) n = l->block[j].n;
    return n;
}

/* The size in doubles of the memory of a run of up to `rows` rows; assigns its parts if `memory` is given. */
static int64_t room_of_run(const Layout *l, const Setting *s, int64_t rows, double *memory, Run *r) {
    int64_t n = l->block[NETWORK].n, due = rows / EVERY + 2, past = s->lags + rows;
    if (memory) {
        r->z = carve(&memory, rows * n), r->gain = carve(&memory, rows * n);
        r->pulled = carve(&memory, due * n), r->pulls = carve(&memory, due);
        r->facts = carve(&memory, rows * s->columns * FACTS);
        r->past = carve(&memory, past), r->k = carve(&memory, n);
    }
    return (2 * rows + due + 1) * n + due + rows * s->columns * FACTS + past;
}

/* The same for the memory of a thread. */
static int64_t room_of_lanes(const Layout *l, const Setting *s, int64_t rows, double *memory, Lanes *of) {
    int64_t H = s->horizon, n = widest(l), own = 0, due = TILE / EVERY + 1;
    for (int j = LONG; j < NONLINEAR; j++) own += l->block[j].n;
    if (memory) {
        double **at = &memory;
        of->fade = carve(at, H), of->calm = carve(at, H), of->steps = carve(at, H);
        of->last = carve(at, H + rows), of->scale = carve(at, H + rows), of->medians = carve(at, H + rows);
        of->drifts = carve(at, H + rows), of->growths = carve(at, H + rows);
        of->experts = carve(at, EXPERTS * H), of->made = carve(at, 3 * H), of->pred = carve(at, NONLINEAR * TILE * H);
        of->base = carve(at, SEASONS * TILE * H), of->ahead = carve(at, SEASONS * TILE * H);
        of->mixed = carve(at, H), of->sum = carve(at, H), of->error = carve(at, H), of->keep = carve(at, H);
        of->k = carve(at, n), of->z = carve(at, n), of->window = carve(at, s->unit_lags);
        for (int j = LONG; j < NONLINEAR; j++) {
            of->of[j] = carve(at, TILE * l->block[j].n), of->gain[j] = carve(at, TILE * l->block[j].n);
            of->pulled[j] = carve(at, due * l->block[j].n);
        }
        of->pulls = carve(at, NONLINEAR * due);
        of->kept = (int64_t *)carve(at, H), of->back = (int64_t *)carve(at, SEASONS * H);
    }
    return (16 + EXPERTS + SEASONS + (NONLINEAR + 2 * SEASONS) * TILE) * H + 5 * rows + 2 * n + s->unit_lags +
           (2 * TILE + due) * own + NONLINEAR * due;
}

/* The number of doubles between the forecasts of columns: each horizon has as many places as it has steps. */
INLINE int64_t places(const Run *r) { return r->set->horizon * (r->set->horizon + 1) / 2; }

INLINE const double *facts_of(const Run *r, int64_t c, int64_t t) {
    return r->facts + (t * r->set->columns + c) * FACTS;
}

/* A valid season; 0 for none. */
INLINE int64_t season_of(const Run *r, int64_t c, int k) {
    double season = r->x[r->at->season + c * SEASONS + k];
    return season >= 1 && season <= (double)(r->set->history / 2) ? (int64_t)season : 0;
}

/* The first row from which a block learns; before it, the scale or some of the lagged values are unknown. */
INLINE int64_t begins(const Setting *s, int j) { return j == LONG && s->lags / 2 > SETTLED ? s->lags / 2 : SETTLED; }

#include "readout.inc"
#include "mixture.inc"
#include "nonlinear.inc"
#include "column.inc"
#include "seasons.inc"

typedef void Prepare(const Run *, const double *, const double *);
typedef void Advance(const Run *, Lanes *, int64_t, double *, double *, double *, double *);

/* The two entry points, compiled for one kind of processor. */
typedef struct {
    Prepare *prepare;
    Advance *advance;
} Code;

#define COMPILE(kind, target)                                                                                        \
    target static void prepare_##kind(const Run *r, const double *states, const double *extra) {                     \
        prepare(r, states, extra);                                                                                   \
    }                                                                                                                \
    target static void advance_##kind(const Run *r, Lanes *l, int64_t c, double *expected, double *forecast,         \
                                      double *lower, double *upper) {                                                \
        advance(r, l, c, expected, forecast, lower, upper);                                                          \
    }

COMPILE(anywhere, )
#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
COMPILE(avx2, __attribute__((target("avx2,fma"))))
static Code best_code(void) {
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return (Code){prepare_avx2, advance_avx2};
    return (Code){prepare_anywhere, advance_anywhere};
}
#else
static Code best_code(void) { return (Code){prepare_anywhere, advance_anywhere}; }
#endif

/* Tables over the horizons, and memory for runs of up to `rows` rows. Returns the block to free, or NULL if memory
 * runs out. */
static double *begin_lanes(const Layout *layout, const Setting *s, int64_t rows, Lanes *l) {
    double *memory = malloc((size_t)room_of_lanes(layout, s, rows, NULL, NULL) * sizeof(double));
    if (!memory) return NULL;
    room_of_lanes(layout, s, rows, memory, l);
    for (int64_t h = 0; h < s->horizon; h++) {
        l->fade[h] = 1 - (1 - s->fade) / sqrt((double)(h + 1));
        l->calm[h] = s->widen / (1 + (double)h / LATE);
    }
    return memory;
}

/* Whether stored row counts are valid, so that everything derived from them stays within the state. */
static int counted(const Layout *l, const double *x) { return x[l->count] >= 0 && x[l->count] < 9e15; }

static int sound(const Layout *l, const Setting *s, const double *x) {
    if (!counted(l, x)) return 0;
    for (int64_t c = 0; c < s->columns; c++)
        if (!(x[l->begun + c] >= 0 && x[l->begun + c] <= x[l->count])) return 0;
    return 1;
}

/* How many of `most` rows of a stream can be processed together: until the next search for seasons, and until a value
 * is missing, which is replaced by the forecast after the row before. */
static int64_t run_of(const Layout *l, const Setting *s, const double *x, const double *values, int64_t most) {
    int64_t rows = 1, C = s->columns;
    for (; rows < most && rows < LONGEST && x[l->count] + (double)rows != x[l->look]; rows++)
        for (int64_t c = 0; c < C; c++)
            if (values[rows * C + c] != values[rows * C + c]) return rows;
    return rows;
}

/* The number of doubles of a stream of these sizes; 0 for invalid sizes. */
EXPORT int64_t forecast_size(const Setting *setting) {
    Layout layout;
    return lay_out(setting, &layout) ? layout.total : 0;
}

/* Prefetch the state of a stream while another is processed: with many streams, few stay in the caches. */
static void fetch(const Layout *l, const double *x) {
#ifdef __GNUC__
    __builtin_prefetch(x);
    for (int64_t i = l->residual; i < l->total; i += 8) __builtin_prefetch(x + i, 1, 2);
#else
    (void)l, (void)x;
#endif
}

/* Streams `rows` each observe one of `count` rows, in order; a stream may occur more than once. Only streams whose
 * number is `part` modulo `parts` are processed, so that several threads can share a call. Returns 0 or
 * an error code. */
EXPORT int64_t forecast_step(const Setting *setting, double *state, int64_t streams, int64_t width, const int64_t *rows,
                             int64_t count, const double *weights, const double *values, const double *states,
                             const double *extra, double *expected, double *forecast, double *lower, double *upper,
                             int64_t part, int64_t parts) {
    Layout layout;
    Lanes lanes;
    if (!lay_out(setting, &layout) || layout.total != width || parts < 1) return 1;
    for (int64_t i = 0; i < count; i++)
        if (rows[i] < 0 || rows[i] >= streams) return 2;
    int64_t C = setting->columns, H = setting->horizon, longest = 0, wrong = 0;
    for (int64_t i = 0, same = 0; i < count; i++) {
        same = i && rows[i] == rows[i - 1] ? same + 1 : 1;
        if (rows[i] % parts != part) continue;
        if (!sound(&layout, setting, state + rows[i] * width)) return 3;
        if (same > longest && same <= LONGEST) longest = same;
    }
    if (!longest) return 0;
    Run run = {.set = setting, .at = &layout, .weights = weights};
    double *own = begin_lanes(&layout, setting, longest, &lanes);
    double *room = malloc((size_t)room_of_run(&layout, setting, longest, NULL, NULL) * sizeof(double));
    if (own && room) room_of_run(&layout, setting, longest, room, &run);
    else wrong = 4;
    Code code = best_code();
    for (int64_t i = 0; i < count && !wrong; i += run.rows) {
        run.rows = 1;
        if (rows[i] % parts != part) continue;
        int64_t most = 1;
        while (most < longest && i + most < count && rows[i + most] == rows[i]) most++;
        run.x = state + rows[i] * width, run.values = values + i * C, run.time = (int64_t)run.x[layout.count];
        run.rows = run_of(&layout, setting, run.x, run.values, most);
        int64_t next = i + run.rows;
        while (next < count && rows[next] % parts != part) next++;
        if (next < count && rows[next] != rows[i]) fetch(&layout, state + rows[next] * width);
        code.prepare(&run, states + i * setting->states, extra + i * setting->extra);
        for (int64_t c = 0; c < C; c++)
            code.advance(&run, &lanes, c, expected + i * C, forecast + i * C * H, lower + i * C * H, upper + i * C * H);
        finish(&run);
        if (run.x[layout.count] == run.x[layout.look] && !look_for_seasons(&run)) wrong = 4;
    }
    free(own), free(room);
    return wrong;
}

/* The same for one stream in three steps, so that threads can divide its columns: `forecast_prepare` begins a run and
 * returns the number of its rows or a negative error code, `forecast_columns` takes some columns through it, in any
 * order, and `forecast_finish` ends it. `room` has `forecast_room` doubles. */
EXPORT int64_t forecast_room(const Setting *setting) {
    Layout layout;
    return lay_out(setting, &layout) ? room_of_run(&layout, setting, LONGEST, NULL, NULL) : 0;
}

static int resume(const Setting *setting, Layout *layout, double *stream, int64_t width, double *room, int64_t size, Run *run) {
    if (!lay_out(setting, layout) || layout->total != width) return 0;
    if (room_of_run(layout, setting, LONGEST, NULL, NULL) != size || !counted(layout, stream)) return 0;
    *run = (Run){.set = setting, .at = layout, .x = stream, .time = (int64_t)stream[layout->count]};
    room_of_run(layout, setting, LONGEST, room, run);
    return 1;
}

EXPORT int64_t forecast_prepare(const Setting *setting, double *stream, int64_t width, double *room, int64_t size,
                                int64_t count, const double *values, const double *states, const double *extra) {
    Layout layout;
    Run run;
    if (count < 1 || !resume(setting, &layout, stream, width, room, size, &run)) return -3;
    if (!sound(&layout, setting, stream)) return -3;
    run.values = values, run.rows = run_of(&layout, setting, stream, values, count);
    best_code().prepare(&run, states, extra);
    return run.rows;
}

EXPORT int64_t forecast_columns(const Setting *setting, double *stream, int64_t width, double *room, int64_t size,
                                int64_t rows, const double *weights, const double *values, double *expected,
                                double *forecast, double *lower, double *upper, int64_t part, int64_t parts) {
    Layout layout;
    Lanes lanes;
    Run run;
    if (rows < 1 || rows > LONGEST || !resume(setting, &layout, stream, width, room, size, &run)) return 3;
    double *own = begin_lanes(&layout, setting, rows, &lanes);
    if (!own) return 4;
    int64_t C = setting->columns;
    run.values = values, run.rows = rows, run.weights = weights;
    for (int64_t c = part * C / parts; c < (part + 1) * C / parts; c++)
        best_code().advance(&run, &lanes, c, expected, forecast, lower, upper);
    free(own);
    return 0;
}

EXPORT int64_t forecast_finish(const Setting *setting, double *stream, int64_t width, double *room, int64_t size,
                               int64_t rows) {
    Layout layout;
    Run run;
    if (rows < 1 || rows > LONGEST || !resume(setting, &layout, stream, width, room, size, &run)) return 3;
    run.rows = rows;
    finish(&run);
    return stream[layout.count] != stream[layout.look] || look_for_seasons(&run) ? 0 : 4;
}
