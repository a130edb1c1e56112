// SPDX-License-Identifier: Apache-2.0
// object_dir.h: the object store in a local directory. Keys are paths below it.
//
// put       temp file in the same folder → write → fsync → link() to the final name (EEXIST = EXISTS) → unlink temp → fsync folder.
//           Never renames over anything, so creation is atomic across processes. fsync errors are fatal to the store.
// durability  OBJECT_DIR_FSYNC (default) or OBJECT_DIR_PAGE_CACHE (for comparisons only; loses data on power loss).
#ifndef MINK_OBJECT_OBJECT_DIR_H
#define MINK_OBJECT_OBJECT_DIR_H
#include "object/object.h"
enum object_dir_durability { OBJECT_DIR_FSYNC, OBJECT_DIR_PAGE_CACHE };
// Creates the folder when absent; removes temp files of dead processes. threads: concurrent I/Os (default 16).
enum mink_code object_dir_open(const char *path, enum object_dir_durability durability, unsigned threads, struct object_store **out, struct error *e) MINK_MUST_CHECK;
#endif
