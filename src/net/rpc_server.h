// SPDX-License-Identifier: Apache-2.0
// rpc_server.h: the serving end of gRPC: listens, dispatches calls by path, moves messages.
//
// What      A call is accepted on one protocol shard and stays there. Messages in are views of gRPC's own slices; messages out are
//           slices that are handed over, not copied.
// Flow      client → on_call → rpc_call_accept → (rpc_call_receive → on_message)* / (rpc_call_send → on_sent)* → rpc_call_finish → on_closed.
// Holds     (1) each callback comes on the call's shard and never before the function that caused it returned; (2) on_closed comes
//           exactly once, last, after rpc_call_finish; (3) nothing is armed on the library once shutdown has begun (it would abort).
// Owner     The call's shard. rpc_server_open and _close: any thread.
// Bounds    message_bytes_max in; one message out per call; streams a connection.
#ifndef MINK_NET_RPC_SERVER_H
#define MINK_NET_RPC_SERVER_H

#include "base/executor.h"
#include "net/rpc_status.h"

struct rpc_server;
struct rpc_call;

struct rpc_call_ops {
    // The message asked for by rpc_call_receive: views valid during the callback; NULL when the client has half-closed.
    void (*on_message)(struct rpc_call *c, const struct slices *message);
    void (*on_sent)(struct rpc_call *c); // the message of rpc_call_send was taken by flow control: the next may be sent
    // The client cancelled or left, or its deadline passed: stop working at once, then rpc_call_finish. At most once, never after it.
    void (*on_cancelled)(struct rpc_call *c);
    void (*on_drain)(struct rpc_call *c);  // the server wants to close: streams without end should finish. NULL = let it run
    void (*on_closed)(struct rpc_call *c); // the call is gone after it: free what belongs to it
};

struct rpc_method {
    const char *path;                               // "/arrow.flight.protocol.FlightService/DoGet"
    void (*on_call)(void *ctx, struct rpc_call *c); // must accept it, at once
};

struct rpc_server_config {
    const char *address;         // "127.0.0.1:8815", "[::]:0"
    struct shard *const *shards; // from rpc_shard_start; calls are spread over them
    uint32_t shard_count;
    const struct rpc_method *methods; // lives as long as the server
    uint32_t method_count;
    void *ctx;
    uint32_t message_bytes_max; // [64 MiB + 64 KiB]
};
// UNAVAILABLE [ADDRESS_IN_USE] and INVALID [BAD_ADDRESS] name the address.
enum mink_code rpc_server_open(const struct rpc_server_config *config, struct rpc_server **out, struct error *e) MINK_MUST_CHECK;
int rpc_server_port(const struct rpc_server *s);
// Stops accepting, tells clients to go away, on_drain for each call; after grace_ms what still runs is cancelled. on_closed on shards[0].
void rpc_server_close(struct rpc_server *s, uint32_t grace_ms, void (*on_closed)(void *ctx), void *ctx);

// ---- a call
// In on_call: sets callbacks and state, and sends the initial metadata.
void rpc_call_accept(struct rpc_call *c, const struct rpc_call_ops *ops, void *state, const struct rpc_metadata *initial, uint32_t initial_count);
void *rpc_call_state(const struct rpc_call *c);
struct shard *rpc_call_shard(const struct rpc_call *c);
// First value of a header, a view for the call's life; size 0 when absent.
struct slice rpc_call_header(const struct rpc_call *c, const char *key);
const char *rpc_call_peer(struct rpc_call *c); // for log lines; lives as long as the call
void rpc_call_receive(struct rpc_call *c);     // one at a time
bool rpc_call_receiving(const struct rpc_call *c);
void rpc_call_send(struct rpc_call *c, struct slices *take_message); // one at a time; the list is empty afterwards
bool rpc_call_sending(const struct rpc_call *c);
// Ends the call, once. A message still waiting in flow control gets a short time, then the status overtakes it.
void rpc_call_finish(struct rpc_call *c, struct rpc_status *take_status);
bool rpc_call_finished(const struct rpc_call *c);
bool rpc_call_cancelled(const struct rpc_call *c);

#endif
