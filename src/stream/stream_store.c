// SPDX-License-Identifier: Apache-2.0
// The store's life: birth, streams by id, opening streams, the end.
//
// Birth  cluster.json read or created → the store proves create-if-absent → incarnation registered → window 0 acknowledged → ready.
// End    fatal: everything is refused, waiters get an unknown outcome, no request is begun any more; whoever comes next seals this incarnation.
//        graceful: windows drain → commit → own seal → DeclareDead, SealIncarnation.
#include "stream/stream_internal.h"

#include "base/crc32c.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PROBE_RACERS 4
#define PROBE_ROUNDS 2

uint64_t store_now(struct stream_store *s) { return shard_now_ns(s->shard); }
uint64_t stream_store_incarnation(struct stream_store *s) { return s->incarnation; }

void store_content_id(struct stream_store *s, uint8_t out[16]) { random_bytes(shard_random(s->shard), out, 16); }

void store_header(struct stream_store *s, struct object_header *h, enum object_kind kind, uint64_t subject, uint64_t seq, const uint8_t content_id[16]) {
    *h = (struct object_header){.kind = kind, .creator = s->incarnation, .subject = subject, .seq = seq, .created_ms = shard_wall_ms(s->shard), .acked_end = s->acked_end + MUTANT(ACKED_END_OFF_BY_ONE), .wal_committed = s->wal_committed};
    memcpy(h->cluster_id, s->cluster_id, 16);
    memcpy(h->content_id, content_id, 16);
}

// ---- entering the shard

void store_enter(struct stream_store *s, void (*run)(struct task *task), void *what) {
    struct call *c = mem_new(struct call);
    c->store = s;
    c->what = what;
    c->task.run = run;
    shard_post(s->shard, &c->task);
}

// ---- streams by id: open addressing, never removed from

struct live *store_find(struct stream_store *s, uint64_t id) {
    for (uint32_t i = (uint32_t)hash_u64(id); s->map_capacity; i++) {
        struct live *l = s->map[i & (s->map_capacity - 1)];
        if (!l || l->id == id) return l;
    }
    return NULL;
}

static void map_put(struct live **map, uint32_t capacity, struct live *l) {
    uint32_t i = (uint32_t)hash_u64(l->id);
    while (map[i & (capacity - 1)]) i++;
    map[i & (capacity - 1)] = l;
}

static void map_add(struct stream_store *s, struct live *l) {
    pthread_rwlock_wrlock(&s->map_lock);
    if ((s->map_count + 1) * 4 > s->map_capacity * 3) {
        uint32_t capacity = s->map_capacity ? s->map_capacity * 2 : 64;
        struct live **map = mem_new_array(struct live *, capacity);
        for (uint32_t i = 0; i < s->map_capacity; i++)
            if (s->map[i]) map_put(map, capacity, s->map[i]);
        mem_free(s->map);
        s->map = map;
        s->map_capacity = capacity;
    }
    map_put(s->map, s->map_capacity, l);
    s->map_count++;
    pthread_rwlock_unlock(&s->map_lock);
}

struct live *store_live(struct stream_store *s, uint64_t id) {
    struct live *l = store_find(s, id);
    struct catalog_stream known;
    if (l && (l->epoch || l->ring_count)) return l;
    if (!catalog_find_stream(s->catalog, id, &known)) return l;
    if (!l) {
        l = mem_new(struct live);
        l->id = id;
        map_add(s, l);
    }
    // Not open here: the committed end is all there is.
    if (known.end > l->committed_end || l->next == 0) {
        l->committed_end = l->next = known.end;
        atomic_store_explicit(&l->high_watermark, known.end, memory_order_release);
    }
    catalog_stream_deinit(&known);
    return l;
}

struct stream_extent stream_extent(struct stream_store *s, uint64_t stream_id) {
    struct stream_extent out = {0};
    struct catalog_stream known;
    if (!catalog_find_stream(s->catalog, stream_id, &known)) return out;
    out = (struct stream_extent){.found = true, .start = known.start, .high_watermark = known.end};
    catalog_stream_deinit(&known);
    pthread_rwlock_rdlock(&s->map_lock);
    struct live *l = store_find(s, stream_id);
    uint64_t high_watermark = l ? atomic_load_explicit(&l->high_watermark, memory_order_acquire) : 0;
    pthread_rwlock_unlock(&s->map_lock);
    if (high_watermark > out.high_watermark) out.high_watermark = high_watermark;
    return out;
}

// ---- opening streams

struct opening { struct stream_store *store; struct stream_open *open; struct meta_proposal proposal; };

static void run_opened(struct task *task) {
    struct stream_open *o = container_of(task, struct stream_open, task);
    o->on_done(o);
}

static void on_opened(struct meta_proposal *p) {
    struct opening *opening = container_of(p, struct opening, proposal);
    struct stream_store *s = opening->store;
    struct stream_open *o = opening->open;
    o->code = p->result.code;
    o->error = p->result.error;
    if (o->code == MINK_OK && s->ended) {
        o->error = s->end_reason;
        o->code = s->end_reason.code;
    }
    for (uint32_t i = 0; i < o->count && o->code == MINK_OK; i++) {
        struct stream_opened *opened = &o->streams[i];
        struct catalog_stream known;
        opened->epoch = i < p->result.epoch_count ? p->result.epochs[i] : 0;
        if (!opened->epoch || !catalog_find_stream(s->catalog, opened->stream_id, &known)) {
            opened->epoch = 0;
            continue;
        }
        struct live *l = store_live(s, opened->stream_id);
        if (l->epoch != opened->epoch) {
            l->epoch = opened->epoch;
            l->committed_end = l->next = known.end;
            atomic_store_explicit(&l->high_watermark, known.end, memory_order_release);
        }
        opened->start = known.start;
        opened->end = l->next;
        opened->attachment = known.attachment; // the reference moves
        opened->attachment_end = known.attachment_end;
    }
    mem_free(opening);
    store_busy(s, -1);
    o->task.run = run_opened;
    shard_post(o->shard, &o->task);
}

static void run_open(struct task *task) {
    struct stream_store *s;
    struct stream_open *o = store_entered(task, &s);
    mem_free(container_of(task, struct call, task));
    if (s->ended || s->closing || !s->open) {
        if (s->ended) o->error = s->end_reason;
        else error_set(&o->error, MINK_UNAVAILABLE, "NODE_DRAINING", "the node is shutting down");
        o->code = o->error.code;
        o->task.run = run_opened;
        shard_post(o->shard, &o->task);
        return;
    }
    struct opening *opening = mem_new(struct opening);
    uint64_t *ids = mem_new_array(uint64_t, o->count + 1);
    for (uint32_t i = 0; i < o->count; i++) ids[i] = o->streams[i].stream_id;
    opening->store = s;
    opening->open = o;
    store_busy(s, 1);
    meta_propose(s->meta, &opening->proposal, s->shard, command_open_streams(s->incarnation, ids, o->count), on_opened);
    mem_free(ids);
}

void stream_open(struct stream_store *s, struct stream_open *o) { store_enter(s, run_open, o); }

// ---- watches

static void run_watched(struct task *task) {
    struct stream_watch *w = container_of(task, struct stream_watch, task);
    w->on_done(w);
}

static void run_watch(struct task *task) {
    struct stream_store *s;
    struct stream_watch *w = store_entered(task, &s);
    mem_free(container_of(task, struct call, task));
    struct live *l = s->ended ? NULL : store_live(s, w->stream_id);
    w->next = w->prev = NULL;
    uint64_t high_watermark = l ? atomic_load_explicit(&l->high_watermark, memory_order_relaxed) : 0;
    if (l && high_watermark <= w->offset) {
        w->next = l->watches;
        if (w->next) w->next->prev = w;
        l->watches = w;
        return;
    }
    w->code = l ? MINK_OK : s->ended ? MINK_UNAVAILABLE : MINK_NOT_FOUND;
    w->high_watermark = high_watermark;
    w->task.run = run_watched;
    shard_post(w->shard, &w->task);
}

void stream_watch(struct stream_store *s, struct stream_watch *w) { store_enter(s, run_watch, w); }

static void run_watch_cancel(struct task *task) {
    struct stream_store *s;
    struct stream_watch *w = store_entered(task, &s);
    mem_free(container_of(task, struct call, task));
    struct live *l = store_find(s, w->stream_id);
    struct stream_watch *at = l ? l->watches : NULL;
    while (at && at != w) at = at->next;
    if (!at) return; // its completion is on the way
    if (w->prev) w->prev->next = w->next;
    else l->watches = w->next;
    if (w->next) w->next->prev = w->prev;
    w->code = MINK_CANCELLED;
    w->task.run = run_watched;
    shard_post(w->shard, &w->task);
}

void stream_watch_cancel(struct stream_store *s, struct stream_watch *w) { store_enter(s, run_watch_cancel, w); }

// ---- the end

static void free_store(struct stream_store *s);

static void finish_close(struct stream_store *s) {
    void (*on_closed)(void *) = s->on_closed;
    void *ctx = s->closed_ctx;
    free_store(s);
    on_closed(ctx);
}

void store_busy(struct stream_store *s, int delta) {
    s->busy = (uint32_t)((int)s->busy + delta);
}

static void fail_watches(struct stream_store *s) {
    for (uint32_t i = 0; i < s->map_capacity; i++)
        if (s->map[i]) live_wake(s, s->map[i]);
}

void store_end(struct stream_store *s, const struct error *why) {
    if (s->ended) return;
    s->ended = true;
    s->end_reason = *why;
    if (!s->closing) log_error("stream.end", "incarnation=%" PRIu64 " reason=%s message=\"%s\"", s->incarnation, why->reason, why->message);
    if (MUTANT(APPEND_AFTER_END)) s->ended = false;
    windows_end(s);
    commit_end(s, why);
    fail_watches(s);
    if (s->on_ready) {
        void (*on_ready)(void *, enum mink_code, const struct error *) = s->on_ready;
        s->on_ready = NULL;
        on_ready(s->ready_ctx, why->code, why);
    } else if (!s->closing && s->config.on_fatal) {
        s->config.on_fatal(s->config.ctx, why);
    }
}

// Graceful close, a step at a time, each when the one before has ended.
enum closing_step { CLOSE_DRAIN, CLOSE_COMMIT, CLOSE_SEAL, CLOSE_DEAD, CLOSE_SEALED, CLOSE_WAIT };
struct closing { struct stream_store *store; enum closing_step step; struct timer poll; struct upload seal; struct stream_job job; struct meta_proposal proposal; bool waiting; };

static void close_step(struct closing *c);

static void on_close_poll(struct timer *t) { close_step(container_of(t, struct closing, poll)); }

static void on_close_commit(struct stream_job *j) {
    struct closing *c = container_of(j, struct closing, job);
    c->waiting = false;
    c->step = j->code == MINK_OK ? CLOSE_SEAL : CLOSE_WAIT;
    close_step(c);
}

static void on_seal_settled(struct upload *u) {
    struct closing *c = container_of(u, struct closing, seal);
    c->step = u->result == UPLOAD_CREATED ? CLOSE_DEAD : CLOSE_WAIT;
}

static void on_seal_idle(struct upload *u) {
    struct closing *c = container_of(u, struct closing, seal);
    c->waiting = false;
    close_step(c);
}

static void on_close_proposed(struct meta_proposal *p) {
    struct closing *c = container_of(p, struct closing, proposal);
    c->waiting = false;
    c->step = p->result.code != MINK_OK ? CLOSE_WAIT : c->step + 1;
    close_step(c);
}

static void put_own_seal(struct closing *c) {
    struct stream_store *s = c->store;
    struct object_header header;
    struct object_writer out;
    store_content_id(s, c->seal.content_id);
    store_header(s, &header, OBJECT_KIND_SEAL, s->incarnation, s->next_seq, c->seal.content_id);
    object_writer_begin(&out, &header);
    object_writer_finish(&out);
    c->seal.store = s;
    c->seal.priority = OBJECT_WAL_PUT;
    c->seal.crc32c = out.crc32c;
    c->seal.body = out.body;
    object_key_wal(s->incarnation, s->next_seq, c->seal.key, sizeof c->seal.key);
    c->seal.on_settled = on_seal_settled;
    c->seal.on_idle = on_seal_idle;
    upload_start(&c->seal);
}

static void close_step(struct closing *c) {
    struct stream_store *s = c->store;
    if (c->waiting) return;
    if (s->ended || s->abrupt) c->step = CLOSE_WAIT;
    switch (c->step) {
    case CLOSE_DRAIN:
        if (s->current) windows_try_close(s);
        if (s->current || s->queue_count) { // the next look is cheap, and this ends by itself
            timer_start(&c->poll, NS_PER_MS);
            return;
        }
        c->step = CLOSE_COMMIT;
        close_step(c);
        return;
    case CLOSE_COMMIT:
        c->waiting = true;
        c->job = (struct stream_job){.shard = s->shard, .on_done = on_close_commit};
        stream_commit_now(s, &c->job);
        return;
    case CLOSE_SEAL:
        if (s->acked_end != s->wal_committed) { // acknowledged meanwhile
            c->step = CLOSE_COMMIT;
            close_step(c);
            return;
        }
        c->waiting = true;
        put_own_seal(c);
        return;
    case CLOSE_DEAD:
        c->waiting = true;
        meta_propose(s->meta, &c->proposal, s->shard, command_declare_dead(s->incarnation), on_close_proposed);
        return;
    case CLOSE_SEALED:
        c->waiting = true;
        meta_propose(s->meta, &c->proposal, s->shard, command_seal_incarnation(s->incarnation, s->wal_committed, s->next_seq, NULL, 0), on_close_proposed);
        return;
    case CLOSE_WAIT:
        if (!s->ended) { // whatever waits still learns that it is over
            struct error e;
            error_set(&e, MINK_UNAVAILABLE, "NODE_CLOSED", "the node has shut down");
            store_end(s, &e);
        }
        if (s->busy) {
            timer_start(&c->poll, NS_PER_MS);
            return;
        }
        mem_free(c);
        finish_close(s);
        return;
    }
}

static void run_close(struct task *task) {
    struct stream_store *s;
    struct closing *c = store_entered(task, &s);
    mem_free(container_of(task, struct call, task));
    s->closing = true;
    timer_init(&c->poll, s->shard, on_close_poll);
    c->store = s;
    close_step(c);
}

void stream_store_close(struct stream_store *s, bool abrupt, void (*on_closed)(void *ctx), void *ctx) {
    s->on_closed = on_closed;
    s->closed_ctx = ctx;
    s->abrupt = abrupt;
    store_enter(s, run_close, mem_new(struct closing));
}

static void free_store(struct stream_store *s) {
    for (uint32_t i = 0; i < s->map_capacity; i++) {
        struct live *l = s->map[i];
        if (!l) continue;
        for (uint32_t k = 0; k < l->ring_count; k++) entry_free(s, live_entry(l, k));
        mem_free(l->ring);
        mem_free(l);
    }
    while (s->released_first) {
        struct released *r = s->released_first;
        s->released_first = r->next;
        mem_free(r->kept);
        mem_free(r);
    }
    timer_stop(&s->linger);
    timer_stop(&s->commit_timer);
    timer_stop(&s->delete_timer);
    block_cache_free(s->blocks);
    mem_free(s->pending);
    mem_free(s->marked);
    mem_free(s->map);
    mem_free((char *)s->config.address);
    mem_free((char *)s->config.rack);
    pthread_rwlock_destroy(&s->map_lock);
    mem_free(s);
}

// ---- birth

struct birth {
    struct stream_store *store;
    struct object_request request;
    struct object_request racers[PROBE_RACERS];
    uint32_t racing, created, round;
    char keys[PROBE_ROUNDS][64];
    const char *key_list[PROBE_ROUNDS];
    uint8_t nonce[16];
    uint8_t winner;
    struct error error;
    bool failed;
    uint32_t tries;
    struct timer retry;
    void (*again)(struct birth *b);
};

static void birth_fail(struct birth *b, const struct error *why) {
    struct stream_store *s = b->store;
    struct error e = *why; // it may lie in b
    timer_stop(&b->retry);
    s->birth = NULL;
    mem_free(b);
    store_busy(s, -1);
    store_end(s, &e);
}

static void on_birth_retry(struct timer *t) {
    struct birth *b = container_of(t, struct birth, retry);
    b->again(b);
}

// A store that answers badly at first may only be slow to come up; a refusal is final.
static void birth_retry(struct birth *b, const struct error *e, void (*again)(struct birth *b)) {
    bool passing = e->code == MINK_UNAVAILABLE || e->code == MINK_OVERLOADED || e->code == MINK_UNKNOWN_OUTCOME || e->code == MINK_CONFLICT || e->code == MINK_DEADLINE;
    if (!passing || strcmp(e->reason, "STORE_FULL") == 0 || ++b->tries > 20) {
        birth_fail(b, e);
        return;
    }
    b->again = again;
    timer_start(&b->retry, 50 * NS_PER_MS + random_below(shard_random(b->store->shard), 200 * NS_PER_MS));
}

static void read_cluster(struct birth *b);
static void create_cluster(struct birth *b);
static void probe_round(struct birth *b);
static void register_self(struct birth *b);

// {"cluster":"<32 hex digits>","format":1,"created_ms":…,"crc32c":"<8 hex digits, of all before this field>"}
// Whoever believed a damaged id would write objects that nobody after him takes for this cluster's.
static enum mink_code parse_cluster(struct stream_store *s, struct slice text, struct error *e) {
    static const char field[] = ",\"crc32c\":\"";
    struct json *j = NULL;
    const char *id = NULL, *check = memmem(text.data, text.size, field, sizeof field - 1);
    int64_t format = 0;
    size_t size = check ? (size_t)(check - (const char *)text.data) : 0;
    char expected[9];
    snprintf(expected, sizeof expected, "%08x", crc32c(text.data, size));
    bool whole = check && text.size >= size + sizeof field - 1 + 8 && memcmp(check + sizeof field - 1, expected, 8) == 0;
    enum mink_code code = whole ? json_parse(text.data, text.size, &j, e) : error_set(e, MINK_CORRUPT, "BAD_CLUSTER", "cluster.json: wrong checksum");
    if (code == MINK_OK) code = json_field_string(j, "cluster.json", "cluster", true, &id, e);
    if (code == MINK_OK) code = json_field_int(j, "cluster.json", "format", true, 1, 1000000, &format, e);
    if (code == MINK_OK && format != 1) code = error_set(e, MINK_UNSUPPORTED, "NEWER_FORMAT", "the store has format %lld; this version of Mink knows format 1", (long long)format);
    if (code == MINK_OK && (strlen(id) != 32 || strspn(id, "0123456789abcdef") != 32)) code = error_set(e, MINK_CORRUPT, "BAD_CLUSTER", "cluster.json: the cluster id is malformed");
    for (int i = 0; code == MINK_OK && i < 16; i++) {
        unsigned byte;
        if (sscanf(id + 2 * i, "%2x", &byte) == 1) s->cluster_id[i] = (uint8_t)byte;
    }
    json_free(j);
    return code;
}

static void on_cluster_read(struct object_request *r) {
    struct birth *b = container_of(r, struct birth, request);
    struct error e;
    if (r->code == MINK_NOT_FOUND) {
        create_cluster(b);
    } else if (r->code != MINK_OK) {
        birth_retry(b, &r->error, read_cluster);
    } else {
        enum mink_code code = parse_cluster(b->store, r->data, &e);
        slice_unref(&r->data);
        if (code == MINK_CORRUPT && b->tries++ < 3) read_cluster(b); // the wire may have done it
        else if (code != MINK_OK) birth_fail(b, &e);
        else probe_round(b);
    }
}

static void read_cluster(struct birth *b) { object_get(b->store->objects, &b->request, b->store->shard, "cluster.json", 0, 0, OBJECT_LIVE_READ, on_cluster_read); }

static void on_cluster_created(struct object_request *r) {
    struct birth *b = container_of(r, struct birth, request);
    if (r->code == MINK_OK || r->code == MINK_EXISTS) read_cluster(b); // what is there counts
    else birth_retry(b, &r->error, read_cluster);
}

static void create_cluster(struct birth *b) {
    uint8_t id[16];
    struct buffer text;
    struct slices body = {0};
    random_bytes(shard_random(b->store->shard), id, sizeof id);
    buffer_init(&text, 1024);
    buffer_put_string(&text, "{\"cluster\":\"");
    for (int i = 0; i < 16; i++) buffer_printf(&text, "%02x", id[i]);
    buffer_printf(&text, "\",\"format\":1,\"created_ms\":%lld", (long long)shard_wall_ms(b->store->shard));
    buffer_printf(&text, ",\"crc32c\":\"%08x\"}\n", crc32c(text.data, text.size));
    slices_take(&body, buffer_take_slice(&text));
    object_put(b->store->objects, &b->request, b->store->shard, "cluster.json", &body, crc32c_slices(0, &body), true, OBJECT_WAL_PUT, on_cluster_created);
    slices_deinit(&body);
}

// The probe: several creates of one key at once; exactly one may win, and everybody must then read the winner's bytes.

static void probe_failed(struct birth *b, const char *what) {
    struct error e;
    error_set(&e, MINK_UNSUPPORTED, "STORE_WITHOUT_CONDITIONAL_CREATE", "store %s: %s", b->store->objects->name, what);
    error_hint(&e, "Mink needs a store whose create-if-absent (If-None-Match: *) is atomic: two nodes must never both create one key");
    birth_fail(b, &e);
}

static void on_probe_removed(struct object_request *r) {
    struct birth *b = container_of(r, struct birth, request);
    if (r->code != MINK_OK) log_warn("store.probe", "message=\"probe objects stay behind: %s\"", r->error.message);
    register_self(b);
}

static void on_probe_read(struct object_request *r) {
    struct birth *b = container_of(r, struct birth, request);
    if (r->code == MINK_NOT_FOUND) {
        probe_failed(b, "a created object cannot be read at once");
        return;
    }
    if (r->code != MINK_OK) {
        birth_retry(b, &r->error, probe_round);
        return;
    }
    bool right = r->data.size == 1 && r->data.data[0] == b->winner;
    slice_unref(&r->data);
    if (!right) probe_failed(b, "a create-if-absent that lost has overwritten the winner");
    else if (++b->round < PROBE_ROUNDS) probe_round(b);
    else object_remove(b->store->objects, &b->request, b->store->shard, b->key_list, PROBE_ROUNDS, on_probe_removed);
}

static void on_raced(struct object_request *r) {
    size_t index = 0;
    struct birth *b = (struct birth *)r->keys; // puts use no keys: the slot carries the birth
    while (&b->racers[index] != r) index++;
    b->racing--;
    if (r->code == MINK_OK) {
        b->created++;
        b->winner = (uint8_t)index;
    } else if (r->code != MINK_EXISTS) {
        b->failed = true;
        b->error = r->error;
    }
    if (b->racing) return;
    if (b->failed) birth_retry(b, &b->error, probe_round);
    else if (b->created != 1) probe_failed(b, b->created ? "several creates of one absent key succeeded" : "no create of an absent key succeeded");
    else object_get(b->store->objects, &b->request, b->store->shard, b->keys[b->round], 0, 0, OBJECT_WAL_PUT, on_probe_read);
}

static void probe_round(struct birth *b) {
    struct stream_store *s = b->store;
    b->racing = PROBE_RACERS;
    b->created = 0;
    b->failed = false;
    // A fresh key also for a repetition: an attempt whose reply was lost may still win the old one.
    snprintf(b->keys[b->round], sizeof b->keys[b->round], "probe/%016" PRIx64, random_u64(shard_random(s->shard)));
    b->key_list[b->round] = b->keys[b->round];
    for (uint32_t i = 0; i < PROBE_RACERS; i++) {
        uint8_t byte = (uint8_t)i;
        struct slices body = {0};
        slices_take(&body, slice_copy(&byte, 1));
        object_put(s->objects, &b->racers[i], s->shard, b->keys[b->round], &body, crc32c_slices(0, &body), true, OBJECT_WAL_PUT, on_raced);
        b->racers[i].keys = (const char *const *)b;
        slices_deinit(&body);
    }
}

static void on_registered(struct meta_proposal *p) {
    struct stream_store *s = container_of(p, struct stream_store, proposal);
    struct birth *b = s->birth;
    if (p->result.code != MINK_OK) {
        struct error e = p->result.error;
        birth_fail(b, &e);
        return;
    }
    s->incarnation = p->result.id;
    timer_stop(&b->retry);
    s->birth = NULL;
    mem_free(b);
    store_busy(s, -1);
    log_info("stream.birth", "incarnation=%" PRIu64 " store=\"%s\"", s->incarnation, s->objects->name);
    // Window 0 proves that this incarnation is new: a metadata database restored to an older point would hand out a used number, and
    // the create would find the other's object.
    s->open = true;
    windows_first(s);
}

static void register_self(struct birth *b) {
    struct stream_store *s = b->store;
    random_bytes(shard_random(s->shard), b->nonce, sizeof b->nonce);
    meta_propose(s->meta, &s->proposal, s->shard, command_register_incarnation(b->nonce, s->config.address, s->config.rack), on_registered);
}

static void run_birth(struct task *task) {
    struct stream_store *s;
    struct birth *b = store_entered(task, &s);
    mem_free(container_of(task, struct call, task));
    timer_init(&s->linger, s->shard, windows_on_timer);
    timer_init(&s->commit_timer, s->shard, commit_on_timer);
    timer_init(&s->delete_timer, s->shard, delete_on_timer);
    timer_init(&b->retry, s->shard, on_birth_retry);
    s->tokens_at_ns = store_now(s);
    s->tokens = 30;
    store_busy(s, 1);
    read_cluster(b);
}

#define DEFAULT(field, value) \
    if (!s->config.field) s->config.field = (value)

void stream_store_open(const struct stream_config *config, struct stream_store **out, void (*on_ready)(void *ctx, enum mink_code code, const struct error *e), void *ctx) {
    struct stream_store *s = mem_new(struct stream_store);
    s->config = *config;
    s->config.address = mem_strdup(config->address ? config->address : "");
    s->config.rack = mem_strdup(config->rack ? config->rack : "");
    DEFAULT(wal_object_size, 4u << 20);
    DEFAULT(linger_floor_us, 2000);
    DEFAULT(put_rate, 30);
    DEFAULT(puts_in_flight, 32);
    DEFAULT(append_bytes_max, 256ull << 20);
    DEFAULT(tail_cache_bytes, 512ull << 20);
    DEFAULT(block_cache_bytes, 1ull << 30);
    DEFAULT(index_cache_bytes, 128ull << 20);
    DEFAULT(commit_bytes, 256ull << 20);
    DEFAULT(commit_windows, 500);
    DEFAULT(commit_entries_max, 100000);
    DEFAULT(commit_age_ms, 300000);
    DEFAULT(append_give_up_ms, 60000);
    DEFAULT(delete_grace_ms, 600000);
    s->shard = config->shard;
    s->objects = config->objects;
    s->meta = config->meta;
    s->catalog = meta_catalog(config->meta);
    s->on_ready = on_ready;
    s->ready_ctx = ctx;
    s->queue_last = &s->queue_first;
    s->cached_last = &s->cached_first;
    s->released_last = &s->released_first;
    s->puts_allowed = s->config.puts_in_flight;
    s->next_object_number = 1;
    s->blocks = block_cache_new(s->config.block_cache_bytes, s->config.index_cache_bytes);
    pthread_rwlock_init(&s->map_lock, NULL);
    struct birth *b = mem_new(struct birth);
    b->store = s;
    s->birth = b;
    *out = s;
    store_enter(s, run_birth, b);
}
