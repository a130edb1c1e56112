// SPDX-License-Identifier: Apache-2.0
// A DoGet stream: schema first, then batches; zero-row batches carry only positions and are passed over.
#include "client/client_internal.h"

#include "arrow/ipc.h"
#include "base/mem.h"
#include "net/flight_data.h"
#include "net/flight_message.h"
#include "net/ticket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_BYTES_MAX (1u << 30)

struct mink_scan {
    struct rpc_stream *stream;
    struct arrow_schema *schema;
    struct ipc_decoder *decoder;
    bool ended;
};

static enum mink_code parse_position(const char *what, const char *text, uint64_t *out, struct error *e) {
    char *end;
    *out = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end) return error_set(e, MINK_INVALID, "BAD_POSITION", "%s: \"%s\" is not an offset (nor a name that is known)", what, text);
    return MINK_OK;
}

static enum mink_code make_ticket(const struct mink_scan_options *options, struct ticket *t, struct error *e) {
    ticket_init(t);
    MINK_TRY(table_ref_parse(options->table, &t->table, e));
    t->partition = options->partition;
    t->bucket = options->bucket;
    t->filter = options->filter;
    t->limit = options->limit;
    t->all_columns = options->column_count == 0;
    if (options->column_count > TICKET_COLUMNS_MAX) return error_set(e, MINK_INVALID, "TOO_MANY_COLUMNS", "at most %d columns can be named", TICKET_COLUMNS_MAX);
    if (options->meta_count > TICKET_META_MAX) return error_set(e, MINK_INVALID, "TOO_MANY_COLUMNS", "at most %d meta columns can be named", TICKET_META_MAX);
    t->columns = mem_new_array(const char *, options->column_count ? options->column_count : 1);
    for (size_t i = 0; i < options->column_count; i++) t->columns[t->column_count++] = options->columns[i];
    for (size_t i = 0; i < options->meta_count; i++) t->meta[t->meta_count++] = options->meta[i];
    uint64_t value;
    if (!options->from || strcmp(options->from, "earliest") == 0) t->from = FROM_EARLIEST;
    else if (strcmp(options->from, "latest") == 0) t->from = FROM_LATEST;
    else {
        bool time = strncmp(options->from, "ts:", 3) == 0;
        MINK_TRY(parse_position("from", options->from + (time ? 3 : 0), &value, e));
        t->from = time ? FROM_TIME : FROM_OFFSET;
        t->from_value = (int64_t)value;
    }
    if (!options->until || strcmp(options->until, "now") == 0) t->until = UNTIL_NOW;
    else if (strcmp(options->until, "never") == 0) t->until = UNTIL_NEVER;
    else {
        MINK_TRY(parse_position("until", options->until, &t->until_offset, e));
        t->until = UNTIL_OFFSET;
    }
    if (!options->compression || strcmp(options->compression, "none") == 0) t->compression = CODEC_NONE;
    else if (strcmp(options->compression, "lz4") == 0) t->compression = CODEC_LZ4_FRAME;
    else if (strcmp(options->compression, "zstd") == 0) t->compression = CODEC_ZSTD;
    else return error_set(e, MINK_INVALID, "BAD_COMPRESSION", "unknown compression \"%s\" (known: none, lz4, zstd)", options->compression);
    return MINK_OK;
}

// The next message with a header. *end when the call has ended well.
static enum mink_code next_message(struct mink_scan *s, struct flight_data *out, bool *end, struct error *e) {
    *end = false;
    for (;;) {
        enum rpc_event event;
        const struct slices *message;
        MINK_TRY(rpc_stream_receive(s->stream, UINT32_MAX, &event, &message, e));
        if (event == RPC_END) {
            *end = true;
            return MINK_OK;
        }
        if (event != RPC_MESSAGE) continue;
        MINK_TRY(flight_data_parse(message, NULL, out, e));
        if (out->header.size) return MINK_OK;
        flight_data_deinit(out);
    }
}

static enum mink_code begin(struct mink_scan *s, const struct mink_scan_options *options, struct error *e) {
    struct ticket ticket;
    struct buffer text;
    struct flight_data data;
    bool end;
    enum mink_code code = make_ticket(options, &ticket, e);
    if (code != MINK_OK) {
        ticket_deinit(&ticket);
        return code;
    }
    buffer_init(&text, TICKET_JSON_MAX);
    ticket_write(&ticket, &text);
    ticket_deinit(&ticket);
    code = client_send_only(s->stream, flight_bytes_encode(text.data, text.size), e);
    buffer_deinit(&text);
    if (code == MINK_OK) code = next_message(s, &data, &end, e);
    if (code != MINK_OK) return code;
    if (end) return error_set(e, MINK_INTERNAL, "NO_SCHEMA", "the server ended the stream without a schema");
    code = ipc_decode_schema(data.header, &s->schema, e);
    flight_data_deinit(&data);
    if (code == MINK_OK) s->decoder = ipc_decoder_new(s->schema, BATCH_BYTES_MAX);
    return code;
}

enum mink_status mink_scan_open(struct mink_client *c, const struct mink_scan_options *options, struct mink_scan **out, struct mink_error *error) {
    struct error e = {0};
    struct mink_scan *s = mem_new(struct mink_scan);
    *out = NULL;
    s->stream = rpc_stream_open(c->rpc, FLIGHT_SERVICE "DoGet", 0);
    if (begin(s, options, &e) == MINK_OK) {
        error_clear(&e);
        *out = s;
    } else {
        mink_scan_close(s);
    }
    return client_tell(&e, error);
}

enum mink_status mink_scan_schema(struct mink_scan *s, struct ArrowSchema *out, struct mink_error *error) {
    struct error e = {0};
    out->release = NULL;
    if (arrow_schema_export(s->schema, out, &e) == MINK_OK) error_clear(&e);
    return client_tell(&e, error);
}

static void read_info(struct slice metadata, struct mink_scan_info *info) {
    *info = (struct mink_scan_info){.bucket = -1};
    struct json *j;
    if (metadata.size == 0 || json_parse(metadata.data, metadata.size, &j, NULL) != MINK_OK) return;
    if (json_get(j, "bucket")) info->bucket = (int32_t)json_int(json_get(j, "bucket"));
    if (json_type(json_get(j, "next")) == JSON_INT) info->next = (uint64_t)json_int(json_get(j, "next"));
    const char *partition = json_text(json_get(j, "partition"));
    if (partition) snprintf(info->partition, sizeof info->partition, "%s", partition);
    json_free(j);
}

static enum mink_code next_batch(struct mink_scan *s, struct ArrowArray *out, struct mink_scan_info *info, struct error *e) {
    while (!s->ended) {
        struct flight_data data;
        struct arrow_batch batch;
        MINK_TRY(next_message(s, &data, &s->ended, e));
        if (s->ended) break;
        // The body is a view; what is decoded from it must hold the slab.
        struct slice body = data.slab.size ? slice_sub(data.slab, data.room, data.body.size) : slice_empty();
        enum mink_code code = ipc_decoder_batch(s->decoder, data.header, body, &batch, NULL, e);
        slice_unref(&body);
        if (code == MINK_OK && info) read_info(data.app_metadata, info);
        if (code == MINK_OK && batch.row_count > 0) code = arrow_batch_export(&batch, out, e);
        if (code == MINK_OK) arrow_batch_deinit(&batch);
        flight_data_deinit(&data);
        if (code != MINK_OK || out->release) return code;
    }
    return MINK_OK;
}

enum mink_status mink_scan_next(struct mink_scan *s, struct ArrowArray *out, struct mink_scan_info *info, struct mink_error *error) {
    struct error e = {0};
    out->release = NULL;
    if (next_batch(s, out, info, &e) == MINK_OK) error_clear(&e);
    return client_tell(&e, error);
}

void mink_scan_cancel(struct mink_scan *s) { rpc_stream_cancel(s->stream); }

void mink_scan_close(struct mink_scan *s) {
    if (!s) return;
    rpc_stream_close(s->stream);
    ipc_decoder_free(s->decoder);
    arrow_schema_unref(s->schema);
    mem_free(s);
}
