// SPDX-License-Identifier: Apache-2.0
// Messages and schemas out of flatbuffers. Nanoarrow's decoder is not used for foreign bytes: it reads metadata keys and dictionary index
// types that a message may lack, and its verifier walks shared subtrees again for every parent, which a small message can make exponential.
#include "arrow/ipc.h"

#include "arrow/ipc_internal.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum mink_code ipc_bad(struct error *e, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(e, MINK_INVALID, "BAD_ARROW", "%s", text);
}

enum mink_code ipc_read_message(struct slice message, struct ipc_message *out, struct error *e) {
    // Encapsulated: ff ff ff ff, length. A bare flatbuffer begins with the root's position, which is never that large.
    uint32_t prefix[2];
    bool encapsulated = message.size >= 8 && (memcpy(prefix, message.data, 8), prefix[0] == UINT32_MAX);
    if (encapsulated) {
        if (prefix[1] > message.size - 8) return ipc_bad(e, "message is cut off: %" PRIu32 " bytes of metadata are announced, %zu are there", prefix[1], message.size - 8);
        message = slice_view(message, 8, prefix[1]);
    }
    *out = (struct ipc_message){.encapsulated = encapsulated};
    fb_init(&out->fb, message);
    out->root = fb_root(&out->fb);
    out->version = (int)fb_int(&out->root, 0, 2, 0);
    int64_t header_type = fb_int(&out->root, 1, 1, 0), body_size = fb_int(&out->root, 3, 8, 0);
    bool has_header = fb_sub(&out->root, 2, &out->header);
    if (out->fb.failed || !has_header) return ipc_bad(e, "message metadata (%zu bytes) is not a valid flatbuffer", message.size);
    if (out->version != 3 && out->version != 4) return ipc_bad(e, "metadata version V%d; V4 and V5 are read", out->version + 1);
    if (body_size < 0) return ipc_bad(e, "body length %" PRId64, body_size);
    out->body_size = (uint64_t)body_size;
    out->kind = header_type == 1 ? IPC_SCHEMA : header_type == 2 ? IPC_DICTIONARY : header_type == 3 ? IPC_BATCH : IPC_NONE;
    return MINK_OK;
}

enum mink_code ipc_peek(struct slice message, struct ipc_message_info *out, struct error *e) {
    struct ipc_message m;
    MINK_TRY(ipc_read_message(message, &m, e));
    struct ipc_record record = {0};
    if (m.kind == IPC_BATCH) MINK_TRY(ipc_read_record(&m, &record, e));
    *out = (struct ipc_message_info){m.kind, m.body_size, record.row_count, record.codec};
    return MINK_OK;
}

enum mink_code ipc_read_record(struct ipc_message *m, struct ipc_record *out, struct error *e) {
    struct fb_table record = m->header, compression;
    if (m->kind == IPC_DICTIONARY && !fb_sub(&m->header, 1, &record)) return ipc_bad(e, "dictionary message without data");
    *out = (struct ipc_record){.fb = &m->fb};
    out->row_count = fb_int(&record, 0, 8, 0);
    out->nodes = fb_vector(&record, 1, 16);
    out->buffers = fb_vector(&record, 2, 16);
    out->view_buffers = fb_vector(&record, 4, 8);
    if (fb_sub(&record, 3, &compression)) {
        int64_t codec = fb_int(&compression, 0, 1, 0), method = fb_int(&compression, 1, 1, 0);
        if (codec < 0 || codec > 1 || method != 0) return ipc_bad(e, "compression codec %" PRId64 " with method %" PRId64 " is not known", codec, method);
        out->codec = codec == 0 ? CODEC_LZ4_FRAME : CODEC_ZSTD;
    }
    if (m->fb.failed) return ipc_bad(e, "record batch metadata is not a valid flatbuffer");
    if (out->row_count < 0 || out->row_count > IPC_ROWS_MAX) return ipc_bad(e, "record batch of %" PRId64 " rows, at most %d are read", out->row_count, IPC_ROWS_MAX);
    return MINK_OK;
}

struct schema_reader {
    struct error *e;
    uint32_t fields_left;
};

// Names and metadata become C strings, so they have to be text.
static enum mink_code read_text(const struct fb_table *t, uint32_t id, const char *what, char **out, struct error *e) {
    uint32_t size;
    const char *text = fb_string(t, id, &size);
    if (t->fb->failed) return ipc_bad(e, "schema: %s is not a valid flatbuffer string", what);
    if (size && (!utf8_valid((const uint8_t *)text, size) || memchr(text, 0, size))) return ipc_bad(e, "schema: %s is not valid UTF-8 text", what);
    *out = mem_strndup(text ? text : "", size);
    return MINK_OK;
}

static enum mink_code read_metadata(const struct fb_table *t, uint32_t id, struct arrow_field *out, struct error *e) {
    struct fb_vector pairs = fb_vector(t, id, 4);
    if (pairs.count == 0) return MINK_OK;
    out->metadata = mem_new_array(struct arrow_metadata, pairs.count); // no more than the message has bytes
    for (uint32_t i = 0; i < pairs.count; i++) {
        struct fb_table pair = fb_vector_table(t, pairs, i);
        out->metadata_count = i + 1;
        uint32_t size;
        const char *value = fb_string(&pair, 1, &size);
        MINK_TRY(read_text(&pair, 0, "a metadata key", &out->metadata[i].key, e));
        out->metadata[i].value = mem_strndup(value ? value : "", value ? size : 0); // some put binary here: cut at a zero byte
    }
    return t->fb->failed ? ipc_bad(e, "schema: metadata is not a valid flatbuffer") : MINK_OK;
}

static enum arrow_type int_type(const struct fb_table *t) {
    int64_t bits = fb_int(t, 0, 4, 0), is_signed = fb_int(t, 1, 1, 0);
    switch (bits) {
    case 8: return is_signed ? ARROW_INT8 : ARROW_UINT8;
    case 16: return is_signed ? ARROW_INT16 : ARROW_UINT16;
    case 32: return is_signed ? ARROW_INT32 : ARROW_UINT32;
    case 64: return is_signed ? ARROW_INT64 : ARROW_UINT64;
    default: return ARROW_TYPE_COUNT;
    }
}

static enum mink_code unsupported(struct error *e, const struct arrow_field *f, const char *type, const char *hint) {
    error_set(e, MINK_UNSUPPORTED, "UNSUPPORTED_TYPE", "column %.60s: type %s is not supported", f->name, type);
    error_about(e, f->name, NULL, type);
    if (hint) error_hint(e, "%s", hint);
    return MINK_UNSUPPORTED;
}

static enum mink_code read_type(int64_t type, const struct fb_table *t, struct arrow_field *out, struct error *e) {
    int64_t n;
    switch (type) {
    case 1: out->type = ARROW_NULL; return MINK_OK;
    case 2:
        out->type = int_type(t);
        if (out->type == ARROW_TYPE_COUNT) return ipc_bad(e, "schema: field %.60s: integer of %d bits", out->name, (int)fb_int(t, 0, 4, 0));
        return MINK_OK;
    case 3:
        n = fb_int(t, 0, 2, 0);
        if (n < 0 || n > 2) return ipc_bad(e, "schema: field %.60s: float precision %d", out->name, (int)n);
        out->type = n == 0 ? ARROW_FLOAT16 : n == 1 ? ARROW_FLOAT32 : ARROW_FLOAT64;
        return MINK_OK;
    case 4: out->type = ARROW_BINARY; return MINK_OK;
    case 5: out->type = ARROW_UTF8; return MINK_OK;
    case 6: out->type = ARROW_BOOL; return MINK_OK;
    case 7:
        n = fb_int(t, 2, 4, 128);
        if (n != 128) return unsupported(e, out, n == 256 ? "decimal256" : n == 64 ? "decimal64" : n == 32 ? "decimal32" : "decimal of unknown width", "cast it to decimal128");
        out->type = ARROW_DECIMAL128;
        out->precision = (int32_t)fb_int(t, 0, 4, 0);
        out->scale = (int32_t)fb_int(t, 1, 4, 0);
        return MINK_OK;
    case 8:
        n = fb_int(t, 0, 2, 1);
        if (n < 0 || n > 1) return ipc_bad(e, "schema: field %.60s: date unit %d", out->name, (int)n);
        out->type = n == 0 ? ARROW_DATE32 : ARROW_DATE64;
        return MINK_OK;
    case 9:
    case 10:
    case 18:
        n = fb_int(t, 0, 2, type == 10 ? 0 : 1);
        if (n < 0 || n > 3) return ipc_bad(e, "schema: field %.60s: time unit %d", out->name, (int)n);
        out->unit = (enum arrow_unit)n;
        out->type = type == 10 ? ARROW_TIMESTAMP : type == 18 ? ARROW_DURATION : fb_int(t, 1, 4, 32) == 32 ? ARROW_TIME32 : ARROW_TIME64;
        if (type == 10) {
            MINK_TRY(read_text(t, 1, "a time zone", &out->timezone, e));
            if (out->timezone[0] == 0) {
                mem_free(out->timezone);
                out->timezone = NULL;
            }
        }
        return MINK_OK;
    case 11: return unsupported(e, out, "interval", NULL);
    case 12: out->type = ARROW_LIST; return MINK_OK;
    case 13: out->type = ARROW_STRUCT; return MINK_OK;
    case 14: return unsupported(e, out, "union", NULL);
    case 15:
        out->type = ARROW_FIXED_BINARY;
        out->width = (int32_t)fb_int(t, 0, 4, 0);
        return MINK_OK;
    case 16:
        out->type = ARROW_FIXED_LIST;
        out->width = (int32_t)fb_int(t, 0, 4, 0);
        return MINK_OK;
    case 17: out->type = ARROW_MAP; return MINK_OK;
    case 19: out->type = ARROW_LARGE_BINARY; return MINK_OK;
    case 20: out->type = ARROW_LARGE_UTF8; return MINK_OK;
    case 21: out->type = ARROW_LARGE_LIST; return MINK_OK;
    case 22: return unsupported(e, out, "run_end_encoded", "decode it before sending");
    case 23:
    case 24:
        out->type = type == 23 ? ARROW_BINARY : ARROW_UTF8;
        out->view = true;
        return MINK_OK;
    case 25: return unsupported(e, out, "list_view", "cast it to list");
    case 26: return unsupported(e, out, "large_list_view", "cast it to list");
    default: return ipc_bad(e, "schema: field %.60s: type number %d", out->name, (int)type);
    }
}

static enum mink_code read_field(struct schema_reader *r, const struct fb_table *t, uint32_t depth, struct arrow_field *out) {
    struct fb_table type, dictionary, index;
    *out = (struct arrow_field){0};
    MINK_TRY(read_text(t, 0, "a field name", &out->name, r->e));
    if (depth > ARROW_DEPTH_MAX || r->fields_left == 0) return ipc_bad(r->e, "schema: field %.60s: more than %d fields, or deeper than %d", out->name, ARROW_FIELDS_MAX, ARROW_DEPTH_MAX);
    r->fields_left--;
    out->nullable = fb_int(t, 1, 1, 0) != 0;
    int64_t type_number = fb_int(t, 2, 1, 0);
    if (!fb_sub(t, 3, &type)) return ipc_bad(r->e, "schema: field %.60s has no type", out->name);
    MINK_TRY(read_type(type_number, &type, out, r->e));
    if (fb_sub(t, 4, &dictionary)) {
        out->dictionary = true;
        out->dictionary_id = fb_int(&dictionary, 0, 8, 0);
        out->index_type = fb_sub(&dictionary, 1, &index) ? int_type(&index) : ARROW_INT32;
        if (fb_int(&dictionary, 3, 2, 0) != 0) return ipc_bad(r->e, "schema: field %.60s: dictionary kind", out->name);
    }
    struct fb_vector children = fb_vector(t, 5, 4);
    if (children.count > r->fields_left) return ipc_bad(r->e, "schema: field %.60s: more than %d fields", out->name, ARROW_FIELDS_MAX);
    if (children.count) out->children = mem_new_array(struct arrow_field, children.count);
    for (uint32_t i = 0; i < children.count; i++) {
        struct fb_table child = fb_vector_table(t, children, i);
        out->child_count = i + 1;
        MINK_TRY(read_field(r, &child, depth + 1, &out->children[i]));
    }
    MINK_TRY(read_metadata(t, 6, out, r->e));
    if (t->fb->failed) return ipc_bad(r->e, "schema: field %.60s is not a valid flatbuffer", out->name);
    const char *wrong = arrow_field_check(out);
    return wrong ? ipc_bad(r->e, "schema: field %.60s: %s", out->name, wrong) : MINK_OK;
}

static enum mink_code read_schema(struct ipc_message *m, struct arrow_field *root, struct error *e) {
    struct schema_reader r = {.e = e, .fields_left = ARROW_FIELDS_MAX};
    if (fb_int(&m->header, 0, 2, 0) != 0) return error_set(e, MINK_UNSUPPORTED, "UNSUPPORTED_TYPE", "schema: big-endian data is not supported");
    struct fb_vector fields = fb_vector(&m->header, 1, 4);
    if (fields.count > ARROW_FIELDS_MAX) return ipc_bad(e, "schema: %" PRIu32 " fields", fields.count);
    root->children = mem_new_array(struct arrow_field, fields.count);
    for (uint32_t i = 0; i < fields.count; i++) {
        struct fb_table field = fb_vector_table(&m->header, fields, i);
        root->child_count = i + 1;
        MINK_TRY(read_field(&r, &field, 1, &root->children[i]));
    }
    MINK_TRY(read_metadata(&m->header, 2, root, e));
    return m->fb.failed ? ipc_bad(e, "schema is not a valid flatbuffer") : MINK_OK;
}

enum mink_code ipc_decode_schema(struct slice message, struct arrow_schema **out, struct error *e) {
    struct ipc_message m;
    MINK_TRY(ipc_read_message(message, &m, e));
    if (m.kind != IPC_SCHEMA) return ipc_bad(e, "a schema message was expected");
    struct arrow_schema *s = arrow_schema_new(NULL, 0);
    enum mink_code code = read_schema(&m, &s->root, e);
    if (code == MINK_OK) *out = s;
    else arrow_schema_unref(s);
    return code;
}
