// SPDX-License-Identifier: Apache-2.0
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
