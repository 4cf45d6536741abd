/* SPDX-License-Identifier: Apache-2.0 */
/* The last part of a path. */
#ifndef CELLGATE_RUNTIME_FILE_NAME_H
#define CELLGATE_RUNTIME_FILE_NAME_H

#include <string.h>

/* Within the path, behind its last slash. */
static inline const char *cg_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

#endif
