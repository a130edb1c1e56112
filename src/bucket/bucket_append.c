// SPDX-License-Identifier: Apache-2.0
// bucket_append → check the writer → admission → offset, stamp → stream_append → (acknowledged) fold, answer.
//
// A batch that fails behind its offset takes the bucket with it: the stream accepts no more from this incarnation, so nothing has to be taken back.
#include "base/mem.h"
#include "base/mutant.h"
#include "bucket/bucket_internal.h"

#include <inttypes.h>

void bucket_list_init(struct bucket_list *l) {
    l->first = NULL;
    l->last = &l->first;
}

void bucket_list_add(struct bucket_list *l, struct bucket_append *a) {
    a->next = NULL;
    *l->last = a;
    l->last = &a->next;
}

void bucket_list_remove(struct bucket_list *l, struct bucket_append *a) {
    struct bucket_append **at = &l->first;
    while (*at != a) at = &(*at)->next;
    *at = a->next;
    if (l->last == &a->next) l->last = at;
}

static void answer(struct bucket_append *a) {
    struct bucket *b = a->bucket;
    a->on_done(a);
    if (--b->requests == 0 && b->on_closed) bucket_close(b, b->on_closed, b->closed_ctx);
}

static void run_answer(struct task *task) { answer(container_of(task, struct bucket_append, append.task)); }

static void answer_later(struct bucket_append *a, enum mink_code code) {
    a->code = code;
    batch_draft_deinit(&a->draft);
    a->append.task.run = run_answer;
    shard_post(a->bucket->config.shard, &a->append.task);
}

static void set_range(struct bucket_append *a, uint64_t offset_first, uint32_t offset_count) {
    a->offset_first = offset_first;
    a->offset_last = offset_first + offset_count - 1 + MUTANT(OFFSET_OFF_BY_ONE);
}

static void answer_duplicates(struct bucket *b, enum mink_code code, const struct error *e) {
    for (struct bucket_append *a = b->duplicates.first, *next; a; a = next) {
        next = a->next;
        if (code == MINK_OK && a->offset_last >= b->acknowledged.offset_end) continue;
        bucket_list_remove(&b->duplicates, a);
        error_copy(&a->error, e);
        answer_later(a, code);
    }
}

static void on_stream_done(struct stream_append *append) {
    struct bucket_append *a = container_of(append, struct bucket_append, append);
    struct bucket *b = a->bucket;
    bucket_list_remove(&b->in_flight, a);
    b->bytes_in_flight -= a->bytes;
    a->code = append->code;
    if (a->code == MINK_OK) {
        mink_assert(b->failed == NULL);
        mink_assert(a->offset_first == b->acknowledged.offset_end);
        pthread_mutex_lock(&b->lock);
        writer_state_fold(&b->acknowledged, &a->draft.header);
        pthread_mutex_unlock(&b->lock);
        if (b->duplicates.first) answer_duplicates(b, MINK_OK, NULL);
    } else {
        error_copy(&a->error, &append->error);
        if (b->failed == NULL) {
            b->failed = mem_new(struct error);
            error_copy(b->failed, &append->error);
        }
        answer_duplicates(b, append->code, &append->error);
    }
    answer(a);
}

static enum mink_code check(struct bucket *b, struct bucket_append *a, struct error *e) {
    const struct batch_header *h = &a->draft.header;
    struct writer_batch original;
    if (b->failed) return error_set(e, MINK_FENCED, "BUCKET_CLOSED", "bucket %" PRIu32 " takes no appends any more: %s", b->config.index, b->failed->message);
    if (h->writer_id) {
        MINK_TRY(writer_state_check(&b->assigned, h, &a->duplicate, &original, e));
        if (a->duplicate) {
            set_range(a, original.offset_first + MUTANT(DEDUPE_WRONG_OFFSETS), original.offset_count);
            return MINK_OK;
        }
    }
    if (b->bytes_in_flight && b->bytes_in_flight + h->length > b->config.append_bytes_max)
        return error_set(e, MINK_OVERLOADED, "BUCKET_OVERLOADED", "bucket %" PRIu32 ": %" PRIu64 " bytes wait to become durable, at most %" PRIu64 " may", b->config.index, b->bytes_in_flight, b->config.append_bytes_max);
    // Counted in by the stream layer before the offset is given out: an offset without a batch would be a hole.
    return stream_admit(b->config.streams, h->length, e);
}

void bucket_append(struct bucket *b, struct bucket_append *a) {
    struct batch_header *h = &a->draft.header;
    mink_assert(h->offset_count > 0);
    mink_assert(b->on_closed == NULL);
    a->bucket = b;
    a->duplicate = false;
    a->error = (struct error){0};
    b->requests++;
    enum mink_code code = check(b, a, &a->error);
    if (code != MINK_OK) {
        answer_later(a, code);
        return;
    }
    if (a->duplicate) {
        if (a->offset_last < b->acknowledged.offset_end || MUTANT(DUPLICATE_NOT_DURABLE)) answer_later(a, MINK_OK);
        else bucket_list_add(&b->duplicates, a);
        return;
    }
    uint32_t crc;
    int64_t now_ms = shard_wall_ms(b->config.shard);
    // Commit times never go back in a bucket: a search by time relies on it.
    if (now_ms < b->assigned.commit_ms) now_ms = b->assigned.commit_ms;
    batch_stamp(&a->draft, b->next_offset, b->epoch, now_ms, &crc);
    writer_state_fold(&b->assigned, h);
    set_range(a, b->next_offset, h->offset_count);
    b->next_offset += h->offset_count;
    a->bytes = h->length;
    b->bytes_in_flight += a->bytes;
    bucket_list_add(&b->in_flight, a);
    a->append = (struct stream_append){.shard = b->config.shard, .on_done = on_stream_done, .stream_id = b->config.stream_id, .epoch = b->epoch,
                                       .offset_first = a->offset_first, .offset_end = b->next_offset, .batches = 1, .ts_min_ms = now_ms, .ts_max_ms = now_ms, .crc32c = crc};
    slices_take(&a->append.payload, a->draft.bytes.head);
    if (a->draft.bytes.body.size) slices_take(&a->append.payload, a->draft.bytes.body);
    a->draft.bytes = (struct batch_bytes){0};
    a->draft.head_data = NULL;
    stream_append(b->config.streams, &a->append);
}

// ---- the writer snapshot

uint32_t bucket_expire_writers(struct bucket *b, int64_t before_ms) {
    uint32_t count = writer_state_expire(&b->assigned, before_ms);
    pthread_mutex_lock(&b->lock);
    writer_state_expire(&b->acknowledged, before_ms);
    pthread_mutex_unlock(&b->lock);
    return count;
}

uint32_t bucket_writer_count(const struct bucket *b) { return b->assigned.count; }

// A commit ends at an offset where this shard may not have arrived yet, or which it has passed:
//     acknowledged ≤ end       the state as it is; replay fills the rest in
//     beyond, no writers       an empty state is right as of any offset
//     beyond, one prepared     that one, when it is not beyond too; and one for the next commit is prepared
//     beyond, none prepared    none this time
struct slice bucket_attachment(struct bucket *b, uint64_t committed_end) {
    struct slice out = slice_empty();
    pthread_mutex_lock(&b->lock);
    if (b->acknowledged.offset_end <= committed_end) {
        if (MUTANT(ATTACHMENT_AHEAD)) b->acknowledged.offset_end = committed_end; // claims what it has not folded
        out = writer_state_encode(&b->acknowledged);
        slice_unref(&b->prepared);
    } else if (b->acknowledged.count == 0) {
        out = writer_state_encode(&(struct writer_state){.offset_end = committed_end, .commit_ms = b->acknowledged.commit_ms});
    } else {
        if (b->prepared.size && b->prepared_offset <= committed_end) {
            out = b->prepared;
            b->prepared = slice_empty();
        }
        if (b->prepared.size == 0) {
            b->prepared = writer_state_encode(&b->acknowledged);
            b->prepared_offset = b->acknowledged.offset_end;
        }
    }
    pthread_mutex_unlock(&b->lock);
    return out;
}

bool bucket_attachment_offset(struct slice attachment, uint64_t *offset) {
    struct writer_state s;
    writer_state_init(&s, 0);
    bool fine = writer_state_decode(&s, attachment, NULL) == MINK_OK;
    *offset = s.offset_end;
    writer_state_deinit(&s);
    return fine;
}
