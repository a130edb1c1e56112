// SPDX-License-Identifier: Apache-2.0
// console.h: the HTTP port of a node: /metrics, /healthz, /readyz, and / which names them.
//
// Owner     Any thread. Answers are computed on the port's own thread, from what any thread may read.
#ifndef MINK_CONSOLE_CONSOLE_H
#define MINK_CONSOLE_CONSOLE_H

#include "node/node.h"

struct console_config {
    struct node *node;   // outlives the console
    const char *address; // "127.0.0.1:8080"; port 0 takes a free one
};
struct console;
// UNAVAILABLE [ADDRESS_IN_USE], INVALID [BAD_ADDRESS].
enum mink_code console_open(const struct console_config *config, struct console **out, struct error *e) MINK_MUST_CHECK;
int console_port(const struct console *c);
void console_close(struct console *c); // frees

#endif
