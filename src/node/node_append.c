// SPDX-License-Identifier: Apache-2.0
// node_append → partitions (created on demand) → split by bucket → part_run on each bucket's shard → part_done … → on_done
//
// Splitting and encoding run on the caller's thread. When the whole batch goes to one bucket, its bytes are stored as they came, with no copy;
// otherwise each bucket's rows are taken out and encoded with the table's compression.
#include "base/mem.h"
#include "base/metrics.h"
#include "node/node_internal.h"
#include "table/bucketing.h"
#include "table/partition.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PARTITIONS_PER_BATCH_MAX 1000
#define COUNTERS_MAX (1u << 16) // of the counting sort; more targets are sorted by comparison

static struct metric_counter appends = METRIC_COUNTER("mink_appends_total", "Batches appended, by front ends");
static struct metric_counter append_errors = METRIC_COUNTER("mink_append_errors_total", "Batches refused or failed");
static struct metric_counter duplicates = METRIC_COUNTER("mink_append_duplicates_total", "Batches that had been stored before");
static struct metric_counter parts_total = METRIC_COUNTER("mink_append_parts_total", "Log batches that appended batches were split into");
static struct metric_counter in_place = METRIC_COUNTER("mink_append_in_place_total", "Batches stored as they came, without encoding");

struct group { char *name; uint64_t stream_base; };

struct append_state {
    struct node *node;
    struct node_append *a;
    struct table_def *def;
    uint64_t table_id, stream_base;
    struct group *groups; // one without a name when the table has no partitions
    uint32_t group_count;
    uint32_t *row_group;  // NULL = all in the first
    struct part *parts;
    uint32_t part_count;
    atomic_uint parts_left;
    struct append_state *next; // waits for partitions
};

struct table_def *part_def(struct part *p) { return p->state->def; }
uint64_t part_table_id(struct part *p) { return p->state->table_id; }

// ---- the end

static void run_done(struct task *task) {
    struct node_append *a = container_of(task, struct node_append, task);
    struct append_state *s = a->private_state;
    struct node_range *ranges = a->ranges;
    struct node *n = s->node;
    if (a->code != MINK_OK) metric_add(&append_errors, 1);
    a->on_done(a); // `a` may be gone now
    for (uint32_t i = 0; i < s->group_count; i++) mem_free(s->groups[i].name);
    mem_free(s->groups);
    mem_free(s->row_group);
    mem_free(s->parts);
    if (s->def) table_def_unref(s->def);
    mem_free(s);
    mem_free(ranges);
    node_leave(n);
}

static void run_refused(struct task *task) {
    struct node_append *a = container_of(task, struct node_append, task);
    metric_add(&append_errors, 1);
    a->on_done(a);
}

static void drop_input(struct node_append *a) {
    arrow_batch_deinit(&a->batch);
    slice_unref(&a->slab);
    slice_unref(&a->message);
}

static void post_done(struct append_state *s, enum mink_code code) {
    s->a->code = code;
    drop_input(s->a);
    s->a->task.run = run_done;
    shard_post(s->a->shard, &s->a->task);
}

// All parts were answered. The first failure in order of buckets is told, with how much of the batch is there nevertheless.
static void gather(struct append_state *s) {
    struct node_append *a = s->a;
    uint32_t failed = 0, stored = 0;
    struct part *first = NULL;
    a->ranges = mem_new_array(struct node_range, s->part_count + 1);
    a->duplicate = s->part_count > 0;
    for (uint32_t i = 0; i < s->part_count; i++) {
        struct part *p = &s->parts[i];
        if (p->append.code != MINK_OK) {
            failed++;
            if (first == NULL) first = p;
            continue;
        }
        a->duplicate = a->duplicate && p->append.duplicate;
        a->ranges[stored++] = (struct node_range){s->groups[p->group].name, p->bucket, p->append.offset_first, p->append.offset_last};
    }
    a->range_count = stored;
    if (a->duplicate) metric_add(&duplicates, 1);
    if (first) {
        error_copy(&a->error, &first->append.error);
        const char *name = s->groups[first->group].name;
        if (s->part_count > 1) error_context(&a->error, "%" PRIu32 " of %" PRIu32 " buckets have stored their rows", stored, s->part_count);
        error_context(&a->error, "append %s.%s%s%s/%" PRIu32, s->def->database, s->def->name, name ? "/" : "", name ? name : "", first->bucket);
        a->range_count = 0;
    }
    post_done(s, first ? first->append.code : MINK_OK);
}

void part_done(struct part *p) {
    struct append_state *s = p->state;
    if (atomic_fetch_sub_explicit(&s->parts_left, 1, memory_order_acq_rel) == 1) gather(s);
}

static void run_part(struct task *task) {
    struct part *p = container_of(task, struct part, task);
    host_append(node_host(p->state->node, p->stream_id), p);
}

// ---- from rows to drafts

static struct batch_header header_of(const struct append_state *s, int64_t rows) {
    const struct node_append *a = s->a;
    // A batch without rows that carries a sequence number takes an offset, so that it has a place in the log.
    return (struct batch_header){.offset_count = rows ? (uint32_t)rows : 1, .row_count = (uint32_t)rows, .schema_id = s->def->schema_id,
                                 .payload = rows ? BATCH_PAYLOAD_ARROW : BATCH_PAYLOAD_NONE, .writer_id = a->writer_id, .writer_epoch = a->writer_epoch, .sequence = a->sequence};
}

// The table asks for a compression by name, and the bytes have another.
static bool wrong_codec(const struct append_state *s) {
    struct ipc_message_info info;
    for (uint32_t i = 0; i < s->def->option_count; i++) {
        if (strcmp(s->def->options[i].key, "table.log.arrow.compression.type") != 0) continue;
        return ipc_peek(s->a->message, &info, NULL) != MINK_OK || info.codec != s->def->compression;
    }
    return false;
}

static enum mink_code draft_in_place(struct append_state *s, struct slice statistics, struct batch_draft *out, struct error *e) {
    struct node_append *a = s->a;
    struct batch_header fields = header_of(s, a->batch.row_count);
    metric_add(&in_place, 1);
    if (statistics.size == 0) {
        struct slice slab = a->slab;
        a->slab = slice_empty();
        return batch_draft_in_place(&fields, slab, a->slab_data, a->message, a->body_size, out, e);
    }
    size_t room = batch_head_size(0, 0, a->message.size), padded = (a->body_size + 7) & ~(size_t)7;
    memset(a->slab_data + room + a->body_size, 0, padded - a->body_size);
    struct slice body = slice_sub(a->slab, room, padded);
    enum mink_code code = batch_draft_make(&fields, slice_empty(), statistics, a->message, body, out, e);
    slice_unref(&body);
    return code;
}

static enum mink_code draft_encoded(struct append_state *s, const struct arrow_batch *rows, struct slice statistics, struct batch_draft *out, struct error *e) {
    struct batch_header fields = header_of(s, rows->row_count);
    struct slice message;
    struct slices parts = {0};
    MINK_TRY(ipc_encode_batch(rows, s->def->compression, s->def->compression_level, &message, &parts, e));
    struct slice body = slices_join(&parts);
    slices_deinit(&parts);
    enum mink_code code = batch_draft_make(&fields, slice_empty(), statistics, message, body, out, e);
    slice_unref(&message);
    slice_unref(&body);
    return code;
}

static enum mink_code make_draft(struct append_state *s, const struct arrow_batch *rows, bool whole, struct batch_draft *out, struct error *e) {
    if (rows->row_count == 0) {
        struct batch_header fields = header_of(s, 0);
        return batch_draft_make(&fields, slice_empty(), slice_empty(), slice_empty(), slice_empty(), out, e);
    }
    struct slice statistics = batch_statistics_make(s->def, rows);
    enum mink_code code = whole && s->a->slab.size && !wrong_codec(s) ? draft_in_place(s, statistics, out, e) : draft_encoded(s, rows, statistics, out, e);
    slice_unref(&statistics);
    return code;
}

static struct part *add_part(struct append_state *s, uint32_t group, uint32_t bucket) {
    struct part *p = &s->parts[s->part_count++];
    *p = (struct part){.state = s, .task.run = run_part, .stream_id = s->groups[group].stream_base + bucket, .bucket = bucket, .group = group};
    return p;
}

static int compare_u64(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// Where each row goes.
struct targets { const uint32_t *group, *bucket; uint32_t buckets, groups, rows; };

static uint32_t target_of(const struct targets *t, uint32_t row) { return (t->group ? t->group[row] : 0) * t->buckets + t->bucket[row]; }

static void count_rows(const struct targets *t, uint32_t *order) {
    uint32_t count = t->buckets * t->groups, *at = mem_new_array(uint32_t, count + 1);
    for (uint32_t i = 0; i < t->rows; i++) at[target_of(t, i) + 1]++;
    for (uint32_t i = 1; i <= count; i++) at[i] += at[i - 1];
    for (uint32_t i = 0; i < t->rows; i++) order[at[target_of(t, i)]++] = i;
    mem_free(at);
}

static void compare_rows(const struct targets *t, uint32_t *order) {
    uint64_t *sorted = mem_new_array(uint64_t, t->rows);
    for (uint32_t i = 0; i < t->rows; i++) sorted[i] = (uint64_t)target_of(t, i) << 32 | i; // the row is the low half: equal targets stay in order
    qsort(sorted, t->rows, sizeof *sorted, compare_u64);
    for (uint32_t i = 0; i < t->rows; i++) order[i] = (uint32_t)sorted[i];
    mem_free(sorted);
}

static enum mink_code split_rows(struct append_state *s, const uint32_t *bucket, struct error *e) {
    const struct arrow_batch *b = &s->a->batch;
    struct targets t = {s->row_group, bucket, s->def->bucket_num, s->group_count, (uint32_t)b->row_count};
    uint32_t *order = mem_new_array(uint32_t, t.rows), parts = 0;
    if ((uint64_t)t.buckets * t.groups <= COUNTERS_MAX) count_rows(&t, order);
    else compare_rows(&t, order);
    for (uint32_t i = 0; i < t.rows; i++) parts += i == 0 || target_of(&t, order[i]) != target_of(&t, order[i - 1]);
    s->parts = mem_new_array(struct part, parts);
    enum mink_code code = MINK_OK;
    for (uint32_t at = 0, end; at < t.rows && code == MINK_OK; at = end) {
        uint32_t target = target_of(&t, order[at]);
        for (end = at + 1; end < t.rows && target_of(&t, order[end]) == target;) end++;
        struct part *p = add_part(s, target / t.buckets, target % t.buckets);
        if (end - at == t.rows) {
            code = make_draft(s, b, true, &p->append.draft, e);
            continue;
        }
        struct arrow_batch taken;
        arrow_take(b, order + at, end - at, &taken);
        code = make_draft(s, &taken, false, &p->append.draft, e);
        arrow_batch_deinit(&taken);
    }
    mem_free(order);
    return code;
}

static enum mink_code split(struct append_state *s, struct table_state *table, struct error *e) {
    struct node_append *a = s->a;
    uint32_t buckets = s->def->bucket_num, rows = (uint32_t)a->batch.row_count;
    bool by_row = a->bucket < 0 && buckets > 1 && s->def->assignment != ASSIGN_STICKY && rows > 0;
    if (!by_row && s->row_group == NULL) {
        uint32_t bucket = a->bucket >= 0 ? (uint32_t)a->bucket : atomic_fetch_add_explicit(&table->next_bucket, 1, memory_order_relaxed) % buckets;
        s->parts = mem_new_array(struct part, 1);
        struct part *p = add_part(s, 0, bucket);
        return make_draft(s, &a->batch, true, &p->append.draft, e);
    }
    uint32_t *bucket = mem_new_array(uint32_t, rows);
    enum mink_code code = MINK_OK;
    if (by_row && s->def->assignment == ASSIGN_HASH) {
        code = bucketing_assign(s->def, &a->batch, bucket, e);
    } else {
        uint32_t first = a->bucket >= 0 ? (uint32_t)a->bucket : atomic_fetch_add_explicit(&table->next_bucket, by_row ? rows : 1, memory_order_relaxed);
        for (uint32_t i = 0; i < rows; i++) bucket[i] = (first + (by_row ? i : 0)) % buckets;
    }
    if (code == MINK_OK) code = split_rows(s, bucket, e);
    mem_free(bucket);
    return code;
}

static void dispatch(struct append_state *s) {
    struct node_append *a = s->a;
    enum mink_code code = split(s, node_table_state(s->node, s->table_id), &a->error);
    if (code == MINK_OK && a->has_sequence && s->part_count > 1)
        code = error_set(&a->error, MINK_INVALID, "SINGLE_BUCKET", "a batch with a sequence number must go to one bucket, this one goes to %" PRIu32, s->part_count);
    if (code != MINK_OK) {
        for (uint32_t i = 0; i < s->part_count; i++) batch_draft_deinit(&s->parts[i].append.draft);
        error_context(&a->error, "append %s.%s", s->def->database, s->def->name);
        post_done(s, code);
        return;
    }
    if (a->writer_id) atomic_store_explicit(&s->node->writers_seen, true, memory_order_relaxed);
    drop_input(a); // the drafts hold what they need
    metric_add(&parts_total, s->part_count);
    atomic_store(&s->parts_left, s->part_count);
    // The last one may be answered, and everything freed, before this loop ends: the count is read first.
    struct part *parts = s->parts;
    struct node *n = s->node;
    for (uint32_t i = 0, count = s->part_count; i < count; i++) shard_post(node_host(n, parts[i].stream_id)->shard, &parts[i].task);
}

// ---- partitions

// Finds the streams of the partitions. *missing: how many do not exist.
static void resolve(struct append_state *s, uint32_t *missing, struct error *e) {
    *missing = 0;
    if (s->def->partition_by_count == 0) {
        s->groups[0].stream_base = s->stream_base;
        return;
    }
    for (uint32_t i = 0; i < s->group_count; i++) {
        struct catalog_partition p;
        if (catalog_find_partition(s->node->catalog, s->table_id, s->groups[i].name, &p, e) != MINK_OK) {
            (*missing)++;
            continue;
        }
        s->groups[i].stream_base = p.stream_base;
        catalog_partition_deinit(&p);
    }
}

static bool may_create(const struct append_state *s) { return s->a->create_partition && s->def->dynamic_partition; }

static void advance(struct pending_table *p);

struct create { struct meta_proposal proposal; struct pending_table *pending; };

static void on_created(struct meta_proposal *m) {
    struct create *c = container_of(m, struct create, proposal);
    struct pending_table *p = c->pending;
    if (m->result.code != MINK_OK) {
        struct append_state *s = p->first;
        if (s->a->error.code == MINK_OK) error_copy(&s->a->error, &m->result.error);
    }
    mem_free(c);
    if (--p->proposals == 0) advance(p);
}

// The first of the queue: true when its partitions are being created.
static bool create_missing(struct pending_table *p, struct append_state *s) {
    struct node *n = s->node;
    int64_t now_ms = shard_wall_ms(node_shard(n));
    for (uint32_t i = 0; i < s->group_count; i++) {
        struct catalog_partition found;
        if (catalog_find_partition(n->catalog, s->table_id, s->groups[i].name, &found, NULL) == MINK_OK) {
            catalog_partition_deinit(&found);
            continue;
        }
        if (s->def->auto_partition.enabled && partition_auto_expired(s->def, s->groups[i].name, now_ms)) {
            error_set(&s->a->error, MINK_INVALID, "PARTITION_EXPIRED", "partition %s of %s.%s is older than table.auto-partition.num-retention keeps", s->groups[i].name, s->def->database, s->def->name);
            return p->proposals > 0;
        }
        struct create *c = mem_new(struct create);
        c->pending = p;
        p->proposals++;
        meta_propose(n->meta, &c->proposal, node_shard(n), command_create_partition(s->table_id, s->groups[i].name, true), on_created);
    }
    return p->proposals > 0;
}

// On shards[0]: serves the queue until it is empty or its first waits again. The table stays pending until nothing is queued, and an append
// leaves the queue only to be sent off at once, so that one that comes meanwhile cannot pass it.
static void advance(struct pending_table *p) {
    struct node *n = p->node;
    for (;;) {
        struct append_state *s = p->first;
        struct error why = {0};
        uint32_t missing;
        resolve(s, &missing, &why);
        if (missing && may_create(s) && s->a->error.code == MINK_OK && create_missing(p, s)) return;
        pthread_mutex_lock(&n->lock);
        p->first = s->next;
        if (p->first == NULL) p->last = &p->first;
        pthread_mutex_unlock(&n->lock);
        if (missing) {
            if (s->a->error.code == MINK_OK) s->a->error = why;
            error_context(&s->a->error, "append %s.%s", s->def->database, s->def->name);
            post_done(s, s->a->error.code);
        } else {
            s->a->error = (struct error){0};
            dispatch(s);
        }
        pthread_mutex_lock(&n->lock);
        bool empty = p->first == NULL;
        if (empty) {
            struct pending_table **at = &n->pending;
            while (*at != p) at = &(*at)->next;
            *at = p->next;
        }
        pthread_mutex_unlock(&n->lock);
        if (!empty) continue;
        mem_free(p);
        return;
    }
}

static void run_advance(struct task *task) { advance(container_of(task, struct pending_table, task)); }

// true: the append waits behind others, or for its own partitions.
static bool wait_for_partitions(struct append_state *s, bool start) {
    struct node *n = s->node;
    pthread_mutex_lock(&n->lock);
    struct pending_table *p = n->pending;
    while (p && p->table_id != s->table_id) p = p->next;
    bool found = p != NULL;
    if (p == NULL && start) {
        p = mem_new(struct pending_table);
        *p = (struct pending_table){.node = n, .table_id = s->table_id, .last = &p->first, .next = n->pending, .task.run = run_advance};
        n->pending = p;
    }
    if (p) {
        s->next = NULL;
        *p->last = s;
        p->last = &s->next;
    }
    pthread_mutex_unlock(&n->lock);
    if (p && !found) shard_post(node_shard(n), &p->task);
    return p != NULL;
}

// The partitions that the rows belong to.
static enum mink_code group_rows(struct append_state *s, struct error *e) {
    struct node_append *a = s->a;
    const struct table_def *d = s->def;
    if (d->partition_by_count == 0) {
        if (a->partition) return error_set(e, MINK_INVALID, "NOT_PARTITIONED", "table %s.%s has no partitions", d->database, d->name);
        s->groups = mem_new_array(struct group, 1);
        s->group_count = 1;
        return MINK_OK;
    }
    uint32_t rows = (uint32_t)a->batch.row_count, count = 0;
    char **names = NULL;
    if (rows) {
        s->row_group = mem_new_array(uint32_t, rows);
        MINK_TRY(partition_group(d, &a->batch, s->row_group, &names, &count, e));
    } else if (a->partition) {
        names = mem_new_array(char *, 1);
        names[count++] = mem_strdup(a->partition);
    }
    s->groups = mem_new_array(struct group, count + 1);
    s->group_count = count;
    for (uint32_t i = 0; i < count; i++) s->groups[i].name = names[i];
    mem_free(names);
    if (count <= 1) {
        mem_free(s->row_group);
        s->row_group = NULL;
    }
    for (uint32_t i = 0; i < count && a->partition; i++) {
        if (strcmp(s->groups[i].name, a->partition) == 0) continue;
        return error_set(e, MINK_INVALID, "PARTITION_MISMATCH", "a row belongs to partition %s of %s.%s, but the batch was sent to partition %.200s", s->groups[i].name, d->database, d->name, a->partition);
    }
    if (count > PARTITIONS_PER_BATCH_MAX)
        return error_set(e, MINK_INVALID, "TOO_MANY_PARTITIONS", "a batch touches %" PRIu32 " partitions of %s.%s, at most %d are allowed", count, d->database, d->name, PARTITIONS_PER_BATCH_MAX);
    return MINK_OK;
}

static enum mink_code check_writer(const struct append_state *s, struct error *e) {
    const struct node_append *a = s->a;
    if (a->writer_id == 0 && !a->has_sequence) return MINK_OK;
    if (a->writer_id == 0) return error_set(e, MINK_INVALID, "WRITER_MISSING", "a batch has a sequence number but no writer");
    if (!a->has_sequence) return error_set(e, MINK_INVALID, "SEQUENCE_MISSING", "a batch of writer %" PRIu64 " has no sequence number", a->writer_id);
    if (a->bucket >= 0 || s->def->bucket_num == 1) return MINK_OK;
    enum mink_code code = error_set(e, MINK_INVALID, "SINGLE_BUCKET", "sequence numbers count within a bucket, and %s.%s has %" PRIu32 " of them", s->def->database, s->def->name, s->def->bucket_num);
    error_hint(e, "name the bucket");
    return code;
}

static enum mink_code prepare(struct append_state *s, struct error *e) {
    struct node *n = s->node;
    struct node_append *a = s->a;
    struct catalog_table t;
    const struct table_def *seen = a->table->table.def;
    if (catalog_table_by_id(n->catalog, a->table->table.table_id, &t, NULL) != MINK_OK)
        return error_set(e, MINK_NOT_FOUND, "TABLE_NOT_FOUND", "table %s.%s was dropped", seen->database, seen->name);
    // The newest options apply; columns stay those that the batch was made for.
    s->def = table_def_ref(t.def->schema_id == seen->schema_id ? t.def : a->table->table.def);
    s->table_id = t.table_id;
    s->stream_base = t.stream_base;
    catalog_table_deinit(&t);
    MINK_TRY(node_refuse_primary_key(s->def, e));
    if (a->bucket >= 0 && (uint32_t)a->bucket >= s->def->bucket_num)
        return error_set(e, MINK_INVALID, "BUCKET_OUT_OF_RANGE", "bucket %" PRId32 ": %s.%s has buckets 0 to %" PRIu32, a->bucket, s->def->database, s->def->name, s->def->bucket_num - 1);
    size_t bytes = a->slab.size ? a->slab.size : arrow_batch_bytes(&a->batch);
    if (bytes > n->config.batch_bytes_max) {
        enum mink_code code = error_set(e, MINK_INVALID, "BATCH_TOO_LARGE", "a batch of %zu bytes is over the limit of %" PRIu32, bytes, n->config.batch_bytes_max);
        error_hint(e, "send smaller batches, or raise limits.batch_bytes");
        return code;
    }
    MINK_TRY(check_writer(s, e));
    MINK_TRY(group_rows(s, e));
    if (a->has_sequence && s->group_count > 1)
        return error_set(e, MINK_INVALID, "SINGLE_BUCKET", "a batch with a sequence number must go to one partition, this one goes to %" PRIu32, s->group_count);
    return MINK_OK;
}

void node_append(struct node *n, struct node_append *a) {
    a->error = (struct error){0};
    a->ranges = NULL;
    a->range_count = 0;
    a->duplicate = false;
    metric_add(&appends, 1);
    a->code = node_enter(n, &a->error);
    if (a->code != MINK_OK) {
        drop_input(a);
        a->task.run = run_refused;
        shard_post(a->shard, &a->task);
        return;
    }
    struct append_state *s = mem_new(struct append_state);
    *s = (struct append_state){.node = n, .a = a};
    a->private_state = s;
    enum mink_code code = prepare(s, &a->error);
    // Nothing to store and nobody to remember it for.
    bool nothing = code == MINK_OK && (s->group_count == 0 || (a->batch.row_count == 0 && !a->has_sequence));
    if (code != MINK_OK || nothing) {
        post_done(s, code);
        return;
    }
    uint32_t missing;
    struct error why = {0};
    if (s->def->partition_by_count && wait_for_partitions(s, false)) return;
    resolve(s, &missing, &why);
    if (missing && !may_create(s)) {
        if (!s->def->dynamic_partition) error_hint(&why, "create it, or set table.dynamic-partition.enabled");
        a->error = why;
        error_context(&a->error, "append %s.%s", s->def->database, s->def->name);
        post_done(s, why.code);
        return;
    }
    if (missing) (void)wait_for_partitions(s, true);
    else dispatch(s);
}
