/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of `cellgate plan` share. */
#ifndef CELLGATE_CLI_PLAN_H
#define CELLGATE_CLI_PLAN_H

#include "cli/command.h"
#include "cli/extents.h"

typedef struct plan_options {
    char *device, *batch, *steps, *csv, *picture;
    double fill, requests;
    int grid;
} plan_options;

/* One shape of a grid. */
typedef struct cli_cell {
    int64_t batch, steps;
    size_t choice; /* number of the placement, in order of appearance */
    double seconds, error, ahead;
    int32_t estimate; /* a cellgate_estimate */
    char *rival;
} cli_cell;

/* Who is chosen at each shape. */
typedef struct cli_grid {
    const char *model;
    int64_t batches[CLI_EXTENTS_MOST], steps[CLI_EXTENTS_MOST];
    size_t rows, columns; /* a row a batch */
    cli_cell *cells;      /* [rows][columns] */
    char **choices;
    size_t choice_count;
} cli_grid;

/* grid.c: asks for every shape. cli_grid_finish() after a failure too. */
cellgate_status cli_grid_init(cli_grid *grid, const char *path,
                              cellgate_session *session,
                              const cellgate_model *model,
                              const plan_options *options,
                              cellgate_error *error);
void cli_grid_finish(cli_grid *grid);
/* "A" to "Z", "a" to "z", then "?". */
char cli_grid_letter(size_t choice);

/* grid_text.c: the map for people, and the same as data. */
void cli_grid_print(const cli_grid *grid);
json_t *cli_grid_json(const cli_grid *grid);
cellgate_status cli_grid_csv(const cli_grid *grid, const char *path,
                             cellgate_error *error);

/*
 * grid_picture.c: draws the map with gnuplot, as .png or .svg by the path's
 * ending. NOT_FOUND: there is no gnuplot.
 */
cellgate_status cli_grid_picture(const cli_grid *grid, const char *path,
                                 cellgate_error *error);

#endif
