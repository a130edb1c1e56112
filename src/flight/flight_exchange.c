// SPDX-License-Identifier: Apache-2.0
// DoExchange: subscriptions to buckets of one table on one stream, changed while it runs.
//
// The first message names the command. After it, control messages come in app_metadata; each is applied and then answered by a batch
// without rows, and the next one is read only when that answer went out: what was sent before the answer belongs to the old position.
#include "base/mem.h"
#include "flight/flight_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct exchange {
    struct flight_scan scan;
    struct flight_server *server;
    struct rpc_call *call;
    uint32_t subscription_count;
    bool begun;
};

static enum mink_code subscribe(struct exchange *x, struct exchange_command *command, struct error *e) {
    struct node_table *table = NULL;
    MINK_TRY(flight_find_table(x->server, &command->shape.table, &table, e));
    const struct subscription *first = &command->subscriptions[0];
    struct ticket t = command->shape;
    t.partition = first->partition;
    t.bucket = first->bucket;
    t.from = first->from;
    t.from_value = first->from_value;
    t.until = UNTIL_NEVER;
    enum mink_code code = flight_check_ticket(&t, node_table_def(table), shard_wall_ms(rpc_call_shard(x->call)), e);
    if (code != MINK_OK) {
        node_table_unref(table);
        return code;
    }
    MINK_TRY(flight_scan_begin(&x->scan, x->server, x->call, table, &t, e));
    x->begun = true;
    x->subscription_count = command->subscription_count;
    for (uint32_t i = 1; i < command->subscription_count; i++) {
        const struct subscription *s = &command->subscriptions[i];
        MINK_TRY(node_scan_add(x->scan.scan, s->partition, s->bucket, flight_node_from(s->from), s->from_value, e));
    }
    return MINK_OK;
}

static enum mink_code begin(struct exchange *x, struct flight_data *d, struct error *e) {
    if (!d->has_descriptor) return error_set(e, MINK_INVALID, "NO_DESCRIPTOR", "the first message of a DoExchange must carry a descriptor");
    struct flight_descriptor descriptor;
    MINK_TRY(flight_descriptor_decode(d->descriptor, &descriptor, e));
    enum mink_code code;
    struct exchange_command command;
    if (descriptor.type != FLIGHT_DESCRIPTOR_CMD) {
        code = error_set(e, MINK_INVALID, "BAD_DESCRIPTOR", "DoExchange needs a command");
        error_hint(e, "{\"subscribe\":[{\"table\":\"db.t\",\"bucket\":0,\"from\":\"earliest\"}]}");
    } else if (descriptor.cmd.size && descriptor.cmd.data[0] == 0x0a) {
        code = flight_sql_refused(e);
    } else if ((code = exchange_command_parse(descriptor.cmd.data, descriptor.cmd.size, &command, e)) == MINK_OK) {
        code = subscribe(x, &command, e);
        exchange_command_deinit(&command);
    }
    flight_descriptor_deinit(&descriptor);
    return code;
}

static enum mink_code apply_target(struct exchange *x, enum control_kind kind, const struct subscription *t, struct error *e) {
    struct node_scan *scan = x->scan.scan;
    switch (kind) {
    case CONTROL_SEEK:
        MINK_TRY(node_scan_seek(scan, t->partition, t->bucket, (uint64_t)t->from_value, e));
        flight_scan_drop_pending(&x->scan, t->partition, t->bucket);
        return MINK_OK;
    case CONTROL_PAUSE: MINK_TRY(flight_scan_rewind(&x->scan, t->partition, t->bucket, e)); return node_scan_pause(scan, t->partition, t->bucket, true, e);
    case CONTROL_RESUME: return node_scan_pause(scan, t->partition, t->bucket, false, e);
    case CONTROL_ADD:
        if (x->subscription_count >= SUBSCRIPTIONS_MAX)
            return error_set(e, MINK_INVALID, "TOO_MANY_SUBSCRIPTIONS", "a stream holds at most %d subscriptions", SUBSCRIPTIONS_MAX);
        MINK_TRY(node_scan_add(scan, t->partition, t->bucket, flight_node_from(t->from), t->from_value, e));
        x->subscription_count++;
        return MINK_OK;
    case CONTROL_REMOVE:
        MINK_TRY(node_scan_remove(scan, t->partition, t->bucket, e));
        flight_scan_drop_pending(&x->scan, t->partition, t->bucket);
        if (x->subscription_count) x->subscription_count--;
        return MINK_OK;
    default: return MINK_OK;
    }
}

static char *reply_text(const struct control *c) {
    struct buffer b;
    buffer_init(&b, 8192);
    struct json_writer w;
    json_begin(&w, &b);
    json_object_begin(&w);
    json_put_key(&w, "ok");
    json_put_string(&w, control_name(c->kind));
    if (c->id) {
        json_put_key(&w, "id");
        if (json_type(c->id) == JSON_INT) json_put_int(&w, json_int(c->id));
        else if (json_text(c->id)) json_put_string(&w, json_text(c->id));
        else json_put_null(&w);
    }
    json_object_end(&w);
    char *text = mem_strndup(buffer_string(&b), b.size);
    buffer_deinit(&b);
    return text;
}

static enum mink_code control(struct exchange *x, struct slice json, struct error *e) {
    struct control c;
    MINK_TRY(control_parse(json.data, json.size, &c, e));
    enum mink_code code = MINK_OK;
    for (uint32_t i = 0; i < c.target_count && code == MINK_OK; i++) code = apply_target(x, c.kind, &c.targets[i], e);
    if (code == MINK_OK) {
        if (c.kind == CONTROL_CREDIT) {
            x->scan.credit_used = true;
            if (__builtin_add_overflow(x->scan.credit, (int64_t)c.credit, &x->scan.credit)) x->scan.credit = INT64_MAX;
        }
        flight_scan_reply(&x->scan, reply_text(&c));
    }
    control_deinit(&c);
    return code;
}

static void on_replied(struct flight_scan *scan) { rpc_call_receive(scan->call); }

static void on_message(struct rpc_call *c, const struct slices *message) {
    struct exchange *x = rpc_call_state(c);
    struct error e;
    if (message == NULL) {
        if (x->begun) return; // the client only listens from now on
        error_set(&e, MINK_INVALID, "NO_DESCRIPTOR", "the stream ended before its first message");
        flight_finish(c, &e, NULL);
        return;
    }
    struct flight_data d;
    enum mink_code code = flight_data_parse(message, NULL, &d, &e);
    bool replied = false;
    if (code == MINK_OK && !x->begun) {
        code = begin(x, &d, &e);
    } else if (code == MINK_OK && d.app_metadata.size) {
        code = control(x, d.app_metadata, &e);
        replied = true;
    }
    flight_data_deinit(&d);
    if (code != MINK_OK) {
        if (x->begun) flight_scan_fail(&x->scan, &e);
        else flight_finish(c, &e, NULL);
    } else if (!replied) {
        rpc_call_receive(c);
    }
}

static void on_sent(struct rpc_call *c) { flight_scan_sent(&((struct exchange *)rpc_call_state(c))->scan); }

static void on_cancelled(struct rpc_call *c) {
    struct exchange *x = rpc_call_state(c);
    if (x->begun) {
        flight_scan_cancel(&x->scan);
        return;
    }
    struct error e;
    error_set(&e, MINK_CANCELLED, "CANCELLED", "the client cancelled the call");
    flight_finish(c, &e, NULL);
}

static void on_drain(struct rpc_call *c) {
    struct exchange *x = rpc_call_state(c);
    if (x->begun) flight_scan_drain(&x->scan);
}

static void on_closed(struct rpc_call *c) {
    struct exchange *x = rpc_call_state(c);
    struct flight_server *s = x->server;
    flight_scan_deinit(&x->scan);
    mem_free(x);
    flight_server_release(s);
}

static const struct rpc_call_ops ops = {on_message, on_sent, on_cancelled, on_drain, on_closed};

void flight_do_exchange(void *server, struct rpc_call *c) {
    struct exchange *x = mem_new(struct exchange);
    x->server = server;
    x->call = c;
    x->scan.on_replied = on_replied;
    flight_server_hold(x->server);
    rpc_call_accept(c, &ops, x, NULL, 0);
    rpc_call_receive(c);
}
