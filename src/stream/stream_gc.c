// SPDX-License-Identifier: Apache-2.0
// What need not be kept: trim points, marked objects, orphans; and the offset for a time.
//
// Trim and time look at the indexes of committed objects only (commit_age bounds how long that may lag). Commit times of a stream ascend, so a
// time is found by bisection over its ranges. Deletion is two-phase: an object without ranges is marked by the command that took its last
// one; it is deleted when this process has seen the mark for the grace period, and then forgotten. The sweep deletes only what can never be
// referenced again, judged at a catalog position read after the listing: objects of dead creators that the catalog does not know, and WAL keys
// of sealed incarnations that it does not know, except the seal.
#include "stream/stream_internal.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/mutant.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DELETE_KEYS 500
#define SWEEP_PAGE 1000

static struct metric_counter deleted = METRIC_COUNTER("mink_objects_deleted_total", "objects deleted after their grace period");
static struct metric_counter orphans = METRIC_COUNTER("mink_orphans_deleted_total", "objects deleted that nothing can refer to");
static struct metric_counter trims = METRIC_COUNTER("mink_trims_total", "streams whose start moved");

// ---- trim

struct trimming {
    struct stream_store *store;
    struct stream_trim *asked;
    struct index_look look;
    struct catalog_range range;
    uint64_t start, end, at; // at: everything before may go
    uint64_t bytes_behind;   // size bound: bytes from `at` on, counted in a first pass
    bool counting;
    struct meta_proposal proposal;
};

static void trim_step(struct trimming *t);

static void run_trimmed(struct task *task) {
    struct stream_trim *asked = container_of(task, struct stream_trim, task);
    asked->on_done(asked);
}

static void trim_done(struct trimming *t, enum mink_code code, const struct error *e) {
    struct stream_store *s = t->store;
    struct stream_trim *asked = t->asked;
    asked->code = code;
    error_copy(&asked->error, e);
    asked->start = code == MINK_OK ? t->at : t->start;
    mem_free(t);
    store_busy(s, -1);
    asked->task.run = run_trimmed;
    shard_post(asked->shard, &asked->task);
}

static void on_trimmed(struct meta_proposal *p) {
    struct trimming *t = container_of(p, struct trimming, proposal);
    if (p->result.code == MINK_OK) metric_add(&trims, 1);
    trim_done(t, p->result.code, &p->result.error);
}

static void trim_apply(struct trimming *t) {
    if (t->at <= t->start) {
        trim_done(t, MINK_OK, NULL);
        return;
    }
    uint64_t start = MUTANT(TRIM_TOO_FAR) && t->at < t->end ? t->at + 1 : t->at;
    meta_propose(t->store->meta, &t->proposal, t->store->shard, command_trim_streams(&t->asked->stream_id, &start, 1), on_trimmed);
}

static void on_trim_index(struct index_look *l) {
    struct trimming *t = container_of(l, struct trimming, look);
    if (l->code != MINK_OK) {
        trim_done(t, l->code, &l->error);
        return;
    }
    for (uint32_t i = 0; i < l->block_count; i++) {
        const struct object_block *b = &l->blocks[i];
        if (b->offset_end <= t->range.from || b->offset_first >= t->range.to) continue;
        if (t->counting) {
            t->bytes_behind += b->payload_size;
            continue;
        }
        bool old = b->ts_max < t->asked->before_ms;
        bool beyond = t->asked->bytes_keep >= 0 && t->bytes_behind >= b->payload_size && t->bytes_behind - b->payload_size >= (uint64_t)t->asked->bytes_keep;
        if (!(old || beyond) || b->offset_end > t->asked->offset_max) {
            trim_apply(t);
            return;
        }
        t->bytes_behind -= t->bytes_behind >= b->payload_size ? b->payload_size : t->bytes_behind;
        t->at = b->offset_end;
    }
    if (t->counting) t->at = t->range.to;
    trim_step(t);
}

static void trim_step(struct trimming *t) {
    struct stream_store *s = t->store;
    if (s->ended) {
        trim_done(t, s->end_reason.code, &s->end_reason);
        return;
    }
    if (catalog_ranges(s->catalog, t->asked->stream_id, t->at, &t->range, 1) != 1) { // at the committed end
        if (!t->counting) {
            trim_apply(t);
            return;
        }
        t->counting = false;
        t->at = t->start;
        if (catalog_ranges(s->catalog, t->asked->stream_id, t->at, &t->range, 1) != 1) {
            trim_apply(t);
            return;
        }
    }
    t->look = (struct index_look){.id = t->range.object, .stream_id = t->asked->stream_id, .object_size = t->range.object_size, .index_size = t->range.index_size, .on_done = on_trim_index};
    index_look(s, &t->look);
}

static void run_trim(struct task *task) {
    struct stream_store *s;
    struct stream_trim *asked = store_entered(task, &s);
    mem_free(container_of(task, struct call, task));
    struct trimming *t = mem_new(struct trimming);
    struct catalog_stream known;
    struct error e;
    store_busy(s, 1);
    t->store = s;
    t->asked = asked;
    if (!catalog_find_stream(s->catalog, asked->stream_id, &known)) {
        trim_done(t, error_set(&e, MINK_NOT_FOUND, "NO_SUCH_STREAM", "the table or partition was dropped"), &e);
        return;
    }
    t->start = t->at = known.start;
    t->end = known.end;
    catalog_stream_deinit(&known);
    t->counting = asked->bytes_keep >= 0;
    trim_step(t);
}

void stream_trim(struct stream_store *s, struct stream_trim *t) { store_enter(s, run_trim, t); }

// ---- the offset for a time

struct seeking {
    struct stream_store *store;
    struct stream_seek *asked;
    struct index_look look;
    struct catalog_range *ranges;
    uint32_t count, low, high, mid;
    uint64_t committed_end;
};

static void seek_step(struct seeking *k);
static void seek_begin(struct seeking *k);

static void run_sought(struct task *task) {
    struct stream_seek *asked = container_of(task, struct stream_seek, task);
    asked->on_done(asked);
}

static void seek_done(struct seeking *k, enum mink_code code, const struct error *e, uint64_t offset) {
    struct stream_store *s = k->store;
    struct stream_seek *asked = k->asked;
    asked->code = code;
    error_copy(&asked->error, e);
    asked->offset = offset;
    mem_free(k->ranges);
    mem_free(k);
    store_busy(s, -1);
    asked->task.run = run_sought;
    shard_post(asked->shard, &asked->task);
}

static void seek_tail(struct seeking *k) {
    struct live *l = store_live(k->store, k->asked->stream_id);
    uint64_t offset = l ? atomic_load_explicit(&l->high_watermark, memory_order_relaxed) : k->committed_end, next = k->committed_end;
    for (uint32_t i = 0; l && i < l->visible_count; i++) {
        const struct entry *entry = live_entry(l, i);
        if (entry->offset_first < k->committed_end) continue;
        if (entry->offset_first > next) break;
        next = entry->offset_end;
        if (entry->ts_max < k->asked->ts_ms) continue;
        seek_done(k, MINK_OK, NULL, entry->offset_first);
        return;
    }
    if (next < offset) seek_begin(k); // what was recent has been committed and has left memory since: the catalog knows it by now
    else seek_done(k, MINK_OK, NULL, offset);
}

static void on_seek_index(struct index_look *l) {
    struct seeking *k = container_of(l, struct seeking, look);
    const struct catalog_range *range = &k->ranges[k->mid];
    if (l->code != MINK_OK) {
        seek_done(k, l->code, &l->error, 0);
        return;
    }
    const struct object_block *hit = NULL;
    for (uint32_t i = 0; i < l->block_count && !hit; i++) {
        const struct object_block *b = &l->blocks[i];
        if (b->offset_end > range->from && b->offset_first < range->to && b->ts_max >= k->asked->ts_ms) hit = b;
    }
    if (!hit) {
        k->low = k->mid + 1;
    } else if (k->low == k->mid) { // nothing before it qualifies
        seek_done(k, MINK_OK, NULL, hit->offset_first > range->from ? hit->offset_first : range->from);
        return;
    } else {
        k->high = k->mid;
    }
    seek_step(k);
}

static void seek_step(struct seeking *k) {
    if (k->low >= k->count) {
        seek_tail(k);
        return;
    }
    // The first range with a late enough block lies in [low, high]; looking at `low` itself ends the bisection.
    k->mid = k->low + (k->high - k->low) / 2;
    const struct catalog_range *range = &k->ranges[k->mid];
    k->look = (struct index_look){.id = range->object, .stream_id = k->asked->stream_id, .object_size = range->object_size, .index_size = range->index_size, .on_done = on_seek_index};
    index_look(k->store, &k->look);
}

static void seek_begin(struct seeking *k) {
    struct stream_store *s = k->store;
    struct catalog_stream known;
    struct error e;
    if (s->ended) {
        seek_done(k, s->end_reason.code, &s->end_reason, 0);
        return;
    }
    if (!catalog_find_stream(s->catalog, k->asked->stream_id, &known)) {
        seek_done(k, error_set(&e, MINK_NOT_FOUND, "NO_SUCH_STREAM", "the table or partition was dropped"), &e, 0);
        return;
    }
    k->committed_end = known.end;
    uint32_t capacity = 64;
    mem_free(k->ranges);
    k->ranges = mem_new_array(struct catalog_range, capacity);
    while ((k->count = catalog_ranges(s->catalog, k->asked->stream_id, known.start, k->ranges, capacity)) == capacity) {
        capacity *= 2;
        k->ranges = mem_realloc(k->ranges, capacity * sizeof *k->ranges);
    }
    catalog_stream_deinit(&known);
    k->low = 0;
    k->high = k->count ? k->count - 1 : 0;
    seek_step(k);
}

static void run_seek(struct task *task) {
    struct stream_store *s;
    struct stream_seek *asked = store_entered(task, &s);
    mem_free(container_of(task, struct call, task));
    struct seeking *k = mem_new(struct seeking);
    store_busy(s, 1);
    k->store = s;
    k->asked = asked;
    seek_begin(k);
}

void stream_seek_time(struct stream_store *s, struct stream_seek *k) { store_enter(s, run_seek, k); }

// ---- marked objects

struct deleting {
    struct stream_store *store;
    struct stream_job *asked;
    struct object_request request;
    struct catalog_object_id ids[DELETE_KEYS];
    char texts[DELETE_KEYS][OBJECT_KEY_TEXT];
    const char *keys[DELETE_KEYS];
    uint32_t count;
    struct meta_proposal proposal;
};

static void run_job_done(struct task *task) {
    struct stream_job *j = container_of(task, struct stream_job, task);
    j->on_done(j);
}

static void answer_job(struct stream_store *s, struct stream_job *j, enum mink_code code, const struct error *e) {
    j->code = code;
    error_copy(&j->error, e);
    j->task.run = run_job_done;
    store_busy(s, -1);
    shard_post(j->shard, &j->task);
}

static void on_forgotten(struct meta_proposal *p) {
    struct deleting *d = container_of(p, struct deleting, proposal);
    if (p->result.code == MINK_OK) {
        metric_add(&deleted, d->count);
        d->asked->count = d->count;
    }
    answer_job(d->store, d->asked, p->result.code, &p->result.error);
    mem_free(d);
}

static void on_marked_deleted(struct object_request *r) {
    struct deleting *d = container_of(r, struct deleting, request);
    if (r->code != MINK_OK) {
        answer_job(d->store, d->asked, r->code, &r->error);
        mem_free(d);
        return;
    }
    meta_propose(d->store->meta, &d->proposal, d->store->shard, command_forget_objects(d->ids, d->count), on_forgotten);
}

static void run_delete_marked(struct task *task) {
    struct stream_store *s;
    struct stream_job *j = store_entered(task, &s);
    mem_free(container_of(task, struct call, task));
    struct deleting *d = mem_new(struct deleting);
    struct catalog_object *marked;
    uint32_t count;
    uint64_t now = store_now(s), grace = s->config.delete_grace_ms * NS_PER_MS;
    d->store = s;
    d->asked = j;
    store_busy(s, 1);
    catalog_list_objects(s->catalog, true, &marked, &count);
    struct marked *seen = mem_new_array(struct marked, count + 1);
    uint32_t old_at = 0;
    for (uint32_t i = 0; i < count; i++) { // both lists are in catalog order: one pass
        struct catalog_object_id id = marked[i].id;
        seen[i] = (struct marked){id, now};
        for (uint32_t k = old_at; k < s->marked_count; k++)
            if (s->marked[k].id.kind == id.kind && s->marked[k].id.incarnation == id.incarnation && s->marked[k].id.number == id.number) {
                seen[i].since_ns = s->marked[k].since_ns;
                old_at = k + 1;
                break;
            }
        if (now - seen[i].since_ns < grace || d->count == DELETE_KEYS) continue;
        d->ids[d->count] = id;
        object_key(id, d->texts[d->count], sizeof d->texts[0]);
        d->keys[d->count] = d->texts[d->count];
        d->count++;
    }
    mem_free(marked);
    mem_free(s->marked);
    s->marked = seen;
    s->marked_count = count;
    if (d->count == 0 || s->ended) {
        answer_job(s, j, s->ended ? s->end_reason.code : MINK_OK, s->ended ? &s->end_reason : NULL);
        mem_free(d);
        return;
    }
    object_remove(s->objects, &d->request, s->shard, d->keys, d->count, on_marked_deleted);
}

void stream_delete_marked(struct stream_store *s, struct stream_job *j) {
    j->count = 0;
    store_enter(s, run_delete_marked, j);
}

// ---- orphans

struct sweep {
    struct stream_store *store;
    struct stream_job *asked;
    struct object_request request;
    struct object_entry *entries;
    uint32_t entry_count;
    bool more;
    int prefix; // of the list below
    char start_after[OBJECT_KEY_SIZE_MAX];
    struct meta_sync sync;
    const char **keys;
    uint32_t key_count;
};
static const char *const sweep_prefixes[] = {"obj/", "wal/"};

static void sweep_list(struct sweep *w);

static void sweep_done(struct sweep *w, enum mink_code code, const struct error *e) {
    object_entries_free(w->entries, w->entry_count);
    mem_free(w->keys);
    answer_job(w->store, w->asked, code, e);
    mem_free(w);
}

static void on_swept(struct object_request *r) {
    struct sweep *w = container_of(r, struct sweep, request);
    if (r->code != MINK_OK) {
        sweep_done(w, r->code, &r->error);
        return;
    }
    metric_add(&orphans, w->key_count);
    w->asked->count += w->key_count;
    if (w->key_count) log_info("sweep.deleted", "objects=%u", w->key_count);
    sweep_list(w);
}

static bool is_orphan(struct stream_store *s, const char *key) {
    struct catalog_object_id id;
    struct catalog_object known;
    struct catalog_incarnation creator;
    if (!object_key_parse(key, &id)) return false; // not ours to judge
    if (catalog_find_object(s->catalog, id, &known)) return false;
    if (!catalog_find_incarnation(s->catalog, id.incarnation, &creator)) return false;
    if (MUTANT(SWEEP_LIVE)) return id.kind == OBJECT_KIND_WAL ? id.number != creator.seal_seq : true;
    if (id.kind != OBJECT_KIND_WAL) return creator.state != INCARNATION_LIVE;
    return creator.state == INCARNATION_SEALED && (id.number != creator.seal_seq || MUTANT(SEAL_SWEPT));
}

static void on_sweep_synced(struct meta_sync *sync) {
    struct sweep *w = container_of(sync, struct sweep, sync);
    if (sync->code != MINK_OK) {
        sweep_done(w, sync->code, &sync->error);
        return;
    }
    w->keys = mem_realloc(w->keys, (w->entry_count + 1) * sizeof *w->keys);
    w->key_count = 0;
    for (uint32_t i = 0; i < w->entry_count; i++)
        if (is_orphan(w->store, w->entries[i].key)) w->keys[w->key_count++] = w->entries[i].key;
    if (w->key_count == 0) {
        sweep_list(w);
        return;
    }
    object_remove(w->store->objects, &w->request, w->store->shard, w->keys, w->key_count, on_swept);
}

static void on_sweep_listed(struct object_request *r) {
    struct sweep *w = container_of(r, struct sweep, request);
    if (r->code != MINK_OK) {
        sweep_done(w, r->code, &r->error);
        return;
    }
    object_entries_free(w->entries, w->entry_count);
    w->entries = r->entries;
    w->entry_count = r->entry_count;
    w->more = r->list_more;
    if (w->entry_count) snprintf(w->start_after, sizeof w->start_after, "%s", w->entries[w->entry_count - 1].key);
    // The catalog that judges must be younger than the listing.
    meta_sync(w->store->meta, &w->sync, w->store->shard, on_sweep_synced);
}

static void sweep_list(struct sweep *w) {
    if (w->store->ended) {
        sweep_done(w, w->store->end_reason.code, &w->store->end_reason);
        return;
    }
    if (!w->more) {
        if (++w->prefix == 2) { // obj/ and wal/ are done
            sweep_done(w, MINK_OK, NULL);
            return;
        }
        w->start_after[0] = 0;
    }
    object_list(w->store->objects, &w->request, w->store->shard, sweep_prefixes[w->prefix], w->start_after, SWEEP_PAGE, OBJECT_DELETE, on_sweep_listed);
}

static void run_sweep(struct task *task) {
    struct stream_store *s;
    struct stream_job *j = store_entered(task, &s);
    mem_free(container_of(task, struct call, task));
    struct sweep *w = mem_new(struct sweep);
    store_busy(s, 1);
    w->store = s;
    w->asked = j;
    w->prefix = -1;
    sweep_list(w);
}

void stream_sweep_orphans(struct stream_store *s, struct stream_job *j) {
    j->count = 0;
    store_enter(s, run_sweep, j);
}
