// SPDX-License-Identifier: Apache-2.0
// Definitions as JSON, from clients and from the command log: what was taken is written so that it reads back the same.
#include "base/mem.h"
#include "table/table_def.h"

#include <string.h>

static void write_json(const struct table_def *d, struct buffer *out) {
    struct json_writer w;
    buffer_init(out, 64u << 20);
    json_begin(&w, out);
    table_def_to_json(d, &w);
}

static bool read_json(const void *text, size_t size, struct table_def **out) {
    struct json *j;
    struct error e;
    if (json_parse(text, size, &j, &e) != MINK_OK) return false;
    enum mink_code code = table_def_from_json(j, NULL, out, &e);
    json_free(j);
    return code == MINK_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct table_def *d, *again, *changed;
    if (!read_json(data, size, &d)) return 0;
    struct buffer a, b;
    write_json(d, &a);
    mink_assert(read_json(a.data, a.size, &again));
    write_json(again, &b);
    mink_assert(a.size == b.size && memcmp(a.data, b.data, a.size) == 0);
    struct table_option set = {(char *)"table.log.ttl", (char *)"1 d"};
    if (table_def_with_options(d, &set, 1, NULL, 0, &changed, NULL) == MINK_OK) table_def_unref(changed);
    buffer_deinit(&a);
    buffer_deinit(&b);
    table_def_unref(again);
    table_def_unref(d);
    return 0;
}
