// SPDX-License-Identifier: Apache-2.0
// filter.h: the SQL expression subset of scans: comparisons, AND OR NOT, IN, IS [NOT] NULL, LIKE 'prefix%', BETWEEN, parentheses.
// Three-valued logic as in SQL: a row passes when the result is true. Literals are cast to the column's type at parse time.
#ifndef MINK_TABLE_FILTER_H
#define MINK_TABLE_FILTER_H
#include "arrow/kernel.h"
#include "table/table_def.h"
struct filter;
// INVALID [BAD_FILTER] with position, or [COLUMN_NOT_FOUND] with the near name.
enum mink_code filter_parse(const char *text, const struct table_def *d, struct filter **out, struct error *e) MINK_MUST_CHECK;
void filter_free(struct filter *f);
void filter_columns(const struct filter *f, bool *out_used); // out_used[column index of def] set for each used column
// Rows of b that pass, ascending; returns the count. b's columns are found by `columns`: columns[i] = table column index of b's column i.
size_t filter_rows(const struct filter *f, const struct arrow_batch *b, const uint32_t *columns, uint32_t *out_rows);
// From statistics: false when no row can pass. stats[column index], NULL = unknown.
bool filter_may_pass(const struct filter *f, const struct arrow_column_stats *const *stats, int64_t row_count);
#endif
