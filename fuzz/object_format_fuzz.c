// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a stored object: header, footer, index, blocks, as the walk of a takeover and a cold read take them. Also with the
// checksums put right, so that what lies behind them is reached.
#include "base/crc32c.h"
#include "base/mem.h"
#include "stream/object_format.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_object(struct slice s) {
    struct object_header h;
    struct object_footer f;
    struct object_block *blocks;
    struct error e;
    if (object_header_decode(s, &h, &e) != MINK_OK && e.code == MINK_OK) __builtin_trap();
    if (s.size < OBJECT_FOOTER_SIZE || object_footer_decode(slice_view(s, s.size - OBJECT_FOOTER_SIZE, OBJECT_FOOTER_SIZE), &f, &e) != MINK_OK) return;
    if (f.object_size != s.size) return;
    if (object_index_decode(slice_view(s, f.index_position, f.index_size), &f, &blocks, &e) != MINK_OK) return;
    for (uint32_t i = 0; i < f.block_count; i++) // the index promises that blocks lie inside
        if (object_block_check(slice_view(s, blocks[i].position, object_block_stored_size(&blocks[i])), &blocks[i], &e) != MINK_OK && e.code == MINK_OK)
            __builtin_trap();
    mem_free(blocks);
}

static void put32(uint8_t *at, uint32_t v) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(v >> (8 * i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_object(slice_borrow(data, size));
    if (size < OBJECT_HEADER_SIZE + OBJECT_FOOTER_SIZE) return 0;
    uint8_t *copy;
    struct slice s = slice_new(size, &copy);
    memcpy(copy, data, size);
    uint8_t *footer = copy + size - OBJECT_FOOTER_SIZE;
    uint64_t index_position, index_size;
    memcpy(&index_position, footer, 8);
    memcpy(&index_size, footer + 8, 8);
    put32(copy + 124, crc32c(copy, 124));
    if (index_position <= size && index_size <= size - index_position) put32(footer + 20, crc32c(copy + index_position, index_size));
    put32(footer + 56, crc32c(footer, 56));
    read_object(s);
    slice_unref(&s);
    struct catalog_object_id id;
    char *key = mem_strndup((const char *)data, size < 200 ? size : 200);
    object_key_parse(key, &id);
    mem_free(key);
    return 0;
}
