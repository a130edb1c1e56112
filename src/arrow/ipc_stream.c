// SPDX-License-Identifier: Apache-2.0
// Files and streams of messages. A file is read as the stream it contains: its footer only repeats where the messages are.
#include "arrow/ipc.h"

#include "arrow/ipc_internal.h"
#include "base/mem.h"

#include <inttypes.h>

struct ipc_stream_reader {
    struct slice bytes;
    size_t at;
    struct ipc_decoder *decoder;
};

// The next message and its body; *end at an end marker or the end of the bytes.
static enum mink_code next_message(struct ipc_stream_reader *r, struct ipc_message *m, struct slice *message, struct slice *body, bool *end, struct error *e) {
    size_t left = r->bytes.size - r->at;
    uint32_t prefix[2];
    *end = left == 0;
    if (*end) return MINK_OK;
    if (left < 8) return ipc_bad(e, "stream is cut off at byte %zu", r->at);
    memcpy(prefix, r->bytes.data + r->at, 8);
    if (prefix[0] != UINT32_MAX) return ipc_bad(e, "byte %zu: a message begins with ff ff ff ff, this is not Arrow IPC", r->at);
    *end = prefix[1] == 0;
    if (*end) return MINK_OK;
    if (prefix[1] > left - 8) return ipc_bad(e, "stream is cut off at byte %zu: %" PRIu32 " bytes of metadata are announced, %zu are there", r->at, prefix[1], left - 8);
    *message = slice_view(r->bytes, r->at + 8, prefix[1]);
    MINK_TRY(ipc_read_message(*message, m, e));
    left -= 8 + prefix[1];
    if (m->body_size > left) return ipc_bad(e, "stream is cut off at byte %zu: a body of %" PRIu64 " bytes is announced, %zu are there", r->at, m->body_size, left);
    *body = slice_sub(r->bytes, r->at + 8 + prefix[1], m->body_size);
    if (body->size && (uintptr_t)body->data % 8 != 0) {
        struct slice moved = slice_copy(body->data, body->size);
        slice_unref(body);
        *body = moved;
    }
    r->at += 8 + prefix[1] + m->body_size;
    return MINK_OK;
}

enum mink_code ipc_stream_reader_open(struct slice bytes, struct ipc_stream_reader **out, struct arrow_schema **schema, struct error *e) {
    struct ipc_stream_reader *r = mem_new(struct ipc_stream_reader);
    struct ipc_message m;
    struct slice message, body = slice_empty();
    struct arrow_schema *s = NULL;
    bool end;
    r->bytes = slice_ref(bytes);
    if (bytes.size >= 8 && memcmp(bytes.data, "ARROW1\0\0", 8) == 0) r->at = 8;
    enum mink_code code = next_message(r, &m, &message, &body, &end, e);
    if (code == MINK_OK && end) code = ipc_bad(e, "an empty stream: no schema");
    if (code == MINK_OK) code = ipc_decode_schema(message, &s, e);
    slice_unref(&body);
    if (code != MINK_OK) {
        ipc_stream_reader_free(r);
        return code;
    }
    r->decoder = ipc_decoder_new(s, INT32_MAX);
    *schema = s;
    *out = r;
    return MINK_OK;
}

enum mink_code ipc_stream_reader_next(struct ipc_stream_reader *r, struct arrow_batch *out, bool *end, struct error *e) {
    for (;;) {
        struct ipc_message m;
        struct slice message, body = slice_empty();
        MINK_TRY(next_message(r, &m, &message, &body, end, e));
        if (*end) return MINK_OK;
        enum mink_code code = m.kind == IPC_DICTIONARY ? ipc_decoder_dictionary(r->decoder, message, body, e)
                              : m.kind == IPC_BATCH    ? ipc_decoder_batch(r->decoder, message, body, out, NULL, e)
                                                       : ipc_bad(e, "a schema or tensor in the middle of a stream");
        slice_unref(&body);
        if (code != MINK_OK || m.kind == IPC_BATCH) return code;
    }
}

void ipc_stream_reader_free(struct ipc_stream_reader *r) {
    if (r == NULL) return;
    ipc_decoder_free(r->decoder);
    slice_unref(&r->bytes);
    mem_free(r);
}
