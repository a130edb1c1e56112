// SPDX-License-Identifier: Apache-2.0
// Proposing and following, over a log in memory that fails on demand before or after the effect, on a shard driven by hand.
#include "meta_testing.h"

// ---- a shard that runs when told

struct hand_shard {
    struct shard shard;
    struct task *first, **last;
    struct timer *timers[16];
    uint32_t timer_count;
    uint64_t now_ns;
};

static void hand_post(struct shard *base, struct task *task) {
    struct hand_shard *s = container_of(base, struct hand_shard, shard);
    task->next = NULL;
    *s->last = task;
    s->last = &task->next;
}

static void hand_timer_stop(struct shard *base, struct timer *t) {
    struct hand_shard *s = container_of(base, struct hand_shard, shard);
    for (uint32_t i = 0; i < s->timer_count; i++)
        if (s->timers[i] == t) s->timers[i] = s->timers[--s->timer_count];
    t->heap_index = 0;
}

static void hand_timer_start(struct shard *base, struct timer *t, uint64_t delay_ns) {
    struct hand_shard *s = container_of(base, struct hand_shard, shard);
    hand_timer_stop(base, t);
    t->due_ns = s->now_ns + delay_ns;
    t->heap_index = 1;
    s->timers[s->timer_count++] = t;
}

static uint64_t hand_now(struct shard *base) { return container_of(base, struct hand_shard, shard)->now_ns; }
static int64_t hand_wall(struct shard *base) { return 0; }
static bool hand_is_current(struct shard *base) { return true; }
static const struct shard_ops hand_ops = {hand_post, hand_timer_start, hand_timer_stop, hand_now, hand_wall, hand_is_current};

static void hand_init(struct hand_shard *s, uint64_t seed) {
    *s = (struct hand_shard){.shard.ops = &hand_ops, .shard.name = "hand"};
    s->last = &s->first;
    random_seed(&s->shard.random, seed);
}

static bool hand_step(struct hand_shard *s) {
    struct task *task = s->first;
    if (!task) return false;
    s->first = task->next;
    if (!s->first) s->last = &s->first;
    task->run(task);
    return true;
}

static void hand_settle(struct hand_shard *s) {
    while (hand_step(s)) {}
}

// Goes to the next timer, if it is due by `until`.
static bool hand_next_timer(struct hand_shard *s, uint64_t until_ns) {
    struct timer *first = NULL;
    for (uint32_t i = 0; i < s->timer_count; i++)
        if (!first || s->timers[i]->due_ns < first->due_ns) first = s->timers[i];
    if (!first || first->due_ns > until_ns) return false;
    if (first->due_ns > s->now_ns) s->now_ns = first->due_ns;
    hand_timer_stop(&s->shard, first);
    first->fire(first);
    hand_settle(s);
    return true;
}

static void hand_advance(struct hand_shard *s, uint64_t ns) {
    uint64_t until = s->now_ns + ns;
    hand_settle(s);
    while (hand_next_timer(s, until)) {}
    s->now_ns = until;
}

// ---- a log in memory, shared by the faces of several processes

struct memory_log {
    struct slice *rows; // seq = first + index
    uint64_t first, head;
    struct slice checkpoint;
    uint64_t checkpoint_seq;
    uint32_t appends, heads, reads, saves, kept_behind;
};
struct face {
    struct meta_log log;
    struct memory_log *memory;
    bool closed;
    // Faults: the next `count` requests of kind `op` end with `code`, after the effect or without it.
    struct { int op; enum mink_code code; bool after; uint32_t count; } fault;
    uint32_t chance; // of 100: a random fault
};

static struct slice row_at(const struct memory_log *m, uint64_t seq) { return m->rows[seq - m->first]; }

static void memory_append(struct memory_log *m, struct slice command) {
    m->rows = mem_realloc(m->rows, (m->head - m->first + 2) * sizeof *m->rows);
    m->head++;
    m->rows[m->head - m->first] = slice_ref(command);
}

static void memory_truncate(struct memory_log *m, uint64_t before) {
    while (m->first < before && m->first <= m->head) {
        slice_unref(&m->rows[0]);
        memmove(m->rows, m->rows + 1, (m->head - m->first) * sizeof *m->rows);
        m->first++;
    }
}

static void memory_deinit(struct memory_log *m) {
    memory_truncate(m, UINT64_MAX);
    mem_free(m->rows);
    slice_unref(&m->checkpoint);
}

static enum mink_code effect(struct memory_log *m, struct meta_log_request *r) {
    switch (r->op) {
    case META_LOG_APPEND:
        m->appends++;
        if (r->seq != m->head + 1) return error_set(&r->error, MINK_CONFLICT, "LOG_MOVED", "moved");
        for (uint32_t i = 0; i < r->command_count; i++) memory_append(m, r->commands[i]);
        return MINK_OK;
    case META_LOG_READ:
        m->reads++;
        r->rows = mem_new_array(struct meta_row, r->rows_max);
        for (uint64_t seq = r->seq + 1 > m->first ? r->seq + 1 : m->first; seq <= m->head && r->row_count < r->rows_max; seq++) r->rows[r->row_count++] = (struct meta_row){seq, slice_ref(row_at(m, seq))};
        return MINK_OK;
    case META_LOG_HEAD:
        m->heads++;
        r->head = m->head;
        return MINK_OK;
    case META_LOG_SAVE_CHECKPOINT:
        m->saves++;
        slice_unref(&m->checkpoint);
        m->checkpoint = slice_ref(r->state);
        m->checkpoint_seq = r->seq;
        if (r->seq > m->kept_behind) memory_truncate(m, r->seq - m->kept_behind + 1);
        return MINK_OK;
    case META_LOG_LOAD_CHECKPOINT:
        r->seq = m->checkpoint_seq;
        r->state = slice_ref(m->checkpoint);
        return MINK_OK;
    }
    return MINK_INTERNAL;
}

static void face_run(struct task *task) {
    struct meta_log_request *r = container_of(task, struct meta_log_request, task);
    r->on_done(r);
}

static void face_submit(struct meta_log *base, struct meta_log_request *r) {
    struct face *f = container_of(base, struct face, log);
    bool fails = f->fault.count && f->fault.op == (int)r->op, after = f->fault.after;
    enum mink_code code = f->fault.code;
    if (fails) f->fault.count--;
    if (!fails && f->chance && random_below(shard_random(r->shard), 100) < f->chance) {
        fails = true;
        code = r->op == META_LOG_APPEND && random_below(shard_random(r->shard), 2) ? MINK_UNKNOWN_OUTCOME : MINK_UNAVAILABLE;
        after = code == MINK_UNKNOWN_OUTCOME && random_below(shard_random(r->shard), 2);
    }
    r->code = fails && !after ? code : effect(f->memory, r);
    if (fails && after && r->code == MINK_OK) r->code = code;
    if (r->code != MINK_OK && r->code != MINK_CONFLICT) error_set(&r->error, r->code, "FAULT", "the database is away");
    r->task.run = face_run;
    shard_post(r->shard, &r->task);
}

static void face_close(struct meta_log *base) { container_of(base, struct face, log)->closed = true; }
static const struct meta_log_ops face_ops = {face_submit, face_close};

// ---- a process

struct process {
    struct face face;
    struct meta *meta;
    uint32_t readies, closes;
    enum mink_code ready_code;
    struct error ready_error;
    uint64_t told;
};
static struct hand_shard hand;
static struct memory_log memory;

static void on_ready(void *ctx, enum mink_code code, const struct error *e) {
    struct process *p = ctx;
    p->readies++;
    p->ready_code = code;
    if (e) p->ready_error = *e;
}
static void on_closed(void *ctx) { ((struct process *)ctx)->closes++; }
static void on_applied(void *ctx, uint64_t position) { ((struct process *)ctx)->told = position; }

static void process_open_with(struct process *p, struct meta_config config) {
    p->face.log.ops = &face_ops;
    p->face.memory = &memory;
    p->readies = p->closes = 0;
    config.shard = &hand.shard;
    config.log = &p->face.log;
    meta_open(&config, &p->meta, on_ready, p);
    meta_listen(p->meta, on_applied, p);
}

static void process_open(struct process *p) {
    process_open_with(p, (struct meta_config){.checkpoint_every = 1000000});
    hand_settle(&hand);
    assert_int_equal(p->readies, 1);
    assert_int_equal(p->ready_code, MINK_OK);
}

static void process_close(struct process *p) {
    meta_close(p->meta, on_closed, p);
    hand_settle(&hand);
    assert_int_equal(p->closes, 1);
    assert_int_equal(p->readies, 1);
    assert_true(p->face.closed);
}

struct proposed {
    struct meta_proposal proposal;
    uint32_t answers;
    enum mink_code code;
    char reason[40];
    bool existed;
    uint64_t seq, id;
};

static void on_proposed(struct meta_proposal *m) {
    struct proposed *p = container_of(m, struct proposed, proposal);
    p->answers++;
    p->code = m->result.code;
    memcpy(p->reason, m->result.error.reason, sizeof p->reason);
    p->existed = m->result.existed;
    p->seq = m->result.seq;
    p->id = m->result.id;
}

static void propose(struct process *p, struct proposed *what, struct command *take_command) {
    what->answers = 0;
    meta_propose(p->meta, &what->proposal, &hand.shard, take_command, on_proposed);
}

struct synced { struct meta_sync sync; uint32_t answers; };
static void on_synced(struct meta_sync *s) { container_of(s, struct synced, sync)->answers++; }

static bool has_database(struct process *p, const char *name) {
    char **names;
    uint32_t count;
    bool found = false;
    catalog_list_databases(meta_catalog(p->meta), &names, &count);
    for (uint32_t i = 0; i < count; i++) found |= strcmp(names[i], name) == 0;
    catalog_free_names(names, count);
    return found;
}

static int setup(void **state) {
    hand_init(&hand, 1);
    memory = (struct memory_log){.first = 1, .kept_behind = 1000000};
    return 0;
}

static int teardown(void **state) {
    memory_deinit(&memory);
    return 0;
}

// ---- tests

static void what_waits_is_appended_together(void **state) {
    struct process p = {0};
    static struct proposed list[1200];
    process_open(&p);
    for (int i = 0; i < 1200; i++) propose(&p, &list[i], command_allocate_writer_ids(1));
    hand_settle(&hand);
    for (int i = 0; i < 1200; i++) {
        assert_int_equal(list[i].answers, 1);
        assert_int_equal(list[i].code, MINK_OK);
        assert_int_equal(list[i].seq, i + 1);
        assert_int_equal(list[i].id, i + 1);
    }
    assert_int_equal(memory.appends, 3); // groups of 512
    assert_int_equal(memory.head, 1200);
    assert_int_equal(p.told, 1200);
    process_close(&p);
}

static void two_processes_learn_the_right_results(void **state) {
    struct process a = {0}, b = {0};
    struct proposed x, y, z;
    process_open(&a);
    process_open(&b);
    propose(&a, &x, command_create_database("shop", "", false));
    propose(&b, &y, command_create_database("shop", "", false));
    propose(&b, &z, command_create_database("other", "", false));
    hand_settle(&hand);
    assert_int_equal(x.code, MINK_OK);
    assert_int_equal(y.code, MINK_EXISTS);
    assert_string_equal(y.reason, "DATABASE_EXISTS");
    assert_int_equal(z.code, MINK_OK);
    assert_int_equal(memory.head, 3);
    // a has not heard of b's commands; a look at the head brings them.
    assert_false(has_database(&a, "other"));
    struct synced s = {0}, s2 = {0};
    uint32_t heads = memory.heads;
    meta_sync(a.meta, &s.sync, &hand.shard, on_synced);
    meta_sync(a.meta, &s2.sync, &hand.shard, on_synced);
    hand_settle(&hand);
    assert_int_equal(s.answers, 1);
    assert_int_equal(s.sync.code, MINK_OK);
    assert_int_equal(s2.answers, 1);
    assert_in_range(memory.heads - heads, 1, 2);
    assert_true(has_database(&a, "other"));
    assert_int_equal(a.told, 3);
    process_close(&a);
    process_close(&b);
}

static void an_append_stands_for_a_look_at_the_head(void **state) {
    struct process a = {0}, b = {0};
    struct proposed x;
    struct synced s = {0};
    process_open(&a);
    process_open(&b);
    propose(&b, &x, command_create_database("theirs", "", false));
    hand_settle(&hand);
    meta_sync(a.meta, &s.sync, &hand.shard, on_synced);
    propose(&a, &x, command_create_database("ours", "", false));
    // Both enter before the shard acts on the first.
    hand_settle(&hand);
    assert_int_equal(s.answers, 1);
    assert_int_equal(x.code, MINK_OK);
    assert_true(has_database(&a, "theirs"));
    process_close(&a);
    process_close(&b);
}

static void a_lost_reply_is_looked_up(void **state) {
    for (int after = 0; after <= 1; after++) {
        struct process p = {0};
        struct proposed x, y;
        setup(NULL);
        process_open(&p);
        p.face.fault.op = META_LOG_APPEND;
        p.face.fault.code = MINK_UNKNOWN_OUTCOME;
        p.face.fault.after = after;
        p.face.fault.count = 1;
        propose(&p, &x, command_create_database("shop", "", false));
        propose(&p, &y, command_allocate_writer_ids(5));
        hand_advance(&hand, 5 * NS_PER_S);
        assert_int_equal(x.answers, 1);
        assert_int_equal(x.code, MINK_OK);
        assert_int_equal(y.answers, 1);
        assert_int_equal(y.code, MINK_OK);
        assert_int_equal(memory.head, 2);
        process_close(&p);
        teardown(NULL);
    }
    setup(NULL);
}

static void a_database_that_is_away_is_tried_again(void **state) {
    struct process p = {0};
    struct proposed ddl, stream;
    struct synced s = {0};
    process_open(&p);
    p.face.fault.op = META_LOG_APPEND;
    p.face.fault.code = MINK_UNAVAILABLE;
    p.face.fault.count = 3;
    propose(&p, &ddl, command_create_database("shop", "", false));
    hand_advance(&hand, 3 * NS_PER_S);
    assert_int_equal(ddl.answers, 1);
    assert_int_equal(ddl.code, MINK_OK);
    // Away for longer: people get an answer, streams wait.
    p.face.fault.count = UINT32_MAX;
    propose(&p, &ddl, command_create_database("shop2", "", false));
    propose(&p, &stream, command_allocate_writer_ids(1));
    hand_advance(&hand, 10 * NS_PER_S);
    meta_sync(p.meta, &s.sync, &hand.shard, on_synced);
    hand_advance(&hand, 4 * NS_PER_S);
    assert_int_equal(ddl.answers, 0);
    hand_advance(&hand, 4 * NS_PER_S);
    assert_int_equal(ddl.answers, 1);
    assert_int_equal(ddl.code, MINK_UNAVAILABLE);
    assert_string_equal(ddl.reason, "FAULT");
    assert_int_equal(stream.answers, 0);
    uint32_t appends = memory.appends;
    hand_advance(&hand, 60 * NS_PER_S);
    assert_int_equal(appends, memory.appends);
    p.face.fault.count = 0;
    hand_advance(&hand, 3 * NS_PER_S);
    assert_int_equal(stream.answers, 1);
    assert_int_equal(stream.code, MINK_OK);
    assert_int_equal(memory.head, 2); // shop2 is not in the log
    assert_int_equal(s.answers, 1);
    process_close(&p);
}

static void a_look_that_cannot_succeed_ends_too(void **state) {
    struct process p = {0};
    struct synced s = {0};
    process_open(&p);
    p.face.fault.op = META_LOG_HEAD;
    p.face.fault.code = MINK_UNAVAILABLE;
    p.face.fault.count = UINT32_MAX;
    meta_sync(p.meta, &s.sync, &hand.shard, on_synced);
    hand_advance(&hand, 14 * NS_PER_S);
    assert_int_equal(s.answers, 0);
    hand_advance(&hand, 4 * NS_PER_S);
    assert_int_equal(s.answers, 1);
    assert_int_equal(s.sync.code, MINK_UNAVAILABLE);
    assert_string_equal(s.sync.error.message, "the database is away");
    process_close(&p);
}

// The outcome of what may have been written stays unknown when nobody can look.
static void giving_up_tells_what_may_have_been_written(void **state) {
    struct process p = {0};
    struct proposed x;
    process_open(&p);
    p.face.fault.op = META_LOG_APPEND;
    p.face.fault.code = MINK_UNKNOWN_OUTCOME;
    p.face.fault.after = true;
    p.face.fault.count = 1;
    propose(&p, &x, command_create_database("shop", "", false));
    while (memory.appends == 0) assert_true(hand_step(&hand));
    p.face.fault.op = META_LOG_READ;
    p.face.fault.code = MINK_UNAVAILABLE;
    p.face.fault.after = false;
    p.face.fault.count = UINT32_MAX;
    hand_advance(&hand, 20 * NS_PER_S);
    assert_int_equal(x.answers, 1);
    assert_int_equal(x.code, MINK_UNKNOWN_OUTCOME);
    p.face.fault.count = 0;
    hand_advance(&hand, 3 * NS_PER_S);
    assert_true(has_database(&p, "shop"));
    process_close(&p);
}

static void a_command_that_cannot_be_applied_ends_everything(void **state) {
    static const uint8_t newer[] = {0x08, 0x09};
    struct process p = {0};
    struct proposed x, y;
    struct synced s = {0};
    process_open(&p);
    memory_append(&memory, slice_borrow(newer, sizeof newer));
    propose(&p, &x, command_create_database("shop", "", false));
    hand_settle(&hand);
    assert_int_equal(x.answers, 1);
    assert_int_equal(x.code, MINK_UNSUPPORTED);
    assert_string_equal(x.reason, "UNKNOWN_COMMAND");
    assert_true(p.told == UINT64_MAX);
    struct error why = {0};
    assert_true(meta_failure(p.meta, &why));
    assert_string_equal(why.reason, "UNKNOWN_COMMAND");
    propose(&p, &y, command_create_database("shop", "", false));
    meta_sync(p.meta, &s.sync, &hand.shard, on_synced);
    hand_settle(&hand);
    assert_int_equal(y.code, MINK_UNSUPPORTED);
    assert_int_equal(s.sync.code, MINK_UNSUPPORTED);
    process_close(&p);
    // And a node that starts there says so.
    process_open_with(&p, (struct meta_config){0});
    hand_settle(&hand);
    assert_int_equal(p.readies, 1);
    assert_int_equal(p.ready_code, MINK_UNSUPPORTED);
    assert_string_equal(p.ready_error.message, "command 1 of the log has version 9; this version of Mink knows version 1");
    process_close(&p);
}

static void what_would_stop_every_node_is_not_proposed(void **state) {
    struct process p = {0};
    struct proposed x;
    process_open(&p);
    uint64_t *ids = mem_new_array(uint64_t, 8 << 20);
    for (uint32_t i = 0; i < 8 << 20; i++) ids[i] = UINT64_MAX - i; // 10 bytes each
    propose(&p, &x, command_open_streams(1, ids, 8 << 20));
    mem_free(ids);
    hand_settle(&hand);
    assert_int_equal(x.code, MINK_INVALID);
    assert_string_equal(x.reason, "COMMAND_TOO_LARGE");
    assert_int_equal(memory.head, 0);
    process_close(&p);
}

static void checkpoints_shorten_the_log_and_restarts(void **state) {
    struct process p = {0};
    static struct proposed list[100];
    memory.kept_behind = 3;
    process_open_with(&p, (struct meta_config){.checkpoint_every = 10});
    hand_settle(&hand);
    for (int i = 0; i < 100; i++) {
        propose(&p, &list[i], command_allocate_writer_ids(1));
        hand_settle(&hand);
    }
    assert_int_equal(memory.saves, 10);
    assert_int_equal(memory.checkpoint_seq, 100);
    assert_int_equal(memory.first, 98);
    struct slice before = catalog_save(meta_catalog(p.meta));
    process_close(&p);
    process_open(&p);
    struct slice after = catalog_save(meta_catalog(p.meta));
    assert_true(slices_equal(before, after));
    slice_unref(&before);
    slice_unref(&after);
    process_close(&p);
}

// Load that never ends still gets its checkpoints.
static struct process *busy;
static struct proposed busy_list[64];
static void on_busy(struct meta_proposal *m) {
    if (memory.head < 1000) meta_propose(busy->meta, m, &hand.shard, command_allocate_writer_ids(1), on_busy);
}
static void checkpoints_come_under_load(void **state) {
    struct process p = {0};
    memory.kept_behind = 10;
    process_open_with(&p, (struct meta_config){.checkpoint_every = 100});
    busy = &p;
    for (int i = 0; i < 64; i++) meta_propose(p.meta, &busy_list[i].proposal, &hand.shard, command_allocate_writer_ids(1), on_busy);
    hand_settle(&hand);
    assert_true(memory.saves >= 5);
    process_close(&p);
}

static void one_who_fell_behind_a_checkpoint_takes_it(void **state) {
    struct process slow = {0}, fast = {0};
    static struct proposed list[50];
    struct proposed x, lost;
    memory.kept_behind = 2;
    process_open(&slow);
    process_open_with(&fast, (struct meta_config){.checkpoint_every = 20});
    hand_settle(&hand);
    // One of slow's is in the log, but its reply was lost, and meanwhile the log is cut.
    slow.face.fault.op = META_LOG_APPEND;
    slow.face.fault.code = MINK_UNKNOWN_OUTCOME;
    slow.face.fault.after = true;
    slow.face.fault.count = 1;
    propose(&slow, &lost, command_create_database("lost", "", false));
    while (memory.head == 0) assert_true(hand_step(&hand));
    slow.face.fault.op = META_LOG_READ;
    slow.face.fault.code = MINK_UNAVAILABLE;
    slow.face.fault.after = false;
    slow.face.fault.count = 1;
    for (int i = 0; i < 50; i++) {
        propose(&fast, &list[i], command_allocate_writer_ids(1));
        hand_settle(&hand);
    }
    assert_true(memory.first > 10);
    assert_int_equal(lost.answers, 0);
    propose(&slow, &x, command_allocate_writer_ids(1));
    hand_advance(&hand, 5 * NS_PER_S);
    assert_int_equal(lost.answers, 1);
    assert_int_equal(lost.code, MINK_UNKNOWN_OUTCOME);
    assert_string_equal(lost.reason, "LOG_TRUNCATED");
    assert_int_equal(x.code, MINK_OK);
    assert_int_equal(x.id, 51);
    assert_true(has_database(&slow, "lost"));
    process_close(&slow);
    process_close(&fast);
}

static void rows_that_are_missing_are_an_alarm(void **state) {
    struct process a = {0}, b = {0};
    struct proposed x;
    struct synced s = {0};
    process_open(&a);
    process_open(&b);
    for (int i = 0; i < 5; i++) {
        propose(&b, &x, command_allocate_writer_ids(1));
        hand_settle(&hand);
    }
    memory_truncate(&memory, 3); // and no checkpoint
    meta_sync(a.meta, &s.sync, &hand.shard, on_synced);
    hand_settle(&hand);
    assert_int_equal(s.sync.code, MINK_CORRUPT);
    assert_string_equal(s.sync.error.message, "commands after 0 are missing in the log, and there is no newer checkpoint");
    process_close(&a);
    process_close(&b);
}

static void a_log_that_became_shorter_is_an_alarm(void **state) {
    struct process p = {0};
    struct proposed x;
    process_open(&p);
    for (int i = 0; i < 5; i++) {
        propose(&p, &x, command_allocate_writer_ids(1));
        hand_settle(&hand);
    }
    for (int i = 0; i < 2; i++) slice_unref(&memory.rows[--memory.head]); // restored from a backup
    propose(&p, &x, command_allocate_writer_ids(1));
    hand_settle(&hand);
    assert_int_equal(x.code, MINK_CORRUPT);
    assert_string_equal(x.reason, "LOG_SHORTER");
    assert_true(p.told == UINT64_MAX);
    process_close(&p);
}

static void an_open_without_database_says_so(void **state) {
    struct process p = {0};
    p.face.fault.op = META_LOG_LOAD_CHECKPOINT;
    p.face.fault.code = MINK_UNAVAILABLE;
    p.face.fault.count = 1;
    process_open_with(&p, (struct meta_config){0});
    hand_settle(&hand);
    assert_int_equal(p.readies, 1);
    assert_int_equal(p.ready_code, MINK_UNAVAILABLE);
    process_close(&p);
}

static void a_close_answers_all_that_waits(void **state) {
    struct process p = {0};
    struct proposed x, y;
    struct synced s = {0};
    process_open(&p);
    p.face.fault.op = META_LOG_APPEND;
    p.face.fault.code = MINK_UNAVAILABLE;
    p.face.fault.count = UINT32_MAX;
    propose(&p, &x, command_allocate_writer_ids(1));
    hand_settle(&hand);
    propose(&p, &y, command_allocate_writer_ids(1));
    meta_sync(p.meta, &s.sync, &hand.shard, on_synced);
    process_close(&p);
    assert_int_equal(x.answers, 1);
    assert_int_equal(x.code, MINK_UNAVAILABLE);
    assert_string_equal(x.reason, "CLOSING");
    assert_int_equal(y.answers, 1);
    assert_int_equal(s.answers, 1);
    assert_int_equal(s.sync.code, MINK_UNAVAILABLE);
    assert_int_equal(memory.head, 0);
    assert_int_equal(hand.timer_count, 0);
    // Before it was ready, too.
    process_open_with(&p, (struct meta_config){0});
    process_close(&p);
    assert_int_equal(p.readies, 1);
}

static void polling_finds_what_others_wrote(void **state) {
    struct process a = {0}, b = {0};
    struct proposed x;
    process_open_with(&a, (struct meta_config){.poll_ns = 100 * NS_PER_MS});
    hand_settle(&hand);
    process_open(&b);
    propose(&b, &x, command_create_database("shop", "", false));
    hand_settle(&hand);
    assert_false(has_database(&a, "shop"));
    hand_advance(&hand, 150 * NS_PER_MS);
    assert_true(has_database(&a, "shop"));
    process_close(&a);
    // Without it an idle process asks nothing.
    uint32_t heads = memory.heads, reads = memory.reads;
    hand_advance(&hand, 3600 * NS_PER_S);
    assert_int_equal(memory.heads, heads);
    assert_int_equal(memory.reads, reads);
    process_close(&b);
}

static void a_wake_makes_it_read(void **state) {
    struct process a = {0}, b = {0};
    struct proposed x;
    process_open(&a);
    process_open(&b);
    propose(&b, &x, command_create_database("shop", "", false));
    hand_settle(&hand);
    a.face.log.on_wake(a.face.log.wake_ctx);
    a.face.log.on_wake(a.face.log.wake_ctx);
    hand_settle(&hand);
    assert_true(has_database(&a, "shop"));
    process_close(&a);
    process_close(&b);
}

// Three processes, faults everywhere, rows cut away: whoever was told OK finds its command in the log once, refused ones never, and all end equal.
static void random_faults_never_lie(void **state) {
    teardown(NULL);
    for (uint64_t seed = 1; seed <= 60; seed++) {
        static struct proposed list[600];
        static char names[600][16];
        struct process p[3] = {0};
        setup(NULL);
        hand_init(&hand, seed);
        memory.kept_behind = (uint32_t)random_below(&hand.shard.random, 40);
        for (int i = 0; i < 3; i++) {
            process_open_with(&p[i], (struct meta_config){.checkpoint_every = 30 + random_below(&hand.shard.random, 200), .poll_ns = i == 2 ? 50 * NS_PER_MS : 0});
            hand_settle(&hand);
            p[i].face.chance = 15;
        }
        for (int i = 0; i < 600; i++) {
            snprintf(names[i], sizeof names[i], "db%03d", i);
            propose(&p[random_below(&hand.shard.random, 3)], &list[i], command_create_database(names[i], "", false));
            for (uint64_t steps = random_below(&hand.shard.random, 12); steps > 0; steps--) hand_step(&hand);
            if (random_below(&hand.shard.random, 20) == 0) hand_next_timer(&hand, UINT64_MAX);
        }
        for (int i = 0; i < 3; i++) p[i].face.chance = 0;
        struct synced s[3] = {0};
        hand_advance(&hand, 30 * NS_PER_S);
        for (int i = 0; i < 3; i++) meta_sync(p[i].meta, &s[i].sync, &hand.shard, on_synced);
        hand_advance(&hand, 30 * NS_PER_S);
        struct slice first = catalog_save(meta_catalog(p[0].meta));
        for (int i = 0; i < 3; i++) {
            assert_int_equal(s[i].sync.code, MINK_OK);
            struct slice other = catalog_save(meta_catalog(p[i].meta));
            if (!slices_equal(first, other)) fail_msg("seed %llu: the catalogs differ", (unsigned long long)seed);
            slice_unref(&other);
        }
        slice_unref(&first);
        uint32_t created = 0;
        for (int i = 0; i < 600; i++) {
            bool there = has_database(&p[0], names[i]);
            created += there;
            if (list[i].answers != 1) fail_msg("seed %llu: %s was answered %u times", (unsigned long long)seed, names[i], list[i].answers);
            if (list[i].code == MINK_OK ? !there : list[i].code == MINK_UNKNOWN_OUTCOME ? false : there)
                fail_msg("seed %llu: %s was answered %s, and %s there", (unsigned long long)seed, names[i], mink_code_name(list[i].code), there ? "is" : "is not");
        }
        if (created != memory.head) fail_msg("seed %llu: %u databases of %llu commands: one was appended twice", (unsigned long long)seed, created, (unsigned long long)memory.head);
        for (int i = 0; i < 3; i++) process_close(&p[i]);
        teardown(NULL);
    }
    setup(NULL);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_waits_is_appended_together),
        TEST(two_processes_learn_the_right_results),
        TEST(an_append_stands_for_a_look_at_the_head),
        TEST(a_lost_reply_is_looked_up),
        TEST(a_database_that_is_away_is_tried_again),
        TEST(a_look_that_cannot_succeed_ends_too),
        TEST(giving_up_tells_what_may_have_been_written),
        TEST(a_command_that_cannot_be_applied_ends_everything),
        TEST(what_would_stop_every_node_is_not_proposed),
        TEST(checkpoints_shorten_the_log_and_restarts),
        TEST(checkpoints_come_under_load),
        TEST(one_who_fell_behind_a_checkpoint_takes_it),
        TEST(rows_that_are_missing_are_an_alarm),
        TEST(a_log_that_became_shorter_is_an_alarm),
        TEST(an_open_without_database_says_so),
        TEST(a_close_answers_all_that_waits),
        TEST(polling_finds_what_others_wrote),
        TEST(a_wake_makes_it_read),
        TEST(random_faults_never_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
