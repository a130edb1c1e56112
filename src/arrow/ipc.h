// SPDX-License-Identifier: Apache-2.0
// ipc.h: Arrow IPC messages in and out.
//
// What      Decoding goes peek (message kind and body length) → verify (flatbuffer) → decode (validated arrays whose buffers are
//           sub-slices of the body; compressed buffers are decompressed). Encoding writes a RecordBatch message and gives the body as a
//           list of slices: nothing is joined. Metadata version V5, little-endian, buffers at multiples of 64, body padded to 64.
// Holds     No byte of a message or body is trusted before its check. A claimed uncompressed length is checked against limits before it is
//           allocated. Errors are INVALID [BAD_ARROW] with what and where.
// Owner     One decoder belongs to one stream and one thread at a time. Messages are bare flatbuffers here ("bare"), or encapsulated
//           (ff ff ff ff, int32 length, flatbuffer padded to 8); inputs accept both.
// Source    Arrow format/Message.fbs, format/Schema.fbs.
#ifndef MINK_ARROW_IPC_H
#define MINK_ARROW_IPC_H

#include "arrow/array.h"
#include "base/compress.h"

enum ipc_kind { IPC_NONE, IPC_SCHEMA, IPC_DICTIONARY, IPC_BATCH };
struct ipc_message_info { enum ipc_kind kind; uint64_t body_size; int64_t row_count; enum codec codec; }; // the last two of a batch
enum mink_code ipc_peek(struct slice message, struct ipc_message_info *out, struct error *e) MINK_MUST_CHECK;

enum mink_code ipc_decode_schema(struct slice message, struct arrow_schema **out, struct error *e) MINK_MUST_CHECK;
struct slice ipc_encode_schema(const struct arrow_schema *s, bool encapsulated);

// Stateful: keeps the schema and dictionaries of a stream.
struct ipc_decoder;
struct ipc_decoder *ipc_decoder_new(struct arrow_schema *schema, uint64_t batch_bytes_max); // refs schema
void ipc_decoder_free(struct ipc_decoder *d);
struct ipc_batch_info {
    int64_t row_count;
    enum codec codec;       // of the body
    bool plain;             // V5, bare, no dictionaries, buffers 8-aligned inside the body: the body may be stored as it is, with ipc_rewrite's message
};
enum mink_code ipc_decoder_dictionary(struct ipc_decoder *d, struct slice message, struct slice body, struct error *e) MINK_MUST_CHECK;
// body must be 8-byte aligned in memory. Full validation. info may be NULL.
enum mink_code ipc_decoder_batch(struct ipc_decoder *d, struct slice message, struct slice body, struct arrow_batch *out, struct ipc_batch_info *info, struct error *e) MINK_MUST_CHECK;

// A plain message as we would lay it out, padded to its own size. What is stored goes to readers whose flatbuffer verifiers are stricter than
// our reading, so bytes of a stranger's making must not get there.
struct slice ipc_rewrite(struct slice message);

// message: bare flatbuffer; body: 64-aligned buffers and padding as slices that share the batch's buffers (or compressed copies).
enum mink_code ipc_encode_batch(const struct arrow_batch *b, enum codec codec, int level, struct slice *message, struct slices *body, struct error *e) MINK_MUST_CHECK;

// Projection without decoding: from a RecordBatch message and body, the message and body of some columns (depth-first field nodes and
// buffers of the chosen columns, in the order given). Body slices are sub-slices of `body`; codec unchanged.
enum mink_code ipc_project(const struct arrow_schema *schema, struct slice message, struct slice body, const uint32_t *columns, uint32_t column_count, struct slice *out_message, struct slices *out_body, struct error *e) MINK_MUST_CHECK;

// A file or stream of IPC (the "ARROW1" file magic or an encapsulated stream), for the command line and tests.
// Bytes that are not aligned are copied a body at a time. *schema: one reference, the caller's.
struct ipc_stream_reader;
enum mink_code ipc_stream_reader_open(struct slice bytes, struct ipc_stream_reader **out, struct arrow_schema **schema, struct error *e) MINK_MUST_CHECK;
enum mink_code ipc_stream_reader_next(struct ipc_stream_reader *r, struct arrow_batch *out, bool *end, struct error *e) MINK_MUST_CHECK;
void ipc_stream_reader_free(struct ipc_stream_reader *r);

#endif
