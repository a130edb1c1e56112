// SPDX-License-Identifier: Apache-2.0
// ddl.h: CREATE/ALTER/DROP DATABASE and TABLE, PARTITION statements, in Fluss's dialect.
// Errors are INVALID [BAD_DDL] with line, column, a caret excerpt in the hint and the nearest keyword or option.
#ifndef MINK_TABLE_DDL_H
#define MINK_TABLE_DDL_H
#include "table/table_def.h"
enum ddl_kind { DDL_CREATE_DATABASE, DDL_DROP_DATABASE, DDL_CREATE_TABLE, DDL_ALTER_TABLE_OPTIONS, DDL_DROP_TABLE, DDL_ADD_PARTITION, DDL_DROP_PARTITION };
struct ddl {
    enum ddl_kind kind;
    bool if_exists, if_not_exists, cascade;
    char database[201], table[256];
    struct table_def *def;              // CREATE TABLE
    struct table_option *set; uint32_t set_count;
    char **reset; uint32_t reset_count;
    char **partition_values; uint32_t partition_value_count; // PARTITION (k='v', …), in partition column order once resolved
    char **partition_columns;
    char *comment;
};
// default_database: for unqualified names; may be NULL (then they are an error).
enum mink_code ddl_parse(const char *text, size_t size, const char *default_database, const struct table_defaults *defaults, struct ddl *out, struct error *e) MINK_MUST_CHECK;
// "id BIGINT, customer STRING, PRIMARY KEY (id)" as `mink table create` takes it.
enum mink_code ddl_parse_columns(const char *text, size_t size, const char *database, const char *table, const struct table_option *options, uint32_t option_count, const struct table_defaults *defaults, struct table_def **out, struct error *e) MINK_MUST_CHECK;
enum mink_code ddl_parse_type(const char *text, size_t size, struct type *out, struct error *e) MINK_MUST_CHECK;
void ddl_deinit(struct ddl *d);
#endif
