// SPDX-License-Identifier: Apache-2.0
// mem.h: the process's allocator.
//
// What      Allocation that cannot fail. A node has nothing to lose: when the system has no memory left, the
//           process says so and ends, which is the same as kill -9 and as safe. A size that came from outside
//           is checked against its limit before it gets here (and mem_try_alloc is there for the large ones).
// Owner     Any thread.
// Bounds    Bytes in use are counted; mem_bytes_in_use() is a metric.
#ifndef MINK_BASE_MEM_H
#define MINK_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t size);                  // uninitialised; aligned for any scalar
void *mem_zalloc(size_t size);                 // zeroed
void *mem_realloc(void *p, size_t size);       // p may be NULL
void *mem_try_alloc(size_t size, size_t align); // NULL on failure; align a power of two >= 8; mem_free
void  mem_free(void *p);                       // NULL is fine
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n);    // always terminated
char *mem_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define mem_new(type) ((type *)mem_zalloc(sizeof(type)))
#define mem_new_array(type, n) ((type *)mem_zalloc_array((n), sizeof(type)))
void *mem_zalloc_array(size_t n, size_t size); // overflow ends the process

// Ends the process with a message. For our own mistakes only, never for bytes from outside.
_Noreturn void mink_panic(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Stays on in release builds: state is decided here, and going on would be worse than stopping.
#define mink_assert(condition)                                                                    \
    ((condition) ? (void)0 : mink_panic(__FILE__, __LINE__, "assertion failed: %s", #condition))

#endif
