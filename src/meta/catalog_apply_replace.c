// SPDX-License-Identifier: Apache-2.0
// ReplaceObjects: a compaction's outcome. Stream by stream the new ranges must cover exactly what the old objects still hold there.
//
// Since the compaction began, streams may have been trimmed (new ranges are clipped at the start), dropped (their ranges are left out), or
// compacted by somebody else (then a new range covers something that is not an old object's: refused). New ranges may be cut at other places than
// the old ones, also in the middle of one.
#include "meta/apply_internal.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct piece {
    uint64_t stream_id, from, to;
    uint32_t epoch, object; // index of the new object
};
struct pieces { struct piece *items; uint32_t count; };

static int by_stream(const void *a, const void *b) {
    const struct piece *x = a, *y = b;
    if (x->stream_id != y->stream_id) return x->stream_id < y->stream_id ? -1 : 1;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    if (x->to != y->to) return x->to < y->to ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

// The new ranges, sorted, clipped, without those of streams that are gone.
static void collect(const struct apply *a, const struct apply_objects *objects, struct pieces *out) {
    size_t total = 0;
    for (uint32_t i = 0; i < objects->count; i++) total += objects->items[i].range_count;
    *out = (struct pieces){mem_new_array(struct piece, total + 1), 0};
    for (uint32_t i = 0; i < objects->count; i++)
        for (uint32_t k = 0; k < objects->items[i].range_count; k++) {
            const struct command_range *r = &objects->items[i].ranges[k];
            const struct stream *s = catalog_stream_with_id(a->c, r->stream_id);
            if (s && r->to > s->start) out->items[out->count++] = (struct piece){r->stream_id, r->from > s->start ? r->from : s->start, r->to, r->epoch, i};
        }
    qsort(out->items, out->count, sizeof *out->items, by_stream);
}

static bool is_old(const struct apply *a, const struct range *r) { return r->object->chosen_seq == a->seq; }

// The pieces of one stream: each run of touching pieces must be made of whole ranges of old objects. Adds the number of those to *covered.
static enum mink_code check_stream(const struct apply *a, const struct stream *s, const struct piece *pieces, uint32_t count, uint64_t *covered, struct error *e) {
    for (uint32_t k = 0; k < count;) {
        uint64_t from = pieces[k].from, to = pieces[k].to;
        for (k++; k < count && pieces[k].from <= to; k++) {
            if (pieces[k].from < to) return error_set(e, MINK_CONFLICT, "NOT_COVERED", "stream %" PRIu64 ": replacing ranges overlap at %" PRIu64, s->id, pieces[k].from);
            to = pieces[k].to;
        }
        if (to > s->end) return error_set(e, MINK_CONFLICT, "NOT_COVERED", "stream %" PRIu64 ": a replacing range reaches to %" PRIu64 ", past the end %" PRIu64, s->id, to, s->end);
        uint32_t n = stream_find_range(s, from);
        if (stream_range_from(s, n) != from) return error_set(e, MINK_CONFLICT, "NOT_COVERED", "stream %" PRIu64 ": no replaced range begins at %" PRIu64, s->id, from);
        for (uint64_t at = from; at < to; n++, (*covered)++) {
            const struct range *r = &stream_ranges(s)[n];
            if (!is_old(a, r)) return error_set(e, MINK_CONFLICT, "NOT_COVERED", "stream %" PRIu64 ": offset %" PRIu64 " is in an object that is not replaced", s->id, at);
            if (r->to > to) return error_set(e, MINK_CONFLICT, "NOT_COVERED", "stream %" PRIu64 ": offsets %" PRIu64 " to %" PRIu64 " are not in the replacing objects", s->id, to, r->to);
            at = r->to;
        }
    }
    return MINK_OK;
}

// Some range of an old object is in no piece: say which.
static enum mink_code uncovered(const struct apply *a, const struct pieces *pieces, struct error *e) {
    for (uint32_t k = 0; k < a->c->streams.count; k++) {
        const struct stream *s = a->c->streams.items[k];
        for (uint32_t n = 0; n < s->range_count; n++) {
            if (!is_old(a, &stream_ranges(s)[n])) continue;
            uint64_t from = stream_range_from(s, n), to = stream_ranges(s)[n].to;
            bool covered = false;
            for (uint32_t i = 0; i < pieces->count && !covered; i++) covered = pieces->items[i].stream_id == s->id && pieces->items[i].from <= from && pieces->items[i].to > from;
            if (!covered) return error_set(e, MINK_CONFLICT, "NOT_COVERED", "stream %" PRIu64 ": offsets %" PRIu64 " to %" PRIu64 " are not in the replacing objects", s->id, from, to);
        }
    }
    return error_set(e, MINK_CONFLICT, "NOT_COVERED", "an object to be replaced holds more than the replacing ones");
}

static uint32_t end_of_stream(const struct pieces *p, uint32_t from) {
    uint32_t end = from;
    while (end < p->count && p->items[end].stream_id == p->items[from].stream_id) end++;
    return end;
}

static void swap_ranges(struct apply *a, struct stream *s, const struct piece *pieces, uint32_t count, struct object *const *created) {
    struct range *ranges = mem_new_array(struct range, s->range_count + count);
    uint32_t kept = 0, next = 0;
    for (uint32_t n = 0; n < s->range_count; n++) {
        struct range r = stream_ranges(s)[n];
        if (!is_old(a, &r)) {
            ranges[kept++] = r;
            continue;
        }
        for (; next < count && pieces[next].from < r.to; next++) {
            struct object *o = created[pieces[next].object];
            struct range *last = kept ? &ranges[kept - 1] : NULL;
            if (last && last->object == o && last->epoch == pieces[next].epoch) {
                last->to = pieces[next].to;
                continue;
            }
            ranges[kept++] = (struct range){o, pieces[next].to, pieces[next].epoch};
            o->live_ranges++;
            a->c->range_total++;
        }
        catalog_release_range(a->c, r.object);
    }
    mink_assert(next == count);
    mem_free(s->ranges);
    s->range_capacity = s->range_count + count;
    s->ranges = ranges;
    s->range_first = 0;
    s->range_count = kept;
}

void apply_replace_objects(struct apply *a, const Mink__ReplaceObjects *m, const struct apply_objects *objects) {
    if (!apply_live(a, m->incarnation)) return;
    uint64_t held = 0, covered = 0;
    for (size_t i = 0; i < m->n_old; i++) {
        struct object *o = catalog_object_with_id(a->c, apply_object_id(m->old[i]));
        if (!o || o->chosen_seq == a->seq) continue;
        o->chosen_seq = a->seq;
        held += o->live_ranges;
    }
    for (uint32_t i = 0; i < objects->count; i++) {
        a->result->code = apply_check_created(&objects->items[i], m->incarnation, &a->result->error);
        if (a->result->code != MINK_OK) return;
        if (!catalog_object_with_id(a->c, objects->items[i].id)) continue;
        if (held) REFUSE(a, MINK_CONFLICT, "OBJECT_EXISTS", "object %" PRIu64 "-%" PRIu64 " is in the catalog already", objects->items[i].id.incarnation, objects->items[i].id.number);
        a->result->existed = true; // this command again
        return;
    }
    for (uint32_t i = 0; i < objects->count; i++)
        for (uint32_t k = 0; k < objects->items[i].range_count; k++)
            if (objects->items[i].ranges[k].to <= objects->items[i].ranges[k].from) REFUSE(a, MINK_INVALID, "BAD_OBJECT", "stream %" PRIu64 ": an empty range", objects->items[i].ranges[k].stream_id);
    struct pieces pieces;
    collect(a, objects, &pieces);
    for (uint32_t k = 0; k < pieces.count && a->result->code == MINK_OK;) {
        uint32_t end = end_of_stream(&pieces, k);
        a->result->code = check_stream(a, catalog_stream_with_id(a->c, pieces.items[k].stream_id), &pieces.items[k], end - k, &covered, &a->result->error);
        k = end;
    }
    if (a->result->code == MINK_OK && covered != held) a->result->code = uncovered(a, &pieces, &a->result->error);
    if (a->result->code == MINK_OK) {
        struct object **created = mem_new_array(struct object *, objects->count + 1);
        for (uint32_t i = 0; i < objects->count; i++) created[i] = catalog_add_object(a->c, objects->items[i].id, objects->items[i].size, objects->items[i].index_size);
        for (uint32_t k = 0; k < pieces.count;) {
            uint32_t end = end_of_stream(&pieces, k);
            swap_ranges(a, catalog_stream_with_id(a->c, pieces.items[k].stream_id), &pieces.items[k], end - k, created);
            k = end;
        }
        for (uint32_t i = 0; i < objects->count; i++) catalog_settle_object(a->c, created[i]); // nothing of it is wanted any more
        mem_free(created);
    }
    mem_free(pieces.items);
}
