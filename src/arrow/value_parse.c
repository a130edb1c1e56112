// SPDX-License-Identifier: Apache-2.0
// Leaf values from text. Strict: what is not wholly a value of the type is an error, nothing is rounded or cut.
#include "arrow/value_internal.h"

#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum mink_code arrow_bad_value(const struct arrow_field *f, const char *text, size_t size, const char *why, struct error *e) {
    char type[64], shown[64];
    int cut = size > 48 ? 48 : (int)size;
    while (cut > 0 && cut < (int)size && ((uint8_t)text[cut] & 0xc0) == 0x80) cut--; // not inside a character
    snprintf(shown, sizeof shown, "%.*s%s", cut, text, (size_t)cut < size ? "…" : "");
    arrow_field_describe(f, type, sizeof type);
    error_set(e, MINK_INVALID, "BAD_VALUE", "column %.60s: \"%s\" is not a%s %s%s%s", f->name, shown, type[0] == 'i' ? "n" : "", type, why ? ": " : "", why ? why : "");
    error_about(e, f->name, type, shown);
    return MINK_INVALID;
}

bool arrow_int_fits(enum arrow_type type, __int128 v) {
    switch (type) {
    case ARROW_INT8: return v >= INT8_MIN && v <= INT8_MAX;
    case ARROW_INT16: return v >= INT16_MIN && v <= INT16_MAX;
    case ARROW_INT32:
    case ARROW_DATE32:
    case ARROW_TIME32: return v >= INT32_MIN && v <= INT32_MAX;
    case ARROW_UINT8: return v >= 0 && v <= UINT8_MAX;
    case ARROW_UINT16: return v >= 0 && v <= UINT16_MAX;
    case ARROW_UINT32: return v >= 0 && v <= UINT32_MAX;
    case ARROW_UINT64: return v >= 0 && v <= (__int128)UINT64_MAX;
    default: return v >= INT64_MIN && v <= INT64_MAX;
    }
}

bool arrow_decimal_fits(const struct arrow_field *f, __int128 v) {
    __int128 limit = 1;
    for (int32_t i = 0; i < f->precision; i++) limit *= 10;
    return v > -limit && v < limit;
}

struct cursor { const char *at, *end; };

static bool take_char(struct cursor *c, char wanted) {
    if (c->at == c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

// Between min and max digits.
static bool take_digits(struct cursor *c, int min, int max, int64_t *out) {
    int n = 0;
    *out = 0;
    for (; c->at < c->end && n < max && isdigit((unsigned char)*c->at); n++) *out = *out * 10 + (*c->at++ - '0');
    return n >= min;
}

// Digits with an optional point and exponent, as an integer scaled by 10^scale; false when it is none or would lose digits.
static bool parse_scaled(const char *text, size_t size, int32_t scale, __int128 *out, const char **why) {
    struct cursor c = {text, text + size};
    bool negative = take_char(&c, '-'), point = false;
    if (!negative) take_char(&c, '+');
    __int128 v = 0;
    int32_t digits = 0, fraction = 0, zeros = 0; // zeros: held back, since trailing ones lose nothing
    for (; c.at < c.end && (isdigit((unsigned char)*c.at) || (*c.at == '.' && !point)); c.at++) {
        if (*c.at == '.') {
            point = true;
            continue;
        }
        digits++;
        if (*c.at == '0' && point) {
            zeros++;
            continue;
        }
        for (int32_t i = 0; i < zeros + 1; i++) {
            if (__builtin_mul_overflow(v, (__int128)10, &v)) return *why = "too many digits", false;
        }
        fraction += point ? zeros + 1 : 0;
        zeros = 0;
        if (__builtin_add_overflow(v, (__int128)(*c.at - '0'), &v)) return *why = "too many digits", false;
    }
    if (digits == 0) return false;
    int64_t exponent = 0;
    if (c.at < c.end && (*c.at == 'e' || *c.at == 'E')) {
        c.at++;
        bool minus = take_char(&c, '-');
        if (!minus) take_char(&c, '+');
        if (!take_digits(&c, 1, 4, &exponent)) return false;
        if (minus) exponent = -exponent;
    }
    if (c.at != c.end) return false;
    int64_t shift = scale - fraction + exponent;
    if (v == 0) shift = 0;
    for (; shift > 0; shift--) {
        if (__builtin_mul_overflow(v, (__int128)10, &v)) return *why = "too many digits", false;
    }
    for (; shift < 0; shift++) {
        if (v % 10 != 0) return *why = "more fractional digits than the column has", false;
        v /= 10;
    }
    *out = negative ? -v : v;
    return true;
}

// Days since 1970-01-01 in the proleptic Gregorian calendar. Years are counted from March, so that the leap day is a year's last.
static int64_t days_of(int64_t year, int64_t month, int64_t day) {
    int64_t y = month <= 2 ? year - 1 : year, era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;
    int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool take_date(struct cursor *c, int64_t *days) {
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t year, month, day;
    bool negative = take_char(c, '-');
    if (!take_digits(c, 4, 6, &year) || !take_char(c, '-') || !take_digits(c, 1, 2, &month) || !take_char(c, '-') || !take_digits(c, 1, 2, &day)) return false;
    if (negative) year = -year;
    if (month < 1 || month > 12 || day < 1) return false;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (day > lengths[month - 1] + (month == 2 && leap)) return false;
    *days = days_of(year, month, day);
    return true;
}

static const int64_t per_second[] = {1, 1000, 1000000, 1000000000};

// Since midnight, in the unit. More fractional digits than the unit has must be zeros.
static bool take_time(struct cursor *c, enum arrow_unit unit, int64_t *out) {
    int64_t hour, minute, second = 0, fraction = 0;
    if (!take_digits(c, 1, 2, &hour) || !take_char(c, ':') || !take_digits(c, 2, 2, &minute)) return false;
    if (take_char(c, ':')) {
        if (!take_digits(c, 2, 2, &second)) return false;
        if (take_char(c, '.') || take_char(c, ',')) {
            const char *begin = c->at;
            int64_t nanos;
            if (!take_digits(c, 1, 9, &nanos)) return false;
            for (long i = c->at - begin; i < 9; i++) nanos *= 10;
            int64_t step = 1000000000 / per_second[unit];
            if (nanos % step != 0) return false;
            fraction = nanos / step;
        }
    }
    if (hour > 23 || minute > 59 || second > 59) return false;
    *out = (hour * 3600 + minute * 60 + second) * per_second[unit] + fraction;
    return true;
}

// Z, or +hh:mm, +hhmm, +hh: seconds east of UTC.
static bool take_zone(struct cursor *c, int64_t *seconds) {
    int64_t hours, minutes = 0;
    *seconds = 0;
    if (take_char(c, 'Z') || take_char(c, 'z')) return true;
    bool negative = take_char(c, '-');
    if (!negative && !take_char(c, '+')) return false;
    if (!take_digits(c, 2, 2, &hours)) return false;
    if (take_char(c, ':') ? !take_digits(c, 2, 2, &minutes) : (c->at != c->end && !take_digits(c, 2, 2, &minutes))) return false;
    if (hours > 23 || minutes > 59) return false;
    *seconds = (hours * 3600 + minutes * 60) * (negative ? -1 : 1);
    return true;
}

static bool parse_timestamp(const struct arrow_field *f, const char *text, size_t size, int64_t *out, const char **why) {
    struct cursor c = {text, text + size};
    int64_t days, time = 0, east = 0;
    if (!take_date(&c, &days)) return false;
    if (c.at < c.end && (take_char(&c, ' ') || take_char(&c, 'T') || take_char(&c, 't'))) {
        if (!take_time(&c, f->unit, &time)) return false;
        if (c.at < c.end && *c.at == ' ') c.at++;
        if (c.at < c.end) {
            if (f->timezone == NULL) return *why = "the column has no time zone", false;
            if (!take_zone(&c, &east)) return false;
        }
    }
    if (c.at != c.end) return false;
    __int128 v = ((__int128)days * 86400 - east) * per_second[f->unit] + time;
    *out = (int64_t)v;
    if (!arrow_int_fits(ARROW_INT64, v)) return *why = "out of range", false;
    return true;
}

static bool parse_bool(const char *text, size_t size, int64_t *out) {
    static const char *const words[2][4] = {{"false", "f", "0", "no"}, {"true", "t", "1", "yes"}};
    for (int v = 0; v < 2; v++) {
        for (int i = 0; i < 4; i++) {
            if (strlen(words[v][i]) == size && strncasecmp(words[v][i], text, size) == 0) return *out = v, true;
        }
    }
    return false;
}

static bool parse_real(const char *text, size_t size, double *out) {
    char copy[512];
    char *end;
    if (size == 0 || size >= sizeof copy || isspace((unsigned char)text[0]) || memchr(text, 'x', size) || memchr(text, 'X', size)) return false;
    memcpy(copy, text, size);
    copy[size] = 0;
    *out = strtod(copy, &end);
    return end == copy + size;
}

static int hex_digit(char c) { return isdigit((unsigned char)c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; }

static bool parse_hex(const char *text, size_t size, struct arrow_value *out) {
    if (size >= 2 && (memcmp(text, "0x", 2) == 0 || memcmp(text, "\\x", 2) == 0)) {
        text += 2;
        size -= 2;
    }
    if (size % 2 != 0) return false;
    uint8_t *bytes = mem_alloc(size / 2);
    for (size_t i = 0; i < size / 2; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0) {
            mem_free(bytes);
            return false;
        }
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    out->owned = bytes;
    out->bytes = bytes;
    out->size = size / 2;
    return true;
}

enum mink_code arrow_value_parse(const struct arrow_field *f, const char *text, size_t size, struct arrow_value *out, struct error *e) {
    const char *why = NULL;
    struct cursor c = {text, text + size};
    __int128 scaled = 0;
    bool fine = false;
    *out = (struct arrow_value){0};
    switch (f->type) {
    case ARROW_BOOL: fine = parse_bool(text, size, &out->i); break;
    case ARROW_INT8:
    case ARROW_INT16:
    case ARROW_INT32:
    case ARROW_INT64:
    case ARROW_UINT8:
    case ARROW_UINT16:
    case ARROW_UINT32:
    case ARROW_UINT64:
    case ARROW_DURATION:
        fine = !memchr(text, '.', size) && parse_scaled(text, size, 0, &scaled, &why);
        if (fine && !arrow_int_fits(f->type, scaled)) why = "out of range", fine = false;
        out->i = (int64_t)scaled;
        break;
    case ARROW_FLOAT16:
    case ARROW_FLOAT32:
    case ARROW_FLOAT64: fine = parse_real(text, size, &out->d); break;
    case ARROW_DECIMAL128:
        fine = parse_scaled(text, size, f->scale, &out->decimal, &why);
        if (fine && !arrow_decimal_fits(f, out->decimal)) why = "out of range", fine = false;
        break;
    case ARROW_DATE32:
    case ARROW_DATE64:
        fine = take_date(&c, &out->i) && c.at == c.end;
        if (f->type == ARROW_DATE64) out->i *= 86400000;
        break;
    case ARROW_TIME32:
    case ARROW_TIME64: fine = take_time(&c, f->unit, &out->i) && c.at == c.end; break;
    case ARROW_TIMESTAMP: fine = parse_timestamp(f, text, size, &out->i, &why); break;
    case ARROW_UTF8:
    case ARROW_LARGE_UTF8:
        out->bytes = (const uint8_t *)text;
        out->size = size;
        fine = utf8_valid(out->bytes, size);
        if (!fine) return arrow_bad_value(f, "", 0, "invalid UTF-8", e);
        break;
    case ARROW_BINARY:
    case ARROW_LARGE_BINARY:
    case ARROW_FIXED_BINARY:
        fine = parse_hex(text, size, out);
        if (!fine) why = "hexadecimal digits are expected";
        if (fine && f->type == ARROW_FIXED_BINARY && out->size != (size_t)f->width) {
            mem_free(out->owned);
            fine = false;
            why = "another length";
        }
        break;
    default: break;
    }
    return fine ? MINK_OK : arrow_bad_value(f, text, size, why, e);
}
