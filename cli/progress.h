/* SPDX-License-Identifier: Apache-2.0 */
/* A progress bar on standard error, where that is a terminal. */
#ifndef CELLGATE_CLI_PROGRESS_H
#define CELLGATE_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_progress {
    bool shown;
    bool share;    /* of a time, not of rows */
    int64_t total; /* rows, or 1000 */
    double start;  /* seconds */
    double drawn;  /* when it was drawn last */
} cli_progress;

void cli_progress_begin(cli_progress *progress, int64_t total);
/* Of a work whose whole time is known: its bar is drawn by shares. */
void cli_progress_begin_share(cli_progress *progress);
/* Draws at most ten times a second. */
void cli_progress_update(cli_progress *progress, int64_t done);
void cli_progress_update_share(cli_progress *progress, double done);
/* Takes the bar away. */
void cli_progress_end(cli_progress *progress);

/* "[=====>    ]  50%  2 s left", likewise. */
void cli_progress_share_text(char *text, int width, double done,
                             double seconds);
/*
 * "[=====>    ]  50%  1000 of 2000 rows, 500 rows/s, 2 s left", cut to `width`
 * columns.
 */
void cli_progress_text(char *text, int width, int64_t done, int64_t total,
                       double seconds);

#endif
