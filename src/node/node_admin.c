// SPDX-License-Identifier: Apache-2.0
// DDL and other commands: checked here, decided by the command log.
//
//   create table, alter  → meta_propose → automatic partitions of now are created → answered
//   drop …               → meta_propose → live buckets of streams that are gone close
#include "base/mem.h"
#include "node/node_internal.h"
#include "table/partition.h"

#include <inttypes.h>
#include <string.h>

#define PARTITION_COLUMNS_MAX 16
#define PRECREATE_MAX 64

struct admin_state {
    struct node *n;
    struct node_admin *a;
    struct meta_proposal proposal;
    struct stream_job job;
    struct meta_sync sync;
    struct table_def *def; // the new definition of an alter
    char (*names)[PARTITION_NAME_MAX];
    uint32_t name_count, name_at;
    uint64_t table_id;
};

static void finish(struct admin_state *s) {
    struct node_admin *a = s->a;
    struct node *n = s->n;
    if (s->def) table_def_unref(s->def);
    mem_free(s->names);
    mem_free(s);
    node_leave(n);
    a->on_done(a);
}

static void run_refused(struct task *task) {
    struct node_admin *a = container_of(task, struct node_admin, task);
    a->on_done(a);
}

// ---- after the command

static void close_dropped(struct host *h, void *ctx) { host_close_dropped(h); }
static void left(void *ctx) { node_leave(ctx); }

void node_close_dropped(struct node *n) {
    atomic_fetch_add(&n->refs, 1);
    node_post_hosts(n, close_dropped, n, left);
}

struct refresh { struct node *n; uint64_t table_id; struct table_def *def; };
static void refresh_host(struct host *h, void *ctx) {
    struct refresh *r = ctx;
    host_refresh(h, r->table_id, r->def);
}
static void refreshed(void *ctx) {
    struct refresh *r = ctx;
    struct node *n = r->n;
    table_def_unref(r->def);
    mem_free(r);
    node_leave(n);
}

static void refresh_buckets(struct node *n, uint64_t table_id, struct table_def *def) {
    struct refresh *r = mem_new(struct refresh);
    *r = (struct refresh){n, table_id, table_def_ref(def)};
    atomic_fetch_add(&n->refs, 1);
    node_post_hosts(n, refresh_host, r, refreshed);
}

static void kick(void *ctx) {
    struct node *n = ctx;
    jobs_kick(n->jobs);
    node_leave(n);
}

static void kick_jobs(struct node *n) {
    atomic_fetch_add(&n->refs, 1);
    shard_post_call(node_shard(n), kick, n);
}

static void on_precreated(struct meta_proposal *p);

// Partitions that should exist now are there when CREATE TABLE is answered.
static void precreate(struct admin_state *s) {
    if (s->name_at == s->name_count) {
        finish(s);
        return;
    }
    meta_propose(s->n->meta, &s->proposal, s->a->shard, command_create_partition(s->table_id, s->names[s->name_at++], true), on_precreated);
}

static void on_precreated(struct meta_proposal *p) {
    struct admin_state *s = container_of(p, struct admin_state, proposal);
    precreate(s); // one that failed is tried again by the partition job
}

static void table_made(struct admin_state *s, struct table_def *def) {
    kick_jobs(s->n);
    if (def->auto_partition.enabled && def->partition_by_count) {
        s->names = mem_zalloc_array(PRECREATE_MAX, PARTITION_NAME_MAX);
        s->name_count = partition_auto_wanted(def, shard_wall_ms(s->a->shard), s->names, PRECREATE_MAX);
    }
    precreate(s);
}

static void on_proposed(struct meta_proposal *p) {
    struct admin_state *s = container_of(p, struct admin_state, proposal);
    struct node_admin *a = s->a;
    a->code = p->result.code;
    error_copy(&a->error, &p->result.error);
    a->id = p->result.id;
    a->existed = p->result.existed;
    s->table_id = p->result.id;
    if (a->code != MINK_OK || a->existed) {
        finish(s);
        return;
    }
    switch (a->op) {
    case NODE_CREATE_TABLE: table_made(s, a->def); return;
    case NODE_ALTER_TABLE_OPTIONS:
        refresh_buckets(s->n, s->table_id, s->def);
        table_made(s, s->def);
        return;
    case NODE_DROP_DATABASE:
    case NODE_DROP_TABLE:
    case NODE_DROP_PARTITION: node_close_dropped(s->n); break;
    default: break;
    }
    finish(s);
}

static void propose(struct admin_state *s, struct command *take_command) { meta_propose(s->n->meta, &s->proposal, s->a->shard, take_command, on_proposed); }

// ---- the commands

static enum mink_code create_database(struct admin_state *s, struct error *e) {
    MINK_TRY(table_name_check(s->a->database, "database", e));
    propose(s, command_create_database(s->a->database, s->a->comment ? s->a->comment : "", s->a->if_not_exists));
    return MINK_OK;
}

// An option that is taken must do what it says.
static enum mink_code refuse_lake(const struct table_def *d, struct error *e) {
    if (!d->lake_enabled) return MINK_OK;
    error_set(e, MINK_UNSUPPORTED, "NO_LAKE", "table.datalake.enabled: there is no lake to tier %s.%s into", d->database, d->name);
    error_about(e, "table.datalake.enabled", "false", "true");
    return MINK_UNSUPPORTED;
}

static enum mink_code create_table(struct admin_state *s, struct error *e) {
    MINK_TRY(node_refuse_primary_key(s->a->def, e));
    MINK_TRY(refuse_lake(s->a->def, e));
    propose(s, command_create_table(s->a->def, s->a->if_not_exists));
    return MINK_OK;
}

static enum mink_code alter_options(struct admin_state *s, struct error *e) {
    struct node_admin *a = s->a;
    struct catalog_table t;
    MINK_TRY(catalog_find_table(s->n->catalog, a->database, a->table, &t, e));
    enum mink_code code = table_def_with_options(t.def, a->set, a->set_count, a->reset, a->reset_count, &s->def, e);
    if (code == MINK_OK) code = refuse_lake(s->def, e);
    if (code == MINK_OK) propose(s, command_alter_table(&t, s->def));
    catalog_table_deinit(&t);
    return code;
}

// "EU$2026" → its values, checked as such.
static enum mink_code check_partition(const struct table_def *d, const char *name, struct error *e) {
    char copy[PARTITION_NAME_MAX], checked[PARTITION_NAME_MAX];
    const char *values[PARTITION_COLUMNS_MAX];
    uint32_t count = 0;
    if (d->partition_by_count == 0) return error_set(e, MINK_INVALID, "NOT_PARTITIONED", "table %s.%s has no partitions", d->database, d->name);
    if (strlen(name) >= sizeof copy) return error_set(e, MINK_INVALID, "BAD_NAME", "a partition name of %zu bytes is too long", strlen(name));
    memcpy(copy, name, strlen(name) + 1);
    char *rest = copy, *value;
    while (count < PARTITION_COLUMNS_MAX && (value = strsep(&rest, "$"))) values[count++] = value;
    if (count != d->partition_by_count || rest)
        return error_set(e, MINK_INVALID, "BAD_PARTITION", "%s.%s has %" PRIu32 " partition columns, \"%.200s\" gives another number of values", d->database, d->name, d->partition_by_count, name);
    return partition_name(d, values, count, checked, e);
}

static enum mink_code change_partition(struct admin_state *s, struct error *e) {
    struct node_admin *a = s->a;
    struct catalog_table t;
    bool create = a->op == NODE_CREATE_PARTITION;
    MINK_TRY(catalog_find_table(s->n->catalog, a->database, a->table, &t, e));
    enum mink_code code = a->partition ? check_partition(t.def, a->partition, e) : error_set(e, MINK_INVALID, "PARTITION_MISSING", "no partition was named");
    if (code == MINK_OK) propose(s, create ? command_create_partition(t.table_id, a->partition, a->if_not_exists) : command_drop_partition(t.table_id, a->partition, a->if_exists));
    catalog_table_deinit(&t);
    return code;
}

static void on_flushed(struct stream_job *j) {
    struct admin_state *s = container_of(j, struct admin_state, job);
    s->a->code = j->code;
    error_copy(&s->a->error, &j->error);
    finish(s);
}

static void on_synced(struct meta_sync *m) {
    struct admin_state *s = container_of(m, struct admin_state, sync);
    s->a->code = m->code;
    error_copy(&s->a->error, &m->error);
    finish(s);
}

static enum mink_code run(struct admin_state *s, struct error *e) {
    struct node_admin *a = s->a;
    switch (a->op) {
    case NODE_CREATE_DATABASE: return create_database(s, e);
    case NODE_DROP_DATABASE: propose(s, command_drop_database(a->database, a->if_exists, a->cascade)); return MINK_OK;
    case NODE_CREATE_TABLE: return create_table(s, e);
    case NODE_ALTER_TABLE_OPTIONS: return alter_options(s, e);
    case NODE_DROP_TABLE: propose(s, command_drop_table(a->database, a->table, a->if_exists)); return MINK_OK;
    case NODE_CREATE_PARTITION:
    case NODE_DROP_PARTITION: return change_partition(s, e);
    case NODE_INIT_WRITER: propose(s, command_allocate_writer_ids(1)); return MINK_OK;
    case NODE_FLUSH:
        s->job = (struct stream_job){.shard = a->shard, .on_done = on_flushed};
        stream_commit_now(s->n->streams, &s->job);
        return MINK_OK;
    case NODE_SYNC: meta_sync(s->n->meta, &s->sync, a->shard, on_synced); return MINK_OK;
    }
    return error_set(e, MINK_INTERNAL, "BAD_OPERATION", "operation %d is not known", a->op);
}

void node_admin(struct node *n, struct node_admin *a) {
    a->error = (struct error){0};
    a->id = 0;
    a->existed = false;
    a->code = node_enter(n, &a->error);
    if (a->code == MINK_OK) {
        struct admin_state *s = mem_new(struct admin_state);
        *s = (struct admin_state){.n = n, .a = a};
        enum mink_code code = run(s, &a->error);
        if (code == MINK_OK) return; // it may be answered already, on its own shard
        a->code = code;
        if (s->def) table_def_unref(s->def);
        mem_free(s);
        node_leave(n);
    }
    a->task.run = run_refused;
    shard_post(a->shard, &a->task);
}
