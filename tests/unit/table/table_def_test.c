// SPDX-License-Identifier: Apache-2.0
#include "table_testing.h"

static void equal_defs(const struct table_def *a, const struct table_def *b) {
    char *x = test_json(a), *y = test_json(b);
    assert_string_equal(x, y);
    assert_int_equal(a->bucket_num, b->bucket_num);
    assert_int_equal(a->assignment, b->assignment);
    assert_int_equal(a->log_ttl_ms, b->log_ttl_ms);
    assert_int_equal(a->primary_key_count, b->primary_key_count);
    assert_int_equal(a->statistics_column_count, b->statistics_column_count);
    for (uint32_t i = 0; i < a->column_count; i++) assert_true(type_equal(&a->columns[i].type, &b->columns[i].type));
    mem_free(x);
    mem_free(y);
}

static const char *const statements[] = {
    "CREATE TABLE a.b (x INT)",
    ("CREATE TABLE a.b (`order` BIGINT NOT NULL COMMENT 'it''s', `select` MAP<STRING, ROW<a INT, `b``c` ARRAY<DATE NOT NULL>>> NOT NULL, \"q\"\"\" CHAR(3), PRIMARY KEY (`order`, \"q\"\"\")) COMMENT 'two\nlines'"
     " PARTITIONED BY (`q\"`) WITH ('bucket.num' = '7', 'table.log.ttl' = '3 h', 'table.statistics.columns' = 'order', 'table.merge-engine' = 'first_row')"),
    "CREATE TABLE `1`.`2-3` (a TIMESTAMP(9), b TIMESTAMP_LTZ(3), c TIME(6), d BINARY(16), e BYTES, f DECIMAL(38,10), g DOUBLE, h FLOAT, i BOOLEAN, j TINYINT, k SMALLINT) WITH ('bucket.key' = 'k,j', 'table.bucketing' = 'paimon')"};

static void test_json_and_back_is_the_same(void **state) {
    struct error why = {0};
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        struct table_def *d = test_table(statements[i]), *again;
        char *json = test_json(d);
        assert_fine(test_from_json(json, &again, &why));
        equal_defs(d, again);
        table_def_unref(d);
        table_def_unref(again);
        mem_free(json);
    }
}

static void test_ddl_and_back_is_the_same(void **state) {
    struct error why = {0};
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        struct table_def *d = test_table(statements[i]);
        struct buffer ddl;
        struct ddl again;
        buffer_init(&ddl, 1 << 20);
        table_def_to_ddl(d, &ddl);
        assert_fine(test_parse(buffer_string(&ddl), &again, &why));
        equal_defs(d, again.def);
        ddl_deinit(&again);
        buffer_deinit(&ddl);
        table_def_unref(d);
    }
}

static void test_the_json_form_is_as_documented(void **state) {
    struct table_def *d = test_table("CREATE TABLE shop.orders (id BIGINT NOT NULL, tags ARRAY<STRING> COMMENT 'free', dt STRING) COMMENT 'sales' PARTITIONED BY (dt) WITH ('bucket.key' = 'id')");
    char *json = test_json(d);
    assert_string_equal(json, "{\"v\":1,\"table\":\"shop.orders\",\"schema_id\":1,\"next_column_id\":5,\"comment\":\"sales\",\"columns\":[{\"name\":\"id\",\"type\":\"BIGINT\",\"id\":1,\"nullable\":false},"
                              "{\"name\":\"tags\",\"type\":\"ARRAY<STRING>\",\"id\":2,\"nullable\":true,\"comment\":\"free\",\"field_ids\":[4]},{\"name\":\"dt\",\"type\":\"STRING\",\"id\":3,\"nullable\":true}],"
                              "\"primary_key\":[],\"partition_by\":[\"dt\"],\"bucket_key\":[\"id\"],\"options\":{\"bucket.key\":\"id\",\"bucket.num\":\"3\"}}");
    mem_free(json);
    table_def_unref(d);
}

// What the create-table action is sent.
static void test_short_json_is_enough(void **state) {
    struct error why = {0};
    struct table_def *d;
    assert_fine(test_from_json("{\"table\":\"shop.orders\",\"columns\":[{\"name\":\"id\",\"type\":\"bigint\"},{\"name\":\"v\",\"type\":\"STRING\",\"nullable\":false,\"comment\":\"c\"}],\"primary_key\":[\"id\"],"
                               "\"options\":{\"bucket.num\":4,\"table.datalake.enabled\":true},\"if_not_exists\":true}", &d, &why));
    assert_int_equal(d->bucket_num, 4);
    assert_true(d->lake_enabled);
    assert_false(d->columns[1].type.nullable);
    assert_string_equal(d->columns[1].comment, "c");
    table_def_unref(d);
    assert_fine(test_from_json("{\"table\":\"shop.orders\",\"columns\":[{\"name\":\"id\",\"type\":\"bigint\"}],\"bucket_key\":[\"id\"]}", &d, &why));
    assert_int_equal(d->assignment, ASSIGN_HASH);
    table_def_unref(d);
}

// Ids that are given stay, others get what was never used.
static void test_column_ids_are_never_used_again(void **state) {
    struct error why = {0};
    struct table_def *d;
    assert_fine(test_from_json("{\"table\":\"a.b\",\"schema_id\":4,\"next_column_id\":20,\"columns\":[{\"name\":\"x\",\"type\":\"INT\",\"id\":7},{\"name\":\"y\",\"type\":\"ROW<a INT, b ARRAY<INT>>\",\"id\":3,\"field_ids\":[9,11,10]},"
                               "{\"name\":\"z\",\"type\":\"MAP<INT,INT>\"}]}", &d, &why));
    assert_int_equal(d->schema_id, 4);
    assert_int_equal(d->columns[0].id, 7);
    assert_int_equal(d->columns[1].type.fields[1].id, 11);
    assert_int_equal(d->columns[1].type.fields[1].type.fields[0].id, 10);
    assert_int_equal(d->columns[2].id, 20);
    assert_int_equal(d->columns[2].type.fields[0].id, 21);
    assert_int_equal(d->next_column_id, 23);
    table_def_unref(d);
}

static void refuse(const char *json, const char *reason, const char *message) {
    struct error why;
    struct table_def *d;
    assert_refused(reason, message, test_from_json(json, &d, &why));
    assert_null(d);
}

#define WITH(columns, rest) "{\"table\":\"a.b\",\"columns\":" columns rest "}"
#define ONE "[{\"name\":\"x\",\"type\":\"INT\"}]"

static void test_wrong_json_is_explained(void **state) {
    refuse("{\"table\":\"a.b\",\"colums\":[]}", "UNKNOWN_KEY", "unknown key \"colums\"; did you mean \"columns\"?");
    refuse("{\"columns\":[]}", "MISSING_KEY", "table");
    refuse("{\"table\":\"b\",\"columns\":[]}", "BAD_NAME", "table name \"b\" has no database");
    refuse("{\"table\":\"a.b$changelog\",\"columns\":[]}", "BAD_NAME", "a.b$changelog is a view, not a table");
    refuse("{\"table\":\"a.b\"}", "BAD_VALUE", "\"columns\" has to be an array");
    refuse("{\"v\":2,\"shape\":1}", "NEWER_FORMAT", "table definition of version 2: this program knows 1");
    refuse(WITH("[]", ""), "NO_COLUMNS", "table a.b has no columns");
    refuse(WITH("[{\"name\":\"x\",\"type\":\"INTT\"}]", ""), "BAD_TYPE", "column x: line 1, column 1: there is no type INTT; did you mean INT?");
    refuse(WITH("[{\"name\":\"x\",\"type\":\"INT NOT NULL\",\"nullable\":true}]", ""), "BAD_VALUE", "column x: the type says NOT NULL, \"nullable\" says true");
    refuse(WITH("[{\"name\":\"x\",\"typ\":\"INT\"}]", ""), "UNKNOWN_KEY", "did you mean \"type\"?");
    refuse(WITH("[{\"name\":\"x\",\"type\":\"INT\",\"id\":1},{\"name\":\"y\",\"type\":\"INT\",\"id\":1}]", ""), "BAD_COLUMN_ID", "column id 1 is there twice");
    refuse(WITH("[{\"name\":\"x\",\"type\":\"ARRAY<INT>\",\"id\":1,\"field_ids\":[1]}]", ""), "BAD_COLUMN_ID", "column id 1 is there twice");
    refuse(WITH("[{\"name\":\"x\",\"type\":\"ARRAY<INT>\",\"field_ids\":[]}]", ""), "BAD_COLUMN_ID", "\"field_ids\" has to hold the ids of all 1 nested fields");
    refuse(WITH("[{\"name\":\"x\",\"type\":\"ARRAY<INT>\",\"field_ids\":[\"a\"]}]", ""), "BAD_COLUMN_ID", "\"field_ids\" has to hold the ids of all nested fields");
    refuse(WITH("[{\"name\":\"a\\u0007\",\"type\":\"INT\"}]", ""), "BAD_NAME", "a column name holds control characters");
    refuse(WITH(ONE, ",\"primary_key\":\"x\""), "BAD_VALUE", "\"primary_key\" has to be an array of column names");
    refuse(WITH(ONE, ",\"primary_key\":[1]"), "BAD_VALUE", "\"primary_key\" has to be an array of column names");
    refuse(WITH(ONE, ",\"options\":[]"), "BAD_VALUE", "\"options\" has to be an object");
    refuse(WITH(ONE, ",\"options\":{\"bucket.num\":1.5}"), "BAD_VALUE", "option bucket.num: the value has to be a string, a number or a boolean");
    refuse(WITH(ONE, ",\"options\":{\"bucket.nun\":\"1\"}"), "UNKNOWN_OPTION", "did you mean bucket.num?");
    refuse(WITH(ONE, ",\"bucket_key\":[\"x\"],\"options\":{\"bucket.key\":\"y\"}"), "BAD_OPTION", "bucket_key and the option bucket.key differ");
}

static void test_names_are_checked_and_split(void **state) {
    struct error why = {0};
    char database[201], name[256], suffix[256], longest[202];
    assert_fine(table_name_split("shop.orders", database, name, suffix, &why));
    assert_string_equal(database, "shop");
    assert_string_equal(name, "orders");
    assert_string_equal(suffix, "");
    assert_fine(table_name_split("shop.orders$changelog", database, name, suffix, &why));
    assert_string_equal(suffix, "changelog");
    assert_fine(table_name_split("kafka.a.b.c", database, name, suffix, &why));
    assert_string_equal(name, "a.b.c");
    assert_refused("BAD_NAME", "may not hold .", table_name_split("shop.a.b", database, name, suffix, &why));
    assert_refused("BAD_NAME", "has no database", table_name_split("orders", database, name, suffix, &why));
    assert_refused("BAD_NAME", "database name \"\" is empty", table_name_split(".orders", database, name, suffix, &why));
    assert_refused("BAD_NAME", "table name \"\" is empty", table_name_split("shop.", database, name, suffix, &why));
    assert_refused("BAD_NAME", "ends wrongly after the $", table_name_split("shop.orders$", database, name, suffix, &why));
    memset(longest, 'a', 201);
    longest[201] = 0;
    assert_refused("BAD_NAME", "is too long", table_name_check(longest, "table", &why));
    longest[200] = 0;
    assert_fine(table_name_check(longest, "table", &why));
    assert_fine(table_name_check("A-z_09", "table", &why));
    assert_refused("BAD_NAME", "may not hold such characters", table_name_check("g\xc3\xb6", "table", &why));
    assert_string_equal(why.hint, "names are 1 to 200 ASCII letters, digits, _ and -");
}

static void test_options_change_by_alter(void **state) {
    struct error why = {0};
    struct table_def *d = test_table("CREATE TABLE a.b (x INT, y ARRAY<INT>) WITH ('table.log.ttl' = '1 d')"), *changed;
    struct table_option set[] = {{(char *)"table.log.ttl", (char *)"2 d"}, {(char *)"table.statistics.columns", (char *)"x"}};
    assert_fine(table_def_with_options(d, set, 2, NULL, 0, &changed, &why));
    assert_int_equal(changed->log_ttl_ms, 172800000);
    assert_int_equal(changed->statistics_column_count, 1);
    assert_int_equal(changed->schema_id, d->schema_id);
    assert_int_equal(changed->bucket_num, 3); // whatever the server's default is now
    assert_int_equal(changed->columns[1].type.fields[0].id, d->columns[1].type.fields[0].id);
    table_def_unref(d);
    d = changed;
    const char *reset[] = {"table.log.ttl"};
    assert_fine(table_def_with_options(d, NULL, 0, reset, 1, &changed, &why));
    assert_int_equal(changed->log_ttl_ms, 604800000);
    table_def_unref(changed);
    set[0].key = (char *)"bucket.num";
    assert_refused("NOT_CHANGEABLE", "option bucket.num cannot be changed after the table was created: rows are in their buckets already", table_def_with_options(d, set, 1, NULL, 0, &changed, &why));
    set[0].key = (char *)"table.log.tll";
    assert_refused("UNKNOWN_OPTION", "did you mean table.log.ttl?", table_def_with_options(d, set, 1, NULL, 0, &changed, &why));
    reset[0] = "table.bucketing";
    assert_refused("NOT_CHANGEABLE", "option table.bucketing cannot be changed", table_def_with_options(d, NULL, 0, reset, 1, &changed, &why));
    set[0] = set[1];
    assert_refused("BAD_OPTION", "option table.statistics.columns is there twice", table_def_with_options(d, set, 2, NULL, 0, &changed, &why));
    reset[0] = "table.statistics.columns";
    assert_refused("BAD_OPTION", "option table.statistics.columns is both set and reset", table_def_with_options(d, set, 1, reset, 1, &changed, &why));
    set[0].value = (char *)"z";
    assert_refused("COLUMN_NOT_FOUND", "there is no column \"z\"", table_def_with_options(d, set, 1, NULL, 0, &changed, &why));
    table_def_unref(d);
}

// ---- types and Arrow

static void test_types_have_their_arrow_form(void **state) {
    // As the table of the table model, in pyarrow's words.
    static const char *const pairs[][2] = {
        {"BOOLEAN", "bool"}, {"TINYINT", "int8"}, {"SMALLINT", "int16"}, {"INT", "int32"}, {"BIGINT", "int64"}, {"FLOAT", "float"}, {"DOUBLE", "double"}, {"DECIMAL(12,2)", "decimal128(12, 2)"},
        {"CHAR(5)", "string"}, {"STRING", "string"}, {"BINARY(4)", "fixed_size_binary[4]"}, {"BYTES", "binary"}, {"DATE", "date32[day]"}, {"TIME(0)", "time32[s]"}, {"TIME(3)", "time32[ms]"},
        {"TIME(6)", "time64[us]"}, {"TIME(7)", "time64[ns]"}, {"TIMESTAMP(0)", "timestamp[s]"}, {"TIMESTAMP(1)", "timestamp[ms]"}, {"TIMESTAMP(3)", "timestamp[ms]"}, {"TIMESTAMP(4)", "timestamp[us]"},
        {"TIMESTAMP", "timestamp[us]"}, {"TIMESTAMP(9)", "timestamp[ns]"}, {"TIMESTAMP_LTZ(6)", "timestamp[us, tz=UTC]"}, {"ARRAY<INT>", "list<item: int32>"},
        {"MAP<STRING, INT>", "map<string, int32>"}, {"ROW<a INT, b STRING>", "struct<a: int32, b: string>"}};
    struct error why = {0};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct type t, back;
        struct arrow_field f;
        char shown[100];
        assert_fine(ddl_parse_type(pairs[i][0], strlen(pairs[i][0]), &t, &why));
        type_to_arrow(&t, "x", &f);
        arrow_field_describe(&f, shown, sizeof shown);
        assert_string_equal(shown, pairs[i][1]);
        assert_string_equal(f.name, "x");
        assert_true(f.nullable);
        // And back, but for what Arrow does not tell: CHAR is a string, precisions are those of the unit.
        assert_fine(type_from_arrow(&f, false, &back, &why));
        struct arrow_field again;
        type_to_arrow(&back, "x", &again);
        assert_true(arrow_field_type_equal(&f, &again));
        arrow_field_deinit(&again);
        arrow_field_deinit(&f);
        type_deinit(&back);
        type_deinit(&t);
    }
}

static void from_arrow(struct arrow_field f, const char *wanted) {
    struct error why = {0};
    struct type t;
    assert_fine(type_from_arrow(&f, true, &t, &why));
    char *text = test_type(&t);
    assert_string_equal(text, wanted);
    mem_free(text);
    type_deinit(&t);
    arrow_field_deinit(&f);
}

static void no_type(struct arrow_field f, bool widen, const char *message, const char *hint) {
    struct error why;
    struct type t;
    assert_refused("TYPE_NOT_SUPPORTED", message, type_from_arrow(&f, widen, &t, &why));
    assert_string_equal(why.hint, hint);
    arrow_field_deinit(&f);
}

static void test_arrow_types_without_counterpart(void **state) {
    from_arrow(arrow_field_make("x", ARROW_UINT8, true), "SMALLINT");
    from_arrow(arrow_field_make("x", ARROW_UINT16, false), "INT NOT NULL");
    from_arrow(arrow_field_make("x", ARROW_UINT32, true), "BIGINT");
    from_arrow(arrow_field_make("x", ARROW_UINT64, true), "DECIMAL(20,0)");
    from_arrow(arrow_field_make("x", ARROW_FLOAT16, true), "FLOAT");
    from_arrow(arrow_field_make("x", ARROW_DATE64, true), "DATE");
    from_arrow(arrow_field_make("x", ARROW_LARGE_UTF8, true), "STRING");
    from_arrow(arrow_field_make("x", ARROW_LARGE_BINARY, true), "BYTES");
    no_type(arrow_field_make("x", ARROW_NULL, true), true, "column x: no column type holds Arrow's null", "cast the column to the type it is meant to have");
    no_type(arrow_field_make("x", ARROW_DURATION, true), true, "no column type holds Arrow's duration[s]", "store it as int64 (BIGINT) with its unit in the column's name");
    no_type(arrow_field_make("x", ARROW_UINT8, true), false, "no column type holds Arrow's uint8", "cast it to a signed integer, float32, date32 or decimal128 that holds it");
    struct arrow_field f = arrow_field_make("d", ARROW_DECIMAL128, true);
    f.precision = 5;
    f.scale = -2;
    no_type(f, true, "column d: no column type holds Arrow's decimal128(5, -2)", "the scale of DECIMAL(p,s) goes from 0 to p");
    f = arrow_field_make("s", ARROW_STRUCT, true);
    no_type(f, true, "column s", "a ROW needs at least one field");
    f = arrow_field_make("l", ARROW_LIST, true);
    f.children = mem_new_array(struct arrow_field, 1);
    f.child_count = 1;
    f.children[0] = arrow_field_make("item", ARROW_DURATION, true);
    no_type(f, true, "column l: column item: no column type holds", "store it as int64 (BIGINT) with its unit in the column's name");
}

static void test_a_table_from_an_arrow_schema(void **state) {
    struct error why = {0};
    struct table_def *d;
    struct json *j;
    struct arrow_field *fields = mem_new_array(struct arrow_field, 2);
    fields[0] = arrow_field_make("id", ARROW_UINT32, true);
    fields[1] = arrow_field_make("name", ARROW_LARGE_UTF8, true);
    struct arrow_schema *s = arrow_schema_new(fields, 2);
    const char *keys = "{\"primary_key\":[\"id\"],\"comment\":\"c\",\"options\":{\"bucket.num\":\"2\"},\"table\":\"ignored.here\"}";
    assert_fine(json_parse(keys, strlen(keys), &j, &why));
    assert_fine(table_def_from_arrow("shop", "t", s, j, &test_defaults, &d, &why));
    assert_int_equal(d->columns[0].type.kind, TYPE_BIGINT);
    assert_int_equal(d->columns[1].type.kind, TYPE_STRING);
    assert_int_equal(arrow_schema_at(d->arrow, 1)->type, ARROW_UTF8);
    assert_int_equal(d->primary_key_count, 1);
    assert_int_equal(d->bucket_num, 2);
    assert_string_equal(d->comment, "c");
    table_def_unref(d);
    assert_fine(table_def_from_arrow("shop", "t", s, NULL, &test_defaults, &d, &why));
    assert_true(table_def_is_log(d));
    table_def_unref(d);
    json_free(j);
    arrow_schema_unref(s);
}

static bool promotes(const char *from, const char *to) {
    struct error why = {0};
    struct type a, b;
    assert_fine(ddl_parse_type(from, strlen(from), &a, &why));
    assert_fine(ddl_parse_type(to, strlen(to), &b, &why));
    bool can = type_can_promote(&a, &b);
    type_deinit(&a);
    type_deinit(&b);
    return can;
}

static void test_promotions(void **state) {
    assert_true(promotes("TINYINT", "BIGINT"));
    assert_true(promotes("FLOAT", "DOUBLE"));
    assert_true(promotes("INT", "DECIMAL(10,0)"));
    assert_true(promotes("BIGINT", "DECIMAL(21,2)"));
    assert_true(promotes("DECIMAL(10,2)", "DECIMAL(12,2)"));
    assert_true(promotes("CHAR(3)", "STRING"));
    assert_true(promotes("BINARY(3)", "BYTES"));
    assert_true(promotes("INT NOT NULL", "BIGINT"));
    assert_false(promotes("INT", "BIGINT NOT NULL"));
    assert_false(promotes("BIGINT", "INT"));
    assert_false(promotes("BIGINT", "DECIMAL(20,2)"));
    assert_false(promotes("DECIMAL(10,2)", "DECIMAL(12,3)"));
    assert_false(promotes("DATE", "TIMESTAMP"));
    assert_false(promotes("INT", "DOUBLE"));
    assert_false(promotes("STRING", "CHAR(3)"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_and_back_is_the_same), cmocka_unit_test(test_ddl_and_back_is_the_same), cmocka_unit_test(test_the_json_form_is_as_documented), cmocka_unit_test(test_short_json_is_enough),
        cmocka_unit_test(test_column_ids_are_never_used_again), cmocka_unit_test(test_wrong_json_is_explained), cmocka_unit_test(test_names_are_checked_and_split),
        cmocka_unit_test(test_options_change_by_alter), cmocka_unit_test(test_types_have_their_arrow_form), cmocka_unit_test(test_arrow_types_without_counterpart),
        cmocka_unit_test(test_a_table_from_an_arrow_schema), cmocka_unit_test(test_promotions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
