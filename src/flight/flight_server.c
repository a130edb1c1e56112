// SPDX-License-Identifier: Apache-2.0
#include "flight/flight_server.h"

#include "base/mem.h"
#include "flight/flight_internal.h"

static const struct rpc_method methods[] = {
    {FLIGHT_SERVICE "Handshake", flight_handshake},    {FLIGHT_SERVICE "ListFlights", flight_list},
    {FLIGHT_SERVICE "GetFlightInfo", flight_get_info}, {FLIGHT_SERVICE "PollFlightInfo", flight_poll_info},
    {FLIGHT_SERVICE "GetSchema", flight_get_schema},   {FLIGHT_SERVICE "DoGet", flight_do_get},
    {FLIGHT_SERVICE "DoPut", flight_do_put},           {FLIGHT_SERVICE "DoExchange", flight_do_exchange},
    {FLIGHT_SERVICE "DoAction", flight_do_action},     {FLIGHT_SERVICE "ListActions", flight_list_actions},
};

void flight_server_hold(struct flight_server *s) { atomic_fetch_add(&s->live, 1); }

static void tell_closed(struct task *t) {
    struct flight_server *s = container_of(t, struct flight_server, closed);
    void (*on_closed)(void *ctx) = s->on_closed;
    void *ctx = s->closed_ctx;
    flight_answers_free(s->answers);
    mem_free(s);
    on_closed(ctx);
}

void flight_server_release(struct flight_server *s) {
    if (atomic_fetch_sub(&s->live, 1) != 1) return;
    s->closed.run = tell_closed;
    shard_post(s->config.shards[0], &s->closed);
}

enum mink_code flight_server_open(const struct flight_config *config, struct flight_server **out, struct error *e) {
    struct flight_server *s = mem_new(struct flight_server);
    s->config = *config;
    if (!s->config.batch_bytes_max) s->config.batch_bytes_max = 64u << 20;
    if (!s->config.put_bytes_max) s->config.put_bytes_max = 32u << 20;
    if (!s->config.put_batches_max) s->config.put_batches_max = 256;
    s->node = config->node;
    s->answers = flight_answers_new();
    atomic_store(&s->live, 1);
    struct rpc_server_config rpc = {.address = config->address,
                                    .shards = config->shards,
                                    .shard_count = config->shard_count,
                                    .methods = methods,
                                    .method_count = sizeof methods / sizeof *methods,
                                    .ctx = s,
                                    .message_bytes_max = s->config.batch_bytes_max + (64u << 10)};
    enum mink_code code = rpc_server_open(&rpc, &s->rpc, e);
    if (code != MINK_OK) {
        flight_answers_free(s->answers);
        mem_free(s);
        return code;
    }
    *out = s;
    return MINK_OK;
}

int flight_server_port(const struct flight_server *s) { return rpc_server_port(s->rpc); }

static void rpc_closed(void *ctx) { flight_server_release(ctx); }

void flight_server_close(struct flight_server *s, uint32_t grace_ms, void (*on_closed)(void *ctx), void *ctx) {
    s->on_closed = on_closed;
    s->closed_ctx = ctx;
    rpc_server_close(s->rpc, grace_ms, rpc_closed, s);
}
