/* SPDX-License-Identifier: Apache-2.0 */
/* The crossover map as a picture. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/gnuplot.h"
#include "cli/plan.h"

static void put_axis(FILE *to, const char *name, const int64_t *values,
                     size_t count)
{
    fprintf(to, "set %stics (", name);
    for (size_t i = 0; i < count; i++)
        fprintf(to, "%s'%" PRId64 "' %zu", i > 0 ? ", " : "", values[i], i);
    fprintf(to, ")\nset %srange [-0.5:%g]\n", name, (double)count - 0.5);
}

/* Column, row, choice, what is written there, whether it was measured. */
static void put_data(FILE *to, const cli_grid *grid)
{
    fputs("$map << END\n", to);
    for (size_t i = 0; i < grid->rows * grid->columns; i++) {
        const cli_cell *cell = &grid->cells[i];

        fprintf(to, "%zu %zu %zu ", i % grid->columns, i / grid->columns,
                cell->choice);
        if (cell->ahead > 0)
            fprintf(to, "\"%c %.2gx\"", cli_grid_letter(cell->choice),
                    cell->ahead);
        else
            fprintf(to, "\"%c\"", cli_grid_letter(cell->choice));
        fprintf(to, " %d\n", cell->estimate == CELLGATE_ESTIMATE_EXACT);
    }
    fputs("END\n", to);
}

static void put_plot(FILE *to, const cli_grid *grid)
{
    fputs("plot ", to);
    for (size_t i = 0; i < grid->choice_count; i++) {
        char name[160];

        snprintf(name, sizeof name, "%c  %s", cli_grid_letter(i),
                 grid->choices[i]);
        fprintf(to,
                "$map using ($3==%zu?$1:NaN):2:(0.5):(0.5) with boxxyerror "
                "fillstyle solid 0.45 noborder linecolor %zu title ",
                i, i + 1);
        cli_gnuplot_text(to, name);
        fputs(", \\\n  ", to);
    }
    fputs("$map using ($5==1?$1:NaN):($2-0.28) with points pointtype 7 "
          "pointsize 0.6 linecolor rgb 'black' title 'measured', \\\n"
          "  $map using 1:2:4 with labels notitle\n",
          to);
}

static void put_script(FILE *to, const void *context)
{
    const cli_grid *grid = context;
    const char *slash = strrchr(grid->model, '/');
    char title[512];

    snprintf(title, sizeof title,
             "%s: who is chosen, and how many times ahead of the next best",
             slash != NULL ? slash + 1 : grid->model);
    fputs("set title ", to);
    cli_gnuplot_text(to, title);
    fputs(" noenhanced\nset key outside bottom center noenhanced\n"
          "set xlabel 'steps'\nset ylabel 'batch'\n",
          to);
    put_axis(to, "x", grid->steps, grid->columns);
    put_axis(to, "y", grid->batches, grid->rows);
    put_data(to, grid);
    put_plot(to, grid);
}

cellgate_status cli_grid_picture(const cli_grid *grid, const char *path,
                                 cellgate_error *error)
{
    return cli_gnuplot(path, "--picture", put_script, grid, error);
}
