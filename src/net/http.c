// SPDX-License-Identifier: Apache-2.0
// libmicrohttpd does the protocol on a thread of its own; without connections that thread sleeps in epoll without a time-out, so an idle
// server costs nothing.
//
// A request comes as several calls of on_request: one with the headers, one for each piece of a body, and a last one, in which we answer. To
// answer earlier would make the library close the connection.
#include "net/http.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/listen.h"

#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct http_server {
    struct http_server_config config;
    struct MHD_Daemon *daemon;
    int port;
};

static void answer_error(struct http_answer *a, unsigned status, const char *code, const char *message, const char *hint) {
    struct json_writer w;
    a->status = status;
    a->content_type = "application/json";
    buffer_reset(&a->body);
    json_begin(&w, &a->body);
    json_object_begin(&w);
    json_put_key(&w, "error");
    json_object_begin(&w);
    json_put_key(&w, "code");
    json_put_string(&w, code);
    json_put_key(&w, "message");
    json_put_string(&w, message);
    json_put_key(&w, "hint");
    json_put_string(&w, hint);
    json_object_end(&w);
    json_object_end(&w);
    buffer_put_u8(&a->body, '\n');
}

static void answer_not_found(const struct http_server *s, struct http_answer *a, const char *path) {
    char message[300], hint[300];
    size_t at = 0;
    snprintf(message, sizeof message, "there is nothing at %s", path);
    for (uint32_t i = 0; i < s->config.route_count && at < sizeof hint; i++)
        at += (size_t)snprintf(hint + at, sizeof hint - at, "%s%s", i ? ", " : "known: ", s->config.routes[i].path);
    answer_error(a, MHD_HTTP_NOT_FOUND, "NOT_FOUND", message, at ? hint : "");
}

static void answer(const struct http_server *s, struct http_answer *a, const char *method, const char *path) {
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        char message[100];
        snprintf(message, sizeof message, "%.40s is not a method of this port", method);
        answer_error(a, MHD_HTTP_METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message, "GET or HEAD");
        return;
    }
    for (uint32_t i = 0; i < s->config.route_count; i++) {
        if (strcmp(s->config.routes[i].path, path) != 0) continue;
        s->config.routes[i].answer(s->config.ctx, a);
        if (a->body.overflowed) answer_error(a, MHD_HTTP_INTERNAL_SERVER_ERROR, "ANSWER_TOO_LARGE", "the answer is larger than this port sends", "");
        return;
    }
    answer_not_found(s, a, path);
}

static enum MHD_Result send_answer(struct MHD_Connection *connection, struct http_answer *take_answer) {
    size_t size = take_answer->body.size;
    buffer_string(&take_answer->body);
    struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback(size, take_answer->body.data, mem_free);
    if (!response) {
        buffer_deinit(&take_answer->body);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, take_answer->content_type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (take_answer->status == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result queued = MHD_queue_response(connection, take_answer->status, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path, const char *method, const char *version,
                                  const char *upload, size_t *upload_size, void **request) {
    static char seen; // its address marks a request whose headers have come
    if (*request == NULL) {
        *request = &seen;
        return MHD_YES;
    }
    if (*upload_size > 0) {
        *upload_size = 0;
        return MHD_YES;
    }
    struct http_answer a = {.status = MHD_HTTP_OK, .content_type = "application/json"};
    buffer_init(&a.body, HTTP_BODY_MAX);
    answer(ctx, &a, method, path);
    return send_answer(connection, &a);
}

static void on_log(void *ctx, const char *format, va_list args) {
    char text[500];
    vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = 0;
    log_debug("http", "message=\"%s\"", text);
}

enum mink_code http_server_open(const struct http_server_config *config, struct http_server **out, struct error *e) {
    int fd, port;
    MINK_TRY(listen_open(config->address, &fd, &port, e));
    struct http_server *s = mem_new(struct http_server);
    s->config = *config;
    s->port = port;
    unsigned connections_max = config->connections_max ? config->connections_max : 64;
    s->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, s,
                                 MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, // first: it is told what the other options say
                                 MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, connections_max, MHD_OPTION_CONNECTION_TIMEOUT, 10u,
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(32 << 10), MHD_OPTION_END);
    if (!s->daemon) {
        mem_free(s);
        return error_set(e, MINK_INTERNAL, "HTTP", "the HTTP server on %s did not start", config->address);
    }
    *out = s;
    return MINK_OK;
}

int http_server_port(const struct http_server *s) { return s->port; }

void http_server_close(struct http_server *s) {
    MHD_stop_daemon(s->daemon); // closes the listening socket, too
    mem_free(s);
}
