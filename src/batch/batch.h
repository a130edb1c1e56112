// SPDX-License-Identifier: Apache-2.0
// batch.h: the log batch, the unit that is appended, stored, read and replicated. Pure.
//
// Layout (little-endian; docs/formats.md#log-batch):
//   header 96 B   0 magic u32 "MBAT"  4 version u8 = 1  5 payload kind u8 (0 none, 1 Arrow, 2 Kafka)  6 attributes u16
//                 8 length u32 (whole batch, a multiple of 8)  12 crc32c u32 of bytes 48..length
//                16 offset_first u64  24 leader_epoch u32  28 reserved u32  32 commit_ms i64   ← 16..48 filled in by the leader, outside the crc
//                40 reserved u64
//                48 offset_count u32  52 row_count u32  56 schema_id u32  60 writer_epoch u16  62 reserved u16
//                64 writer_id u64 (0 = none)  72 first_sequence u32 (batch sequence)  76 row_kinds_size u32  80 statistics_size u32
//                84 message_size u32 (IPC message, bare)  88 body_size u64
//   then row kinds (1 byte a row, or none: all +A), statistics, IPC message, each padded with zeros to 8; IPC body starts at a multiple of 64 from
//   the batch's start (zeros between), padded to 8.
// Holds     The bytes 16..47 can be rewritten in place without touching anything else. A decoded view borrows the batch's bytes.
// Owner     Pure functions, any thread.
#ifndef MINK_BATCH_BATCH_H
#define MINK_BATCH_BATCH_H

#include "arrow/ipc.h"

#define BATCH_HEADER_SIZE 96
#define BATCH_SIZE_MAX (64u << 20)
enum batch_payload { BATCH_PAYLOAD_NONE, BATCH_PAYLOAD_ARROW, BATCH_PAYLOAD_KAFKA };
enum row_kind { ROW_APPEND, ROW_INSERT, ROW_UPDATE_BEFORE, ROW_UPDATE_AFTER, ROW_DELETE };

struct batch_header {
    uint32_t length, crc32c;
    uint64_t offset_first;
    uint32_t leader_epoch;
    int64_t commit_ms;
    uint32_t offset_count, row_count, schema_id;
    enum batch_payload payload;
    uint16_t attributes;
    uint64_t writer_id;
    uint16_t writer_epoch;
    uint32_t sequence; // of the batch, per writer and bucket
    uint32_t row_kinds_size, statistics_size, message_size;
    uint64_t body_size;
};

// Bytes before the IPC body for these section sizes: a multiple of 64. A receiver allocates this much room in front of the body, so that a
// batch is one contiguous slab and its body is copied once, from the socket.
size_t batch_head_size(size_t row_kinds_size, size_t statistics_size, size_t message_size);

// A batch as bytes: all in `head`, or head and body apart (statistics were added, or rows were split). head + body = length bytes.
struct batch_bytes { struct slice head, body; };

// A batch being built; header not yet stamped. The CRC of the part that does not change is computed here, once.
struct batch_draft {
    struct batch_header header;
    struct batch_bytes bytes;
    uint8_t *head_data;    // writable view of bytes.head; only batch_stamp writes, and only before the bytes are shared
    uint32_t tail_crc32c;  // of bytes [48, length)
};
// Copies row_kinds, statistics and message into a new head; references body (one contiguous slice, 64-aligned).
enum mink_code batch_draft_make(const struct batch_header *fields, struct slice row_kinds, struct slice statistics, struct slice message, struct slice body, struct batch_draft *out, struct error *e) MINK_MUST_CHECK;
// slab: from slice_new, taken; the body lies at batch_head_size(0, 0, message.size) and ends with padding to 8. Copies message in front of it.
enum mink_code batch_draft_in_place(const struct batch_header *fields, struct slice take_slab, uint8_t *slab_data, struct slice message, uint64_t body_size, struct batch_draft *out, struct error *e) MINK_MUST_CHECK;
// The leader's part: writes offset_first, leader_epoch, commit_ms; gives the CRC of the whole batch by combining.
void batch_stamp(struct batch_draft *d, uint64_t offset_first, uint32_t leader_epoch, int64_t commit_ms, uint32_t *out_batch_crc32c);
void batch_draft_deinit(struct batch_draft *d);

// Peek needs BATCH_HEADER_SIZE bytes and gives the length; decode checks magic, version, sizes, and the CRC when asked.
enum mink_code batch_peek(struct slice bytes, uint32_t *out_length, struct error *e) MINK_MUST_CHECK;
struct batch_view {
    struct batch_header header;
    struct slice row_kinds, statistics, message, body; // views (no references) of the bytes given
};
enum mink_code batch_decode(const struct batch_bytes *bytes, bool verify_crc, struct batch_view *out, struct error *e) MINK_MUST_CHECK;

// Cuts stored payload (the slices of a block, in order) into batches. A batch lies in one slice, or its head in one and its body in the next.
struct batch_cursor { const struct slices *payload; uint32_t slice; size_t position; };
void batch_cursor_init(struct batch_cursor *c, const struct slices *payload);
enum mink_code batch_cursor_next(struct batch_cursor *c, struct batch_bytes *out_views, bool *end, struct error *e) MINK_MUST_CHECK;

// Statistics section: per column {column id, null count, min, max}; docs/formats.md#batch-statistics.
#include "table/table_def.h"
struct slice batch_statistics_make(const struct table_def *d, const struct arrow_batch *b); // for d->statistics_columns; empty when none
// out_stats[column index] is filled for columns present (borrowing from the section), NULL elsewhere; storage holds d->column_count.
struct arrow_column_stats;
enum mink_code batch_statistics_read(struct slice section, const struct table_def *d, struct arrow_column_stats *storage, const struct arrow_column_stats **out_stats, struct error *e) MINK_MUST_CHECK;

#endif
