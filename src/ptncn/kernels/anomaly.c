/* How unusual one row of many streams is, without an interpreter: the twin of `ptncn.streaming.anomaly.reference`, which
 * explains the model. A stream's state is one row of doubles: COMMON numbers, then OWN numbers for each column. */
#include <math.h>
#include <stdint.h>

enum { COUNT, BAR, LEFT, THRESHOLD, ACTIVE, COMMON };
enum { SEEN, LARGEST, LEAST, MOST, USUAL, BURST, TAILS };
enum { QUANTILE, EXCESS, NUMBER, SPREAD, PARTS };
#define KINDS 4 /* point, burst, high, low */
#define OWN (TAILS + KINDS * PARTS)
#define LN10 2.302585092994046

typedef struct {
    int64_t columns, hold;
    double share, cap, memory, window, bulk, fade, burst_weight, rate, step, haste;
    int64_t events;
} Setting;

static inline double larger(double a, double b) { return a > b ? a : b; }
static inline double smaller(double a, double b) { return a < b ? a : b; }

/* How many nines x has: log10 of one over the chance to exceed it, by an exponential tail over a high quantile. The
 * quantile and the mean excess over it then follow x, which counts as at most eight excesses. */
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
    if (n > 31) x = smaller(x, tail[QUANTILE] + 8 * excess);
    tail[SPREAD] += larger(1 / n, 1 / s->bulk) * (fabs(x - tail[QUANTILE]) - tail[SPREAD]);
    double step = larger(4 / n, 8 / s->bulk) * larger(tail[SPREAD], 0.1 * least);
    if (x != tail[QUANTILE]) tail[QUANTILE] += step * (x > tail[QUANTILE] ? 1 - p : -p);
    if (x > tail[QUANTILE])
        tail[EXCESS] += larger(1 / (6 + p * n), 1 / (p * s->bulk)) * (x - tail[QUANTILE] - tail[EXCESS]);
    return found;
}

static double column(double *x, double y, double expected, const Setting *s) {
    if (y != y) return 0;
    double n = x[SEEN] += 1, error = expected == expected ? fabs(y - expected) : 0;
    if (n == 1) x[LEAST] = x[MOST] = y;
    x[LARGEST] = larger(x[LARGEST], fabs(y));
    double floor = 1e-9 * x[LARGEST] + 1e-300, usual = x[USUAL], range = x[MOST] - x[LEAST], near = 0.02 * range + floor;
    double surprise = n > 2 && error > floor ? smaller(error / larger(usual, floor), 1e6) : 0;
    double taken = n > 30 && usual > 0 ? smaller(error, s->cap * usual) : error;
    x[USUAL] += larger(1 / n, 1 / s->memory) * (taken - usual);
    x[BURST] += larger(1 / n, 1 / s->window) * (smaller(surprise, s->cap) - x[BURST]);
    double found = nines(x + TAILS, log1p(surprise), 0.15, s);
    double burst = s->burst_weight * nines(x + TAILS + PARTS, x[BURST], 0.05, s);
    double high = nines(x + TAILS + 2 * PARTS, y, near, s), low = nines(x + TAILS + 3 * PARTS, -y, near, s);
    double top = -log10(s->share); /* below the quantile, a high or low value is nothing unusual */
    if (!(surprise > 0)) found = burst = 0; /* what was expected is not unusual, unless as a value */
    found = larger(found, burst > s->burst_weight * top ? burst : 0);
    found = larger(found, high > top ? high : 0);
    found = larger(found, low > top ? low : 0);
    x[LEAST] = smaller(x[LEAST], y), x[MOST] = larger(x[MOST], y);
    return found;
}

static void row(double *x, const double *y, const double *expected, const Setting *s, double *out) {
    double found = 0, rate = s->rate;
    int64_t which = 0;
    for (int64_t c = 0; c < s->columns; c++) {
        double each = column(x + COMMON + c * OWN, y[c], expected[c], s);
        if (each > found) found = each, which = c;
    }
    found = larger(0, found - log10((double)s->columns));
    if (!x[COUNT]) x[THRESHOLD] = -log10(rate);
    x[COUNT] += 1;
    if (x[LEFT] > 0) x[LEFT] -= 1;
    else x[BAR] *= s->fade;
    double event = found > x[BAR] ? found : 0;
    if (event) x[BAR] = found, x[LEFT] = (double)s->hold;
    int over = found > 0 && found > x[THRESHOLD], alarm = over && !(s->events && x[ACTIVE] > 0);
    x[ACTIVE] = over ? floor(smaller((double)s->hold, 0.2 / rate)) : larger(0, x[ACTIVE] - 1);
    double move = alarm ? 1 - rate : over ? 3 * rate : -rate; /* an event that does not end must not lower the threshold */
    x[THRESHOLD] = larger(x[THRESHOLD] + (s->step + s->haste / rate) * move, 0.1);
    out[0] = event, out[1] = found, out[2] = (double)alarm, out[3] = (double)which;
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
        row(state + rows[i] * width, values + i * s->columns, expected + i * s->columns, s, out + i * 4);
    return 0;
}
