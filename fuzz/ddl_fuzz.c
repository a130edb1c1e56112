// SPDX-License-Identifier: Apache-2.0
// Statements and types as they come from anybody; a table that was taken prints as a statement that gives the same table.
#include "base/mem.h"
#include "table/ddl.h"

#include <string.h>

static void json_of(const struct table_def *d, struct buffer *out) {
    struct json_writer w;
    buffer_init(out, 64u << 20);
    json_begin(&w, out);
    table_def_to_json(d, &w);
}

static void round_trip(const struct table_def *d) {
    struct buffer text, a, b;
    struct ddl again;
    buffer_init(&text, 64u << 20);
    table_def_to_ddl(d, &text);
    mink_assert(ddl_parse((const char *)text.data, text.size, NULL, NULL, &again, NULL) == MINK_OK);
    json_of(d, &a);
    json_of(again.def, &b);
    mink_assert(a.size == b.size && memcmp(a.data, b.data, a.size) == 0);
    buffer_deinit(&a);
    buffer_deinit(&b);
    buffer_deinit(&text);
    ddl_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct error e = {0};
    struct ddl ddl;
    struct type type;
    struct table_def *d;
    struct table_defaults defaults = {.bucket_num = 2};
    const char *text = (const char *)data;
    if (ddl_parse(text, size, "d", &defaults, &ddl, &e) == MINK_OK) {
        if (ddl.def) round_trip(ddl.def);
        ddl_deinit(&ddl);
    } else {
        mink_assert(e.code != MINK_OK && e.message[0] && strlen(e.hint) < sizeof e.hint);
    }
    if (ddl_parse_type(text, size, &type, &e) == MINK_OK) {
        struct arrow_field f;
        struct type back;
        type_to_arrow(&type, "x", &f);
        mink_assert(type_from_arrow(&f, false, &back, &e) == MINK_OK);
        type_deinit(&back);
        arrow_field_deinit(&f);
        type_deinit(&type);
    }
    if (ddl_parse_columns(text, size, "d", "t", NULL, 0, &defaults, &d, &e) == MINK_OK) {
        round_trip(d);
        table_def_unref(d);
    }
    return 0;
}
