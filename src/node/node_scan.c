// SPDX-License-Identifier: Apache-2.0
// A pull cursor over buckets.
//
//   node_scan_next → poke → step: a ready bucket → bucket_read_stream → scan_batch … → on_done
//                                 none ready → (following) wait: a watch on each bucket says when there is more
//
// All state belongs to scan.shard, except what scan.lock guards: watches fire on shards[0], because they may outlive the cursor and its shard.
// A bounded scan reads one bucket to its end before the next (so that read-ahead helps); a follow takes one step of each ready bucket in turn.
#include "base/mem.h"
#include "base/metrics.h"
#include "node/node_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define READ_BYTES_DEFAULT (1u << 20)
#define BUCKETS_MAX 1000000

static struct metric_counter scans = METRIC_COUNTER("mink_scans_total", "Scans opened");
static struct metric_gauge scans_open = METRIC_GAUGE("mink_scans_open", "Scans open now");
static struct metric_counter scan_rows = METRIC_COUNTER("mink_scan_rows_total", "Rows given to readers");
static struct metric_counter scan_steps = METRIC_COUNTER("mink_scan_steps_total", "Reads made for scans");

struct cursor { // of one bucket
    struct node_scan *scan;
    char *partition; // NULL = none
    int32_t bucket;
    uint64_t stream_id, next, until;
    enum node_from from;
    int64_t from_value;
    bool resolved;  // next is known (a time is looked up first)
    bool begun;     // something was read, or a reader chose the offset: a trim is then told, not skipped
    bool paused, removed, done;
    bool queued, reading;
    uint32_t generation; // a read of an older one is thrown away
    struct cursor *next_ready;
    // Under scan.lock:
    bool watching, cancelling;
    struct cursor *next_fired;
    struct stream_watch watch;
};

struct node_scan {
    struct node *n;
    struct shard *shard;
    struct catalog_table table;
    struct scan_plan *plan;
    bool all_partitions, follows; // follows: does not end by itself
    int32_t bucket;               // of each partition; -1 = all
    enum node_until until;
    uint64_t until_offset;
    uint32_t read_bytes;
    struct cursor **cursors;
    uint32_t cursor_count, cursor_capacity, live; // live: not done
    struct cursor *ready_first, **ready_last;
    struct node_scan_next *waiting; // the call to be answered
    struct cursor *current;         // is being read or looked up
    uint32_t current_generation;
    struct scan_position position;
    struct bucket_read read;
    struct bucket_seek seek;
    struct error stopped;  // why the scan ended, code OK = it goes on
    struct task poke;
    pthread_mutex_t lock;  // guards what follows and the watch fields of the cursors
    uint32_t refs;         // the owner, armed watches, a posted poke
    bool poke_posted, cancelled, closed, catalog_changed, detached;
    struct error stop;     // from the node
    struct cursor *fired;
    struct node_scan *next, *previous; // of the node's list, under node.lock
};

// ---- lifetime

static void free_scan(struct node_scan *s) {
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

static void unref(struct node_scan *s) {
    pthread_mutex_lock(&s->lock);
    bool last = --s->refs == 0;
    pthread_mutex_unlock(&s->lock);
    if (last) free_scan(s);
}

// With scan.lock held.
static void post_poke(struct node_scan *s) {
    if (s->poke_posted || s->closed) return;
    s->poke_posted = true;
    s->refs++;
    shard_post(s->shard, &s->poke);
}

static void poke(struct node_scan *s) {
    pthread_mutex_lock(&s->lock);
    post_poke(s);
    pthread_mutex_unlock(&s->lock);
}

void node_scans_poke(struct node *n) {
    pthread_mutex_lock(&n->lock);
    for (struct node_scan *s = n->scans; s; s = s->next) {
        if (!s->follows) continue;
        pthread_mutex_lock(&s->lock);
        s->catalog_changed = true;
        post_poke(s);
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_unlock(&n->lock);
}

// The node is going: its scans end, and do not touch it any more.
void node_scans_stop(struct node *n, const struct error *why) {
    pthread_mutex_lock(&n->lock);
    while (n->scans) {
        struct node_scan *s = n->scans;
        n->scans = s->next;
        pthread_mutex_lock(&s->lock);
        s->detached = true;
        if (s->stop.code == MINK_OK) error_copy(&s->stop, why);
        post_poke(s);
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_unlock(&n->lock);
}

// ---- cursors

static void free_cursor(struct cursor *c) {
    mem_free(c->partition);
    mem_free(c);
}

static void make_ready(struct cursor *c, bool front) {
    struct node_scan *s = c->scan;
    if (c->queued || c->removed || c->done || c->paused || c->reading) return;
    c->queued = true;
    c->next_ready = front ? s->ready_first : NULL;
    if (front) {
        if (s->ready_first == NULL) s->ready_last = &c->next_ready;
        s->ready_first = c;
    } else {
        *s->ready_last = c;
        s->ready_last = &c->next_ready;
    }
}

static struct cursor *take_ready(struct node_scan *s) {
    struct cursor *c = s->ready_first;
    if (c == NULL) return NULL;
    s->ready_first = c->next_ready;
    if (s->ready_first == NULL) s->ready_last = &s->ready_first;
    c->queued = false;
    return c;
}

// Nobody refers to it any more: not the queue, a read, or a watch.
static void reap(struct cursor *c) {
    if (!c->removed || c->queued || c->reading) return;
    pthread_mutex_lock(&c->scan->lock);
    bool watching = c->watching;
    pthread_mutex_unlock(&c->scan->lock);
    if (!watching) free_cursor(c);
}

static void run_watch_ended(struct task *task);

static void on_watch(struct stream_watch *w) {
    struct cursor *c = container_of(w, struct cursor, watch);
    struct node_scan *s = c->scan;
    struct node *n = s->n;
    pthread_mutex_lock(&s->lock);
    bool closed = s->closed, cancelling = c->cancelling;
    c->cancelling = false;
    if (cancelling) {
        // The cancellation is in this shard's queue and will look at the watch: the end comes behind it.
        w->task.run = run_watch_ended;
        shard_post(w->shard, &w->task);
    } else if (!closed) {
        c->next_fired = s->fired; // still watching until the scan's shard has seen it
        s->fired = c;
        post_poke(s);
    }
    pthread_mutex_unlock(&s->lock);
    if (cancelling) return;
    if (closed) free_cursor(c);
    unref(s);
    node_leave(n);
}

static void run_watch_ended(struct task *task) { on_watch(container_of(task, struct stream_watch, task)); }

static void arm(struct cursor *c) {
    struct node_scan *s = c->scan;
    if (node_enter(s->n, NULL) != MINK_OK) return; // the node stops the scan
    pthread_mutex_lock(&s->lock);
    c->watching = true;
    s->refs++;
    pthread_mutex_unlock(&s->lock);
    c->watch = (struct stream_watch){.shard = node_shard(s->n), .on_done = on_watch, .stream_id = c->stream_id, .offset = c->next};
    stream_watch(s->n->streams, &c->watch);
}

static bool is_watching(struct cursor *c) {
    pthread_mutex_lock(&c->scan->lock);
    bool watching = c->watching;
    pthread_mutex_unlock(&c->scan->lock);
    return watching;
}

static void disarm(struct cursor *c) {
    pthread_mutex_lock(&c->scan->lock);
    bool fired = !c->watching;
    for (struct cursor *f = c->scan->fired; f && !fired; f = f->next_fired) fired = f == c;
    if (!fired && !c->cancelling) {
        c->cancelling = true;
        stream_watch_cancel(c->scan->n->streams, &c->watch); // under the lock: on_watch relies on its being queued
    }
    pthread_mutex_unlock(&c->scan->lock);
}

static void take_fired(struct node_scan *s) {
    pthread_mutex_lock(&s->lock);
    struct cursor *fired = s->fired;
    s->fired = NULL;
    for (struct cursor *c = fired; c; c = c->next_fired) c->watching = false;
    pthread_mutex_unlock(&s->lock);
    while (fired) {
        struct cursor *c = fired;
        fired = c->next_fired;
        make_ready(c, false);
        reap(c);
    }
}

static bool same_name(const char *a, const char *b) { return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0; }

static struct cursor *find_cursor(struct node_scan *s, const char *partition, int32_t bucket) {
    for (uint32_t i = 0; i < s->cursor_count; i++) {
        if (s->cursors[i]->bucket == bucket && same_name(s->cursors[i]->partition, partition)) return s->cursors[i];
    }
    return NULL;
}

static void remove_cursor(struct node_scan *s, struct cursor *c) {
    uint32_t at = 0;
    while (s->cursors[at] != c) at++;
    memmove(&s->cursors[at], &s->cursors[at + 1], (s->cursor_count - at - 1) * sizeof *s->cursors);
    s->cursor_count--;
    if (!c->done) s->live--;
    c->removed = true;
    c->generation++;
    disarm(c);
    reap(c);
}

static const char *where(const struct cursor *c, char out[300]) {
    snprintf(out, 300, "%.200s%s%" PRId32, c->partition ? c->partition : "", c->partition ? "/" : "", c->bucket);
    return out;
}

static enum mink_code out_of_range(const struct cursor *c, uint64_t offset, uint64_t start, uint64_t end, struct error *e) {
    char place[300], given[32], range[64];
    enum mink_code code = error_set(e, MINK_OUT_OF_RANGE, "OFFSET_OUT_OF_RANGE", "offset %" PRIu64 " of bucket %s of %s.%s is not kept: the log starts at %" PRIu64 " and ends at %" PRIu64, offset,
                                    where(c, place), c->scan->table.def->database, c->scan->table.def->name, start, end);
    snprintf(given, sizeof given, "%" PRIu64, offset);
    snprintf(range, sizeof range, "%" PRIu64 " to %" PRIu64, start, end);
    error_about(e, "offset", range, given);
    return code;
}

// Where the cursor begins and ends. The end of a bounded scan is fixed here: what is appended later is not part of it.
static enum mink_code place_cursor(struct cursor *c, struct error *e) {
    struct node_scan *s = c->scan;
    struct stream_extent x = stream_extent(s->n->streams, c->stream_id);
    if (!x.found) return error_set(e, MINK_NOT_FOUND, "TABLE_NOT_FOUND", "bucket %" PRId32 " of %s.%s was dropped", c->bucket, s->table.def->database, s->table.def->name);
    c->resolved = c->from != NODE_FROM_TIME;
    c->next = c->from == NODE_FROM_LATEST ? x.high_watermark : x.start;
    if (c->from == NODE_FROM_OFFSET) {
        if (c->from_value < 0 || (uint64_t)c->from_value < x.start || (uint64_t)c->from_value > x.high_watermark)
            return out_of_range(c, (uint64_t)c->from_value, x.start, x.high_watermark, e);
        c->next = (uint64_t)c->from_value;
        c->begun = true;
    }
    c->until = s->until == NODE_UNTIL_NOW ? x.high_watermark : s->until == NODE_UNTIL_OFFSET ? s->until_offset : UINT64_MAX;
    return MINK_OK;
}

static enum mink_code add_cursor(struct node_scan *s, const char *partition, int32_t bucket, uint64_t stream_id, enum node_from from, int64_t from_value, struct error *e) {
    if (s->cursor_count >= BUCKETS_MAX) return error_set(e, MINK_OVERLOADED, "TOO_MANY_BUCKETS", "a scan covers at most %d buckets", BUCKETS_MAX);
    struct cursor *c = mem_new(struct cursor);
    *c = (struct cursor){.scan = s, .partition = partition ? mem_strdup(partition) : NULL, .bucket = bucket, .stream_id = stream_id, .from = from, .from_value = from_value};
    enum mink_code code = place_cursor(c, e);
    if (code != MINK_OK) {
        free_cursor(c);
        return code;
    }
    if (s->cursor_count == s->cursor_capacity) {
        s->cursor_capacity = s->cursor_capacity ? s->cursor_capacity * 2 : 4;
        s->cursors = mem_realloc(s->cursors, s->cursor_capacity * sizeof *s->cursors);
    }
    s->cursors[s->cursor_count++] = c;
    s->live++;
    make_ready(c, false);
    return MINK_OK;
}

static enum mink_code add_buckets(struct node_scan *s, const char *partition, int32_t bucket, uint64_t stream_base, uint32_t bucket_count, enum node_from from, int64_t from_value, struct error *e) {
    if (bucket >= 0) return add_cursor(s, partition, bucket, stream_base + (uint64_t)bucket, from, from_value, e);
    for (uint32_t i = 0; i < bucket_count; i++) MINK_TRY(add_cursor(s, partition, (int32_t)i, stream_base + i, from, from_value, e));
    return MINK_OK;
}

static enum mink_code add_places(struct node_scan *s, const char *partition, int32_t bucket, enum node_from from, int64_t from_value, struct error *e) {
    const struct table_def *d = s->table.def;
    uint64_t stream_id;
    if (from == NODE_FROM_OFFSET && ((bucket < 0 && d->bucket_num > 1) || (d->partition_by_count && partition == NULL)))
        return error_set(e, MINK_INVALID, "BUCKET_MISSING", "an offset is of one bucket: name %s of %s.%s", d->partition_by_count && partition == NULL ? "partition and bucket" : "the bucket", d->database, d->name);
    if (d->partition_by_count && partition == NULL) {
        if (bucket >= 0 && (uint32_t)bucket >= d->bucket_num)
            return error_set(e, MINK_INVALID, "BUCKET_OUT_OF_RANGE", "bucket %" PRId32 ": %s.%s has buckets 0 to %" PRIu32, bucket, d->database, d->name, d->bucket_num - 1);
        struct catalog_partition *partitions;
        uint32_t count;
        enum mink_code code = MINK_OK;
        catalog_list_partitions(s->n->catalog, s->table.table_id, &partitions, &count);
        for (uint32_t i = 0; i < count && code == MINK_OK; i++)
            code = add_buckets(s, partitions[i].name, bucket, partitions[i].stream_base, partitions[i].bucket_count, from, from_value, e);
        catalog_free_partitions(partitions, count);
        return code;
    }
    MINK_TRY(node_find_stream(s->n, &s->table, partition, bucket < 0 ? 0 : bucket, &stream_id, e));
    return add_buckets(s, partition, bucket, bucket < 0 ? stream_id : stream_id - (uint64_t)bucket, d->bucket_num, from, from_value, e);
}

// ---- steps

static void step(struct node_scan *s);

static void answer(struct node_scan *s, enum mink_code code, const struct error *e, bool end) {
    struct node_scan_next *x = s->waiting;
    s->waiting = NULL;
    x->code = code;
    error_copy(&x->error, e);
    x->end = end;
    x->on_done(x); // the scan may be closed now
}

static void fail(struct node_scan *s, const struct error *e) {
    if (s->stopped.code == MINK_OK) error_copy(&s->stopped, e);
    step(s);
}

static void note_stop(struct node_scan *s) {
    pthread_mutex_lock(&s->lock);
    if (s->stopped.code == MINK_OK && s->cancelled) error_set(&s->stopped, MINK_CANCELLED, "CANCELLED", "the scan was cancelled");
    if (s->stopped.code == MINK_OK && s->stop.code != MINK_OK) error_copy(&s->stopped, &s->stop);
    pthread_mutex_unlock(&s->lock);
}

// The read is over; false when its result is of no use any more.
static bool end_read(struct node_scan *s, struct cursor **out) {
    struct cursor *c = s->current;
    s->current = NULL;
    c->reading = false;
    *out = c;
    note_stop(s);
    if (s->stopped.code == MINK_OK && c->generation == s->current_generation && !c->removed) return true;
    make_ready(c, true);
    reap(c);
    return false;
}

static enum mink_code convert(struct node_scan *s, struct cursor *c, struct error *e) {
    struct node_scan_next *x = s->waiting;
    struct bucket_read *r = &s->read;
    x->first = c->next;
    s->position.from = c->next;
    s->position.until = c->until;
    s->position.bucket = c->bucket;
    s->position.partition = c->partition;
    for (uint32_t i = 0; i < r->batch_count && s->position.rows_left != 0 && s->position.from < c->until; i++) {
        struct scan_message *messages;
        uint32_t count;
        MINK_TRY(scan_batch(s->plan, &r->batches[i].bytes, &r->batches[i].view, &s->position, &messages, &count, e));
        if (count == 0) continue;
        if (x->message_count == 0) {
            x->messages = messages;
        } else {
            x->messages = mem_realloc(x->messages, (x->message_count + count) * sizeof *messages);
            memcpy(&x->messages[x->message_count], messages, count * sizeof *messages);
            mem_free(messages);
        }
        x->message_count += count;
    }
    c->next = s->position.from;
    c->begun = true;
    return MINK_OK;
}

static void on_read(struct bucket_read *r) {
    struct node_scan *s = container_of(r, struct node_scan, read);
    struct node *n = s->n;
    struct cursor *c;
    struct error e = {0};
    bool useful = end_read(s, &c);
    if (useful && r->code == MINK_OUT_OF_RANGE && !c->begun && r->start > c->next) {
        c->next = r->start; // trimmed before the first read
        make_ready(c, true);
        useful = false;
    } else if (useful && r->code == MINK_NOT_FOUND && s->all_partitions) {
        remove_cursor(s, c); // its partition was dropped
        useful = false;
    }
    if (!useful) {
        bucket_batches_free(r->batches, r->batch_count);
        node_leave(n);
        step(s);
        return;
    }
    struct node_scan_next *x = s->waiting;
    enum mink_code code = r->code;
    if (code == MINK_OUT_OF_RANGE) {
        code = out_of_range(c, c->next, r->start, r->high_watermark, &e);
    } else if (code != MINK_OK) {
        char place[300];
        error_copy(&e, &r->error);
        error_context(&e, "read bucket %s of %s.%s", where(c, place), s->table.def->database, s->table.def->name);
    } else {
        code = convert(s, c, &e);
    }
    bucket_batches_free(r->batches, r->batch_count);
    node_leave(n);
    if (code != MINK_OK) {
        scan_messages_free(x->messages, x->message_count);
        x->messages = NULL;
        x->message_count = 0;
        fail(s, &e);
        return;
    }
    make_ready(c, !s->follows);
    if (x->message_count == 0) {
        step(s);
        return;
    }
    for (uint32_t i = 0; i < x->message_count; i++) metric_add(&scan_rows, (unsigned long long)x->messages[i].row_count);
    x->partition = c->partition;
    x->bucket = c->bucket;
    x->next = c->next;
    answer(s, MINK_OK, NULL, false);
}

static void on_seek(struct bucket_seek *k) {
    struct node_scan *s = container_of(k, struct node_scan, seek);
    struct node *n = s->n;
    struct cursor *c;
    bool useful = end_read(s, &c);
    struct error e = {0};
    enum mink_code code = k->code;
    error_copy(&e, &k->error);
    if (useful && code == MINK_OK) {
        c->next = k->offset;
        c->resolved = true;
        make_ready(c, true);
    } else if (useful && code == MINK_NOT_FOUND && s->all_partitions) {
        remove_cursor(s, c);
    }
    node_leave(n);
    if (useful && code != MINK_OK && !(code == MINK_NOT_FOUND && s->all_partitions)) fail(s, &e);
    else step(s);
}

// Starts the read of one cursor. False: there is nothing to read in it now.
static bool start(struct node_scan *s, struct cursor *c) {
    if (c->next >= c->until) {
        c->done = true;
        s->live--;
        return false;
    }
    if (c->resolved) {
        struct stream_extent x = stream_extent(s->n->streams, c->stream_id);
        if (x.found && c->next == x.high_watermark) {
            arm(c);
            return false;
        }
    }
    if (node_enter(s->n, NULL) != MINK_OK) return false; // the node stops the scan
    s->current = c;
    s->current_generation = c->generation;
    c->reading = true;
    metric_add(&scan_steps, 1);
    if (c->resolved) {
        s->read = (struct bucket_read){.offset = c->next, .bytes_max = s->read_bytes, .sequential = true, .on_done = on_read};
        bucket_read_stream(s->n->streams, c->stream_id, s->shard, &s->read);
    } else {
        s->seek = (struct bucket_seek){.ts_ms = c->from_value, .on_done = on_seek};
        bucket_seek_stream(s->n->streams, c->stream_id, s->shard, &s->seek);
    }
    return true;
}

// Partitions that came since appear from their beginning; those that went leave.
static void refresh(struct node_scan *s) {
    struct catalog_table t;
    if (catalog_table_by_id(s->n->catalog, s->table.table_id, &t, NULL) != MINK_OK) {
        error_set(&s->stopped, MINK_NOT_FOUND, "TABLE_NOT_FOUND", "table %s.%s was dropped", s->table.def->database, s->table.def->name);
        return;
    }
    catalog_table_deinit(&t);
    if (s->table.def->partition_by_count == 0) return;
    struct catalog_partition *partitions;
    uint32_t count;
    catalog_list_partitions(s->n->catalog, s->table.table_id, &partitions, &count);
    // Streams are numbered once and never again: a cursor whose stream no partition has is of a dropped one.
    for (uint32_t i = s->cursor_count; i-- > 0;) {
        struct cursor *c = s->cursors[i];
        bool found = false;
        for (uint32_t p = 0; p < count && !found; p++) found = c->stream_id - partitions[p].stream_base < partitions[p].bucket_count;
        if (found) continue;
        if (!s->all_partitions) error_set(&s->stopped, MINK_NOT_FOUND, "PARTITION_NOT_FOUND", "partition %.200s of %s.%s was dropped", c->partition, s->table.def->database, s->table.def->name);
        remove_cursor(s, c);
    }
    for (uint32_t p = 0; p < count && s->all_partitions; p++) {
        bool known = false;
        for (uint32_t i = 0; i < s->cursor_count && !known; i++) known = s->cursors[i]->stream_id - partitions[p].stream_base < partitions[p].bucket_count;
        if (known) continue;
        struct error dropped; // meanwhile: the next refresh sees it
        if (add_buckets(s, partitions[p].name, s->bucket, partitions[p].stream_base, partitions[p].bucket_count, NODE_FROM_EARLIEST, 0, &dropped) != MINK_OK) break;
    }
    catalog_free_partitions(partitions, count);
}

static void step(struct node_scan *s) {
    note_stop(s);
    pthread_mutex_lock(&s->lock);
    bool changed = s->catalog_changed;
    s->catalog_changed = false;
    pthread_mutex_unlock(&s->lock);
    take_fired(s);
    if (s->current) return; // its end comes back here
    if (s->stopped.code == MINK_OK && node_enter(s->n, &s->stopped) == MINK_OK) {
        if (changed) refresh(s);
        struct cursor *c;
        while (s->stopped.code == MINK_OK && s->waiting && s->position.rows_left != 0 && !s->current && (c = take_ready(s))) {
            if (c->removed) reap(c);
            else if (!c->done && !c->paused) start(s, c);
        }
        node_leave(s->n);
    }
    if (s->waiting == NULL || s->current) return;
    if (s->stopped.code != MINK_OK) answer(s, s->stopped.code, &s->stopped, false);
    else if (s->position.rows_left == 0 || (s->live == 0 && !s->follows)) answer(s, MINK_OK, NULL, true);
}

static void run_poke(struct task *task) {
    struct node_scan *s = container_of(task, struct node_scan, poke);
    pthread_mutex_lock(&s->lock);
    s->poke_posted = false;
    bool closed = s->closed, detached = s->detached;
    pthread_mutex_unlock(&s->lock);
    if (!closed) {
        // A node that goes waits for its watches.
        for (uint32_t i = 0; i < s->cursor_count && detached; i++) disarm(s->cursors[i]);
        step(s);
    }
    unref(s);
}

// ---- the face

static struct table_def *find_version(void *ctx, uint32_t schema_id) {
    struct node_scan *s = ctx;
    return catalog_table_version(s->n->catalog, s->table.table_id, schema_id);
}

static void free_cursors(struct node_scan *s) {
    for (uint32_t i = 0; i < s->cursor_count; i++) {
        struct cursor *c = s->cursors[i];
        bool watching = is_watching(c);
        c->removed = true;
        if (watching) disarm(c); // on_watch frees it
        else free_cursor(c);
    }
    mem_free(s->cursors);
    s->cursors = NULL;
    s->cursor_count = 0;
}

enum mink_code node_scan_open(struct node *n, const struct node_scan_config *config, struct node_scan **out, struct error *e) {
    const struct table_def *d = config->table->table.def;
    MINK_TRY(node_refuse_primary_key(d, e));
    if (config->until == NODE_UNTIL_OFFSET && ((config->bucket < 0 && d->bucket_num > 1) || (d->partition_by_count && config->partition == NULL)))
        return error_set(e, MINK_INVALID, "BUCKET_MISSING", "an offset to end at is of one bucket: name the bucket of %s.%s", d->database, d->name);
    MINK_TRY(node_enter(n, e));
    struct node_scan *s = mem_new(struct node_scan);
    *s = (struct node_scan){.n = n, .shard = config->shard, .all_partitions = d->partition_by_count && config->partition == NULL, .bucket = config->bucket, .until = config->until, .until_offset = config->until_offset,
                            .follows = config->until == NODE_UNTIL_NEVER, .read_bytes = config->read_bytes ? config->read_bytes : READ_BYTES_DEFAULT, .refs = 1, .poke.run = run_poke};
    s->ready_last = &s->ready_first;
    s->position.rows_left = config->limit < 0 ? -1 : config->limit;
    pthread_mutex_init(&s->lock, NULL);
    s->table = config->table->table;
    s->table.def = table_def_ref(config->table->table.def);
    struct scan_request request = *config->request;
    request.version = find_version;
    request.version_ctx = s;
    enum mink_code code = scan_plan_make(s->table.def, &request, &s->plan, e);
    if (code == MINK_OK) code = add_places(s, config->partition, config->bucket, config->from, config->from_value, e);
    if (code != MINK_OK) {
        free_cursors(s);
        scan_plan_unref(s->plan);
        catalog_table_deinit(&s->table);
        free_scan(s);
        node_leave(n);
        return code;
    }
    pthread_mutex_lock(&n->lock);
    s->next = n->scans;
    if (n->scans) n->scans->previous = s;
    n->scans = s;
    pthread_mutex_unlock(&n->lock);
    node_leave(n);
    metric_add(&scans, 1);
    metric_move(&scans_open, 1);
    *out = s;
    return MINK_OK;
}

struct arrow_schema *node_scan_schema(struct node_scan *s) { return scan_plan_schema(s->plan); }

void node_scan_next(struct node_scan *s, struct node_scan_next *x) {
    mink_assert(s->waiting == NULL);
    x->code = MINK_OK;
    x->error = (struct error){0};
    x->end = false;
    x->messages = NULL;
    x->message_count = 0;
    x->partition = NULL;
    x->bucket = -1;
    s->waiting = x;
    poke(s);
}

void node_scan_positions(struct node_scan *s, struct node_scan_position **out, uint32_t *count) {
    *out = mem_new_array(struct node_scan_position, s->cursor_count + 1);
    *count = s->cursor_count;
    for (uint32_t i = 0; i < s->cursor_count; i++) (*out)[i] = (struct node_scan_position){s->cursors[i]->partition, s->cursors[i]->bucket, s->cursors[i]->next};
}

static enum mink_code need_cursor(struct node_scan *s, const char *partition, int32_t bucket, struct cursor **out, struct error *e) {
    *out = find_cursor(s, partition, bucket);
    if (*out) return MINK_OK;
    return error_set(e, MINK_NOT_FOUND, "NOT_SUBSCRIBED", "bucket %s%s%" PRId32 " of %s.%s is not in this scan", partition ? partition : "", partition ? "/" : "", bucket, s->table.def->database, s->table.def->name);
}

// Lets a change of the scan in, unless the node is gone.
static enum mink_code enter(struct node_scan *s, struct error *e) {
    pthread_mutex_lock(&s->lock);
    bool detached = s->detached;
    if (detached) error_copy(e, &s->stop);
    pthread_mutex_unlock(&s->lock);
    return detached ? s->stop.code : node_enter(s->n, e);
}

enum mink_code node_scan_seek(struct node_scan *s, const char *partition, int32_t bucket, uint64_t offset, struct error *e) {
    struct cursor *c;
    MINK_TRY(need_cursor(s, partition, bucket, &c, e));
    MINK_TRY(enter(s, e));
    struct stream_extent x = stream_extent(s->n->streams, c->stream_id);
    if (offset < x.start || offset > x.high_watermark) {
        node_leave(s->n);
        return out_of_range(c, offset, x.start, x.high_watermark, e);
    }
    c->next = offset;
    c->resolved = c->begun = true;
    c->generation++;
    if (c->done) s->live++;
    c->done = false;
    if (is_watching(c)) disarm(c); // becomes ready when the watch has ended
    else make_ready(c, false);
    node_leave(s->n);
    poke(s);
    return MINK_OK;
}

enum mink_code node_scan_pause(struct node_scan *s, const char *partition, int32_t bucket, bool paused, struct error *e) {
    struct cursor *c;
    MINK_TRY(need_cursor(s, partition, bucket, &c, e));
    c->paused = paused;
    if (paused) c->generation++; // what is being read is not given out any more
    else if (!is_watching(c)) make_ready(c, false);
    poke(s);
    return MINK_OK;
}

enum mink_code node_scan_add(struct node_scan *s, const char *partition, int32_t bucket, enum node_from from, int64_t from_value, struct error *e) {
    uint32_t buckets = s->table.def->bucket_num;
    for (uint32_t i = 0; i < (bucket < 0 ? buckets : 1); i++) {
        if (find_cursor(s, partition, bucket < 0 ? (int32_t)i : bucket))
            return error_set(e, MINK_EXISTS, "ALREADY_SUBSCRIBED", "bucket %s%s%" PRId32 " of %s.%s is in this scan already", partition ? partition : "", partition ? "/" : "", bucket < 0 ? (int32_t)i : bucket,
                             s->table.def->database, s->table.def->name);
    }
    MINK_TRY(enter(s, e));
    enum mink_code code = add_places(s, partition, bucket, from, from_value, e);
    node_leave(s->n);
    poke(s);
    return code;
}

enum mink_code node_scan_remove(struct node_scan *s, const char *partition, int32_t bucket, struct error *e) {
    struct cursor *c;
    MINK_TRY(need_cursor(s, partition, bucket, &c, e));
    remove_cursor(s, c);
    poke(s);
    return MINK_OK;
}

void node_scan_cancel(struct node_scan *s) {
    pthread_mutex_lock(&s->lock);
    s->cancelled = true;
    post_poke(s);
    pthread_mutex_unlock(&s->lock);
}

void node_scan_close(struct node_scan *s) {
    mink_assert(s->waiting == NULL);
    pthread_mutex_lock(&s->lock);
    bool detached = s->detached;
    pthread_mutex_unlock(&s->lock);
    if (!detached) {
        pthread_mutex_lock(&s->n->lock);
        if (!s->detached) {
            if (s->previous) s->previous->next = s->next;
            else s->n->scans = s->next;
            if (s->next) s->next->previous = s->previous;
        }
        pthread_mutex_unlock(&s->n->lock);
    }
    take_fired(s);
    struct cursor *c;
    while ((c = take_ready(s))) reap(c);
    pthread_mutex_lock(&s->lock);
    s->closed = true; // from here on a watch that ends frees its cursor
    struct cursor *fired = s->fired;
    s->fired = NULL;
    for (c = fired; c; c = c->next_fired) c->watching = false;
    pthread_mutex_unlock(&s->lock);
    for (struct cursor *next; fired; fired = next) {
        next = fired->next_fired;
        if (fired->removed) free_cursor(fired);
    }
    free_cursors(s);
    scan_plan_unref(s->plan);
    s->plan = NULL;
    catalog_table_deinit(&s->table);
    metric_move(&scans_open, -1);
    unref(s);
}

// ---- offsets

struct offsets_state { struct bucket_seek seek; struct node_offsets *o; struct node *n; };

static void run_offsets(struct task *task) {
    struct node_offsets *o = container_of(task, struct node_offsets, task);
    o->on_done(o);
}

static void on_offsets_seek(struct bucket_seek *k) {
    struct offsets_state *s = container_of(k, struct offsets_state, seek);
    struct node_offsets *o = s->o;
    struct node *n = s->n;
    o->code = k->code;
    error_copy(&o->error, &k->error);
    o->offset = k->offset;
    mem_free(s);
    node_leave(n);
    o->on_done(o);
}

static enum mink_code find_offset(struct node *n, struct node_offsets *o, bool *seeking, struct error *e) {
    uint64_t stream_id;
    const struct catalog_table *t = &o->table->table;
    MINK_TRY(node_refuse_primary_key(t->def, e));
    MINK_TRY(node_find_stream(n, t, o->partition, o->bucket, &stream_id, e));
    struct stream_extent x = stream_extent(n->streams, stream_id);
    if (!x.found) return error_set(e, MINK_NOT_FOUND, "TABLE_NOT_FOUND", "bucket %" PRId32 " of %s.%s was dropped", o->bucket, t->def->database, t->def->name);
    switch (o->at) {
    case NODE_FROM_EARLIEST: o->offset = x.start; return MINK_OK;
    case NODE_FROM_LATEST: o->offset = x.high_watermark; return MINK_OK;
    case NODE_FROM_OFFSET:
        if (o->at_value < 0 || (uint64_t)o->at_value < x.start || (uint64_t)o->at_value > x.high_watermark)
            return error_set(e, MINK_OUT_OF_RANGE, "OFFSET_OUT_OF_RANGE", "offset %" PRId64 " of bucket %" PRId32 " of %s.%s is not kept: the log starts at %" PRIu64 " and ends at %" PRIu64, o->at_value,
                             o->bucket, t->def->database, t->def->name, x.start, x.high_watermark);
        o->offset = (uint64_t)o->at_value;
        return MINK_OK;
    case NODE_FROM_TIME: break;
    }
    struct offsets_state *s = mem_new(struct offsets_state);
    *s = (struct offsets_state){.seek = {.ts_ms = o->at_value, .on_done = on_offsets_seek}, .o = o, .n = n};
    *seeking = true;
    bucket_seek_stream(n->streams, stream_id, o->shard, &s->seek);
    return MINK_OK;
}

void node_offsets(struct node *n, struct node_offsets *o) {
    bool seeking = false;
    o->error = (struct error){0};
    o->code = node_enter(n, &o->error);
    if (o->code == MINK_OK) {
        o->code = find_offset(n, o, &seeking, &o->error);
        if (seeking) return;
        node_leave(n);
    }
    o->task.run = run_offsets;
    shard_post(o->shard, &o->task);
}
