// SPDX-License-Identifier: Apache-2.0
#include "arrow/kernel.h"

#include "arrow/arrow_internal.h"

#include <math.h>

static bool bytes_less(const struct arrow_scalar *x, const struct arrow_scalar *y) {
    size_t common = x->size < y->size ? x->size : y->size;
    int order = common ? memcmp(x->bytes, y->bytes, common) : 0;
    return order ? order < 0 : x->size < y->size;
}

static void widen(struct arrow_column_stats *s, const struct arrow_scalar *v, bool below, bool above) {
    if (!s->has_min_max || below) s->min = *v;
    if (!s->has_min_max || above) s->max = *v;
    s->has_min_max = true;
}

// One loop a type, so that the compiler sees plain comparisons.
#define SCAN_INT(type)                                                  \
    for (int64_t i = 0; i < a->length; i++) {                           \
        type v;                                                         \
        memcpy(&v, a->buffers[1].data + (size_t)i * sizeof v, sizeof v); \
        if (a->null_count && arrow_is_null(a, i)) continue;             \
        if ((int64_t)v < low) low = (int64_t)v;                         \
        if ((int64_t)v > high) high = (int64_t)v;                       \
    }

static void scan_int(const struct arrow_field *f, const struct arrow_array *a, struct arrow_column_stats *out) {
    int64_t low = INT64_MAX, high = INT64_MIN;
    switch (arrow_type_bit_width(f)) {
    case 8:
        if (f->type == ARROW_UINT8) SCAN_INT(uint8_t) else SCAN_INT(int8_t)
        break;
    case 16:
        if (f->type == ARROW_UINT16) SCAN_INT(uint16_t) else SCAN_INT(int16_t)
        break;
    case 32:
        if (f->type == ARROW_UINT32) SCAN_INT(uint32_t) else SCAN_INT(int32_t)
        break;
    default: SCAN_INT(int64_t)
    }
    out->has_min_max = a->null_count < a->length;
    out->min.i = low;
    out->max.i = high;
}

void arrow_stats(const struct arrow_field *f, const struct arrow_array *a, struct arrow_column_stats *out) {
    *out = (struct arrow_column_stats){.null_count = a->null_count};
    switch (f->type) {
    case ARROW_INT8:
    case ARROW_INT16:
    case ARROW_INT32:
    case ARROW_INT64:
    case ARROW_UINT8:
    case ARROW_UINT16:
    case ARROW_UINT32:
    case ARROW_DATE32:
    case ARROW_DATE64:
    case ARROW_TIME32:
    case ARROW_TIME64:
    case ARROW_TIMESTAMP: scan_int(f, a, out); return;
    case ARROW_FLOAT32:
    case ARROW_FLOAT64:
        for (int64_t i = 0; i < a->length; i++) {
            if (arrow_is_null(a, i)) continue;
            struct arrow_scalar v = {.d = arrow_real_at(f, a, i)};
            if (isnan(v.d)) {
                out->has_min_max = false;
                return;
            }
            widen(out, &v, v.d < out->min.d, v.d > out->max.d);
        }
        return;
    case ARROW_DECIMAL128:
        for (int64_t i = 0; i < a->length; i++) {
            if (arrow_is_null(a, i)) continue;
            struct arrow_scalar v = {0};
            memcpy(&v.dec, a->buffers[1].data + 16 * i, 16);
            widen(out, &v, v.dec < out->min.dec, v.dec > out->max.dec);
        }
        return;
    case ARROW_UTF8:
        for (int64_t i = 0; i < a->length; i++) {
            if (arrow_is_null(a, i)) continue;
            int64_t at = offset_at(f, a, i);
            struct arrow_scalar v = {.bytes = a->buffers[2].data ? a->buffers[2].data + at : NULL, .size = (size_t)(offset_at(f, a, i + 1) - at)};
            widen(out, &v, bytes_less(&v, &out->min), bytes_less(&out->max, &v));
        }
        return;
    default: return; // no order that readers could rely on, or none at all
    }
}
