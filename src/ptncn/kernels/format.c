/* Rows of numbers as text, each with nine significant digits: byte for byte what printf("%.9g") gives. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "export.h"

enum { LONGEST = 24 }; /* characters of a number */

static const double POWERS[] = {1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12};

static char *put_slowly(char *out, double x) {
    const int length = snprintf(out, LONGEST, "%.9g", x);
    char *comma = memchr(out, ',', (size_t)length); /* the decimal comma of some locales */
    if (comma) *comma = '.';
    return out + length;
}

static char *put(char *out, double x) {
    const double a = fabs(x);
    if (x == 0.0) {
        if (signbit(x)) *out++ = '-';
        *out++ = '0';
        return out;
    }
    if (!(a >= 1e-4 && a < 999999999.0)) return put_slowly(out, x);
    int exponent = 8;
    while (a < POWERS[exponent + 4]) exponent--;
    const double scaled = a * POWERS[12 - exponent]; /* by an exact power of ten, to nine digits before the point */
    uint64_t digits = (uint64_t)scaled;
    const double rest = scaled - (double)digits;
    if (fabs(rest - 0.5) < 1e-6) return put_slowly(out, x); /* rounding of the product could change the result */
    digits += rest > 0.5;
    if (digits == 1000000000) digits = 100000000, exponent++;
    int count = 9;
    while (digits % 10 == 0) digits /= 10, count--;
    char text[9];
    for (int i = count - 1; i >= 0; i--) text[i] = (char)('0' + digits % 10), digits /= 10;
    if (signbit(x)) *out++ = '-';
    if (exponent < 0) {
        *out++ = '0', *out++ = '.';
        for (int i = exponent + 1; i < 0; i++) *out++ = '0';
        memcpy(out, text, (size_t)count);
        return out + count;
    }
    for (int i = 0; i <= exponent; i++) *out++ = i < count ? text[i] : '0';
    if (count > exponent + 1) {
        *out++ = '.';
        memcpy(out, text + exponent + 1, (size_t)(count - exponent - 1));
        out += count - exponent - 1;
    }
    return out;
}

/* (rows, columns) numbers, a line for each row, with `columns` − 1 texts between them, which end at `ends`; NaN is
 * written as `nothing`. Returns the number of bytes written, or −1 if `room` might not suffice. */
EXPORT int64_t format_rows(
    const double *values, int64_t rows, int64_t columns, const char *between, const int64_t *ends, const char *nothing,
    char *out, int64_t room
) {
    const size_t empty = strlen(nothing);
    const int64_t most = columns > 1 ? ends[columns - 2] : 0, each = empty > LONGEST ? (int64_t)empty : LONGEST;
    if (rows < 0 || columns < 1 || room / (most + columns * each + 1) < rows) return -1;
    char *at = out;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < columns; i++) {
            const double x = values[row * columns + i];
            if (i) {
                const int64_t begin = i > 1 ? ends[i - 2] : 0, length = ends[i - 1] - begin;
                memcpy(at, between + begin, (size_t)length);
                at += length;
            }
            if (x == x) {
                at = put(at, x);
            } else {
                memcpy(at, nothing, empty);
                at += empty;
            }
        }
        *at++ = '\n';
    }
    return at - out;
}
