// SPDX-License-Identifier: Apache-2.0
// table_internal.h: shared insides of this folder: drafts of definitions, values of options, names in DDL.
#ifndef MINK_TABLE_TABLE_INTERNAL_H
#define MINK_TABLE_TABLE_INTERNAL_H

#include "table/table_def.h"

#define TABLE_COLUMNS_MAX 4096     // top level
#define TABLE_FIELDS_MAX 16384     // with nested ones
#define TABLE_KEY_COLUMNS_MAX 64
#define TABLE_OPTIONS_MAX 512
#define TABLE_TEXT_MAX 4096        // bytes of a comment or an option's value
#define TABLE_COLUMN_NAME_MAX 255  // bytes
#define TABLE_COLUMN_ID_MAX 2147483000 // Iceberg keeps the ids above for itself

// A name as it was written and where: positions are byte offsets into the statement.
#define DRAFT_AT_NONE UINT32_MAX
struct draft_name { char *text; uint32_t at; };
struct draft_names { struct draft_name *items; uint32_t count; };

// What a definition is made from. Nothing in it has been checked, but types are whole and strings are valid UTF-8.
struct table_draft {
    char *database, *name, *comment;
    uint32_t name_at;
    uint32_t schema_id, next_column_id; // 0: from the beginning
    struct column *columns;             // id 0: to be assigned
    uint32_t *columns_at;
    uint32_t column_count;
    struct draft_names primary_key, partition_by, bucket_key;
    struct draft_option { struct table_option option; uint32_t key_at, value_at; } *options;
    uint32_t option_count;
    uint32_t at; // after an error: what it is about
};
void table_draft_deinit(struct table_draft *d);
struct column *table_draft_add_column(struct table_draft *d, uint32_t at); // zeroed, to be filled in
void table_draft_add_option(struct table_draft *d, char *take_key, char *take_value, uint32_t key_at, uint32_t value_at);
void draft_names_add(struct draft_names *n, char *take_text, uint32_t at);
// Checks everything, assigns ids, resolves names and options. d keeps what is left of it and needs its deinit in any case.
enum mink_code table_draft_finish(struct table_draft *d, const struct table_defaults *defaults, struct table_def **out, struct error *e) MINK_MUST_CHECK;

enum mink_code table_names_check(const char *database, const char *table, struct error *e) MINK_MUST_CHECK; // in database kafka, names of topics

// ---- options (table_option.c)

const struct table_option_info *table_option_find(const char *key); // patterns match, too; NULL when unknown
// INVALID [UNKNOWN_OPTION] with the nearest known one.
enum mink_code table_option_unknown(const char *key, struct error *e);
// Value in range, INVALID [BAD_OPTION] otherwise. *out: the number, milliseconds, bytes, 0 or 1, index of the choice.
enum mink_code table_option_value(const struct table_option_info *info, const char *key, const char *value, int64_t *out, struct error *e) MINK_MUST_CHECK;
// The column in "fields.<column>.agg" and "fields.<column>.<function>.<parameter>".
struct slice table_option_column(const struct table_option_info *info, const char *key);
enum table_merge_engine { MERGE_LAST_ROW, MERGE_FIRST_ROW, MERGE_VERSIONED, MERGE_AGGREGATION };

// ---- automatic partitions (partition_time.c)

// INVALID [BAD_OPTION] unless the format orders its fields from the largest down to the unit and makes values that the name rule allows.
enum mink_code partition_format_check(const char *format, enum time_unit unit, struct error *e) MINK_MUST_CHECK;
const char *partition_format_default(enum time_unit unit);
enum mink_code partition_zone_check(const char *zone, struct error *e) MINK_MUST_CHECK; // its form alone: the same everywhere
enum mink_code partition_zone_find(const char *zone, struct error *e) MINK_MUST_CHECK;  // on this machine
bool partition_span_read(const struct table_def *d, const char *text, size_t size, int64_t *out); // false when it is not of the format

// ---- names in DDL (ddl_lex.c)

void ddl_put_name(struct buffer *out, const char *name);  // in backquotes where it would not be read as a name without
void ddl_put_text(struct buffer *out, const char *text);  // as a string literal
bool utf8_text_valid(const char *text, size_t size);       // no zero bytes either

#endif
