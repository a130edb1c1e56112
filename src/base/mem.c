// SPDX-License-Identifier: Apache-2.0
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void mink_panic(const char *file, int line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "mink: fatal: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, " (%s:%d)\n", file, line);
    va_end(args);
    abort();
}

static void *checked(void *p, size_t size) {
    if (p == NULL && size != 0) mink_panic(__FILE__, __LINE__, "out of memory: %zu bytes", size);
    return p;
}

void *mem_alloc(size_t size) { return checked(malloc(size ? size : 1), size); }
void *mem_zalloc(size_t size) { return checked(calloc(1, size ? size : 1), size); }
void *mem_realloc(void *p, size_t size) { return checked(realloc(p, size ? size : 1), size); }
void mem_free(void *p) { free(p); }

void *mem_zalloc_array(size_t n, size_t size) {
    size_t total;
    if (__builtin_mul_overflow(n, size, &total)) mink_panic(__FILE__, __LINE__, "array of %zu × %zu bytes", n, size);
    return mem_zalloc(total);
}

void *mem_try_alloc(size_t size, size_t align) {
    void *p = NULL;
    return posix_memalign(&p, align, size ? size : 1) == 0 ? p : NULL;
}

char *mem_strndup(const char *s, size_t n) {
    size_t size = strnlen(s, n);
    char *copy = mem_alloc(size + 1);
    memcpy(copy, s, size);
    copy[size] = 0;
    return copy;
}

char *mem_strdup(const char *s) { return mem_strndup(s, SIZE_MAX); }

char *mem_printf(const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = NULL;
    int size = vasprintf(&text, format, args);
    va_end(args);
    if (size < 0) mink_panic(__FILE__, __LINE__, "out of memory: formatted text");
    return text;
}
