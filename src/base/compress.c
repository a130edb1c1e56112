// SPDX-License-Identifier: Apache-2.0
#include "base/compress.h"

#include <lz4frame.h>
#include <zstd.h>

size_t compress_bound(enum codec codec, size_t size) {
    switch (codec) {
    case CODEC_ZSTD: return ZSTD_compressBound(size);
    case CODEC_LZ4_FRAME: return LZ4F_compressFrameBound(size, NULL);
    default: return size;
    }
}

enum mink_code compress_into(enum codec codec, int level, const void *in, size_t in_size, void *out, size_t out_capacity, size_t *out_size, struct error *e) {
    if (codec == CODEC_ZSTD) {
        size_t n = ZSTD_compress(out, out_capacity, in, in_size, level ? level : 1);
        if (ZSTD_isError(n)) return error_set(e, MINK_INTERNAL, "COMPRESSION", "zstd: %s", ZSTD_getErrorName(n));
        *out_size = n;
        return MINK_OK;
    }
    if (codec == CODEC_LZ4_FRAME) {
        LZ4F_preferences_t preferences = {.frameInfo = {.contentSize = in_size}, .compressionLevel = level};
        size_t n = LZ4F_compressFrame(out, out_capacity, in, in_size, &preferences);
        if (LZ4F_isError(n)) return error_set(e, MINK_INTERNAL, "COMPRESSION", "lz4: %s", LZ4F_getErrorName(n));
        *out_size = n;
        return MINK_OK;
    }
    return error_set(e, MINK_INTERNAL, "COMPRESSION", "no codec");
}

static enum mink_code bad(struct error *e, const char *codec, const char *what, size_t in_size, size_t out_size) {
    return error_set(e, MINK_INVALID, "BAD_COMPRESSION", "%s: %s (%zu bytes in, %zu bytes claimed)", codec, what, in_size, out_size);
}

enum mink_code decompress_into(enum codec codec, const void *in, size_t in_size, void *out, size_t out_size, struct error *e) {
    if (codec == CODEC_ZSTD) {
        size_t n = ZSTD_decompress(out, out_size, in, in_size);
        if (ZSTD_isError(n)) return bad(e, "zstd", ZSTD_getErrorName(n), in_size, out_size);
        return n == out_size ? MINK_OK : bad(e, "zstd", "another size than claimed", in_size, out_size);
    }
    if (codec != CODEC_LZ4_FRAME) return error_set(e, MINK_INTERNAL, "COMPRESSION", "no codec");
    LZ4F_dctx *context;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION))) return error_set(e, MINK_INTERNAL, "COMPRESSION", "lz4: no context");
    const char *problem = NULL;
    size_t in_at = 0, out_at = 0, hint = 1;
    // Each step makes progress or ends: a step that neither reads nor writes is a truncated or endless frame.
    while (hint != 0 && !problem) {
        size_t in_left = in_size - in_at, out_left = out_size - out_at;
        hint = LZ4F_decompress(context, (char *)out + out_at, &out_left, (const char *)in + in_at, &in_left, NULL);
        if (LZ4F_isError(hint)) problem = LZ4F_getErrorName(hint);
        else if (hint != 0 && in_left == 0 && out_left == 0) problem = "truncated, or larger than claimed";
        in_at += in_left;
        out_at += out_left;
    }
    if (!problem && (out_at != out_size || in_at != in_size)) problem = "another size than claimed";
    LZ4F_freeDecompressionContext(context);
    return problem ? bad(e, "lz4", problem, in_size, out_size) : MINK_OK;
}
