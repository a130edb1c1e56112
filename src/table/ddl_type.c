// SPDX-License-Identifier: Apache-2.0
// Types as text: the grammar of docs/tables.md#types.
#include "base/mem.h"
#include "base/nearest.h"
#include "table/ddl.h"
#include "table/ddl_internal.h"

#include <string.h>

enum mink_code ddl_expect(struct lexer *x, const char *word, struct error *e) {
    return lexer_accept(x, word) ? MINK_OK : lexer_expected(x, word, e);
}

enum mink_code ddl_read_name(struct lexer *x, const char *what, char **out, uint32_t *at, struct error *e) {
    *out = NULL;
    if (x->token.kind != TOKEN_WORD && x->token.kind != TOKEN_NAME) return lexer_expected(x, what, e);
    *at = x->token.begin;
    *out = lexer_text(x);
    lexer_next(x);
    return MINK_OK;
}

static const struct { const char *word; enum type_kind kind; } words[] = {
    {"BOOLEAN", TYPE_BOOLEAN}, {"BOOL", TYPE_BOOLEAN}, {"TINYINT", TYPE_TINYINT}, {"SMALLINT", TYPE_SMALLINT}, {"INT", TYPE_INT}, {"INTEGER", TYPE_INT},
    {"BIGINT", TYPE_BIGINT}, {"FLOAT", TYPE_FLOAT}, {"DOUBLE", TYPE_DOUBLE}, {"DECIMAL", TYPE_DECIMAL}, {"DEC", TYPE_DECIMAL}, {"NUMERIC", TYPE_DECIMAL},
    {"CHAR", TYPE_CHAR}, {"CHARACTER", TYPE_CHAR}, {"STRING", TYPE_STRING}, {"BINARY", TYPE_BINARY}, {"BYTES", TYPE_BYTES}, {"DATE", TYPE_DATE}, {"TIME", TYPE_TIME},
    {"TIMESTAMP", TYPE_TIMESTAMP}, {"TIMESTAMP_LTZ", TYPE_TIMESTAMP_LTZ}, {"ARRAY", TYPE_ARRAY}, {"MAP", TYPE_MAP}, {"ROW", TYPE_ROW}};

// What other databases call them.
static const struct { const char *word, *use; } foreign[] = {
    {"VARCHAR", "STRING"}, {"TEXT", "STRING"}, {"NVARCHAR", "STRING"}, {"UUID", "STRING"}, {"JSON", "STRING"}, {"VARBINARY", "BYTES"}, {"BLOB", "BYTES"}, {"BYTEA", "BYTES"},
    {"REAL", "FLOAT"}, {"INT2", "SMALLINT"}, {"INT4", "INT"}, {"INT8", "BIGINT"}, {"INT16", "SMALLINT"}, {"INT32", "INT"}, {"INT64", "BIGINT"}, {"LONG", "BIGINT"},
    {"FLOAT4", "FLOAT"}, {"FLOAT8", "DOUBLE"}, {"FLOAT32", "FLOAT"}, {"FLOAT64", "DOUBLE"}, {"DATETIME", "TIMESTAMP"}, {"TIMESTAMPTZ", "TIMESTAMP_LTZ"}, {"STRUCT", "ROW"},
    {"LIST", "ARRAY"}, {"MULTISET", "ARRAY"}, {"SERIAL", "BIGINT"}};

static enum mink_code unknown_type(struct lexer *x, struct error *e) {
    uint32_t at = x->token.begin;
    char *word = lexer_text(x);
    struct nearest near;
    nearest_init(&near, word);
    const char *best = NULL;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) nearest_offer(&near, words[i].word);
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        struct lexer copy = *x;
        if (lexer_is(&copy, foreign[i].word)) best = foreign[i].use;
    }
    if (best) error_set(e, MINK_INVALID, x->reason, "there is no type %.40s; use %s", word, best);
    else if ((best = nearest_found(&near))) error_set(e, MINK_INVALID, x->reason, "there is no type %.40s; did you mean %s?", word, best);
    else error_set(e, MINK_INVALID, x->reason, "there is no type %.40s", word);
    mem_free(word);
    lexer_locate(x, at, e);
    return MINK_INVALID;
}

static enum mink_code read_number(struct lexer *x, const char *what, uint32_t min, uint32_t max, uint32_t *out, struct error *e) {
    const struct token *t = &x->token;
    uint64_t v = 0;
    bool whole = t->kind == TOKEN_NUMBER && t->end - t->begin <= 10;
    for (uint32_t i = t->begin; i < t->end && whole; i++) {
        whole = x->text[i] >= '0' && x->text[i] <= '9';
        v = v * 10 + (uint64_t)(x->text[i] - '0');
    }
    if (t->kind != TOKEN_NUMBER) return lexer_expected(x, what, e);
    if (!whole || v < min || v > max) {
        error_set(e, MINK_INVALID, x->reason, "%s goes from %u to %u", what, min, max);
        lexer_locate(x, t->begin, e);
        return MINK_INVALID;
    }
    *out = (uint32_t)v;
    lexer_next(x);
    return MINK_OK;
}

// "(n)", or what is there without it.
static enum mink_code read_length(struct lexer *x, const char *what, uint32_t min, uint32_t max, uint32_t absent, uint32_t *out, struct error *e) {
    *out = absent;
    if (!lexer_accept(x, "(")) return MINK_OK;
    MINK_TRY(read_number(x, what, min, max, out, e));
    return ddl_expect(x, ")", e);
}

static enum mink_code read_decimal(struct lexer *x, struct type *t, struct error *e) {
    uint32_t precision = 10, scale = 0;
    if (lexer_accept(x, "(")) {
        MINK_TRY(read_number(x, "a precision", 1, 38, &precision, e));
        if (lexer_accept(x, ",")) MINK_TRY(read_number(x, "a scale", 0, precision, &scale, e));
        MINK_TRY(ddl_expect(x, ")", e));
    }
    t->precision = (uint8_t)precision;
    t->scale = (uint8_t)scale;
    return MINK_OK;
}

static enum mink_code read_time(struct lexer *x, struct type *t, uint32_t absent, struct error *e) {
    uint32_t precision;
    MINK_TRY(read_length(x, "a precision", 0, 9, absent, &precision, e));
    t->precision = (uint8_t)precision;
    if (t->kind == TYPE_TIMESTAMP_LTZ || !(lexer_is(x, "WITH") || lexer_is(x, "WITHOUT"))) return MINK_OK;
    uint32_t at = x->token.begin;
    if (lexer_accept(x, "WITHOUT")) {
        // what it is anyway
    } else {
        lexer_next(x);
        if (!lexer_is(x, "LOCAL") || t->kind == TYPE_TIME) {
            error_set(e, MINK_INVALID, x->reason, "there is no %s with a zone of its own%s", type_name(t->kind), t->kind == TYPE_TIME ? "" : "; use TIMESTAMP_LTZ, which holds instants");
            lexer_locate(x, at, e);
            return MINK_INVALID;
        }
        lexer_next(x);
        t->kind = TYPE_TIMESTAMP_LTZ;
    }
    MINK_TRY(ddl_expect(x, "TIME", e));
    return ddl_expect(x, "ZONE", e);
}

static struct type_field *add_field(struct type *t, char *take_name) {
    t->fields = mem_realloc(t->fields, (t->field_count + 1) * sizeof *t->fields);
    t->fields[t->field_count] = (struct type_field){.name = take_name};
    return &t->fields[t->field_count++];
}

static enum mink_code read_fields(struct lexer *x, uint32_t depth, struct type *t, struct error *e) {
    bool round = t->kind == TYPE_ROW && lexer_is(x, "(");
    const char *close = round ? ")" : ">";
    // ROW<> reaches us as the sign <>.
    if (lexer_is(x, "<>")) {
        lexer_expected(x, "< and what is in it", e);
        return MINK_INVALID;
    }
    MINK_TRY(ddl_expect(x, round ? "(" : "<", e));
    switch (t->kind) {
    case TYPE_ARRAY: MINK_TRY(ddl_read_type(x, depth + 1, &add_field(t, mem_strdup("element"))->type, e)); break;
    case TYPE_MAP:
        MINK_TRY(ddl_read_type(x, depth + 2, &add_field(t, mem_strdup("key"))->type, e));
        t->fields[0].type.nullable = false;
        MINK_TRY(ddl_expect(x, ",", e));
        MINK_TRY(ddl_read_type(x, depth + 2, &add_field(t, mem_strdup("value"))->type, e));
        break;
    default:
        do {
            char *name;
            uint32_t at;
            MINK_TRY(ddl_read_name(x, "a field's name", &name, &at, e));
            MINK_TRY(ddl_read_type(x, depth + 1, &add_field(t, name)->type, e));
            if (x->token.kind == TOKEN_STRING) lexer_next(x); // a comment, which nested fields do not keep
        } while (lexer_accept(x, ","));
    }
    // The sign >= can only be a > that stands before something wrong.
    return ddl_expect(x, close, e);
}

static enum mink_code read_type(struct lexer *x, uint32_t depth, struct type *t, struct error *e) {
    if (x->token.kind != TOKEN_WORD) return lexer_expected(x, "a type", e);
    if (depth > TYPE_DEPTH_MAX) {
        error_set(e, MINK_INVALID, "TYPE_NOT_SUPPORTED", "types are nested deeper than %d", TYPE_DEPTH_MAX);
        lexer_locate(x, x->token.begin, e);
        return MINK_INVALID;
    }
    size_t i = 0, count = sizeof words / sizeof words[0];
    while (i < count && !lexer_is(x, words[i].word)) i++;
    if (i == count) return unknown_type(x, e);
    t->kind = words[i].kind;
    lexer_next(x);
    switch (t->kind) {
    case TYPE_DOUBLE: lexer_accept(x, "PRECISION"); break;
    case TYPE_DECIMAL: MINK_TRY(read_decimal(x, t, e)); break;
    case TYPE_CHAR: MINK_TRY(read_length(x, "a length", 1, TYPE_CHAR_LENGTH_MAX, 1, &t->length, e)); break;
    case TYPE_BINARY: MINK_TRY(read_length(x, "a length", 1, TYPE_BINARY_LENGTH_MAX, 1, &t->length, e)); break;
    case TYPE_TIME: MINK_TRY(read_time(x, t, 0, e)); break;
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ: MINK_TRY(read_time(x, t, 6, e)); break;
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_ROW: MINK_TRY(read_fields(x, depth, t, e)); break;
    default: break;
    }
    if (lexer_accept(x, "NOT")) {
        MINK_TRY(ddl_expect(x, "NULL", e));
        t->nullable = false;
    } else {
        lexer_accept(x, "NULL");
    }
    return MINK_OK;
}

enum mink_code ddl_read_type(struct lexer *x, uint32_t depth, struct type *out, struct error *e) {
    *out = (struct type){.nullable = true};
    enum mink_code code = read_type(x, depth, out, e);
    if (code != MINK_OK) type_deinit(out);
    return code;
}

enum mink_code ddl_parse_type(const char *text, size_t size, struct type *out, struct error *e) {
    struct lexer x;
    *out = (struct type){0};
    MINK_TRY(lexer_init(&x, text, size, "BAD_TYPE", e));
    MINK_TRY(ddl_read_type(&x, 0, out, e));
    if (x.token.kind == TOKEN_END) return MINK_OK;
    type_deinit(out);
    return lexer_expected(&x, "the end of the type", e);
}
