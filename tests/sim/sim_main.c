// SPDX-License-Identifier: Apache-2.0
// mink_sim: many seeds, each a world of its own. Children run a few hundred each, because a killed process leaves its memory behind; what a
// child is at, and what it found, stands in memory shared with the parent, so that a crash is a finding like any other.
#include "sim/sim_world.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEEDS_PER_CHILD 200
#define SECONDS_PER_SEED 60

struct totals {
    struct sim_counts counts;
    struct sim_meta_counts meta;
    struct object_fault_counts store;
    uint64_t crashes[5][2];
    uint64_t seeds, events, simulated_ns;
};

struct shared { // one a child
    atomic_ullong seed; // at work
    char violation[600];
    bool violated;
    uint64_t hashes[2];
    struct totals totals;
};

static struct {
    uint64_t from, to, twice;
    bool trace, json, list_mutants, all_mutants, one_mutant;
    unsigned jobs;
    enum mutant mutant;
} options = {.from = 1, .to = 100, .jobs = 2};

#ifndef MINK_MUTANTS
static enum mutant mutant_active;
#endif

static struct shared *current;
static void on_violation(void *ctx, const char *text) {
    snprintf(current->violation, sizeof current->violation, "%s", text);
    current->violated = true;
    _exit(3);
}

static void add_all(void *into, const void *from, size_t size) {
    uint64_t *a = into;
    const uint64_t *b = from;
    for (size_t i = 0; i < size / sizeof *a; i++) a[i] += b[i];
}
#define ADD(into, from) add_all(&(into), &(from), sizeof(into))

static uint64_t run_seed(struct shared *s, uint64_t seed) {
    struct world w;
    current = s;
    atomic_store(&s->seed, seed);
    memset(sim_front_crashes, 0, sizeof sim_front_crashes);
    world_run(&w, seed, options.trace, on_violation, NULL);
    struct object_fault_counts store;
    struct sim_meta_counts meta = sim_meta_db_counts(w.db);
    object_fault_counts_now(w.disk.faults, &store);
    ADD(s->totals.counts, w.counts);
    ADD(s->totals.meta, meta);
    ADD(s->totals.store, store);
    ADD(s->totals.crashes, sim_front_crashes);
    s->totals.seeds++;
    s->totals.events += sim_events(w.sim);
    s->totals.simulated_ns += sim_now_ns(w.sim);
    return sim_trace_hash(w.sim);
}

static void child_main(struct shared *s, uint64_t from, uint64_t to) {
    struct rlimit limit = {0};
    setrlimit(RLIMIT_CORE, &limit);
    if (!options.trace) {
        log_configure((enum log_level)(LOG_ERROR + 1), false);
        if (mutant_active != MUTANT_NONE && freopen("/dev/null", "w", stderr) == NULL) _exit(4); // its assertions are findings
    }
    for (uint64_t seed = from; seed <= to; seed++) {
        alarm(SECONDS_PER_SEED);
        uint64_t hash = run_seed(s, seed);
        if (seed - options.from >= options.twice) continue;
        if (run_seed(s, seed) != hash) on_violation(NULL, "the second run of this seed had another trace");
    }
    _exit(0);
}

// ---- the parent

struct child { pid_t pid; struct shared *shared; uint64_t to; };

static void describe_end(const struct child *c, int status, char *out, size_t size) {
    if (c->shared->violated) snprintf(out, size, "%s", c->shared->violation);
    else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) snprintf(out, size, "did not end within %d s", SECONDS_PER_SEED);
    else if (WIFSIGNALED(status)) snprintf(out, size, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else snprintf(out, size, "ended with status %d", WEXITSTATUS(status));
}

// Runs the seeds; returns how many failed. stop_at_first: the first failing seed goes to *first.
static uint64_t run_range(uint64_t from, uint64_t to, bool stop_at_first, uint64_t *first, char *first_text, size_t text_size, struct totals *totals) {
    struct child children[64] = {0};
    uint64_t next = from, failures = 0;
    unsigned running = 0;
    if (options.jobs > 64) options.jobs = 64;
    fflush(stdout);
    for (;;) {
        for (unsigned i = 0; i < options.jobs && next <= to && !(stop_at_first && failures); i++) {
            if (children[i].pid) continue;
            struct child *c = &children[i];
            uint64_t chunk = stop_at_first ? 20 : SEEDS_PER_CHILD, last = next + chunk - 1 < to ? next + chunk - 1 : to;
            if (!c->shared) c->shared = mmap(NULL, sizeof *c->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
            memset(c->shared, 0, sizeof *c->shared);
            c->to = last;
            c->pid = fork();
            if (c->pid == 0) child_main(c->shared, next, last);
            next = last + 1;
            running++;
        }
        if (running == 0) break;
        int status;
        pid_t pid = wait(&status);
        for (unsigned i = 0; i < options.jobs; i++) {
            struct child *c = &children[i];
            if (c->pid != pid) continue;
            running--;
            c->pid = 0;
            ADD(*totals, c->shared->totals);
            if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
            uint64_t seed = atomic_load(&c->shared->seed);
            char text[700];
            describe_end(c, status, text, sizeof text);
            failures++;
            if (failures == 1 || seed < *first) {
                *first = seed;
                snprintf(first_text, text_size, "%s", text);
            }
            if (stop_at_first) continue;
            printf("seed %" PRIu64 " FAILED: %s\n  again with: mink_sim --seeds %" PRIu64 "-%" PRIu64 " --trace\n", seed, text, seed, seed);
            fflush(stdout);
            if (seed < c->to) { // the rest of its share
                struct shared *shared = c->shared;
                memset(shared, 0, sizeof *shared);
                c->pid = fork();
                if (c->pid == 0) child_main(shared, seed + 1, c->to);
                running++;
            }
        }
    }
    return failures;
}

static const char *const op_names[] = {"put", "get", "head", "list", "remove"};

static void print_totals(const struct totals *t, double seconds, uint64_t failures) {
    const struct sim_counts *c = &t->counts;
    double simulated = (double)t->simulated_ns / 1e9;
    if (options.json) {
        printf("{\"seeds\":%" PRIu64 ",\"failures\":%" PRIu64 ",\"seconds\":%.1f,\"simulated_seconds\":%.0f,\"events\":%" PRIu64 ",\"acks\":%" PRIu64 ",\"rows_acked\":%" PRIu64 ",\"rows_read\":%" PRIu64 ",\"starts\":%" PRIu64 ",\"duplicates\":%" PRIu64 "}\n",
               t->seeds, failures, seconds, simulated, t->events, c->acks, c->rows_acked, c->rows_read, c->starts, c->duplicates);
        return;
    }
    printf("%" PRIu64 " seeds in %.1f s, %" PRIu64 " failed; simulated %.0f s (%.0f : 1), %" PRIu64 " events\n", t->seeds, seconds, failures, simulated, simulated / seconds, t->events);
    printf("clients    %" PRIu64 " appends, %" PRIu64 " acknowledged with %" PRIu64 " rows, %" PRIu64 " rows read, %" PRIu64 " duplicates told, %" PRIu64 " scans, %" PRIu64 " follows, %" PRIu64 " seeks\n", c->appends, c->acks, c->rows_acked, c->rows_read, c->duplicates, c->scans, c->follows, c->seeks);
    printf("processes  %" PRIu64 " starts, %" PRIu64 " kills, %" PRIu64 " pauses, %" PRIu64 " zombies, %" PRIu64 " closes, %" PRIu64 " fatal ends, %" PRIu64 " opens failed\n", c->starts, c->kills, c->pauses, c->zombies, c->closes, c->fatals, c->failed_opens);
    printf("crashes   ");
    for (int op = 0; op < 5; op++) printf(" %s %" PRIu64 " before, %" PRIu64 " after;", op_names[op], t->crashes[op][0], t->crashes[op][1]);
    printf("\nstore      %" PRIu64 " requests, %" PRIu64 " slow, %" PRIu64 " errors, %" PRIu64 " conflicts, %" PRIu64 " lost replies, %" PRIu64 " late effects, %" PRIu64 " flipped, %" PRIu64 " torn\n", t->store.requests, t->store.slow, t->store.errors, t->store.conflicts, t->store.lost_replies, t->store.lates, t->store.flips, t->store.tears);
    printf("database   %" PRIu64 " requests, %" PRIu64 " unavailable, unknown: %" PRIu64 " done, %" PRIu64 " not done, %" PRIu64 " late; %" PRIu64 " foreign, %" PRIu64 " checkpoints\n", t->meta.requests, t->meta.unavailable, t->meta.unknown_done, t->meta.unknown_not_done, t->meta.unknown_late, t->meta.foreign, t->meta.checkpoints);
    printf("appends   ");
    for (int i = 0; i < MINK_CODE_COUNT; i++)
        if (c->append_codes[i]) printf(" %s %" PRIu64, mink_code_name((enum mink_code)i), c->append_codes[i]);
    printf("\nreads     ");
    for (int i = 0; i < MINK_CODE_COUNT; i++)
        if (c->scan_codes[i]) printf(" %s %" PRIu64, mink_code_name((enum mink_code)i), c->scan_codes[i]);
    printf("\n");
}

static int run_mutants(void) {
    unsigned found = 0, count = 0;
    for (int m = 1; m < MUTANT_COUNT; m++) {
        if (options.one_mutant && options.mutant != (enum mutant)m) continue;
        struct totals totals = {0};
        char text[700] = "";
        uint64_t first = 0;
        count++;
        mutant_active = (enum mutant)m;
        bool killed = run_range(options.from, options.to, true, &first, text, sizeof text, &totals) > 0;
        found += killed;
        if (killed) printf("%-24s found at seed %" PRIu64 ": %s\n", mutant_name((enum mutant)m), first, text);
        else printf("%-24s NOT FOUND in %" PRIu64 " seeds\n", mutant_name((enum mutant)m), totals.seeds);
    }
    printf("%u of %u mutants found\n", found, count);
    return found == count ? 0 : 1;
}

static void usage(void) {
    printf("mink_sim [--seeds FROM-TO] [--twice [N]] [--jobs N] [--trace] [--json] [--mutants | --mutant NAME] [--list-mutants]\n"
           "  --seeds    the seeds to run [1-100]; with mutants [1-1000]\n"
           "  --twice    all seeds, or the first N, run twice and must leave equal traces\n"
           "  --trace    prints every event (one seed)\n"
           "  --mutants  plants each deliberate bug in turn and runs until it is found (builds with MINK_MUTANTS)\n");
}

int main(int argc, char **argv) {
    bool seeds_given = false;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--seeds") == 0) {
            char *dash = NULL;
            options.from = strtoull(value, &dash, 10);
            options.to = *dash == '-' ? strtoull(dash + 1, NULL, 10) : options.from;
            seeds_given = true;
            i++;
        } else if (strcmp(argv[i], "--twice") == 0) {
            bool counted = value[0] >= '0' && value[0] <= '9';
            options.twice = counted ? strtoull(value, NULL, 10) : UINT64_MAX;
            i += counted;
        } else if (strcmp(argv[i], "--jobs") == 0) {
            options.jobs = (unsigned)strtoul(value, NULL, 10);
            if (options.jobs == 0) options.jobs = 1;
            i++;
        } else if (strcmp(argv[i], "--mutant") == 0) {
            for (int m = 1; m < MUTANT_COUNT; m++)
                if (strcmp(mutant_name((enum mutant)m), value) == 0) options.mutant = (enum mutant)m;
            if (options.mutant == MUTANT_NONE) {
                fprintf(stderr, "there is no mutant %s; see --list-mutants\n", value);
                return 2;
            }
            options.one_mutant = true;
            i++;
        } else if (strcmp(argv[i], "--mutants") == 0) {
            options.all_mutants = true;
        } else if (strcmp(argv[i], "--list-mutants") == 0) {
            for (int m = 1; m < MUTANT_COUNT; m++) printf("%s\n", mutant_name((enum mutant)m));
            return 0;
        } else if (strcmp(argv[i], "--trace") == 0) {
            options.trace = true;
        } else if (strcmp(argv[i], "--json") == 0) {
            options.json = true;
        } else {
            usage();
            return strcmp(argv[i], "--help") == 0 ? 0 : 2;
        }
    }
    if (options.all_mutants || options.one_mutant) {
#ifndef MINK_MUTANTS
        fprintf(stderr, "this build has no mutants: configure with the preset mutants\n");
        return 2;
#endif
        if (!seeds_given) options.to = 1000;
        if (!options.trace) return run_mutants();
        mutant_active = options.mutant;
    }
    struct totals totals = {0};
    uint64_t first = 0, begun_ns = clock_monotonic_ns();
    char text[700] = "";
    uint64_t failures = run_range(options.from, options.to, false, &first, text, sizeof text, &totals);
    print_totals(&totals, (double)(clock_monotonic_ns() - begun_ns) / 1e9, failures);
    return failures ? 1 : 0;
}
