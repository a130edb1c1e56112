// SPDX-License-Identifier: Apache-2.0
// catalog_internal.h: the catalog's state. Everything that is iterated is a sorted array, so that order never depends on memory or hashing.
#ifndef MINK_META_CATALOG_INTERNAL_H
#define MINK_META_CATALOG_INTERNAL_H

#include "meta/catalog.h"

#include <pthread.h>

#define ATTACHMENT_BYTES_MAX (256u << 10)
#define CATALOG_NAME_MAX 4096
#define INCARNATION_NONCE_SIZE 16
#define INCARNATION_ADDRESS_MAX 127 // what struct catalog_incarnation holds
#define INCARNATION_ID_MAX ((1ull << 40) - 1)
#define OBJECT_NUMBER_MAX ((1ull << 24) - 1)

// A sorted array of pointers; the key is read through `compare`.
struct sorted { void **items; uint32_t count, capacity; };

struct database { char *name, *comment; };
struct partition { uint64_t id, stream_base; uint32_t bucket_count; char *name; };
struct table {
    uint64_t id, created_position, altered_position, stream_base;
    char *database, *name;
    struct table_def **versions; // of the columns, ascending schema_id; the last is current
    uint32_t version_count;
    struct sorted partitions; // struct partition, by name
};

struct object {
    struct catalog_object_id id;
    uint64_t size, index_size, marked_position;
    uint32_t live_ranges;
    uint64_t chosen_seq; // scratch: the command at this position names it. Not state
};

// Ranges tile [start, end): `from` of a range is `to` of the one before it, or the stream's start.
struct range { struct object *object; uint64_t to; uint32_t epoch; };
struct stream {
    uint64_t id, owner, start, end, table_id, partition_id;
    uint32_t epoch, bucket;
    struct range *ranges; // [range_first, range_first + range_count)
    uint32_t range_first, range_count, range_capacity;
    struct slice attachment;
    uint64_t attachment_end;
    uint64_t ahead_seq, ahead_end; // scratch: the end after what the command at ahead_seq adds, while it is checked. Not state
};

struct incarnation {
    uint64_t id, wal_committed, seal_seq;
    enum incarnation_state state;
    uint8_t nonce[INCARNATION_NONCE_SIZE];
    char *address, *rack;
};

struct catalog {
    pthread_rwlock_t lock; // guards all below; innermost
    uint64_t position;
    uint64_t next_table_id, next_partition_id, next_stream_id, next_incarnation, next_writer_id;
    struct sorted databases;    // by name
    struct sorted tables;       // by (database, name)
    struct sorted tables_by_id;
    struct sorted streams;      // by id
    struct sorted objects;      // by (is WAL, incarnation, number)
    struct sorted incarnations; // by id
    uint64_t range_total;
};

// Where an equal item is, or would be put. compare(key, item).
uint32_t sorted_find(const struct sorted *s, const void *key, int (*compare)(const void *key, const void *item), bool *found);
void sorted_insert(struct sorted *s, uint32_t at, void *item);
void sorted_remove(struct sorted *s, uint32_t at);
void sorted_remove_many(struct sorted *s, uint32_t at, uint32_t count);

int compare_database(const void *name, const void *item);
int compare_partition(const void *name, const void *item);
struct table_key { const char *database, *name; };
int compare_table(const void *key, const void *item);
int compare_table_id(const void *id, const void *item);
int compare_stream(const void *id, const void *item);
int compare_object(const void *id, const void *item); // key: struct catalog_object_id
int compare_incarnation(const void *id, const void *item);

struct database *catalog_database(const struct catalog *c, const char *name);
struct table *catalog_table_named(const struct catalog *c, const char *database, const char *name);
struct table *catalog_table_with_id(const struct catalog *c, uint64_t id);
struct partition *catalog_partition_named(const struct table *t, const char *name);
struct stream *catalog_stream_with_id(const struct catalog *c, uint64_t id);
struct object *catalog_object_with_id(const struct catalog *c, struct catalog_object_id id);
struct incarnation *catalog_incarnation_with_id(const struct catalog *c, uint64_t id);
static inline struct range *stream_ranges(const struct stream *s) { return s->ranges + s->range_first; }
static inline uint64_t stream_range_from(const struct stream *s, uint32_t n) { return n ? stream_ranges(s)[n - 1].to : s->start; }
uint32_t stream_find_range(const struct stream *s, uint64_t offset); // the one that holds offset; range_count when offset >= end

void catalog_free_database(struct database *d);
void catalog_free_table(struct table *t);
void catalog_free_partition(struct partition *p);
void catalog_free_stream(struct stream *s);
void catalog_free_incarnation(struct incarnation *i);
void catalog_clear(struct catalog *c);

// Parts of apply that change streams and objects.
void catalog_push_range(struct catalog *c, struct stream *s, struct object *o, uint64_t to, uint32_t epoch);
void catalog_release_range(struct catalog *c, struct object *o); // one range less; settles the object
void catalog_settle_object(struct catalog *c, struct object *o);  // marked when nothing refers to it and nothing may any more
bool catalog_may_be_unreferenced(const struct catalog *c, const struct object *o); // unmarked without ranges: WAL that is not committed yet
void catalog_drop_streams(struct catalog *c, uint64_t base, uint32_t count);
struct object *catalog_add_object(struct catalog *c, struct catalog_object_id id, uint64_t size, uint64_t index_size);
void catalog_add_streams(struct catalog *c, uint64_t table_id, uint64_t partition_id, uint32_t count, uint64_t *out_base);

#endif
