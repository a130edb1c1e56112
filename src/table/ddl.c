// SPDX-License-Identifier: Apache-2.0
// Statements: recursive descent over the tokens of ddl_lex.c. What is right in itself but wrong for a table is found by table_def.c, which
// says where; so every error has a line, a column and an excerpt.
#include "table/ddl.h"

#include "base/mem.h"
#include "table/ddl_internal.h"

#include <stdio.h>
#include <string.h>

struct parser {
    struct lexer x;
    const char *default_database;
    const struct table_defaults *defaults;
    struct ddl *out;
    struct error *e;
};

static enum mink_code unsupported(struct parser *p, uint32_t at, const char *what, const char *hint) {
    error_set(p->e, MINK_UNSUPPORTED, "NOT_SUPPORTED", "%s", what);
    if (hint) error_hint(p->e, "%s", hint);
    lexer_locate(&p->x, at, p->e);
    return MINK_UNSUPPORTED;
}

// ---- pieces

static enum mink_code read_string(struct parser *p, const char *what, char **out, uint32_t *at) {
    *out = NULL;
    if (p->x.token.kind != TOKEN_STRING) return lexer_expected(&p->x, what, p->e);
    *at = p->x.token.begin;
    *out = lexer_text(&p->x);
    lexer_next(&p->x);
    return MINK_OK;
}

static enum mink_code read_exists(struct parser *p, bool not, bool *out) {
    if (!lexer_accept(&p->x, "IF")) return MINK_OK;
    if (not) MINK_TRY(ddl_expect(&p->x, "NOT", p->e));
    MINK_TRY(ddl_expect(&p->x, "EXISTS", p->e));
    *out = true;
    return MINK_OK;
}

// A sign that stands right behind the name: `my-db` without the quotes.
static enum mink_code hyphen_check(struct parser *p, uint32_t begin) {
    if (!lexer_is(&p->x, "-") || p->x.token.begin != p->x.last_end) return MINK_OK;
    error_set(p->e, MINK_INVALID, "BAD_DDL", "names with - in them have to be in `backquotes`");
    lexer_locate(&p->x, begin, p->e);
    return MINK_INVALID;
}

static enum mink_code read_table(struct parser *p, char **database, char **table, uint32_t *at) {
    uint32_t second;
    MINK_TRY(ddl_read_name(&p->x, "a table's name", table, at, p->e));
    MINK_TRY(hyphen_check(p, *at));
    if (!lexer_accept(&p->x, ".")) {
        if (p->default_database) {
            *database = mem_strdup(p->default_database);
            return MINK_OK;
        }
        error_set(p->e, MINK_INVALID, "BAD_NAME", "table name \"%.60s\" has no database: write database.table", *table);
        lexer_locate(&p->x, *at, p->e);
        return MINK_INVALID;
    }
    *database = *table;
    MINK_TRY(ddl_read_name(&p->x, "a table's name", table, &second, p->e));
    MINK_TRY(hyphen_check(p, second));
    // Names of topics hold dots, but only in quotes.
    if (!lexer_is(&p->x, ".")) return MINK_OK;
    error_set(p->e, MINK_INVALID, "BAD_NAME", "table names have two parts, database.table");
    lexer_locate(&p->x, *at, p->e);
    return MINK_INVALID;
}

// Into p->out, by the name rule.
static enum mink_code read_known_table(struct parser *p) {
    char *database = NULL, *table = NULL;
    uint32_t at = 0;
    enum mink_code code = read_table(p, &database, &table, &at);
    if (code == MINK_OK) {
        code = table_names_check(database, table, p->e);
        if (code != MINK_OK) lexer_locate(&p->x, at, p->e);
    }
    if (code == MINK_OK) {
        snprintf(p->out->database, sizeof p->out->database, "%s", database);
        snprintf(p->out->table, sizeof p->out->table, "%s", table);
    }
    mem_free(database);
    mem_free(table);
    return code;
}

static enum mink_code read_names(struct parser *p, struct draft_names *out) {
    MINK_TRY(ddl_expect(&p->x, "(", p->e));
    do {
        char *name;
        uint32_t at;
        MINK_TRY(ddl_read_name(&p->x, "a column's name", &name, &at, p->e));
        draft_names_add(out, name, at);
    } while (lexer_accept(&p->x, ","));
    return lexer_accept(&p->x, ")") ? MINK_OK : lexer_expected(&p->x, ", or )", p->e);
}

static enum mink_code read_pair(struct parser *p, char **key, char **value, uint32_t *key_at, uint32_t *value_at) {
    *value = NULL;
    MINK_TRY(read_string(p, "an option's name in single quotes", key, key_at));
    MINK_TRY(ddl_expect(&p->x, "=", p->e));
    return read_string(p, "a value in single quotes", value, value_at);
}

// ('k' = 'v', …)
static enum mink_code read_options(struct parser *p, struct table_draft *d) {
    MINK_TRY(ddl_expect(&p->x, "(", p->e));
    do {
        char *key, *value;
        uint32_t key_at, value_at;
        enum mink_code code = read_pair(p, &key, &value, &key_at, &value_at);
        if (code != MINK_OK) {
            mem_free(key);
            mem_free(value);
            return code;
        }
        table_draft_add_option(d, key, value, key_at, value_at);
    } while (lexer_accept(&p->x, ","));
    return lexer_accept(&p->x, ")") ? MINK_OK : lexer_expected(&p->x, ", or )", p->e);
}

// ---- columns

static enum mink_code read_primary_key_end(struct parser *p) {
    if (lexer_accept(&p->x, "NOT")) return ddl_expect(&p->x, "ENFORCED", p->e);
    if (lexer_is(&p->x, "ENFORCED")) return unsupported(p, p->x.token.begin, "keys are not enforced as constraints: later rows replace earlier ones", "write NOT ENFORCED, or nothing");
    return MINK_OK;
}

static enum mink_code second_key(struct parser *p, uint32_t at) {
    error_set(p->e, MINK_INVALID, "BAD_KEY", "a second PRIMARY KEY");
    lexer_locate(&p->x, at, p->e);
    return MINK_INVALID;
}

static enum mink_code read_column(struct parser *p, struct table_draft *d) {
    char *name;
    uint32_t at;
    MINK_TRY(ddl_read_name(&p->x, "a column's name", &name, &at, p->e));
    struct column *c = table_draft_add_column(d, at);
    c->name = name;
    if (lexer_is(&p->x, "AS")) return unsupported(p, at, "computed columns are not stored", "leave the column out, and compute it in the query");
    if (lexer_is(&p->x, "METADATA")) return unsupported(p, at, "metadata columns are not stored", "readers ask for them with \"meta\"");
    MINK_TRY(ddl_read_type(&p->x, 0, &c->type, p->e));
    for (;;) {
        uint32_t here = p->x.token.begin;
        if (lexer_accept(&p->x, "PRIMARY")) {
            MINK_TRY(ddl_expect(&p->x, "KEY", p->e));
            if (d->primary_key.count) return second_key(p, here);
            draft_names_add(&d->primary_key, mem_strdup(name), at);
            MINK_TRY(read_primary_key_end(p));
        } else if (lexer_is(&p->x, "COMMENT") && c->comment == NULL) {
            lexer_next(&p->x);
            MINK_TRY(read_string(p, "a comment in single quotes", &c->comment, &here));
        } else if (lexer_is(&p->x, "DEFAULT") || lexer_is(&p->x, "UNIQUE") || lexer_is(&p->x, "CHECK") || lexer_is(&p->x, "REFERENCES")) {
            return unsupported(p, here, "columns have no DEFAULT, UNIQUE, CHECK or REFERENCES", NULL);
        } else {
            return MINK_OK;
        }
    }
}

static enum mink_code read_item(struct parser *p, struct table_draft *d) {
    struct lexer ahead = lexer_ahead(&p->x);
    uint32_t at = p->x.token.begin;
    bool constraint = lexer_is(&p->x, "CONSTRAINT");
    if (constraint) { // a constraint's name; a column of this name has a type next
        struct lexer behind = lexer_ahead(&ahead);
        constraint = lexer_is(&behind, "PRIMARY");
        if (constraint) {
            p->x = behind;
            ahead = lexer_ahead(&p->x);
        }
    }
    if (lexer_is(&p->x, "PRIMARY") && lexer_is(&ahead, "KEY")) {
        lexer_next(&p->x);
        lexer_next(&p->x);
        if (d->primary_key.count) return second_key(p, at);
        MINK_TRY(read_names(p, &d->primary_key));
        return read_primary_key_end(p);
    }
    if (lexer_is(&p->x, "WATERMARK") && lexer_is(&ahead, "FOR")) return unsupported(p, at, "watermarks belong to the query engine", "leave the WATERMARK clause out");
    if (p->x.token.kind != TOKEN_WORD && p->x.token.kind != TOKEN_NAME) return lexer_expected(&p->x, "a column or PRIMARY KEY", p->e);
    return read_column(p, d);
}

static enum mink_code read_items(struct parser *p, struct table_draft *d) {
    do {
        if (d->column_count > TABLE_COLUMNS_MAX) break; // said by table_draft_finish
        MINK_TRY(read_item(p, d));
    } while (lexer_accept(&p->x, ","));
    return MINK_OK;
}

static enum mink_code finish_table(struct parser *p, struct table_draft *d, struct table_def **out) {
    enum mink_code code = table_draft_finish(d, p->defaults, out, p->e);
    if (code != MINK_OK && d->at != DRAFT_AT_NONE) lexer_locate(&p->x, d->at, p->e);
    return code;
}

// ---- statements

static enum mink_code read_end(struct parser *p) {
    bool semicolon = false;
    while (lexer_accept(&p->x, ";")) semicolon = true;
    if (p->x.token.kind == TOKEN_END) return MINK_OK;
    if (!semicolon) return lexer_expected(&p->x, "the end of the statement", p->e);
    error_set(p->e, MINK_INVALID, "MULTIPLE_STATEMENTS", "one statement at a time");
    lexer_locate(&p->x, p->x.token.begin, p->e);
    return MINK_INVALID;
}

static enum mink_code read_create_table(struct parser *p, struct table_draft *d) {
    bool commented = false, partitioned = false, with = false;
    MINK_TRY(read_exists(p, true, &p->out->if_not_exists));
    MINK_TRY(read_table(p, &d->database, &d->name, &d->name_at));
    if (lexer_is(&p->x, "LIKE") || lexer_is(&p->x, "AS")) return unsupported(p, p->x.token.begin, "tables are created from columns", NULL);
    MINK_TRY(ddl_expect(&p->x, "(", p->e));
    MINK_TRY(read_items(p, d));
    if (!lexer_accept(&p->x, ")")) return lexer_expected(&p->x, d->column_count ? ", or )" : "a column", p->e);
    for (;;) {
        uint32_t at;
        if (!commented && lexer_accept(&p->x, "COMMENT")) {
            commented = true;
            MINK_TRY(read_string(p, "a comment in single quotes", &d->comment, &at));
        } else if (!partitioned && lexer_accept(&p->x, "PARTITIONED")) {
            partitioned = true;
            MINK_TRY(ddl_expect(&p->x, "BY", p->e));
            MINK_TRY(read_names(p, &d->partition_by));
        } else if (!with && lexer_accept(&p->x, "WITH")) {
            with = true;
            MINK_TRY(read_options(p, d));
        } else if (lexer_is(&p->x, "DISTRIBUTED")) {
            return unsupported(p, p->x.token.begin, "DISTRIBUTED BY is said by options", "WITH ('bucket.num' = '4', 'bucket.key' = 'id')");
        } else if (p->x.token.kind == TOKEN_END || lexer_is(&p->x, ";")) {
            return read_end(p);
        } else {
            return lexer_expected(&p->x, "COMMENT, PARTITIONED BY, WITH or the end of the statement", p->e);
        }
    }
}

static enum mink_code parse_create_table(struct parser *p) {
    struct table_draft d = {0};
    p->out->kind = DDL_CREATE_TABLE;
    enum mink_code code = read_create_table(p, &d);
    if (code == MINK_OK) code = finish_table(p, &d, &p->out->def);
    if (code == MINK_OK) {
        snprintf(p->out->database, sizeof p->out->database, "%s", p->out->def->database);
        snprintf(p->out->table, sizeof p->out->table, "%s", p->out->def->name);
        p->out->comment = p->out->def->comment ? mem_strdup(p->out->def->comment) : NULL;
    }
    table_draft_deinit(&d);
    return code;
}

static enum mink_code read_database(struct parser *p) {
    char *name;
    uint32_t at;
    MINK_TRY(ddl_read_name(&p->x, "a database's name", &name, &at, p->e));
    enum mink_code code = hyphen_check(p, at);
    if (code == MINK_OK && (code = table_name_check(name, "database", p->e)) != MINK_OK) lexer_locate(&p->x, at, p->e);
    if (code == MINK_OK) snprintf(p->out->database, sizeof p->out->database, "%s", name);
    mem_free(name);
    return code;
}

static enum mink_code parse_create(struct parser *p) {
    uint32_t at = p->x.token.begin;
    if (lexer_accept(&p->x, "TABLE")) return parse_create_table(p);
    if (lexer_accept(&p->x, "DATABASE")) {
        p->out->kind = DDL_CREATE_DATABASE;
        MINK_TRY(read_exists(p, true, &p->out->if_not_exists));
        MINK_TRY(read_database(p));
        if (lexer_accept(&p->x, "COMMENT")) {
            MINK_TRY(read_string(p, "a comment in single quotes", &p->out->comment, &at));
            if (strlen(p->out->comment) > TABLE_TEXT_MAX) {
                error_set(p->e, MINK_INVALID, "TOO_LARGE", "the comment is longer than %d bytes", TABLE_TEXT_MAX);
                return lexer_locate(&p->x, at, p->e);
            }
        }
        return read_end(p);
    }
    if (lexer_is(&p->x, "TEMPORARY") || lexer_is(&p->x, "VIEW") || lexer_is(&p->x, "INDEX") || lexer_is(&p->x, "OR"))
        return unsupported(p, at, "what can be created is TABLE and DATABASE", NULL);
    return lexer_expected(&p->x, "TABLE or DATABASE", p->e);
}

static enum mink_code parse_drop(struct parser *p) {
    if (lexer_accept(&p->x, "TABLE")) {
        p->out->kind = DDL_DROP_TABLE;
        MINK_TRY(read_exists(p, false, &p->out->if_exists));
        MINK_TRY(read_known_table(p));
        return read_end(p);
    }
    if (lexer_accept(&p->x, "DATABASE")) {
        p->out->kind = DDL_DROP_DATABASE;
        MINK_TRY(read_exists(p, false, &p->out->if_exists));
        MINK_TRY(read_database(p));
        p->out->cascade = lexer_accept(&p->x, "CASCADE");
        if (!p->out->cascade) lexer_accept(&p->x, "RESTRICT");
        return read_end(p);
    }
    return lexer_expected(&p->x, "TABLE or DATABASE", p->e);
}

// A value in a partition: text, or a literal that is as good as its text.
static enum mink_code read_partition_value(struct parser *p, char **out) {
    struct lexer *x = &p->x;
    uint32_t at;
    if (x->token.kind == TOKEN_STRING) return read_string(p, "a value", out, &at);
    bool minus = lexer_accept(x, "-");
    if (x->token.kind != TOKEN_NUMBER && (minus || !(lexer_is(x, "TRUE") || lexer_is(x, "FALSE")))) return lexer_expected(x, "a value in single quotes", p->e);
    char *text = lexer_text(x);
    for (char *c = text; *c; c++)
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c + 32);
    *out = mem_printf("%s%s", minus ? "-" : "", text);
    mem_free(text);
    lexer_next(x);
    return MINK_OK;
}

static enum mink_code read_partition(struct parser *p) {
    struct ddl *out = p->out;
    MINK_TRY(ddl_expect(&p->x, "PARTITION", p->e));
    MINK_TRY(ddl_expect(&p->x, "(", p->e));
    do {
        char *name, *value = NULL;
        uint32_t at;
        MINK_TRY(ddl_read_name(&p->x, "a partition column", &name, &at, p->e));
        enum mink_code code = ddl_expect(&p->x, "=", p->e);
        if (code == MINK_OK) code = read_partition_value(p, &value);
        bool twice = false;
        for (uint32_t i = 0; i < out->partition_value_count; i++) twice |= strcmp(out->partition_columns[i], name) == 0;
        if (code == MINK_OK && (twice || out->partition_value_count == TABLE_KEY_COLUMNS_MAX)) {
            code = error_set(p->e, MINK_INVALID, "BAD_PARTITION", twice ? "column \"%.60s\" is there twice" : "too many columns at \"%.60s\"", name);
            lexer_locate(&p->x, at, p->e);
        }
        if (code != MINK_OK) {
            mem_free(name);
            mem_free(value);
            return code;
        }
        size_t bytes = (out->partition_value_count + 1) * sizeof(char *);
        out->partition_columns = mem_realloc(out->partition_columns, bytes);
        out->partition_values = mem_realloc(out->partition_values, bytes);
        out->partition_columns[out->partition_value_count] = name;
        out->partition_values[out->partition_value_count++] = value;
    } while (lexer_accept(&p->x, ","));
    MINK_TRY(lexer_accept(&p->x, ")") ? MINK_OK : lexer_expected(&p->x, ", or )", p->e));
    return read_end(p);
}

static enum mink_code check_option(struct parser *p, const char *key, const char *value, uint32_t key_at, uint32_t value_at) {
    const struct table_option_info *info = table_option_find(key);
    int64_t v;
    if (info == NULL) {
        table_option_unknown(key, p->e);
        lexer_locate(&p->x, key_at, p->e);
        return MINK_INVALID;
    }
    if (value == NULL || table_option_value(info, key, value, &v, p->e) == MINK_OK) return MINK_OK;
    lexer_locate(&p->x, value_at, p->e);
    return MINK_INVALID;
}

static enum mink_code parse_set(struct parser *p) {
    struct table_draft d = {0};
    struct ddl *out = p->out;
    out->kind = DDL_ALTER_TABLE_OPTIONS;
    enum mink_code code = read_options(p, &d);
    for (uint32_t i = 0; i < d.option_count && code == MINK_OK; i++) {
        const struct draft_option *o = &d.options[i];
        code = check_option(p, o->option.key, o->option.value, o->key_at, o->value_at);
    }
    if (code == MINK_OK) {
        out->set = mem_new_array(struct table_option, d.option_count);
        out->set_count = d.option_count;
        for (uint32_t i = 0; i < d.option_count; i++) out->set[i] = d.options[i].option;
        d.option_count = 0;
    }
    table_draft_deinit(&d);
    return code == MINK_OK ? read_end(p) : code;
}

static enum mink_code parse_reset(struct parser *p) {
    struct ddl *out = p->out;
    out->kind = DDL_ALTER_TABLE_OPTIONS;
    MINK_TRY(ddl_expect(&p->x, "(", p->e));
    do {
        char *key;
        uint32_t at;
        MINK_TRY(read_string(p, "an option's name in single quotes", &key, &at));
        out->reset = mem_realloc(out->reset, (out->reset_count + 1) * sizeof *out->reset);
        out->reset[out->reset_count++] = key;
        MINK_TRY(check_option(p, key, NULL, at, at));
    } while (lexer_accept(&p->x, ","));
    MINK_TRY(lexer_accept(&p->x, ")") ? MINK_OK : lexer_expected(&p->x, ", or )", p->e));
    return read_end(p);
}

static enum mink_code parse_alter(struct parser *p) {
    if (!lexer_accept(&p->x, "TABLE")) return lexer_expected(&p->x, "TABLE", p->e);
    MINK_TRY(read_exists(p, false, &p->out->if_exists));
    MINK_TRY(read_known_table(p));
    uint32_t at = p->x.token.begin;
    if (lexer_accept(&p->x, "SET")) return parse_set(p);
    if (lexer_accept(&p->x, "RESET")) return parse_reset(p);
    bool add = lexer_is(&p->x, "ADD"), drop = lexer_is(&p->x, "DROP");
    if (add || drop) {
        struct lexer ahead = lexer_ahead(&p->x);
        if (lexer_is(&ahead, "PARTITION") || lexer_is(&ahead, "IF")) {
            lexer_next(&p->x);
            p->out->kind = add ? DDL_ADD_PARTITION : DDL_DROP_PARTITION;
            bool table_if_exists = p->out->if_exists; // of the table; the partition has its own
            p->out->if_exists = false;
            MINK_TRY(read_exists(p, add, add ? &p->out->if_not_exists : &p->out->if_exists));
            if (table_if_exists && add) p->out->if_exists = true;
            return read_partition(p);
        }
    }
    if (add || drop || lexer_is(&p->x, "MODIFY") || lexer_is(&p->x, "RENAME"))
        return unsupported(p, at, "columns and names of tables cannot be changed", "create a table with the columns that are wanted");
    return lexer_expected(&p->x, "SET, RESET, ADD PARTITION or DROP PARTITION", p->e);
}

enum mink_code ddl_parse(const char *text, size_t size, const char *default_database, const struct table_defaults *defaults, struct ddl *out, struct error *e) {
    struct error unread;
    struct parser p = {.default_database = default_database, .defaults = defaults, .out = out, .e = e ? e : &unread};
    *out = (struct ddl){0};
    MINK_TRY(lexer_init(&p.x, text, size, "BAD_DDL", p.e));
    enum mink_code code;
    if (lexer_accept(&p.x, "CREATE")) code = parse_create(&p);
    else if (lexer_accept(&p.x, "ALTER")) code = parse_alter(&p);
    else if (lexer_accept(&p.x, "DROP")) code = parse_drop(&p);
    else code = lexer_expected(&p.x, "CREATE, ALTER or DROP", p.e);
    if (code != MINK_OK) ddl_deinit(out);
    return code;
}

static enum mink_code parse_columns(struct parser *p, struct table_draft *d, struct table_def **out) {
    MINK_TRY(read_items(p, d));
    if (p->x.token.kind != TOKEN_END && d->column_count <= TABLE_COLUMNS_MAX) return lexer_expected(&p->x, ", or the end of the columns", p->e);
    return finish_table(p, d, out);
}

enum mink_code ddl_parse_columns(const char *text, size_t size, const char *database, const char *table, const struct table_option *options, uint32_t option_count, const struct table_defaults *defaults, struct table_def **out, struct error *e) {
    struct error unread;
    struct parser p = {.defaults = defaults, .e = e ? e : &unread};
    *out = NULL;
    MINK_TRY(lexer_init(&p.x, text, size, "BAD_DDL", p.e));
    struct table_draft d = {.database = mem_strdup(database), .name = mem_strdup(table), .name_at = DRAFT_AT_NONE};
    for (uint32_t i = 0; i < option_count; i++) table_draft_add_option(&d, mem_strdup(options[i].key), mem_strdup(options[i].value), DRAFT_AT_NONE, DRAFT_AT_NONE);
    enum mink_code code = parse_columns(&p, &d, out);
    table_draft_deinit(&d);
    return code;
}

void ddl_deinit(struct ddl *d) {
    table_def_unref(d->def);
    for (uint32_t i = 0; i < d->set_count; i++) {
        mem_free(d->set[i].key);
        mem_free(d->set[i].value);
    }
    mem_free(d->set);
    for (uint32_t i = 0; i < d->reset_count; i++) mem_free(d->reset[i]);
    mem_free(d->reset);
    for (uint32_t i = 0; i < d->partition_value_count; i++) {
        mem_free(d->partition_columns[i]);
        mem_free(d->partition_values[i]);
    }
    mem_free(d->partition_columns);
    mem_free(d->partition_values);
    mem_free(d->comment);
    *d = (struct ddl){0};
}
