// SPDX-License-Identifier: Apache-2.0
#include "sim/sim_world.h"

#include "base/mem.h"
#include "stream/object_format.h"

#include <inttypes.h>
#include <string.h>

static bool equal(struct slice a, struct slice b) { return a.size == b.size && memcmp(a.data, b.data, a.size) == 0; }

static void apply_from(struct world *w, struct catalog *c, uint64_t from, uint64_t upto) {
    for (uint64_t seq = from; seq <= upto; seq++) {
        struct command_result result;
        struct error e;
        if (catalog_apply(c, seq, sim_meta_db_command(w->db, seq), &result, &e) != MINK_OK) model_violation(&w->model, "command %" PRIu64 " does not apply: %s", seq, e.message);
        mem_free(result.epochs);
    }
}

void check_replay(struct world *w) {
    struct catalog *c = catalog_new();
    uint64_t at = 0, head = sim_meta_db_head(w->db);
    uint32_t count = sim_meta_db_checkpoint_count(w->db);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t seq;
        struct slice saved = sim_meta_db_checkpoint(w->db, i, &seq);
        if (seq < at) continue; // an older one that was saved late
        apply_from(w, c, at + 1, seq);
        at = seq;
        struct slice state = catalog_save(c);
        if (!equal(state, saved)) model_violation(&w->model, "the checkpoint at %" PRIu64 " is not the fold of the commands", seq);
        slice_unref(&state);
    }
    apply_from(w, c, at + 1, head);
    struct slice whole = catalog_save(c);
    if (count) { // the newest checkpoint, and what follows it, gives the same
        uint64_t seq;
        struct error e;
        struct slice saved = sim_meta_db_checkpoint(w->db, count - 1, &seq);
        struct catalog *from = catalog_new();
        if (catalog_load(from, saved, &e) != MINK_OK) model_violation(&w->model, "the checkpoint at %" PRIu64 " does not load: %s", seq, e.message);
        apply_from(w, from, seq + 1, head);
        struct slice state = catalog_save(from);
        if (!equal(state, whole)) model_violation(&w->model, "the checkpoint at %" PRIu64 " and its successors do not give the state that all commands give", seq);
        slice_unref(&state);
        catalog_free(from);
    }
    slice_unref(&whole);
    catalog_free(c);
}

static void check_stream(struct world *w, struct catalog *c, uint64_t id) {
    struct catalog_stream s;
    if (!catalog_find_stream(c, id, &s)) model_violation(&w->model, "stream %" PRIu64 " is listed and not found", id);
    uint64_t at = s.start;
    uint32_t epoch = 0;
    while (at < s.end) {
        struct catalog_range ranges[16];
        uint32_t count = catalog_ranges(c, id, at, ranges, 16);
        if (count == 0) model_violation(&w->model, "stream %" PRIu64 " [%" PRIu64 ", %" PRIu64 "): nothing holds offset %" PRIu64, id, s.start, s.end, at);
        for (uint32_t i = 0; i < count; i++) {
            const struct catalog_range *r = &ranges[i];
            if (r->from > at || (r->from < at && at != s.start) || r->to <= at) model_violation(&w->model, "stream %" PRIu64 ": range [%" PRIu64 ", %" PRIu64 ") does not follow %" PRIu64, id, r->from, r->to, at);
            if (r->epoch < epoch) model_violation(&w->model, "stream %" PRIu64 " at %" PRIu64 ": epoch %u after %u", id, at, r->epoch, epoch);
            epoch = r->epoch;
            at = r->to;
            char key[OBJECT_KEY_TEXT];
            object_key(r->object, key, sizeof key);
            struct slice data = object_memory_find(w->disk.memory, key);
            if (data.data == NULL) model_violation(&w->model, "stream %" PRIu64 " [%" PRIu64 ", %" PRIu64 ") is in %s, which does not exist", id, r->from, r->to, key);
            if (data.size != r->object_size) model_violation(&w->model, "%s has %zu bytes, the catalog says %" PRIu64, key, data.size, r->object_size);
            slice_unref(&data);
        }
    }
    if (at != s.end && s.end > s.start) model_violation(&w->model, "stream %" PRIu64 " ends at %" PRIu64 ", its ranges at %" PRIu64, id, s.end, at);
    catalog_stream_deinit(&s);
}

static void check_seal(struct world *w, const struct catalog_incarnation *i) {
    char key[OBJECT_KEY_TEXT];
    object_key_wal(i->id, i->seal_seq, key, sizeof key);
    struct slice data = object_memory_find(w->disk.memory, key);
    struct object_header h;
    struct error e;
    if (data.data == NULL) model_violation(&w->model, "incarnation %" PRIu64 " is sealed at %s, which does not exist", i->id, key);
    if (object_header_decode(data, &h, &e) != MINK_OK || h.kind != OBJECT_KIND_SEAL || h.subject != i->id || h.seq != i->seal_seq) model_violation(&w->model, "%s is not the seal of incarnation %" PRIu64, key, i->id);
    slice_unref(&data);
}

void check_catalog(struct world *w, bool fresh) {
    struct catalog *c = catalog_new();
    apply_from(w, c, 1, sim_meta_db_head(w->db));
    uint64_t *streams;
    uint32_t count;
    catalog_list_streams(c, UINT64_MAX, &streams, &count);
    for (uint32_t i = 0; i < count; i++) check_stream(w, c, streams[i]);
    mem_free(streams);
    struct catalog_incarnation *incarnations;
    uint32_t live = 0;
    catalog_list_incarnations(c, &incarnations, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (incarnations[i].state == INCARNATION_SEALED) check_seal(w, &incarnations[i]);
        live += incarnations[i].state == INCARNATION_LIVE;
        if (fresh && incarnations[i].state == INCARNATION_DEAD) model_violation(&w->model, "incarnation %" PRIu64 " is dead and not sealed, though nothing hinders it", incarnations[i].id);
    }
    if (fresh && live > 1) model_violation(&w->model, "%u incarnations are live in a cluster of one process", live);
    mem_free(incarnations);
    catalog_free(c);
}
