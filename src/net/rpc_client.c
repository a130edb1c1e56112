// SPDX-License-Identifier: Apache-2.0
// A call is driven by the thread that uses it: every wait runs grpc_completion_queue_next on the call's own queue and takes in whatever
// comes: a message is kept until it is asked for (one, so the server feels that nobody reads), the status ends everything.
#include "net/rpc_client.h"

#include "base/mem.h"
#include "net/flight_data.h"
#include "net/rpc_internal.h"

#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <string.h>

struct rpc_client {
    grpc_channel *channel;
};

struct rpc_stream {
    grpc_call *call;
    grpc_completion_queue *queue;
    struct rpc_op started, received, sent, status_came;
    unsigned under_way;
    bool receiving, sending, send_failed, ended, no_more; // no_more: a receive found the end
    grpc_metadata_array headers, trailers;
    grpc_byte_buffer *message_in; // being received, or received and not yet asked for
    bool have_message;
    grpc_byte_buffer *message_given; // what the caller looks at
    grpc_byte_buffer **kept;         // came after a send had failed; at most what flow control had let through
    uint32_t kept_count, kept_next;
    struct slices views;
    grpc_status_code status;
    grpc_slice status_text;
    struct error error; // once ended
};

static grpc_arg int_arg(const char *key, int value) { return (grpc_arg){.type = GRPC_ARG_INTEGER, .key = (char *)key, .value.integer = value}; }

struct rpc_client *rpc_client_new(const char *target, uint32_t message_bytes_max) {
    struct rpc_client *c = mem_new(struct rpc_client);
    grpc_init(); // counted
    grpc_arg args[] = {
        int_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, message_bytes_max ? (int)message_bytes_max : -1),
        int_arg(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1),
        int_arg(GRPC_ARG_MAX_METADATA_SIZE, 64 << 10),
        int_arg(GRPC_ARG_ENABLE_RETRIES, 0), // whether a call may be repeated is known above, not in the transport
        int_arg(GRPC_ARG_ENABLE_HTTP_PROXY, 0),
        int_arg(GRPC_ARG_KEEPALIVE_TIME_MS, 60000),
        int_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20000),
        int_arg(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),
        int_arg(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1), // a client is a connection of its own
    };
    grpc_channel_args list = {.num_args = sizeof args / sizeof *args, .args = args};
    grpc_channel_credentials *insecure = grpc_insecure_credentials_create();
    c->channel = grpc_channel_create(target, insecure, &list);
    grpc_channel_credentials_release(insecure);
    return c;
}

void rpc_client_free(struct rpc_client *c) {
    if (c == NULL) return;
    grpc_channel_destroy(c->channel);
    grpc_shutdown();
    mem_free(c);
}

// ---- events

static void on_started(struct rpc_op *op, bool ok) { container_of(op, struct rpc_stream, started)->under_way--; }

static void on_sent(struct rpc_op *op, bool ok) {
    struct rpc_stream *s = container_of(op, struct rpc_stream, sent);
    s->under_way--;
    s->sending = false;
    s->send_failed = !ok;
}

static void on_received(struct rpc_op *op, bool ok) {
    struct rpc_stream *s = container_of(op, struct rpc_stream, received);
    s->under_way--;
    s->receiving = false;
    s->have_message = s->message_in != NULL;
    if (s->message_in == NULL) s->no_more = true;
}

static struct slice trailer(const grpc_metadata_array *list, const char *key) {
    for (size_t i = 0; i < list->count; i++)
        if (grpc_slice_str_cmp(list->metadata[i].key, key) == 0)
            return slice_borrow(GRPC_SLICE_START_PTR(list->metadata[i].value), GRPC_SLICE_LENGTH(list->metadata[i].value));
    return slice_empty();
}

static void on_status(struct rpc_op *op, bool ok) {
    struct rpc_stream *s = container_of(op, struct rpc_stream, status_came);
    s->under_way--;
    s->ended = true;
    if (s->status == GRPC_STATUS_OK) return;
    char *text = grpc_slice_to_c_string(s->status_text);
    rpc_status_read(rpc_status_from_grpc(s->status), text, trailer(&s->trailers, "mink-error"), &s->error);
    gpr_free(text);
}

static void start_receive(struct rpc_stream *s) {
    s->receiving = true;
    s->under_way++;
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &s->message_in};
    rpc_start_batch(s->call, &op, 1, &s->received);
}

// One event. False on timeout.
static bool step(struct rpc_stream *s, gpr_timespec until) {
    grpc_event event = grpc_completion_queue_next(s->queue, until, NULL);
    if (event.type != GRPC_OP_COMPLETE) return false;
    struct rpc_op *op = event.tag;
    rpc_tsan_acquire(op);
    op->done(op, event.success != 0);
    return true;
}

static gpr_timespec in_ms(uint32_t ms) { return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(ms, GPR_TIMESPAN)); }

// ---- streams

struct rpc_stream *rpc_stream_open(struct rpc_client *c, const char *path, uint32_t timeout_ms) {
    struct rpc_stream *s = mem_new(struct rpc_stream);
    s->started.done = on_started;
    s->received.done = on_received;
    s->sent.done = on_sent;
    s->status_came.done = on_status;
    s->queue = grpc_completion_queue_create_for_next(NULL);
    gpr_timespec deadline = timeout_ms ? in_ms(timeout_ms) : gpr_inf_future(GPR_CLOCK_MONOTONIC);
    grpc_slice method = grpc_slice_from_copied_string(path);
    s->call = grpc_channel_create_call(c->channel, NULL, GRPC_PROPAGATE_DEFAULTS, s->queue, method, NULL, deadline, NULL);
    grpc_slice_unref(method);
    grpc_metadata_array_init(&s->headers);
    grpc_metadata_array_init(&s->trailers);
    s->status_text = grpc_empty_slice();
    grpc_op start[] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                       {.op = GRPC_OP_RECV_INITIAL_METADATA, .data.recv_initial_metadata.recv_initial_metadata = &s->headers}};
    grpc_op status = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
                      .data.recv_status_on_client = {.trailing_metadata = &s->trailers, .status = &s->status, .status_details = &s->status_text}};
    s->under_way += 2;
    rpc_start_batch(s->call, &status, 1, &s->status_came);
    rpc_start_batch(s->call, start, 2, &s->started);
    start_receive(s);
    return s;
}

static enum mink_code ended_code(struct rpc_stream *s, struct error *e) {
    if (s->status == GRPC_STATUS_OK) return error_set(e, MINK_CONFLICT, "CALL_ENDED", "the server has ended the call");
    error_copy(e, &s->error);
    return s->error.code;
}

static enum mink_code send(struct rpc_stream *s, grpc_op *op, struct error *e) {
    s->sending = true;
    s->under_way++;
    rpc_start_batch(s->call, op, 1, &s->sent);
    while (s->sending) step(s, gpr_inf_future(GPR_CLOCK_MONOTONIC));
    // The status comes only after every message that is before it was taken in.
    while (s->send_failed && !s->ended) {
        if (s->have_message) {
            s->kept = mem_realloc(s->kept, (s->kept_count + 1) * sizeof *s->kept);
            s->kept[s->kept_count++] = s->message_in;
            s->message_in = NULL;
            s->have_message = false;
            start_receive(s);
        }
        step(s, gpr_inf_future(GPR_CLOCK_MONOTONIC));
    }
    return s->ended ? ended_code(s, e) : MINK_OK;
}

enum mink_code rpc_stream_send(struct rpc_stream *s, struct slices *take_message, struct error *e) {
    while (step(s, gpr_inf_past(GPR_CLOCK_MONOTONIC))) {}
    if (s->ended) {
        slices_deinit(take_message);
        return ended_code(s, e);
    }
    grpc_byte_buffer *buffer = rpc_buffer_take(take_message);
    grpc_op op = {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = buffer};
    enum mink_code code = send(s, &op, e);
    grpc_byte_buffer_destroy(buffer);
    return code;
}

enum mink_code rpc_stream_half_close(struct rpc_stream *s, struct error *e) {
    grpc_op op = {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
    return send(s, &op, e);
}

static void give_back(struct rpc_stream *s) {
    if (s->message_given == NULL) return;
    rpc_view_deinit(&s->views);
    grpc_byte_buffer_destroy(s->message_given);
    s->message_given = NULL;
}

enum mink_code rpc_stream_receive(struct rpc_stream *s, uint32_t wait_ms, enum rpc_event *event, const struct slices **message, struct error *e) {
    give_back(s);
    gpr_timespec until = wait_ms == UINT32_MAX ? gpr_inf_future(GPR_CLOCK_MONOTONIC) : wait_ms == 0 ? gpr_inf_past(GPR_CLOCK_MONOTONIC) : in_ms(wait_ms);
    bool kept = s->kept_next < s->kept_count;
    while (!kept && !s->have_message && !(s->no_more && s->ended)) {
        if (step(s, until)) continue;
        *event = RPC_TIMEOUT;
        return MINK_OK;
    }
    if (kept || s->have_message) {
        if (kept) {
            s->message_given = s->kept[s->kept_next++];
        } else {
            s->message_given = s->message_in;
            s->message_in = NULL;
            s->have_message = false;
            start_receive(s);
        }
        rpc_buffer_view(s->message_given, &s->views);
        *message = &s->views;
        *event = RPC_MESSAGE;
        return MINK_OK;
    }
    if (s->status != GRPC_STATUS_OK) return ended_code(s, e);
    *event = RPC_END;
    return MINK_OK;
}

void rpc_stream_cancel(struct rpc_stream *s) { grpc_call_cancel(s->call, NULL); }

void rpc_stream_close(struct rpc_stream *s) {
    if (s == NULL) return;
    if (!s->ended) grpc_call_cancel(s->call, NULL);
    while (s->under_way) step(s, gpr_inf_future(GPR_CLOCK_MONOTONIC));
    give_back(s);
    if (s->message_in) grpc_byte_buffer_destroy(s->message_in);
    while (s->kept_next < s->kept_count) grpc_byte_buffer_destroy(s->kept[s->kept_next++]);
    mem_free(s->kept);
    grpc_metadata_array_destroy(&s->headers);
    grpc_metadata_array_destroy(&s->trailers);
    grpc_slice_unref(s->status_text);
    grpc_call_unref(s->call);
    grpc_completion_queue_shutdown(s->queue);
    while (grpc_completion_queue_next(s->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL).type != GRPC_QUEUE_SHUTDOWN) {}
    grpc_completion_queue_destroy(s->queue);
    mem_free(s);
}

enum mink_code rpc_unary(struct rpc_client *c, const char *path, struct slice request, uint32_t timeout_ms, struct slice *response, struct error *e) {
    struct rpc_stream *s = rpc_stream_open(c, path, timeout_ms);
    struct slices message = {0};
    slices_take(&message, slice_ref(request));
    enum mink_code code = rpc_stream_send(s, &message, e);
    if (code == MINK_OK) code = rpc_stream_half_close(s, e);
    *response = slice_empty();
    // An early end shows as CALL_ENDED while its message waits: what was received decides.
    if (code == MINK_OK || (code == MINK_CONFLICT && s->status == GRPC_STATUS_OK)) {
        enum rpc_event event;
        const struct slices *received;
        bool got = false;
        while ((code = rpc_stream_receive(s, UINT32_MAX, &event, &received, e)) == MINK_OK && event == RPC_MESSAGE) {
            slice_unref(response);
            *response = flight_message_join(received);
            got = true;
        }
        if (code == MINK_OK && !got) code = error_set(e, MINK_INTERNAL, "NO_ANSWER", "%s ended without an answer", path);
    }
    if (code != MINK_OK) slice_unref(response);
    rpc_stream_close(s);
    return code;
}
