// SPDX-License-Identifier: Apache-2.0
// object_internal.h: what backends share.
#ifndef MINK_OBJECT_OBJECT_INTERNAL_H
#define MINK_OBJECT_OBJECT_INTERNAL_H
#include "object/object.h"
// The attempt has ended: drops the body's references and posts on_done to the request's shard. Any thread.
void object_complete(struct object_request *r);
// Settles offset and size of a get against object_size; false: the request has its error.
bool object_clip(struct object_request *r);
bool object_key_valid(const char *key, bool prefix);
#endif
