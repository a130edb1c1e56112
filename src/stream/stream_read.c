// SPDX-License-Identifier: Apache-2.0
// Reads: recent appends from memory, older ones from objects through two caches.
//
// A read runs a step at a time: what it needs and is not in a cache is fetched, once however many wait for it, and the step runs again. Blocks
// are checked once, on entry into the cache; a mismatch is fetched again once, then it is corrupt, with key, position, stream and offsets.
#include "stream/stream_internal.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/mutant.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GET_MAX (8u << 20)
#define RANGES_LOOK 4
#define REPLANS_MAX 3
#define TRIES_MAX 6
#define PAUSE_NS (20 * NS_PER_MS)

static struct metric_counter tail_hits = METRIC_COUNTER("mink_read_tail_hits_total", "reads served from recent appends");
static struct metric_counter block_hits = METRIC_COUNTER("mink_read_block_hits_total", "blocks found in the block cache");
static struct metric_counter block_misses = METRIC_COUNTER("mink_read_block_misses_total", "blocks fetched from the store");
static struct metric_counter read_bytes = METRIC_COUNTER("mink_read_bytes_total", "bytes given to readers");
static struct metric_gauge cache_bytes = METRIC_GAUGE("mink_block_cache_bytes", "bytes of blocks in memory");
static struct metric_gauge index_bytes = METRIC_GAUGE("mink_index_cache_bytes", "bytes of indexes in memory");

// ---- a cache: chained hash, one list by use

struct item {
    struct item *chain, *newer, *older;
    struct catalog_object_id id;
    uint64_t key;           // block position, or stream id of an index
    struct slice data;      // block payload
    struct object_block *blocks;
    uint32_t block_count;
    size_t bytes;
};
struct cache { struct item **slots; uint32_t slot_count, count; struct item *newest, *oldest; uint64_t bytes, bytes_max; };

struct fetch { // one GET and those who wait for it
    struct fetch *next;
    struct stream_store *store;
    struct catalog_object_id id;
    uint64_t key;                // position of the first block; or stream id
    bool is_index, second_try;
    uint64_t object_size, index_size;
    struct object_block *blocks; // wanted blocks, ascending positions
    uint32_t block_count;
    struct object_request request;
    struct object_footer footer;
    struct reading *readers;
    struct index_look *looks;
    uint32_t tries;              // after passing failures of the store
    struct timer pause;
};

struct block_cache { struct cache blocks, indexes; struct fetch *fetches; };

struct reading {
    struct stream_store *store;
    struct stream_read *asked;
    struct reading *next; // waiting for the same fetch
    uint32_t replans;
    bool synced;
    struct meta_sync sync;
    struct stream_block *blocks;
    uint32_t block_count, block_capacity;
    uint64_t at, bytes;
};

static uint64_t hash_of(struct catalog_object_id id, uint64_t key) { return hash_u64(hash_u64(id.incarnation * 0x9e3779b97f4a7c15ull + id.number * 2 + (id.kind == OBJECT_KIND_WAL)) + key); }
static bool same_id(struct catalog_object_id a, struct catalog_object_id b) { return a.incarnation == b.incarnation && a.number == b.number && (a.kind == OBJECT_KIND_WAL) == (b.kind == OBJECT_KIND_WAL); }

static void unlink_item(struct cache *c, struct item *it) {
    if (it->newer) it->newer->older = it->older;
    else c->newest = it->older;
    if (it->older) it->older->newer = it->newer;
    else c->oldest = it->newer;
}

static void link_newest(struct cache *c, struct item *it) {
    it->newer = NULL;
    it->older = c->newest;
    if (c->newest) c->newest->newer = it;
    else c->oldest = it;
    c->newest = it;
}

static struct item *cache_find(struct cache *c, struct catalog_object_id id, uint64_t key) {
    if (!c->slot_count) return NULL;
    struct item *it = c->slots[hash_of(id, key) & (c->slot_count - 1)];
    while (it && !(same_id(it->id, id) && it->key == key)) it = it->chain;
    if (!it) return NULL;
    unlink_item(c, it);
    link_newest(c, it);
    return it;
}

static void item_free(struct item *it) {
    slice_unref(&it->data);
    mem_free(it->blocks);
    mem_free(it);
}

static void cache_evict(struct cache *c) {
    struct item *it = c->oldest;
    struct item **at = &c->slots[hash_of(it->id, it->key) & (c->slot_count - 1)];
    while (*at != it) at = &(*at)->chain;
    *at = it->chain;
    unlink_item(c, it);
    c->bytes -= it->bytes;
    c->count--;
    item_free(it);
}

static void cache_add(struct cache *c, struct item *it) {
    if (cache_find(c, it->id, it->key)) {
        item_free(it);
        return;
    }
    if (c->count >= c->slot_count) {
        uint32_t slots = c->slot_count ? c->slot_count * 2 : 64;
        struct item **grown = mem_new_array(struct item *, slots);
        for (uint32_t i = 0; i < c->slot_count; i++)
            for (struct item *old = c->slots[i], *next; old; old = next) {
                next = old->chain;
                struct item **slot = &grown[hash_of(old->id, old->key) & (slots - 1)];
                old->chain = *slot;
                *slot = old;
            }
        mem_free(c->slots);
        c->slots = grown;
        c->slot_count = slots;
    }
    struct item **slot = &c->slots[hash_of(it->id, it->key) & (c->slot_count - 1)];
    it->chain = *slot;
    *slot = it;
    link_newest(c, it);
    c->bytes += it->bytes;
    c->count++;
    while (c->bytes > c->bytes_max && c->count > 1) cache_evict(c); // the newest stays: somebody waits for it
}

static void cache_clear(struct cache *c) {
    while (c->oldest) cache_evict(c);
    mem_free(c->slots);
}

struct block_cache *block_cache_new(uint64_t bytes_max, uint64_t index_bytes_max) {
    struct block_cache *c = mem_new(struct block_cache);
    c->blocks.bytes_max = bytes_max;
    c->indexes.bytes_max = index_bytes_max;
    return c;
}

void block_cache_free(struct block_cache *c) {
    cache_clear(&c->blocks);
    cache_clear(&c->indexes);
    mem_free(c);
}

// ---- fetches

static void step(struct reading *r);
static void reading_failed(struct reading *r, enum mink_code code, const struct error *e);

static struct fetch *find_fetch(struct stream_store *s, struct catalog_object_id id, uint64_t key, bool is_index) {
    struct fetch *f = s->blocks->fetches;
    while (f && !(f->is_index == is_index && f->key == key && same_id(f->id, id))) f = f->next;
    return f;
}

static void answer_look(struct index_look *l);

static void fetch_done(struct fetch *f, enum mink_code code, const struct error *e) {
    struct stream_store *s = f->store;
    struct fetch **at = &s->blocks->fetches;
    while (*at != f) at = &(*at)->next;
    *at = f->next;
    for (struct reading *r = f->readers, *next; r; r = next) {
        next = r->next;
        if (code == MINK_OK) step(r);
        else reading_failed(r, code, e);
    }
    for (struct index_look *l = f->looks, *next; l; l = next) {
        next = l->next;
        l->code = code;
        error_copy(&l->error, e);
        answer_look(l);
    }
    slice_unref(&f->request.data);
    mem_free(f->blocks);
    mem_free(f);
    metric_set(&cache_bytes, (long long)s->blocks->blocks.bytes);
    metric_set(&index_bytes, (long long)s->blocks->indexes.bytes);
    store_busy(s, -1);
}

static void begin_fetch(struct fetch *f, uint64_t offset, uint64_t size, bool live, void (*on_done)(struct object_request *)) {
    char key[OBJECT_KEY_TEXT];
    object_key(f->id, key, sizeof key);
    object_get(f->store->objects, &f->request, f->store->shard, key, offset, size, live ? OBJECT_LIVE_READ : OBJECT_COLD_READ, on_done);
}

static void on_blocks(struct object_request *request);
static void on_index(struct object_request *request);

static void fetch_again(struct fetch *f) {
    if (f->is_index) {
        uint64_t size = f->index_size + OBJECT_FOOTER_SIZE;
        begin_fetch(f, f->object_size >= size ? f->object_size - size : 0, size, true, on_index);
    } else {
        const struct object_block *first = &f->blocks[0], *last = &f->blocks[f->block_count - 1];
        begin_fetch(f, first->position, last->position + object_block_stored_size(last) - first->position, true, on_blocks);
    }
}

static void on_pause(struct timer *t) { fetch_again(container_of(t, struct fetch, pause)); }

// A passing failure of the store is not the reader's: true when the fetch will be tried again.
static bool fetch_retried(struct fetch *f) {
    enum mink_code code = f->request.code;
    bool passing = code == MINK_UNAVAILABLE || code == MINK_OVERLOADED || code == MINK_UNKNOWN_OUTCOME || code == MINK_DEADLINE;
    if (!passing || f->store->ended || ++f->tries > TRIES_MAX) return false;
    uint64_t pause = PAUSE_NS << f->tries;
    timer_init(&f->pause, f->store->shard, on_pause);
    timer_start(&f->pause, pause / 2 + random_below(shard_random(f->store->shard), pause / 2));
    return true;
}

static struct fetch *new_fetch(struct stream_store *s, struct catalog_object_id id, uint64_t key, bool is_index) {
    struct fetch *f = mem_new(struct fetch);
    f->store = s;
    f->id = id;
    f->key = key;
    f->is_index = is_index;
    f->next = s->blocks->fetches;
    s->blocks->fetches = f;
    store_busy(s, 1);
    return f;
}

static void on_blocks(struct object_request *request) {
    struct fetch *f = container_of(request, struct fetch, request);
    if (fetch_retried(f)) return;
    struct error e = request->error;
    enum mink_code code = request->code;
    uint64_t from = f->blocks[0].position;
    for (uint32_t i = 0; i < f->block_count && code == MINK_OK; i++) {
        const struct object_block *b = &f->blocks[i];
        uint64_t at = b->position - from, size = object_block_stored_size(b);
        if (at + size > request->data.size) code = error_set(&e, MINK_CORRUPT, "BAD_OBJECT", "truncated answer");
        else if (!MUTANT(CRC_SKIPPED)) code = object_block_check(slice_view(request->data, at, size), b, &e);
        if (code != MINK_OK) error_context(&e, "%s, byte %" PRIu64 ", stream %" PRIu64 ", offsets %" PRIu64 " to %" PRIu64, request->key, b->position, b->stream, b->offset_first, b->offset_end);
    }
    if (code == MINK_CORRUPT && !f->second_try) { // the wire may have done it
        f->second_try = true;
        slice_unref(&request->data);
        log_warn("read.corrupt", "again=yes message=\"%s\"", e.message);
        fetch_again(f);
        return;
    }
    if (code == MINK_CORRUPT) log_error("read.corrupt", "again=no message=\"%s\"", e.message);
    // The first one last: it is what is waited for, and a small cache keeps only the newest.
    for (uint32_t i = f->block_count; i-- > 0 && code == MINK_OK;) {
        const struct object_block *b = &f->blocks[i];
        struct item *it = mem_new(struct item);
        it->id = f->id;
        it->key = b->position;
        // A copy per block when several came at once, so that one reader does not hold them all.
        struct slice payload = slice_view(request->data, b->position - from + OBJECT_BLOCK_HEADER_SIZE, b->payload_size);
        it->data = f->block_count == 1 ? slice_sub(request->data, b->position - from + OBJECT_BLOCK_HEADER_SIZE, b->payload_size) : slice_copy(payload.data, payload.size);
        it->bytes = sizeof *it + b->payload_size;
        metric_add(&block_misses, 1);
        cache_add(&f->store->blocks->blocks, it);
    }
    fetch_done(f, code, &e);
}

static enum mink_code keep_index(struct fetch *f, struct slice index, struct error *e) {
    struct object_block *blocks;
    MINK_TRY(object_index_decode(index, &f->footer, &blocks, e));
    uint32_t first = 0, end;
    while (first < f->footer.block_count && blocks[first].stream < f->key) first++;
    for (end = first; end < f->footer.block_count && blocks[end].stream == f->key;) end++;
    struct item *it = mem_new(struct item);
    it->id = f->id;
    it->key = f->key;
    it->block_count = end - first;
    it->blocks = mem_new_array(struct object_block, it->block_count + 1);
    memcpy(it->blocks, blocks + first, it->block_count * sizeof *blocks);
    it->bytes = sizeof *it + it->block_count * sizeof *blocks;
    mem_free(blocks);
    cache_add(&f->store->blocks->indexes, it);
    return MINK_OK;
}

static void on_index(struct object_request *request) {
    struct fetch *f = container_of(request, struct fetch, request);
    if (fetch_retried(f)) return;
    struct error e = request->error;
    enum mink_code code = request->code;
    uint64_t size = request->data.size;
    if (code == MINK_OK) code = size < OBJECT_FOOTER_SIZE ? error_set(&e, MINK_CORRUPT, "BAD_OBJECT", "truncated") : object_footer_decode(slice_view(request->data, size - OBJECT_FOOTER_SIZE, OBJECT_FOOTER_SIZE), &f->footer, &e);
    if (code == MINK_OK && (f->footer.object_size != f->object_size || f->footer.index_size != f->index_size || size != f->index_size + OBJECT_FOOTER_SIZE)) code = error_set(&e, MINK_CORRUPT, "BAD_OBJECT", "the object is not the one that was committed");
    if (code == MINK_OK) code = keep_index(f, slice_view(request->data, 0, f->index_size), &e);
    if (code == MINK_CORRUPT) {
        error_context(&e, "%s", request->key);
        if (!f->second_try) {
            f->second_try = true;
            slice_unref(&request->data);
            fetch_again(f);
            return;
        }
    }
    fetch_done(f, code, &e);
}

static struct fetch *index_fetch(struct stream_store *s, struct catalog_object_id id, uint64_t stream_id, uint64_t object_size, uint64_t index_size) {
    struct fetch *f = find_fetch(s, id, stream_id, true);
    if (f) return f;
    f = new_fetch(s, id, stream_id, true);
    f->object_size = object_size;
    f->index_size = index_size;
    fetch_again(f); // sizes come from the catalog, so one range holds it all
    return f;
}

// ---- looking at an index (trim, time)

static void answer_look(struct index_look *l) {
    struct item *it = l->code == MINK_OK ? cache_find(&l->store->blocks->indexes, l->id, l->stream_id) : NULL;
    if (l->code == MINK_OK && !it) { // pushed out at once by others: look again
        index_look(l->store, l);
        return;
    }
    l->blocks = it ? it->blocks : NULL;
    l->block_count = it ? it->block_count : 0;
    l->on_done(l);
}

static void run_look_again(struct task *task) {
    struct index_look *l = container_of(task, struct index_look, task);
    l->code = MINK_OK;
    answer_look(l);
}

void index_look(struct stream_store *s, struct index_look *l) {
    l->store = s;
    if (cache_find(&s->blocks->indexes, l->id, l->stream_id)) {
        l->task.run = run_look_again;
        shard_post(s->shard, &l->task);
        return;
    }
    struct fetch *f = index_fetch(s, l->id, l->stream_id, l->object_size, l->index_size);
    l->next = f->looks;
    f->looks = l;
}

// ---- reads

static void run_read_done(struct task *task) {
    struct stream_read *asked = container_of(task, struct stream_read, task);
    asked->on_done(asked);
}

static void finish(struct reading *r, enum mink_code code, const struct error *e) {
    struct stream_store *s = r->store;
    struct stream_read *asked = r->asked;
    if (code != MINK_OK) {
        stream_blocks_free(r->blocks, r->block_count);
        r->blocks = NULL;
        r->block_count = 0;
    }
    asked->code = code;
    error_copy(&asked->error, e);
    asked->blocks = r->blocks;
    asked->block_count = r->block_count;
    metric_add(&read_bytes, r->bytes);
    mem_free(r);
    store_busy(s, -1);
    asked->task.run = run_read_done;
    shard_post(asked->shard, &asked->task);
}

static struct stream_block *add_block(struct reading *r) {
    if (r->block_count == r->block_capacity) {
        r->block_capacity = r->block_capacity ? r->block_capacity * 2 : 8;
        r->blocks = mem_realloc(r->blocks, r->block_capacity * sizeof *r->blocks);
    }
    struct stream_block *b = &r->blocks[r->block_count++];
    *b = (struct stream_block){0};
    return b;
}

static void on_synced(struct meta_sync *sync) {
    struct reading *r = container_of(sync, struct reading, sync);
    if (sync->code == MINK_OK) step(r);
    else finish(r, sync->code, &sync->error);
}

static void reading_failed(struct reading *r, enum mink_code code, const struct error *e) {
    // A referenced object that is not there: the plan may be older than a trim or a replacement. Look at the newest state and plan again.
    if (code == MINK_NOT_FOUND && r->replans++ < REPLANS_MAX) {
        meta_sync(r->store->meta, &r->sync, r->store->shard, on_synced);
        return;
    }
    struct error told = *e;
    if (code == MINK_NOT_FOUND) {
        code = told.code = MINK_CORRUPT;
        snprintf(told.reason, sizeof told.reason, "OBJECT_MISSING");
        error_hint(&told, "the catalog needs this object and the store does not have it: restore it");
        log_error("read.missing", "message=\"%s\"", told.message);
    }
    finish(r, code, &told);
}

// From memory. False when the offset is not there.
static bool from_tail(struct reading *r, const struct live *l) {
    uint32_t low = 0, high = l->visible_count;
    if (high == 0 || r->at < live_entry(l, 0)->offset_first) return false;
    while (low < high) { // the first that ends after `at`
        uint32_t mid = low + (high - low) / 2;
        if (live_entry(l, mid)->offset_end > r->at) high = mid;
        else low = mid + 1;
    }
    bool any = false;
    for (; low < l->visible_count; low++) {
        const struct entry *entry = live_entry(l, low);
        if (MUTANT(READ_SKIPS_BATCH) && any && low % 4 == 3) continue;
        if (entry->payload.count == 0 || (r->block_count && r->bytes + entry->bytes > r->asked->bytes_max)) break;
        struct stream_block *b = add_block(r);
        b->offset_first = entry->offset_first;
        b->offset_end = entry->offset_end;
        b->ts_min_ms = entry->ts_min;
        b->ts_max_ms = entry->ts_max;
        if (MUTANT(TAIL_STALE) && low % 4 == 3) entry = live_entry(l, low - 1); // its neighbour's bytes
        for (uint32_t k = 0; k < entry->payload.count; k++) slices_take(&b->payload, slice_ref(entry->payload.items[k]));
        r->bytes += entry->bytes;
        r->at = entry->offset_end;
        any = true;
    }
    if (any) metric_add(&tail_hits, 1);
    return any;
}

// The blocks of one object, from the cache; fetches what is missing. True: the step goes on; false: waits.
static bool from_object(struct reading *r, struct catalog_object_id id, uint64_t object_size, uint64_t index_size, uint64_t range_end) {
    struct stream_store *s = r->store;
    struct item *index = cache_find(&s->blocks->indexes, id, r->asked->stream_id);
    struct fetch *f;
    struct error e;
    if (!index) {
        f = index_fetch(s, id, r->asked->stream_id, object_size, index_size);
        r->next = f->readers;
        f->readers = r;
        return false;
    }
    uint32_t i = 0, high = index->block_count;
    while (i < high) {
        uint32_t mid = i + (high - i) / 2;
        if (index->blocks[mid].offset_end > r->at) high = mid;
        else i = mid + 1;
    }
    if (i == index->block_count || index->blocks[i].offset_first > r->at) {
        char key[OBJECT_KEY_TEXT];
        object_key(id, key, sizeof key);
        error_set(&e, MINK_CORRUPT, "BAD_OBJECT", "%s does not hold offset %" PRIu64 " of stream %" PRIu64, key, r->at, r->asked->stream_id);
        finish(r, MINK_CORRUPT, &e);
        return false;
    }
    const struct object_block *b = &index->blocks[i];
    struct item *cached = cache_find(&s->blocks->blocks, id, b->position);
    if (!cached) {
        if (r->block_count) { // what is there is an answer
            finish(r, MINK_OK, NULL);
            return false;
        }
        f = find_fetch(s, id, b->position, false);
        if (!f) {
            // As many following blocks of the stream as lie together and one GET may bring.
            uint64_t want = r->asked->sequential ? GET_MAX : r->asked->bytes_max, size = object_block_stored_size(b);
            uint32_t count = 1;
            while (i + count < index->block_count && b[count].offset_first < range_end) {
                uint64_t grown = b[count].position + object_block_stored_size(&b[count]) - b->position;
                if (b[count].position - (b->position + size) > (1u << 20) || grown > want || grown > GET_MAX || cache_find(&s->blocks->blocks, id, b[count].position)) break;
                size = grown;
                count++;
            }
            f = new_fetch(s, id, b->position, false);
            f->block_count = count;
            f->blocks = mem_new_array(struct object_block, count);
            memcpy(f->blocks, b, count * sizeof *b);
            fetch_again(f);
        }
        r->next = f->readers;
        f->readers = r;
        return false;
    }
    metric_add(&block_hits, 1);
    if (r->block_count && r->bytes + cached->data.size > r->asked->bytes_max) {
        finish(r, MINK_OK, NULL);
        return false;
    }
    struct stream_block *out = add_block(r);
    out->offset_first = b->offset_first;
    out->offset_end = b->offset_end;
    out->ts_min_ms = b->ts_min;
    out->ts_max_ms = b->ts_max;
    slices_take(&out->payload, slice_ref(cached->data));
    r->bytes += cached->data.size;
    r->at = b->offset_end;
    return true;
}

static void step(struct reading *r) {
    struct stream_store *s = r->store;
    for (;;) {
        struct live *l = s->ended ? NULL : store_live(s, r->asked->stream_id);
        struct catalog_stream known;
        struct error e;
        if (s->ended) {
            finish(r, s->end_reason.code, &s->end_reason);
            return;
        }
        if (!l || !catalog_find_stream(s->catalog, r->asked->stream_id, &known)) {
            finish(r, error_set(&e, MINK_NOT_FOUND, "NO_SUCH_STREAM", "the table or partition was dropped"), &e);
            return;
        }
        uint64_t start = known.start, committed = known.end;
        catalog_stream_deinit(&known);
        r->asked->start = start;
        r->asked->high_watermark = atomic_load_explicit(&l->high_watermark, memory_order_relaxed);
        // Somebody else owns the stream by now, and this process does not know yet that it has been fenced: what is committed counts, as
        // stream_extent says too; a reader that sees one end here and another there would ask for ever.
        if (committed > r->asked->high_watermark) r->asked->high_watermark = committed;
        if (r->at == r->asked->high_watermark || (r->block_count && r->bytes >= r->asked->bytes_max)) {
            finish(r, MINK_OK, NULL);
            return;
        }
        if (r->at < start || r->at > r->asked->high_watermark) {
            if (r->block_count) finish(r, MINK_OK, NULL);
            else finish(r, error_set(&e, MINK_OUT_OF_RANGE, "OFFSET_OUT_OF_RANGE", "offset %" PRIu64 " is outside %" PRIu64 " to %" PRIu64, r->at, start, r->asked->high_watermark), &e);
            return;
        }
        if (from_tail(r, l)) continue;
        struct catalog_range range;
        if (r->at < committed && catalog_ranges(s->catalog, r->asked->stream_id, r->at, &range, 1) == 1) {
            if (!from_object(r, range.object, range.object_size, range.index_size, range.to)) return;
            continue;
        }
        // Acknowledged, not committed, and not in memory any more: its WAL object has it.
        const struct entry *found = NULL;
        for (uint32_t i = 0; i < l->visible_count && !found; i++)
            if (live_entry(l, i)->offset_end > r->at) found = live_entry(l, i);
        if (!found || !found->window) { // committed between the two looks
            mink_assert(found);
            continue;
        }
        struct catalog_object_id id = {OBJECT_KIND_WAL, s->incarnation, found->window->seq};
        if (!from_object(r, id, found->window->size, found->window->index_size, found->offset_end)) return;
    }
}

static void run_read(struct task *task) {
    struct stream_store *s;
    struct stream_read *asked = store_entered(task, &s);
    mem_free(container_of(task, struct call, task));
    struct reading *r = mem_new(struct reading);
    r->store = s;
    r->asked = asked;
    r->at = asked->offset;
    store_busy(s, 1);
    step(r);
}

void stream_read(struct stream_store *s, struct stream_read *r) {
    r->code = MINK_OK;
    r->blocks = NULL;
    r->block_count = 0;
    r->start = r->high_watermark = 0;
    store_enter(s, run_read, r);
}

void stream_blocks_free(struct stream_block *blocks, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) slices_deinit(&blocks[i].payload);
    mem_free(blocks);
}
