// SPDX-License-Identifier: Apache-2.0
// The catalog's memory.
#include "meta/catalog_internal.h"

#include "base/mem.h"

#include <string.h>

// ---- sorted arrays

uint32_t sorted_find(const struct sorted *s, const void *key, int (*compare)(const void *key, const void *item), bool *found) {
    uint32_t low = 0, high = s->count;
    *found = false;
    // Most keys are new and the largest: look at the end first.
    if (high && compare(key, s->items[high - 1]) > 0) return high;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        int order = compare(key, s->items[mid]);
        if (order == 0) {
            *found = true;
            return mid;
        }
        if (order > 0) low = mid + 1;
        else high = mid;
    }
    return low;
}

void sorted_insert(struct sorted *s, uint32_t at, void *item) {
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? s->capacity * 2 : 16;
        s->items = mem_realloc(s->items, s->capacity * sizeof *s->items);
    }
    memmove(s->items + at + 1, s->items + at, (s->count - at) * sizeof *s->items);
    s->items[at] = item;
    s->count++;
}

void sorted_remove_many(struct sorted *s, uint32_t at, uint32_t count) {
    s->count -= count;
    memmove(s->items + at, s->items + at + count, (s->count - at) * sizeof *s->items);
}

void sorted_remove(struct sorted *s, uint32_t at) { sorted_remove_many(s, at, 1); }

static int compare_u64(uint64_t a, uint64_t b) { return a < b ? -1 : a > b; }
int compare_database(const void *name, const void *item) { return strcmp(name, ((const struct database *)item)->name); }
int compare_partition(const void *name, const void *item) { return strcmp(name, ((const struct partition *)item)->name); }
int compare_table_id(const void *id, const void *item) { return compare_u64(*(const uint64_t *)id, ((const struct table *)item)->id); }
int compare_stream(const void *id, const void *item) { return compare_u64(*(const uint64_t *)id, ((const struct stream *)item)->id); }
int compare_incarnation(const void *id, const void *item) { return compare_u64(*(const uint64_t *)id, ((const struct incarnation *)item)->id); }

int compare_table(const void *key, const void *item) {
    const struct table_key *k = key;
    const struct table *t = item;
    int order = strcmp(k->database, t->database);
    return order ? order : strcmp(k->name, t->name);
}

int compare_object(const void *key, const void *item) {
    const struct catalog_object_id *a = key, *b = &((const struct object *)item)->id;
    int order = (a->kind == OBJECT_KIND_WAL) - (b->kind == OBJECT_KIND_WAL);
    if (!order) order = compare_u64(a->incarnation, b->incarnation);
    return order ? order : compare_u64(a->number, b->number);
}

#define FIND(list, key, compare)                              \
    bool found;                                               \
    uint32_t at = sorted_find((list), (key), (compare), &found); \
    return found ? (list)->items[at] : NULL

struct database *catalog_database(const struct catalog *c, const char *name) { FIND(&c->databases, name, compare_database); }
struct table *catalog_table_named(const struct catalog *c, const char *database, const char *name) {
    struct table_key key = {database, name};
    FIND(&c->tables, &key, compare_table);
}
struct table *catalog_table_with_id(const struct catalog *c, uint64_t id) { FIND(&c->tables_by_id, &id, compare_table_id); }
struct partition *catalog_partition_named(const struct table *t, const char *name) { FIND(&t->partitions, name, compare_partition); }
struct stream *catalog_stream_with_id(const struct catalog *c, uint64_t id) { FIND(&c->streams, &id, compare_stream); }
struct object *catalog_object_with_id(const struct catalog *c, struct catalog_object_id id) { FIND(&c->objects, &id, compare_object); }
struct incarnation *catalog_incarnation_with_id(const struct catalog *c, uint64_t id) { FIND(&c->incarnations, &id, compare_incarnation); }

uint32_t stream_find_range(const struct stream *s, uint64_t offset) {
    const struct range *ranges = stream_ranges(s);
    uint32_t low = 0, high = s->range_count; // the first with to > offset
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (ranges[mid].to > offset) high = mid;
        else low = mid + 1;
    }
    return low;
}

// ---- life

static void catalog_reset_numbers(struct catalog *c) {
    c->position = 0;
    c->next_table_id = c->next_partition_id = c->next_stream_id = c->next_incarnation = c->next_writer_id = 1;
}

struct catalog *catalog_new(void) {
    struct catalog *c = mem_new(struct catalog);
    pthread_rwlockattr_t attributes; // apply is rare and must not wait behind an endless row of readers
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&c->lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    catalog_reset_numbers(c);
    return c;
}

void catalog_free_database(struct database *d) {
    mem_free(d->name);
    mem_free(d->comment);
    mem_free(d);
}

void catalog_free_partition(struct partition *p) {
    mem_free(p->name);
    mem_free(p);
}

void catalog_free_table(struct table *t) {
    for (uint32_t i = 0; i < t->version_count; i++) table_def_unref(t->versions[i]);
    for (uint32_t i = 0; i < t->partitions.count; i++) catalog_free_partition(t->partitions.items[i]);
    mem_free(t->versions);
    mem_free(t->partitions.items);
    mem_free(t->database);
    mem_free(t->name);
    mem_free(t);
}

void catalog_free_stream(struct stream *s) {
    slice_unref(&s->attachment);
    mem_free(s->ranges);
    mem_free(s);
}

void catalog_free_incarnation(struct incarnation *i) {
    mem_free(i->address);
    mem_free(i->rack);
    mem_free(i);
}

void catalog_clear(struct catalog *c) {
    for (uint32_t i = 0; i < c->databases.count; i++) catalog_free_database(c->databases.items[i]);
    for (uint32_t i = 0; i < c->tables.count; i++) catalog_free_table(c->tables.items[i]);
    for (uint32_t i = 0; i < c->streams.count; i++) catalog_free_stream(c->streams.items[i]);
    for (uint32_t i = 0; i < c->objects.count; i++) mem_free(c->objects.items[i]);
    for (uint32_t i = 0; i < c->incarnations.count; i++) catalog_free_incarnation(c->incarnations.items[i]);
    struct sorted *lists[] = {&c->databases, &c->tables, &c->tables_by_id, &c->streams, &c->objects, &c->incarnations};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        mem_free(lists[i]->items);
        *lists[i] = (struct sorted){0};
    }
    c->range_total = 0;
    catalog_reset_numbers(c);
}

void catalog_free(struct catalog *c) {
    if (!c) return;
    catalog_clear(c);
    pthread_rwlock_destroy(&c->lock);
    mem_free(c);
}
