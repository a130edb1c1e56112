// SPDX-License-Identifier: Apache-2.0
// Definitions as JSON, from Arrow schemas, and as DDL.
#include "base/mem.h"
#include "table/ddl.h"
#include "table/table_internal.h"

#include <string.h>

// ---- from JSON

static enum mink_code read_names(const struct json *o, const char *key, struct draft_names *out, struct error *e) {
    const struct json *list = json_get(o, key);
    if (list == NULL || json_type(list) == JSON_NULL) return MINK_OK;
    if (json_type(list) != JSON_ARRAY) return error_set(e, MINK_INVALID, "BAD_VALUE", "table definition: \"%s\" has to be an array of column names", key);
    if (json_count(list) > TABLE_KEY_COLUMNS_MAX) return error_set(e, MINK_INVALID, "TOO_MANY_COLUMNS", "table definition: \"%s\" has more than %d columns", key, TABLE_KEY_COLUMNS_MAX);
    for (size_t i = 0; i < json_count(list); i++) {
        const char *name = json_text(json_at(list, i));
        if (name == NULL) return error_set(e, MINK_INVALID, "BAD_VALUE", "table definition: \"%s\" has to be an array of column names", key);
        draft_names_add(out, mem_strdup(name), 0);
    }
    return MINK_OK;
}

static enum mink_code read_options(const struct json *o, struct table_draft *d, struct error *e) {
    const struct json *options = json_get(o, "options");
    if (options == NULL || json_type(options) == JSON_NULL) return MINK_OK;
    if (json_type(options) != JSON_OBJECT) return error_set(e, MINK_INVALID, "BAD_VALUE", "table definition: \"options\" has to be an object");
    if (json_count(options) > TABLE_OPTIONS_MAX) return error_set(e, MINK_INVALID, "TOO_LARGE", "%zu options: at most %d are taken", json_count(options), TABLE_OPTIONS_MAX);
    for (size_t i = 0; i < json_count(options); i++) {
        const struct json *value;
        const char *key = json_key_at(options, i, &value);
        char *text;
        switch (json_type(value)) { // numbers and booleans are as good as their texts
        case JSON_STRING: text = mem_strdup(json_text(value)); break;
        case JSON_INT: text = mem_printf("%lld", (long long)json_int(value)); break;
        case JSON_BOOL: text = mem_strdup(json_bool(value) ? "true" : "false"); break;
        default: return error_set(e, MINK_INVALID, "BAD_VALUE", "option %.100s: the value has to be a string, a number or a boolean", key);
        }
        table_draft_add_option(d, mem_strdup(key), text, 0, 0);
    }
    return MINK_OK;
}

static enum mink_code read_ids(struct type *t, const struct json *ids, size_t *at, struct error *e) {
    for (uint32_t i = 0; i < t->field_count; i++) {
        const struct json *id = json_at(ids, (*at)++);
        if (json_type(id) != JSON_INT || json_int(id) < 1 || json_int(id) > TABLE_COLUMN_ID_MAX) return error_set(e, MINK_INVALID, "BAD_COLUMN_ID", "\"field_ids\" has to hold the ids of all nested fields");
        t->fields[i].id = (uint32_t)json_int(id);
        MINK_TRY(read_ids(&t->fields[i].type, ids, at, e));
    }
    return MINK_OK;
}

static void count_fields(const struct type *t, size_t *count) {
    *count += t->field_count;
    for (uint32_t i = 0; i < t->field_count; i++) count_fields(&t->fields[i].type, count);
}

static enum mink_code read_column(const struct json *o, struct table_draft *d, struct error *e) {
    static const char *const keys[] = {"name", "type", "id", "nullable", "comment", "field_ids", NULL};
    const char *name = NULL, *type = NULL, *comment = NULL;
    int64_t id = 0;
    bool nullable = true;
    MINK_TRY(json_check_keys(o, "column", keys, e));
    MINK_TRY(json_field_string(o, "column", "name", true, &name, e));
    MINK_TRY(json_field_string(o, "column", "type", true, &type, e));
    MINK_TRY(json_field_string(o, "column", "comment", false, &comment, e));
    MINK_TRY(json_field_int(o, "column", "id", false, 1, TABLE_COLUMN_ID_MAX, &id, e));
    MINK_TRY(json_field_bool(o, "column", "nullable", false, &nullable, e));
    struct column *c = table_draft_add_column(d, 0);
    c->name = mem_strdup(name);
    c->id = (uint32_t)id;
    c->comment = comment && comment[0] ? mem_strdup(comment) : NULL;
    if (ddl_parse_type(type, strlen(type), &c->type, e) != MINK_OK) {
        error_context(e, "column %.60s", name);
        return MINK_INVALID;
    }
    if (!c->type.nullable && nullable && json_get(o, "nullable")) return error_set(e, MINK_INVALID, "BAD_VALUE", "column %.60s: the type says NOT NULL, \"nullable\" says true", name);
    if (!nullable) c->type.nullable = false;
    const struct json *ids = json_get(o, "field_ids");
    if (ids == NULL || json_type(ids) == JSON_NULL) return MINK_OK;
    size_t at = 0, count = 0;
    count_fields(&c->type, &count);
    if (json_type(ids) != JSON_ARRAY || json_count(ids) != count) return error_set(e, MINK_INVALID, "BAD_COLUMN_ID", "column %.60s: \"field_ids\" has to hold the ids of all %zu nested fields", name, count);
    return read_ids(&c->type, ids, &at, e);
}

static enum mink_code read_keys_and_options(const struct json *j, struct table_draft *d, struct error *e) {
    const char *comment = NULL;
    MINK_TRY(json_field_string(j, "table definition", "comment", false, &comment, e));
    if (comment && comment[0]) d->comment = mem_strdup(comment);
    MINK_TRY(read_names(j, "primary_key", &d->primary_key, e));
    MINK_TRY(read_names(j, "partition_by", &d->partition_by, e));
    MINK_TRY(read_names(j, "bucket_key", &d->bucket_key, e));
    return read_options(j, d, e);
}

static enum mink_code read_definition(const struct json *j, struct table_draft *d, struct error *e) {
    static const char *const keys[] = {"v", "table", "columns", "primary_key", "partition_by", "bucket_key", "options", "comment", "schema_id", "next_column_id",
                                       "if_not_exists", "request_id", "int64", NULL};
    const char *table = NULL;
    char database[201], name[256], suffix[256];
    int64_t version = 1, schema_id = 0, next_column_id = 0;
    // A newer form is refused by its number, before keys that only it knows.
    MINK_TRY(json_field_int(j, "table definition", "v", false, 1, INT64_MAX, &version, e));
    if (version != 1) return error_set(e, MINK_UNSUPPORTED, "NEWER_FORMAT", "table definition of version %lld: this program knows 1", (long long)version);
    MINK_TRY(json_check_keys(j, "table definition", keys, e));
    MINK_TRY(json_field_string(j, "table definition", "table", true, &table, e));
    MINK_TRY(json_field_int(j, "table definition", "schema_id", false, 1, INT32_MAX, &schema_id, e));
    MINK_TRY(json_field_int(j, "table definition", "next_column_id", false, 1, TABLE_COLUMN_ID_MAX, &next_column_id, e));
    MINK_TRY(table_name_split(table, database, name, suffix, e));
    if (suffix[0]) return error_set(e, MINK_INVALID, "BAD_NAME", "%.60s is a view, not a table", table);
    d->database = mem_strdup(database);
    d->name = mem_strdup(name);
    d->schema_id = (uint32_t)schema_id;
    d->next_column_id = (uint32_t)next_column_id;
    const struct json *columns = json_get(j, "columns");
    if (columns == NULL || json_type(columns) != JSON_ARRAY) {
        error_set(e, MINK_INVALID, "BAD_VALUE", "table definition: \"columns\" has to be an array");
        error_hint(e, "[{\"name\":\"id\",\"type\":\"BIGINT\"}, …]");
        return MINK_INVALID;
    }
    if (json_count(columns) > TABLE_COLUMNS_MAX) return error_set(e, MINK_INVALID, "TOO_MANY_COLUMNS", "%zu columns: at most %d are taken", json_count(columns), TABLE_COLUMNS_MAX);
    for (size_t i = 0; i < json_count(columns); i++) MINK_TRY(read_column(json_at(columns, i), d, e));
    return read_keys_and_options(j, d, e);
}

enum mink_code table_def_from_json(const struct json *j, const struct table_defaults *defaults, struct table_def **out, struct error *e) {
    struct table_draft draft = {0};
    *out = NULL;
    enum mink_code code = read_definition(j, &draft, e);
    if (code == MINK_OK) code = table_draft_finish(&draft, defaults, out, e);
    table_draft_deinit(&draft);
    return code;
}

// ---- from Arrow

enum mink_code table_def_from_arrow(const char *database, const char *name, const struct arrow_schema *s, const struct json *keys_and_options, const struct table_defaults *defaults, struct table_def **out, struct error *e) {
    struct table_draft draft = {.database = mem_strdup(database), .name = mem_strdup(name)};
    *out = NULL;
    enum mink_code code = MINK_OK;
    if (arrow_schema_count(s) > TABLE_COLUMNS_MAX) code = error_set(e, MINK_INVALID, "TOO_MANY_COLUMNS", "%u columns: at most %d are taken", arrow_schema_count(s), TABLE_COLUMNS_MAX);
    for (uint32_t i = 0; i < arrow_schema_count(s) && code == MINK_OK; i++) {
        struct column *c = table_draft_add_column(&draft, 0);
        c->name = mem_strdup(arrow_schema_at(s, i)->name);
        code = type_from_arrow(arrow_schema_at(s, i), true, &c->type, e);
    }
    if (code == MINK_OK && keys_and_options) code = read_keys_and_options(keys_and_options, &draft, e);
    if (code == MINK_OK) code = table_draft_finish(&draft, defaults, out, e);
    table_draft_deinit(&draft);
    return code;
}

// ---- to JSON

static void put_names(struct json_writer *w, const char *key, const struct table_def *d, const uint32_t *columns, uint32_t count) {
    json_put_key(w, key);
    json_array_begin(w);
    for (uint32_t i = 0; i < count; i++) json_put_string(w, d->columns[columns[i]].name);
    json_array_end(w);
}

static void put_ids(struct json_writer *w, const struct type *t) {
    for (uint32_t i = 0; i < t->field_count; i++) {
        json_put_uint(w, t->fields[i].id);
        put_ids(w, &t->fields[i].type);
    }
}

static void put_column(struct json_writer *w, const struct column *c) {
    struct buffer text;
    struct type without_null = c->type; // only looked at
    without_null.nullable = true;
    buffer_init(&text, 16u << 20);
    type_print(&without_null, &text);
    json_object_begin(w);
    json_put_key(w, "name");
    json_put_string(w, c->name);
    json_put_key(w, "type");
    json_put_text(w, (const char *)text.data, text.size);
    json_put_key(w, "id");
    json_put_uint(w, c->id);
    json_put_key(w, "nullable");
    json_put_bool(w, c->type.nullable);
    if (c->comment) {
        json_put_key(w, "comment");
        json_put_string(w, c->comment);
    }
    if (c->type.field_count) {
        json_put_key(w, "field_ids");
        json_array_begin(w);
        put_ids(w, &c->type);
        json_array_end(w);
    }
    json_object_end(w);
    buffer_deinit(&text);
}

void table_def_to_json(const struct table_def *d, struct json_writer *w) {
    char *qualified = mem_printf("%s.%s", d->database, d->name);
    json_object_begin(w);
    json_put_key(w, "v");
    json_put_int(w, 1);
    json_put_key(w, "table");
    json_put_string(w, qualified);
    mem_free(qualified);
    json_put_key(w, "schema_id");
    json_put_uint(w, d->schema_id);
    json_put_key(w, "next_column_id");
    json_put_uint(w, d->next_column_id);
    if (d->comment) {
        json_put_key(w, "comment");
        json_put_string(w, d->comment);
    }
    json_put_key(w, "columns");
    json_array_begin(w);
    for (uint32_t i = 0; i < d->column_count; i++) put_column(w, &d->columns[i]);
    json_array_end(w);
    put_names(w, "primary_key", d, d->primary_key, d->primary_key_count);
    put_names(w, "partition_by", d, d->partition_by, d->partition_by_count);
    put_names(w, "bucket_key", d, d->bucket_key, d->bucket_key_count);
    json_put_key(w, "options");
    json_object_begin(w);
    for (uint32_t i = 0; i < d->option_count; i++) {
        json_put_key(w, d->options[i].key);
        json_put_string(w, d->options[i].value);
    }
    json_object_end(w);
    json_object_end(w);
}

// ---- to DDL

static void put_name_list(struct buffer *out, const struct table_def *d, const uint32_t *columns, uint32_t count) {
    buffer_put_u8(out, '(');
    for (uint32_t i = 0; i < count; i++) {
        if (i) buffer_put_string(out, ", ");
        ddl_put_name(out, d->columns[columns[i]].name);
    }
    buffer_put_u8(out, ')');
}

void table_def_to_ddl(const struct table_def *d, struct buffer *out) {
    buffer_put_string(out, "CREATE TABLE ");
    ddl_put_name(out, d->database);
    buffer_put_u8(out, '.');
    ddl_put_name(out, d->name);
    buffer_put_string(out, " (\n");
    for (uint32_t i = 0; i < d->column_count; i++) {
        const struct column *c = &d->columns[i];
        buffer_put_string(out, "    ");
        ddl_put_name(out, c->name);
        buffer_put_u8(out, ' ');
        type_print(&c->type, out);
        if (c->comment) {
            buffer_put_string(out, " COMMENT ");
            ddl_put_text(out, c->comment);
        }
        if (i + 1 < d->column_count || d->primary_key_count) buffer_put_u8(out, ',');
        buffer_put_u8(out, '\n');
    }
    if (d->primary_key_count) {
        buffer_put_string(out, "    PRIMARY KEY ");
        put_name_list(out, d, d->primary_key, d->primary_key_count);
        buffer_put_string(out, " NOT ENFORCED\n");
    }
    buffer_put_u8(out, ')');
    if (d->comment) {
        buffer_put_string(out, " COMMENT ");
        ddl_put_text(out, d->comment);
    }
    if (d->partition_by_count) {
        buffer_put_string(out, " PARTITIONED BY ");
        put_name_list(out, d, d->partition_by, d->partition_by_count);
    }
    for (uint32_t i = 0; i < d->option_count; i++) {
        buffer_put_string(out, i ? ",\n    " : " WITH (\n    ");
        ddl_put_text(out, d->options[i].key);
        buffer_put_string(out, " = ");
        ddl_put_text(out, d->options[i].value);
    }
    if (d->option_count) buffer_put_string(out, "\n)");
}
