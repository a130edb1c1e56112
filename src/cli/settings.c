// SPDX-License-Identifier: Apache-2.0
// Every setting of a node. docs/operations.md and --print-config come from this table.
#include "cli/settings.h"

const struct config_option settings_options[] = {
    {"metadata", CONFIG_STRING, NULL, "the command log: sqlite:///path/to/meta.db"},
    {"store", CONFIG_STRING, NULL, "the object store: file:///path (?fsync=off only for comparisons), memory: (forgets all), either with profile=NAME to simulate a store's latency"},
    {"shards", CONFIG_INT, "0", "threads that own buckets; 0 = one a core, at most 4", 0, 64},
    {"flight.listen", CONFIG_STRING, "127.0.0.1:8815", "Arrow Flight listens here; port 0 takes a free one"},
    {"flight.advertised", CONFIG_STRING, "", "what clients are told to connect to; empty = the listen address"},
    {"flight.threads", CONFIG_INT, "0", "threads that decode and encode; 0 = one a core, at most 4", 0, 64},
    {"http.listen", CONFIG_STRING, "127.0.0.1:8080", "/metrics, /healthz, /readyz; empty = off"},
    {"wal.linger_us", CONFIG_INT, "2000", "a window of appends waits at least so long for company (microseconds)", 0, 1000000},
    {"wal.size_max", CONFIG_BYTES, "4MiB", "a window closes at this size", 65536, 67108864},
    {"wal.in_flight", CONFIG_INT, "32", "uploads of windows at the same time", 1, 1024},
    {"wal.put_rate", CONFIG_REAL, "30", "uploads a second that small traffic may cost ($13.14 a month each on S3); -1 = no budget", -1, 100000},
    {"wal.hedge", CONFIG_BOOL, "true", "repeat an upload that is slower than its peers, under the same key"},
    {"wal.append_bytes_max", CONFIG_BYTES, "256MiB", "unacknowledged bytes; beyond, appends are refused as overloaded", 1048576, 1.1e12},
    {"wal.give_up", CONFIG_DURATION, "60s", "a window that cannot be stored for so long ends the process's incarnation", 1000, 86400000},
    {"commit.bytes", CONFIG_BYTES, "256MiB", "the log's tail becomes stream objects at this size", 65536, 1.1e12},
    {"commit.windows", CONFIG_INT, "500", "and after so many windows", 1, 20000},
    {"commit.age", CONFIG_DURATION, "5min", "and at this age", 100, 86400000},
    {"cache.tail", CONFIG_BYTES, "512MiB", "recent appends kept in memory", 1048576, 1.1e12},
    {"cache.blocks", CONFIG_BYTES, "1GiB", "blocks of objects kept in memory", 1048576, 1.1e12},
    {"cache.index", CONFIG_BYTES, "128MiB", "indexes of objects kept in memory", 1048576, 1.1e12},
    {"gc.grace", CONFIG_DURATION, "10min", "objects nobody needs any more are deleted after this", 0, 864000000},
    {"table.buckets", CONFIG_INT, "1", "bucket.num of tables that do not say", 1, 100000},
    {"limits.batch_bytes", CONFIG_BYTES, "64MiB", "largest batch of one put", 1024, 67108864},
    {"limits.put_bytes", CONFIG_BYTES, "32MiB", "not yet durable bytes of one put stream; beyond, it is not read on", 65536, 1.1e12},
    {"log.level", CONFIG_STRING, "info", "debug, info, warn or error"},
    {"log.json", CONFIG_BOOL, "false", "log lines as JSON"},
    {0}};
