// SPDX-License-Identifier: Apache-2.0
// ipc_internal.h: IPC messages as tables of numbers; shared by ipc_*.c.
//
// Holds     Everything read here went through flatbuffer.h, so positions are inside the message; what they say about the body is not
//           checked yet.
#ifndef MINK_ARROW_IPC_INTERNAL_H
#define MINK_ARROW_IPC_INTERNAL_H

#include "arrow/arrow_internal.h"
#include "arrow/flatbuffer.h"

// Rows cost nothing on the wire when their type has no bytes (null, struct of nothing), so their number needs a limit of its own.
#define IPC_ROWS_MAX (16 << 20)
#define IPC_ITEMS_MAX INT32_MAX // of an array whose buffers grow with its length

// Stays where it was read: tables point into it.
struct ipc_message {
    struct flatbuffer fb;
    struct fb_table root, header;
    enum ipc_kind kind;
    bool encapsulated;
    int version; // 3 = V4, 4 = V5
    uint64_t body_size;
};

struct ipc_record {
    const struct flatbuffer *fb;
    int64_t row_count;
    struct fb_vector nodes, buffers;
    struct fb_vector view_buffers; // i64 a view column: how many buffers it has besides validity and views
    enum codec codec;
};

struct ipc_node { int64_t length, null_count; };
struct ipc_range { int64_t offset, length; };

enum mink_code ipc_bad(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3))); // INVALID [BAD_ARROW]

// Bare or encapsulated. IPC_NONE for tensors and the like.
enum mink_code ipc_read_message(struct slice message, struct ipc_message *out, struct error *e) MINK_MUST_CHECK;
// Of a batch, or of what a dictionary message carries.
enum mink_code ipc_read_record(struct ipc_message *m, struct ipc_record *out, struct error *e) MINK_MUST_CHECK;

static inline struct ipc_node ipc_node_at(const struct ipc_record *r, uint32_t i) {
    return (struct ipc_node){fb_i64_at(r->fb, r->nodes.at + 16 * i), fb_i64_at(r->fb, r->nodes.at + 16 * i + 8)};
}
static inline struct ipc_range ipc_range_at(const struct ipc_record *r, uint32_t i) {
    return (struct ipc_range){fb_i64_at(r->fb, r->buffers.at + 16 * i), fb_i64_at(r->fb, r->buffers.at + 16 * i + 8)};
}

// The flatbuffer of a record batch message, and its size.
uint32_t ipc_record_size(uint32_t node_count, uint32_t buffer_count, enum codec codec);
struct slice ipc_write_record(int64_t row_count, const struct ipc_node *nodes, uint32_t node_count, const struct ipc_range *buffers, uint32_t buffer_count, enum codec codec, uint64_t body_size);

#endif
