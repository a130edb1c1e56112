// SPDX-License-Identifier: Apache-2.0
// Applying one command: decode, check, change. The checks of a command all come before its first change, so that a refused one changes nothing.
// Two kinds of failure: the command's own result (a decision all nodes reach alike), and a log that cannot be understood (apply's return value:
// the node must stop).
#include "meta/catalog_internal.h"
#include "meta/command_internal.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

struct apply {
    struct catalog *c;
    uint64_t seq;
    struct command_result *result;
};

#define REFUSE(a, code_, reason, ...)                                         \
    do {                                                                      \
        (a)->result->code = error_set(&(a)->result->error, code_, reason, __VA_ARGS__); \
        return;                                                               \
    } while (0)

// ---- databases, tables, partitions

static void create_database(struct apply *a, const Mink__CreateDatabase *m) {
    bool found;
    uint32_t at = sorted_find(&a->c->databases, m->name, compare_database, &found);
    if (found && m->if_not_exists) {
        a->result->existed = true;
        return;
    }
    if (found) REFUSE(a, MINK_EXISTS, "DATABASE_EXISTS", "database %s exists already", m->name);
    struct database *d = mem_new(struct database);
    d->name = mem_strdup(m->name);
    d->comment = mem_strdup(m->comment);
    sorted_insert(&a->c->databases, at, d);
}

static void drop_streams(struct catalog *c, uint64_t base, uint32_t count) {
    for (uint32_t b = 0; b < count; b++) catalog_drop_stream(c, base + b);
}

static void drop_table_entry(struct catalog *c, struct table *t) {
    bool found;
    const struct table_def *def = t->versions[t->version_count - 1];
    if (def->partition_by_count == 0) drop_streams(c, t->stream_base, def->bucket_num);
    for (uint32_t i = 0; i < t->partitions.count; i++) {
        const struct partition *p = t->partitions.items[i];
        drop_streams(c, p->stream_base, p->bucket_count);
    }
    sorted_remove(&c->tables_by_id, sorted_find(&c->tables_by_id, &t->id, compare_table_id, &found));
    struct table_key key = {t->database, t->name};
    sorted_remove(&c->tables, sorted_find(&c->tables, &key, compare_table, &found));
    catalog_free_table(t);
}

static void drop_database(struct apply *a, const Mink__DropDatabase *m) {
    bool found;
    uint32_t at = sorted_find(&a->c->databases, m->name, compare_database, &found), tables = 0;
    if (!found && m->if_exists) {
        a->result->existed = true;
        return;
    }
    if (!found) REFUSE(a, MINK_NOT_FOUND, "DATABASE_NOT_FOUND", "database %s does not exist", m->name);
    for (uint32_t i = 0; i < a->c->tables.count; i++) tables += strcmp(((struct table *)a->c->tables.items[i])->database, m->name) == 0;
    if (tables && !m->cascade) {
        a->result->code = error_set(&a->result->error, MINK_CONFLICT, "DATABASE_NOT_EMPTY", "database %s holds %u tables", m->name, tables);
        error_hint(&a->result->error, "drop them first, or drop with cascade");
        return;
    }
    for (uint32_t i = a->c->tables.count; i-- > 0;) {
        struct table *t = a->c->tables.items[i];
        if (strcmp(t->database, m->name) == 0) drop_table_entry(a->c, t);
    }
    catalog_free_database(a->c->databases.items[at]);
    sorted_remove(&a->c->databases, at);
}

static enum mink_code parse_definition(const char *json, struct table_def **out, struct error *e) {
    struct json *j;
    MINK_TRY(json_parse(json, strlen(json), &j, e));
    struct table_defaults defaults = {.bucket_num = 1};
    enum mink_code code = table_def_from_json(j, &defaults, out, e);
    json_free(j);
    return code;
}

static void create_table(struct apply *a, const Mink__CreateTable *m) {
    struct table_def *def;
    bool found;
    a->result->code = parse_definition(m->definition, &def, &a->result->error);
    if (a->result->code != MINK_OK) return;
    struct table_key key = {def->database, def->name};
    uint32_t at = sorted_find(&a->c->tables, &key, compare_table, &found);
    if (found && m->if_not_exists) {
        a->result->existed = true;
        a->result->id = ((struct table *)a->c->tables.items[at])->id;
    } else if (found) {
        a->result->code = error_set(&a->result->error, MINK_EXISTS, "TABLE_EXISTS", "table %s.%s exists already", def->database, def->name);
    } else if (!catalog_database(a->c, def->database)) {
        a->result->code = error_set(&a->result->error, MINK_NOT_FOUND, "DATABASE_NOT_FOUND", "database %s does not exist", def->database);
        error_hint(&a->result->error, "create it first: mink db create %s", def->database);
    } else {
        struct table *t = mem_new(struct table);
        t->id = a->c->next_table_id++;
        t->created_position = a->seq;
        t->database = mem_strdup(def->database);
        t->name = mem_strdup(def->name);
        t->versions = mem_new_array(struct table_def *, 1);
        t->versions[t->version_count++] = table_def_ref(def);
        sorted_insert(&a->c->tables, at, t);
        sorted_insert(&a->c->tables_by_id, a->c->tables_by_id.count, t);
        if (def->partition_by_count == 0) catalog_add_streams(a->c, t->id, 0, def->bucket_num, &t->stream_base);
        a->result->id = t->id;
    }
    table_def_unref(def);
}

static void alter_table(struct apply *a, const Mink__AlterTable *m) {
    struct table *t = catalog_table_with_id(a->c, m->table_id);
    if (!t) REFUSE(a, MINK_NOT_FOUND, "TABLE_NOT_FOUND", "table %" PRIu64 " does not exist any more", m->table_id);
    struct table_def *current = t->versions[t->version_count - 1], *def;
    if (current->schema_id != m->expected_schema_id) REFUSE(a, MINK_CONFLICT, "SCHEMA_CHANGED", "table %s.%s has been altered meanwhile", t->database, t->name);
    a->result->code = parse_definition(m->definition, &def, &a->result->error);
    if (a->result->code != MINK_OK) return;
    if (def->bucket_num != current->bucket_num || def->partition_by_count != current->partition_by_count) {
        table_def_unref(def);
        REFUSE(a, MINK_INVALID, "NOT_CHANGEABLE", "buckets and partition columns of %s.%s cannot be changed", t->database, t->name);
    }
    if (def->schema_id == current->schema_id) { // options only
        table_def_unref(current);
        t->versions[t->version_count - 1] = def;
    } else {
        t->versions = mem_realloc(t->versions, (t->version_count + 1) * sizeof *t->versions);
        t->versions[t->version_count++] = def;
    }
    a->result->id = t->id;
}

static void drop_table(struct apply *a, const Mink__DropTable *m) {
    struct table *t = catalog_table_named(a->c, m->database, m->name);
    if (!t && m->if_exists) {
        a->result->existed = true;
        return;
    }
    if (!t) REFUSE(a, MINK_NOT_FOUND, "TABLE_NOT_FOUND", "table %s.%s does not exist", m->database, m->name);
    a->result->id = t->id;
    drop_table_entry(a->c, t);
}

static void create_partition(struct apply *a, const Mink__CreatePartition *m) {
    struct table *t = catalog_table_with_id(a->c, m->table_id);
    bool found;
    if (!t) REFUSE(a, MINK_NOT_FOUND, "TABLE_NOT_FOUND", "table %" PRIu64 " does not exist any more", m->table_id);
    const struct table_def *def = t->versions[t->version_count - 1];
    if (def->partition_by_count == 0) REFUSE(a, MINK_INVALID, "NOT_PARTITIONED", "table %s.%s is not partitioned", t->database, t->name);
    uint32_t at = sorted_find(&t->partitions, m->name, compare_partition, &found);
    if (found && m->if_not_exists) {
        a->result->existed = true;
        a->result->id = ((struct partition *)t->partitions.items[at])->id;
        return;
    }
    if (found) REFUSE(a, MINK_EXISTS, "PARTITION_EXISTS", "partition %s of %s.%s exists already", m->name, t->database, t->name);
    struct partition *p = mem_new(struct partition);
    p->id = a->c->next_partition_id++;
    p->name = mem_strdup(m->name);
    p->bucket_count = def->bucket_num;
    catalog_add_streams(a->c, t->id, p->id, p->bucket_count, &p->stream_base);
    sorted_insert(&t->partitions, at, p);
    a->result->id = p->id;
}

static void drop_partition(struct apply *a, const Mink__DropPartition *m) {
    struct table *t = catalog_table_with_id(a->c, m->table_id);
    bool found = false;
    uint32_t at = t ? sorted_find(&t->partitions, m->name, compare_partition, &found) : 0;
    if (!found && m->if_exists) {
        a->result->existed = true;
        return;
    }
    if (!found) REFUSE(a, MINK_NOT_FOUND, "PARTITION_NOT_FOUND", "partition %s does not exist", m->name);
    struct partition *p = t->partitions.items[at];
    a->result->id = p->id;
    drop_streams(a->c, p->stream_base, p->bucket_count);
    sorted_remove(&t->partitions, at);
    catalog_free_partition(p);
}

// ---- incarnations and streams

static void register_incarnation(struct apply *a, const Mink__RegisterIncarnation *m) {
    if (m->nonce.len != 16) REFUSE(a, MINK_INVALID, "BAD_NONCE", "an incarnation's nonce has 16 bytes");
    for (uint32_t i = a->c->incarnations.count; i-- > 0;) { // the same process, whose reply was lost
        struct incarnation *known = a->c->incarnations.items[i];
        if (memcmp(known->nonce, m->nonce.data, 16) != 0) continue;
        a->result->id = known->id;
        a->result->existed = true;
        return;
    }
    struct incarnation *i = mem_new(struct incarnation);
    i->id = a->c->next_incarnation++;
    i->state = INCARNATION_LIVE;
    memcpy(i->nonce, m->nonce.data, 16);
    i->address = mem_strdup(m->address);
    i->rack = mem_strdup(m->rack);
    sorted_insert(&a->c->incarnations, a->c->incarnations.count, i);
    a->result->id = i->id;
}

static void declare_dead(struct apply *a, const Mink__DeclareDead *m) {
    struct incarnation *i = catalog_incarnation_with_id(a->c, m->incarnation);
    if (!i) REFUSE(a, MINK_NOT_FOUND, "NO_SUCH_INCARNATION", "incarnation %" PRIu64 " does not exist", m->incarnation);
    if (i->state == INCARNATION_LIVE) i->state = INCARNATION_DEAD;
    else a->result->existed = true;
}

static const struct incarnation *live(struct apply *a, uint64_t id) {
    const struct incarnation *i = catalog_incarnation_with_id(a->c, id);
    if (i && i->state == INCARNATION_LIVE) return i;
    a->result->code = error_set(&a->result->error, MINK_FENCED, "INCARNATION_DEAD", "incarnation %" PRIu64 " is not live", id);
    return NULL;
}

static void open_streams(struct apply *a, const Mink__OpenStreams *m) {
    if (!live(a, m->incarnation)) return;
    a->result->epochs = mem_new_array(uint32_t, m->n_streams ? m->n_streams : 1);
    a->result->epoch_count = (uint32_t)m->n_streams;
    for (size_t k = 0; k < m->n_streams; k++) {
        struct stream *s = catalog_stream_with_id(a->c, m->streams[k]);
        if (!s) continue;
        if (s->owner && s->owner != m->incarnation) {
            const struct incarnation *owner = catalog_incarnation_with_id(a->c, s->owner);
            if (owner && owner->state != INCARNATION_SEALED) continue;
        }
        // Opening what one owns already (the reply of an earlier proposal was lost) keeps the epoch.
        if (s->owner != m->incarnation) {
            s->owner = m->incarnation;
            s->epoch++;
        }
        a->result->epochs[k] = s->epoch;
    }
}

static void allocate_writer_ids(struct apply *a, const Mink__AllocateWriterIds *m) {
    if (m->count == 0 || m->count > 1000000) REFUSE(a, MINK_INVALID, "BAD_COUNT", "%u writer ids", m->count);
    a->result->id = a->c->next_writer_id;
    a->c->next_writer_id += m->count;
}

// ---- objects

static struct catalog_object_id id_of(const Mink__ObjectId *m) { return (struct catalog_object_id){(enum object_kind)m->kind, m->incarnation, m->number}; }

struct object *catalog_add_object(struct catalog *c, struct catalog_object_id id, uint64_t size, uint64_t index_size) {
    bool found;
    uint32_t at = sorted_find(&c->objects, &id, compare_object, &found);
    if (found) return c->objects.items[at];
    struct object *o = mem_new(struct object);
    *o = (struct object){.id = id, .size = size, .index_size = index_size};
    sorted_insert(&c->objects, at, o);
    return o;
}

void catalog_push_range(struct catalog *c, struct stream *s, struct object *o, uint64_t to, uint32_t epoch) {
    // Neighbouring pieces of one object and epoch are one range.
    struct range *last = s->range_count ? &stream_ranges(s)[s->range_count - 1] : NULL;
    s->end = to;
    if (last && last->object == o && last->epoch == epoch) {
        last->to = to;
        return;
    }
    if (s->range_first + s->range_count == s->range_capacity) {
        if (s->range_first > s->range_count) {
            memmove(s->ranges, stream_ranges(s), s->range_count * sizeof *s->ranges);
            s->range_first = 0;
        } else {
            s->range_capacity = s->range_capacity ? s->range_capacity * 2 : 2;
            s->ranges = mem_realloc(s->ranges, s->range_capacity * sizeof *s->ranges);
        }
    }
    s->ranges[s->range_first + s->range_count++] = (struct range){o, to, epoch};
    o->live_ranges++;
    c->range_total++;
}

void catalog_release_range(struct catalog *c, struct object *o) {
    c->range_total--;
    if (--o->live_ranges == 0) o->marked_position = c->position;
}

void catalog_add_streams(struct catalog *c, uint64_t table_id, uint64_t partition_id, uint32_t count, uint64_t *out_base) {
    *out_base = c->next_stream_id;
    for (uint32_t b = 0; b < count; b++) {
        struct stream *s = mem_new(struct stream);
        s->id = c->next_stream_id++;
        s->table_id = table_id;
        s->partition_id = partition_id;
        s->bucket = b;
        sorted_insert(&c->streams, c->streams.count, s);
    }
}

void catalog_drop_stream(struct catalog *c, uint64_t stream_id) {
    bool found;
    uint32_t at = sorted_find(&c->streams, &stream_id, compare_stream, &found);
    if (!found) return;
    struct stream *s = c->streams.items[at];
    for (uint32_t i = 0; i < s->range_count; i++) catalog_release_range(c, stream_ranges(s)[i].object);
    sorted_remove(&c->streams, at);
    catalog_free_stream(s);
}

// The ends that streams would have after the ranges seen so far: checks must look ahead without changing anything.
struct ahead { uint64_t stream_id, end; };
struct ahead_list { struct ahead *items; uint32_t count, capacity; };

static uint64_t *ahead_end(struct ahead_list *list, const struct stream *s) {
    uint32_t low = 0, high = list->count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (list->items[mid].stream_id < s->id) low = mid + 1;
        else high = mid;
    }
    if (low < list->count && list->items[low].stream_id == s->id) return &list->items[low].end;
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? list->capacity * 2 : 16;
        list->items = mem_realloc(list->items, list->capacity * sizeof *list->items);
    }
    memmove(list->items + low + 1, list->items + low, (list->count - low) * sizeof *list->items);
    list->items[low] = (struct ahead){s->id, s->end};
    list->count++;
    return &list->items[low].end;
}

static enum mink_code check_object_id(const Mink__ObjectId *id, uint64_t incarnation, struct error *e) {
    if (id && id->incarnation == incarnation && (id->kind == OBJECT_KIND_WAL || id->kind == OBJECT_KIND_SET || id->kind == OBJECT_KIND_STREAM)) return MINK_OK;
    return error_set(e, MINK_INVALID, "BAD_OBJECT", "an object of another creator, or of no kind");
}

// Ranges that extend streams of an owner. A stream that was dropped meanwhile is skipped (its bytes become garbage with the object).
static enum mink_code check_extends(struct apply *a, uint64_t incarnation, Mink__Object *const *objects, size_t count, struct error *e) {
    struct ahead_list ahead = {0};
    enum mink_code code = MINK_OK;
    for (size_t i = 0; i < count && code == MINK_OK; i++) {
        code = check_object_id(objects[i]->id, incarnation, e);
        for (size_t k = 0; k < objects[i]->n_ranges && code == MINK_OK; k++) {
            const Mink__Range *r = objects[i]->ranges[k];
            const struct stream *s = catalog_stream_with_id(a->c, r->stream);
            if (!s) continue;
            uint64_t *end = ahead_end(&ahead, s);
            if (s->owner != incarnation || s->epoch != r->epoch) code = error_set(e, MINK_FENCED, "NOT_OWNER", "stream %" PRIu64 " epoch %u is not incarnation %" PRIu64 "'s", r->stream, r->epoch, incarnation);
            else if (r->from != *end || r->to <= r->from) code = error_set(e, MINK_CONFLICT, "NOT_CONTIGUOUS", "stream %" PRIu64 ": offsets %" PRIu64 " to %" PRIu64 " do not follow %" PRIu64, r->stream, r->from, r->to, *end);
            else *end = r->to;
        }
    }
    mem_free(ahead.items);
    return code;
}

static void extend(struct apply *a, Mink__Object *const *objects, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct object *o = NULL;
        for (size_t k = 0; k < objects[i]->n_ranges; k++) {
            const Mink__Range *r = objects[i]->ranges[k];
            struct stream *s = catalog_stream_with_id(a->c, r->stream);
            if (!s) continue;
            if (!o) o = catalog_add_object(a->c, id_of(objects[i]->id), objects[i]->size, objects[i]->index_size);
            catalog_push_range(a->c, s, o, r->to, r->epoch);
        }
        if (o) continue;
        // Nothing of it is wanted any more. A WAL object below wal_committed is released without an entry; others are deleted through one.
        o = catalog_add_object(a->c, id_of(objects[i]->id), objects[i]->size, objects[i]->index_size);
        if (o->live_ranges == 0) o->marked_position = a->seq;
    }
}

static void commit_objects(struct apply *a, const Mink__CommitObjects *m) {
    const struct incarnation *i = live(a, m->incarnation);
    if (!i) return;
    if (m->wal_upto == i->wal_committed && m->wal_from < m->wal_upto) { // this commit again
        a->result->existed = true;
        return;
    }
    if (m->wal_from != i->wal_committed || m->wal_upto < m->wal_from) REFUSE(a, MINK_CONFLICT, "WAL_POSITION", "commit of WAL %" PRIu64 " to %" PRIu64 ": %" PRIu64 " is committed", m->wal_from, m->wal_upto, i->wal_committed);
    for (size_t k = 0; k < m->n_attachments; k++)
        if (m->attachments[k]->bytes.len > ATTACHMENT_BYTES_MAX) REFUSE(a, MINK_INVALID, "ATTACHMENT_SIZE", "an attachment of %zu bytes: at most %u", m->attachments[k]->bytes.len, ATTACHMENT_BYTES_MAX);
    for (size_t k = 0; k < m->n_objects; k++)
        if (m->objects[k]->id && m->objects[k]->id->kind == OBJECT_KIND_WAL && (m->objects[k]->id->number < m->wal_from || m->objects[k]->id->number >= m->wal_upto))
            REFUSE(a, MINK_INVALID, "BAD_OBJECT", "a WAL object outside the commit");
    a->result->code = check_extends(a, m->incarnation, m->objects, m->n_objects, &a->result->error);
    if (a->result->code != MINK_OK) return;
    extend(a, m->objects, m->n_objects);
    for (size_t k = 0; k < m->n_attachments; k++) {
        struct stream *s = catalog_stream_with_id(a->c, m->attachments[k]->stream);
        if (!s) continue;
        slice_unref(&s->attachment);
        s->attachment = slice_copy(m->attachments[k]->bytes.data, m->attachments[k]->bytes.len);
        s->attachment_end = s->end;
    }
    ((struct incarnation *)i)->wal_committed = m->wal_upto;
}

static void close_stream(struct apply *a, const Mink__CloseStream *m) {
    if (!live(a, m->incarnation)) return;
    struct stream *s = catalog_stream_with_id(a->c, m->stream);
    if (!s) REFUSE(a, MINK_NOT_FOUND, "NO_SUCH_STREAM", "stream %" PRIu64 " does not exist", m->stream);
    if (s->owner == 0 && s->epoch == m->epoch && s->end == m->end) { // this close again
        a->result->existed = true;
        return;
    }
    if (s->owner != m->incarnation || s->epoch != m->epoch) REFUSE(a, MINK_FENCED, "NOT_OWNER", "stream %" PRIu64 " epoch %u is not incarnation %" PRIu64 "'s", m->stream, m->epoch, m->incarnation);
    uint64_t end = s->end;
    for (size_t i = 0; i < m->n_refs; i++) {
        a->result->code = check_object_id(m->refs[i]->id, m->incarnation, &a->result->error);
        if (a->result->code != MINK_OK) return;
        for (size_t k = 0; k < m->refs[i]->n_ranges; k++) {
            const Mink__Range *r = m->refs[i]->ranges[k];
            if (r->stream != m->stream || r->epoch != m->epoch || r->from != end || r->to <= r->from) REFUSE(a, MINK_CONFLICT, "NOT_CONTIGUOUS", "stream %" PRIu64 ": the references of its close leave a gap", m->stream);
            end = r->to;
        }
    }
    if (end != m->end) REFUSE(a, MINK_CONFLICT, "NOT_CONTIGUOUS", "stream %" PRIu64 ": closed at %" PRIu64 " with references up to %" PRIu64, m->stream, m->end, end);
    extend(a, m->refs, m->n_refs);
    s->owner = 0;
}

static void seal_incarnation(struct apply *a, const Mink__SealIncarnation *m) {
    struct incarnation *i = catalog_incarnation_with_id(a->c, m->incarnation);
    if (!i) REFUSE(a, MINK_NOT_FOUND, "NO_SUCH_INCARNATION", "incarnation %" PRIu64 " does not exist", m->incarnation);
    if (i->state == INCARNATION_SEALED) {
        if (i->seal_seq != m->seal_seq) REFUSE(a, MINK_CORRUPT, "TWO_SEALS", "incarnation %" PRIu64 " is sealed at %" PRIu64 ", not %" PRIu64, i->id, i->seal_seq, m->seal_seq);
        a->result->existed = true;
        return;
    }
    if (i->state != INCARNATION_DEAD) REFUSE(a, MINK_CONFLICT, "INCARNATION_LIVE", "incarnation %" PRIu64 " is live", i->id);
    if (m->wal_base != i->wal_committed || m->seal_seq < m->wal_base || m->n_objects != m->seal_seq - m->wal_base)
        REFUSE(a, MINK_CONFLICT, "WAL_POSITION", "seal of incarnation %" PRIu64 " from %" PRIu64 " to %" PRIu64 " with %zu objects: %" PRIu64 " is committed", i->id, m->wal_base, m->seal_seq, m->n_objects, i->wal_committed);
    struct ahead_list ahead = {0};
    for (size_t k = 0; k < m->n_objects && a->result->code == MINK_OK; k++) {
        if (m->objects[k]->seq != m->wal_base + k) a->result->code = error_set(&a->result->error, MINK_CORRUPT, "WAL_POSITION", "object %zu of the seal has seq %" PRIu64, k, m->objects[k]->seq);
        for (size_t n = 0; n < m->objects[k]->n_entries && a->result->code == MINK_OK; n++) {
            const Mink__Entry *entry = m->objects[k]->entries[n];
            const struct stream *s = catalog_stream_with_id(a->c, entry->stream);
            if (!s) continue;
            uint64_t *end = ahead_end(&ahead, s);
            bool own = s->owner == i->id && s->epoch == entry->epoch;
            if (own && entry->first == *end && entry->end > entry->first) *end = entry->end;
            else if (own || entry->end > s->end)
                a->result->code = error_set(&a->result->error, MINK_CORRUPT, "NOT_CONTIGUOUS", "stream %" PRIu64 ": WAL %" PRIu64 "/%" PRIu64 " holds offsets %" PRIu64 " to %" PRIu64 ", expected %" PRIu64, s->id, i->id, m->objects[k]->seq, entry->first, entry->end, *end);
        }
    }
    mem_free(ahead.items);
    if (a->result->code != MINK_OK) return;
    for (size_t k = 0; k < m->n_objects; k++) {
        struct object *o = NULL;
        for (size_t n = 0; n < m->objects[k]->n_entries; n++) {
            const Mink__Entry *entry = m->objects[k]->entries[n];
            struct stream *s = catalog_stream_with_id(a->c, entry->stream);
            if (!s || s->owner != i->id || s->epoch != entry->epoch) continue;
            if (!o) o = catalog_add_object(a->c, (struct catalog_object_id){OBJECT_KIND_WAL, i->id, m->objects[k]->seq}, m->objects[k]->size, m->objects[k]->index_size);
            catalog_push_range(a->c, s, o, entry->end, entry->epoch);
        }
    }
    i->state = INCARNATION_SEALED;
    i->seal_seq = m->seal_seq;
    i->wal_committed = m->seal_seq;
    for (uint32_t k = 0; k < a->c->streams.count; k++) {
        struct stream *s = a->c->streams.items[k];
        if (s->owner == i->id) s->owner = 0;
    }
}

// ---- replace: the new ranges must cover, stream by stream, exactly what the old objects hold there now

struct piece { uint64_t from, to; struct object *object; uint32_t epoch; };

static bool is_old(const Mink__ReplaceObjects *m, const struct object *o) {
    for (size_t i = 0; i < m->n_old; i++) {
        struct catalog_object_id id = id_of(m->old[i]);
        if (compare_object(&id, o) == 0) return true;
    }
    return false;
}

static enum mink_code check_replace(struct apply *a, const Mink__ReplaceObjects *m, struct error *e) {
    for (size_t i = 0; i < m->n_old; i++) {
        const struct object *o = catalog_object_with_id(a->c, id_of(m->old[i]));
        if (!o || o->marked_position) return error_set(e, MINK_CONFLICT, "OBJECT_GONE", "an object to be replaced is not current any more");
    }
    for (size_t i = 0; i < m->n_objects; i++) {
        MINK_TRY(check_object_id(m->objects[i]->id, m->incarnation, e));
        if (catalog_object_with_id(a->c, id_of(m->objects[i]->id))) return error_set(e, MINK_CONFLICT, "OBJECT_EXISTS", "the replacing object is in the catalog already");
    }
    // Every current range of an old object must lie in a new range of its stream.
    for (uint32_t k = 0; k < a->c->streams.count; k++) {
        const struct stream *s = a->c->streams.items[k];
        for (uint32_t n = 0; n < s->range_count; n++) {
            const struct range *r = &stream_ranges(s)[n];
            if (!is_old(m, r->object)) continue;
            uint64_t from = n ? stream_ranges(s)[n - 1].to : s->start;
            bool covered = false;
            for (size_t i = 0; i < m->n_objects && !covered; i++)
                for (size_t x = 0; x < m->objects[i]->n_ranges && !covered; x++) {
                    const Mink__Range *replacing = m->objects[i]->ranges[x];
                    covered = replacing->stream == s->id && replacing->from <= from && replacing->to >= r->to;
                }
            if (!covered) return error_set(e, MINK_CONFLICT, "NOT_COVERED", "stream %" PRIu64 ": offsets %" PRIu64 " to %" PRIu64 " are not in the replacing objects", s->id, from, r->to);
        }
    }
    // And no new range may reach over something that stays elsewhere.
    for (size_t i = 0; i < m->n_objects; i++)
        for (size_t x = 0; x < m->objects[i]->n_ranges; x++) {
            const Mink__Range *replacing = m->objects[i]->ranges[x];
            const struct stream *s = catalog_stream_with_id(a->c, replacing->stream);
            if (!s) continue;
            if (replacing->to > s->end) return error_set(e, MINK_CONFLICT, "NOT_COVERED", "stream %" PRIu64 ": the replacing object reaches past the end", s->id);
            for (uint32_t n = 0; n < s->range_count; n++) {
                const struct range *r = &stream_ranges(s)[n];
                uint64_t from = n ? stream_ranges(s)[n - 1].to : s->start;
                if (from < replacing->to && r->to > replacing->from && !is_old(m, r->object)) return error_set(e, MINK_CONFLICT, "NOT_COVERED", "stream %" PRIu64 ": the replacing object overlaps another", s->id);
            }
        }
    return MINK_OK;
}

static void replace_objects(struct apply *a, const Mink__ReplaceObjects *m) {
    if (!live(a, m->incarnation)) return;
    if (m->n_objects && m->objects[0]->id) { // this command again
        const struct object *first = catalog_object_with_id(a->c, id_of(m->objects[0]->id));
        const struct object *old = m->n_old ? catalog_object_with_id(a->c, id_of(m->old[0])) : NULL;
        if (first && (!old || old->marked_position)) {
            a->result->existed = true;
            return;
        }
    }
    a->result->code = check_replace(a, m, &a->result->error);
    if (a->result->code != MINK_OK) return;
    for (size_t i = 0; i < m->n_objects; i++) {
        struct object *o = catalog_add_object(a->c, id_of(m->objects[i]->id), m->objects[i]->size, m->objects[i]->index_size);
        for (size_t x = 0; x < m->objects[i]->n_ranges; x++) {
            const Mink__Range *replacing = m->objects[i]->ranges[x];
            struct stream *s = catalog_stream_with_id(a->c, replacing->stream);
            if (!s) continue;
            struct range *ranges = stream_ranges(s);
            uint32_t kept = 0;
            uint64_t from = s->start;
            for (uint32_t n = 0; n < s->range_count; n++) {
                struct range r = ranges[n];
                uint64_t begin = from;
                from = r.to;
                if (begin >= replacing->from && r.to <= replacing->to && is_old(m, r.object)) {
                    bool joins = kept && ranges[kept - 1].object == o;
                    catalog_release_range(a->c, r.object);
                    if (joins) {
                        ranges[kept - 1].to = r.to;
                    } else {
                        o->live_ranges++;
                        a->c->range_total++;
                        ranges[kept++] = (struct range){o, r.to, replacing->epoch};
                    }
                } else {
                    ranges[kept++] = r;
                }
            }
            s->range_count = kept;
        }
        if (o->live_ranges == 0) o->marked_position = a->seq;
    }
}

static void trim_streams(struct apply *a, const Mink__TrimStreams *m) {
    if (m->n_streams != m->n_starts) REFUSE(a, MINK_INVALID, "BAD_TRIM", "%zu streams and %zu starts", m->n_streams, m->n_starts);
    for (size_t k = 0; k < m->n_streams; k++) {
        const struct stream *s = catalog_stream_with_id(a->c, m->streams[k]);
        if (s && m->starts[k] > s->end) REFUSE(a, MINK_OUT_OF_RANGE, "BAD_TRIM", "stream %" PRIu64 " ends at %" PRIu64 ": it cannot start at %" PRIu64, s->id, s->end, m->starts[k]);
    }
    for (size_t k = 0; k < m->n_streams; k++) {
        struct stream *s = catalog_stream_with_id(a->c, m->streams[k]);
        if (!s || m->starts[k] <= s->start) continue;
        while (s->range_count && stream_ranges(s)[0].to <= m->starts[k]) {
            catalog_release_range(a->c, stream_ranges(s)[0].object);
            s->range_first++;
            s->range_count--;
        }
        s->start = m->starts[k];
    }
}

static void forget_objects(struct apply *a, const Mink__ForgetObjects *m) {
    for (size_t k = 0; k < m->n_ids; k++) {
        const struct object *o = catalog_object_with_id(a->c, id_of(m->ids[k]));
        if (o && !o->marked_position) REFUSE(a, MINK_CONFLICT, "OBJECT_NEEDED", "an object to be forgotten is still needed");
    }
    for (size_t k = 0; k < m->n_ids; k++) {
        bool found;
        struct catalog_object_id id = id_of(m->ids[k]);
        uint32_t at = sorted_find(&a->c->objects, &id, compare_object, &found);
        if (!found) continue;
        mem_free(a->c->objects.items[at]);
        sorted_remove(&a->c->objects, at);
    }
}

// ---- decoding

// A field that this version does not know, at any depth.
static bool has_unknown(const ProtobufCMessage *m) {
    if (m->n_unknown_fields) return true;
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        if (f->type != PROTOBUF_C_TYPE_MESSAGE) continue;
        const char *base = (const char *)m;
        if (f->label == PROTOBUF_C_LABEL_REPEATED) {
            size_t count = *(const size_t *)(base + f->quantifier_offset);
            ProtobufCMessage *const *items = *(ProtobufCMessage *const *const *)(base + f->offset);
            for (size_t k = 0; k < count; k++)
                if (has_unknown(items[k])) return true;
        } else {
            if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF && *(const uint32_t *)(base + f->quantifier_offset) != f->id) continue;
            const ProtobufCMessage *sub = *(ProtobufCMessage *const *)(base + f->offset);
            if (sub && has_unknown(sub)) return true;
        }
    }
    return false;
}

static bool objects_complete(Mink__Object *const *objects, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!objects[i]->id) return false;
    return true;
}

bool command_peek_id(struct slice encoded, uint8_t id[COMMAND_ID_SIZE]) {
    Mink__Command *m = mink__command__unpack(NULL, encoded.size, encoded.data);
    bool good = m && m->id.len == COMMAND_ID_SIZE;
    if (good) memcpy(id, m->id.data, COMMAND_ID_SIZE);
    if (m) mink__command__free_unpacked(m, NULL);
    return good;
}

enum mink_code catalog_apply(struct catalog *c, uint64_t seq, struct slice encoded, struct command_result *out, struct error *e) {
    *out = (struct command_result){.seq = seq};
    Mink__Command *m = mink__command__unpack(NULL, encoded.size, encoded.data);
    if (!m) return error_set(e, MINK_CORRUPT, "BAD_COMMAND", "command %" PRIu64 " of the log is malformed (%zu bytes)", seq, encoded.size);
    enum mink_code code = MINK_OK;
    if (m->version != COMMAND_VERSION || m->body_case == MINK__COMMAND__BODY__NOT_SET || has_unknown(&m->base)) {
        code = error_set(e, MINK_UNSUPPORTED, "UNKNOWN_COMMAND", "command %" PRIu64 " of the log (version %u) is not known to this version of Mink", seq, m->version);
        error_hint(e, "a newer node wrote it: upgrade this one");
    } else if (m->body_case == MINK__COMMAND__BODY_COMMIT_OBJECTS ? !objects_complete(m->commit_objects->objects, m->commit_objects->n_objects)
               : m->body_case == MINK__COMMAND__BODY_CLOSE_STREAM ? !objects_complete(m->close_stream->refs, m->close_stream->n_refs)
               : m->body_case == MINK__COMMAND__BODY_REPLACE_OBJECTS && !objects_complete(m->replace_objects->objects, m->replace_objects->n_objects)) {
        code = error_set(e, MINK_CORRUPT, "BAD_COMMAND", "command %" PRIu64 " of the log names no object", seq);
    }
    struct apply a = {c, seq, out};
    pthread_rwlock_wrlock(&c->lock);
    if (code == MINK_OK && seq != c->position + 1) code = error_set(e, MINK_CORRUPT, "LOG_GAP", "command %" PRIu64 " of the log follows %" PRIu64, seq, c->position);
    if (code == MINK_OK) {
        c->position = seq;
        switch (m->body_case) {
        case MINK__COMMAND__BODY_CREATE_DATABASE: create_database(&a, m->create_database); break;
        case MINK__COMMAND__BODY_DROP_DATABASE: drop_database(&a, m->drop_database); break;
        case MINK__COMMAND__BODY_CREATE_TABLE: create_table(&a, m->create_table); break;
        case MINK__COMMAND__BODY_ALTER_TABLE: alter_table(&a, m->alter_table); break;
        case MINK__COMMAND__BODY_DROP_TABLE: drop_table(&a, m->drop_table); break;
        case MINK__COMMAND__BODY_CREATE_PARTITION: create_partition(&a, m->create_partition); break;
        case MINK__COMMAND__BODY_DROP_PARTITION: drop_partition(&a, m->drop_partition); break;
        case MINK__COMMAND__BODY_REGISTER_INCARNATION: register_incarnation(&a, m->register_incarnation); break;
        case MINK__COMMAND__BODY_DECLARE_DEAD: declare_dead(&a, m->declare_dead); break;
        case MINK__COMMAND__BODY_OPEN_STREAMS: open_streams(&a, m->open_streams); break;
        case MINK__COMMAND__BODY_ALLOCATE_WRITER_IDS: allocate_writer_ids(&a, m->allocate_writer_ids); break;
        case MINK__COMMAND__BODY_COMMIT_OBJECTS: commit_objects(&a, m->commit_objects); break;
        case MINK__COMMAND__BODY_CLOSE_STREAM: close_stream(&a, m->close_stream); break;
        case MINK__COMMAND__BODY_SEAL_INCARNATION: seal_incarnation(&a, m->seal_incarnation); break;
        case MINK__COMMAND__BODY_REPLACE_OBJECTS: replace_objects(&a, m->replace_objects); break;
        case MINK__COMMAND__BODY_TRIM_STREAMS: trim_streams(&a, m->trim_streams); break;
        case MINK__COMMAND__BODY_FORGET_OBJECTS: forget_objects(&a, m->forget_objects); break;
        default: break;
        }
    }
    pthread_rwlock_unlock(&c->lock);
    mink__command__free_unpacked(m, NULL);
    return code;
}
