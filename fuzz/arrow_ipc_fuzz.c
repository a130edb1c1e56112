// SPDX-License-Identifier: Apache-2.0
// Schema, dictionaries and batches as they come from a client; then everything that is done with a decoded batch. Whatever decodes has to
// survive the kernels, and has to be the same after encoding and decoding it again.
#include "arrow/ipc.h"
#include "arrow/kernel.h"
#include "base/json.h"
#include "base/mem.h"

#include <nanoarrow/nanoarrow.h>

#include <string.h>

#define LIMIT (1u << 20)

static size_t text_of(const struct arrow_batch *b, struct buffer *out) {
    buffer_reset(out);
    for (int64_t row = 0; row < b->row_count && row < 6; row++) {
        for (uint32_t c = 0; c < arrow_schema_count(b->schema); c++) {
            struct json_writer w;
            arrow_value_text(arrow_schema_at(b->schema, c), &b->columns[c], row, out);
            json_begin(&w, out);
            arrow_value_json(arrow_schema_at(b->schema, c), &b->columns[c], row, &w);
            buffer_put_u8(out, '\n');
        }
    }
    return out->size;
}

static void same_text(const struct arrow_batch *a, const struct arrow_batch *b) {
    struct buffer x, y;
    buffer_init(&x, 1 << 16);
    buffer_init(&y, 1 << 16);
    mink_assert(text_of(a, &x) == text_of(b, &y) && a->row_count == b->row_count);
    mink_assert(x.size == 0 || memcmp(x.data, y.data, x.size) == 0);
    buffer_deinit(&x);
    buffer_deinit(&y);
}

static void through_ipc(const struct arrow_batch *b, enum codec codec) {
    struct slice message, joined;
    struct slices body;
    struct arrow_batch back;
    struct ipc_decoder *d = ipc_decoder_new(b->schema, 64 * LIMIT);
    struct slice schema_message = ipc_encode_schema(b->schema, true);
    struct arrow_schema *schema;
    mink_assert(ipc_decode_schema(schema_message, &schema, NULL) == MINK_OK);
    mink_assert(ipc_encode_batch(b, codec, 1, &message, &body, NULL) == MINK_OK);
    joined = slices_join(&body);
    struct ipc_decoder *plain = ipc_decoder_new(schema, 64 * LIMIT);
    mink_assert(ipc_decoder_batch(plain, message, joined, &back, NULL, NULL) == MINK_OK);
    same_text(b, &back);
    arrow_batch_deinit(&back);
    uint32_t count = arrow_schema_count(b->schema);
    if (count) {
        uint32_t columns[2] = {count - 1, 0};
        struct slice part;
        struct slices part_body;
        mink_assert(ipc_project(schema, message, joined, columns, 2, &part, &part_body, NULL) == MINK_OK);
        slice_unref(&part);
        slices_deinit(&part_body);
    }
    ipc_decoder_free(plain);
    ipc_decoder_free(d);
    arrow_schema_unref(schema);
    slice_unref(&schema_message);
    slice_unref(&message);
    slice_unref(&joined);
    slices_deinit(&body);
}

static void use_batch(const struct arrow_batch *b) {
    struct arrow_batch part, taken, joined;
    int64_t begin = b->row_count / 3, count = b->row_count - begin > 100 ? 100 : b->row_count - begin;
    uint32_t rows[100];
    for (int64_t i = 0; i < count; i++) rows[i] = (uint32_t)(begin + i);
    arrow_slice(b, begin, count, &part);
    arrow_take(b, rows, (size_t)count, &taken);
    same_text(&part, &taken);
    const struct arrow_batch *parts[2] = {&part, &taken};
    arrow_concat(parts, 2, &joined);
    mink_assert(joined.row_count == 2 * count);
    through_ipc(&joined, CODEC_NONE);
    through_ipc(&part, CODEC_ZSTD);
    for (uint32_t i = 0; i < arrow_schema_count(b->schema); i++) {
        struct arrow_column_stats stats;
        const struct arrow_field *f = arrow_schema_at(b->schema, i);
        arrow_stats(f, &b->columns[i], &stats);
        for (uint32_t k = 0; k < arrow_schema_count(b->schema); k++) {
            struct arrow_array cast;
            if (arrow_cast(f, &b->columns[i], arrow_schema_at(b->schema, k), &cast, NULL) == MINK_OK) arrow_array_deinit(&cast);
        }
    }
    struct ArrowArray exported;
    struct arrow_batch imported;
    struct arrow_schema *schema;
    struct ArrowSchema exported_schema;
    mink_assert(arrow_batch_export(&part, &exported, NULL) == MINK_OK && arrow_schema_export(b->schema, &exported_schema, NULL) == MINK_OK);
    mink_assert(arrow_schema_import(&exported_schema, &schema, NULL) == MINK_OK);
    mink_assert(arrow_batch_import(&exported, schema, &imported, NULL) == MINK_OK);
    same_text(&part, &imported);
    arrow_batch_deinit(&imported);
    arrow_schema_unref(schema);
    arrow_batch_deinit(&joined);
    arrow_batch_deinit(&taken);
    arrow_batch_deinit(&part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct ipc_decoder *d = NULL;
    struct error e;
    while (size >= 8) {
        uint32_t prefix[2];
        struct ipc_message_info info;
        memcpy(prefix, data, 8);
        if (prefix[0] != UINT32_MAX || prefix[1] == 0 || prefix[1] > size - 8) break;
        struct slice message = slice_borrow(data + 8, prefix[1]);
        if (ipc_peek(message, &info, &e) != MINK_OK || info.body_size > size - 8 - prefix[1]) break;
        struct slice body = slice_copy(data + 8 + prefix[1], info.body_size);
        data += 8 + prefix[1] + info.body_size;
        size -= 8 + prefix[1] + info.body_size;
        if (info.kind == IPC_SCHEMA && d == NULL) {
            struct arrow_schema *schema;
            if (ipc_decode_schema(message, &schema, &e) == MINK_OK) {
                d = ipc_decoder_new(schema, LIMIT);
                arrow_schema_unref(schema);
            }
        } else if (info.kind == IPC_DICTIONARY && d) {
            (void)!ipc_decoder_dictionary(d, message, body, &e);
        } else if (info.kind == IPC_BATCH && d) {
            struct arrow_batch b;
            if (ipc_decoder_batch(d, message, body, &b, NULL, &e) == MINK_OK) {
                slice_unref(&body); // the batch holds what it needs
                use_batch(&b);
                arrow_batch_deinit(&b);
            }
        }
        slice_unref(&body);
    }
    ipc_decoder_free(d);
    return 0;
}
