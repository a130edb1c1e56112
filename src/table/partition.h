// SPDX-License-Identifier: Apache-2.0
// partition.h: partition values and names, automatic partitions by time. Pure: the time is an argument.
#ifndef MINK_TABLE_PARTITION_H
#define MINK_TABLE_PARTITION_H
#include "arrow/array.h"
#include "table/table_def.h"
#define PARTITION_NAME_MAX 512
// Groups the rows of a normalised batch by partition name ("2026-12-01" or "EU$2026"): out_group[row]; names are distinct, mem_free'd by the caller.
enum mink_code partition_group(const struct table_def *d, const struct arrow_batch *b, uint32_t *out_group, char ***out_names, uint32_t *out_count, struct error *e) MINK_MUST_CHECK;
// Values (one per partition column, as text) → name, checked against the name rule and the column types.
enum mink_code partition_name(const struct table_def *d, const char *const *values, uint32_t count, char out[PARTITION_NAME_MAX], struct error *e) MINK_MUST_CHECK;
// Automatic partitions: names that should exist at wall time now_ms, and whether a given one has expired.
uint32_t partition_auto_wanted(const struct table_def *d, int64_t now_ms, char names[][PARTITION_NAME_MAX], uint32_t names_max);
bool partition_auto_expired(const struct table_def *d, const char *name, int64_t now_ms);
#endif
