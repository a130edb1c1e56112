// SPDX-License-Identifier: Apache-2.0
// listen.h: a listening TCP socket, or the reason why there is none.
#ifndef MINK_NET_LISTEN_H
#define MINK_NET_LISTEN_H

#include "base/error.h"

// address: "127.0.0.1:8080", "localhost:0", "[::1]:8080", ":8080" (every address); port 0 takes a free one. *out_port may be NULL.
// UNAVAILABLE [ADDRESS_IN_USE], INVALID [BAD_ADDRESS]: both name the address. The caller closes *out_fd.
enum mink_code listen_open(const char *address, int *out_fd, int *out_port, struct error *e) MINK_MUST_CHECK;

#endif
