// SPDX-License-Identifier: Apache-2.0
// Taking over from a dead incarnation: walk its WAL from the committed point, seal the first gap, publish what lies below by reference.
//
//   found at (i, n)                    action
//   valid WAL of i, seq n              keep its index, n + 1
//   valid seal                         done: S = n
//   nothing                            create the seal there, conditionally: created → done; exists → read again
//   anything else                      corrupt: stop and say so
//   an error                           the same again, after a pause
// Reads ahead are hints only: absence is decided by the conditional create. Only tails are read, so the time does not grow with data.
#include "stream/stream_internal.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/mutant.h"

#include <inttypes.h>
#include <string.h>

#define AHEAD 32
#define LIST_MAX 1000

static struct metric_counter takeovers = METRIC_COUNTER("mink_takeovers_total", "incarnations sealed by this process");

struct tail { // one position read ahead
    struct object_request request;
    struct takeover *takeover;
    uint64_t seq;
    bool busy, ready;
};

struct takeover {
    struct stream_store *store;
    struct stream_takeover *asked;
    uint64_t incarnation, base, next, ahead; // next to decide; positions [next, ahead) are being read
    uint32_t depth;                          // how far ahead: doubles while objects are found
    struct tail tails[AHEAD];
    struct object_request index_request, list_request, header_request;
    struct object_footer footer;
    struct upload seal;
    bool sealing, walked, checking;
    uint64_t seal_seq;
    struct command_sealed_object *objects;
    uint32_t object_count, object_capacity;
    struct meta_proposal proposal;
    struct timer pause;
    char start_after[OBJECT_KEY_TEXT];
    struct object_entry *beyond;
    uint32_t beyond_count, beyond_at;
    bool beyond_more;
    uint32_t running; // requests under way: memory stays
    bool ended;
};

static void walk(struct takeover *t);
static void check_beyond(struct takeover *t);
static void publish(struct takeover *t);

static void run_done(struct task *task) {
    struct stream_takeover *asked = container_of(task, struct stream_takeover, task);
    asked->on_done(asked);
}

static void maybe_free(struct takeover *t) {
    if (!t->ended || t->running) return;
    struct stream_store *s = t->store;
    for (uint32_t i = 0; i < t->object_count; i++) mem_free(t->objects[i].entries);
    for (uint32_t i = 0; i < AHEAD; i++) slice_unref(&t->tails[i].request.data);
    object_entries_free(t->beyond, t->beyond_count);
    mem_free(t->objects);
    mem_free(t);
    store_busy(s, -1);
}

static void end(struct takeover *t, enum mink_code code, const struct error *e) {
    if (t->ended) return;
    t->ended = true;
    timer_stop(&t->pause);
    t->asked->code = code;
    if (e) t->asked->error = *e;
    t->asked->seal_seq = t->seal_seq;
    t->asked->objects = t->object_count;
    t->asked->task.run = run_done;
    shard_post(t->asked->shard, &t->asked->task);
}

static void pause_walk(struct takeover *t) { timer_start(&t->pause, 50 * NS_PER_MS + random_below(shard_random(t->store->shard), 200 * NS_PER_MS)); }

static void on_pause(struct timer *timer) {
    struct takeover *t = container_of(timer, struct takeover, pause);
    if (t->walked) check_beyond(t);
    else walk(t);
    maybe_free(t);
}

static void corrupt(struct takeover *t, uint64_t seq, const char *what) {
    struct error e;
    char key[OBJECT_KEY_TEXT];
    object_key_wal(t->incarnation, seq, key, sizeof key);
    error_set(&e, MINK_CORRUPT, "BAD_WAL", "takeover of incarnation %" PRIu64 ": %s: %s", t->incarnation, key, what);
    error_hint(&e, "restore the object; nothing was sealed past it");
    end(t, MINK_CORRUPT, &e);
}

// ---- one object of the walk

static void keep_object(struct takeover *t, uint64_t size, struct slice index) {
    struct object_block *blocks;
    struct error e;
    if (object_index_decode(index, &t->footer, &blocks, &e) != MINK_OK) {
        corrupt(t, t->next, e.message);
        return;
    }
    if (t->object_count == t->object_capacity) {
        t->object_capacity = t->object_capacity ? t->object_capacity * 2 : 64;
        t->objects = mem_realloc(t->objects, t->object_capacity * sizeof *t->objects);
    }
    struct command_sealed_object *o = &t->objects[t->object_count++];
    *o = (struct command_sealed_object){.seq = t->next, .size = size, .index_size = t->footer.index_size};
    o->entries = mem_new_array(struct command_entry, t->footer.block_count + 1);
    for (uint32_t i = 0; i < t->footer.block_count; i++) {
        struct command_entry *last = o->entry_count ? &o->entries[o->entry_count - 1] : NULL;
        if (last && last->stream_id == blocks[i].stream && last->epoch == blocks[i].epoch && last->offset_end == blocks[i].offset_first) last->offset_end = blocks[i].offset_end;
        else o->entries[o->entry_count++] = (struct command_entry){blocks[i].stream, blocks[i].epoch, blocks[i].offset_first, blocks[i].offset_end};
    }
    mem_free(blocks);
    t->next++;
    if (t->depth < AHEAD) t->depth *= 2;
    walk(t);
}

static void on_index(struct object_request *r) {
    struct takeover *t = container_of(r, struct takeover, index_request);
    t->running--;
    if (r->code == MINK_OK && !t->ended) keep_object(t, r->object_size, r->data);
    else if (!t->ended) pause_walk(t);
    slice_unref(&r->data);
    maybe_free(t);
}

static void walk_is_over(struct takeover *t, uint64_t seal_seq) {
    t->seal_seq = seal_seq;
    t->walked = true;
    check_beyond(t);
}

static void on_seal_settled(struct upload *u) {
    struct takeover *t = container_of(u, struct takeover, seal);
    if (t->ended) return;
    if (u->result == UPLOAD_FAILED) end(t, MINK_UNAVAILABLE, &u->error);
}

static void on_seal_idle(struct upload *u) {
    struct takeover *t = container_of(u, struct takeover, seal);
    enum upload_result result = u->result;
    t->running--;
    t->sealing = false;
    if (!t->ended) {
        if (result == UPLOAD_CREATED) walk_is_over(t, t->next);
        else { // somebody was faster: a late object of the owner, or another seal; read it
            t->ahead = t->next;
            walk(t);
        }
    }
    maybe_free(t);
}

static void put_seal(struct takeover *t) {
    struct stream_store *s = t->store;
    struct object_header header;
    struct object_writer out;
    if (MUTANT(NO_SEAL)) {
        walk_is_over(t, t->next);
        return;
    }
    t->seal = (struct upload){.store = s};
    store_content_id(s, t->seal.content_id);
    store_header(s, &header, OBJECT_KIND_SEAL, t->incarnation, t->next, t->seal.content_id);
    object_writer_begin(&out, &header);
    object_writer_finish(&out);
    t->seal.priority = OBJECT_TAKEOVER;
    t->seal.crc32c = out.crc32c;
    t->seal.body = out.body;
    object_key_wal(t->incarnation, t->next, t->seal.key, sizeof t->seal.key);
    t->seal.on_settled = on_seal_settled;
    t->seal.on_idle = on_seal_idle;
    t->sealing = true;
    t->running++;
    upload_start(&t->seal);
}

// The tail of (i, next) has arrived.
static void decide(struct takeover *t, struct tail *tail) {
    struct object_request *r = &tail->request;
    struct error e;
    tail->ready = false;
    if (r->code == MINK_NOT_FOUND) {
        put_seal(t);
        return;
    }
    if (r->code != MINK_OK) {
        log_limited(LOG_WARN, "takeover.read", "key=%s message=\"%s\"", r->key, r->error.message);
        t->ahead = t->next; // read again from here
        pause_walk(t);
        return;
    }
    struct slice bytes = r->data;
    enum mink_code code = bytes.size < OBJECT_FOOTER_SIZE ? error_set(&e, MINK_CORRUPT, "BAD_OBJECT", "truncated") : object_footer_decode(slice_view(bytes, bytes.size - OBJECT_FOOTER_SIZE, OBJECT_FOOTER_SIZE), &t->footer, &e);
    if (code == MINK_OK && t->footer.object_size != r->object_size) code = error_set(&e, MINK_CORRUPT, "BAD_OBJECT", "has %" PRIu64 " bytes, its footer says %" PRIu64, r->object_size, t->footer.object_size);
    struct object_header header;
    bool whole = bytes.size == r->object_size;
    if (code == MINK_OK && whole) { // small: the header came along
        code = object_header_decode(bytes, &header, &e);
        if (code == MINK_OK && (header.kind != t->footer.kind || header.subject != t->incarnation || header.seq != t->next || memcmp(header.cluster_id, t->store->cluster_id, 16) != 0 || memcmp(header.content_id, t->footer.content_id, 16) != 0))
            code = error_set(&e, MINK_CORRUPT, "BAD_OBJECT", "belongs elsewhere (incarnation %" PRIu64 ", seq %" PRIu64 ")", header.subject, header.seq);
    }
    if (code == MINK_OK && t->footer.kind != OBJECT_KIND_WAL && t->footer.kind != OBJECT_KIND_SEAL) code = error_set(&e, MINK_CORRUPT, "BAD_OBJECT", "is neither WAL nor seal");
    if (code != MINK_OK) {
        slice_unref(&r->data);
        if (MUTANT(WALK_PAST_INVALID)) walk_is_over(t, t->next);
        else corrupt(t, t->next, e.message);
        return;
    }
    if (t->footer.kind == OBJECT_KIND_SEAL) {
        slice_unref(&r->data);
        walk_is_over(t, t->next);
        return;
    }
    uint64_t index_at = t->footer.index_position, have_from = r->object_size - bytes.size;
    if (index_at >= have_from) {
        struct slice data = r->data;
        r->data = slice_empty();
        keep_object(t, r->object_size, slice_view(data, (size_t)(index_at - have_from), (size_t)t->footer.index_size));
        slice_unref(&data);
        return;
    }
    slice_unref(&r->data);
    t->running++;
    object_get(t->store->objects, &t->index_request, t->store->shard, r->key, index_at, t->footer.index_size, OBJECT_TAKEOVER, on_index);
}

static void on_tail(struct object_request *r) {
    struct tail *tail = container_of(r, struct tail, request);
    struct takeover *t = tail->takeover;
    tail->busy = false;
    tail->ready = true;
    t->running--;
    if (!t->ended && !t->walked && !t->sealing && tail->seq == t->next && !timer_armed(&t->pause)) walk(t);
    maybe_free(t);
}

static void walk(struct takeover *t) {
    if (t->ended || t->walked || t->sealing) return;
    struct stream_store *s = t->store;
    if (s->ended) {
        end(t, MINK_UNAVAILABLE, &s->end_reason);
        return;
    }
    if (t->ahead < t->next) t->ahead = t->next;
    struct tail *first = &t->tails[t->next % AHEAD];
    if (first->ready && first->seq == t->next && t->ahead > t->next) {
        if (MUTANT(SEAL_ONE_EARLY) && first->request.code == MINK_NOT_FOUND && t->object_count) {
            t->object_count--;
            mem_free(t->objects[t->object_count].entries);
            t->next--;
        }
        decide(t, first);
        return;
    }
    for (; t->ahead < t->next + t->depth; t->ahead++) {
        struct tail *tail = &t->tails[t->ahead % AHEAD];
        if (tail->busy) break; // an older read of this slot is still out: its answer comes here
        slice_unref(&tail->request.data);
        char key[OBJECT_KEY_TEXT];
        object_key_wal(t->incarnation, t->ahead, key, sizeof key);
        tail->takeover = t;
        tail->seq = t->ahead;
        tail->busy = true;
        tail->ready = false;
        t->running++;
        object_get_tail(s->objects, &tail->request, s->shard, key, TAIL_GET_SIZE, OBJECT_TAKEOVER, on_tail);
    }
}

// ---- has anything acknowledged vanished? An object beyond the seal that says acked_end > S proves it.

static void on_beyond_header(struct object_request *r) {
    struct takeover *t = container_of(r, struct takeover, header_request);
    struct object_header h;
    struct error e;
    t->running--;
    if (!t->ended) {
        if (r->code == MINK_OK && object_header_decode(r->data, &h, &e) == MINK_OK && h.kind == OBJECT_KIND_WAL && h.subject == t->incarnation && h.acked_end > t->seal_seq) {
            char key[OBJECT_KEY_TEXT];
            object_key_wal(t->incarnation, t->seal_seq, key, sizeof key);
            error_set(&e, MINK_CORRUPT, "ACKNOWLEDGED_OBJECT_LOST", "incarnation %" PRIu64 ": %s was acknowledged (%s says up to %" PRIu64 ") and is not in the store", t->incarnation, key, r->key, h.acked_end);
            error_hint(&e, "restore the object from a backup or an older version of the bucket");
            end(t, MINK_CORRUPT, &e);
        } else if (r->code == MINK_OK || r->code == MINK_NOT_FOUND || r->code == MINK_OUT_OF_RANGE) {
            t->beyond_at++;
            check_beyond(t);
        } else {
            pause_walk(t);
        }
    }
    slice_unref(&r->data);
    maybe_free(t);
}

static void on_listed(struct object_request *r) {
    struct takeover *t = container_of(r, struct takeover, list_request);
    t->running--;
    if (!t->ended) {
        if (r->code == MINK_OK) {
            object_entries_free(t->beyond, t->beyond_count);
            t->beyond = r->entries;
            t->beyond_count = r->entry_count;
            t->beyond_at = 0;
            t->beyond_more = r->list_more;
            t->checking = true;
            if (t->beyond_count) memcpy(t->start_after, t->beyond[t->beyond_count - 1].key, strlen(t->beyond[t->beyond_count - 1].key) + 1);
            check_beyond(t);
        } else {
            pause_walk(t);
        }
    }
    maybe_free(t);
}

static void check_beyond(struct takeover *t) {
    struct stream_store *s = t->store;
    if (s->ended) {
        end(t, MINK_UNAVAILABLE, &s->end_reason);
        return;
    }
    if (t->checking && t->beyond_at < t->beyond_count) {
        t->running++;
        object_get(s->objects, &t->header_request, s->shard, t->beyond[t->beyond_at].key, 0, OBJECT_HEADER_SIZE, OBJECT_TAKEOVER, on_beyond_header);
        return;
    }
    if (t->checking && !t->beyond_more) {
        publish(t);
        return;
    }
    if (!t->checking) object_key_wal(t->incarnation, t->seal_seq, t->start_after, sizeof t->start_after);
    char prefix[OBJECT_KEY_TEXT];
    object_key_wal_prefix(t->incarnation, prefix, sizeof prefix);
    t->running++;
    object_list(s->objects, &t->list_request, s->shard, prefix, t->start_after, LIST_MAX, OBJECT_TAKEOVER, on_listed);
}

// ---- the command

static void on_sealed(struct meta_proposal *p) {
    struct takeover *t = container_of(p, struct takeover, proposal);
    t->running--;
    if (p->result.code == MINK_OK) {
        metric_add(&takeovers, 1);
        log_info("takeover.done", "incarnation=%" PRIu64 " seal_seq=%" PRIu64 " objects=%u", t->incarnation, t->seal_seq, t->object_count);
        end(t, MINK_OK, NULL);
    } else {
        error_context(&p->result.error, "takeover of incarnation %" PRIu64, t->incarnation);
        end(t, p->result.code, &p->result.error);
    }
    maybe_free(t);
}

static void publish(struct takeover *t) {
    struct stream_store *s = t->store;
    t->running++;
    meta_propose(s->meta, &t->proposal, s->shard, command_seal_incarnation(t->incarnation, t->base, t->seal_seq, t->objects, t->object_count), on_sealed);
}

static void run_takeover(struct task *task) {
    struct stream_store *s;
    struct stream_takeover *asked = store_entered(task, &s);
    mem_free(container_of(task, struct call, task));
    struct takeover *t = mem_new(struct takeover);
    struct catalog_incarnation known;
    struct error e;
    store_busy(s, 1);
    t->store = s;
    t->asked = asked;
    t->incarnation = asked->incarnation;
    t->depth = 2;
    timer_init(&t->pause, s->shard, on_pause);
    if (s->ended) {
        end(t, s->end_reason.code, &s->end_reason);
    } else if (!catalog_find_incarnation(s->catalog, asked->incarnation, &known)) {
        end(t, error_set(&e, MINK_NOT_FOUND, "NO_SUCH_INCARNATION", "incarnation %" PRIu64 " does not exist", asked->incarnation), &e);
    } else if (known.state == INCARNATION_SEALED) {
        t->seal_seq = known.seal_seq;
        end(t, MINK_OK, NULL);
    } else if (known.state != INCARNATION_DEAD) {
        end(t, error_set(&e, MINK_CONFLICT, "INCARNATION_LIVE", "incarnation %" PRIu64 " is live: it must be declared dead before anybody walks its log", asked->incarnation), &e);
    } else {
        // Dead: wal_committed cannot move any more, so the base read here is the base for ever.
        t->base = t->next = t->ahead = known.wal_committed;
        walk(t);
    }
    maybe_free(t);
}

void stream_takeover(struct stream_store *s, struct stream_takeover *t) { store_enter(s, run_takeover, t); }
