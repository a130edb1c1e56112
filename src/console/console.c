// SPDX-License-Identifier: Apache-2.0
#include "console/console.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "net/http.h"

struct console {
    struct node *node;
    struct http_server *http;
};

static void answer_metrics(void *ctx, struct http_answer *a) {
    a->content_type = "text/plain; version=0.0.4; charset=utf-8";
    buffer_put_string(&a->body, "# HELP mink_build_info the version that runs\n# TYPE mink_build_info gauge\nmink_build_info{version=\"" MINK_VERSION "\"} 1\n");
    metrics_write(&a->body);
}

// The process answers: whether it can serve is what /readyz tells.
static void answer_health(void *ctx, struct http_answer *a) { buffer_put_string(&a->body, "{\"status\":\"ok\",\"version\":\"" MINK_VERSION "\"}\n"); }

static void answer_ready(void *ctx, struct http_answer *a) {
    struct console *c = ctx;
    struct json_writer w;
    struct error why = {0};
    bool ready = node_ready(c->node, &why);
    a->status = ready ? 200 : 503;
    json_begin(&w, &a->body);
    json_object_begin(&w);
    json_put_key(&w, "ready");
    json_put_bool(&w, ready);
    if (!ready) {
        json_put_key(&w, "code");
        json_put_string(&w, why.reason);
        json_put_key(&w, "message");
        json_put_string(&w, why.message);
    }
    json_object_end(&w);
    buffer_put_u8(&a->body, '\n');
}

// For whoever opens the port in a browser.
static void answer_index(void *ctx, struct http_answer *a) {
    a->content_type = "text/plain; charset=utf-8";
    buffer_put_string(&a->body, "Mink " MINK_VERSION "\n\n"
                                "/metrics   figures in the Prometheus text format\n"
                                "/healthz   200 while the process runs\n"
                                "/readyz    200 when it serves, else 503 with the reason\n");
}

static const struct http_route routes[] = {{"/", answer_index}, {"/metrics", answer_metrics}, {"/healthz", answer_health}, {"/readyz", answer_ready}};

enum mink_code console_open(const struct console_config *config, struct console **out, struct error *e) {
    struct console *c = mem_new(struct console);
    c->node = config->node;
    struct http_server_config http = {.address = config->address, .routes = routes, .route_count = sizeof routes / sizeof routes[0], .ctx = c};
    enum mink_code code = http_server_open(&http, &c->http, e);
    if (code != MINK_OK) {
        error_context(e, "HTTP port");
        mem_free(c);
        return code;
    }
    *out = c;
    return MINK_OK;
}

int console_port(const struct console *c) { return http_server_port(c->http); }

void console_close(struct console *c) {
    http_server_close(c->http);
    mem_free(c);
}
