/* SPDX-License-Identifier: Apache-2.0 */
/* The crossover map as text, CSV and JSON. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/csv.h"
#include "cli/plan.h"

/* ---- For people ---------------------------------------------------------- */

/* "A*12.5": who, whether measured here, and how many times ahead. */
static void print_cell(const cli_cell *cell)
{
    const char mark = cell->estimate == CELLGATE_ESTIMATE_EXACT ? '*' : ' ';

    if (cell->estimate == CELLGATE_ESTIMATE_NONE)
        printf("  %c    ?", cli_grid_letter(cell->choice));
    else if (cell->ahead == 0)
        printf("  %c%c   -", cli_grid_letter(cell->choice), mark);
    else if (cell->ahead < 99.95)
        printf("  %c%c%4.1f", cli_grid_letter(cell->choice), mark, cell->ahead);
    else
        printf("  %c%c >99", cli_grid_letter(cell->choice), mark);
}

void cli_grid_print(const cli_grid *grid)
{
    printf("%s: who is chosen, and how many times ahead of the next best\n\n"
           "%8s  steps\n%8s",
           grid->model, "", "batch");
    for (size_t column = 0; column < grid->columns; column++)
        printf("%8" PRId64, grid->steps[column]);
    putchar('\n');
    for (size_t row = 0; row < grid->rows; row++) {
        printf("%8" PRId64, grid->batches[row]);
        for (size_t column = 0; column < grid->columns; column++)
            print_cell(&grid->cells[row * grid->columns + column]);
        putchar('\n');
    }
    putchar('\n');
    for (size_t i = 0; i < grid->choice_count; i++)
        printf("%8c  %s\n", cli_grid_letter(i), grid->choices[i]);
    puts("       *  measured at this shape; without it, predicted from others\n"
         "       -  nothing else is measured\n"
         "       ?  nothing is measured: the first usable device");
}

/* ---- As data ------------------------------------------------------------- */

json_t *cli_grid_json(const cli_grid *grid)
{
    json_t *choices = json_array(), *cells = json_array();

    for (size_t i = 0; i < grid->choice_count; i++)
        json_array_append_new(choices, json_string(grid->choices[i]));
    for (size_t i = 0; i < grid->rows * grid->columns; i++) {
        const cli_cell *cell = &grid->cells[i];

        json_array_append_new(
            cells,
            json_pack("{s:I, s:I, s:s, s:s, s:f, s:f, s:f, s:s}", "batch",
                      (json_int_t)cell->batch, "steps", (json_int_t)cell->steps,
                      "choice", grid->choices[cell->choice], "estimate",
                      cellgate_estimate_name(cell->estimate), "seconds",
                      cell->seconds, "error", cell->error, "ahead", cell->ahead,
                      "rival", cell->rival));
    }
    return json_pack("{s:s, s:o, s:o}", "model", grid->model, "choices",
                     choices, "cells", cells);
}

static void put_cell(FILE *to, const cli_grid *grid, const cli_cell *cell)
{
    fprintf(to, "%" PRId64 ",%" PRId64 ",", cell->batch, cell->steps);
    cli_csv_field(to, grid->choices[cell->choice]);
    fprintf(to, ",%s,%.9g,%.4g,%.6g,", cellgate_estimate_name(cell->estimate),
            cell->seconds, cell->error, cell->ahead);
    cli_csv_field(to, cell->rival);
    fputc('\n', to);
}

cellgate_status cli_grid_csv(const cli_grid *grid, const char *path,
                             cellgate_error *error)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    cellgate_status status;

    if (to == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    fputs("batch,steps,choice,estimate,seconds,error,ahead,rival\n", to);
    for (size_t i = 0; i < grid->rows * grid->columns; i++)
        put_cell(to, grid, &grid->cells[i]);
    status = fclose(to) == 0
                 ? cellgate_file_write(path, text, size, error)
                 : cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    free(text);
    return status;
}
