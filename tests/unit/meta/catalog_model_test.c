// SPDX-License-Identifier: Apache-2.0
// Random commands of streams and objects, many of them wrong, against a naive model that knows for each single offset which object holds it. After
// each command: the same decision, the same ends, owners, epochs, objects and marks; the ranges tile [start, end).
#include "meta_testing.h"

#include "base/random.h"

#include <stdlib.h>

#define STREAMS 64
#define OFFSETS 4000
#define OBJECTS 6000
#define INCARNATIONS 40
#define WINDOWS 400

struct model_object { struct catalog_object_id id; bool exists; uint64_t marked; };
struct cell { uint32_t object, epoch; };
struct model_stream { bool exists; uint64_t owner, start, end, high; uint32_t epoch; struct cell *cells; };
struct window { struct command_range entries[8]; uint32_t count; };
struct model_incarnation { enum incarnation_state state; uint64_t committed, next, seal, number; struct window *windows; };

static struct {
    struct model_stream streams[STREAMS]; // by id
    struct model_object objects[OBJECTS];
    struct model_incarnation incarnations[INCARNATIONS]; // by id
    uint32_t stream_end, object_count, incarnation_end, partitions;
} model;
static struct testing t;
static struct random rng;
static uint64_t seed_now;
static struct { const char *what; uint32_t accepted, refused, repeated; } tally[16];

static uint64_t below(uint64_t n) { return random_below(&rng, n); }
static bool chance(uint32_t percent) { return below(100) < percent; }

static bool id_equal(struct catalog_object_id a, struct catalog_object_id b) { return (a.kind == OBJECT_KIND_WAL) == (b.kind == OBJECT_KIND_WAL) && a.incarnation == b.incarnation && a.number == b.number; }

static struct model_object *object_with(struct catalog_object_id id) {
    for (uint32_t i = 0; i < model.object_count; i++)
        if (model.objects[i].exists && id_equal(model.objects[i].id, id)) return &model.objects[i];
    return NULL;
}

static uint32_t object_make(struct catalog_object_id id) {
    struct model_object *o = object_with(id);
    if (o) return (uint32_t)(o - model.objects);
    mink_assert(model.object_count < OBJECTS);
    model.objects[model.object_count] = (struct model_object){id, true, 0};
    return model.object_count++;
}

static bool is_live(uint64_t incarnation) { return incarnation < model.incarnation_end && incarnation && model.incarnations[incarnation].state == INCARNATION_LIVE; }
static struct model_stream *stream_with(uint64_t id) { return id < model.stream_end && model.streams[id].exists ? &model.streams[id] : NULL; }

static void fill(struct model_stream *s, uint64_t from, uint64_t to, uint32_t object, uint32_t epoch) {
    mink_assert(to <= OFFSETS);
    for (uint64_t i = from; i < to; i++) s->cells[i] = (struct cell){object, epoch};
}

// Marks by the definition, over everything: no reference, and not a WAL object that its incarnation has still to commit.
static void settle(void) {
    static bool referenced[OBJECTS];
    memset(referenced, 0, model.object_count);
    for (uint32_t s = 1; s < model.stream_end; s++)
        for (uint64_t i = model.streams[s].start; model.streams[s].exists && i < model.streams[s].end; i++) referenced[model.streams[s].cells[i].object] = true;
    for (uint32_t i = 0; i < model.object_count; i++) {
        struct model_object *o = &model.objects[i];
        if (!o->exists || referenced[i] || o->marked) continue;
        if (o->id.kind == OBJECT_KIND_WAL && o->id.number >= model.incarnations[o->id.incarnation].committed) continue;
        o->marked = t.seq;
    }
}

// ---- compare

static void differ(const char *what, uint64_t id) { fail_msg("seed %llu, command %llu: %s %llu differs", (unsigned long long)seed_now, (unsigned long long)t.seq, what, (unsigned long long)id); }

static void compare(void) {
    static struct catalog_range ranges[OFFSETS];
    for (uint64_t id = 1; id < model.stream_end; id++) {
        const struct model_stream *m = &model.streams[id];
        struct catalog_stream s;
        bool exists = catalog_find_stream(t.catalog, id, &s);
        if (exists != m->exists) differ("existence of stream", id);
        if (!exists) continue;
        catalog_stream_deinit(&s);
        if (s.owner != m->owner || s.epoch != m->epoch || s.start != m->start || s.end != m->end) differ("stream", id);
        uint32_t count = catalog_ranges(t.catalog, id, s.start, ranges, OFFSETS);
        uint64_t at = s.start;
        for (uint32_t k = 0; k < count; k++) {
            if (ranges[k].from != at || ranges[k].to <= at) differ("tiling of stream", id);
            for (; at < ranges[k].to; at++)
                if (!id_equal(ranges[k].object, model.objects[m->cells[at].object].id) || ranges[k].epoch != m->cells[at].epoch) differ("object of stream", id);
        }
        if (at != s.end) differ("end of the ranges of stream", id);
    }
    struct catalog_object *list;
    uint32_t count, known = 0;
    catalog_list_objects(t.catalog, false, &list, &count);
    for (uint32_t i = 0; i < model.object_count; i++) known += model.objects[i].exists;
    if (known != count) differ("number of objects", count);
    for (uint32_t i = 0; i < count; i++) {
        const struct model_object *o = object_with(list[i].id);
        if (!o || o->marked != list[i].marked_position) differ("object", list[i].id.number);
    }
    mem_free(list);
    for (uint64_t id = 1; id < model.incarnation_end; id++) {
        struct catalog_incarnation i;
        const struct model_incarnation *m = &model.incarnations[id];
        if (!catalog_find_incarnation(t.catalog, id, &i) || i.state != m->state || i.wal_committed != m->committed || (m->state == INCARNATION_SEALED && i.seal_seq != m->seal)) differ("incarnation", id);
    }
}

static void count(const char *what, bool good, bool repeated) {
    uint32_t k = 0;
    while (tally[k].what && strcmp(tally[k].what, what) != 0) k++;
    tally[k].what = what;
    if (!good) tally[k].refused++;
    else if (repeated) tally[k].repeated++;
    else tally[k].accepted++;
}

// Runs a command whose decision the model has made; again, sometimes: nothing may change.
static void decide(struct command *c, bool good, const char *what) {
    struct slice encoded = command_encode(c);
    enum mink_code code = run(&t, c);
    if ((code == MINK_OK) != good) fail_msg("seed %llu, command %llu: %s was %s: %s", (unsigned long long)seed_now, (unsigned long long)t.seq, what, good ? "refused" : "accepted", code == MINK_OK ? "" : t.result.error.message);
    if (good) settle();
    count(what, good, t.result.existed);
    if (chance(25)) {
        struct slice before = catalog_save(t.catalog), after;
        struct command_result result;
        struct error e;
        assert_int_equal(catalog_apply(t.catalog, t.seq + 1, encoded, &result, &e), MINK_OK);
        mem_free(result.epochs);
        t.seq++;
        slices_take(&t.log, slice_ref(encoded));
        after = catalog_save(t.catalog);
        if (before.size != after.size || memcmp(before.data + 16, after.data + 16, before.size - 20) != 0) fail_msg("seed %llu, command %llu: %s twice changed something", (unsigned long long)seed_now, (unsigned long long)t.seq, what);
        slice_unref(&before);
        slice_unref(&after);
    }
    slice_unref(&encoded);
    compare();
}

// ---- operations

static void op_register(void) {
    if (model.incarnation_end == INCARNATIONS) return;
    uint8_t nonce[16] = {(uint8_t)model.incarnation_end, 1};
    struct model_incarnation *i = &model.incarnations[model.incarnation_end++];
    i->state = INCARNATION_LIVE;
    i->windows = mem_new_array(struct window, WINDOWS);
    i->number = 1;
    decide(command_register_incarnation(nonce, "a:1", ""), true, "register");
}

static uint64_t some_incarnation(void) { return chance(3) ? 999 : 1 + below(model.incarnation_end - 1); }
static uint64_t some_live(void) {
    for (int k = 0; k < 20; k++) {
        uint64_t i = 1 + below(model.incarnation_end - 1);
        if (is_live(i)) return i;
    }
    return some_incarnation();
}

static void op_dead(void) {
    uint64_t i = some_incarnation();
    bool good = i < model.incarnation_end;
    if (good && model.incarnations[i].state == INCARNATION_LIVE) model.incarnations[i].state = INCARNATION_DEAD;
    decide(command_declare_dead(i), good, "declare dead");
}

static void op_open(void) {
    uint64_t i = some_live(), ids[8];
    uint32_t count = (uint32_t)below(8), want[8] = {0};
    for (uint32_t k = 0; k < count; k++) {
        ids[k] = 1 + below(model.stream_end);
        struct model_stream *s = stream_with(ids[k]);
        if (!s || !is_live(i)) continue;
        if (s->owner && s->owner != i && model.incarnations[s->owner].state != INCARNATION_SEALED) continue;
        if (s->owner != i) s->epoch++;
        s->owner = i;
        s->high = s->high > s->end ? s->high : s->end;
        want[k] = s->epoch;
    }
    bool good = is_live(i);
    decide(command_open_streams(i, ids, count), good, "open");
    for (uint32_t k = 0; k < count && good; k++)
        if (t.epochs[k] != want[k]) differ("epoch of stream", ids[k]);
}

// A window of the incarnation's WAL, with rows of streams that it owns. No command.
static void op_append(void) {
    uint64_t id = some_live();
    if (!is_live(id) || model.incarnations[id].next >= WINDOWS - 1) return;
    struct model_incarnation *i = &model.incarnations[id];
    struct window *w = &i->windows[i->next++];
    w->count = 0;
    for (uint64_t s = 1; s < model.stream_end && w->count < 8; s++) {
        struct model_stream *m = stream_with(s);
        if (!m || m->owner != id || !chance(40) || m->high + 6 > OFFSETS) continue;
        if (m->high < m->end) m->high = m->end;
        uint64_t rows = 1 + below(5);
        w->entries[w->count++] = (struct command_range){s, m->epoch, m->high, m->high + rows};
        m->high += rows;
    }
}

static uint64_t next_number(uint64_t incarnation) { return incarnation < model.incarnation_end ? model.incarnations[incarnation].number++ : 1; }

static int by_stream(const void *a, const void *b) {
    const struct command_range *x = a, *y = b;
    if (x->stream_id != y->stream_id) return x->stream_id < y->stream_id ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

struct draft { struct command_object objects[WINDOWS + 4]; uint32_t count; };

static void draft_free(struct draft *d) {
    for (uint32_t i = 0; i < d->count; i++) mem_free(d->objects[i].ranges);
}

static struct command_object *draft_add(struct draft *d, struct catalog_object_id id, const struct command_range *ranges, uint32_t count) {
    struct command_object *o = &d->objects[d->count++];
    *o = (struct command_object){id, 100, 64, mem_new_array(struct command_range, count + 1), count};
    if (count) memcpy(o->ranges, ranges, count * sizeof *ranges);
    return o;
}

static void spoil(uint64_t *n) { *n = chance(50) ? *n + 1 + below(3) : *n - (*n ? 1 : 0); }

static void spoil_draft(struct draft *d) {
    if (d->count == 0) return;
    struct command_object *o = &d->objects[below(d->count)];
    switch (below(5)) {
    case 0: o->id.incarnation++; break;
    case 1: spoil(&o->id.number); break;
    default:
        if (o->range_count == 0) return;
        struct command_range *r = &o->ranges[below(o->range_count)];
        switch (below(4)) {
        case 0: spoil(&r->from); break;
        case 1: spoil(&r->to); break;
        case 2: r->epoch++; break;
        default: spoil(&r->stream_id); break;
        }
        if (r->to < r->from) r->to = r->from;
    }
}

static bool may_create(struct catalog_object_id id, uint64_t incarnation) { return (id.kind == OBJECT_KIND_SET || id.kind == OBJECT_KIND_STREAM) && id.incarnation == incarnation && id.number >= 1; }

static bool commit_is_good(uint64_t id, uint64_t from, uint64_t upto, const struct draft *d, bool *out_again) {
    uint64_t ends[STREAMS];
    *out_again = false;
    if (!is_live(id)) return false;
    if (upto == model.incarnations[id].committed && from < upto) return *out_again = true;
    if (from != model.incarnations[id].committed || upto < from) return false;
    for (uint32_t s = 0; s < STREAMS; s++) ends[s] = model.streams[s].end;
    for (uint32_t k = 0; k < d->count; k++) {
        const struct command_object *o = &d->objects[k];
        if (o->id.kind == OBJECT_KIND_WAL ? o->id.incarnation != id || o->id.number < from || o->id.number >= upto : !may_create(o->id, id) || object_with(o->id)) return false;
        for (uint32_t n = 0; n < o->range_count; n++) {
            const struct command_range *r = &o->ranges[n];
            const struct model_stream *s = stream_with(r->stream_id);
            if (!s) continue;
            if (s->owner != id || s->epoch != r->epoch || r->from != ends[r->stream_id] || r->to <= r->from) return false;
            ends[r->stream_id] = r->to;
        }
    }
    return true;
}

static void publish(const struct draft *d) {
    for (uint32_t k = 0; k < d->count; k++) {
        uint32_t object = object_make(d->objects[k].id);
        for (uint32_t n = 0; n < d->objects[k].range_count; n++) {
            const struct command_range *r = &d->objects[k].ranges[n];
            struct model_stream *s = stream_with(r->stream_id);
            if (!s) continue;
            fill(s, r->from, r->to, object, r->epoch);
            s->end = r->to;
            if (s->high < s->end) s->high = s->end;
        }
    }
}

static void op_commit(void) {
    static struct draft d;
    static struct command_range all[WINDOWS * 8];
    uint64_t id = some_live();
    d.count = 0;
    if (id >= model.incarnation_end) return;
    struct model_incarnation *i = &model.incarnations[id];
    uint64_t from = i->committed, upto = from + below(i->next - from + 1);
    uint32_t count = 0;
    bool by_reference = chance(30);
    for (uint64_t w = from; w < upto; w++) {
        uint32_t begin = count;
        for (uint32_t k = 0; k < i->windows[w].count; k++) {
            const struct command_range *r = &i->windows[w].entries[k];
            const struct model_stream *s = stream_with(r->stream_id);
            if (s && s->owner == id && s->epoch == r->epoch && r->from >= s->end) all[count++] = *r; // closed ones have been published
            else if (!s) all[count++] = *r;                                                          // the owner need not know
        }
        if (by_reference && count > begin) draft_add(&d, wal_id(id, w), all + begin, count - begin);
    }
    if (!by_reference && count) {
        qsort(all, count, sizeof *all, by_stream);
        uint32_t cut = (uint32_t)below(count + 1);
        if (cut) draft_add(&d, set_id(id, next_number(id)), all, cut);
        if (cut < count) draft_add(&d, (struct catalog_object_id){OBJECT_KIND_STREAM, id, next_number(id)}, all + cut, count - cut);
    }
    if (chance(25)) spoil_draft(&d);
    if (chance(5)) spoil(&from);
    if (chance(5) && upto < WINDOWS - 4) spoil(&upto);
    bool again, good = commit_is_good(id, from, upto, &d, &again);
    if (good && !again) {
        publish(&d);
        i->committed = upto;
        if (i->next < upto) i->next = upto;
    }
    struct command *c = command_commit_objects(id, from, upto, d.objects, d.count, NULL, 0);
    draft_free(&d);
    decide(c, good, "commit");
}

static void op_close(void) {
    static struct draft d;
    uint64_t stream = 1 + below(model.stream_end - 1), id = model.streams[stream].owner;
    d.count = 0;
    if (!id || !model.streams[stream].exists) return;
    struct model_incarnation *i = &model.incarnations[id];
    struct model_stream *s = &model.streams[stream];
    uint32_t epoch = s->epoch;
    uint64_t end = s->end;
    for (uint64_t w = i->committed; w < i->next; w++)
        for (uint32_t k = 0; k < i->windows[w].count; k++) {
            const struct command_range *r = &i->windows[w].entries[k];
            if (r->stream_id != stream || r->epoch != s->epoch || r->from != end) continue;
            draft_add(&d, wal_id(id, w), r, 1);
            end = r->to;
        }
    if (chance(20)) spoil_draft(&d);
    if (chance(5)) spoil(&end);
    if (chance(5)) epoch++;
    bool good = is_live(id) && epoch == s->epoch;
    uint64_t at = s->end;
    for (uint32_t k = 0; k < d.count && good; k++) {
        const struct command_object *o = &d.objects[k];
        good = o->id.kind == OBJECT_KIND_WAL && o->id.incarnation == id && o->id.number >= i->committed;
        for (uint32_t n = 0; n < o->range_count && good; n++) {
            const struct command_range *r = &o->ranges[n];
            good = r->stream_id == stream && r->epoch == s->epoch && r->from == at && r->to > r->from;
            at = r->to;
        }
    }
    good = good && at == end;
    if (good) {
        publish(&d);
        s->owner = 0;
        s->high = s->end;
    }
    struct command *c = command_close_stream(id, stream, epoch, end, d.objects, d.count);
    draft_free(&d);
    decide(c, good, "close");
}

static void op_seal(void) {
    static struct command_sealed_object objects[WINDOWS];
    static struct command_entry entries[WINDOWS][8];
    uint64_t id = some_incarnation(), ends[STREAMS];
    if (id >= model.incarnation_end) return;
    struct model_incarnation *i = &model.incarnations[id];
    uint64_t base = i->committed, seal = i->state == INCARNATION_SEALED ? i->seal : i->next;
    if (chance(8)) spoil(&base);
    if (chance(8) && seal < WINDOWS - 4) spoil(&seal);
    uint32_t count = seal > base && seal - base < WINDOWS ? (uint32_t)(seal - base) : 0;
    for (uint32_t k = 0; k < count; k++) {
        const struct window *w = base + k < i->next ? &i->windows[base + k] : &(struct window){0};
        objects[k] = (struct command_sealed_object){base + k, 100, 64, entries[k], w->count};
        for (uint32_t n = 0; n < w->count; n++) entries[k][n] = (struct command_entry){w->entries[n].stream_id, w->entries[n].epoch, w->entries[n].from, w->entries[n].to};
        if (w->count && chance(2)) spoil(&entries[k][below(w->count)].offset_end);
        if (w->count && chance(1)) entries[k][below(w->count)].epoch++;
        for (uint32_t n = 0; n < w->count; n++)
            if (entries[k][n].offset_end < entries[k][n].offset_first) entries[k][n].offset_end = entries[k][n].offset_first;
    }
    bool again = i->state == INCARNATION_SEALED && seal == i->seal, good = again;
    if (!again && i->state == INCARNATION_DEAD && base == i->committed && seal >= base && count == seal - base) {
        good = true;
        for (uint32_t s = 0; s < STREAMS; s++) ends[s] = model.streams[s].end;
        for (uint32_t k = 0; k < count && good; k++)
            for (uint32_t n = 0; n < objects[k].entry_count && good; n++) {
                const struct command_entry *r = &entries[k][n];
                const struct model_stream *s = stream_with(r->stream_id);
                if (!s) continue;
                if (s->owner == id && s->epoch == r->epoch) {
                    good = r->offset_first == ends[r->stream_id] && r->offset_end > r->offset_first;
                    ends[r->stream_id] = r->offset_end;
                } else {
                    good = r->offset_end <= s->end;
                }
            }
    }
    if (good && !again) {
        for (uint32_t k = 0; k < count; k++)
            for (uint32_t n = 0; n < objects[k].entry_count; n++) {
                const struct command_entry *r = &entries[k][n];
                struct model_stream *s = stream_with(r->stream_id);
                if (!s || s->owner != id || s->epoch != r->epoch) continue;
                fill(s, r->offset_first, r->offset_end, object_make(wal_id(id, objects[k].seq)), r->epoch);
                s->end = r->offset_end;
            }
        for (uint32_t s = 1; s < model.stream_end; s++)
            if (model.streams[s].owner == id) {
                model.streams[s].owner = 0;
                model.streams[s].high = model.streams[s].end;
            }
        i->state = INCARNATION_SEALED;
        i->seal = i->committed = seal;
        if (i->next < seal) i->next = seal;
    }
    decide(command_seal_incarnation(id, base, seal, objects, count), good, "seal");
}

static void op_trim(void) {
    uint64_t ids[3], starts[3];
    uint32_t count = 1 + (uint32_t)below(3);
    bool good = true;
    for (uint32_t k = 0; k < count; k++) {
        ids[k] = 1 + below(model.stream_end);
        const struct model_stream *s = stream_with(ids[k]);
        starts[k] = s ? s->start + below(s->end - s->start + (chance(10) ? 3 : 1)) : 5;
        if (s && starts[k] > s->end) good = false;
    }
    for (uint32_t k = 0; k < count && good; k++) {
        struct model_stream *s = stream_with(ids[k]);
        if (s && starts[k] > s->start) s->start = starts[k];
    }
    decide(command_trim_streams(ids, starts, count), good, "trim");
}

static void op_forget(void) {
    struct catalog_object_id ids[5];
    uint32_t count = 0;
    bool good = true;
    for (uint32_t k = 0; k < 200 && count < 5 && model.object_count; k++) {
        const struct model_object *o = &model.objects[below(model.object_count)];
        if (!o->exists || (!o->marked && !chance(1))) continue;
        good &= o->marked != 0;
        ids[count++] = o->id;
    }
    for (uint32_t k = 0; k < count && good; k++) {
        struct model_object *o = object_with(ids[k]);
        if (o) o->exists = false;
    }
    decide(command_forget_objects(ids, count), good, "forget");
}

static void op_replace(void) {
    static struct draft d;
    static struct command_range pieces[OFFSETS];
    static struct catalog_object_id old[8];
    static bool chosen[OBJECTS], taken[STREAMS][OFFSETS];
    uint64_t id = some_live();
    uint32_t old_count = 0, count = 0;
    d.count = 0;
    memset(chosen, 0, sizeof chosen);
    for (uint32_t k = 0; k < 40 && old_count < 6 && model.object_count; k++) {
        uint32_t o = (uint32_t)below(model.object_count);
        if (!model.objects[o].exists || chosen[o] || (model.objects[o].marked && !chance(5))) continue;
        chosen[o] = true;
        old[old_count++] = model.objects[o].id;
    }
    if (old_count == 0) return;
    // What a compaction makes of them: runs of their offsets, cut here and there; some reach below the start, as after a trim meanwhile.
    for (uint64_t sid = 1; sid < model.stream_end; sid++) {
        const struct model_stream *s = stream_with(sid);
        for (uint64_t at = s ? s->start : 0; s && at < s->end; at++) {
            if (!chosen[s->cells[at].object]) continue;
            struct command_range *last = count ? &pieces[count - 1] : NULL;
            if (last && last->stream_id == sid && last->to == at && last->epoch == s->cells[at].epoch && !chance(5)) last->to++;
            else if (count < OFFSETS) pieces[count++] = (struct command_range){sid, s->cells[at].epoch, at == s->start && at && chance(50) ? at - 1 : at, at + 1};
        }
    }
    if (chance(10)) pieces[count < OFFSETS ? count++ : 0] = (struct command_range){model.stream_end + 3, 1, 0, 4}; // of a stream that is gone
    uint32_t cut = (uint32_t)below(count + 1);
    if (cut) draft_add(&d, set_id(id, next_number(id)), pieces, cut);
    if (cut < count) draft_add(&d, set_id(id, next_number(id)), pieces + cut, count - cut);
    if (chance(25)) spoil_draft(&d);

    bool good = is_live(id), again = false, held = false;
    for (uint32_t s = 1; s < model.stream_end; s++)
        for (uint64_t at = model.streams[s].start; model.streams[s].exists && at < model.streams[s].end; at++) held |= chosen[model.streams[s].cells[at].object];
    for (uint32_t k = 0; k < d.count && good && !again; k++) {
        good = may_create(d.objects[k].id, id);
        if (good && object_with(d.objects[k].id)) {
            again = !held;
            good = again;
        }
    }
    memset(taken, 0, sizeof taken);
    for (uint32_t k = 0; k < d.count && good && !again; k++)
        for (uint32_t n = 0; n < d.objects[k].range_count && good; n++) {
            const struct command_range *r = &d.objects[k].ranges[n];
            const struct model_stream *s = stream_with(r->stream_id);
            good = r->to > r->from;
            if (!s) continue;
            for (uint64_t at = r->from > s->start ? r->from : s->start; at < r->to && good; at++) {
                good = at < s->end && chosen[s->cells[at].object] && !taken[r->stream_id][at];
                if (good) taken[r->stream_id][at] = true;
            }
        }
    for (uint32_t sid = 1; sid < model.stream_end && good && !again; sid++)
        for (uint64_t at = model.streams[sid].start; model.streams[sid].exists && at < model.streams[sid].end && good; at++) good = taken[sid][at] == chosen[model.streams[sid].cells[at].object];
    if (good && !again)
        for (uint32_t k = 0; k < d.count; k++) {
            uint32_t object = object_make(d.objects[k].id);
            for (uint32_t n = 0; n < d.objects[k].range_count; n++) {
                const struct command_range *r = &d.objects[k].ranges[n];
                struct model_stream *s = stream_with(r->stream_id);
                if (s && r->to > s->start) fill(s, r->from > s->start ? r->from : s->start, r->to, object, r->epoch);
            }
        }
    struct command *c = command_replace_objects(id, old, old_count, d.objects, d.count);
    draft_free(&d);
    decide(c, good, "replace");
}

static void op_partition(void) {
    char name[16];
    if (model.partitions && chance(50)) {
        uint32_t n = (uint32_t)below(model.partitions);
        snprintf(name, sizeof name, "p%u", n);
        for (uint64_t s = 1 + 3 * n; s < 4 + 3 * n; s++) model.streams[s].exists = false;
        decide(command_drop_partition(1, name, true), true, "drop partition");
        return;
    }
    if (model.stream_end + 3 > STREAMS) return;
    snprintf(name, sizeof name, "p%u", model.partitions++);
    for (int k = 0; k < 3; k++) {
        struct model_stream *s = &model.streams[model.stream_end++];
        s->exists = true;
        s->cells = mem_new_array(struct cell, OFFSETS);
    }
    decide(command_create_partition(1, name, true), true, "create partition");
}

static void one_seed(uint64_t seed) {
    seed_now = seed;
    random_seed(&rng, seed);
    memset(&model, 0, sizeof model);
    model.stream_end = model.incarnation_end = 1;
    testing_init(&t);
    assert_ok(&t, command_create_database("d", "", false));
    assert_ok(&t, create_table("d.t", 3, true, false));
    op_register();
    op_partition();
    for (int step = 0; step < 400; step++) {
        switch (below(20)) {
        case 0: op_register(); break;
        case 1: if (chance(40)) op_dead(); break;
        case 2: case 3: case 4: op_open(); break;
        case 5: case 6: case 7: case 8: case 9: op_append(); break;
        case 10: case 11: case 12: op_commit(); break;
        case 13: op_close(); break;
        case 14: op_seal(); break;
        case 15: op_trim(); break;
        case 16: op_forget(); break;
        case 17: case 18: op_replace(); break;
        default: if (chance(25)) op_partition();
        }
    }
    assert_replays(&t, 7);
    for (uint32_t s = 0; s < STREAMS; s++) mem_free(model.streams[s].cells);
    for (uint32_t i = 0; i < INCARNATIONS; i++) mem_free(model.incarnations[i].windows);
    testing_deinit(&t);
}

// MINK_SEED=n runs that one alone; MINK_SEEDS=n as many from 1.
static void random_commands_agree_with_the_model(void **state) {
    const char *one = getenv("MINK_SEED"), *many = getenv("MINK_SEEDS");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1, last = one ? first : many ? strtoull(many, NULL, 10) : 60;
    print_message("seeds %llu to %llu\n", (unsigned long long)first, (unsigned long long)last);
    for (uint64_t seed = first; seed <= last; seed++) one_seed(seed);
    for (uint32_t k = 0; tally[k].what; k++) {
        print_message("%-18s accepted %u, refused %u, done before %u\n", tally[k].what, tally[k].accepted, tally[k].refused, tally[k].repeated);
        if (!one) assert_true(tally[k].accepted >= 20); // or the model tests nothing
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_commands_agree_with_the_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
