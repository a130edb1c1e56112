// SPDX-License-Identifier: Apache-2.0
// rpc_client.h: the calling end of gRPC, blocking.
//
// What      A channel and its calls. Each stream has a completion queue of its own and is driven by the thread that uses it, so a send
//           also takes in what the server says meanwhile.
// Owner     rpc_client: any thread. A stream: one thread at a time; rpc_stream_cancel from any.
// Errors    What the server said (rpc_status_read); UNAVAILABLE when it cannot be reached; DEADLINE, CANCELLED.
#ifndef MINK_NET_RPC_CLIENT_H
#define MINK_NET_RPC_CLIENT_H

#include "base/error.h"
#include "base/slice.h"

struct rpc_client;
// target: "host:port". Lazy: connects with the first call.
struct rpc_client *rpc_client_new(const char *target, uint32_t message_bytes_max);
void rpc_client_free(struct rpc_client *c); // after its streams

struct rpc_stream;
// timeout_ms 0 = no deadline.
struct rpc_stream *rpc_stream_open(struct rpc_client *c, const char *path, uint32_t timeout_ms);
// Waits until the transport has taken the message. When the server has already ended the call: its error (OK ended: CONFLICT [CALL_ENDED]).
enum mink_code rpc_stream_send(struct rpc_stream *s, struct slices *take_message, struct error *e) MINK_MUST_CHECK;
enum mink_code rpc_stream_half_close(struct rpc_stream *s, struct error *e) MINK_MUST_CHECK;

enum rpc_event { RPC_MESSAGE, RPC_END, RPC_TIMEOUT };
// The next message of the server; views stay valid until the next call on the stream. RPC_END: the call ended OK. Any other end is the error.
// wait_ms UINT32_MAX = for ever, 0 = only what is there.
enum mink_code rpc_stream_receive(struct rpc_stream *s, uint32_t wait_ms, enum rpc_event *event, const struct slices **message,
                                  struct error *e) MINK_MUST_CHECK;
void rpc_stream_cancel(struct rpc_stream *s); // a waiting call returns CANCELLED
void rpc_stream_close(struct rpc_stream *s);  // cancels what still runs; frees

// One message each way.
enum mink_code rpc_unary(struct rpc_client *c, const char *path, struct slice request, uint32_t timeout_ms, struct slice *response,
                         struct error *e) MINK_MUST_CHECK;

#endif
