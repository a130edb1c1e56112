// SPDX-License-Identifier: Apache-2.0
// object_dir.h: the object store in a local directory. Keys are paths below it.
//
// put         temp file → write → fdatasync → link() to the final name (EEXIST = EXISTS) → unlink temp → fsync of the folder.
//             Creation is atomic across processes, and no partial object is ever visible under a key. EXISTS is told only after the
//             folder was synced too: what the loser then reads is durable. A put without if_absent renames over the old object.
// temp files  in .tmp/, named by a random id of the store that made them, which holds a lock on .tmp/<id>.lock while it lives: opening
//             removes those whose lock nobody holds. The lock goes with the process, so pids of other containers don't matter.
// errors      no space: UNAVAILABLE [STORE_FULL]. A failed sync or EIO: what the disk holds is no longer known, so everything is
//             refused from then on [STORE_FAILED]; start again. Removals are not synced: what comes back after a power cut is an orphan.
// durability  OBJECT_DIR_FSYNC (default) or OBJECT_DIR_PAGE_CACHE (for comparisons only; loses data on power loss).
// Bounds      threads I/Os at once, started as needed. Each priority class has its own queue and share of the threads; a quarter
//             of them serves WAL puts only. An idle store makes no system call.
#ifndef MINK_OBJECT_OBJECT_DIR_H
#define MINK_OBJECT_OBJECT_DIR_H
#include "object/object.h"
enum object_dir_durability { OBJECT_DIR_FSYNC, OBJECT_DIR_PAGE_CACHE };
// Creates the folder when absent; removes temp files of dead processes; proves that it can create. threads: 0 = 16.
// DENIED [STORE_NOT_WRITABLE], UNSUPPORTED [STORE_NO_LINKS], UNAVAILABLE [STORE_FULL], INVALID [STORE_PATH].
enum mink_code object_dir_open(const char *path, enum object_dir_durability durability, unsigned threads, struct object_store **out, struct error *e) MINK_MUST_CHECK;
#endif
