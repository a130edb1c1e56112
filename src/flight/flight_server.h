// SPDX-License-Identifier: Apache-2.0
// flight_server.h: Arrow Flight on a node: log tables through plain Flight clients.
//
// Flow      client → net (rpc_server) → flight_put / _get / _exchange / _action / _info → one call on node → back.
// Owner     Calls live on the protocol shards given; open and close from any thread.
// Bounds    A put stream: 32 MiB or 256 batches not yet durable. A get stream: the step being sent and the one being read.
#ifndef MINK_FLIGHT_FLIGHT_SERVER_H
#define MINK_FLIGHT_FLIGHT_SERVER_H

#include "node/node.h"

struct flight_server;
struct flight_config {
    struct node *node;
    const char *address;         // "127.0.0.1:8815"; port 0 = any
    struct shard *const *shards; // from rpc_shard_start
    uint32_t shard_count;
    uint32_t batch_bytes_max; // [64 MiB] of one put batch
    uint64_t put_bytes_max;   // [32 MiB] not yet durable, a stream
    uint32_t put_batches_max; // [256]
};
enum mink_code flight_server_open(const struct flight_config *config, struct flight_server **out, struct error *e) MINK_MUST_CHECK;
int flight_server_port(const struct flight_server *s);
// Drains: follow streams end with UNAVAILABLE [NODE_DRAINING], others may finish within grace_ms. on_closed on shards[0]; then the node may close.
void flight_server_close(struct flight_server *s, uint32_t grace_ms, void (*on_closed)(void *ctx), void *ctx);

#endif
