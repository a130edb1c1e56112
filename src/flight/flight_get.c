// SPDX-License-Identifier: Apache-2.0
// DoGet: a ticket in, a scan out.
#include "base/mem.h"
#include "flight/flight_internal.h"

struct get {
    struct flight_scan scan;
    struct flight_server *server;
    bool begun;
};

static enum mink_code begin(struct get *g, struct rpc_call *c, struct slice body, struct error *e) {
    struct slice text;
    MINK_TRY(flight_bytes_decode(body, "Ticket", &text, e));
    struct ticket t;
    enum mink_code code = text.size && text.data[0] == 0x0a ? flight_sql_refused(e) : ticket_parse(text.data, text.size, &t, e);
    slice_unref(&text);
    if (code != MINK_OK) return code;
    struct node_table *table = NULL;
    code = flight_find_table(g->server, &t.table, &table, e);
    if (code == MINK_OK) code = flight_check_ticket(&t, node_table_def(table), shard_wall_ms(rpc_call_shard(c)), e);
    if (code == MINK_OK) {
        code = flight_scan_begin(&g->scan, g->server, c, table, &t, e);
        g->begun = code == MINK_OK;
    } else if (table) {
        node_table_unref(table);
    }
    ticket_deinit(&t);
    return code;
}

static void on_message(struct rpc_call *c, const struct slices *message) {
    struct get *g = rpc_call_state(c);
    struct error e;
    struct slice body = message ? flight_message_join(message) : slice_empty();
    if (begin(g, c, body, &e) != MINK_OK) flight_finish(c, &e, NULL);
    slice_unref(&body);
}

static void on_sent(struct rpc_call *c) { flight_scan_sent(&((struct get *)rpc_call_state(c))->scan); }

static void on_cancelled(struct rpc_call *c) {
    struct get *g = rpc_call_state(c);
    if (g->begun) {
        flight_scan_cancel(&g->scan);
        return;
    }
    struct error e;
    error_set(&e, MINK_CANCELLED, "CANCELLED", "the client cancelled the call");
    flight_finish(c, &e, NULL);
}

static void on_drain(struct rpc_call *c) {
    struct get *g = rpc_call_state(c);
    if (g->begun) flight_scan_drain(&g->scan);
}

static void on_closed(struct rpc_call *c) {
    struct get *g = rpc_call_state(c);
    struct flight_server *s = g->server;
    flight_scan_deinit(&g->scan);
    mem_free(g);
    flight_server_release(s);
}

static const struct rpc_call_ops ops = {on_message, on_sent, on_cancelled, on_drain, on_closed};

void flight_do_get(void *server, struct rpc_call *c) {
    struct get *g = mem_new(struct get);
    g->server = server;
    flight_server_hold(g->server);
    rpc_call_accept(c, &ops, g, NULL, 0);
    rpc_call_receive(c);
}
