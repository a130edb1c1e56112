// SPDX-License-Identifier: Apache-2.0
// Filters: text → tree → column-at-a-time evaluation.
//
//   or     := and { OR and }            predicate := column compare literal | literal compare column | column [NOT] IN (literal, …)
//   and    := not { AND not }                     | column [NOT] BETWEEN literal AND literal | column [NOT] LIKE 'pattern'
//   not    := NOT not | ( or ) | predicate        | column IS [NOT] NULL | boolean column
// Three-valued: a node yields two bit arrays, true and known; a row passes when it is true. LIKE takes % and _ with \ as escape.
#include "table/filter.h"

#include "base/mem.h"
#include "base/nearest.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DEPTH_MAX 64
#define NODES_MAX 10000

enum node_kind { NODE_OR, NODE_AND, NODE_NOT, NODE_COMPARE, NODE_IN, NODE_LIKE, NODE_IS_NULL, NODE_TRUE_COLUMN, NODE_CONSTANT };
enum compare { EQ, NE, LT, LE, GT, GE };

// A literal in the column's own terms: integers (also bool, dates, times, timestamps) as i, floats as d, decimals as dec, text as bytes.
struct literal { int64_t i; double d; __int128 dec; char *bytes; size_t size; int edge; /* -1 below, +1 above every value of the type */ };

struct node {
    enum node_kind kind;
    enum compare op;
    uint32_t column;
    struct literal *literals;
    uint32_t literal_count;
    bool value; // CONSTANT
    struct node *left, *right;
};

struct filter { struct table_def *def; struct node *root; };

struct parser {
    const char *text, *at;
    const struct table_def *d;
    struct error *e;
    uint32_t depth, nodes;
    enum mink_code code;
};

static void node_free(struct node *n) {
    if (!n) return;
    node_free(n->left);
    node_free(n->right);
    for (uint32_t i = 0; i < n->literal_count; i++) mem_free(n->literals[i].bytes);
    mem_free(n->literals);
    mem_free(n);
}

// ---- lexing

static void blank(struct parser *p) {
    while (isspace((unsigned char)*p->at)) p->at++;
}

static void *fail(struct parser *p, const char *what) {
    if (p->code != MINK_OK) return NULL;
    int column = (int)(p->at - p->text) + 1;
    char found[24];
    snprintf(found, sizeof found, "%.*s", (int)strcspn(p->at, " \t\n()") > 20 ? 20 : (int)strcspn(p->at, " \t\n()"), p->at);
    p->code = error_set(p->e, MINK_INVALID, "BAD_FILTER", "filter, column %d: %s, found %s%s%s", column, what, *p->at ? "\"" : "", *p->at ? (found[0] ? found : "(") : "the end", *p->at ? "\"" : "");
    // The text around it, and a caret below.
    int from = column - 1 > 60 ? column - 61 : 0;
    error_hint(p->e, "%.100s\n%*s^", p->text + from, column - 1 - from, "");
    return NULL;
}

static bool keyword(struct parser *p, const char *word) {
    size_t size = strlen(word);
    blank(p);
    if (strncasecmp(p->at, word, size) != 0 || isalnum((unsigned char)p->at[size]) || p->at[size] == '_') return false;
    p->at += size;
    return true;
}

static bool symbol(struct parser *p, const char *s) {
    blank(p);
    if (strncmp(p->at, s, strlen(s)) != 0) return false;
    p->at += strlen(s);
    return true;
}

static bool comparison(struct parser *p, enum compare *op) {
    static const struct { const char *text; enum compare op; } ops[] = {{"<=", LE}, {">=", GE}, {"<>", NE}, {"!=", NE}, {"==", EQ}, {"=", EQ}, {"<", LT}, {">", GT}};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (symbol(p, ops[i].text)) {
            *op = ops[i].op;
            return true;
        }
    return false;
}

// An identifier, plain, "quoted" or `quoted`; false when there is none.
static bool identifier(struct parser *p, char *out, size_t size) {
    size_t n = 0;
    blank(p);
    char quote = *p->at == '"' || *p->at == '`' ? *p->at : 0;
    const char *at = p->at + (quote != 0);
    if (!quote && !isalpha((unsigned char)*at) && *at != '_' && (unsigned char)*at < 0x80) return false;
    while (*at && n + 1 < size) {
        if (quote ? *at == quote : !(isalnum((unsigned char)*at) || *at == '_' || (unsigned char)*at >= 0x80)) break;
        out[n++] = *at++;
    }
    out[n] = 0;
    if (quote && *at++ != quote) return false;
    p->at = at;
    return n > 0;
}

static bool column_name(struct parser *p, uint32_t *column) {
    char name[512];
    const char *begin = p->at;
    if (!identifier(p, name, sizeof name)) return false;
    int32_t found = table_def_find(p->d, name);
    if (found >= 0) {
        *column = (uint32_t)found;
        return true;
    }
    if (p->code != MINK_OK) return false;
    struct nearest near;
    nearest_init(&near, name);
    for (uint32_t i = 0; i < p->d->column_count; i++) nearest_offer(&near, p->d->columns[i].name);
    const char *best = nearest_found(&near);
    p->code = error_set(p->e, MINK_INVALID, "COLUMN_NOT_FOUND", "filter, column %d: table %s.%s has no column %s%s%s%s", (int)(begin - p->text) + 1, p->d->database, p->d->name, name, best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
    error_about(p->e, name, best, NULL);
    return false;
}

// ---- literals

struct token { bool string, negative; char *text; size_t size; };

static bool literal_token(struct parser *p, struct token *t) {
    struct buffer b;
    *t = (struct token){0};
    blank(p);
    buffer_init(&b, 1 << 20);
    // DATE '2026-01-01', TIMESTAMP '…', TIME '…': the word only says what the column's type says already.
    const char *begin = p->at;
    if ((keyword(p, "DATE") || keyword(p, "TIMESTAMP") || keyword(p, "TIME")) && (blank(p), *p->at != '\'')) p->at = begin;
    blank(p);
    if (*p->at == '\'') {
        t->string = true;
        for (p->at++; *p->at; p->at++) {
            if (*p->at == '\'' && *++p->at != '\'') break;
            buffer_put_u8(&b, (uint8_t)*p->at);
        }
        if (p->at[-1] != '\'' || p->at - 1 == begin) {
            buffer_deinit(&b);
            fail(p, "expected the closing quote of a text");
            return false;
        }
    } else {
        const char *at = p->at;
        if (*at == '-' || *at == '+') at++;
        if (!isdigit((unsigned char)*at) && *at != '.') {
            bool truth = keyword(p, "TRUE");
            if (!truth && !keyword(p, "FALSE")) {
                buffer_deinit(&b);
                return false;
            }
            buffer_put_string(&b, truth ? "true" : "false");
        } else {
            while (isalnum((unsigned char)*at) || *at == '.' || ((*at == '-' || *at == '+') && (at[-1] == 'e' || at[-1] == 'E'))) at++;
            if (at - p->at > 100) {
                buffer_deinit(&b);
                fail(p, "expected a number of at most 100 digits");
                return false;
            }
            t->negative = *p->at == '-';
            buffer_put(&b, p->at + (*p->at == '+'), (size_t)(at - p->at) - (*p->at == '+'));
            p->at = at;
        }
    }
    t->size = b.size;
    t->text = mem_strdup(buffer_string(&b));
    if (t->string && strlen(t->text) != t->size) { // zero characters are kept
        mem_free(t->text);
        t->text = mem_alloc(b.size + 1);
        memcpy(t->text, b.data, b.size);
        t->text[b.size] = 0;
    }
    buffer_deinit(&b);
    return true;
}

static bool is_integer_type(enum arrow_type t) { return t >= ARROW_INT8 && t <= ARROW_INT64; }

// A number against an integer column: exact when it is whole; else moved to the neighbour, with the comparison saying on which side it lies.
static bool integer_literal(struct parser *p, const struct arrow_field *f, const char *text, enum compare *op, struct literal *out, bool *never_equal) {
    static const int64_t mins[] = {INT8_MIN, INT16_MIN, INT32_MIN, INT64_MIN}, maxs[] = {INT8_MAX, INT16_MAX, INT32_MAX, INT64_MAX};
    char *end;
    long double v = strtold(text, &end);
    if (*end || end == text || isnan((double)v)) return fail(p, "expected a number") != NULL;
    long double whole = floorl(v);
    int at = f->type - ARROW_INT8;
    *never_equal = false;
    if (v > (long double)maxs[at]) out->edge = 1;
    else if (v < (long double)mins[at]) out->edge = -1;
    else if (whole != v) {
        // x < 2.5 is x <= 2; x > 2.5 is x > 2; x = 2.5 never.
        *never_equal = true;
        out->i = (int64_t)whole;
        if (op && (*op == LT || *op == LE)) *op = LE;
        else if (op && (*op == GT || *op == GE)) *op = GT;
    } else {
        out->i = strpbrk(text, ".eE") ? (int64_t)whole : strtoll(text, NULL, 10);
    }
    if (out->edge) *never_equal = true;
    return true;
}

// Through the type's own text form, so that dates, times, decimals and the rest read here as everywhere.
static bool typed_literal(struct parser *p, uint32_t column, const struct token *t, struct literal *out) {
    struct arrow_field *field = mem_new(struct arrow_field);
    arrow_field_copy(field, arrow_schema_at(p->d->arrow, column));
    enum arrow_type type = field->type;
    int32_t width = field->width;
    struct arrow_schema *schema = arrow_schema_new(field, 1);
    struct arrow_builder *builder = arrow_builder_new(schema);
    struct arrow_batch batch = {0};
    struct error e;
    enum mink_code code = arrow_builder_text(builder, 0, t->text, t->size, &e);
    if (code == MINK_OK) {
        arrow_builder_row(builder);
        arrow_builder_finish(builder, &batch);
        const struct arrow_array *a = &batch.columns[0];
        const uint8_t *data = a->buffers[1].data;
        int32_t offsets[2];
        switch (type) {
        case ARROW_BOOL: out->i = data[0] & 1; break;
        case ARROW_DATE32:
        case ARROW_TIME32: {
            int32_t v;
            memcpy(&v, data, 4);
            out->i = v;
            break;
        }
        case ARROW_TIME64:
        case ARROW_TIMESTAMP: memcpy(&out->i, data, 8); break;
        case ARROW_FLOAT32: {
            float v;
            memcpy(&v, data, 4);
            out->d = (double)v;
            break;
        }
        case ARROW_FLOAT64: memcpy(&out->d, data, 8); break;
        case ARROW_DECIMAL128: memcpy(&out->dec, data, 16); break;
        case ARROW_UTF8:
        case ARROW_BINARY:
            memcpy(offsets, data, 8);
            out->size = (size_t)offsets[1];
            out->bytes = mem_alloc(out->size + 1);
            if (out->size) memcpy(out->bytes, a->buffers[2].data, out->size);
            out->bytes[out->size] = 0;
            break;
        case ARROW_FIXED_BINARY:
            out->size = (size_t)width;
            out->bytes = mem_alloc(out->size + 1);
            memcpy(out->bytes, data, out->size);
            break;
        default: code = MINK_INVALID; error_set(&e, MINK_INVALID, "BAD_FILTER", "values of this type cannot be compared");
        }
    }
    arrow_batch_deinit(&batch);
    arrow_builder_free(builder);
    arrow_schema_unref(schema);
    if (code == MINK_OK) return true;
    if (p->code == MINK_OK) {
        char describe[96];
        arrow_field_describe(arrow_schema_at(p->d->arrow, column), describe, sizeof describe);
        p->code = error_set(p->e, MINK_INVALID, "BAD_FILTER", "filter, column %d: %s is not a value of column %s (%s)", (int)(p->at - p->text) - (int)t->size + 1, t->text, p->d->columns[column].name, describe);
        error_about(p->e, p->d->columns[column].name, describe, t->text);
    }
    return false;
}

// A literal for a column. never_equal: no value of the column's type equals it.
static bool literal_for(struct parser *p, uint32_t column, enum compare *op, struct literal *out, bool *never_equal) {
    struct token t;
    const struct arrow_field *f = arrow_schema_at(p->d->arrow, column);
    *out = (struct literal){0};
    *never_equal = false;
    if (!literal_token(p, &t)) {
        fail(p, "expected a literal");
        return false;
    }
    bool good;
    if (is_integer_type(f->type)) good = integer_literal(p, f, t.text, op, out, never_equal);
    else if (f->type == ARROW_FLOAT32 && !t.string) { // compared as double: 0.1 must not become the float 0.1
        char *end;
        out->d = strtod(t.text, &end);
        good = *end == 0 && end != t.text;
        if (!good) fail(p, "expected a number");
    } else if ((f->type == ARROW_UTF8) != t.string && f->type == ARROW_UTF8) {
        good = fail(p, "expected a text in single quotes") != NULL;
    } else {
        good = typed_literal(p, column, &t, out);
    }
    mem_free(t.text);
    return good;
}

// ---- parsing

static struct node *parse_or(struct parser *p);

static struct node *new_node(struct parser *p, enum node_kind kind) {
    if (++p->nodes > NODES_MAX) return fail(p, "the filter is too large");
    struct node *n = mem_new(struct node);
    n->kind = kind;
    return n;
}

static struct node *join(struct parser *p, enum node_kind kind, struct node *left, struct node *right) {
    struct node *n = left && (right || kind == NODE_NOT) ? new_node(p, kind) : NULL;
    if (!n) {
        node_free(left);
        node_free(right);
        return NULL;
    }
    n->left = left;
    n->right = right;
    return n;
}

static struct node *with_literal(struct parser *p, enum node_kind kind, uint32_t column, enum compare op) {
    struct node *n = new_node(p, kind);
    bool never;
    if (!n) return NULL;
    n->column = column;
    n->op = op;
    n->literals = mem_new_array(struct literal, 1);
    if (!literal_for(p, column, &n->op, &n->literals[0], &never)) {
        node_free(n);
        return NULL;
    }
    n->literal_count = 1;
    // With a literal between or beyond the type's values: = never, <> always (where the column is not null).
    if (never && (op == EQ || op == NE) && kind == NODE_COMPARE) {
        n->literals[0].edge = 1;
        n->op = op == EQ ? GE : LT;
    }
    return n;
}

static struct node *parse_in(struct parser *p, uint32_t column) {
    struct node *n = new_node(p, NODE_IN);
    if (!n) return NULL;
    n->column = column;
    if (!symbol(p, "(")) fail(p, "expected ( after IN");
    while (p->code == MINK_OK) {
        struct literal l;
        bool never;
        if (!literal_for(p, column, NULL, &l, &never)) break;
        if (never) { // no row can have it
            mem_free(l.bytes);
        } else {
            n->literals = mem_realloc(n->literals, (n->literal_count + 1) * sizeof *n->literals);
            n->literals[n->literal_count++] = l;
        }
        if (n->literal_count > NODES_MAX) fail(p, "the list is too long");
        if (symbol(p, ")")) return n;
        if (!symbol(p, ",")) fail(p, "expected , or ) in the list");
    }
    node_free(n);
    return NULL;
}

static struct node *predicate(struct parser *p) {
    uint32_t column;
    enum compare op;
    blank(p);
    if (*p->at == '\'' || isdigit((unsigned char)*p->at) || *p->at == '-' || *p->at == '.') { // literal first: 10 < amount
        const char *literal = p->at;
        struct token t;
        if (!literal_token(p, &t)) return fail(p, "expected a column or a literal");
        mem_free(t.text);
        if (!comparison(p, &op)) return fail(p, "expected a comparison");
        if (!column_name(p, &column)) return fail(p, "expected a column");
        const char *after = p->at;
        static const enum compare mirrored[] = {EQ, NE, GT, GE, LT, LE};
        p->at = literal;
        struct node *n = with_literal(p, NODE_COMPARE, column, mirrored[op]);
        p->at = after;
        return n;
    }
    if (!column_name(p, &column)) return fail(p, "expected a column");
    if (comparison(p, &op)) return with_literal(p, NODE_COMPARE, column, op);
    if (keyword(p, "IS")) {
        bool not_null = keyword(p, "NOT");
        if (!keyword(p, "NULL")) return fail(p, "expected NULL after IS");
        struct node *n = new_node(p, NODE_IS_NULL);
        if (n) n->column = column;
        return not_null ? join(p, NODE_NOT, n, NULL) : n;
    }
    bool negated = keyword(p, "NOT");
    struct node *n;
    if (keyword(p, "IN")) {
        n = parse_in(p, column);
    } else if (keyword(p, "BETWEEN")) {
        struct node *low = with_literal(p, NODE_COMPARE, column, GE);
        if (low && !keyword(p, "AND")) {
            node_free(low);
            return fail(p, "expected AND of BETWEEN");
        }
        n = join(p, NODE_AND, low, low ? with_literal(p, NODE_COMPARE, column, LE) : NULL);
    } else if (keyword(p, "LIKE")) {
        if (arrow_schema_at(p->d->arrow, column)->type != ARROW_UTF8) return fail(p, "LIKE wants a text column");
        n = with_literal(p, NODE_LIKE, column, EQ);
    } else if (!negated && arrow_schema_at(p->d->arrow, column)->type == ARROW_BOOL) {
        n = new_node(p, NODE_TRUE_COLUMN);
        if (n) n->column = column;
    } else {
        return fail(p, negated ? "expected IN, BETWEEN or LIKE after NOT" : "expected a comparison, IN, BETWEEN, LIKE or IS");
    }
    return negated ? join(p, NODE_NOT, n, NULL) : n;
}

static struct node *parse_not(struct parser *p) {
    struct node *n;
    if (++p->depth > DEPTH_MAX) return fail(p, "the filter is nested too deeply");
    if (keyword(p, "NOT")) {
        n = join(p, NODE_NOT, parse_not(p), NULL);
    } else if (symbol(p, "(")) {
        n = parse_or(p);
        if (n && !symbol(p, ")")) {
            node_free(n);
            n = fail(p, "expected )");
        }
    } else {
        const char *begin = p->at;
        bool truth = keyword(p, "TRUE");
        if (truth || keyword(p, "FALSE")) {
            n = new_node(p, NODE_CONSTANT);
            if (n) n->value = truth;
        } else {
            p->at = begin;
            n = predicate(p);
        }
    }
    p->depth--;
    return n;
}

static struct node *parse_and(struct parser *p) {
    struct node *n = parse_not(p);
    while (n && keyword(p, "AND")) n = join(p, NODE_AND, n, parse_not(p));
    return n;
}

static struct node *parse_or(struct parser *p) {
    struct node *n = parse_and(p);
    while (n && keyword(p, "OR")) n = join(p, NODE_OR, n, parse_and(p));
    return n;
}

enum mink_code filter_parse(const char *text, const struct table_def *d, struct filter **out, struct error *e) {
    struct parser p = {.text = text, .at = text, .d = d, .e = e};
    struct node *root = parse_or(&p);
    blank(&p);
    if (root && *p.at) {
        node_free(root);
        root = fail(&p, "expected AND, OR or the end");
    }
    if (!root) return p.code != MINK_OK ? p.code : error_set(e, MINK_INVALID, "BAD_FILTER", "filter: malformed");
    *out = mem_new(struct filter);
    (*out)->def = table_def_ref((struct table_def *)d);
    (*out)->root = root;
    return MINK_OK;
}

void filter_free(struct filter *f) {
    if (!f) return;
    node_free(f->root);
    table_def_unref(f->def);
    mem_free(f);
}

static void mark_columns(const struct node *n, bool *used) {
    if (!n) return;
    if (n->kind >= NODE_COMPARE && n->kind <= NODE_TRUE_COLUMN) used[n->column] = true;
    mark_columns(n->left, used);
    mark_columns(n->right, used);
}

void filter_columns(const struct filter *f, bool *out_used) { mark_columns(f->root, out_used); }

// ---- evaluation: a byte a row, 0 false, 1 true, 2 unknown

enum { NO, YES, UNKNOWN };

#define COMPARE_LOOP(type, loaded, wanted)                                                        \
    do {                                                                                          \
        const uint8_t *data_ = a->buffers[1].data;                                                \
        for (int64_t r_ = 0; r_ < rows; r_++) {                                                   \
            type v_;                                                                              \
            memcpy(&v_, data_ + (size_t)r_ * sizeof v_, sizeof v_);                               \
            int less_ = (loaded)v_ < (wanted), more_ = (loaded)v_ > (wanted), same_ = (loaded)v_ == (wanted); \
            out[r_] = (uint8_t)(op == EQ ? same_ : op == NE ? !same_ : op == LT ? less_ : op == LE ? less_ | same_ : op == GT ? more_ : more_ | same_); \
        }                                                                                         \
    } while (0)

static int compare_bytes(const uint8_t *a, size_t a_size, const char *b, size_t b_size) {
    size_t n = a_size < b_size ? a_size : b_size;
    int order = n ? memcmp(a, b, n) : 0;
    return order ? order : a_size < b_size ? -1 : a_size > b_size;
}

static bool holds(enum compare op, int order) { return op == EQ ? order == 0 : op == NE ? order != 0 : op == LT ? order < 0 : op == LE ? order <= 0 : op == GT ? order > 0 : order >= 0; }

static void text_at(const struct arrow_field *f, const struct arrow_array *a, int64_t row, const uint8_t **data, size_t *size) {
    if (f->type == ARROW_FIXED_BINARY) {
        *data = a->buffers[1].data + (size_t)f->width * (size_t)row;
        *size = (size_t)f->width;
        return;
    }
    int32_t offsets[2];
    memcpy(offsets, a->buffers[1].data + 4 * row, sizeof offsets);
    *data = a->buffers[2].data ? a->buffers[2].data + offsets[0] : (const uint8_t *)"";
    *size = (size_t)(offsets[1] - offsets[0]);
}

static void compare_column(const struct arrow_field *f, const struct arrow_array *a, enum compare op, const struct literal *l, int64_t rows, uint8_t *out) {
    if (l->edge) { // beyond all values
        memset(out, holds(op, -l->edge), (size_t)rows);
        return;
    }
    switch (f->type) {
    case ARROW_INT8: COMPARE_LOOP(int8_t, int64_t, l->i); break;
    case ARROW_INT16: COMPARE_LOOP(int16_t, int64_t, l->i); break;
    case ARROW_INT32:
    case ARROW_DATE32:
    case ARROW_TIME32: COMPARE_LOOP(int32_t, int64_t, l->i); break;
    case ARROW_INT64:
    case ARROW_TIME64:
    case ARROW_TIMESTAMP: COMPARE_LOOP(int64_t, int64_t, l->i); break;
    case ARROW_FLOAT32: COMPARE_LOOP(float, double, l->d); break;
    case ARROW_FLOAT64: COMPARE_LOOP(double, double, l->d); break;
    case ARROW_DECIMAL128: COMPARE_LOOP(__int128, __int128, l->dec); break;
    case ARROW_BOOL:
        for (int64_t r = 0; r < rows; r++) out[r] = holds(op, (int)(a->buffers[1].data[r >> 3] >> (r & 7) & 1) - (int)l->i);
        break;
    default:
        for (int64_t r = 0; r < rows; r++) {
            const uint8_t *data;
            size_t size;
            if (arrow_is_null(a, r)) continue; // set below
            text_at(f, a, r, &data, &size);
            out[r] = holds(op, compare_bytes(data, size, l->bytes, l->size));
        }
    }
}

// LIKE over bytes; _ takes one character.
static bool like(const uint8_t *s, const uint8_t *s_end, const char *p, const char *p_end) {
    const uint8_t *retry = NULL;
    const char *after_star = NULL;
    for (;;) {
        if (p < p_end && *p == '%') {
            after_star = ++p;
            retry = s;
            continue;
        }
        if (s == s_end) return p == p_end;
        bool match = false;
        if (p < p_end && *p == '_') {
            p++;
            s++;
            while (s < s_end && (*s & 0xc0) == 0x80) s++;
            continue;
        }
        if (p < p_end) {
            const char *c = *p == '\\' && p + 1 < p_end ? p + 1 : p;
            match = (uint8_t)*c == *s;
            if (match) {
                p = c + 1;
                s++;
                continue;
            }
        }
        if (!after_star) return false;
        s = ++retry;
        p = after_star;
        if (s > s_end) return false;
    }
}

static void evaluate(const struct filter *filter, const struct node *n, const struct arrow_batch *b, const int32_t *where, uint8_t *out) {
    int64_t rows = b->row_count;
    if (n->kind == NODE_CONSTANT) {
        memset(out, n->value ? YES : NO, (size_t)rows);
        return;
    }
    if (n->kind == NODE_NOT) {
        static const uint8_t inverse[] = {YES, NO, UNKNOWN};
        evaluate(filter, n->left, b, where, out);
        for (int64_t r = 0; r < rows; r++) out[r] = inverse[out[r]];
        return;
    }
    if (n->kind == NODE_AND || n->kind == NODE_OR) {
        uint8_t *right = mem_alloc((size_t)rows + 1);
        uint8_t decides = n->kind == NODE_AND ? NO : YES;
        evaluate(filter, n->left, b, where, out);
        evaluate(filter, n->right, b, where, right);
        for (int64_t r = 0; r < rows; r++) {
            if (out[r] == decides || right[r] == decides) out[r] = decides;
            else if (out[r] == UNKNOWN || right[r] == UNKNOWN) out[r] = UNKNOWN;
            else out[r] = !decides;
        }
        mem_free(right);
        return;
    }
    const struct arrow_array *a = &b->columns[where[n->column]];
    const struct arrow_field *f = arrow_schema_at(filter->def->arrow, n->column);
    if (n->kind == NODE_IS_NULL) {
        for (int64_t r = 0; r < rows; r++) out[r] = arrow_is_null(a, r) ? YES : NO;
        return;
    }
    if (n->kind == NODE_COMPARE) {
        compare_column(f, a, n->op, &n->literals[0], rows, out);
    } else if (n->kind == NODE_TRUE_COLUMN) {
        for (int64_t r = 0; r < rows; r++) out[r] = a->buffers[1].data[r >> 3] >> (r & 7) & 1;
    } else if (n->kind == NODE_IN) {
        uint8_t *one = mem_alloc((size_t)rows + 1);
        memset(out, NO, (size_t)rows);
        for (uint32_t i = 0; i < n->literal_count; i++) {
            compare_column(f, a, EQ, &n->literals[i], rows, one);
            for (int64_t r = 0; r < rows; r++)
                if (!arrow_is_null(a, r)) out[r] |= one[r];
        }
        mem_free(one);
    } else { // LIKE
        const struct literal *l = &n->literals[0];
        for (int64_t r = 0; r < rows; r++) {
            const uint8_t *data;
            size_t size;
            if (arrow_is_null(a, r)) continue;
            text_at(f, a, r, &data, &size);
            out[r] = like(data, data + size, l->bytes, l->bytes + l->size);
        }
    }
    if (a->buffers[0].size)
        for (int64_t r = 0; r < rows; r++)
            if (arrow_is_null(a, r)) out[r] = UNKNOWN;
}

size_t filter_rows(const struct filter *f, const struct arrow_batch *b, const uint32_t *columns, uint32_t *out_rows) {
    int32_t *where = mem_new_array(int32_t, f->def->column_count + 1);
    uint8_t *result = mem_alloc((size_t)b->row_count + 1);
    size_t count = 0;
    for (uint32_t i = 0; i < f->def->column_count; i++) where[i] = -1;
    for (uint32_t i = 0; i < arrow_schema_count(b->schema); i++)
        if (columns[i] < f->def->column_count) where[columns[i]] = (int32_t)i;
    bool *used = mem_new_array(bool, f->def->column_count + 1);
    filter_columns(f, used);
    for (uint32_t i = 0; i < f->def->column_count; i++) mink_assert(!used[i] || where[i] >= 0);
    evaluate(f, f->root, b, where, result);
    for (int64_t r = 0; r < b->row_count; r++) {
        out_rows[count] = (uint32_t)r;
        count += result[r] == YES;
    }
    mem_free(used);
    mem_free(result);
    mem_free(where);
    return count;
}

// ---- statistics: can any row be true? And can any be false (for NOT)?

struct may { bool yes, no; };

static int order_of(const struct arrow_field *f, const struct arrow_scalar *s, const struct literal *l) {
    if (l->edge) return -l->edge;
    switch (f->type) {
    case ARROW_FLOAT32:
    case ARROW_FLOAT64: return s->d < l->d ? -1 : s->d > l->d;
    case ARROW_DECIMAL128: return s->dec < l->dec ? -1 : s->dec > l->dec;
    case ARROW_UTF8: return compare_bytes(s->bytes, s->size, l->bytes, l->size);
    default: return s->i < l->i ? -1 : s->i > l->i;
    }
}

// min and max are bounds: values lie in [min, max], but need not reach them.
static struct may may_compare(const struct arrow_field *f, const struct arrow_column_stats *s, enum compare op, const struct literal *l) {
    int low = order_of(f, &s->min, l), high = order_of(f, &s->max, l);
    switch (op) {
    case EQ: return (struct may){low <= 0 && high >= 0, !(low == 0 && high == 0)};
    case NE: return (struct may){!(low == 0 && high == 0), low <= 0 && high >= 0};
    case LT: return (struct may){low < 0, high >= 0};
    case LE: return (struct may){low <= 0, high > 0};
    case GT: return (struct may){high > 0, low <= 0};
    default: return (struct may){high >= 0, low < 0};
    }
}

static struct may may_pass(const struct filter *filter, const struct node *n, const struct arrow_column_stats *const *stats, int64_t rows) {
    const struct may all = {true, true};
    struct may left, right;
    switch (n->kind) {
    case NODE_CONSTANT: return (struct may){n->value, !n->value};
    case NODE_NOT:
        left = may_pass(filter, n->left, stats, rows);
        return (struct may){left.no, left.yes};
    case NODE_AND:
    case NODE_OR:
        left = may_pass(filter, n->left, stats, rows);
        right = may_pass(filter, n->right, stats, rows);
        if (n->kind == NODE_AND) return (struct may){left.yes && right.yes, left.no || right.no};
        return (struct may){left.yes || right.yes, left.no && right.no};
    default: break;
    }
    const struct arrow_column_stats *s = stats[n->column];
    const struct arrow_field *f = arrow_schema_at(filter->def->arrow, n->column);
    if (!s) return all;
    if (n->kind == NODE_IS_NULL) return (struct may){s->null_count > 0, s->null_count < rows};
    if (s->null_count == rows) return (struct may){false, false};
    if (!s->has_min_max) return all;
    if (n->kind == NODE_COMPARE) return may_compare(f, s, n->op, &n->literals[0]);
    if (n->kind == NODE_IN) {
        struct may any = {false, true};
        for (uint32_t i = 0; i < n->literal_count; i++) any.yes |= may_compare(f, s, EQ, &n->literals[i]).yes;
        return any;
    }
    if (n->kind == NODE_LIKE) { // by the part before the first wildcard
        struct literal prefix = n->literals[0];
        prefix.size = strcspn(prefix.bytes, "%_\\");
        if (prefix.size > n->literals[0].size) prefix.size = n->literals[0].size;
        size_t high = s->max.size < prefix.size ? s->max.size : prefix.size;
        bool below = compare_bytes(s->max.bytes, high, prefix.bytes, high) < 0 || (s->max.size < prefix.size && compare_bytes(s->max.bytes, s->max.size, prefix.bytes, prefix.size) < 0);
        size_t low = s->min.size < prefix.size ? s->min.size : prefix.size;
        bool above = compare_bytes(s->min.bytes, low, prefix.bytes, low) > 0;
        return (struct may){!below && !above, true};
    }
    return all;
}

bool filter_may_pass(const struct filter *f, const struct arrow_column_stats *const *stats, int64_t row_count) { return may_pass(f, f->root, stats, row_count).yes; }
