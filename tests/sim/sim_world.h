// SPDX-License-Identifier: Apache-2.0
// sim_world.h: one seed: a store and a command log that last, a node that comes and goes, clients, and what they know.
//
// A run is: options drawn → tables made → clients at work while faults strike, processes end and begin → the faults stop → within a bound
// everything serves, every append that is retried ends, all rows are where they belong.
#ifndef MINK_TESTS_SIM_WORLD_H
#define MINK_TESTS_SIM_WORLD_H

#include "node/node.h"
#include "sim/sim_meta_log.h"
#include "sim/sim_model.h"
#include "sim/sim_store.h"

struct sim_options {
    uint32_t shard_count, table_count, writer_count;
    uint64_t steps, checkpoint_every;
    bool skew, ttl, zombies;
    struct object_fault_profile store;
    struct sim_meta_faults meta;
    struct stream_config stream;
    double crash_call_fraction; // of starts: the process ends at a drawn store call
    double kill_fraction, pause_fraction, close_fraction; // of steps
};

// A node and its process. Those that were ended stay listed: their memory is theirs.
struct sim_host {
    struct world *w;
    struct sim_process *process;
    struct sim_front *front;
    struct node *node;
    bool ready, failed, closing, closed;
    uint64_t number, begun_ns, ended_ns; // ended: after a fatal end, until when it lingers
    struct node_table *tables[TABLES_MAX];
    struct sim_host *next;
};

struct sim_counts {
    uint64_t starts, kills, pauses, zombies, closes, fatals, failed_opens, appends, append_codes[MINK_CODE_COUNT], duplicates, scans, scan_codes[MINK_CODE_COUNT], follows, seeks, flushes, sweeps, rows_acked, rows_read, acks;
};

struct client; // writers and readers (sim_client.c)
struct world {
    uint64_t seed;
    struct sim_options options;
    struct sim *sim;
    struct sim_disk disk;
    struct sim_meta_db *db;
    struct sim_host *host;  // the newest
    struct sim_host *zombie; // an older one that still runs, or NULL
    uint64_t restart_ns;    // when no host runs: when the next begins
    struct table_def *defs[TABLES_MAX];
    bool tables_made;
    bool calm;              // the faults have stopped
    struct model model;
    struct client *client;
    struct sim_counts counts;
    void (*violated)(void *ctx, const char *text);
    void *ctx;
};

// Runs one seed; violations end it through `violated`, which does not return.
void world_run(struct world *w, uint64_t seed, bool print, void (*violated)(void *ctx, const char *text), void *ctx);

// sim_client.c
struct client *client_new(struct world *w);
void client_step(struct client *c);          // one action, drawn
void client_calm(struct client *c);          // what is open is finished, nothing new begins
bool client_rests(struct client *c);         // every retried append has ended
void client_host_gone(struct client *c, struct sim_host *h);
void client_read_all(struct client *c, struct sim_host *h);
bool client_reads_done(struct client *c);
bool client_followers_arrive(struct client *c); // those that run have read up to the high watermark, within 5 s
struct node_table *world_table(struct sim_host *h, uint32_t table); // NULL when it cannot be found now

// sim_check.c
void check_replay(struct world *w);  // the command log gives equal catalogs, also from every checkpoint
// Ranges tile, objects exist, seals are there. fresh: nothing hindered the newest process, so no other is left unsealed.
void check_catalog(struct world *w, bool fresh);

#endif
