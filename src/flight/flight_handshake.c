// SPDX-License-Identifier: Apache-2.0
// Handshake without authentication: everybody gets a token, because clients that have a user set insist on one.
//
// A client may send nothing and half-close (Go), one empty request (Java, JDBC), its token, or a BasicAuth (pyarrow's ClientAuthHandler).
// The token goes into the initial and the trailing metadata, since clients look in different places, and into a response when the request
// had a payload.
#include "base/mem.h"
#include "flight/flight_internal.h"

#include <string.h>

#define TOKEN_SIZE 24

struct handshake {
    struct flight_server *server;
    char token[TOKEN_SIZE + 1], header[TOKEN_SIZE + 8];
    bool answered, over;
};

static void end(struct rpc_call *c, struct handshake *h) {
    struct error fine = {0};
    struct rpc_status status;
    rpc_status_make(&fine, NULL, &status);
    rpc_status_add(&status, "authorization", slice_copy(h->header, strlen(h->header)));
    rpc_call_finish(c, &status);
}

static void on_message(struct rpc_call *c, const struct slices *message) {
    struct handshake *h = rpc_call_state(c);
    if (message == NULL) {
        h->over = true;
        if (!rpc_call_sending(c)) end(c, h);
        return;
    }
    struct slice body = flight_message_join(message);
    struct flight_handshake request;
    struct error e;
    enum mink_code code = flight_handshake_decode(body, &request, &e);
    slice_unref(&body);
    if (code != MINK_OK) {
        flight_finish(c, &e, NULL);
        return;
    }
    bool wants_answer = request.payload.size > 0 && !h->answered;
    flight_handshake_deinit(&request);
    if (wants_answer) {
        h->answered = true;
        struct slices out = {0};
        slices_take(&out, flight_handshake_encode(h->token, TOKEN_SIZE));
        rpc_call_send(c, &out);
    }
    rpc_call_receive(c);
}

static void on_sent(struct rpc_call *c) {
    struct handshake *h = rpc_call_state(c);
    if (h->over) end(c, h);
}

static void on_cancelled(struct rpc_call *c) {
    struct error e;
    error_set(&e, MINK_CANCELLED, "CANCELLED", "the client cancelled the call");
    flight_finish(c, &e, NULL);
}

static void on_closed(struct rpc_call *c) {
    struct handshake *h = rpc_call_state(c);
    struct flight_server *s = h->server;
    mem_free(h);
    flight_server_release(s);
}

static const struct rpc_call_ops ops = {on_message, on_sent, on_cancelled, NULL, on_closed};

void flight_handshake(void *server, struct rpc_call *c) {
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    struct handshake *h = mem_new(struct handshake);
    h->server = server;
    flight_server_hold(h->server);
    memcpy(h->header, "Bearer ", 7);
    for (int i = 0; i < TOKEN_SIZE; i++) h->token[i] = h->header[7 + i] = alphabet[random_below(shard_random(rpc_call_shard(c)), 64)];
    struct rpc_metadata initial = {"authorization", slice_borrow(h->header, strlen(h->header))};
    rpc_call_accept(c, &ops, h, &initial, 1);
    rpc_call_receive(c);
}
