/* Formats rows of numbers with nine significant digits, byte for byte like printf("%.9g"). */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "export.h"

enum { LONGEST = 24 }; /* characters of a number */

static const double POWERS[] = {1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
    1e12};

static char *put_slowly(char *out, double x) {
    const int length = snprintf(out, LONGEST, "%.9g", x);
    char *comma = memchr(out, ',', (size_t)length); /* the decimal comma of some locales */
    if (comma) *comma = '.';
    return out + length;
}

static const char PAIRS[] =
    "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
    "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

/* The decimal exponent of a number from 1e-4 to 1e9: that of the power of two below it, log10(2) ≈ 1233 / 4096, or one
 * more. This and the next functions have few branches, because the digits of measurements are unpredictable. */
static int exponent_of(double a) {
    uint64_t bits;
    memcpy(&bits, &a, sizeof bits);
    const int two = (int)(bits >> 52) - 1023, least = (two * 1233 + (16 << 12)) / 4096 - 16;
    return least + (a >= POWERS[least + 5]);
}

/* Writes at most LONGEST characters from `out` on, possibly beyond the end of the number. */
static char *put(char *out, double x) {
    const double a = fabs(x);
    if (!(a >= 1e-4 && a < 999999999.0)) {
        if (x != 0.0) return put_slowly(out, x);
        if (signbit(x)) *out++ = '-';
        *out++ = '0';
        return out;
    }
    int exponent = exponent_of(a);
    const double scaled = a * POWERS[12 - exponent]; /* exact power; nine digits before the point */
    uint32_t digits = (uint32_t)scaled;
    const double rest = scaled - (double)digits;
    if (fabs(rest - 0.5) < 1e-6) return put_slowly(out, x); /* rounding the product could change the result */
    digits += rest > 0.5;
    if (digits == 1000000000) digits = 100000000, exponent++;
    char text[32] = "00000000"; /* as many of these zeros as needed go before the digits */
    const uint32_t high = digits / 10000, low = digits % 10000, middle = high % 10000;
    text[8] = (char)('0' + high / 10000);
    memcpy(text + 9, PAIRS + 2 * (middle / 100), 2), memcpy(text + 11, PAIRS + 2 * (middle % 100), 2);
    memcpy(text + 13, PAIRS + 2 * (low / 100), 2), memcpy(text + 15, PAIRS + 2 * (low % 100), 2);
    int count = 9;
    while (text[8 + count - 1] == '0') count--;
    *out = '-';
    out += signbit(x) != 0;
    const int zeros = exponent < 0 ? -exponent : 0, whole = exponent < 0 ? 1 : exponent + 1;
    const char *first = text + 8 - zeros;
    memcpy(out, first, 9);
    if (count + zeros <= whole) return out + whole;
    out[whole] = '.';
    memcpy(out + whole + 1, first + whole, 12);
    return out + count + zeros + 1;
}

static char *copy(char *out, const char *text, const int64_t *ends) {
    const int64_t length = ends[1] - ends[0];
    if (length == 1) *out = text[ends[0]];
    else memcpy(out, text + ends[0], (size_t)length);
    return out + length;
}

/* Write (rows, columns) numbers with `columns` − 1 texts between them, each row after its head and before its tail; NaN
 * is written as `nothing`. Texts follow one another in memory, and text i goes from ends[i] to ends[i + 1]. Returns the
 * number of bytes written, or −1 if `room` might not suffice. */
EXPORT int64_t format_rows(
    const double *values, int64_t rows, int64_t columns, const char *between, const int64_t *ends, const char *nothing,
    const char *heads, const int64_t *head_ends, const char *tails, const int64_t *tail_ends, char *out, int64_t room
) {
    const size_t empty = strlen(nothing);
    if (rows < 0 || columns < 1) return -1;
    const int64_t each = ends[columns - 1] + columns * (empty > LONGEST ? (int64_t)empty : LONGEST);
    const int64_t sides = head_ends[rows] - head_ends[0] + tail_ends[rows] - tail_ends[0];
    if (sides < 0 || room < sides || (room - sides) / each < rows) return -1;
    char *at = out;
    for (int64_t row = 0; row < rows; row++) {
        at = copy(at, heads, head_ends + row);
        for (int64_t i = 0; i < columns; i++) {
            const double x = values[row * columns + i];
            if (i) at = copy(at, between, ends + i - 1);
            if (x == x) {
                at = put(at, x);
            } else {
                memcpy(at, nothing, empty);
                at += empty;
            }
        }
        at = copy(at, tails, tail_ends + row);
    }
    return at - out;
}
