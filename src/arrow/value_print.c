// SPDX-License-Identifier: Apache-2.0
// Values as text and as JSON; what these print, the builder reads back.
//
// JSON: integers and floats are numbers (NaN and infinities strings), decimals, dates and times strings as in text, binary hex strings, lists
// arrays, structs objects; maps objects when their keys are leaves that JSON can spell, else arrays of {"key", "value"}.
#include "arrow/value_internal.h"

#include "base/json.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const int64_t per_second[] = {1, 1000, 1000000, 1000000000};

// The shortest digits that read back as the same value.
static void print_real(const struct arrow_field *f, double v, struct buffer *out) {
    char text[64];
    bool single = f->type != ARROW_FLOAT64;
    if (isnan(v) || isinf(v)) {
        buffer_put_string(out, isnan(v) ? "NaN" : v < 0 ? "-Infinity" : "Infinity");
        return;
    }
    for (int digits = single ? 6 : 15; digits <= (single ? 9 : 17); digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        double back = strtod(text, NULL);
        if (single ? (float)back == (float)v : back == v) break;
    }
    buffer_put_string(out, text);
}

static void print_decimal(const struct arrow_field *f, __int128 v, struct buffer *out) {
    char digits[64];
    int n = 0;
    unsigned __int128 rest = v < 0 ? -(unsigned __int128)v : (unsigned __int128)v;
    do {
        digits[n++] = (char)('0' + (int)(rest % 10));
        rest /= 10;
    } while (rest || n <= f->scale);
    if (v < 0) buffer_put_u8(out, '-');
    for (int i = n - 1; i >= 0; i--) {
        buffer_put_u8(out, (uint8_t)digits[i]);
        if (i > 0 && i == f->scale) buffer_put_u8(out, '.');
    }
    for (int32_t i = f->scale; i < 0 && v != 0; i++) buffer_put_u8(out, '0');
}

static void print_date(int64_t days, struct buffer *out) {
    int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, of_era = z - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153, day = of_year - (153 * month + 2) / 5 + 1;
    month = month < 10 ? month + 3 : month - 9;
    year += era * 400 + (month <= 2);
    buffer_printf(out, "%s%04" PRId64 "-%02d-%02d", year < 0 ? "-" : "", year < 0 ? -year : year, (int)month, (int)day);
}

static void print_time(int64_t v, enum arrow_unit unit, struct buffer *out) {
    int64_t seconds = v / per_second[unit], fraction = v % per_second[unit];
    buffer_printf(out, "%02d:%02d:%02d", (int)(seconds / 3600), (int)(seconds / 60 % 60), (int)(seconds % 60));
    if (fraction) buffer_printf(out, ".%0*" PRId64, (int)unit * 3, fraction);
}

static int64_t int_value(const struct arrow_field *f, const struct arrow_array *a, int64_t row) {
    uint32_t width = arrow_type_bit_width(f) / 8, shift = 64 - 8 * width;
    uint64_t v = 0;
    memcpy(&v, a->buffers[1].data + (size_t)row * width, width);
    bool is_unsigned = f->type >= ARROW_UINT8 && f->type <= ARROW_UINT64;
    return is_unsigned ? (int64_t)v : (int64_t)(v << shift) >> shift;
}

static void print_timestamp(const struct arrow_field *f, int64_t v, struct buffer *out) {
    int64_t day = 86400 * per_second[f->unit], days = v / day, rest = v % day;
    if (rest < 0) {
        rest += day;
        days--;
    }
    print_date(days, out);
    buffer_put_u8(out, ' ');
    print_time(rest, f->unit, out);
    if (f->timezone) buffer_put_u8(out, 'Z');
}

static void bytes_value(const struct arrow_field *f, const struct arrow_array *a, int64_t row, const uint8_t **data, size_t *size) {
    if (f->type == ARROW_FIXED_BINARY) {
        *data = a->buffers[1].data + (size_t)row * (size_t)f->width;
        *size = (size_t)f->width;
        return;
    }
    int64_t at = offset_at(f, a, row);
    *size = (size_t)(offset_at(f, a, row + 1) - at);
    *data = *size ? a->buffers[2].data + at : arrow_zeros;
}

static bool is_nested(enum arrow_type t) { return t >= ARROW_LIST; }

static void print_leaf(const struct arrow_field *f, const struct arrow_array *a, int64_t row, struct buffer *out) {
    __int128 decimal;
    const uint8_t *data;
    size_t size;
    int64_t v;
    switch (f->type) {
    case ARROW_BOOL: buffer_put_string(out, bit_get(a->buffers[1].data, row) ? "true" : "false"); return;
    case ARROW_UINT64: buffer_printf(out, "%" PRIu64, (uint64_t)int_value(f, a, row)); return;
    case ARROW_FLOAT16:
    case ARROW_FLOAT32:
    case ARROW_FLOAT64: print_real(f, arrow_real_at(f, a, row), out); return;
    case ARROW_DECIMAL128:
        memcpy(&decimal, a->buffers[1].data + 16 * row, 16);
        print_decimal(f, decimal, out);
        return;
    case ARROW_UTF8:
    case ARROW_LARGE_UTF8:
        bytes_value(f, a, row, &data, &size);
        buffer_put(out, data, size);
        return;
    case ARROW_BINARY:
    case ARROW_LARGE_BINARY:
    case ARROW_FIXED_BINARY:
        bytes_value(f, a, row, &data, &size);
        for (size_t i = 0; i < size && !out->overflowed; i++) buffer_printf(out, "%02x", data[i]);
        return;
    case ARROW_DATE32: print_date(int_value(f, a, row), out); return;
    case ARROW_DATE64:
        v = int_value(f, a, row);
        print_date(v / 86400000 - (v % 86400000 < 0), out);
        return;
    case ARROW_TIME32:
    case ARROW_TIME64:
        v = int_value(f, a, row);
        if (v < 0 || v >= 86400 * per_second[f->unit]) buffer_printf(out, "%" PRId64, v); // not a time of day: as it is stored
        else print_time(v, f->unit, out);
        return;
    case ARROW_TIMESTAMP: print_timestamp(f, int_value(f, a, row), out); return;
    default: buffer_printf(out, "%" PRId64, int_value(f, a, row)); return;
    }
}

static void json_leaf(const struct arrow_field *f, const struct arrow_array *a, int64_t row, struct json_writer *out) {
    struct buffer text;
    double d;
    if (f->type == ARROW_BOOL) {
        json_put_bool(out, bit_get(a->buffers[1].data, row));
        return;
    }
    buffer_init(&text, SIZE_MAX / 2);
    print_leaf(f, a, row, &text);
    bool number = (f->type >= ARROW_INT8 && f->type <= ARROW_UINT64) || f->type == ARROW_DURATION;
    if (f->type >= ARROW_FLOAT16 && f->type <= ARROW_FLOAT64) {
        d = arrow_real_at(f, a, row);
        number = !isnan(d) && !isinf(d);
    }
    if (number) json_put_raw(out, buffer_string(&text), text.size);
    else json_put_text(out, buffer_string(&text), text.size);
    buffer_deinit(&text);
}

static void json_map(const struct arrow_field *f, const struct arrow_array *a, int64_t row, struct json_writer *out) {
    const struct arrow_field *key = &f->children[0].children[0], *value = &f->children[0].children[1];
    const struct arrow_array *keys = &a->children[0].children[0], *values = &a->children[0].children[1];
    int64_t begin = offset_at(f, a, row), end = offset_at(f, a, row + 1);
    bool spelled = !is_nested(key->type);
    for (int64_t i = begin; i < end && spelled; i++) {
        const uint8_t *data;
        size_t size;
        spelled = !arrow_is_null(keys, i);
        if (!spelled || (key->type != ARROW_UTF8 && key->type != ARROW_LARGE_UTF8)) continue;
        bytes_value(key, keys, i, &data, &size);
        spelled = memchr(data, 0, size) == NULL;
    }
    spelled ? json_object_begin(out) : json_array_begin(out);
    for (int64_t i = begin; i < end && !out->out->overflowed; i++) {
        if (spelled) {
            struct buffer text;
            buffer_init(&text, SIZE_MAX / 2);
            print_leaf(key, keys, i, &text);
            json_put_key(out, buffer_string(&text));
            buffer_deinit(&text);
            arrow_value_json(value, values, i, out);
            continue;
        }
        json_object_begin(out);
        json_put_key(out, "key");
        arrow_value_json(key, keys, i, out);
        json_put_key(out, "value");
        arrow_value_json(value, values, i, out);
        json_object_end(out);
    }
    spelled ? json_object_end(out) : json_array_end(out);
}

void arrow_value_json(const struct arrow_field *f, const struct arrow_array *a, int64_t row, struct json_writer *out) {
    if (arrow_is_null(a, row)) {
        json_put_null(out);
        return;
    }
    switch (f->type) {
    case ARROW_MAP: json_map(f, a, row, out); return;
    case ARROW_LIST:
    case ARROW_LARGE_LIST:
    case ARROW_FIXED_LIST: {
        bool fixed = f->type == ARROW_FIXED_LIST;
        int64_t begin = fixed ? row * f->width : offset_at(f, a, row), end = fixed ? begin + f->width : offset_at(f, a, row + 1);
        json_array_begin(out);
        for (int64_t i = begin; i < end && !out->out->overflowed; i++) arrow_value_json(&f->children[0], &a->children[0], i, out);
        json_array_end(out);
        return;
    }
    case ARROW_STRUCT:
        json_object_begin(out);
        for (uint32_t i = 0; i < f->child_count; i++) {
            json_put_key(out, f->children[i].name);
            arrow_value_json(&f->children[i], &a->children[i], row, out);
        }
        json_object_end(out);
        return;
    default: json_leaf(f, a, row, out);
    }
}

void arrow_value_text(const struct arrow_field *f, const struct arrow_array *a, int64_t row, struct buffer *out) {
    if (arrow_is_null(a, row)) return;
    if (!is_nested(f->type)) {
        print_leaf(f, a, row, out);
        return;
    }
    struct json_writer w;
    json_begin(&w, out);
    arrow_value_json(f, a, row, &w);
}
