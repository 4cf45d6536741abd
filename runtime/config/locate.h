/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which configuration file is in use, and its bytes.
 *
 *   1. the path that the application gives
 *   2. $CELLGATE_CONFIG
 *   3. $XDG_CONFIG_HOME/cellgate/cellgate.ini, or the same in ~/.config
 *   4. SYSCONFDIR/cellgate/cellgate.ini
 *   5. the built-in default: an empty file whose path is ""
 *
 * A file named by 1 or 2 must be there; 3 and 4 are skipped when they are not,
 * and are an error when they are but cannot be read. In a process that runs
 * with someone else's rights only 4 and 5 count, and 1 is refused: its errors
 * would show lines of files that the user may not read.
 */
#ifndef CELLGATE_RUNTIME_CONFIG_LOCATE_H
#define CELLGATE_RUNTIME_CONFIG_LOCATE_H

#include "cellgate/plugin.h"

#define CG_CONFIG_BYTES_MAX (1 << 20)

typedef struct cg_config_text {
    char *path;
    char *bytes;
    size_t size;
} cg_config_text;

/*
 * Finds and reads the file; the caller finishes *text. IO: it cannot be read,
 * and the text says who named it; BAD_CONFIG: it is too large to be one.
 */
cellgate_status cg_config_locate(const char *path, cg_config_text *text,
                                 cellgate_error *error);
void cg_config_text_finish(cg_config_text *text);

#endif
