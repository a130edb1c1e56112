// SPDX-License-Identifier: Apache-2.0
#include "table/ddl_lex.h"

#include "base/mem.h"
#include "table/table_internal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

// Of one character at p: its length, 0 when it is none.
static uint32_t utf8_length(const uint8_t *p, size_t left) {
    uint32_t size = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
    if (size == 0 || size > left) return 0;
    for (uint32_t i = 1; i < size; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)) return 0;
    return size;
}

bool utf8_text_valid(const char *text, size_t size) {
    for (size_t i = 0; i < size;) {
        uint32_t one = utf8_length((const uint8_t *)text + i, size - i);
        if (one == 0 || text[i] == 0) return false;
        i += one;
    }
    return true;
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

// ---- tokens

static char peek(const struct lexer *x, uint32_t ahead) { return x->size - x->at > ahead ? x->text[x->at + ahead] : 0; }

// False when a comment does not end.
static bool skip_blanks(struct lexer *x) {
    for (;;) {
        char c = peek(x, 0);
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f') {
            x->at++;
        } else if (c == '-' && peek(x, 1) == '-') {
            while (x->at < x->size && x->text[x->at] != '\n') x->at++;
        } else if (c == '/' && peek(x, 1) == '*') {
            const char *begin = x->text + x->at + 2;
            const char *end = memmem(begin, (size_t)(x->text + x->size - begin), "*/", 2);
            if (end == NULL) return false;
            x->at = (uint32_t)(end - x->text) + 2;
        } else {
            return true;
        }
    }
}

static void finish(struct lexer *x, enum token_kind kind, uint32_t size) {
    x->at += size;
    x->token.kind = kind;
    x->token.end = x->at;
}

static void fail(struct lexer *x, const char *why, uint32_t size) {
    x->bad = why;
    finish(x, TOKEN_BAD, size);
}

static void quoted(struct lexer *x, char quote) {
    uint32_t i = x->at + 1;
    for (; i < x->size; i++) {
        if (x->text[i] != quote) continue;
        if (i + 1 < x->size && x->text[i + 1] == quote) i++; // a doubled one is a character
        else break;
    }
    if (i >= x->size) fail(x, quote == '\'' ? "a string that does not end" : "a quoted name that does not end", 1);
    else finish(x, quote == '\'' ? TOKEN_STRING : TOKEN_NAME, i + 1 - x->at);
}

static void number(struct lexer *x) {
    uint32_t n = 0;
    while (is_digit(peek(x, n))) n++;
    if (peek(x, n) == '.' && is_digit(peek(x, n + 1))) {
        n++;
        while (is_digit(peek(x, n))) n++;
    }
    char c = peek(x, n);
    if (c == 'e' || c == 'E') {
        uint32_t k = n + 1;
        if (peek(x, k) == '+' || peek(x, k) == '-') k++;
        if (is_digit(peek(x, k))) {
            n = k;
            while (is_digit(peek(x, n))) n++;
        }
    }
    if (is_letter(peek(x, n))) fail(x, "a name that begins with a digit (put it in `backquotes`)", n + 1);
    else finish(x, TOKEN_NUMBER, n);
}

void lexer_next(struct lexer *x) {
    x->last_end = x->token.end;
    bool ended = skip_blanks(x);
    x->token.begin = x->at;
    if (!ended) {
        fail(x, "a comment that does not end", 2);
        return;
    }
    if (x->at == x->size) {
        finish(x, TOKEN_END, 0);
        return;
    }
    char c = peek(x, 0), d = peek(x, 1);
    if (is_letter(c)) {
        uint32_t n = 1;
        while (is_letter(peek(x, n)) || is_digit(peek(x, n)) || peek(x, n) == '$') n++;
        finish(x, TOKEN_WORD, n);
    } else if (c == '`' || c == '"' || c == '\'') {
        quoted(x, c);
    } else if (is_digit(c) || (c == '.' && is_digit(d))) {
        number(x);
    } else if ((c == '<' && (d == '=' || d == '>')) || (c == '>' && d == '=') || (c == '!' && d == '=')) {
        finish(x, TOKEN_SIGN, 2);
    } else if (strchr("(),.;<>=+-*/%", c)) {
        finish(x, TOKEN_SIGN, 1);
    } else {
        fail(x, "a character that means nothing here", utf8_length((const uint8_t *)x->text + x->at, x->size - x->at));
    }
}

enum mink_code lexer_init(struct lexer *x, const char *text, size_t size, const char *reason, struct error *e) {
    *x = (struct lexer){.text = text, .reason = reason};
    if (size > DDL_SIZE_MAX) return error_set(e, MINK_INVALID, "TOO_LARGE", "text of %zu bytes: at most %u are taken", size, DDL_SIZE_MAX);
    for (size_t i = 0; i < size;) {
        uint32_t one = utf8_length((const uint8_t *)text + i, size - i);
        if (one == 0 || text[i] == 0) return error_set(e, MINK_INVALID, reason, "byte %zu is %s", i, one ? "zero" : "not UTF-8");
        i += one;
    }
    x->size = (uint32_t)size;
    lexer_next(x);
    return MINK_OK;
}

struct lexer lexer_ahead(const struct lexer *x) {
    struct lexer copy = *x;
    lexer_next(&copy);
    return copy;
}

bool lexer_is(const struct lexer *x, const char *word) {
    size_t size = strlen(word);
    if ((x->token.kind != TOKEN_WORD && x->token.kind != TOKEN_SIGN) || x->token.end - x->token.begin != size) return false;
    return strncasecmp(x->text + x->token.begin, word, size) == 0;
}

bool lexer_accept(struct lexer *x, const char *word) {
    if (!lexer_is(x, word)) return false;
    lexer_next(x);
    return true;
}

char *lexer_text(const struct lexer *x) {
    const char *begin = x->text + x->token.begin, *end = x->text + x->token.end;
    if (x->token.kind != TOKEN_STRING && x->token.kind != TOKEN_NAME) return mem_strndup(begin, (size_t)(end - begin));
    char quote = *begin, *out = mem_alloc((size_t)(end - begin)), *p = out;
    for (const char *c = begin + 1; c < end - 1; c++) {
        *p++ = *c;
        if (*c == quote) c++;
    }
    *p = 0;
    return out;
}

// ---- errors

// The line around `at`, cut to what a terminal shows, and a caret below the place. Columns count characters.
static void excerpt(const struct lexer *x, uint32_t at, char out[160]) {
    enum { BEFORE = 48, AFTER = 24 };
    uint32_t begin = at, end = at;
    while (begin > 0 && x->text[begin - 1] != '\n' && at - begin < BEFORE) begin--;
    while (end < x->size && x->text[end] != '\n' && x->text[end] != '\r' && end - at < AFTER) end++;
    while (begin < at && ((uint8_t)x->text[begin] & 0xc0) == 0x80) begin++; // not inside a character
    while (end > at && end < x->size && ((uint8_t)x->text[end] & 0xc0) == 0x80) end--;
    char line[BEFORE + AFTER + 1], caret[BEFORE + 1];
    uint32_t n = 0;
    for (uint32_t i = begin; i < end; i++) line[i - begin] = x->text[i] == '\t' ? ' ' : x->text[i];
    line[end - begin] = 0;
    for (uint32_t i = begin; i < at; i++)
        if (((uint8_t)x->text[i] & 0xc0) != 0x80) caret[n++] = ' ';
    caret[n] = 0;
    snprintf(out, 160, "%s\n%s^", line, caret);
}

static void position(const struct lexer *x, uint32_t at, uint32_t *line, uint32_t *column) {
    *line = *column = 1;
    for (uint32_t i = 0; i < at; i++) {
        if (x->text[i] == '\n') {
            ++*line;
            *column = 1;
        } else if (((uint8_t)x->text[i] & 0xc0) != 0x80) {
            ++*column;
        }
    }
}

enum mink_code lexer_locate(const struct lexer *x, uint32_t at, struct error *e) {
    if (e == NULL) return MINK_INVALID;
    uint32_t line, column;
    char shown[160], hint[256];
    position(x, at, &line, &column);
    excerpt(x, at, shown);
    error_context(e, "line %u, column %u", line, column);
    snprintf(hint, sizeof hint, "%.90s%s%s", e->hint, e->hint[0] ? "\n" : "", shown);
    error_hint(e, "%s", hint);
    return e->code;
}

enum mink_code lexer_expected(const struct lexer *x, const char *wanted, struct error *e) {
    const struct token *t = &x->token;
    uint32_t size = t->end - t->begin, shown = size > 40 ? 40 : size;
    while (shown && shown < size && ((uint8_t)x->text[t->begin + shown] & 0xc0) == 0x80) shown--;
    if (t->kind == TOKEN_BAD) error_set(e, MINK_INVALID, x->reason, "expected %s, found %s", wanted, x->bad);
    else if (t->kind == TOKEN_END) error_set(e, MINK_INVALID, x->reason, "expected %s, found the end", wanted);
    else error_set(e, MINK_INVALID, x->reason, "expected %s, found %.*s%s", wanted, (int)shown, x->text + t->begin, shown < size ? "…" : "");
    lexer_locate(x, t->begin, e);
    return MINK_INVALID;
}

// ---- writing

// Words that statements and types are made of: names like these are quoted.
static const char *const keywords[] = {
    "ADD", "ALTER", "AND", "ARRAY", "AS", "BETWEEN", "BIGINT", "BINARY", "BOOLEAN", "BY", "BYTES", "CASCADE", "CHAR", "CHECK", "COLUMN", "COMMENT", "CONSTRAINT", "CREATE",
    "DATABASE", "DATE", "DECIMAL", "DELETE", "DISTRIBUTED", "DOUBLE", "DROP", "ENFORCED", "EXISTS", "FALSE", "FLOAT", "FOR", "FROM", "GROUP", "IF", "IN", "INSERT", "INT", "INTEGER",
    "INTERVAL", "INTO", "IS", "KEY", "LIKE", "MAP", "METADATA", "NOT", "NULL", "OR", "ORDER", "PARTITION", "PARTITIONED", "PRIMARY", "RESET", "ROW", "SELECT", "SET", "SMALLINT",
    "STRING", "TABLE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TINYINT", "TO", "TRUE", "UNIQUE", "UPDATE", "USER", "USING", "VALUE", "VALUES", "VARCHAR", "WATERMARK", "WHERE", "WITH"};

static void put_quoted(struct buffer *out, const char *text, char quote) {
    buffer_put_u8(out, (uint8_t)quote);
    for (; *text; text++) {
        if (*text == quote) buffer_put_u8(out, (uint8_t)quote);
        buffer_put_u8(out, (uint8_t)*text);
    }
    buffer_put_u8(out, (uint8_t)quote);
}

void ddl_put_name(struct buffer *out, const char *name) {
    bool plain = is_letter(name[0]);
    for (const char *p = name; *p && plain; p++) plain = is_letter(*p) || is_digit(*p);
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0] && plain; i++) plain = strcasecmp(name, keywords[i]) != 0;
    if (plain) buffer_put_string(out, name);
    else put_quoted(out, name, '`');
}

void ddl_put_text(struct buffer *out, const char *text) { put_quoted(out, text, '\''); }
