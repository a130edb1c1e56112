// SPDX-License-Identifier: Apache-2.0
// object_format.h: the one format of WAL, seal, set and stream objects. Pure.
//
//   header 128 B  0 magic u64 "MINKOBJ1"  8 version u16  10 kind u16  12 header_size u32  16 cluster id 16 B  32 creator u64  40 subject u64
//                 (WAL, seal: the incarnation of the key; else the object's number)  48 seq u64  56 content id 16 B  72 created_ms i64
//                 80 acked_end u64  88 wal_committed u64  96 zeros 28 B  124 crc32c of 0..123
//   block   64 B  0 stream u64  8 offset_first u64  16 offset_end u64  24 ts_min i64  32 ts_max i64  40 epoch u32  44 batches u32
//                 48 payload_size u32  52 payload_crc32c u32  56 flags u32 = 0  60 crc32c of 0..59; then the payload; zeros to a multiple of 8
//   index   64 B  a block: 0 stream  8 offset_first  16 offset_end  24 ts_min  32 ts_max  40 position u64  48 epoch u32  52 batches u32
//                 56 payload_size u32  60 payload_crc32c u32; sorted by (stream, offset_first)
//   footer  64 B  0 index_position u64  8 index_size u64  16 block_count u32  20 index_crc32c u32  24 content id 16 B  40 object_size u64
//                 48 version u16  50 kind u16  52 zeros u32  56 crc32c of 0..55 u32  60 magic u32 "KNIM"
// Little-endian. A reader opens any object from its last bytes. Limits: payload 64 MiB + 64 KiB, index 64 MiB.
#ifndef MINK_STREAM_OBJECT_FORMAT_H
#define MINK_STREAM_OBJECT_FORMAT_H

#include "base/error.h"
#include "base/slice.h"
#include "meta/catalog.h"

#define OBJECT_HEADER_SIZE 128
#define OBJECT_BLOCK_HEADER_SIZE 64
#define OBJECT_INDEX_ENTRY_SIZE 64
#define OBJECT_FOOTER_SIZE 64
#define OBJECT_PAYLOAD_MAX ((64u << 20) + (64u << 10))
#define OBJECT_INDEX_MAX (64u << 20)
#define OBJECT_KEY_TEXT 64 // bytes a key of ours takes at most

struct object_header {
    enum object_kind kind;
    uint8_t cluster_id[16], content_id[16];
    uint64_t creator, subject, seq;
    int64_t created_ms;
    uint64_t acked_end, wal_committed;
};
struct object_block {
    uint64_t stream, offset_first, offset_end;
    int64_t ts_min, ts_max;
    uint64_t position; // of the block's header in the object
    uint32_t epoch, batches, payload_size, payload_crc32c;
};

// Builds an object as slices without joining: begin, add blocks in index order, finish.
struct object_writer {
    struct object_header header;
    struct slices body;
    uint32_t crc32c; // of the body so far
    struct object_block *blocks;
    uint32_t block_count, block_capacity;
    uint64_t index_size; // after finish
};
void object_writer_begin(struct object_writer *w, const struct object_header *header);
// References the payload's slices. block->position is set here.
void object_writer_add(struct object_writer *w, const struct object_block *block, const struct slices *payload, uint32_t payload_count_from, uint32_t payload_count);
void object_writer_finish(struct object_writer *w); // body and crc32c are complete
void object_writer_deinit(struct object_writer *w);

// All give CORRUPT with what and where.
enum mink_code object_header_decode(struct slice bytes, struct object_header *out, struct error *e) MINK_MUST_CHECK;
struct object_footer { uint64_t index_position, index_size, object_size; uint32_t block_count, index_crc32c; uint8_t content_id[16]; enum object_kind kind; };
enum mink_code object_footer_decode(struct slice last_64, struct object_footer *out, struct error *e) MINK_MUST_CHECK;
// index: exactly footer.index_size bytes. blocks: mem_free'd by the caller.
enum mink_code object_index_decode(struct slice index, const struct object_footer *footer, struct object_block **blocks, struct error *e) MINK_MUST_CHECK;
// bytes: the block's header and payload as stored. Checks both CRCs and that it is the block of the index.
enum mink_code object_block_check(struct slice bytes, const struct object_block *expected, struct error *e) MINK_MUST_CHECK;
static inline uint64_t object_block_stored_size(const struct object_block *b) { return OBJECT_BLOCK_HEADER_SIZE + b->payload_size; }

void object_key_wal(uint64_t incarnation, uint64_t seq, char *out, size_t size);
void object_key_wal_prefix(uint64_t incarnation, char *out, size_t size); // "wal/3f/000000000a/"
void object_key(struct catalog_object_id id, char *out, size_t size);
bool object_key_parse(const char *key, struct catalog_object_id *out); // wal/… and obj/…; kind of obj is SET

#endif
