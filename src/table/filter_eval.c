// SPDX-License-Identifier: Apache-2.0
// A tree over the rows of a batch, a column at a time.
//
// A node's result is two bitmaps: rows for which it is true, and rows for which it is false; a row in neither is unknown. AND and OR are then
// bit operations, NOT swaps the two, and a leaf's nulls are in neither. All bitmaps of an evaluation are one allocation, two per level.
#include "base/mem.h"
#include "table/filter_internal.h"

struct result { uint64_t *yes, *no; };

struct evaluation {
    const struct filter *filter;
    const struct arrow_batch *b;
    int32_t *place;          // of a column of the table among b's
    int64_t rows;
    size_t words;
    uint64_t *bits;          // 2 * words per level
};

static struct result result_at(const struct evaluation *v, uint32_t level) {
    return (struct result){v->bits + 2 * level * v->words, v->bits + (2 * level + 1) * v->words};
}

// ---- leaves: which values match, nulls and all; `yes` is filled

// Eight bytes of 0 or 1 to eight bits.
static inline uint64_t pack8(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v * 0x0102040810204080u >> 56;
}

static inline uint64_t pack64(const uint8_t *p) {
    uint64_t word = 0;
    for (int i = 0; i < 8; i++) word |= pack8(p + 8 * i) << (8 * i);
    return word;
}

// 64 values at a time into bytes (a loop of known length, which compilers turn into vectors), then into a word.
#define MATCH(type, condition)                                                    \
    for (int64_t base = 0; base < rows; base += 64) {                             \
        uint8_t match[64] = {0};                                                  \
        const uint8_t *at = data + (size_t)base * sizeof(type);                   \
        if (rows - base >= 64) {                                                  \
            for (int j = 0; j < 64; j++) {                                        \
                type x;                                                           \
                memcpy(&x, at + (size_t)j * sizeof x, sizeof x);                  \
                match[j] = (condition);                                           \
            }                                                                     \
        } else {                                                                  \
            for (int j = 0; j < rows - base; j++) {                               \
                type x;                                                           \
                memcpy(&x, at + (size_t)j * sizeof x, sizeof x);                  \
                match[j] = (condition);                                           \
            }                                                                     \
        }                                                                         \
        yes[base / 64] = pack64(match);                                           \
    }

// low <= x <= high as one comparison without sign: x - low <= high - low.
#define MATCH_RANGE(type, unsigned_type)                                          \
    do {                                                                          \
        unsigned_type low = (unsigned_type)n->low, span = (unsigned_type)(n->high - n->low); \
        MATCH(type, (unsigned_type)((unsigned_type)x - low) <= span)              \
    } while (0)

static void match_int(const struct node *n, const struct arrow_field *f, const uint8_t *data, int64_t rows, uint64_t *yes) {
    switch (arrow_type_bit_width(f)) {
    case 8: MATCH_RANGE(int8_t, uint8_t); break;
    case 16: MATCH_RANGE(int16_t, uint16_t); break;
    case 32: MATCH_RANGE(int32_t, uint32_t); break;
    default: MATCH_RANGE(int64_t, uint64_t);
    }
}

static void match_decimal(const struct node *n, const uint8_t *data, int64_t rows, uint64_t *yes) {
    __int128 low = n->low, high = n->high;
    MATCH(__int128, (uint8_t)((x >= low) & (x <= high)))
}

static void match_real(const struct node *n, const struct arrow_field *f, const uint8_t *data, int64_t rows, uint64_t *yes) {
    if (f->type == ARROW_FLOAT32) {
        float low = (float)n->real_low, high = (float)n->real_high;
        MATCH(float, (uint8_t)((x >= low) & (x <= high)))
    } else {
        double low = n->real_low, high = n->real_high;
        MATCH(double, (uint8_t)((x >= low) & (x <= high)))
    }
}

static inline struct bytes text_at(const struct arrow_field *f, const struct arrow_array *a, int64_t row) {
    if (f->type == ARROW_FIXED_BINARY) return (struct bytes){(uint8_t *)a->buffers[1].data + (size_t)row * (size_t)f->width, (size_t)f->width};
    int32_t range[2];
    memcpy(range, a->buffers[1].data + 4 * row, 8);
    const uint8_t *bytes = a->buffers[2].data; // none when all are empty
    return (struct bytes){bytes ? (uint8_t *)bytes + range[0] : NULL, (size_t)(range[1] - range[0])};
}

// Most texts differ early or late; what is called for the rest is called seldom.
static inline bool text_same(struct bytes a, struct bytes b) {
    if (a.size != b.size) return false;
    if (a.size < 8) {
        uint8_t differ = 0;
        for (size_t i = 0; i < a.size; i++) differ |= a.data[i] ^ b.data[i];
        return differ == 0;
    }
    uint64_t x[2], y[2];
    memcpy(&x[0], a.data, 8);
    memcpy(&x[1], a.data + a.size - 8, 8);
    memcpy(&y[0], b.data, 8);
    memcpy(&y[1], b.data + b.size - 8, 8);
    return x[0] == y[0] && x[1] == y[1] && (a.size <= 16 || memcmp(a.data, b.data, a.size) == 0);
}

static bool text_in_range(const struct node *n, struct bytes x) {
    if (n->has_low) {
        int order = bytes_order(x.data, x.size, n->text_low.data, n->text_low.size);
        if (order < 0 || (order == 0 && n->low_open)) return false;
    }
    if (n->has_high) {
        int order = bytes_order(x.data, x.size, n->text_high.data, n->text_high.size);
        if (order > 0 || (order == 0 && n->high_open)) return false;
    }
    return true;
}

// The usual way: on a mismatch go back to the last % and let it take one character more.
static bool like_any(const struct bytes *pattern, struct bytes x) {
    size_t i = 0, k = 0, star = SIZE_MAX, from = 0;
    for (;;) {
        if (k < pattern->size && pattern->data[k] == '%') {
            star = ++k;
            from = i;
            continue;
        }
        if (i == x.size) {
            if (k == pattern->size) return true;
        } else if (k < pattern->size && pattern->data[k] == '_') {
            for (i++; i < x.size && (x.data[i] & 0xc0) == 0x80; i++) {} // a character, not a byte
            k++;
            continue;
        } else if (k < pattern->size) {
            size_t literal = k + (pattern->data[k] == '\\');
            if (pattern->data[literal] == x.data[i]) {
                i++;
                k = literal + 1;
                continue;
            }
        }
        if (star == SIZE_MAX || from >= x.size) return false;
        i = ++from;
        k = star;
    }
}

static bool like(const struct node *n, struct bytes x) {
    const struct bytes *prefix = &n->text_high;
    if (x.size < prefix->size || !text_same((struct bytes){x.data, prefix->size}, *prefix)) return false;
    return n->like == LIKE_PREFIX || (n->like == LIKE_EXACT ? x.size == prefix->size : like_any(&n->text_low, x));
}

static bool set_has_int(const struct node *n, __int128 v) {
    uint32_t low = 0, high = n->set_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (n->ints[middle] < v) low = middle + 1;
        else high = middle;
    }
    return low < n->set_count && n->ints[low] == v;
}

static bool set_has_real(const struct node *n, double v) {
    uint32_t low = 0, high = n->set_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (n->reals[middle] < v) low = middle + 1;
        else high = middle;
    }
    return low < n->set_count && n->reals[low] == v;
}

static bool set_has_text(const struct node *n, struct bytes x) {
    uint32_t low = 0, high = n->set_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (bytes_order(n->texts[middle].data, n->texts[middle].size, x.data, x.size) < 0) low = middle + 1;
        else high = middle;
    }
    return low < n->set_count && bytes_order(n->texts[low].data, n->texts[low].size, x.data, x.size) == 0;
}

static bool set_has(const struct node *n, const struct arrow_field *f, const struct arrow_array *a, int64_t row) {
    const uint8_t *data = a->buffers[1].data;
    uint32_t width = arrow_type_bit_width(f) / 8;
    __int128 decimal;
    int64_t v = 0;
    float single;
    double real;
    switch (filter_class(f)) {
    case CLASS_TEXT: return set_has_text(n, text_at(f, a, row));
    case CLASS_BOOL: return set_has_int(n, data[row >> 3] >> (row & 7) & 1);
    case CLASS_DECIMAL: memcpy(&decimal, data + 16 * row, 16); return set_has_int(n, decimal);
    case CLASS_REAL:
        memcpy(&single, data + (size_t)row * width, 4);
        if (width == 4) return set_has_real(n, (double)single);
        memcpy(&real, data + 8 * row, 8);
        return set_has_real(n, real);
    default:
        memcpy(&v, data + (size_t)row * width, width);
        return set_has_int(n, (int64_t)((uint64_t)v << (64 - 8 * width)) >> (64 - 8 * width));
    }
}

#define MATCH_ROWS(condition)                                                     \
    for (int64_t row = 0; row < rows; row++) yes[row / 64] |= (uint64_t)(condition) << (row & 63)

// Few whole numbers are as many ranges; more are searched.
static void match_set(const struct evaluation *v, const struct node *n, const struct arrow_field *f, const struct arrow_array *a, uint64_t *yes) {
    int64_t rows = v->rows;
    if (filter_class(f) != CLASS_INT || n->set_count > 8) {
        MATCH_ROWS(!arrow_is_null(a, row) && set_has(n, f, a, row));
        return;
    }
    uint64_t *one = mem_alloc((v->words + 1) * sizeof *one);
    for (uint32_t i = 0; i < n->set_count; i++) {
        struct node range = {.low = n->ints[i], .high = n->ints[i]};
        match_int(&range, f, a->buffers[1].data, rows, one);
        for (size_t w = 0; w < v->words; w++) yes[w] |= one[w];
    }
    mem_free(one);
}

static void match(const struct evaluation *v, const struct node *n, const struct arrow_field *f, const struct arrow_array *a, uint64_t *yes) {
    const uint8_t *data = a->buffers[1].data;
    int64_t rows = v->rows;
    memset(yes, 0, v->words * sizeof *yes);
    switch (n->kind) {
    case NODE_BOOL: memcpy(yes, data, (size_t)(rows + 7) / 8); break;
    case NODE_INT:
        if (n->low <= n->high) match_int(n, f, data, rows, yes);
        break;
    case NODE_DECIMAL:
        if (n->low <= n->high) match_decimal(n, data, rows, yes);
        break;
    case NODE_REAL: match_real(n, f, data, rows, yes); break;
    case NODE_TEXT:
        if (n->is_equal) MATCH_ROWS(text_same(text_at(f, a, row), n->text_low));
        else MATCH_ROWS(text_in_range(n, text_at(f, a, row)));
        break;
    case NODE_LIKE: MATCH_ROWS(like(n, text_at(f, a, row))); break;
    default: match_set(v, n, f, a, yes);
    }
}

// ---- nodes

// Bits of the rows that are there.
static uint64_t row_mask(const struct evaluation *v, size_t word) {
    int64_t left = v->rows - (int64_t)word * 64;
    return left >= 64 ? UINT64_MAX : ((uint64_t)1 << left) - 1;
}

static uint64_t valid_word(const struct evaluation *v, const struct arrow_array *a, size_t word) {
    if (a->null_count == 0) return row_mask(v, word);
    if (a->buffers[0].size == 0) return 0;
    uint64_t bits = 0;
    size_t left = a->buffers[0].size - word * 8;
    memcpy(&bits, a->buffers[0].data + word * 8, left < 8 ? left : 8);
    return bits & row_mask(v, word);
}

static void evaluate_leaf(const struct evaluation *v, const struct node *n, struct result r) {
    const struct arrow_array *a = &v->b->columns[v->place[n->column]];
    if (n->kind == NODE_IS_NULL) {
        for (size_t w = 0; w < v->words; w++) {
            r.no[w] = valid_word(v, a, w);
            r.yes[w] = ~r.no[w] & row_mask(v, w);
        }
        return;
    }
    match(v, n, arrow_schema_at(v->filter->def->arrow, n->column), a, r.yes);
    for (size_t w = 0; w < v->words; w++) {
        uint64_t valid = valid_word(v, a, w), hit = n->negated ? ~r.yes[w] : r.yes[w];
        r.yes[w] = hit & valid;
        r.no[w] = n->set_null ? 0 : ~hit & valid;
    }
}

static void evaluate(const struct evaluation *v, const struct node *n, uint32_t level) {
    struct result r = result_at(v, level), part = result_at(v, level + 1);
    size_t bytes = v->words * sizeof *r.yes;
    switch (n->kind) {
    case NODE_CONSTANT:
        memset(r.yes, n->value && !n->unknown ? 0xff : 0, bytes);
        memset(r.no, !n->value && !n->unknown ? 0xff : 0, bytes);
        return;
    case NODE_NOT:
        evaluate(v, n->children[0], level);
        for (size_t w = 0; w < v->words; w++) {
            uint64_t yes = r.yes[w];
            r.yes[w] = r.no[w];
            r.no[w] = yes;
        }
        return;
    case NODE_AND:
    case NODE_OR:
        evaluate(v, n->children[0], level);
        for (uint32_t i = 1; i < n->child_count; i++) {
            evaluate(v, n->children[i], level + 1);
            uint64_t *all = n->kind == NODE_AND ? r.yes : r.no, *any = n->kind == NODE_AND ? r.no : r.yes;
            const uint64_t *part_all = n->kind == NODE_AND ? part.yes : part.no, *part_any = n->kind == NODE_AND ? part.no : part.yes;
            for (size_t w = 0; w < v->words; w++) {
                all[w] &= part_all[w];
                any[w] |= part_any[w];
            }
        }
        return;
    default: evaluate_leaf(v, n, r);
    }
}

size_t filter_rows(const struct filter *f, const struct arrow_batch *b, const uint32_t *columns, uint32_t *out_rows) {
    if (b->row_count == 0) return 0;
    struct evaluation v = {.filter = f, .b = b, .rows = b->row_count, .words = (size_t)(b->row_count + 63) / 64};
    v.bits = mem_alloc(2 * (f->depth + 1) * v.words * sizeof *v.bits);
    v.place = mem_alloc(f->def->column_count * sizeof *v.place);
    for (uint32_t i = 0; i < f->def->column_count; i++) v.place[i] = -1;
    for (uint32_t i = 0; i < arrow_schema_count(b->schema); i++)
        if (columns[i] < f->def->column_count) v.place[columns[i]] = (int32_t)i;
    bool *used = mem_new_array(bool, f->def->column_count);
    filter_columns(f, used);
    for (uint32_t i = 0; i < f->def->column_count; i++) mink_assert(!used[i] || v.place[i] >= 0);
    evaluate(&v, f->root, 0);
    struct result r = result_at(&v, 0);
    size_t count = 0;
    for (size_t w = 0; w < v.words; w++)
        for (uint64_t bits = r.yes[w] & row_mask(&v, w); bits; bits &= bits - 1) out_rows[count++] = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits);
    mem_free(used);
    mem_free(v.place);
    mem_free(v.bits);
    return count;
}

// ---- statistics

// Whether some row can be true, and whether some can be false. Minimum and maximum are bounds: values need not reach them.
struct may { bool yes, no; };

static struct may may_range(const struct node *n, const struct arrow_field *f, const struct arrow_column_stats *s) {
    bool below, above, inside; // all values below the range, above it, in it
    const struct arrow_scalar *min = &s->min, *max = &s->max;
    __int128 low, high;
    int order;
    switch (n->kind) {
    case NODE_INT:
    case NODE_DECIMAL:
        low = n->kind == NODE_INT ? min->i : min->dec;
        high = n->kind == NODE_INT ? max->i : max->dec;
        below = high < n->low;
        above = low > n->high;
        inside = low >= n->low && high <= n->high;
        if (n->low > n->high) below = true, inside = false;
        break;
    case NODE_REAL:
        below = max->d < n->real_low;
        above = min->d > n->real_high;
        inside = min->d >= n->real_low && max->d <= n->real_high;
        break;
    default:
        if (f->type != ARROW_UTF8) return (struct may){true, true};
        below = above = false;
        inside = true;
        if (n->has_low) {
            order = bytes_order(max->bytes, max->size, n->text_low.data, n->text_low.size);
            below = order < 0 || (order == 0 && n->low_open);
            order = bytes_order(min->bytes, min->size, n->text_low.data, n->text_low.size);
            inside = order > 0 || (order == 0 && !n->low_open);
        }
        if (n->has_high) {
            order = bytes_order(min->bytes, min->size, n->text_high.data, n->text_high.size);
            above = order > 0 || (order == 0 && n->high_open);
            order = bytes_order(max->bytes, max->size, n->text_high.data, n->text_high.size);
            inside = inside && (order < 0 || (order == 0 && !n->high_open));
        }
    }
    struct may m = {!below && !above, !inside};
    return n->negated ? (struct may){m.no, m.yes} : m;
}

static struct may may_like(const struct node *n, const struct arrow_column_stats *s) {
    // Texts with the prefix are those from the prefix itself up to all that begin with it.
    const struct bytes *prefix = &n->text_high;
    size_t common = s->min.size < prefix->size ? s->min.size : prefix->size;
    bool below = bytes_order(s->max.bytes, s->max.size, prefix->data, prefix->size) < 0;
    bool above = common && memcmp(s->min.bytes, prefix->data, common) > 0;
    return (struct may){!below && !above, true};
}

static struct may may_set(const struct node *n, const struct arrow_field *f, const struct arrow_column_stats *s) {
    struct may m = {false, !n->set_null};
    enum value_class class = filter_class(f);
    for (uint32_t i = 0; i < n->set_count && !m.yes; i++) {
        if (class == CLASS_INT) m.yes = n->ints[i] >= s->min.i && n->ints[i] <= s->max.i;
        else if (class == CLASS_DECIMAL) m.yes = n->ints[i] >= s->min.dec && n->ints[i] <= s->max.dec;
        else if (class == CLASS_REAL) m.yes = n->reals[i] >= s->min.d && n->reals[i] <= s->max.d;
        else if (f->type != ARROW_UTF8) m.yes = true;
        else
            m.yes = bytes_order(n->texts[i].data, n->texts[i].size, s->min.bytes, s->min.size) >= 0 && bytes_order(n->texts[i].data, n->texts[i].size, s->max.bytes, s->max.size) <= 0;
    }
    return m;
}

static struct may may_pass(const struct filter *f, const struct node *n, const struct arrow_column_stats *const *stats, int64_t rows) {
    struct may m, part;
    switch (n->kind) {
    case NODE_CONSTANT: return (struct may){n->value && !n->unknown, !n->value && !n->unknown};
    case NODE_NOT: m = may_pass(f, n->children[0], stats, rows); return (struct may){m.no, m.yes};
    case NODE_AND:
    case NODE_OR:
        m = n->kind == NODE_AND ? (struct may){true, false} : (struct may){false, true};
        for (uint32_t i = 0; i < n->child_count; i++) {
            part = may_pass(f, n->children[i], stats, rows);
            if (n->kind == NODE_AND) m = (struct may){m.yes && part.yes, m.no || part.no};
            else m = (struct may){m.yes || part.yes, m.no && part.no};
        }
        return m;
    default: break;
    }
    const struct arrow_column_stats *s = stats[n->column];
    if (s == NULL) return (struct may){true, true};
    if (n->kind == NODE_IS_NULL) return (struct may){s->null_count > 0, s->null_count < rows};
    if (s->null_count >= rows) return (struct may){false, false};
    if (!s->has_min_max || n->kind == NODE_BOOL) return (struct may){true, true};
    const struct arrow_field *field = arrow_schema_at(f->def->arrow, n->column);
    return n->kind == NODE_LIKE ? may_like(n, s) : n->kind == NODE_IN ? may_set(n, field, s) : may_range(n, field, s);
}

bool filter_may_pass(const struct filter *f, const struct arrow_column_stats *const *stats, int64_t row_count) { return may_pass(f, f->root, stats, row_count).yes; }
