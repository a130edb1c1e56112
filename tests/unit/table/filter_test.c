// SPDX-License-Identifier: Apache-2.0
#include "table_testing.h"

#include "arrow/kernel.h"
#include "table/filter.h"

#include <math.h>

#define COLUMNS "i INT, l BIGINT, t TINYINT, s STRING, d DECIMAL(5,2), f DOUBLE, g FLOAT, b BOOLEAN, day DATE, at TIMESTAMP(3), z TIMESTAMP_LTZ(6), k TIME(0), y BYTES, x BINARY(2), a ARRAY<INT>, `order` STRING"
#define ROWS                                                                                                                                                                                       \
    "[[1,10,1,\"a\",\"1.00\",0.5,0.1,true,\"2026-01-01\",\"2026-01-01 00:00:00\",\"2026-01-01 00:00:00Z\",\"10:00:00\",\"00\",\"0000\",[1],\"x\"],"                                            \
    "[2,9007199254740993,-128,\"ab\",\"2.50\",1.5,2.5,false,\"2026-02-01\",\"2026-01-01 00:00:00.001\",\"2026-01-01 01:00:00Z\",\"11:00:00\",\"ff\",\"00ff\",null,\"y\"],"                      \
    "[3,-1,127,\"b%_c\",\"-2.51\",-0.0,-1,null,\"2025-12-31\",\"2025-12-31 23:59:59.999\",\"2026-01-01 02:00:00Z\",\"12:00:00\",\"\",\"ff00\",[],null],"                                          \
    "[null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null],"                                                                                                            \
    "[5,-9223372036854775808,0,\"äö\",\"999.99\",1e300,3.4e38,true,\"9999-12-31\",\"1969-12-31 23:59:59\",\"2027-01-01 00:00:00Z\",\"23:59:59\",\"00ff00\",\"ffff\",[null],\"\"]]"

static void passes(const char *filter, const char *wanted) {
    struct error why = {0};
    static struct table_def *d;
    static struct arrow_batch b;
    if (filter == NULL) { // the end
        arrow_batch_deinit(&b);
        table_def_unref(d);
        return;
    }
    if (d == NULL) {
        d = test_table("CREATE TABLE d.t (" COLUMNS ")");
        test_batch(d->arrow, ROWS, &b);
    }
    struct filter *f;
    if (filter_parse(filter, d, &f, &why) != MINK_OK) fail_msg("%s: %s\n%s", filter, why.message, why.hint);
    uint32_t columns[16], rows[5];
    char got[32] = "";
    for (uint32_t i = 0; i < 16; i++) columns[i] = i;
    size_t count = filter_rows(f, &b, columns, rows);
    for (size_t i = 0; i < count; i++) snprintf(got + strlen(got), sizeof got - strlen(got), "%u", rows[i]);
    if (strcmp(got, wanted) != 0) fail_msg("%s: rows %s, wanted %s", filter, got, wanted);
    filter_free(f);
}

// Wanted rows are those of SQL, by hand.
static void test_rows_pass_when_true(void **state) {
    passes("i = 2", "1");
    passes("i <> 2", "024");
    passes("i != 2", "024");
    passes("i < 2", "0");
    passes("i <= 2", "01");
    passes("i > 2", "24");
    passes("i >= 3", "24");
    passes("2 < i", "24");
    passes("-1 <= l", "012");
    passes("l = 9007199254740993", "1"); // not through a double
    passes("l = 9007199254740992", "");
    passes("l = -9223372036854775808", "4");
    passes("l < -9223372036854775808", "");
    passes("l >= -9223372036854775809", "0124");
    passes("l < 1e30", "0124");
    passes("l > 1e30", "");
    passes("t = 127", "2");
    passes("t = 128", "");
    passes("t <> 128", "0124");
    passes("t < 127.5", "0124");
    passes("t >= -128.5", "0124");
    passes("t > -127.5", "024");
    passes("i > 2.5", "24");
    passes("i >= 2.5", "24");
    passes("i < 2.5", "01");
    passes("i = 2.5", "");
    passes("i <> 2.5", "0124");
    passes("i = 2.0", "1");
    passes("i = 20e-1", "1");
    passes("i = '2'", "1");
    passes("d = 2.5", "1");
    passes("d > 2.499", "14");
    passes("d >= 2.501", "4");
    passes("d < -2.505", "2");
    passes("d < 1000", "0124");
    passes("d > 999.99", "");
    passes("d >= 999.99", "4");
    passes("f = 0", "2"); // minus zero is zero
    passes("f > 0.5", "14");
    passes("f < 1e400", "0124");
    passes("g = 0.1", "0"); // as a FLOAT
    passes("g < 2.5", "02");
    passes("g > 1e38", "4");
    passes("s = 'ab'", "1");
    passes("s > 'ab'", "24");
    passes("s >= 'ab'", "124");
    passes("s < 'ab'", "0");
    passes("s <> ''", "0124");
    passes("`order` = ''", "4");
    passes("\"order\" <> 'x'", "14");
    passes("b", "04");
    passes("NOT b", "1");
    passes("b = TRUE", "04");
    passes("b <> TRUE", "1");
    passes("FALSE = b", "1");
    passes("day >= '2026-01-01'", "014");
    passes("day < DATE '2026-01-01'", "2");
    passes("at > '2026-01-01 00:00:00'", "1");
    passes("at >= TIMESTAMP '2026-01-01'", "01");
    passes("at < '1970-01-01'", "4");
    passes("z = '2026-01-01 02:00:00+01:00'", "1");
    passes("z > '2026-01-01 01:00:00'", "24");
    passes("k BETWEEN '10:30:00' AND '12:00:00'", "12");
    passes("y = X'00FF00'", "4");
    passes("y < X'01'", "024");
    passes("x = X'00ff'", "1");
    passes("a IS NULL", "13");
    passes("a IS NOT NULL", "024");
}

static void test_unknown_is_not_true(void **state) {
    passes("i IS NULL", "3");
    passes("i IS NOT NULL", "0124");
    passes("i = NULL", "");
    passes("NOT i = NULL", "");
    passes("NOT i = 2", "024");
    passes("i = 2 OR i IS NULL", "13");
    passes("b OR i = 3", "024");
    passes("NOT (b OR i = 3)", "1"); // row 3: unknown
    passes("b AND i = 3", "");
    passes("NOT (b AND i = 3)", "014"); // row 2: unknown and true
    passes("i IN (1, 3, 77)", "02");
    passes("i NOT IN (1, 3, 77)", "14");
    passes("i IN (1, NULL)", "0");
    passes("i NOT IN (1, NULL)", "");
    passes("i IN (2.5, 1e99)", "");
    passes("i NOT IN (2.5)", "0124");
    passes("i IN (0, 1, 2, 4, 6, 7, 8, 9, 10, 11, 12)", "01");
    passes("s IN ('a', 'äö', '')", "04");
    passes("d IN (2.5, 999.99, 1.001)", "14");
    passes("g IN (0.1)", "0");
    passes("f IN (0, 1.5)", "12");
    passes("b IN (FALSE)", "1");
    passes("day IN ('2025-12-31')", "2");
    passes("x IN (X'ffff', X'0000')", "04");
    passes("i BETWEEN 2 AND 4", "12");
    passes("i NOT BETWEEN 2 AND 4", "04");
    passes("i BETWEEN 4 AND 2", "");
    passes("i BETWEEN NULL AND 2", "");
    passes("NOT i BETWEEN NULL AND 2", "24"); // false as soon as it is above 2
    passes("TRUE", "01234");
    passes("FALSE OR i = 1", "0");
    passes("NOT FALSE AND i = 1", "0");
}

static void test_like(void **state) {
    passes("s LIKE 'a%'", "01");
    passes("s NOT LIKE 'a%'", "24");
    passes("s LIKE 'a'", "0");
    passes("s LIKE '%'", "0124");
    passes("s LIKE ''", "");
    passes("`order` LIKE ''", "4");
    passes("s LIKE '_'", "0");
    passes("s LIKE '__'", "14"); // characters, not bytes
    passes("s LIKE '%b%'", "12");
    passes("s LIKE '%c'", "2");
    passes("s LIKE 'b\\%\\_c'", "2");
    passes("s LIKE 'b\\%%'", "2");
    passes("s LIKE '%\\__'", "2");
    passes("s LIKE '_b'", "1");
    passes("s LIKE NULL", "");
    passes("s LIKE '%%b%%%c%'", "2");
    passes("s LIKE '%ö'", "4");
}

static void test_and_binds_tighter_than_or(void **state) {
    passes("i = 1 OR i = 2 AND s = 'x'", "0");
    passes("(i = 1 OR i = 2) AND s = 'ab'", "1");
    passes("NOT i = 1 AND i < 4", "12");
    passes("not (not (i = 1))", "0");
    passes("i = 1 or i = 2 or i = 3 -- a comment", "012");
}

static void refuses(const char *filter, const char *reason, const char *message) {
    struct error why;
    struct filter *f;
    struct table_def *d = test_table("CREATE TABLE d.t (" COLUMNS ")");
    assert_refused(reason, message, filter_parse(filter, d, &f, &why));
    assert_null(f);
    assert_non_null(strchr(why.hint, '^'));
    table_def_unref(d);
}

static void test_wrong_filters_are_explained(void **state) {
    refuses("", "BAD_FILTER", "line 1, column 1: expected a column, found the end");
    refuses("i = 1 AND dya = 'x'", "COLUMN_NOT_FOUND", "line 1, column 11: table d.t has no column \"dya\"; did you mean day?");
    refuses("i =", "BAD_FILTER", "line 1, column 4: expected a number, found the end");
    refuses("i = a", "BAD_FILTER", "line 1, column 5: expected a number, found a");
    refuses("i = 'two'", "BAD_FILTER", "line 1, column 5: column i is INT: expected a number");
    refuses("i = '0x10'", "BAD_FILTER", "column i is INT: expected a number");
    refuses("f = 'nan'", "BAD_FILTER", "column f is DOUBLE: expected a number");
    refuses("i = DATE '2026-01-01'", "BAD_FILTER", "column i is INT: expected a number");
    refuses("i = TRUE", "BAD_FILTER", "column i is INT: expected a number");
    refuses("s = 1", "BAD_FILTER", "line 1, column 5: column s is STRING: expected a text in single quotes");
    refuses("s = \"a\"", "BAD_FILTER", "expected a text in single quotes, found \"a\"");
    refuses("day = 1", "BAD_FILTER", "column day is DATE: expected a date like '2026-12-01'");
    refuses("day = '2026-13-01'", "BAD_FILTER", "\"2026-13-01\" is not a date32[day]");
    refuses("at = '2026-01-01 00:00:00.0001'", "BAD_FILTER", "is not a timestamp[ms]");
    refuses("y = 'xyz'", "BAD_FILTER", "hexadecimal digits are expected");
    refuses("b < TRUE", "BAD_FILTER", "column b is BOOLEAN: expected = or <>");
    refuses("b = 1", "BAD_FILTER", "column b is BOOLEAN: expected TRUE or FALSE");
    refuses("a = 1", "BAD_FILTER", "column a is ARRAY<INT>: expected IS NULL or IS NOT NULL");
    refuses("i", "BAD_FILTER", "expected a comparison, IS, IN, BETWEEN or LIKE, found the end");
    refuses("i LIKE 'a%'", "BAD_FILTER", "line 1, column 8: LIKE is for CHAR and STRING; column i is INT");
    refuses("s LIKE 1", "BAD_FILTER", "expected a pattern in single quotes, found 1");
    refuses("s LIKE 'a\\'", "BAD_FILTER", "the pattern ends with an escape");
    refuses("s LIKE '%\\'", "BAD_FILTER", "the pattern ends with an escape");
    refuses("i NOT = 1", "BAD_FILTER", "expected IN, BETWEEN or LIKE, found =");
    refuses("i IS 1", "BAD_FILTER", "expected NULL or NOT NULL, found 1");
    refuses("i IN 1", "BAD_FILTER", "expected ( and a list, found 1");
    refuses("i IN ()", "BAD_FILTER", "expected a number, found )");
    refuses("i IN (1 2)", "BAD_FILTER", "expected , or ), found 2");
    refuses("i BETWEEN 1 OR 2", "BAD_FILTER", "expected AND, found OR");
    refuses("(i = 1", "BAD_FILTER", "line 1, column 7: expected AND, OR or ), found the end");
    refuses("i = 1)", "BAD_FILTER", "line 1, column 6: expected AND, OR or the end, found )");
    refuses("i = 1 AND", "BAD_FILTER", "expected a column, found the end");
    refuses("1 = 1", "BAD_FILTER", "expected a column, found 1");
    refuses("1 + i", "BAD_FILTER", "expected a comparison, found +");
    refuses("s = 'no end", "BAD_FILTER", "found a string that does not end");
    char deep[300];
    memset(deep, '(', 200);
    deep[200] = 0;
    refuses(deep, "BAD_FILTER", "nested deeper than 64");
}

// Many rows, so that whole words, the last word and the nulls between are met: against the plain meaning, row by row.
static void test_columns_of_any_length(void **state) {
    struct error why = {0};
    struct table_def *d = test_table("CREATE TABLE d.t (v INT, w DOUBLE)");
    struct filter *f;
    assert_fine(filter_parse("v > 3 AND NOT (w >= 0.5 OR v IN (5, 6))", d, &f, &why));
    static const int lengths[] = {1, 7, 63, 64, 65, 128, 1000};
    for (size_t n = 0; n < sizeof lengths / sizeof lengths[0]; n++) {
        struct arrow_builder *builder = arrow_builder_new(d->arrow);
        uint32_t wanted[1000], got[1000], columns[] = {0, 1};
        size_t wanted_count = 0;
        for (int i = 0; i < lengths[n]; i++) {
            int v = i * 7919 % 13;
            double w = i * 31 % 10 / 10.0;
            if (i % 5 == 4) arrow_builder_null(builder, 0);
            else arrow_builder_int(builder, 0, v);
            if (i % 7 == 6) arrow_builder_null(builder, 1);
            else arrow_builder_real(builder, 1, w);
            arrow_builder_row(builder);
            if (i % 5 != 4 && i % 7 != 6 && v > 3 && !(w >= 0.5 || v == 5 || v == 6)) wanted[wanted_count++] = (uint32_t)i;
        }
        struct arrow_batch b;
        arrow_builder_finish(builder, &b);
        assert_int_equal(filter_rows(f, &b, columns, got), wanted_count);
        assert_memory_equal(got, wanted, wanted_count * sizeof got[0]);
        arrow_batch_deinit(&b);
        arrow_builder_free(builder);
    }
    filter_free(f);
    table_def_unref(d);
}

static void test_nan_is_in_no_range(void **state) {
    struct error why = {0};
    struct table_def *d = test_table("CREATE TABLE d.t (w DOUBLE)");
    struct arrow_builder *builder = arrow_builder_new(d->arrow);
    arrow_builder_real(builder, 0, (double)NAN);
    arrow_builder_row(builder);
    struct arrow_batch b;
    arrow_builder_finish(builder, &b);
    static const struct { const char *text; size_t count; } cases[] = {{"w < 1", 0}, {"w > 1", 0}, {"w >= -1e400", 0}, {"w = 1", 0}, {"w <> 1", 1}, {"w IS NULL", 0}, {"w IN (1, 2)", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct filter *f;
        uint32_t row, column = 0;
        assert_fine(filter_parse(cases[i].text, d, &f, &why));
        assert_int_equal(filter_rows(f, &b, &column, &row), cases[i].count);
        filter_free(f);
    }
    arrow_batch_deinit(&b);
    arrow_builder_free(builder);
    table_def_unref(d);
}

static void test_columns_are_told(void **state) {
    struct error why = {0};
    struct table_def *d = test_table("CREATE TABLE d.t (a INT, b INT, c INT)");
    struct filter *f;
    bool used[3] = {0};
    assert_fine(filter_parse("c = 1 OR (a IS NULL AND TRUE)", d, &f, &why));
    filter_columns(f, used);
    assert_true(used[0] && !used[1] && used[2]);
    // Only those columns need be there, in any order.
    struct arrow_batch b, part;
    uint32_t rows[2], order[] = {2, 0};
    test_batch(d->arrow, "[[1,7,1],[1,7,2]]", &b);
    arrow_project(&b, order, 2, &part);
    assert_int_equal(filter_rows(f, &part, order, rows), 1);
    assert_int_equal(rows[0], 0);
    arrow_batch_deinit(&part);
    arrow_batch_deinit(&b);
    filter_free(f);
    table_def_unref(d);
}

// ---- statistics

static void may(const char *filter, bool wanted) {
    struct error why = {0};
    struct table_def *d = test_table("CREATE TABLE d.t (i INT, s STRING, f DOUBLE, d DECIMAL(5,2), n INT, u INT, h INT)");
    struct arrow_column_stats i = {.has_min_max = true, .min.i = 10, .max.i = 20}, s = {.has_min_max = true, .min = {.bytes = (const uint8_t *)"bb", .size = 2}, .max = {.bytes = (const uint8_t *)"dd", .size = 2}};
    struct arrow_column_stats f = {.has_min_max = true, .min.d = 1, .max.d = 2}, dec = {.has_min_max = true, .min.dec = 100, .max.dec = 250}, n = {.null_count = 100}, h = {.has_min_max = true, .min.i = 1, .max.i = 1, .null_count = 50};
    const struct arrow_column_stats *stats[] = {&i, &s, &f, &dec, &n, NULL, &h};
    struct filter *parsed;
    assert_fine(filter_parse(filter, d, &parsed, &why));
    if (filter_may_pass(parsed, stats, 100) != wanted) fail_msg("%s: %s", filter, wanted ? "passed over" : "not passed over");
    filter_free(parsed);
    table_def_unref(d);
}

static void test_statistics_pass_over_batches(void **state) {
    may("i = 9", false);
    may("i = 10", true);
    may("i < 10", false);
    may("i <= 10", true);
    may("i > 20", false);
    may("i >= 20", true);
    may("i <> 15", true);
    may("NOT i > 5", false);
    may("NOT i < 15", true);
    may("i BETWEEN 21 AND 30", false);
    may("i NOT BETWEEN 10 AND 20", false);
    may("i IN (1, 2, 30)", false);
    may("i IN (1, 15)", true);
    may("i NOT IN (15)", true);
    may("i > 1e30", false);
    may("s = 'a'", false);
    may("s = 'c'", true);
    may("s < 'bb'", false);
    may("s > 'dd'", false);
    may("s LIKE 'a%'", false);
    may("s LIKE 'b%'", true);
    may("s LIKE 'ba%'", false);
    may("s LIKE 'bbb%'", true);
    may("s LIKE 'dd%'", true); // the bound itself
    may("s LIKE 'e%'", false);
    may("s LIKE '%e'", true);
    may("s IN ('a', 'e')", false);
    may("f > 2", false);
    may("f >= 2", true);
    may("d < 1", false);
    may("d > 2.5", false);
    may("d IN (2.5)", true);
    may("n = 1", false); // all null
    may("n IS NULL", true);
    may("n IS NOT NULL", false);
    may("NOT n = 1", false);
    may("i IS NULL", false);
    may("u = 1", true); // nothing known
    may("u = 1 AND i = 9", false);
    may("u = 1 OR i = 9", true);
    may("i = 9 OR i = 21", false);
    may("NOT (i >= 10 AND i <= 20)", false);
    may("h <> 1", false); // 1 or null
    may("h IS NULL", true);
    may("FALSE", false);
    may("i = NULL", false);
}

static void test_end(void **state) { passes(NULL, ""); }

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_pass_when_true), cmocka_unit_test(test_unknown_is_not_true), cmocka_unit_test(test_like), cmocka_unit_test(test_and_binds_tighter_than_or),
                                       cmocka_unit_test(test_wrong_filters_are_explained), cmocka_unit_test(test_columns_of_any_length), cmocka_unit_test(test_nan_is_in_no_range),
                                       cmocka_unit_test(test_columns_are_told), cmocka_unit_test(test_statistics_pass_over_batches), cmocka_unit_test(test_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
