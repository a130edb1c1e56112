// SPDX-License-Identifier: Apache-2.0
// A DoPut stream. Batches are numbered from 0; an acknowledgement of batch n covers all up to n, so a ring of the unacknowledged batches
// (rows, bytes) is all the state there is. Whatever the server says is taken in while sending; append waits only when too many bytes are
// unacknowledged.
#include "client/client_internal.h"

#include "arrow/ipc.h"
#include "base/mem.h"
#include "net/flight_data.h"
#include "net/flight_message.h"
#include "net/ticket.h"

#include <stdio.h>
#include <string.h>

#define UNACKED_MAX 4096 // batches; a power of two

struct mink_writer {
    struct rpc_stream *stream;
    struct arrow_schema *schema;
    enum codec codec;
    bool has_sequence;
    uint32_t sequence;
    uint64_t bytes_max, bytes_unacked;
    uint64_t batches_sent, batches_acked, rows_acked;
    struct { uint64_t rows, bytes; } unacked[UNACKED_MAX];
    struct error failed; // sticks
};

static enum mink_code parse_codec(const char *name, enum codec *out, struct error *e) {
    if (!name || strcmp(name, "none") == 0) *out = CODEC_NONE;
    else if (strcmp(name, "lz4") == 0) *out = CODEC_LZ4_FRAME;
    else if (strcmp(name, "zstd") == 0) *out = CODEC_ZSTD;
    else return error_set(e, MINK_INVALID, "BAD_COMPRESSION", "unknown compression \"%s\" (known: none, lz4, zstd)", name);
    return MINK_OK;
}

static enum mink_code send_schema(struct mink_writer *w, const struct mink_writer_options *options, struct error *e) {
    struct buffer text;
    struct put_command command;
    put_command_init(&command);
    MINK_TRY(table_ref_parse(options->table, &command.table, e));
    command.partition = options->partition;
    command.bucket = options->bucket;
    command.writer = options->writer_id;
    buffer_init(&text, TICKET_JSON_MAX);
    put_command_write(&command, &text);
    struct flight_descriptor descriptor = {.type = FLIGHT_DESCRIPTOR_CMD, .cmd = slice_borrow(text.data, text.size)};
    struct slice encoded = flight_descriptor_encode(&descriptor), message = ipc_encode_schema(w->schema, false);
    struct slices frame = {0};
    flight_data_frame(&frame, encoded, message, NULL, 0, NULL);
    enum mink_code code = rpc_stream_send(w->stream, &frame, e);
    slices_deinit(&frame);
    slice_unref(&message);
    slice_unref(&encoded);
    buffer_deinit(&text);
    return code;
}

enum mink_status mink_writer_open(struct mink_client *c, const struct mink_writer_options *options, struct ArrowSchema *schema, struct mink_writer **out, struct mink_error *error) {
    struct error e = {0};
    struct mink_writer *w = mem_new(struct mink_writer);
    *out = NULL;
    enum mink_code code = arrow_schema_import(schema, &w->schema, &e);
    if (code == MINK_OK) code = parse_codec(options->compression, &w->codec, &e);
    if (code == MINK_OK && options->writer_id && options->bucket < 0) code = error_set(&e, MINK_INVALID, "BUCKET_NEEDED", "a writer with an id writes to one bucket: name it");
    if (code == MINK_OK) {
        w->has_sequence = options->writer_id != 0;
        w->sequence = options->sequence;
        w->bytes_max = options->bytes_in_flight_max ? options->bytes_in_flight_max : 32u << 20;
        w->stream = rpc_stream_open(c->rpc, FLIGHT_SERVICE "DoPut", 0);
        code = send_schema(w, options, &e);
    }
    if (code != MINK_OK) mink_writer_abort(w);
    else *out = w;
    return client_tell(&e, error);
}

static enum mink_code take_ack(struct mink_writer *w, const struct slices *message, struct error *e) {
    struct slice bytes = slices_join(message), body = slice_empty();
    struct json *ack = NULL;
    int64_t batch = -1;
    enum mink_code code = flight_bytes_decode(bytes, "PutResult", &body, e);
    if (code == MINK_OK) code = json_parse(body.data, body.size, &ack, e);
    if (code == MINK_OK) code = json_field_int(ack, "acknowledgement", "batch", true, 0, INT64_MAX, &batch, e);
    if (code == MINK_OK && (uint64_t)batch >= w->batches_sent) code = error_set(e, MINK_INTERNAL, "BAD_ACK", "the server acknowledged batch %lld, of %llu sent", (long long)batch, (unsigned long long)w->batches_sent);
    for (; code == MINK_OK && w->batches_acked <= (uint64_t)batch; w->batches_acked++) {
        uint32_t at = w->batches_acked % UNACKED_MAX;
        w->rows_acked += w->unacked[at].rows;
        w->bytes_unacked -= w->unacked[at].bytes;
    }
    json_free(ack);
    slice_unref(&body);
    slice_unref(&bytes);
    return code;
}

// Takes in acknowledgements: those that are there (wait_ms 0), or at least one.
static enum mink_code take_acks(struct mink_writer *w, uint32_t wait_ms, struct error *e) {
    for (;; wait_ms = 0) {
        enum rpc_event event;
        const struct slices *message;
        MINK_TRY(rpc_stream_receive(w->stream, wait_ms, &event, &message, e));
        if (event == RPC_TIMEOUT) return MINK_OK;
        if (event == RPC_END) {
            if (w->batches_acked == w->batches_sent) return MINK_OK;
            return error_set(e, MINK_UNKNOWN_OUTCOME, "STREAM_ENDED", "the server ended the stream with %llu batches unacknowledged", (unsigned long long)(w->batches_sent - w->batches_acked));
        }
        MINK_TRY(take_ack(w, message, e));
    }
}

static enum mink_code send_batch(struct mink_writer *w, struct ArrowArray *array, struct error *e) {
    struct arrow_batch batch;
    struct slice message;
    struct slices body = {0}, frame = {0};
    MINK_TRY(arrow_batch_import(array, w->schema, &batch, e));
    uint64_t rows = (uint64_t)batch.row_count;
    enum mink_code code = ipc_encode_batch(&batch, w->codec, w->codec == CODEC_ZSTD ? 1 : 0, &message, &body, e);
    arrow_batch_deinit(&batch);
    if (code != MINK_OK) return code;
    uint64_t bytes = message.size + body.bytes;
    while (code == MINK_OK && w->batches_sent > w->batches_acked &&
           (w->bytes_unacked + bytes > w->bytes_max || w->batches_sent - w->batches_acked == UNACKED_MAX))
        code = take_acks(w, UINT32_MAX, e);
    char sequence[32];
    int sequence_size = w->has_sequence ? snprintf(sequence, sizeof sequence, "{\"seq\":%u}", w->sequence++) : 0;
    flight_data_frame(&frame, slice_empty(), message, sequence, (size_t)sequence_size, &body);
    w->unacked[w->batches_sent % UNACKED_MAX].rows = rows;
    w->unacked[w->batches_sent % UNACKED_MAX].bytes = bytes;
    if (code == MINK_OK) {
        w->batches_sent++;
        w->bytes_unacked += bytes;
        code = rpc_stream_send(w->stream, &frame, e);
    }
    slices_deinit(&frame);
    slices_deinit(&body);
    slice_unref(&message);
    return code == MINK_OK ? take_acks(w, 0, e) : code;
}

enum mink_status mink_writer_append(struct mink_writer *w, struct ArrowArray *array, struct mink_error *error) {
    if (w->failed.code != MINK_OK) array->release(array);
    else if (send_batch(w, array, &w->failed) == MINK_OK) error_clear(&w->failed);
    return client_tell(&w->failed, error);
}

enum mink_status mink_writer_flush(struct mink_writer *w, struct mink_error *error) {
    enum mink_code code = w->failed.code;
    while (code == MINK_OK && w->batches_acked < w->batches_sent) code = take_acks(w, UINT32_MAX, &w->failed);
    if (code == MINK_OK) error_clear(&w->failed);
    return client_tell(&w->failed, error);
}

uint64_t mink_writer_rows_acked(const struct mink_writer *w) { return w->rows_acked; }
uint64_t mink_writer_batches_acked(const struct mink_writer *w) { return w->batches_acked; }

enum mink_status mink_writer_close(struct mink_writer *w, struct mink_error *error) {
    struct error e = {0};
    enum mink_status status = mink_writer_flush(w, error);
    if (status == MINK_STATUS_OK) {
        enum mink_code code = rpc_stream_half_close(w->stream, &e);
        enum rpc_event event = RPC_MESSAGE;
        const struct slices *message;
        while (code == MINK_OK && event != RPC_END) code = rpc_stream_receive(w->stream, UINT32_MAX, &event, &message, &e);
        if (code == MINK_OK) error_clear(&e);
        status = client_tell(&e, error);
    }
    mink_writer_abort(w);
    return status;
}

void mink_writer_abort(struct mink_writer *w) {
    if (!w) return;
    if (w->stream) rpc_stream_close(w->stream);
    arrow_schema_unref(w->schema);
    mem_free(w);
}
