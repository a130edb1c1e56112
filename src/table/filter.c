// SPDX-License-Identifier: Apache-2.0
// From text to tree:
//
//   or        := and { OR and }
//   and       := not { AND not }
//   not       := NOT not | ( or ) | TRUE | FALSE | predicate
//   predicate := column compare literal | literal compare column | column | column IS [NOT] NULL
//              | column [NOT] IN ( literal { , literal } ) | column [NOT] BETWEEN literal AND literal | column [NOT] LIKE 'pattern'
//   literal   := [-|+] number | 'text' | X'hex' | DATE 'text' | TIME 'text' | TIMESTAMP 'text' | TRUE | FALSE | NULL
#include "table/filter.h"

#include "base/mem.h"
#include "base/nearest.h"
#include "table/ddl_lex.h"
#include "table/filter_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct parser {
    struct lexer x;
    const struct table_def *d;
    uint32_t depth;
    struct error *e;
};

// 10^38: unscaled decimals are below it.
#define DECIMAL_END ((unsigned __int128)10000000000000000000u * 10000000000000000000u)

enum compare { EQ, NE, LT, LE, GT, GE };

// A literal in the terms of a column. Of numbers the floor on the column's grid is kept, and whether it is the number itself.
struct literal {
    bool null, exact;
    int beyond;       // -1, +1: below or above all values of the type
    __int128 i;       // whole numbers, decimals (scaled), times; booleans
    double real;
    struct bytes text;
};

enum value_class filter_class(const struct arrow_field *f) {
    switch (f->type) {
    case ARROW_BOOL: return CLASS_BOOL;
    case ARROW_INT8:
    case ARROW_INT16:
    case ARROW_INT32:
    case ARROW_INT64:
    case ARROW_DATE32:
    case ARROW_TIME32:
    case ARROW_TIME64:
    case ARROW_TIMESTAMP: return CLASS_INT;
    case ARROW_DECIMAL128: return CLASS_DECIMAL;
    case ARROW_FLOAT32:
    case ARROW_FLOAT64: return CLASS_REAL;
    case ARROW_UTF8:
    case ARROW_BINARY:
    case ARROW_FIXED_BINARY: return CLASS_TEXT;
    default: return CLASS_NONE;
    }
}

static const struct arrow_field *field_of(const struct parser *p, uint32_t column) { return arrow_schema_at(p->d->arrow, column); }

// ---- nodes

static struct node *node_new(enum node_kind kind, uint32_t column) {
    struct node *n = mem_new(struct node);
    n->kind = kind;
    n->column = column;
    return n;
}

static void node_free(struct node *n) {
    if (n == NULL) return;
    for (uint32_t i = 0; i < n->child_count; i++) node_free(n->children[i]);
    for (uint32_t i = 0; n->texts && i < n->set_count; i++) mem_free(n->texts[i].data);
    mem_free(n->children);
    mem_free(n->text_low.data);
    mem_free(n->text_high.data);
    mem_free(n->ints);
    mem_free(n->reals);
    mem_free(n->texts);
    mem_free(n);
}

static void node_add(struct node *n, struct node *take_child) {
    // Powers of two: long ORs are written by programs.
    if ((n->child_count & (n->child_count - 1)) == 0) n->children = mem_realloc(n->children, (n->child_count ? 2 * n->child_count : 1) * sizeof *n->children);
    n->children[n->child_count++] = take_child;
}

static struct node *node_constant(bool value, bool unknown) {
    struct node *n = node_new(NODE_CONSTANT, 0);
    n->value = value;
    n->unknown = unknown;
    return n;
}

static struct node *node_not(struct node *take_child) {
    struct node *n = node_new(NODE_NOT, 0);
    node_add(n, take_child);
    return n;
}

// ---- errors

static enum mink_code bad_literal(struct parser *p, uint32_t column, uint32_t at, const char *wanted) {
    char type[64], text[64];
    type_describe(&p->d->columns[column].type, type, sizeof type);
    error_set(p->e, MINK_INVALID, "BAD_FILTER", "column %.60s is %s: expected %s", p->d->columns[column].name, type, wanted);
    snprintf(text, sizeof text, "%.60s", p->d->columns[column].name);
    error_about(p->e, text, type, NULL);
    return lexer_locate(&p->x, at, p->e);
}

static enum mink_code unknown_column(struct parser *p, const char *name, uint32_t at) {
    struct nearest near;
    nearest_init(&near, name);
    for (uint32_t i = 0; i < p->d->column_count; i++) nearest_offer(&near, p->d->columns[i].name);
    const char *best = nearest_found(&near);
    error_set(p->e, MINK_INVALID, "COLUMN_NOT_FOUND", "table %s.%s has no column \"%.60s\"%s%.60s%s", p->d->database, p->d->name, name, best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
    error_about(p->e, name, best, NULL);
    return lexer_locate(&p->x, at, p->e);
}

// ---- literals

// Digits with point and exponent as an integer scaled by 10^scale: its floor, and whether that is exact.
static bool read_scaled(const char *text, int32_t scale, struct literal *out) {
    bool minus = *text == '-';
    const char *p = text + (*text == '-' || *text == '+'), *digits = p;
    size_t count = strspn(digits, "0123456789"), fraction = 0;
    p += count;
    const char *behind = NULL;
    if (*p == '.') {
        behind = ++p;
        fraction = strspn(behind, "0123456789");
        p += fraction;
    }
    if (count + fraction == 0) return false;
    int64_t exponent = 0;
    if (*p == 'e' || *p == 'E') {
        char *end;
        const char *sign = ++p;
        if (*sign == '+' || *sign == '-') sign++;
        if (*sign < '0' || *sign > '9') return false;
        exponent = strtol(p, &end, 10);
        if (exponent > 1000000) exponent = 1000000;
        if (exponent < -1000000) exponent = -1000000;
        p = end;
    }
    if (*p) return false;
    // How many of the digits, counted from the first one, stand before the point of the scaled number.
    int64_t whole = (int64_t)count + scale + exponent, seen = 0;
    unsigned __int128 v = 0;
    bool rest = false, large = false;
    for (size_t i = 0; i < count + fraction; i++, seen++) {
        uint32_t digit = (uint32_t)((i < count ? digits[i] : behind[i - count]) - '0');
        if (seen >= whole) rest |= digit != 0;
        else large |= __builtin_mul_overflow(v, (unsigned __int128)10, &v) || __builtin_add_overflow(v, (unsigned __int128)digit, &v);
    }
    for (; seen < whole && v != 0 && !large; seen++) large |= __builtin_mul_overflow(v, (unsigned __int128)10, &v);
    if (large || v > DECIMAL_END) {
        out->beyond = minus ? -1 : 1;
        return true;
    }
    out->exact = !rest;
    out->i = minus ? -(__int128)v - rest : (__int128)v;
    return true;
}

// Dates, times and bytes, by the text that stands for them everywhere.
static enum mink_code read_typed(struct parser *p, uint32_t column, const char *text, uint32_t at, struct literal *out) {
    struct arrow_field *field = mem_new(struct arrow_field);
    arrow_field_copy(field, field_of(p, column));
    uint32_t width = arrow_type_bit_width(field) / 8;
    struct arrow_schema *schema = arrow_schema_new(field, 1);
    struct arrow_builder *builder = arrow_builder_new(schema);
    enum mink_code code = arrow_builder_text(builder, 0, text, strlen(text), p->e);
    if (code == MINK_OK) {
        struct arrow_batch b;
        arrow_builder_row(builder);
        arrow_builder_finish(builder, &b);
        const struct arrow_array *a = &b.columns[0];
        if (filter_class(field_of(p, column)) == CLASS_TEXT) {
            const uint8_t *data = a->buffers[width ? 1 : 2].data;
            out->text.size = width;
            if (width == 0) {
                int32_t end;
                memcpy(&end, a->buffers[1].data + 4, 4);
                out->text.size = (size_t)end;
            }
            out->text.data = mem_alloc(out->text.size + 1);
            if (out->text.size) memcpy(out->text.data, data, out->text.size);
        } else {
            int64_t v = 0;
            memcpy(&v, a->buffers[1].data, width);
            out->i = width == 4 ? (int32_t)v : v;
        }
        arrow_batch_deinit(&b);
    } else {
        if (p->e) snprintf(p->e->reason, sizeof p->e->reason, "BAD_FILTER");
        lexer_locate(&p->x, at, p->e);
    }
    arrow_builder_free(builder);
    arrow_schema_unref(schema);
    out->exact = true;
    return code == MINK_OK ? MINK_OK : MINK_INVALID;
}

static enum mink_code read_number(struct parser *p, uint32_t column, const char *text, uint32_t at, struct literal *out) {
    const struct arrow_field *f = field_of(p, column);
    if (filter_class(f) == CLASS_REAL) {
        struct literal whole = {0};
        if (!read_scaled(text, 0, &whole)) return bad_literal(p, column, at, "a number"); // the form; nan, inf and hexadecimal are none
        out->real = strtod(text, NULL);
        if (f->type == ARROW_FLOAT32) out->real = (double)(float)out->real; // literals are cast to the column's type
        out->exact = true;
        return MINK_OK;
    }
    if (!read_scaled(text, f->type == ARROW_DECIMAL128 ? f->scale : 0, out)) return bad_literal(p, column, at, "a number");
    uint32_t bits = arrow_type_bit_width(f);
    if (f->type != ARROW_DECIMAL128 && out->beyond == 0) {
        __int128 max = ((__int128)1 << (bits - 1)) - 1;
        if (out->i > max) out->beyond = 1;
        if (out->i < -max - 1) out->beyond = -1;
    }
    return MINK_OK;
}

static bool is_number_type(const struct arrow_field *f) {
    return (f->type >= ARROW_INT8 && f->type <= ARROW_INT64) || f->type == ARROW_DECIMAL128 || filter_class(f) == CLASS_REAL;
}

static bool typed_word(const struct lexer *x) {
    if (!(lexer_is(x, "DATE") || lexer_is(x, "TIME") || lexer_is(x, "TIMESTAMP") || lexer_is(x, "X"))) return false;
    struct lexer ahead = lexer_ahead(x);
    return ahead.token.kind == TOKEN_STRING;
}

static bool is_literal(const struct lexer *x) {
    return x->token.kind == TOKEN_NUMBER || x->token.kind == TOKEN_STRING || lexer_is(x, "-") || lexer_is(x, "+") || lexer_is(x, "TRUE") || lexer_is(x, "FALSE") || lexer_is(x, "NULL") || typed_word(x);
}

// What the type of a column wants, in words.
static const char *wanted_of(const struct arrow_field *f) {
    switch (filter_class(f)) {
    case CLASS_BOOL: return "TRUE or FALSE";
    case CLASS_TEXT: return f->type == ARROW_UTF8 ? "a text in single quotes" : "X'hexadecimal digits'";
    default: return is_number_type(f) ? "a number" : f->type == ARROW_DATE32 ? "a date like '2026-12-01'" : f->type == ARROW_TIMESTAMP ? "a time like '2026-12-01 10:00:00'" : "a time like '10:00:00'";
    }
}

static enum mink_code read_literal(struct parser *p, uint32_t column, struct literal *out) {
    const struct arrow_field *f = field_of(p, column);
    uint32_t at = p->x.token.begin;
    *out = (struct literal){0};
    if (!is_literal(&p->x)) return lexer_expected(&p->x, wanted_of(f), p->e);
    if (lexer_accept(&p->x, "NULL")) {
        out->null = true;
        return MINK_OK;
    }
    if (lexer_is(&p->x, "TRUE") || lexer_is(&p->x, "FALSE")) {
        if (f->type != ARROW_BOOL) return bad_literal(p, column, at, wanted_of(f));
        out->i = lexer_is(&p->x, "TRUE");
        out->exact = true;
        lexer_next(&p->x);
        return MINK_OK;
    }
    bool hex = lexer_is(&p->x, "X"), typed = typed_word(&p->x), minus = lexer_is(&p->x, "-");
    if (typed || minus || lexer_is(&p->x, "+")) lexer_next(&p->x);
    bool text = p->x.token.kind == TOKEN_STRING;
    if (!text && p->x.token.kind != TOKEN_NUMBER) return lexer_expected(&p->x, "a number", p->e);
    bool binary = f->type == ARROW_BINARY || f->type == ARROW_FIXED_BINARY;
    bool fits = is_number_type(f) ? !typed : f->type == ARROW_BOOL ? false : f->type == ARROW_UTF8 ? text && !typed : binary ? text && (hex || !typed) : text && !hex;
    if (!fits) return bad_literal(p, column, at, wanted_of(f));
    char *raw = lexer_text(&p->x);
    enum mink_code code = MINK_OK;
    if (is_number_type(f)) {
        char *signed_text = mem_printf("%s%s", minus ? "-" : "", raw);
        code = read_number(p, column, signed_text, at, out);
        mem_free(signed_text);
    } else if (f->type == ARROW_UTF8) {
        out->text = (struct bytes){(uint8_t *)mem_strdup(raw), strlen(raw)};
        out->exact = true;
    } else {
        code = read_typed(p, column, raw, at, out);
    }
    mem_free(raw);
    if (code == MINK_OK) lexer_next(&p->x);
    return code;
}

// ---- comparisons become ranges

static struct node *empty_range(enum node_kind kind, uint32_t column) {
    struct node *n = node_new(kind, column);
    n->low = 1;
    return n;
}

static struct node *int_range(const struct arrow_field *f, uint32_t column, enum compare op, const struct literal *l) {
    enum node_kind kind = filter_class(f) == CLASS_DECIMAL ? NODE_DECIMAL : NODE_INT;
    __int128 max = kind == NODE_DECIMAL ? (__int128)DECIMAL_END : ((__int128)1 << (arrow_type_bit_width(f) - 1)) - 1, min = -max - 1;
    if (l->beyond) {
        bool all = l->beyond > 0 ? op == LT || op == LE || op == NE : op == GT || op == GE || op == NE;
        struct node *n = empty_range(kind, column);
        n->negated = all; // of what is not null
        return n;
    }
    struct node *n = node_new(kind, column);
    n->low = min;
    n->high = max;
    switch (op) { // i is the floor: with a rest, "below" means up to i and "above" from i + 1
    case EQ:
    case NE:
        n->low = l->exact ? l->i : 1;
        n->high = l->exact ? l->i : 0;
        n->negated = op == NE;
        break;
    case LT: n->high = l->exact ? l->i - 1 : l->i; break;
    case LE: n->high = l->i; break;
    case GT: n->low = l->i + 1; break;
    case GE: n->low = l->exact ? l->i : l->i + 1; break;
    }
    return n;
}

static struct node *real_range(const struct arrow_field *f, uint32_t column, enum compare op, double v) {
    struct node *n = node_new(NODE_REAL, column);
    bool single = f->type == ARROW_FLOAT32;
    double below = single ? (double)nextafterf((float)v, -INFINITY) : nextafter(v, -INFINITY), above = single ? (double)nextafterf((float)v, INFINITY) : nextafter(v, INFINITY);
    n->real_low = -INFINITY;
    n->real_high = INFINITY;
    switch (op) {
    case EQ:
    case NE:
        n->real_low = n->real_high = v;
        n->negated = op == NE;
        break;
    case LT: n->real_high = below; break;
    case LE: n->real_high = v; break;
    case GT: n->real_low = above; break;
    case GE: n->real_low = v; break;
    }
    return n;
}

static struct bytes bytes_copy(struct bytes b) {
    struct bytes copy = {mem_alloc(b.size + 1), b.size};
    if (b.size) memcpy(copy.data, b.data, b.size);
    return copy;
}

static struct node *text_range(uint32_t column, enum compare op, struct literal *l) {
    struct node *n = node_new(NODE_TEXT, column);
    if (op == EQ || op == NE || op == GT || op == GE) {
        n->text_low = bytes_copy(l->text);
        n->has_low = true;
        n->low_open = op == GT;
    }
    if (op == EQ || op == NE || op == LT || op == LE) {
        n->text_high = bytes_copy(l->text);
        n->has_high = true;
        n->high_open = op == LT;
    }
    n->negated = op == NE;
    n->is_equal = op == EQ || op == NE;
    return n;
}

// Keeps what it needs of the literal; the caller frees it.
static struct node *compare_node(struct parser *p, uint32_t column, enum compare op, struct literal *l) {
    const struct arrow_field *f = field_of(p, column);
    if (l->null) return node_constant(false, true);
    switch (filter_class(f)) {
    case CLASS_BOOL: {
        struct node *n = node_new(NODE_BOOL, column);
        return (l->i != 0) == (op == EQ) ? n : node_not(n);
    }
    case CLASS_REAL: return real_range(f, column, op, l->real);
    case CLASS_TEXT: return text_range(column, op, l);
    default: return int_range(f, column, op, l);
    }
}

static bool read_compare(struct lexer *x, enum compare *op) {
    static const struct { const char *sign; enum compare op; } signs[] = {{"=", EQ}, {"<>", NE}, {"!=", NE}, {"<", LT}, {"<=", LE}, {">", GT}, {">=", GE}};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (!lexer_accept(x, signs[i].sign)) continue;
        *op = signs[i].op;
        return true;
    }
    return false;
}

// ---- predicates

static enum mink_code read_column(struct parser *p, uint32_t *column) {
    if (p->x.token.kind != TOKEN_WORD && p->x.token.kind != TOKEN_NAME) return lexer_expected(&p->x, "a column", p->e);
    uint32_t at = p->x.token.begin;
    char *name = lexer_text(&p->x);
    int32_t found = table_def_find(p->d, name);
    enum mink_code code = found < 0 ? unknown_column(p, name, at) : MINK_OK;
    mem_free(name);
    if (code != MINK_OK) return code;
    *column = (uint32_t)found;
    lexer_next(&p->x);
    return MINK_OK;
}

static enum mink_code comparable(struct parser *p, uint32_t column, uint32_t at, enum compare op) {
    enum value_class class = filter_class(field_of(p, column));
    if (class == CLASS_NONE) return bad_literal(p, column, at, "IS NULL or IS NOT NULL, which is all that can be asked of it");
    if (class == CLASS_BOOL && op != EQ && op != NE) return bad_literal(p, column, at, "= or <>");
    return MINK_OK;
}

static enum mink_code read_comparison(struct parser *p, uint32_t column, enum compare op, struct node **out) {
    struct literal l;
    MINK_TRY(read_literal(p, column, &l));
    *out = compare_node(p, column, op, &l);
    mem_free(l.text.data);
    return MINK_OK;
}

static int order_ints(const void *a, const void *b) {
    __int128 x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static int order_reals(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int order_texts(const void *a, const void *b) {
    const struct bytes *x = a, *y = b;
    return bytes_order(x->data, x->size, y->data, y->size);
}

static void set_add(struct node *n, enum value_class class, const struct literal *l) {
    uint32_t i = n->set_count++;
    size_t room = (i & (i - 1)) == 0 ? (i ? 2 * (size_t)i : 1) : 0; // grows by powers of two
    if (class == CLASS_REAL) {
        if (room) n->reals = mem_realloc(n->reals, room * sizeof *n->reals);
        n->reals[i] = l->real;
    } else if (class == CLASS_TEXT) {
        if (room) n->texts = mem_realloc(n->texts, room * sizeof *n->texts);
        n->texts[i] = l->text;
    } else {
        if (room) n->ints = mem_realloc(n->ints, room * sizeof *n->ints);
        n->ints[i] = l->i;
    }
}

static enum mink_code read_set(struct parser *p, uint32_t column, struct node *n) {
    enum value_class class = filter_class(field_of(p, column));
    if (!lexer_accept(&p->x, "(")) return lexer_expected(&p->x, "( and a list", p->e);
    do {
        struct literal l;
        MINK_TRY(read_literal(p, column, &l));
        if (l.null) n->set_null = true;
        else if (l.beyond || !l.exact) continue; // no value of the column equals it
        else set_add(n, class, &l);
    } while (lexer_accept(&p->x, ","));
    if (!lexer_accept(&p->x, ")")) return lexer_expected(&p->x, ", or )", p->e);
    if (n->ints) qsort(n->ints, n->set_count, sizeof *n->ints, order_ints);
    if (n->reals) qsort(n->reals, n->set_count, sizeof *n->reals, order_reals);
    if (n->texts) qsort(n->texts, n->set_count, sizeof *n->texts, order_texts);
    return MINK_OK;
}

static enum mink_code read_in(struct parser *p, uint32_t column, struct node **out) {
    struct node *n = node_new(NODE_IN, column);
    enum mink_code code = read_set(p, column, n);
    if (code == MINK_OK) *out = n;
    else node_free(n);
    return code;
}

static enum mink_code read_between(struct parser *p, uint32_t column, struct node **out) {
    struct node *both = node_new(NODE_AND, 0), *part = NULL;
    enum mink_code code = read_comparison(p, column, GE, &part);
    if (code == MINK_OK) {
        node_add(both, part);
        code = lexer_accept(&p->x, "AND") ? read_comparison(p, column, LE, &part) : lexer_expected(&p->x, "AND", p->e);
        if (code == MINK_OK) node_add(both, part);
    }
    if (code == MINK_OK) *out = both;
    else node_free(both);
    return code;
}

// % any characters, _ one; \ before one of the three means itself.
static enum mink_code read_like(struct parser *p, uint32_t column, struct node **out) {
    uint32_t at = p->x.token.begin;
    if (field_of(p, column)->type != ARROW_UTF8) {
        error_set(p->e, MINK_INVALID, "BAD_FILTER", "LIKE is for CHAR and STRING; column %.60s is %s", p->d->columns[column].name, type_name(p->d->columns[column].type.kind));
        return lexer_locate(&p->x, at, p->e);
    }
    if (lexer_accept(&p->x, "NULL")) {
        *out = node_constant(false, true);
        return MINK_OK;
    }
    if (p->x.token.kind != TOKEN_STRING) return lexer_expected(&p->x, "a pattern in single quotes", p->e);
    struct node *n = node_new(NODE_LIKE, column);
    char *pattern = lexer_text(&p->x);
    size_t size = strlen(pattern), i = 0, prefix = 0;
    n->text_low = (struct bytes){(uint8_t *)pattern, size};
    n->text_high.data = mem_alloc(size + 1);
    for (; i < size && pattern[i] != '%' && pattern[i] != '_'; i++) {
        if (pattern[i] == '\\' && ++i == size) {
            node_free(n);
            error_set(p->e, MINK_INVALID, "BAD_FILTER", "the pattern ends with an escape");
            return lexer_locate(&p->x, at, p->e);
        }
        n->text_high.data[prefix++] = (uint8_t)pattern[i];
    }
    for (size_t k = i; k < size; k++) {
        if (pattern[k] != '\\' || ++k < size) continue;
        node_free(n);
        error_set(p->e, MINK_INVALID, "BAD_FILTER", "the pattern ends with an escape");
        return lexer_locate(&p->x, at, p->e);
    }
    n->text_high.size = prefix;
    n->like = i == size ? LIKE_EXACT : pattern[i] == '%' && i + 1 == size ? LIKE_PREFIX : LIKE_ANY;
    lexer_next(&p->x);
    *out = n;
    return MINK_OK;
}

static enum mink_code read_literal_first(struct parser *p, struct node **out) {
    static const enum compare mirrored[] = {EQ, NE, GT, GE, LT, LE};
    struct lexer literal = p->x;
    enum compare op;
    uint32_t column;
    // What the literal means, its column says: so that is found first.
    if (lexer_is(&p->x, "-") || lexer_is(&p->x, "+") || typed_word(&p->x)) lexer_next(&p->x);
    lexer_next(&p->x);
    if (!read_compare(&p->x, &op)) return lexer_expected(&p->x, "a comparison", p->e);
    uint32_t at = p->x.token.begin;
    MINK_TRY(read_column(p, &column));
    MINK_TRY(comparable(p, column, at, op));
    struct lexer after = p->x;
    p->x = literal;
    MINK_TRY(read_comparison(p, column, mirrored[op], out));
    p->x = after;
    return MINK_OK;
}

static enum mink_code read_predicate(struct parser *p, struct node **out) {
    uint32_t column, at = p->x.token.begin;
    enum compare op;
    if (is_literal(&p->x)) return read_literal_first(p, out);
    MINK_TRY(read_column(p, &column));
    if (lexer_accept(&p->x, "IS")) {
        bool not = lexer_accept(&p->x, "NOT");
        if (!lexer_accept(&p->x, "NULL")) return lexer_expected(&p->x, not ? "NULL" : "NULL or NOT NULL", p->e);
        *out = node_new(NODE_IS_NULL, column);
        if (not) *out = node_not(*out);
        return MINK_OK;
    }
    if (read_compare(&p->x, &op)) {
        MINK_TRY(comparable(p, column, at, op));
        return read_comparison(p, column, op, out);
    }
    bool not = lexer_accept(&p->x, "NOT");
    if (lexer_is(&p->x, "IN") || lexer_is(&p->x, "BETWEEN")) {
        bool in = lexer_is(&p->x, "IN");
        lexer_next(&p->x);
        MINK_TRY(comparable(p, column, at, in ? EQ : LE));
        MINK_TRY(in ? read_in(p, column, out) : read_between(p, column, out));
    } else if (lexer_accept(&p->x, "LIKE")) {
        MINK_TRY(read_like(p, column, out));
    } else if (!not && field_of(p, column)->type == ARROW_BOOL) {
        *out = node_new(NODE_BOOL, column);
    } else {
        return lexer_expected(&p->x, not ? "IN, BETWEEN or LIKE" : "a comparison, IS, IN, BETWEEN or LIKE", p->e);
    }
    if (not) *out = node_not(*out);
    return MINK_OK;
}

// ---- logic

static enum mink_code read_or(struct parser *p, struct node **out);

static enum mink_code read_not(struct parser *p, struct node **out) {
    if (p->depth == FILTER_DEPTH_MAX) {
        error_set(p->e, MINK_INVALID, "BAD_FILTER", "nested deeper than %d", FILTER_DEPTH_MAX);
        return lexer_locate(&p->x, p->x.token.begin, p->e);
    }
    p->depth++;
    enum mink_code code;
    struct lexer ahead = lexer_ahead(&p->x);
    bool truth = lexer_is(&p->x, "TRUE");
    if (lexer_accept(&p->x, "NOT")) {
        code = read_not(p, out);
        if (code == MINK_OK) *out = node_not(*out);
    } else if (lexer_accept(&p->x, "(")) {
        code = read_or(p, out);
        if (code == MINK_OK && !lexer_accept(&p->x, ")")) {
            node_free(*out);
            code = lexer_expected(&p->x, "AND, OR or )", p->e);
        }
    } else if ((truth || lexer_is(&p->x, "FALSE")) && (ahead.token.kind == TOKEN_END || lexer_is(&ahead, ")") || lexer_is(&ahead, "AND") || lexer_is(&ahead, "OR"))) {
        lexer_next(&p->x);
        *out = node_constant(truth, false);
        code = MINK_OK;
    } else {
        code = read_predicate(p, out);
    }
    p->depth--;
    return code;
}

static enum mink_code read_parts(struct parser *p, enum node_kind kind, struct node **out) {
    const char *word = kind == NODE_AND ? "AND" : "OR";
    struct node *n = NULL, *part;
    enum mink_code code = kind == NODE_AND ? read_not(p, &part) : read_parts(p, NODE_AND, &part);
    while (code == MINK_OK && lexer_accept(&p->x, word)) {
        if (n == NULL) {
            n = node_new(kind, 0);
            node_add(n, part);
        }
        code = kind == NODE_AND ? read_not(p, &part) : read_parts(p, NODE_AND, &part);
        if (code == MINK_OK) node_add(n, part);
    }
    if (code != MINK_OK) node_free(n);
    else *out = n ? n : part;
    return code;
}

static enum mink_code read_or(struct parser *p, struct node **out) { return read_parts(p, NODE_OR, out); }

static uint32_t depth_of(const struct node *n) {
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < n->child_count; i++) {
        uint32_t depth = depth_of(n->children[i]);
        if (depth > deepest) deepest = depth;
    }
    return deepest + 1;
}

enum mink_code filter_parse(const char *text, const struct table_def *d, struct filter **out, struct error *e) {
    struct error unread;
    struct parser p = {.d = d, .e = e ? e : &unread};
    struct node *root;
    *out = NULL;
    MINK_TRY(lexer_init(&p.x, text, strlen(text), "BAD_FILTER", p.e));
    MINK_TRY(read_or(&p, &root));
    if (p.x.token.kind != TOKEN_END) {
        node_free(root);
        return lexer_expected(&p.x, "AND, OR or the end", p.e);
    }
    *out = mem_new(struct filter);
    **out = (struct filter){table_def_ref((struct table_def *)d), root, depth_of(root)};
    return MINK_OK;
}

void filter_free(struct filter *f) {
    if (f == NULL) return;
    table_def_unref(f->def);
    node_free(f->root);
    mem_free(f);
}

static void mark_columns(const struct node *n, bool *out_used) {
    if (n->kind >= NODE_IS_NULL) out_used[n->column] = true;
    for (uint32_t i = 0; i < n->child_count; i++) mark_columns(n->children[i], out_used);
}

void filter_columns(const struct filter *f, bool *out_used) { mark_columns(f->root, out_used); }
