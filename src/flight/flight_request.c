// SPDX-License-Identifier: Apache-2.0
// One request message in, answers out one after the other as flow control takes them, then the status.
#include "base/mem.h"
#include "flight/flight_internal.h"

static void settle(struct flight_request *r) {
    if (!r->closed || r->pending) return;
    struct flight_server *s = r->server;
    for (uint32_t i = r->answer_sent; i < r->answer_count; i++) slice_unref(&r->answers[i]);
    mem_free(r->answers);
    if (r->free_state) r->free_state(r);
    mem_free(r);
    flight_server_release(s);
}

static void pump(struct flight_request *r) {
    if (rpc_call_finished(r->call) || rpc_call_sending(r->call)) return;
    if (r->answer_sent < r->answer_count) {
        struct slices message = {0};
        slices_take(&message, r->answers[r->answer_sent++]);
        rpc_call_send(r->call, &message);
    } else if (r->done) {
        flight_finish(r->call, &r->error, NULL);
    }
}

static void on_message(struct rpc_call *c, const struct slices *message) {
    struct flight_request *r = rpc_call_state(c);
    if (message == NULL) {
        error_set(&r->error, MINK_INVALID, "NO_REQUEST", "the call ended before its request message");
        flight_request_done(r);
        return;
    }
    struct slice body = flight_message_join(message);
    r->handle(r, body);
    slice_unref(&body);
}

static void on_sent(struct rpc_call *c) { pump(rpc_call_state(c)); }

static void on_cancelled(struct rpc_call *c) {
    struct error e;
    error_set(&e, MINK_CANCELLED, "CANCELLED", "the client cancelled the call");
    flight_finish(c, &e, NULL);
}

static void on_closed(struct rpc_call *c) {
    struct flight_request *r = rpc_call_state(c);
    r->closed = true;
    settle(r);
}

static const struct rpc_call_ops ops = {on_message, on_sent, on_cancelled, NULL, on_closed};

void flight_request_start(struct flight_server *s, struct rpc_call *c, void (*handle)(struct flight_request *r, struct slice body)) {
    struct flight_request *r = mem_new(struct flight_request);
    r->server = s;
    r->call = c;
    r->handle = handle;
    flight_server_hold(s);
    rpc_call_accept(c, &ops, r, NULL, 0);
    rpc_call_receive(c);
}

void flight_request_answer(struct flight_request *r, struct slice take_message) {
    if (r->answer_count == r->answer_capacity) {
        r->answer_capacity = r->answer_capacity ? 2 * r->answer_capacity : 4;
        r->answers = mem_realloc(r->answers, r->answer_capacity * sizeof *r->answers);
    }
    r->answers[r->answer_count++] = take_message;
}

void flight_request_done(struct flight_request *r) {
    r->done = true;
    if (r->error.code != MINK_OK) { // an error stands alone
        for (uint32_t i = r->answer_sent; i < r->answer_count; i++) slice_unref(&r->answers[i]);
        r->answer_count = r->answer_sent;
    }
    pump(r);
}

void flight_request_sent(struct flight_request *r) { r->pending++; }

bool flight_request_returned(struct flight_request *r) {
    r->pending--;
    if (!r->closed) return true;
    settle(r);
    return false;
}
