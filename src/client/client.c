// SPDX-License-Identifier: Apache-2.0
#include "client/client_internal.h"

#include "arrow/ipc.h"
#include "base/mem.h"
#include "net/flight_message.h"
#include "net/ticket.h"

#include <stdio.h>
#include <string.h>

#define MESSAGE_BYTES_MAX (128u << 20)
#define RESULT_COUNT_MAX 1000000

static const enum mink_status statuses[MINK_CODE_COUNT] = {
    [MINK_OK] = MINK_STATUS_OK,
    [MINK_INVALID] = MINK_STATUS_INVALID,
    [MINK_NOT_FOUND] = MINK_STATUS_NOT_FOUND,
    [MINK_EXISTS] = MINK_STATUS_EXISTS,
    [MINK_CONFLICT] = MINK_STATUS_CONFLICT,
    [MINK_OUT_OF_RANGE] = MINK_STATUS_OUT_OF_RANGE,
    [MINK_UNAVAILABLE] = MINK_STATUS_UNAVAILABLE,
    [MINK_OVERLOADED] = MINK_STATUS_OVERLOADED,
    [MINK_FENCED] = MINK_STATUS_UNAVAILABLE, // another node owns it now: ask again
    [MINK_CORRUPT] = MINK_STATUS_INTERNAL,
    [MINK_UNSUPPORTED] = MINK_STATUS_UNSUPPORTED,
    [MINK_UNKNOWN_OUTCOME] = MINK_STATUS_UNKNOWN,
    [MINK_CANCELLED] = MINK_STATUS_CANCELLED,
    [MINK_DEADLINE] = MINK_STATUS_DEADLINE,
    [MINK_DENIED] = MINK_STATUS_DENIED,
    [MINK_INTERNAL] = MINK_STATUS_INTERNAL,
};

enum mink_status client_tell(const struct error *from, struct mink_error *to) {
    enum mink_status status = (unsigned)from->code < MINK_CODE_COUNT ? statuses[from->code] : MINK_STATUS_INTERNAL;
    if (!to) return status;
    *to = (struct mink_error){.status = status};
    if (status == MINK_STATUS_OK) return status;
    snprintf(to->reason, sizeof to->reason, "%s", from->reason);
    snprintf(to->message, sizeof to->message, "%s", from->message);
    snprintf(to->hint, sizeof to->hint, "%s", from->hint);
    snprintf(to->column, sizeof to->column, "%s", from->column);
    snprintf(to->expected, sizeof to->expected, "%s", from->expected);
    snprintf(to->actual, sizeof to->actual, "%s", from->actual);
    return status;
}

enum mink_status mink_connect(const struct mink_options *options, struct mink_client **out, struct mink_error *error) {
    const char *server = options && options->server ? options->server : "127.0.0.1:8815";
    struct error e;
    *out = NULL;
    if (strncmp(server, "grpc://", 7) == 0) server += 7;
    else if (strncmp(server, "grpc+tcp://", 11) == 0) server += 11;
    else if (strstr(server, "://")) {
        error_set(&e, MINK_INVALID, "BAD_SERVER", "server \"%s\": only grpc:// is known", server);
        error_hint(&e, "give host:port, for example 127.0.0.1:8815");
        return client_tell(&e, error);
    }
    const char *colon = strrchr(server, ':');
    if (!colon || colon == server || colon[1] == 0 || strspn(colon + 1, "0123456789") != strlen(colon + 1)) {
        error_set(&e, MINK_INVALID, "BAD_SERVER", "server \"%s\" is not host:port", server);
        error_hint(&e, "for example 127.0.0.1:8815");
        return client_tell(&e, error);
    }
    struct mink_client *c = mem_new(struct mink_client);
    c->rpc = rpc_client_new(server, MESSAGE_BYTES_MAX);
    c->timeout_ms = options && options->timeout_ms ? options->timeout_ms : 30000;
    *out = c;
    if (error) *error = (struct mink_error){0};
    return MINK_STATUS_OK;
}

void mink_disconnect(struct mink_client *c) {
    if (!c) return;
    rpc_client_free(c->rpc);
    mem_free(c);
}

const char *mink_version(void) { return MINK_VERSION; }

// ---- actions

static enum mink_code collect(struct rpc_stream *stream, struct mink_results *out, struct error *e) {
    for (;;) {
        enum rpc_event event;
        const struct slices *message;
        MINK_TRY(rpc_stream_receive(stream, UINT32_MAX, &event, &message, e));
        if (event == RPC_END) return MINK_OK;
        if (event != RPC_MESSAGE) continue;
        struct slice bytes = slices_join(message), body;
        enum mink_code code = flight_bytes_decode(bytes, "Result", &body, e);
        slice_unref(&bytes);
        if (code != MINK_OK) return code;
        if (out->count == RESULT_COUNT_MAX) {
            slice_unref(&body);
            return error_set(e, MINK_OVERLOADED, "TOO_MANY_RESULTS", "the server sent more than %d results", RESULT_COUNT_MAX);
        }
        if ((out->count & (out->count - 1)) == 0) out->items = mem_realloc(out->items, (out->count ? out->count * 2 : 1) * sizeof *out->items);
        char *text = mem_alloc(body.size + 1);
        if (body.size) memcpy(text, body.data, body.size);
        text[body.size] = 0;
        out->items[out->count++] = text;
        slice_unref(&body);
    }
}

enum mink_code client_send_only(struct rpc_stream *stream, struct slice take_message, struct error *e) {
    struct slices message = {0};
    slices_take(&message, take_message);
    enum mink_code code = rpc_stream_send(stream, &message, e);
    slices_deinit(&message);
    if (code == MINK_OK) code = rpc_stream_half_close(stream, e);
    return code != MINK_OK && strcmp(e->reason, "CALL_ENDED") != 0 ? code : MINK_OK;
}

enum mink_status mink_action(struct mink_client *c, const char *action, const char *json_body, struct mink_results *out, struct mink_error *error) {
    struct error e = {0};
    struct rpc_stream *stream = rpc_stream_open(c->rpc, FLIGHT_SERVICE "DoAction", c->timeout_ms);
    *out = (struct mink_results){0};
    enum mink_code code = client_send_only(stream, flight_action_encode(action, json_body ? json_body : "", json_body ? strlen(json_body) : 0), &e);
    if (code == MINK_OK) code = collect(stream, out, &e);
    rpc_stream_close(stream);
    if (code != MINK_OK) mink_results_free(out);
    else error_clear(&e);
    return client_tell(&e, error);
}

void mink_results_free(struct mink_results *results) {
    for (size_t i = 0; i < results->count; i++) mem_free(results->items[i]);
    mem_free(results->items);
    *results = (struct mink_results){0};
}

// ---- schema

static enum mink_code table_schema(struct mink_client *c, const char *table, struct ArrowSchema *out, struct error *e) {
    struct buffer command;
    struct json_writer w;
    buffer_init(&command, 4096);
    json_begin(&w, &command);
    json_object_begin(&w);
    json_put_key(&w, "table");
    json_put_string(&w, table);
    json_object_end(&w);
    if (command.overflowed) {
        buffer_deinit(&command);
        return error_set(e, MINK_INVALID, "BAD_NAME", "the table name is too long");
    }
    struct flight_descriptor descriptor = {.type = FLIGHT_DESCRIPTOR_CMD, .cmd = slice_borrow(command.data, command.size)};
    struct slice request = flight_descriptor_encode(&descriptor), response = slice_empty(), message = slice_empty();
    struct arrow_schema *schema = NULL;
    enum mink_code code = rpc_unary(c->rpc, FLIGHT_SERVICE "GetSchema", request, c->timeout_ms, &response, e);
    if (code == MINK_OK) code = flight_bytes_decode(response, "SchemaResult", &message, e);
    if (code == MINK_OK) code = ipc_decode_schema(message, &schema, e);
    if (code == MINK_OK) code = arrow_schema_export(schema, out, e);
    arrow_schema_unref(schema);
    slice_unref(&message);
    slice_unref(&response);
    slice_unref(&request);
    buffer_deinit(&command);
    return code;
}

enum mink_status mink_table_schema(struct mink_client *c, const char *table, struct ArrowSchema *out, struct mink_error *error) {
    struct error e = {0};
    out->release = NULL;
    if (table_schema(c, table, out, &e) == MINK_OK) error_clear(&e);
    return client_tell(&e, error);
}
