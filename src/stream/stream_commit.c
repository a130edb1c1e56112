// SPDX-License-Identifier: Apache-2.0
// Commit: the acknowledged tail, still in memory, becomes stream objects (streams with much) and set objects (the rest), and one command
// publishes them, moves the ends and releases the WAL objects. When some of it is no longer in memory, the WAL objects themselves are
// committed by reference instead. Also: the cache of committed entries, and the deletion of released WAL objects.
#include "stream/stream_internal.h"

#include "base/crc32c.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/mutant.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SET_OBJECT_MAX (256u << 20)
#define IDLE_COMMIT_NS (30 * NS_PER_S)
#define DELETE_KEYS 500

static struct metric_counter commits = METRIC_COUNTER("mink_commits_total", "commits of the log's tail");
static struct metric_counter committed_bytes = METRIC_COUNTER("mink_commit_bytes_total", "payload bytes committed");
static struct metric_counter dropped_entries = METRIC_COUNTER("mink_tail_dropped_total", "uncommitted batches let go from memory");
static struct metric_gauge pending_gauge = METRIC_GAUGE("mink_commit_pending_bytes", "acknowledged bytes that only WAL objects hold");
static struct metric_gauge tail_gauge = METRIC_GAUGE("mink_tail_cache_bytes", "bytes of recent appends in memory");

struct commit_object {
    struct upload upload;
    struct commit *commit;
    struct command_object command;
};

struct commit {
    struct stream_store *store;
    struct entry **entries; // in order of acknowledgement
    struct entry **sorted;  // by (stream, offset)
    uint32_t entry_count;
    uint64_t wal_from, wal_upto, bytes;
    bool by_reference;
    struct commit_object **objects;
    uint32_t object_count, uploading, alive; // alive: uploads whose memory is in use
    struct command_attachment *attachments;
    uint32_t attachment_count;
    struct meta_proposal proposal;
    struct stream_job *jobs;
    bool settled;
};

static int by_stream(const void *a, const void *b) {
    const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;
    if (x->live->id != y->live->id) return x->live->id < y->live->id ? -1 : 1;
    return x->offset_first < y->offset_first ? -1 : x->offset_first > y->offset_first;
}

static void run_job(struct task *task) {
    struct stream_job *j = container_of(task, struct stream_job, task);
    j->on_done(j);
}

static void answer_jobs(struct stream_job **list, enum mink_code code, const struct error *e) {
    struct stream_job *j = *list;
    *list = NULL;
    while (j) {
        struct stream_job *next = (struct stream_job *)j->task.next;
        j->code = code;
        error_copy(&j->error, e);
        j->task.run = run_job;
        shard_post(j->shard, &j->task);
        j = next;
    }
}

static void commit_free(struct commit *c) {
    if (c->alive || !c->settled) return;
    for (uint32_t i = 0; i < c->object_count; i++) {
        mem_free(c->objects[i]->command.ranges);
        mem_free(c->objects[i]);
    }
    for (uint32_t i = 0; i < c->attachment_count; i++) slice_unref(&c->attachments[i].bytes);
    mem_free(c->attachments);
    mem_free(c->objects);
    mem_free(c->entries);
    mem_free(c->sorted);
    mem_free(c);
}

static struct commit_object *add_object(struct commit *c) {
    c->objects = mem_realloc(c->objects, (c->object_count + 1) * sizeof *c->objects);
    struct commit_object *o = c->objects[c->object_count++] = mem_new(struct commit_object);
    o->commit = c;
    return o;
}

// Ranges of entries [from, from + count) of a list sorted by stream.
static void set_ranges(struct command_object *o, struct entry *const *entries, uint32_t count) {
    o->ranges = mem_new_array(struct command_range, count ? count : 1);
    for (uint32_t i = 0; i < count; i++) {
        const struct entry *entry = entries[i];
        struct command_range *last = o->range_count ? &o->ranges[o->range_count - 1] : NULL;
        if (MUTANT(COMMIT_FORGETS_ENTRY) && i == count - 1 && count > 1) break;
        if (last && last->stream_id == entry->live->id && last->epoch == entry->epoch && last->to == entry->offset_first) last->to = entry->offset_end;
        else o->ranges[o->range_count++] = (struct command_range){entry->live->id, entry->epoch, entry->offset_first, entry->offset_end};
    }
}

// ---- the end of a commit

static void release_wal(struct stream_store *s, const struct commit *c) {
    struct released *r = mem_new(struct released);
    *r = (struct released){.from = c->wal_from, .upto = c->wal_upto, .at_ns = store_now(s)};
    r->kept = mem_new_array(bool, (size_t)(c->wal_upto - c->wal_from) + 1);
    if (c->by_reference && !MUTANT(DELETE_REFERENCED))
        for (uint32_t i = 0; i < c->object_count; i++) r->kept[c->objects[i]->command.id.number - c->wal_from] = true;
    *s->released_last = r;
    s->released_last = &r->next;
    if (!timer_armed(&s->delete_timer)) timer_start(&s->delete_timer, s->config.delete_grace_ms * NS_PER_MS);
}

static void finish(struct commit *c) {
    struct stream_store *s = c->store;
    s->wal_committed = c->wal_upto;
    for (uint32_t i = 0; i < c->entry_count; i++) {
        struct entry *entry = c->entries[i];
        window_info_unref(entry->window);
        entry->window = NULL;
        entry->live->committed_end = entry->offset_end;
        entry->live->pending_bytes -= entry->bytes;
        entry->cache_next = NULL;
        *s->cached_last = entry;
        s->cached_last = &entry->cache_next;
    }
    metric_add(&commits, 1);
    metric_add(&committed_bytes, c->bytes);
    log_debug("commit.done", "wal_upto=%" PRIu64 " objects=%u batches=%u bytes=%" PRIu64, c->wal_upto, c->object_count, c->entry_count, c->bytes);
    release_wal(s, c);
    cache_trim(s);
}

static void settle(struct commit *c, enum mink_code code, const struct error *e) {
    struct stream_store *s = c->store;
    struct stream_job *jobs = c->jobs;
    c->settled = true;
    s->commit = NULL;
    answer_jobs(&jobs, code, e);
    commit_free(c);
}

static void on_committed(struct meta_proposal *p) {
    struct commit *c = container_of(p, struct commit, proposal);
    struct stream_store *s = c->store;
    store_busy(s, -1);
    if (p->result.code == MINK_OK && !s->ended) {
        finish(c);
        settle(c, MINK_OK, NULL);
        commit_consider(s);
        return;
    }
    struct error e = p->result.error;
    if (p->result.code != MINK_OK) {
        error_context(&e, "commit of WAL %" PRIu64 " to %" PRIu64, c->wal_from, c->wal_upto);
        store_end(s, &e);
    } else {
        e = s->end_reason;
    }
    settle(c, e.code, &e);
}

static void propose(struct commit *c) {
    struct stream_store *s = c->store;
    struct command_object *objects = mem_new_array(struct command_object, c->object_count + 1);
    for (uint32_t i = 0; i < c->object_count; i++) objects[i] = c->objects[i]->command;
    c->attachments = mem_new_array(struct command_attachment, c->entry_count + 1);
    for (uint32_t i = 0; i < c->entry_count && s->config.attachment; i++) {
        const struct entry *entry = c->sorted[i];
        if (i + 1 < c->entry_count && c->sorted[i + 1]->live == entry->live) continue;
        struct slice bytes = s->config.attachment(s->config.ctx, entry->live->id, entry->offset_end);
        if (bytes.size) c->attachments[c->attachment_count++] = (struct command_attachment){entry->live->id, bytes};
    }
    struct command *command = command_commit_objects(s->incarnation, c->wal_from, c->wal_upto, objects, c->object_count, c->attachments, c->attachment_count);
    mem_free(objects);
    store_busy(s, 1);
    meta_propose(s->meta, &c->proposal, s->shard, command, on_committed);
}

static void on_object_settled(struct upload *u) {
    struct commit_object *o = container_of(u, struct commit_object, upload);
    struct commit *c = o->commit;
    struct stream_store *s = c->store;
    c->uploading--;
    if (c->settled) return;
    if (u->result != UPLOAD_CREATED || s->ended) {
        struct error e = s->ended ? s->end_reason : u->error;
        if (!s->ended) {
            error_context(&e, "commit");
            store_end(s, &e);
        }
        if (!c->settled) settle(c, e.code, &e);
        return;
    }
    if (c->uploading == 0) propose(c);
}

static void on_object_idle(struct upload *u) {
    struct commit_object *o = container_of(u, struct commit_object, upload);
    struct commit *c = o->commit;
    struct stream_store *s = c->store;
    c->alive--;
    commit_free(c);
    store_busy(s, -1);
}

// ---- building

static void build_object(struct commit *c, uint32_t from, uint32_t count, enum object_kind kind) {
    struct stream_store *s = c->store;
    struct commit_object *o = add_object(c);
    struct object_header header;
    struct object_writer out;
    uint64_t number = s->next_object_number++;
    store_content_id(s, o->upload.content_id);
    store_header(s, &header, kind, number, 0, o->upload.content_id);
    object_writer_begin(&out, &header);
    windows_write_blocks(&out, c->sorted + from, count);
    object_writer_finish(&out);
    o->command.id = (struct catalog_object_id){kind, s->incarnation, number};
    o->command.size = out.body.bytes;
    o->command.index_size = out.index_size;
    set_ranges(&o->command, c->sorted + from, count);
    o->upload.store = s;
    o->upload.priority = OBJECT_COMMIT;
    o->upload.crc32c = out.crc32c;
    o->upload.body = out.body;
    out.body = (struct slices){0};
    object_writer_deinit(&out);
    object_key(o->command.id, o->upload.key, sizeof o->upload.key);
    o->upload.on_settled = on_object_settled;
    o->upload.on_idle = on_object_idle;
}

static void build_objects(struct commit *c) {
    uint32_t set_from = 0;
    uint64_t set_bytes = 0;
    for (uint32_t i = 0; i < c->entry_count;) {
        uint32_t end = i;
        uint64_t bytes = 0;
        for (; end < c->entry_count && c->sorted[end]->live == c->sorted[i]->live; end++) bytes += c->sorted[end]->bytes;
        bool own = bytes >= STREAM_OBJECT_MIN;
        // A stream with an object of its own cuts the run of those that share one: streams ascend within an object.
        if ((own || set_bytes + bytes > SET_OBJECT_MAX) && i > set_from) {
            build_object(c, set_from, i - set_from, OBJECT_KIND_SET);
            set_from = i;
            set_bytes = 0;
        }
        if (own) {
            build_object(c, i, end - i, OBJECT_KIND_STREAM);
            set_from = end;
        } else {
            set_bytes += bytes;
        }
        i = end;
    }
    if (c->entry_count > set_from) build_object(c, set_from, c->entry_count - set_from, OBJECT_KIND_SET);
}

static void build_references(struct commit *c) {
    for (uint32_t i = 0; i < c->entry_count;) {
        const struct window_info *info = c->entries[i]->window;
        uint32_t end = i;
        while (end < c->entry_count && c->entries[end]->window == info) end++;
        struct entry **of_window = mem_new_array(struct entry *, end - i);
        memcpy(of_window, c->entries + i, (end - i) * sizeof *of_window);
        qsort(of_window, end - i, sizeof *of_window, by_stream);
        struct commit_object *o = add_object(c);
        o->command.id = (struct catalog_object_id){OBJECT_KIND_WAL, c->store->incarnation, info->seq};
        o->command.size = info->size;
        o->command.index_size = info->index_size;
        set_ranges(&o->command, of_window, end - i);
        mem_free(of_window);
        i = end;
    }
}

static void begin(struct stream_store *s) {
    struct commit *c = mem_new(struct commit);
    s->commit = c;
    s->commit_wanted = false;
    c->store = s;
    c->wal_from = s->wal_committed;
    c->wal_upto = MUTANT(COMMIT_UNACKED) ? s->next_seq : s->acked_end;
    c->entries = s->pending;
    c->entry_count = s->pending_entries;
    c->bytes = s->pending_bytes;
    c->jobs = s->commit_jobs;
    s->commit_jobs = NULL;
    s->pending = NULL;
    s->pending_entries = s->pending_capacity = s->pending_windows = 0;
    s->pending_bytes = 0;
    timer_stop(&s->commit_timer);
    c->sorted = mem_new_array(struct entry *, c->entry_count + 1);
    if (c->entry_count) memcpy(c->sorted, c->entries, c->entry_count * sizeof *c->sorted);
    qsort(c->sorted, c->entry_count, sizeof *c->sorted, by_stream);
    for (uint32_t i = 0; i < c->entry_count; i++) c->by_reference |= c->entries[i]->payload.count == 0;
    if (c->by_reference) {
        build_references(c);
        propose(c);
        return;
    }
    build_objects(c);
    if (c->object_count == 0) {
        propose(c);
        return;
    }
    c->uploading = c->alive = c->object_count;
    store_busy(s, (int)c->object_count);
    for (uint32_t i = 0; i < c->object_count && !c->settled; i++) upload_start(&c->objects[i]->upload);
}

void commit_consider(struct stream_store *s) {
    metric_set(&pending_gauge, (long long)s->pending_bytes);
    if (s->commit || s->ended || !s->open) return;
    const struct stream_config *config = &s->config;
    bool due = s->pending_bytes >= config->commit_bytes || s->pending_windows >= config->commit_windows || s->pending_entries >= config->commit_entries_max;
    if (s->commit_wanted || due) {
        if (s->acked_end > s->wal_committed) {
            begin(s);
        } else {
            s->commit_wanted = false;
            answer_jobs(&s->commit_jobs, MINK_OK, NULL);
        }
    } else if (s->pending_windows && !timer_armed(&s->commit_timer)) {
        uint64_t age = config->commit_age_ms * NS_PER_MS;
        timer_start(&s->commit_timer, age < IDLE_COMMIT_NS ? age : IDLE_COMMIT_NS);
    }
}

void commit_on_timer(struct timer *t) {
    struct stream_store *s = container_of(t, struct stream_store, commit_timer);
    uint64_t now = store_now(s), age = s->config.commit_age_ms * NS_PER_MS;
    uint64_t idle = age < IDLE_COMMIT_NS ? age : IDLE_COMMIT_NS;
    if (s->pending_windows == 0 || s->ended) return;
    if (now - s->last_ack_ns >= idle || now - s->pending_since_ns >= age) s->commit_wanted = true;
    commit_consider(s);
}

void commit_request(struct stream_store *s) {
    s->commit_wanted = true;
    commit_consider(s);
}

void commit_end(struct stream_store *s, const struct error *why) {
    answer_jobs(&s->commit_jobs, why->code, why);
    timer_stop(&s->commit_timer);
    timer_stop(&s->delete_timer);
}

static void run_commit_now(struct task *task) {
    struct stream_store *s;
    struct stream_job *j = store_entered(task, &s);
    mem_free(container_of(task, struct call, task));
    j->task.next = (struct task *)s->commit_jobs;
    s->commit_jobs = j;
    if (s->ended) commit_end(s, &s->end_reason);
    else commit_request(s);
}

void stream_commit_now(struct stream_store *s, struct stream_job *j) {
    j->count = 0;
    store_enter(s, run_commit_now, j);
}

// ---- the cache

// Committed entries leave oldest first; that is the order of each stream's ring too, so the one that leaves is always in front.
static void evict(struct stream_store *s) {
    struct entry *entry = s->cached_first;
    struct live *l = entry->live;
    s->cached_first = entry->cache_next;
    if (!s->cached_first) s->cached_last = &s->cached_first;
    mink_assert(l->ring_count && live_entry(l, 0) == entry);
    l->ring_first = (l->ring_first + 1) & (l->ring_capacity - 1);
    l->ring_count--;
    l->visible_count--;
    entry_free(s, entry);
    if (l->ring_count == 0) {
        mem_free(l->ring);
        l->ring = NULL;
        l->ring_first = l->ring_capacity = 0;
    }
}

void cache_trim(struct stream_store *s) {
    while (s->tail_bytes > s->config.tail_cache_bytes && s->cached_first) evict(s);
    // Entries without payload are of no use in front of the ring.
    while (s->cached_first && s->cached_first->payload.count == 0) evict(s);
    for (uint32_t i = 0; i < s->pending_entries && s->tail_bytes > s->config.tail_cache_bytes; i++) {
        struct entry *entry = s->pending[i];
        if (entry->payload.count == 0) continue;
        s->tail_bytes -= entry->bytes;
        slices_deinit(&entry->payload);
        entry->window->dropped = true;
        metric_add(&dropped_entries, 1);
    }
    metric_set(&tail_gauge, (long long)s->tail_bytes);
}

// ---- released WAL objects

struct deletion {
    struct stream_store *store;
    struct object_request request;
    struct released *released;
    uint64_t at;
    char texts[DELETE_KEYS][OBJECT_KEY_TEXT];
    const char *keys[DELETE_KEYS];
};

static void delete_step(struct deletion *d);

static void on_deleted(struct object_request *r) {
    struct deletion *d = container_of(r, struct deletion, request);
    struct stream_store *s = d->store;
    store_busy(s, -1);
    // What could not be deleted stays for the orphan sweep after this incarnation's end.
    if (r->code != MINK_OK) log_limited(LOG_WARN, "wal.delete", "message=\"%s\"", r->error.message);
    delete_step(d);
}

static void delete_step(struct deletion *d) {
    struct stream_store *s = d->store;
    uint32_t count = 0;
    for (; d->at < d->released->upto && count < DELETE_KEYS; d->at++) {
        if (d->released->kept[d->at - d->released->from]) continue;
        object_key_wal(s->incarnation, d->at, d->texts[count], sizeof d->texts[count]);
        d->keys[count] = d->texts[count];
        count++;
    }
    if (count && !s->ended) {
        store_busy(s, 1);
        object_remove(s->objects, &d->request, s->shard, d->keys, count, on_deleted);
        return;
    }
    mem_free(d->released->kept);
    mem_free(d->released);
    mem_free(d);
}

void delete_on_timer(struct timer *t) {
    struct stream_store *s = container_of(t, struct stream_store, delete_timer);
    uint64_t now = store_now(s), grace = s->config.delete_grace_ms * NS_PER_MS;
    while (s->released_first && now - s->released_first->at_ns >= grace && !s->ended) {
        struct deletion *d = mem_new(struct deletion);
        d->store = s;
        d->released = s->released_first;
        d->at = d->released->from;
        s->released_first = d->released->next;
        if (!s->released_first) s->released_last = &s->released_first;
        delete_step(d);
    }
    if (s->released_first && !s->ended) timer_start(t, s->released_first->at_ns + grace - now);
}
