// SPDX-License-Identifier: Apache-2.0
#include "sim/sim_model.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void model_init(struct model *m, struct sim *sim) { *m = (struct model){.sim = sim}; }

void model_deinit(struct model *m) {
    for (uint32_t t = 0; t < TABLES_MAX; t++)
        for (uint32_t p = 0; p < PARTITIONS_MAX; p++)
            for (uint32_t b = 0; b < BUCKETS_MAX; b++) mem_free(m->tables[t].buckets[p][b].rows);
    mem_free(m->appends);
    mem_free(m->rows);
}

void model_violation(struct model *m, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    m->violated(m->ctx, text);
    mink_panic(__FILE__, __LINE__, "a violation was ignored");
}

static struct model_bucket *bucket_of(struct model *m, uint32_t table, int32_t partition, uint32_t bucket) {
    if (table >= m->table_count || bucket >= m->tables[table].bucket_count || partition >= PARTITIONS_MAX)
        model_violation(m, "table %u has no partition %d bucket %u", table, partition, bucket);
    return &m->tables[table].buckets[partition < 0 ? 0 : partition][bucket];
}

uint32_t model_append(struct model *m, uint32_t table, int32_t partition, int32_t bucket, int32_t writer, uint32_t sequence, uint32_t row_count) {
    if (m->append_count == m->append_capacity) {
        m->append_capacity = m->append_capacity ? m->append_capacity * 2 : 64;
        m->appends = mem_realloc(m->appends, m->append_capacity * sizeof *m->appends);
    }
    while (m->row_count + row_count > m->row_capacity) {
        m->row_capacity = m->row_capacity ? m->row_capacity * 2 : 1024;
        m->rows = mem_realloc(m->rows, m->row_capacity * sizeof *m->rows);
    }
    m->appends[m->append_count] = (struct model_append){.table = table, .row_first = m->row_count, .row_count = row_count, .partition = partition, .bucket = bucket, .writer = writer, .sequence = sequence, .sent_ns = sim_now_ns(m->sim), .sent_wall_ms = shard_wall_ms(sim_world(m->sim))};
    for (uint32_t i = 0; i < row_count; i++) m->rows[m->row_count++] = (struct model_row){.append = m->append_count, .partition = -1, .bucket = -1, .offset = OFFSET_NONE};
    return m->append_count++;
}

uint64_t model_row_id(uint32_t row) { return ROW_MAGIC << 32 | row; }

size_t model_row_pad(uint32_t row, char *out) {
    size_t size = 8 + (row * 2654435761u >> 16) % 100;
    uint64_t x = (uint64_t)row * 0x9e3779b97f4a7c15ull + 1;
    for (size_t i = 0; i < size; i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        out[i] = (char)('a' + (x >> 59) % 26);
    }
    return size;
}

// Ids lie at multiples of 8 of an object, uncompressed.
void model_durable(struct model *m, const uint8_t *bytes, size_t size) {
    for (size_t at = 0; at + 8 <= size; at += 8) {
        uint32_t upper, row;
        memcpy(&upper, bytes + at + 4, 4);
        if (upper != ROW_MAGIC) continue;
        memcpy(&row, bytes + at, 4);
        if (row < m->row_count) m->rows[row].durable = true;
    }
}

// ---- what is known of an offset

static void learn(struct model *m, uint32_t table, int32_t partition, uint32_t bucket, uint64_t offset, uint32_t row, const char *how) {
    struct model_bucket *b = bucket_of(m, table, partition, bucket);
    struct model_row *r = &m->rows[row];
    if (offset > 10000000) model_violation(m, "%s: offset %" PRIu64 " cannot be", how, offset);
    while (offset >= b->capacity) {
        uint64_t capacity = b->capacity ? b->capacity * 2 : 256;
        b->rows = mem_realloc(b->rows, capacity * sizeof *b->rows);
        memset(b->rows + b->capacity, 0, (capacity - b->capacity) * sizeof *b->rows);
        b->capacity = capacity;
    }
    if (!r->durable) model_violation(m, "%s: row %u at table %u bucket %u offset %" PRIu64 " is not durable", how, row, table, bucket, offset);
    if (b->rows[offset] && b->rows[offset] != row + 1)
        model_violation(m, "%s: table %u partition %d bucket %u offset %" PRIu64 " holds row %u and held row %u", how, table, partition, bucket, offset, row, b->rows[offset] - 1);
    if (r->offset != OFFSET_NONE && (r->offset != offset || r->bucket != (int32_t)bucket || r->partition != partition))
        model_violation(m, "%s: row %u is at bucket %u offset %" PRIu64 " and at bucket %d offset %" PRIu64, how, row, bucket, offset, r->bucket, r->offset);
    b->rows[offset] = row + 1;
    r->offset = offset;
    r->bucket = (int32_t)bucket;
    r->partition = partition;
    // Rows of one append that share a bucket follow each other, with nothing of others between them.
    const struct model_append *a = &m->appends[r->append];
    if (!m->tables[table].keyed && row > a->row_first) {
        const struct model_row *before = &m->rows[row - 1];
        if (before->offset != OFFSET_NONE && before->bucket == (int32_t)bucket && before->partition == partition && before->offset + 1 != offset)
            model_violation(m, "%s: rows %u and %u of one append are at offsets %" PRIu64 " and %" PRIu64, how, row - 1, row, before->offset, offset);
    }
}

// ---- the ends of an append

void model_acked_range(struct model *m, uint32_t append, int32_t partition, uint32_t bucket, uint64_t first, uint64_t last) {
    const struct model_append *a = &m->appends[append];
    if (last < first) model_violation(m, "append %u: offsets %" PRIu64 " to %" PRIu64, append, first, last);
    if (a->bucket >= 0 && a->bucket != (int32_t)bucket) model_violation(m, "append %u for bucket %d went to bucket %u", append, a->bucket, bucket);
    if (a->partition >= 0 && a->partition != partition) model_violation(m, "append %u for partition %d went to partition %d", append, a->partition, partition);
    if (last - first + 1 == a->row_count)
        for (uint32_t i = 0; i < a->row_count && !m->tables[a->table].keyed; i++) learn(m, a->table, partition, bucket, first + i, a->row_first + i, "acknowledgement");
    struct model_bucket *b = bucket_of(m, a->table, partition, bucket);
    if (last + 1 > b->high_watermark) b->high_watermark = last + 1;
}

void model_acked(struct model *m, uint32_t append, uint64_t rows_in_ranges) {
    struct model_append *a = &m->appends[append];
    if (rows_in_ranges != a->row_count) model_violation(m, "append %u of %u rows was acknowledged with %" PRIu64, append, a->row_count, rows_in_ranges);
    for (uint32_t i = 0; i < a->row_count; i++)
        if (!m->rows[a->row_first + i].durable) model_violation(m, "append %u was acknowledged, its row %u is not durable", append, a->row_first + i);
    if (a->state != APPEND_ACKED) {
        m->acks++;
        m->rows_acked += a->row_count;
    }
    a->state = APPEND_ACKED;
    a->ended_ns = sim_now_ns(m->sim);
    a->ended_wall_ms = shard_wall_ms(sim_world(m->sim));
}

void model_failed(struct model *m, uint32_t append) {
    struct model_append *a = &m->appends[append];
    for (uint32_t i = 0; i < a->row_count; i++)
        if (m->rows[a->row_first + i].offset != OFFSET_NONE) model_violation(m, "append %u was told to have failed, its row %u is readable", append, a->row_first + i);
    a->state = APPEND_FAILED;
    a->ended_ns = sim_now_ns(m->sim);
}

void model_unknown(struct model *m, uint32_t append) {
    if (m->appends[append].state == APPEND_OPEN) m->appends[append].state = APPEND_UNKNOWN;
}

// ---- reads

void model_read_row(struct model *m, uint32_t table, int32_t partition, uint32_t bucket, uint64_t offset, uint64_t id, const void *pad, size_t pad_size) {
    uint32_t row = (uint32_t)id;
    if (id >> 32 != ROW_MAGIC || row >= m->row_count) model_violation(m, "table %u bucket %u offset %" PRIu64 ": id %" PRIx64 " was never written", table, bucket, offset, id);
    char expected[128];
    size_t size = model_row_pad(row, expected);
    if (size != pad_size || memcmp(expected, pad, size) != 0) model_violation(m, "table %u bucket %u offset %" PRIu64 ": row %u has other bytes than were written", table, bucket, offset, row);
    const struct model_append *a = &m->appends[m->rows[row].append];
    if (a->table != table || (a->bucket >= 0 && a->bucket != (int32_t)bucket) || (a->partition >= 0 && a->partition != partition))
        model_violation(m, "row %u of table %u bucket %d is read in table %u bucket %u", row, a->table, a->bucket, table, bucket);
    if (a->state == APPEND_FAILED) model_violation(m, "row %u is readable, its append was told to have failed", row);
    learn(m, table, partition, bucket, offset, row, "read");
    m->rows_read++;
}

void model_read_end(struct model *m, uint32_t table, int32_t partition, uint32_t bucket, uint64_t end) {
    struct model_bucket *b = bucket_of(m, table, partition, bucket);
    if (end > b->high_watermark) b->high_watermark = end;
    m->reads++;
}

// Everything before `start` is gone: it must have been old enough.
void model_start(struct model *m, uint32_t table, int32_t partition, uint32_t bucket, uint64_t start, int64_t wall_ms) {
    struct model_bucket *b = bucket_of(m, table, partition, bucket);
    if (start <= b->start) return;
    int64_t ttl = m->tables[table].ttl_ms;
    if (ttl < 0) model_violation(m, "table %u bucket %u begins at %" PRIu64 ", though it keeps everything", table, bucket, start);
    for (uint64_t offset = b->start; offset < start && offset < b->capacity; offset++) {
        if (b->rows[offset] == 0) continue;
        const struct model_append *a = &m->appends[m->rows[b->rows[offset] - 1].append];
        if (a->sent_wall_ms > wall_ms - ttl) model_violation(m, "table %u bucket %u: offset %" PRIu64 " was trimmed at an age of %" PRId64 " ms, it is kept for %" PRId64, table, bucket, offset, wall_ms - a->sent_wall_ms, ttl);
    }
    b->start = start;
}

// ---- the end

void model_check_complete(struct model *m) {
    for (uint32_t t = 0; t < m->table_count; t++)
        for (uint32_t p = 0; p < PARTITIONS_MAX; p++)
            for (uint32_t k = 0; k < BUCKETS_MAX; k++) {
                const struct model_bucket *b = &m->tables[t].buckets[p][k];
                for (uint64_t offset = b->start; offset < b->high_watermark; offset++)
                    if (offset >= b->capacity || b->rows[offset] == 0) model_violation(m, "table %u partition %u bucket %u: offset %" PRIu64 " of %" PRIu64 " was never seen", t, p, k, offset, b->high_watermark);
            }
    struct model_row last[64]; // of each idempotent writer
    uint32_t last_sequence[64];
    bool seen[64] = {0};
    for (uint32_t i = 0; i < m->append_count; i++) {
        const struct model_append *a = &m->appends[i];
        uint32_t there = 0;
        for (uint32_t k = 0; k < a->row_count; k++) there += m->rows[a->row_first + k].offset != OFFSET_NONE;
        // What was trimmed before anybody read it is known to have been there only by its acknowledgement.
        if (a->state == APPEND_ACKED && there != a->row_count && m->tables[a->table].ttl_ms < 0)
            model_violation(m, "append %u of %u rows was acknowledged, %u of them are there", i, a->row_count, there);
        if (there && there != a->row_count && !m->tables[a->table].keyed && m->tables[a->table].ttl_ms < 0)
            model_violation(m, "append %u of %u rows is there with %u", i, a->row_count, there);
        if (a->writer < 0 || a->writer >= 64 || there != a->row_count) continue;
        if (seen[a->writer] && a->sequence > last_sequence[a->writer] && m->rows[a->row_first].offset <= last[a->writer].offset)
            model_violation(m, "writer %d: sequence %u is at offset %" PRIu64 ", sequence %u at %" PRIu64, a->writer, a->sequence, m->rows[a->row_first].offset, last_sequence[a->writer], last[a->writer].offset);
        seen[a->writer] = true;
        last[a->writer] = m->rows[a->row_first];
        last_sequence[a->writer] = a->sequence;
    }
}
