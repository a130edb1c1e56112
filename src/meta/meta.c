// SPDX-License-Identifier: Apache-2.0
// Proposing and following.
//
// One request to the log is under way at a time. What waits meanwhile becomes the next group. A group is appended at position + 1; its fate is
//   OK               applied in order, each proposer answered
//   CONFLICT         others were first: read on (which may find our own rows too, see next), append the rest again
//   UNKNOWN_OUTCOME  read on: a row with the id of one of ours is ours, and is answered when it is applied; what was not found is appended
//                    again at the same position, so a late commit of the first attempt and the second one exclude each other
//   UNAVAILABLE      nothing happened: the same again after a pause
// A row that cannot be applied ends everything: the state may not be guessed. So does a log that is shorter than what was applied of it.
//
// Another process may have checkpointed and deleted rows that are still wanted here: the newest checkpoint then takes the catalog's place.
#include "meta/meta.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "meta/command_internal.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#define GROUP_MAX 512
#define GROUP_BYTES_MAX (8u << 20)
#define QUEUE_MAX 100000
#define READ_ROWS 1000
#define RETRY_MIN_NS (10 * NS_PER_MS)
#define RETRY_MAX_NS (2 * NS_PER_S)
#define PATIENCE_NS (15 * NS_PER_S)
#define LISTENERS_MAX 8

static struct metric_counter applied_count = METRIC_COUNTER("mink_meta_commands_total", "commands of the log applied");
static struct metric_counter groups_count = METRIC_COUNTER("mink_meta_appends_total", "transactions on the command log");
static struct metric_gauge waiting_gauge = METRIC_GAUGE("mink_meta_waiting", "proposals waiting for the command log");
static struct metric_histogram append_time = METRIC_HISTOGRAM("mink_meta_append_seconds", "time of one transaction on the command log");

enum step { STEP_IDLE, STEP_LOAD, STEP_READ, STEP_APPEND, STEP_HEAD, STEP_CHECKPOINT };

struct meta {
    struct shard *shard;
    struct meta_log *log;
    struct catalog *catalog;
    uint64_t checkpoint_every, checkpoint_at, position, poll_ns;
    uint64_t head_seen; // the log's end when it was last asked for
    struct meta_log_request request;
    enum step step;
    bool ready, failed, closing;
    bool behind; // the log may hold rows that are not applied
    bool gap;    // rows that are wanted here are no longer in the log
    bool look;   // where the log ends is in doubt
    struct error failure;
    void (*on_ready)(void *ctx, enum mink_code code, const struct error *e);
    void *ready_ctx;
    void (*on_closed)(void *ctx);
    void *closed_ctx;
    struct meta_proposal *first, **last; // the queue
    struct meta_proposal *group[GROUP_MAX]; // taken from it, being appended; NULL where answered
    struct slice encoded[GROUP_MAX];
    uint8_t ids[GROUP_MAX][COMMAND_ID_SIZE];
    uint32_t group_count;
    uint32_t waiting;
    struct meta_sync *syncs, *syncs_now; // waiting for a request; answered when the one under way has ended and nothing is left to read
    struct timer retry, poll;
    uint64_t retry_ns, append_began_ns;
    atomic_bool wake_posted;
    struct task wake_task, pump_task;
    bool pump_posted;
    struct { void (*fn)(void *ctx, uint64_t position); void *ctx; } listeners[LISTENERS_MAX];
    uint32_t listener_count;
};

static void pump(struct meta *m);
static void on_log(struct meta_log_request *r);
static void submit(struct meta *m, enum step step);

struct catalog *meta_catalog(struct meta *m) { return m->catalog; }

// ---- answers

static void run_done(struct task *task) {
    struct meta_proposal *p = container_of(task, struct meta_proposal, task);
    uint32_t *epochs = p->result.epochs; // the proposal may be gone after on_done
    p->on_done(p);
    mem_free(epochs);
}

static void answer(struct meta *m, struct meta_proposal *p) {
    m->waiting--;
    metric_set(&waiting_gauge, m->waiting);
    command_free(p->command);
    p->command = NULL;
    p->task.run = run_done;
    shard_post(p->shard, &p->task);
}

static void run_sync_done(struct task *task) {
    struct meta_sync *s = container_of(task, struct meta_sync, task);
    s->on_done(s);
}

static void answer_syncs(struct meta_sync **list, enum mink_code code, const struct error *e) {
    struct meta_sync *s = *list;
    *list = NULL;
    while (s) {
        struct meta_sync *next = s->next;
        s->code = code;
        error_copy(&s->error, e);
        s->task.run = run_sync_done;
        shard_post(s->shard, &s->task);
        s = next;
    }
}

// Answers a proposal that will not be tried again.
static void refuse(struct meta *m, struct meta_proposal *p, const struct error *e) {
    p->result = (struct command_result){0};
    error_copy(&p->result.error, e);
    if (p->maybe_written) p->result.error.code = MINK_UNKNOWN_OUTCOME;
    p->result.code = p->result.error.code;
    answer(m, p);
}

static void forget_group(struct meta *m) {
    for (uint32_t i = 0; i < m->group_count; i++) slice_unref(&m->encoded[i]);
    m->group_count = 0;
}

static void maybe_written(struct meta *m) {
    for (uint32_t i = 0; i < m->group_count; i++)
        if (m->group[i]) m->group[i]->maybe_written = true;
}

static void fail_all(struct meta *m, const struct error *e) {
    for (uint32_t i = 0; i < m->group_count; i++)
        if (m->group[i]) refuse(m, m->group[i], e);
    forget_group(m);
    while (m->first) {
        struct meta_proposal *p = m->first;
        m->first = p->next;
        refuse(m, p, e);
    }
    m->last = &m->first;
    answer_syncs(&m->syncs_now, e->code, e);
    answer_syncs(&m->syncs, e->code, e);
}

// The log cannot be reached: those who wait for an answer and have waited long enough get one.
static void lose_patience(struct meta *m, const struct error *e) {
    uint64_t now = shard_now_ns(m->shard);
    for (uint32_t i = 0; i < m->group_count; i++) {
        struct meta_proposal *p = m->group[i];
        if (!p || !command_is_ddl(p->command) || now - p->since_ns < PATIENCE_NS) continue;
        m->group[i] = NULL;
        refuse(m, p, e);
    }
    struct meta_proposal **at = &m->first, *p;
    while ((p = *at)) {
        if (command_is_ddl(p->command) && now - p->since_ns >= PATIENCE_NS) {
            *at = p->next;
            refuse(m, p, e);
        } else {
            at = &p->next;
        }
    }
    m->last = at;
    struct meta_sync **lists[] = {&m->syncs_now, &m->syncs};
    for (int i = 0; i < 2; i++) {
        struct meta_sync *tired = NULL, *s;
        for (struct meta_sync **link = lists[i]; (s = *link);) {
            if (now - s->since_ns < PATIENCE_NS) {
                link = &s->next;
                continue;
            }
            *link = s->next;
            s->next = tired;
            tired = s;
        }
        answer_syncs(&tired, e->code, e);
    }
}

static void become_ready(struct meta *m, enum mink_code code, const struct error *e) {
    if (m->ready) return;
    m->ready = true;
    m->on_ready(m->ready_ctx, code, e);
}

static void fail(struct meta *m, const struct error *e) {
    log_error("meta.failed", "reason=%s message=\"%s\"", e->reason, e->message);
    m->failed = true;
    m->failure = *e;
    timer_stop(&m->retry);
    timer_stop(&m->poll);
    fail_all(m, e);
    become_ready(m, e->code, e);
    for (uint32_t i = 0; i < m->listener_count; i++) m->listeners[i].fn(m->listeners[i].ctx, UINT64_MAX);
}

// ---- applying

static void drop_result(struct command_result *result) { mem_free(result->epochs); }

// Applies one row; the proposal is ours, or NULL.
static bool apply(struct meta *m, uint64_t seq, struct slice command, struct meta_proposal *p) {
    struct command_result result;
    struct error e;
    if (catalog_apply(m->catalog, seq, command, &result, &e) != MINK_OK) {
        fail(m, &e);
        return false;
    }
    metric_add(&applied_count, 1);
    m->position = seq;
    if (p) {
        p->result = result;
        answer(m, p);
    } else {
        drop_result(&result);
    }
    return true;
}

static void tell_listeners(struct meta *m) {
    for (uint32_t i = 0; i < m->listener_count; i++) m->listeners[i].fn(m->listeners[i].ctx, m->position);
}

static void applied_own(struct meta *m) {
    uint64_t seq = m->request.seq;
    m->retry_ns = 0;
    maybe_written(m); // surely, even; until they are applied
    for (uint32_t i = 0; i < m->group_count; i++) {
        struct meta_proposal *p = m->group[i];
        m->group[i] = NULL;
        if (apply(m, seq + i, m->encoded[i], p)) continue;
        if (p) refuse(m, p, &m->failure);
        return;
    }
    forget_group(m);
    tell_listeners(m);
}

// The proposal of the group that wrote this row; taken out of it.
static struct meta_proposal *take_own(struct meta *m, struct slice command) {
    uint8_t id[COMMAND_ID_SIZE];
    if (!m->group_count || !command_peek_id(command, id)) return NULL;
    for (uint32_t k = 0; k < m->group_count; k++) {
        struct meta_proposal *p = m->group[k];
        if (!p || memcmp(m->ids[k], id, sizeof id) != 0) continue;
        m->group[k] = NULL;
        return p;
    }
    return NULL;
}

// Those of the group that are not in the log go to the front of the queue.
static void requeue_group(struct meta *m) {
    for (uint32_t k = m->group_count; k-- > 0;) {
        if (!m->group[k]) continue;
        m->group[k]->next = m->first;
        if (!m->first) m->last = &m->group[k]->next;
        m->first = m->group[k];
    }
    forget_group(m);
}

static void applied_others(struct meta *m) {
    struct meta_log_request *r = &m->request;
    struct meta_row *rows = r->rows;
    uint32_t count = r->row_count;
    m->retry_ns = 0;
    r->rows = NULL;
    m->gap = count ? rows[0].seq > m->position + 1 : m->head_seen > m->position;
    for (uint32_t i = 0; i < count && !m->gap && !m->failed; i++) {
        struct meta_proposal *own = take_own(m, rows[i].command);
        if (!apply(m, rows[i].seq, rows[i].command, own) && own) {
            own->maybe_written = true;
            refuse(m, own, &m->failure);
        }
    }
    meta_rows_free(rows, count);
    if (m->failed || m->gap) return;
    m->behind = count == READ_ROWS;
    if (count) tell_listeners(m);
    else if (m->group_count) m->look = true; // something was in the way of the group, and it is not there
    if (!m->behind) requeue_group(m);
}

// ---- requests to the log

static void submit(struct meta *m, enum step step) {
    m->step = step;
    m->request.shard = m->shard;
    m->request.on_done = on_log;
    m->log->ops->submit(m->log, &m->request);
}

static void begin_read(struct meta *m) {
    m->request = (struct meta_log_request){.op = META_LOG_READ, .seq = m->position, .rows_max = READ_ROWS};
    submit(m, STEP_READ);
}

static void begin_load(struct meta *m) {
    m->request = (struct meta_log_request){.op = META_LOG_LOAD_CHECKPOINT};
    submit(m, STEP_LOAD);
}

static void begin_head(struct meta *m) {
    m->look = false;
    m->syncs_now = m->syncs;
    m->syncs = NULL;
    m->request = (struct meta_log_request){.op = META_LOG_HEAD};
    submit(m, STEP_HEAD);
}

static void begin_append(struct meta *m) {
    size_t size = 0;
    m->group_count = 0;
    // An append that succeeds shows that nothing was behind it: as good as a look at the head.
    m->syncs_now = m->syncs;
    m->syncs = NULL;
    while (m->first && m->group_count < GROUP_MAX && size < GROUP_BYTES_MAX) {
        struct meta_proposal *p = m->first;
        m->first = p->next;
        if (!m->first) m->last = &m->first;
        uint32_t k = m->group_count++;
        m->group[k] = p;
        if (p->command->message.id.len == 0) {
            random_bytes(shard_random(m->shard), m->ids[k], COMMAND_ID_SIZE);
            command_set_id(p->command, m->ids[k]);
        } else {
            memcpy(m->ids[k], p->command->message.id.data, COMMAND_ID_SIZE); // another attempt of the same
        }
        m->encoded[k] = command_encode(p->command);
        size += m->encoded[k].size;
    }
    metric_add(&groups_count, 1);
    m->append_began_ns = shard_now_ns(m->shard);
    m->request = (struct meta_log_request){.op = META_LOG_APPEND, .seq = m->position + 1, .commands = m->encoded, .command_count = m->group_count};
    submit(m, STEP_APPEND);
}

static void begin_checkpoint(struct meta *m) {
    m->checkpoint_at = m->position;
    m->request = (struct meta_log_request){.op = META_LOG_SAVE_CHECKPOINT, .seq = m->position, .state = catalog_save(m->catalog)};
    submit(m, STEP_CHECKPOINT);
}

static void pause_then_retry(struct meta *m) {
    m->retry_ns = m->retry_ns ? m->retry_ns * 2 : RETRY_MIN_NS;
    if (m->retry_ns > RETRY_MAX_NS) m->retry_ns = RETRY_MAX_NS;
    timer_start(&m->retry, m->retry_ns / 2 + random_below(shard_random(m->shard), m->retry_ns / 2 + 1));
}

static void on_retry(struct timer *t) { pump(container_of(t, struct meta, retry)); }

static void on_poll(struct timer *t) {
    struct meta *m = container_of(t, struct meta, poll);
    m->look = true;
    timer_start(&m->poll, m->poll_ns);
    pump(m);
}

static void finish_close(struct meta *m) {
    struct error e;
    error_set(&e, MINK_UNAVAILABLE, "CLOSING", "the node is closing");
    if (!m->failed) fail_all(m, &e);
    become_ready(m, e.code, &e);
    timer_stop(&m->retry);
    timer_stop(&m->poll);
    m->log->ops->close(m->log);
    void (*on_closed)(void *) = m->on_closed;
    void *ctx = m->closed_ctx;
    catalog_free(m->catalog);
    mem_free(m);
    on_closed(ctx);
}

static void pump(struct meta *m) {
    if (m->step != STEP_IDLE) return;
    if (m->closing) {
        // Our own tasks may be queued still: they come first, then this once more.
        if (!atomic_load(&m->wake_posted) && !m->pump_posted) finish_close(m);
        return;
    }
    if (m->failed || timer_armed(&m->retry)) return;
    if (m->gap) {
        begin_load(m);
        return;
    }
    if (m->behind) {
        begin_read(m);
        return;
    }
    if (!m->ready) {
        if (m->poll_ns) timer_start(&m->poll, m->poll_ns);
        become_ready(m, MINK_OK, NULL);
    }
    answer_syncs(&m->syncs_now, MINK_OK, NULL);
    // A checkpoint comes before what waits, or under load there would never be one.
    if (m->position - m->checkpoint_at >= m->checkpoint_every) begin_checkpoint(m);
    else if (m->look || (m->syncs && !m->first)) begin_head(m);
    else if (m->first) begin_append(m);
}

static void loaded(struct meta *m) {
    struct meta_log_request *r = &m->request;
    struct error e;
    enum mink_code code = MINK_OK;
    if (m->gap && (r->state.size == 0 || r->seq <= m->position))
        code = error_set(&e, MINK_CORRUPT, "LOG_GAP", "commands after %" PRIu64 " are missing in the log, and there is no newer checkpoint", m->position);
    else if (r->state.size)
        code = catalog_load(m->catalog, r->state, &e);
    slice_unref(&r->state);
    if (code != MINK_OK) {
        fail(m, &e);
        return;
    }
    m->position = m->checkpoint_at = catalog_position(m->catalog);
    m->behind = true;
    if (!m->gap) return;
    // Rows were passed over unseen; one that may be ours and among them keeps its secret.
    m->gap = false;
    error_set(&e, MINK_UNKNOWN_OUTCOME, "LOG_TRUNCATED", "the log was cut meanwhile: whether the command is in it cannot be told any more");
    for (uint32_t i = 0; i < m->group_count; i++) {
        struct meta_proposal *p = m->group[i];
        if (!p || !p->maybe_written) continue;
        m->group[i] = NULL;
        refuse(m, p, &e);
    }
    tell_listeners(m);
}

static void looked(struct meta *m) {
    struct error e;
    m->retry_ns = 0;
    m->head_seen = m->request.head;
    if (m->request.head > m->position) m->behind = true;
    if (m->request.head >= m->position) return;
    error_set(&e, MINK_CORRUPT, "LOG_SHORTER", "the command log ends at %" PRIu64 ", but commands up to %" PRIu64 " have been applied", m->request.head, m->position);
    error_hint(&e, "the database was restored to an older state; restart every node, and see the documentation on restoring");
    fail(m, &e);
}

// The log could not do it. Once it can, whatever it says decides.
static void put_off(struct meta *m, enum step step) {
    struct meta_log_request *r = &m->request;
    if (r->code != MINK_CONFLICT) log_limited(LOG_WARN, "meta.log", "doing=%s message=\"%s\"", step == STEP_APPEND ? "append" : step == STEP_READ ? "read" : "look", r->error.message);
    if (step == STEP_LOAD && !m->gap) { // there is nothing to serve yet: say so, whoever opens may try again
        struct error e = r->error;
        fail(m, &e);
        return;
    }
    if (step == STEP_APPEND) {
        m->behind = true;
        if (r->code != MINK_CONFLICT && r->code != MINK_UNAVAILABLE) maybe_written(m);
    }
    if (step == STEP_HEAD) {
        struct meta_sync **tail = &m->syncs_now;
        while (*tail) tail = &(*tail)->next;
        *tail = m->syncs;
        m->syncs = m->syncs_now;
        m->syncs_now = NULL;
        m->look = true;
    }
    if (r->code == MINK_CONFLICT) return;
    lose_patience(m, &r->error);
    pause_then_retry(m);
}

static void on_log(struct meta_log_request *r) {
    struct meta *m = container_of(r, struct meta, request);
    enum step step = m->step;
    m->step = STEP_IDLE;
    if (step == STEP_CHECKPOINT) slice_unref(&r->state);
    if (r->code == MINK_CORRUPT || r->code == MINK_UNSUPPORTED || r->code == MINK_DENIED || r->code == MINK_INVALID) {
        struct error e = r->error;
        if (step == STEP_APPEND) maybe_written(m);
        fail(m, &e);
    } else if (step == STEP_CHECKPOINT) {
        if (r->code != MINK_OK) log_warn("meta.checkpoint", "position=%" PRIu64 " message=\"%s\"", m->checkpoint_at, r->error.message); // the next one will do
    } else if (r->code != MINK_OK) {
        put_off(m, step);
    } else if (step == STEP_LOAD) {
        loaded(m);
    } else if (step == STEP_READ) {
        applied_others(m);
    } else if (step == STEP_HEAD) {
        looked(m);
    } else {
        metric_observe_ns(&append_time, shard_now_ns(m->shard) - m->append_began_ns);
        applied_own(m);
    }
    pump(m);
}

// ---- entry

static void on_wake_task(struct task *task) {
    struct meta *m = container_of(task, struct meta, wake_task);
    atomic_store(&m->wake_posted, false);
    m->behind = true;
    pump(m);
}

static void on_pump_task(struct task *task) {
    struct meta *m = container_of(task, struct meta, pump_task);
    m->pump_posted = false;
    pump(m);
}

// Behind the tasks that are queued: proposals made together become one group.
static void pump_soon(struct meta *m) {
    if (m->pump_posted) return;
    m->pump_posted = true;
    shard_post(m->shard, &m->pump_task);
}

static void on_wake(void *ctx) { // any thread
    struct meta *m = ctx;
    if (atomic_exchange(&m->wake_posted, true)) return;
    shard_post(m->shard, &m->wake_task);
}

static void open_on_shard(struct task *task) {
    struct meta *m = container_of(task, struct meta, request.task);
    timer_init(&m->retry, m->shard, on_retry);
    timer_init(&m->poll, m->shard, on_poll);
    m->log->wake_ctx = m;
    m->log->on_wake = on_wake;
    begin_load(m);
}

void meta_open(const struct meta_config *config, struct meta **out, void (*on_ready)(void *ctx, enum mink_code code, const struct error *e), void *ctx) {
    struct meta *m = mem_new(struct meta);
    m->shard = config->shard;
    m->log = config->log;
    m->catalog = catalog_new();
    m->checkpoint_every = config->checkpoint_every ? config->checkpoint_every : 10000;
    m->poll_ns = config->poll_ns;
    m->on_ready = on_ready;
    m->ready_ctx = ctx;
    m->last = &m->first;
    m->step = STEP_LOAD;
    m->wake_task.run = on_wake_task;
    m->pump_task.run = on_pump_task;
    *out = m;
    m->request.task.run = open_on_shard;
    shard_post(m->shard, &m->request.task);
}

struct closing { struct task task; struct meta *m; };

static void close_on_shard(struct task *task) {
    struct closing *c = container_of(task, struct closing, task);
    struct meta *m = c->m;
    mem_free(c);
    m->closing = true;
    pump(m);
}

void meta_close(struct meta *m, void (*on_closed)(void *ctx), void *ctx) {
    struct closing *c = mem_new(struct closing);
    m->on_closed = on_closed;
    m->closed_ctx = ctx;
    c->m = m;
    c->task.run = close_on_shard;
    shard_post(m->shard, &c->task);
}

struct entering { struct task task; struct meta *m; void *what; };

static void enqueue(struct task *task) {
    struct entering *entering = container_of(task, struct entering, task);
    struct meta *m = entering->m;
    struct meta_proposal *p = entering->what;
    mem_free(entering);
    struct error e;
    enum mink_code code = MINK_OK;
    m->waiting++;
    p->next = NULL;
    p->since_ns = shard_now_ns(m->shard);
    if (m->failed) code = (e = m->failure).code;
    else if (m->closing) code = error_set(&e, MINK_UNAVAILABLE, "CLOSING", "the node is closing");
    else if (m->waiting > QUEUE_MAX) code = error_set(&e, MINK_OVERLOADED, "METADATA_QUEUE", "%d proposals wait for the command log", QUEUE_MAX);
    else code = command_check(p->command, &e);
    if (code != MINK_OK) {
        refuse(m, p, &e);
        return;
    }
    *m->last = p;
    m->last = &p->next;
    metric_set(&waiting_gauge, m->waiting);
    pump_soon(m);
}

static void enter(struct meta *m, void (*run)(struct task *task), void *what) {
    struct entering *entering = mem_new(struct entering);
    entering->m = m;
    entering->what = what;
    entering->task.run = run;
    shard_post(m->shard, &entering->task);
}

void meta_propose(struct meta *m, struct meta_proposal *p, struct shard *shard, struct command *take_command, void (*on_done)(struct meta_proposal *p)) {
    *p = (struct meta_proposal){.shard = shard, .on_done = on_done, .command = take_command};
    enter(m, enqueue, p);
}

static void enqueue_sync(struct task *task) {
    struct entering *entering = container_of(task, struct entering, task);
    struct meta *m = entering->m;
    struct meta_sync *s = entering->what;
    mem_free(entering);
    s->since_ns = shard_now_ns(m->shard);
    s->next = m->syncs;
    m->syncs = s;
    if (m->failed) answer_syncs(&m->syncs, m->failure.code, &m->failure);
    else pump_soon(m);
}

void meta_sync(struct meta *m, struct meta_sync *s, struct shard *shard, void (*on_done)(struct meta_sync *s)) {
    *s = (struct meta_sync){.shard = shard, .on_done = on_done};
    enter(m, enqueue_sync, s);
}

struct listening { struct task task; struct meta *m; void (*fn)(void *ctx, uint64_t position); void *ctx; };

static void listen_on_shard(struct task *task) {
    struct listening *l = container_of(task, struct listening, task);
    struct meta *m = l->m;
    mink_assert(m->listener_count < LISTENERS_MAX);
    m->listeners[m->listener_count].fn = l->fn;
    m->listeners[m->listener_count++].ctx = l->ctx;
    l->fn(l->ctx, m->failed ? UINT64_MAX : m->position);
    mem_free(l);
}

void meta_listen(struct meta *m, void (*on_applied)(void *ctx, uint64_t position), void *ctx) {
    struct listening *l = mem_new(struct listening);
    *l = (struct listening){.task.run = listen_on_shard, .m = m, .fn = on_applied, .ctx = ctx};
    shard_post(m->shard, &l->task);
}

bool meta_failure(const struct meta *m, struct error *out) {
    if (m->failed) *out = m->failure;
    return m->failed;
}

void meta_rows_free(struct meta_row *rows, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) slice_unref(&rows[i].command);
    mem_free(rows);
}
