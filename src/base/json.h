// SPDX-License-Identifier: Apache-2.0
// json.h: JSON in (jansson inside) and out (onto a buffer).
//
// Reading is strict: an unknown key is an error that names the nearest known one; types are checked; positions are told.
// Owner     One thread. Values borrowed from a document live as long as it.
#ifndef MINK_BASE_JSON_H
#define MINK_BASE_JSON_H
#include "base/buffer.h"
#include "base/error.h"

struct json;                                   // a document or a value inside one
// INVALID [BAD_JSON] with line, column and what was expected. Depth <= 64, size <= 16 MiB. size 0 reads as {}.
enum mink_code json_parse(const void *text, size_t size, struct json **out, struct error *e) MINK_MUST_CHECK;
void json_free(struct json *document);         // NULL is fine
enum json_type { JSON_NULL, JSON_BOOL, JSON_INT, JSON_REAL, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
enum json_type json_type(const struct json *v);
const struct json *json_get(const struct json *object, const char *key); // NULL when absent or not an object
size_t json_count(const struct json *array_or_object);
const struct json *json_at(const struct json *array, size_t i);
const char *json_key_at(const struct json *object, size_t i, const struct json **out_value); // in text order
const char *json_text(const struct json *string);  // NULL unless a string; terminated, UTF-8
int64_t json_int(const struct json *v);
double json_number(const struct json *v);          // int or real
bool json_bool(const struct json *v);
// Fields of an object. `what` names the object in messages ("ticket"). Absent optional fields leave *out unchanged.
enum mink_code json_field_string(const struct json *o, const char *what, const char *key, bool required, const char **out, struct error *e) MINK_MUST_CHECK;
enum mink_code json_field_int(const struct json *o, const char *what, const char *key, bool required, int64_t min, int64_t max, int64_t *out, struct error *e) MINK_MUST_CHECK;
enum mink_code json_field_bool(const struct json *o, const char *what, const char *key, bool required, bool *out, struct error *e) MINK_MUST_CHECK;
// INVALID [UNKNOWN_KEY] unless every key of o is in the NULL-terminated list; says the nearest.
enum mink_code json_check_keys(const struct json *o, const char *what, const char *const known[], struct error *e) MINK_MUST_CHECK;

// Writing: commas and escapes are handled. Depth <= 32.
struct json_writer { struct buffer *out; uint32_t depth; uint32_t has_item; bool after_key; };
void json_begin(struct json_writer *w, struct buffer *out);
void json_object_begin(struct json_writer *w);
void json_object_end(struct json_writer *w);
void json_array_begin(struct json_writer *w);
void json_array_end(struct json_writer *w);
void json_put_key(struct json_writer *w, const char *key);
void json_put_string(struct json_writer *w, const char *s);  // NULL writes null
void json_put_text(struct json_writer *w, const char *s, size_t size);
void json_put_int(struct json_writer *w, int64_t v);
void json_put_uint(struct json_writer *w, uint64_t v);
void json_put_real(struct json_writer *w, double v);
void json_put_bool(struct json_writer *w, bool v);
void json_put_null(struct json_writer *w);
void json_put_raw(struct json_writer *w, const char *json, size_t size); // already JSON
#endif
