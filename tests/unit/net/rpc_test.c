// SPDX-License-Identifier: Apache-2.0
// Both ends of gRPC against each other: an echo service on a protocol shard, called by the blocking client.
#include "base/executor.h"
#include "base/mem.h"
#include "net/flight_data.h"
#include "net/rpc_client.h"
#include "net/rpc_server.h"
#include "net/rpc_shard.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

// ---- the service: /t/Echo sends every message back; /t/Fail ends with an error at the first message, after filling the client's window
// when it asks for "flood"; /t/Elsewhere answers from another shard.

struct echo {
    struct rpc_call *call;
    struct slices queue[4096];
    unsigned first, count;
    bool half_closed;
    struct task task;
    struct shard *home;
};

static atomic_int closed_calls, cancelled_calls;
static struct shard *helper;
static sem_t cancel_seen;

static void finish(struct rpc_call *c, enum mink_code code, const char *reason, const char *text) {
    struct error e = {0};
    if (code != MINK_OK) {
        error_set(&e, code, reason, "%s", text);
        error_hint(&e, "did you mean \"größer\"?");
        error_about(&e, "id", "int64", "utf8");
    }
    struct rpc_status status;
    rpc_status_make(&e, "\"batch\":7", &status);
    rpc_call_finish(c, &status);
}

static void pump(struct echo *x) {
    if (rpc_call_finished(x->call) || rpc_call_sending(x->call)) return;
    if (x->count) {
        rpc_call_send(x->call, &x->queue[x->first]);
        x->first = (x->first + 1) % 4096;
        x->count--;
    } else if (x->half_closed) {
        finish(x->call, MINK_OK, "", "");
    }
}

static void echo_message(struct rpc_call *c, const struct slices *message) {
    struct echo *x = rpc_call_state(c);
    if (message == NULL) {
        x->half_closed = true;
    } else {
        struct slices *out = &x->queue[(x->first + x->count++) % 4096];
        assert_true(x->count <= 4096);
        *out = (struct slices){0};
        slices_take(out, flight_message_join(message));
        rpc_call_receive(c);
    }
    pump(x);
}
static void echo_sent(struct rpc_call *c) { pump(rpc_call_state(c)); }
static void echo_cancelled(struct rpc_call *c) {
    atomic_fetch_add(&cancelled_calls, 1);
    finish(c, MINK_CANCELLED, "CANCELLED", "the client left");
    sem_post(&cancel_seen);
}
static void echo_closed(struct rpc_call *c) {
    struct echo *x = rpc_call_state(c);
    for (; x->count; x->count--) {
        slices_deinit(&x->queue[x->first]);
        x->first = (x->first + 1) % 4096;
    }
    mem_free(x);
    atomic_fetch_add(&closed_calls, 1);
}
static void echo_drain(struct rpc_call *c) { finish(c, MINK_UNAVAILABLE, "NODE_DRAINING", "the node is going away"); }
static const struct rpc_call_ops echo_ops = {echo_message, echo_sent, echo_cancelled, echo_drain, echo_closed};

static void on_echo(void *ctx, struct rpc_call *c) {
    struct echo *x = mem_new(struct echo);
    x->call = c;
    rpc_call_accept(c, &echo_ops, x, NULL, 0);
    rpc_call_receive(c);
}

static void flood(struct rpc_call *c) {
    struct slices m = {0};
    uint8_t *data;
    slices_take(&m, slice_new(100000, &data));
    memset(data, 1, 100000);
    rpc_call_send(c, &m);
}
static void fail_message(struct rpc_call *c, const struct slices *message) {
    if (message && message->bytes == 5) {
        flood(c); // until flow control holds one back
        rpc_call_receive(c);
    } else {
        finish(c, MINK_INVALID, "TYPE_MISMATCH", "column id");
    }
}
static void fail_sent(struct rpc_call *c) { flood(c); }
static const struct rpc_call_ops fail_ops = {fail_message, fail_sent, echo_cancelled, NULL, echo_closed};
static void on_fail(void *ctx, struct rpc_call *c) {
    rpc_call_accept(c, &fail_ops, mem_new(struct echo), NULL, 0);
    rpc_call_receive(c);
}

static void elsewhere_back(struct task *t) {
    struct echo *x = container_of(t, struct echo, task);
    assert_true(shard_is_current(x->home));
    finish(x->call, MINK_OK, "", "");
}
static void elsewhere(struct task *t) {
    struct echo *x = container_of(t, struct echo, task);
    x->task.run = elsewhere_back;
    shard_post(x->home, &x->task);
}
static const struct rpc_call_ops elsewhere_ops = {echo_message, echo_sent, NULL, NULL, echo_closed};
static void on_elsewhere(void *ctx, struct rpc_call *c) {
    struct echo *x = mem_new(struct echo);
    x->call = c;
    x->home = rpc_call_shard(c);
    rpc_call_accept(c, &elsewhere_ops, x, NULL, 0);
    x->task.run = elsewhere;
    shard_post(helper, &x->task);
}

static const struct rpc_method methods[] = {{"/t/Echo", on_echo}, {"/t/Fail", on_fail}, {"/t/Elsewhere", on_elsewhere}};

// ---- set-up

struct fixture {
    struct shard *shards[2];
    struct rpc_server *server;
    struct rpc_client *client;
    char address[64];
};

static int open_all(void **state) {
    net_process_init();
    sem_init(&cancel_seen, 0, 0);
    struct fixture *f = mem_new(struct fixture);
    helper = shard_start("helper");
    f->shards[0] = rpc_shard_start("rpc-0");
    f->shards[1] = rpc_shard_start("rpc-1");
    struct error e;
    assert_int_equal(
        rpc_server_open(&(struct rpc_server_config){.address = "127.0.0.1:0", .shards = f->shards, .shard_count = 2, .methods = methods, .method_count = 3},
                        &f->server, &e),
        MINK_OK);
    snprintf(f->address, sizeof f->address, "127.0.0.1:%d", rpc_server_port(f->server));
    f->client = rpc_client_new(f->address, 0);
    atomic_store(&closed_calls, 0);
    atomic_store(&cancelled_calls, 0);
    *state = f;
    return 0;
}

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
};
static void tell(void *ctx) {
    struct waiter *w = ctx;
    pthread_mutex_lock(&w->lock);
    w->done = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}
static void close_server(struct fixture *f, uint32_t grace_ms) {
    struct waiter w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    rpc_server_close(f->server, grace_ms, tell, &w);
    pthread_mutex_lock(&w.lock);
    while (!w.done) pthread_cond_wait(&w.cond, &w.lock);
    pthread_mutex_unlock(&w.lock);
    f->server = NULL;
}

static int close_all(void **state) {
    struct fixture *f = *state;
    rpc_client_free(f->client);
    if (f->server) close_server(f, 1000);
    rpc_shard_stop(f->shards[0]);
    rpc_shard_stop(f->shards[1]);
    shard_stop(helper);
    mem_free(f);
    return 0;
}

static struct slices text_message(const char *text) {
    struct slices m = {0};
    slices_take(&m, slice_copy(text, strlen(text)));
    return m;
}

// ---- promises

static void messages_come_back_in_order_and_whole(void **state) {
    struct fixture *f = *state;
    struct error e;
    struct rpc_stream *s = rpc_stream_open(f->client, "/t/Echo", 0);
    static const size_t sizes[] = {1, 511, 512, 70000, 5000000};
    for (unsigned i = 0; i < 40; i++) {
        struct slices m = {0};
        // Several pieces, small and large, owned and static.
        uint8_t *data;
        size_t size = sizes[i % 5];
        slices_take(&m, slice_borrow("head", 4));
        slices_take(&m, slice_new(size, &data));
        for (size_t k = 0; k < size; k++) data[k] = (uint8_t)(k * 31 + i);
        slices_take(&m, slice_copy("tail", 4));
        assert_int_equal(rpc_stream_send(s, &m, &e), MINK_OK);
    }
    assert_int_equal(rpc_stream_half_close(s, &e), MINK_OK);
    enum rpc_event event;
    const struct slices *message;
    for (unsigned i = 0; i < 40; i++) {
        assert_int_equal(rpc_stream_receive(s, UINT32_MAX, &event, &message, &e), MINK_OK);
        assert_int_equal(event, RPC_MESSAGE);
        size_t size = sizes[i % 5];
        assert_int_equal(message->bytes, size + 8);
        struct slice joined = flight_message_join(message);
        assert_memory_equal(joined.data, "head", 4);
        for (size_t k = 0; k < size; k++)
            if (joined.data[4 + k] != (uint8_t)(k * 31 + i)) fail_msg("message %u byte %zu", i, k);
        assert_memory_equal(joined.data + 4 + size, "tail", 4);
        slice_unref(&joined);
    }
    assert_int_equal(rpc_stream_receive(s, UINT32_MAX, &event, &message, &e), MINK_OK);
    assert_int_equal(event, RPC_END);
    rpc_stream_close(s);
}

static void an_error_keeps_all_its_parts(void **state) {
    struct fixture *f = *state;
    struct slice answer;
    struct error e;
    assert_int_equal(rpc_unary(f->client, "/t/Fail", slice_borrow("x", 1), 5000, &answer, &e), MINK_INVALID);
    assert_int_equal(e.code, MINK_INVALID);
    assert_string_equal(e.reason, "TYPE_MISMATCH");
    assert_string_equal(e.message, "column id");
    assert_string_equal(e.hint, "did you mean \"größer\"?");
    assert_string_equal(e.column, "id");
    assert_string_equal(e.expected, "int64");
    assert_string_equal(e.actual, "utf8");
}

static void an_unknown_method_is_refused_by_name(void **state) {
    struct fixture *f = *state;
    struct slice answer;
    struct error e;
    assert_int_equal(rpc_unary(f->client, "/t/Nothing", slice_empty(), 5000, &answer, &e), MINK_UNSUPPORTED);
    assert_string_equal(e.message, "method /t/Nothing does not exist");
}

// The client reads nothing, so the window is full of our messages: the status must overtake them.
static void an_error_overtakes_messages_nobody_reads(void **state) {
    struct fixture *f = *state;
    struct error e;
    struct rpc_stream *s = rpc_stream_open(f->client, "/t/Fail", 0);
    struct slices m = text_message("flood");
    assert_int_equal(rpc_stream_send(s, &m, &e), MINK_OK);
    m = text_message("now fail");
    assert_int_equal(rpc_stream_send(s, &m, &e), MINK_OK);
    // Sending goes on until the end is seen; nothing is ever received.
    enum mink_code code = MINK_OK;
    for (int i = 0; i < 10000000 && code == MINK_OK; i++) {
        m = text_message("more");
        code = rpc_stream_send(s, &m, &e);
    }
    assert_int_equal(code, MINK_INVALID);
    assert_string_equal(e.reason, "TYPE_MISMATCH");
    rpc_stream_close(s);
}

static void an_answer_from_another_shard_wakes_the_call(void **state) {
    struct fixture *f = *state;
    for (int i = 0; i < 300; i++) {
        struct error e;
        struct rpc_stream *s = rpc_stream_open(f->client, "/t/Elsewhere", 10000);
        enum rpc_event event;
        const struct slices *message;
        assert_int_equal(rpc_stream_receive(s, UINT32_MAX, &event, &message, &e), MINK_OK);
        assert_int_equal(event, RPC_END);
        rpc_stream_close(s);
    }
}

static void a_cancelled_call_is_told_once_and_closed(void **state) {
    struct fixture *f = *state;
    struct rpc_stream *s = rpc_stream_open(f->client, "/t/Echo", 0);
    struct error e;
    struct slices m = text_message("hello");
    enum rpc_event event;
    const struct slices *message;
    assert_int_equal(rpc_stream_send(s, &m, &e), MINK_OK);
    assert_int_equal(rpc_stream_receive(s, UINT32_MAX, &event, &message, &e), MINK_OK);
    rpc_stream_cancel(s);
    assert_int_equal(rpc_stream_receive(s, UINT32_MAX, &event, &message, &e), MINK_CANCELLED);
    rpc_stream_close(s);
    sem_wait(&cancel_seen);
    close_server(f, 10000); // comes back only when every call is closed
    assert_int_equal(atomic_load(&cancelled_calls), 1);
    assert_int_equal(atomic_load(&closed_calls), 1);
}

static void a_deadline_ends_the_call_at_both_ends(void **state) {
    struct fixture *f = *state;
    struct rpc_stream *s = rpc_stream_open(f->client, "/t/Echo", 50);
    struct error e;
    enum rpc_event event;
    const struct slices *message;
    assert_int_equal(rpc_stream_receive(s, UINT32_MAX, &event, &message, &e), MINK_DEADLINE);
    rpc_stream_close(s);
    close_server(f, 10000);
    assert_int_equal(atomic_load(&closed_calls), 1);
}

static void draining_ends_streams_with_a_reason(void **state) {
    struct fixture *f = *state;
    struct rpc_stream *s = rpc_stream_open(f->client, "/t/Echo", 0);
    struct error e;
    struct slices m = text_message("hello");
    enum rpc_event event;
    const struct slices *message;
    assert_int_equal(rpc_stream_send(s, &m, &e), MINK_OK);
    assert_int_equal(rpc_stream_receive(s, UINT32_MAX, &event, &message, &e), MINK_OK);
    close_server(f, 10000);
    assert_int_equal(rpc_stream_receive(s, UINT32_MAX, &event, &message, &e), MINK_UNAVAILABLE);
    assert_string_equal(e.reason, "NODE_DRAINING");
    rpc_stream_close(s);
}

static void a_port_in_use_is_told(void **state) {
    struct fixture *f = *state;
    struct rpc_server *second;
    struct error e;
    char want[128];
    struct rpc_server_config config = {.address = f->address, .shards = f->shards, .shard_count = 1, .methods = methods, .method_count = 3};
    assert_int_equal(rpc_server_open(&config, &second, &e), MINK_UNAVAILABLE);
    assert_string_equal(e.reason, "ADDRESS_IN_USE");
    snprintf(want, sizeof want, "listen on %s: Address already in use", f->address);
    assert_string_equal(e.message, want);
    config.address = "nonsense";
    assert_int_equal(rpc_server_open(&config, &second, &e), MINK_INVALID);
    assert_string_equal(e.message, "listen on nonsense: not of the form host:port");
    config.address = "192.0.2.7:0"; // TEST-NET: nobody has it
    assert_int_equal(rpc_server_open(&config, &second, &e), MINK_INVALID);
    assert_string_equal(e.message, "listen on 192.0.2.7:0: Cannot assign requested address");
}

static void a_server_that_is_not_there_is_unavailable(void **state) {
    struct rpc_client *c = rpc_client_new("127.0.0.1:1", 0);
    struct slice answer;
    struct error e;
    assert_int_equal(rpc_unary(c, "/t/Echo", slice_empty(), 5000, &answer, &e), MINK_UNAVAILABLE);
    rpc_client_free(c);
}

static void a_message_over_the_limit_ends_the_call_only(void **state) {
    struct fixture *f = *state;
    struct error e;
    struct slice answer;
    uint8_t *data;
    struct slice big = slice_new((64u << 20) + (64u << 10) + 1, &data);
    memset(data, 0, big.size);
    assert_int_equal(rpc_unary(f->client, "/t/Echo", big, 20000, &answer, &e), MINK_OVERLOADED);
    slice_unref(&big);
    assert_int_equal(rpc_unary(f->client, "/t/Echo", slice_borrow("x", 1), 5000, &answer, &e), MINK_OK);
    assert_int_equal(answer.size, 1);
    slice_unref(&answer);
}

struct timers;
struct numbered_timer {
    struct timer timer;
    struct timers *owner;
    int number;
};
struct timers {
    struct numbered_timer timers[5];
    int fired[5], count;
    struct waiter waiter;
    struct shard *shard;
};
static void fired(struct timer *t) {
    struct numbered_timer *n = container_of(t, struct numbered_timer, timer);
    n->owner->fired[n->owner->count++] = n->number;
    if (n->owner->count == 4) tell(&n->owner->waiter);
}
static void start_timers(void *ctx) {
    struct timers *t = ctx;
    for (int i = 0; i < 5; i++) {
        timer_init(&t->timers[i].timer, t->shard, fired);
        t->timers[i].owner = t;
        t->timers[i].number = i;
    }
    timer_start(&t->timers[2].timer, 30 * NS_PER_MS);
    timer_start(&t->timers[0].timer, 10 * NS_PER_MS);
    timer_start(&t->timers[1].timer, 10 * NS_PER_MS);
    timer_start(&t->timers[4].timer, 15 * NS_PER_MS);
    timer_start(&t->timers[3].timer, 20 * NS_PER_MS);
    timer_stop(&t->timers[4].timer);
}
static void timers_fire_in_order_and_stopped_ones_do_not(void **state) {
    struct fixture *f = *state;
    struct timers t = {.waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false}, .shard = f->shards[0]};
    shard_call_wait(f->shards[0], start_timers, &t);
    pthread_mutex_lock(&t.waiter.lock);
    while (!t.waiter.done) pthread_cond_wait(&t.waiter.cond, &t.waiter.lock);
    pthread_mutex_unlock(&t.waiter.lock);
    static const int want[] = {0, 1, 3, 2};
    assert_memory_equal(t.fired, want, sizeof want);
}

int main(void) {
#define with_server(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)
    const struct CMUnitTest tests[] = {
        with_server(messages_come_back_in_order_and_whole),
        with_server(an_error_keeps_all_its_parts),
        with_server(an_unknown_method_is_refused_by_name),
        with_server(an_error_overtakes_messages_nobody_reads),
        with_server(an_answer_from_another_shard_wakes_the_call),
        with_server(a_cancelled_call_is_told_once_and_closed),
        with_server(a_deadline_ends_the_call_at_both_ends),
        with_server(draining_ends_streams_with_a_reason),
        with_server(a_port_in_use_is_told),
        with_server(a_server_that_is_not_there_is_unavailable),
        with_server(a_message_over_the_limit_ends_the_call_only),
        with_server(timers_fire_in_order_and_stopped_ones_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
