// SPDX-License-Identifier: Apache-2.0
// Applying commands of incarnations, streams and objects. ReplaceObjects is in catalog_apply_replace.c.
//
// An object whose last range goes is marked, and deleted later. A WAL object at or past its incarnation's wal_committed is not: it may hold what
// no command has published yet (other streams' entries, or this one's from another close), and a takeover must find it. It is marked when the
// committed point has passed it.
#include "meta/apply_internal.h"

#include "base/mem.h"
#include "base/mutant.h"

#include <inttypes.h>
#include <string.h>

// ---- incarnations and streams

void apply_register_incarnation(struct apply *a, const Mink__RegisterIncarnation *m) {
    if (m->nonce.len != INCARNATION_NONCE_SIZE) REFUSE(a, MINK_INVALID, "BAD_NONCE", "an incarnation's nonce has %d bytes, not %zu", INCARNATION_NONCE_SIZE, m->nonce.len);
    if (strlen(m->address) > INCARNATION_ADDRESS_MAX || strlen(m->rack) > INCARNATION_ADDRESS_MAX) REFUSE(a, MINK_INVALID, "BAD_ADDRESS", "address and rack have at most %d bytes", INCARNATION_ADDRESS_MAX);
    for (uint32_t i = a->c->incarnations.count; i-- > 0;) { // the same process, whose reply was lost
        struct incarnation *known = a->c->incarnations.items[i];
        if (memcmp(known->nonce, m->nonce.data, INCARNATION_NONCE_SIZE) != 0) continue;
        a->result->id = known->id;
        a->result->existed = true;
        return;
    }
    if (a->c->next_incarnation > INCARNATION_ID_MAX) REFUSE(a, MINK_UNSUPPORTED, "NO_INCARNATIONS_LEFT", "all incarnation ids are used");
    struct incarnation *i = mem_new(struct incarnation);
    i->id = a->c->next_incarnation++;
    i->state = INCARNATION_LIVE;
    memcpy(i->nonce, m->nonce.data, INCARNATION_NONCE_SIZE);
    i->address = mem_strdup(m->address);
    i->rack = mem_strdup(m->rack);
    sorted_insert(&a->c->incarnations, a->c->incarnations.count, i);
    a->result->id = i->id;
}

void apply_declare_dead(struct apply *a, const Mink__DeclareDead *m) {
    struct incarnation *i = catalog_incarnation_with_id(a->c, m->incarnation);
    if (!i) REFUSE(a, MINK_NOT_FOUND, "NO_SUCH_INCARNATION", "incarnation %" PRIu64 " does not exist", m->incarnation);
    if (i->state == INCARNATION_LIVE) i->state = INCARNATION_DEAD;
    else a->result->existed = true;
}

struct incarnation *apply_live(struct apply *a, uint64_t id) {
    struct incarnation *i = catalog_incarnation_with_id(a->c, id);
    if (i && (i->state == INCARNATION_LIVE || MUTANT(COMMIT_WHEN_DEAD))) return i;
    a->result->code = error_set(&a->result->error, MINK_FENCED, "INCARNATION_DEAD", "incarnation %" PRIu64 " is not live", id);
    return NULL;
}

void apply_open_streams(struct apply *a, const Mink__OpenStreams *m) {
    if (!apply_live(a, m->incarnation)) return;
    a->result->epochs = mem_new_array(uint32_t, m->n_streams ? m->n_streams : 1);
    a->result->epoch_count = (uint32_t)m->n_streams;
    for (size_t k = 0; k < m->n_streams; k++) {
        struct stream *s = catalog_stream_with_id(a->c, m->streams[k]);
        if (!s) continue;
        if (s->owner && s->owner != m->incarnation) {
            const struct incarnation *owner = catalog_incarnation_with_id(a->c, s->owner);
            if (owner && owner->state != INCARNATION_SEALED) continue;
        }
        // Opening what one owns already (the reply of an earlier proposal was lost) keeps the epoch.
        if (s->owner != m->incarnation) {
            s->owner = m->incarnation;
            s->epoch++;
        }
        a->result->epochs[k] = s->epoch;
    }
}

void apply_allocate_writer_ids(struct apply *a, const Mink__AllocateWriterIds *m) {
    if (m->count == 0 || m->count > 1000000) REFUSE(a, MINK_INVALID, "BAD_COUNT", "%u writer ids: from 1 to 1,000,000 at a time", m->count);
    a->result->id = a->c->next_writer_id;
    a->c->next_writer_id += m->count;
}

// ---- ranges and objects

struct object *catalog_add_object(struct catalog *c, struct catalog_object_id id, uint64_t size, uint64_t index_size) {
    bool found;
    uint32_t at = sorted_find(&c->objects, &id, compare_object, &found);
    if (found) return c->objects.items[at];
    struct object *o = mem_new(struct object);
    *o = (struct object){.id = id, .size = size, .index_size = index_size};
    sorted_insert(&c->objects, at, o);
    return o;
}

void catalog_push_range(struct catalog *c, struct stream *s, struct object *o, uint64_t to, uint32_t epoch) {
    mink_assert(o->marked_position == 0 && to > s->end);
    // Neighbouring pieces of one object and epoch are one range.
    struct range *last = s->range_count ? &stream_ranges(s)[s->range_count - 1] : NULL;
    s->end = to;
    if (last && last->object == o && last->epoch == epoch) {
        last->to = to;
        return;
    }
    if (s->range_first + s->range_count == s->range_capacity) {
        if (s->range_first > s->range_count) {
            memmove(s->ranges, stream_ranges(s), s->range_count * sizeof *s->ranges);
            s->range_first = 0;
        } else {
            s->range_capacity = s->range_capacity ? s->range_capacity * 2 : 2;
            s->ranges = mem_realloc(s->ranges, s->range_capacity * sizeof *s->ranges);
        }
    }
    s->ranges[s->range_first + s->range_count++] = (struct range){o, to, epoch};
    o->live_ranges++;
    c->range_total++;
}

bool catalog_may_be_unreferenced(const struct catalog *c, const struct object *o) {
    if (o->id.kind != OBJECT_KIND_WAL) return false;
    const struct incarnation *i = catalog_incarnation_with_id(c, o->id.incarnation);
    return i && o->id.number >= i->wal_committed;
}

void catalog_settle_object(struct catalog *c, struct object *o) {
    if (o->live_ranges == 0 && o->marked_position == 0 && !catalog_may_be_unreferenced(c, o)) o->marked_position = c->position;
}

void catalog_release_range(struct catalog *c, struct object *o) {
    mink_assert(o->live_ranges > 0);
    c->range_total--;
    o->live_ranges--;
    catalog_settle_object(c, o);
}

// The committed point has moved: WAL objects it passed are judged like others.
static void move_committed(struct apply *a, struct incarnation *i, uint64_t upto) {
    struct catalog_object_id from = {OBJECT_KIND_WAL, i->id, i->wal_committed};
    bool found;
    mink_assert(upto >= i->wal_committed);
    i->wal_committed = upto;
    for (uint32_t at = sorted_find(&a->c->objects, &from, compare_object, &found); at < a->c->objects.count; at++) {
        struct object *o = a->c->objects.items[at];
        if (o->id.kind != OBJECT_KIND_WAL || o->id.incarnation != i->id || o->id.number >= upto) break;
        catalog_settle_object(a->c, o);
    }
}

void catalog_add_streams(struct catalog *c, uint64_t table_id, uint64_t partition_id, uint32_t count, uint64_t *out_base) {
    *out_base = c->next_stream_id;
    for (uint32_t b = 0; b < count; b++) {
        struct stream *s = mem_new(struct stream);
        s->id = c->next_stream_id++;
        s->table_id = table_id;
        s->partition_id = partition_id;
        s->bucket = b;
        sorted_insert(&c->streams, c->streams.count, s);
    }
}

void catalog_drop_streams(struct catalog *c, uint64_t base, uint32_t count) {
    bool found;
    uint32_t at = sorted_find(&c->streams, &base, compare_stream, &found), end = at;
    for (; end < c->streams.count; end++) {
        struct stream *s = c->streams.items[end];
        if (s->id - base >= count) break;
        for (uint32_t i = 0; i < s->range_count; i++) catalog_release_range(c, stream_ranges(s)[i].object);
        catalog_free_stream(s);
    }
    sorted_remove_many(&c->streams, at, end - at);
}

// The end that a stream has after the ranges of this command that were checked so far: checks look ahead without changing anything.
static uint64_t *ahead_end(const struct apply *a, struct stream *s) {
    if (s->ahead_seq != a->seq) {
        s->ahead_seq = a->seq;
        s->ahead_end = s->end;
    }
    return &s->ahead_end;
}

enum mink_code apply_check_created(const struct command_object *o, uint64_t incarnation, struct error *e) {
    if ((o->id.kind == OBJECT_KIND_SET || o->id.kind == OBJECT_KIND_STREAM) && o->id.incarnation == incarnation && o->id.number >= 1 && o->id.number <= OBJECT_NUMBER_MAX) return MINK_OK;
    return error_set(e, MINK_INVALID, "BAD_OBJECT", "incarnation %" PRIu64 " cannot publish object %" PRIu64 "-%" PRIu64 " of kind %d", incarnation, o->id.incarnation, o->id.number, (int)o->id.kind);
}

static enum mink_code check_wal(const struct command_object *o, uint64_t incarnation, uint64_t from, uint64_t upto, struct error *e) {
    if (o->id.kind == OBJECT_KIND_WAL && o->id.incarnation == incarnation && o->id.number >= from && o->id.number < upto) return MINK_OK;
    return error_set(e, MINK_INVALID, "BAD_OBJECT", "object %" PRIu64 "-%" PRIu64 " of kind %d is not in the WAL of incarnation %" PRIu64 " from %" PRIu64, o->id.incarnation, o->id.number, (int)o->id.kind, incarnation, from);
}

static enum mink_code check_objects(const struct apply *a, const struct incarnation *i, const struct apply_objects *objects, uint64_t wal_upto, struct error *e) {
    for (uint32_t k = 0; k < objects->count; k++) {
        const struct command_object *o = &objects->items[k];
        if (o->id.kind == OBJECT_KIND_WAL) {
            MINK_TRY(check_wal(o, i->id, i->wal_committed, wal_upto, e));
            continue;
        }
        MINK_TRY(apply_check_created(o, i->id, e));
        if (catalog_object_with_id(a->c, o->id)) return error_set(e, MINK_CONFLICT, "OBJECT_EXISTS", "object %" PRIu64 "-%" PRIu64 " is in the catalog already", o->id.incarnation, o->id.number);
    }
    return MINK_OK;
}

// Ranges that extend streams of an owner. A stream that was dropped meanwhile is skipped (its bytes become garbage with the object).
static enum mink_code check_extends(const struct apply *a, uint64_t incarnation, const struct apply_objects *objects, struct error *e) {
    for (uint32_t i = 0; i < objects->count; i++)
        for (uint32_t k = 0; k < objects->items[i].range_count; k++) {
            const struct command_range *r = &objects->items[i].ranges[k];
            struct stream *s = catalog_stream_with_id(a->c, r->stream_id);
            if (!s) continue;
            uint64_t *end = ahead_end(a, s);
            if (s->owner != incarnation || s->epoch != r->epoch) return error_set(e, MINK_FENCED, "NOT_OWNER", "stream %" PRIu64 " epoch %u is not incarnation %" PRIu64 "'s", r->stream_id, r->epoch, incarnation);
            if (r->from != *end || r->to <= r->from) return error_set(e, MINK_CONFLICT, "NOT_CONTIGUOUS", "stream %" PRIu64 ": offsets %" PRIu64 " to %" PRIu64 " do not follow %" PRIu64, r->stream_id, r->from, r->to, *end);
            *end = r->to;
        }
    return MINK_OK;
}

static void extend(struct apply *a, const struct apply_objects *objects) {
    for (uint32_t i = 0; i < objects->count; i++) {
        const struct command_object *added = &objects->items[i];
        struct object *o = catalog_add_object(a->c, added->id, added->size, added->index_size);
        for (uint32_t k = 0; k < added->range_count; k++) {
            struct stream *s = catalog_stream_with_id(a->c, added->ranges[k].stream_id);
            if (s) catalog_push_range(a->c, s, o, added->ranges[k].to, added->ranges[k].epoch);
        }
    }
    // All streams of an object may have been dropped meanwhile. Only now, for a command may name an object twice.
    for (uint32_t i = 0; i < objects->count; i++) catalog_settle_object(a->c, catalog_object_with_id(a->c, objects->items[i].id));
}

// ---- commit, close, seal

void apply_commit_objects(struct apply *a, const Mink__CommitObjects *m, const struct apply_objects *objects) {
    struct incarnation *i = apply_live(a, m->incarnation);
    if (!i) return;
    if (m->wal_upto == i->wal_committed && m->wal_from < m->wal_upto) { // this commit again
        a->result->existed = true;
        return;
    }
    if (m->wal_from != i->wal_committed || m->wal_upto < m->wal_from) REFUSE(a, MINK_CONFLICT, "WAL_POSITION", "commit of WAL %" PRIu64 " to %" PRIu64 ": %" PRIu64 " is committed", m->wal_from, m->wal_upto, i->wal_committed);
    for (size_t k = 0; k < m->n_attachments; k++)
        if (m->attachments[k]->bytes.len > ATTACHMENT_BYTES_MAX) REFUSE(a, MINK_INVALID, "ATTACHMENT_SIZE", "an attachment of %zu bytes: at most %u", m->attachments[k]->bytes.len, ATTACHMENT_BYTES_MAX);
    a->result->code = check_objects(a, i, objects, m->wal_upto, &a->result->error);
    if (a->result->code == MINK_OK) a->result->code = check_extends(a, m->incarnation, objects, &a->result->error);
    if (a->result->code != MINK_OK) return;
    extend(a, objects);
    for (size_t k = 0; k < m->n_attachments; k++) {
        struct stream *s = catalog_stream_with_id(a->c, m->attachments[k]->stream);
        if (!s || s->owner != i->id) continue; // dropped or closed meanwhile: what the next owner gets is not this one's to say
        slice_unref(&s->attachment);
        if (m->attachments[k]->bytes.len) s->attachment = slice_copy(m->attachments[k]->bytes.data, m->attachments[k]->bytes.len);
        s->attachment_end = s->end;
    }
    move_committed(a, i, m->wal_upto);
}

void apply_close_stream(struct apply *a, const Mink__CloseStream *m, const struct apply_objects *refs) {
    const struct incarnation *i = apply_live(a, m->incarnation);
    if (!i) return;
    struct stream *s = catalog_stream_with_id(a->c, m->stream);
    if (!s) REFUSE(a, MINK_NOT_FOUND, "NO_SUCH_STREAM", "stream %" PRIu64 " does not exist", m->stream);
    if (s->owner == 0 && s->epoch == m->epoch && s->end == m->end) { // this close again
        a->result->existed = true;
        return;
    }
    if (s->owner != m->incarnation || s->epoch != m->epoch) REFUSE(a, MINK_FENCED, "NOT_OWNER", "stream %" PRIu64 " epoch %u is not incarnation %" PRIu64 "'s", m->stream, m->epoch, m->incarnation);
    uint64_t end = s->end;
    for (uint32_t k = 0; k < refs->count; k++) {
        a->result->code = check_wal(&refs->items[k], i->id, i->wal_committed, UINT64_MAX, &a->result->error);
        if (a->result->code != MINK_OK) return;
        for (uint32_t n = 0; n < refs->items[k].range_count; n++) {
            const struct command_range *r = &refs->items[k].ranges[n];
            if (r->stream_id != m->stream || r->epoch != m->epoch || r->from != end || r->to <= r->from) REFUSE(a, MINK_CONFLICT, "NOT_CONTIGUOUS", "stream %" PRIu64 ": the references of its close leave a gap at %" PRIu64, m->stream, end);
            end = r->to;
        }
    }
    if (end != m->end) REFUSE(a, MINK_CONFLICT, "NOT_CONTIGUOUS", "stream %" PRIu64 ": closed at %" PRIu64 " with references up to %" PRIu64, m->stream, m->end, end);
    extend(a, refs);
    s->owner = 0;
}

// What the seal says of one object of the WAL. Entries of streams that are gone are skipped; those of a stream that the incarnation does not own at
// that epoch were published by a close before: they must lie below the end.
static enum mink_code check_sealed(const struct apply *a, const struct incarnation *i, const struct command_object *o, struct error *e) {
    for (uint32_t n = 0; n < o->range_count; n++) {
        const struct command_range *r = &o->ranges[n];
        struct stream *s = catalog_stream_with_id(a->c, r->stream_id);
        if (!s) continue;
        uint64_t *end = ahead_end(a, s);
        bool own = s->owner == i->id && s->epoch == r->epoch;
        if (own && r->from == *end && r->to > r->from) *end = r->to;
        else if (own || r->to > s->end)
            return error_set(e, MINK_CORRUPT, "NOT_CONTIGUOUS", "stream %" PRIu64 ": WAL %" PRIu64 "/%" PRIu64 " holds offsets %" PRIu64 " to %" PRIu64 ", expected %" PRIu64, s->id, i->id, o->id.number, r->from, r->to, *end);
    }
    return MINK_OK;
}

void apply_seal_incarnation(struct apply *a, const Mink__SealIncarnation *m, const struct apply_objects *objects) {
    struct incarnation *i = catalog_incarnation_with_id(a->c, m->incarnation);
    if (!i) REFUSE(a, MINK_NOT_FOUND, "NO_SUCH_INCARNATION", "incarnation %" PRIu64 " does not exist", m->incarnation);
    if (i->state == INCARNATION_SEALED) {
        if (i->seal_seq != m->seal_seq) REFUSE(a, MINK_CORRUPT, "TWO_SEALS", "incarnation %" PRIu64 " is sealed at %" PRIu64 ", not %" PRIu64, i->id, i->seal_seq, m->seal_seq);
        a->result->existed = true;
        return;
    }
    if (i->state != INCARNATION_DEAD) REFUSE(a, MINK_CONFLICT, "INCARNATION_LIVE", "incarnation %" PRIu64 " is live", i->id);
    if (m->wal_base != i->wal_committed || m->seal_seq < m->wal_base || objects->count != m->seal_seq - m->wal_base)
        REFUSE(a, MINK_CONFLICT, "WAL_POSITION", "seal of incarnation %" PRIu64 " from %" PRIu64 " to %" PRIu64 " with %u objects: %" PRIu64 " is committed", i->id, m->wal_base, m->seal_seq, objects->count, i->wal_committed);
    for (uint32_t k = 0; k < objects->count; k++) {
        const struct command_object *o = &objects->items[k];
        if (o->id.number != m->wal_base + k) REFUSE(a, MINK_CORRUPT, "WAL_POSITION", "object %u of the seal of incarnation %" PRIu64 " has seq %" PRIu64 ", expected %" PRIu64, k, i->id, o->id.number, m->wal_base + k);
        a->result->code = check_sealed(a, i, o, &a->result->error);
        if (a->result->code != MINK_OK) return;
    }
    for (uint32_t k = 0; k < objects->count; k++) {
        const struct command_object *sealed = &objects->items[k];
        struct object *o = NULL;
        for (uint32_t n = 0; n < sealed->range_count; n++) {
            const struct command_range *r = &sealed->ranges[n];
            struct stream *s = catalog_stream_with_id(a->c, r->stream_id);
            if (!s || s->owner != i->id || s->epoch != r->epoch) continue;
            if (!o) o = catalog_add_object(a->c, sealed->id, sealed->size, sealed->index_size);
            catalog_push_range(a->c, s, o, r->to, r->epoch);
        }
    }
    i->state = INCARNATION_SEALED;
    i->seal_seq = m->seal_seq;
    move_committed(a, i, m->seal_seq);
    for (uint32_t k = 0; k < a->c->streams.count; k++) {
        struct stream *s = a->c->streams.items[k];
        if (s->owner == i->id) s->owner = 0;
    }
}

// ---- trim, forget

void apply_trim_streams(struct apply *a, const Mink__TrimStreams *m) {
    if (m->n_streams != m->n_starts) REFUSE(a, MINK_INVALID, "BAD_TRIM", "%zu streams and %zu starts", m->n_streams, m->n_starts);
    for (size_t k = 0; k < m->n_streams; k++) {
        const struct stream *s = catalog_stream_with_id(a->c, m->streams[k]);
        if (s && m->starts[k] > s->end) REFUSE(a, MINK_OUT_OF_RANGE, "BAD_TRIM", "stream %" PRIu64 " ends at %" PRIu64 ": it cannot start at %" PRIu64, s->id, s->end, m->starts[k]);
    }
    for (size_t k = 0; k < m->n_streams; k++) {
        struct stream *s = catalog_stream_with_id(a->c, m->streams[k]);
        if (!s || m->starts[k] <= s->start) continue;
        while (s->range_count && stream_ranges(s)[0].to <= m->starts[k]) {
            catalog_release_range(a->c, stream_ranges(s)[0].object);
            s->range_first++;
            s->range_count--;
        }
        s->start = m->starts[k];
    }
}

void apply_forget_objects(struct apply *a, const Mink__ForgetObjects *m) {
    for (size_t k = 0; k < m->n_ids; k++) {
        const struct object *o = catalog_object_with_id(a->c, apply_object_id(m->ids[k]));
        if (o && !o->marked_position) REFUSE(a, MINK_CONFLICT, "OBJECT_NEEDED", "object %" PRIu64 "-%" PRIu64 " is still needed", o->id.incarnation, o->id.number);
    }
    bool found = false;
    for (size_t k = 0; k < m->n_ids; k++) {
        struct object *o = catalog_object_with_id(a->c, apply_object_id(m->ids[k]));
        if (!o) continue;
        o->chosen_seq = a->seq;
        found = true;
    }
    if (!found) return;
    uint32_t kept = 0;
    for (uint32_t at = 0; at < a->c->objects.count; at++) {
        struct object *o = a->c->objects.items[at];
        if (o->chosen_seq == a->seq) mem_free(o);
        else a->c->objects.items[kept++] = o;
    }
    a->c->objects.count = kept;
}
