// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

static struct json *parse(const char *text) {
    struct json *j = NULL;
    struct error e;
    if (json_parse(text, strlen(text), &j, &e) != MINK_OK) fail_msg("%s: %s", text, e.message);
    return j;
}

static void values_have_types(void **state) {
    struct json *j = parse("{\"n\":null,\"t\":true,\"f\":false,\"i\":-9223372036854775808,\"r\":2.5e3,\"s\":\"gr\\u00fc\\u00df \\ud83d\\ude00\",\"a\":[1,\"x\",[]],\"o\":{}}");
    assert_int_equal(json_type(j), JSON_OBJECT);
    assert_int_equal(json_count(j), 8);
    assert_int_equal(json_type(json_get(j, "n")), JSON_NULL);
    assert_true(json_bool(json_get(j, "t")));
    assert_int_equal(json_type(json_get(j, "f")), JSON_BOOL);
    assert_false(json_bool(json_get(j, "f")));
    assert_true(json_int(json_get(j, "i")) == INT64_MIN);
    assert_int_equal(json_type(json_get(j, "r")), JSON_REAL);
    assert_true(json_number(json_get(j, "r")) == 2500);
    assert_true(json_number(json_at(json_get(j, "a"), 0)) == 1);
    assert_string_equal(json_text(json_get(j, "s")), "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
    assert_int_equal(json_count(json_get(j, "a")), 3);
    assert_string_equal(json_text(json_at(json_get(j, "a"), 1)), "x");
    assert_null(json_at(json_get(j, "a"), 3));
    assert_int_equal(json_type(json_get(j, "o")), JSON_OBJECT);
    assert_null(json_get(j, "absent"));
    // Asking a value of another type, or no value, is harmless.
    assert_null(json_get(json_get(j, "a"), "x"));
    assert_null(json_at(j, 0));
    assert_null(json_text(json_get(j, "i")));
    assert_int_equal(json_int(json_get(j, "s")), 0);
    assert_int_equal(json_count(json_get(j, "s")), 0);
    assert_int_equal(json_type(NULL), JSON_NULL);
    json_free(j);
    json_free(NULL);
}

static void keys_come_in_the_order_of_the_text(void **state) {
    struct json *j = parse("{\"zeta\":1,\"alpha\":2,\"mid\":3}");
    const struct json *v;
    assert_string_equal(json_key_at(j, 0, &v), "zeta");
    assert_int_equal(json_int(v), 1);
    assert_string_equal(json_key_at(j, 1, &v), "alpha");
    assert_string_equal(json_key_at(j, 2, NULL), "mid");
    assert_null(json_key_at(j, 3, &v));
    assert_null(v);
    json_free(j);
}

static void nothing_reads_as_an_empty_object(void **state) {
    struct json *j = NULL;
    assert_int_equal(json_parse("", 0, &j, NULL), MINK_OK);
    assert_int_equal(json_type(j), JSON_OBJECT);
    assert_int_equal(json_count(j), 0);
    json_free(j);
}

static void a_mistake_is_told_with_its_place(void **state) {
    static const struct { const char *text, *part; } cases[] = {
        {"{\"table\": \"a\",\n \"limit\" 5}", "JSON, line 2, column 10: "},
        {"{\"a\":1,}", "JSON, line 1, column 8: "},
        {"{\"a\":1,\"a\":2}", "duplicate object key"},
        {"[1,2", "JSON, line 1, column 4: "},
        {"{} x", "JSON, line 1, column 4: "},
        {"nul", "JSON, line 1, column 3: "},
        {"{\"a\":\"\xff\"}", "unable to decode byte 0xff"},
        {"{\"a\":99999999999999999999}", "too big integer"},
        {"{'a':1}", "JSON, line 1, column 2: "}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct json *j = (struct json *)1;
        struct error e;
        assert_int_equal(json_parse(cases[i].text, strlen(cases[i].text), &j, &e), MINK_INVALID);
        assert_null(j);
        assert_string_equal(e.reason, "BAD_JSON");
        if (!strstr(e.message, cases[i].part)) fail_msg("%s is not in: %s", cases[i].part, e.message);
    }
}

static void depth_and_size_are_bounded(void **state) {
    char text[400];
    struct json *j = NULL;
    struct error e;
    for (int depth = 63; depth <= 66; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        enum mink_code code = json_parse(text, 2 * (size_t)depth, &j, &e);
        assert_int_equal(code, depth <= 64 ? MINK_OK : MINK_INVALID);
        json_free(j);
    }
    assert_string_equal(e.message, "JSON is nested deeper than 64");
    // Brackets inside strings are text.
    memset(text, '[', 200);
    memcpy(text, "\"\\\"", 3);
    text[199] = '"';
    assert_int_equal(json_parse(text, 200, &j, &e), MINK_OK);
    json_free(j);
    size_t size = (16u << 20) + 1;
    char *large = mem_alloc(size);
    memset(large, ' ', size);
    assert_int_equal(json_parse(large, size, &j, &e), MINK_INVALID);
    assert_string_equal(e.message, "JSON of 16777217 bytes: at most 16777216 are taken");
    mem_free(large);
}

static void fields_are_checked_and_named(void **state) {
    struct json *j = parse("{\"name\":\"x\",\"n\":7,\"on\":true,\"none\":null,\"real\":1.5,\"zero\":\"a\\u0000b\"}");
    struct error e;
    const char *text = "before";
    int64_t n = -1;
    bool on = false;
    assert_int_equal(json_field_string(j, "ticket", "name", true, &text, &e), MINK_OK);
    assert_string_equal(text, "x");
    assert_int_equal(json_field_int(j, "ticket", "n", true, 0, 10, &n, &e), MINK_OK);
    assert_int_equal(n, 7);
    assert_int_equal(json_field_bool(j, "ticket", "on", true, &on, &e), MINK_OK);
    assert_true(on);

    // Absent or null and optional: unchanged.
    assert_int_equal(json_field_string(j, "ticket", "absent", false, &text, &e), MINK_OK);
    assert_int_equal(json_field_string(j, "ticket", "none", false, &text, &e), MINK_OK);
    assert_string_equal(text, "x");
    assert_int_equal(json_field_int(j, "ticket", "none", false, 0, 1, &n, &e), MINK_OK);
    assert_int_equal(n, 7);

    assert_int_equal(json_field_string(j, "ticket", "absent", true, &text, &e), MINK_INVALID);
    assert_string_equal(e.reason, "MISSING_KEY");
    assert_string_equal(e.message, "ticket: \"absent\" is missing");
    assert_string_equal(e.column, "absent");
    assert_int_equal(json_field_int(j, "ticket", "name", true, 0, 10, &n, &e), MINK_INVALID);
    assert_string_equal(e.reason, "BAD_VALUE");
    assert_string_equal(e.message, "ticket: \"name\" must be a whole number, not a string");
    assert_string_equal(e.expected, "a whole number");
    assert_string_equal(e.actual, "a string");
    assert_int_equal(json_field_int(j, "ticket", "real", true, 0, 10, &n, &e), MINK_INVALID);
    assert_string_equal(e.message, "ticket: \"real\" must be a whole number, not a number");
    assert_int_equal(json_field_int(j, "ticket", "n", true, 8, 10, &n, &e), MINK_INVALID);
    assert_string_equal(e.message, "ticket: \"n\" is 7, outside 8 to 10");
    assert_int_equal(json_field_bool(j, "ticket", "n", true, &on, &e), MINK_INVALID);
    assert_string_equal(e.message, "ticket: \"n\" must be true or false, not a whole number");
    assert_int_equal(json_field_string(j, "ticket", "zero", true, &text, &e), MINK_INVALID);
    assert_string_equal(e.message, "ticket: \"zero\" holds a zero character");
    assert_int_equal(json_field_string(json_get(j, "n"), "ticket", "x", true, &text, &e), MINK_INVALID);
    assert_string_equal(e.message, "ticket: wants an object, not a whole number");
    assert_string_equal(text, "x");
    assert_int_equal(n, 7);
    json_free(j);
}

static void an_unknown_key_gets_the_nearest_name(void **state) {
    static const char *const known[] = {"table", "columns", "filter", NULL};
    struct error e;
    struct json *j = parse("{\"table\":1,\"colums\":[]}");
    assert_int_equal(json_check_keys(j, "ticket", known, &e), MINK_INVALID);
    assert_string_equal(e.reason, "UNKNOWN_KEY");
    assert_string_equal(e.message, "ticket: unknown key \"colums\"; did you mean \"columns\"?");
    assert_string_equal(e.column, "colums");
    json_free(j);
    j = parse("{\"zzzzzzz\":1}");
    assert_int_equal(json_check_keys(j, "ticket", known, &e), MINK_INVALID);
    assert_string_equal(e.message, "ticket: unknown key \"zzzzzzz\"");
    json_free(j);
    j = parse("{\"filter\":1,\"table\":2}");
    assert_int_equal(json_check_keys(j, "ticket", known, &e), MINK_OK);
    json_free(j);
    j = parse("[]");
    assert_int_equal(json_check_keys(j, "ticket", known, &e), MINK_INVALID);
    assert_string_equal(e.message, "ticket: wants an object, not an array");
    json_free(j);
}

static void written_text_is_spelled_out(void **state) {
    struct buffer b;
    struct json_writer w;
    buffer_init(&b, 10000);
    json_begin(&w, &b);
    json_object_begin(&w);
    json_put_key(&w, "a\"b");
    json_put_string(&w, "tab\t nl\n quote\" back\\ bell\a \xc3\xbc");
    json_put_key(&w, "list");
    json_array_begin(&w);
    json_put_int(&w, INT64_MIN);
    json_put_uint(&w, UINT64_MAX);
    json_put_real(&w, 0.1);
    json_put_real(&w, 3);
    json_put_real(&w, 1e300);
    json_put_real(&w, NAN);
    json_put_real(&w, -INFINITY);
    json_put_bool(&w, true);
    json_put_null(&w);
    json_put_string(&w, NULL);
    json_array_begin(&w);
    json_array_end(&w);
    json_object_begin(&w);
    json_object_end(&w);
    json_put_raw(&w, "{\"raw\":1}", 9);
    json_array_end(&w);
    json_put_key(&w, "z");
    json_put_text(&w, "cut here", 3);
    json_object_end(&w);
    assert_string_equal(buffer_string(&b), "{\"a\\\"b\":\"tab\\t nl\\n quote\\\" back\\\\ bell\\u0007 \xc3\xbc\",\"list\":[-9223372036854775808,18446744073709551615,0.1,3.0,1e+300,"
                                           "\"NaN\",\"-Infinity\",true,null,null,[],{},{\"raw\":1}],\"z\":\"cut\"}");
    buffer_deinit(&b);
}

// The examples of the Unicode standard (section 3.9, table 3-8 and its neighbours), and texts cut inside a character.
static void bytes_that_are_no_text_become_replacement_characters(void **state) {
    static const struct { const char *in, *out; } cases[] = {
        {"a\x80z", "\"a\xef\xbf\xbdz\""},
        {"\xc3", "\"\xef\xbf\xbd\""},
        {"\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xe2\x82\xac", "\"\xe2\x82\xac\""},
        {"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                         // overlong
        {"\xe0\x9f\xbf", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},         // overlong
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},         // a surrogate
        {"\xed\x9f\xbf\xee\x80\x80", "\"\xed\x9f\xbf\xee\x80\x80\""},         // its neighbours
        {"\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\""},                         // U+10FFFF
        {"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xf0\x90\x80\x80", "\"\xf0\x90\x80\x80\""},
        {"\xf0\x8f\xbf\xbf", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buffer b;
        struct json_writer w;
        buffer_init(&b, 1000);
        json_begin(&w, &b);
        json_put_string(&w, cases[i].in);
        assert_string_equal(buffer_string(&b), cases[i].out);
        json_free(parse(buffer_string(&b))); // jansson takes only UTF-8
        buffer_deinit(&b);
    }
}

static void reals_read_back_equal(void **state) {
    static const double values[] = {0, -0.0, 1.0 / 3, 5e-324, 1.7976931348623157e308, 0.1 + 0.2, 123456789012345680.0, -2.5};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct buffer b;
        struct json_writer w;
        buffer_init(&b, 100);
        json_begin(&w, &b);
        json_put_real(&w, values[i]);
        struct json *j = parse(buffer_string(&b));
        assert_int_equal(json_type(j), JSON_REAL);
        assert_true(json_number(j) == values[i]);
        json_free(j);
        buffer_deinit(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_types),
        cmocka_unit_test(keys_come_in_the_order_of_the_text),
        cmocka_unit_test(nothing_reads_as_an_empty_object),
        cmocka_unit_test(a_mistake_is_told_with_its_place),
        cmocka_unit_test(depth_and_size_are_bounded),
        cmocka_unit_test(fields_are_checked_and_named),
        cmocka_unit_test(an_unknown_key_gets_the_nearest_name),
        cmocka_unit_test(written_text_is_spelled_out),
        cmocka_unit_test(bytes_that_are_no_text_become_replacement_characters),
        cmocka_unit_test(reals_read_back_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
