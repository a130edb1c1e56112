// SPDX-License-Identifier: Apache-2.0
// The catalog as bytes: docs/formats.md#checkpoint. Equal states give equal bytes: everything is written in its sorted order.
#include "meta/catalog_internal.h"
#include "meta/command_internal.h"

#include "base/crc32c.h"
#include "base/mem.h"
#include "base/reader.h"

#include <string.h>

#define CHECKPOINT_MAGIC 0x544b434bu // "KCKT"
#define CHECKPOINT_VERSION 1
#define CHECKPOINT_BYTES_MAX (1ull << 32)
#define TEXT_MAX (64u << 20)

static void put_text(struct buffer *b, const char *s) {
    buffer_put_varint(b, strlen(s));
    buffer_put_string(b, s);
}

static void put_object_id(struct buffer *b, struct catalog_object_id id) {
    buffer_put_u8(b, (uint8_t)id.kind);
    buffer_put_varint(b, id.incarnation);
    buffer_put_varint(b, id.number);
}

static void put_def(struct buffer *b, const struct table_def *def) {
    struct buffer json;
    struct json_writer w;
    buffer_init(&json, TEXT_MAX);
    json_begin(&w, &json);
    table_def_to_json(def, &w);
    put_text(b, buffer_string(&json));
    buffer_deinit(&json);
}

static uint32_t object_index(const struct catalog *c, const struct object *o) {
    bool found;
    return sorted_find(&c->objects, &o->id, compare_object, &found);
}

struct slice catalog_save(struct catalog *c) {
    struct buffer b;
    buffer_init(&b, CHECKPOINT_BYTES_MAX);
    pthread_rwlock_rdlock(&c->lock);
    buffer_put_u32le(&b, CHECKPOINT_MAGIC);
    buffer_put_u32le(&b, CHECKPOINT_VERSION);
    const uint64_t numbers[] = {c->position, c->next_table_id, c->next_partition_id, c->next_stream_id, c->next_incarnation, c->next_writer_id};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) buffer_put_u64le(&b, numbers[i]);
    buffer_put_varint(&b, c->databases.count);
    for (uint32_t i = 0; i < c->databases.count; i++) {
        const struct database *d = c->databases.items[i];
        put_text(&b, d->name);
        put_text(&b, d->comment);
    }
    buffer_put_varint(&b, c->tables_by_id.count);
    for (uint32_t i = 0; i < c->tables_by_id.count; i++) {
        const struct table *t = c->tables_by_id.items[i];
        buffer_put_varint(&b, t->id);
        buffer_put_varint(&b, t->created_position);
        buffer_put_varint(&b, t->altered_position);
        buffer_put_varint(&b, t->stream_base);
        buffer_put_varint(&b, t->version_count);
        for (uint32_t k = 0; k < t->version_count; k++) put_def(&b, t->versions[k]);
        buffer_put_varint(&b, t->partitions.count);
        for (uint32_t k = 0; k < t->partitions.count; k++) {
            const struct partition *p = t->partitions.items[k];
            buffer_put_varint(&b, p->id);
            put_text(&b, p->name);
            buffer_put_varint(&b, p->stream_base);
            buffer_put_varint(&b, p->bucket_count);
        }
    }
    buffer_put_varint(&b, c->incarnations.count);
    for (uint32_t i = 0; i < c->incarnations.count; i++) {
        const struct incarnation *n = c->incarnations.items[i];
        buffer_put_varint(&b, n->id);
        buffer_put_u8(&b, (uint8_t)n->state);
        buffer_put_varint(&b, n->wal_committed);
        buffer_put_varint(&b, n->seal_seq);
        buffer_put(&b, n->nonce, sizeof n->nonce);
        put_text(&b, n->address);
        put_text(&b, n->rack);
    }
    buffer_put_varint(&b, c->objects.count);
    for (uint32_t i = 0; i < c->objects.count; i++) {
        const struct object *o = c->objects.items[i];
        put_object_id(&b, o->id);
        buffer_put_varint(&b, o->size);
        buffer_put_varint(&b, o->index_size);
        buffer_put_varint(&b, o->marked_position);
    }
    buffer_put_varint(&b, c->streams.count);
    for (uint32_t i = 0; i < c->streams.count; i++) {
        const struct stream *s = c->streams.items[i];
        const uint64_t fields[] = {s->id, s->owner, s->epoch, s->start, s->table_id, s->partition_id, s->bucket, s->attachment_end, s->end, s->range_count};
        for (size_t k = 0; k < sizeof fields / sizeof fields[0]; k++) buffer_put_varint(&b, fields[k]);
        uint64_t from = s->start;
        for (uint32_t k = 0; k < s->range_count; k++) {
            const struct range *r = &stream_ranges(s)[k];
            buffer_put_varint(&b, object_index(c, r->object));
            buffer_put_varint(&b, r->to - from);
            buffer_put_varint(&b, r->epoch);
            from = r->to;
        }
        buffer_put_varint(&b, s->attachment.size);
        buffer_put(&b, s->attachment.data, s->attachment.size);
    }
    pthread_rwlock_unlock(&c->lock);
    mink_assert(!b.overflowed);
    buffer_put_u32le(&b, crc32c(b.data, b.size));
    return buffer_take_slice(&b);
}

// ---- load

static char *get_text(struct reader *r, uint64_t max) {
    uint64_t size = reader_varint(r);
    const uint8_t *at = size <= max ? reader_bytes(r, size) : NULL;
    if (!at || memchr(at, 0, size)) {
        reader_fail(r, size);
        return mem_strdup("");
    }
    return mem_strndup((const char *)at, size);
}

// A count of things that take at least `least` bytes each.
static uint32_t get_count(struct reader *r, size_t least) {
    uint64_t n = reader_varint(r);
    if (n <= reader_left(r) / least && n <= UINT32_MAX) return (uint32_t)n;
    reader_fail(r, n * least);
    return 0;
}

static void load_table(struct catalog *c, struct reader *r, struct error *e, enum mink_code *code) {
    struct table *t = mem_new(struct table);
    t->id = reader_varint(r);
    t->created_position = reader_varint(r);
    t->altered_position = reader_varint(r);
    t->stream_base = reader_varint(r);
    uint32_t versions = get_count(r, 2);
    t->versions = mem_new_array(struct table_def *, versions + 1);
    for (uint32_t i = 0; i < versions && reader_ok(r) && *code == MINK_OK; i++) {
        char *text = get_text(r, TEXT_MAX);
        if (reader_ok(r)) *code = command_parse_definition(text, &t->versions[t->version_count], e);
        if (reader_ok(r) && *code == MINK_OK) t->version_count++;
        mem_free(text);
    }
    uint32_t partitions = get_count(r, 4);
    for (uint32_t i = 0; i < partitions && reader_ok(r); i++) {
        struct partition *p = mem_new(struct partition);
        p->id = reader_varint(r);
        p->name = get_text(r, CATALOG_NAME_MAX);
        p->stream_base = reader_varint(r);
        p->bucket_count = (uint32_t)reader_varint(r);
        bool found;
        uint32_t at = sorted_find(&t->partitions, p->name, compare_partition, &found);
        if (found) reader_fail(r, 0);
        sorted_insert(&t->partitions, at, p);
    }
    bool found = false, found_id = false;
    if (reader_ok(r) && *code == MINK_OK && t->version_count == 0) reader_fail(r, 1);
    if (!reader_ok(r) || *code != MINK_OK) {
        catalog_free_table(t);
        return;
    }
    t->database = mem_strdup(t->versions[0]->database);
    t->name = mem_strdup(t->versions[0]->name);
    struct table_key key = {t->database, t->name};
    uint32_t at = sorted_find(&c->tables, &key, compare_table, &found), at_id = sorted_find(&c->tables_by_id, &t->id, compare_table_id, &found_id);
    if (found || found_id) {
        reader_fail(r, 0);
        catalog_free_table(t);
        return;
    }
    sorted_insert(&c->tables, at, t);
    sorted_insert(&c->tables_by_id, at_id, t);
}

static void load_stream(struct catalog *c, struct reader *r) {
    struct stream *s = mem_new(struct stream);
    s->id = reader_varint(r);
    s->owner = reader_varint(r);
    s->epoch = (uint32_t)reader_varint(r);
    s->start = reader_varint(r);
    s->table_id = reader_varint(r);
    s->partition_id = reader_varint(r);
    s->bucket = (uint32_t)reader_varint(r);
    s->attachment_end = reader_varint(r);
    uint64_t end = reader_varint(r);
    uint32_t ranges = get_count(r, 3);
    s->end = s->start;
    for (uint32_t i = 0; i < ranges && reader_ok(r); i++) {
        uint64_t object = reader_varint(r), size = reader_varint(r), epoch = reader_varint(r);
        if (object >= c->objects.count || size == 0 || size > UINT64_MAX - s->end || epoch > UINT32_MAX) reader_fail(r, 1);
        else if (((struct object *)c->objects.items[object])->marked_position) reader_fail(r, 1);
        else catalog_push_range(c, s, c->objects.items[object], s->end + size, (uint32_t)epoch);
    }
    // A stream that was trimmed to its end has no ranges, and a trim may lie inside one: both keep start and end as they were.
    if (s->end != end) reader_fail(r, 1);
    uint64_t size = reader_varint(r);
    const uint8_t *attachment = size <= ATTACHMENT_BYTES_MAX ? reader_bytes(r, size) : NULL;
    if (attachment && size) s->attachment = slice_copy(attachment, size);
    if (!attachment) reader_fail(r, size);
    bool found;
    uint32_t at = sorted_find(&c->streams, &s->id, compare_stream, &found);
    if (found) reader_fail(r, 0);
    sorted_insert(&c->streams, at, s);
}

static enum mink_code load(struct catalog *c, struct reader *r, struct error *e) {
    enum mink_code code = MINK_OK;
    bool found;
    uint64_t *const numbers[] = {&c->position, &c->next_table_id, &c->next_partition_id, &c->next_stream_id, &c->next_incarnation, &c->next_writer_id};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) *numbers[i] = reader_u64le(r);
    uint32_t count = get_count(r, 2);
    for (uint32_t i = 0; i < count && reader_ok(r); i++) {
        struct database *d = mem_new(struct database);
        d->name = get_text(r, CATALOG_NAME_MAX);
        d->comment = get_text(r, TEXT_MAX);
        uint32_t at = sorted_find(&c->databases, d->name, compare_database, &found);
        if (found) reader_fail(r, 0);
        sorted_insert(&c->databases, at, d);
    }
    count = get_count(r, 5);
    for (uint32_t i = 0; i < count && reader_ok(r) && code == MINK_OK; i++) load_table(c, r, e, &code);
    if (code != MINK_OK) return error_context(e, "checkpoint");
    count = get_count(r, 22);
    for (uint32_t i = 0; i < count && reader_ok(r); i++) {
        struct incarnation *n = mem_new(struct incarnation);
        n->id = reader_varint(r);
        uint8_t state = reader_u8(r);
        if (state > INCARNATION_SEALED) reader_fail(r, 1);
        n->state = (enum incarnation_state)state;
        n->wal_committed = reader_varint(r);
        n->seal_seq = reader_varint(r);
        const uint8_t *nonce = reader_bytes(r, sizeof n->nonce);
        if (nonce) memcpy(n->nonce, nonce, sizeof n->nonce);
        n->address = get_text(r, INCARNATION_ADDRESS_MAX);
        n->rack = get_text(r, INCARNATION_ADDRESS_MAX);
        uint32_t at = sorted_find(&c->incarnations, &n->id, compare_incarnation, &found);
        if (found) reader_fail(r, 0);
        sorted_insert(&c->incarnations, at, n);
    }
    count = get_count(r, 6);
    for (uint32_t i = 0; i < count && reader_ok(r); i++) {
        struct catalog_object_id id;
        uint8_t kind = reader_u8(r);
        id.kind = (enum object_kind)kind;
        id.incarnation = reader_varint(r);
        id.number = reader_varint(r);
        uint64_t size = reader_varint(r), index_size = reader_varint(r), marked = reader_varint(r);
        if (kind < OBJECT_KIND_WAL || kind > OBJECT_KIND_STREAM || kind == OBJECT_KIND_SEAL || catalog_object_with_id(c, id)) reader_fail(r, 1);
        else catalog_add_object(c, id, size, index_size)->marked_position = marked;
    }
    count = get_count(r, 11);
    for (uint32_t i = 0; i < count && reader_ok(r); i++) load_stream(c, r);
    if (reader_ok(r) && reader_left(r) != 0) reader_fail(r, 0);
    for (uint32_t i = 0; i < c->objects.count && reader_ok(r); i++) {
        const struct object *o = c->objects.items[i];
        bool needed = o->live_ranges || catalog_may_be_unreferenced(c, o);
        if (needed == (o->marked_position != 0)) reader_fail(r, 0);
    }
    return reader_finish(r, "checkpoint", e);
}

enum mink_code catalog_load(struct catalog *c, struct slice state, struct error *e) {
    struct reader r;
    if (state.size < 12) return error_set(e, MINK_CORRUPT, "BAD_CHECKPOINT", "checkpoint of %zu bytes", state.size);
    reader_init(&r, state.data + state.size - 4, 4);
    uint32_t crc = reader_u32le(&r);
    if (crc != crc32c(state.data, state.size - 4)) return error_set(e, MINK_CORRUPT, "BAD_CHECKPOINT", "the checkpoint's checksum is wrong");
    reader_init(&r, state.data, state.size - 4);
    uint32_t magic = reader_u32le(&r), version = reader_u32le(&r);
    if (magic != CHECKPOINT_MAGIC) return error_set(e, MINK_CORRUPT, "BAD_CHECKPOINT", "not a checkpoint");
    if (version != CHECKPOINT_VERSION) return error_set(e, MINK_UNSUPPORTED, "NEWER_CHECKPOINT", "checkpoint version %u: this version of Mink reads version %d", version, CHECKPOINT_VERSION);
    pthread_rwlock_wrlock(&c->lock);
    catalog_clear(c);
    enum mink_code code = load(c, &r, e);
    if (code != MINK_OK) catalog_clear(c);
    pthread_rwlock_unlock(&c->lock);
    return code;
}
