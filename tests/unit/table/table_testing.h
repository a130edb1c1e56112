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

#include "arrow/array.h"
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

// A batch of a schema from JSON: [[row 0 column 0, column 1, …], …].
static inline void test_batch(struct arrow_schema *schema, const char *text, struct arrow_batch *out) {
    struct error why = {0};
    struct json *rows;
    assert_fine(json_parse(text, strlen(text), &rows, &why));
    struct arrow_builder *b = arrow_builder_new(schema);
    for (size_t i = 0; i < json_count(rows); i++) {
        const struct json *row = json_at(rows, i);
        for (uint32_t c = 0; c < json_count(row); c++) assert_fine(arrow_builder_json(b, c, json_at(row, c), &why));
        arrow_builder_row(b);
    }
    arrow_builder_finish(b, out);
    arrow_builder_free(b);
    json_free(rows);
}

// And back.
static inline char *test_rows(const struct arrow_batch *b) {
    struct buffer out;
    struct json_writer w;
    buffer_init(&out, 16 << 20);
    json_begin(&w, &out);
    json_array_begin(&w);
    for (int64_t row = 0; row < b->row_count; row++) {
        json_array_begin(&w);
        for (uint32_t c = 0; c < arrow_schema_count(b->schema); c++) arrow_value_json(arrow_schema_at(b->schema, c), &b->columns[c], row, &w);
        json_array_end(&w);
    }
    json_array_end(&w);
    char *text = mem_strdup(buffer_string(&out));
    buffer_deinit(&out);
    return text;
}

#endif
