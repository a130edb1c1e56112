// SPDX-License-Identifier: Apache-2.0
// What a node does by itself, on one timer of shards[0]. A job without work has no due time, so an idle node wakes for nothing.
//
//     job          woken by                        does
//     trim         commands applied                for tables whose time has come: stream_trim of each bucket that holds anything
//     partitions   start, DDL                      creates and drops automatic partitions; looks again every minute while a table has them
//     writers      a batch of an idempotent writer forgets writers silent for writer_expiry_ms
//     delete       commands applied                stream_delete_marked after the grace period, until nothing is marked
//     sweep        takeovers, commands applied     stream_sweep_orphans: soon after a takeover, then daily while anything happens
//
// Trimming is limited by the writer snapshot: headers from its offset on are needed to know the bucket's writers, so what is younger than a
// writer lives is kept up to there.
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "node/node_internal.h"
#include "table/partition.h"

#include <inttypes.h>
#include <string.h>

#define NEVER UINT64_MAX
#define TRIMS_IN_FLIGHT 256
#define PRECREATE_MAX 64
#define MINUTE_NS (60 * NS_PER_S)
#define DAY_NS (24 * 60 * MINUTE_NS)

static struct metric_counter trims = METRIC_COUNTER("mink_trim_jobs_total", "Buckets whose log start was moved by retention");
static struct metric_counter partitions_made = METRIC_COUNTER("mink_partitions_created_total", "Automatic partitions created");
static struct metric_counter partitions_dropped = METRIC_COUNTER("mink_partitions_expired_total", "Automatic partitions dropped");
static struct metric_counter job_errors = METRIC_COUNTER("mink_job_errors_total", "Background jobs that failed and will be tried again");

struct trim_item { uint64_t stream_id, offset_max; int64_t before_ms, bytes_keep; };
struct trim_run {
    struct jobs *jobs;
    struct trim_item *items;
    uint32_t count, capacity, at, in_flight;
};

struct jobs {
    struct node *n;
    struct timer timer;
    bool stopped;
    uint64_t trim_due, partitions_due, writers_due, delete_due, sweep_due;
    bool trimming, expiring, deleting, sweeping;
    bool applied_since_delete, applied_since_sweep;
    uint32_t proposals; // of partitions
    atomic_uint writers_left;
    struct stream_job delete_job, sweep_job;
};

static uint64_t now_ns(struct jobs *j) { return shard_now_ns(node_shard(j->n)); }
static void hold(struct jobs *j) { atomic_fetch_add(&j->n->refs, 1); } // a step in flight; node_leave ends it

static void earlier(uint64_t *due, uint64_t at) {
    if (at < *due) *due = at;
}

static void arm(struct jobs *j) {
    if (j->stopped) return;
    uint64_t due = NEVER;
    if (!j->trimming) earlier(&due, j->trim_due);
    if (j->proposals == 0) earlier(&due, j->partitions_due);
    if (!j->expiring) earlier(&due, j->writers_due);
    if (!j->deleting) earlier(&due, j->delete_due);
    if (!j->sweeping) earlier(&due, j->sweep_due);
    if (due == NEVER) {
        timer_stop(&j->timer);
        return;
    }
    uint64_t now = now_ns(j);
    timer_start(&j->timer, due > now ? due - now : 0);
}

static void failed(const char *job, const struct error *e) {
    metric_add(&job_errors, 1);
    log_limited(LOG_WARN, "job.failed", "job=%s reason=%s message=\"%s\"", job, e->reason, e->message);
}

// ---- trim

static uint64_t trim_period(const struct table_def *d) {
    uint64_t period = NEVER;
    if (d->log_ttl_ms >= 0) {
        // A twentieth of the time to live late at most.
        period = (uint64_t)d->log_ttl_ms * NS_PER_MS / 20;
        if (period < NS_PER_S) period = NS_PER_S;
        if (period > 60 * MINUTE_NS) period = 60 * MINUTE_NS;
    }
    if (d->retention_bytes >= 0) earlier(&period, MINUTE_NS);
    return period;
}

static void add_trim(struct trim_run *run, struct trim_item item) {
    if (run->count == run->capacity) {
        run->capacity = run->capacity ? run->capacity * 2 : 16;
        run->items = mem_realloc(run->items, run->capacity * sizeof *run->items);
    }
    run->items[run->count++] = item;
}

static void plan_stream(struct trim_run *run, const struct table_def *d, uint64_t stream_id, int64_t now_ms) {
    struct node *n = run->jobs->n;
    struct catalog_stream s;
    if (!catalog_find_stream(n->catalog, stream_id, &s)) return;
    // Without a snapshot (a log that was only ever committed by a takeover, by reference) nothing covers the writers in its headers.
    uint64_t snapshot = 0;
    if (s.attachment.size) (void)!bucket_attachment_offset(s.attachment, &snapshot);
    struct trim_item item = {stream_id, UINT64_MAX, d->log_ttl_ms >= 0 ? now_ms - d->log_ttl_ms : INT64_MIN, d->retention_bytes};
    if (s.start < s.end) {
        if (snapshot < s.end) {
            int64_t forgotten_ms = now_ms - (int64_t)n->config.writer_expiry_ms;
            struct trim_item old = {stream_id, UINT64_MAX, item.before_ms < forgotten_ms ? item.before_ms : forgotten_ms, -1};
            if (d->log_ttl_ms >= 0) add_trim(run, old);
            item.offset_max = snapshot;
        }
        if (item.offset_max > s.start) add_trim(run, item);
    }
    catalog_stream_deinit(&s);
}

static void plan_table(struct trim_run *run, const struct catalog_table *t, int64_t now_ms) {
    if (t->def->partition_by_count == 0) {
        for (uint32_t b = 0; b < t->def->bucket_num; b++) plan_stream(run, t->def, t->stream_base + b, now_ms);
        return;
    }
    struct catalog_partition *partitions;
    uint32_t count;
    catalog_list_partitions(run->jobs->n->catalog, t->table_id, &partitions, &count);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t b = 0; b < partitions[i].bucket_count; b++) plan_stream(run, t->def, partitions[i].stream_base + b, now_ms);
    }
    catalog_free_partitions(partitions, count);
}

static void trim_more(struct trim_run *run);

struct trim_step { struct stream_trim trim; struct trim_run *run; };

static void on_trimmed(struct stream_trim *t) {
    struct trim_step *step = container_of(t, struct trim_step, trim);
    struct trim_run *run = step->run;
    struct node *n = run->jobs->n;
    if (t->code == MINK_OK) metric_add(&trims, 1);
    else if (t->code != MINK_NOT_FOUND && t->code != MINK_UNAVAILABLE) failed("trim", &t->error);
    mem_free(step);
    run->in_flight--;
    trim_more(run);
    node_leave(n);
}

static void trim_more(struct trim_run *run) {
    struct jobs *j = run->jobs;
    if (j->stopped) run->at = run->count;
    while (run->at < run->count && run->in_flight < TRIMS_IN_FLIGHT) {
        const struct trim_item *item = &run->items[run->at++];
        struct trim_step *step = mem_new(struct trim_step);
        *step = (struct trim_step){.trim = {.shard = node_shard(j->n), .on_done = on_trimmed, .stream_id = item->stream_id, .before_ms = item->before_ms, .bytes_keep = item->bytes_keep, .offset_max = item->offset_max}, .run = run};
        run->in_flight++;
        hold(j);
        stream_trim(j->n->streams, &step->trim);
    }
    if (run->in_flight) return;
    mem_free(run->items);
    mem_free(run);
    j->trimming = false;
    arm(j);
}

static void run_trim(struct jobs *j) {
    struct trim_run *run = mem_new(struct trim_run);
    run->jobs = j;
    struct catalog_table *tables;
    uint32_t count;
    uint64_t now = now_ns(j);
    int64_t now_ms = shard_wall_ms(node_shard(j->n));
    j->trim_due = NEVER;
    catalog_list_tables(j->n->catalog, NULL, &tables, &count);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t period = trim_period(tables[i].def);
        if (period == NEVER || !table_def_is_log(tables[i].def)) continue;
        struct table_state *state = node_table_state(j->n, tables[i].table_id);
        // A table whose period became shorter is not kept waiting for the old one.
        if (state->trim_due_ns > now + period) state->trim_due_ns = now + period;
        if (state->trim_due_ns <= now) {
            uint32_t before = run->count;
            plan_table(run, &tables[i], now_ms);
            state->trim_due_ns = now + period;
            if (run->count == before) continue; // nothing committed in it: the next commit wakes us
        }
        earlier(&j->trim_due, state->trim_due_ns);
    }
    catalog_free_tables(tables, count);
    j->trimming = true;
    trim_more(run);
}

// ---- automatic partitions

struct partition_step { struct meta_proposal proposal; struct jobs *jobs; bool drop; char *what; };

static void on_partition(struct meta_proposal *p) {
    struct partition_step *step = container_of(p, struct partition_step, proposal);
    struct jobs *j = step->jobs;
    struct node *n = j->n;
    if (p->result.code != MINK_OK) {
        failed("partitions", &p->result.error);
    } else if (!p->result.existed) {
        metric_add(step->drop ? &partitions_dropped : &partitions_made, 1);
        log_info(step->drop ? "partition.expired" : "partition.created", "partition=%s", step->what);
        if (step->drop) node_close_dropped(n);
    }
    mem_free(step->what);
    mem_free(step);
    if (--j->proposals == 0) arm(j);
    node_leave(n);
}

static void propose(struct jobs *j, const struct catalog_table *t, const char *name, bool drop) {
    struct partition_step *step = mem_new(struct partition_step);
    step->jobs = j;
    step->drop = drop;
    step->what = mem_printf("%s.%s/%s", t->def->database, t->def->name, name);
    j->proposals++;
    hold(j);
    meta_propose(j->n->meta, &step->proposal, node_shard(j->n), drop ? command_drop_partition(t->table_id, name, true) : command_create_partition(t->table_id, name, true), on_partition);
}

static void keep_partitions(struct jobs *j, const struct catalog_table *t, int64_t now_ms) {
    char (*names)[PARTITION_NAME_MAX] = mem_zalloc_array(PRECREATE_MAX, PARTITION_NAME_MAX);
    uint32_t wanted = partition_auto_wanted(t->def, now_ms, names, PRECREATE_MAX), count;
    struct catalog_partition *partitions;
    catalog_list_partitions(j->n->catalog, t->table_id, &partitions, &count);
    for (uint32_t i = 0; i < wanted; i++) {
        bool exists = false;
        for (uint32_t p = 0; p < count && !exists; p++) exists = strcmp(partitions[p].name, names[i]) == 0;
        if (!exists) propose(j, t, names[i], false);
    }
    for (uint32_t p = 0; p < count; p++) {
        if (partition_auto_expired(t->def, partitions[p].name, now_ms)) propose(j, t, partitions[p].name, true);
    }
    catalog_free_partitions(partitions, count);
    mem_free(names);
}

static void run_partitions(struct jobs *j) {
    struct catalog_table *tables;
    uint32_t count;
    int64_t now_ms = shard_wall_ms(node_shard(j->n));
    j->partitions_due = NEVER;
    catalog_list_tables(j->n->catalog, NULL, &tables, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (!tables[i].def->auto_partition.enabled || tables[i].def->partition_by_count == 0) continue;
        j->partitions_due = now_ns(j) + MINUTE_NS;
        keep_partitions(j, &tables[i], now_ms);
    }
    catalog_free_tables(tables, count);
}

// ---- writers

static void expire_on_host(struct host *h, void *ctx) {
    struct jobs *j = ctx;
    int64_t before_ms = shard_wall_ms(h->shard) - (int64_t)j->n->config.writer_expiry_ms;
    atomic_fetch_add(&j->writers_left, host_expire_writers(h, before_ms));
}

static uint64_t expiry_period(const struct jobs *j) {
    uint64_t period = j->n->config.writer_expiry_ms * NS_PER_MS / 4;
    return period < NS_PER_S ? NS_PER_S : period > 60 * MINUTE_NS ? 60 * MINUTE_NS : period;
}

static void on_expired(void *ctx) {
    struct jobs *j = ctx;
    j->expiring = false;
    j->writers_due = atomic_load(&j->writers_left) ? now_ns(j) + expiry_period(j) : NEVER;
    arm(j);
    node_leave(j->n);
}

static void run_writers(struct jobs *j) {
    j->expiring = true;
    atomic_store(&j->writers_left, 0);
    atomic_store(&j->n->writers_seen, false);
    hold(j);
    node_post_hosts(j->n, expire_on_host, j, on_expired);
}

// ---- objects: deletion, sweep

static void on_deleted(struct stream_job *job) {
    struct jobs *j = container_of(job, struct jobs, delete_job);
    struct node *n = j->n;
    if (job->code != MINK_OK) failed("delete", &job->error);
    struct catalog_object *marked;
    uint32_t count;
    catalog_list_objects(n->catalog, true, &marked, &count);
    mem_free(marked);
    uint64_t grace = (n->config.stream.delete_grace_ms ? n->config.stream.delete_grace_ms : 600000) * NS_PER_MS;
    j->deleting = false;
    j->delete_due = count || job->count || j->applied_since_delete ? now_ns(j) + grace + NS_PER_S : NEVER;
    arm(j);
    node_leave(n);
}

static void run_delete(struct jobs *j) {
    j->deleting = true;
    j->applied_since_delete = false;
    hold(j);
    j->delete_job = (struct stream_job){.shard = node_shard(j->n), .on_done = on_deleted};
    stream_delete_marked(j->n->streams, &j->delete_job);
}

static void on_swept(struct stream_job *job) {
    struct jobs *j = container_of(job, struct jobs, sweep_job);
    struct node *n = j->n;
    if (job->code != MINK_OK) failed("sweep", &job->error);
    else if (job->count) log_info("sweep.done", "orphans_deleted=%" PRIu64, job->count);
    j->sweeping = false;
    j->sweep_due = job->code != MINK_OK || j->applied_since_sweep ? now_ns(j) + DAY_NS : NEVER;
    arm(j);
    node_leave(n);
}

static void run_sweep(struct jobs *j) {
    j->sweeping = true;
    j->applied_since_sweep = false;
    hold(j);
    j->sweep_job = (struct stream_job){.shard = node_shard(j->n), .on_done = on_swept};
    stream_sweep_orphans(j->n->streams, &j->sweep_job);
}

// ---- the timer

static void on_timer(struct timer *t) {
    struct jobs *j = container_of(t, struct jobs, timer);
    uint64_t now = now_ns(j);
    if (j->trim_due <= now && !j->trimming) run_trim(j);
    if (j->partitions_due <= now && j->proposals == 0) run_partitions(j);
    if (j->writers_due <= now && !j->expiring) run_writers(j);
    if (j->delete_due <= now && !j->deleting) run_delete(j);
    if (j->sweep_due <= now && !j->sweeping) run_sweep(j);
    arm(j);
}

struct jobs *jobs_new(struct node *n) {
    struct jobs *j = mem_new(struct jobs);
    *j = (struct jobs){.n = n, .trim_due = NEVER, .partitions_due = NEVER, .writers_due = NEVER, .delete_due = NEVER, .sweep_due = NEVER, .stopped = true};
    timer_init(&j->timer, node_shard(n), on_timer);
    return j;
}

void jobs_free(struct jobs *j) { mem_free(j); }

void jobs_start(struct jobs *j) {
    j->stopped = false;
    uint64_t now = now_ns(j);
    j->trim_due = j->partitions_due = now;
    j->delete_due = now + 10 * MINUTE_NS; // what earlier incarnations left
    j->sweep_due = now + 10 * MINUTE_NS;
    arm(j);
}

void jobs_applied(struct jobs *j) {
    if (j->stopped) return;
    uint64_t now = now_ns(j), grace = (j->n->config.stream.delete_grace_ms ? j->n->config.stream.delete_grace_ms : 600000) * NS_PER_MS;
    j->applied_since_delete = j->applied_since_sweep = true;
    earlier(&j->delete_due, now + grace + NS_PER_S);
    earlier(&j->sweep_due, now + DAY_NS);
    earlier(&j->trim_due, now + NS_PER_S);
    if (atomic_load(&j->n->writers_seen)) earlier(&j->writers_due, now + expiry_period(j));
    arm(j);
}

void jobs_kick(struct jobs *j) {
    if (j->stopped) return;
    earlier(&j->trim_due, now_ns(j));
    earlier(&j->partitions_due, now_ns(j));
    arm(j);
}

void jobs_stop(struct jobs *j) {
    j->stopped = true;
    timer_stop(&j->timer);
}
