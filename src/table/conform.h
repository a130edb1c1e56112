// SPDX-License-Identifier: Apache-2.0
// conform.h: an incoming batch made to match a table: columns by name in any order, lossless casts, missing nullable columns as nulls,
// NOT NULL and CHAR/BINARY lengths and decimal ranges checked.
#ifndef MINK_TABLE_CONFORM_H
#define MINK_TABLE_CONFORM_H
#include "arrow/kernel.h"
#include "table/table_def.h"
// Decided once per stream from its schema. INVALID [TYPE_MISMATCH], [COLUMN_NOT_FOUND] (near name), [COLUMN_MISSING] name column, expected, given.
// Columns named in `meta_columns` (NULL-terminated; "_log_offset", …) are ignored when the table has none of that name.
struct conform_plan;
enum mink_code conform_plan_make(const struct table_def *d, const struct arrow_schema *incoming, const char *const meta_columns[], struct conform_plan **out, struct error *e) MINK_MUST_CHECK;
bool conform_plan_identity(const struct conform_plan *p); // same columns, order and types: the message may be stored as sent (after conform_check)
void conform_plan_free(struct conform_plan *p);
// The batch in table order and types. Value checks: nulls in NOT NULL columns, CHAR(n) length, DECIMAL precision: INVALID [NOT_NULL], [VALUE_TOO_LONG], [OUT_OF_RANGE_VALUE] naming column and row.
enum mink_code conform_apply(const struct conform_plan *p, const struct arrow_batch *in, struct arrow_batch *out, struct error *e) MINK_MUST_CHECK;
#endif
