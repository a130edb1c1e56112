// SPDX-License-Identifier: Apache-2.0
// sim_model.h: what the clients of a simulated world know, and the promises it is checked against.
//
// Every row has a number; its content follows from it. The model knows which rows are durable (the disk tells), which append each belongs
// to and how it ended, and which row any reader ever saw at which offset.
//   - a row that is acknowledged or read is durable                                         (durable before visible)
//   - an offset has one row for ever, a row one offset                                      (never doubled, never reordered, one content)
//   - a row of an append that failed is never read                                          (failed means not written)
//   - acknowledged rows are at the acknowledged offsets, and none is missing at the end     (acknowledged is for ever)
//   - rows of one append lie together in order, those of one idempotent writer in its order (order)
//   - what is readable never shrinks from above, and is never what was not yet there        (high watermark)
#ifndef MINK_TESTS_SIM_MODEL_H
#define MINK_TESTS_SIM_MODEL_H

#include "sim/sim_executor.h"

#include <setjmp.h>

#define ROW_MAGIC 0x5eed0000ull // upper half of each id, so that the disk's watcher finds rows in what is stored
#define OFFSET_NONE UINT64_MAX
#define PARTITIONS_MAX 3
#define BUCKETS_MAX 8
#define TABLES_MAX 3

enum model_append_state { APPEND_OPEN, APPEND_ACKED, APPEND_FAILED, APPEND_UNKNOWN };

struct model_append {
    uint32_t table, row_first, row_count;
    int32_t partition, bucket; // -1: by the rows, or by the table
    int32_t writer;            // index of an idempotent one, or -1
    uint32_t sequence;
    enum model_append_state state;
    uint64_t sent_ns, ended_ns;
    int64_t sent_wall_ms, ended_wall_ms;
};

struct model_row {
    uint32_t append;
    int32_t partition, bucket; // where it was seen; -1 not yet
    uint64_t offset;
    bool durable;
};

struct model_bucket {
    uint32_t *rows; // number + 1 of the row at an offset; 0 = not known
    uint64_t capacity;
    uint64_t high_watermark; // the largest end that anybody was told of
    uint64_t start;          // the largest start that anybody was told of
};

struct model_table {
    uint32_t bucket_count, partition_count; // partition_count 0: not partitioned
    bool keyed;                             // bucket by key: an append may be split
    int64_t ttl_ms;                         // -1
    struct model_bucket buckets[PARTITIONS_MAX][BUCKETS_MAX];
};

struct model {
    struct sim *sim;
    struct model_table tables[TABLES_MAX];
    uint32_t table_count;
    struct model_append *appends;
    uint32_t append_count, append_capacity;
    struct model_row *rows;
    uint32_t row_count, row_capacity;
    uint64_t acks, rows_acked, rows_read, reads;
    void (*violated)(void *ctx, const char *text); // does not return
    void *ctx;
};

void model_init(struct model *m, struct sim *sim);
void model_deinit(struct model *m);
_Noreturn void model_violation(struct model *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

uint32_t model_append(struct model *m, uint32_t table, int32_t partition, int32_t bucket, int32_t writer, uint32_t sequence, uint32_t row_count);
uint64_t model_row_id(uint32_t row);
size_t model_row_pad(uint32_t row, char *out); // up to 120 bytes

void model_durable(struct model *m, const uint8_t *bytes, size_t size); // all rows found in what was stored
// One of the ranges of an acknowledged append; then the end of it.
void model_acked_range(struct model *m, uint32_t append, int32_t partition, uint32_t bucket, uint64_t first, uint64_t last);
void model_acked(struct model *m, uint32_t append, uint64_t rows_in_ranges);
void model_failed(struct model *m, uint32_t append); // surely not written
void model_unknown(struct model *m, uint32_t append);
void model_read_row(struct model *m, uint32_t table, int32_t partition, uint32_t bucket, uint64_t offset, uint64_t id, const void *pad, size_t pad_size);
void model_read_end(struct model *m, uint32_t table, int32_t partition, uint32_t bucket, uint64_t end);
void model_start(struct model *m, uint32_t table, int32_t partition, uint32_t bucket, uint64_t start, int64_t wall_ms);
// After a complete read of everything.
void model_check_complete(struct model *m);

#endif
