/* How unusual one row of many streams is: the compiled form of `ptncn.streaming.anomaly.reference`, which explains the
 * model. A stream's state is one row of doubles: COMMON numbers, then OWN numbers for each column. */
#include <math.h>
#include <stdint.h>

#define PAST 16
enum { COUNT, BAR, LEFT, THRESHOLD, ACTIVE, BUDGET, SINCE, EVENTS, COMMON = EVENTS + PAST };
enum { SEEN, LARGEST, LEAST, MOST, USUAL, BURST, LAST, MOVES, USUAL_MOVES, LEVEL, MEAN, VARIANCE, TAILS };
enum { QUANTILE, EXCESS, NUMBER, SPREAD, PARTS };
enum { POINT, BURSTS, LEVEL_HIGH, LEVEL_LOW, QUIET, KINDS };
#define OWN (TAILS + KINDS * PARTS)
#define LONG 2000.0
#define BEYOND 0.05
#define BEYOND_NINES 3.5
#define LEAST_PAST 2.0
#define PAST_STEP 0.25
#define FIRST_BUDGET 0.6
#define MOST_BUDGET 5.0
#define OVERDRAFT 0.3
#define MOST_OVERDRAFT 10.0
#define SEVERE 1.0
#define AGAIN 2.0
#define TOGETHER 20.0
#define MANY 10.0
#define LN10 2.302585092994046

typedef struct {
    int64_t columns, hold;
    double share, cap, memory, window, quiet, level, bulk, fade, worse, repeat, level_weight, quiet_weight, rate, step, haste, spend;
    int64_t events;
} Setting;

static inline double larger(double a, double b) { return a > b ? a : b; }
static inline double smaller(double a, double b) { return a < b ? a : b; }

/* How many nines x has: log10 of one over the chance to exceed it, by an exponential tail over a high quantile. The
 * quantile and the mean excess over it then follow x, which counts as at most twenty excesses. */
static double nines(double *tail, double x, double least, const Setting *s) {
    double n = tail[NUMBER], excess = larger(tail[EXCESS], least), p = s->share, found = 0, top = -log10(p);
    if (n >= 30) {
        if (x > tail[QUANTILE]) found = top + (x - tail[QUANTILE]) / excess / LN10;
        else if (x > 0 && tail[QUANTILE] > 0) found = top * x / tail[QUANTILE];
    }
    n = tail[NUMBER] += 1;
    if (n == 1) {
        tail[QUANTILE] = x;
        return 0;
    }
    if (n > 31) x = smaller(x, tail[QUANTILE] + 20 * excess);
    tail[SPREAD] += larger(1 / n, 1 / s->bulk) * (fabs(x - tail[QUANTILE]) - tail[SPREAD]);
    double step = larger(4 / n, 8 / s->bulk) * larger(tail[SPREAD], 0.1 * least);
    if (x != tail[QUANTILE]) tail[QUANTILE] += step * (x > tail[QUANTILE] ? 1 - p : -p);
    if (x > tail[QUANTILE])
        tail[EXCESS] += larger(1 / (6 + p * n), 1 / (p * s->bulk)) * (x - tail[QUANTILE] - tail[EXCESS]);
    return found;
}

/* The excess over the quantile where the tail begins; anything below is not unusual. */
static double tail(double *x, int kind, double value, double least, const Setting *s) {
    double found = nines(x + TAILS + kind * PARTS, value, least, s);
    return found > -log10(s->share) ? found : 0;
}

/* How many nines a value has; `novelty` is how far the level is from the mean of all values, in their spread. */
static double column(double *x, double y, double expected, const Setting *s, double *novelty) {
    double n = x[SEEN] += 1, error = expected == expected ? fabs(y - expected) : 0;
    if (n == 1) x[LEAST] = x[MOST] = x[LAST] = x[LEVEL] = x[MEAN] = y;
    x[LARGEST] = larger(x[LARGEST], fabs(y));
    double floor = 1e-9 * x[LARGEST] + 1e-300, usual = x[USUAL], range = x[MOST] - x[LEAST], near = 0.01 * range + floor / 2;
    double surprise = n > 2 && error > floor ? smaller(error / larger(usual, floor), 1e6) : 0;
    double taken = n > 30 && usual > 0 ? smaller(error, s->cap * usual) : error, moved = fabs(y - x[LAST]);
    x[USUAL] += larger(1 / n, 1 / s->memory) * (taken - usual);
    x[BURST] += larger(1 / n, 1 / s->window) * (smaller(surprise, s->cap) - x[BURST]);
    x[MOVES] += larger(1 / n, 1 / s->quiet) * (moved - x[MOVES]);
    x[USUAL_MOVES] += larger(1 / n, 1 / LONG) * (moved - x[USUAL_MOVES]);
    x[LEVEL] += larger(1 / n, 1 / s->level) * (y - x[LEVEL]);
    double outside = larger(y - x[MOST], x[LEAST] - y), beyond = 0;
    if (n > 30 && range > floor && outside > 0) beyond = larger(0, BEYOND_NINES + log10(outside / range / BEYOND));
    double still = x[USUAL_MOVES] > floor ? -log(larger(x[MOVES] / x[USUAL_MOVES], 1e-3)) : 0;
    double found = nines(x + TAILS, log1p(surprise), 0.15, s), burst = tail(x, BURSTS, x[BURST], 0.05, s);
    found = surprise > 0 ? larger(found, burst) : 0; /* what was expected is not unusual, unless as a value */
    found = larger(found, beyond);
    found = larger(found, s->level_weight * tail(x, LEVEL_HIGH, x[LEVEL], near, s));
    found = larger(found, s->level_weight * tail(x, LEVEL_LOW, -x[LEVEL], near, s));
    found = larger(found, s->quiet_weight * tail(x, QUIET, still, 0.1, s));
    double spread = sqrt(x[VARIANCE]), off = y - x[MEAN], rate = larger(1 / n, 1 / s->bulk);
    *novelty = n > 30 && spread > floor ? smaller(fabs(x[LEVEL] - x[MEAN]) / spread, 4) : 0;
    if (n > 30 && spread > 0) off = smaller(larger(off, -3 * spread), 3 * spread);
    x[MEAN] += rate * off;
    x[VARIANCE] += rate * (off * off * (1 - rate) - x[VARIANCE]);
    x[LEAST] = smaller(x[LEAST], y), x[MOST] = larger(x[MOST], y), x[LAST] = y;
    return found;
}

static inline int64_t step_of(double nines) {
    double step = (nines - LEAST_PAST) / PAST_STEP;
    return step <= 0 ? 0 : step >= PAST - 1 ? PAST - 1 : (int64_t)step;
}

/* The score of an event, discounted by the number `repeated` of earlier events that were as strong. */
static double weigh_event(double *x, double found, int same, const Setting *s) {
    double *past = x + EVENTS, repeated = 0;
    int64_t now = step_of(found), before = step_of(x[BAR]);
    for (int64_t k = now; k < PAST; k++) repeated += k == now ? past[k] / 2 : past[k];
    if (x[COUNT] > (double)s->hold) {
        if (same) past[before] = larger(0, past[before] - 1);
        past[now] += 1;
    }
    return larger(1e-9, found - s->repeat * log10(1 + repeated));
}

static void row(double *x, const double *y, const double *expected, const Setting *s, double *out) {
    double found = 0, rate = s->rate, novelty = 0, each;
    int64_t which = 0, known = 0;
    for (int64_t c = 0; c < s->columns; c++) {
        if (y[c] != y[c]) continue;
        double nines = column(x + COMMON + c * OWN, y[c], expected[c], s, &each);
        if (nines > found) found = nines, which = c;
        novelty += each, known++;
    }
    found = larger(0, found - log10((double)s->columns));
    if (found > MANY) found = MANY * (1 + log(found / MANY));
    if (!x[COUNT]) x[THRESHOLD] = -log10(rate), x[BUDGET] = FIRST_BUDGET;
    x[COUNT] += 1;
    for (int k = 0; k < PAST; k++) x[EVENTS + k] *= 1 - 1 / s->bulk;
    int lasts = x[LEFT] > 0;
    if (lasts) x[LEFT] -= 1;
    else x[BAR] *= s->fade;
    double peak = larger(s->events ? x[BAR] : 0, x[THRESHOLD]);
    double event = found > x[BAR] * (lasts ? 1 + s->worse : 1) ? weigh_event(x, found, lasts, s) : 0;
    double overdraft = smaller(MOST_OVERDRAFT, OVERDRAFT * rate * x[COUNT]);
    if (event) x[BAR] = found, x[LEFT] = (double)s->hold;
    x[BUDGET] = smaller(x[BUDGET] + s->spend * rate, MOST_BUDGET);
    x[SINCE] += 1;
    int over = found > 0 && found > x[THRESHOLD], same = s->events && x[ACTIVE] > 0 && x[SINCE] * rate < 1;
    int worse = found > peak + SEVERE, alarm = over && (!same || found > peak + AGAIN) && x[BUDGET] >= 1 - (worse ? overdraft : 0);
    x[ACTIVE] = over ? floor(smaller(TOGETHER, 0.2 / rate)) : larger(0, x[ACTIVE] - 1);
    if (alarm) x[BUDGET] -= 1, x[SINCE] = 0;
    /* an event that does not end must not lower the threshold; where alarms are too rare, it falls faster */
    double move = alarm ? 1 - rate : over ? 4 * rate : -rate * larger(1, 2 * x[BUDGET] - 1);
    x[THRESHOLD] = larger(x[THRESHOLD] + (s->step + s->haste / rate) * move, 0.1);
    out[0] = event, out[1] = found, out[2] = (double)alarm, out[3] = (double)which;
    out[4] = known ? novelty / (double)known : 0;
}

int64_t anomaly_size(const Setting *s) {
    return s->columns < 1 || s->columns > 1 << 20 || s->hold < 0 ? 0 : COMMON + s->columns * OWN;
}

/* Streams `rows` (count of them) of `state` (streams, width) each see one row; 0, or what was wrong. */
int anomaly_step(const Setting *s, double *state, int64_t streams, int64_t width, const int64_t *rows, int64_t count,
                 const double *values, const double *expected, double *out) {
    if (!anomaly_size(s) || anomaly_size(s) != width) return 1;
    for (int64_t i = 0; i < count; i++)
        if (rows[i] < 0 || rows[i] >= streams) return 2;
    for (int64_t i = 0; i < count; i++)
        row(state + rows[i] * width, values + i * s->columns, expected + i * s->columns, s, out + i * 5);
    return 0;
}
