// SPDX-License-Identifier: Apache-2.0
// Record batches and dictionaries in.
//
// A walk over the schema, depth-first, takes nodes and buffers in order. Each array is cut out of the body, its children are read, then
// array_validate says whether its bytes mean something. Dictionary-encoded fields are replaced by their values on the spot, so nothing
// behind this file knows dictionaries.
#include "arrow/ipc.h"

#include "arrow/ipc_internal.h"
#include "base/mem.h"

#include <inttypes.h>

struct dictionary {
    int64_t id;
    const struct arrow_field *values; // borrowed from the schema; its `dictionary` mark does not count here
    struct arrow_array array;
    bool present;
};

struct ipc_decoder {
    struct arrow_schema *schema;
    uint64_t batch_bytes_max;
    struct dictionary *dictionaries;
    uint32_t dictionary_count;
};

static void find_dictionaries(struct ipc_decoder *d, const struct arrow_field *f) {
    if (f->dictionary) {
        d->dictionaries = mem_realloc(d->dictionaries, (d->dictionary_count + 1) * sizeof *d->dictionaries);
        d->dictionaries[d->dictionary_count++] = (struct dictionary){.id = f->dictionary_id, .values = f};
    }
    for (uint32_t i = 0; i < f->child_count; i++) find_dictionaries(d, &f->children[i]);
}

struct ipc_decoder *ipc_decoder_new(struct arrow_schema *schema, uint64_t batch_bytes_max) {
    struct ipc_decoder *d = mem_new(struct ipc_decoder);
    d->schema = arrow_schema_ref(schema);
    d->batch_bytes_max = batch_bytes_max;
    find_dictionaries(d, &schema->root);
    return d;
}

void ipc_decoder_free(struct ipc_decoder *d) {
    if (d == NULL) return;
    for (uint32_t i = 0; i < d->dictionary_count; i++) arrow_array_deinit(&d->dictionaries[i].array);
    mem_free(d->dictionaries);
    arrow_schema_unref(d->schema);
    mem_free(d);
}

// Fields that share an id each keep the values; a schema may give them different types.
static const struct dictionary *dictionary_of(const struct ipc_decoder *d, const struct arrow_field *f) {
    for (uint32_t i = 0; i < d->dictionary_count; i++) {
        if (d->dictionaries[i].values == f) return &d->dictionaries[i];
    }
    return NULL;
}

struct walk {
    const struct ipc_decoder *decoder;
    const struct ipc_record *record;
    struct slice body;
    uint32_t node, buffer, view;
    uint64_t budget; // bytes that decompression and dictionaries may still make
    bool plain;
    struct error *e;
};

static enum mink_code decompress(struct walk *w, struct slice packed, size_t need, struct slice *out) {
    int64_t claimed;
    if (packed.size < 8) return ipc_bad(w->e, "compressed buffer of %zu bytes has no length in front", packed.size);
    memcpy(&claimed, packed.data, 8);
    if (claimed == -1) {
        *out = slice_sub(packed, 8, packed.size - 8);
        return MINK_OK;
    }
    if (claimed < 0 || (uint64_t)claimed < need) return ipc_bad(w->e, "compressed buffer claims %" PRId64 " bytes, its column needs %zu", claimed, need);
    if ((uint64_t)claimed > w->budget) return ipc_bad(w->e, "compressed buffer claims %" PRId64 " bytes, over the limit of %" PRIu64 " a batch", claimed, w->decoder->batch_bytes_max);
    w->budget -= (uint64_t)claimed;
    uint8_t *data;
    struct slice plain = slice_try_new((size_t)claimed, &data);
    if (data == NULL) return error_set(w->e, MINK_OVERLOADED, "OUT_OF_MEMORY", "no memory for a buffer of %" PRId64 " bytes", claimed);
    enum mink_code code = decompress_into(w->record->codec, packed.data + 8, packed.size - 8, data, (size_t)claimed, w->e);
    if (code == MINK_OK) *out = plain;
    else slice_unref(&plain);
    return code;
}

// The next buffer, at least `need` bytes of it; empty is fine when need is 0.
static enum mink_code take_buffer(struct walk *w, size_t need, struct slice *out) {
    *out = slice_empty();
    if (w->buffer == w->record->buffers.count) return ipc_bad(w->e, "record batch has only %" PRIu32 " buffers", w->buffer);
    struct ipc_range range = ipc_range_at(w->record, w->buffer++);
    if (range.length < 0 || range.offset < 0 || (uint64_t)range.offset > w->body.size || (uint64_t)range.length > w->body.size - (uint64_t)range.offset)
        return ipc_bad(w->e, "buffer %" PRIu32 " (offset %" PRId64 ", %" PRId64 " bytes) reaches behind the body of %zu bytes", w->buffer - 1, range.offset, range.length, w->body.size);
    struct slice s = slice_empty();
    if (range.length) s = slice_sub(w->body, (size_t)range.offset, (size_t)range.length);
    if (range.offset % 8 != 0) w->plain = false;
    if (s.size && w->record->codec != CODEC_NONE) {
        struct slice plain = slice_empty();
        enum mink_code code = decompress(w, s, need, &plain);
        slice_unref(&s);
        MINK_TRY(code);
        s = plain;
    }
    if (s.size < need) {
        size_t size = s.size;
        slice_unref(&s);
        return ipc_bad(w->e, "buffer %" PRIu32 " has %zu bytes, its column needs %zu", w->buffer - 1, size, need);
    }
    if (s.size && (uintptr_t)s.data % 8 != 0) { // rare: foreign writers that do not align
        struct slice moved = slice_copy(s.data, s.size);
        slice_unref(&s);
        s = moved;
    }
    *out = s;
    return MINK_OK;
}

static enum mink_code take_exact(struct walk *w, size_t need, struct slice *out) {
    MINK_TRY(take_buffer(w, need, out));
    if (need == 0) slice_unref(out);
    out->size = need;
    return MINK_OK;
}

static enum mink_code take_validity(struct walk *w, int64_t length, int64_t null_count, struct slice *out) {
    MINK_TRY(take_buffer(w, 0, out));
    size_t need = bits_bytes(length);
    if (out->size == 0 || length == 0) {
        slice_unref(out);
        if (null_count != 0) return ipc_bad(w->e, "null count %" PRId64 " without a validity bitmap", null_count);
        return MINK_OK;
    }
    if (out->size < need) return ipc_bad(w->e, "validity bitmap has %zu bytes, its column needs %zu", out->size, need);
    out->size = need;
    return MINK_OK;
}

static enum mink_code walk_array(struct walk *w, const struct arrow_field *f, bool hydrated, struct arrow_array *out);

static enum mink_code walk_indices(struct walk *w, const struct arrow_field *f, const struct ipc_node *node, struct arrow_array *out) {
    struct arrow_field index = {.name = f->name, .type = f->index_type};
    struct arrow_array indices = {.length = node->length};
    w->plain = false;
    enum mink_code code = take_validity(w, node->length, node->null_count, &indices.buffers[0]);
    if (code == MINK_OK) code = take_exact(w, fixed_bytes(&index, node->length), &indices.buffers[1]);
    if (code == MINK_OK) code = array_validate(&index, &indices, node->null_count, w->e);
    const struct dictionary *dictionary = dictionary_of(w->decoder, f);
    if (code == MINK_OK) code = array_hydrate(f, &indices, dictionary && dictionary->present ? &dictionary->array : NULL, &w->budget, out, w->e);
    arrow_array_deinit(&indices);
    return code;
}

static enum mink_code walk_views(struct walk *w, const struct arrow_field *f, struct arrow_array *out) {
    struct slice views;
    w->plain = false;
    if (w->view == w->record->view_buffers.count) return ipc_bad(w->e, "field %.60s: the number of its buffers is missing", f->name);
    int64_t count = fb_i64_at(w->record->fb, w->record->view_buffers.at + 8 * w->view++), read = 0;
    MINK_TRY(take_exact(w, (size_t)out->length * 16, &views));
    if (count < 0 || count > w->record->buffers.count - w->buffer) {
        slice_unref(&views);
        return ipc_bad(w->e, "field %.60s: it has %" PRId64 " buffers, %" PRIu32 " are left", f->name, count, w->record->buffers.count - w->buffer);
    }
    struct slice *data = mem_new_array(struct slice, (size_t)count);
    enum mink_code code = MINK_OK;
    for (; read < count && code == MINK_OK; read++) code = take_buffer(w, 0, &data[read]);
    if (code == MINK_OK) code = array_from_views(f, views.data, data, count, &w->budget, out, w->e);
    for (int64_t i = 0; i < read; i++) slice_unref(&data[i]);
    mem_free(data);
    slice_unref(&views);
    return code;
}

static enum mink_code walk_parts(struct walk *w, const struct arrow_field *f, const struct ipc_node *node, struct arrow_array *out) {
    out->length = node->length;
    if (f->type == ARROW_NULL) {
        // V4 writers did not agree on what a null column brings along; V5: nothing.
        return array_validate(f, out, -1, w->e);
    }
    MINK_TRY(take_validity(w, node->length, node->null_count, &out->buffers[0]));
    if (f->view) {
        MINK_TRY(walk_views(w, f, out));
    } else if (type_is_bytes(f->type) || type_is_list(f->type)) {
        size_t width = offset_width(f);
        MINK_TRY(take_exact(w, node->length ? ((size_t)node->length + 1) * width : 0, &out->buffers[1]));
        if (type_is_bytes(f->type)) MINK_TRY(take_buffer(w, 0, &out->buffers[2]));
    } else if (arrow_field_buffer_count(f) == 2) {
        MINK_TRY(take_exact(w, fixed_bytes(f, node->length), &out->buffers[1]));
    }
    if (f->child_count) out->children = mem_new_array(struct arrow_array, f->child_count);
    for (uint32_t i = 0; i < f->child_count; i++) {
        out->child_count = i + 1;
        MINK_TRY(walk_array(w, &f->children[i], false, &out->children[i]));
    }
    return array_validate(f, out, node->null_count, w->e);
}

// hydrated: the field is the value of a dictionary, not a reference to it.
static enum mink_code walk_array(struct walk *w, const struct arrow_field *f, bool hydrated, struct arrow_array *out) {
    *out = (struct arrow_array){0};
    if (w->node == w->record->nodes.count) return ipc_bad(w->e, "record batch has only %" PRIu32 " field nodes", w->node);
    struct ipc_node node = ipc_node_at(w->record, w->node++);
    bool may_be_free = f->type == ARROW_NULL || f->type == ARROW_STRUCT || f->type == ARROW_FIXED_LIST;
    if (node.length < 0 || node.length > (may_be_free ? IPC_ROWS_MAX : IPC_ITEMS_MAX) || node.null_count < 0 || node.null_count > node.length)
        return ipc_bad(w->e, "field %.60s: length %" PRId64 ", null count %" PRId64, f->name, node.length, node.null_count);
    enum mink_code code = f->dictionary && !hydrated ? walk_indices(w, f, &node, out) : walk_parts(w, f, &node, out);
    if (code != MINK_OK) arrow_array_deinit(out);
    return code;
}

static enum mink_code walk_begin(struct walk *w, const struct ipc_decoder *d, struct ipc_message *m, struct ipc_record *r, struct slice body, struct error *e) {
    MINK_TRY(ipc_read_record(m, r, e));
    *w = (struct walk){.decoder = d, .record = r, .body = body, .budget = d->batch_bytes_max, .e = e};
    w->plain = m->version == 4 && !m->encapsulated && body.size % 8 == 0 && ipc_record_size(r->nodes.count, r->buffers.count, r->codec) <= m->fb.size;
    if (m->body_size != body.size) return ipc_bad(e, "body has %zu bytes, its message says %" PRIu64, body.size, m->body_size);
    if (body.size > d->batch_bytes_max) return ipc_bad(e, "body of %zu bytes is over the limit of %" PRIu64, body.size, d->batch_bytes_max);
    if (body.size && (uintptr_t)body.data % 8 != 0) return ipc_bad(e, "body is not aligned to 8 bytes in memory");
    return MINK_OK;
}

static enum mink_code walk_end(struct walk *w) {
    if (w->node != w->record->nodes.count || w->buffer != w->record->buffers.count)
        return ipc_bad(w->e, "record batch has %" PRIu32 " field nodes and %" PRIu32 " buffers, its schema %" PRIu32 " and %" PRIu32, w->record->nodes.count, w->record->buffers.count, w->node, w->buffer);
    return MINK_OK;
}

enum mink_code ipc_decoder_batch(struct ipc_decoder *d, struct slice message, struct slice body, struct arrow_batch *out, struct ipc_batch_info *info, struct error *e) {
    struct ipc_message m;
    struct ipc_record r;
    struct walk w;
    MINK_TRY(ipc_read_message(message, &m, e));
    if (m.kind != IPC_BATCH) return ipc_bad(e, "a record batch message was expected");
    MINK_TRY(walk_begin(&w, d, &m, &r, body, e));
    uint32_t count = arrow_schema_count(d->schema);
    struct arrow_batch batch = {arrow_schema_ref(d->schema), r.row_count, mem_new_array(struct arrow_array, count)};
    enum mink_code code = MINK_OK;
    for (uint32_t i = 0; i < count && code == MINK_OK; i++) {
        const struct arrow_field *f = arrow_schema_at(d->schema, i);
        code = walk_array(&w, f, false, &batch.columns[i]);
        if (code == MINK_OK && batch.columns[i].length != r.row_count)
            code = ipc_bad(e, "%" PRId64 " rows in a batch of %" PRId64, batch.columns[i].length, r.row_count);
        if (code != MINK_OK) {
            error_context(e, "column %.60s", f->name);
            error_about(e, f->name, NULL, NULL);
        }
    }
    if (code == MINK_OK) code = walk_end(&w);
    if (code != MINK_OK) {
        arrow_batch_deinit(&batch);
        return code;
    }
    if (info) *info = (struct ipc_batch_info){r.row_count, r.codec, w.plain};
    *out = batch;
    return MINK_OK;
}

static void keep_dictionary(struct dictionary *slot, const struct arrow_array *values, bool delta) {
    struct arrow_array next;
    if (delta && slot->present) {
        const struct arrow_array *parts[2] = {&slot->array, values};
        array_concat(slot->values, parts, 2, &next);
    } else {
        arrow_array_ref(&next, values);
    }
    arrow_array_deinit(&slot->array);
    slot->array = next;
    slot->present = true;
}

// Rows without bytes count as one each, so that offsets of what is put together from deltas cannot run over.
static uint64_t array_size(const struct arrow_array *a) {
    uint64_t bytes = a->buffers[0].size + a->buffers[1].size + a->buffers[2].size, size = sizeof *a + (bytes ? bytes : (uint64_t)a->length);
    for (uint32_t i = 0; i < a->child_count; i++) size += array_size(&a->children[i]);
    return size;
}

enum mink_code ipc_decoder_dictionary(struct ipc_decoder *d, struct slice message, struct slice body, struct error *e) {
    struct ipc_message m;
    struct ipc_record r;
    struct walk w;
    MINK_TRY(ipc_read_message(message, &m, e));
    if (m.kind != IPC_DICTIONARY) return ipc_bad(e, "a dictionary message was expected");
    int64_t id = fb_int(&m.header, 0, 8, 0);
    bool delta = fb_int(&m.header, 2, 1, 0) != 0, known = false;
    for (uint32_t i = 0; i < d->dictionary_count; i++) {
        struct dictionary *slot = &d->dictionaries[i];
        if (slot->id != id) continue;
        known = true;
        struct arrow_array values = {0};
        MINK_TRY(walk_begin(&w, d, &m, &r, body, e));
        enum mink_code code = walk_array(&w, slot->values, true, &values);
        if (code == MINK_OK) code = walk_end(&w);
        if (code == MINK_OK && values.length != r.row_count) code = ipc_bad(e, "%" PRId64 " values in a batch of %" PRId64, values.length, r.row_count);
        uint64_t kept = array_size(&values) + (delta ? array_size(&slot->array) : 0);
        for (uint32_t k = 0; k < d->dictionary_count; k++) kept += k == i ? 0 : array_size(&d->dictionaries[k].array);
        if (code == MINK_OK && (kept > d->batch_bytes_max || (delta && slot->array.length + values.length > IPC_ITEMS_MAX)))
            code = ipc_bad(e, "dictionaries are over the limit of %" PRIu64 " bytes", d->batch_bytes_max);
        if (code == MINK_OK) keep_dictionary(slot, &values, delta);
        arrow_array_deinit(&values);
        if (code != MINK_OK) {
            error_context(e, "dictionary %" PRId64, id);
            error_about(e, slot->values->name, NULL, NULL);
            return code;
        }
    }
    return known ? MINK_OK : ipc_bad(e, "dictionary %" PRId64 " is not in the schema", id);
}
