// SPDX-License-Identifier: Apache-2.0
// scan.h: from stored batches to what a reader asked for: schema resolution, projection, filter, meta columns, size of messages. Pure.
//
// A batch that needs nothing but projection is passed on as sub-slices of what is stored; only filters, meta columns, limits, row ranges and
// decompression decode it.
#ifndef MINK_BUCKET_SCAN_H
#define MINK_BUCKET_SCAN_H
#include "batch/batch.h"
#include "table/filter.h"
enum scan_meta { SCAN_META_LOG_OFFSET, SCAN_META_COMMIT_TIMESTAMP, SCAN_META_BUCKET, SCAN_META_PARTITION, SCAN_META_CHANGE_TYPE, SCAN_META_COUNT };
struct scan_plan; // shared by references, used by one thread at a time
struct scan_request {
    const char *const *columns; uint32_t column_count; bool all_columns;
    const char *filter;                      // NULL = none
    enum scan_meta meta[SCAN_META_COUNT]; uint32_t meta_count;
    bool meta_first;                         // before the columns ($changelog) instead of after them
    enum codec compression;                  // of what is sent
    uint32_t message_bytes_max;              // [3 MiB]
    // Finds the definition that batches of another schema version were written with (a reference, or NULL). NULL = there are none.
    struct table_def *(*version)(void *ctx, uint32_t schema_id); void *version_ctx; // the node fills these in
};
enum mink_code scan_plan_make(struct table_def *def, const struct scan_request *request, struct scan_plan **out, struct error *e) MINK_MUST_CHECK;
struct scan_plan *scan_plan_ref(struct scan_plan *p);
void scan_plan_unref(struct scan_plan *p);
struct arrow_schema *scan_plan_schema(const struct scan_plan *p); // borrowed
const char *scan_meta_name(enum scan_meta meta); // "_log_offset"

struct scan_message { struct slice message; struct slices body; int64_t row_count; uint64_t next; }; // next: offset after the rows in it
struct scan_position { uint64_t from, until; int64_t rows_left; /* -1 = no limit */ int32_t bucket; const char *partition; };
// Messages of one batch for rows with from <= offset < until; a batch that has none gives 0 messages. position->from moves behind what was looked at
// (rows that the filter left out too), rows_left goes down. messages: mem_free'd array, each deinit'ed.
enum mink_code scan_batch(struct scan_plan *p, const struct batch_bytes *bytes, const struct batch_view *view, struct scan_position *position, struct scan_message **out, uint32_t *count, struct error *e) MINK_MUST_CHECK;
void scan_messages_free(struct scan_message *messages, uint32_t count);
#endif
