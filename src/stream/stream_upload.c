// SPDX-License-Identifier: Apache-2.0
// Putting one object under one key, for certain.
//
//   reply                                   meaning, action
//   OK                                      created
//   EXISTS                                  read the header there: our content id → created (a retry or hedge of ours won); any other valid
//                                           content → fenced; unreadable → unknown: look again later, never guess
//   UNAVAILABLE OVERLOADED CONFLICT         retry the same bytes under the same key, 50 ms … 2 s, jittered
//   UNKNOWN_OUTCOME CANCELLED DEADLINE      the same: create-if-absent makes the repetition harmless
//   DENIED INVALID …                        retried for 10 s, loudly; then failed
// An attempt slower than the p95 of its size gets a second one beside it (hedge), at most one in twenty. All attempts put the same slices;
// the upload's memory stays until the last of them has ended.
#include "stream/stream_internal.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/mutant.h"

#include <string.h>

#define RETRY_MIN_NS (50 * NS_PER_MS)
#define RETRY_MAX_NS (2 * NS_PER_S)
#define REFUSED_GIVE_UP_NS (10 * NS_PER_S)
#define HEDGE_SAMPLES_MIN 20
#define HEDGE_CREDIT 0.05

static struct metric_counter hedges = METRIC_COUNTER("mink_wal_hedges_total", "uploads repeated because they were slower than their peers");
static struct metric_counter retries = METRIC_COUNTER("mink_wal_retries_total", "uploads repeated after a failure");
static struct metric_histogram put_time = METRIC_HISTOGRAM("mink_upload_attempt_seconds", "time of one upload attempt of WAL, seal and commit");

static void look(struct upload *u);
static void attempt(struct upload *u);

static uint32_t size_class(uint64_t size) {
    uint32_t c = 0;
    for (size >>= 14; size && c < SIZE_CLASSES - 1; size >>= 2) c++;
    return c;
}

static void observe(struct stream_store *s, uint64_t size, uint64_t ns) {
    struct durations *d = &s->durations[size_class(size)];
    d->recent[d->count++ % DURATIONS] = ns;
    metric_observe_ns(&put_time, ns);
    if (d->count % 8 != 0) return;
    uint32_t n = d->count < DURATIONS ? d->count : DURATIONS;
    uint64_t sorted[DURATIONS];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        for (; at > 0 && sorted[at - 1] > d->recent[i]; at--) sorted[at] = sorted[at - 1];
        sorted[at] = d->recent[i];
    }
    d->p95_ns = sorted[n * 95 / 100 < n ? n * 95 / 100 : n - 1];
    d->p99_ns = sorted[n * 99 / 100 < n ? n * 99 / 100 : n - 1];
}

static uint64_t attempt_deadline(const struct upload *u) {
    uint64_t by_peers = 4 * u->store->durations[size_class(u->body.bytes)].p99_ns;
    return by_peers > 2 * NS_PER_S ? by_peers : 2 * NS_PER_S;
}

static void maybe_idle(struct upload *u) {
    if (!u->settled || u->running || u->looking) return;
    timer_stop(&u->timer);
    slices_deinit(&u->body);
    u->on_idle(u);
}

static void settle(struct upload *u, enum upload_result result) {
    if (u->settled) return;
    u->settled = true;
    u->result = result;
    timer_stop(&u->timer);
    u->on_settled(u);
}

static void retry_later(struct upload *u) {
    uint64_t give_up = u->store->config.append_give_up_ms * NS_PER_MS;
    bool refused = u->error.code == MINK_DENIED || u->error.code == MINK_INVALID || u->error.code == MINK_UNSUPPORTED;
    if (refused && give_up > REFUSED_GIVE_UP_NS) give_up = REFUSED_GIVE_UP_NS;
    if (store_now(u->store) - u->began_ns > give_up || u->store->ended) {
        settle(u, UPLOAD_FAILED);
        return;
    }
    u->retry_ns = u->retry_ns ? u->retry_ns * 2 : RETRY_MIN_NS;
    if (u->retry_ns > RETRY_MAX_NS) u->retry_ns = RETRY_MAX_NS;
    metric_add(&retries, 1);
    timer_start(&u->timer, u->retry_ns / 2 + random_below(shard_random(u->store->shard), u->retry_ns / 2 + 1));
}

static void on_looked(struct object_request *r) {
    struct upload *u = container_of(r, struct upload, look);
    struct object_header h;
    u->looking = false;
    if (!u->settled) {
        struct error e;
        if (r->code == MINK_OK && object_header_decode(r->data, &h, &e) == MINK_OK) {
            if (memcmp(h.content_id, u->content_id, sizeof h.content_id) == 0 || MUTANT(NO_CONTENT_ID_CHECK)) {
                settle(u, UPLOAD_CREATED);
            } else {
                error_set(&u->error, MINK_FENCED, "FENCED", "%s was created by incarnation %llu%s", u->key, (unsigned long long)h.creator, h.kind == OBJECT_KIND_SEAL ? " as a seal" : "");
                settle(u, UPLOAD_FENCED);
            }
        } else {
            error_set(&u->error, MINK_UNKNOWN_OUTCOME, "UNKNOWN_OWNER", "%s exists and cannot be read: %s", u->key, r->code == MINK_OK ? e.message : r->error.message);
            retry_later(u);
        }
    }
    slice_unref(&r->data);
    maybe_idle(u);
}

static void look(struct upload *u) {
    if (u->looking) return;
    u->looking = true;
    object_get(u->store->objects, &u->look, u->store->shard, u->key, 0, OBJECT_HEADER_SIZE, u->priority, on_looked);
}

static void on_attempted(struct object_request *r) {
    struct upload_attempt *a = container_of(r, struct upload_attempt, request);
    struct upload *u = a->upload;
    struct stream_store *s = u->store;
    a->busy = false;
    u->running--;
    if (r->code == MINK_OK) {
        observe(s, u->body.bytes, store_now(s) - a->began_ns);
        if (u->priority == OBJECT_WAL_PUT && s->puts_allowed < s->config.puts_in_flight && ++s->successes % 16 == 0) s->puts_allowed++;
    }
    if (!u->settled) {
        if (r->code == MINK_OK) {
            settle(u, UPLOAD_CREATED);
        } else if (r->code == MINK_EXISTS) {
            if (MUTANT(EXISTS_IS_CREATED)) settle(u, UPLOAD_CREATED);
            else look(u);
        } else {
            u->error = r->error;
            log_limited(LOG_WARN, "store.put", "key=%s tries=%u message=\"%s\"", u->key, u->tries, r->error.message);
            if (r->code == MINK_OVERLOADED && u->priority == OBJECT_WAL_PUT && s->puts_allowed > 2) s->puts_allowed /= 2; // the store asked for less
            if (MUTANT(CONFLICT_IS_FENCED) && r->code == MINK_CONFLICT) settle(u, UPLOAD_FENCED);
            else if (u->running == 0 && !u->looking) retry_later(u);
        }
    }
    maybe_idle(u);
}

static void attempt(struct upload *u) {
    struct stream_store *s = u->store;
    struct upload_attempt *a = NULL;
    for (int i = 0; i < ATTEMPTS_MAX && !a; i++)
        if (!u->attempts[i].busy) a = &u->attempts[i];
    if (!a) return; // all are under way: one of them will tell
    a->busy = true;
    a->upload = u;
    a->began_ns = store_now(s);
    u->running++;
    u->tries++;
    object_put(s->objects, &a->request, s->shard, u->key, &u->body, u->crc32c, !MUTANT(PUT_OVERWRITES), u->priority, on_attempted);
    // Next: a hedge when it is slower than its peers, else another attempt at the deadline.
    struct durations *d = &s->durations[size_class(u->body.bytes)];
    uint64_t wait = attempt_deadline(u);
    if (u->priority == OBJECT_WAL_PUT && !s->config.hedge_off && u->tries == 1) {
        if (s->hedge_credit < 4) s->hedge_credit += HEDGE_CREDIT;
        if (d->count >= HEDGE_SAMPLES_MIN && s->hedge_credit >= 1 && d->p95_ns > 0) wait = d->p95_ns;
    }
    timer_start(&u->timer, wait);
}

static void on_timer(struct timer *t) {
    struct upload *u = container_of(t, struct upload, timer);
    struct stream_store *s = u->store;
    if (u->settled) return;
    if (u->looking) return;
    if (u->running == 0) { // the pause after a failure
        attempt(u);
        return;
    }
    if (store_now(s) - u->began_ns > s->config.append_give_up_ms * NS_PER_MS) {
        error_set(&u->error, MINK_UNAVAILABLE, "STORE_TIMEOUT", "put %s: no answer for %llu ms after %u tries", u->key, (unsigned long long)s->config.append_give_up_ms, u->tries);
        settle(u, UPLOAD_FAILED);
        maybe_idle(u);
        return;
    }
    bool hedge = u->tries == 1 && store_now(s) - u->began_ns < attempt_deadline(u);
    if (hedge) {
        s->hedge_credit -= 1;
        metric_add(&hedges, 1);
    } else {
        metric_add(&retries, 1);
    }
    attempt(u);
}

void upload_start(struct upload *u) {
    timer_init(&u->timer, u->store->shard, on_timer);
    u->began_ns = store_now(u->store);
    attempt(u);
}
