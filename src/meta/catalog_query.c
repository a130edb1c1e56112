// SPDX-License-Identifier: Apache-2.0
// The catalog's queries: copies and counted references, made under the lock.
#include "meta/catalog_internal.h"

#include "base/mem.h"
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

static void read_begin(struct catalog *c) { pthread_rwlock_rdlock(&c->lock); }
static void read_end(struct catalog *c) { pthread_rwlock_unlock(&c->lock); }

uint64_t catalog_position(struct catalog *c) {
    read_begin(c);
    uint64_t position = c->position;
    read_end(c);
    return position;
}

// ---- tables

static void copy_table(const struct table *t, struct catalog_table *out) {
    *out = (struct catalog_table){t->id, table_def_ref(t->versions[t->version_count - 1]), t->created_position, t->altered_position, t->stream_base};
}

static enum mink_code table_missing(struct catalog *c, const char *database, const char *name, struct error *e) {
    struct nearest near;
    if (!catalog_database(c, database)) {
        nearest_init(&near, database);
        for (uint32_t i = 0; i < c->databases.count; i++) nearest_offer(&near, ((struct database *)c->databases.items[i])->name);
        const char *best = nearest_found(&near);
        return error_set(e, MINK_NOT_FOUND, "DATABASE_NOT_FOUND", "database %s does not exist%s%s%s", database, best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
    }
    char wanted[512], candidate[512];
    snprintf(wanted, sizeof wanted, "%s.%s", database, name);
    nearest_init(&near, wanted);
    for (uint32_t i = 0; i < c->tables.count; i++) {
        const struct table *t = c->tables.items[i];
        snprintf(candidate, sizeof candidate, "%s.%s", t->database, t->name);
        nearest_offer(&near, candidate);
    }
    const char *best = nearest_found(&near);
    return error_set(e, MINK_NOT_FOUND, "TABLE_NOT_FOUND", "table %s does not exist%s%s%s", wanted, best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
}

enum mink_code catalog_find_table(struct catalog *c, const char *database, const char *name, struct catalog_table *out, struct error *e) {
    enum mink_code code = MINK_OK;
    read_begin(c);
    const struct table *t = catalog_table_named(c, database, name);
    if (t) copy_table(t, out);
    else code = table_missing(c, database, name, e);
    read_end(c);
    return code;
}

enum mink_code catalog_table_by_id(struct catalog *c, uint64_t table_id, struct catalog_table *out, struct error *e) {
    enum mink_code code = MINK_OK;
    read_begin(c);
    const struct table *t = catalog_table_with_id(c, table_id);
    if (t) copy_table(t, out);
    else code = error_set(e, MINK_NOT_FOUND, "TABLE_NOT_FOUND", "table %llu does not exist any more", (unsigned long long)table_id);
    read_end(c);
    return code;
}

struct table_def *catalog_table_version(struct catalog *c, uint64_t table_id, uint32_t schema_id) {
    struct table_def *def = NULL;
    read_begin(c);
    const struct table *t = catalog_table_with_id(c, table_id);
    for (uint32_t i = 0; t && i < t->version_count && !def; i++)
        if (t->versions[i]->schema_id == schema_id) def = table_def_ref(t->versions[i]);
    read_end(c);
    return def;
}

void catalog_table_deinit(struct catalog_table *t) {
    table_def_unref(t->def);
    t->def = NULL;
}

static void copy_partition(const struct partition *p, struct catalog_partition *out) { *out = (struct catalog_partition){p->id, mem_strdup(p->name), p->stream_base, p->bucket_count}; }

enum mink_code catalog_find_partition(struct catalog *c, uint64_t table_id, const char *name, struct catalog_partition *out, struct error *e) {
    enum mink_code code = MINK_OK;
    read_begin(c);
    const struct table *t = catalog_table_with_id(c, table_id);
    const struct partition *p = t ? catalog_partition_named(t, name) : NULL;
    if (p) {
        copy_partition(p, out);
    } else if (!t) {
        code = error_set(e, MINK_NOT_FOUND, "TABLE_NOT_FOUND", "table %llu does not exist any more", (unsigned long long)table_id);
    } else {
        struct nearest near;
        nearest_init(&near, name);
        for (uint32_t i = 0; i < t->partitions.count; i++) nearest_offer(&near, ((struct partition *)t->partitions.items[i])->name);
        const char *best = nearest_found(&near);
        code = error_set(e, MINK_NOT_FOUND, "PARTITION_NOT_FOUND", "partition %s of %s.%s does not exist%s%s%s", name, t->database, t->name, best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
    }
    read_end(c);
    return code;
}

void catalog_partition_deinit(struct catalog_partition *p) {
    mem_free(p->name);
    p->name = NULL;
}

void catalog_list_databases(struct catalog *c, char ***out, uint32_t *count) {
    read_begin(c);
    *count = c->databases.count;
    *out = mem_new_array(char *, *count + 1);
    for (uint32_t i = 0; i < *count; i++) (*out)[i] = mem_strdup(((struct database *)c->databases.items[i])->name);
    read_end(c);
}

void catalog_list_tables(struct catalog *c, const char *database, struct catalog_table **out, uint32_t *count) {
    read_begin(c);
    *out = mem_new_array(struct catalog_table, c->tables.count + 1);
    *count = 0;
    for (uint32_t i = 0; i < c->tables.count; i++) {
        const struct table *t = c->tables.items[i];
        if (!database || strcmp(database, t->database) == 0) copy_table(t, &(*out)[(*count)++]);
    }
    read_end(c);
}

void catalog_list_partitions(struct catalog *c, uint64_t table_id, struct catalog_partition **out, uint32_t *count) {
    read_begin(c);
    const struct table *t = catalog_table_with_id(c, table_id);
    *count = t ? t->partitions.count : 0;
    *out = mem_new_array(struct catalog_partition, *count + 1);
    for (uint32_t i = 0; i < *count; i++) copy_partition(t->partitions.items[i], &(*out)[i]);
    read_end(c);
}

void catalog_free_names(char **names, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) mem_free(names[i]);
    mem_free(names);
}

void catalog_free_tables(struct catalog_table *tables, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) catalog_table_deinit(&tables[i]);
    mem_free(tables);
}

void catalog_free_partitions(struct catalog_partition *partitions, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) catalog_partition_deinit(&partitions[i]);
    mem_free(partitions);
}

// ---- streams

static void copy_incarnation(const struct incarnation *i, struct catalog_incarnation *out) {
    *out = (struct catalog_incarnation){.id = i->id, .state = i->state, .wal_committed = i->wal_committed, .seal_seq = i->seal_seq};
    snprintf(out->address, sizeof out->address, "%s", i->address);
}

bool catalog_find_incarnation(struct catalog *c, uint64_t id, struct catalog_incarnation *out) {
    read_begin(c);
    const struct incarnation *i = catalog_incarnation_with_id(c, id);
    if (i) copy_incarnation(i, out);
    read_end(c);
    return i != NULL;
}

void catalog_list_incarnations(struct catalog *c, struct catalog_incarnation **out, uint32_t *count) {
    read_begin(c);
    *count = c->incarnations.count;
    *out = mem_new_array(struct catalog_incarnation, *count + 1);
    for (uint32_t i = 0; i < *count; i++) copy_incarnation(c->incarnations.items[i], &(*out)[i]);
    read_end(c);
}

bool catalog_find_stream(struct catalog *c, uint64_t stream_id, struct catalog_stream *out) {
    read_begin(c);
    const struct stream *s = catalog_stream_with_id(c, stream_id);
    if (s) *out = (struct catalog_stream){s->id, s->owner, s->epoch, s->start, s->end, s->table_id, s->partition_id, s->bucket, slice_ref(s->attachment), s->attachment_end};
    read_end(c);
    return s != NULL;
}

void catalog_stream_deinit(struct catalog_stream *s) { slice_unref(&s->attachment); }

uint32_t catalog_ranges(struct catalog *c, uint64_t stream_id, uint64_t offset, struct catalog_range *out, uint32_t max) {
    uint32_t count = 0;
    read_begin(c);
    const struct stream *s = catalog_stream_with_id(c, stream_id);
    if (s && offset >= s->start && offset < s->end) {
        for (uint32_t n = stream_find_range(s, offset); n < s->range_count && count < max; n++, count++) {
            const struct range *r = &stream_ranges(s)[n];
            out[count] = (struct catalog_range){r->object->id, r->object->size, r->object->index_size, stream_range_from(s, n), r->to, r->epoch};
        }
    }
    read_end(c);
    return count;
}

static void copy_object(const struct object *o, struct catalog_object *out) { *out = (struct catalog_object){o->id, o->size, o->index_size, o->live_ranges, o->marked_position}; }

bool catalog_find_object(struct catalog *c, struct catalog_object_id id, struct catalog_object *out) {
    read_begin(c);
    const struct object *o = catalog_object_with_id(c, id);
    if (o) copy_object(o, out);
    read_end(c);
    return o != NULL;
}

void catalog_list_objects(struct catalog *c, bool marked_only, struct catalog_object **out, uint32_t *count) {
    read_begin(c);
    *out = mem_new_array(struct catalog_object, c->objects.count + 1);
    *count = 0;
    for (uint32_t i = 0; i < c->objects.count; i++) {
        const struct object *o = c->objects.items[i];
        if (!marked_only || o->marked_position) copy_object(o, &(*out)[(*count)++]);
    }
    read_end(c);
}

void catalog_list_streams(struct catalog *c, uint64_t owner, uint64_t **out_ids, uint32_t *count) {
    read_begin(c);
    *out_ids = mem_new_array(uint64_t, c->streams.count + 1);
    *count = 0;
    for (uint32_t i = 0; i < c->streams.count; i++) {
        const struct stream *s = c->streams.items[i];
        if (owner == UINT64_MAX || s->owner == owner) (*out_ids)[(*count)++] = s->id;
    }
    read_end(c);
}

void catalog_stats(struct catalog *c, struct catalog_stats *out) {
    read_begin(c);
    *out = (struct catalog_stats){.databases = c->databases.count, .tables = c->tables.count, .streams = c->streams.count, .objects = c->objects.count, .ranges = c->range_total, .incarnations = c->incarnations.count};
    for (uint32_t i = 0; i < c->tables.count; i++) out->partitions += ((struct table *)c->tables.items[i])->partitions.count;
    out->bytes = c->streams.count * (sizeof(struct stream) + sizeof(void *)) + c->objects.count * (sizeof(struct object) + sizeof(void *)) + c->range_total * sizeof(struct range);
    read_end(c);
}
