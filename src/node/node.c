// SPDX-License-Identifier: Apache-2.0
// The node's life.
//
//   open   meta_open → stream_store_open → (sole process) earlier incarnations are declared dead → stream_takeover of each → ready, jobs start
//   close  nothing new is let in, scans end → (graceful) requests in flight end → stream_store_close → buckets → meta_close → objects
//
// Buckets outlive the stream store: its last commit publishes their writer snapshots.
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "node/node_internal.h"

#include <inttypes.h>

#define BATCH_BYTES_DEFAULT (64u << 20)
#define WRITER_EXPIRY_DEFAULT_MS (7 * 24 * 3600 * 1000ull)

static struct metric_counter takeovers = METRIC_COUNTER("mink_node_takeovers_total", "Incarnations taken over by this node");

// ---- letting requests in

enum mink_code node_enter(struct node *n, struct error *e) {
    atomic_fetch_add(&n->refs, 1);
    enum node_stage stage = (enum node_stage)atomic_load(&n->stage);
    if (stage == NODE_READY) return MINK_OK;
    enum mink_code code;
    if (stage == NODE_FAILED) {
        pthread_mutex_lock(&n->lock);
        code = error_set(e, n->failure.code == MINK_FENCED ? MINK_FENCED : MINK_UNAVAILABLE, n->failure.reason, "the node has stopped: %.400s", n->failure.message);
        pthread_mutex_unlock(&n->lock);
    } else if (stage == NODE_OPENING) {
        code = error_set(e, MINK_UNAVAILABLE, "NODE_STARTING", "the node is starting");
    } else {
        code = error_set(e, MINK_UNAVAILABLE, "NODE_DRAINING", "the node is closing");
    }
    node_leave(n);
    return code;
}

static void closed_last_request(void *ctx);

void node_leave(struct node *n) {
    // Only node_close lets the count reach zero, by dropping the node's own.
    if (atomic_fetch_sub(&n->refs, 1) == 1) shard_post_call(node_shard(n), closed_last_request, n);
}

struct host *node_host(struct node *n, uint64_t stream_id) { return &n->hosts[stream_id % n->host_count]; }

bool node_ready(struct node *n, struct error *why_not) {
    if (node_enter(n, why_not) != MINK_OK) return false;
    node_leave(n);
    return true;
}

// ---- work on every host

struct everywhere {
    struct node *node;
    void (*fn)(struct host *h, void *ctx);
    void *ctx;
    void (*done)(void *ctx);
    atomic_uint left;
};
struct on_host { struct task task; struct everywhere *all; struct host *host; };

static void everywhere_done(void *ctx) {
    struct everywhere *all = ctx;
    if (all->done) all->done(all->ctx);
    mem_free(all);
}

static void run_on_host(struct task *task) {
    struct on_host *o = container_of(task, struct on_host, task);
    struct everywhere *all = o->all;
    all->fn(o->host, all->ctx);
    mem_free(o);
    if (atomic_fetch_sub(&all->left, 1) == 1) shard_post_call(node_shard(all->node), everywhere_done, all);
}

void node_post_hosts(struct node *n, void (*fn)(struct host *h, void *ctx), void *ctx, void (*done)(void *ctx)) {
    struct everywhere *all = mem_new(struct everywhere);
    *all = (struct everywhere){.node = n, .fn = fn, .ctx = ctx, .done = done};
    atomic_init(&all->left, n->host_count);
    for (uint32_t i = 0; i < n->host_count; i++) {
        struct on_host *o = mem_new(struct on_host);
        *o = (struct on_host){{.run = run_on_host}, all, &n->hosts[i]};
        shard_post(n->hosts[i].shard, &o->task);
    }
}

// ---- opening

struct birth {
    struct node *node;
    void (*on_ready)(void *ctx, enum mink_code code, const struct error *e);
    void *ctx;
    struct catalog_incarnation *list;
    uint32_t count, at, taken;
    struct meta_proposal proposal;
    struct stream_takeover takeover;
};

static void ready(struct birth *b, enum mink_code code, const struct error *e) {
    struct node *n = b->node;
    void (*on_ready)(void *, enum mink_code, const struct error *) = b->on_ready;
    void *ctx = b->ctx;
    mem_free(b->list);
    mem_free(b);
    if (code == MINK_OK) {
        atomic_store(&n->stage, NODE_READY);
        log_info("node.ready", "incarnation=%" PRIu64 " shards=%" PRIu32 " position=%" PRIu64, stream_store_incarnation(n->streams), n->config.shard_count, catalog_position(n->catalog));
        jobs_start(n->jobs);
    }
    on_ready(ctx, code, e);
}

static void take_over_next(struct birth *b);

static void on_taken(struct stream_takeover *t) {
    struct birth *b = container_of(t, struct birth, takeover);
    if (t->code != MINK_OK) {
        error_context(&t->error, "take over incarnation %" PRIu64, t->incarnation);
        struct error e = t->error;
        ready(b, t->code, &e);
        return;
    }
    b->taken++;
    metric_add(&takeovers, 1);
    b->at++;
    take_over_next(b);
}

static void on_dead(struct meta_proposal *p) {
    struct birth *b = container_of(p, struct birth, proposal);
    // CONFLICT: it is dead already, which is what was wanted.
    if (p->result.code != MINK_OK && p->result.code != MINK_CONFLICT) {
        struct error e = p->result.error;
        ready(b, e.code, &e);
        return;
    }
    b->list[b->at].state = INCARNATION_DEAD;
    take_over_next(b);
}

static void take_over_next(struct birth *b) {
    struct node *n = b->node;
    uint64_t own = stream_store_incarnation(n->streams);
    for (; b->at < b->count; b->at++) {
        struct catalog_incarnation *i = &b->list[b->at];
        if (i->id == own || i->state == INCARNATION_SEALED) continue;
        if (i->state == INCARNATION_LIVE && !n->config.sole_process) continue;
        if (i->state == INCARNATION_LIVE) {
            meta_propose(n->meta, &b->proposal, node_shard(n), command_declare_dead(i->id), on_dead);
            return;
        }
        b->takeover = (struct stream_takeover){.shard = node_shard(n), .on_done = on_taken, .incarnation = i->id};
        stream_takeover(n->streams, &b->takeover);
        return;
    }
    ready(b, MINK_OK, NULL);
}

static void on_streams_ready(void *ctx, enum mink_code code, const struct error *e) {
    struct birth *b = ctx;
    struct node *n = b->node;
    if (code != MINK_OK) {
        ready(b, code, e);
        return;
    }
    catalog_list_incarnations(n->catalog, &b->list, &b->count);
    take_over_next(b);
}

static void on_fatal(void *ctx, const struct error *e) {
    struct node *n = ctx;
    pthread_mutex_lock(&n->lock);
    if (n->failure.code == MINK_OK) error_copy(&n->failure, e);
    pthread_mutex_unlock(&n->lock);
    int stage = NODE_READY;
    atomic_compare_exchange_strong(&n->stage, &stage, NODE_FAILED);
    log_error("node.fatal", "reason=%s message=\"%s\"", e->reason, e->message);
    if (n->config.on_fatal) n->config.on_fatal(n->config.ctx, e);
}

static struct slice attachment(void *ctx, uint64_t stream_id, uint64_t committed_end) {
    struct node *n = ctx;
    return host_attachment(node_host(n, stream_id), stream_id, committed_end);
}

static void on_applied(void *ctx, uint64_t position) {
    struct node *n = ctx;
    struct error e;
    if (atomic_load(&n->stage) != NODE_READY) return;
    if (position == UINT64_MAX && meta_failure(n->meta, &e)) { // what is served from now on could be wrong
        on_fatal(n, &e);
        return;
    }
    node_scans_poke(n);
    jobs_applied(n->jobs);
}

static void on_meta_ready(void *ctx, enum mink_code code, const struct error *e) {
    struct birth *b = ctx;
    struct node *n = b->node;
    if (code != MINK_OK) {
        ready(b, code, e);
        return;
    }
    n->catalog = meta_catalog(n->meta);
    meta_listen(n->meta, on_applied, n);
    struct stream_config config = n->config.stream;
    config.shard = node_shard(n);
    config.objects = n->config.objects;
    config.meta = n->meta;
    config.work = n->config.work;
    config.on_fatal = on_fatal;
    config.attachment = attachment;
    config.ctx = n;
    n->streams_open = true;
    stream_store_open(&config, &n->streams, on_streams_ready, b);
}

static void run_open(void *ctx) {
    struct birth *b = ctx;
    struct node *n = b->node;
    struct meta_config config = {.shard = node_shard(n), .log = n->config.meta_log, .checkpoint_every = n->config.checkpoint_every};
    meta_open(&config, &n->meta, on_meta_ready, b);
}

void node_open(const struct node_config *config, struct node **out, void (*on_ready)(void *ctx, enum mink_code code, const struct error *e), void *ctx) {
    struct node *n = mem_new(struct node);
    n->config = *config;
    if (n->config.batch_bytes_max == 0) n->config.batch_bytes_max = BATCH_BYTES_DEFAULT;
    if (n->config.writer_expiry_ms == 0) n->config.writer_expiry_ms = WRITER_EXPIRY_DEFAULT_MS;
    if (n->config.defaults.bucket_num == 0) n->config.defaults.bucket_num = 1;
    struct shard **shards = mem_new_array(struct shard *, config->shard_count);
    for (uint32_t i = 0; i < config->shard_count; i++) shards[i] = config->shards[i];
    n->config.shards = shards;
    n->config.stream.address = mem_strdup(config->stream.address ? config->stream.address : "");
    n->config.stream.rack = mem_strdup(config->stream.rack ? config->stream.rack : "");
    pthread_mutex_init(&n->lock, NULL);
    atomic_init(&n->refs, 1);
    atomic_init(&n->stage, NODE_OPENING);
    uint32_t first = config->shard_count > 1 ? 1 : 0;
    n->host_count = config->shard_count - first;
    n->hosts = mem_new_array(struct host, n->host_count);
    for (uint32_t i = 0; i < n->host_count; i++) host_init(&n->hosts[i], n, shards[first + i]);
    n->jobs = jobs_new(n);
    *out = n;
    struct birth *b = mem_new(struct birth);
    *b = (struct birth){.node = n, .on_ready = on_ready, .ctx = ctx};
    shard_post_call(node_shard(n), run_open, b);
}

// ---- closing

struct death {
    struct node *node;
    bool abrupt;
    bool streams_closing, streams_closed, requests_ended, buckets_closing;
    void (*on_closed)(void *ctx);
    void *ctx;
};

static void death_step(struct death *d);

static void on_meta_closed(void *ctx) {
    struct death *d = ctx;
    struct node *n = d->node;
    object_store_close(n->config.objects);
    for (uint32_t i = 0; i < n->host_count; i++) host_deinit(&n->hosts[i]);
    for (uint32_t i = 0; i < n->table_count; i++) mem_free(n->tables[i]);
    mem_free(n->tables);
    mem_free(n->hosts);
    jobs_free(n->jobs);
    mem_free((void *)n->config.shards);
    mem_free((char *)n->config.stream.address);
    mem_free((char *)n->config.stream.rack);
    pthread_mutex_destroy(&n->lock);
    mem_free(n);
    d->on_closed(d->ctx);
    mem_free(d);
}

struct host_close { struct death *death; atomic_uint left; };

static void close_meta(void *ctx) {
    struct host_close *c = ctx;
    struct death *d = c->death;
    mem_free(c);
    meta_close(d->node->meta, on_meta_closed, d);
}

static void on_host_closed(void *ctx) {
    struct host_close *c = ctx;
    struct node *n = c->death->node;
    if (atomic_fetch_sub(&c->left, 1) == 1) shard_post_call(node_shard(n), close_meta, c);
}

static void close_host(struct host *h, void *ctx) { host_close_all(h, on_host_closed, ctx); }

static void on_streams_closed(void *ctx) {
    struct death *d = ctx;
    d->streams_closed = true;
    death_step(d);
}

static void close_streams(struct death *d) {
    struct node *n = d->node;
    if (d->streams_closing) return;
    d->streams_closing = true;
    if (n->streams_open) stream_store_close(n->streams, d->abrupt, on_streams_closed, d);
    else d->streams_closed = true; // the node did not get that far
}

static void death_step(struct death *d) {
    struct node *n = d->node;
    if (d->abrupt || d->requests_ended) close_streams(d);
    if (!d->streams_closed || !d->requests_ended || d->buckets_closing) return;
    d->buckets_closing = true;
    struct host_close *c = mem_new(struct host_close);
    c->death = d;
    atomic_init(&c->left, n->host_count);
    node_post_hosts(n, close_host, c, NULL);
}

static struct death *death_of(struct node *n, struct death *set) {
    pthread_mutex_lock(&n->lock);
    if (set) n->death = set;
    struct death *d = n->death;
    pthread_mutex_unlock(&n->lock);
    return d;
}

static void closed_last_request(void *ctx) {
    struct node *n = ctx;
    struct death *d = death_of(n, NULL);
    d->requests_ended = true;
    death_step(d);
}

static void stop_host(struct host *h, void *ctx) {
    struct death *d = ctx;
    h->stopped = d->abrupt;
}

static void on_hosts_stopped(void *ctx) {
    struct death *d = ctx;
    struct node *n = d->node;
    // Jobs, like requests, hold the node until they have ended.
    if (d->abrupt) death_step(d);
    node_leave(n);
}

static void run_close(void *ctx) {
    struct death *d = ctx;
    struct node *n = d->node;
    struct error e;
    atomic_store(&n->stage, NODE_CLOSING);
    error_set(&e, MINK_UNAVAILABLE, "NODE_DRAINING", "the node is closing");
    node_scans_stop(n, &e);
    jobs_stop(n->jobs);
    node_post_hosts(n, stop_host, d, on_hosts_stopped);
}

void node_close(struct node *n, bool abrupt, void (*on_closed)(void *ctx), void *ctx) {
    struct death *d = mem_new(struct death);
    *d = (struct death){.node = n, .abrupt = abrupt, .on_closed = on_closed, .ctx = ctx};
    death_of(n, d);
    shard_post_call(node_shard(n), run_close, d);
}
