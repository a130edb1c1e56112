// SPDX-License-Identifier: Apache-2.0
// table_testing.h: definitions and errors in tests.
#ifndef MINK_TESTS_TABLE_TESTING_H
#define MINK_TESTS_TABLE_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "table/ddl.h"

#define assert_fine(call)                                                                                              \
    do {                                                                                                               \
        enum mink_code got_ = (call);                                                                                  \
        if (got_ != MINK_OK) fail_msg("%s: %s [%s] %s", #call, mink_code_name(got_), why.reason, why.message);          \
    } while (0)
// The call fails with this reason and this text in its message.
#define assert_refused(wanted_reason, text, call)                                                                      \
    do {                                                                                                               \
        memset(&why, 0, sizeof why);                                                                                   \
        enum mink_code got_ = (call);                                                                                  \
        if (got_ == MINK_OK) fail_msg("%s was taken", #call);                                                          \
        if (got_ != why.code) fail_msg("%s: code %s, in the error %s", #call, mink_code_name(got_), mink_code_name(why.code)); \
        if (strcmp(why.reason, wanted_reason) != 0 || strstr(why.message, text) == NULL)                               \
            fail_msg("%s: [%s] %s\nwanted: [%s] %s", #call, why.reason, why.message, wanted_reason, text);             \
    } while (0)

static const struct table_defaults test_defaults = {.bucket_num = 3};

static inline enum mink_code test_parse(const char *text, struct ddl *out, struct error *e) { return ddl_parse(text, strlen(text), NULL, &test_defaults, out, e); }

static inline struct table_def *test_table(const char *text) {
    struct error why = {0};
    struct ddl ddl;
    assert_fine(test_parse(text, &ddl, &why));
    struct table_def *d = table_def_ref(ddl.def);
    ddl_deinit(&ddl);
    return d;
}

static inline char *test_type(const struct type *t) {
    struct buffer b;
    buffer_init(&b, 1 << 20);
    type_print(t, &b);
    char *text = mem_strdup(buffer_string(&b));
    buffer_deinit(&b);
    return text;
}

static inline char *test_json(const struct table_def *d) {
    struct buffer b;
    struct json_writer w;
    buffer_init(&b, 16 << 20);
    json_begin(&w, &b);
    table_def_to_json(d, &w);
    char *text = mem_strdup(buffer_string(&b));
    buffer_deinit(&b);
    return text;
}

static inline enum mink_code test_from_json(const char *text, struct table_def **out, struct error *e) {
    struct json *j;
    enum mink_code code = json_parse(text, strlen(text), &j, e);
    if (code != MINK_OK) return code;
    code = table_def_from_json(j, &test_defaults, out, e);
    json_free(j);
    return code;
}

#endif
