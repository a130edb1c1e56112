// SPDX-License-Identifier: Apache-2.0
// node_testing.h: a real node over a memory store and SQLite in a temporary folder, and calls that wait.
#ifndef MINK_TESTS_NODE_TESTING_H
#define MINK_TESTS_NODE_TESTING_H

#include "unit/arrow/arrow_testing.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "node/node.h"
#include "object/object_memory.h"
#include "table/ddl.h"

static struct error why;

struct signal { pthread_mutex_t lock; pthread_cond_t changed; uint32_t count; };
#define SIGNAL_INIT {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0}
static inline void signal_raise(struct signal *s) {
    pthread_mutex_lock(&s->lock);
    s->count++;
    pthread_cond_broadcast(&s->changed); // under the lock: the waiter's frame is gone right after
    pthread_mutex_unlock(&s->lock);
}
static inline void signal_await(struct signal *s, uint32_t count) {
    pthread_mutex_lock(&s->lock);
    while (s->count < count) pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}
static inline bool signal_raised(struct signal *s) {
    pthread_mutex_lock(&s->lock);
    bool raised = s->count > 0;
    pthread_mutex_unlock(&s->lock);
    return raised;
}

// The store of the test outlives its nodes: what they get only forwards.
struct forward_store { struct object_store store; struct object_store *inner; };
static inline void forward_submit(struct object_store *store, struct object_request *r) {
    struct object_store *inner = ((struct forward_store *)store)->inner;
    inner->ops->submit(inner, r);
}
static inline void forward_close(struct object_store *store) { mem_free(store); }
static const struct object_store_ops forward_ops = {forward_submit, forward_close};

struct world {
    char folder[64], meta_path[96];
    struct object_store *objects;
    struct shard *shards[3], *front;
    uint32_t shard_count;
    struct work_pool *work;
    struct node *node;
    struct node_config config; // what the test changes before world_start
    const struct object_store_ops *ops; // of what the node gets for a store
};

struct opened { struct signal done; enum mink_code code; struct error error; };
static inline void world_ready(void *ctx, enum mink_code code, const struct error *e) {
    struct opened *o = ctx;
    o->code = code;
    error_copy(&o->error, e);
    signal_raise(&o->done);
}

static inline void world_start(struct world *w) {
    struct opened o = {.done = SIGNAL_INIT};
    struct node_config c = w->config;
    struct forward_store *f = mem_new(struct forward_store);
    *f = (struct forward_store){.store = {.ops = w->ops ? w->ops : &forward_ops, .name = "memory"}, .inner = w->objects};
    c.objects = &f->store;
    assert_fine(meta_log_sqlite_open(w->meta_path, &c.meta_log, &why));
    c.shards = w->shards;
    c.shard_count = w->shard_count;
    c.work = w->work;
    c.sole_process = true;
    c.stream.address = "127.0.0.1:1";
    c.stream.put_rate = -1;
    node_open(&c, &w->node, world_ready, &o);
    signal_await(&o.done, 1);
    if (o.code != MINK_OK) fail_msg("node_open: %s", o.error.message);
}

static inline void world_closed(void *ctx) { signal_raise(ctx); }
static inline void world_stop(struct world *w, bool abrupt) {
    struct signal done = SIGNAL_INIT;
    node_close(w->node, abrupt, world_closed, &done);
    signal_await(&done, 1);
    w->node = NULL;
}
static inline void world_restart(struct world *w, bool abrupt) {
    world_stop(w, abrupt);
    world_start(w);
}

static inline void world_init(struct world *w) {
    *w = (struct world){.shard_count = 3};
    strncpy(w->folder, "/tmp/mink-node-XXXXXX", sizeof w->folder - 1);
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->meta_path, sizeof w->meta_path, "%s/meta.db", w->folder);
    w->objects = object_memory_new();
    for (uint32_t i = 0; i < w->shard_count; i++) w->shards[i] = shard_start("shard");
    w->front = shard_start("front");
    w->work = work_pool_start("work", 1);
}

static inline void world_deinit(struct world *w) {
    if (w->node) world_stop(w, false);
    for (uint32_t i = 0; i < w->shard_count; i++) shard_stop(w->shards[i]);
    shard_stop(w->front);
    work_pool_stop(w->work);
    object_store_close(w->objects);
    char *command = mem_printf("rm -rf %s", w->folder);
    if (system(command) != 0) fail_msg("%s", command);
    mem_free(command);
}

// ---- admin

struct admin_call { struct node_admin admin; struct signal done; };
static inline void admin_done(struct node_admin *a) { signal_raise(&container_of(a, struct admin_call, admin)->done); }
static inline enum mink_code admin(struct world *w, struct node_admin *a, struct error *e) {
    struct admin_call call = {.admin = *a, .done = SIGNAL_INIT};
    call.admin.shard = w->front;
    call.admin.on_done = admin_done;
    node_admin(w->node, &call.admin);
    signal_await(&call.done, 1);
    *a = call.admin;
    error_copy(e, &a->error);
    return a->code;
}

static inline enum mink_code run_ddl(struct world *w, const char *text, struct error *e) {
    struct ddl ddl;
    struct table_defaults defaults = node_defaults(w->node);
    MINK_TRY(ddl_parse(text, strlen(text), NULL, &defaults, &ddl, e));
    struct node_admin a = {.op = NODE_CREATE_TABLE, .def = ddl.def, .database = ddl.database, .table = ddl.table, .if_exists = ddl.if_exists, .if_not_exists = ddl.if_not_exists, .set = ddl.set, .set_count = ddl.set_count};
    if (ddl.kind == DDL_CREATE_DATABASE) a.op = NODE_CREATE_DATABASE;
    if (ddl.kind == DDL_DROP_TABLE) a.op = NODE_DROP_TABLE;
    if (ddl.kind == DDL_ALTER_TABLE_OPTIONS) a.op = NODE_ALTER_TABLE_OPTIONS;
    enum mink_code code = admin(w, &a, e);
    ddl_deinit(&ddl);
    return code;
}

static inline struct node_table *find_table(struct world *w, const char *name) {
    struct node_table *t = NULL;
    assert_fine(node_table_find(w->node, "shop", name, &t, &why));
    return t;
}

static inline struct node_table *make_table(struct world *w, const char *ddl) {
    struct node_admin a = {.op = NODE_CREATE_DATABASE, .database = "shop", .if_not_exists = true};
    assert_fine(admin(w, &a, &why));
    assert_fine(run_ddl(w, ddl, &why));
    const char *dot = strchr(ddl, '.') + 1;
    char name[64] = "";
    memcpy(name, dot, strcspn(dot, " ("));
    return find_table(w, name);
}

// ---- append

struct append_call { struct node_append append; struct signal done; struct node_range ranges[64]; uint32_t range_count; char names[64][64]; };
static inline void append_done(struct node_append *a) {
    struct append_call *c = container_of(a, struct append_call, append);
    c->range_count = a->range_count;
    for (uint32_t i = 0; i < a->range_count && i < 64; i++) {
        c->ranges[i] = a->ranges[i];
        if (a->ranges[i].partition) {
            snprintf(c->names[i], sizeof c->names[i], "%s", a->ranges[i].partition);
            c->ranges[i].partition = c->names[i];
        }
    }
    signal_raise(&c->done);
}

// Rows of (id BIGINT, city STRING): ids first … first + count - 1, city "c<id mod 3>".
static inline void make_rows(struct node_table *t, int64_t first, int64_t count, struct arrow_batch *out) {
    struct arrow_builder *b = arrow_builder_new(node_table_def(t)->arrow);
    for (int64_t i = first; i < first + count; i++) {
        char city[16];
        snprintf(city, sizeof city, "c%d", (int)(i % 3));
        arrow_builder_int(b, 0, i);
        arrow_builder_bytes(b, 1, city, strlen(city));
        arrow_builder_row(b);
    }
    arrow_builder_finish(b, out);
    arrow_builder_free(b);
}

// In the form that front ends hand over: message, and a slab with the body behind room for the head.
static inline void make_slab(struct node_append *a) {
    struct slices body;
    assert_fine(ipc_encode_batch(&a->batch, CODEC_NONE, 0, &a->message, &body, &why));
    size_t room = batch_head_size(0, 0, a->message.size);
    a->slab = slice_new(room + body.bytes, &a->slab_data);
    a->body_size = body.bytes;
    for (uint32_t i = 0; i < body.count; i++) {
        if (body.items[i].size) memcpy(a->slab_data + room, body.items[i].data, body.items[i].size);
        room += body.items[i].size;
    }
    slices_deinit(&body);
}

static inline void append_start(struct world *w, struct append_call *c) {
    c->done = (struct signal)SIGNAL_INIT;
    c->append.shard = w->front;
    c->append.on_done = append_done;
    node_append(w->node, &c->append);
}

static inline enum mink_code append_wait(struct append_call *c, struct error *e) {
    signal_await(&c->done, 1);
    error_copy(e, &c->append.error);
    return c->append.code;
}

static inline enum mink_code append_rows(struct world *w, struct node_table *t, int64_t first, int64_t count, struct append_call *c, struct error *e) {
    *c = (struct append_call){.append = {.table = t, .bucket = -1, .create_partition = true}};
    make_rows(t, first, count, &c->append.batch);
    make_slab(&c->append);
    append_start(w, c);
    return append_wait(c, e);
}

// ---- scan

struct next_call { struct node_scan_next next; struct signal done; };
static inline void next_done(struct node_scan_next *x) { signal_raise(&container_of(x, struct next_call, next)->done); }
struct scan_call { struct world *w; struct node_scan *scan; struct next_call *call; enum mink_code code; struct error error; struct node_scan_config config; };

// A scan's calls belong to its shard.
static inline void run_scan_open(void *ctx) {
    struct scan_call *c = ctx;
    c->code = node_scan_open(c->w->node, &c->config, &c->scan, &c->error);
}
static inline void run_scan_next(void *ctx) {
    struct scan_call *c = ctx;
    node_scan_next(c->scan, &c->call->next);
}
static inline void run_scan_close(void *ctx) { node_scan_close(ctx); }

static inline enum mink_code scan_open(struct world *w, struct node_scan_config config, struct node_scan **out, struct error *e) {
    struct scan_call c = {.w = w, .config = config};
    static const struct scan_request everything = {.all_columns = true};
    c.config.shard = w->front;
    if (c.config.request == NULL) c.config.request = &everything;
    shard_call_wait(w->front, run_scan_open, &c);
    *out = c.scan;
    error_copy(e, &c.error);
    return c.code;
}

static inline void scan_start(struct world *w, struct node_scan *s, struct next_call *call) {
    struct scan_call c = {.w = w, .scan = s, .call = call};
    *call = (struct next_call){.next = {.on_done = next_done}, .done = SIGNAL_INIT};
    shard_call_wait(w->front, run_scan_next, &c);
}

static inline enum mink_code scan_next(struct world *w, struct node_scan *s, struct next_call *call, struct error *e) {
    scan_start(w, s, call);
    signal_await(&call->done, 1);
    error_copy(e, &call->next.error);
    return call->next.code;
}

static inline void scan_close(struct world *w, struct node_scan *s) { shard_call_wait(w->front, run_scan_close, s); }

// Adds the first column's numbers of a step to ids.
static inline void collect(struct node_scan *s, struct node_scan_next *x, int64_t *ids, uint32_t *count, uint32_t max) {
    for (uint32_t i = 0; i < x->message_count; i++) {
        struct arrow_batch b;
        struct ipc_decoder *d = ipc_decoder_new(node_scan_schema(s), 1 << 30);
        struct slice body = slices_join(&x->messages[i].body);
        assert_fine(ipc_decoder_batch(d, x->messages[i].message, body, &b, NULL, &why));
        for (int64_t row = 0; row < b.row_count; row++) {
            assert_true(*count < max);
            ids[(*count)++] = ((const int64_t *)b.columns[0].buffers[1].data)[row];
        }
        arrow_batch_deinit(&b);
        slice_unref(&body);
        ipc_decoder_free(d);
    }
    scan_messages_free(x->messages, x->message_count);
}

static inline uint32_t scan_all(struct world *w, struct node_scan_config config, int64_t *ids, uint32_t max) {
    struct node_scan *s;
    struct next_call call;
    uint32_t count = 0;
    assert_fine(scan_open(w, config, &s, &why));
    for (;;) {
        assert_fine(scan_next(w, s, &call, &why));
        if (call.next.end) break;
        collect(s, &call.next, ids, &count, max);
    }
    scan_close(w, s);
    return count;
}

static inline int compare_ids(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static inline struct node_scan_config whole(struct node_table *t) { return (struct node_scan_config){.table = t, .bucket = -1, .limit = -1}; }

// ---- offsets

struct offsets_call { struct node_offsets offsets; struct signal done; };
static inline void offsets_done(struct node_offsets *o) { signal_raise(&container_of(o, struct offsets_call, offsets)->done); }
static inline enum mink_code find_offset(struct world *w, struct node_table *t, const char *partition, int32_t bucket, enum node_from at, int64_t value, uint64_t *out, struct error *e) {
    struct offsets_call c = {.offsets = {.shard = w->front, .on_done = offsets_done, .table = t, .partition = partition, .bucket = bucket, .at = at, .at_value = value}, .done = SIGNAL_INIT};
    node_offsets(w->node, &c.offsets);
    signal_await(&c.done, 1);
    *out = c.offsets.offset;
    error_copy(e, &c.offsets.error);
    return c.offsets.code;
}

#endif
