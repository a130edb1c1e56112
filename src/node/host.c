// SPDX-License-Identifier: Apache-2.0
// A shard and the buckets that live on it.
//
//   host_append → (unknown) to_open → pump at the end of the turn → stream_open, one command for all → bucket_open each → waiting parts in order
//               → (open) bucket_append → part_done
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "node/node_internal.h"

#include <inttypes.h>

static struct metric_gauge open_buckets = METRIC_GAUGE("mink_buckets_open", "Buckets open for appending on this node");
static struct metric_counter bucket_opens = METRIC_COUNTER("mink_bucket_opens_total", "Buckets opened for appending");

struct hosted {
    uint64_t stream_id, table_id;
    uint32_t index;
    bool dropped;          // out of the map: closes when it is ready
    struct host *host;
    struct bucket *bucket; // NULL until it is open
    struct table_def *def; // until it is open
    struct hosted *next, *previous, *next_to_open;
    struct part *waiting, **waiting_last;
};

// ---- the map

static uint32_t slot_of(const struct host *h, uint64_t stream_id) { return (uint32_t)((stream_id * 0x9e3779b97f4a7c15ull) >> 32) & (h->capacity - 1); }

static struct hosted *find(const struct host *h, uint64_t stream_id) {
    if (h->capacity == 0) return NULL;
    for (uint32_t i = slot_of(h, stream_id);; i = (i + 1) & (h->capacity - 1)) {
        if (h->slots[i] == NULL || h->slots[i]->stream_id == stream_id) return h->slots[i];
    }
}

static void put(struct host *h, struct hosted *b) {
    uint32_t i = slot_of(h, b->stream_id);
    while (h->slots[i]) i = (i + 1) & (h->capacity - 1);
    h->slots[i] = b;
}

static void map_add(struct host *h, struct hosted *b) {
    pthread_mutex_lock(&h->lock);
    if ((h->count + 1) * 4 > h->capacity * 3) {
        struct hosted **old = h->slots;
        uint32_t old_capacity = h->capacity;
        h->capacity = old_capacity ? old_capacity * 2 : 16;
        h->slots = mem_new_array(struct hosted *, h->capacity);
        for (uint32_t i = 0; i < old_capacity; i++) {
            if (old[i]) put(h, old[i]);
        }
        mem_free(old);
    }
    put(h, b);
    h->count++;
    pthread_mutex_unlock(&h->lock);
    b->previous = h->last;
    if (h->last) h->last->next = b;
    else h->first = b;
    h->last = b;
}

static void map_remove(struct host *h, struct hosted *b) {
    pthread_mutex_lock(&h->lock);
    uint32_t mask = h->capacity - 1, hole = slot_of(h, b->stream_id);
    while (h->slots[hole] != b) hole = (hole + 1) & mask;
    // What probed over the hole moves into it, until a slot is empty.
    for (uint32_t i = (hole + 1) & mask; h->slots[i]; i = (i + 1) & mask) {
        uint32_t home = slot_of(h, h->slots[i]->stream_id);
        if (((i - home) & mask) < ((i - hole) & mask)) continue;
        h->slots[hole] = h->slots[i];
        hole = i;
    }
    h->slots[hole] = NULL;
    h->count--;
    pthread_mutex_unlock(&h->lock);
    if (b->previous) b->previous->next = b->next;
    else h->first = b->next;
    if (b->next) b->next->previous = b->previous;
    else h->last = b->previous;
}

static void run_pump(struct task *task);

void host_init(struct host *h, struct node *n, struct shard *shard) {
    *h = (struct host){.node = n, .shard = shard, .to_open_last = &h->to_open, .pump.run = run_pump};
    pthread_mutex_init(&h->lock, NULL);
}

void host_deinit(struct host *h) {
    mem_free(h->slots);
    pthread_mutex_destroy(&h->lock);
}

// ---- opening

struct open_request {
    struct stream_open open;
    struct host *host;
    struct hosted *list;
};

static void fail_part(struct part *p, enum mink_code code, const struct error *e) {
    batch_draft_deinit(&p->append.draft);
    p->append.code = code;
    error_copy(&p->append.error, e);
    part_done(p);
}

// The bucket could not be opened: what waits is told, and the next append tries again.
static void give_up(struct hosted *b, enum mink_code code, const struct error *e) {
    struct part *waiting = b->waiting;
    if (!b->dropped) map_remove(b->host, b);
    table_def_unref(b->def);
    struct node *n = b->host->node;
    mem_free(b);
    while (waiting) {
        struct part *p = waiting;
        waiting = p->next;
        fail_part(p, code, e);
    }
    node_leave(n);
}

static void on_part_appended(struct bucket_append *a) { part_done(container_of(a, struct part, append)); }

static void append_to(struct hosted *b, struct part *p) {
    p->append.on_done = on_part_appended;
    bucket_append(b->bucket, &p->append);
}

static void on_dropped_closed(void *ctx) {
    struct hosted *b = ctx;
    struct node *n = b->host->node;
    mem_free(b);
    metric_move(&open_buckets, -1);
    node_leave(n);
}

static void on_bucket_ready(void *ctx, enum mink_code code, const struct error *e) {
    struct hosted *b = ctx;
    struct host *h = b->host;
    if (code != MINK_OK) {
        log_warn("bucket.open_failed", "stream=%" PRIu64 " message=\"%s\"", b->stream_id, e->message);
        give_up(b, code, e);
        return;
    }
    metric_move(&open_buckets, 1);
    metric_add(&bucket_opens, 1);
    // From here on commits may ask for its attachment.
    struct table_def *def = b->def;
    pthread_mutex_lock(&h->lock);
    b->def = NULL;
    pthread_mutex_unlock(&h->lock);
    table_def_unref(def);
    while (b->waiting) {
        struct part *p = b->waiting;
        b->waiting = p->next;
        append_to(b, p);
    }
    b->waiting_last = &b->waiting;
    if (b->dropped) bucket_close(b->bucket, on_dropped_closed, b);
    else node_leave(h->node);
}

static void refused(struct hosted *b) {
    struct catalog_stream s;
    struct error e;
    bool exists = catalog_find_stream(b->host->node->catalog, b->stream_id, &s);
    if (exists) catalog_stream_deinit(&s);
    enum mink_code code = exists ? error_set(&e, MINK_UNAVAILABLE, "NOT_LEADER", "another node has bucket %" PRIu32 " of %s.%s now", b->index, b->def->database, b->def->name)
                                 : error_set(&e, MINK_NOT_FOUND, "TABLE_NOT_FOUND", "bucket %" PRIu32 " of %s.%s was dropped", b->index, b->def->database, b->def->name);
    give_up(b, code, &e);
}

static void pump(struct host *h);

static void on_streams_opened(struct stream_open *o) {
    struct open_request *r = container_of(o, struct open_request, open);
    struct host *h = r->host;
    struct hosted *b = r->list;
    for (uint32_t i = 0; i < o->count; i++) {
        struct hosted *next = b->next_to_open;
        struct stream_opened *opened = &o->streams[i];
        if (o->code != MINK_OK) {
            give_up(b, o->code, &o->error);
        } else if (opened->epoch == 0) {
            refused(b);
        } else {
            struct bucket_config config = {.shard = h->shard, .streams = h->node->streams, .stream_id = b->stream_id, .def = b->def, .index = b->index};
            if (h->node->config.stream.append_bytes_max) config.append_bytes_max = h->node->config.stream.append_bytes_max / 4;
            bucket_open(&config, opened, &b->bucket, on_bucket_ready, b);
        }
        slice_unref(&opened->attachment);
        b = next;
    }
    mem_free(o->streams);
    mem_free(r);
    h->opening = false;
    pump(h);
}

static void pump(struct host *h) {
    struct hosted *list = h->to_open;
    if (h->opening || list == NULL) return;
    h->to_open = NULL;
    h->to_open_last = &h->to_open;
    if (h->stopped) {
        struct error e;
        error_set(&e, MINK_UNAVAILABLE, "NODE_DRAINING", "the node is closing");
        while (list) {
            struct hosted *b = list;
            list = b->next_to_open;
            give_up(b, e.code, &e);
        }
        return;
    }
    struct open_request *r = mem_new(struct open_request);
    *r = (struct open_request){.open = {.shard = h->shard, .on_done = on_streams_opened}, .host = h, .list = list};
    for (struct hosted *b = list; b; b = b->next_to_open) r->open.count++;
    r->open.streams = mem_new_array(struct stream_opened, r->open.count);
    uint32_t i = 0;
    for (struct hosted *b = list; b; b = b->next_to_open) r->open.streams[i++].stream_id = b->stream_id;
    h->opening = true;
    stream_open(h->node->streams, &r->open);
}

static void run_pump(struct task *task) {
    struct host *h = container_of(task, struct host, pump);
    h->pump_posted = false;
    pump(h);
}

static struct hosted *host_bucket(struct host *h, struct part *p) {
    struct hosted *b = mem_new(struct hosted);
    *b = (struct hosted){.stream_id = p->stream_id, .table_id = part_table_id(p), .index = p->bucket, .host = h, .def = table_def_ref(part_def(p)), .waiting_last = &b->waiting};
    map_add(h, b);
    *h->to_open_last = b;
    h->to_open_last = &b->next_to_open;
    atomic_fetch_add(&h->node->refs, 1); // until it is open; the part that asked keeps the node alive
    if (!h->pump_posted) {
        h->pump_posted = true;
        shard_post(h->shard, &h->pump);
    }
    return b;
}

void host_append(struct host *h, struct part *p) {
    if (h->stopped) {
        struct error e;
        fail_part(p, error_set(&e, MINK_UNAVAILABLE, "NODE_DRAINING", "the node is closing"), &e);
        return;
    }
    struct hosted *b = find(h, p->stream_id);
    if (b == NULL) b = host_bucket(h, p);
    if (b->bucket && b->def == NULL) {
        append_to(b, p);
        return;
    }
    p->next = NULL;
    *b->waiting_last = p;
    b->waiting_last = &p->next;
}

// ---- the others

void host_each(struct host *h, void (*visit)(struct hosted *b, void *ctx), void *ctx) {
    for (struct hosted *b = h->first, *next; b; b = next) {
        next = b->next;
        visit(b, ctx);
    }
}

struct slice host_attachment(struct host *h, uint64_t stream_id, uint64_t committed_end) {
    struct slice out = slice_empty();
    pthread_mutex_lock(&h->lock);
    struct hosted *b = find(h, stream_id);
    if (b && b->def == NULL) out = bucket_attachment(b->bucket, committed_end);
    pthread_mutex_unlock(&h->lock);
    return out;
}

static void close_if_dropped(struct hosted *b, void *ctx) {
    struct host *h = ctx;
    struct catalog_stream s;
    if (catalog_find_stream(h->node->catalog, b->stream_id, &s)) {
        catalog_stream_deinit(&s);
        return;
    }
    map_remove(h, b);
    b->dropped = true;
    if (b->def) return; // still opening: on_bucket_ready or give_up ends it
    atomic_fetch_add(&h->node->refs, 1);
    bucket_close(b->bucket, on_dropped_closed, b);
}

void host_close_dropped(struct host *h) { host_each(h, close_if_dropped, h); }

struct refresh { uint64_t table_id; struct table_def *def; };

static void refresh_one(struct hosted *b, void *ctx) {
    struct refresh *r = ctx;
    if (b->table_id != r->table_id) return;
    if (b->def == NULL) {
        bucket_set_def(b->bucket, r->def);
        return;
    }
    struct table_def *old = b->def;
    pthread_mutex_lock(&b->host->lock);
    b->def = table_def_ref(r->def);
    pthread_mutex_unlock(&b->host->lock);
    table_def_unref(old);
}

void host_refresh(struct host *h, uint64_t table_id, struct table_def *def) { host_each(h, refresh_one, &(struct refresh){table_id, def}); }

struct expiry { int64_t before_ms; uint32_t left; };

static void expire_one(struct hosted *b, void *ctx) {
    struct expiry *x = ctx;
    if (b->def) return;
    bucket_expire_writers(b->bucket, x->before_ms);
    x->left += bucket_writer_count(b->bucket);
}

uint32_t host_expire_writers(struct host *h, int64_t before_ms) {
    struct expiry x = {before_ms, 0};
    host_each(h, expire_one, &x);
    return x.left;
}

struct closing {
    uint32_t left;
    struct shard *shard;
    void (*on_closed)(void *ctx);
    void *ctx;
};

static void one_closed(void *ctx) {
    struct closing *c = ctx;
    if (--c->left) return;
    c->on_closed(c->ctx);
    mem_free(c);
}

void host_close_all(struct host *h, void (*on_closed)(void *ctx), void *ctx) {
    struct closing *c = mem_new(struct closing);
    *c = (struct closing){.left = 1, .shard = h->shard, .on_closed = on_closed, .ctx = ctx};
    while (h->first) {
        struct hosted *b = h->first;
        mink_assert(b->def == NULL); // one that opens keeps the node from getting here
        map_remove(h, b);
        c->left++;
        metric_move(&open_buckets, -1);
        bucket_close(b->bucket, one_closed, c);
        mem_free(b);
    }
    shard_post_call(h->shard, one_closed, c);
}
