// SPDX-License-Identifier: Apache-2.0
// arrow_testing.h: golden files and small batches for tests.
#ifndef MINK_TESTS_ARROW_TESTING_H
#define MINK_TESTS_ARROW_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "arrow/ipc.h"
#include "arrow/kernel.h"
#include "base/mem.h"

#define assert_code(expected, call)                                                                                       \
    do {                                                                                                                   \
        enum mink_code got_ = (call);                                                                                      \
        if (got_ != (expected)) fail_msg("%s: %s, wanted %s: %s", #call, mink_code_name(got_), mink_code_name(expected), why.message); \
    } while (0)
#define assert_fine(call) assert_code(MINK_OK, call)

static inline struct slice test_read_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (f == NULL) fail_msg("cannot open %s", path);
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    uint8_t *data;
    struct slice s = slice_new((size_t)size, &data);
    assert_int_equal(fread(data, 1, (size_t)size, f), size);
    fclose(f);
    return s;
}

static inline struct slice test_golden(const char *name) {
    char path[4096];
    const char *here = strstr(__FILE__, "unit/arrow/");
    snprintf(path, sizeof path, "%.*sgolden/arrow/%s", (int)(here - __FILE__), __FILE__, name);
    return test_read_file(path);
}

struct test_stream {
    struct arrow_schema *schema;
    struct arrow_batch batches[8];
    uint32_t count;
};

static inline struct test_stream test_read_stream(struct slice bytes) {
    struct error why = {0};
    struct ipc_stream_reader *r;
    struct test_stream out = {0};
    bool end = false;
    assert_fine(ipc_stream_reader_open(bytes, &r, &out.schema, &why));
    while (!end) {
        assert_in_range(out.count, 0, 7);
        assert_fine(ipc_stream_reader_next(r, &out.batches[out.count], &end, &why));
        if (!end) out.count++;
    }
    ipc_stream_reader_free(r);
    return out;
}

static inline struct test_stream test_read_golden(const char *name) {
    struct slice bytes = test_golden(name);
    struct test_stream out = test_read_stream(bytes);
    slice_unref(&bytes);
    return out;
}

static inline void test_stream_deinit(struct test_stream *s) {
    for (uint32_t i = 0; i < s->count; i++) arrow_batch_deinit(&s->batches[i]);
    arrow_schema_unref(s->schema);
}

// Equal as values: bytes behind nulls, members of null structs and bits behind the end do not count. hidden: rows not to look at, or NULL.
static inline bool test_array_equal_but(const struct arrow_field *f, const struct arrow_array *a, const struct arrow_array *b, const bool *hidden) {
    if (a->length != b->length || a->child_count != b->child_count) return false;
    if (hidden == NULL && a->null_count != b->null_count) return false;
    uint32_t width = arrow_type_bit_width(f);
    for (int64_t i = 0; i < a->length; i++) {
        if (hidden && hidden[i]) continue;
        if (arrow_is_null(a, i) != arrow_is_null(b, i)) return false;
        if (f->type == ARROW_NULL || arrow_is_null(a, i)) continue;
        if (width == 1) {
            if (((a->buffers[1].data[i >> 3] ^ b->buffers[1].data[i >> 3]) >> (i & 7)) & 1) return false;
        } else if (width) {
            if (memcmp(a->buffers[1].data + i * width / 8, b->buffers[1].data + i * width / 8, width / 8) != 0) return false;
        } else if (arrow_field_buffer_count(f) == 3) {
            bool large = f->type == ARROW_LARGE_UTF8 || f->type == ARROW_LARGE_BINARY;
            int64_t x[2], y[2];
            for (int k = 0; k < 2; k++) {
                x[k] = large ? ((const int64_t *)a->buffers[1].data)[i + k] : ((const int32_t *)a->buffers[1].data)[i + k];
                y[k] = large ? ((const int64_t *)b->buffers[1].data)[i + k] : ((const int32_t *)b->buffers[1].data)[i + k];
            }
            if (x[1] - x[0] != y[1] - y[0] || memcmp(a->buffers[2].data + x[0], b->buffers[2].data + y[0], (size_t)(x[1] - x[0])) != 0) return false;
        } else if (f->type == ARROW_LIST || f->type == ARROW_MAP || f->type == ARROW_LARGE_LIST) {
            size_t size = f->type == ARROW_LARGE_LIST ? 8 : 4;
            if (memcmp(a->buffers[1].data + (size_t)i * size, b->buffers[1].data + (size_t)i * size, 2 * size) != 0) return false;
        }
    }
    int64_t per_row = f->type == ARROW_STRUCT ? 1 : f->type == ARROW_FIXED_LIST ? f->width : 0;
    bool *below = per_row ? mem_new_array(bool, (size_t)(a->length * per_row)) : NULL, equal = true;
    for (int64_t i = 0; i < a->length * per_row; i++) below[i] = arrow_is_null(a, i / per_row) || (hidden && hidden[i / per_row]);
    for (uint32_t c = 0; c < a->child_count && equal; c++) equal = test_array_equal_but(&f->children[c], &a->children[c], &b->children[c], below);
    mem_free(below);
    return equal;
}

static inline bool test_array_equal(const struct arrow_field *f, const struct arrow_array *a, const struct arrow_array *b) {
    return test_array_equal_but(f, a, b, NULL);
}

static inline bool test_batch_equal(const struct arrow_batch *a, const struct arrow_batch *b) {
    if (a->row_count != b->row_count || arrow_schema_count(a->schema) != arrow_schema_count(b->schema)) return false;
    for (uint32_t i = 0; i < arrow_schema_count(a->schema); i++) {
        if (!arrow_field_type_equal(arrow_schema_at(a->schema, i), arrow_schema_at(b->schema, i))) return false;
        if (!test_array_equal(arrow_schema_at(a->schema, i), &a->columns[i], &b->columns[i])) return false;
    }
    return true;
}

#endif
