// SPDX-License-Identifier: Apache-2.0
#include "table_testing.h"

// Statements as Fluss's documentation writes them (table design, log and primary-key tables, partitions, options).
static void test_statements_of_fluss_are_taken(void **state) {
    static const char *const statements[] = {
        "CREATE DATABASE my_db;",
        "CREATE TABLE my_db.my_pk_table (\n  shop_id BIGINT,\n  user_id BIGINT,\n  num_orders INT,\n  total_amount INT,\n  PRIMARY KEY (shop_id, user_id) NOT ENFORCED\n) WITH (\n  'bucket.num' = '4'\n);",
        "CREATE TABLE my_db.my_log_table (\n  order_id BIGINT,\n  item_id BIGINT,\n  amount INT,\n  address STRING\n);",
        "CREATE TABLE my_db.my_part_log_table (\n  order_id BIGINT,\n  item_id BIGINT,\n  amount INT,\n  address STRING,\n  dt STRING\n) PARTITIONED BY (dt);",
        ("CREATE TABLE my_db.t3 (\n  dt STRING,\n  shop_id BIGINT,\n  user_id BIGINT,\n  num_orders INT,\n  total_amount INT,\n  PRIMARY KEY (dt, shop_id, user_id) NOT ENFORCED\n) PARTITIONED BY (dt) WITH (\n"
         "  'bucket.num' = '4',\n  'table.auto-partition.enabled' = 'true',\n  'table.auto-partition.time-unit' = 'day',\n  'table.auto-partition.num-precreate' = '5',\n  'table.auto-partition.num-retention' = '2',\n  'table.auto-partition.time-zone' = 'UTC'\n);"),
        "CREATE TABLE IF NOT EXISTS `my-db`.`t` (\n  -- the key\n  `order` STRING NOT NULL COMMENT 'it''s', /* more */ v DECIMAL(12, 2),\n  CONSTRAINT pk PRIMARY KEY (`order`) NOT ENFORCED\n)\nCOMMENT 'a table'\nWITH ('table.replication.factor' = '3', 'table.log.format' = 'ARROW', 'table.log.ttl' = '7d')",
        "CREATE TABLE d.m (a INT, b INT, PRIMARY KEY (a) NOT ENFORCED) WITH ('table.merge-engine' = 'versioned', 'table.merge-engine.versioned.ver-column' = 'b')",
        "CREATE TABLE d.m (id BIGINT, s BIGINT, m STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('table.merge-engine' = 'aggregation', 'fields.s.agg' = 'sum', 'fields.m.agg' = 'listagg', 'fields.m.listagg.delimiter' = ';')",
        "ALTER TABLE my_db.t SET ('table.log.ttl' = '12 h')",
        "ALTER TABLE my_db.t RESET ('table.log.ttl');",
        "ALTER TABLE my_db.t ADD PARTITION (dt = '2025-03-05')",
        "ALTER TABLE my_db.t DROP IF EXISTS PARTITION (dt = '2025-03-05', region = 'eu')",
        "DROP TABLE IF EXISTS my_db.t",
        "DROP DATABASE IF EXISTS my_db CASCADE",
    };
    struct error why = {0};
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        struct ddl ddl;
        if (test_parse(statements[i], &ddl, &why) != MINK_OK) fail_msg("%s\n%s\n%s", statements[i], why.message, why.hint);
        ddl_deinit(&ddl);
    }
}

static void test_a_table_is_what_its_statement_says(void **state) {
    struct table_def *d = test_table(
        "create table if not exists `my-db`.`t` (`order` STRING COMMENT 'it''s', dt STRING, \"v\" DECIMAL(12, 2) NOT NULL, primary key (`order`, dt) not enforced)"
        " comment 'a table' partitioned by (dt) with ('bucket.num' = '4', 'table.log.ttl' = '2 days', 'table.statistics.columns' = '*')");
    assert_string_equal(d->database, "my-db");
    assert_string_equal(d->name, "t");
    assert_string_equal(d->comment, "a table");
    assert_int_equal(d->column_count, 3);
    assert_string_equal(d->columns[0].name, "order");
    assert_string_equal(d->columns[0].comment, "it's");
    assert_false(d->columns[0].type.nullable); // by the key
    assert_int_equal(d->columns[0].id, 1);
    assert_int_equal(d->columns[2].id, 3);
    assert_int_equal(d->columns[2].type.kind, TYPE_DECIMAL);
    assert_int_equal(d->columns[2].type.precision, 12);
    assert_int_equal(d->columns[2].type.scale, 2);
    assert_false(d->columns[2].type.nullable);
    assert_int_equal(d->next_column_id, 4);
    assert_int_equal(d->schema_id, 1);
    assert_false(table_def_is_log(d));
    assert_int_equal(d->partition_by_count, 1);
    assert_int_equal(d->bucket_key_count, 1); // the key without the partition column
    assert_int_equal(d->bucket_key[0], 0);
    assert_int_equal(d->assignment, ASSIGN_HASH);
    assert_int_equal(d->bucket_num, 4);
    assert_int_equal(d->log_ttl_ms, 172800000);
    assert_int_equal(d->statistics_column_count, 3);
    assert_true(d->dynamic_partition);
    assert_int_equal(d->compression, CODEC_ZSTD);
    assert_int_equal(d->compression_level, 3);
    assert_int_equal(arrow_schema_count(d->arrow), 3);
    assert_int_equal(arrow_schema_at(d->arrow, 2)->precision, 12);
    table_def_unref(d);

    d = test_table("CREATE TABLE a.b (x INT)");
    assert_true(table_def_is_log(d));
    assert_int_equal(d->assignment, ASSIGN_STICKY);
    assert_int_equal(d->bucket_num, 3); // the server's
    assert_int_equal(d->log_ttl_ms, 604800000);
    assert_int_equal(d->retention_bytes, -1);
    assert_true(d->columns[0].type.nullable);
    table_def_unref(d);

    d = test_table("CREATE TABLE a.b (x INT) WITH ('bucket.assignment' = 'round_robin', 'table.log.ttl' = '-1', 'table.log.retention-bytes' = '2 gb', 'table.log.arrow.compression.type' = 'lz4_frame')");
    assert_int_equal(d->assignment, ASSIGN_ROUND_ROBIN);
    assert_int_equal(d->log_ttl_ms, -1);
    assert_int_equal(d->retention_bytes, 2147483648);
    assert_int_equal(d->compression, CODEC_LZ4_FRAME);
    table_def_unref(d);
}

static void test_types_are_read_and_printed(void **state) {
    static const char *const pairs[][2] = {
        {"boolean", "BOOLEAN"}, {"TINYINT", "TINYINT"}, {"integer not null", "INT NOT NULL"}, {"BIGINT NULL", "BIGINT"}, {"DOUBLE PRECISION", "DOUBLE"}, {"DECIMAL", "DECIMAL(10,0)"},
        {"NUMERIC(5)", "DECIMAL(5,0)"}, {"DEC(38, 38)", "DECIMAL(38,38)"}, {"CHAR", "CHAR(1)"}, {"CHAR(20)", "CHAR(20)"}, {"BINARY(16)", "BINARY(16)"}, {"BYTES", "BYTES"}, {"DATE", "DATE"},
        {"TIME", "TIME(0)"}, {"TIME(9)", "TIME(9)"}, {"TIMESTAMP", "TIMESTAMP(6)"}, {"TIMESTAMP(3) WITHOUT TIME ZONE", "TIMESTAMP(3)"}, {"TIMESTAMP_LTZ", "TIMESTAMP_LTZ(6)"},
        {"TIMESTAMP(9) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(9)"}, {"ARRAY<INT>", "ARRAY<INT>"}, {"ARRAY<ARRAY<STRING NOT NULL>>", "ARRAY<ARRAY<STRING NOT NULL>>"},
        {"MAP<STRING, ARRAY<INT>> NOT NULL", "MAP<STRING, ARRAY<INT>> NOT NULL"}, {"MAP<INT NOT NULL,INT>", "MAP<INT, INT>"},
        {"ROW<a INT 'comment', `b c` ROW<d DATE NOT NULL>>", "ROW<a INT, `b c` ROW<d DATE NOT NULL>>"}, {"ROW(a INT, `date` INT)", "ROW<a INT, `date` INT>"}};
    struct error why = {0};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct type t, again;
        assert_fine(ddl_parse_type(pairs[i][0], strlen(pairs[i][0]), &t, &why));
        char *text = test_type(&t);
        assert_string_equal(text, pairs[i][1]);
        assert_fine(ddl_parse_type(text, strlen(text), &again, &why));
        assert_true(type_equal(&t, &again));
        mem_free(text);
        type_deinit(&t);
        type_deinit(&again);
    }
}

static void refuse_type(const char *text, const char *message) {
    struct error why;
    struct type t;
    assert_refused("BAD_TYPE", message, ddl_parse_type(text, strlen(text), &t, &why));
}

static void test_wrong_types_are_explained(void **state) {
    refuse_type("BIGIN", "there is no type BIGIN; did you mean BIGINT?");
    refuse_type("VARCHAR(10)", "there is no type VARCHAR; use STRING");
    refuse_type("DATETIME", "there is no type DATETIME; use TIMESTAMP");
    refuse_type("geometry", "there is no type geometry");
    refuse_type("DECIMAL(39, 2)", "line 1, column 9: a precision goes from 1 to 38");
    refuse_type("DECIMAL(5, 6)", "line 1, column 12: a scale goes from 0 to 5");
    refuse_type("DECIMAL(5.5)", "a precision goes from 1 to 38");
    refuse_type("TIMESTAMP(10)", "a precision goes from 0 to 9");
    refuse_type("TIMESTAMP(3) WITH TIME ZONE", "there is no TIMESTAMP with a zone of its own; use TIMESTAMP_LTZ");
    refuse_type("CHAR(0)", "a length goes from 1 to 2147483647");
    refuse_type("BINARY(99999999999)", "a length goes from 1 to 16777216");
    refuse_type("CHAR(x)", "expected a length, found x");
    refuse_type("ARRAY", "expected <, found the end");
    refuse_type("ARRAY<INT", "expected >, found the end");
    refuse_type("MAP<STRING>", "expected ,, found >");
    refuse_type("ROW<>", "expected < and what is in it, found <>");
    refuse_type("INT INT", "expected the end of the type, found INT");
    refuse_type("", "expected a type, found the end");
    refuse_type("'INT'", "expected a type, found 'INT'");
    char deep[400] = "";
    for (int i = 0; i < 30; i++) memcpy(deep + 6 * i, "ARRAY<", 7); // refused before its end is looked for
    struct error why;
    struct type t;
    assert_refused("TYPE_NOT_SUPPORTED", "types are nested deeper than 20", ddl_parse_type(deep, strlen(deep), &t, &why));
}

static void refuse(const char *text, const char *reason, const char *message) {
    struct error why;
    struct ddl ddl;
    assert_refused(reason, message, test_parse(text, &ddl, &why));
    if (strstr(why.message, "line ") != why.message && strcmp(reason, "TOO_LARGE") != 0) fail_msg("%s: no place in \"%s\"", text, why.message);
    assert_non_null(strchr(why.hint, '^'));
}

static void test_errors_say_where_what_and_what_was_expected(void **state) {
    refuse("SELECT 1", "BAD_DDL", "line 1, column 1: expected CREATE, ALTER or DROP, found SELECT");
    refuse("", "BAD_DDL", "line 1, column 1: expected CREATE, ALTER or DROP, found the end");
    refuse("CREATE VIEW v", "NOT_SUPPORTED", "what can be created is TABLE and DATABASE");
    refuse("CREATE INDX v", "BAD_DDL", "line 1, column 8: expected TABLE or DATABASE, found INDX");
    refuse("CREATE TABLE d.t", "BAD_DDL", "line 1, column 17: expected (, found the end");
    refuse("CREATE TABLE d.t (", "BAD_DDL", "expected a column or PRIMARY KEY, found the end");
    refuse("CREATE TABLE d.t ()", "BAD_DDL", "expected a column or PRIMARY KEY, found )");
    refuse("CREATE TABLE d.t (\n  id BIGINT,\n  naam STRNG\n)", "BAD_DDL", "line 3, column 8: there is no type STRNG; did you mean STRING?");
    refuse("CREATE TABLE d.t (id BIGINT name STRING)", "BAD_DDL", "line 1, column 29: expected , or ), found name");
    refuse("CREATE TABLE d.t (id BIGINT,)", "BAD_DDL", "expected a column or PRIMARY KEY, found )");
    refuse("CREATE TABLE d.t (id)", "BAD_DDL", "line 1, column 21: expected a type, found )");
    refuse("CREATE TABLE d.t (id INT) WITH (bucket.num = '4')", "BAD_DDL", "line 1, column 33: expected an option's name in single quotes, found bucket");
    refuse("CREATE TABLE d.t (id INT) WITH ('bucket.num' = 4)", "BAD_DDL", "line 1, column 48: expected a value in single quotes, found 4");
    refuse("CREATE TABLE d.t (id INT) WITH ('bucket.num' '4')", "BAD_DDL", "expected =, found '4'");
    refuse("CREATE TABLE d.t (id INT) WITH ('bucket.num' = '4'", "BAD_DDL", "expected , or ), found the end");
    refuse("CREATE TABLE d.t (id INT) COMMENT 'a' COMMENT 'b'", "BAD_DDL", "expected COMMENT, PARTITIONED BY, WITH or the end of the statement, found COMMENT");
    refuse("CREATE TABLE d.t (id INT) ENGINE=x", "BAD_DDL", "line 1, column 27: expected COMMENT, PARTITIONED BY, WITH or the end of the statement, found ENGINE");
    refuse("CREATE TABLE d.t (id INT, s STRING COMMENT 'no end)", "BAD_DDL", "line 1, column 44: expected a comment in single quotes, found a string that does not end");
    refuse("CREATE TABLE d.t (id INT /* no end", "BAD_DDL", "found a comment that does not end");
    refuse("CREATE TABLE d.t (1d INT)", "BAD_DDL", "found a name that begins with a digit (put it in `backquotes`)");
    refuse("CREATE TABLE d.t (id INT) ?", "BAD_DDL", "found a character that means nothing here");
    refuse("CREATE TABLE d.t (id INT); DROP TABLE d.t", "MULTIPLE_STATEMENTS", "line 1, column 28: one statement at a time");
    refuse("CREATE TABLE t (id INT)", "BAD_NAME", "table name \"t\" has no database: write database.table");
    refuse("CREATE TABLE a.b.c (id INT)", "BAD_NAME", "table names have two parts, database.table");
    refuse("CREATE TABLE my-db.t (id INT)", "BAD_DDL", "line 1, column 14: names with - in them have to be in `backquotes`");
    refuse("CREATE TABLE __d.t (id INT)", "BAD_NAME", "database name \"__d\" begins with __, which is kept for the system");
    refuse("CREATE TABLE `d d`.t (id INT)", "BAD_NAME", "database name \"d d\" may not hold spaces");
    refuse("CREATE TABLE d.`t.x` (id INT)", "BAD_NAME", "table name \"t.x\" may not hold .");
    refuse("CREATE TABLE d.t (id INT, ID INT, id INT)", "DUPLICATE_COLUMN", "line 1, column 35: column \"id\" is there twice");
    refuse("CREATE TABLE d.t (r ROW<a INT, a INT>)", "DUPLICATE_COLUMN", "column r: field \"a\" is there twice");
    refuse("CREATE TABLE d.t (`` INT)", "BAD_NAME", "a column without a name");
    refuse("CREATE TABLE d.t (PRIMARY KEY (id))", "NO_COLUMNS", "table d.t has no columns");
    refuse("CREATE TABLE d.t (amount INT, PRIMARY KEY (amuont))", "COLUMN_NOT_FOUND", "line 1, column 44: PRIMARY KEY: there is no column \"amuont\"; did you mean amount?");
    refuse("CREATE TABLE d.t (a INT, b INT, PRIMARY KEY (a, a))", "DUPLICATE_COLUMN", "PRIMARY KEY: column \"a\" is there twice");
    refuse("CREATE TABLE d.t (a ARRAY<INT>, PRIMARY KEY (a))", "BAD_KEY", "PRIMARY KEY: column \"a\" is of type ARRAY, which keys may not hold");
    refuse("CREATE TABLE d.t (a INT PRIMARY KEY, PRIMARY KEY (a))", "BAD_KEY", "line 1, column 38: a second PRIMARY KEY");
    refuse("CREATE TABLE d.t (a INT, PRIMARY KEY (a) ENFORCED)", "NOT_SUPPORTED", "keys are not enforced as constraints");
    refuse("CREATE TABLE d.t (a INT, dt STRING, PRIMARY KEY (a)) PARTITIONED BY (dt)", "BAD_KEY", "PARTITIONED BY: column \"dt\" has to be in the primary key, too");
    refuse("CREATE TABLE d.t (a INT, PRIMARY KEY (a)) PARTITIONED BY (a)", "BAD_KEY", "PRIMARY KEY: needs a column besides the partition columns");
    refuse("CREATE TABLE d.t (a DOUBLE) PARTITIONED BY (a)", "BAD_KEY", "PARTITIONED BY: column \"a\" is of type DOUBLE");
    refuse("CREATE TABLE d.t (a INT, b AS a + 1)", "NOT_SUPPORTED", "computed columns are not stored");
    refuse("CREATE TABLE d.t (a TIMESTAMP(3), WATERMARK FOR a AS a - INTERVAL '5' SECOND)", "NOT_SUPPORTED", "watermarks belong to the query engine");
    refuse("CREATE TABLE d.t (a INT DEFAULT 1)", "NOT_SUPPORTED", "columns have no DEFAULT");
    refuse("CREATE TABLE d.t (a INT) DISTRIBUTED BY (a) INTO 4 BUCKETS", "NOT_SUPPORTED", "DISTRIBUTED BY is said by options");
    refuse("ALTER TABLE d.t ADD COLUMN x INT", "NOT_SUPPORTED", "columns and names of tables cannot be changed");
    refuse("ALTER TABLE d.t RENAME TO u", "NOT_SUPPORTED", "columns and names of tables cannot be changed");
    refuse("ALTER TABLE d.t FOO", "BAD_DDL", "expected SET, RESET, ADD PARTITION or DROP PARTITION, found FOO");
    refuse("ALTER TABLE d.t SET ('table.log.tl' = '1')", "UNKNOWN_OPTION", "line 1, column 22: unknown option \"table.log.tl\"; did you mean table.log.ttl?");
    refuse("ALTER TABLE d.t SET ('table.log.ttl' = 'soon')", "BAD_OPTION", "line 1, column 40: option table.log.ttl: \"soon\" is not a duration like 7 d");
    refuse("ALTER TABLE d.t RESET ('x')", "UNKNOWN_OPTION", "unknown option \"x\"");
    refuse("ALTER TABLE d.t ADD PARTITION (a = '1', a = '2')", "BAD_PARTITION", "column \"a\" is there twice");
    refuse("ALTER TABLE d.t ADD PARTITION (a = b)", "BAD_DDL", "expected a value in single quotes, found b");
    refuse("DROP TABLE IF d.t", "BAD_DDL", "expected EXISTS, found d");
    refuse("DROP TABLE d.t d", "BAD_DDL", "expected the end of the statement, found d");
    refuse("CREATE DATABASE `a b`", "BAD_NAME", "database name \"a b\" may not hold spaces");
    struct error why;
    struct ddl ddl;
    assert_refused("BAD_DDL", "byte 6 is not UTF-8", test_parse("CREATE\xff", &ddl, &why));
    assert_refused("BAD_DDL", "byte 1 is zero", ddl_parse("a\0b", 3, NULL, NULL, &ddl, &why));
    char *large = mem_zalloc((1u << 20) + 2);
    memset(large, ' ', (1u << 20) + 1);
    assert_refused("TOO_LARGE", "text of 1048577 bytes: at most 1048576 are taken", test_parse(large, &ddl, &why));
    mem_free(large);
}

static void test_the_hint_shows_the_place(void **state) {
    struct error why;
    struct ddl ddl;
    assert_refused("BAD_DDL", "there is no type", test_parse("CREATE TABLE d.t (\n\tid BIGINT,\n  `größe` STRNG NOT NULL\n)", &ddl, &why));
    assert_string_equal(why.hint, "  `größe` STRNG NOT NULL\n          ^");
    assert_refused("BAD_DDL", "line 1, column 110", test_parse("CREATE TABLE d.t (aaaaaaaaaaaaaaaaaaaa INT, bbbbbbbbbbbbbbbbbbbbbbbbbbbbb INT, cccccccccccccccccccccccc INT) ENGINE = 'something long that does not fit'", &ddl, &why));
    assert_string_equal(why.hint, "bbbbbbbbbbbb INT, cccccccccccccccccccccccc INT) ENGINE = 'something long\n                                                ^");
}

static void option(const char *with, const char *reason, const char *message) {
    struct error why;
    struct ddl ddl;
    char *text = mem_printf("CREATE TABLE d.t (id INT, name STRING, f DOUBLE, a ARRAY<INT>, dt STRING, day DATE) PARTITIONED BY (dt, day) WITH (%s)", with);
    assert_refused(reason, message, test_parse(text, &ddl, &why));
    assert_non_null(strchr(why.hint, '^'));
    mem_free(text);
}

static void key_option(const char *with, const char *message) {
    struct error why;
    struct ddl ddl;
    char *text = mem_printf("CREATE TABLE d.t (id INT, b BIGINT, s STRING, f BOOLEAN, x BYTES, PRIMARY KEY (id)) WITH (%s)", with);
    assert_refused("BAD_OPTION", message, test_parse(text, &ddl, &why));
    mem_free(text);
}

static void test_options_are_checked(void **state) {
    option("'buckets.num' = '4'", "UNKNOWN_OPTION", "unknown option \"buckets.num\"; did you mean bucket.num?");
    option("'something.else.entirely' = '4'", "UNKNOWN_OPTION", "unknown option \"something.else.entirely\"");
    option("'fields.<column>.agg' = 'sum'", "BAD_OPTION", "option fields.<column>.agg is for tables with a primary key");
    option("'bucket.num' = '0'", "BAD_OPTION", "option bucket.num: \"0\" is not a number from 1 to 16384");
    option("'bucket.num' = '99999999999999999999'", "BAD_OPTION", "is not a number from 1 to 16384");
    option("'bucket.num' = '4', 'bucket.num' = '4'", "BAD_OPTION", "option bucket.num is there twice");
    option("'bucket.key' = 'ids'", "COLUMN_NOT_FOUND", "bucket.key: there is no column \"ids\"; did you mean id?");
    option("'bucket.key' = 'id,'", "COLUMN_NOT_FOUND", "bucket.key: there is no column \"\"");
    option("'bucket.key' = 'a'", "BAD_KEY", "bucket.key: column \"a\" is of type ARRAY, which keys may not hold");
    option("'bucket.key' = 'id,dt'", "BAD_KEY", "bucket.key: \"dt\" is a partition column");
    option("'table.bucketing' = 'hive'", "BAD_OPTION", "\"hive\" is not one of native, paimon, iceberg, kafka");
    option("'table.bucketing' = 'iceberg', 'bucket.key' = 'id,name'", "BAD_OPTION", "table.bucketing iceberg needs a bucket key of one column");
    option("'table.bucketing' = 'iceberg', 'bucket.key' = 'f'", "BAD_OPTION", "Iceberg has no bucket transform for DOUBLE");
    option("'table.bucketing' = 'kafka', 'bucket.key' = 'id'", "BAD_OPTION", "the bucket key has to be CHAR, STRING, BINARY or BYTES, not INT");
    option("'table.log.ttl' = '-2'", "BAD_OPTION", "is not a duration like 7 d, 12 h, 30 min or 500 ms, or -1");
    option("'table.log.ttl' = '3 fortnights'", "BAD_OPTION", "is not a duration");
    option("'table.log.retention-bytes' = 'much'", "BAD_OPTION", "is not a number of bytes");
    option("'table.log.arrow.compression.type' = 'GZIP'", "BAD_OPTION", "is not one of NONE, LZ4_FRAME, ZSTD");
    option("'table.log.arrow.compression.zstd.level' = '23'", "BAD_OPTION", "is not a number from 1 to 22");
    option("'table.datalake.enabled' = 'yes'", "BAD_OPTION", "is not true or false");
    option("'table.datalake.format' = 'paimon'", "BAD_OPTION", "is not iceberg");
    option("'table.statistics.columns' = 'id,nam'", "COLUMN_NOT_FOUND", "table.statistics.columns: there is no column \"nam\"; did you mean name?");
    option("'table.statistics.columns' = 'a'", "BAD_OPTION", "there are none for ARRAY (column \"a\")");
    option("'table.statistics.columns' = ''", "BAD_OPTION", "is not a list of columns");
    option("'table.merge-engine' = 'first_row'", "BAD_OPTION", "option table.merge-engine is for tables with a primary key");
    option("'kafka.timestamp-column' = 'no'", "COLUMN_NOT_FOUND", "kafka.timestamp-column: there is no column \"no\"");
    option("'table.auto-partition.enabled' = 'true'", "BAD_OPTION", "table.auto-partition.key has to say which of the partition columns holds the time");
    option("'table.auto-partition.enabled' = 'true', 'table.auto-partition.key' = 'name'", "BAD_OPTION", "\"name\" is not a partition column");
    option("'table.auto-partition.enabled' = 'true', 'table.auto-partition.key' = 'day', 'table.auto-partition.time-unit' = 'MONTH'", "BAD_OPTION", "by the DATE column \"day\" are of a DAY each");
    option("'table.auto-partition.key' = 'dt', 'table.auto-partition.time-format' = 'yyyyMM'", "BAD_OPTION", "time format \"yyyyMM\" does not fit the time unit");
    option("'table.auto-partition.key' = 'dt', 'table.auto-partition.time-format' = 'MM-dd-yyyy'", "BAD_OPTION", "does not fit the time unit");
    option("'table.auto-partition.key' = 'dt', 'table.auto-partition.time-format' = '__yyyyMMdd'", "BAD_OPTION", "does not fit the time unit");
    option("'table.auto-partition.key' = 'dt', 'table.auto-partition.time-zone' = 'Mars/Olympus'", "BAD_OPTION", "time zone \"Mars/Olympus\": is not in the system's /usr/share/zoneinfo");
    option("'table.auto-partition.key' = 'dt', 'table.auto-partition.time-zone' = '../../etc/passwd'", "BAD_OPTION", "is no name of a zone");
    option("'table.auto-partition.key' = 'dt', 'table.auto-partition.time-unit' = 'WEEK'", "BAD_OPTION", "is not one of HOUR, DAY, MONTH, QUARTER, YEAR");
    key_option("'table.merge-engine' = 'versioned'", "table.merge-engine versioned and table.merge-engine.versioned.ver-column need each other");
    key_option("'table.merge-engine' = 'versioned', 'table.merge-engine.versioned.ver-column' = 's'", "column \"s\" is STRING; wanted is INT, BIGINT, TIMESTAMP or TIMESTAMP_LTZ");
    key_option("'fields.b.agg' = 'sum'", "option fields.b.agg needs table.merge-engine aggregation");
    key_option("'table.merge-engine' = 'aggregation', 'fields.s.agg' = 'sum'", "option fields.s.agg: sum does not work on STRING");
    key_option("'table.merge-engine' = 'aggregation', 'fields.id.agg' = 'max'", "columns of the primary key are not aggregated");
    key_option("'table.merge-engine' = 'aggregation', 'fields.b.agg' = 'mean'", "\"mean\" is not one of sum, product");
    key_option("'auto-increment.fields' = 'id'", "has to be INT or BIGINT and outside of the primary key");
    struct error why;
    struct ddl ddl;
    assert_refused("BAD_OPTION", "option table.auto-partition.enabled is for tables with PARTITIONED BY", test_parse("CREATE TABLE d.t (id INT) WITH ('table.auto-partition.enabled' = 'true')", &ddl, &why));
    assert_refused("BAD_KEY", "bucket.key: \"b\" is not in the primary key", test_parse("CREATE TABLE d.t (a INT, b INT, PRIMARY KEY (a)) WITH ('bucket.key' = 'b')", &ddl, &why));
    assert_refused("BAD_OPTION", "automatic partitions need a STRING, CHAR or DATE column; \"a\" is INT", test_parse("CREATE TABLE d.t (a INT, b INT) PARTITIONED BY (a) WITH ('table.auto-partition.enabled' = 'true')", &ddl, &why));
}

static void test_other_statements(void **state) {
    struct error why = {0};
    struct ddl ddl;
    assert_fine(test_parse("CREATE DATABASE IF NOT EXISTS shop COMMENT 'sales'", &ddl, &why));
    assert_int_equal(ddl.kind, DDL_CREATE_DATABASE);
    assert_true(ddl.if_not_exists);
    assert_string_equal(ddl.database, "shop");
    assert_string_equal(ddl.comment, "sales");
    ddl_deinit(&ddl);
    assert_fine(test_parse("DROP DATABASE shop RESTRICT", &ddl, &why));
    assert_int_equal(ddl.kind, DDL_DROP_DATABASE);
    assert_false(ddl.cascade || ddl.if_exists);
    ddl_deinit(&ddl);
    assert_fine(test_parse("DROP DATABASE IF EXISTS shop CASCADE;", &ddl, &why));
    assert_true(ddl.cascade && ddl.if_exists);
    ddl_deinit(&ddl);
    assert_fine(ddl_parse("DROP TABLE t", 12, "shop", NULL, &ddl, &why));
    assert_int_equal(ddl.kind, DDL_DROP_TABLE);
    assert_string_equal(ddl.database, "shop");
    assert_string_equal(ddl.table, "t");
    ddl_deinit(&ddl);
    assert_fine(test_parse("DROP TABLE kafka.`a.topic`", &ddl, &why));
    assert_string_equal(ddl.table, "a.topic");
    ddl_deinit(&ddl);
    assert_fine(test_parse("ALTER TABLE shop.orders SET ('table.log.ttl' = '1 d', 'table.datalake.enabled' = 'true')", &ddl, &why));
    assert_int_equal(ddl.kind, DDL_ALTER_TABLE_OPTIONS);
    assert_int_equal(ddl.set_count, 2);
    assert_string_equal(ddl.set[1].key, "table.datalake.enabled");
    assert_string_equal(ddl.set[1].value, "true");
    ddl_deinit(&ddl);
    assert_fine(test_parse("ALTER TABLE IF EXISTS shop.orders RESET ('table.log.ttl')", &ddl, &why));
    assert_true(ddl.if_exists);
    assert_int_equal(ddl.reset_count, 1);
    assert_string_equal(ddl.reset[0], "table.log.ttl");
    ddl_deinit(&ddl);
    assert_fine(test_parse("ALTER TABLE shop.orders ADD IF NOT EXISTS PARTITION (region='EU', year=-12, live=TRUE)", &ddl, &why));
    assert_int_equal(ddl.kind, DDL_ADD_PARTITION);
    assert_true(ddl.if_not_exists);
    assert_int_equal(ddl.partition_value_count, 3);
    assert_string_equal(ddl.partition_columns[1], "year");
    assert_string_equal(ddl.partition_values[0], "EU");
    assert_string_equal(ddl.partition_values[1], "-12");
    assert_string_equal(ddl.partition_values[2], "true");
    ddl_deinit(&ddl);
    assert_fine(test_parse("ALTER TABLE shop.orders DROP PARTITION (region='EU')", &ddl, &why));
    assert_int_equal(ddl.kind, DDL_DROP_PARTITION);
    assert_false(ddl.if_exists);
    ddl_deinit(&ddl);
}

static void test_columns_alone(void **state) {
    struct error why = {0};
    struct table_def *d;
    struct table_option options[] = {{(char *)"bucket.num", (char *)"8"}};
    const char *text = "id BIGINT, customer STRING, PRIMARY KEY (id)";
    assert_fine(ddl_parse_columns(text, strlen(text), "shop", "orders", options, 1, NULL, &d, &why));
    assert_string_equal(d->database, "shop");
    assert_int_equal(d->bucket_num, 8);
    assert_int_equal(d->primary_key_count, 1);
    table_def_unref(d);
    text = "id BIGINT, customer";
    assert_refused("BAD_DDL", "line 1, column 20: expected a type, found the end", ddl_parse_columns(text, strlen(text), "shop", "orders", NULL, 0, NULL, &d, &why));
    assert_refused("BAD_DDL", "expected , or the end of the columns, found )", ddl_parse_columns("id INT)", 7, "shop", "orders", NULL, 0, NULL, &d, &why));
    options[0].value = (char *)"many";
    assert_refused("BAD_OPTION", "option bucket.num: \"many\"", ddl_parse_columns("id INT", 6, "shop", "orders", options, 1, NULL, &d, &why));
    assert_string_equal(why.hint, ""); // the option is not in the text
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statements_of_fluss_are_taken), cmocka_unit_test(test_a_table_is_what_its_statement_says), cmocka_unit_test(test_types_are_read_and_printed),
        cmocka_unit_test(test_wrong_types_are_explained), cmocka_unit_test(test_errors_say_where_what_and_what_was_expected), cmocka_unit_test(test_the_hint_shows_the_place),
        cmocka_unit_test(test_options_are_checked), cmocka_unit_test(test_other_statements), cmocka_unit_test(test_columns_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
