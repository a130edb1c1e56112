// SPDX-License-Identifier: Apache-2.0
// Record batches through the C data interface. An import refers to the producer's memory and releases it with the last buffer; its pointers
// cannot be checked, what they point at is.
#include "arrow/array.h"

#include "arrow/arrow_internal.h"
#include "arrow/ipc_internal.h"
#include "base/mem.h"

#include <nanoarrow/nanoarrow.h>

#include <inttypes.h>

static void release_import(void *ctx) {
    struct ArrowArray *source = ctx;
    if (source->release) source->release(source);
    mem_free(source);
}

struct importer {
    struct slice owner; // of the producer's memory
    struct error *e;
};

// A buffer of the producer's. Kernels count on alignment to the element; the interface only recommends it.
static struct slice foreign(const struct importer *im, const void *data, size_t size) {
    if (data == NULL || size == 0) return slice_empty();
    if ((uintptr_t)data % 8 != 0) return slice_copy(data, size);
    return slice_ref((struct slice){data, size, im->owner.owner});
}

static enum mink_code import_array(const struct importer *im, const struct arrow_field *f, const struct ArrowArray *a, bool values, struct arrow_array *out);

static enum mink_code import_dictionary(const struct importer *im, const struct arrow_field *f, const struct ArrowArray *a, struct arrow_array *out) {
    struct arrow_field index = {.name = f->name, .type = f->index_type};
    struct arrow_array indices = {0}, dictionary = {0};
    if (a->dictionary == NULL) return ipc_bad(im->e, "field %.60s: dictionary values are missing", f->name);
    enum mink_code code = import_array(im, &index, a, true, &indices);
    if (code == MINK_OK) code = import_array(im, f, a->dictionary, true, &dictionary);
    uint64_t budget = INT32_MAX;
    if (code == MINK_OK) code = array_hydrate(f, &indices, &dictionary, &budget, out, im->e);
    arrow_array_deinit(&indices);
    arrow_array_deinit(&dictionary);
    return code;
}

static enum mink_code import_views(const struct importer *im, const struct arrow_field *f, const struct ArrowArray *a, struct arrow_array *out) {
    int64_t count = a->n_buffers - 3;
    const int64_t *sizes = a->buffers[a->n_buffers - 1];
    uint64_t budget = (uint64_t)INT32_MAX * 8;
    if (count > 0 && sizes == NULL) return ipc_bad(im->e, "field %.60s: sizes of its buffers are missing", f->name);
    struct slice *data = mem_new_array(struct slice, (size_t)count);
    for (int64_t i = 0; i < count; i++) data[i] = slice_borrow(a->buffers[2 + i], sizes[i] > 0 && a->buffers[2 + i] ? (size_t)sizes[i] : 0);
    const uint8_t *views = a->length ? (const uint8_t *)a->buffers[1] + 16 * (size_t)a->offset : NULL;
    enum mink_code code = array_from_views(f, views, data, count, &budget, out, im->e);
    mem_free(data);
    return code;
}

static enum mink_code import_children(const struct importer *im, const struct arrow_field *f, const struct ArrowArray *a, struct arrow_array *out) {
    out->children = mem_new_array(struct arrow_array, f->child_count);
    int64_t per_row = f->type == ARROW_STRUCT ? 1 : f->type == ARROW_FIXED_LIST ? f->width : 0;
    for (uint32_t i = 0; i < f->child_count; i++) {
        out->child_count = i + 1;
        MINK_TRY(import_array(im, &f->children[i], a->children[i], false, &out->children[i]));
        if (per_row == 0) continue;
        // The parent's offset counts rows of the children, too.
        struct arrow_array part;
        if (out->children[i].length < (a->offset + a->length) * per_row) return ipc_bad(im->e, "field %.60s: a child has fewer rows than its parent needs", f->name);
        array_slice(&f->children[i], &out->children[i], a->offset * per_row, a->length * per_row, &part);
        arrow_array_deinit(&out->children[i]);
        out->children[i] = part;
    }
    return MINK_OK;
}

static enum mink_code import_parts(const struct importer *im, const struct arrow_field *f, const struct ArrowArray *a, struct arrow_array *out) {
    out->length = a->length;
    if (f->type == ARROW_NULL) return array_validate(f, out, -1, im->e);
    size_t rows = (size_t)(a->offset + a->length);
    if (a->buffers[0]) {
        struct slice bits = foreign(im, a->buffers[0], (rows + 7) / 8);
        if (a->length) out->buffers[0] = bits_slice(bits, a->offset, a->length);
        slice_unref(&bits);
    } else if (a->null_count > 0) {
        return ipc_bad(im->e, "field %.60s: null count %" PRId64 " without a validity bitmap", f->name, a->null_count);
    }
    for (int64_t i = 1; i < a->n_buffers && a->length; i++) {
        if (a->buffers[i] == NULL && i == 1) return ipc_bad(im->e, "field %.60s: buffer %" PRId64 " is missing", f->name, i);
    }
    if (f->view) {
        MINK_TRY(import_views(im, f, a, out));
    } else if (type_is_bytes(f->type) || type_is_list(f->type)) {
        size_t width = offset_width(f);
        if (a->length) out->buffers[1] = foreign(im, (const uint8_t *)a->buffers[1] + (size_t)a->offset * width, ((size_t)a->length + 1) * width);
        int64_t last = a->length ? offset_at(f, out, a->length) : 0;
        if (last < 0) return ipc_bad(im->e, "field %.60s: offsets do not ascend", f->name);
        if (type_is_bytes(f->type)) out->buffers[2] = foreign(im, a->buffers[2], (size_t)last);
        if (type_is_bytes(f->type) && out->buffers[2].size == 0 && last > 0) return ipc_bad(im->e, "field %.60s: buffer 2 is missing", f->name);
    } else if (f->type == ARROW_BOOL) {
        struct slice bits = foreign(im, a->buffers[1], (rows + 7) / 8);
        if (a->length) out->buffers[1] = bits_slice(bits, a->offset, a->length);
        slice_unref(&bits);
    } else if (arrow_field_buffer_count(f) == 2) {
        size_t width = arrow_type_bit_width(f) / 8;
        if (a->length) out->buffers[1] = foreign(im, (const uint8_t *)a->buffers[1] + (size_t)a->offset * width, (size_t)a->length * width);
    }
    if (f->child_count) MINK_TRY(import_children(im, f, a, out));
    return array_validate(f, out, -1, im->e);
}

// values: the plain array of a dictionary-encoded field.
static enum mink_code import_array(const struct importer *im, const struct arrow_field *f, const struct ArrowArray *a, bool values, struct arrow_array *out) {
    *out = (struct arrow_array){0};
    bool encoded = f->dictionary && !values;
    int64_t buffers = f->view ? 3 : arrow_field_buffer_count(f);
    if (a->length < 0 || a->offset < 0 || a->length > INT32_MAX || a->offset > INT64_MAX / 64 || (!encoded && a->n_children != f->child_count) ||
        (!encoded && (f->view ? a->n_buffers < buffers : a->n_buffers != buffers)))
        return ipc_bad(im->e, "field %.60s: length %" PRId64 ", offset %" PRId64 ", %" PRId64 " buffers and %" PRId64 " children do not fit its type", f->name,
                       a->length, a->offset, a->n_buffers, a->n_children);
    enum mink_code code = encoded ? import_dictionary(im, f, a, out) : import_parts(im, f, a, out);
    if (code != MINK_OK) arrow_array_deinit(out);
    return code;
}

enum mink_code arrow_batch_import(struct ArrowArray *take_array, struct arrow_schema *schema, struct arrow_batch *out, struct error *e) {
    struct ArrowArray *source = mem_new(struct ArrowArray);
    *source = *take_array;
    take_array->release = NULL; // moved
    struct importer im = {slice_foreign(NULL, 0, release_import, source), e};
    struct arrow_array root = {0};
    enum mink_code code = MINK_OK;
    if (source->release == NULL) code = ipc_bad(e, "the array was released already");
    if (code == MINK_OK) code = import_array(&im, &schema->root, source, false, &root);
    if (code == MINK_OK && root.null_count) code = ipc_bad(e, "a record batch has no nulls of its own");
    if (code == MINK_OK) {
        *out = (struct arrow_batch){arrow_schema_ref(schema), root.length, root.children};
        root.children = NULL;
        root.child_count = 0;
        if (out->columns == NULL) out->columns = mem_new_array(struct arrow_array, 0);
    }
    arrow_array_deinit(&root);
    slice_unref(&im.owner);
    return code;
}

struct exported {
    struct arrow_array array; // its children are exported apart, since a consumer may move each of them away
    const void *buffers[3];
    struct ArrowArray *children, **child_pointers;
};

static void release_export(struct ArrowArray *a) {
    struct exported *x = a->private_data;
    for (int64_t i = 0; i < a->n_children; i++) {
        if (x->children[i].release) x->children[i].release(&x->children[i]);
    }
    arrow_array_deinit(&x->array);
    mem_free(x->children);
    mem_free(x->child_pointers);
    mem_free(x);
    a->release = NULL;
}

static void export_array(const struct arrow_field *f, const struct arrow_array *source, uint32_t child_count, const struct arrow_array *children, struct ArrowArray *out) {
    struct exported *x = mem_new(struct exported);
    uint32_t buffers = arrow_field_buffer_count(f);
    x->array = (struct arrow_array){.length = source->length, .null_count = source->null_count};
    for (uint32_t i = 0; i < buffers; i++) {
        x->array.buffers[i] = slice_ref(source->buffers[i]);
        x->buffers[i] = x->array.buffers[i].size || i == 0 ? x->array.buffers[i].data : arrow_zeros;
    }
    if (source->buffers[0].size == 0) x->buffers[0] = NULL;
    x->children = mem_new_array(struct ArrowArray, child_count);
    x->child_pointers = mem_new_array(struct ArrowArray *, child_count);
    for (uint32_t i = 0; i < child_count; i++) {
        x->child_pointers[i] = &x->children[i];
        export_array(&f->children[i], &children[i], children[i].child_count, children[i].children, &x->children[i]);
    }
    *out = (struct ArrowArray){.length = source->length, .null_count = source->null_count, .n_buffers = buffers, .n_children = child_count,
                               .buffers = x->buffers, .children = child_count ? x->child_pointers : NULL, .release = release_export, .private_data = x};
}

enum mink_code arrow_batch_export(const struct arrow_batch *b, struct ArrowArray *out, struct error *e) {
    struct arrow_array root = {.length = b->row_count};
    export_array(&b->schema->root, &root, arrow_schema_count(b->schema), b->columns, out);
    return MINK_OK;
}
