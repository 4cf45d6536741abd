/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a file that is whole or untouched. The bytes go to a temporary file
 * in the same folder, which replaces the destination by one rename() after
 * they have reached the disk. A reader sees the old file or the new one, and a
 * crash leaves the old one.
 *
 * Any thread; one file object is used by one thread at a time. Two writers of
 * one path each write their own temporary file, and the later commit wins.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_ATOMIC_FILE_H
#define CELLGATE_RUNTIME_FORMATS_ATOMIC_FILE_H

#include <stdio.h>

#include "cellgate/types.h"

typedef struct cg_atomic_file cg_atomic_file;

/*
 * Begins to write `path`. A symbolic link is followed, so that its target is
 * replaced and the link stays. A file that is replaced keeps its permissions;
 * a new one gets those of the umask. IO: the folder cannot be written, or
 * `path` is there and is not a regular file. End it with exactly one of
 * commit and abandon.
 */
cellgate_status cg_atomic_file_open(const char *path, cg_atomic_file **file,
                                    cellgate_error *error);

/*
 * The stream to write to, buffered and seekable; the file object owns it. Its
 * write errors need no checking before commit.
 */
FILE *cg_atomic_file_stream(cg_atomic_file *file);

/*
 * Puts the file in place. The object is gone whatever the answer; after an
 * error so is the temporary file, and the destination is as it was. IO: a
 * write failed, now or earlier.
 */
cellgate_status cg_atomic_file_commit(cg_atomic_file *file,
                                      cellgate_error *error);

/* Drops what was written; the destination is as it was. NULL is allowed. */
void cg_atomic_file_abandon(cg_atomic_file *file);

#endif
