// SPDX-License-Identifier: Apache-2.0
// Applying one command: decode, dispatch. Two kinds of failure: the command's own answer (a decision all nodes reach alike), and a log that cannot
// be understood (the return value: the node must stop, for the others may have understood it).
#include "meta/apply_internal.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

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

// ---- objects with their ranges as rows

static bool unpack_ranges(const Mink__Ranges *m, struct command_object *out) {
    if (!m) return true;
    if (m->n_epochs != m->n_streams || m->n_from != m->n_streams || m->n_lengths != m->n_streams || m->n_streams > UINT32_MAX) return false;
    out->ranges = mem_new_array(struct command_range, m->n_streams + 1);
    out->range_count = (uint32_t)m->n_streams;
    uint64_t stream = 0;
    for (uint32_t i = 0; i < out->range_count; i++) {
        stream += m->streams[i];
        if (m->lengths[i] > UINT64_MAX - m->from[i]) return false;
        out->ranges[i] = (struct command_range){stream, m->epochs[i], m->from[i], m->from[i] + m->lengths[i]};
    }
    return true;
}

static bool unpack_objects(Mink__Object *const *objects, size_t count, struct apply_objects *out) {
    out->items = mem_new_array(struct command_object, count + 1);
    for (size_t i = 0; i < count; i++) {
        const Mink__Object *m = objects[i];
        if (!m->id) return false;
        struct command_object *o = &out->items[out->count++];
        *o = (struct command_object){.id = apply_object_id(m->id), .size = m->size, .index_size = m->index_size};
        if (!unpack_ranges(m->ranges, o)) return false;
    }
    return true;
}

static bool unpack_sealed(const Mink__SealIncarnation *seal, struct apply_objects *out) {
    out->items = mem_new_array(struct command_object, seal->n_objects + 1);
    for (size_t i = 0; i < seal->n_objects; i++) {
        const Mink__SealedObject *m = seal->objects[i];
        struct command_object *o = &out->items[out->count++];
        *o = (struct command_object){.id = {OBJECT_KIND_WAL, seal->incarnation, m->seq}, .size = m->size, .index_size = m->index_size};
        if (!unpack_ranges(m->entries, o)) return false;
    }
    return true;
}

static bool unpack(const Mink__Command *m, struct apply_objects *out) {
    *out = (struct apply_objects){0};
    switch (m->body_case) {
    case MINK__COMMAND__BODY_COMMIT_OBJECTS: return unpack_objects(m->commit_objects->objects, m->commit_objects->n_objects, out);
    case MINK__COMMAND__BODY_CLOSE_STREAM: return unpack_objects(m->close_stream->refs, m->close_stream->n_refs, out);
    case MINK__COMMAND__BODY_REPLACE_OBJECTS: return unpack_objects(m->replace_objects->objects, m->replace_objects->n_objects, out);
    case MINK__COMMAND__BODY_SEAL_INCARNATION: return unpack_sealed(m->seal_incarnation, out);
    default: return true;
    }
}

static void free_objects(struct apply_objects *objects) {
    for (uint32_t i = 0; i < objects->count; i++) mem_free(objects->items[i].ranges);
    mem_free(objects->items);
}

// ---- apply

static void dispatch(struct apply *a, const Mink__Command *m, const struct apply_objects *objects) {
    switch (m->body_case) {
    case MINK__COMMAND__BODY_CREATE_DATABASE: apply_create_database(a, m->create_database); break;
    case MINK__COMMAND__BODY_DROP_DATABASE: apply_drop_database(a, m->drop_database); break;
    case MINK__COMMAND__BODY_CREATE_TABLE: apply_create_table(a, m->create_table); break;
    case MINK__COMMAND__BODY_ALTER_TABLE: apply_alter_table(a, m->alter_table); break;
    case MINK__COMMAND__BODY_DROP_TABLE: apply_drop_table(a, m->drop_table); break;
    case MINK__COMMAND__BODY_CREATE_PARTITION: apply_create_partition(a, m->create_partition); break;
    case MINK__COMMAND__BODY_DROP_PARTITION: apply_drop_partition(a, m->drop_partition); break;
    case MINK__COMMAND__BODY_REGISTER_INCARNATION: apply_register_incarnation(a, m->register_incarnation); break;
    case MINK__COMMAND__BODY_DECLARE_DEAD: apply_declare_dead(a, m->declare_dead); break;
    case MINK__COMMAND__BODY_OPEN_STREAMS: apply_open_streams(a, m->open_streams); break;
    case MINK__COMMAND__BODY_ALLOCATE_WRITER_IDS: apply_allocate_writer_ids(a, m->allocate_writer_ids); break;
    case MINK__COMMAND__BODY_COMMIT_OBJECTS: apply_commit_objects(a, m->commit_objects, objects); break;
    case MINK__COMMAND__BODY_CLOSE_STREAM: apply_close_stream(a, m->close_stream, objects); break;
    case MINK__COMMAND__BODY_SEAL_INCARNATION: apply_seal_incarnation(a, m->seal_incarnation, objects); break;
    case MINK__COMMAND__BODY_REPLACE_OBJECTS: apply_replace_objects(a, m->replace_objects, objects); break;
    case MINK__COMMAND__BODY_TRIM_STREAMS: apply_trim_streams(a, m->trim_streams); break;
    case MINK__COMMAND__BODY_FORGET_OBJECTS: apply_forget_objects(a, m->forget_objects); break;
    default: mink_assert(!"a body that has a case");
    }
}

static enum mink_code unknown(uint64_t seq, const Mink__Command *m, struct error *e) {
    if (m->version != COMMAND_VERSION) error_set(e, MINK_UNSUPPORTED, "UNKNOWN_COMMAND", "command %" PRIu64 " of the log has version %u; this version of Mink knows version %d", seq, m->version, COMMAND_VERSION);
    else error_set(e, MINK_UNSUPPORTED, "UNKNOWN_COMMAND", "command %" PRIu64 " of the log is of a kind, or has a field, that this version of Mink does not know", seq);
    error_hint(e, "a newer node wrote it: upgrade this one");
    return MINK_UNSUPPORTED;
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
    if (encoded.size > COMMAND_BYTES_MAX) return error_set(e, MINK_CORRUPT, "BAD_COMMAND", "command %" PRIu64 " of the log has %zu bytes: at most %u", seq, encoded.size, COMMAND_BYTES_MAX);
    Mink__Command *m = mink__command__unpack(NULL, encoded.size, encoded.data);
    if (!m) return error_set(e, MINK_CORRUPT, "BAD_COMMAND", "command %" PRIu64 " of the log is malformed (%zu bytes)", seq, encoded.size);
    enum mink_code code = MINK_OK;
    struct apply_objects objects = {0};
    struct apply a = {.c = c, .seq = seq, .result = out, .fatal_error = e};
    if (m->version != COMMAND_VERSION || m->body_case == MINK__COMMAND__BODY__NOT_SET || has_unknown(&m->base)) code = unknown(seq, m, e);
    else if (!unpack(m, &objects)) code = error_set(e, MINK_CORRUPT, "BAD_COMMAND", "command %" PRIu64 " of the log: an object's id or ranges are malformed", seq);
    pthread_rwlock_wrlock(&c->lock);
    uint64_t position = c->position;
    if (code == MINK_OK && seq != position + 1) code = error_set(e, MINK_CORRUPT, "LOG_GAP", "command %" PRIu64 " of the log follows %" PRIu64, seq, position);
    if (code == MINK_OK) {
        c->position = seq;
        dispatch(&a, m, &objects);
        code = a.fatal;
        if (code != MINK_OK) c->position = position;
    }
    pthread_rwlock_unlock(&c->lock);
    free_objects(&objects);
    mink__command__free_unpacked(m, NULL);
    return code;
}
