/* SPDX-License-Identifier: Apache-2.0 */
/* A progress bar on standard error, where that is a terminal. */
#ifndef CELLGATE_CLI_PROGRESS_H
#define CELLGATE_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_progress {
    bool shown;
    int64_t total; /* rows */
    double start;  /* seconds */
    double drawn;  /* when it was drawn last */
} cli_progress;

void cli_progress_begin(cli_progress *progress, int64_t total);
/* Draws at most ten times a second. */
void cli_progress_update(cli_progress *progress, int64_t done);
/* Takes the bar away. */
void cli_progress_end(cli_progress *progress);

/*
 * "[=====>    ]  50%  1000 of 2000 rows, 500 rows/s, 2 s left", cut to `width`
 * columns.
 */
void cli_progress_text(char *text, int width, int64_t done, int64_t total,
                       double seconds);

#endif
