// SPDX-License-Identifier: Apache-2.0
// object_memory.h: the object store in this process's memory; completes on the next turn of the asking shard.
// Survives the nodes that use it, so the simulator and tests keep one across crashes. Any thread.
#ifndef MINK_OBJECT_OBJECT_MEMORY_H
#define MINK_OBJECT_OBJECT_MEMORY_H
#include "object/object.h"
struct object_store *object_memory_new(void);
// For checkers: synchronous view of what is stored, under the store's lock. visit returns false to stop. Keys ascend.
void object_memory_visit(struct object_store *store, bool (*visit)(void *ctx, const char *key, struct slice data), void *ctx);
// For checkers: a reference on what is stored under key; data NULL when absent.
struct slice object_memory_find(struct object_store *store, const char *key);
// For checkers and fault injection: replaces by a copy of data, or removes (data.data == NULL), what is stored under key.
void object_memory_poke(struct object_store *store, const char *key, struct slice data);
// Sink: put bodies are counted and dropped (benchmarks of the append path only).
void object_memory_set_sink(struct object_store *store, bool sink);
#endif
