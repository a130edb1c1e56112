// SPDX-License-Identifier: Apache-2.0
#include "arrow_testing.h"

#include "arrow/array.h"
#include "base/random.h"

static struct error why;

static struct arrow_field field(enum arrow_type type) { return arrow_field_make("v", type, true); }

// One column built from text, NULL = null.
static struct arrow_batch column(struct arrow_field take_field, const char *const *texts, uint32_t count) {
    struct arrow_field *fields = mem_new_array(struct arrow_field, 1);
    fields[0] = take_field;
    struct arrow_schema *s = arrow_schema_new(fields, 1);
    struct arrow_builder *b = arrow_builder_new(s);
    struct arrow_batch out;
    for (uint32_t i = 0; i < count; i++) {
        if (texts[i]) assert_fine(arrow_builder_text(b, 0, texts[i], strlen(texts[i]), &why));
        arrow_builder_row(b);
    }
    arrow_builder_finish(b, &out);
    arrow_builder_free(b);
    arrow_schema_unref(s);
    return out;
}

static void text_is(const struct arrow_field *f, const struct arrow_array *a, int64_t row, const char *expected) {
    struct buffer out;
    buffer_init(&out, 1 << 16);
    assert_int_equal(arrow_is_null(a, row), expected == NULL);
    arrow_value_text(f, a, row, &out);
    assert_string_equal(buffer_string(&out), expected ? expected : "");
    buffer_deinit(&out);
}

// Row by row through take is the slowest and plainest way to any part of a batch: slice and concat have to agree with it.
static void take_slice_and_concat_agree(void **state) {
    static const char *const files[] = {"types.arrows", "strings_zstd.arrows", "dictionary_nested.arrows"};
    struct random r;
    random_seed(&r, 7);
    for (size_t k = 0; k < 3; k++) {
        struct test_stream s = test_read_golden(files[k]);
        struct arrow_batch *b = &s.batches[0];
        for (int round = 0; round < 60; round++) {
            int64_t begin = (int64_t)random_below(&r, (uint64_t)b->row_count + 1), count = (int64_t)random_below(&r, (uint64_t)(b->row_count - begin) + 1);
            int64_t middle = (int64_t)random_below(&r, (uint64_t)count + 1);
            uint32_t rows[256];
            struct arrow_batch sliced, taken, left, right, joined;
            for (int64_t i = 0; i < count; i++) rows[i] = (uint32_t)(begin + i);
            arrow_slice(b, begin, count, &sliced);
            arrow_take(b, rows, (size_t)count, &taken);
            assert_true(test_batch_equal(&sliced, &taken));
            arrow_slice(&sliced, 0, middle, &left);
            arrow_slice(&sliced, middle, count - middle, &right);
            const struct arrow_batch *parts[2] = {&left, &right};
            arrow_concat(parts, 2, &joined);
            assert_true(test_batch_equal(&taken, &joined));
            arrow_batch_deinit(&left);
            arrow_batch_deinit(&right);
            arrow_batch_deinit(&joined);
            arrow_batch_deinit(&taken);
            arrow_batch_deinit(&sliced);
        }
        test_stream_deinit(&s);
    }
}

// A slice must not carry its parent's bytes.
static void a_slice_is_as_small_as_its_rows(void **state) {
    struct test_stream s = test_read_golden("strings_zstd.arrows");
    struct arrow_batch part;
    arrow_slice(&s.batches[0], 100, 2, &part);
    // two rows: "row 100 ✓", null? no: 101 % 7 == 3, so null; offsets 12, validity 1, text 11, numbers 16
    assert_int_equal(arrow_batch_bytes(&part), 12 + 1 + 11 + 16);
    arrow_batch_deinit(&part);
    test_stream_deinit(&s);
}

static void take_repeats_and_reorders(void **state) {
    static const char *const texts[] = {"[1,2]", NULL, "[]", "[3]"};
    struct arrow_field list = field(ARROW_LIST);
    list.children = mem_new_array(struct arrow_field, 1);
    list.children[0] = field(ARROW_INT64);
    list.child_count = 1;
    struct arrow_batch b = column(list, texts, 4), out;
    uint32_t rows[] = {3, 0, 1, 0, 2};
    arrow_take(&b, rows, 5, &out);
    static const char *const expected[] = {"[3]", "[1,2]", NULL, "[1,2]", "[]"};
    for (int i = 0; i < 5; i++) text_is(arrow_schema_at(b.schema, 0), &out.columns[0], i, expected[i]);
    arrow_batch_deinit(&out);
    arrow_batch_deinit(&b);
}

static struct arrow_field with_unit(enum arrow_type type, enum arrow_unit unit, const char *zone) {
    struct arrow_field f = field(type);
    f.unit = unit;
    if (zone) f.timezone = mem_strdup(zone);
    return f;
}

static struct arrow_field decimal(int32_t precision, int32_t scale) {
    struct arrow_field f = field(ARROW_DECIMAL128);
    f.precision = precision;
    f.scale = scale;
    return f;
}

static struct arrow_field fixed(int32_t width) {
    struct arrow_field f = field(ARROW_FIXED_BINARY);
    f.width = width;
    return f;
}

static void check_cast(struct arrow_field from, const char *text, struct arrow_field to, const char *expected, const char *error) {
    const char *texts[] = {text, NULL, text};
    struct arrow_batch b = column(from, texts, 3);
    struct arrow_array out;
    const struct arrow_field *f = arrow_schema_at(b.schema, 0);
    enum mink_code code = arrow_cast(f, &b.columns[0], &to, &out, &why);
    if (error) {
        assert_int_equal(code, MINK_INVALID);
        assert_string_equal(why.reason, "TYPE_MISMATCH");
        assert_string_equal(why.message, error);
    } else {
        assert_fine(code);
        assert_true(arrow_can_cast(f, &to));
        text_is(&to, &out, 0, expected);
        text_is(&to, &out, 1, NULL);
        text_is(&to, &out, 2, expected);
        arrow_array_deinit(&out);
    }
    arrow_field_deinit(&to);
    arrow_batch_deinit(&b);
}

static void casts_keep_every_value(void **state) {
    check_cast(field(ARROW_INT8), "-128", field(ARROW_INT64), "-128", NULL);
    check_cast(field(ARROW_UINT8), "255", field(ARROW_INT16), "255", NULL);
    check_cast(field(ARROW_UINT32), "4294967295", field(ARROW_INT64), "4294967295", NULL);
    check_cast(field(ARROW_UINT64), "18446744073709551615", decimal(20, 0), "18446744073709551615", NULL);
    check_cast(field(ARROW_INT64), "-9223372036854775808", decimal(21, 2), "-9223372036854775808.00", NULL);
    check_cast(field(ARROW_INT64), "1", decimal(20, 2), NULL, "column v is decimal128(20, 2), int64 was given");
    check_cast(field(ARROW_INT64), "1", field(ARROW_INT32), NULL, "column v is int32, int64 was given");
    check_cast(field(ARROW_UINT32), "1", field(ARROW_INT32), NULL, "column v is int32, uint32 was given");
    check_cast(field(ARROW_INT32), "1", field(ARROW_FLOAT64), NULL, "column v is double, int32 was given");
    check_cast(field(ARROW_FLOAT32), "1.5", field(ARROW_FLOAT64), "1.5", NULL);
    check_cast(decimal(10, 2), "12345678.90", decimal(14, 4), "12345678.9000", NULL);
    check_cast(decimal(10, 2), "1.00", decimal(11, 4), NULL, "column v is decimal128(11, 4), decimal128(10, 2) was given");
    check_cast(decimal(10, 2), "1.00", decimal(10, 1), NULL, "column v is decimal128(10, 1), decimal128(10, 2) was given");
    check_cast(field(ARROW_LARGE_UTF8), "größe", field(ARROW_UTF8), "größe", NULL);
    check_cast(field(ARROW_LARGE_BINARY), "00ff", field(ARROW_BINARY), "00ff", NULL);
    check_cast(fixed(3), "010203", field(ARROW_BINARY), "010203", NULL);
    check_cast(field(ARROW_UTF8), "x", field(ARROW_BINARY), NULL, "column v is binary, string was given");
    check_cast(field(ARROW_DATE64), "2024-02-29", field(ARROW_DATE32), "2024-02-29", NULL);
    check_cast(with_unit(ARROW_TIME32, ARROW_SECOND, NULL), "23:59:59", with_unit(ARROW_TIME64, ARROW_NANO, NULL), "23:59:59", NULL);
    check_cast(with_unit(ARROW_TIMESTAMP, ARROW_SECOND, NULL), "1969-12-31 23:59:59", with_unit(ARROW_TIMESTAMP, ARROW_NANO, NULL), "1969-12-31 23:59:59", NULL);
    check_cast(with_unit(ARROW_TIMESTAMP, ARROW_SECOND, NULL), "3000-01-01 00:00:00", with_unit(ARROW_TIMESTAMP, ARROW_NANO, NULL), NULL,
               "column v: the timestamp[s] at row 0 does not fit into timestamp[ns]");
    check_cast(with_unit(ARROW_TIMESTAMP, ARROW_MICRO, "UTC"), "2024-01-01", with_unit(ARROW_TIMESTAMP, ARROW_MICRO, NULL), NULL,
               "column v is timestamp[us], timestamp[us, tz=UTC] was given");
    check_cast(with_unit(ARROW_TIMESTAMP, ARROW_MICRO, "UTC"), "2024-01-01", with_unit(ARROW_TIMESTAMP, ARROW_MICRO, "Europe/Berlin"), "2024-01-01 00:00:00Z", NULL);
    check_cast(with_unit(ARROW_TIMESTAMP, ARROW_NANO, NULL), "2024-01-01", with_unit(ARROW_TIMESTAMP, ARROW_MICRO, NULL), NULL,
               "column v is timestamp[us], timestamp[ns] was given");
}

static void nested_casts_and_nulls(void **state) {
    struct arrow_field from = field(ARROW_LARGE_LIST), to = field(ARROW_LIST);
    from.children = mem_new_array(struct arrow_field, 1);
    to.children = mem_new_array(struct arrow_field, 1);
    from.children[0] = field(ARROW_INT8);
    to.children[0] = field(ARROW_INT64);
    from.child_count = to.child_count = 1;
    check_cast(from, "[1,null,-3]", to, "[1,null,-3]", NULL);
    struct arrow_field nothing = field(ARROW_NULL), text = field(ARROW_UTF8);
    struct arrow_array nulls, out;
    arrow_nulls(&nothing, 3, &nulls);
    assert_fine(arrow_cast(&nothing, &nulls, &text, &out, &why));
    assert_int_equal(out.null_count, 3);
    assert_true(arrow_is_null(&out, 2));
    arrow_array_deinit(&out);
    text.nullable = false;
    assert_code(MINK_INVALID, arrow_cast(&nothing, &nulls, &text, &out, &why));
    arrow_array_deinit(&nulls);
    arrow_field_deinit(&nothing);
    arrow_field_deinit(&text);
}

static void statistics_of_columns(void **state) {
    struct arrow_column_stats st;
    struct arrow_batch b = column(field(ARROW_INT32), (const char *[]){"5", NULL, "-7", "5"}, 4);
    arrow_stats(arrow_schema_at(b.schema, 0), &b.columns[0], &st);
    assert_true(st.has_min_max && st.min.i == -7 && st.max.i == 5 && st.null_count == 1);
    arrow_batch_deinit(&b);
    b = column(field(ARROW_UINT32), (const char *[]){"4294967295", "1"}, 2);
    arrow_stats(arrow_schema_at(b.schema, 0), &b.columns[0], &st);
    assert_true(st.has_min_max && st.min.i == 1 && st.max.i == 4294967295);
    arrow_batch_deinit(&b);
    b = column(field(ARROW_FLOAT64), (const char *[]){"0.5", "-inf", "2"}, 3);
    arrow_stats(arrow_schema_at(b.schema, 0), &b.columns[0], &st);
    assert_true(st.has_min_max && st.min.d < -1e308 && st.max.d == 2);
    arrow_batch_deinit(&b);
    b = column(field(ARROW_FLOAT64), (const char *[]){"0.5", "nan"}, 2);
    arrow_stats(arrow_schema_at(b.schema, 0), &b.columns[0], &st);
    assert_false(st.has_min_max);
    arrow_batch_deinit(&b);
    b = column(field(ARROW_UTF8), (const char *[]){"b", "", NULL, "ab", "é"}, 5);
    arrow_stats(arrow_schema_at(b.schema, 0), &b.columns[0], &st);
    assert_true(st.has_min_max && st.min.size == 0 && st.max.size == 2 && memcmp(st.max.bytes, "é", 2) == 0);
    arrow_batch_deinit(&b);
    b = column(decimal(5, 2), (const char *[]){"-1.50", "3"}, 2);
    arrow_stats(arrow_schema_at(b.schema, 0), &b.columns[0], &st);
    assert_true(st.min.dec == -150 && st.max.dec == 300);
    arrow_batch_deinit(&b);
    b = column(field(ARROW_INT64), (const char *[]){NULL, NULL}, 2);
    arrow_stats(arrow_schema_at(b.schema, 0), &b.columns[0], &st);
    assert_true(!st.has_min_max && st.null_count == 2);
    arrow_batch_deinit(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(take_slice_and_concat_agree), cmocka_unit_test(a_slice_is_as_small_as_its_rows), cmocka_unit_test(take_repeats_and_reorders),
        cmocka_unit_test(casts_keep_every_value), cmocka_unit_test(nested_casts_and_nulls), cmocka_unit_test(statistics_of_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
