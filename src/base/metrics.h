// SPDX-License-Identifier: Apache-2.0
// metrics.h: counters, gauges and latency histograms in the Prometheus text format.
//
// What      A metric is a static object that registers itself on first use of its name; updating it is one relaxed
//           atomic add. No labels per table or bucket: the series count is constant.
// Owner     Any thread.
//
//   static struct metric_counter wal_puts = METRIC_COUNTER("mink_wal_puts_total", "WAL objects created");
//   metric_add(&wal_puts, 1);
#ifndef MINK_BASE_METRICS_H
#define MINK_BASE_METRICS_H
#include "base/buffer.h"
#include <stdatomic.h>
struct metric_counter { const char *name, *help; atomic_ullong value; atomic_bool registered; struct metric_counter *next; };
struct metric_gauge { const char *name, *help; atomic_llong value; atomic_bool registered; struct metric_gauge *next; };
// Log-linear buckets: 4 per power of two, from 1 µs to 128 s. Value in nanoseconds.
#define METRIC_HISTOGRAM_BUCKETS 112
struct metric_histogram {
    const char *name, *help; // name ends in _seconds
    atomic_ullong buckets[METRIC_HISTOGRAM_BUCKETS];
    atomic_ullong count, sum_ns;
    atomic_bool registered;
    struct metric_histogram *next;
};
#define METRIC_COUNTER(name, help) {(name), (help), 0, false, 0}
#define METRIC_GAUGE(name, help) {(name), (help), 0, false, 0}
#define METRIC_HISTOGRAM(name, help) {(name), (help), {0}, 0, 0, false, 0}
void metric_add(struct metric_counter *m, unsigned long long n);
void metric_set(struct metric_gauge *m, long long v);
void metric_move(struct metric_gauge *m, long long delta);
void metric_observe_ns(struct metric_histogram *m, unsigned long long ns);
unsigned long long metric_quantile_ns(const struct metric_histogram *m, double q); // upper bound of the bucket; 0 when empty
// All registered metrics plus process_* (RSS, CPU, fds), text format 0.0.4. Histograms are exported at powers of two.
void metrics_write(struct buffer *out);
#endif
