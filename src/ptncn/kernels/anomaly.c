/* Anomaly scores of many streams: the compiled form of `ptncn.streaming.anomaly_reference`, which describes the model.
 * A stream's state is one row of doubles: COMMON numbers, then OWN numbers for each column. */
#include <math.h>
#include <stdint.h>

#include "export.h"

#define PAST 6
enum { POINT, BURST_EVENT, HIGH, LOW, QUIET_EVENT, RANGE, EVENTS };
enum { BAR, LEFT, PAST_EVENTS, KEPT = PAST_EVENTS + PAST }; /* of each kind of event */
enum { COUNT, ALARM_BAR, ALARM_LEFT, THRESHOLD, ACTIVE, BUDGET, SINCE, ALARM, COMMON = ALARM + EVENTS * KEPT };
enum { SEEN, LARGEST, LEAST, MOST, USUAL, BURST, LEAN, LAST, MOVES, USUAL_MOVES, BUSY, LEVEL, BRIEF, MEAN, VARIANCE,
    TAILS };
enum { QUANTILE, EXCESS, NUMBER, SPREAD, PARTS };
enum { POINTS, BURSTS, LEANS, LEVEL_HIGH, LEVEL_LOW, BRIEF_HIGH, BRIEF_LOW, QUIET, KINDS };
#define OWN (TAILS + KINDS * PARTS)
#define LONG 2000.0
#define MOSTLY 0.5
#define EXPECTED 0.5
#define STIRRING 2.0
#define BEYOND 0.05
#define LEAST_EVENT 1.0
#define LEAST_PAST 2.0
#define PAST_STEP 0.5
#define FIRST_BUDGET 0.6
#define MOST_BUDGET 5.0
#define OVERDRAFT 0.3
#define MOST_OVERDRAFT 10.0
#define AGAIN 2.0
#define TOGETHER 20.0
#define MANY 10.0
#define HALF 3.0
#define LEAST_THRESHOLD 0.1
#define LN10 2.302585092994046

typedef struct {
    int64_t columns, hold;
    double share, cap, memory, window, quiet, level, brief, bulk, fade, worse, repeat, single;
    double level_weight, quiet_weight, rate, step, haste;
    int64_t events;
} Setting;

static inline double larger(double a, double b) { return a > b ? a : b; }
static inline double smaller(double a, double b) { return a < b ? a : b; }

/* The nines of x: log10 of one over the probability of exceeding it, by an exponential tail above a high quantile.
 * Quantile and mean excess are then updated with x, clipped at twenty mean excesses. */
static double nines(double *tail, double x, double least, const Setting *s) {
    double n = tail[NUMBER], excess = larger(tail[EXCESS], least), p = s->share, rarity = 0, at_quantile = -log10(p);
    if (n >= 30) {
        if (x > tail[QUANTILE]) rarity = at_quantile + (x - tail[QUANTILE]) / excess / LN10;
        else if (x > 0 && tail[QUANTILE] > 0) rarity = at_quantile * x / tail[QUANTILE];
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
    return rarity;
}

/* The excess over the quantile where the tail begins; values below are not unusual. */
static double tail_nines(double *x, int kind, double value, double least, const Setting *s) {
    double rarity = nines(x + TAILS + kind * PARTS, value, least, s);
    return rarity > -log10(s->share) ? rarity : 0;
}

static inline void follow(double *x, double value, double n, double rows) {
    *x += larger(1 / n, 1 / rows) * (value - *x);
}

/* Raises `rarities`, the nines of each kind of event, to those of a value; returns the distance of the level from the
 * mean of all values, relative to their spread. */
static double score_column(double *x, double y, double expected, const Setting *s, double *rarities) {
    double n = x[SEEN] += 1, deviation = expected == expected ? y - expected : 0, error = fabs(deviation);
    if (n == 1) x[LEAST] = x[MOST] = x[LAST] = x[LEVEL] = x[BRIEF] = x[MEAN] = y;
    x[LARGEST] = larger(x[LARGEST], fabs(y));
    double floor = 1e-9 * x[LARGEST] + 1e-300, usual = x[USUAL], range = x[MOST] - x[LEAST];
    double smallest = 0.01 * range + floor / 2;
    double moved = fabs(y - x[LAST]);
    int is_still = moved <= floor && x[BUSY] < MOSTLY;
    if (is_still && error * x[BUSY] <= EXPECTED * x[USUAL_MOVES]) error = 0;
    double surprise = n > 2 && error > floor ? smaller(error / larger(usual, floor), 1e6) : 0;
    double limited = n > 30 && usual > 0 ? smaller(error, s->cap * usual) : error;
    double capped = smaller(surprise, s->cap);
    follow(x + USUAL, limited, n, s->memory);
    follow(x + BURST, capped, n, s->window);
    follow(x + LEAN, copysign(capped, deviation), n, s->window);
    follow(x + MOVES, moved, n, s->quiet);
    follow(x + USUAL_MOVES, moved, n, LONG);
    follow(x + BUSY, moved > floor, n, LONG);
    follow(x + LEVEL, y, n, s->level);
    follow(x + BRIEF, y, n, s->brief);
    double outside = larger(y - x[MOST], x[LEAST] - y), beyond = 0;
    if (n > 30 && range > floor && outside > 0) /* of n rows, one is expected to be a record */
        beyond = larger(0, log10(smaller(n, s->bulk) * (outside / range) / BEYOND));
    int changes = x[USUAL_MOVES] > floor && x[BUSY] * s->quiet > STIRRING;
    double still = changes ? -log(larger(x[MOVES] / x[USUAL_MOVES], 1e-3)) : 0;
    double point = nines(x + TAILS, log1p(surprise), 0.15, s) - s->single;
    double burst = tail_nines(x, BURSTS, x[BURST], 0.05, s);
    burst = larger(burst, tail_nines(x, LEANS, fabs(x[LEAN]), 0.05, s));
    double high = tail_nines(x, LEVEL_HIGH, x[LEVEL], smallest, s);
    double low = tail_nines(x, LEVEL_LOW, -x[LEVEL], smallest, s);
    high = larger(high, tail_nines(x, BRIEF_HIGH, x[BRIEF], smallest, s));
    low = larger(low, tail_nines(x, BRIEF_LOW, -x[BRIEF], smallest, s));
    if (surprise > 0) /* a well predicted value can be unusual only in its level or range */
        rarities[POINT] = larger(rarities[POINT], point), rarities[BURST_EVENT] = larger(rarities[BURST_EVENT], burst);
    if (!is_still) {
        rarities[HIGH] = larger(rarities[HIGH], s->level_weight * high);
        rarities[LOW] = larger(rarities[LOW], s->level_weight * low);
    }
    rarities[QUIET_EVENT] = larger(rarities[QUIET_EVENT], s->quiet_weight * tail_nines(x, QUIET, still, 0.1, s));
    rarities[RANGE] = larger(rarities[RANGE], beyond);
    double spread = sqrt(x[VARIANCE]), offset = y - x[MEAN], rate = larger(1 / n, 1 / s->bulk);
    double novelty = n > 30 && spread > floor ? smaller(fabs(x[LEVEL] - x[MEAN]) / spread, 4) : 0;
    if (n > 30 && spread > 0) offset = smaller(larger(offset, -3 * spread), 3 * spread);
    x[MEAN] += rate * offset;
    x[VARIANCE] += rate * (offset * offset * (1 - rate) - x[VARIANCE]);
    x[LEAST] = smaller(x[LEAST], y), x[MOST] = larger(x[MOST], y), x[LAST] = y;
    return novelty;
}

static inline int64_t step_of(double nines) {
    double step = (nines - LEAST_PAST) / PAST_STEP;
    return step <= 0 ? 0 : step >= PAST - 1 ? PAST - 1 : (int64_t)step;
}

/* Whether an event starts or gets much worse; for `hold` rows after a peak, only a worse row counts. */
static inline int begins(double rarity, double bar, int continues, const Setting *s) {
    return rarity > LEAST_EVENT && rarity > bar * (continues ? 1 + s->worse : 1);
}

/* The score of an event, discounted by the number of earlier events of its kind that were as strong; 0 for none. */
static double weigh(double *kept, double rarity, double count, const Setting *s) {
    double *past = kept + PAST_EVENTS, as_strong = 0;
    int continues = kept[LEFT] > 0;
    for (int k = 0; k < PAST; k++) past[k] *= 1 - 1 / s->bulk;
    if (continues) kept[LEFT] -= 1;
    else kept[BAR] *= s->fade;
    if (!begins(rarity, kept[BAR], continues, s)) return 0;
    int64_t now = step_of(rarity), before = step_of(kept[BAR]);
    for (int64_t k = now; k < PAST; k++) as_strong += k == now ? past[k] / 2 : past[k];
    if (count > (double)s->hold) {
        if (continues) past[before] = larger(0, past[before] - 1);
        past[now] += 1;
    }
    kept[BAR] = rarity, kept[LEFT] = (double)s->hold;
    return larger(1e-9, rarity - s->repeat * log10(1 + as_strong));
}

static void score_row(double *x, const double *y, const double *expected, const Setting *s, double *out) {
    double rarest = 0, event = 0, rate = s->rate, novelty = 0, rarities[EVENTS] = {0}, largest = 0;
    int64_t cause = 0, known = 0;
    for (int64_t c = 0; c < s->columns; c++) {
        if (y[c] != y[c]) continue;
        novelty += score_column(x + COMMON + c * OWN, y[c], expected[c], s, rarities), known++;
        for (int k = 0; k < EVENTS; k++)
            if (rarities[k] > largest) largest = rarities[k], cause = c;
    }
    if (!x[COUNT]) x[THRESHOLD] = -log10(rate), x[BUDGET] = FIRST_BUDGET;
    x[COUNT] += 1;
    for (int k = 0; k < EVENTS; k++) {
        double rarity = larger(0, rarities[k] - log10((double)s->columns));
        if (rarity > MANY) rarity = MANY * (1 + log(rarity / MANY));
        rarest = larger(rarest, rarity);
        event = larger(event, weigh(x + ALARM + k * KEPT, rarity, x[COUNT], s));
    }
    int continues = x[ALARM_LEFT] > 0;
    if (continues) x[ALARM_LEFT] -= 1;
    else x[ALARM_BAR] *= s->fade;
    double peak = larger(s->events ? x[ALARM_BAR] : 0, x[THRESHOLD]);
    if (event > x[ALARM_BAR] * (continues ? 1 + s->worse : 1)) x[ALARM_BAR] = event, x[ALARM_LEFT] = (double)s->hold;
    else event = 0;
    /* alarms follow the published score: rows that do not start an event rank below all that do */
    double score = s->events ? larger(event, rarest / (rarest + HALF)) : rarest;
    double overdraft = smaller(MOST_OVERDRAFT, OVERDRAFT * rate * x[COUNT]);
    x[BUDGET] = smaller(x[BUDGET] + rate, MOST_BUDGET);
    x[SINCE] += 1;
    int is_high = score > 0 && score > x[THRESHOLD], same_event = s->events && x[ACTIVE] > 0 && x[SINCE] * rate < 1;
    int alarm = is_high && (!same_event || score > AGAIN * peak) && x[BUDGET] >= 1 - overdraft;
    x[ACTIVE] = is_high ? floor(smaller(TOGETHER, 0.2 / rate)) : larger(0, x[ACTIVE] - 1);
    if (alarm) x[BUDGET] -= 1, x[SINCE] = 0;
    /* a lasting event must not lower the threshold; while alarms are due, it falls faster */
    double move = alarm ? (1 - rate) * larger(1, 1 - x[BUDGET])
        : is_high ? 4 * rate : -rate * larger(1, 2 * x[BUDGET] - 1);
    x[THRESHOLD] = larger(x[THRESHOLD] + (s->step + s->haste / rate) * move, LEAST_THRESHOLD);
    out[0] = event, out[1] = rarest, out[2] = (double)alarm, out[3] = (double)cause;
    out[4] = known ? novelty / (double)known : 0;
}

EXPORT int64_t anomaly_size(const Setting *s) {
    return s->columns < 1 || s->columns > 1 << 20 || s->hold < 0 ? 0 : COMMON + s->columns * OWN;
}

/* Score one row for each of the `count` streams `rows` of `state` (streams, width); returns 0 or an error code. */
EXPORT int64_t anomaly_step(const Setting *s, double *state, int64_t streams, int64_t width, const int64_t *rows,
                            int64_t count, const double *values, const double *expected, double *out) {
    if (!anomaly_size(s) || anomaly_size(s) != width) return 1;
    for (int64_t i = 0; i < count; i++)
        if (rows[i] < 0 || rows[i] >= streams) return 2;
    for (int64_t i = 0; i < count; i++)
        score_row(state + rows[i] * width, values + i * s->columns, expected + i * s->columns, s, out + i * 5);
    return 0;
}
