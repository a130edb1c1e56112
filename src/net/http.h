// SPDX-License-Identifier: Apache-2.0
// http.h: a small HTTP/1.1 server for pages that are computed at once: metrics, health, the console.
//
// What      A table of paths, each with a function that fills in the answer. GET and HEAD only; everything else, and every error, is
//           answered with one JSON object {"error":{"code","message","hint"}}.
// Flow      client → [the server's thread] → route.answer → client.
// Owner     open and close: any thread. route.answer: the server's own thread, one call at a time.
// Bounds    connections_max; beyond it connections wait in the kernel's backlog. 10 s idle or slow, 32 KiB of request; bodies are
//           read and forgotten; answers up to HTTP_BODY_MAX.
#ifndef MINK_NET_HTTP_H
#define MINK_NET_HTTP_H

#include "base/buffer.h"
#include "base/error.h"

#define HTTP_BODY_MAX (16u << 20)

struct http_answer {
    unsigned status;          // 200 unless the route says otherwise
    const char *content_type; // static; "application/json" unless the route says otherwise
    struct buffer body;
};

struct http_route {
    const char *path; // exact, without the query
    void (*answer)(void *ctx, struct http_answer *a);
};

struct http_server_config {
    const char *address;             // as of listen_open
    const struct http_route *routes; // live as long as the server
    uint32_t route_count;
    void *ctx;                       // given to every route
    uint32_t connections_max;        // [64]
};

struct http_server;
// UNAVAILABLE [ADDRESS_IN_USE], INVALID [BAD_ADDRESS].
enum mink_code http_server_open(const struct http_server_config *config, struct http_server **out, struct error *e) MINK_MUST_CHECK;
int http_server_port(const struct http_server *s);
void http_server_close(struct http_server *s); // waits for a running answer, then ends all connections; frees

#endif
