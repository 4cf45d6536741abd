/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a bench as a picture: a bar a candidate. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "cli/bench.h"
#include "cli/gnuplot.h"

/* Number, median, quartiles, cold first call; in milliseconds. */
static void put_data(FILE *to, const bench *of)
{
    size_t bars = 0;

    fputs("$times << END\n", to);
    for (size_t i = 0; i < of->count; i++) {
        bench_summary all, compute;
        bool computes;

        if (!bench_summarise(&of->subjects[i], &all, &compute, &computes))
            continue;
        fprintf(to, "%zu %.9g %.9g %.9g %.9g\n", bars++, all.median * 1e3,
                all.low * 1e3, all.high * 1e3, of->subjects[i].first * 1e3);
    }
    fputs("END\n", to);
}

static void put_names(FILE *to, const bench *of)
{
    size_t bars = 0;

    fputs("set xtics noenhanced rotate by -30 (", to);
    for (size_t i = 0; i < of->count; i++) {
        const bench_subject *subject = &of->subjects[i];
        char name[160];

        if (subject->session == NULL || subject->runs == 0)
            continue;
        snprintf(name, sizeof name, "%s %s", subject->device, subject->variant);
        fputs(bars > 0 ? ", " : "", to);
        cli_gnuplot_text(to, name);
        fprintf(to, " %zu", bars++);
    }
    fprintf(to, ")\nset xrange [-0.6:%g]\n", (double)bars - 0.4);
}

static void put_script(FILE *to, const void *context)
{
    const bench *of = context;
    const char *slash = strrchr(of->model_name, '/');
    char title[512];

    snprintf(title, sizeof title,
             "%s: batch %" PRId64 ", steps %" PRId64 "; median and quartiles "
             "of %d runs, host memory to host memory",
             slash != NULL ? slash + 1 : of->model_name, of->batch, of->steps,
             of->runs);
    fputs("set title ", to);
    cli_gnuplot_text(to, title);
    fputs(" noenhanced\nset ylabel 'milliseconds'\nset logscale y\n"
          "set grid ytics\nset key outside bottom center\n",
          to);
    put_names(to, of);
    put_data(to, of);
    fputs("plot $times using 1:2:(0.6) with boxes fillstyle solid 0.45 "
          "noborder title 'median', \\\n"
          "  $times using 1:2:3:4 with yerrorbars pointtype 0 linecolor rgb "
          "'black' title 'quartiles', \\\n"
          "  $times using 1:5 with points pointtype 6 linecolor rgb 'black' "
          "title 'first call'\n",
          to);
}

cellgate_status bench_plot(const bench *of, const char *path,
                           cellgate_error *error)
{
    return cli_gnuplot(path, "--plot", put_script, of, error);
}
