// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/executor.h"
#include "base/json.h"
#include "base/log.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// What is written to stderr between begin and end.
static int stderr_before = -1;
static FILE *caught;

static void catch_begin(void) {
    fflush(stderr);
    caught = tmpfile();
    assert_non_null(caught);
    stderr_before = dup(STDERR_FILENO);
    dup2(fileno(caught), STDERR_FILENO);
}

static const char *catch_end(void) {
    static char text[1 << 20];
    dup2(stderr_before, STDERR_FILENO);
    close(stderr_before);
    rewind(caught);
    size_t n = fread(text, 1, sizeof text - 1, caught);
    text[n] = 0;
    fclose(caught);
    return text;
}

static void assert_matches(const char *text, const char *pattern) {
    regex_t r;
    assert_int_equal(regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB), 0);
    int failed = regexec(&r, text, 0, NULL, 0);
    regfree(&r);
    if (failed) fail_msg("expected %s, got: %s", pattern, text);
}

#define TIME "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z"

static void a_line_has_time_level_event_and_fields(void **state) {
    log_configure(LOG_INFO, false);
    catch_begin();
    log_info("seal.done", "incarnation=%d ms=%d", 3, 17);
    log_warn("x", "message=\"%s\"", "two words");
    const char *text = catch_end();
    assert_matches(text, "^" TIME " info  seal\\.done incarnation=3 ms=17\n" TIME " warn  x message=\"two words\"\n$");
}

static void lines_below_the_level_are_not_written(void **state) {
    log_configure(LOG_WARN, false);
    catch_begin();
    log_debug("a", "x=1");
    log_info("b", "x=1");
    log_warn("c", "x=1");
    log_error("d", "x=1");
    const char *text = catch_end();
    assert_matches(text, "^" TIME " warn  c x=1\n" TIME " error d x=1\n$");
    log_configure(LOG_DEBUG, false);
    catch_begin();
    log_debug("a", "x=1");
    assert_matches(catch_end(), " debug a x=1\n$");
}

static void text_from_outside_stays_on_its_line(void **state) {
    log_configure(LOG_INFO, false);
    catch_begin();
    log_info("x", "message=\"%s\"", "evil\n2026-01-01T00:00:00.000Z error faked a=1\r\t\x1b[31m");
    const char *text = catch_end();
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    assert_null(strchr(text, '\x1b'));
    assert_null(strchr(text, '\r'));
}

static void json_lines_are_json(void **state) {
    log_configure(LOG_INFO, true);
    catch_begin();
    log_error("put.failed", "key=%s tries=%d message=\"%s\" last=%d", "wal/1", 6, "said \"no\" and\nleft \xff", 9);
    const char *text = catch_end();
    struct json *j = NULL;
    struct error e;
    if (json_parse(text, strlen(text), &j, &e) != MINK_OK) fail_msg("%s: %s", text, e.message);
    assert_matches(json_text(json_get(j, "time")), "^" TIME "$");
    assert_string_equal(json_text(json_get(j, "level")), "error");
    assert_string_equal(json_text(json_get(j, "event")), "put.failed");
    assert_string_equal(json_text(json_get(j, "key")), "wal/1");
    assert_string_equal(json_text(json_get(j, "tries")), "6");
    assert_string_equal(json_text(json_get(j, "message")), "said \"no\" and left \xef\xbf\xbd");
    assert_string_equal(json_text(json_get(j, "last")), "9");
    json_free(j);
    log_configure(LOG_INFO, false);
}

static void a_line_that_is_too_long_is_cut(void **state) {
    char text[5000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    catch_begin();
    log_info("long", "message=\"%s\"", text);
    const char *line = catch_end();
    assert_true(strlen(line) < 2200);
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

static void say_often(void *ctx) {
    for (int i = 0; i < 200; i++) log_info("thread", "number=%d round=%d end", *(int *)ctx, i);
}

static void lines_of_threads_do_not_mix(void **state) {
    struct thread *threads[4];
    int numbers[4];
    catch_begin();
    for (int i = 0; i < 4; i++) {
        numbers[i] = i;
        threads[i] = thread_start("say", say_often, &numbers[i]);
    }
    for (int i = 0; i < 4; i++) thread_join(threads[i]);
    const char *at = catch_end();
    int lines = 0;
    for (; *at; lines++) {
        const char *end = strchr(at, '\n');
        assert_non_null(end);
        assert_int_equal(at[23], 'Z');
        assert_memory_equal(end - 4, " end", 4);
        at = end + 1;
    }
    assert_int_equal(lines, 800);
}

static void repeats_within_a_second_are_counted(void **state) {
    struct log_limit limit = {0};
    catch_begin();
    int passed = 0, asked = 0;
    // Until a second has passed within the loop: then the first second's repeats have been told.
    for (; passed < 2; asked++) passed += log_limit_pass(&limit);
    char expected[100];
    snprintf(expected, sizeof expected, " warn  log\\.dropped lines=%d reason=", asked - 2);
    assert_matches(catch_end(), expected);
}

static void levels_have_names(void **state) {
    enum log_level level = LOG_INFO;
    assert_true(log_level_parse("debug", &level));
    assert_int_equal(level, LOG_DEBUG);
    assert_true(log_level_parse("error", &level));
    assert_int_equal(level, LOG_ERROR);
    assert_false(log_level_parse("loud", &level));
    assert_int_equal(level, LOG_ERROR);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_time_level_event_and_fields),
        cmocka_unit_test(lines_below_the_level_are_not_written),
        cmocka_unit_test(text_from_outside_stays_on_its_line),
        cmocka_unit_test(json_lines_are_json),
        cmocka_unit_test(a_line_that_is_too_long_is_cut),
        cmocka_unit_test(lines_of_threads_do_not_mix),
        cmocka_unit_test(repeats_within_a_second_are_counted),
        cmocka_unit_test(levels_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
