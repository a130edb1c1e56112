// SPDX-License-Identifier: Apache-2.0
// What foreign bytes of a well-formed array have to mean. The checks run over whole buffers in vectors; rows are looked at one by one only
// to name the one that is wrong.
#include "arrow/arrow_internal.h"
#include "base/mem.h"

#include <inttypes.h>
#if defined(__x86_64__)
#include <tmmintrin.h>
#endif

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef int32_t ints4 __attribute__((vector_size(16)));

static inline bytes16 load16(const uint8_t *p) {
    bytes16 v;
    memcpy(&v, p, sizeof v);
    return v;
}

bool utf8_is_ascii(const uint8_t *data, size_t size) {
    bytes16 seen = {0};
    size_t i = 0;
    for (; i + 64 <= size; i += 64) seen |= load16(data + i) | load16(data + i + 16) | load16(data + i + 32) | load16(data + i + 48);
    for (; i + 16 <= size; i += 16) seen |= load16(data + i);
    uint64_t halves[2];
    memcpy(halves, &seen, sizeof halves);
    uint64_t bits = halves[0] | halves[1];
    for (; i < size; i++) bits |= data[i];
    return (bits & 0x8080808080808080u) == 0;
}

// Unicode 15, table 3-7: well-formed UTF-8 byte sequences.
static bool utf8_valid_scalar(const uint8_t *p, size_t size) {
    const uint8_t *end = p + size;
    while (p < end) {
        uint64_t word;
        if (end - p >= 8 && (memcpy(&word, p, 8), (word & 0x8080808080808080u) == 0)) {
            p += 8;
            continue;
        }
        uint8_t lead = *p;
        if (lead < 0x80) {
            p++;
        } else if (lead < 0xe0) {
            if (lead < 0xc2 || end - p < 2 || (p[1] & 0xc0) != 0x80) return false;
            p += 2;
        } else if (lead < 0xf0) {
            if (end - p < 3 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80) return false;
            if ((lead == 0xe0 && p[1] < 0xa0) || (lead == 0xed && p[1] > 0x9f)) return false;
            p += 3;
        } else {
            if (lead > 0xf4 || end - p < 4 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80 || (p[3] & 0xc0) != 0x80) return false;
            if ((lead == 0xf0 && p[1] < 0x90) || (lead == 0xf4 && p[1] > 0x8f)) return false;
            p += 4;
        }
    }
    return true;
}

#if defined(__x86_64__)
// Each pair of neighbouring bytes is looked up by its three outer nibbles; a bit that survives all three lookups is an error, except that
// two continuations in a row are right where a three- or four-byte character asks for them (J. Keiser, D. Lemire: Validating UTF-8 in less
// than one instruction per byte, 2020).
enum {
    TOO_SHORT = 1,        // a lead byte, then no continuation
    TOO_LONG = 2,         // ASCII, then a continuation
    OVERLONG_3 = 4,       // e0 80..9f
    TOO_LARGE = 8,        // f4 90.. and above
    SURROGATE = 16,       // ed a0..
    OVERLONG_2 = 32,      // c0, c1
    TOO_LARGE_1000 = 64,  // f5.. 80..8f
    OVERLONG_4 = 64,      // f0 80..8f
    TWO_CONTS = 128,
    CARRY = TOO_SHORT | TOO_LONG | TWO_CONTS
};

__attribute__((target("ssse3"))) static bool utf8_valid_ssse3(const uint8_t *p, size_t size) {
    const char longs = (char)(CARRY | TOO_LARGE | TOO_LARGE_1000), conts = (char)(TOO_LONG | OVERLONG_2 | TWO_CONTS);
    const __m128i first_high = _mm_setr_epi8(TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, (char)TWO_CONTS, (char)TWO_CONTS,
                                             (char)TWO_CONTS, (char)TWO_CONTS, TOO_SHORT | OVERLONG_2, TOO_SHORT, TOO_SHORT | OVERLONG_3 | SURROGATE,
                                             TOO_SHORT | TOO_LARGE | TOO_LARGE_1000 | OVERLONG_4);
    const __m128i first_low = _mm_setr_epi8((char)(CARRY | OVERLONG_3 | OVERLONG_2 | OVERLONG_4), (char)(CARRY | OVERLONG_2), (char)CARRY, (char)CARRY,
                                            (char)(CARRY | TOO_LARGE), longs, longs, longs, longs, longs, longs, longs, longs, (char)(longs | SURROGATE), longs, longs);
    const __m128i second_high = _mm_setr_epi8(TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
                                              (char)(conts | OVERLONG_3 | TOO_LARGE_1000 | OVERLONG_4), (char)(conts | OVERLONG_3 | TOO_LARGE),
                                              (char)(conts | SURROGATE | TOO_LARGE), (char)(conts | SURROGATE | TOO_LARGE), TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT);
    const __m128i nibble = _mm_set1_epi8(15);
    __m128i previous = _mm_setzero_si128(), wrong = _mm_setzero_si128();
    // The last block is filled up with zeros, at least one, so that a character cut off at the end is seen.
    for (size_t at = 0; at <= size; at += 16) {
        __m128i here;
        if (size - at >= 16) {
            here = _mm_loadu_si128((const __m128i *)(const void *)(p + at));
        } else {
            uint8_t last[16] = {0};
            memcpy(last, p + at, size - at);
            here = _mm_loadu_si128((const __m128i *)(const void *)last);
        }
        __m128i before = _mm_alignr_epi8(here, previous, 15);
        __m128i found = _mm_and_si128(_mm_shuffle_epi8(first_high, _mm_and_si128(_mm_srli_epi16(before, 4), nibble)),
                                      _mm_and_si128(_mm_shuffle_epi8(first_low, _mm_and_si128(before, nibble)),
                                                    _mm_shuffle_epi8(second_high, _mm_and_si128(_mm_srli_epi16(here, 4), nibble))));
        // Bit 7 where the byte two (three) before leads three (four) bytes: e0.. - 60, f0.. - 70.
        __m128i third = _mm_subs_epu8(_mm_alignr_epi8(here, previous, 14), _mm_set1_epi8(0x60));
        __m128i fourth = _mm_subs_epu8(_mm_alignr_epi8(here, previous, 13), _mm_set1_epi8(0x70));
        __m128i due = _mm_and_si128(_mm_or_si128(third, fourth), _mm_set1_epi8((char)0x80));
        wrong = _mm_or_si128(wrong, _mm_xor_si128(found, due));
        previous = here;
    }
    return _mm_movemask_epi8(_mm_cmpeq_epi8(wrong, _mm_setzero_si128())) == 0xffff;
}
#endif

bool utf8_valid(const uint8_t *p, size_t size) {
#if defined(__x86_64__)
    if (size >= 32 && __builtin_cpu_supports("ssse3")) return utf8_valid_ssse3(p, size);
#endif
    return utf8_valid_scalar(p, size);
}

static bool ascending32(const uint8_t *p, int64_t count) { // count + 1 entries
    ints4 wrong = {0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        ints4 here, next;
        memcpy(&here, p + 4 * i, sizeof here);
        memcpy(&next, p + 4 * i + 4, sizeof next);
        wrong |= next < here;
    }
    bool bad = (wrong[0] | wrong[1] | wrong[2] | wrong[3]) != 0;
    for (; i < count; i++) bad |= load_i32(p, i + 1) < load_i32(p, i);
    return !bad && load_i32(p, 0) >= 0;
}

static bool ascending64(const uint8_t *p, int64_t count) {
    bool bad = false;
    for (int64_t i = 0; i < count; i++) bad |= load_i64(p, i + 1) < load_i64(p, i);
    return !bad && load_i64(p, 0) >= 0;
}

static enum mink_code fail(const struct arrow_field *f, struct error *e, const char *what, int64_t row) {
    if (row < 0) return error_set(e, MINK_INVALID, "BAD_ARROW", "field %.60s: %s", f->name, what);
    return error_set(e, MINK_INVALID, "BAD_ARROW", "field %.60s: %s at row %" PRId64, f->name, what, row);
}

// Offsets start at 0 afterwards; bytes or child are cut to what they cover.
static enum mink_code validate_offsets(const struct arrow_field *f, struct arrow_array *a, int64_t limit, struct error *e) {
    size_t width = offset_width(f);
    if (a->length == 0) {
        slice_unref(&a->buffers[1]);
        slice_unref(&a->buffers[2]);
        a->buffers[1] = slice_borrow(arrow_zeros, width);
        if (a->child_count) {
            struct arrow_array none;
            array_slice(&f->children[0], &a->children[0], 0, 0, &none);
            arrow_array_deinit(&a->children[0]);
            a->children[0] = none;
        }
        return MINK_OK;
    }
    const uint8_t *p = a->buffers[1].data;
    if (width == 4 ? !ascending32(p, a->length) : !ascending64(p, a->length)) return fail(f, e, "offsets do not ascend", -1);
    int64_t first = offset_at(f, a, 0), last = offset_at(f, a, a->length);
    if (last > limit) return fail(f, e, type_is_bytes(f->type) ? "offsets reach behind the data" : "offsets reach behind the items", -1);
    if (type_is_bytes(f->type)) {
        struct slice data = slice_sub(a->buffers[2], (size_t)first, (size_t)(last - first));
        slice_unref(&a->buffers[2]);
        a->buffers[2] = data;
    } else if (first != 0 || last != limit) {
        struct arrow_array child;
        array_slice(&f->children[0], &a->children[0], first, last - first, &child);
        arrow_array_deinit(&a->children[0]);
        a->children[0] = child;
    }
    if (first == 0) return MINK_OK;
    uint8_t *out;
    struct slice rebased = slice_new(((size_t)a->length + 1) * width, &out);
    for (int64_t i = 0; i <= a->length; i++) {
        int64_t v = offset_at(f, a, i) - first;
        memcpy(out + (size_t)i * width, &v, width);
    }
    slice_unref(&a->buffers[1]);
    a->buffers[1] = rebased;
    return MINK_OK;
}

static enum mink_code validate_utf8(const struct arrow_field *f, const struct arrow_array *a, struct error *e) {
    struct slice data = a->buffers[2];
    if (utf8_is_ascii(data.data, data.size)) return MINK_OK;
    // Valid as a whole, and no value begins inside a character: then each value is valid.
    bool whole = utf8_valid(data.data, data.size);
    if (whole) {
        bool large = type_is_large(f->type);
        const uint8_t *offsets = a->buffers[1].data;
        for (int64_t i = 0; i < a->length; i++) {
            size_t at = large ? (size_t)load_i64(offsets, i) : (size_t)load_i32(offsets, i);
            if (at < data.size && (data.data[at] & 0xc0) == 0x80) whole = false;
        }
    }
    // Bytes behind a null mean nothing, so only now the rows decide.
    for (int64_t i = 0; !whole && i < a->length; i++) {
        size_t at = (size_t)offset_at(f, a, i), end = (size_t)offset_at(f, a, i + 1);
        if (!arrow_is_null(a, i) && !utf8_valid(data.data + at, end - at)) return fail(f, e, "invalid UTF-8", i);
    }
    return MINK_OK;
}

enum mink_code array_validate(const struct arrow_field *f, struct arrow_array *a, int64_t claimed_nulls, struct error *e) {
    if (f->type == ARROW_NULL) {
        a->null_count = a->length;
        return MINK_OK;
    }
    a->null_count = a->buffers[0].size ? a->length - bits_count(a->buffers[0].data, 0, a->length) : 0;
    if (claimed_nulls >= 0 && claimed_nulls != a->null_count)
        return error_set(e, MINK_INVALID, "BAD_ARROW", "field %.60s: null count %" PRId64 " is claimed, the validity bitmap has %" PRId64, f->name, claimed_nulls, a->null_count);
    if (a->null_count == 0) slice_unref(&a->buffers[0]);
    if (type_is_bytes(f->type)) {
        MINK_TRY(validate_offsets(f, a, a->buffers[2].size > INT64_MAX ? INT64_MAX : (int64_t)a->buffers[2].size, e));
        if (f->type == ARROW_UTF8 || f->type == ARROW_LARGE_UTF8) return validate_utf8(f, a, e);
    } else if (type_is_list(f->type)) {
        return validate_offsets(f, a, a->children[0].length, e);
    } else if (f->type == ARROW_STRUCT || f->type == ARROW_FIXED_LIST) {
        int64_t need = f->type == ARROW_STRUCT ? a->length : a->length * f->width;
        for (uint32_t i = 0; i < a->child_count; i++) {
            if (a->children[i].length < need) return fail(f, e, "a child has fewer rows than its parent needs", -1);
            if (a->children[i].length == need) continue;
            struct arrow_array cut;
            array_slice(&f->children[i], &a->children[i], 0, need, &cut);
            arrow_array_deinit(&a->children[i]);
            a->children[i] = cut;
        }
    }
    return MINK_OK;
}
