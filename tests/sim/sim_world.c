// SPDX-License-Identifier: Apache-2.0
#include "sim/sim_world.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static double unit(struct world *w) { return random_unit(sim_random(w->sim)); }
static uint64_t below(struct world *w, uint64_t n) { return random_below(sim_random(w->sim), n); }
static bool chance(struct world *w, double p) { return unit(w) < p; }
static uint64_t pick(struct world *w, const uint64_t *values, uint32_t count) { return values[below(w, count)]; }
#define PICK(...) pick(w, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

// ---- options: small bounds, so that each is met; faults from none to many

static void draw_options(struct world *w) {
    struct sim_options *o = &w->options;
    *o = (struct sim_options){0};
    o->shard_count = 1 + (uint32_t)below(w, 3);
    o->table_count = 1 + (uint32_t)below(w, TABLES_MAX);
    o->writer_count = 2 + (uint32_t)below(w, 6);
    o->steps = 60 + below(w, 200);
    o->ttl = chance(w, 0.2);
    o->skew = !o->ttl && chance(w, 0.5);
    o->zombies = chance(w, 0.4);
    struct object_fault_profile *p = &o->store;
    p->name = "drawn";
    if (chance(w, 0.9)) {
        p->put_p50_ms = 1 + 30 * unit(w);
        p->put_p99_ms = p->put_p50_ms * (1 + 3 * unit(w));
        p->get_p50_ms = 1 + 20 * unit(w);
        p->get_p99_ms = p->get_p50_ms * (1 + 3 * unit(w));
    }
    if (chance(w, 0.3)) {
        p->slow_fraction = 0.05 * unit(w);
        p->slow_ms = 200 + 4000 * unit(w);
    }
    if (chance(w, 0.6)) p->error_fraction = 0.15 * unit(w);
    if (chance(w, 0.3)) p->conflict_fraction = 0.1 * unit(w);
    if (chance(w, 0.6)) p->lost_reply_fraction = 0.1 * unit(w);
    if (chance(w, 0.6)) {
        p->late_fraction = 0.1 * unit(w);
        p->late_ms_max = 10 + 5000 * unit(w);
    }
    if (chance(w, 0.4)) p->flip_fraction = 0.05 * unit(w);
    if (chance(w, 0.4)) p->torn_fraction = 0.05 * unit(w);
    o->meta.delay_ms_max = 20 * unit(w);
    if (chance(w, 0.4)) o->meta.unavailable_fraction = 0.2 * unit(w);
    if (chance(w, 0.5)) o->meta.unknown_fraction = 0.15 * unit(w);
    if (chance(w, 0.4)) o->meta.foreign_fraction = 0.1 * unit(w);
    if (chance(w, 0.3)) o->meta.spurious_wake_fraction = 0.2 * unit(w);
    struct stream_config *s = &o->stream;
    s->wal_object_size = (uint32_t)PICK(2000, 8000, 100000, 4 << 20);
    s->linger_floor_us = (uint32_t)PICK(1, 500, 2000, 10000);
    s->put_rate = chance(w, 0.5) ? -1 : 20 + 100 * unit(w);
    s->puts_in_flight = (uint32_t)PICK(1, 2, 4, 32);
    s->hedge_off = chance(w, 0.3);
    s->append_bytes_max = PICK(20000, 200000, 256 << 20);
    s->tail_cache_bytes = PICK(1, 5000, 50000, 64 << 20);
    s->block_cache_bytes = PICK(1, 5000, 50000, 64 << 20);
    s->index_cache_bytes = PICK(1, 5000, 64 << 20);
    s->commit_bytes = PICK(3000, 30000, 1 << 20, 256 << 20);
    s->commit_windows = (uint32_t)PICK(1, 3, 20, 500);
    s->commit_entries_max = (uint32_t)PICK(2, 50, 100000);
    s->commit_age_ms = PICK(50, 1000, 300000);
    s->delete_grace_ms = PICK(1, 500, 600000);
    s->append_give_up_ms = PICK(8000, 60000);
    o->checkpoint_every = PICK(3, 20, 10000);
    o->crash_call_fraction = chance(w, 0.8) ? 0.7 : 0;
    o->kill_fraction = chance(w, 0.5) ? 0.02 * unit(w) : 0;
    o->pause_fraction = chance(w, 0.4) ? 0.02 * unit(w) : 0;
    o->close_fraction = chance(w, 0.4) ? 0.02 * unit(w) : 0;
}

// ---- tables

static struct table_def *make_def(struct world *w, uint32_t number) {
    struct model_table *t = &w->model.tables[number];
    t->bucket_count = 1 + (uint32_t)below(w, BUCKETS_MAX);
    t->partition_count = chance(w, 0.3) ? PARTITIONS_MAX : 0;
    t->keyed = chance(w, 0.3);
    t->ttl_ms = w->options.ttl ? 1000 + (int64_t)below(w, 20000) : -1;
    char text[1024];
    snprintf(text, sizeof text,
             "{\"table\":\"sim.t%u\",\"columns\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"pad\",\"type\":\"STRING\"}%s],%s%s"
             "\"options\":{\"bucket.num\":\"%u\",\"table.log.arrow.compression.type\":\"NONE\",\"table.log.ttl\":\"%" PRId64 "%s\"%s}}",
             number, t->partition_count ? ",{\"name\":\"p\",\"type\":\"STRING\"}" : "", t->keyed ? "\"bucket_key\":[\"id\"]," : "", t->partition_count ? "\"partition_by\":[\"p\"]," : "", t->bucket_count, t->ttl_ms, t->ttl_ms < 0 ? "" : " ms",
             chance(w, 0.5) && !t->keyed ? ",\"bucket.assignment\":\"round_robin\"" : "");
    if (strstr(text, "round_robin")) t->keyed = true; // rows of one append may part
    struct json *j;
    struct error e;
    struct table_def *def = NULL;
    struct table_defaults defaults = {.bucket_num = 1};
    if (json_parse(text, strlen(text), &j, &e) != MINK_OK || table_def_from_json(j, &defaults, &def, &e) != MINK_OK) model_violation(&w->model, "definition %s: %s", text, e.message);
    json_free(j);
    return def;
}

// ---- hosts

static void on_ready(void *ctx, enum mink_code code, const struct error *e) {
    struct sim_host *h = ctx;
    sim_trace(h->w->sim, "host %" PRIu64 " ready: %s %s", h->number, mink_code_name(code), code == MINK_OK ? "" : e->message);
    h->ready = code == MINK_OK;
    h->failed = code != MINK_OK;
}

static void on_fatal(void *ctx, const struct error *e) {
    struct sim_host *h = ctx;
    sim_trace(h->w->sim, "host %" PRIu64 " fatal: %s", h->number, e->message);
    h->w->counts.fatals++;
    if (e->code == MINK_FENCED && h == h->w->host) model_violation(&h->w->model, "the newest process was fenced, and nobody has taken over: %s", e->message);
    h->ended_ns = sim_now_ns(h->w->sim) + below(h->w, NS_PER_S);
    h->failed = true;
}

static void start_host(struct world *w) {
    struct sim_host *h = mem_new(struct sim_host);
    char name[32];
    h->w = w;
    h->number = ++w->counts.starts;
    h->begun_ns = sim_now_ns(w->sim);
    snprintf(name, sizeof name, "host%" PRIu64, h->number);
    h->process = sim_process_new(w->sim, name, w->options.shard_count, w->options.skew);
    h->front = sim_front_new(&w->disk, h->process);
    if (!w->calm && chance(w, w->options.crash_call_fraction)) {
        uint64_t call = chance(w, 0.3) ? below(w, 30) : below(w, 400);
        sim_front_crash_at(h->front, call, chance(w, 0.5));
    }
    struct node_config config = {
        .objects = sim_front_store(h->front), .meta_log = sim_meta_log_new(w->db, h->process), .shards = sim_process_shards(h->process), .shard_count = w->options.shard_count,
        .work = sim_process_pool(h->process), .sole_process = true, .stream = w->options.stream, .defaults = {.bucket_num = 1}, .on_fatal = on_fatal, .ctx = h};
    config.checkpoint_every = w->options.checkpoint_every;
    config.stream.address = name;
    config.stream.rack = "";
#ifdef MINK_MUTANTS
    config.stream.mutant = 0;
#endif
    h->next = w->host;
    w->host = h;
    sim_trace(w->sim, "start host %" PRIu64, h->number);
    node_open(&config, &h->node, on_ready, h);
}

static void on_closed(void *ctx) {
    struct sim_host *h = ctx;
    sim_trace(h->w->sim, "host %" PRIu64 " closed", h->number);
    h->closed = true;
}

static void drop_host(struct world *w, struct sim_host *h) {
    sim_kill(h->process);
    client_host_gone(w->client, h);
    if (h == w->zombie) w->zombie = NULL;
}

// What has ended by itself is put away; a new host begins after a while.
static void tend_hosts(struct world *w) {
    struct sim_host *h = w->host;
    // One that has ended lingers for a while: it must refuse what it is asked.
    if (w->zombie && (!sim_alive(w->zombie->process) || (w->zombie->failed && sim_now_ns(w->sim) >= w->zombie->ended_ns))) drop_host(w, w->zombie);
    bool over = h == NULL || !sim_alive(h->process) || (h->failed && sim_now_ns(w->sim) >= h->ended_ns) || h->closed;
    if (!over) return;
    if (h && (sim_alive(h->process) || w->restart_ns == 0)) {
        if (h->failed && !h->ready) w->counts.failed_opens++;
        drop_host(w, h);
        w->restart_ns = sim_now_ns(w->sim) + (w->calm ? 1 : below(w, 2 * NS_PER_S) + 1);
    }
    if (sim_now_ns(w->sim) >= w->restart_ns) {
        w->restart_ns = 0;
        start_host(w);
    }
}

struct node_table *world_table(struct sim_host *h, uint32_t table) {
    struct error e;
    char name[8];
    snprintf(name, sizeof name, "t%u", table);
    if (h->tables[table] == NULL && node_table_find(h->node, "sim", name, &h->tables[table], &e) != MINK_OK) h->tables[table] = NULL;
    return h->tables[table];
}

// ---- making the tables: by the host's own interface, again and again until it has worked

struct making { struct world *w; struct node_admin admin; int step; bool waiting; struct sim_host *host; };

static void on_made(struct node_admin *a) {
    struct making *m = container_of(a, struct making, admin);
    sim_trace(m->w->sim, "made step %d: %s", m->step, mink_code_name(a->code));
    m->waiting = false;
    if (a->code == MINK_OK) m->step++;
    else if (a->code == MINK_INVALID || a->code == MINK_UNSUPPORTED) model_violation(&m->w->model, "making tables: %s", a->error.message);
}

static void make_tables(struct world *w) {
    struct making *m = mem_new(struct making);
    m->w = w;
    for (int rounds = 0; m->step <= (int)w->options.table_count; rounds++) {
        if (rounds > 20000) model_violation(&w->model, "the tables could not be made");
        tend_hosts(w);
        sim_run_for(w->sim, 5 * NS_PER_MS);
        struct sim_host *h = w->host;
        if (!h || !h->ready || !sim_alive(h->process) || m->step > (int)w->options.table_count) continue;
        if (m->waiting && m->host == h) continue;
        if (m->waiting) { // its host is gone, and so is the answer
            struct making *again = mem_new(struct making);
            again->w = w;
            again->step = m->step;
            m = again;
        }
        m->waiting = true;
        m->host = h;
        m->admin = (struct node_admin){.shard = sim_world(w->sim), .on_done = on_made, .database = "sim", .if_not_exists = true};
        m->admin.op = m->step == 0 ? NODE_CREATE_DATABASE : NODE_CREATE_TABLE;
        if (m->step > 0) m->admin.def = w->defs[m->step - 1];
        node_admin(h->node, &m->admin);
    }
    w->tables_made = true;
}

// ---- a run

static void disk_created(void *ctx, const char *key, const struct slices *body) {
    struct world *w = ctx;
    if (strncmp(key, "wal/", 4) != 0 && strncmp(key, "obj/", 4) != 0) return;
    struct slice whole = slices_join(body);
    model_durable(&w->model, whole.data, whole.size);
    slice_unref(&whole);
}

static void on_violation(void *ctx, const char *text) {
    struct world *w = ctx;
    sim_trace(w->sim, "VIOLATION %s", text);
    w->violated(w->ctx, text);
}

static void disturb(struct world *w) {
    struct sim_host *h = w->host;
    if (!h || !sim_alive(h->process) || h->closing) return;
    if (chance(w, w->options.kill_fraction)) {
        w->counts.kills++;
        drop_host(w, h);
        w->restart_ns = sim_now_ns(w->sim) + below(w, 2 * NS_PER_S) + 1;
    } else if (chance(w, w->options.pause_fraction)) {
        w->counts.pauses++;
        sim_pause(h->process, below(w, 5 * NS_PER_S));
    } else if (h->ready && chance(w, w->options.close_fraction)) {
        w->counts.closes++;
        h->closing = true;
        sim_trace(w->sim, "close host %" PRIu64, h->number);
        node_close(h->node, false, on_closed, h);
    } else if (w->options.zombies && h->ready && !w->zombie && chance(w, 0.02)) {
        w->counts.zombies++; // another process believes itself alone, while this one goes on
        w->zombie = h;
        if (chance(w, 0.5)) sim_pause(h->process, below(w, 3 * NS_PER_S));
        start_host(w);
    }
}

// Clients and hosts act in small steps of time until all is well, for at most `ns`.
static bool heals(struct world *w, uint64_t ns) {
    for (uint64_t until = sim_now_ns(w->sim) + ns; sim_now_ns(w->sim) < until; sim_run_for(w->sim, 5 * NS_PER_MS)) {
        tend_hosts(w);
        bool serves = w->host && w->host->ready && sim_alive(w->host->process);
        if (client_rests(w->client) && serves) return true;
    }
    return false;
}
static bool reads_done(void *ctx) { return client_reads_done(((struct world *)ctx)->client); }

static void calm_down(struct world *w) {
    static const struct object_fault_profile quiet = {.name = "quiet", .put_p50_ms = 2, .put_p99_ms = 4, .get_p50_ms = 1, .get_p99_ms = 2};
    static const struct sim_meta_faults no_faults = {.delay_ms_max = 1};
    sim_trace(w->sim, "calm");
    w->calm = true;
    object_fault_set_profile(w->disk.faults, &quiet);
    sim_meta_db_set_faults(w->db, &no_faults);
    if (w->zombie) drop_host(w, w->zombie);
    if (w->host) {
        sim_front_crash_at(w->host->front, UINT64_MAX, false);
        if (w->host->closing && !w->host->closed) drop_host(w, w->host);
    }
    if (w->restart_ns > sim_now_ns(w->sim)) w->restart_ns = sim_now_ns(w->sim);
    client_calm(w->client);
    // A paused process comes back when it does; the bound counts from then.
    sim_run_for(w->sim, w->options.pause_fraction > 0 ? 5 * NS_PER_S : 1);
    if (!heals(w, 10 * NS_PER_S)) model_violation(&w->model, "10 s after the faults stopped not everything serves again");
}

// Who is left alone comes to rest: commits and deletions end, then nothing is asked of the store, and no timer spins.
static void check_idle(struct world *w) {
    if (w->options.ttl) return;
    sim_run_for(w->sim, 1800 * NS_PER_S);
    uint64_t calls = sim_front_calls(w->host->front), events = sim_events(w->sim);
    sim_run_for(w->sim, 600 * NS_PER_S);
    if (w->host->failed) model_violation(&w->model, "an idle host has ended");
    if (sim_front_calls(w->host->front) != calls) model_violation(&w->model, "an idle host made %" PRIu64 " requests to the store in 10 minutes", sim_front_calls(w->host->front) - calls);
    if (sim_events(w->sim) - events > 1000) model_violation(&w->model, "an idle host was busy %" PRIu64 " times in 10 minutes", sim_events(w->sim) - events);
}

void world_run(struct world *w, uint64_t seed, bool print, void (*violated)(void *ctx, const char *text), void *ctx) {
    *w = (struct world){.seed = seed, .violated = violated, .ctx = ctx};
    w->sim = sim_new(seed);
    sim_trace_print(w->sim, print);
    model_init(&w->model, w->sim);
    w->model.violated = on_violation;
    w->model.ctx = w;
    draw_options(w);
    sim_disk_init(&w->disk, w->sim, &w->options.store, seed);
    w->disk.on_created = disk_created;
    w->disk.ctx = w;
    w->db = sim_meta_db_new(w->sim);
    sim_meta_db_set_faults(w->db, &w->options.meta);
    w->model.table_count = w->options.table_count;
    for (uint32_t t = 0; t < w->options.table_count; t++) w->defs[t] = make_def(w, t);
    w->client = client_new(w);
    make_tables(w);
    for (uint64_t step = 0; step < w->options.steps; step++) {
        tend_hosts(w);
        client_step(w->client);
        disturb(w);
        sim_run_for(w->sim, chance(w, 0.1) ? below(w, 400 * NS_PER_MS) : below(w, 15 * NS_PER_MS));
    }
    calm_down(w);
    client_read_all(w->client, w->host);
    if (!sim_run_until(w->sim, reads_done, w, 10 * NS_PER_S)) model_violation(&w->model, "reading everything did not end within 10 s");
    if (!client_followers_arrive(w->client)) model_violation(&w->model, "a follower does not get what is there");
    model_check_complete(&w->model);
    check_replay(w);
    check_catalog(w, false);
    // A fresh process must find it all again.
    drop_host(w, w->host);
    w->restart_ns = sim_now_ns(w->sim);
    if (!heals(w, 10 * NS_PER_S)) model_violation(&w->model, "a restart without faults did not serve within 10 s");
    client_read_all(w->client, w->host);
    if (!sim_run_until(w->sim, reads_done, w, 10 * NS_PER_S)) model_violation(&w->model, "reading everything after a restart did not end within 10 s");
    model_check_complete(&w->model);
    check_replay(w);
    check_catalog(w, true);
    check_idle(w);
    w->counts.rows_acked = w->model.rows_acked;
    w->counts.rows_read = w->model.rows_read;
    w->counts.acks = w->model.acks;
}
