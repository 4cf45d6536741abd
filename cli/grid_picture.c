/* SPDX-License-Identifier: Apache-2.0 */
/* The crossover map as a picture. gnuplot is looked for when it is needed. */
#include "config.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/plan.h"

/* ---- gnuplot ------------------------------------------------------------- */

static bool is_there(const char *program)
{
    const char *path = getenv("PATH");
    char full[4096];

    while (path != NULL && *path != '\0') {
        const size_t length = strcspn(path, ":");

        if (length > 0 &&
            snprintf(full, sizeof full, "%.*s/%s", (int)length, path, program) <
                (int)sizeof full &&
            access(full, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

static const char *terminal_of(const char *path)
{
    const char *ending = strrchr(path, '.');

    if (ending != NULL && strcmp(ending, ".svg") == 0)
        return "set terminal svg size 900,600 font 'Helvetica,12'\n";
    if (ending != NULL && strcmp(ending, ".png") == 0)
        return "if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) "
               "set terminal pngcairo size 900,600; "
               "else set terminal png size 900,600\n";
    return NULL;
}

/* ---- The script ---------------------------------------------------------- */

/* In single quotes nothing but the quote itself means anything. */
static void put_text(FILE *to, const char *text)
{
    fputc('\'', to);
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputc('\'', to);
        fputc(*text, to);
    }
    fputc('\'', to);
}

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
        put_text(to, name);
        fputs(", \\\n  ", to);
    }
    fputs("$map using ($5==1?$1:NaN):($2-0.28) with points pointtype 7 "
          "pointsize 0.6 linecolor rgb 'black' title 'measured', \\\n"
          "  $map using 1:2:4 with labels notitle\n",
          to);
}

static void put_script(FILE *to, const cli_grid *grid, const char *terminal,
                       const char *output)
{
    const char *slash = strrchr(grid->model, '/');
    char title[512];

    snprintf(title, sizeof title,
             "%s: who is chosen, and how many times ahead of the next best",
             slash != NULL ? slash + 1 : grid->model);
    fputs(terminal, to);
    fputs("set output ", to);
    put_text(to, output);
    fputs("\nset title ", to);
    put_text(to, title);
    fputs(" noenhanced\nset key outside bottom center noenhanced\n"
          "set xlabel 'steps'\nset ylabel 'batch'\n",
          to);
    put_axis(to, "x", grid->steps, grid->columns);
    put_axis(to, "y", grid->batches, grid->rows);
    put_data(to, grid);
    put_plot(to, grid);
    fputs("unset output\n", to);
}

cellgate_status cli_grid_picture(const cli_grid *grid, const char *path,
                                 cellgate_error *error)
{
    const char *terminal = terminal_of(path);
    char output[4096];
    void (*before)(int);
    FILE *to;
    int ended;

    if (terminal == NULL)
        return cli_error(error, CELLGATE_INVALID,
                         "--picture takes a name that ends in .png or .svg, "
                         "not \"%s\"",
                         path);
    if (!is_there("gnuplot"))
        return cli_error(error, CELLGATE_NOT_FOUND,
                         "--picture needs gnuplot, which is not in PATH; "
                         "without it, --csv writes the same map as numbers");
    if (snprintf(output, sizeof output, "%s.part", path) >= (int)sizeof output)
        return cli_error(error, CELLGATE_INVALID, "%s: too long a name", path);
    before = signal(SIGPIPE, SIG_IGN); /* it may end before it has read all */
    to = popen("gnuplot", "w");
    if (to != NULL)
        put_script(to, grid, terminal, output);
    ended = to != NULL ? pclose(to) : -1;
    (void)signal(SIGPIPE, before);
    if (ended != 0 || rename(output, path) != 0) {
        (void)unlink(output);
        return cli_error(error, CELLGATE_IO,
                         "%s: gnuplot did not draw it (exit code %d)", path,
                         WIFEXITED(ended) ? WEXITSTATUS(ended) : ended);
    }
    return CELLGATE_OK;
}
