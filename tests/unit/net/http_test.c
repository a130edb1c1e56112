// SPDX-License-Identifier: Apache-2.0
// The HTTP port over raw sockets: what a client sends and gets is spelled out.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "net/http.h"
#include "net/listen.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char world[] = "world";
static atomic_uint answered;

static void answer_hello(void *ctx, struct http_answer *a) {
    atomic_fetch_add(&answered, 1);
    a->content_type = "text/plain";
    buffer_printf(&a->body, "hello %s", (const char *)ctx);
}

static void answer_busy(void *ctx, struct http_answer *a) {
    a->status = 503;
    buffer_put_string(&a->body, "{}");
}

static void answer_nothing(void *ctx, struct http_answer *a) {}
static void answer_too_much(void *ctx, struct http_answer *a) { buffer_put_zeros(&a->body, HTTP_BODY_MAX + 1); }

static const struct http_route routes[] = {{"/hello", answer_hello}, {"/busy", answer_busy}, {"/nothing", answer_nothing}, {"/too/much", answer_too_much}};

static struct http_server *open_server(uint32_t connections_max) {
    struct http_server *s = NULL;
    struct error e = {0};
    struct http_server_config config = {.address = "127.0.0.1:0", .routes = routes, .route_count = 4, .ctx = world, .connections_max = connections_max};
    if (http_server_open(&config, &s, &e) != MINK_OK) fail_msg("%s", e.message);
    assert_true(http_server_port(s) > 0);
    return s;
}

static int dial(const struct http_server *s) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)http_server_port(s)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void say(int fd, const char *text) { assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text)); }

// Reads until the text ends with `end`, or the server closes (end NULL). The caller frees.
static char *hear(int fd, const char *end) {
    size_t size = 0, capacity = 1 << 16;
    char *text = mem_alloc(capacity);
    for (;;) {
        ssize_t n = recv(fd, text + size, capacity - size - 1, 0);
        assert_true(n >= 0);
        size += (size_t)n;
        text[size] = 0;
        if (end && size >= strlen(end) && strcmp(text + size - strlen(end), end) == 0) return text;
        if (n == 0) {
            if (end) fail_msg("the server closed after: %s", text);
            return text;
        }
        assert_true(size + 1 < capacity);
    }
}

// One request on a connection of its own.
static char *ask(const struct http_server *s, const char *request) {
    int fd = dial(s);
    say(fd, request);
    char *reply = hear(fd, NULL);
    close(fd);
    return reply;
}

#define TAIL " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

static void assert_begins(const char *text, const char *with) {
    if (strncmp(text, with, strlen(with)) != 0) fail_msg("expected %s, got: %s", with, text);
}

static void assert_holds(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("%s is not in: %s", part, text);
}

static const char *body_of(const char *reply) {
    const char *end = strstr(reply, "\r\n\r\n");
    assert_non_null(end);
    return end + 4;
}

static void a_route_answers_get(void **state) {
    struct http_server *s = open_server(0);
    char *reply = ask(s, "GET /hello" TAIL);
    assert_begins(reply, "HTTP/1.1 200 OK\r\n");
    assert_holds(reply, "Content-Type: text/plain\r\n");
    assert_holds(reply, "Content-Length: 11\r\n");
    assert_string_equal(body_of(reply), "hello world");
    mem_free(reply);
    reply = ask(s, "GET /hello?name=x" TAIL); // the query is not part of the path
    assert_string_equal(body_of(reply), "hello world");
    mem_free(reply);
    reply = ask(s, "GET /busy" TAIL);
    assert_begins(reply, "HTTP/1.1 503 ");
    assert_holds(reply, "Content-Type: application/json\r\n");
    mem_free(reply);
    reply = ask(s, "GET /nothing" TAIL);
    assert_begins(reply, "HTTP/1.1 200 OK\r\n");
    assert_string_equal(body_of(reply), "");
    mem_free(reply);
    http_server_close(s);
}

static void head_has_the_headers_of_get_and_no_body(void **state) {
    struct http_server *s = open_server(0);
    char *reply = ask(s, "HEAD /hello" TAIL);
    assert_begins(reply, "HTTP/1.1 200 OK\r\n");
    assert_holds(reply, "Content-Length: 11\r\n");
    assert_string_equal(body_of(reply), "");
    mem_free(reply);
    http_server_close(s);
}

static void an_error_is_one_json_object(void **state) {
    static const struct { const char *request, *status, *code, *message, *hint; } cases[] = {
        {"GET /helo" TAIL, "HTTP/1.1 404 ", "NOT_FOUND", "there is nothing at /helo", "known: /hello, /busy, /nothing, /too/much"},
        {"GET /%22%0a\\" TAIL, "HTTP/1.1 404 ", "NOT_FOUND", "there is nothing at /\"\n\\", "known: /hello, /busy, /nothing, /too/much"},
        {"DELETE /hello" TAIL, "HTTP/1.1 405 ", "METHOD_NOT_ALLOWED", "DELETE is not a method of this port", "GET or HEAD"},
        {"POST /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody", "HTTP/1.1 405 ", "METHOD_NOT_ALLOWED", "POST is not a method of this port", "GET or HEAD"},
        {"GET /too/much" TAIL, "HTTP/1.1 500 ", "ANSWER_TOO_LARGE", "the answer is larger than this port sends", ""}};
    struct http_server *s = open_server(0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *reply = ask(s, cases[i].request);
        assert_begins(reply, cases[i].status);
        assert_holds(reply, "Content-Type: application/json\r\n");
        if (strstr(cases[i].status, "405")) assert_holds(reply, "Allow: GET, HEAD\r\n");
        struct json *document = NULL;
        const char *body = body_of(reply);
        assert_int_equal(json_parse(body, strlen(body), &document, NULL), MINK_OK);
        const struct json *error = json_get(document, "error");
        assert_string_equal(json_text(json_get(error, "code")), cases[i].code);
        assert_string_equal(json_text(json_get(error, "message")), cases[i].message);
        assert_string_equal(json_text(json_get(error, "hint")), cases[i].hint);
        json_free(document);
        mem_free(reply);
    }
    http_server_close(s);
}

static void a_connection_takes_one_request_after_the_other(void **state) {
    struct http_server *s = open_server(0);
    int fd = dial(s);
    for (int i = 0; i < 3; i++) {
        say(fd, "GET /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab"); // a body is read and forgotten
        char *reply = hear(fd, "hello world");
        assert_begins(reply, "HTTP/1.1 200 OK\r\n");
        mem_free(reply);
    }
    close(fd);
    http_server_close(s);
}

static void garbage_is_refused_and_the_server_goes_on(void **state) {
    struct http_server *s = open_server(0);
    char *reply = ask(s, "\x16\x03\x01\x02 what\r\n\r\n\r\n");
    assert_null(strstr(reply, "200 OK"));
    mem_free(reply);
    char *long_request = mem_alloc(100001);
    memset(long_request, 'a', 100000);
    memcpy(long_request, "GET /", 5);
    long_request[100000] = 0;
    int fd = dial(s);
    (void)!send(fd, long_request, 100000, MSG_NOSIGNAL); // may be cut: the server stops reading
    char first[16] = "";
    ssize_t n = recv(fd, first, 12, 0); // refused by name, or cut off
    if (n == 12) assert_string_equal(first, "HTTP/1.1 414");
    close(fd);
    mem_free(long_request);
    reply = ask(s, "GET /hello" TAIL);
    assert_string_equal(body_of(reply), "hello world");
    mem_free(reply);
    http_server_close(s);
}

static void connections_beyond_the_limit_wait_for_a_place(void **state) {
    struct http_server *s = open_server(2);
    int first = dial(s), second = dial(s), third;
    say(first, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    mem_free(hear(first, "hello world"));
    say(second, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    mem_free(hear(second, "hello world"));
    unsigned before = atomic_load(&answered);
    third = dial(s);
    say(third, "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    // The two open connections are served, the third is not, although it asked first.
    say(first, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    mem_free(hear(first, "hello world"));
    assert_int_equal(atomic_load(&answered), before + 1);
    close(first);
    char *reply = hear(third, NULL);
    assert_string_equal(body_of(reply), "hello world");
    mem_free(reply);
    close(third);
    close(second);
    http_server_close(s);
}

static void close_ends_open_connections(void **state) {
    struct http_server *s = open_server(0);
    int fd = dial(s);
    say(fd, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    mem_free(hear(fd, "hello world"));
    http_server_close(s);
    char byte;
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    close(fd);
}

static void a_port_in_use_and_a_bad_address_are_named(void **state) {
    struct http_server *s = open_server(0), *other = NULL;
    struct error e;
    char address[40], expected[120];
    snprintf(address, sizeof address, "127.0.0.1:%d", http_server_port(s));
    struct http_server_config config = {.address = address, .routes = routes, .route_count = 1};
    assert_int_equal(http_server_open(&config, &other, &e), MINK_UNAVAILABLE);
    assert_string_equal(e.reason, "ADDRESS_IN_USE");
    snprintf(expected, sizeof expected, "listen on %s: Address already in use", address);
    assert_string_equal(e.message, expected);
    assert_string_equal(e.hint, "another server has this port: stop it or choose another port");
    http_server_close(s);

    // The port is free again at once, though connections to it lingered.
    assert_int_equal(http_server_open(&config, &other, &e), MINK_OK);
    http_server_close(other);

    static const char *const bad[] = {"8080", "localhost:", "localhost:http", "localhost:70000", "localhost:-1", "::1:x", ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        config.address = bad[i];
        assert_int_equal(http_server_open(&config, &other, &e), MINK_INVALID);
        assert_string_equal(e.reason, "BAD_ADDRESS");
        snprintf(expected, sizeof expected, "listen on %s: not of the form host:port", bad[i]);
        assert_string_equal(e.message, expected);
    }
    config.address = "no-such-host.invalid:0";
    assert_int_equal(http_server_open(&config, &other, &e), MINK_INVALID);
    assert_begins(e.message, "listen on no-such-host.invalid:0: ");
    config.address = "192.0.2.1:0"; // an address of documentation: no machine's own
    assert_int_equal(http_server_open(&config, &other, &e), MINK_INVALID);
    assert_string_equal(e.message, "listen on 192.0.2.1:0: Cannot assign requested address");
}

static void hosts_are_names_and_addresses(void **state) {
    static const char *const good[] = {"localhost:0", "0.0.0.0:0", ":0", "[127.0.0.1]:0"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int fd, port = 0;
        struct error e;
        if (listen_open(good[i], &fd, &port, &e) != MINK_OK) fail_msg("%s", e.message);
        assert_true(port > 0);
        close(fd);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_route_answers_get),
        cmocka_unit_test(head_has_the_headers_of_get_and_no_body),
        cmocka_unit_test(an_error_is_one_json_object),
        cmocka_unit_test(a_connection_takes_one_request_after_the_other),
        cmocka_unit_test(garbage_is_refused_and_the_server_goes_on),
        cmocka_unit_test(connections_beyond_the_limit_wait_for_a_place),
        cmocka_unit_test(close_ends_open_connections),
        cmocka_unit_test(a_port_in_use_and_a_bad_address_are_named),
        cmocka_unit_test(hosts_are_names_and_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
