/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures, drawn by gnuplot, which is looked for when it is needed. */
#ifndef CELLGATE_CLI_GNUPLOT_H
#define CELLGATE_CLI_GNUPLOT_H

#include <stdio.h>

#include "cellgate/cellgate.h"

/* Writes what is to be drawn; the picture's kind and file are set already. */
typedef void (*cli_gnuplot_script)(FILE *to, const void *context);

/*
 * Draws a .png or a .svg, by the path's ending, which appears whole or not at
 * all. `option` names it in messages. INVALID: another ending. NOT_FOUND: there
 * is no gnuplot. IO: it failed.
 */
cellgate_status cli_gnuplot(const char *path, const char *option,
                            cli_gnuplot_script script, const void *context,
                            cellgate_error *error);

/* A text in the script's quotes. */
void cli_gnuplot_text(FILE *to, const char *text);

#endif
