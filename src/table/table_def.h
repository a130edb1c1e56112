// SPDX-License-Identifier: Apache-2.0
// table_def.h: the definition of a table: columns, keys, partitioning, options; one per schema version.
//
// What      Made from DDL, from JSON, or from an Arrow schema; its JSON form is what the command log stores and what clients are shown.
// Holds     A def that exists is valid: names obey the rules, keys exist, options are known and in range.
// Owner     Immutable after it is made; counted; any thread.
#ifndef MINK_TABLE_TABLE_DEF_H
#define MINK_TABLE_TABLE_DEF_H
#include "base/compress.h"
#include "base/json.h"
#include "table/type.h"

struct column { char *name; uint32_t id; struct type type; char *comment; };
struct table_option { char *key, *value; };

enum bucketing { BUCKETING_NATIVE, BUCKETING_PAIMON, BUCKETING_ICEBERG, BUCKETING_KAFKA };
enum assignment { ASSIGN_STICKY, ASSIGN_ROUND_ROBIN, ASSIGN_HASH }; // HASH when there is a bucket key
enum time_unit { UNIT_HOUR, UNIT_DAY, UNIT_MONTH, UNIT_QUARTER, UNIT_YEAR };

struct table_def {
    atomic_uint refs;
    char *database, *name, *comment;
    uint32_t schema_id;       // version of the columns, from 1
    uint32_t next_column_id;
    struct column *columns; uint32_t column_count;
    uint32_t *primary_key; uint32_t primary_key_count;    // indexes into columns; 0 = log table
    uint32_t *partition_by; uint32_t partition_by_count;
    uint32_t *bucket_key; uint32_t bucket_key_count;
    struct table_option *options; uint32_t option_count;  // as given, sorted by key; bucket.num is always there, for its default is the server's
    // parsed from options, defaults applied
    uint32_t bucket_num;
    enum bucketing bucketing;
    enum assignment assignment;
    int64_t log_ttl_ms;          // -1 keeps for ever
    int64_t retention_bytes;     // -1
    enum codec compression; int32_t compression_level;
    uint32_t *statistics_columns; uint32_t statistics_column_count;
    struct { bool enabled; uint32_t key; enum time_unit unit; char format[32]; int32_t precreate, retention; char zone[64]; } auto_partition;
    bool dynamic_partition;      // table.dynamic-partition.enabled, default true for partitioned tables
    bool lake_enabled;           // table.datalake.enabled
    struct arrow_schema *arrow;  // the columns as Arrow
};

struct table_def *table_def_ref(struct table_def *d);
void table_def_unref(struct table_def *d);
bool table_def_is_log(const struct table_def *d);
int32_t table_def_find(const struct table_def *d, const char *column); // -1

struct table_defaults { uint32_t bucket_num; }; // server's
// JSON with "v":1: {"table":"shop.orders","columns":[{"name","type","id","nullable","comment","field_ids"}],"primary_key":[],"partition_by":[],"bucket_key":[],
// "options":{},"comment","schema_id","next_column_id"}. Ids absent = assigned; field_ids are those of nested fields, depth first.
// Used for the create-table action (whose own keys if_not_exists, request_id, int64 are passed over) and the command log alike.
enum mink_code table_def_from_json(const struct json *j, const struct table_defaults *defaults, struct table_def **out, struct error *e) MINK_MUST_CHECK;
void table_def_to_json(const struct table_def *d, struct json_writer *w);
enum mink_code table_def_from_arrow(const char *database, const char *name, const struct arrow_schema *s, const struct json *keys_and_options, const struct table_defaults *defaults, struct table_def **out, struct error *e) MINK_MUST_CHECK;
// ALTER TABLE … SET/RESET options: a new def, same schema id. (Column changes come with schema evolution.)
enum mink_code table_def_with_options(const struct table_def *d, const struct table_option *set, uint32_t set_count, const char *const *reset, uint32_t reset_count, struct table_def **out, struct error *e) MINK_MUST_CHECK;
void table_def_to_ddl(const struct table_def *d, struct buffer *out); // parses back to an equal def

enum mink_code table_name_check(const char *name, const char *what, struct error *e) MINK_MUST_CHECK; // the name rule
// Splits "shop.orders" or "shop.orders$changelog"; outputs hold 201 and 256 bytes.
enum mink_code table_name_split(const char *qualified, char *database, char *name, char *suffix, struct error *e) MINK_MUST_CHECK;

// The options table (docs and --help come from it).
enum table_option_kind { OPTION_INT, OPTION_BYTES, OPTION_DURATION, OPTION_BOOL, OPTION_CHOICE, OPTION_TEXT, OPTION_COLUMN, OPTION_COLUMNS };
struct table_option_info {
    const char *key, *default_text, *meaning; // a key with <…> is a pattern
    bool changeable;                          // by ALTER TABLE … SET
    enum table_option_kind kind;
    int64_t min, max;                         // of INT, BYTES, DURATION (ms); of TEXT its bytes
    const char *choices;                      // of CHOICE: "a, b"; upper and lower case are the same
    bool primary_key_only;                    // refused on log tables
};
const struct table_option_info *table_options(size_t *count);
#endif
