/* One observation of many streams through the forecaster: the compiled form of
 * `ptncn.streaming.forecaster.reference`, which explains the model. A stream's state is one row of doubles, whose parts
 * `lay_out` places in the order of `ptncn.streaming.forecaster.layout`. Nothing is written before sizes are checked. */
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
#define LATE 24.0
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
enum { NETWORK, LONG, SHORT, PROFILE, NONLINEAR = PROFILE + SEASONS };

typedef struct {
    int64_t columns, horizon, states, extra, history, lags, few, short_lags, profile_lags, unit_lags, units;
    double forgetting, quick, ridge, clip, fade, smoothing, level, step, widen, debt, trust, unit_ridge;
} Setting;

typedef struct {
    int64_t n, groups, targets, slots; /* features; blocks of this kind in a stream; targets that share P; stored
     * rows */
    int64_t P, W, usual, z, gain;
} Block;

typedef struct {
    int64_t count, look, mean, variance, reach, median, deviation, drift, growth, centre, span, begun, history, season, profile, residual, moved, regret, square, size, lasting, low, high, spread, owed, scored, trust;
    int64_t made, outputs, base, last, scale, medians, drifts, growths, total;
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
    int64_t lines = C * (H * (H + 1) / 2); /* for each horizon as many places as it has steps */
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
    l->total = at;
    return 1;
}

#ifdef _MSC_VER
#define INLINE static __forceinline
#else
#define INLINE static inline __attribute__((always_inline))
#endif

INLINE double dot(const double *restrict a, const double *restrict b, int64_t n) {
    double part[16] = {0}, half[8] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k++) part[k] += a[i + k] * b[i + k];
    if (i + 8 <= n) {
        for (int k = 0; k < 8; k++) half[k] = a[i + k] * b[i + k];
        i += 8;
    }
    for (; i < n; i++) sum += a[i] * b[i];
    for (int k = 0; k < 8; k++) half[k] += part[k] + part[k + 8];
    for (int k = 0; k < 4; k++) half[k] += half[k + 4];
    return sum + ((half[0] + half[2]) + (half[1] + half[3]));
}

INLINE void add(double *restrict onto, const double *restrict x, double by, int64_t n) {
    for (int64_t i = 0; i < n; i++) onto[i] += by * x[i];
}

INLINE double larger(double a, double b) { return a > b ? a : b; }
INLINE double within(double x, double limit) { return x > limit ? limit : x < -limit ? -limit : x; }

/* P ← (P − k kᵀ / (μ + zᵀ k)) / μ with k = P z, of which the lower triangle is stored; the gain is k / (μ + zᵀ k). */
INLINE void absorb(double *restrict P, const double *restrict z, double *restrict gain, double *restrict k, int64_t n,
                   double mu) {
    double *row = P;
    for (int64_t i = 0; i < n; row += ++i) {
        k[i] = dot(row, z, i + 1);
        add(k, row, z[i], i);
    }
    double q = 1 / (mu + dot(z, k, n)), faded = 1 / mu;
    for (int64_t i = 0; i < n; i++) gain[i] = k[i] * q;
    row = P;
    for (int64_t i = 0; i < n; row += ++i)
        for (int64_t j = 0; j <= i; j++) row[j] = (row[j] - gain[i] * k[j]) * faded;
}

/* An artificial observation that weight j is 0, as in the prior, which restores what forgetting took from the prior. */
INLINE void pull(double *restrict P, double *restrict W, double *restrict k, int64_t n, int64_t targets, int64_t j,
                 double certainty) {
    for (int64_t i = 0; i < n; i++) k[i] = i < j ? P[j * (j + 1) / 2 + i] : P[i * (i + 1) / 2 + j];
    double q = 1 / (1 / certainty + k[j]), *row = P;
    for (int64_t h = 0; h < targets; h++) add(W + h * n, k, -q * W[h * n + j], n);
    for (int64_t i = 0; i < n; row += ++i) add(row, k, -q * k[i], i + 1);
}

/* The mean of the experts' forecasts, weighted by their regrets; exact if all are equal. */
INLINE double mix(const double *restrict regret, const double *restrict square, const double *restrict said) {
    double weights[EXPERTS], moved[EXPERTS];
    for (int j = 0; j < EXPERTS; j++) {
        weights[j] = (regret[j] > 0 ? regret[j] : 0) / (square[j] + 1) + 1e-9;
        moved[j] = weights[j] * (said[j] - said[0]);
    }
    double sum = weights[0], off = 0, sum_1 = weights[1], off_1 = moved[1];
    for (int j = 2; j + 1 < EXPERTS; j += 2)
        sum += weights[j], off += moved[j], sum_1 += weights[j + 1], off_1 += moved[j + 1];
    if (EXPERTS % 2) sum += weights[EXPERTS - 1], off += moved[EXPERTS - 1];
    return said[0] + (off + off_1) / (sum + sum_1);
}

/* The regret of each expert, in usual errors. */
INLINE void regret_more(double *restrict regret, double *restrict square, const double *restrict said, double mixed,
                        double each, double fade) {
    for (int j = 0; j < EXPERTS; j++) {
        double gain = (mixed - said[j]) * each;
        gain = gain > GAIN ? GAIN : gain;
        gain = gain < -GAIN ? -GAIN : gain;
        regret[j] = fade * regret[j] + gain;
        square[j] = fade * square[j] + gain * gain;
    }
}

typedef struct {
    const Setting *set;
    const Layout *at;
    double *x; /* the stream */
    double *k, *z;
    const double *weights; /* of the nonlinear units: a row of biases, then one for each lag */
} Run;

/* A valid season; 0 for none. */
INLINE int64_t season_of(const Run *r, int64_t c, int k) {
    double season = r->x[r->at->season + c * SEASONS + k];
    return season >= 1 && season <= (double)(r->set->history / 2) ? (int64_t)season : 0;
}

/* The value a whole number of seasons before `time`, not after `known`; the last value if there is none. */
INLINE double seasonal(const Run *r, int64_t c, int64_t season, int64_t time, int64_t ahead, double last) {
    int64_t back = season > 0 ? (ahead + season - 1) / season * season : 0, L = r->set->history;
    if (!back || back > time || back - ahead >= L) return last;
    return r->x[r->at->history + c * L + (time - back) % L];
}

/* The slot of a forecast made at `origin` for horizon h of column c, until its value arrives. */
INLINE int64_t line(const Run *r, int64_t c, int64_t h, int64_t origin) {
    int64_t H = r->set->horizon;
    return c * (H * (H + 1) / 2) + h * (h + 1) / 2 + origin % (h + 1);
}

/* The predictions of the linear blocks from the features in `slot`, in scales, for horizon h of column c; `base` is NaN
 * for none. */
INLINE void read_out(const Run *r, int64_t c, int64_t h, int64_t slot, double last, const double *seasonal_base,
                     double *base, double *pred) {
    for (int j = 0; j < NONLINEAR; j++) {
        const Block *b = &r->at->block[j];
        int64_t group = j == NETWORK ? 0 : c, target = j == NETWORK ? c * r->set->horizon + h : h;
        base[j] = j < PROFILE ? last : seasonal_base[j - PROFILE];
        pred[j] = base[j] != base[j] ? 0
                                     : dot(r->x + b->W + (group * b->targets + target) * b->n,
                                           r->x + b->z + (slot * b->groups + group) * b->n, b->n);
    }
}

/* The experts' forecasts for horizon h of column c from `slot`: simple rules, then the outputs of the blocks. */
INLINE void experts(const Run *r, int64_t c, int64_t h, int64_t time, int64_t slot, const double *outputs, double *said) {
    int64_t at = slot * r->set->columns + c, season = season_of(r, c, 0), ahead = h + 1;
    double last = r->x[r->at->last + at], drift = r->x[r->at->drifts + at], growth = r->x[r->at->growths + at];
    said[0] = last;
    for (int k = 0; k < SEASONS; k++) said[1 + k] = seasonal(r, c, season_of(r, c, k), time, ahead, last);
    said[1 + SEASONS] = r->x[r->at->medians + at];
    double steps = (double)(season ? (ahead + season - 1) / season * season : ahead);
    said[2 + SEASONS] = said[1] + drift * steps;
    said[3 + SEASONS] = season && growth == growth ? said[1] * exp(within(growth * steps, MOST_GROWTH)) : said[1];
    for (int j = 0; j < BLOCKS; j++) said[RULES + j] = outputs[j];
}

/* Move each bound, in units of the spread, out by a step if it was exceeded and slightly back otherwise. Recent excess
 * misses widen both. `made` is the earlier forecast and the distances of its bounds. */
INLINE void follow(const Setting *s, const double *made, double y, double n, double *low, double *high,
                   double *spread, double *owed) {
    double tail = (1 - s->level) / 2, rate = 1 / n > s->widen ? 1 / n : s->widen, error = y - made[0];
    double below = (-error > made[1]) - tail, above = (error > made[2]) - tail;
    if (n == 1) *low = *high = FIRST_BOUND, *spread = fabs(error);
    *low += s->step * below, *high += s->step * above;
    *low = *low > LEAST_BOUND ? *low : LEAST_BOUND, *high = *high > LEAST_BOUND ? *high : LEAST_BOUND;
    *owed += below + above - *owed / OWED;
    *spread += rate * (fabs(error) - *spread);
}

/* The first row from which a block learns: before it there is no scale, or there are too few values for its lags. */
INLINE int64_t begins(const Setting *s, int j) { return j == LONG && s->lags / 2 > SETTLED ? s->lags / 2 : SETTLED; }

/* Evaluate the forecast of y made h + 1 steps before: reweight the experts, update the blocks, move the bounds. */
INLINE void score(const Run *r, int64_t c, int64_t h, int64_t time, double y) {
    const Setting *s = r->set;
    const Layout *l = r->at;
    int64_t C = s->columns, H = s->horizon, slot = (time - h - 1) % H, i = c * H + h;
    double said[EXPERTS], pred[BLOCKS], base[BLOCKS], scale = r->x[l->scale + slot * C + c];
    double *regret = r->x + l->regret + i * EXPERTS, *square = r->x + l->square + i * EXPERTS;
    int64_t kept = line(r, c, h, time - h - 1);
    double last = r->x[l->last + slot * C + c];
    experts(r, c, h, time, slot, r->x + l->outputs + kept * BLOCKS, said);
    double mixed = mix(regret, square, said);
    double n = r->x[l->scored + i] += 1, *size = r->x + l->size + i, *lasting = r->x + l->lasting + i, rate = 1 / n > 0.005 ? 1 / n : 0.005;
    double off = fabs(mixed - y), sign = (mixed > y) - (mixed < y), fade = 1 - (1 - s->fade) / sqrt((double)(h + 1));
    *size += rate * ((n > 10 && *size > 0 && off > 5 * *size ? 5 * *size : off) - *size);
    *lasting += larger(1 / n, 1.0 / LASTING) * (off - *lasting);
    double usual = larger(*size, LEAST_SHARE * *lasting);
    if (usual > TINY)
        regret_more(regret, square, said, mixed, sign / usual, fade);
    follow(s, r->x + l->made + kept * 3, y, n, r->x + l->low + i, r->x + l->high + i,
           r->x + l->spread + i, r->x + l->owed + i);
    double *trust = r->x + l->trust + i * 2, moved = mixed - said[0], came = y - said[0];
    if (usual > TINY) { /* least absolute deviations, by weights */
        double weight = 1 / (off > usual ? off * usual : usual * usual);
        trust[0] = s->trust * trust[0] + weight * moved * came;
        trust[1] = s->trust * trust[1] + weight * moved * moved;
    }
    read_out(r, c, h, slot, last, r->x + l->base + kept * SEASONS, base, pred);
    for (int j = 0; j < NONLINEAR; j++) {
        const Block *b = &l->block[j];
        int64_t group = j == NETWORK ? 0 : c, target = j == NETWORK ? i : h;
        if (base[j] != base[j] || time - h - 1 < begins(s, j)) continue;
        double *u = r->x + b->usual + (group * b->targets + target) * 2;
        double e = within((y - base[j]) / scale, REACH) - pred[j], limit = s->clip * u[0];
        if ((u[1] += 1) > 32) e = within(e, limit);
        u[0] += (1 / u[1] > 0.005 ? 1 / u[1] : 0.005) * (fabs(e) - u[0]);
        add(r->x + b->W + (group * b->targets + target) * b->n, r->x + b->gain + (slot * b->groups + group) * b->n, e,
            b->n);
    }
}

/* Add a value to the history, scale and profiles of a column; returns the value, or the replacement of a missing
 * one. */
INLINE double take(const Run *r, int64_t c, int64_t time, double y) {
    const Setting *s = r->set;
    const Layout *l = r->at;
    int64_t L = s->history;
    double *mean = r->x + l->mean + c, *variance = r->x + l->variance + c, *history = r->x + l->history + c * L;
    double *median = r->x + l->median + c, *deviation = r->x + l->deviation + c, *drift = r->x + l->drift + c, *growth = r->x + l->growth + c;
    int missing = y != y, first = *variance < 0;
    if (missing) y = first || !time ? 0 : r->x[l->made + line(r, c, 0, time - 1) * 3];
    if (first && !missing) {
        for (int64_t i = 0; i < L; i++) history[i] = y;
        *mean = y, *variance = 0, *median = y;
    } else if (!missing) {
        int64_t season = season_of(r, c, 0), back = season && season <= time ? season : 1; /* whole seasons have no cycle */
        double n = (double)(time + 1), moved = y - history[(time + L - back) % L], far = fabs(y - *median);
        *deviation += larger(1 / n, MIDDLE) * (far - *deviation);
        *median += larger(2 / n, MIDDLE) * *deviation * ((y > *median) - (y < *median));
        double share = larger(1 / n, 1.0 / DRIFT), each = 1 / (double)back;
        *drift += share * (moved * each - *drift);
        *growth = y > 0 && moved < y ? *growth + share * (log(y / (y - moved)) * each - *growth) : NAN;
        double rate = 1 / (double)(time + 1 < 5000 ? time + 1 : 5000), off = y - *mean;
        if (time > 32 && *variance > 0) off = within(off, CLIP * sqrt(*variance));
        *mean += rate * off;
        *variance += rate * (off * off * (1 - rate) - *variance);
    }
    history[time % L] = y;
    for (int k = 0; k < SEASONS; k++) {
        int64_t season = season_of(r, c, k), lags = s->profile_lags;
        if (season <= 0) continue;
        double *at = r->x + l->profile + (c * SEASONS + k) * (L / 2) + time % season, off = *at == *at ? y - *at : 0;
        r->x[l->residual + (c * SEASONS + k) * lags + time % lags] = missing ? 0 : off;
        double *moved = r->x + l->moved + c * SEASONS + k;
        if (!missing) *moved = s->smoothing * off;
        *at = *at != *at && !missing ? y : *at + *moved; /* where nothing was observed, as it moved last */
    }
    return y;
}

INLINE void learn(const Run *r, int j, int64_t group, int64_t slot, int64_t time, double mu) {
    const Block *b = &r->at->block[j];
    int64_t n = b->n, which = slot * b->groups + group;
    double *P = r->x + b->P + group * (n * (n + 1) / 2), *W = r->x + b->W + group * b->targets * n;
    if (time < begins(r->set, j)) return;
    double young = 1 - 1 / (YOUNG + (double)time); /* the memory is at most the number of rows seen */
    if (mu < 1 && young < mu) mu = young;
    memcpy(r->x + b->z + which * n, r->z, (size_t)n * sizeof(double));
    absorb(P, r->z, r->x + b->gain + which * n, r->k, n, mu);
    if (time % EVERY == 0 && mu < 1)
        pull(P, W, r->k, n, b->targets, time / EVERY % n, r->set->ridge * (1 - mu) * (double)(n * EVERY));
}

/* The root of a slow moving mean square, in which the influence of a row is bounded. */
INLINE double measure(double *mean, double square, int64_t time) {
    double rate = time < MEMORY ? 1 / (double)(time + 1) : 1 / (double)MEMORY;
    if (time > 32 && *mean > 0 && square > CLIP * CLIP * *mean) square = CLIP * CLIP * *mean;
    *mean += rate * (square - *mean);
    return sqrt(*mean);
}

/* The features of column c: autoregressions, then profiles. Returns its part of the network's block. */
INLINE int64_t look(const Run *r, int64_t c, int64_t slot, int64_t time, double *shared) {
    const Setting *s = r->set;
    const Layout *l = r->at;
    int64_t L = s->history, C = s->columns, H = s->horizon;
    const double *history = r->x + l->history + c * L;
    double y = history[time % L], mean = r->x[l->mean + c], variance = r->x[l->variance + c], *z = r->z;
    double floor = 1e-9 * (1 + fabs(mean)), spread = variance > 0 ? sqrt(variance) : 0, square = 0;
    for (int64_t i = 1; i <= s->lags; i++) z[i - 1] = y - history[(time - i + L * 2) % L];
    for (int64_t i = 0; i < s->lags; i++) square += z[i] * z[i];
    double scale = measure(r->x + l->reach + c, square / (double)s->lags, time);
    scale = scale > floor ? scale : floor;
    r->x[l->last + slot * C + c] = y, r->x[l->scale + slot * C + c] = scale;
    r->x[l->medians + slot * C + c] = r->x[l->median + c], r->x[l->drifts + slot * C + c] = r->x[l->drift + c];
    r->x[l->growths + slot * C + c] = r->x[l->growth + c];
    for (int64_t i = 0; i < s->lags; i++) z[i] = within(z[i] / scale, CLIP);
    double level = within((y - mean) / (spread > floor ? spread : floor), CLIP);
    memcpy(shared, z, (size_t)s->few * sizeof(double));
    shared[s->few] = level;
    z[s->lags] = level, z[s->lags + 1] = 1;
    learn(r, LONG, c, slot, time, s->forgetting);
    z[s->short_lags] = level, z[s->short_lags + 1] = 1;
    learn(r, SHORT, c, slot, time, s->quick);
    for (int k = 0; k < SEASONS; k++) {
        int64_t season = season_of(r, c, k), lags = s->profile_lags;
        const double *profile = r->x + l->profile + (c * SEASONS + k) * (L / 2);
        const double *residual = r->x + l->residual + (c * SEASONS + k) * lags;
        for (int64_t h = 0; h < H; h++)
            r->x[l->base + line(r, c, h, time) * SEASONS + k] = season > 0 ? profile[(time + 1 + h) % season] : NAN;
        if (season <= 0) continue;
        for (int64_t i = 0; i < lags; i++)
            z[i] = within(residual[(time - i + lags * 2) % lags] / scale, CLIP); /* before the first they are 0 */
        z[lags] = 1;
        learn(r, PROFILE + k, c, slot, time, s->forgetting);
    }
    return s->few + 1;
}

#include "nonlinear.inc"
#include "seasons.inc"

INLINE void observe(const Run *r, const double *y, const double *states, const double *extra, double *expected,
                    double *forecast, double *lower, double *upper) {
    const Setting *s = r->set;
    const Layout *l = r->at;
    int64_t C = s->columns, H = s->horizon, time = (int64_t)r->x[l->count], slot = time % H, n = 0;
    double shared[WIDEST];
    for (int64_t c = 0; c < C; c++) expected[c] = time ? r->x[l->made + line(r, c, 0, time - 1) * 3] : NAN;
    for (int64_t c = 0; c < C; c++)
        if (y[c] == y[c]) {
            for (int64_t h = 0; h < H && h < time; h++) score(r, c, h, time, y[c]);
            teach_units(r, c, time, y[c]);
        }
    shared[n++] = 1;
    for (int64_t i = 0; i < s->states; i++) shared[n++] = states[i];
    for (int64_t i = 0; i < s->extra; i++) shared[n++] = extra[i];
    for (int64_t c = 0; c < C; c++) {
        take(r, c, time, y[c]);
        n += look(r, c, slot, time, shared + n);
    }
    memcpy(r->z, shared, (size_t)n * sizeof(double));
    learn(r, NETWORK, 0, slot, time, s->forgetting);
    r->x[l->count] = (double)(time + 1);
    for (int64_t c = 0; c < C; c++) {
        double *bent = forecast + c * H; /* overwritten below, each after it was read */
        bend_ahead(r, c, time, bent);
        for (int64_t h = 0; h < H; h++) {
            double said[EXPERTS], pred[BLOCKS], base[BLOCKS];
            int64_t i = c * H + h, kept = line(r, c, h, time);
            double last = r->x[l->last + slot * C + c], scale = r->x[l->scale + slot * C + c];
            double *outputs = r->x + l->outputs + kept * BLOCKS;
            read_out(r, c, h, slot, last, r->x + l->base + kept * SEASONS, base, pred);
            for (int j = 0; j < NONLINEAR; j++)
                outputs[j] = base[j] == base[j] ? base[j] + scale * within(pred[j], REACH) : last;
            outputs[NONLINEAR] = bent[h];
            experts(r, c, h, time + 1 + h, slot, outputs, said);
            double mixed = mix(r->x + l->regret + i * EXPERTS, r->x + l->square + i * EXPERTS, said);
            const double *trust = r->x + l->trust + i * 2;
            double prior = PRIOR * (double)(h + 1), toward = 0;
            if (season_of(r, c, 0)) toward = TOWARD * prior * larger(0, 1 - r->x[l->scored + i] / SEASONED);
            double share = (trust[0] + toward) / (trust[1] + prior), spread = r->x[l->spread + i];
            share = share < 0 ? 0 : share > 1 ? 1 : share;
            double *made = r->x + l->made + kept * 3;
            made[0] = said[0] + share * (mixed - said[0]);
            spread *= exp(within(s->debt / (1 + (double)h / LATE) * r->x[l->owed + i], WIDEN)); /* late feedback must
             * not cause oscillations */
            made[1] = r->x[l->low + i] * spread, made[2] = r->x[l->high + i] * spread;
            forecast[i] = made[0], lower[i] = made[0] - made[1], upper[i] = made[0] + made[2];
        }
    }
}

typedef void Observe(const Run *, const double *, const double *, const double *, double *, double *, double *, double *);

#define COMPILE(name)                                                                                               \
    static void name(const Run *r, const double *y, const double *states, const double *extra, double *expected,    \
                     double *forecast, double *lower, double *upper) {                                              \
        observe(r, y, states, extra, expected, forecast, lower, upper);                                             \
    }

COMPILE(observe_anywhere)
#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
__attribute__((target("avx2,fma"))) COMPILE(observe_avx2)
static Observe *best_observe(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? observe_avx2 : observe_anywhere;
}
#else
static Observe *best_observe(void) { return observe_anywhere; }
#endif

/* The number of doubles of a stream of these sizes; 0 for invalid sizes. */
EXPORT int64_t forecast_size(const Setting *setting) {
    Layout layout;
    return lay_out(setting, &layout) ? layout.total : 0;
}

/* Prefetch the state of a stream while another is processed, since few of many streams stay in the caches. */
static void fetch(const Layout *l, const double *x) {
#ifdef __GNUC__
    __builtin_prefetch(x);
    for (int64_t i = l->residual; i < l->total; i += 8) __builtin_prefetch(x + i, 1, 2);
#else
    (void)l, (void)x;
#endif
}

/* Streams `rows` each observe one of `count` rows, in order; a stream may occur more than once. Only streams whose
 * number is `part` modulo `parts` are processed, so that several threads can share a
 * call. Returns 0, or an error code. */
EXPORT int64_t forecast_step(const Setting *setting, double *state, int64_t streams, int64_t width, const int64_t *rows,
                             int64_t count, const double *weights, const double *values, const double *states,
                             const double *extra, double *expected, double *forecast, double *lower, double *upper,
                             int64_t part, int64_t parts) {
    Layout layout;
    double k[WIDEST], z[WIDEST];
    if (!lay_out(setting, &layout) || layout.total != width || parts < 1) return 1;
    for (int64_t i = 0; i < count; i++)
        if (rows[i] < 0 || rows[i] >= streams) return 2;
    int64_t C = setting->columns, H = setting->horizon;
    for (int64_t i = 0; i < count; i++) {
        if (rows[i] % parts != part) continue;
        const double *x = state + rows[i] * width;
        if (!(x[layout.count] >= 0 && x[layout.count] < 9e15)) return 3; /* rows seen so far */
        for (int64_t c = 0; c < C; c++)
            if (!(x[layout.begun + c] >= 0 && x[layout.begun + c] <= x[layout.count])) return 3;
    }
    Observe *step = best_observe();
    for (int64_t i = 0; i < count; i++) {
        if (rows[i] % parts != part) continue;
        Run run = {setting, &layout, state + rows[i] * width, k, z, weights};
        int64_t next = i + 1;
        while (next < count && rows[next] % parts != part) next++;
        if (next < count && rows[next] != rows[i]) fetch(&layout, state + rows[next] * width);
        step(&run, values + i * C, states + i * setting->states, extra + i * setting->extra, expected + i * C,
             forecast + i * C * H, lower + i * C * H, upper + i * C * H);
        if (run.x[layout.count] == run.x[layout.look] && !look_for_seasons(&run)) return 4;
    }
    return 0;
}
