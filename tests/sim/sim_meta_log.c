// SPDX-License-Identifier: Apache-2.0
#include "sim/sim_meta_log.h"

#include "base/mem.h"

#include <string.h>

#define KEPT_BEHIND_CHECKPOINT 20 // small, so that readers meet the checkpoint

struct checkpoint {
    uint64_t seq;
    struct slice state;
};

struct sim_meta_db {
    struct sim *sim;
    struct slice *commands; // of seq 1, 2, …
    uint64_t head, capacity, first_kept;
    struct checkpoint *checkpoints;
    uint32_t checkpoint_count;
    struct sim_meta_faults faults;
    struct sim_meta_counts counts;
    uint32_t spell; // requests of an UNAVAILABLE spell still to come
    struct connection *connections;
};

struct connection {
    struct meta_log log;
    struct sim_meta_db *db;
    struct sim_process *process;
    bool closed;
    struct connection *next;
};

enum outcome { OUTCOME_NORMAL, OUTCOME_UNAVAILABLE, OUTCOME_UNKNOWN_DONE, OUTCOME_UNKNOWN_NOT_DONE, OUTCOME_UNKNOWN_LATE };

struct call {
    struct timer timer;
    struct connection *c;
    struct meta_log_request *r;
    struct slice *commands; // own references: the effect may come after the process has ended
    uint32_t command_count;
    uint64_t seq;
    enum outcome outcome;
};

static struct random *dice(struct sim_meta_db *db) { return sim_random(db->sim); }
static bool chance(struct sim_meta_db *db, double fraction) { return fraction > 0 && random_unit(dice(db)) < fraction; }

// ---- the table of commands

static void append_one(struct sim_meta_db *db, struct slice command) {
    if (db->head == db->capacity) {
        db->capacity = db->capacity ? db->capacity * 2 : 64;
        db->commands = mem_realloc(db->commands, db->capacity * sizeof *db->commands);
    }
    db->commands[db->head++] = slice_copy(command.data, command.size);
    sim_trace(db->sim, "meta command %llu, %zu bytes", (unsigned long long)db->head, command.size);
}

static void wake(struct sim_meta_db *db, const struct connection *but) {
    for (struct connection *c = db->connections; c; c = c->next)
        if (c != but && !c->closed && sim_alive(c->process) && c->log.on_wake) c->log.on_wake(c->log.wake_ctx);
}

void sim_meta_db_append(struct sim_meta_db *db, struct slice command) {
    append_one(db, command);
    wake(db, NULL);
}

static void apply_append(struct call *call, enum mink_code *code, struct error *e) {
    struct sim_meta_db *db = call->c->db;
    if (call->seq != db->head + 1) {
        *code = error_set(e, MINK_CONFLICT, "LOG_MOVED", "command %llu: the log ends at %llu", (unsigned long long)call->seq, (unsigned long long)db->head);
        return;
    }
    for (uint32_t i = 0; i < call->command_count; i++) append_one(db, call->commands[i]);
    wake(db, call->c);
}

// ---- requests

static void run_done(struct task *task) {
    struct meta_log_request *r = container_of(task, struct meta_log_request, task);
    r->on_done(r);
}

static void answer(struct call *call) {
    struct meta_log_request *r = call->r;
    call->r = NULL;
    if (!sim_alive(call->c->process)) return;
    r->task.run = run_done;
    shard_post(r->shard, &r->task);
}

static void call_free(struct call *call) {
    for (uint32_t i = 0; i < call->command_count; i++) slice_unref(&call->commands[i]);
    mem_free(call->commands);
    mem_free(call);
}

static void read_rows(struct sim_meta_db *db, struct meta_log_request *r) {
    uint64_t from = r->seq + 1 > db->first_kept ? r->seq + 1 : db->first_kept;
    if (from < 1) from = 1;
    r->rows = mem_new_array(struct meta_row, r->rows_max);
    for (uint64_t seq = from; seq <= db->head && r->row_count < r->rows_max; seq++)
        r->rows[r->row_count++] = (struct meta_row){seq, slice_copy(db->commands[seq - 1].data, db->commands[seq - 1].size)};
}

static void save_checkpoint(struct sim_meta_db *db, struct meta_log_request *r) {
    db->checkpoints = mem_realloc(db->checkpoints, (db->checkpoint_count + 1) * sizeof *db->checkpoints);
    db->checkpoints[db->checkpoint_count++] = (struct checkpoint){r->seq, slice_copy(r->state.data, r->state.size)};
    if (r->seq > KEPT_BEHIND_CHECKPOINT && r->seq - KEPT_BEHIND_CHECKPOINT + 1 > db->first_kept) db->first_kept = r->seq - KEPT_BEHIND_CHECKPOINT + 1;
    db->counts.checkpoints++;
    sim_trace(db->sim, "meta checkpoint at %llu", (unsigned long long)r->seq);
}

static void perform(struct call *call) {
    struct sim_meta_db *db = call->c->db;
    struct meta_log_request *r = call->r;
    r->code = MINK_OK;
    switch (r->op) {
    case META_LOG_APPEND:
        if (chance(db, db->faults.foreign_fraction)) {
            struct command *command = command_allocate_writer_ids(1);
            struct slice bytes = command_encode(command);
            append_one(db, bytes);
            db->counts.foreign++;
            slice_unref(&bytes);
            command_free(command);
        }
        apply_append(call, &r->code, &r->error);
        break;
    case META_LOG_READ: read_rows(db, r); break;
    case META_LOG_SAVE_CHECKPOINT: save_checkpoint(db, r); break;
    case META_LOG_LOAD_CHECKPOINT:
        // The newest by position: one who was paused may have saved an older one since.
        for (uint32_t i = 0; i < db->checkpoint_count; i++) {
            if (r->state.data && db->checkpoints[i].seq < r->seq) continue;
            slice_unref(&r->state);
            r->seq = db->checkpoints[i].seq;
            r->state = slice_ref(db->checkpoints[i].state);
        }
        break;
    case META_LOG_HEAD: break;
    }
    r->head = db->head;
}

static void fire_late(struct timer *timer) {
    struct call *call = container_of(timer, struct call, timer);
    enum mink_code code = MINK_OK;
    struct error e;
    apply_append(call, &code, &e);
    call_free(call);
}

static void fire(struct timer *timer) {
    struct call *call = container_of(timer, struct call, timer);
    struct sim_meta_db *db = call->c->db;
    struct meta_log_request *r = call->r;
    if (!sim_alive(call->c->process)) { // the process has ended, but its transaction was on its way
        if (call->command_count && chance(db, 0.5)) {
            enum mink_code code = MINK_OK;
            struct error e;
            apply_append(call, &code, &e);
        }
        call_free(call);
        return;
    }
    enum mink_code code = MINK_OK;
    switch (call->outcome) {
    case OUTCOME_NORMAL: perform(call); break;
    case OUTCOME_UNAVAILABLE: r->code = error_set(&r->error, MINK_UNAVAILABLE, "DATABASE", "the database does not answer"); break;
    case OUTCOME_UNKNOWN_DONE:
        apply_append(call, &code, &r->error);
        // fall through
    case OUTCOME_UNKNOWN_NOT_DONE:
    case OUTCOME_UNKNOWN_LATE: r->code = error_set(&r->error, MINK_UNKNOWN_OUTCOME, "DATABASE", "the connection to the database was lost"); break;
    }
    sim_trace(db->sim, "meta request %d -> %s", (int)r->op, mink_code_name(r->code));
    answer(call);
    if (call->outcome == OUTCOME_UNKNOWN_LATE) {
        timer_init(&call->timer, sim_world(db->sim), fire_late);
        timer_start(&call->timer, random_below(dice(db), 500 * NS_PER_MS));
    } else {
        call_free(call);
    }
}

static void draw(struct sim_meta_db *db, struct call *call, bool append) {
    db->counts.requests++;
    if (db->spell > 0 || chance(db, db->faults.unavailable_fraction / 4)) {
        db->spell = db->spell ? db->spell - 1 : (uint32_t)random_below(dice(db), 7);
        db->counts.unavailable++;
        call->outcome = OUTCOME_UNAVAILABLE;
    } else if (append && chance(db, db->faults.unknown_fraction)) {
        call->outcome = (enum outcome)(OUTCOME_UNKNOWN_DONE + (int)random_below(dice(db), 3));
        if (call->outcome == OUTCOME_UNKNOWN_DONE) db->counts.unknown_done++;
        if (call->outcome == OUTCOME_UNKNOWN_NOT_DONE) db->counts.unknown_not_done++;
        if (call->outcome == OUTCOME_UNKNOWN_LATE) db->counts.unknown_late++;
    }
}

struct starting { struct task task; struct call *call; uint64_t delay_ns; };
static void run_start(struct task *task) { // on the world's shard, where timers live
    struct starting *s = container_of(task, struct starting, task);
    timer_init(&s->call->timer, sim_world(s->call->c->db->sim), fire);
    timer_start(&s->call->timer, s->delay_ns);
    mem_free(s);
}

static void submit(struct meta_log *log, struct meta_log_request *r) {
    struct connection *c = container_of(log, struct connection, log);
    struct sim_meta_db *db = c->db;
    if (!sim_alive(c->process)) return;
    struct call *call = mem_new(struct call);
    call->c = c;
    call->r = r;
    call->seq = r->seq;
    if (r->op == META_LOG_APPEND) {
        call->commands = mem_new_array(struct slice, r->command_count);
        call->command_count = r->command_count;
        for (uint32_t i = 0; i < r->command_count; i++) call->commands[i] = slice_copy(r->commands[i].data, r->commands[i].size);
    }
    draw(db, call, r->op == META_LOG_APPEND);
    if (chance(db, db->faults.spurious_wake_fraction) && log->on_wake) log->on_wake(log->wake_ctx);
    struct starting *s = mem_new(struct starting);
    s->call = call;
    s->delay_ns = 1000 + (uint64_t)(random_unit(dice(db)) * db->faults.delay_ms_max * 1e6);
    s->task.run = run_start;
    shard_post(sim_world(db->sim), &s->task);
}

static void close_connection(struct meta_log *log) { container_of(log, struct connection, log)->closed = true; }

static const struct meta_log_ops ops = {submit, close_connection};

struct meta_log *sim_meta_log_new(struct sim_meta_db *db, struct sim_process *p) {
    struct connection *c = mem_new(struct connection);
    c->log.ops = &ops;
    c->db = db;
    c->process = p;
    c->next = db->connections;
    db->connections = c;
    return &c->log;
}

struct sim_meta_db *sim_meta_db_new(struct sim *sim) {
    struct sim_meta_db *db = mem_new(struct sim_meta_db);
    db->sim = sim;
    db->first_kept = 1;
    return db;
}

void sim_meta_db_free(struct sim_meta_db *db) {
    for (uint64_t i = 0; i < db->head; i++) slice_unref(&db->commands[i]);
    mem_free(db->commands);
    for (uint32_t i = 0; i < db->checkpoint_count; i++) slice_unref(&db->checkpoints[i].state);
    mem_free(db->checkpoints);
    while (db->connections) {
        struct connection *c = db->connections;
        db->connections = c->next;
        mem_free(c);
    }
    mem_free(db);
}

void sim_meta_db_set_faults(struct sim_meta_db *db, const struct sim_meta_faults *faults) {
    db->faults = *faults;
    db->spell = 0;
}
uint64_t sim_meta_db_head(const struct sim_meta_db *db) { return db->head; }
struct slice sim_meta_db_command(const struct sim_meta_db *db, uint64_t seq) { return slice_view(db->commands[seq - 1], 0, db->commands[seq - 1].size); }
uint32_t sim_meta_db_checkpoint_count(const struct sim_meta_db *db) { return db->checkpoint_count; }
struct slice sim_meta_db_checkpoint(const struct sim_meta_db *db, uint32_t index, uint64_t *seq) {
    *seq = db->checkpoints[index].seq;
    return slice_view(db->checkpoints[index].state, 0, db->checkpoints[index].state.size);
}
struct sim_meta_counts sim_meta_db_counts(const struct sim_meta_db *db) { return db->counts; }
