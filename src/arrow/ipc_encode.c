// SPDX-License-Identifier: Apache-2.0
// Record batches and schemas out. The message is written by hand, since its shape is always the same; the body stays a list of slices.
#include "arrow/ipc.h"

#include "arrow/ipc_internal.h"
#include "base/mem.h"

#include <nanoarrow/nanoarrow.h>
#include <nanoarrow/nanoarrow_ipc.h>

#define BODY_ALIGN 64

static void put(uint8_t *p, uint32_t at, uint64_t v, uint32_t width) { memcpy(p + at, &v, width); }

// Layout, 8-aligned positions (a flatbuffer's offsets point forward, a vtable lies in front of its table):
//     0 root → 16     4 vtable of Message (version, header_type, header, bodyLength)      16 Message
//    36 vtable of RecordBatch (length, nodes, buffers, compression)                       48 RecordBatch
//    72 vtable of BodyCompression, 80 BodyCompression: only when compressed
//     n nodes: count at n + 4, structs from n + 8;  b buffers likewise.
uint32_t ipc_record_size(uint32_t node_count, uint32_t buffer_count, enum codec codec) {
    return (codec == CODEC_NONE ? 72 : 88) + 8 + 16 * node_count + 8 + 16 * buffer_count;
}

struct slice ipc_write_record(int64_t row_count, const struct ipc_node *nodes, uint32_t node_count, const struct ipc_range *buffers, uint32_t buffer_count, enum codec codec, uint64_t body_size) {
    uint32_t n = codec == CODEC_NONE ? 72 : 88, b = n + 8 + 16 * node_count, size = ipc_record_size(node_count, buffer_count, codec);
    uint8_t *p;
    struct slice message = slice_new(size, &p);
    memset(p, 0, size);
    put(p, 0, 16, 4);
    static const uint16_t message_vtable[6] = {12, 20, 16, 18, 4, 8};
    memcpy(p + 4, message_vtable, sizeof message_vtable);
    put(p, 16, 12, 4);
    put(p, 20, 48 - 20, 4);
    put(p, 24, body_size, 8);
    put(p, 32, 4, 2); // V5
    put(p, 34, 3, 1); // RecordBatch
    uint16_t record_vtable[6] = {12, 24, 8, 4, 16, codec == CODEC_NONE ? 0 : 20};
    memcpy(p + 36, record_vtable, sizeof record_vtable);
    put(p, 48, 12, 4);
    put(p, 52, n + 4 - 52, 4);
    put(p, 56, (uint64_t)row_count, 8);
    put(p, 64, b + 4 - 64, 4);
    if (codec != CODEC_NONE) {
        static const uint16_t compression_vtable[4] = {8, 8, 4, 5};
        put(p, 68, 80 - 68, 4);
        memcpy(p + 72, compression_vtable, sizeof compression_vtable);
        put(p, 80, 8, 4);
        put(p, 84, codec == CODEC_ZSTD, 1);
    }
    put(p, n + 4, node_count, 4);
    for (uint32_t i = 0; i < node_count; i++) {
        put(p, n + 8 + 16 * i, (uint64_t)nodes[i].length, 8);
        put(p, n + 16 + 16 * i, (uint64_t)nodes[i].null_count, 8);
    }
    put(p, b + 4, buffer_count, 4);
    for (uint32_t i = 0; i < buffer_count; i++) {
        put(p, b + 8 + 16 * i, (uint64_t)buffers[i].offset, 8);
        put(p, b + 16 + 16 * i, (uint64_t)buffers[i].length, 8);
    }
    return message;
}

struct encoder {
    struct ipc_node *nodes;
    struct ipc_range *buffers;
    uint32_t node_count, buffer_count;
    enum codec codec;
    int level;
    struct slices *body;
    struct error *e;
};

static void count_parts(const struct arrow_field *f, uint32_t *nodes, uint32_t *buffers) {
    *nodes += 1;
    *buffers += arrow_field_buffer_count(f);
    for (uint32_t i = 0; i < f->child_count; i++) count_parts(&f->children[i], nodes, buffers);
}

static void pad(struct slices *body, size_t to) {
    size_t gap = align_up(body->bytes, to) - body->bytes;
    if (gap) slices_take(body, slice_borrow(arrow_zeros, gap));
}

// int64 uncompressed length, then the bytes; -1 and the bytes as they are when compression does not pay.
static enum mink_code compress_buffer(struct encoder *enc, struct slice in, struct slice *out) {
    size_t bound = compress_bound(enc->codec, in.size), size;
    uint8_t *data;
    struct slice packed = slice_new(8 + (bound > in.size ? bound : in.size), &data);
    enum mink_code code = compress_into(enc->codec, enc->level, in.data, in.size, data + 8, packed.size - 8, &size, enc->e);
    if (code != MINK_OK) {
        slice_unref(&packed);
        return code;
    }
    int64_t claimed = (int64_t)in.size;
    if (size >= in.size) {
        claimed = -1;
        size = in.size;
        memcpy(data + 8, in.data, in.size);
    }
    memcpy(data, &claimed, 8);
    packed.size = 8 + size;
    *out = packed;
    return MINK_OK;
}

static enum mink_code encode_buffer(struct encoder *enc, struct slice s) {
    struct slice part = slice_empty();
    pad(enc->body, BODY_ALIGN);
    if (s.size && enc->codec != CODEC_NONE) MINK_TRY(compress_buffer(enc, s, &part));
    else if (s.size) part = slice_ref(s);
    enc->buffers[enc->buffer_count++] = (struct ipc_range){(int64_t)enc->body->bytes, (int64_t)part.size};
    if (part.size) slices_take(enc->body, part);
    return MINK_OK;
}

static enum mink_code encode_array(struct encoder *enc, const struct arrow_field *f, const struct arrow_array *a) {
    enc->nodes[enc->node_count++] = (struct ipc_node){a->length, a->null_count};
    for (uint32_t i = 0; i < arrow_field_buffer_count(f); i++) MINK_TRY(encode_buffer(enc, a->buffers[i]));
    for (uint32_t i = 0; i < a->child_count; i++) MINK_TRY(encode_array(enc, &f->children[i], &a->children[i]));
    return MINK_OK;
}

enum mink_code ipc_encode_batch(const struct arrow_batch *b, enum codec codec, int level, struct slice *message, struct slices *body, struct error *e) {
    uint32_t node_count = 0, buffer_count = 0;
    for (uint32_t i = 0; i < arrow_schema_count(b->schema); i++) count_parts(arrow_schema_at(b->schema, i), &node_count, &buffer_count);
    *body = (struct slices){0};
    struct encoder enc = {.codec = codec, .level = level, .body = body, .e = e};
    enc.nodes = mem_new_array(struct ipc_node, node_count);
    enc.buffers = mem_new_array(struct ipc_range, buffer_count);
    enum mink_code code = MINK_OK;
    for (uint32_t i = 0; i < arrow_schema_count(b->schema) && code == MINK_OK; i++) code = encode_array(&enc, arrow_schema_at(b->schema, i), &b->columns[i]);
    if (code == MINK_OK) {
        pad(body, BODY_ALIGN);
        *message = ipc_write_record(b->row_count, enc.nodes, enc.node_count, enc.buffers, enc.buffer_count, codec, body->bytes);
    } else {
        slices_deinit(body);
    }
    mem_free(enc.nodes);
    mem_free(enc.buffers);
    return code;
}

struct slice ipc_encode_schema(const struct arrow_schema *s, bool encapsulated) {
    struct ArrowSchema exported;
    struct ArrowIpcEncoder encoder;
    struct ArrowBuffer bytes;
    struct ArrowError why;
    ArrowErrorInit(&why);
    ArrowBufferInit(&bytes);
    // The fields were checked when the schema was made, so nothing here can be refused.
    mink_assert(arrow_schema_export(s, &exported, NULL) == MINK_OK);
    mink_assert(ArrowIpcEncoderInit(&encoder) == NANOARROW_OK);
    mink_assert(ArrowIpcEncoderEncodeSchema(&encoder, &exported, &why) == NANOARROW_OK);
    mink_assert(ArrowIpcEncoderFinalizeBuffer(&encoder, encapsulated, &bytes) == NANOARROW_OK);
    struct slice out = slice_copy(bytes.data, (size_t)bytes.size_bytes);
    ArrowBufferReset(&bytes);
    ArrowIpcEncoderReset(&encoder);
    ArrowSchemaRelease(&exported);
    return out;
}

struct slice ipc_rewrite(struct slice message) {
    struct ipc_message m;
    struct ipc_record r;
    mink_assert(ipc_read_message(message, &m, NULL) == MINK_OK && ipc_read_record(&m, &r, NULL) == MINK_OK);
    mink_assert(ipc_record_size(r.nodes.count, r.buffers.count, r.codec) <= message.size);
    struct ipc_node *nodes = mem_new_array(struct ipc_node, r.nodes.count);
    struct ipc_range *buffers = mem_new_array(struct ipc_range, r.buffers.count);
    for (uint32_t i = 0; i < r.nodes.count; i++) nodes[i] = ipc_node_at(&r, i);
    for (uint32_t i = 0; i < r.buffers.count; i++) buffers[i] = ipc_range_at(&r, i);
    struct slice written = ipc_write_record(r.row_count, nodes, r.nodes.count, buffers, r.buffers.count, r.codec, m.body_size);
    mem_free(nodes);
    mem_free(buffers);
    uint8_t *data;
    struct slice padded = slice_new(message.size, &data);
    memset(data, 0, message.size);
    memcpy(data, written.data, written.size);
    slice_unref(&written);
    return padded;
}

// The buffers of the chosen columns, in runs that lie together in the source, so that a run is one slice.
struct projector {
    struct slice source;
    struct slices *body;
    size_t run_begin, run_end, run_target; // source range not yet put into body, and where it will begin there
};

static void end_run(struct projector *p) {
    if (p->run_end == p->run_begin) return;
    pad(p->body, BODY_ALIGN);
    slices_take(p->body, slice_sub(p->source, p->run_begin, p->run_end - p->run_begin));
    p->run_begin = p->run_end = 0;
}

static enum mink_code project_buffer(struct projector *p, struct ipc_range source, struct ipc_range *target, struct error *e) {
    if (source.offset < 0 || source.length < 0 || (uint64_t)source.offset > p->source.size || (uint64_t)source.length > p->source.size - (uint64_t)source.offset)
        return ipc_bad(e, "a buffer reaches behind the body");
    if (source.offset % 8 != 0) return ipc_bad(e, "a buffer is not aligned to 8");
    size_t begin = (size_t)source.offset, end = begin + (size_t)source.length;
    *target = (struct ipc_range){0, source.length};
    if (source.length == 0) return MINK_OK;
    bool joins = p->run_end > p->run_begin && begin >= p->run_end && begin - p->run_end < BODY_ALIGN;
    if (!joins) {
        end_run(p);
        p->run_begin = begin;
        p->run_target = align_up(p->body->bytes, BODY_ALIGN);
    }
    p->run_end = end;
    target->offset = (int64_t)(p->run_target + (begin - p->run_begin));
    return MINK_OK;
}

enum mink_code ipc_project(const struct arrow_schema *schema, struct slice message, struct slice body, const uint32_t *columns, uint32_t column_count, struct slice *out_message, struct slices *out_body, struct error *e) {
    struct ipc_message m;
    struct ipc_record r;
    MINK_TRY(ipc_read_message(message, &m, e));
    if (m.kind != IPC_BATCH) return ipc_bad(e, "a record batch message was expected");
    MINK_TRY(ipc_read_record(&m, &r, e));
    // First node and buffer of each column, one more for the end.
    uint32_t count = arrow_schema_count(schema), out_nodes = 0, out_buffers = 0;
    struct { uint32_t node, buffer; } *first = mem_zalloc_array(count + 1, sizeof *first);
    for (uint32_t i = 0; i < count; i++) {
        first[i + 1].node = first[i].node;
        first[i + 1].buffer = first[i].buffer;
        count_parts(arrow_schema_at(schema, i), &first[i + 1].node, &first[i + 1].buffer);
    }
    if (first[count].node != r.nodes.count || first[count].buffer != r.buffers.count) {
        mem_free(first);
        return ipc_bad(e, "record batch has %u nodes and %u buffers, the schema another number", r.nodes.count, r.buffers.count);
    }
    for (uint32_t c = 0; c < column_count; c++) {
        mink_assert(columns[c] < count);
        out_nodes += first[columns[c] + 1].node - first[columns[c]].node;
        out_buffers += first[columns[c] + 1].buffer - first[columns[c]].buffer;
    }
    struct ipc_node *nodes = mem_new_array(struct ipc_node, out_nodes);
    struct ipc_range *buffers = mem_new_array(struct ipc_range, out_buffers);
    *out_body = (struct slices){0};
    struct projector p = {.source = body, .body = out_body};
    enum mink_code code = MINK_OK;
    out_nodes = out_buffers = 0;
    for (uint32_t c = 0; c < column_count && code == MINK_OK; c++) {
        for (uint32_t i = first[columns[c]].node; i < first[columns[c] + 1].node; i++) nodes[out_nodes++] = ipc_node_at(&r, i);
        for (uint32_t i = first[columns[c]].buffer; i < first[columns[c] + 1].buffer && code == MINK_OK; i++)
            code = project_buffer(&p, ipc_range_at(&r, i), &buffers[out_buffers++], e);
    }
    if (code == MINK_OK) {
        end_run(&p);
        pad(out_body, BODY_ALIGN);
        *out_message = ipc_write_record(r.row_count, nodes, out_nodes, buffers, out_buffers, r.codec, out_body->bytes);
    } else {
        slices_deinit(out_body);
    }
    mem_free(first);
    mem_free(nodes);
    mem_free(buffers);
    return code;
}
