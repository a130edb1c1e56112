// SPDX-License-Identifier: Apache-2.0
// mink dev and mink serve: one process of Mink, from settings to readiness and back.
//
// Up: settings → store, command log → shards → node → Flight, HTTP → the ready line. Down (SIGTERM, SIGINT, or a fatal end of the node): the
// same in reverse. A node that ended by itself (fenced, store lost) makes the process exit with status 1: whoever runs it starts it again.
#include "cli/cli.h"
#include "cli/settings.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "console/console.h"
#include "flight/flight_server.h"
#include "net/rpc_shard.h"
#include "node/node.h"
#include "object/object_dir.h"
#include "object/object_fault.h"
#include "object/object_memory.h"

#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

struct server {
    struct cli *cli;
    struct config config;
    const char *dir; // dev; else NULL
    struct object_store *objects;
    struct meta_log *meta_log;
    struct meta_process_lock *lock;
    struct shard *shards[64];
    uint32_t shard_count;
    struct shard *flight_shards[64];
    uint32_t flight_shard_count;
    struct work_pool *work;
    struct node *node;
    struct flight_server *flight;
    struct console *console;
    // Waiting for callbacks: guarded by lock_.
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool answered;
    enum mink_code answer;
    struct error error;
};

static volatile sig_atomic_t stop_signal;
static int wake_pipe[2]; // signals and fatal ends write a byte: 's' or 'f'

static void on_stop(int number) {
    int saved = errno;
    if (stop_signal) _exit(128 + number);
    stop_signal = number;
    if (write(wake_pipe[1], "s", 1) != 1) _exit(128 + number);
    errno = saved;
}

// ---- the store and the command log, by their URLs

static const char *query_value(const char *query, const char *key, char *out, size_t size) {
    size_t key_size = strlen(key);
    for (const char *at = query; at && *at;) {
        size_t n = strcspn(at, "&");
        if (n > key_size && strncmp(at, key, key_size) == 0 && at[key_size] == '=') {
            snprintf(out, size, "%.*s", (int)(n - key_size - 1), at + key_size + 1);
            return out;
        }
        at += n + (at[n] == '&');
    }
    return NULL;
}

static enum mink_code check_query(const char *query, struct error *e) {
    for (const char *at = query; at && *at;) {
        size_t n = strcspn(at, "&"), key = strcspn(at, "=&");
        bool known = (key == 5 && strncmp(at, "fsync", 5) == 0) || (key == 7 && strncmp(at, "profile", 7) == 0) || (key == 4 && strncmp(at, "seed", 4) == 0) || (key == 7 && strncmp(at, "threads", 7) == 0);
        if (!known) return error_set(e, MINK_INVALID, "BAD_STORE", "store: unknown parameter %.*s (known: fsync, threads, profile, seed)", (int)key, at);
        at += n + (at[n] == '&');
    }
    return MINK_OK;
}

static enum mink_code open_store(const char *url, struct object_store **out, struct error *e) {
    char location[4096], value[64];
    const char *query = strchr(url, '?');
    snprintf(location, sizeof location, "%.*s", query ? (int)(query - url) : (int)strlen(url), url);
    if (query) query++;
    MINK_TRY(check_query(query, e));
    if (strncmp(location, "file://", 7) == 0) {
        if (location[7] != '/') return error_set(e, MINK_INVALID, "BAD_STORE", "store %s: give an absolute path: file:///path", url);
        bool page_cache = query_value(query, "fsync", value, sizeof value) && strcmp(value, "off") == 0;
        unsigned threads = query_value(query, "threads", value, sizeof value) ? (unsigned)strtoul(value, NULL, 10) : 0;
        if (threads > 256) return error_set(e, MINK_INVALID, "BAD_STORE", "store %s: at most 256 threads", url);
        if (page_cache) log_warn("store.page_cache", "message=\"fsync is off: a power cut loses acknowledged data\"");
        MINK_TRY(object_dir_open(location + 7, page_cache ? OBJECT_DIR_PAGE_CACHE : OBJECT_DIR_FSYNC, threads, out, e));
    } else if (strcmp(location, "memory:") == 0 || strcmp(location, "sink:") == 0) {
        *out = object_memory_new();
        if (location[0] == 's') object_memory_set_sink(*out, true);
        log_warn("store.memory", "message=\"the store forgets everything when this process ends\"");
    } else {
        error_set(e, MINK_INVALID, "BAD_STORE", "store %s: unknown kind", url);
        error_hint(e, "file:///path or memory:");
        return MINK_INVALID;
    }
    if (query_value(query, "profile", value, sizeof value)) {
        const struct object_fault_profile *profile = object_fault_profile_find(value);
        if (!profile) {
            object_store_close(*out);
            *out = NULL;
            return error_set(e, MINK_INVALID, "BAD_STORE", "store %s: unknown profile %s (known: fast, s3, s3-busy, express, bad, flat5, flat20, flat50, flat200)", url, value);
        }
        uint64_t seed = query_value(query, "seed", value, sizeof value) ? strtoull(value, NULL, 10) : 1;
        *out = object_fault_new(*out, profile, seed);
    }
    return MINK_OK;
}

static enum mink_code make_folders(const char *path, struct error *e) {
    char part[4096];
    snprintf(part, sizeof part, "%s", path);
    for (char *at = part + 1;; at++) {
        bool last = *at == 0;
        if (*at != '/' && !last) continue;
        *at = 0;
        if (mkdir(part, 0755) != 0 && errno != EEXIST) return error_set(e, MINK_DENIED, "FOLDER", "%s cannot be made: %s", part, strerror(errno));
        if (last) return MINK_OK;
        *at = '/';
    }
}

static enum mink_code open_metadata(struct server *s, const char *url, struct error *e) {
    if (strncmp(url, "sqlite://", 9) != 0 || url[9] != '/') {
        error_set(e, MINK_INVALID, "BAD_METADATA", "metadata %s: unknown kind", url);
        error_hint(e, "sqlite:///path/to/meta.db");
        return MINK_INVALID;
    }
    const char *path = url + 9;
    MINK_TRY(meta_process_lock_take(path, &s->lock, e));
    return meta_log_sqlite_open(path, &s->meta_log, e);
}

// ---- waiting for the node's callbacks

static void answered(void *ctx, enum mink_code code, const struct error *e) {
    struct server *s = ctx;
    pthread_mutex_lock(&s->mutex);
    s->answered = true;
    s->answer = code;
    error_copy(&s->error, e);
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

static void closed(void *ctx) { answered(ctx, MINK_OK, NULL); }

static enum mink_code await(struct server *s, struct error *e) {
    pthread_mutex_lock(&s->mutex);
    while (!s->answered) pthread_cond_wait(&s->changed, &s->mutex);
    s->answered = false;
    enum mink_code code = s->answer;
    if (code != MINK_OK) error_copy(e, &s->error);
    pthread_mutex_unlock(&s->mutex);
    return code;
}

static void on_fatal(void *ctx, const struct error *e) {
    struct server *s = ctx;
    log_error("node.fatal", "reason=%s message=\"%s\"", e->reason, e->message);
    pthread_mutex_lock(&s->mutex);
    error_copy(&s->error, e);
    pthread_mutex_unlock(&s->mutex);
    if (write(wake_pipe[1], "f", 1) != 1) _exit(CLI_FAILED);
}

// ---- up and down

static uint32_t threads_for(double setting) {
    if (setting > 0) return (uint32_t)setting;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > 4 ? 4 : (uint32_t)cores;
}

static enum mink_code start(struct server *s, struct error *e) {
    const struct config *c = &s->config;
    const char *metadata = config_text(c, "metadata"), *store = config_text(c, "store"), *http = config_text(c, "http.listen");
    if (!metadata || !store) {
        error_set(e, MINK_INVALID, "MISSING_SETTING", "%s is not set", metadata ? "store" : "metadata");
        error_hint(e, "in the file, as MINK_METADATA and MINK_STORE, or --metadata sqlite:///path/meta.db --store file:///path");
        return MINK_INVALID;
    }
    enum log_level level;
    if (!log_level_parse(config_text(c, "log.level"), &level)) return error_set(e, MINK_INVALID, "BAD_SETTING", "log.level = \"%s\": debug, info, warn or error", config_text(c, "log.level"));
    log_configure(level, config_bool(c, "log.json"));
    MINK_TRY(open_metadata(s, metadata, e));
    MINK_TRY(open_store(store, &s->objects, e));
    // One shard for the stream layer and metadata, the others for buckets; with one core they are the same.
    s->shard_count = threads_for(config_number(c, "shards"));
    for (uint32_t i = 0; i < s->shard_count; i++) {
        char name[16];
        snprintf(name, sizeof name, "shard-%u", i);
        s->shards[i] = shard_start(name);
    }
    s->work = work_pool_start("work", 2);
    struct node_config node = {
        .objects = s->objects,
        .meta_log = s->meta_log,
        .shards = s->shards,
        .shard_count = s->shard_count,
        .work = s->work,
        .sole_process = true,
        .defaults = {.bucket_num = (uint32_t)config_number(c, "table.buckets")},
        .batch_bytes_max = (uint32_t)config_number(c, "limits.batch_bytes"),
        .on_fatal = on_fatal,
        .ctx = s,
        .stream = {.address = config_text(c, "flight.advertised")[0] ? config_text(c, "flight.advertised") : config_text(c, "flight.listen"),
                   .rack = "",
                   .wal_object_size = (uint32_t)config_number(c, "wal.size_max"),
                   .linger_floor_us = (uint32_t)config_number(c, "wal.linger_us"),
                   .put_rate = config_number(c, "wal.put_rate"),
                   .puts_in_flight = (uint32_t)config_number(c, "wal.in_flight"),
                   .hedge_off = !config_bool(c, "wal.hedge"),
                   .append_bytes_max = (uint64_t)config_number(c, "wal.append_bytes_max"),
                   .append_give_up_ms = (uint64_t)config_number(c, "wal.give_up"),
                   .commit_bytes = (uint64_t)config_number(c, "commit.bytes"),
                   .commit_windows = (uint32_t)config_number(c, "commit.windows"),
                   .commit_age_ms = (uint64_t)config_number(c, "commit.age"),
                   .tail_cache_bytes = (uint64_t)config_number(c, "cache.tail"),
                   .block_cache_bytes = (uint64_t)config_number(c, "cache.blocks"),
                   .index_cache_bytes = (uint64_t)config_number(c, "cache.index"),
                   .delete_grace_ms = (uint64_t)config_number(c, "gc.grace")},
    };
    s->objects = NULL; // the node closes both, also when it fails to open
    s->meta_log = NULL;
    node_open(&node, &s->node, answered, s);
    MINK_TRY(await(s, e));
    s->flight_shard_count = threads_for(config_number(c, "flight.threads"));
    for (uint32_t i = 0; i < s->flight_shard_count; i++) {
        char name[16];
        snprintf(name, sizeof name, "flight-%u", i);
        s->flight_shards[i] = rpc_shard_start(name);
    }
    struct flight_config flight = {.node = s->node,
                                   .address = config_text(c, "flight.listen"),
                                   .shards = s->flight_shards,
                                   .shard_count = s->flight_shard_count,
                                   .batch_bytes_max = (uint32_t)config_number(c, "limits.batch_bytes"),
                                   .put_bytes_max = (uint64_t)config_number(c, "limits.put_bytes")};
    MINK_TRY(flight_server_open(&flight, &s->flight, e));
    if (http[0]) MINK_TRY(console_open(&(struct console_config){.node = s->node, .address = http}, &s->console, e));
    return MINK_OK;
}

static void stop(struct server *s, bool abrupt) {
    struct error ignored;
    if (s->console) console_close(s->console);
    if (s->flight) {
        flight_server_close(s->flight, 2000, closed, s);
        if (await(s, &ignored) != MINK_OK) log_warn("flight.close", "message=\"%s\"", ignored.message);
    }
    for (uint32_t i = 0; i < s->flight_shard_count; i++) rpc_shard_stop(s->flight_shards[i]);
    if (s->node) {
        node_close(s->node, abrupt, closed, s);
        if (await(s, &ignored) != MINK_OK) log_warn("node.close", "message=\"%s\"", ignored.message);
    }
    for (uint32_t i = 0; i < s->shard_count; i++) shard_stop(s->shards[i]);
    if (s->work) work_pool_stop(s->work);
    if (s->objects) object_store_close(s->objects);
    if (s->meta_log) s->meta_log->ops->close(s->meta_log);
    if (s->lock) meta_process_lock_release(s->lock);
    config_deinit(&s->config);
}

static void host_of(const char *address, char *out, size_t size) {
    const char *colon = strrchr(address, ':');
    snprintf(out, size, "%.*s", colon ? (int)(colon - address) : (int)strlen(address), address);
}

static void print_ready(struct server *s) {
    struct buffer line;
    struct json_writer w;
    char host[256], address[300];
    buffer_init(&line, 65536);
    json_begin(&w, &line);
    json_object_begin(&w);
    json_put_key(&w, "ready");
    json_put_bool(&w, true);
    host_of(config_text(&s->config, "flight.listen"), host, sizeof host);
    snprintf(address, sizeof address, "%s:%d", host, flight_server_port(s->flight));
    json_put_key(&w, "flight");
    json_put_string(&w, address);
    if (s->console) {
        host_of(config_text(&s->config, "http.listen"), host, sizeof host);
        snprintf(address, sizeof address, "%s:%d", host, console_port(s->console));
        json_put_key(&w, "http");
        json_put_string(&w, address);
    }
    if (s->dir) {
        json_put_key(&w, "dir");
        json_put_string(&w, s->dir);
    }
    json_object_end(&w);
    printf("%s\n", buffer_string(&line));
    fflush(stdout);
    buffer_deinit(&line);
    if (s->dir && isatty(STDERR_FILENO))
        fprintf(stderr, "\nMink is ready. In another terminal:\n  mink db create shop\n  mink table create shop.events 'id BIGINT, city STRING'\n"
                        "  printf 'id,city\\n1,Oslo\\n' | mink put shop.events --format csv && mink get shop.events\n\n");
}

static int run(struct server *s) {
    struct error e;
    s->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    s->changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    if (pipe(wake_pipe) != 0) return cli_fail_text(s->cli, "PIPE", "pipe: %s", strerror(errno));
    struct sigaction action = {.sa_handler = on_stop};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (start(s, &e) != MINK_OK) {
        int status = cli_fail_local(s->cli, &e);
        stop(s, false);
        return status;
    }
    print_ready(s);
    char why = 0;
    while (read(wake_pipe[0], &why, 1) != 1 && errno == EINTR) continue;
    if (why == 's') log_info("server.stop", "signal=%d", (int)stop_signal);
    stop(s, why == 'f');
    return why == 'f' ? CLI_FAILED : CLI_DONE;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw) { return remove(path); }

// Only what dev made there is deleted: a folder that holds anything else is left alone.
static enum mink_code make_fresh(const char *dir, struct error *e) {
    char path[4200];
    const char *const parts[] = {"objects", "meta.db", "meta.db-wal", "meta.db-shm"};
    struct meta_process_lock *lock;
    snprintf(path, sizeof path, "%s/meta.db", dir);
    if (access(path, F_OK) == 0) { // never below a running process
        MINK_TRY(meta_process_lock_take(path, &lock, e));
        meta_process_lock_release(lock);
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, parts[i]);
        if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT) return error_set(e, MINK_DENIED, "FOLDER", "%s cannot be deleted: %s", path, strerror(errno));
    }
    return MINK_OK;
}

static int bad_port(struct cli *cli, const char *option, const char *fallback, char *out, size_t size) {
    int64_t port;
    int usage = cli_option_int(cli, option, strtol(fallback, NULL, 10), 0, 65535, &port);
    snprintf(out, size, "127.0.0.1:%d", (int)port);
    return usage;
}

int cli_run_dev(struct cli *cli) {
    static struct server server;
    struct server *s = &server;
    struct error e;
    s->cli = cli;
    const char *dir = cli_option(cli, "dir") ? cli_option(cli, "dir") : "mink-data";
    char absolute[4096], metadata[4200], store[4200], flight[32], http[32];
    int usage = bad_port(cli, "flight-port", "8815", flight, sizeof flight);
    if (!usage) usage = bad_port(cli, "http-port", "8080", http, sizeof http);
    if (usage) return usage;
    if (config_init(&s->config, settings_options, &e) != MINK_OK || make_folders(dir, &e) != MINK_OK) return cli_fail_local(cli, &e);
    if (!realpath(dir, absolute)) return cli_fail_text(cli, "FOLDER", "%s: %s", dir, strerror(errno));
    if (cli_flag(cli, "fresh") && make_fresh(absolute, &e) != MINK_OK) return cli_fail_local(cli, &e);
    snprintf(metadata, sizeof metadata, "sqlite://%s/meta.db", absolute);
    snprintf(store, sizeof store, "file://%s/objects", absolute);
    s->dir = dir;
    const struct { const char *key, *value; } fixed[] = {{"metadata", metadata}, {"store", store}, {"flight.listen", flight}, {"http.listen", http}, {"log.level", cli->verbose ? "debug" : "info"}};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (config_set(&s->config, fixed[i].key, fixed[i].value, "mink dev", &e) != MINK_OK) return cli_fail_local(cli, &e);
    if (config_read_environment(&s->config, "MINK_", environ, &e) != MINK_OK) return cli_fail_local(cli, &e);
    return run(s);
}

int cli_run_serve(struct cli *cli) {
    static struct server server;
    struct server *s = &server;
    struct error e;
    s->cli = cli;
    const char *file = cli_option(cli, "config");
    enum mink_code code = config_init(&s->config, settings_options, &e);
    if (code == MINK_OK && file) code = config_read_file(&s->config, file, &e);
    if (code == MINK_OK) code = config_read_environment(&s->config, "MINK_", environ, &e);
    for (int i = 0; i < cli->free_count && code == MINK_OK; i++) {
        char origin[100];
        snprintf(origin, sizeof origin, "--%s", cli->free_keys[i]);
        code = config_set(&s->config, cli->free_keys[i], cli->free_values[i], origin, &e);
    }
    if (code != MINK_OK) {
        cli_fail_local(cli, &e);
        config_deinit(&s->config);
        return CLI_USAGE;
    }
    if (cli_flag(cli, "print-config")) {
        struct buffer text;
        buffer_init(&text, 1 << 20);
        config_print(&s->config, &text);
        printf("%s", buffer_string(&text));
        buffer_deinit(&text);
        config_deinit(&s->config);
        return CLI_DONE;
    }
    return run(s);
}
