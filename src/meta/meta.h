// SPDX-License-Identifier: Apache-2.0
// meta.h: agreement: an ordered command log and its replicated catalog.
//
// What      A proposal becomes a row of the log at the next sequence number; every node applies the rows in order; the proposer learns the
//           result from its own apply. Commands are protobuf (command.proto), versioned: an unknown one stops the node with its name.
// Flow      any shard → meta_propose → (meta shard) group → log append → catalog_apply → (caller's shard) on_done.
// Holds     (1) on_done OK means the command is in the log and has been applied here; (2) catalog states at equal positions are equal on all nodes.
// Owner     Any thread may call; the meta shard applies. Callbacks on the caller's shard.
// Bounds    proposals queued <= 100,000, else OVERLOADED.
#ifndef MINK_META_META_H
#define MINK_META_META_H
#include "base/executor.h"
#include "meta/catalog.h"

// ---- the log itself: SQLite, Postgres (later), or the simulator's. Calls come from the meta shard; on_done on it, never before the call returns.
struct meta_row { uint64_t seq; struct slice command; };
struct meta_log_request {
    struct task task; // private
    struct shard *shard;
    void (*on_done)(struct meta_log_request *r);
    enum { META_LOG_APPEND, META_LOG_READ, META_LOG_HEAD, META_LOG_SAVE_CHECKPOINT, META_LOG_LOAD_CHECKPOINT } op;
    uint64_t seq;             // append: the first seq, which must be head + 1, else CONFLICT; read: after this one; save: state as of
    const struct slice *commands; uint32_t command_count; // append: all or none, in one transaction
    uint32_t rows_max;        // read
    struct slice state;       // checkpoint in (borrowed) or out (a reference)
    // results
    enum mink_code code; struct error error; // OK, CONFLICT, UNKNOWN_OUTCOME (connection lost after sending), UNAVAILABLE, CORRUPT
    struct meta_row *rows; uint32_t row_count; // read: meta_rows_free
    uint64_t head;            // newest seq seen
};
void meta_rows_free(struct meta_row *rows, uint32_t count);
struct meta_log;
struct meta_log_ops {
    void (*submit)(struct meta_log *log, struct meta_log_request *r);
    void (*close)(struct meta_log *log);
};
struct meta_log {
    const struct meta_log_ops *ops;
    // Set by meta: called from any thread when others may have appended. May be spurious.
    void (*on_wake)(void *ctx); void *wake_ctx;
};
// path: the database file; created when absent; its folder must exist. Durable per commit (synchronous=FULL). Sanity: schema version, cluster format.
enum mink_code meta_log_sqlite_open(const char *path, struct meta_log **out, struct error *e) MINK_MUST_CHECK;
// For one process per node name: holds a lock file beside the database; CONFLICT [IN_USE] when another process has it. Released by exit or close.
struct meta_process_lock;
enum mink_code meta_process_lock_take(const char *path, struct meta_process_lock **out, struct error *e) MINK_MUST_CHECK;
void meta_process_lock_release(struct meta_process_lock *lock);

// ---- commands: built by these, taken by meta_propose.
struct command; // a protobuf message being built
void command_free(struct command *c);
struct command *command_create_database(const char *name, const char *comment, bool if_not_exists);
struct command *command_drop_database(const char *name, bool if_exists, bool cascade);
struct command *command_create_table(const struct table_def *def, bool if_not_exists);
struct command *command_alter_table(const struct catalog_table *base, const struct table_def *def); // def was made from base; CONFLICT when it has been altered meanwhile
struct command *command_drop_table(const char *database, const char *name, bool if_exists);
struct command *command_create_partition(uint64_t table_id, const char *name, bool if_not_exists);
struct command *command_drop_partition(uint64_t table_id, const char *name, bool if_exists);
struct command *command_register_incarnation(const uint8_t nonce[16], const char *address, const char *rack);
struct command *command_declare_dead(uint64_t incarnation);
struct command *command_open_streams(uint64_t incarnation, const uint64_t *stream_ids, uint32_t count); // each on its own: see result
struct command *command_allocate_writer_ids(uint32_t count); // result.id = first
struct command_range { uint64_t stream_id; uint32_t epoch; uint64_t from, to; };
struct command_object { struct catalog_object_id id; uint64_t size, index_size; struct command_range *ranges; uint32_t range_count; };
struct command_attachment { uint64_t stream_id; struct slice bytes; };
// objects: new set/stream objects, and WAL objects committed by reference (kind WAL). All as spec'd in docs/formats.md#commands.
struct command *command_commit_objects(uint64_t incarnation, uint64_t wal_from, uint64_t wal_upto, const struct command_object *objects, uint32_t object_count, const struct command_attachment *attachments, uint32_t attachment_count);
struct command *command_close_stream(uint64_t incarnation, uint64_t stream_id, uint32_t epoch, uint64_t end, const struct command_object *refs, uint32_t ref_count);
struct command_entry { uint64_t stream_id; uint32_t epoch; uint64_t offset_first, offset_end; };
struct command_sealed_object { uint64_t seq, size, index_size; struct command_entry *entries; uint32_t entry_count; };
struct command *command_seal_incarnation(uint64_t incarnation, uint64_t base, uint64_t seal_seq, const struct command_sealed_object *objects, uint32_t object_count);
struct command *command_replace_objects(uint64_t incarnation, const struct catalog_object_id *old_objects, uint32_t old_count, const struct command_object *new_objects, uint32_t new_count);
struct command *command_trim_streams(const uint64_t *stream_ids, const uint64_t *starts, uint32_t count);
struct command *command_forget_objects(const struct catalog_object_id *ids, uint32_t count);

struct command_result {
    enum mink_code code; struct error error;
    uint64_t seq;           // position of the command
    uint64_t id;            // incarnation, table, partition, first writer id
    bool existed;           // if_not_exists / if_exists and nothing changed
    uint32_t *epochs;       // open_streams: per stream, 0 = refused (owned by another live one or gone); freed after on_done
    uint32_t epoch_count;
};

struct meta;
struct meta_config {
    struct shard *shard;
    struct meta_log *log;
    uint64_t checkpoint_every; // commands; 0 = 10,000
    uint64_t poll_ns;          // how often to look for rows of other processes; 0 = never: nobody else writes, or the log wakes us
};
// Loads the newest checkpoint, replays the tail, calls on_ready once on the meta shard (code OK, or why not). The log is closed with meta.
void meta_open(const struct meta_config *config, struct meta **out, void (*on_ready)(void *ctx, enum mink_code code, const struct error *e), void *ctx);
void meta_close(struct meta *m, void (*on_closed)(void *ctx), void *ctx); // fails what waits with UNAVAILABLE; callback on the meta shard
struct catalog *meta_catalog(struct meta *m); // lives as long as m

struct meta_proposal {
    struct task task; // private
    struct shard *shard;
    void (*on_done)(struct meta_proposal *p); // result is valid during the call
    struct command *command; // taken
    struct command_result result;
    struct meta_proposal *next; uint64_t since_ns; bool maybe_written; // private
};
void meta_propose(struct meta *m, struct meta_proposal *p, struct shard *shard, struct command *take_command, void (*on_done)(struct meta_proposal *p));
// Catches up to the log's head, then calls back: for reads that must be current. Concurrent calls share one query. While the log cannot be reached
// it waits; like the commands of tables and databases it gives up after 15 s (UNAVAILABLE, or UNKNOWN_OUTCOME for a command that may have been
// written). Commands of streams and incarnations wait as long as it takes: serving goes on without metadata.
struct meta_sync { struct task task; struct shard *shard; void (*on_done)(struct meta_sync *s); enum mink_code code; struct error error; struct meta_sync *next; uint64_t since_ns; };
void meta_sync(struct meta *m, struct meta_sync *s, struct shard *shard, void (*on_done)(struct meta_sync *s));
// on_applied runs on the meta shard: once soon after the call (the position then), and after each group of commands (position = the last). For
// caches and watchers; must not block. UINT64_MAX: the log cannot be followed any more (an unknown command, corruption): stop serving.
void meta_listen(struct meta *m, void (*on_applied)(void *ctx, uint64_t position), void *ctx);
bool meta_failure(const struct meta *m, struct error *out); // on the meta shard: why it cannot go on; false when it can

// The codec, for tests, fuzzing, the simulator: applies one encoded command, whose seq is the catalog's position + 1. A malformed or unknown one
// is CORRUPT / UNSUPPORTED and applies nothing; out->code is the command's own answer, and out->epochs is the caller's (mem_free).
enum mink_code catalog_apply(struct catalog *c, uint64_t seq, struct slice command, struct command_result *out, struct error *e) MINK_MUST_CHECK;
struct slice command_encode(const struct command *c);
struct slice catalog_save(struct catalog *c);   // checkpoint: equal states give equal bytes
enum mink_code catalog_load(struct catalog *c, struct slice state, struct error *e) MINK_MUST_CHECK; // replaces what c held; empty after an error
#endif
