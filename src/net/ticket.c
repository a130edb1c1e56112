// SPDX-License-Identifier: Apache-2.0
#include "net/ticket.h"

#include "base/mem.h"
#include "base/nearest.h"
#include "table/table_def.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum mink_code read_object(const void *json, size_t size, const char *what, struct json **out, struct error *e) {
    *out = NULL;
    if (size > TICKET_JSON_MAX) return error_set(e, MINK_INVALID, "TOO_LARGE", "%s of %zu bytes: at most %u are taken", what, size, TICKET_JSON_MAX);
    enum mink_code code = json_parse(json, size, out, e);
    if (code != MINK_OK) {
        error_context(e, "%s", what);
        return code;
    }
    if (json_type(*out) != JSON_OBJECT) return error_set(e, MINK_INVALID, "BAD_JSON", "%s must be a JSON object", what);
    return MINK_OK;
}

// ---- tables

enum mink_code table_ref_parse(const char *qualified, struct table_ref *out, struct error *e) {
    *out = (struct table_ref){0};
    char suffix[256] = "";
    if (strlen(qualified) > 460) return error_set(e, MINK_INVALID, "BAD_NAME", "table name of %zu bytes is too long", strlen(qualified));
    MINK_TRY(table_name_split(qualified, out->database, out->name, suffix, e));
    if (suffix[0] && strcmp(suffix, "changelog") != 0 && strcmp(suffix, "binlog") != 0) {
        error_set(e, MINK_INVALID, "BAD_NAME", "table %s.%s has no view $%.32s", out->database, out->name, suffix);
        error_hint(e, "known are $changelog and $binlog");
        return MINK_INVALID;
    }
    snprintf(out->suffix, sizeof out->suffix, "%.31s", suffix);
    return MINK_OK;
}

void table_ref_print(const struct table_ref *r, char out[512]) { snprintf(out, 512, r->suffix[0] ? "%s.%s$%s" : "%s.%s", r->database, r->name, r->suffix); }

enum mink_code table_ref_from_path(char *const *path, uint32_t count, struct table_ref *out, const char **out_partition, struct error *e) {
    if (count != 2 && count != 3) {
        error_set(e, MINK_INVALID, "BAD_DESCRIPTOR", "a descriptor's path has %" PRIu32 " parts", count);
        error_hint(e, "use [database, table] or [database, table, partition]");
        return MINK_INVALID;
    }
    if (strlen(path[0]) > 200 || strlen(path[1]) > 260) return error_set(e, MINK_INVALID, "BAD_NAME", "a part of the descriptor's path is too long");
    char qualified[512];
    snprintf(qualified, sizeof qualified, "%s.%s", path[0], path[1]);
    *out_partition = count == 3 ? path[2] : NULL;
    return table_ref_parse(qualified, out, e);
}

static enum mink_code field_table(const struct json *o, const char *what, const char *key, struct table_ref *out, struct error *e) {
    const char *name = NULL;
    MINK_TRY(json_field_string(o, what, key, true, &name, e));
    return table_ref_parse(name, out, e);
}

// ---- values

// A word of a closed list; INVALID names the nearest.
static enum mink_code word(const char *what, const char *key, const char *text, const char *const words[], int *out, struct error *e) {
    struct nearest n;
    nearest_init(&n, text);
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0) {
            *out = i;
            return MINK_OK;
        }
        nearest_offer(&n, words[i]);
    }
    char list[160] = "";
    for (int i = 0; words[i]; i++) snprintf(list + strlen(list), sizeof list - strlen(list), i ? ", %s" : "%s", words[i]);
    error_set(e, MINK_INVALID, "BAD_VALUE", "%s: %s is \"%.80s\"", what, key, text);
    error_about(e, key, list, text);
    if (nearest_found(&n)) error_hint(e, "did you mean \"%s\"?", nearest_found(&n));
    else error_hint(e, "known are %s", list);
    return MINK_INVALID;
}

// A decimal number without sign or blanks that fits an int64.
static bool whole_number(const char *text, int64_t *out) {
    if (text[0] < '0' || text[0] > '9') return false;
    int64_t v = 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *text - '0', &v)) return false;
    }
    *out = v;
    return true;
}

static enum mink_code parse_from(const struct json *o, const char *what, enum ticket_from *from, int64_t *value, struct error *e) {
    const struct json *v = json_get(o, "from");
    if (v == NULL || json_type(v) == JSON_NULL) return MINK_OK;
    const char *text = json_text(v);
    if (json_type(v) == JSON_INT && json_int(v) >= 0) {
        *from = FROM_OFFSET;
        *value = json_int(v);
    } else if (text && strcmp(text, "earliest") == 0) {
        *from = FROM_EARLIEST;
    } else if (text && strcmp(text, "latest") == 0) {
        *from = FROM_LATEST;
    } else if (text && whole_number(text, value)) {
        *from = FROM_OFFSET;
    } else if (text && strncmp(text, "ts:", 3) == 0 && whole_number(text + 3, value)) {
        *from = FROM_TIME;
    } else {
        error_set(e, MINK_INVALID, "BAD_VALUE", "%s: from is %s", what, text ? text : "not an offset");
        error_about(e, "from", "earliest, latest, <offset> or ts:<ms>", text);
        error_hint(e, "from is \"earliest\", \"latest\", an offset, or \"ts:<milliseconds since 1970>\"");
        return MINK_INVALID;
    }
    return MINK_OK;
}

static enum mink_code parse_until(const struct json *o, const char *what, enum ticket_until *until, uint64_t *offset, struct error *e) {
    const struct json *v = json_get(o, "until");
    if (v == NULL || json_type(v) == JSON_NULL) return MINK_OK;
    const char *text = json_text(v);
    int64_t number;
    if (json_type(v) == JSON_INT && json_int(v) >= 0) {
        *until = UNTIL_OFFSET;
        *offset = (uint64_t)json_int(v);
    } else if (text && strcmp(text, "now") == 0) {
        *until = UNTIL_NOW;
    } else if (text && strcmp(text, "never") == 0) {
        *until = UNTIL_NEVER;
    } else if (text && whole_number(text, &number)) {
        *until = UNTIL_OFFSET;
        *offset = (uint64_t)number;
    } else {
        error_set(e, MINK_INVALID, "BAD_VALUE", "%s: until is %s", what, text ? text : "not an offset");
        error_about(e, "until", "now, never or <offset>", text);
        error_hint(e, "until is \"now\", \"never\", or an offset");
        return MINK_INVALID;
    }
    return MINK_OK;
}

static enum mink_code field_words(const struct json *o, const char *what, const char *key, uint32_t max, const char **out, uint32_t *count, struct error *e) {
    const struct json *v = json_get(o, key);
    if (v == NULL || json_type(v) == JSON_NULL) return MINK_OK;
    if (json_type(v) != JSON_ARRAY) {
        error_set(e, MINK_INVALID, "BAD_VALUE", "%s: %s must be an array of strings", what, key);
        error_about(e, key, "array of strings", NULL);
        return MINK_INVALID;
    }
    if (json_count(v) > max)
        return error_set(e, MINK_INVALID, "BAD_VALUE", "%s: %s has %zu entries, at most %" PRIu32 " are taken", what, key, json_count(v), max);
    for (size_t i = 0; i < json_count(v); i++) {
        out[i] = json_text(json_at(v, i));
        if (out[i] == NULL) return error_set(e, MINK_INVALID, "BAD_VALUE", "%s: %s[%zu] is not a string", what, key, i);
    }
    *count = (uint32_t)json_count(v);
    return MINK_OK;
}

static enum mink_code field_bucket(const struct json *o, const char *what, int32_t *out, struct error *e) {
    const struct json *v = json_get(o, "bucket");
    if (v == NULL || json_type(v) == JSON_NULL) return MINK_OK;
    int64_t bucket = -1;
    MINK_TRY(json_field_int(o, what, "bucket", true, 0, INT32_MAX, &bucket, e));
    *out = (int32_t)bucket;
    return MINK_OK;
}

static enum mink_code field_optional_string(const struct json *o, const char *what, const char *key, const char **out, struct error *e) {
    const struct json *v = json_get(o, key);
    return v && json_type(v) == JSON_NULL ? MINK_OK : json_field_string(o, what, key, false, out, e);
}

// ---- ticket

static const char *const ticket_keys[] = {"table",       "partition",    "bucket",   "columns", "filter", "limit",  "from", "until", "meta", "batch_bytes",
                                          "compression", "heartbeat_ms", "snapshot", "lake",    "as_of",  "evolve", "cut",  "exp",   NULL};
static const char *const compressions[] = {"none", "lz4", "zstd", NULL};
static const enum codec compression_codecs[] = {CODEC_NONE, CODEC_LZ4_FRAME, CODEC_ZSTD};
static const char *const lakes[] = {"union", "none", "only", NULL};
static const char *const evolves[] = {"end", "keep", NULL};

void ticket_init(struct ticket *t) {
    *t =
        (struct ticket){.bucket = -1, .all_columns = true, .limit = -1, .batch_bytes = TICKET_BATCH_BYTES_DEFAULT, .heartbeat_ms = TICKET_HEARTBEAT_MS_DEFAULT};
}

static enum mink_code ticket_shape(const struct json *o, const char *what, struct ticket *t, struct error *e) {
    const struct json *columns = json_get(o, "columns");
    if (columns && json_type(columns) != JSON_NULL) {
        t->all_columns = false;
        t->columns = mem_new_array(const char *, json_count(columns) + 1);
        MINK_TRY(field_words(o, what, "columns", TICKET_COLUMNS_MAX, t->columns, &t->column_count, e));
    }
    MINK_TRY(field_optional_string(o, what, "filter", &t->filter, e));
    MINK_TRY(field_words(o, what, "meta", TICKET_META_MAX, t->meta, &t->meta_count, e));
    int64_t n = t->batch_bytes;
    MINK_TRY(json_field_int(o, what, "batch_bytes", false, 1024, TICKET_BATCH_BYTES_MAX, &n, e));
    t->batch_bytes = (uint32_t)n;
    n = t->heartbeat_ms;
    MINK_TRY(json_field_int(o, what, "heartbeat_ms", false, 0, 3600 * 1000, &n, e));
    t->heartbeat_ms = (uint32_t)n;
    const char *text = "none";
    MINK_TRY(field_optional_string(o, what, "compression", &text, e));
    int found = 0;
    MINK_TRY(word(what, "compression", text, compressions, &found, e));
    t->compression = compression_codecs[found];
    text = "end";
    MINK_TRY(field_optional_string(o, what, "evolve", &text, e));
    MINK_TRY(word(what, "evolve", text, evolves, &found, e));
    t->evolve_keep = found == 1;
    return MINK_OK;
}

static enum mink_code ticket_fields(const struct json *o, struct ticket *t, struct error *e) {
    const char *what = "ticket";
    MINK_TRY(json_check_keys(o, what, ticket_keys, e));
    MINK_TRY(field_table(o, what, "table", &t->table, e));
    MINK_TRY(field_optional_string(o, what, "partition", &t->partition, e));
    MINK_TRY(field_bucket(o, what, &t->bucket, e));
    MINK_TRY(ticket_shape(o, what, t, e));
    const struct json *limit = json_get(o, "limit");
    if (limit && json_type(limit) != JSON_NULL) MINK_TRY(json_field_int(o, what, "limit", true, 0, INT64_MAX, &t->limit, e));
    MINK_TRY(parse_from(o, what, &t->from, &t->from_value, e));
    MINK_TRY(parse_until(o, what, &t->until, &t->until_offset, e));
    MINK_TRY(json_field_bool(o, what, "snapshot", false, &t->snapshot, e));
    MINK_TRY(field_optional_string(o, what, "lake", &t->lake, e));
    int found;
    if (t->lake) MINK_TRY(word(what, "lake", t->lake, lakes, &found, e));
    t->as_of = json_get(o, "as_of") != NULL;
    return json_field_int(o, what, "exp", false, 0, INT64_MAX, &t->expires_ms, e);
}

enum mink_code ticket_parse(const void *json, size_t size, struct ticket *out, struct error *e) {
    ticket_init(out);
    enum mink_code code = read_object(json, size, "ticket", &out->document, e);
    if (code == MINK_OK) code = ticket_fields(out->document, out, e);
    if (code != MINK_OK) ticket_deinit(out);
    return code;
}

void ticket_deinit(struct ticket *t) {
    json_free(t->document);
    mem_free(t->columns);
    ticket_init(t);
}

static void put_words(struct json_writer *w, const char *key, const char *const *words, uint32_t count) {
    json_put_key(w, key);
    json_array_begin(w);
    for (uint32_t i = 0; i < count; i++) json_put_string(w, words[i]);
    json_array_end(w);
}

static void put_string_unless_null(struct json_writer *w, const char *key, const char *text) {
    if (text == NULL) return;
    json_put_key(w, key);
    json_put_string(w, text);
}

void ticket_write(const struct ticket *t, struct buffer *out) {
    struct json_writer w;
    json_begin(&w, out);
    json_object_begin(&w);
    char text[512];
    table_ref_print(&t->table, text);
    json_put_key(&w, "table");
    json_put_string(&w, text);
    put_string_unless_null(&w, "partition", t->partition);
    if (t->bucket >= 0) {
        json_put_key(&w, "bucket");
        json_put_int(&w, t->bucket);
    }
    if (!t->all_columns) put_words(&w, "columns", t->columns, t->column_count);
    put_string_unless_null(&w, "filter", t->filter);
    if (t->limit >= 0) {
        json_put_key(&w, "limit");
        json_put_int(&w, t->limit);
    }
    if (t->from != FROM_EARLIEST) {
        json_put_key(&w, "from");
        if (t->from == FROM_OFFSET) {
            json_put_int(&w, t->from_value);
        } else {
            snprintf(text, sizeof text, "ts:%" PRId64, t->from_value);
            json_put_string(&w, t->from == FROM_LATEST ? "latest" : text);
        }
    }
    if (t->until != UNTIL_NOW) {
        json_put_key(&w, "until");
        if (t->until == UNTIL_OFFSET) json_put_uint(&w, t->until_offset);
        else json_put_string(&w, "never");
    }
    if (t->meta_count) put_words(&w, "meta", t->meta, t->meta_count);
    if (t->batch_bytes != TICKET_BATCH_BYTES_DEFAULT) {
        json_put_key(&w, "batch_bytes");
        json_put_uint(&w, t->batch_bytes);
    }
    if (t->compression != CODEC_NONE) {
        json_put_key(&w, "compression");
        json_put_string(&w, t->compression == CODEC_ZSTD ? "zstd" : "lz4");
    }
    if (t->heartbeat_ms != TICKET_HEARTBEAT_MS_DEFAULT) {
        json_put_key(&w, "heartbeat_ms");
        json_put_uint(&w, t->heartbeat_ms);
    }
    if (t->snapshot) {
        json_put_key(&w, "snapshot");
        json_put_bool(&w, true);
    }
    put_string_unless_null(&w, "lake", t->lake);
    if (t->evolve_keep) put_string_unless_null(&w, "evolve", "keep");
    if (t->expires_ms) {
        json_put_key(&w, "exp");
        json_put_int(&w, t->expires_ms);
    }
    json_object_end(&w);
}

// ---- put

static const char *const put_keys[] = {"table", "partition", "mode", "bucket", "writer", "writer_epoch", "create_partition", NULL};
static const char *const put_modes[] = {"append", "upsert", "delete", "partial", NULL};

void put_command_init(struct put_command *p) { *p = (struct put_command){.bucket = -1, .create_partition = true}; }

static enum mink_code put_fields(const struct json *o, struct put_command *p, struct error *e) {
    const char *what = "put command";
    MINK_TRY(json_check_keys(o, what, put_keys, e));
    MINK_TRY(field_table(o, what, "table", &p->table, e));
    MINK_TRY(field_optional_string(o, what, "partition", &p->partition, e));
    MINK_TRY(field_bucket(o, what, &p->bucket, e));
    const char *mode = NULL;
    MINK_TRY(field_optional_string(o, what, "mode", &mode, e));
    int found = -1;
    if (mode) MINK_TRY(word(what, "mode", mode, put_modes, &found, e));
    p->mode = (enum put_mode)(found + 1);
    int64_t n = 0;
    const struct json *writer = json_get(o, "writer");
    if (writer && json_type(writer) != JSON_NULL) {
        // Readers in JavaScript hold 64-bit numbers as text.
        const char *text = json_text(writer);
        if (!text || !whole_number(text, &n) || n == 0) MINK_TRY(json_field_int(o, what, "writer", true, 1, INT64_MAX, &n, e));
        p->writer = (uint64_t)n;
    }
    n = 0;
    MINK_TRY(json_field_int(o, what, "writer_epoch", false, 0, UINT16_MAX, &n, e));
    p->writer_epoch = (uint16_t)n;
    return json_field_bool(o, what, "create_partition", false, &p->create_partition, e);
}

enum mink_code put_command_parse(const void *json, size_t size, struct put_command *out, struct error *e) {
    put_command_init(out);
    enum mink_code code = read_object(json, size, "put command", &out->document, e);
    if (code == MINK_OK) code = put_fields(out->document, out, e);
    if (code != MINK_OK) put_command_deinit(out);
    return code;
}

void put_command_write(const struct put_command *p, struct buffer *out) {
    struct json_writer w;
    json_begin(&w, out);
    json_object_begin(&w);
    char text[512];
    table_ref_print(&p->table, text);
    json_put_key(&w, "table");
    json_put_string(&w, text);
    put_string_unless_null(&w, "partition", p->partition);
    if (p->mode != PUT_DEFAULT) put_string_unless_null(&w, "mode", put_modes[p->mode - 1]);
    if (p->bucket >= 0) {
        json_put_key(&w, "bucket");
        json_put_int(&w, p->bucket);
    }
    if (p->writer) {
        json_put_key(&w, "writer");
        json_put_uint(&w, p->writer);
    }
    if (p->writer_epoch) {
        json_put_key(&w, "writer_epoch");
        json_put_uint(&w, p->writer_epoch);
    }
    if (!p->create_partition) {
        json_put_key(&w, "create_partition");
        json_put_bool(&w, false);
    }
    json_object_end(&w);
}

void put_command_deinit(struct put_command *p) {
    json_free(p->document);
    put_command_init(p);
}

enum mink_code put_sequence_parse(const void *json, size_t size, bool *has, uint32_t *sequence, struct error *e) {
    static const char *const keys[] = {"seq", NULL};
    *has = false;
    struct json *o;
    enum mink_code code = read_object(json, size, "batch metadata", &o, e);
    if (code == MINK_OK) code = json_check_keys(o, "batch metadata", keys, e);
    int64_t n = -1;
    if (code == MINK_OK) code = json_field_int(o, "batch metadata", "seq", false, 0, UINT32_MAX, &n, e);
    if (code == MINK_OK && n >= 0) {
        *has = true;
        *sequence = (uint32_t)n;
    }
    json_free(o);
    return code;
}

// ---- exchange

static const char *const exchange_keys[] = {"subscribe", "columns", "filter", "meta", "batch_bytes", "compression", "heartbeat_ms", "evolve", NULL};
static const char *const subscription_keys[] = {"table", "partition", "bucket", "from", NULL};

static enum mink_code exchange_fields(const struct json *o, struct exchange_command *x, struct error *e) {
    const char *what = "exchange command";
    if (json_get(o, "lookup")) {
        error_set(e, MINK_UNSUPPORTED, "NO_LOOKUP", "lookups need a table with a primary key");
        return MINK_UNSUPPORTED;
    }
    MINK_TRY(json_check_keys(o, what, exchange_keys, e));
    const struct json *list = json_get(o, "subscribe");
    if (list == NULL || json_type(list) != JSON_ARRAY || json_count(list) == 0) {
        error_set(e, MINK_INVALID, "BAD_VALUE", "%s: subscribe must be a non-empty array", what);
        error_hint(e, "{\"subscribe\":[{\"table\":\"db.t\",\"bucket\":0,\"from\":\"earliest\"}]}");
        return MINK_INVALID;
    }
    if (json_count(list) > SUBSCRIPTIONS_MAX)
        return error_set(e, MINK_INVALID, "TOO_MANY_SUBSCRIPTIONS", "%zu subscriptions on a stream: at most %d are taken", json_count(list), SUBSCRIPTIONS_MAX);
    MINK_TRY(ticket_shape(o, what, &x->shape, e));
    x->subscriptions = mem_new_array(struct subscription, json_count(list));
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *s = json_at(list, i);
        if (json_type(s) != JSON_OBJECT) return error_set(e, MINK_INVALID, "BAD_VALUE", "subscribe[%zu] is not an object", i);
        MINK_TRY(json_check_keys(s, "subscription", subscription_keys, e));
        struct table_ref table;
        MINK_TRY(field_table(s, "subscription", "table", &table, e));
        if (i == 0) x->shape.table = table;
        else if (strcmp(table.database, x->shape.table.database) != 0 || strcmp(table.name, x->shape.table.name) != 0 ||
                 strcmp(table.suffix, x->shape.table.suffix) != 0)
            return error_set(e, MINK_INVALID, "SEVERAL_TABLES", "subscribe[%zu] names %s.%s, the first one %s.%s: a stream has one schema, so one table", i,
                             table.database, table.name, x->shape.table.database, x->shape.table.name);
        struct subscription *out = &x->subscriptions[i];
        *out = (struct subscription){.bucket = -1};
        MINK_TRY(field_optional_string(s, "subscription", "partition", &out->partition, e));
        MINK_TRY(field_bucket(s, "subscription", &out->bucket, e));
        MINK_TRY(parse_from(s, "subscription", &out->from, &out->from_value, e));
        x->subscription_count++;
    }
    return MINK_OK;
}

enum mink_code exchange_command_parse(const void *json, size_t size, struct exchange_command *out, struct error *e) {
    *out = (struct exchange_command){0};
    ticket_init(&out->shape);
    enum mink_code code = read_object(json, size, "exchange command", &out->shape.document, e);
    if (code == MINK_OK) code = exchange_fields(out->shape.document, out, e);
    if (code != MINK_OK) exchange_command_deinit(out);
    return code;
}

void exchange_command_deinit(struct exchange_command *x) {
    ticket_deinit(&x->shape);
    mem_free(x->subscriptions);
    x->subscriptions = NULL;
    x->subscription_count = 0;
}

static const char *const control_names[CONTROL_KIND_COUNT + 1] = {"seek", "pause", "resume", "credit", "add", "remove", NULL};
const char *control_name(enum control_kind kind) { return control_names[kind]; }

// One bucket: a number, or {"bucket":n,"partition":…} with "offset" (seek) or "from" (add).
static enum mink_code control_target(const struct json *v, struct control *c, struct subscription *out, struct error *e) {
    static const char *const seek_keys[] = {"bucket", "partition", "offset", NULL}, *const add_keys[] = {"bucket", "partition", "from", "table", NULL},
                             *const other_keys[] = {"bucket", "partition", NULL};
    const char *what = control_names[c->kind];
    *out = (struct subscription){.bucket = -1};
    if (json_type(v) == JSON_INT && c->kind != CONTROL_SEEK) {
        if (json_int(v) < 0 || json_int(v) > INT32_MAX)
            return error_set(e, MINK_INVALID, "BAD_VALUE", "%s: bucket %" PRId64 " is out of range", what, json_int(v));
        out->bucket = (int32_t)json_int(v);
        return MINK_OK;
    }
    if (json_type(v) != JSON_OBJECT) return error_set(e, MINK_INVALID, "BAD_VALUE", "%s: a target is an object with a bucket", what);
    MINK_TRY(json_check_keys(v, what, c->kind == CONTROL_SEEK ? seek_keys : c->kind == CONTROL_ADD ? add_keys : other_keys, e));
    MINK_TRY(field_optional_string(v, what, "partition", &out->partition, e));
    MINK_TRY(field_bucket(v, what, &out->bucket, e));
    if (out->bucket < 0) return error_set(e, MINK_INVALID, "MISSING_KEY", "%s: bucket is missing", what);
    if (c->kind == CONTROL_SEEK) {
        out->from = FROM_OFFSET;
        return json_field_int(v, what, "offset", true, 0, INT64_MAX, &out->from_value, e);
    }
    return parse_from(v, what, &out->from, &out->from_value, e);
}

static enum mink_code control_fields(const struct json *o, struct control *c, struct error *e) {
    static const char *const keys[] = {"seek", "pause", "resume", "credit", "add", "remove", "id", NULL};
    MINK_TRY(json_check_keys(o, "control message", keys, e));
    const struct json *value = NULL;
    for (int i = 0; i < CONTROL_KIND_COUNT; i++) {
        const struct json *v = json_get(o, control_names[i]);
        if (v == NULL) continue;
        if (value)
            return error_set(e, MINK_INVALID, "BAD_VALUE", "control message: %s and %s at once; send two messages", control_names[c->kind], control_names[i]);
        value = v;
        c->kind = (enum control_kind)i;
    }
    if (value == NULL) {
        error_set(e, MINK_INVALID, "MISSING_KEY", "control message without a command");
        error_hint(e, "known are seek, pause, resume, credit, add, remove");
        return MINK_INVALID;
    }
    c->id = json_get(o, "id");
    if (c->kind == CONTROL_CREDIT) {
        int64_t n = 0;
        MINK_TRY(json_field_int(o, "control message", "credit", true, 0, INT64_MAX, &n, e));
        c->credit = (uint64_t)n;
        return MINK_OK;
    }
    size_t count = json_type(value) == JSON_ARRAY ? json_count(value) : 1;
    if (count == 0 || count > SUBSCRIPTIONS_MAX)
        return error_set(e, MINK_INVALID, "BAD_VALUE", "control message: %s names %zu buckets, 1 to %d are taken", control_names[c->kind], count,
                         SUBSCRIPTIONS_MAX);
    c->targets = mem_new_array(struct subscription, count);
    for (size_t i = 0; i < count; i++) {
        MINK_TRY(control_target(json_type(value) == JSON_ARRAY ? json_at(value, i) : value, c, &c->targets[i], e));
        c->target_count++;
    }
    return MINK_OK;
}

enum mink_code control_parse(const void *json, size_t size, struct control *out, struct error *e) {
    *out = (struct control){0};
    enum mink_code code = read_object(json, size, "control message", &out->document, e);
    if (code == MINK_OK) code = control_fields(out->document, out, e);
    if (code != MINK_OK) control_deinit(out);
    return code;
}

void control_deinit(struct control *c) {
    json_free(c->document);
    mem_free(c->targets);
    *c = (struct control){0};
}
