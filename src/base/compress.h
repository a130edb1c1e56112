// SPDX-License-Identifier: Apache-2.0
// compress.h: ZSTD and LZ4 frames as Arrow's body compression uses them (zstd frames; LZ4 frame format). Any thread.
#ifndef MINK_BASE_COMPRESS_H
#define MINK_BASE_COMPRESS_H
#include "base/error.h"
#include <stddef.h>
enum codec { CODEC_NONE, CODEC_LZ4_FRAME, CODEC_ZSTD };
size_t compress_bound(enum codec codec, size_t size);
enum mink_code compress_into(enum codec codec, int level, const void *in, size_t in_size, void *out, size_t out_capacity, size_t *out_size, struct error *e) MINK_MUST_CHECK;
// out_size must be produced exactly; anything else is INVALID [BAD_COMPRESSION].
enum mink_code decompress_into(enum codec codec, const void *in, size_t in_size, void *out, size_t out_size, struct error *e) MINK_MUST_CHECK;
#endif
