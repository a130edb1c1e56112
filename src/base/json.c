// SPDX-License-Identifier: Apache-2.0
// Reading is jansson's; a struct json is a json_t behind a name of ours. Writing goes straight onto a buffer.
//
// Jansson's type constants have the names of ours: they get a prefix while its header is read.
#define json_type jansson_type
#define JSON_OBJECT JANSSON_OBJECT
#define JSON_ARRAY JANSSON_ARRAY
#define JSON_STRING JANSSON_STRING
#define JSON_INTEGER JANSSON_INTEGER
#define JSON_REAL JANSSON_REAL
#define JSON_TRUE JANSSON_TRUE
#define JSON_FALSE JANSSON_FALSE
#define JSON_NULL JANSSON_NULL
#include <jansson.h>
#undef json_type
#undef JSON_OBJECT
#undef JSON_ARRAY
#undef JSON_STRING
#undef JSON_INTEGER
#undef JSON_REAL
#undef JSON_TRUE
#undef JSON_FALSE
#undef JSON_NULL

#include "base/json.h"

#include "base/mem.h"
#include "base/nearest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON_BYTES_MAX (16u << 20)
#define DEPTH_MAX 64

static json_t *in(const struct json *v) { return (json_t *)v; }
static struct json *out_of(json_t *v) { return (struct json *)v; }

// jansson's own limit is 2048; a value nobody nests so deep should not cost that much stack in every consumer.
static bool too_deep(const char *text, size_t size) {
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (in_string) {
            if (c == '\\') i++;
            else if (c == '"') in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > DEPTH_MAX) return true;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return false;
}

enum mink_code json_parse(const void *text, size_t size, struct json **out, struct error *e) {
    *out = NULL;
    if (size == 0) {
        *out = out_of(json_object());
        return MINK_OK;
    }
    if (size > JSON_BYTES_MAX) return error_set(e, MINK_INVALID, "BAD_JSON", "JSON of %zu bytes: at most %u are taken", size, JSON_BYTES_MAX);
    if (too_deep(text, size)) return error_set(e, MINK_INVALID, "BAD_JSON", "JSON is nested deeper than %d", DEPTH_MAX);
    json_error_t problem;
    json_t *v = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &problem);
    if (!v) return error_set(e, MINK_INVALID, "BAD_JSON", "JSON, line %d, column %d: %s", problem.line, problem.column, problem.text);
    *out = out_of(v);
    return MINK_OK;
}

void json_free(struct json *document) { json_decref(in(document)); }

enum json_type json_type(const struct json *v) {
    static const enum json_type types[] = {[JANSSON_OBJECT] = JSON_OBJECT, [JANSSON_ARRAY] = JSON_ARRAY, [JANSSON_STRING] = JSON_STRING, [JANSSON_INTEGER] = JSON_INT,
                                           [JANSSON_REAL] = JSON_REAL, [JANSSON_TRUE] = JSON_BOOL, [JANSSON_FALSE] = JSON_BOOL, [JANSSON_NULL] = JSON_NULL};
    return v ? types[json_typeof(in(v))] : JSON_NULL;
}

const struct json *json_get(const struct json *object, const char *key) {
    return json_type(object) == JSON_OBJECT ? out_of(json_object_get(in(object), key)) : NULL;
}

size_t json_count(const struct json *v) {
    enum json_type type = json_type(v);
    return type == JSON_ARRAY ? json_array_size(in(v)) : type == JSON_OBJECT ? json_object_size(in(v)) : 0;
}

const struct json *json_at(const struct json *array, size_t i) { return json_type(array) == JSON_ARRAY ? out_of(json_array_get(in(array), i)) : NULL; }

const char *json_key_at(const struct json *object, size_t i, const struct json **out_value) {
    if (out_value) *out_value = NULL;
    if (json_type(object) != JSON_OBJECT) return NULL;
    void *at = json_object_iter(in(object));
    while (at && i-- > 0) at = json_object_iter_next(in(object), at);
    if (!at) return NULL;
    if (out_value) *out_value = out_of(json_object_iter_value(at));
    return json_object_iter_key(at);
}

const char *json_text(const struct json *v) { return json_type(v) == JSON_STRING ? json_string_value(in(v)) : NULL; }
int64_t json_int(const struct json *v) { return json_type(v) == JSON_INT ? json_integer_value(in(v)) : 0; }

double json_number(const struct json *v) {
    enum json_type type = json_type(v);
    return type == JSON_INT ? (double)json_integer_value(in(v)) : type == JSON_REAL ? json_real_value(in(v)) : 0;
}

bool json_bool(const struct json *v) { return v && json_typeof(in(v)) == JANSSON_TRUE; }

static const char *type_name(enum json_type type) {
    static const char *const names[] = {"null", "true or false", "a whole number", "a number", "a string", "an array", "an object"};
    return names[type];
}

// The field when it is there with the right type; *out NULL when it is absent or null and not required.
static enum mink_code field(const struct json *o, const char *what, const char *key, bool required, enum json_type wanted, const struct json **out, struct error *e) {
    *out = NULL;
    if (json_type(o) != JSON_OBJECT) return error_set(e, MINK_INVALID, "BAD_JSON", "%s: wants an object, not %s", what, type_name(json_type(o)));
    const struct json *v = json_get(o, key);
    if (!v || json_type(v) == JSON_NULL) {
        if (!required) return MINK_OK;
        error_set(e, MINK_INVALID, "MISSING_KEY", "%s: \"%s\" is missing", what, key);
        error_about(e, key, type_name(wanted), "nothing");
        return MINK_INVALID;
    }
    if (json_type(v) != wanted) {
        error_set(e, MINK_INVALID, "BAD_VALUE", "%s: \"%s\" must be %s, not %s", what, key, type_name(wanted), type_name(json_type(v)));
        error_about(e, key, type_name(wanted), type_name(json_type(v)));
        return MINK_INVALID;
    }
    *out = v;
    return MINK_OK;
}

enum mink_code json_field_string(const struct json *o, const char *what, const char *key, bool required, const char **out, struct error *e) {
    const struct json *v;
    MINK_TRY(field(o, what, key, required, JSON_STRING, &v, e));
    if (v && strlen(json_string_value(in(v))) != json_string_length(in(v))) return error_set(e, MINK_INVALID, "BAD_VALUE", "%s: \"%s\" holds a zero character", what, key);
    if (v) *out = json_string_value(in(v));
    return MINK_OK;
}

enum mink_code json_field_int(const struct json *o, const char *what, const char *key, bool required, int64_t min, int64_t max, int64_t *out, struct error *e) {
    const struct json *v;
    MINK_TRY(field(o, what, key, required, JSON_INT, &v, e));
    if (!v) return MINK_OK;
    int64_t value = json_integer_value(in(v));
    if (value < min || value > max) {
        char actual[32];
        error_set(e, MINK_INVALID, "BAD_VALUE", "%s: \"%s\" is %lld, outside %lld to %lld", what, key, (long long)value, (long long)min, (long long)max);
        snprintf(actual, sizeof actual, "%lld", (long long)value);
        error_about(e, key, "a number in range", actual);
        return MINK_INVALID;
    }
    *out = value;
    return MINK_OK;
}

enum mink_code json_field_bool(const struct json *o, const char *what, const char *key, bool required, bool *out, struct error *e) {
    const struct json *v;
    MINK_TRY(field(o, what, key, required, JSON_BOOL, &v, e));
    if (v) *out = json_bool(v);
    return MINK_OK;
}

enum mink_code json_check_keys(const struct json *o, const char *what, const char *const known[], struct error *e) {
    if (json_type(o) != JSON_OBJECT) return error_set(e, MINK_INVALID, "BAD_JSON", "%s: wants an object, not %s", what, type_name(json_type(o)));
    for (void *at = json_object_iter(in(o)); at; at = json_object_iter_next(in(o), at)) {
        const char *key = json_object_iter_key(at);
        struct nearest near;
        nearest_init(&near, key);
        bool found = false;
        for (size_t i = 0; known[i] && !found; i++) {
            found = strcmp(known[i], key) == 0;
            nearest_offer(&near, known[i]);
        }
        if (found) continue;
        const char *best = nearest_found(&near);
        error_set(e, MINK_INVALID, "UNKNOWN_KEY", "%s: unknown key \"%s\"%s%s%s", what, key, best ? "; did you mean \"" : "", best ? best : "", best ? "\"?" : "");
        error_about(e, key, best, NULL);
        return MINK_INVALID;
    }
    return MINK_OK;
}

// ---- writing

void json_begin(struct json_writer *w, struct buffer *out) { *w = (struct json_writer){.out = out}; }

static void item(struct json_writer *w) {
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    if (w->has_item >> w->depth & 1) buffer_put_u8(w->out, ',');
    w->has_item |= 1u << w->depth;
}

static void begin(struct json_writer *w, char bracket) {
    item(w);
    buffer_put_u8(w->out, (uint8_t)bracket);
    mink_assert(w->depth < 31);
    w->depth++;
    w->has_item &= ~(1u << w->depth);
}

static void end(struct json_writer *w, char bracket) {
    mink_assert(w->depth > 0);
    w->depth--;
    buffer_put_u8(w->out, (uint8_t)bracket);
}

void json_object_begin(struct json_writer *w) { begin(w, '{'); }
void json_object_end(struct json_writer *w) { end(w, '}'); }
void json_array_begin(struct json_writer *w) { begin(w, '['); }
void json_array_end(struct json_writer *w) { end(w, ']'); }

// Bytes of the well-formed UTF-8 character at s (the table of the Unicode standard, 3.9), 0 when there is none.
static size_t character_size(const unsigned char *s, size_t left) {
    if (s[0] < 0x80) return 1;
    size_t size = s[0] >= 0xc2 && s[0] <= 0xdf ? 2 : s[0] >= 0xe0 && s[0] <= 0xef ? 3 : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4 : 0;
    if (size == 0 || size > left) return 0;
    unsigned char low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80, high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    if (s[1] < low || s[1] > high) return 0;
    for (size_t i = 2; i < size; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    return size;
}

// Texts of errors are cut to a size and may quote what a client sent: a byte that is no part of a character becomes U+FFFD, for JSON has to be UTF-8.
static void put_quoted(struct buffer *out, const char *s, size_t size) {
    buffer_put_u8(out, '"');
    for (size_t at = 0; at < size;) {
        size_t run = at, step;
        while (run < size && (unsigned char)s[run] >= 0x20 && s[run] != '"' && s[run] != '\\' && (step = character_size((const unsigned char *)s + run, size - run)) != 0) run += step;
        buffer_put(out, s + at, run - at);
        if (run < size) {
            unsigned char c = (unsigned char)s[run++];
            if (c >= 0x80) buffer_put_string(out, "\xef\xbf\xbd");
            else if (c == '"' || c == '\\') buffer_printf(out, "\\%c", c);
            else if (c == '\n') buffer_put_string(out, "\\n");
            else if (c == '\t') buffer_put_string(out, "\\t");
            else buffer_printf(out, "\\u%04x", c);
        }
        at = run;
    }
    buffer_put_u8(out, '"');
}

void json_put_key(struct json_writer *w, const char *key) {
    item(w);
    put_quoted(w->out, key, strlen(key));
    buffer_put_u8(w->out, ':');
    w->after_key = true;
}

void json_put_text(struct json_writer *w, const char *s, size_t size) {
    item(w);
    put_quoted(w->out, s, size);
}

void json_put_string(struct json_writer *w, const char *s) {
    if (s) json_put_text(w, s, strlen(s));
    else json_put_null(w);
}

void json_put_int(struct json_writer *w, int64_t v) {
    item(w);
    buffer_printf(w->out, "%lld", (long long)v);
}

void json_put_uint(struct json_writer *w, uint64_t v) {
    item(w);
    buffer_printf(w->out, "%llu", (unsigned long long)v);
}

void json_put_real(struct json_writer *w, double v) {
    item(w);
    if (!isfinite(v)) { // JSON has no word for these
        put_quoted(w->out, isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity", isnan(v) ? 3 : v > 0 ? 8 : 9);
        return;
    }
    char text[32]; // the shortest that reads back equal
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v) break;
    }
    buffer_put_string(w->out, text);
    if (!strpbrk(text, ".eE")) buffer_put_string(w->out, ".0");
}

void json_put_bool(struct json_writer *w, bool v) { json_put_raw(w, v ? "true" : "false", v ? 4 : 5); }
void json_put_null(struct json_writer *w) { json_put_raw(w, "null", 4); }

void json_put_raw(struct json_writer *w, const char *json, size_t size) {
    item(w);
    buffer_put(w->out, json, size);
}
