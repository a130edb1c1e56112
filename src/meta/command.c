// SPDX-License-Identifier: Apache-2.0
// Builders and encoding of commands. protobuf-c stays in this file and in catalog_apply*.c. What is built here is freed by protobuf-c's walker, so
// every string, array and message comes from mem_* and is owned by the message.
#include "meta/command_internal.h"

#include "base/json.h"
#include "base/mem.h"

#include <string.h>

static struct command *new_command(Mink__Command__BodyCase kind) {
    struct command *c = mem_new(struct command);
    mink__command__init(&c->message);
    c->message.version = COMMAND_VERSION;
    c->message.body_case = kind;
    return c;
}

// Each kind's body, initialised and hung into the command.
#define BODY(c, type, init, member)      \
    type *body = mem_new(type);          \
    init(body);                          \
    (c)->message.member = body

static char *text(const char *s) { return mem_strdup(s ? s : ""); }

static ProtobufCBinaryData bytes(const void *data, size_t size) {
    ProtobufCBinaryData b = {size, NULL};
    if (size) {
        b.data = mem_alloc(size);
        memcpy(b.data, data, size);
    }
    return b;
}

static uint64_t *u64_array(const uint64_t *values, uint32_t count) {
    if (!count) return NULL;
    uint64_t *copy = mem_alloc(count * sizeof *copy);
    memcpy(copy, values, count * sizeof *copy);
    return copy;
}

void command_free(struct command *c) {
    if (!c) return;
    // The message is embedded: free what hangs from it by handing a heap copy of the head to protobuf-c.
    Mink__Command *head = mem_alloc(sizeof *head);
    *head = c->message;
    mink__command__free_unpacked(head, NULL);
    mem_free(c);
}

struct slice command_encode(const struct command *c) {
    uint8_t *data;
    struct slice s = slice_new(mink__command__get_packed_size(&c->message), &data);
    mink__command__pack(&c->message, data);
    return s;
}

void command_set_id(struct command *c, const uint8_t id[COMMAND_ID_SIZE]) { c->message.id = bytes(id, COMMAND_ID_SIZE); }

enum mink_code command_parse_definition(const char *json, struct table_def **out, struct error *e) {
    struct json *j;
    MINK_TRY(json_parse(json, strlen(json), &j, e));
    struct table_defaults defaults = {.bucket_num = 1}; // never used: a definition always has its own
    enum mink_code code = table_def_from_json(j, &defaults, out, e);
    json_free(j);
    return code;
}

enum mink_code command_check(const struct command *c, struct error *e) {
    const Mink__Command *m = &c->message;
    size_t size = mink__command__get_packed_size(m);
    if (size > COMMAND_BYTES_MAX) return error_set(e, MINK_INVALID, "COMMAND_TOO_LARGE", "a command of %zu bytes: at most %u", size, COMMAND_BYTES_MAX);
    const char *json = m->body_case == MINK__COMMAND__BODY_CREATE_TABLE ? m->create_table->definition : m->body_case == MINK__COMMAND__BODY_ALTER_TABLE ? m->alter_table->definition : NULL;
    if (!json) return MINK_OK;
    struct table_def *def;
    MINK_TRY(command_parse_definition(json, &def, e));
    table_def_unref(def);
    return MINK_OK;
}

bool command_is_ddl(const struct command *c) {
    switch (c->message.body_case) {
    case MINK__COMMAND__BODY_CREATE_DATABASE:
    case MINK__COMMAND__BODY_DROP_DATABASE:
    case MINK__COMMAND__BODY_CREATE_TABLE:
    case MINK__COMMAND__BODY_ALTER_TABLE:
    case MINK__COMMAND__BODY_DROP_TABLE:
    case MINK__COMMAND__BODY_CREATE_PARTITION:
    case MINK__COMMAND__BODY_DROP_PARTITION: return true;
    default: return false;
    }
}

static char *definition(const struct table_def *def) {
    struct buffer b;
    struct json_writer w;
    buffer_init(&b, 64u << 20);
    json_begin(&w, &b);
    table_def_to_json(def, &w);
    char *json = mem_strdup(buffer_string(&b));
    buffer_deinit(&b);
    return json;
}

struct command *command_create_database(const char *name, const char *comment, bool if_not_exists) {
    struct command *c = new_command(MINK__COMMAND__BODY_CREATE_DATABASE);
    BODY(c, Mink__CreateDatabase, mink__create_database__init, create_database);
    body->name = text(name);
    body->comment = text(comment);
    body->if_not_exists = if_not_exists;
    return c;
}

struct command *command_drop_database(const char *name, bool if_exists, bool cascade) {
    struct command *c = new_command(MINK__COMMAND__BODY_DROP_DATABASE);
    BODY(c, Mink__DropDatabase, mink__drop_database__init, drop_database);
    body->name = text(name);
    body->if_exists = if_exists;
    body->cascade = cascade;
    return c;
}

struct command *command_create_table(const struct table_def *def, bool if_not_exists) {
    struct command *c = new_command(MINK__COMMAND__BODY_CREATE_TABLE);
    BODY(c, Mink__CreateTable, mink__create_table__init, create_table);
    body->definition = definition(def);
    body->if_not_exists = if_not_exists;
    return c;
}

struct command *command_alter_table(const struct catalog_table *base, const struct table_def *def) {
    struct command *c = new_command(MINK__COMMAND__BODY_ALTER_TABLE);
    BODY(c, Mink__AlterTable, mink__alter_table__init, alter_table);
    body->table_id = base->table_id;
    body->definition = definition(def);
    body->expected_position = base->altered_position;
    return c;
}

struct command *command_drop_table(const char *database, const char *name, bool if_exists) {
    struct command *c = new_command(MINK__COMMAND__BODY_DROP_TABLE);
    BODY(c, Mink__DropTable, mink__drop_table__init, drop_table);
    body->database = text(database);
    body->name = text(name);
    body->if_exists = if_exists;
    return c;
}

struct command *command_create_partition(uint64_t table_id, const char *name, bool if_not_exists) {
    struct command *c = new_command(MINK__COMMAND__BODY_CREATE_PARTITION);
    BODY(c, Mink__CreatePartition, mink__create_partition__init, create_partition);
    body->table_id = table_id;
    body->name = text(name);
    body->if_not_exists = if_not_exists;
    return c;
}

struct command *command_drop_partition(uint64_t table_id, const char *name, bool if_exists) {
    struct command *c = new_command(MINK__COMMAND__BODY_DROP_PARTITION);
    BODY(c, Mink__DropPartition, mink__drop_partition__init, drop_partition);
    body->table_id = table_id;
    body->name = text(name);
    body->if_exists = if_exists;
    return c;
}

struct command *command_register_incarnation(const uint8_t nonce[16], const char *address, const char *rack) {
    struct command *c = new_command(MINK__COMMAND__BODY_REGISTER_INCARNATION);
    BODY(c, Mink__RegisterIncarnation, mink__register_incarnation__init, register_incarnation);
    body->nonce = bytes(nonce, 16);
    body->address = text(address);
    body->rack = text(rack);
    return c;
}

struct command *command_declare_dead(uint64_t incarnation) {
    struct command *c = new_command(MINK__COMMAND__BODY_DECLARE_DEAD);
    BODY(c, Mink__DeclareDead, mink__declare_dead__init, declare_dead);
    body->incarnation = incarnation;
    return c;
}

struct command *command_open_streams(uint64_t incarnation, const uint64_t *stream_ids, uint32_t count) {
    struct command *c = new_command(MINK__COMMAND__BODY_OPEN_STREAMS);
    BODY(c, Mink__OpenStreams, mink__open_streams__init, open_streams);
    body->incarnation = incarnation;
    body->n_streams = count;
    body->streams = u64_array(stream_ids, count);
    return c;
}

struct command *command_allocate_writer_ids(uint32_t count) {
    struct command *c = new_command(MINK__COMMAND__BODY_ALLOCATE_WRITER_IDS);
    BODY(c, Mink__AllocateWriterIds, mink__allocate_writer_ids__init, allocate_writer_ids);
    body->count = count;
    return c;
}

static Mink__ObjectId *object_id(struct catalog_object_id id) {
    Mink__ObjectId *m = mem_new(Mink__ObjectId);
    mink__object_id__init(m);
    m->kind = id.kind;
    m->incarnation = id.incarnation;
    m->number = id.number;
    return m;
}

static Mink__Ranges *ranges_of(const struct command_range *ranges, uint32_t count) {
    Mink__Ranges *m = mem_new(Mink__Ranges);
    mink__ranges__init(m);
    if (count == 0) return m;
    m->n_streams = m->n_epochs = m->n_from = m->n_lengths = count;
    m->streams = mem_new_array(uint64_t, count);
    m->epochs = mem_new_array(uint32_t, count);
    m->from = mem_new_array(uint64_t, count);
    m->lengths = mem_new_array(uint64_t, count);
    for (uint32_t i = 0; i < count; i++) {
        mink_assert(ranges[i].to >= ranges[i].from);
        m->streams[i] = ranges[i].stream_id - (i ? ranges[i - 1].stream_id : 0);
        m->epochs[i] = ranges[i].epoch;
        m->from[i] = ranges[i].from;
        m->lengths[i] = ranges[i].to - ranges[i].from;
    }
    return m;
}

static Mink__Object **objects_of(const struct command_object *objects, uint32_t count) {
    Mink__Object **list = mem_new_array(Mink__Object *, count ? count : 1);
    for (uint32_t i = 0; i < count; i++) {
        Mink__Object *o = list[i] = mem_new(Mink__Object);
        mink__object__init(o);
        o->id = object_id(objects[i].id);
        o->size = objects[i].size;
        o->index_size = objects[i].index_size;
        o->ranges = ranges_of(objects[i].ranges, objects[i].range_count);
    }
    return list;
}

struct command *command_commit_objects(uint64_t incarnation, uint64_t wal_from, uint64_t wal_upto, const struct command_object *objects, uint32_t object_count, const struct command_attachment *attachments, uint32_t attachment_count) {
    struct command *c = new_command(MINK__COMMAND__BODY_COMMIT_OBJECTS);
    BODY(c, Mink__CommitObjects, mink__commit_objects__init, commit_objects);
    body->incarnation = incarnation;
    body->wal_from = wal_from;
    body->wal_upto = wal_upto;
    body->n_objects = object_count;
    body->objects = objects_of(objects, object_count);
    body->n_attachments = attachment_count;
    body->attachments = mem_new_array(Mink__Attachment *, attachment_count ? attachment_count : 1);
    for (uint32_t i = 0; i < attachment_count; i++) {
        Mink__Attachment *a = body->attachments[i] = mem_new(Mink__Attachment);
        mink__attachment__init(a);
        a->stream = attachments[i].stream_id;
        a->bytes = bytes(attachments[i].bytes.data, attachments[i].bytes.size);
    }
    return c;
}

struct command *command_close_stream(uint64_t incarnation, uint64_t stream_id, uint32_t epoch, uint64_t end, const struct command_object *refs, uint32_t ref_count) {
    struct command *c = new_command(MINK__COMMAND__BODY_CLOSE_STREAM);
    BODY(c, Mink__CloseStream, mink__close_stream__init, close_stream);
    body->incarnation = incarnation;
    body->stream = stream_id;
    body->epoch = epoch;
    body->end = end;
    body->n_refs = ref_count;
    body->refs = objects_of(refs, ref_count);
    return c;
}

struct command *command_seal_incarnation(uint64_t incarnation, uint64_t base, uint64_t seal_seq, const struct command_sealed_object *objects, uint32_t object_count) {
    struct command *c = new_command(MINK__COMMAND__BODY_SEAL_INCARNATION);
    BODY(c, Mink__SealIncarnation, mink__seal_incarnation__init, seal_incarnation);
    body->incarnation = incarnation;
    body->wal_base = base;
    body->seal_seq = seal_seq;
    body->n_objects = object_count;
    body->objects = mem_new_array(Mink__SealedObject *, object_count ? object_count : 1);
    for (uint32_t i = 0; i < object_count; i++) {
        Mink__SealedObject *o = body->objects[i] = mem_new(Mink__SealedObject);
        mink__sealed_object__init(o);
        o->seq = objects[i].seq;
        o->size = objects[i].size;
        o->index_size = objects[i].index_size;
        struct command_range *ranges = mem_new_array(struct command_range, objects[i].entry_count + 1);
        for (uint32_t k = 0; k < objects[i].entry_count; k++) {
            const struct command_entry *entry = &objects[i].entries[k];
            ranges[k] = (struct command_range){entry->stream_id, entry->epoch, entry->offset_first, entry->offset_end};
        }
        o->entries = ranges_of(ranges, objects[i].entry_count);
        mem_free(ranges);
    }
    return c;
}

static Mink__ObjectId **ids_of(const struct catalog_object_id *ids, uint32_t count) {
    Mink__ObjectId **list = mem_new_array(Mink__ObjectId *, count ? count : 1);
    for (uint32_t i = 0; i < count; i++) list[i] = object_id(ids[i]);
    return list;
}

struct command *command_replace_objects(uint64_t incarnation, const struct catalog_object_id *old_objects, uint32_t old_count, const struct command_object *new_objects, uint32_t new_count) {
    struct command *c = new_command(MINK__COMMAND__BODY_REPLACE_OBJECTS);
    BODY(c, Mink__ReplaceObjects, mink__replace_objects__init, replace_objects);
    body->incarnation = incarnation;
    body->n_old = old_count;
    body->old = ids_of(old_objects, old_count);
    body->n_objects = new_count;
    body->objects = objects_of(new_objects, new_count);
    return c;
}

struct command *command_trim_streams(const uint64_t *stream_ids, const uint64_t *starts, uint32_t count) {
    struct command *c = new_command(MINK__COMMAND__BODY_TRIM_STREAMS);
    BODY(c, Mink__TrimStreams, mink__trim_streams__init, trim_streams);
    body->n_streams = body->n_starts = count;
    body->streams = u64_array(stream_ids, count);
    body->starts = u64_array(starts, count);
    return c;
}

struct command *command_forget_objects(const struct catalog_object_id *ids, uint32_t count) {
    struct command *c = new_command(MINK__COMMAND__BODY_FORGET_OBJECTS);
    BODY(c, Mink__ForgetObjects, mink__forget_objects__init, forget_objects);
    body->n_ids = count;
    body->ids = ids_of(ids, count);
    return c;
}
