// SPDX-License-Identifier: Apache-2.0
// The statistics section: what lets a filtered scan pass over a batch without decoding it.
//
//     u32 column count, then per column
//     u32 column id   u8 kind (0 no min and max, 1 integer, 2 float, 3 decimal, 4 bytes)   u8 reserved × 3   u64 null count
//     min, max: i64 | f64 | 16-byte integer | u32 size and bytes
//
// Text bounds are cut to BYTES_MAX: a cut minimum is still not above, and a cut maximum with its last byte raised is still not below.
#include "batch/batch.h"

#include "arrow/kernel.h"
#include "base/mem.h"
#include "base/reader.h"

#include <string.h>

#define BYTES_MAX 64
#define COLUMNS_MAX 65536

enum kind { KIND_NONE, KIND_INT, KIND_REAL, KIND_DECIMAL, KIND_BYTES };

static enum kind kind_of(const struct arrow_field *f) {
    switch (f->type) {
    case ARROW_FLOAT32:
    case ARROW_FLOAT64: return KIND_REAL;
    case ARROW_DECIMAL128: return KIND_DECIMAL;
    case ARROW_UTF8: return KIND_BYTES;
    default: return KIND_INT;
    }
}

static void put_bytes(struct buffer *b, const struct arrow_scalar *v, bool upper) {
    uint8_t cut[BYTES_MAX];
    size_t size = v->size < BYTES_MAX ? v->size : BYTES_MAX;
    if (size) memcpy(cut, v->bytes, size);
    if (upper && size < v->size) {
        while (size && cut[size - 1] == 0xff) size--;
        if (size) cut[size - 1]++; // UTF-8 has no ff, so something is left
    }
    buffer_put_u32le(b, (uint32_t)size);
    buffer_put(b, cut, size);
}

static void put_scalar(struct buffer *b, enum kind kind, const struct arrow_scalar *v, bool upper) {
    switch (kind) {
    case KIND_NONE: return;
    case KIND_INT: buffer_put_u64le(b, (uint64_t)v->i); return;
    case KIND_REAL: buffer_put(b, &v->d, 8); return;
    case KIND_DECIMAL: buffer_put(b, &v->dec, 16); return;
    case KIND_BYTES: put_bytes(b, v, upper); return;
    }
}

struct slice batch_statistics_make(const struct table_def *d, const struct arrow_batch *batch) {
    struct buffer b;
    if (d->statistics_column_count == 0 || batch->row_count == 0) return slice_empty();
    buffer_init(&b, BATCH_SIZE_MAX);
    buffer_put_u32le(&b, d->statistics_column_count);
    for (uint32_t i = 0; i < d->statistics_column_count; i++) {
        uint32_t column = d->statistics_columns[i];
        const struct arrow_field *f = arrow_schema_at(batch->schema, column);
        struct arrow_column_stats s;
        arrow_stats(f, &batch->columns[column], &s);
        enum kind kind = s.has_min_max ? kind_of(f) : KIND_NONE;
        buffer_put_u32le(&b, d->columns[column].id);
        buffer_put_u8(&b, (uint8_t)kind);
        buffer_put_zeros(&b, 3);
        buffer_put_u64le(&b, (uint64_t)s.null_count);
        put_scalar(&b, kind, &s.min, false);
        put_scalar(&b, kind, &s.max, true);
    }
    return buffer_take_slice(&b);
}

static void read_scalar(struct reader *r, uint8_t kind, struct arrow_scalar *out) {
    const uint8_t *p = NULL;
    *out = (struct arrow_scalar){0};
    switch (kind) {
    case KIND_INT: out->i = reader_i64le(r); return;
    case KIND_REAL:
        if ((p = reader_bytes(r, 8))) memcpy(&out->d, p, 8);
        return;
    case KIND_DECIMAL:
        if ((p = reader_bytes(r, 16))) memcpy(&out->dec, p, 16);
        return;
    case KIND_BYTES:
        out->size = reader_count(r, BYTES_MAX);
        out->bytes = reader_bytes(r, out->size);
        return;
    default: reader_fail(r, 0);
    }
}

enum mink_code batch_statistics_read(struct slice section, const struct table_def *d, struct arrow_column_stats *storage, const struct arrow_column_stats **out_stats, struct error *e) {
    struct reader r;
    for (uint32_t i = 0; i < d->column_count; i++) out_stats[i] = NULL;
    if (section.size == 0) return MINK_OK;
    reader_init(&r, section.data, section.size);
    uint32_t count = reader_count(&r, COLUMNS_MAX);
    for (uint32_t i = 0; i < count && reader_ok(&r); i++) {
        struct arrow_column_stats s = {0};
        uint32_t id = reader_u32le(&r);
        uint8_t kind = reader_u8(&r);
        reader_zeros(&r, 3);
        s.null_count = reader_i64le(&r);
        s.has_min_max = kind != KIND_NONE;
        if (s.has_min_max) {
            read_scalar(&r, kind, &s.min);
            read_scalar(&r, kind, &s.max);
        }
        for (uint32_t c = 0; c < d->column_count && reader_ok(&r); c++) {
            if (d->columns[c].id != id) continue;
            // A column whose type was changed since: its old bounds are of another kind and say nothing.
            if (s.has_min_max && kind != kind_of(arrow_schema_at(d->arrow, c))) s.has_min_max = false;
            storage[c] = s;
            out_stats[c] = &storage[c];
        }
    }
    if (reader_ok(&r) && reader_left(&r) != 0) reader_fail(&r, 0);
    return reader_finish(&r, "batch statistics", e);
}
