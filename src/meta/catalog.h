// SPDX-License-Identifier: Apache-2.0
// catalog.h: the replicated state: databases, tables, partitions, streams, objects, incarnations.
//
// What      A fold of the command log (invariant 6): catalog_apply is deterministic: no clock, random, I/O or hash order in it. Queries give
//           copies or counted references, so nothing of the catalog is held across turns.
// Flow      meta: log → catalog_apply → result to the proposer, on_applied to listeners.
// Owner     Any thread may query: a readers-writer lock inside (lock order: innermost). Apply: the meta shard alone.
#ifndef MINK_META_CATALOG_H
#define MINK_META_CATALOG_H
#include "base/buffer.h"
#include "base/error.h"
#include "table/table_def.h"

struct catalog;
struct catalog *catalog_new(void);
void catalog_free(struct catalog *c);
uint64_t catalog_position(struct catalog *c); // seq of the last command applied

// ---- tables
struct catalog_table { // a counted copy
    uint64_t table_id;
    struct table_def *def;       // newest version; one reference
    uint64_t created_position, altered_position; // altered: where the newest definition was written; the same as created at first
    uint64_t stream_base;        // of an unpartitioned table: bucket b is stream stream_base + b
};
struct catalog_partition { uint64_t partition_id; char *name; uint64_t stream_base; uint32_t bucket_count; };
enum mink_code catalog_find_table(struct catalog *c, const char *database, const char *name, struct catalog_table *out, struct error *e) MINK_MUST_CHECK; // NOT_FOUND [DATABASE_NOT_FOUND] [TABLE_NOT_FOUND] with near names across databases
enum mink_code catalog_table_by_id(struct catalog *c, uint64_t table_id, struct catalog_table *out, struct error *e) MINK_MUST_CHECK;
struct table_def *catalog_table_version(struct catalog *c, uint64_t table_id, uint32_t schema_id); // a reference, or NULL
void catalog_table_deinit(struct catalog_table *t);
enum mink_code catalog_find_partition(struct catalog *c, uint64_t table_id, const char *name, struct catalog_partition *out, struct error *e) MINK_MUST_CHECK; // [PARTITION_NOT_FOUND]
void catalog_partition_deinit(struct catalog_partition *p);
// Sorted by name; the arrays and their strings are freed with the function that follows.
void catalog_list_databases(struct catalog *c, char ***out, uint32_t *count);
void catalog_list_tables(struct catalog *c, const char *database, struct catalog_table **out, uint32_t *count); // NULL = all databases
void catalog_list_partitions(struct catalog *c, uint64_t table_id, struct catalog_partition **out, uint32_t *count);
void catalog_free_names(char **names, uint32_t count);
void catalog_free_tables(struct catalog_table *tables, uint32_t count);
void catalog_free_partitions(struct catalog_partition *partitions, uint32_t count);

// ---- streams and objects (stream-layer state)
enum incarnation_state { INCARNATION_LIVE, INCARNATION_DEAD, INCARNATION_SEALED };
struct catalog_incarnation { uint64_t id; enum incarnation_state state; char address[128]; uint64_t wal_committed, seal_seq; };
bool catalog_find_incarnation(struct catalog *c, uint64_t id, struct catalog_incarnation *out);
void catalog_list_incarnations(struct catalog *c, struct catalog_incarnation **out, uint32_t *count); // mem_free

struct catalog_stream {
    uint64_t stream_id, owner; // owner 0 = closed
    uint32_t epoch;            // 0 = never opened
    uint64_t start, end;       // committed
    uint64_t table_id, partition_id; uint32_t bucket;
    struct slice attachment;   // newest published (a reference), empty when none
    uint64_t attachment_end;   // the committed end it was published with
};
bool catalog_find_stream(struct catalog *c, uint64_t stream_id, struct catalog_stream *out);
void catalog_stream_deinit(struct catalog_stream *s);

enum object_kind { OBJECT_KIND_WAL = 1, OBJECT_KIND_SEAL = 2, OBJECT_KIND_SET = 3, OBJECT_KIND_STREAM = 4 };
struct catalog_object_id { enum object_kind kind; uint64_t incarnation, number; }; // WAL: number = seq; others: creator and its number
struct catalog_range { struct catalog_object_id object; uint64_t object_size, index_size, from, to; uint32_t epoch; };
// The range that holds `offset` (start <= offset < end) and up to max-1 that follow. Returns the count.
uint32_t catalog_ranges(struct catalog *c, uint64_t stream_id, uint64_t offset, struct catalog_range *out, uint32_t max);
struct catalog_object { struct catalog_object_id id; uint64_t size, index_size, live_ranges; uint64_t marked_position; }; // marked_position 0 = current
bool catalog_find_object(struct catalog *c, struct catalog_object_id id, struct catalog_object *out);
void catalog_list_objects(struct catalog *c, bool marked_only, struct catalog_object **out, uint32_t *count); // mem_free
void catalog_list_streams(struct catalog *c, uint64_t owner, uint64_t **out_ids, uint32_t *count); // of an owner; UINT64_MAX = all; mem_free

struct catalog_stats { uint64_t databases, tables, partitions, streams, objects, ranges, incarnations, bytes; };
void catalog_stats(struct catalog *c, struct catalog_stats *out);
#endif
