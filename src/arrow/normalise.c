// SPDX-License-Identifier: Apache-2.0
// Encodings that only travel: dictionaries and views become plain arrays.
#include "arrow/arrow_internal.h"
#include "arrow/ipc_internal.h"
#include "arrow/kernel.h"
#include "base/mem.h"

#include <inttypes.h>

// Bytes of an all-null column; a double, since fixed-size lists of fixed-size lists multiply.
static double nulls_bytes(const struct arrow_field *f, double length) {
    double bytes = length * (arrow_type_bit_width(f) + 64) / 8;
    for (uint32_t i = 0; i < f->child_count; i++)
        bytes += nulls_bytes(&f->children[i], f->type == ARROW_FIXED_LIST ? length * f->width : f->type == ARROW_STRUCT ? length : 0);
    return bytes;
}

// Indices as row numbers.
static enum mink_code read_indices(const struct arrow_field *f, const struct arrow_array *indices, uint64_t bound, uint32_t *rows, struct error *e) {
    struct arrow_field index = {.type = f->index_type};
    uint32_t width = arrow_type_bit_width(&index) / 8, shift = 64 - 8 * width;
    bool is_signed = f->index_type <= ARROW_INT64;
    for (int64_t i = 0; i < indices->length; i++) {
        uint64_t v = 0;
        memcpy(&v, indices->buffers[1].data + (size_t)i * width, width);
        if (is_signed) v = (uint64_t)((int64_t)(v << shift) >> shift);
        if (arrow_is_null(indices, i)) rows[i] = ARRAY_TAKE_NULL;
        else if (v < bound) rows[i] = (uint32_t)v;
        else return ipc_bad(e, "dictionary index %" PRId64 " at row %" PRId64 ", the dictionary has %" PRIu64 " values", (int64_t)v, i, bound);
    }
    return MINK_OK;
}

enum mink_code array_hydrate(const struct arrow_field *f, const struct arrow_array *indices, const struct arrow_array *values, uint64_t *budget, struct arrow_array *out, struct error *e) {
    if (values == NULL) {
        if (indices->null_count < indices->length) return ipc_bad(e, "dictionary %" PRId64 " was never sent", f->dictionary_id);
        if (nulls_bytes(f, (double)indices->length) > (double)*budget) return ipc_bad(e, "%" PRId64 " nulls are over the limit of bytes a batch", indices->length);
        arrow_nulls(f, indices->length, out);
        return MINK_OK;
    }
    if ((uint64_t)indices->length * 4 > *budget) return ipc_bad(e, "dictionary indices are over the limit of bytes a batch");
    uint32_t *rows = mem_new_array(uint32_t, (size_t)indices->length);
    enum mink_code code = read_indices(f, indices, (uint64_t)values->length, rows, e);
    if (code == MINK_OK && !array_take(f, values, rows, indices->length, budget, out)) code = ipc_bad(e, "dictionary values are over the limit of bytes a batch");
    mem_free(rows);
    return code;
}

// A view: 4 bytes of length, then up to 12 bytes of text; or 4 bytes of it, the number of a buffer and an offset in that.
enum mink_code array_from_views(const struct arrow_field *f, const uint8_t *views, const struct slice *data, int64_t data_count, uint64_t *budget, struct arrow_array *out, struct error *e) {
    uint64_t total = 0;
    bool nulls = out->buffers[0].size != 0;
    for (int64_t i = 0; i < out->length; i++) {
        int32_t view[4];
        if (nulls && !bit_get(out->buffers[0].data, i)) continue;
        memcpy(view, views + 16 * i, 16);
        if (view[0] < 0 || (view[0] > 12 && (view[2] < 0 || view[2] >= data_count || view[3] < 0 || (uint64_t)view[3] + (uint64_t)view[0] > data[view[2]].size)))
            return ipc_bad(e, "field %.60s: a view reaches behind its buffer at row %" PRId64, f->name, i);
        total += (uint64_t)view[0];
    }
    // Many views may show the same bytes.
    uint64_t made = total + ((uint64_t)out->length + 1) * 4;
    if (total > INT32_MAX || made > *budget) return ipc_bad(e, "field %.60s: views come to %" PRIu64 " bytes, over the limit of a batch", f->name, total);
    *budget -= made;
    uint8_t *offsets, *bytes;
    out->buffers[1] = slice_new(((size_t)out->length + 1) * 4, &offsets);
    out->buffers[2] = slice_new((size_t)total, &bytes);
    int32_t at = 0;
    memcpy(offsets, &at, 4);
    for (int64_t i = 0; i < out->length; i++) {
        int32_t view[4];
        if (!nulls || bit_get(out->buffers[0].data, i)) {
            memcpy(view, views + 16 * i, 16);
            if (view[0]) memcpy(bytes + at, view[0] <= 12 ? views + 16 * i + 4 : data[view[2]].data + view[3], (size_t)view[0]);
            at += view[0];
        }
        memcpy(offsets + 4 * (i + 1), &at, 4);
    }
    return MINK_OK;
}
