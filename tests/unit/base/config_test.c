// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct config_option options[] = {
    {"store", CONFIG_STRING, NULL, "where objects are"},
    {"threads", CONFIG_INT, "2", "how many", 1, 64},
    {"wal.linger_us", CONFIG_INT, "2000", "waits so long", 0, 1000000},
    {"wal.size_max", CONFIG_BYTES, "4MiB", "closes at this size", 1024, 1e9},
    {"wal.put_rate", CONFIG_REAL, "30", "uploads a second", -1, 1000},
    {"gc.grace", CONFIG_DURATION, "10min", "deleted after this"},
    {"log.json", CONFIG_BOOL, "false", "as JSON"},
    {0}};

static struct config fresh(void) {
    struct config c;
    struct error e;
    if (config_init(&c, options, &e) != MINK_OK) fail_msg("%s", e.message);
    return c;
}

static const char *origin_of(const struct config *c, const char *key) {
    for (uint32_t i = 0; i < c->count; i++)
        if (strcmp(c->options[i].key, key) == 0) return c->values[i].origin;
    return NULL;
}

static enum mink_code read_text(struct config *c, const char *text, struct error *e) { return config_read_text(c, "mink.toml", text, strlen(text), e); }

static void defaults_are_parsed(void **state) {
    struct config c = fresh();
    assert_null(config_text(&c, "store"));
    assert_true(config_number(&c, "threads") == 2);
    assert_true(config_number(&c, "wal.size_max") == 4194304);
    assert_true(config_number(&c, "wal.put_rate") == 30);
    assert_true(config_number(&c, "gc.grace") == 600000);
    assert_false(config_bool(&c, "log.json"));
    assert_string_equal(origin_of(&c, "threads"), "default");
    config_deinit(&c);
}

static void later_sources_win_and_are_remembered(void **state) {
    struct config c = fresh();
    struct error e;
    const char *environment[] = {"PATH=/bin", "MINK_WAL_LINGER_US=7", "MINK_STORE=memory:", "MINK_SOMETHING_ELSE=1", "MINK_WAL_LINGER_USX=9", "MINK_LOG_JSON=true", NULL};
    if (read_text(&c, "store = \"file:///a\"\nthreads = 3\n\n[wal]\nlinger_us = 5\n", &e) != MINK_OK) fail_msg("%s", e.message);
    assert_string_equal(config_text(&c, "store"), "file:///a");
    assert_string_equal(origin_of(&c, "wal.linger_us"), "mink.toml, line 5");
    assert_int_equal(config_read_environment(&c, "MINK_", (char *const *)environment, &e), MINK_OK);
    assert_true(config_number(&c, "wal.linger_us") == 7);
    assert_string_equal(config_text(&c, "store"), "memory:");
    assert_string_equal(origin_of(&c, "wal.linger_us"), "MINK_WAL_LINGER_US");
    assert_true(config_bool(&c, "log.json"));
    assert_int_equal(config_set(&c, "wal.linger_us", "9", "--wal.linger_us", &e), MINK_OK);
    assert_true(config_number(&c, "wal.linger_us") == 9);
    assert_string_equal(origin_of(&c, "wal.linger_us"), "--wal.linger_us");
    assert_string_equal(origin_of(&c, "threads"), "mink.toml, line 2");
    config_deinit(&c);
}

static void the_file_is_a_part_of_toml(void **state) {
    struct config c = fresh();
    struct error e;
    const char *text = "# a comment\r\n"
                       "  store = \"a # no comment, \\\"quoted\\\" \\\\ \\t.\"  # a comment\r\n"
                       "[ wal ]# section\n"
                       "\tlinger_us=1\n"
                       "size_max = '1 KiB'\n"
                       "put_rate = -0.5\n"
                       "[log]\n"
                       "json = true\n"
                       "[gc]\n"
                       "grace = \"1.5h\""; // no newline at the end
    if (read_text(&c, text, &e) != MINK_OK) fail_msg("%s", e.message);
    assert_string_equal(config_text(&c, "store"), "a # no comment, \"quoted\" \\ \t.");
    assert_true(config_number(&c, "wal.linger_us") == 1);
    assert_true(config_number(&c, "wal.size_max") == 1024);
    assert_true(config_number(&c, "wal.put_rate") == -0.5);
    assert_true(config_bool(&c, "log.json"));
    assert_true(config_number(&c, "gc.grace") == 5400000);
    config_deinit(&c);
}

static void units_are_spelled_as_people_do(void **state) {
    static const struct { const char *key, *text; double expected; } cases[] = {
        {"wal.size_max", "2000", 2000},      {"wal.size_max", "2kB", 2000},         {"wal.size_max", "2 KiB", 2048},   {"wal.size_max", "0.5MiB", 524288},
        {"wal.size_max", "3MB", 3000000},    {"wal.size_max", "4096B", 4096},       {"gc.grace", "250ms", 250},        {"gc.grace", "250", 250},
        {"gc.grace", "2s", 2000},            {"gc.grace", "3m", 180000},            {"gc.grace", "3min", 180000},      {"gc.grace", "7d", 604800000}};
    struct config c = fresh();
    struct error e;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (config_set(&c, cases[i].key, cases[i].text, "test", &e) != MINK_OK) fail_msg("%s", e.message);
        assert_true(config_number(&c, cases[i].key) == cases[i].expected);
    }
    config_deinit(&c);
}

static void a_mistake_is_told_with_its_place_and_what_would_be_right(void **state) {
    static const struct { const char *text, *reason, *message; } cases[] = {
        {"[wal]\nlinger_usec = 5\n", "UNKNOWN_SETTING", "mink.toml, line 2: unknown setting wal.linger_usec; did you mean wal.linger_us?"},
        {"sture = \"x\"\n", "UNKNOWN_SETTING", "mink.toml, line 1: unknown setting sture; did you mean store?"},
        {"something = 1\n", "UNKNOWN_SETTING", "mink.toml, line 1: unknown setting something"},
        {"threads = many\n", "BAD_SETTING", "mink.toml, line 1: threads = \"many\" is not a whole number"},
        {"threads = 1.5\n", "BAD_SETTING", "mink.toml, line 1: threads = \"1.5\" is not a whole number"},
        {"threads = 65\n", "BAD_SETTING", "mink.toml, line 1: threads = 65 is outside 1 to 64"},
        {"threads = 99999999999999999999\n", "BAD_SETTING", "mink.toml, line 1: threads = \"99999999999999999999\" is not a whole number"},
        {"[wal]\nput_rate = nan\n", "BAD_SETTING", "mink.toml, line 2: wal.put_rate = \"nan\" is not a number"},
        {"[wal]\nput_rate = inf\n", "BAD_SETTING", "mink.toml, line 2: wal.put_rate = \"inf\" is not a number"},
        {"threads = \"\\n5\"\n", "BAD_SETTING", "mink.toml, line 1: threads = \"\n5\" is not a whole number"},
        {"gc.grace = \" 5s\"\n", "BAD_SETTING", "mink.toml, line 1: gc.grace = \" 5s\" is not a duration (250ms, 7d)"},
        {"gc.grace = 1e308d\n", "BAD_SETTING", "mink.toml, line 1: gc.grace = \"1e308d\" is not a duration (250ms, 7d)"},
        {"[wal]\nsize_max = \"4 MibiB\"\n", "BAD_SETTING", "mink.toml, line 2: wal.size_max = \"4 MibiB\" is not a size (64MiB)"},
        {"[gc]\ngrace = \"soon\"\n", "BAD_SETTING", "mink.toml, line 2: gc.grace = \"soon\" is not a duration (250ms, 7d)"},
        {"[log]\njson = yes\n", "BAD_SETTING", "mink.toml, line 2: log.json = \"yes\" is not true or false"},
        {"threads\n", "BAD_CONFIG", "mink.toml, line 1, column 8: expected key = value"},
        {"= 5\n", "BAD_CONFIG", "mink.toml, line 1, column 1: expected key = value"},
        {"[wal\nlinger_us = 1\n", "BAD_CONFIG", "mink.toml, line 1: a section is written [name]"},
        {"[wal] x\n", "BAD_CONFIG", "mink.toml, line 1: a section is written [name]"},
        {"store = \"open\n", "BAD_CONFIG", "mink.toml, line 1: the value of store is not closed, something follows it, or it has an unknown escape"},
        {"store = \"a\" b\n", "BAD_CONFIG", "mink.toml, line 1: the value of store is not closed, something follows it, or it has an unknown escape"},
        {"store = \"\\u00fc\"\n", "BAD_CONFIG", "mink.toml, line 1: the value of store is not closed, something follows it, or it has an unknown escape"},
        {"store =\n", "BAD_CONFIG", "mink.toml, line 1: the value of store is not closed, something follows it, or it has an unknown escape"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config c = fresh();
        struct error e;
        assert_int_equal(read_text(&c, cases[i].text, &e), MINK_INVALID);
        assert_string_equal(e.message, cases[i].message);
        assert_string_equal(e.reason, cases[i].reason);
        config_deinit(&c);
    }
    struct config c = fresh();
    struct error e;
    const char *environment[] = {"MINK_THREADS=0", NULL};
    assert_int_equal(config_read_environment(&c, "MINK_", (char *const *)environment, &e), MINK_INVALID);
    assert_string_equal(e.message, "MINK_THREADS: threads = 0 is outside 1 to 64");
    assert_int_equal(config_set(&c, "wal.linger", "5", "--wal.linger", &e), MINK_INVALID);
    assert_string_equal(e.message, "--wal.linger: unknown setting wal.linger; did you mean wal.linger_us?");
    config_deinit(&c);
}

static void a_zero_character_is_refused(void **state) {
    static const char text[] = "threads = 3\nstore = \"file:///a\0b\"\n";
    struct config c = fresh();
    struct error e;
    assert_int_equal(config_read_text(&c, "mink.toml", text, sizeof text - 1, &e), MINK_INVALID);
    assert_string_equal(e.reason, "BAD_CONFIG");
    assert_string_equal(e.message, "mink.toml, line 2: holds a zero character");
    assert_null(config_text(&c, "store"));
    config_deinit(&c);
}

static void any_bytes_are_only_an_error(void **state) {
    // Each prefix of a file, with each kind of byte behind it, from memory that ends there.
    static const char text[] = "store = \"a\\\"\"\n[wal]\nlinger_us = 1 # x\n";
    static const char after[] = {0, '"', '[', ']', '=', '\\', '\xff', '#'};
    for (size_t size = 0; size < sizeof text; size++)
        for (size_t k = 0; k < sizeof after; k++) {
            struct config c = fresh();
            char bytes[sizeof text + 1];
            memcpy(bytes, text, size);
            bytes[size] = after[k];
            enum mink_code code = config_read_text(&c, "f", bytes, size + 1, NULL);
            assert_true(code == MINK_OK || code == MINK_INVALID);
            config_deinit(&c);
        }
}

static void a_file_that_is_not_there_is_named(void **state) {
    struct config c = fresh();
    struct error e;
    assert_int_equal(config_read_file(&c, "/nowhere/mink.toml", &e), MINK_NOT_FOUND);
    assert_string_equal(e.message, "/nowhere/mink.toml: No such file or directory");
    assert_int_equal(config_read_file(&c, "/", &e), MINK_UNAVAILABLE);
    assert_string_equal(e.message, "/ cannot be read");
    config_deinit(&c);
}

static void what_is_printed_reads_back(void **state) {
    struct config c = fresh(), again = fresh();
    struct error e;
    struct buffer text;
    buffer_init(&text, 100000);
    assert_int_equal(config_set(&c, "store", "a \"b\" \\ \n\t c # d", "test", &e), MINK_OK);
    assert_int_equal(config_set(&c, "wal.size_max", "2MiB", "--wal.size_max", &e), MINK_OK);
    assert_int_equal(config_set(&c, "log.json", "on", "test", &e), MINK_OK);
    config_print(&c, &text);
    const char *printed = buffer_string(&text);
    assert_non_null(strstr(printed, "\n[wal]\n"));
    assert_non_null(strstr(printed, "# closes at this size\nsize_max = \"2MiB\"   # --wal.size_max\n"));
    assert_non_null(strstr(printed, "# waits so long\nlinger_us = 2000   # default\n"));
    if (config_read_text(&again, "printed", printed, text.size, &e) != MINK_OK) fail_msg("%s\n%s", e.message, printed);
    assert_string_equal(config_text(&again, "store"), config_text(&c, "store"));
    for (uint32_t i = 0; i < c.count; i++) {
        assert_true(c.values[i].number == again.values[i].number);
        assert_int_equal(c.values[i].on, again.values[i].on);
    }
    buffer_deinit(&text);
    config_deinit(&c);
    config_deinit(&again);
}

static void secrets_are_not_shown(void **state) {
    static const struct { const char *text, *shown; } cases[] = {
        {"postgres://mink:hunter2@db:5432/mink?sslmode=require", "postgres://mink:***@db:5432/mink?sslmode=require"},
        {"postgres://mink:p@ss@db/mink", "postgres://mink:***@db/mink"},
        {"postgres://mink@db/mink", "postgres://mink@db/mink"},
        {"s3://b/p?endpoint=http://u:v@h&access_key=AK&secret_key=SK&region=eu", "s3://b/p?endpoint=http://u:v@h&access_key=***&secret_key=***&region=eu"},
        {"s3://b/p?Password=x", "s3://b/p?Password=***"},
        {"s3://b/p?session_token=x&a=b", "s3://b/p?session_token=***&a=b"},
        {"file:///a?fsync=off", "file:///a?fsync=off"},
        {"file:///a/b:c@d", "file:///a/b:c@d"},
        {"127.0.0.1:8815", "127.0.0.1:8815"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config c = fresh();
        struct buffer text;
        char expected[300];
        buffer_init(&text, 100000);
        assert_int_equal(config_set(&c, "store", cases[i].text, "test", NULL), MINK_OK);
        config_print(&c, &text);
        snprintf(expected, sizeof expected, "\nstore = \"%s\"   # test\n", cases[i].shown);
        if (!strstr(buffer_string(&text), expected)) fail_msg("%s is not in: %s", expected, buffer_string(&text));
        buffer_deinit(&text);
        config_deinit(&c);
    }
    // Of what is not set, only the name is shown.
    struct config c = fresh();
    struct buffer text;
    buffer_init(&text, 100000);
    config_print(&c, &text);
    assert_non_null(strstr(buffer_string(&text), "# where objects are\n# store is not set\n"));
    buffer_deinit(&text);
    config_deinit(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_parsed),
        cmocka_unit_test(later_sources_win_and_are_remembered),
        cmocka_unit_test(the_file_is_a_part_of_toml),
        cmocka_unit_test(units_are_spelled_as_people_do),
        cmocka_unit_test(a_mistake_is_told_with_its_place_and_what_would_be_right),
        cmocka_unit_test(a_zero_character_is_refused),
        cmocka_unit_test(any_bytes_are_only_an_error),
        cmocka_unit_test(a_file_that_is_not_there_is_named),
        cmocka_unit_test(what_is_printed_reads_back),
        cmocka_unit_test(secrets_are_not_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
