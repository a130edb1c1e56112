// SPDX-License-Identifier: Apache-2.0
// From a draft to a definition: every rule of the table model is checked here, whichever form the draft came in.
#include "table/table_def.h"

#include "base/mem.h"
#include "base/nearest.h"
#include "table/table_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// ---- life

struct table_def *table_def_ref(struct table_def *d) {
    atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
    return d;
}

static void columns_free(struct column *columns, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        mem_free(columns[i].name);
        mem_free(columns[i].comment);
        type_deinit(&columns[i].type);
    }
    mem_free(columns);
}

void table_def_unref(struct table_def *d) {
    if (d == NULL || atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) != 1) return;
    columns_free(d->columns, d->column_count);
    for (uint32_t i = 0; i < d->option_count; i++) {
        mem_free(d->options[i].key);
        mem_free(d->options[i].value);
    }
    mem_free(d->options);
    mem_free(d->database);
    mem_free(d->name);
    mem_free(d->comment);
    mem_free(d->primary_key);
    mem_free(d->partition_by);
    mem_free(d->bucket_key);
    mem_free(d->statistics_columns);
    arrow_schema_unref(d->arrow);
    mem_free(d);
}

static void draft_names_deinit(struct draft_names *n) {
    for (uint32_t i = 0; i < n->count; i++) mem_free(n->items[i].text);
    mem_free(n->items);
    *n = (struct draft_names){0};
}

void table_draft_deinit(struct table_draft *d) {
    columns_free(d->columns, d->column_count);
    mem_free(d->columns_at);
    for (uint32_t i = 0; i < d->option_count; i++) {
        mem_free(d->options[i].option.key);
        mem_free(d->options[i].option.value);
    }
    mem_free(d->options);
    mem_free(d->database);
    mem_free(d->name);
    mem_free(d->comment);
    draft_names_deinit(&d->primary_key);
    draft_names_deinit(&d->partition_by);
    draft_names_deinit(&d->bucket_key);
    *d = (struct table_draft){0};
}

struct column *table_draft_add_column(struct table_draft *d, uint32_t at) {
    d->columns = mem_realloc(d->columns, (d->column_count + 1) * sizeof *d->columns);
    d->columns_at = mem_realloc(d->columns_at, (d->column_count + 1) * sizeof *d->columns_at);
    d->columns[d->column_count] = (struct column){0};
    d->columns_at[d->column_count] = at;
    return &d->columns[d->column_count++];
}

void table_draft_add_option(struct table_draft *d, char *take_key, char *take_value, uint32_t key_at, uint32_t value_at) {
    d->options = mem_realloc(d->options, (d->option_count + 1) * sizeof *d->options);
    d->options[d->option_count++] = (struct draft_option){{take_key, take_value}, key_at, value_at};
}

void draft_names_add(struct draft_names *n, char *take_text, uint32_t at) {
    n->items = mem_realloc(n->items, (n->count + 1) * sizeof *n->items);
    n->items[n->count++] = (struct draft_name){take_text, at};
}

bool table_def_is_log(const struct table_def *d) { return d->primary_key_count == 0; }

static int32_t find_column(const struct column *columns, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(columns[i].name, name) == 0) return (int32_t)i;
    return -1;
}

int32_t table_def_find(const struct table_def *d, const char *column) { return find_column(d->columns, d->column_count, column); }

// ---- names

static enum mink_code name_check(const char *name, const char *what, size_t size_max, bool dots, struct error *e) {
    size_t size = strlen(name);
    const char *wrong = NULL;
    char character[48];
    if (size == 0) wrong = "is empty";
    else if (size > size_max) wrong = "is too long";
    else if (strncmp(name, "__", 2) == 0) wrong = "begins with __, which is kept for the system";
    for (size_t i = 0; i < size && wrong == NULL; i++) {
        char c = name[i];
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || (dots && c == '.')) continue;
        if (c > ' ' && c < 127) snprintf(character, sizeof character, "may not hold %c", c);
        else snprintf(character, sizeof character, "may not hold %s", c == ' ' ? "spaces" : "such characters");
        wrong = character;
    }
    if (wrong == NULL) return MINK_OK;
    error_set(e, MINK_INVALID, "BAD_NAME", "%s name \"%.60s\" %s", what, name, wrong);
    error_hint(e, "names are 1 to %zu ASCII letters, digits, _ and -%s", size_max, dots ? ", and dots" : "");
    return MINK_INVALID;
}

enum mink_code table_name_check(const char *name, const char *what, struct error *e) { return name_check(name, what, 200, false, e); }

// Names of topics go further than ours.
enum mink_code table_names_check(const char *database, const char *table, struct error *e) {
    MINK_TRY(name_check(database, "database", 200, false, e));
    bool topics = strcmp(database, "kafka") == 0;
    return name_check(table, "table", topics ? 249 : 200, topics, e);
}

enum mink_code table_name_split(const char *qualified, char *database, char *name, char *suffix, struct error *e) {
    const char *dot = strchr(qualified, '.');
    if (dot == NULL) {
        error_set(e, MINK_INVALID, "BAD_NAME", "table name \"%.60s\" has no database", qualified);
        error_hint(e, "write database.table");
        return MINK_INVALID;
    }
    const char *dollar = strchr(dot + 1, '$');
    size_t name_size = dollar ? (size_t)(dollar - dot - 1) : strlen(dot + 1), database_size = (size_t)(dot - qualified), suffix_size = dollar ? strlen(dollar + 1) : 0;
    if (database_size > 200) return error_set(e, MINK_INVALID, "BAD_NAME", "database name of %zu bytes is too long", database_size);
    if (name_size > 249) return error_set(e, MINK_INVALID, "BAD_NAME", "table name of %zu bytes is too long", name_size);
    if (suffix_size > 200 || (dollar && suffix_size == 0)) return error_set(e, MINK_INVALID, "BAD_NAME", "table name \"%.60s\" ends wrongly after the $", qualified);
    memcpy(database, qualified, database_size);
    database[database_size] = 0;
    memcpy(name, dot + 1, name_size);
    name[name_size] = 0;
    memcpy(suffix, dollar ? dollar + 1 : "", suffix_size + 1);
    return table_names_check(database, name, e);
}

static enum mink_code column_name_check(const char *name, struct error *e) {
    size_t size = strlen(name);
    if (size == 0) return error_set(e, MINK_INVALID, "BAD_NAME", "a column without a name");
    if (size > TABLE_COLUMN_NAME_MAX) return error_set(e, MINK_INVALID, "BAD_NAME", "column name \"%.40s…\" is longer than %u bytes", name, TABLE_COLUMN_NAME_MAX);
    bool control = false;
    for (size_t i = 0; i < size; i++) control |= (uint8_t)name[i] < ' ' || name[i] == 127;
    if (control || !utf8_text_valid(name, size)) return error_set(e, MINK_INVALID, "BAD_NAME", "a column name holds control characters or is not UTF-8");
    return MINK_OK;
}

static enum mink_code no_column(const struct column *columns, uint32_t count, const char *name, const char *what, struct error *e) {
    struct nearest near;
    nearest_init(&near, name);
    for (uint32_t i = 0; i < count; i++) nearest_offer(&near, columns[i].name);
    const char *best = nearest_found(&near);
    error_set(e, MINK_INVALID, "COLUMN_NOT_FOUND", "%s: there is no column \"%.60s\"%s%.60s%s", what, name, best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
    error_about(e, name, best, NULL);
    return MINK_INVALID;
}

// ---- columns

struct name_index { const char *name; uint32_t index; };

static int compare_names(const void *a, const void *b) {
    const struct name_index *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

// Index of the first name that was there before, or UINT32_MAX.
static uint32_t repeated(struct name_index *names, uint32_t count) {
    uint32_t found = UINT32_MAX;
    qsort(names, count, sizeof *names, compare_names);
    for (uint32_t i = 1; i < count; i++)
        if (strcmp(names[i - 1].name, names[i].name) == 0 && names[i].index < found) found = names[i].index;
    return found;
}

static enum mink_code fields_check(const struct type *t, uint32_t *left, struct error *e) {
    if (t->field_count > *left) return error_set(e, MINK_INVALID, "TOO_MANY_COLUMNS", "more than %u fields in a table", TABLE_FIELDS_MAX);
    *left -= t->field_count;
    enum mink_code code = MINK_OK;
    if (t->kind == TYPE_ROW) {
        struct name_index *names = mem_new_array(struct name_index, t->field_count);
        for (uint32_t i = 0; i < t->field_count && code == MINK_OK; i++) {
            names[i] = (struct name_index){t->fields[i].name, i};
            code = column_name_check(t->fields[i].name, e);
        }
        uint32_t twice = code == MINK_OK ? repeated(names, t->field_count) : UINT32_MAX;
        if (twice != UINT32_MAX) code = error_set(e, MINK_INVALID, "DUPLICATE_COLUMN", "field \"%.60s\" is there twice", t->fields[twice].name);
        mem_free(names);
    }
    for (uint32_t i = 0; i < t->field_count && code == MINK_OK; i++) code = fields_check(&t->fields[i].type, left, e);
    return code;
}

static enum mink_code columns_check(struct table_draft *d, struct error *e) {
    d->at = d->name_at;
    if (d->column_count == 0) return error_set(e, MINK_INVALID, "NO_COLUMNS", "table %s.%s has no columns", d->database, d->name);
    if (d->column_count > TABLE_COLUMNS_MAX) return error_set(e, MINK_INVALID, "TOO_MANY_COLUMNS", "%u columns: at most %u are taken", d->column_count, TABLE_COLUMNS_MAX);
    uint32_t left = TABLE_FIELDS_MAX - d->column_count;
    for (uint32_t i = 0; i < d->column_count; i++) {
        const struct column *c = &d->columns[i];
        d->at = d->columns_at[i];
        MINK_TRY(column_name_check(c->name, e));
        if (type_depth(&c->type) > TYPE_DEPTH_MAX) return error_set(e, MINK_INVALID, "TYPE_NOT_SUPPORTED", "column %.60s: nested deeper than %d", c->name, TYPE_DEPTH_MAX);
        if (fields_check(&c->type, &left, e) != MINK_OK) {
            error_context(e, "column %.60s", c->name);
            return MINK_INVALID;
        }
        if (c->comment && strlen(c->comment) > TABLE_TEXT_MAX) return error_set(e, MINK_INVALID, "TOO_LARGE", "column %.60s: the comment is longer than %d bytes", c->name, TABLE_TEXT_MAX);
    }
    struct name_index *names = mem_new_array(struct name_index, d->column_count);
    for (uint32_t i = 0; i < d->column_count; i++) names[i] = (struct name_index){d->columns[i].name, i};
    uint32_t twice = repeated(names, d->column_count);
    mem_free(names);
    if (twice == UINT32_MAX) return MINK_OK;
    d->at = d->columns_at[twice];
    return error_set(e, MINK_INVALID, "DUPLICATE_COLUMN", "column \"%.60s\" is there twice", d->columns[twice].name);
}

// ---- ids

static void count_fields(const struct type *t, uint32_t *count) {
    *count += t->field_count;
    for (uint32_t i = 0; i < t->field_count; i++) count_fields(&t->fields[i].type, count);
}

static void collect_ids(struct type *t, uint32_t **out) {
    for (uint32_t i = 0; i < t->field_count; i++) {
        *(*out)++ = t->fields[i].id;
        collect_ids(&t->fields[i].type, out);
    }
}

static void assign_ids(struct type *t, uint32_t *next) {
    for (uint32_t i = 0; i < t->field_count; i++) {
        if (t->fields[i].id == 0) t->fields[i].id = (*next)++;
        assign_ids(&t->fields[i].type, next);
    }
}

static int compare_u32(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// Columns first, then what is nested in them: so a flat table has ids 1, 2, 3, …
static enum mink_code ids_assign(struct table_draft *d, struct error *e) {
    uint32_t count = d->column_count;
    for (uint32_t i = 0; i < d->column_count; i++) count_fields(&d->columns[i].type, &count);
    uint32_t *ids = mem_new_array(uint32_t, count), *p = ids, highest = 0;
    for (uint32_t i = 0; i < d->column_count; i++) {
        *p++ = d->columns[i].id;
        collect_ids(&d->columns[i].type, &p);
    }
    qsort(ids, count, sizeof *ids, compare_u32);
    enum mink_code code = MINK_OK;
    for (uint32_t i = 1; i < count && code == MINK_OK; i++)
        if (ids[i] && ids[i] == ids[i - 1]) code = error_set(e, MINK_INVALID, "BAD_COLUMN_ID", "column id %u is there twice", ids[i]);
    highest = ids[count - 1];
    mem_free(ids);
    if (code != MINK_OK) return code;
    if (highest > TABLE_COLUMN_ID_MAX - TABLE_FIELDS_MAX || d->next_column_id > TABLE_COLUMN_ID_MAX - TABLE_FIELDS_MAX)
        return error_set(e, MINK_INVALID, "BAD_COLUMN_ID", "column ids go up to %u", TABLE_COLUMN_ID_MAX - TABLE_FIELDS_MAX);
    if (d->next_column_id <= highest) d->next_column_id = highest + 1;
    for (uint32_t i = 0; i < d->column_count; i++)
        if (d->columns[i].id == 0) d->columns[i].id = d->next_column_id++;
    for (uint32_t i = 0; i < d->column_count; i++) assign_ids(&d->columns[i].type, &d->next_column_id);
    return MINK_OK;
}

// ---- keys

static bool contains(const uint32_t *list, uint32_t count, uint32_t v) {
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == v) return true;
    return false;
}

static enum mink_code resolve(struct table_draft *d, const struct draft_names *names, const char *what, uint32_t **out, uint32_t *out_count, struct error *e) {
    if (names->count == 0) return MINK_OK;
    d->at = names->items[0].at;
    if (names->count > TABLE_KEY_COLUMNS_MAX) return error_set(e, MINK_INVALID, "TOO_MANY_COLUMNS", "%s: at most %d columns", what, TABLE_KEY_COLUMNS_MAX);
    *out = mem_new_array(uint32_t, names->count);
    for (uint32_t i = 0; i < names->count; i++) {
        d->at = names->items[i].at;
        int32_t column = find_column(d->columns, d->column_count, names->items[i].text);
        if (column < 0) return no_column(d->columns, d->column_count, names->items[i].text, what, e);
        const struct column *c = &d->columns[column];
        if (contains(*out, i, (uint32_t)column)) return error_set(e, MINK_INVALID, "DUPLICATE_COLUMN", "%s: column \"%.60s\" is there twice", what, c->name);
        if (type_is_nested(&c->type)) return error_set(e, MINK_INVALID, "BAD_KEY", "%s: column \"%.60s\" is of type %s, which keys may not hold", what, c->name, type_name(c->type.kind));
        (*out)[i] = (uint32_t)column;
        (*out_count)++;
    }
    return MINK_OK;
}

static bool partition_type(enum type_kind k) {
    return k == TYPE_STRING || k == TYPE_CHAR || k == TYPE_BOOLEAN || k == TYPE_DATE || (k >= TYPE_TINYINT && k <= TYPE_BIGINT);
}

static enum mink_code keys_resolve(struct table_draft *d, struct table_def *def, struct error *e) {
    MINK_TRY(resolve(d, &d->primary_key, "PRIMARY KEY", &def->primary_key, &def->primary_key_count, e));
    for (uint32_t i = 0; i < def->primary_key_count; i++) d->columns[def->primary_key[i]].type.nullable = false;
    MINK_TRY(resolve(d, &d->partition_by, "PARTITIONED BY", &def->partition_by, &def->partition_by_count, e));
    for (uint32_t i = 0; i < def->partition_by_count; i++) {
        const struct column *c = &d->columns[def->partition_by[i]];
        d->at = d->partition_by.items[i].at;
        if (!partition_type(c->type.kind)) {
            error_set(e, MINK_INVALID, "BAD_KEY", "PARTITIONED BY: column \"%.60s\" is of type %s", c->name, type_name(c->type.kind));
            error_hint(e, "partition columns are STRING, CHAR, BOOLEAN, integers or DATE");
            return MINK_INVALID;
        }
        if (def->primary_key_count && !contains(def->primary_key, def->primary_key_count, def->partition_by[i]))
            return error_set(e, MINK_INVALID, "BAD_KEY", "PARTITIONED BY: column \"%.60s\" has to be in the primary key, too", c->name);
    }
    if (def->primary_key_count && def->primary_key_count == def->partition_by_count) {
        d->at = d->primary_key.items[0].at;
        return error_set(e, MINK_INVALID, "BAD_KEY", "PRIMARY KEY: needs a column besides the partition columns");
    }
    return MINK_OK;
}

// ---- options

static int compare_options(const void *a, const void *b) {
    return strcmp(((const struct draft_option *)a)->option.key, ((const struct draft_option *)b)->option.key);
}

// "a, b" as names.
static void split_list(const char *text, uint32_t at, struct draft_names *out) {
    for (const char *p = text; *p;) {
        size_t size = strcspn(p, ",");
        const char *begin = p, *end = p + size;
        while (begin < end && *begin == ' ') begin++;
        while (end > begin && end[-1] == ' ') end--;
        draft_names_add(out, mem_strndup(begin, (size_t)(end - begin)), at);
        p += size;
        if (*p == ',' && p[1] == 0) draft_names_add(out, mem_strdup(""), at);
        if (*p == ',') p++;
    }
}

static const struct draft_option *given(const struct table_draft *d, const char *key) {
    for (uint32_t i = 0; i < d->option_count; i++)
        if (strcmp(d->options[i].option.key, key) == 0) return &d->options[i];
    return NULL;
}

// The value of an option that was checked before, or `absent`.
static int64_t value_of(const struct table_draft *d, const char *key, int64_t absent) {
    const struct draft_option *o = given(d, key);
    int64_t v;
    if (o == NULL || table_option_value(table_option_find(key), key, o->option.value, &v, NULL) != MINK_OK) return absent;
    return v;
}

static enum mink_code options_check(struct table_draft *d, bool log_table, struct error *e) {
    if (d->option_count > TABLE_OPTIONS_MAX) return error_set(e, MINK_INVALID, "TOO_LARGE", "%u options: at most %d are taken", d->option_count, TABLE_OPTIONS_MAX);
    if (d->option_count) qsort(d->options, d->option_count, sizeof *d->options, compare_options);
    for (uint32_t i = 0; i < d->option_count; i++) {
        const struct table_option *o = &d->options[i].option;
        const struct table_option_info *info = table_option_find(o->key);
        d->at = d->options[i].key_at;
        if (info == NULL) return table_option_unknown(o->key, e);
        if (i && strcmp(o->key, d->options[i - 1].option.key) == 0) return error_set(e, MINK_INVALID, "BAD_OPTION", "option %.100s is there twice", o->key);
        if (log_table && info->primary_key_only) return error_set(e, MINK_INVALID, "BAD_OPTION", "option %.100s is for tables with a primary key", o->key);
        d->at = d->options[i].value_at;
        if (strlen(o->value) > TABLE_TEXT_MAX || !utf8_text_valid(o->value, strlen(o->value))) return error_set(e, MINK_INVALID, "BAD_OPTION", "option %.100s: the value is longer than %d bytes or not UTF-8", o->key, TABLE_TEXT_MAX);
        int64_t v;
        MINK_TRY(table_option_value(info, o->key, o->value, &v, e));
    }
    return MINK_OK;
}

static bool names_equal(const struct draft_names *a, const struct draft_names *b) {
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (strcmp(a->items[i].text, b->items[i].text) != 0) return false;
    return true;
}

// Buckets of Iceberg are its bucket transform, which is defined for these.
static bool iceberg_bucket_type(enum type_kind k) {
    return k == TYPE_INT || k == TYPE_BIGINT || k == TYPE_DECIMAL || (k >= TYPE_CHAR && k <= TYPE_TIMESTAMP_LTZ);
}

static enum mink_code bucket_key_resolve(struct table_draft *d, struct table_def *def, struct error *e) {
    const struct draft_option *o = given(d, "bucket.key");
    struct draft_names listed = {0};
    if (o) split_list(o->option.value, o->value_at, &listed);
    bool differ = o && d->bucket_key.count && !names_equal(&listed, &d->bucket_key);
    enum mink_code code = differ ? error_set(e, MINK_INVALID, "BAD_OPTION", "bucket_key and the option bucket.key differ") : MINK_OK;
    if (code == MINK_OK) code = resolve(d, o ? &listed : &d->bucket_key, "bucket.key", &def->bucket_key, &def->bucket_key_count, e);
    for (uint32_t i = 0; i < listed.count; i++) mem_free(listed.items[i].text);
    mem_free(listed.items);
    if (code != MINK_OK) return code;
    bool chosen = def->bucket_key_count != 0;
    for (uint32_t i = 0; i < def->bucket_key_count; i++) {
        const char *name = d->columns[def->bucket_key[i]].name;
        if (contains(def->partition_by, def->partition_by_count, def->bucket_key[i])) return error_set(e, MINK_INVALID, "BAD_KEY", "bucket.key: \"%.60s\" is a partition column", name);
        if (def->primary_key_count && !contains(def->primary_key, def->primary_key_count, def->bucket_key[i])) return error_set(e, MINK_INVALID, "BAD_KEY", "bucket.key: \"%.60s\" is not in the primary key", name);
    }
    if (!chosen && def->primary_key_count) {
        def->bucket_key = mem_new_array(uint32_t, def->primary_key_count);
        for (uint32_t i = 0; i < def->primary_key_count; i++)
            if (!contains(def->partition_by, def->partition_by_count, def->primary_key[i])) def->bucket_key[def->bucket_key_count++] = def->primary_key[i];
    }
    // The key that was given outside of the options becomes one, so that there is one place to look at.
    if (chosen && o == NULL) {
        struct buffer list;
        buffer_init(&list, 1u << 20);
        for (uint32_t i = 0; i < d->bucket_key.count; i++) buffer_printf(&list, "%s%s", i ? "," : "", d->bucket_key.items[i].text);
        bool same = def->primary_key_count && def->bucket_key_count == def->primary_key_count - def->partition_by_count;
        for (uint32_t i = 0, k = 0; same && i < def->primary_key_count; i++)
            if (!contains(def->partition_by, def->partition_by_count, def->primary_key[i])) same = def->bucket_key[k++] == def->primary_key[i];
        bool fits = true; // in a list that commas separate
        for (uint32_t i = 0; i < d->bucket_key.count; i++) fits = fits && strpbrk(d->bucket_key.items[i].text, ", ") == NULL;
        if (!same && fits) table_draft_add_option(d, mem_strdup("bucket.key"), mem_strdup(buffer_string(&list)), 0, 0);
        buffer_deinit(&list);
        if (!same && !fits) return error_set(e, MINK_INVALID, "BAD_KEY", "bucket.key: names with commas or spaces cannot be in it");
    }
    def->bucketing = (enum bucketing)value_of(d, "table.bucketing", BUCKETING_NATIVE);
    o = given(d, "table.bucketing");
    if (def->bucket_key_count == 0 || o == NULL) return MINK_OK;
    d->at = o->value_at;
    const struct type *first = &d->columns[def->bucket_key[0]].type;
    if (def->bucketing == BUCKETING_ICEBERG || def->bucketing == BUCKETING_KAFKA) {
        if (def->bucket_key_count != 1) return error_set(e, MINK_INVALID, "BAD_OPTION", "table.bucketing %s needs a bucket key of one column", o->option.value);
        if (def->bucketing == BUCKETING_ICEBERG && !iceberg_bucket_type(first->kind)) return error_set(e, MINK_INVALID, "BAD_OPTION", "table.bucketing iceberg: Iceberg has no bucket transform for %s", type_name(first->kind));
        if (def->bucketing == BUCKETING_KAFKA && !(first->kind >= TYPE_CHAR && first->kind <= TYPE_BYTES))
            return error_set(e, MINK_INVALID, "BAD_OPTION", "table.bucketing kafka: the bucket key has to be CHAR, STRING, BINARY or BYTES, not %s", type_name(first->kind));
    }
    return MINK_OK;
}

static enum mink_code auto_partition_resolve(struct table_draft *d, struct table_def *def, struct error *e) {
    static const char prefix[] = "table.auto-partition.";
    const struct draft_option *any = NULL;
    for (uint32_t i = 0; i < d->option_count && any == NULL; i++)
        if (strncmp(d->options[i].option.key, prefix, sizeof prefix - 1) == 0) any = &d->options[i];
    def->auto_partition.unit = UNIT_DAY;
    def->auto_partition.precreate = 2;
    def->auto_partition.retention = 7;
    snprintf(def->auto_partition.zone, sizeof def->auto_partition.zone, "UTC");
    if (any == NULL) return MINK_OK;
    d->at = any->key_at;
    if (def->partition_by_count == 0) return error_set(e, MINK_INVALID, "BAD_OPTION", "option %.100s is for tables with PARTITIONED BY", any->option.key);

    def->auto_partition.enabled = value_of(d, "table.auto-partition.enabled", 0);
    def->auto_partition.unit = (enum time_unit)value_of(d, "table.auto-partition.time-unit", UNIT_DAY);
    def->auto_partition.precreate = (int32_t)value_of(d, "table.auto-partition.num-precreate", 2);
    def->auto_partition.retention = (int32_t)value_of(d, "table.auto-partition.num-retention", 7);
    const struct draft_option *key = given(d, "table.auto-partition.key"), *format = given(d, "table.auto-partition.time-format"), *zone = given(d, "table.auto-partition.time-zone");
    def->auto_partition.key = def->partition_by[0];
    if (key) {
        d->at = key->value_at;
        int32_t column = find_column(d->columns, d->column_count, key->option.value);
        if (column < 0) return no_column(d->columns, d->column_count, key->option.value, key->option.key, e);
        if (!contains(def->partition_by, def->partition_by_count, (uint32_t)column)) return error_set(e, MINK_INVALID, "BAD_OPTION", "%s: \"%.60s\" is not a partition column", key->option.key, key->option.value);
        def->auto_partition.key = (uint32_t)column;
    } else if (def->auto_partition.enabled && def->partition_by_count > 1) {
        return error_set(e, MINK_INVALID, "BAD_OPTION", "table.auto-partition.key has to say which of the partition columns holds the time");
    }
    const struct column *c = &d->columns[def->auto_partition.key];
    bool date = c->type.kind == TYPE_DATE;
    if (def->auto_partition.enabled && c->type.kind != TYPE_STRING && c->type.kind != TYPE_CHAR && !date)
        return error_set(e, MINK_INVALID, "BAD_OPTION", "automatic partitions need a STRING, CHAR or DATE column; \"%.60s\" is %s", c->name, type_name(c->type.kind));
    if (def->auto_partition.enabled && date && def->auto_partition.unit != UNIT_DAY) return error_set(e, MINK_INVALID, "BAD_OPTION", "automatic partitions by the DATE column \"%.60s\" are of a DAY each", c->name);
    snprintf(def->auto_partition.format, sizeof def->auto_partition.format, "%s", format ? format->option.value : date ? "yyyy-MM-dd" : partition_format_default(def->auto_partition.unit));
    if (format) d->at = format->value_at;
    if (format && date && strcmp(format->option.value, "yyyy-MM-dd") != 0) return error_set(e, MINK_INVALID, "BAD_OPTION", "values of the DATE column \"%.60s\" are written yyyy-MM-dd", c->name);
    MINK_TRY(partition_format_check(def->auto_partition.format, def->auto_partition.unit, e));
    if (zone) {
        d->at = zone->value_at;
        snprintf(def->auto_partition.zone, sizeof def->auto_partition.zone, "%s", zone->option.value);
        // A definition from the command log (it has its number) was looked up when it was made: applying commands may not depend on this machine.
        return d->schema_id ? partition_zone_check(def->auto_partition.zone, e) : partition_zone_find(def->auto_partition.zone, e);
    }
    return MINK_OK;
}

static enum mink_code statistics_resolve(struct table_draft *d, struct table_def *def, struct error *e) {
    const struct draft_option *o = given(d, "table.statistics.columns");
    if (o == NULL) return MINK_OK;
    d->at = o->value_at;
    bool all = strcmp(o->option.value, "*") == 0;
    struct draft_names listed = {0};
    if (!all) split_list(o->option.value, o->value_at, &listed);
    uint32_t count = all ? d->column_count : listed.count;
    enum mink_code code = MINK_OK;
    def->statistics_columns = mem_new_array(uint32_t, count);
    for (uint32_t i = 0; i < count && code == MINK_OK; i++) {
        int32_t column = all ? (int32_t)i : find_column(d->columns, d->column_count, listed.items[i].text);
        if (column < 0) {
            code = no_column(d->columns, d->column_count, listed.items[i].text, o->option.key, e);
            break;
        }
        const struct type *t = &d->columns[column].type;
        bool none = type_is_nested(t) || t->kind == TYPE_BINARY || t->kind == TYPE_BYTES;
        if (none && !all) code = error_set(e, MINK_INVALID, "BAD_OPTION", "%s: there are none for %s (column \"%.60s\")", o->option.key, type_name(t->kind), listed.items[i].text);
        if (!none && !contains(def->statistics_columns, def->statistics_column_count, (uint32_t)column)) def->statistics_columns[def->statistics_column_count++] = (uint32_t)column;
    }
    draft_names_deinit(&listed);
    return code;
}

static bool aggregates(const char *function, enum type_kind k) {
    bool numeric = k >= TYPE_TINYINT && k <= TYPE_DECIMAL;
    if (strcasecmp(function, "sum") == 0 || strcasecmp(function, "product") == 0) return numeric;
    if (strcasecmp(function, "max") == 0 || strcasecmp(function, "min") == 0) return numeric || k == TYPE_CHAR || k == TYPE_STRING || (k >= TYPE_DATE && k <= TYPE_TIMESTAMP_LTZ);
    if (strcasecmp(function, "listagg") == 0 || strcasecmp(function, "string_agg") == 0) return k == TYPE_STRING;
    if (strncasecmp(function, "bool_", 5) == 0) return k == TYPE_BOOLEAN;
    if (strncasecmp(function, "rbm", 3) == 0) return k == TYPE_BYTES;
    return true;
}

// What belongs to tables with a primary key. Log tables have none of these options (options_check).
static enum mink_code merge_check(struct table_draft *d, const struct table_def *def, struct error *e) {
    enum table_merge_engine engine = given(d, "table.merge-engine") ? (enum table_merge_engine)(value_of(d, "table.merge-engine", 0) + 1) : MERGE_LAST_ROW;
    const struct draft_option *version = given(d, "table.merge-engine.versioned.ver-column"), *numbered = given(d, "auto-increment.fields");
    d->at = version ? version->value_at : engine != MERGE_LAST_ROW ? given(d, "table.merge-engine")->value_at : 0;
    if ((engine == MERGE_VERSIONED) != (version != NULL)) return error_set(e, MINK_INVALID, "BAD_OPTION", "table.merge-engine versioned and table.merge-engine.versioned.ver-column need each other");
    if (version) {
        int32_t column = find_column(d->columns, d->column_count, version->option.value);
        if (column < 0) return no_column(d->columns, d->column_count, version->option.value, version->option.key, e);
        enum type_kind k = d->columns[column].type.kind;
        if (k != TYPE_INT && k != TYPE_BIGINT && k != TYPE_TIMESTAMP && k != TYPE_TIMESTAMP_LTZ)
            return error_set(e, MINK_INVALID, "BAD_OPTION", "%s: column \"%.60s\" is %s; wanted is INT, BIGINT, TIMESTAMP or TIMESTAMP_LTZ", version->option.key, version->option.value, type_name(k));
    }
    if (numbered) {
        d->at = numbered->value_at;
        int32_t column = find_column(d->columns, d->column_count, numbered->option.value);
        if (column < 0) return no_column(d->columns, d->column_count, numbered->option.value, numbered->option.key, e);
        enum type_kind k = d->columns[column].type.kind;
        if ((k != TYPE_INT && k != TYPE_BIGINT) || contains(def->primary_key, def->primary_key_count, (uint32_t)column))
            return error_set(e, MINK_INVALID, "BAD_OPTION", "%s: column \"%.60s\" has to be INT or BIGINT and outside of the primary key", numbered->option.key, numbered->option.value);
    }
    for (uint32_t i = 0; i < d->option_count; i++) {
        const struct table_option *o = &d->options[i].option;
        if (strncmp(o->key, "fields.", 7) != 0) continue;
        d->at = d->options[i].key_at;
        if (engine != MERGE_AGGREGATION) return error_set(e, MINK_INVALID, "BAD_OPTION", "option %.100s needs table.merge-engine aggregation", o->key);
        const struct table_option_info *info = table_option_find(o->key);
        struct slice name = table_option_column(info, o->key);
        char *column_name = mem_strndup((const char *)name.data, name.size);
        int32_t column = find_column(d->columns, d->column_count, column_name);
        enum mink_code code = column < 0 ? no_column(d->columns, d->column_count, column_name, o->key, e) : MINK_OK;
        mem_free(column_name);
        if (code != MINK_OK) return code;
        if (contains(def->primary_key, def->primary_key_count, (uint32_t)column)) return error_set(e, MINK_INVALID, "BAD_OPTION", "option %.100s: columns of the primary key are not aggregated", o->key);
        if (info->kind == OPTION_CHOICE && !aggregates(o->value, d->columns[column].type.kind))
            return error_set(e, MINK_INVALID, "BAD_OPTION", "option %.100s: %s does not work on %s", o->key, o->value, type_name(d->columns[column].type.kind));
    }
    return MINK_OK;
}

static enum mink_code options_resolve(struct table_draft *d, const struct table_defaults *defaults, struct table_def *def, struct error *e) {
    static const enum codec codecs[] = {CODEC_NONE, CODEC_LZ4_FRAME, CODEC_ZSTD};
    MINK_TRY(options_check(d, def->primary_key_count == 0, e));
    MINK_TRY(bucket_key_resolve(d, def, e));
    MINK_TRY(auto_partition_resolve(d, def, e));
    MINK_TRY(statistics_resolve(d, def, e));
    MINK_TRY(merge_check(d, def, e));
    const struct draft_option *timestamp = given(d, "kafka.timestamp-column");
    if (timestamp && find_column(d->columns, d->column_count, timestamp->option.value) < 0) {
        d->at = timestamp->value_at;
        return no_column(d->columns, d->column_count, timestamp->option.value, timestamp->option.key, e);
    }
    if (given(d, "bucket.num") == NULL) table_draft_add_option(d, mem_strdup("bucket.num"), mem_printf("%u", defaults && defaults->bucket_num ? defaults->bucket_num : 1), 0, 0);
    if (d->option_count) qsort(d->options, d->option_count, sizeof *d->options, compare_options);
    def->bucket_num = (uint32_t)value_of(d, "bucket.num", 1);
    def->log_ttl_ms = value_of(d, "table.log.ttl", 7ll * 86400000);
    if (def->log_ttl_ms == 0) def->log_ttl_ms = -1; // Fluss's way to say for ever
    def->retention_bytes = value_of(d, "table.log.retention-bytes", -1);
    def->compression = codecs[value_of(d, "table.log.arrow.compression.type", 2)];
    def->compression_level = (int32_t)value_of(d, "table.log.arrow.compression.zstd.level", 3);
    def->assignment = def->bucket_key_count ? ASSIGN_HASH : value_of(d, "bucket.assignment", 0) ? ASSIGN_ROUND_ROBIN : ASSIGN_STICKY;
    def->dynamic_partition = def->partition_by_count && value_of(d, "table.dynamic-partition.enabled", 1);
    def->lake_enabled = value_of(d, "table.datalake.enabled", 0);
    return MINK_OK;
}

// ---- finish

static enum mink_code finish(struct table_draft *d, const struct table_defaults *defaults, struct table_def *def, struct error *e) {
    d->at = d->name_at;
    MINK_TRY(table_names_check(d->database, d->name, e));
    if (d->comment && strlen(d->comment) > TABLE_TEXT_MAX) return error_set(e, MINK_INVALID, "TOO_LARGE", "the comment is longer than %d bytes", TABLE_TEXT_MAX);
    MINK_TRY(columns_check(d, e));
    d->at = d->name_at;
    MINK_TRY(ids_assign(d, e));
    MINK_TRY(keys_resolve(d, def, e));
    return options_resolve(d, defaults, def, e);
}

enum mink_code table_draft_finish(struct table_draft *d, const struct table_defaults *defaults, struct table_def **out, struct error *e) {
    struct table_def *def = mem_new(struct table_def);
    atomic_init(&def->refs, 1);
    enum mink_code code = finish(d, defaults, def, e);
    if (code != MINK_OK) {
        table_def_unref(def);
        *out = NULL;
        return code;
    }
    def->database = d->database;
    def->name = d->name;
    def->comment = d->comment;
    def->schema_id = d->schema_id ? d->schema_id : 1;
    def->next_column_id = d->next_column_id;
    def->columns = d->columns;
    def->column_count = d->column_count;
    d->database = d->name = d->comment = NULL;
    d->columns = NULL;
    d->column_count = 0;
    def->options = mem_new_array(struct table_option, d->option_count);
    def->option_count = d->option_count;
    for (uint32_t i = 0; i < d->option_count; i++) def->options[i] = d->options[i].option;
    d->option_count = 0;
    struct arrow_field *fields = mem_new_array(struct arrow_field, def->column_count);
    for (uint32_t i = 0; i < def->column_count; i++) type_to_arrow(&def->columns[i].type, def->columns[i].name, &fields[i]);
    def->arrow = arrow_schema_new(fields, def->column_count);
    *out = def;
    return MINK_OK;
}

// ---- changes

static char *copy_text(const char *text) { return text ? mem_strdup(text) : NULL; }

static void draft_of(const struct table_def *d, struct table_draft *out) {
    *out = (struct table_draft){.database = mem_strdup(d->database), .name = mem_strdup(d->name), .comment = copy_text(d->comment), .schema_id = d->schema_id, .next_column_id = d->next_column_id};
    for (uint32_t i = 0; i < d->column_count; i++) {
        struct column *c = table_draft_add_column(out, 0);
        *c = (struct column){.name = mem_strdup(d->columns[i].name), .id = d->columns[i].id, .comment = copy_text(d->columns[i].comment)};
        type_copy(&c->type, &d->columns[i].type);
    }
    for (uint32_t i = 0; i < d->primary_key_count; i++) draft_names_add(&out->primary_key, mem_strdup(d->columns[d->primary_key[i]].name), 0);
    for (uint32_t i = 0; i < d->partition_by_count; i++) draft_names_add(&out->partition_by, mem_strdup(d->columns[d->partition_by[i]].name), 0);
    for (uint32_t i = 0; i < d->option_count; i++) table_draft_add_option(out, mem_strdup(d->options[i].key), mem_strdup(d->options[i].value), 0, 0);
}

static enum mink_code may_change(const char *key, struct error *e) {
    const struct table_option_info *info = table_option_find(key);
    if (info == NULL) return table_option_unknown(key, e);
    if (info->changeable) return MINK_OK;
    error_set(e, MINK_INVALID, "NOT_CHANGEABLE", "option %.100s cannot be changed after the table was created: %s", key,
              strncmp(key, "bucket.", 7) == 0 || strcmp(key, "table.bucketing") == 0 ? "rows are in their buckets already" : "what is stored depends on it");
    error_about(e, key, NULL, NULL);
    return MINK_INVALID;
}

static void option_remove(struct table_draft *d, const char *key) {
    for (uint32_t i = 0; i < d->option_count; i++) {
        if (strcmp(d->options[i].option.key, key) != 0) continue;
        mem_free(d->options[i].option.key);
        mem_free(d->options[i].option.value);
        memmove(&d->options[i], &d->options[i + 1], (d->option_count - i - 1) * sizeof d->options[0]);
        d->option_count--;
        return;
    }
}

enum mink_code table_def_with_options(const struct table_def *d, const struct table_option *set, uint32_t set_count, const char *const *reset, uint32_t reset_count, struct table_def **out, struct error *e) {
    *out = NULL;
    if (set_count > TABLE_OPTIONS_MAX || reset_count > TABLE_OPTIONS_MAX) return error_set(e, MINK_INVALID, "TOO_LARGE", "more than %d options", TABLE_OPTIONS_MAX);
    for (uint32_t i = 0; i < set_count; i++) {
        MINK_TRY(may_change(set[i].key, e));
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(set[k].key, set[i].key) == 0) return error_set(e, MINK_INVALID, "BAD_OPTION", "option %.100s is there twice", set[i].key);
        for (uint32_t k = 0; k < reset_count; k++)
            if (strcmp(reset[k], set[i].key) == 0) return error_set(e, MINK_INVALID, "BAD_OPTION", "option %.100s is both set and reset", set[i].key);
    }
    for (uint32_t i = 0; i < reset_count; i++) MINK_TRY(may_change(reset[i], e));
    struct table_draft draft;
    draft_of(d, &draft);
    for (uint32_t i = 0; i < set_count; i++) option_remove(&draft, set[i].key);
    for (uint32_t i = 0; i < reset_count; i++) option_remove(&draft, reset[i]);
    for (uint32_t i = 0; i < set_count; i++) table_draft_add_option(&draft, mem_strdup(set[i].key), mem_strdup(set[i].value), 0, 0);
    enum mink_code code = table_draft_finish(&draft, NULL, out, e);
    table_draft_deinit(&draft);
    return code;
}
