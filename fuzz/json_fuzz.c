// SPDX-License-Identifier: Apache-2.0
// JSON from clients: what was read is written so that it reads back equal, and each question to any value has an answer or an error.
#include "base/json.h"
#include "base/mem.h"

#include <string.h>

#define WRITER_DEPTH_MAX 30

static uint32_t depth_of(const struct json *v) {
    uint32_t deepest = 0;
    const struct json *child;
    bool object = json_type(v) == JSON_OBJECT;
    for (size_t i = 0; i < json_count(v); i++) {
        if (object) json_key_at(v, i, &child);
        else child = json_at(v, i);
        uint32_t depth = depth_of(child) + 1;
        if (depth > deepest) deepest = depth;
    }
    return deepest;
}

static void write_value(const struct json *v, struct json_writer *w) {
    const struct json *child;
    switch (json_type(v)) {
    case JSON_NULL: json_put_null(w); break;
    case JSON_BOOL: json_put_bool(w, json_bool(v)); break;
    case JSON_INT: json_put_int(w, json_int(v)); break;
    case JSON_REAL: json_put_real(w, json_number(v)); break;
    case JSON_STRING: json_put_string(w, json_text(v)); break;
    case JSON_ARRAY:
        json_array_begin(w);
        for (size_t i = 0; i < json_count(v); i++) write_value(json_at(v, i), w);
        json_array_end(w);
        break;
    case JSON_OBJECT:
        json_object_begin(w);
        for (size_t i = 0; i < json_count(v); i++) {
            json_put_key(w, json_key_at(v, i, &child));
            write_value(child, w);
        }
        json_object_end(w);
        break;
    }
}

// json_text ends at a zero character: so far the texts are compared, as everybody sees them.
static void check_equal(const struct json *a, const struct json *b) {
    mink_assert(json_type(a) == json_type(b) && json_count(a) == json_count(b));
    mink_assert(json_bool(a) == json_bool(b) && json_int(a) == json_int(b) && json_number(a) == json_number(b));
    const char *text = json_text(a);
    mink_assert((text == NULL) == (json_text(b) == NULL));
    if (text) mink_assert(strcmp(text, json_text(b)) == 0);
    for (size_t i = 0; i < json_count(a); i++) {
        if (json_type(a) == JSON_ARRAY) {
            check_equal(json_at(a, i), json_at(b, i));
            continue;
        }
        const struct json *in_a, *in_b;
        const char *key = json_key_at(a, i, &in_a);
        mink_assert(strcmp(key, json_key_at(b, i, &in_b)) == 0 && json_get(a, key) == in_a);
        check_equal(in_a, in_b);
    }
}

static void check_refusal(enum mink_code code, const struct error *e) {
    mink_assert(code == MINK_OK || (code == MINK_INVALID && e->code == code && e->reason[0] && e->message[0]));
}

// What the actions do with a body: fields by name, of a type that need not be the one that is there.
static void ask(const struct json *v) {
    static const char *const known[] = {"table", "database", "set", NULL};
    struct error e;
    const char *key = json_key_at(v, 0, NULL), *text = NULL;
    int64_t number = 7;
    bool on = true;
    if (!key) key = "table";
    enum mink_code code = json_field_string(v, "fuzz", key, true, &text, &e);
    check_refusal(code, &e);
    mink_assert((code == MINK_OK) == (text != NULL));
    code = json_field_int(v, "fuzz", key, true, -5, 5, &number, &e);
    check_refusal(code, &e);
    mink_assert(code == MINK_OK ? number >= -5 && number <= 5 : number == 7);
    check_refusal(json_field_bool(v, "fuzz", key, false, &on, &e), &e);
    check_refusal(json_check_keys(v, "fuzz", known, &e), &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct json *j, *again;
    struct json_writer w;
    struct buffer out;
    struct error e = {0};
    if (size > 16384) return 0;
    enum mink_code code = json_parse(data, size, &j, &e);
    check_refusal(code, &e);
    // An error quotes what came, cut to its size: even so, told as JSON it is JSON.
    buffer_init(&out, 1u << 20);
    json_begin(&w, &out);
    if (code != MINK_OK) {
        mink_assert(j == NULL);
        json_put_text(&w, (const char *)data, size);
        if (!out.overflowed) {
            mink_assert(json_parse(out.data, out.size, &again, &e) == MINK_OK && json_type(again) == JSON_STRING);
            json_free(again);
        }
    } else {
        ask(j);
        if (depth_of(j) <= WRITER_DEPTH_MAX) {
            write_value(j, &w);
            mink_assert(!out.overflowed);
            if (json_parse(out.data, out.size, &again, &e) != MINK_OK) mink_panic(__FILE__, __LINE__, "%s", e.message);
            check_equal(j, again);
            json_free(again);
        }
        json_free(j);
    }
    buffer_deinit(&out);
    return 0;
}
