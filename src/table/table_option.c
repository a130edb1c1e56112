// SPDX-License-Identifier: Apache-2.0
// The options of tables: one row each. docs/tables.md is compared with it by a test.
#include "base/mem.h"
#include "base/nearest.h"
#include "table/table_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define YES true
#define FIXED false
#define DAY_MS 86400000ll

static const struct table_option_info options[] = {
    {"bucket.num", "the server's", "buckets of the table, or of each partition", FIXED, OPTION_INT, 1, 16384, NULL, false},
    {"bucket.key", "primary key without the partition columns; none for log tables", "columns whose values choose the bucket", FIXED, OPTION_COLUMNS, 0, 0, NULL, false},
    {"bucket.assignment", "sticky", "how rows without a bucket key find a bucket: a batch stays together, or rows take turns", YES, OPTION_CHOICE, 0, 0, "sticky, round_robin", false},
    {"table.bucketing", "native", "function from bucket key to bucket", FIXED, OPTION_CHOICE, 0, 0, "native, paimon, iceberg, kafka", false},
    {"table.log.ttl", "7 d", "how long the log is kept; -1 or 0 ms for ever", YES, OPTION_DURATION, -1, 36500 * DAY_MS, NULL, false},
    {"table.log.retention-bytes", "-1", "bytes of log kept per bucket; -1 without a limit", YES, OPTION_BYTES, -1, INT64_MAX, NULL, false},
    {"table.log.arrow.compression.type", "ZSTD", "compression of stored batches", YES, OPTION_CHOICE, 0, 0, "NONE, LZ4_FRAME, ZSTD", false},
    {"table.log.arrow.compression.zstd.level", "3", "level of ZSTD", YES, OPTION_INT, 1, 22, NULL, false},
    {"table.statistics.columns", "none", "`*` or columns with minimum, maximum and null count per batch, by which filtered scans pass over batches", YES, OPTION_COLUMNS, 0, 0, NULL, false},
    {"table.dynamic-partition.enabled", "true", "a write to a partition that does not exist creates it", YES, OPTION_BOOL, 0, 0, NULL, false},
    {"table.auto-partition.enabled", "false", "partitions by time are created ahead and dropped when old", YES, OPTION_BOOL, 0, 0, NULL, false},
    {"table.auto-partition.key", "the only partition column", "partition column that holds the time", FIXED, OPTION_COLUMN, 0, 0, NULL, false},
    {"table.auto-partition.time-unit", "DAY", "span of a partition", FIXED, OPTION_CHOICE, 0, 0, "HOUR, DAY, MONTH, QUARTER, YEAR", false},
    {"table.auto-partition.time-format", "by unit", "pattern of the values: yyyy, Q, MM, dd, HH in this order, with - or _ between", FIXED, OPTION_TEXT, 1, 31, NULL, false},
    {"table.auto-partition.num-precreate", "2", "partitions that exist from now on, the current one counted", YES, OPTION_INT, 0, 1024, NULL, false},
    {"table.auto-partition.num-retention", "7", "partitions kept before the current one; -1 keeps all", YES, OPTION_INT, -1, 100000, NULL, false},
    {"table.auto-partition.time-zone", "UTC", "zone in which days begin: an IANA name, UTC, or an offset like +02:00", FIXED, OPTION_TEXT, 1, 63, NULL, false},
    {"table.merge-engine", "last row", "what becomes of two rows with the same key", FIXED, OPTION_CHOICE, 0, 0, "first_row, versioned, aggregation", true},
    {"table.merge-engine.versioned.ver-column", "none", "INT, BIGINT, TIMESTAMP or TIMESTAMP_LTZ column; the row with the larger one stays", FIXED, OPTION_COLUMN, 0, 0, NULL, true},
    {"table.delete.behavior", "allow; ignore with a merge engine", "what a delete does", YES, OPTION_CHOICE, 0, 0, "allow, ignore, disable", true},
    {"table.changelog.image", "full", "whether updates log the old row, too", FIXED, OPTION_CHOICE, 0, 0, "full, wal", true},
    {"auto-increment.fields", "none", "one INT or BIGINT column that numbers new keys", FIXED, OPTION_COLUMNS, 0, 0, NULL, true},
    {"table.auto-increment.cache-size", "100000", "numbers a bucket takes at once", FIXED, OPTION_INT, 1, 1000000000, NULL, true},
    {"fields.<column>.agg", "last_value_ignore_nulls", "how the column is aggregated", FIXED, OPTION_CHOICE, 0, 0,
     "sum, product, max, min, last_value, last_value_ignore_nulls, first_value, first_value_ignore_nulls, listagg, string_agg, bool_and, bool_or, rbm32, rbm64", true},
    {"fields.<column>.<function>.<parameter>", "by function", "parameter of the function: `delimiter` of listagg and string_agg", FIXED, OPTION_TEXT, 0, TABLE_TEXT_MAX, NULL, true},
    {"table.datalake.enabled", "false", "history goes to the lake", YES, OPTION_BOOL, 0, 0, NULL, false},
    {"table.datalake.format", "iceberg", "format of the lake table", FIXED, OPTION_CHOICE, 0, 0, "iceberg", false},
    {"table.datalake.freshness", "3 min", "how far the lake may be behind", YES, OPTION_DURATION, 1000, 36500 * DAY_MS, NULL, false},
    {"table.datalake.auto-compaction", "false", "small files of the lake are merged", YES, OPTION_BOOL, 0, 0, NULL, false},
    {"table.datalake.auto-expire-snapshot", "false", "old snapshots of the lake are expired", YES, OPTION_BOOL, 0, 0, NULL, false},
    {"kafka.format", "json; raw for tables made as topics", "what Kafka clients see as value", FIXED, OPTION_CHOICE, 0, 0, "json, raw", false},
    {"kafka.routing", "by table", "where rows of Kafka producers go", YES, OPTION_CHOICE, 0, 0, "client, reroute, strict", false},
    {"kafka.key-format", "json", "what Kafka clients see as key", FIXED, OPTION_CHOICE, 0, 0, "json, text", false},
    {"kafka.unknown-fields", "error", "what becomes of fields that are no columns", YES, OPTION_CHOICE, 0, 0, "error, ignore", false},
    {"kafka.timestamp-column", "commit time", "column that is the time of Kafka records", FIXED, OPTION_COLUMN, 0, 0, NULL, false},
    {"kafka.expose", "true", "whether Kafka clients see the table", YES, OPTION_BOOL, 0, 0, NULL, false},
    {"table.replication.factor", "none", "taken for Fluss's sake; the object store replicates", YES, OPTION_INT, 1, 32767, NULL, false},
    {"table.log.format", "arrow", "taken for Fluss's sake", FIXED, OPTION_CHOICE, 0, 0, "arrow", false},
    {"table.log.local-ttl", "none", "taken for Fluss's sake; nodes keep nothing", YES, OPTION_DURATION, -1, 36500 * DAY_MS, NULL, false},
    {"table.log.tiered.local-segments", "none", "taken for Fluss's sake; nodes keep nothing", YES, OPTION_INT, 1, INT32_MAX, NULL, false},
    {"table.kv.format", "none", "taken for Fluss's sake", FIXED, OPTION_CHOICE, 0, 0, "compacted, indexed, aligned", true},
    {"table.kv.format-version", "none", "taken for Fluss's sake", FIXED, OPTION_INT, 1, 2, NULL, true},
    {"table.kv.standby-replica.enabled", "none", "taken for Fluss's sake; nodes keep nothing", YES, OPTION_BOOL, 0, 0, NULL, true},
};
#define OPTION_COUNT (sizeof options / sizeof options[0])

const struct table_option_info *table_options(size_t *count) {
    *count = OPTION_COUNT;
    return options;
}

// "fields.a.b.agg" is of column "a.b": names of columns may hold dots, functions and parameters none.
static bool split_fields(const char *key, const char **out_last, const char **out_second) {
    if (strncmp(key, "fields.", 7) != 0) return false;
    const char *last = strrchr(key + 7, '.'), *second = NULL;
    for (const char *p = key + 7; last && p < last; p++)
        if (*p == '.') second = p;
    *out_last = last;
    *out_second = second;
    return last != NULL;
}

static const struct table_option_info *find_exact(const char *key) {
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (strcmp(options[i].key, key) == 0) return &options[i];
    return NULL;
}

static const struct table_option_info *find_function(const char *key) {
    const char *last, *second;
    if (!split_fields(key, &last, &second)) return NULL;
    if (strcmp(last, ".agg") == 0 && last > key + 7) return find_exact("fields.<column>.agg");
    static const char *const with_parameter[] = {".listagg.delimiter", ".string_agg.delimiter"};
    for (size_t i = 0; second && second > key + 7 && i < 2; i++)
        if (strcmp(second, with_parameter[i]) == 0) return find_exact("fields.<column>.<function>.<parameter>");
    return NULL;
}

const struct table_option_info *table_option_find(const char *key) {
    const struct table_option_info *info = strchr(key, '<') ? NULL : find_exact(key); // not the patterns themselves
    return info ? info : find_function(key);
}

struct slice table_option_column(const struct table_option_info *info, const char *key) {
    const char *last, *second;
    mink_assert(split_fields(key, &last, &second));
    const char *end = info->kind == OPTION_CHOICE ? last : second;
    return slice_borrow(key + 7, (size_t)(end - key - 7));
}

enum mink_code table_option_unknown(const char *key, struct error *e) {
    struct nearest near;
    nearest_init(&near, key);
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (!strchr(options[i].key, '<')) nearest_offer(&near, options[i].key);
    const char *best = nearest_found(&near);
    if (best) error_set(e, MINK_INVALID, "UNKNOWN_OPTION", "unknown option \"%.100s\"; did you mean %s?", key, best);
    else if (strncmp(key, "fields.", 7) == 0) error_set(e, MINK_INVALID, "UNKNOWN_OPTION", "unknown option \"%.100s\"; known are fields.<column>.agg and fields.<column>.listagg.delimiter", key);
    else error_set(e, MINK_INVALID, "UNKNOWN_OPTION", "unknown option \"%.100s\"", key);
    error_about(e, key, best, NULL);
    return MINK_INVALID;
}

// ---- values

static enum mink_code bad_value(const char *key, const char *value, const char *wanted, struct error *e) {
    error_set(e, MINK_INVALID, "BAD_OPTION", "option %.100s: \"%.60s\" is not %s", key, value, wanted);
    error_about(e, key, wanted, value);
    return MINK_INVALID;
}

// Digits with an optional minus; *rest is what follows. False when there are none or too many.
static bool read_int(const char *text, int64_t *out, const char **rest) {
    bool minus = *text == '-';
    const char *p = text + minus;
    int64_t v = 0;
    if (*p < '0' || *p > '9') return false;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *p - '0', &v)) return false;
    *out = minus ? -v : v;
    *rest = p;
    return true;
}

static bool scaled(const char *unit, const char *const names[], int64_t factor, int64_t *v) {
    for (size_t i = 0; names[i]; i++)
        if (strcasecmp(unit, names[i]) == 0) return !__builtin_mul_overflow(*v, factor, v);
    return false;
}

// As Flink writes durations: a number and a unit, milliseconds without one.
static bool read_duration(const char *text, int64_t *v) {
    static const char *const ms[] = {"", "ms", "milli", "millis", "millisecond", "milliseconds", NULL}, *const s[] = {"s", "sec", "secs", "second", "seconds", NULL},
                      *const m[] = {"m", "min", "mins", "minute", "minutes", NULL}, *const h[] = {"h", "hour", "hours", NULL}, *const d[] = {"d", "day", "days", NULL};
    if (!read_int(text, v, &text)) return false;
    while (*text == ' ') text++;
    return scaled(text, ms, 1, v) || scaled(text, s, 1000, v) || scaled(text, m, 60000, v) || scaled(text, h, 3600000, v) || scaled(text, d, DAY_MS, v);
}

static bool read_bytes(const char *text, int64_t *v) {
    static const char *const b[] = {"", "b", "bytes", NULL}, *const k[] = {"k", "kb", "kib", NULL}, *const m[] = {"m", "mb", "mib", NULL}, *const g[] = {"g", "gb", "gib", NULL},
                      *const t[] = {"t", "tb", "tib", NULL};
    if (!read_int(text, v, &text)) return false;
    while (*text == ' ') text++;
    return scaled(text, b, 1, v) || scaled(text, k, 1ll << 10, v) || scaled(text, m, 1ll << 20, v) || scaled(text, g, 1ll << 30, v) || scaled(text, t, 1ll << 40, v);
}

static bool read_choice(const char *choices, const char *text, int64_t *out) {
    size_t size = strlen(text);
    int64_t index = 0;
    for (const char *p = choices; *p; index++) {
        size_t one = strcspn(p, ",");
        if (one == size && strncasecmp(p, text, size) == 0) {
            *out = index;
            return true;
        }
        p += one;
        p += strspn(p, ", ");
    }
    return false;
}

enum mink_code table_option_value(const struct table_option_info *info, const char *key, const char *value, int64_t *out, struct error *e) {
    char wanted[320];
    const char *rest = "";
    *out = 0;
    switch (info->kind) {
    case OPTION_INT:
        if (read_int(value, out, &rest) && !*rest && *out >= info->min && *out <= info->max) return MINK_OK;
        snprintf(wanted, sizeof wanted, "a number from %" PRId64 " to %" PRId64, info->min, info->max);
        return bad_value(key, value, wanted, e);
    case OPTION_BYTES:
        if (read_bytes(value, out) && *out >= info->min) return MINK_OK;
        return bad_value(key, value, "a number of bytes, like 1073741824 or 1 gb, or -1", e);
    case OPTION_DURATION:
        if (read_duration(value, out) && *out >= info->min && *out <= info->max) return MINK_OK;
        snprintf(wanted, sizeof wanted, "a duration like 7 d, 12 h, 30 min or 500 ms%s", info->min < 0 ? ", or -1" : "");
        return bad_value(key, value, wanted, e);
    case OPTION_BOOL:
        if (read_choice("false, true", value, out)) return MINK_OK;
        return bad_value(key, value, "true or false", e);
    case OPTION_CHOICE:
        if (read_choice(info->choices, value, out)) return MINK_OK;
        snprintf(wanted, sizeof wanted, "%s%s", strchr(info->choices, ',') ? "one of " : "", info->choices);
        return bad_value(key, value, wanted, e);
    case OPTION_TEXT:
        if ((int64_t)strlen(value) >= info->min && (int64_t)strlen(value) <= info->max) return MINK_OK;
        snprintf(wanted, sizeof wanted, "a text of %" PRId64 " to %" PRId64 " bytes", info->min, info->max);
        return bad_value(key, value, wanted, e);
    case OPTION_COLUMN:
    case OPTION_COLUMNS:
        if (*value) return MINK_OK;
        return bad_value(key, value, info->kind == OPTION_COLUMN ? "a column" : "a list of columns", e);
    }
    mink_assert(!"an option of no kind");
    return MINK_INTERNAL;
}
