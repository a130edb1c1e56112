// SPDX-License-Identifier: Apache-2.0
#include "base/metrics.h"

#include "base/clock.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The lists only grow; the lock guards growing and walking them.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct metric_counter *counters;
static struct metric_gauge *gauges;
static struct metric_histogram *histograms;

#define REGISTER(list, m)                                                            \
    do {                                                                             \
        if (atomic_load_explicit(&(m)->registered, memory_order_acquire)) break;     \
        pthread_mutex_lock(&lock);                                                   \
        if (!atomic_load_explicit(&(m)->registered, memory_order_relaxed)) {         \
            (m)->next = list;                                                        \
            list = (m);                                                              \
            atomic_store_explicit(&(m)->registered, true, memory_order_release);     \
        }                                                                            \
        pthread_mutex_unlock(&lock);                                                 \
    } while (0)

void metric_add(struct metric_counter *m, unsigned long long n) {
    REGISTER(counters, m);
    atomic_fetch_add_explicit(&m->value, n, memory_order_relaxed);
}

void metric_set(struct metric_gauge *m, long long v) {
    REGISTER(gauges, m);
    atomic_store_explicit(&m->value, v, memory_order_relaxed);
}

void metric_move(struct metric_gauge *m, long long delta) {
    REGISTER(gauges, m);
    atomic_fetch_add_explicit(&m->value, delta, memory_order_relaxed);
}

// Bucket i covers up to 1 µs * 2^(i / 4) * (1 + (i % 4) / 4): four linear steps in each power of two.
static unsigned long long upper_ns(unsigned i) { return (1000ull << (i / 4)) * (4 + i % 4) / 4; }

static unsigned bucket_of(unsigned long long ns) {
    if (ns <= 1000) return 0;
    unsigned power = 63 - (unsigned)__builtin_clzll((ns - 1) / 1000 ? (ns - 1) / 1000 : 1);
    for (unsigned i = power * 4; i < METRIC_HISTOGRAM_BUCKETS; i++)
        if (ns <= upper_ns(i)) return i;
    return METRIC_HISTOGRAM_BUCKETS - 1;
}

void metric_observe_ns(struct metric_histogram *m, unsigned long long ns) {
    REGISTER(histograms, m);
    atomic_fetch_add_explicit(&m->buckets[bucket_of(ns)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->sum_ns, ns, memory_order_relaxed);
}

unsigned long long metric_quantile_ns(const struct metric_histogram *m, double q) {
    unsigned long long total = 0, seen = 0;
    for (unsigned i = 0; i < METRIC_HISTOGRAM_BUCKETS; i++) total += atomic_load_explicit(&m->buckets[i], memory_order_relaxed);
    if (total == 0) return 0;
    for (unsigned i = 0; i < METRIC_HISTOGRAM_BUCKETS; i++) {
        seen += atomic_load_explicit(&m->buckets[i], memory_order_relaxed);
        if (seen > 0 && (double)seen >= q * (double)total) return upper_ns(i);
    }
    return upper_ns(METRIC_HISTOGRAM_BUCKETS - 1);
}

static void head(struct buffer *out, const char *name, const char *help, const char *type) {
    buffer_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_histogram(struct buffer *out, struct metric_histogram *m) {
    head(out, m->name, m->help, "histogram");
    unsigned long long seen = 0;
    for (unsigned i = 0; i < METRIC_HISTOGRAM_BUCKETS; i++) {
        seen += atomic_load_explicit(&m->buckets[i], memory_order_relaxed);
        if (i % 4 == 0) buffer_printf(out, "%s_bucket{le=\"%g\"} %llu\n", m->name, (double)upper_ns(i) / 1e9, seen);
    }
    buffer_printf(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.9f\n%s_count %llu\n", m->name, seen, m->name, (double)atomic_load(&m->sum_ns) / 1e9, m->name, seen);
}

static void process_metrics(struct buffer *out) {
    long resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f) {
        if (fscanf(f, "%*s %ld", &resident) != 1) resident = 0;
        fclose(f);
    }
    head(out, "process_resident_memory_bytes", "resident memory", "gauge");
    buffer_printf(out, "process_resident_memory_bytes %lld\n", (long long)resident * sysconf(_SC_PAGESIZE));
    head(out, "process_cpu_seconds_total", "user and system time", "counter");
    buffer_printf(out, "process_cpu_seconds_total %.3f\n", (double)clock_process_cpu_ns() / 1e9);
    int fds = 0;
    DIR *d = opendir("/proc/self/fd");
    if (d) {
        for (struct dirent *entry; (entry = readdir(d)) != NULL;) fds += entry->d_name[0] != '.';
        closedir(d);
    }
    head(out, "process_open_fds", "open file descriptors", "gauge");
    buffer_printf(out, "process_open_fds %d\n", fds);
}

void metrics_write(struct buffer *out) {
    pthread_mutex_lock(&lock);
    struct metric_counter *c = counters;
    struct metric_gauge *g = gauges;
    struct metric_histogram *h = histograms;
    pthread_mutex_unlock(&lock);
    for (; c; c = c->next) {
        head(out, c->name, c->help, "counter");
        buffer_printf(out, "%s %llu\n", c->name, atomic_load(&c->value));
    }
    for (; g; g = g->next) {
        head(out, g->name, g->help, "gauge");
        buffer_printf(out, "%s %lld\n", g->name, atomic_load(&g->value));
    }
    for (; h; h = h->next) write_histogram(out, h);
    process_metrics(out);
}
