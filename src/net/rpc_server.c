// SPDX-License-Identifier: Apache-2.0
// Calls on the C core. A call's operations, at most one of each kind under way:
//
//   start    send initial metadata, at once, so that a client that waits for headers does not wait for the first batch
//   close    receive close: completes when the call ends, tells whether the client left
//   receive  one message;   send  one message;   status  the end
//
// The call is freed when it was finished and nothing is under way. The server is freed when it is shut down and no armed request and no
// call is left (refs).
//
// Trap: grpc_server_request_call after shutdown has begun aborts the process, so arming and beginning the shutdown exclude each other.
#include "net/rpc_server.h"

#include "base/mem.h"
#include "base/metrics.h"
#include "net/listen.h"
#include "net/listen.h"
#include "net/rpc_internal.h"

#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <pthread.h>
#include <unistd.h>

#define ARMED_PER_SHARD 32
// How long a status waits for a message that flow control holds back.
#define OVERTAKE_NS (50 * NS_PER_MS)

static struct metric_counter calls_total = METRIC_COUNTER("mink_rpc_calls_total", "gRPC calls accepted");
static struct metric_gauge calls_open = METRIC_GAUGE("mink_rpc_calls_open", "gRPC calls in progress");
static struct metric_counter bytes_received = METRIC_COUNTER("mink_rpc_received_bytes_total", "bytes of gRPC messages received");
static struct metric_counter bytes_sent = METRIC_COUNTER("mink_rpc_sent_bytes_total", "bytes of gRPC messages sent");

// The calls of one server on one shard.
struct lane {
    struct rpc_server *server;
    struct shard *shard;
    struct rpc_call *calls; // accepted; doubly linked
    struct task arm, drain;
};

struct rpc_server {
    grpc_server *grpc;
    const struct rpc_method *methods;
    uint32_t method_count;
    void *ctx;
    int port;
    struct lane *lanes;
    uint32_t lane_count;
    pthread_mutex_t lock; // guards closing together with grpc_server_request_call; innermost
    bool closing;
    atomic_uint refs; // armed requests, calls, and one until shut down
    struct task close, closed;
    struct rpc_op shut_down;
    struct timer grace;
    uint32_t grace_ms;
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

struct rpc_call {
    struct lane *lane;
    grpc_call *grpc;
    grpc_call_details details;
    grpc_metadata_array headers;
    struct rpc_op requested, started, closed, received, sent, status_sent;
    const struct rpc_call_ops *ops;
    void *state;
    struct rpc_call *next, *previous;
    unsigned under_way;
    bool receiving, sending, finished, ended /* the status went out, or nothing can */, cancelled;
    int client_left; // filled in by the close operation
    grpc_byte_buffer *message_in;
    struct rpc_status status;
    grpc_slice status_text;
    struct timer overtake;
    char *peer;
};

static void server_unref(struct rpc_server *s);
static void arm(struct lane *lane);

// ---- accepting

static const struct rpc_method *find_method(struct rpc_server *s, const grpc_slice *path) {
    for (uint32_t i = 0; i < s->method_count; i++)
        if (grpc_slice_str_cmp(*path, s->methods[i].path) == 0) return &s->methods[i];
    return NULL;
}

static void refused_closed(struct rpc_call *c) {}
static const struct rpc_call_ops refused_ops = {.on_closed = refused_closed};

static void refuse(struct rpc_call *c) {
    rpc_call_accept(c, &refused_ops, NULL, NULL, 0);
    struct error e;
    error_set(&e, MINK_UNSUPPORTED, "UNKNOWN_METHOD", "method %.*s does not exist", (int)GRPC_SLICE_LENGTH(c->details.method),
              (const char *)GRPC_SLICE_START_PTR(c->details.method));
    struct rpc_status status;
    rpc_status_make(&e, NULL, &status);
    rpc_call_finish(c, &status);
}

static void call_free(struct rpc_call *c) {
    grpc_call_details_destroy(&c->details);
    grpc_metadata_array_destroy(&c->headers);
    if (c->grpc) grpc_call_unref(c->grpc);
    gpr_free(c->peer);
    mem_free(c);
}

static void settle_call(struct rpc_call *c) {
    if (!c->finished || !c->ended || c->under_way) return;
    struct rpc_server *s = c->lane->server;
    timer_stop(&c->overtake);
    if (c->previous) c->previous->next = c->next;
    else c->lane->calls = c->next;
    if (c->next) c->next->previous = c->previous;
    metric_move(&calls_open, -1);
    c->ops->on_closed(c);
    rpc_status_deinit(&c->status);
    grpc_slice_unref(c->status_text);
    call_free(c);
    server_unref(s);
}

static void on_close(struct rpc_op *op, bool ok) {
    struct rpc_call *c = container_of(op, struct rpc_call, closed);
    c->under_way--;
    if (c->client_left && !c->finished) {
        c->cancelled = true;
        if (c->ops->on_cancelled) c->ops->on_cancelled(c);
    }
    settle_call(c);
}

static void on_started(struct rpc_op *op, bool ok) {
    struct rpc_call *c = container_of(op, struct rpc_call, started);
    c->under_way--;
    settle_call(c);
}

static void on_overtake(struct timer *t);
static void on_received(struct rpc_op *op, bool ok);
static void on_sent(struct rpc_op *op, bool ok);
static void on_status_sent(struct rpc_op *op, bool ok);

static void on_requested(struct rpc_op *op, bool ok) {
    struct rpc_call *c = container_of(op, struct rpc_call, requested);
    struct rpc_server *s = c->lane->server;
    if (!ok) { // shutting down
        call_free(c);
        server_unref(s);
        return;
    }
    arm(c->lane);
    metric_add(&calls_total, 1);
    metric_move(&calls_open, 1);
    c->started.done = on_started;
    c->closed.done = on_close;
    c->received.done = on_received;
    c->sent.done = on_sent;
    c->status_sent.done = on_status_sent;
    c->status_text = grpc_empty_slice();
    timer_init(&c->overtake, c->lane->shard, on_overtake);
    c->next = c->lane->calls;
    if (c->next) c->next->previous = c;
    c->lane->calls = c;
    c->under_way++;
    grpc_op close = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER, .data.recv_close_on_server.cancelled = &c->client_left};
    rpc_start_batch(c->grpc, &close, 1, &c->closed);
    const struct rpc_method *method = find_method(s, &c->details.method);
    if (method) method->on_call(s->ctx, c);
    else refuse(c);
    mink_assert(c->ops);
}

static void arm(struct lane *lane) {
    struct rpc_server *s = lane->server;
    struct rpc_call *c = mem_new(struct rpc_call);
    c->lane = lane;
    c->requested.done = on_requested;
    grpc_call_details_init(&c->details);
    grpc_metadata_array_init(&c->headers);
    grpc_completion_queue *queue = rpc_shard_queue(lane->shard);
    pthread_mutex_lock(&s->lock);
    bool armed = !s->closing;
    if (armed) {
        atomic_fetch_add(&s->refs, 1);
        rpc_tsan_release(&c->requested);
        armed = grpc_server_request_call(s->grpc, &c->grpc, &c->details, &c->headers, queue, queue, &c->requested) == GRPC_CALL_OK;
        if (!armed) atomic_fetch_sub(&s->refs, 1); // the server itself still holds one
    }
    pthread_mutex_unlock(&s->lock);
    if (!armed) call_free(c);
}

void rpc_call_accept(struct rpc_call *c, const struct rpc_call_ops *ops, void *state, const struct rpc_metadata *initial, uint32_t initial_count) {
    c->ops = ops;
    c->state = state;
    grpc_metadata metadata[4];
    mink_assert(initial_count <= 4);
    for (uint32_t i = 0; i < initial_count; i++)
        metadata[i] = (grpc_metadata){.key = grpc_slice_from_static_string(initial[i].key),
                                      .value = grpc_slice_from_copied_buffer((const char *)initial[i].value.data, initial[i].value.size)};
    grpc_op op = {.op = GRPC_OP_SEND_INITIAL_METADATA, .data.send_initial_metadata = {.count = initial_count, .metadata = metadata}};
    c->under_way++;
    rpc_start_batch(c->grpc, &op, 1, &c->started);
    for (uint32_t i = 0; i < initial_count; i++) grpc_slice_unref(metadata[i].value);
}

void *rpc_call_state(const struct rpc_call *c) { return c->state; }
struct shard *rpc_call_shard(const struct rpc_call *c) {
    return c->lane->shard;
}

struct slice rpc_call_header(const struct rpc_call *c, const char *key) {
    for (size_t i = 0; i < c->headers.count; i++) {
        const grpc_metadata *m = &c->headers.metadata[i];
        if (grpc_slice_str_cmp(m->key, key) == 0) return slice_borrow(GRPC_SLICE_START_PTR(m->value), GRPC_SLICE_LENGTH(m->value));
    }
    return slice_empty();
}

const char *rpc_call_peer(struct rpc_call *c) {
    if (c->peer == NULL) c->peer = grpc_call_get_peer(c->grpc);
    return c->peer;
}

// ---- messages

void rpc_call_receive(struct rpc_call *c) {
    mink_assert(!c->receiving);
    c->receiving = true;
    c->under_way++;
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &c->message_in};
    rpc_start_batch(c->grpc, &op, 1, &c->received);
}

bool rpc_call_receiving(const struct rpc_call *c) { return c->receiving; }

static void on_received(struct rpc_op *op, bool ok) {
    struct rpc_call *c = container_of(op, struct rpc_call, received);
    c->receiving = false;
    grpc_byte_buffer *message = c->message_in;
    c->message_in = NULL;
    if (!c->finished) {
        if (message) {
            struct slices views;
            rpc_buffer_view(message, &views);
            metric_add(&bytes_received, views.bytes);
            c->ops->on_message(c, &views);
            rpc_view_deinit(&views);
        } else if (!grpc_call_failed_before_recv_message(c->grpc)) {
            c->ops->on_message(c, NULL);
        }
        // Otherwise the stream broke: the close operation tells.
    }
    if (message) grpc_byte_buffer_destroy(message);
    c->under_way--; // last: the callback may have finished the call
    settle_call(c);
}

void rpc_call_send(struct rpc_call *c, struct slices *take_message) {
    mink_assert(!c->sending && !c->finished);
    c->sending = true;
    c->under_way++;
    metric_add(&bytes_sent, take_message->bytes);
    grpc_byte_buffer *buffer = rpc_buffer_take(take_message);
    grpc_op op = {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = buffer};
    rpc_start_batch(c->grpc, &op, 1, &c->sent);
    grpc_byte_buffer_destroy(buffer); // the operation holds its own references
}

bool rpc_call_sending(const struct rpc_call *c) { return c->sending; }

static void send_status(struct rpc_call *c) {
    grpc_metadata trailers[RPC_TRAILERS_MAX];
    for (uint32_t i = 0; i < c->status.trailer_count; i++)
        trailers[i] = (grpc_metadata){.key = grpc_slice_from_static_string(c->status.trailers[i].key),
                                      .value = grpc_slice_from_copied_buffer((const char *)c->status.trailers[i].value.data, c->status.trailers[i].value.size)};
    grpc_op op = {.op = GRPC_OP_SEND_STATUS_FROM_SERVER,
                  .data.send_status_from_server = {.status = rpc_status_to_grpc(c->status.code),
                                                   .status_details = c->status.message[0] ? &c->status_text : NULL,
                                                   .trailing_metadata_count = c->status.trailer_count,
                                                   .trailing_metadata = trailers}};
    c->ended = true;
    c->under_way++;
    rpc_start_batch(c->grpc, &op, 1, &c->status_sent);
    for (uint32_t i = 0; i < c->status.trailer_count; i++) grpc_slice_unref(trailers[i].value);
}

static void on_sent(struct rpc_op *op, bool ok) {
    struct rpc_call *c = container_of(op, struct rpc_call, sent);
    c->sending = false;
    if (c->finished && !c->ended) send_status(c);
    else if (!c->finished && ok) c->ops->on_sent(c);
    // Not ok: the stream is broken, and the close operation tells.
    c->under_way--;
    settle_call(c);
}

static void on_status_sent(struct rpc_op *op, bool ok) {
    struct rpc_call *c = container_of(op, struct rpc_call, status_sent);
    c->under_way--;
    settle_call(c);
}

// The client does not read, so the message in flow control will not leave, and a status behind it would not either. Ending the stream
// from this side drops the message and carries code and text (but no trailers) at once.
static void on_overtake(struct timer *t) {
    struct rpc_call *c = container_of(t, struct rpc_call, overtake);
    if (c->ended || !c->sending) return;
    c->ended = true;
    grpc_call_cancel_with_status(c->grpc, rpc_status_to_grpc(c->status.code), c->status.message, NULL);
}

void rpc_call_finish(struct rpc_call *c, struct rpc_status *take_status) {
    mink_assert(!c->finished);
    c->finished = true;
    c->status = *take_status;
    take_status->trailer_count = 0;
    c->status_text = grpc_slice_from_copied_string(c->status.message);
    if (!c->sending) send_status(c);
    else if (c->status.code != MINK_OK) timer_start(&c->overtake, OVERTAKE_NS);
}

bool rpc_call_finished(const struct rpc_call *c) { return c->finished; }
bool rpc_call_cancelled(const struct rpc_call *c) { return c->cancelled; }

// ---- opening and closing

static grpc_arg int_arg(const char *key, int value) { return (grpc_arg){.type = GRPC_ARG_INTEGER, .key = (char *)key, .value.integer = value}; }

// gRPC only says that it failed: listening once more ourselves gives the reason.
static enum mink_code why_not_bound(const char *address, struct error *e) {
    int fd;
    MINK_TRY(listen_open(address, &fd, NULL, e));
    close(fd);
    return error_set(e, MINK_UNAVAILABLE, "ADDRESS_IN_USE", "listen on %s: it was in use a moment ago; try again", address);
}

static void server_free(struct rpc_server *s) {
    pthread_mutex_destroy(&s->lock);
    mem_free(s->lanes);
    mem_free(s);
}

static void arm_lane(struct task *t) {
    struct lane *lane = container_of(t, struct lane, arm);
    for (int i = 0; i < ARMED_PER_SHARD; i++) arm(lane);
    server_unref(lane->server);
}

enum mink_code rpc_server_open(const struct rpc_server_config *config, struct rpc_server **out, struct error *e) {
    struct rpc_server *s = mem_new(struct rpc_server);
    s->methods = config->methods;
    s->method_count = config->method_count;
    s->ctx = config->ctx;
    s->lane_count = config->shard_count;
    s->lanes = mem_new_array(struct lane, config->shard_count);
    pthread_mutex_init(&s->lock, NULL);
    uint32_t message_bytes_max = config->message_bytes_max ? config->message_bytes_max : (64u << 20) + (64u << 10);
    grpc_arg args[] = {
        int_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, (int)message_bytes_max),
        int_arg(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1),
        int_arg(GRPC_ARG_MAX_METADATA_SIZE, 64 << 10), // JDBC drivers forward URL parameters as headers
        int_arg(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1000),
        int_arg(GRPC_ARG_KEEPALIVE_TIME_MS, 60000),
        int_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20000),
        int_arg(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1),
        int_arg(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),                                    // or a silent follow is pinged twice and never again
        int_arg(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10000),                // the default makes ordinary clients "too many pings"
        int_arg(GRPC_ARG_ALLOW_REUSEPORT, 0),                                                 // a second server on the port fails loudly
        int_arg(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE), // compression would hide size from limits
    };
    grpc_channel_args list = {.num_args = sizeof args / sizeof *args, .args = args};
    s->grpc = grpc_server_create(&list, NULL);
    for (uint32_t i = 0; i < s->lane_count; i++) {
        s->lanes[i] = (struct lane){.server = s, .shard = config->shards[i], .arm.run = arm_lane};
        grpc_server_register_completion_queue(s->grpc, rpc_shard_queue(config->shards[i]), NULL);
    }
    grpc_server_credentials *insecure = grpc_insecure_server_credentials_create();
    s->port = grpc_server_add_http2_port(s->grpc, config->address, insecure);
    grpc_server_credentials_release(insecure);
    if (s->port == 0) {
        enum mink_code code = why_not_bound(config->address, e);
        grpc_server_destroy(s->grpc);
        server_free(s);
        return code;
    }
    grpc_server_start(s->grpc);
    atomic_store(&s->refs, 1 + s->lane_count);
    for (uint32_t i = 0; i < s->lane_count; i++) shard_post(s->lanes[i].shard, &s->lanes[i].arm);
    *out = s;
    return MINK_OK;
}

int rpc_server_port(const struct rpc_server *s) { return s->port; }

static void tell_closed(struct task *t) {
    struct rpc_server *s = container_of(t, struct rpc_server, closed);
    void (*on_closed)(void *ctx) = s->on_closed;
    void *ctx = s->closed_ctx;
    server_free(s);
    on_closed(ctx);
}

static void server_unref(struct rpc_server *s) {
    if (atomic_fetch_sub(&s->refs, 1) != 1) return;
    s->closed.run = tell_closed;
    shard_post(s->lanes[0].shard, &s->closed);
}

static void on_shut_down(struct rpc_op *op, bool ok) {
    struct rpc_server *s = container_of(op, struct rpc_server, shut_down);
    timer_stop(&s->grace);
    grpc_server_destroy(s->grpc);
    server_unref(s);
}

static void on_grace_over(struct timer *t) { grpc_server_cancel_all_calls(container_of(t, struct rpc_server, grace)->grpc); }

static void drain_lane(struct task *t) {
    struct lane *lane = container_of(t, struct lane, drain);
    for (struct rpc_call *c = lane->calls, *next; c; c = next) {
        next = c->next; // finishing frees a call later, from its events
        if (!c->finished && c->ops->on_drain) c->ops->on_drain(c);
    }
    server_unref(lane->server);
}

static void begin_close(struct task *t) {
    struct rpc_server *s = container_of(t, struct rpc_server, close);
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_mutex_unlock(&s->lock);
    timer_init(&s->grace, s->lanes[0].shard, on_grace_over);
    timer_start(&s->grace, s->grace_ms * NS_PER_MS);
    s->shut_down.done = on_shut_down;
    rpc_tsan_release(&s->shut_down);
    grpc_server_shutdown_and_notify(s->grpc, rpc_shard_queue(s->lanes[0].shard), &s->shut_down);
    for (uint32_t i = 0; i < s->lane_count; i++) {
        atomic_fetch_add(&s->refs, 1);
        s->lanes[i].drain.run = drain_lane;
        shard_post(s->lanes[i].shard, &s->lanes[i].drain);
    }
}

void rpc_server_close(struct rpc_server *s, uint32_t grace_ms, void (*on_closed)(void *ctx), void *ctx) {
    s->grace_ms = grace_ms;
    s->on_closed = on_closed;
    s->closed_ctx = ctx;
    s->close.run = begin_close;
    shard_post(s->lanes[0].shard, &s->close);
}
