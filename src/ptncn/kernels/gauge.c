/* The compiled form of `ptncn.streaming.gauge`, which explains the numbers. For each row of many streams it computes
 * the surprise relative to the usual errors, and the values as changes and levels in scaled units. A stream's state is
 * one row of doubles: the number of rows; for each target the usual squared error, the last value judged and the last
 * value scaled; for each of the 2 C inputs its mean, scale and count; for each target the long-term mean squared error.
 * Rows are processed in order. */
#include <math.h>
#include <stdint.h>

#include "export.h"

#define MEMORY 500.0
#define TRUST 9.0
#define WARM_UP 32.0
#define INPUT_MEMORY 2000.0
#define FAR 6.0
#define LONG 5000.0
#define SHARE 1e-7
#define MOST 1e8
#define LEAST 1e-200

static double larger(double a, double b) { return a > b || isnan(b) ? a : b; }
static double smaller(double a, double b) { return a < b ? a : b; }

/* out: the surprise; the mean squared errors of the prediction and of copying, relative to the usual ones; whether
 * the warm-up is over; the surprise of each of the C targets */
static void judge(double *state, int64_t C, const double *y, const double *p, double *out) {
    double *usual = state + 1, *last = usual + C, *long_term = state + 1 + 9 * C, total = 0.0, error = 0.0;
    double copy_error = 0.0;
    int64_t known = 0;
    for (int64_t c = 0; c < C; c++) known += !isnan(p[c] - y[c]);
    double count = state[0] + (known > 0), rate = 1.0 / smaller(count + 1.0, MEMORY);
    for (int64_t c = 0; c < C; c++) {
        double square = (p[c] - y[c]) * (p[c] - y[c]), copy = (last[c] - y[c]) * (last[c] - y[c]);
        out[4 + c] = known ? 0.0 : NAN;
        if (isnan(square)) continue;
        double smallest = 1e-9 * larger(fabs(y[c]), fabs(last[c])), floor = smallest * smallest + LEAST;
        long_term[c] += (square - long_term[c]) / smaller(count + 1.0, LONG);
        double scale = larger(usual[c] < 0.0 ? larger(square, copy) : usual[c], floor);
        double ratio = square > floor ? smaller(square / scale, MOST) : 0.0;
        total += ratio, error += square / scale, copy_error += copy / scale;
        out[4 + c] = 0.5 * ratio;
        usual[c] = larger(scale + rate * (smaller(square, TRUST * scale) - scale), SHARE * long_term[c]);
    }
    for (int64_t c = 0; c < C; c++)
        if (!isnan(y[c])) last[c] = y[c];
    state[0] = count;
    out[0] = known ? 0.5 * total * (double)C / (double)known : NAN;
    out[1] = known ? error / (double)known : NAN, out[2] = known ? copy_error / (double)known : NAN;
    out[3] = known > 0 && count > WARM_UP;
}

static void scale_input(double value, double *mean, double *scale, double *count, float *input) {
    *input = NAN;
    if (isnan(value)) return;
    double deviation = (value - *mean) / *scale, rate = 1.0 / smaller(*count + 1.0, INPUT_MEMORY), before = *mean;
    deviation = deviation > FAR ? FAR : deviation < -FAR ? -FAR : deviation;
    *input = *count < 1.0 ? 0.0f : (float)deviation;
    if (*count < 1.0) {
        *mean = value;
    } else {
        *mean += rate * *scale * deviation;
        *scale *= sqrt(1.0 + rate * (deviation * deviation - 1.0));
    }
    if (*count <= 1.0) *scale = larger(fabs(value - before), 1e-9 * fabs(value) + 1e-100);
    *scale = larger(*scale, 1e-6 * fabs(before) + 1e-100);
    *count += 1.0;
}

static int64_t gauge_width(int64_t C) { return 1 + 10 * C; }

static int out_of_range(const int64_t *rows, int64_t count, int64_t streams) {
    for (int64_t i = 0; i < count; i++)
        if (rows[i] < 0 || rows[i] >= streams) return 1;
    return 0;
}

/* The next two functions return 0, or 1 if a row is outside the state. */
EXPORT int64_t gauge_judge(double *state, int64_t streams, int64_t C, const int64_t *rows, int64_t count,
                           const double *y, const double *p, double *out) {
    if (out_of_range(rows, count, streams)) return 1;
    for (int64_t i = 0; i < count; i++)
        judge(state + rows[i] * gauge_width(C), C, y + i * C, p + i * C, out + i * (4 + C));
    return 0;
}

EXPORT int64_t gauge_scale(double *state, int64_t streams, int64_t C, const int64_t *rows, int64_t count,
                           const double *y, float *inputs) {
    if (out_of_range(rows, count, streams)) return 1;
    for (int64_t i = 0; i < count; i++) {
        double *last = state + rows[i] * gauge_width(C) + 1 + 2 * C, *mean = last + C;
        double *scale = mean + 2 * C, *seen = scale + 2 * C;
        const double *values = y + i * C;
        float *change = inputs + i * 2 * C, *level = change + C;
        for (int64_t c = 0; c < C; c++) {
            scale_input(values[c] - last[c], mean + c, scale + c, seen + c, change + c);
            scale_input(values[c], mean + C + c, scale + C + c, seen + C + c, level + c);
            if (!isnan(values[c])) last[c] = values[c];
        }
    }
    return 0;
}
