/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of batch or steps on the command line, and times for people. */
#ifndef CELLGATE_CLI_EXTENTS_H
#define CELLGATE_CLI_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "cellgate/cellgate.h"

#define CLI_EXTENTS_MOST 64

typedef struct cli_extents {
    int64_t least, most;
} cli_extents;

/* "A-B", or "A" for one alone; both from 1 on. NULL leaves *extents as it is.
   `option` names it in INVALID's text. */
cellgate_status cli_extents_read(cli_extents *extents, const char *text,
                                 const char *option, cellgate_error *error);
/* Both ends and the powers of two between; returns how many. */
size_t cli_extents_list(const cli_extents *extents,
                        int64_t values[CLI_EXTENTS_MOST]);

/* Whether requests decide how many steps the model's inputs have. */
bool cli_free_steps(const cellgate_model *model);

/* "92.1 us", "3.04 ms", "12 s". */
void cli_time_text(char *text, size_t size, double seconds);

#endif
