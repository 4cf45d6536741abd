/* SPDX-License-Identifier: Apache-2.0 */
/* An open model file, as the readers get it. */
#ifndef CELLGATE_RUNTIME_FORMATS_SOURCE_H
#define CELLGATE_RUNTIME_FORMATS_SOURCE_H

#include "cellgate/cellgate.h"

typedef struct cg_source {
    const char *path; /* the caller's */
    int fd;           /* of a regular file; readers leave its offset anywhere */
    uint64_t size;
    unsigned char head[16]; /* its first bytes */
    size_t head_size;
} cg_source;

/* Errors do not name the path. IO: it cannot be opened or read; UNSUPPORTED or
   BAD_FILE: it is no regular file. */
cellgate_status cg_source_open(const char *path, cg_source *source,
                               cellgate_error *error);
void cg_source_close(cg_source *source);

/* All of the file, with a NUL after it; the caller frees it. BAD_FILE: it has
   more than `most` bytes. */
cellgate_status cg_source_read(const cg_source *source, uint64_t most,
                               char **bytes, cellgate_error *error);

#endif
