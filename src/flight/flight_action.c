// SPDX-License-Identifier: Apache-2.0
// DoAction: a name and a JSON object in, JSON objects out. The table of actions below is also what ListActions tells.
//
// A mutating action may carry "request_id": its answer is kept for an hour and given again for the same id, so a client that lost a reply
// can simply ask again. While the first is still running, the second is told to retry.
#include "base/mem.h"
#include "flight/flight_internal.h"
#include "table/ddl.h"
#include "table/partition.h"

#include "base/nearest.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define REQUEST_IDS_MAX 10000
#define REQUEST_ID_LIFE_MS (3600 * 1000)
#define REQUEST_ID_SIZE_MAX 200

struct action;

struct run {
    struct flight_request *request;
    struct flight_server *server;
    const struct action *action;
    struct json *body;
    bool int64_text;
    const char *request_id; // NULL = none
    struct node_admin admin;
    struct node_offsets offsets;
    struct node_table *table;
    struct ddl ddl;
    bool has_ddl;
    struct table_def *def;
    struct table_option *set;
    const char **reset;
    char partition[PARTITION_NAME_MAX];
    struct table_ref ref;
    void (*on_admin)(struct run *r);
    char **texts; // the JSON of each answer
    uint32_t text_count;
    bool database_made, if_not_exists; // create-table made the database and tries again
};

struct action {
    const char *name, *description;
    const char *const *keys; // NULL = a protobuf body
    bool mutating;
    enum mink_code (*run)(struct run *r, struct error *e); // OK: answers were put, or something is under way (under_way)
};

// ---- answers that are kept

struct kept {
    struct kept *next;
    char *id;
    int64_t at_ms;
    bool finished;
    struct error error;
    char **texts;
    uint32_t text_count;
};

struct flight_answers {
    pthread_mutex_t lock;       // guards the list: protocol shards share it. Innermost
    struct kept *first, **last; // oldest first
    uint32_t count;
};

struct flight_answers *flight_answers_new(void) {
    struct flight_answers *a = mem_new(struct flight_answers);
    pthread_mutex_init(&a->lock, NULL);
    a->last = &a->first;
    return a;
}

static void kept_free(struct kept *k) {
    for (uint32_t i = 0; i < k->text_count; i++) mem_free(k->texts[i]);
    mem_free(k->texts);
    mem_free(k->id);
    mem_free(k);
}

void flight_answers_free(struct flight_answers *a) {
    while (a->first) {
        struct kept *k = a->first;
        a->first = k->next;
        kept_free(k);
    }
    pthread_mutex_destroy(&a->lock);
    mem_free(a);
}

static void unlink_kept(struct flight_answers *a, struct kept **at) {
    struct kept *k = *at;
    *at = k->next;
    if (*at == NULL) a->last = at;
    a->count--;
    kept_free(k);
}

static void copy_texts(char **from, uint32_t count, char ***out) {
    *out = mem_new_array(char *, count + 1);
    for (uint32_t i = 0; i < count; i++) (*out)[i] = mem_strdup(from[i]);
}

// True: the id is new and now reserved. False: *r has the first answer, or the error says that it is still running.
static bool reserve(struct run *r, int64_t now_ms) {
    struct flight_answers *a = r->server->answers;
    bool fresh = true;
    pthread_mutex_lock(&a->lock);
    while (a->first && a->first->finished && (a->first->at_ms + REQUEST_ID_LIFE_MS < now_ms || a->count >= REQUEST_IDS_MAX)) unlink_kept(a, &a->first);
    for (struct kept *k = a->first; k && fresh; k = k->next) {
        if (strcmp(k->id, r->request_id) != 0) continue;
        fresh = false;
        if (k->finished) {
            copy_texts(k->texts, k->text_count, &r->texts);
            r->text_count = k->text_count;
            r->request->error = k->error;
        } else {
            error_set(&r->request->error, MINK_UNAVAILABLE, "REQUEST_RUNNING", "request %s is still running", r->request_id);
        }
    }
    if (fresh) {
        struct kept *k = mem_new(struct kept);
        k->id = mem_strdup(r->request_id);
        k->at_ms = now_ms;
        *a->last = k;
        a->last = &k->next;
        a->count++;
    }
    pthread_mutex_unlock(&a->lock);
    return fresh;
}

// A failure that a retry may mend is forgotten, so that the retry is tried.
static void keep(struct run *r) {
    struct flight_answers *a = r->server->answers;
    pthread_mutex_lock(&a->lock);
    for (struct kept **at = &a->first; *at; at = &(*at)->next) {
        struct kept *k = *at;
        if (strcmp(k->id, r->request_id) != 0 || k->finished) continue;
        if (mink_code_retriable(r->request->error.code)) {
            unlink_kept(a, at);
        } else {
            k->finished = true;
            k->error = r->request->error;
            copy_texts(r->texts, r->text_count, &k->texts);
            k->text_count = r->text_count;
        }
        break;
    }
    pthread_mutex_unlock(&a->lock);
}

// ---- a run

static void run_free(struct flight_request *request) {
    struct run *r = request->state;
    for (uint32_t i = 0; i < r->text_count; i++) mem_free(r->texts[i]);
    mem_free(r->texts);
    if (r->has_ddl) ddl_deinit(&r->ddl);
    if (r->def) table_def_unref(r->def);
    if (r->table) node_table_unref(r->table);
    mem_free(r->set);
    mem_free(r->reset);
    json_free(r->body);
    mem_free(r);
}

static void put_text(struct run *r, struct buffer *b) {
    r->texts = mem_realloc(r->texts, (r->text_count + 1) * sizeof *r->texts);
    r->texts[r->text_count++] = mem_strndup(buffer_string(b), b->size);
    buffer_deinit(b);
}

static void answer_begin(struct buffer *b, struct json_writer *w) {
    buffer_init(b, 16u << 20);
    json_begin(w, b);
    json_object_begin(w);
}

static void answer_end(struct run *r, struct buffer *b, struct json_writer *w) {
    json_object_end(w);
    put_text(r, b);
}

static void answer_nothing(struct run *r) {
    struct buffer b;
    struct json_writer w;
    answer_begin(&b, &w);
    answer_end(r, &b, &w);
}

// A value once more; int64_text: every whole number as text, for readers whose numbers are doubles.
static void rewrite(const struct json *v, bool int64_text, struct json_writer *w) {
    char text[32];
    switch (json_type(v)) {
    case JSON_INT:
        snprintf(text, sizeof text, "%" PRId64, json_int(v));
        if (int64_text) json_put_string(w, text);
        else json_put_int(w, json_int(v));
        break;
    case JSON_REAL: json_put_real(w, json_number(v)); break;
    case JSON_BOOL: json_put_bool(w, json_bool(v)); break;
    case JSON_STRING: json_put_string(w, json_text(v)); break;
    case JSON_ARRAY:
        json_array_begin(w);
        for (size_t i = 0; i < json_count(v); i++) rewrite(json_at(v, i), int64_text, w);
        json_array_end(w);
        break;
    case JSON_OBJECT:
        json_object_begin(w);
        for (size_t i = 0; i < json_count(v); i++) {
            const struct json *value;
            json_put_key(w, json_key_at(v, i, &value));
            rewrite(value, int64_text, w);
        }
        json_object_end(w);
        break;
    case JSON_NULL: json_put_null(w); break;
    }
}

static void send_texts(struct run *r) {
    for (uint32_t i = 0; i < r->text_count; i++) {
        struct json *j = NULL;
        if (r->int64_text && json_parse(r->texts[i], strlen(r->texts[i]), &j, NULL) == MINK_OK) {
            struct buffer b;
            buffer_init(&b, 16u << 20);
            struct json_writer w;
            json_begin(&w, &b);
            rewrite(j, true, &w);
            flight_request_answer(r->request, flight_bytes_encode(b.data, b.size));
            buffer_deinit(&b);
        } else {
            flight_request_answer(r->request, flight_bytes_encode(r->texts[i], strlen(r->texts[i])));
        }
        json_free(j);
    }
}

static void finish_run(struct run *r) {
    if (r->request_id) keep(r);
    if (r->request->error.code == MINK_OK) send_texts(r);
    flight_request_done(r->request);
}

static void on_admin_done(struct node_admin *admin) {
    struct run *r = admin->private_state;
    if (admin->code != MINK_OK) r->request->error = admin->error;
    r->on_admin(r);
}

static void start_admin(struct run *r, enum node_admin_op op, void (*on_admin)(struct run *r)) {
    r->admin.op = op;
    r->admin.shard = rpc_call_shard(r->request->call);
    r->admin.on_done = on_admin_done;
    r->admin.private_state = r;
    r->on_admin = on_admin;
    flight_request_sent(r->request);
    node_admin(r->server->node, &r->admin);
}

// The end of an on_admin. What was done is kept for the request id even when the client has gone: that is when it asks again.
static void end_admin(struct run *r) {
    if (r->request_id) keep(r);
    r->request_id = NULL;
    if (flight_request_returned(r->request)) finish_run(r);
}

static void answer_empty_then_end(struct run *r) {
    if (r->request->error.code == MINK_OK) answer_nothing(r);
    end_admin(r);
}

// ---- fields

static enum mink_code get_bool(struct run *r, const char *key, bool *out, struct error *e) {
    return json_field_bool(r->body, r->action->name, key, false, out, e);
}

static enum mink_code find_table(struct run *r, struct error *e) {
    const char *name = NULL;
    MINK_TRY(json_field_string(r->body, r->action->name, "table", true, &name, e));
    MINK_TRY(table_ref_parse(name, &r->ref, e));
    return flight_find_table(r->server, &r->ref, &r->table, e);
}

static enum mink_code get_partition(struct run *r, bool required, const char **out, struct error *e) {
    const struct json *v = json_get(r->body, "partition");
    *out = NULL;
    if (v == NULL && !required) return MINK_OK;
    if (v && json_type(v) == JSON_OBJECT) { // {"column":"value", …}
        const struct table_def *def = node_table_def(r->table);
        const char *values[64] = {0};
        if (def->partition_by_count > 64) return error_set(e, MINK_UNSUPPORTED, "TOO_MANY_COLUMNS", "more than 64 partition columns");
        for (size_t i = 0; i < json_count(v); i++) {
            const struct json *value;
            const char *key = json_key_at(v, i, &value);
            bool known = false;
            for (uint32_t k = 0; k < def->partition_by_count; k++)
                if (strcmp(def->columns[def->partition_by[k]].name, key) == 0) {
                    values[k] = json_text(value);
                    known = true;
                }
            if (!known) return error_set(e, MINK_INVALID, "BAD_PARTITION", "%.64s is not a partition column of %s.%s", key, def->database, def->name);
        }
        for (uint32_t k = 0; k < def->partition_by_count; k++)
            if (values[k] == NULL)
                return error_set(e, MINK_INVALID, "BAD_PARTITION", "partition column %s has no value (as a string)", def->columns[def->partition_by[k]].name);
        MINK_TRY(partition_name(def, values, def->partition_by_count, r->partition, e));
        *out = r->partition;
        return MINK_OK;
    }
    return json_field_string(r->body, r->action->name, "partition", required, out, e);
}

// {"ddl":"…"} of the kind the action is for.
static enum mink_code get_ddl(struct run *r, const char *text, enum ddl_kind a, enum ddl_kind b, enum ddl_kind c, struct error *e) {
    struct table_defaults defaults = node_defaults(r->server->node);
    MINK_TRY(ddl_parse(text, strlen(text), NULL, &defaults, &r->ddl, e));
    r->has_ddl = true;
    if (r->ddl.kind != a && r->ddl.kind != b && r->ddl.kind != c) {
        error_set(e, MINK_INVALID, "WRONG_STATEMENT", "%s does not take this statement", r->action->name);
        error_hint(e, "use the action that is named like the statement");
        return MINK_INVALID;
    }
    return MINK_OK;
}

// ---- databases

static enum mink_code run_create_database(struct run *r, struct error *e) {
    MINK_TRY(json_field_string(r->body, r->action->name, "database", true, &r->admin.database, e));
    MINK_TRY(json_field_string(r->body, r->action->name, "comment", false, &r->admin.comment, e));
    MINK_TRY(get_bool(r, "if_not_exists", &r->admin.if_not_exists, e));
    MINK_TRY(table_name_check(r->admin.database, "database", e));
    start_admin(r, NODE_CREATE_DATABASE, answer_empty_then_end);
    return MINK_OK;
}

static enum mink_code run_drop_database(struct run *r, struct error *e) {
    MINK_TRY(json_field_string(r->body, r->action->name, "database", true, &r->admin.database, e));
    MINK_TRY(get_bool(r, "if_exists", &r->admin.if_exists, e));
    MINK_TRY(get_bool(r, "cascade", &r->admin.cascade, e));
    start_admin(r, NODE_DROP_DATABASE, answer_empty_then_end);
    return MINK_OK;
}

static enum mink_code run_list_databases(struct run *r, struct error *e) {
    char **names;
    uint32_t count;
    node_list_databases(r->server->node, &names, &count);
    for (uint32_t i = 0; i < count; i++) {
        struct buffer b;
        struct json_writer w;
        answer_begin(&b, &w);
        json_put_key(&w, "database");
        json_put_string(&w, names[i]);
        answer_end(r, &b, &w);
    }
    catalog_free_names(names, count);
    finish_run(r);
    return MINK_OK;
}

// ---- tables

static void on_table_created(struct run *r);

static void on_database_made(struct run *r) {
    if (r->request->error.code != MINK_OK) {
        end_admin(r);
        return;
    }
    r->request->pending--; // start_admin counts it again
    r->admin.if_not_exists = r->if_not_exists;
    start_admin(r, NODE_CREATE_TABLE, on_table_created);
}

static void on_table_created(struct run *r) {
    // A table brings its database with it: the first statement of a newcomer is CREATE TABLE shop.orders.
    if (strcmp(r->request->error.reason, "DATABASE_NOT_FOUND") == 0 && !r->database_made) {
        r->database_made = true;
        error_clear(&r->request->error);
        r->request->pending--;
        r->if_not_exists = r->admin.if_not_exists;
        r->admin.if_not_exists = true;
        start_admin(r, NODE_CREATE_DATABASE, on_database_made);
        return;
    }
    if (r->request->error.code == MINK_OK) {
        struct buffer b;
        struct json_writer w;
        answer_begin(&b, &w);
        json_put_key(&w, "table_id");
        json_put_uint(&w, r->admin.id);
        json_put_key(&w, "existed");
        json_put_bool(&w, r->admin.existed);
        answer_end(r, &b, &w);
    }
    end_admin(r);
}

static int base64_value(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

static enum mink_code base64_decode(const char *text, struct slice *out, struct error *e) {
    size_t size = strlen(text), n = 0;
    while (size && text[size - 1] == '=') size--;
    uint8_t *data;
    struct slice s = slice_new(size * 3 / 4 + 1, &data);
    uint32_t bits = 0;
    for (size_t i = 0; i < size; i++) {
        int v = base64_value(text[i]);
        if (v < 0) {
            slice_unref(&s);
            return error_set(e, MINK_INVALID, "BAD_BASE64", "arrow_schema: character %zu is not base64", i);
        }
        bits = bits << 6 | (uint32_t)v;
        if (i % 4) data[n++] = (uint8_t)(bits >> (6 - i % 4 * 2));
    }
    s.size = n;
    *out = s;
    return MINK_OK;
}

static enum mink_code def_from_arrow(struct run *r, const char *base64, struct error *e) {
    const char *name = NULL;
    MINK_TRY(json_field_string(r->body, r->action->name, "table", true, &name, e));
    MINK_TRY(table_ref_parse(name, &r->ref, e));
    struct slice bytes;
    MINK_TRY(base64_decode(base64, &bytes, e));
    struct arrow_schema *schema = NULL;
    enum mink_code code = ipc_decode_schema(bytes, &schema, e);
    struct table_defaults defaults = node_defaults(r->server->node);
    if (code == MINK_OK) code = table_def_from_arrow(r->ref.database, r->ref.name, schema, r->body, &defaults, &r->def, e);
    arrow_schema_unref(schema);
    slice_unref(&bytes);
    return code;
}

// The body is a definition once the keys that belong to the action are left out.
static enum mink_code def_from_body(struct run *r, struct error *e) {
    struct buffer b;
    struct json_writer w;
    answer_begin(&b, &w);
    for (size_t i = 0; i < json_count(r->body); i++) {
        const struct json *value;
        const char *key = json_key_at(r->body, i, &value);
        if (strcmp(key, "if_not_exists") == 0 || strcmp(key, "request_id") == 0 || strcmp(key, "int64") == 0) continue;
        json_put_key(&w, key);
        rewrite(value, false, &w);
    }
    json_object_end(&w);
    struct json *definition = NULL;
    struct table_defaults defaults = node_defaults(r->server->node);
    enum mink_code code = json_parse(b.data, b.size, &definition, e);
    if (code == MINK_OK) code = table_def_from_json(definition, &defaults, &r->def, e);
    json_free(definition);
    buffer_deinit(&b);
    return code;
}

static enum mink_code run_create_table(struct run *r, struct error *e) {
    const char *ddl = NULL, *arrow = NULL;
    MINK_TRY(json_field_string(r->body, r->action->name, "ddl", false, &ddl, e));
    MINK_TRY(json_field_string(r->body, r->action->name, "arrow_schema", false, &arrow, e));
    MINK_TRY(get_bool(r, "if_not_exists", &r->admin.if_not_exists, e));
    if (ddl) {
        MINK_TRY(get_ddl(r, ddl, DDL_CREATE_TABLE, DDL_CREATE_TABLE, DDL_CREATE_TABLE, e));
        r->admin.if_not_exists |= r->ddl.if_not_exists;
        r->def = table_def_ref(r->ddl.def);
    } else if (arrow) {
        MINK_TRY(def_from_arrow(r, arrow, e));
    } else {
        MINK_TRY(def_from_body(r, e));
    }
    r->admin.def = r->def;
    r->admin.database = r->def->database;
    r->admin.table = r->def->name;
    start_admin(r, NODE_CREATE_TABLE, on_table_created);
    return MINK_OK;
}

static enum mink_code read_options(struct run *r, struct error *e) {
    const struct json *set = json_get(r->body, "set"), *reset = json_get(r->body, "reset");
    if ((set && json_type(set) != JSON_OBJECT) || (reset && json_type(reset) != JSON_ARRAY) || (set == NULL && reset == NULL)) {
        error_set(e, MINK_INVALID, "BAD_VALUE", "alter-table needs \"ddl\", \"set\" or \"reset\"");
        error_hint(e, "{\"table\":\"db.t\",\"set\":{\"table.log.ttl\":\"1 d\"},\"reset\":[\"…\"]}");
        return MINK_INVALID;
    }
    r->set = mem_new_array(struct table_option, json_count(set) + 1);
    r->reset = mem_new_array(const char *, json_count(reset) + 1);
    for (size_t i = 0; set && i < json_count(set); i++) {
        const struct json *value;
        r->set[i].key = (char *)json_key_at(set, i, &value);
        r->set[i].value = (char *)json_text(value);
        if (r->set[i].value == NULL) return error_set(e, MINK_INVALID, "BAD_VALUE", "option %.64s: the value must be a string", r->set[i].key);
    }
    for (size_t i = 0; reset && i < json_count(reset); i++) {
        r->reset[i] = json_text(json_at(reset, i));
        if (r->reset[i] == NULL) return error_set(e, MINK_INVALID, "BAD_VALUE", "reset[%zu] is not a string", i);
    }
    r->admin.set = r->set;
    r->admin.set_count = set ? (uint32_t)json_count(set) : 0;
    r->admin.reset = r->reset;
    r->admin.reset_count = reset ? (uint32_t)json_count(reset) : 0;
    return MINK_OK;
}

static enum mink_code name_table(struct run *r, struct error *e) {
    const char *name = NULL;
    MINK_TRY(json_field_string(r->body, r->action->name, "table", true, &name, e));
    MINK_TRY(table_ref_parse(name, &r->ref, e));
    r->admin.database = r->ref.database;
    r->admin.table = r->ref.name;
    return MINK_OK;
}

static void start_from_ddl(struct run *r, enum node_admin_op op) {
    r->admin.database = r->ddl.database;
    r->admin.table = r->ddl.table;
    r->admin.if_exists |= r->ddl.if_exists;
    r->admin.if_not_exists |= r->ddl.if_not_exists;
    r->admin.set = r->ddl.set;
    r->admin.set_count = r->ddl.set_count;
    r->admin.reset = (const char *const *)r->ddl.reset;
    r->admin.reset_count = r->ddl.reset_count;
    start_admin(r, op, answer_empty_then_end);
}

// ALTER TABLE … ADD/DROP PARTITION (k='v', …): the values in the order of the table's partition columns.
static enum mink_code start_partition_ddl(struct run *r, struct error *e) {
    snprintf(r->ref.database, sizeof r->ref.database, "%s", r->ddl.database);
    snprintf(r->ref.name, sizeof r->ref.name, "%s", r->ddl.table);
    MINK_TRY(flight_find_table(r->server, &r->ref, &r->table, e));
    const struct table_def *def = node_table_def(r->table);
    const char *values[64] = {0};
    for (uint32_t i = 0; i < r->ddl.partition_value_count; i++) {
        bool known = false;
        for (uint32_t k = 0; k < def->partition_by_count && k < 64; k++)
            if (strcmp(def->columns[def->partition_by[k]].name, r->ddl.partition_columns[i]) == 0) {
                values[k] = r->ddl.partition_values[i];
                known = true;
            }
        if (!known)
            return error_set(e, MINK_INVALID, "BAD_PARTITION", "%.64s is not a partition column of %s.%s", r->ddl.partition_columns[i], def->database,
                             def->name);
    }
    for (uint32_t k = 0; k < def->partition_by_count && k < 64; k++)
        if (values[k] == NULL) return error_set(e, MINK_INVALID, "BAD_PARTITION", "partition column %s has no value", def->columns[def->partition_by[k]].name);
    MINK_TRY(partition_name(def, values, def->partition_by_count, r->partition, e));
    r->admin.partition = r->partition;
    start_from_ddl(r, r->ddl.kind == DDL_ADD_PARTITION ? NODE_CREATE_PARTITION : NODE_DROP_PARTITION);
    return MINK_OK;
}

static enum mink_code run_alter_table(struct run *r, struct error *e) {
    const char *ddl = NULL;
    MINK_TRY(json_field_string(r->body, r->action->name, "ddl", false, &ddl, e));
    MINK_TRY(get_bool(r, "if_exists", &r->admin.if_exists, e));
    if (ddl) {
        MINK_TRY(get_ddl(r, ddl, DDL_ALTER_TABLE_OPTIONS, DDL_ADD_PARTITION, DDL_DROP_PARTITION, e));
        if (r->ddl.kind != DDL_ALTER_TABLE_OPTIONS) return start_partition_ddl(r, e);
        start_from_ddl(r, NODE_ALTER_TABLE_OPTIONS);
        return MINK_OK;
    }
    MINK_TRY(name_table(r, e));
    MINK_TRY(read_options(r, e));
    start_admin(r, NODE_ALTER_TABLE_OPTIONS, answer_empty_then_end);
    return MINK_OK;
}

static enum mink_code run_drop_table(struct run *r, struct error *e) {
    const char *ddl = NULL;
    MINK_TRY(json_field_string(r->body, r->action->name, "ddl", false, &ddl, e));
    MINK_TRY(get_bool(r, "if_exists", &r->admin.if_exists, e));
    if (ddl) {
        MINK_TRY(get_ddl(r, ddl, DDL_DROP_TABLE, DDL_DROP_TABLE, DDL_DROP_TABLE, e));
        start_from_ddl(r, NODE_DROP_TABLE);
        return MINK_OK;
    }
    MINK_TRY(name_table(r, e));
    start_admin(r, NODE_DROP_TABLE, answer_empty_then_end);
    return MINK_OK;
}

static enum mink_code run_list_tables(struct run *r, struct error *e) {
    const char *database = NULL;
    MINK_TRY(json_field_string(r->body, r->action->name, "database", false, &database, e));
    struct catalog_table *tables;
    uint32_t count;
    node_list_tables(r->server->node, database, &tables, &count);
    for (uint32_t i = 0; i < count; i++) {
        struct buffer b;
        struct json_writer w;
        answer_begin(&b, &w);
        char name[512];
        snprintf(name, sizeof name, "%s.%s", tables[i].def->database, tables[i].def->name);
        json_put_key(&w, "table");
        json_put_string(&w, name);
        json_put_key(&w, "table_id");
        json_put_uint(&w, tables[i].table_id);
        json_put_key(&w, "kind");
        json_put_string(&w, table_def_is_log(tables[i].def) ? "log" : "primary-key");
        answer_end(r, &b, &w);
    }
    catalog_free_tables(tables, count);
    finish_run(r);
    return MINK_OK;
}

static enum mink_code run_get_table(struct run *r, struct error *e) {
    MINK_TRY(find_table(r, e));
    struct buffer definition, ddl, b;
    struct json_writer w;
    buffer_init(&definition, 8u << 20);
    json_begin(&w, &definition);
    table_def_to_json(node_table_def(r->table), &w);
    buffer_init(&ddl, 4u << 20);
    table_def_to_ddl(node_table_def(r->table), &ddl);
    answer_begin(&b, &w);
    json_put_key(&w, "table_id");
    json_put_uint(&w, node_table_id(r->table));
    json_put_key(&w, "definition");
    json_put_raw(&w, buffer_string(&definition), definition.size);
    json_put_key(&w, "ddl");
    json_put_text(&w, (const char *)ddl.data, ddl.size);
    answer_end(r, &b, &w);
    buffer_deinit(&definition);
    buffer_deinit(&ddl);
    finish_run(r);
    return MINK_OK;
}

// ---- partitions

static enum mink_code start_partition(struct run *r, enum node_admin_op op, struct error *e) {
    MINK_TRY(find_table(r, e));
    MINK_TRY(get_partition(r, true, &r->admin.partition, e));
    MINK_TRY(get_bool(r, "if_exists", &r->admin.if_exists, e));
    MINK_TRY(get_bool(r, "if_not_exists", &r->admin.if_not_exists, e));
    r->admin.database = r->ref.database;
    r->admin.table = r->ref.name;
    start_admin(r, op, answer_empty_then_end);
    return MINK_OK;
}

static enum mink_code run_create_partition(struct run *r, struct error *e) { return start_partition(r, NODE_CREATE_PARTITION, e); }
static enum mink_code run_drop_partition(struct run *r, struct error *e) { return start_partition(r, NODE_DROP_PARTITION, e); }

static enum mink_code run_list_partitions(struct run *r, struct error *e) {
    MINK_TRY(find_table(r, e));
    struct catalog_partition *partitions;
    uint32_t count;
    node_list_partitions(r->server->node, r->table, &partitions, &count);
    for (uint32_t i = 0; i < count; i++) {
        struct buffer b;
        struct json_writer w;
        answer_begin(&b, &w);
        json_put_key(&w, "partition");
        json_put_string(&w, partitions[i].name);
        json_put_key(&w, "partition_id");
        json_put_uint(&w, partitions[i].partition_id);
        json_put_key(&w, "buckets");
        json_put_uint(&w, partitions[i].bucket_count);
        answer_end(r, &b, &w);
    }
    catalog_free_partitions(partitions, count);
    finish_run(r);
    return MINK_OK;
}

// ---- offsets, writers, the node

static void on_offsets(struct node_offsets *o) {
    struct run *r = o->private_state;
    if (o->code != MINK_OK) {
        r->request->error = o->error;
    } else {
        struct buffer b;
        struct json_writer w;
        answer_begin(&b, &w);
        if (o->partition) {
            json_put_key(&w, "partition");
            json_put_string(&w, o->partition);
        }
        json_put_key(&w, "bucket");
        json_put_int(&w, o->bucket);
        json_put_key(&w, "offset");
        json_put_uint(&w, o->offset);
        answer_end(r, &b, &w);
    }
    if (!flight_request_returned(r->request)) return;
    // Without "bucket" one result a bucket, in order.
    bool all = json_get(r->body, "bucket") == NULL;
    if (o->code == MINK_OK && all && (uint32_t)o->bucket + 1 < node_table_def(r->table)->bucket_num) {
        o->bucket++;
        flight_request_sent(r->request);
        node_offsets(r->server->node, o);
    } else {
        finish_run(r);
    }
}

static enum mink_code run_list_offsets(struct run *r, struct error *e) {
    MINK_TRY(find_table(r, e));
    const struct table_def *def = node_table_def(r->table);
    const char *partition, *at = "latest";
    MINK_TRY(get_partition(r, def->partition_by_count > 0, &partition, e));
    int64_t bucket = 0;
    MINK_TRY(json_field_int(r->body, r->action->name, "bucket", false, 0, (int64_t)def->bucket_num - 1, &bucket, e));
    MINK_TRY(json_field_string(r->body, r->action->name, "at", false, &at, e));
    struct node_offsets *o = &r->offsets;
    *o = (struct node_offsets){.shard = rpc_call_shard(r->request->call),
                               .on_done = on_offsets,
                               .table = r->table,
                               .partition = partition,
                               .bucket = (int32_t)bucket,
                               .private_state = r};
    int64_t ms = 0;
    char rest;
    if (strcmp(at, "earliest") == 0) o->at = NODE_FROM_EARLIEST;
    else if (strcmp(at, "latest") == 0) o->at = NODE_FROM_LATEST;
    else if (sscanf(at, "ts:%" SCNd64 "%c", &ms, &rest) == 1) o->at = NODE_FROM_TIME;
    else {
        error_set(e, MINK_INVALID, "BAD_VALUE", "list-offsets: at is \"%.64s\"", at);
        error_about(e, "at", "earliest, latest or ts:<ms>", at);
        error_hint(e, "at is \"earliest\", \"latest\" or \"ts:<milliseconds since 1970>\"");
        return MINK_INVALID;
    }
    o->at_value = ms;
    flight_request_sent(r->request);
    node_offsets(r->server->node, o);
    return MINK_OK;
}

static void on_writer(struct run *r) {
    if (r->request->error.code == MINK_OK) {
        struct buffer b;
        struct json_writer w;
        answer_begin(&b, &w);
        json_put_key(&w, "writer");
        json_put_uint(&w, r->admin.id);
        answer_end(r, &b, &w);
    }
    end_admin(r);
}

static enum mink_code run_init_writer(struct run *r, struct error *e) {
    start_admin(r, NODE_INIT_WRITER, on_writer);
    return MINK_OK;
}

static enum mink_code run_flush(struct run *r, struct error *e) {
    start_admin(r, NODE_FLUSH, answer_empty_then_end);
    return MINK_OK;
}

static enum mink_code run_cluster(struct run *r, struct error *e) {
    struct buffer b;
    struct json_writer w;
    buffer_init(&b, 16u << 20);
    json_begin(&w, &b);
    node_describe_cluster(r->server->node, &w);
    put_text(r, &b);
    finish_run(r);
    return MINK_OK;
}

static enum mink_code run_stats(struct run *r, struct error *e) {
    MINK_TRY(find_table(r, e));
    struct buffer b;
    struct json_writer w;
    buffer_init(&b, 16u << 20);
    json_begin(&w, &b);
    node_describe_table(r->server->node, r->table, &w);
    put_text(r, &b);
    finish_run(r);
    return MINK_OK;
}

static enum mink_code run_lookup(struct run *r, struct error *e) {
    return error_set(e, MINK_UNSUPPORTED, "NO_LOOKUP", "lookups need a table with a primary key");
}

static enum mink_code run_move_bucket(struct run *r, struct error *e) {
    return error_set(e, MINK_UNSUPPORTED, "ONE_NODE", "there is no other node to move a bucket to");
}

// ---- Flight's own

static enum mink_code run_cancel(struct run *r, struct error *e) { return MINK_OK; }
static enum mink_code run_renew(struct run *r, struct error *e) { return MINK_OK; }
static enum mink_code run_session(struct run *r, struct error *e) {
    return error_set(e, MINK_UNSUPPORTED, "NO_SESSIONS", "%s: the native port keeps no sessions", r->action->name);
}

#define COMMON "int64"
#define MUTATING "request_id", "int64"
static const char *const keys_create_database[] = {"database", "comment", "if_not_exists", MUTATING, NULL};
static const char *const keys_drop_database[] = {"database", "if_exists", "cascade", MUTATING, NULL};
static const char *const keys_none[] = {COMMON, NULL};
static const char *const keys_mutating[] = {MUTATING, NULL};
static const char *const keys_create_table[] = {"ddl",     "table",        "columns", "primary_key",   "partition_by", "bucket_key", "options",
                                                "comment", "arrow_schema", "v",       "if_not_exists", MUTATING,       NULL};
static const char *const keys_alter_table[] = {"ddl", "table", "set", "reset", "if_exists", MUTATING, NULL};
static const char *const keys_drop_table[] = {"ddl", "table", "if_exists", MUTATING, NULL};
static const char *const keys_list_tables[] = {"database", COMMON, NULL};
static const char *const keys_table[] = {"table", COMMON, NULL};
static const char *const keys_create_partition[] = {"table", "partition", "if_not_exists", MUTATING, NULL};
static const char *const keys_drop_partition[] = {"table", "partition", "if_exists", MUTATING, NULL};
static const char *const keys_list_offsets[] = {"table", "partition", "bucket", "at", COMMON, NULL};
static const char *const keys_lookup[] = {"table", "keys", COMMON, NULL};
static const char *const keys_move[] = {"table", "partition", "bucket", "node", MUTATING, NULL};

static const struct action actions[] = {
    {"create-database", "{\"database\"}: makes a database", keys_create_database, true, run_create_database},
    {"drop-database", "{\"database\",\"cascade\"}: drops an empty database, or with its tables", keys_drop_database, true, run_drop_database},
    {"list-databases", "{}: one result per database", keys_none, false, run_list_databases},
    {"create-table", "{\"ddl\"} or {\"table\",\"columns\",…} or {\"table\",\"arrow_schema\"}: makes a table, and its database", keys_create_table, true,
     run_create_table},
    {"alter-table", "{\"ddl\"} or {\"table\",\"set\",\"reset\"}: changes options", keys_alter_table, true, run_alter_table},
    {"drop-table", "{\"table\"} or {\"ddl\"}: drops a table with its rows", keys_drop_table, true, run_drop_table},
    {"list-tables", "{\"database\"}: one result per table", keys_list_tables, false, run_list_tables},
    {"get-table", "{\"table\"}: its definition, as JSON and as DDL", keys_table, false, run_get_table},
    {"create-partition", "{\"table\",\"partition\"}: makes a partition", keys_create_partition, true, run_create_partition},
    {"drop-partition", "{\"table\",\"partition\"}: drops a partition with its rows", keys_drop_partition, true, run_drop_partition},
    {"list-partitions", "{\"table\"}: one result per partition", keys_table, false, run_list_partitions},
    {"list-offsets", "{\"table\",\"bucket\",\"at\"}: offset at earliest, latest or ts:<ms>", keys_list_offsets, false, run_list_offsets},
    {"lookup", "{\"table\",\"keys\"}: rows by primary key", keys_lookup, false, run_lookup},
    {"init-writer", "{}: a writer id for idempotent puts", keys_mutating, true, run_init_writer},
    {"cluster", "{}: nodes and what they host", keys_none, false, run_cluster},
    {"stats", "{\"table\"}: rows, bytes and offsets per bucket", keys_table, false, run_stats},
    {"move-bucket", "{\"table\",\"bucket\",\"node\"}: moves a bucket to another node", keys_move, true, run_move_bucket},
    {"flush", "{}: commits what is in the write-ahead log into stream objects", keys_mutating, true, run_flush},
    {"CancelFlightInfo", "Flight's own: gives back what GetFlightInfo pinned", NULL, true, run_cancel},
    {"RenewFlightEndpoint", "Flight's own: an endpoint with a new expiration time", NULL, true, run_renew},
    {"SetSessionOptions", "Flight's own: sessions come with Flight SQL", NULL, true, run_session},
    {"GetSessionOptions", "Flight's own: sessions come with Flight SQL", NULL, false, run_session},
    {"CloseSession", "Flight's own: sessions come with Flight SQL", NULL, true, run_session},
};
#define ACTION_COUNT (sizeof actions / sizeof *actions)

static const struct action *find_action(const char *name, struct error *e) {
    struct nearest n;
    nearest_init(&n, name);
    for (size_t i = 0; i < ACTION_COUNT; i++) {
        if (strcmp(actions[i].name, name) == 0) return &actions[i];
        nearest_offer(&n, actions[i].name);
    }
    error_set(e, MINK_UNSUPPORTED, "UNKNOWN_ACTION", "there is no action %.64s", name);
    if (nearest_found(&n)) error_hint(e, "did you mean %s?", nearest_found(&n));
    else error_hint(e, "ListActions tells them");
    return NULL;
}

// A message inside a Result.
static void answer_message(struct flight_request *request, struct slice take_message) {
    flight_request_answer(request, flight_bytes_encode(take_message.data, take_message.size));
    slice_unref(&take_message);
}

// The protobuf ones.
static void run_flights_own(struct run *r, struct slice body) {
    struct error *e = &r->request->error;
    struct flight_request *request = r->request;
    if (r->action->run == run_cancel) {
        // Nothing is pinned for a log table, so there is nothing that could refuse to go.
        if (flight_cancel_request_check(body, e) == MINK_OK) answer_message(request, flight_cancel_result_encode(FLIGHT_CANCELLED));
    } else if (r->action->run == run_renew) {
        struct slice text;
        struct ticket t;
        if (flight_renew_request_decode(body, &text, e) == MINK_OK && ticket_parse(text.data, text.size, &t, e) == MINK_OK) {
            t.expires_ms = shard_wall_ms(rpc_call_shard(request->call)) + TICKET_LIFE_MS;
            struct buffer b;
            buffer_init(&b, TICKET_JSON_MAX);
            ticket_write(&t, &b);
            struct flight_endpoint endpoint = {.ticket = slice_borrow(b.data, b.size), .expires_ms = t.expires_ms};
            answer_message(request, flight_endpoint_encode(&endpoint));
            buffer_deinit(&b);
            ticket_deinit(&t);
        }
        slice_unref(&text);
    } else {
        (void)!r->action->run(r, e); // sets the error
    }
    flight_request_done(request);
}

static enum mink_code read_common(struct run *r, struct slice body, struct error *e) {
    MINK_TRY(json_parse(body.data, body.size, &r->body, e));
    if (json_type(r->body) != JSON_OBJECT) return error_set(e, MINK_INVALID, "BAD_JSON", "the body of %s must be a JSON object", r->action->name);
    MINK_TRY(json_check_keys(r->body, r->action->name, r->action->keys, e));
    const char *int64 = NULL;
    MINK_TRY(json_field_string(r->body, r->action->name, "int64", false, &int64, e));
    if (int64 && strcmp(int64, "string") != 0 && strcmp(int64, "number") != 0)
        return error_set(e, MINK_INVALID, "BAD_VALUE", "int64 is \"%.40s\": known are number, string", int64);
    r->int64_text = int64 && strcmp(int64, "string") == 0;
    MINK_TRY(json_field_string(r->body, r->action->name, "request_id", false, &r->request_id, e));
    if (r->request_id && (r->request_id[0] == 0 || strlen(r->request_id) > REQUEST_ID_SIZE_MAX))
        return error_set(e, MINK_INVALID, "BAD_VALUE", "request_id must have 1 to %d bytes", REQUEST_ID_SIZE_MAX);
    return MINK_OK;
}

static void handle_action(struct flight_request *request, struct slice body) {
    struct run *r = mem_new(struct run);
    r->request = request;
    r->server = request->server;
    request->state = r;
    request->free_state = run_free;
    struct flight_action a;
    struct error *e = &request->error;
    if (flight_action_decode(body, &a, e) != MINK_OK) {
        flight_request_done(request);
        return;
    }
    r->action = find_action(a.type, e);
    if (r->action && r->action->keys == NULL) {
        run_flights_own(r, a.body);
    } else if (r->action == NULL || read_common(r, a.body, e) != MINK_OK) {
        r->request_id = NULL;
        flight_request_done(request);
    } else if (r->request_id && !reserve(r, shard_wall_ms(rpc_call_shard(request->call)))) {
        r->request_id = NULL;
        if (e->code == MINK_OK) send_texts(r);
        flight_request_done(request);
    } else if (r->action->run(r, e) != MINK_OK) {
        finish_run(r);
    }
    flight_action_deinit(&a);
}

void flight_do_action(void *server, struct rpc_call *c) { flight_request_start(server, c, handle_action); }

static void handle_list(struct flight_request *r, struct slice body) {
    for (size_t i = 0; i < ACTION_COUNT; i++) flight_request_answer(r, flight_action_type_encode(actions[i].name, actions[i].description));
    flight_request_done(r);
}

void flight_list_actions(void *server, struct rpc_call *c) { flight_request_start(server, c, handle_list); }
