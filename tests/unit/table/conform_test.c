// SPDX-License-Identifier: Apache-2.0
#include "table_testing.h"

#include "table/conform.h"

static const char *const meta_columns[] = {"_log_offset", "_commit_timestamp", NULL};

// What arrives is described like a table, because that is short; columns of `incoming` may be changed before.
static enum mink_code conform_schema(const struct table_def *d, struct arrow_schema *incoming, const char *rows, char **out_rows, bool *identity, struct error *e) {
    struct conform_plan *p;
    enum mink_code code = conform_plan_make(d, incoming, meta_columns, &p, e);
    if (code != MINK_OK) return code;
    *identity = conform_plan_identity(p);
    struct arrow_batch in, out;
    test_batch(incoming, rows, &in);
    code = conform_apply(p, &in, &out, e);
    if (code == MINK_OK) {
        assert_ptr_equal(out.schema, d->arrow);
        *out_rows = test_rows(&out);
        arrow_batch_deinit(&out);
    } else {
        assert_null(out.columns);
    }
    arrow_batch_deinit(&in);
    conform_plan_free(p);
    return code;
}

static char *create(const char *columns) { return mem_printf("CREATE TABLE d.t (%s)", columns); }

static enum mink_code conform(const char *table, const char *incoming, const char *rows, char **out_rows, bool *identity, struct error *e) {
    char *a = create(table), *b = create(incoming);
    struct table_def *d = test_table(a), *given = test_table(b);
    enum mink_code code = conform_schema(d, given->arrow, rows, out_rows, identity, e);
    table_def_unref(d);
    table_def_unref(given);
    mem_free(a);
    mem_free(b);
    return code;
}

static void takes(const char *table, const char *incoming, const char *rows, const char *wanted, bool wanted_identity) {
    struct error why = {0};
    char *got;
    bool identity;
    assert_fine(conform(table, incoming, rows, &got, &identity, &why));
    assert_string_equal(got, wanted);
    assert_int_equal(identity, wanted_identity);
    mem_free(got);
}

static void refuses(const char *table, const char *incoming, const char *rows, const char *reason, const char *message) {
    struct error why;
    char *got;
    bool identity;
    assert_refused(reason, message, conform(table, incoming, rows, &got, &identity, &why));
}

static void test_columns_are_found_by_name(void **state) {
    takes("id BIGINT, name STRING", "id BIGINT, name STRING", "[[1,\"a\"],[2,null]]", "[[1,\"a\"],[2,null]]", true);
    takes("id BIGINT, name STRING", "name STRING, id BIGINT", "[[\"a\",1]]", "[[1,\"a\"]]", false);
    takes("id BIGINT, name STRING, x INT", "name STRING, id BIGINT", "[[\"a\",1]]", "[[1,\"a\",null]]", false);
    takes("id BIGINT, r ROW<a INT, b ARRAY<INT>>", "id BIGINT", "[[1],[2]]", "[[1,null],[2,null]]", false);
    takes("id BIGINT", "id BIGINT NOT NULL", "[[1]]", "[[1]]", true);
    takes("id BIGINT NOT NULL", "id BIGINT", "[[1]]", "[[1]]", true);
    takes("id BIGINT", "id BIGINT", "[]", "[]", true);
    takes("id BIGINT", "_log_offset BIGINT, id BIGINT, _commit_timestamp TIMESTAMP_LTZ(3)", "[[5,1,null]]", "[[1]]", false);
    takes("_log_offset BIGINT", "_log_offset BIGINT", "[[5]]", "[[5]]", true); // the table's own
    refuses("id BIGINT, customer STRING", "id BIGINT, custmer STRING", "[]", "COLUMN_NOT_FOUND", "table d.t has no column \"custmer\"; did you mean customer?");
    refuses("id BIGINT", "id BIGINT, elsewhere STRING", "[]", "COLUMN_NOT_FOUND", "table d.t has no column \"elsewhere\"");
    refuses("id BIGINT, name STRING NOT NULL", "id BIGINT", "[]", "COLUMN_MISSING", "column name of d.t is NOT NULL and was not sent");
}

static void test_casts_lose_nothing(void **state) {
    takes("a BIGINT, b DOUBLE, c DECIMAL(12,2)", "a INT, b FLOAT, c DECIMAL(5,1)", "[[1,0.5,\"12.5\"],[null,null,null]]", "[[1,0.5,\"12.50\"],[null,null,null]]", false);
    takes("a TIMESTAMP(6)", "a TIMESTAMP(3)", "[[\"2026-12-01 10:00:00.123\"]]", "[[\"2026-12-01 10:00:00.123000\"]]", false);
    takes("a ARRAY<BIGINT>", "a ARRAY<INT>", "[[[1,2]],[null]]", "[[[1,2]],[null]]", false);
    refuses("amount DECIMAL(12,2)", "amount DOUBLE", "[]", "TYPE_MISMATCH", "column amount is DECIMAL(12,2) (Arrow decimal128(12, 2)); double was given");
    refuses("a INT", "a BIGINT", "[]", "TYPE_MISMATCH", "column a is INT (Arrow int32); int64 was given");
    refuses("a TIMESTAMP(3)", "a TIMESTAMP(6)", "[]", "TYPE_MISMATCH", "column a is TIMESTAMP(3) (Arrow timestamp[ms]); timestamp[us] was given");
    refuses("a TIMESTAMP(6)", "a TIMESTAMP_LTZ(6)", "[]", "TYPE_MISMATCH", "timestamp[us, tz=UTC] was given");
    struct error why;
    char *got;
    bool identity;
    assert_refused("TYPE_MISMATCH", "", conform("a INT", "a BIGINT", "[]", &got, &identity, &why));
    assert_string_equal(why.column, "a");
    assert_string_equal(why.expected, "int32");
    assert_string_equal(why.actual, "int64");
    assert_string_equal(why.hint, "cast the column to int32 before sending");
}

static void test_nulls_and_large_types_and_doubles_of_names(void **state) {
    struct error why = {0};
    char *got;
    bool identity;
    struct table_def *d = test_table("CREATE TABLE d.t (a INT, b STRING, c BYTES NOT NULL)");
    struct arrow_field *f = mem_new_array(struct arrow_field, 3);
    f[0] = arrow_field_make("a", ARROW_NULL, true);
    f[1] = arrow_field_make("b", ARROW_LARGE_UTF8, true);
    f[2] = arrow_field_make("c", ARROW_LARGE_BINARY, true);
    struct arrow_schema *s = arrow_schema_new(f, 3);
    assert_fine(conform_schema(d, s, "[[null,\"x\",\"00ff\"],[null,null,\"\"]]", &got, &identity, &why));
    assert_string_equal(got, "[[null,\"x\",\"00ff\"],[null,null,\"\"]]");
    assert_false(identity);
    mem_free(got);
    arrow_schema_unref(s);
    f = mem_new_array(struct arrow_field, 3);
    f[0] = arrow_field_make("c", ARROW_BINARY, true);
    f[1] = arrow_field_make("a", ARROW_INT32, true);
    f[2] = arrow_field_make("c", ARROW_BINARY, true);
    s = arrow_schema_new(f, 3);
    assert_refused("DUPLICATE_COLUMN", "column \"c\" is there twice", conform_schema(d, s, "[]", &got, &identity, &why));
    arrow_schema_unref(s);
    // A dictionary is hydrated already, but the message it came in is not what may be stored.
    f = mem_new_array(struct arrow_field, 1);
    f[0] = arrow_field_make("a", ARROW_UTF8, true);
    f[0].dictionary = true;
    f[0].index_type = ARROW_INT8;
    s = arrow_schema_new(f, 1);
    struct table_def *one = test_table("CREATE TABLE d.t (a STRING)");
    assert_fine(conform_schema(one, s, "[[\"x\"]]", &got, &identity, &why));
    assert_false(identity);
    mem_free(got);
    arrow_schema_unref(s);
    table_def_unref(one);
    table_def_unref(d);
}

static void test_values_obey_the_types(void **state) {
    refuses("id BIGINT NOT NULL", "id BIGINT", "[[1],[2],[null]]", "NOT_NULL", "row 2: column id is NOT NULL");
    takes("c CHAR(3)", "c CHAR(3)", "[[\"abc\"],[\"äöü\"],[\"\"],[null]]", "[[\"abc\"],[\"äöü\"],[\"\"],[null]]", true);
    takes("c CHAR(3)", "c STRING", "[[\"abc\"]]", "[[\"abc\"]]", true); // the same to Arrow
    refuses("c CHAR(3)", "c STRING", "[[\"abc\"],[\"äöüß\"]]", "VALUE_TOO_LONG", "row 1: column c: 4 characters do not fit into CHAR(3)");
    refuses("a ARRAY<CHAR(2)>", "a ARRAY<STRING>", "[[[\"ab\"]],[null],[[\"a\",\"abc\"]]]", "VALUE_TOO_LONG", "row 2: column a: 3 characters do not fit into CHAR(2)");
    refuses("a ARRAY<INT NOT NULL>", "a ARRAY<INT>", "[[[1,2]],[[]],[[3,null]]]", "NOT_NULL", "row 2: column a is NOT NULL in its elements");
    takes("a ARRAY<INT NOT NULL>", "a ARRAY<INT>", "[[[1,2]],[[]],[null]]", "[[[1,2]],[[]],[null]]", true);
    refuses("m MAP<STRING, INT NOT NULL>", "m MAP<STRING, INT>", "[[{\"a\":1}],[{\"b\":null}]]", "NOT_NULL", "row 1: column m is NOT NULL in its values");
    refuses("r ROW<x INT NOT NULL, y INT>", "r ROW<x INT, y INT>", "[[{\"x\":1,\"y\":null}],[null],[{\"x\":null,\"y\":2}]]", "NOT_NULL", "row 2: column r is NOT NULL in its x");
    takes("r ROW<x INT NOT NULL, y INT>", "r ROW<x INT, y INT>", "[[{\"x\":1,\"y\":null}],[null]]", "[[{\"x\":1,\"y\":null}],[null]]", true);
    refuses("r ROW<x ARRAY<ROW<y INT NOT NULL>>>", "r ROW<x ARRAY<ROW<y INT>>>", "[[{\"x\":[]}],[{\"x\":[{\"y\":1},{\"y\":null}]}]]", "NOT_NULL", "row 1: column r is NOT NULL in its y");
}

// 16-byte integers that a DECIMAL(3,1) column may carry by its bytes, but not by its type.
static void test_decimals_have_their_digits(void **state) {
    struct error why = {0};
    struct table_def *d = test_table("CREATE TABLE d.t (a DECIMAL(3,1))");
    struct conform_plan *p;
    struct arrow_batch in, out;
    assert_fine(conform_plan_make(d, d->arrow, NULL, &p, &why));
    struct arrow_builder *b = arrow_builder_new(d->arrow);
    arrow_builder_decimal(b, 0, 999);
    arrow_builder_row(b);
    arrow_builder_decimal(b, 0, -999);
    arrow_builder_row(b);
    arrow_builder_finish(b, &in);
    assert_fine(conform_apply(p, &in, &out, &why));
    arrow_batch_deinit(&out);
    __int128 large = 1000;
    memcpy((uint8_t *)in.columns[0].buffers[1].data + 16, &large, 16);
    assert_refused("OUT_OF_RANGE_VALUE", "row 1: column a: the value has more digits than DECIMAL(3,1) holds", conform_apply(p, &in, &out, &why));
    arrow_batch_deinit(&in);
    arrow_builder_free(b);
    conform_plan_free(p);
    table_def_unref(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_columns_are_found_by_name), cmocka_unit_test(test_casts_lose_nothing), cmocka_unit_test(test_nulls_and_large_types_and_doubles_of_names),
                                       cmocka_unit_test(test_values_obey_the_types), cmocka_unit_test(test_decimals_have_their_digits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
