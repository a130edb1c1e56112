// SPDX-License-Identifier: Apache-2.0
// Lossless casts. Which pairs of types there are is one function (arrow_can_cast); values that may not fit are checked row by row.
#include "arrow/kernel.h"

#include "arrow/arrow_internal.h"
#include "base/mem.h"

#include <inttypes.h>

#define DAY_MS 86400000

static bool is_int(enum arrow_type t) { return t >= ARROW_INT8 && t <= ARROW_UINT64; }
static bool is_signed(enum arrow_type t) { return t >= ARROW_INT8 && t <= ARROW_INT64; }
static bool is_float(enum arrow_type t) { return t >= ARROW_FLOAT16 && t <= ARROW_FLOAT64; }
static bool is_time(enum arrow_type t) { return t == ARROW_TIME32 || t == ARROW_TIME64; }

// Decimal digits that any value of an integer type needs.
static int32_t int_digits(enum arrow_type t) {
    static const int32_t digits[] = {3, 5, 10, 19, 3, 5, 10, 20};
    return digits[t - ARROW_INT8];
}

bool arrow_can_cast(const struct arrow_field *from, const struct arrow_field *to) {
    if (arrow_field_type_equal(from, to)) return true;
    if (from->type == ARROW_NULL) return to->nullable;
    if (is_int(from->type) && is_int(to->type)) {
        uint32_t narrow = arrow_type_bit_width(from), wide = arrow_type_bit_width(to);
        return is_signed(from->type) ? is_signed(to->type) && wide > narrow : wide > narrow;
    }
    if (is_float(from->type) && is_float(to->type)) return to->type > from->type;
    if (is_int(from->type) && to->type == ARROW_DECIMAL128) return to->scale >= 0 && to->precision - to->scale >= int_digits(from->type);
    if (from->type == ARROW_DECIMAL128 && to->type == ARROW_DECIMAL128)
        return to->scale >= from->scale && to->precision - to->scale >= from->precision - from->scale;
    if ((is_time(from->type) && is_time(to->type)) || (from->type == ARROW_DURATION && to->type == ARROW_DURATION)) return to->unit >= from->unit;
    // A zone only says how to show an instant; with and without are different things.
    if (from->type == ARROW_TIMESTAMP && to->type == ARROW_TIMESTAMP) return to->unit >= from->unit && !from->timezone == !to->timezone;
    if (from->type == ARROW_DATE64) return to->type == ARROW_DATE32;
    if (from->type == ARROW_LARGE_UTF8) return to->type == ARROW_UTF8;
    if (from->type == ARROW_LARGE_BINARY || from->type == ARROW_FIXED_BINARY) return to->type == ARROW_BINARY;
    if ((from->type == ARROW_LIST || from->type == ARROW_LARGE_LIST || from->type == ARROW_FIXED_LIST) && to->type == ARROW_LIST)
        return arrow_can_cast(&from->children[0], &to->children[0]);
    if (from->type == ARROW_FIXED_LIST && to->type == ARROW_FIXED_LIST) return from->width == to->width && arrow_can_cast(&from->children[0], &to->children[0]);
    if (from->type == ARROW_MAP && to->type == ARROW_MAP) {
        const struct arrow_field *x = from->children[0].children, *y = to->children[0].children;
        return arrow_can_cast(&x[0], &y[0]) && arrow_can_cast(&x[1], &y[1]);
    }
    if (from->type == ARROW_STRUCT && to->type == ARROW_STRUCT && from->child_count == to->child_count) {
        for (uint32_t i = 0; i < to->child_count; i++) {
            if (strcmp(from->children[i].name, to->children[i].name) != 0 || !arrow_can_cast(&from->children[i], &to->children[i])) return false;
        }
        return true;
    }
    return false;
}

static enum mink_code mismatch(const struct arrow_field *from, const struct arrow_field *to, int64_t row, struct error *e) {
    char given[64], wanted[64];
    arrow_field_describe(from, given, sizeof given);
    arrow_field_describe(to, wanted, sizeof wanted);
    if (row < 0) error_set(e, MINK_INVALID, "TYPE_MISMATCH", "column %.60s is %s, %s was given", to->name, wanted, given);
    else error_set(e, MINK_INVALID, "TYPE_MISMATCH", "column %.60s: the %s at row %" PRId64 " does not fit into %s", to->name, given, row, wanted);
    error_about(e, to->name, wanted, given);
    return MINK_INVALID;
}

static int64_t int_at(const struct arrow_field *f, const struct arrow_array *a, int64_t row) {
    uint32_t width = arrow_type_bit_width(f) / 8, shift = 64 - 8 * width;
    uint64_t v = 0;
    memcpy(&v, a->buffers[1].data + (size_t)row * width, width);
    bool sign = !is_int(f->type) || is_signed(f->type);
    return sign ? (int64_t)(v << shift) >> shift : (int64_t)v;
}

static double half_to_double(uint16_t h) {
    uint32_t exponent = h >> 10 & 31, fraction = h & 1023;
    double sign = h >> 15 ? -1 : 1;
    if (exponent == 31) return fraction ? __builtin_nan("") : sign * __builtin_inf();
    if (exponent == 0) return sign * fraction / 16777216.0; // 2^-24
    double v = 1 + fraction / 1024.0;
    for (uint32_t i = 15; i < exponent; i++) v *= 2;
    for (uint32_t i = exponent; i < 15; i++) v /= 2;
    return sign * v;
}

double arrow_real_at(const struct arrow_field *f, const struct arrow_array *a, int64_t row) {
    const uint8_t *p = a->buffers[1].data;
    uint16_t half;
    float single;
    double v;
    switch (f->type) {
    case ARROW_FLOAT16: memcpy(&half, p + 2 * row, 2); return half_to_double(half);
    case ARROW_FLOAT32: memcpy(&single, p + 4 * row, 4); return (double)single;
    default: memcpy(&v, p + 8 * row, 8); return v;
    }
}

static __int128 power10(int32_t n) {
    __int128 p = 1;
    while (n-- > 0) p *= 10;
    return p;
}

// Units apart: seconds, milli-, micro-, nanoseconds are 1000 each.
static int64_t unit_factor(const struct arrow_field *from, const struct arrow_field *to) {
    int64_t factor = 1;
    for (int u = (int)from->unit; u < (int)to->unit; u++) factor *= 1000;
    return factor;
}

static enum mink_code cast_values(const struct arrow_field *from, const struct arrow_array *a, const struct arrow_field *to, struct arrow_array *out, struct error *e) {
    uint32_t width = arrow_type_bit_width(to) / 8;
    uint8_t *p;
    out->buffers[1] = slice_new((size_t)a->length * width, &p);
    int64_t factor = unit_factor(from, to);
    __int128 scale = to->type != ARROW_DECIMAL128 ? 1 : power10(from->type == ARROW_DECIMAL128 ? to->scale - from->scale : to->scale);
    for (int64_t i = 0; i < a->length; i++, p += width) {
        if (is_float(to->type)) {
            double v = arrow_real_at(from, a, i);
            float single = (float)v;
            memcpy(p, width == 4 ? (const void *)&single : (const void *)&v, width);
            continue;
        }
        if (to->type == ARROW_DECIMAL128) {
            __int128 v;
            if (from->type == ARROW_DECIMAL128) memcpy(&v, a->buffers[1].data + 16 * i, 16);
            else v = from->type == ARROW_UINT64 ? (__int128)(uint64_t)int_at(from, a, i) : int_at(from, a, i);
            // What a decimal column holds may be beyond its own precision.
            if (__builtin_mul_overflow(v, scale, &v)) {
                if (!arrow_is_null(a, i)) return mismatch(from, to, i, e);
                v = 0;
            }
            memcpy(p, &v, 16);
            continue;
        }
        int64_t v = int_at(from, a, i);
        bool fits = true;
        if (from->type == ARROW_DATE64) {
            fits = v % DAY_MS == 0 && v / DAY_MS >= INT32_MIN && v / DAY_MS <= INT32_MAX;
            v /= DAY_MS;
        } else if (factor != 1) {
            fits = !__builtin_mul_overflow(v, factor, &v) && (width == 8 || (v >= INT32_MIN && v <= INT32_MAX));
        }
        if (!fits) {
            if (!arrow_is_null(a, i)) return mismatch(from, to, i, e);
            v = 0;
        }
        memcpy(p, &v, width);
    }
    return MINK_OK;
}

// 64-bit offsets, or none (fixed width), to 32-bit ones.
static enum mink_code cast_offsets(const struct arrow_field *from, const struct arrow_array *a, const struct arrow_field *to, struct arrow_array *out, struct error *e) {
    uint8_t *p;
    if (from->type == ARROW_LIST || from->type == ARROW_MAP) {
        out->buffers[1] = slice_ref(a->buffers[1]);
        return MINK_OK;
    }
    bool fixed = from->type == ARROW_FIXED_BINARY || from->type == ARROW_FIXED_LIST;
    int64_t last = fixed ? a->length * from->width : offset_at(from, a, a->length);
    if (last > INT32_MAX) return mismatch(from, to, a->length - 1, e);
    out->buffers[1] = slice_new(((size_t)a->length + 1) * 4, &p);
    for (int64_t i = 0; i <= a->length; i++) {
        int32_t v = (int32_t)(fixed ? i * from->width : offset_at(from, a, i));
        memcpy(p + 4 * i, &v, 4);
    }
    return MINK_OK;
}

static enum mink_code cast_array(const struct arrow_field *from, const struct arrow_array *a, const struct arrow_field *to, struct arrow_array *out, struct error *e);

static enum mink_code cast_parts(const struct arrow_field *from, const struct arrow_array *a, const struct arrow_field *to, struct arrow_array *out, struct error *e) {
    *out = (struct arrow_array){.length = a->length, .null_count = a->null_count, .buffers = {slice_ref(a->buffers[0])}};
    if (to->child_count) {
        out->children = mem_new_array(struct arrow_array, to->child_count);
        out->child_count = to->child_count;
        for (uint32_t i = 0; i < to->child_count; i++) MINK_TRY(cast_array(&from->children[i], &a->children[i], &to->children[i], &out->children[i], e));
        return to->type == ARROW_LIST || to->type == ARROW_MAP ? cast_offsets(from, a, to, out, e) : MINK_OK;
    }
    if (type_is_bytes(to->type)) {
        out->buffers[2] = slice_ref(a->buffers[from->type == ARROW_FIXED_BINARY ? 1 : 2]);
        return cast_offsets(from, a, to, out, e);
    }
    return cast_values(from, a, to, out, e);
}

// Children go by position: arrow_can_cast looked at the names of the whole tree.
static enum mink_code cast_array(const struct arrow_field *from, const struct arrow_array *a, const struct arrow_field *to, struct arrow_array *out, struct error *e) {
    *out = (struct arrow_array){0};
    if (arrow_field_type_equal(from, to)) {
        arrow_array_ref(out, a);
        return MINK_OK;
    }
    if (from->type == ARROW_NULL) {
        arrow_nulls(to, a->length, out);
        return MINK_OK;
    }
    enum mink_code code = cast_parts(from, a, to, out, e);
    if (code != MINK_OK) arrow_array_deinit(out);
    return code;
}

enum mink_code arrow_cast(const struct arrow_field *from, const struct arrow_array *a, const struct arrow_field *to, struct arrow_array *out, struct error *e) {
    if (!arrow_can_cast(from, to)) return mismatch(from, to, -1, e);
    return cast_array(from, a, to, out, e);
}
