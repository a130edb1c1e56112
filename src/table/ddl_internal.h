// SPDX-License-Identifier: Apache-2.0
// ddl_internal.h: between the statements (ddl.c) and the types (ddl_type.c) of the parser.
#ifndef MINK_TABLE_DDL_INTERNAL_H
#define MINK_TABLE_DDL_INTERNAL_H
#include "table/ddl_lex.h"
#include "table/table_internal.h"
// A type with its NOT NULL. *out is empty after an error.
enum mink_code ddl_read_type(struct lexer *x, uint32_t depth, struct type *out, struct error *e) MINK_MUST_CHECK;
// A name, quoted or not; keywords are names where names stand. mem_free(*out).
enum mink_code ddl_read_name(struct lexer *x, const char *what, char **out, uint32_t *at, struct error *e) MINK_MUST_CHECK;
enum mink_code ddl_expect(struct lexer *x, const char *word, struct error *e) MINK_MUST_CHECK;
#endif
