// SPDX-License-Identifier: Apache-2.0
// What the flows of the Flight front end share; not for other folders.
#ifndef MINK_FLIGHT_FLIGHT_INTERNAL_H
#define MINK_FLIGHT_FLIGHT_INTERNAL_H

#include "flight/flight_server.h"
#include "net/flight_data.h"
#include "net/flight_message.h"
#include "net/rpc_server.h"
#include "net/ticket.h"

struct flight_answers;

struct flight_server {
    struct flight_config config;
    struct node *node;
    struct rpc_server *rpc;
    struct flight_answers *answers; // of mutating actions, by request_id
    atomic_uint live;               // streams with requests at the node that outlive their call, and one for the listener
    void (*on_closed)(void *ctx);
    void *closed_ctx;
    struct task closed;
};
void flight_server_hold(struct flight_server *s);
void flight_server_release(struct flight_server *s);

// ---- flight_error.c
// Ends a call. extra: more members of mink-error, or NULL. Our own mistakes and corrupt data are logged here, once.
void flight_finish(struct rpc_call *c, const struct error *e, const char *extra);
void flight_finish_ok(struct rpc_call *c);
enum mink_code flight_sql_refused(struct error *e); // a Flight SQL command on the native port

// ---- flight_request.c: a method with one request message and any number of answers
struct flight_request {
    struct rpc_call *call;
    struct flight_server *server;
    void (*handle)(struct flight_request *r, struct slice body); // body is a view for the call of it; ends in flight_request_done
    void (*free_state)(struct flight_request *r);                // may be NULL
    void *state;
    struct slice *answers; // encoded messages, sent in order
    uint32_t answer_count, answer_capacity, answer_sent;
    bool done; // nothing more comes from handle
    bool closed;
    unsigned pending; // requests at the node: freed when none is left
    struct error error;
};
void flight_request_start(struct flight_server *s, struct rpc_call *c, void (*handle)(struct flight_request *r, struct slice body));
void flight_request_answer(struct flight_request *r, struct slice take_message);
void flight_request_done(struct flight_request *r); // r->error tells the outcome
// Around each request at the node; _returned gives false when the call is gone and nothing should be done any more.
void flight_request_sent(struct flight_request *r);
bool flight_request_returned(struct flight_request *r);

// ---- flight_info.c
// What a descriptor names, as a ticket. The ticket may borrow from d.
enum mink_code flight_descriptor_ticket(const struct flight_descriptor *d, struct ticket *out, struct error *e) MINK_MUST_CHECK;
// The table of a read; refuses views a log table does not have.
enum mink_code flight_find_table(struct flight_server *s, const struct table_ref *ref, struct node_table **out, struct error *e) MINK_MUST_CHECK;
// A ticket's shape as the scan request of its table. Borrows from t.
enum mink_code flight_scan_request(const struct ticket *t, struct scan_request *out, struct error *e) MINK_MUST_CHECK;
enum mink_code flight_check_ticket(const struct ticket *t, struct table_def *def, int64_t now_ms, struct error *e) MINK_MUST_CHECK;

// ---- flight_scan.c: a running scan and its stream, used by DoGet and DoExchange
struct flight_position {
    char *partition;
    int32_t bucket;
    uint64_t next;
};
struct flight_reply {
    struct flight_reply *next;
    char *metadata;
};
struct flight_scan {
    struct rpc_call *call;
    struct flight_server *server;
    struct node_table *table;
    struct node_scan *scan;
    struct node_scan_next next;
    bool next_running;
    // the step being sent
    struct scan_message *messages;
    uint32_t message_count, message_at;
    char *partition;
    int32_t bucket;
    uint64_t unsent; // offset that its first unsent message continues from
    struct flight_position *positions;
    uint32_t position_count;
    struct slice empty_batch, empty_body;        // of a batch without rows
    struct flight_reply *replies, **replies_end; // answers to control messages; at most one per message read
    struct timer heartbeat;
    uint64_t heartbeat_ns, last_sent_ns;
    bool follow, schema_sent, heartbeat_due, end, done_sent, draining, cancelled;
    bool credit_used;
    int64_t credit; // bytes that may still be sent
    struct error error;
    void (*on_replied)(struct flight_scan *x); // a reply went out: the next control message may be read
    void *state;
};
// Takes table; opens the scan and begins to send. On error nothing has begun and the call is not finished.
enum mink_code flight_scan_begin(struct flight_scan *x, struct flight_server *s, struct rpc_call *c, struct node_table *take_table, const struct ticket *t,
                                 struct error *e) MINK_MUST_CHECK;
void flight_scan_pump(struct flight_scan *x);
void flight_scan_sent(struct flight_scan *x);   // from on_sent
void flight_scan_cancel(struct flight_scan *x); // the client is gone
void flight_scan_drain(struct flight_scan *x);
void flight_scan_fail(struct flight_scan *x, const struct error *e);
void flight_scan_reply(struct flight_scan *x, char *take_metadata);
void flight_scan_drop_pending(struct flight_scan *x, const char *partition, int32_t bucket); // unsent messages of a bucket
// The same, and the scan goes back to where they began: they come again later.
enum mink_code flight_scan_rewind(struct flight_scan *x, const char *partition, int32_t bucket, struct error *e) MINK_MUST_CHECK;
void flight_scan_deinit(struct flight_scan *x); // after on_closed
enum node_from flight_node_from(enum ticket_from from);

// ---- the methods
void flight_do_put(void *server, struct rpc_call *c);
void flight_do_get(void *server, struct rpc_call *c);
void flight_do_exchange(void *server, struct rpc_call *c);
void flight_do_action(void *server, struct rpc_call *c);
void flight_list_actions(void *server, struct rpc_call *c);
void flight_get_info(void *server, struct rpc_call *c);
void flight_get_schema(void *server, struct rpc_call *c);
void flight_poll_info(void *server, struct rpc_call *c);
void flight_list(void *server, struct rpc_call *c);
void flight_handshake(void *server, struct rpc_call *c);

struct flight_answers *flight_answers_new(void);
void flight_answers_free(struct flight_answers *a);

#endif
