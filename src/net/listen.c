// SPDX-License-Identifier: Apache-2.0
#include "net/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 128

static bool port_is_number(const char *port) {
    char *end;
    unsigned long v = strtoul(port, &end, 10);
    return port[0] >= '0' && port[0] <= '9' && *end == 0 && v <= 65535;
}

// What getaddrinfo found: a socket that listens, or -1 and errno.
static int open_one(const struct addrinfo *found) {
    int one = 1, fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
    if (fd < 0) return -1;
    // Lets a restart have the port while old connections linger. A second listener is refused all the same.
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

static int port_of(int fd) {
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    if (getsockname(fd, (struct sockaddr *)&name, &size) != 0) return 0;
    return ntohs(name.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&name)->sin6_port : ((struct sockaddr_in *)&name)->sin_port);
}

enum mink_code listen_open(const char *address, int *out_fd, int *out_port, struct error *e) {
    const char *colon = strrchr(address, ':');
    char host[256] = "";
    if (!colon || !port_is_number(colon + 1) || colon - address >= (long)sizeof host) {
        error_set(e, MINK_INVALID, "BAD_ADDRESS", "listen on %s: not of the form host:port", address);
        error_hint(e, "127.0.0.1:8080, [::1]:8080, or :8080 for every address; port 0 takes a free one");
        return MINK_INVALID;
    }
    snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
    size_t size = strlen(host);
    if (size >= 2 && host[0] == '[' && host[size - 1] == ']') {
        memmove(host, host + 1, size - 2);
        host[size - 2] = 0;
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
    int failed = getaddrinfo(host[0] ? host : NULL, colon + 1, &hints, &found);
    if (failed) return error_set(e, MINK_INVALID, "BAD_ADDRESS", "listen on %s: %s", address, gai_strerror(failed));
    int fd = open_one(found), reason = errno;
    freeaddrinfo(found);
    if (fd < 0 && reason == EADDRINUSE) {
        error_set(e, MINK_UNAVAILABLE, "ADDRESS_IN_USE", "listen on %s: %s", address, strerror(reason));
        error_hint(e, "another server has this port: stop it or choose another port");
        return MINK_UNAVAILABLE;
    }
    if (fd < 0) return error_set(e, MINK_INVALID, "BAD_ADDRESS", "listen on %s: %s", address, strerror(reason));
    *out_fd = fd;
    if (out_port) *out_port = port_of(fd);
    return MINK_OK;
}
