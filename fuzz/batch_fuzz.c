// SPDX-License-Identifier: Apache-2.0
// Log batches as they come from the store: cut, decoded, statistics read. The first byte says where the stored bytes are split into slices.
#include "arrow/kernel.h"
#include "base/mem.h"
#include "batch/batch.h"

#include <string.h>

static struct column columns[3] = {{.id = 1}, {.id = 2}, {.id = 3}};
static char names[3][2] = {"a", "b", "c"};
static struct arrow_field fields[3] = {
    {.name = names[0], .type = ARROW_INT64}, {.name = names[1], .type = ARROW_UTF8}, {.name = names[2], .type = ARROW_DECIMAL128}};
static struct arrow_schema schema = {.root = {.type = ARROW_STRUCT, .children = fields, .child_count = 3}};
static struct table_def def = {.columns = columns, .column_count = 3, .arrow = &schema};

static void use_view(const struct batch_view *v) {
    struct arrow_column_stats storage[3];
    const struct arrow_column_stats *stats[3];
    struct ipc_message_info info;
    mink_assert(v->body.size == v->header.body_size && v->message.size == v->header.message_size);
    if (batch_statistics_read(v->statistics, &def, storage, stats, NULL) == MINK_OK && stats[1] && stats[1]->has_min_max && stats[1]->max.size)
        mink_assert(stats[1]->max.bytes[stats[1]->max.size - 1] <= 0xff);
    (void)!ipc_peek(v->message, &info, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    size_t split = (size_t)data[0] * 8;
    data++;
    size--;
    if (split > size) split = size;
    struct slices payload = {0};
    slices_take(&payload, slice_copy(data, split));
    slices_take(&payload, slice_copy(data + split, size - split));
    struct batch_cursor c;
    struct batch_bytes bytes;
    struct batch_view v;
    struct error e;
    bool end = false;
    batch_cursor_init(&c, &payload);
    while (batch_cursor_next(&c, &bytes, &end, &e) == MINK_OK && !end) {
        if (batch_decode(&bytes, false, &v, &e) != MINK_OK) continue;
        use_view(&v);
        if (batch_decode(&bytes, true, &v, &e) != MINK_OK) continue;
        // A right one: a draft of its parts is the same bytes. (Row kinds and the rest are views of it.)
        struct batch_draft d;
        uint32_t crc;
        struct slice body = slice_copy(v.body.data, v.body.size);
        mink_assert(batch_draft_make(&v.header, v.row_kinds, v.statistics, v.message, body, &d, &e) == MINK_OK);
        batch_stamp(&d, v.header.offset_first, v.header.leader_epoch, v.header.commit_ms, &crc);
        mink_assert(d.header.crc32c == v.header.crc32c && d.header.length == v.header.length);
        mink_assert(memcmp(d.bytes.head.data, bytes.head.data, d.bytes.head.size) == 0);
        slice_unref(&body);
        batch_draft_deinit(&d);
    }
    slices_deinit(&payload);
    return 0;
}
