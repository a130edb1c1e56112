// SPDX-License-Identifier: Apache-2.0
// object_internal.h: what the backends share.
#ifndef MINK_OBJECT_OBJECT_INTERNAL_H
#define MINK_OBJECT_OBJECT_INTERNAL_H

#include "object/object.h"

// The attempt has ended: request->code and results are set. Drops the body's references and posts on_done. Any thread.
void object_finish(struct object_request *request);
// Sets code and error from the arguments, with "put <key>: " in front, and finishes.
void object_fail(struct object_request *request, enum mink_code code, const char *reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
const char *object_op_name(enum object_op op); // "put"

// The part of an object that a get asks for; false when it lies outside.
bool object_get_range(const struct object_request *request, uint64_t object_size, uint64_t *offset, uint64_t *size);
// Does the key belong on a page: has the prefix, comes after start_after.
bool object_list_wants(const struct object_request *request, const char *key);
// Puts one more entry onto the page, or notes that there are more: then false.
bool object_list_add(struct object_request *request, const char *key, uint64_t size);

#endif
