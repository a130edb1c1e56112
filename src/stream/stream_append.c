// SPDX-License-Identifier: Apache-2.0
// Windows: appends of all streams become WAL objects; acknowledgement in seq order.
//
// A window closes when (a) it is full, or (b) linger_floor has passed since its first append, fewer than K uploads run and the budget has a
// token, or (c) a token comes. Full windows never wait for a token, they take one (the budget goes negative, and small traffic pays). Closing
// fixes seq, bytes and content id; several windows upload at once; window n is acknowledged when 0…n are all created.
#include "stream/stream_internal.h"

#include "base/crc32c.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/mutant.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS_MAX 30.0

static struct metric_counter windows = METRIC_COUNTER("mink_wal_windows_total", "WAL objects begun");
static struct metric_counter wal_bytes = METRIC_COUNTER("mink_wal_bytes_total", "bytes of WAL objects begun");
static struct metric_counter appends = METRIC_COUNTER("mink_append_batches_total", "batches acknowledged");
static struct metric_counter append_bytes = METRIC_COUNTER("mink_append_bytes_total", "payload bytes acknowledged");
static struct metric_counter refused = METRIC_COUNTER("mink_append_overloaded_total", "appends refused because a bound was reached");
static struct metric_gauge unacknowledged = METRIC_GAUGE("mink_append_unacknowledged_bytes", "bytes that wait for their acknowledgement");
static struct metric_gauge puts_running_gauge = METRIC_GAUGE("mink_wal_puts_in_flight", "WAL objects being uploaded");
static struct metric_histogram ack_time = METRIC_HISTOGRAM("mink_append_ack_seconds", "from the first append of a window to its acknowledgement");

// ---- admission, any thread

enum mink_code stream_admit(struct stream_store *s, uint64_t bytes, struct error *e) {
    uint64_t limit = s->config.append_bytes_max, now = atomic_load_explicit(&s->admitted, memory_order_relaxed);
    do {
        if (now != 0 && now + bytes > limit) {
            metric_add(&refused, 1);
            error_set(e, MINK_OVERLOADED, "APPEND_BYTES", "%" PRIu64 " unacknowledged bytes: at most %" PRIu64 " are taken (wal.append_bytes_max)", now, limit);
            error_hint(e, "the store is slower than the writers: slow down and try again");
            return MINK_OVERLOADED;
        }
    } while (!atomic_compare_exchange_weak_explicit(&s->admitted, &now, now + bytes, memory_order_relaxed, memory_order_relaxed));
    return MINK_OK;
}

static void release(struct stream_store *s, uint64_t bytes) {
    atomic_fetch_sub_explicit(&s->admitted, bytes, memory_order_relaxed);
    metric_set(&unacknowledged, (long long)atomic_load_explicit(&s->admitted, memory_order_relaxed));
}

// ---- answers

static void run_appended(struct task *task) {
    struct stream_append *a = container_of(task, struct stream_append, task);
    a->on_done(a);
}

static void answer(struct stream_append *a, enum mink_code code, const struct error *e) {
    a->code = code;
    if (e) {
        a->error = *e;
        a->error.code = code;
    }
    a->task.run = run_appended;
    shard_post(a->shard, &a->task);
}

// ---- entries

void live_push(struct live *l, struct entry *entry) {
    if (l->ring_count == l->ring_capacity) {
        uint32_t capacity = l->ring_capacity ? l->ring_capacity * 2 : 4;
        struct entry **ring = mem_new_array(struct entry *, capacity);
        for (uint32_t i = 0; i < l->ring_count; i++) ring[i] = live_entry(l, i);
        mem_free(l->ring);
        l->ring = ring;
        l->ring_first = 0;
        l->ring_capacity = capacity;
    }
    l->ring[(l->ring_first + l->ring_count++) & (l->ring_capacity - 1)] = entry;
}

void window_info_unref(struct window_info *info) {
    if (--info->entries) return;
    mem_free(info->blocks);
    mem_free(info);
}

void entry_free(struct stream_store *s, struct entry *entry) {
    if (entry->payload.count) s->tail_bytes -= entry->bytes;
    slices_deinit(&entry->payload);
    if (entry->window) window_info_unref(entry->window);
    mem_free(entry);
}

static void run_watched(struct task *task) {
    struct stream_watch *w = container_of(task, struct stream_watch, task);
    w->on_done(w);
}

void live_wake(struct stream_store *s, struct live *l) {
    uint64_t high_watermark = atomic_load_explicit(&l->high_watermark, memory_order_relaxed);
    for (struct stream_watch *w = l->watches, *next; w; w = next) {
        next = w->next;
        if (w->offset >= high_watermark && !s->ended) continue;
        if (w->prev) w->prev->next = w->next;
        else l->watches = w->next;
        if (w->next) w->next->prev = w->prev;
        if (MUTANT(WATCH_LOST) && random_below(shard_random(s->shard), 4) == 0) continue;
        w->code = s->ended ? MINK_UNAVAILABLE : MINK_OK;
        w->high_watermark = high_watermark;
        w->task.run = run_watched;
        shard_post(w->shard, &w->task);
    }
}

// ---- windows

static struct window *window_new(struct stream_store *s) {
    struct window *w = mem_new(struct window);
    w->last = &w->first;
    w->began_ns = store_now(s);
    return w;
}

static void refill(struct stream_store *s) {
    uint64_t now = store_now(s);
    s->tokens += (double)(now - s->tokens_at_ns) / 1e9 * s->config.put_rate;
    if (s->tokens > TOKENS_MAX) s->tokens = TOKENS_MAX;
    s->tokens_at_ns = now;
}

static int by_stream(const void *a, const void *b) {
    const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;
    if (x->live->id != y->live->id) return x->live->id < y->live->id ? -1 : 1;
    return x->offset_first < y->offset_first ? -1 : x->offset_first > y->offset_first;
}

// Consecutive entries of one stream and epoch, up to the block size, are a block.
void windows_write_blocks(struct object_writer *out, struct entry **entries, uint32_t count) {
    for (uint32_t i = 0; i < count;) {
        struct entry *first = entries[i];
        struct object_block b = {.stream = first->live->id, .offset_first = first->offset_first, .ts_min = first->ts_min, .ts_max = first->ts_max, .epoch = first->epoch};
        struct slices payload = {0};
        for (; i < count; i++) {
            struct entry *entry = entries[i];
            if (entry->live != first->live || entry->epoch != first->epoch) break;
            if (payload.bytes && payload.bytes + entry->bytes > BLOCK_SIZE) break;
            b.payload_crc32c = crc32c_combine(b.payload_crc32c, entry->crc32c, entry->bytes);
            b.offset_end = entry->offset_end;
            b.batches += entry->batches;
            if (entry->ts_min < b.ts_min) b.ts_min = entry->ts_min;
            if (entry->ts_max > b.ts_max) b.ts_max = entry->ts_max;
            for (uint32_t k = 0; k < entry->payload.count; k++) slices_take(&payload, slice_ref(entry->payload.items[k]));
        }
        b.payload_size = (uint32_t)payload.bytes;
        object_writer_add(out, &b, &payload, 0, payload.count);
        slices_deinit(&payload);
    }
}

static void acknowledge(struct stream_store *s, struct window *w) {
    uint64_t now = store_now(s);
    metric_observe_ns(&ack_time, now - w->began_ns);
    s->acked_end = w->seq + 1;
    // Everything of the window becomes visible before anybody is told.
    for (uint32_t i = 0; i < w->entry_count; i++) {
        struct entry *entry = w->entries[i];
        struct live *l = entry->live;
        mink_assert(atomic_load_explicit(&l->high_watermark, memory_order_relaxed) == entry->offset_first || MUTANT(ACK_OUT_OF_ORDER) || MUTANT(VISIBLE_BEFORE_ACK));
        atomic_store_explicit(&l->high_watermark, entry->offset_end, memory_order_release);
        l->visible_count++;
        l->pending_bytes += entry->bytes;
        s->pending_bytes += entry->bytes;
        if (s->pending_entries == s->pending_capacity) {
            s->pending_capacity = s->pending_capacity ? s->pending_capacity * 2 : 64;
            s->pending = mem_realloc(s->pending, s->pending_capacity * sizeof *s->pending);
        }
        s->pending[s->pending_entries++] = entry;
        metric_add(&append_bytes, entry->bytes);
    }
    if (w->entry_count) {
        if (s->pending_windows == 0) s->pending_since_ns = now;
        s->pending_windows++;
        s->last_ack_ns = now;
    }
    metric_add(&appends, w->entry_count);
    for (struct stream_append *a = w->first, *next; a; a = next) {
        next = a->next; // the waiter may be gone once it is posted
        answer(a, MINK_OK, NULL);
    }
    for (uint32_t i = 0; i < w->entry_count; i++)
        if (w->entries[i]->live->watches) live_wake(s, w->entries[i]->live);
    release(s, w->bytes);
    cache_trim(s);
    if (w->seq == 0 && s->on_ready) {
        void (*on_ready)(void *, enum mink_code, const struct error *) = s->on_ready;
        s->on_ready = NULL;
        on_ready(s->ready_ctx, MINK_OK, NULL);
    }
}

static void window_free(struct window *w) {
    mem_free(w->entries);
    mem_free(w);
}

static void on_window_idle(struct upload *u) {
    struct window *w = container_of(u, struct window, upload);
    struct stream_store *s = u->store;
    bool done = w->seq < s->acked_end || s->ended;
    if (done) window_free(w);
    else w->upload.on_idle = NULL; // acknowledgement will free it
    store_busy(s, -1);
}

static void try_acknowledge(struct stream_store *s) {
    while (s->queue_first && s->queue_first->created && !s->ended) {
        struct window *w = s->queue_first;
        s->queue_first = w->next;
        if (!s->queue_first) s->queue_last = &s->queue_first;
        s->queue_count--;
        acknowledge(s, w);
        if (!w->upload.on_idle) window_free(w);
    }
    windows_try_close(s);
    if (!s->ended) commit_consider(s);
}

static void on_window_settled(struct upload *u) {
    struct window *w = container_of(u, struct window, upload);
    struct stream_store *s = u->store;
    metric_set(&puts_running_gauge, --s->puts_running);
    if (s->ended) return;
    if (u->result == UPLOAD_CREATED) {
        w->created = true;
        if (MUTANT(ACK_OUT_OF_ORDER) && s->queue_first != w) {
            for (struct stream_append *a = w->first, *next; a; a = next) {
                next = a->next;
                answer(a, MINK_OK, NULL);
            }
            w->first = NULL;
        }
        try_acknowledge(s);
        return;
    }
    struct error e = u->error;
    if (u->result == UPLOAD_FAILED) e.code = MINK_UNAVAILABLE;
    error_context(&e, "window %" PRIu64, w->seq);
    store_end(s, &e);
}

static void close_window(struct stream_store *s) {
    struct window *w = s->current;
    struct object_header header;
    struct object_writer out;
    s->current = NULL;
    w->closed = true;
    w->seq = s->next_seq++;
    for (uint32_t i = 0; i < w->entry_count; i++) w->entries[i]->live->window = NULL;
    store_content_id(s, w->upload.content_id);
    store_header(s, &header, OBJECT_KIND_WAL, s->incarnation, w->seq, w->upload.content_id);
    if (w->entry_count > 1) qsort(w->entries, w->entry_count, sizeof *w->entries, by_stream);
    object_writer_begin(&out, &header);
    windows_write_blocks(&out, w->entries, w->entry_count);
    object_writer_finish(&out);
    if (w->entry_count) {
        struct window_info *info = mem_new(struct window_info);
        *info = (struct window_info){.seq = w->seq, .size = out.body.bytes, .index_size = out.index_size, .entries = w->entry_count, .block_count = out.block_count, .blocks = out.blocks};
        out.blocks = NULL;
        for (uint32_t i = 0; i < w->entry_count; i++) w->entries[i]->window = info;
        w->info = info;
    }
    metric_add(&windows, 1);
    metric_add(&wal_bytes, out.body.bytes);
    w->upload.store = s;
    w->upload.priority = OBJECT_WAL_PUT;
    w->upload.crc32c = out.crc32c;
    w->upload.body = out.body;
    out.body = (struct slices){0};
    object_writer_deinit(&out);
    object_key_wal(s->incarnation, w->seq, w->upload.key, sizeof w->upload.key);
    w->upload.on_settled = on_window_settled;
    w->upload.on_idle = on_window_idle;
    *s->queue_last = w;
    s->queue_last = &w->next;
    s->queue_count++;
    metric_set(&puts_running_gauge, ++s->puts_running);
    s->tokens -= 1;
    store_busy(s, 1);
    if (MUTANT(ACK_BEFORE_PUT)) {
        for (struct stream_append *a = w->first, *next; a; a = next) {
            next = a->next;
            answer(a, MINK_OK, NULL);
        }
        w->first = NULL;
    }
    upload_start(&w->upload);
}

void windows_try_close(struct stream_store *s) {
    while (s->current && !s->ended) {
        struct window *w = s->current;
        bool full = w->bytes >= s->config.wal_object_size, budget = s->config.put_rate >= 0;
        if (s->puts_running >= (uint32_t)s->puts_allowed) return; // the next one to settle comes back here
        if (!full) {
            uint64_t now = store_now(s), ready = w->began_ns + (uint64_t)s->config.linger_floor_us * 1000;
            if (budget) {
                refill(s);
                if (s->tokens < 1) {
                    uint64_t token = now + (uint64_t)((1 - s->tokens) / (s->config.put_rate > 0 ? s->config.put_rate : 0.001) * 1e9) + 1;
                    if (token > ready) ready = token;
                }
            }
            if (ready > now) {
                timer_start(&s->linger, ready - now);
                return;
            }
        } else if (budget) {
            refill(s);
            if (s->tokens < -TOKENS_MAX) s->tokens = -TOKENS_MAX;
        }
        close_window(s);
    }
}

void windows_on_timer(struct timer *t) { windows_try_close(container_of(t, struct stream_store, linger)); }

void windows_first(struct stream_store *s) { // window 0: proves the store, and that this incarnation is new
    s->current = window_new(s);
    close_window(s);
}

void windows_end(struct stream_store *s) {
    struct window *lists[2] = {s->queue_first, s->current};
    s->queue_first = s->current = NULL;
    s->queue_last = &s->queue_first;
    s->queue_count = 0;
    timer_stop(&s->linger);
    for (int i = 0; i < 2; i++)
        for (struct window *w = lists[i], *next; w; w = next) {
            next = w->next;
            for (struct stream_append *a = w->first, *following; a; a = following) {
                following = a->next;
                // A window that never closed was never sent: its appends certainly did not happen.
                answer(a, w->closed ? MINK_UNKNOWN_OUTCOME : MINK_UNAVAILABLE, &s->end_reason);
            }
            w->first = NULL;
            release(s, w->bytes);
            bool uploading = w->closed && w->upload.on_idle;
            if (!uploading) window_free(w);
        }
}

// ---- append

static void run_append(struct task *task) {
    struct stream_append *a = container_of(task, struct stream_append, task);
    struct stream_store *s = (struct stream_store *)a->next;
    uint64_t bytes = a->payload.bytes;
    a->next = NULL;
    struct live *l = s->ended || s->closing ? NULL : store_live(s, a->stream_id);
    if (!l || l->epoch == 0 || l->epoch != a->epoch) {
        struct error e;
        if (s->ended) e = s->end_reason;
        else if (s->closing) error_set(&e, MINK_UNAVAILABLE, "NODE_DRAINING", "the node is shutting down");
        else error_set(&e, MINK_FENCED, "NOT_OWNER", "stream %" PRIu64 " epoch %u is not open here", a->stream_id, a->epoch);
        slices_deinit(&a->payload);
        release(s, bytes);
        answer(a, s->ended && s->end_reason.code == MINK_FENCED ? MINK_FENCED : l || !(s->ended || s->closing) ? MINK_FENCED : MINK_UNAVAILABLE, &e);
        return;
    }
    mink_assert(a->offset_first == l->next && a->offset_end > a->offset_first);
    struct window *w = s->current ? s->current : (s->current = window_new(s));
    struct entry *entry = mem_new(struct entry);
    *entry = (struct entry){.live = l, .offset_first = a->offset_first, .offset_end = a->offset_end, .ts_min = a->ts_min_ms, .ts_max = a->ts_max_ms, .batches = a->batches, .crc32c = a->crc32c, .epoch = a->epoch, .payload = a->payload, .bytes = bytes};
    a->payload = (struct slices){0};
    s->tail_bytes += bytes;
    l->next = a->offset_end;
    l->window = w;
    live_push(l, entry);
    if (MUTANT(VISIBLE_BEFORE_ACK)) atomic_store(&l->high_watermark, entry->offset_end);
    if (w->entry_count == w->entry_capacity) {
        w->entry_capacity = w->entry_capacity ? w->entry_capacity * 2 : 8;
        w->entries = mem_realloc(w->entries, w->entry_capacity * sizeof *w->entries);
    }
    w->entries[w->entry_count++] = entry;
    *w->last = a;
    w->last = &a->next;
    w->bytes += bytes;
    metric_set(&unacknowledged, (long long)atomic_load_explicit(&s->admitted, memory_order_relaxed));
    if (w->bytes >= s->config.wal_object_size || !timer_armed(&s->linger)) windows_try_close(s);
}

void stream_append(struct stream_store *s, struct stream_append *a) {
    a->next = (struct stream_append *)s; // the request carries its store until it is on the shard
    a->task.run = run_append;
    shard_post(s->shard, &a->task);
}
