// SPDX-License-Identifier: Apache-2.0
// ddl_lex.h: words, names, strings, numbers and signs of statements and filters.
//
// What      One token at a time over text that need not be terminated. Comments (`-- …`, `/* … */`) are passed over.
// Owner     One thread; borrows the text.
// Bounds    Text up to DDL_SIZE_MAX.
#ifndef MINK_TABLE_DDL_LEX_H
#define MINK_TABLE_DDL_LEX_H

#include "base/error.h"
#include "base/slice.h"

#define DDL_SIZE_MAX (1u << 20)

enum token_kind {
    TOKEN_END,
    TOKEN_WORD,    // a name or keyword without quotes
    TOKEN_NAME,    // `…` or "…": never a keyword
    TOKEN_STRING,  // '…'
    TOKEN_NUMBER,  // digits, fraction, exponent; no sign
    TOKEN_SIGN,    // one character; <= >= <> != are two
    TOKEN_BAD      // why: lexer.bad
};

struct token {
    enum token_kind kind;
    uint32_t begin, end; // byte positions, quotes counted in
};

struct lexer {
    const char *text;
    uint32_t size, at;
    struct token token;  // the current one
    uint32_t last_end;   // end of the one before
    const char *bad;
    const char *reason;  // of syntax errors: "BAD_DDL"
};

// INVALID [reason] when the text is too large, holds zero bytes or is not UTF-8. Stands on the first token.
enum mink_code lexer_init(struct lexer *x, const char *text, size_t size, const char *reason, struct error *e) MINK_MUST_CHECK;
void lexer_next(struct lexer *x);
struct lexer lexer_ahead(const struct lexer *x);        // a copy that stands on the next token
bool lexer_is(const struct lexer *x, const char *word); // an unquoted word (case folded) or a sign
bool lexer_accept(struct lexer *x, const char *word);   // and goes on
// What a quoted or unquoted token says, quotes and doubled quotes taken off; mem_free.
char *lexer_text(const struct lexer *x);
// INVALID [reason]: "line 1, column 8: expected X, found Y", the excerpt with a caret as hint.
enum mink_code lexer_expected(const struct lexer *x, const char *wanted, struct error *e);
// Puts line and column of `at` in front of an error that is set, and the excerpt into an empty hint or behind a filled one.
enum mink_code lexer_locate(const struct lexer *x, uint32_t at, struct error *e);

#endif
