/* SPDX-License-Identifier: Apache-2.0 */
/* An audit for people, and as data. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/audit.h"
#include "cli/csv.h"

/* ---- Keeping ------------------------------------------------------------- */

bool cli_audit_keep(cli_audit_report *report, const cellgate_audit_cell *cell)
{
    cellgate_audit_cell *kept;

    if (report->count == report->capacity) {
        const size_t capacity = 2 * report->capacity + 64;

        kept = realloc(report->cells, capacity * sizeof *kept);
        if (kept == NULL)
            return false;
        report->cells = kept;
        report->capacity = capacity;
    }
    kept = &report->cells[report->count++];
    *kept = *cell;
    kept->choice = strdup(cell->choice);
    kept->best = strdup(cell->best);
    kept->note = strdup(cell->note);
    return kept->choice != NULL && kept->best != NULL && kept->note != NULL;
}

void cli_audit_finish(cli_audit_report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        free((char *)report->cells[i].choice);
        free((char *)report->cells[i].best);
        free((char *)report->cells[i].note);
    }
    free(report->cells);
}

/* ---- For people ---------------------------------------------------------- */

static void print_share(const char *what, uint32_t right, uint32_t wrong,
                        uint32_t undecided)
{
    const uint32_t all = right + wrong + undecided;

    printf("%-30s %5" PRIu32 " %5" PRIu32 " %5" PRIu32 " %9" PRIu32, what, all,
           right, wrong, undecided);
    if (all > 0)
        printf(" %8.1f%%", 100.0 * right / all);
    putchar('\n');
}

static void print_cell(const cellgate_audit_cell *cell)
{
    char seconds[32];

    printf("%7" PRId64 " %7" PRId64 "  %-10s", cell->batch, cell->steps,
           cellgate_audit_verdict_name(cell->verdict));
    if (cell->verdict == CELLGATE_AUDIT_LEFT_OUT) {
        printf(" %s\n", cell->note);
        return;
    }
    cli_time_text(seconds, sizeof seconds, cell->seconds);
    printf(" %-20s %10s %-20s %6.2f  %.2f to %.2f  %s\n", cell->choice, seconds,
           cell->best, cell->ratio, cell->ratio_low, cell->ratio_high,
           cell->note);
}

/* All that is not right. */
static void print_cells(const cli_audit_report *report)
{
    bool titled = false;

    for (size_t i = 0; i < report->count; i++) {
        if (report->cells[i].verdict == CELLGATE_AUDIT_RIGHT)
            continue;
        if (!titled)
            printf("\n%7s %7s  %-10s %-20s %10s %-20s %6s  %s\n", "batch",
                   "steps", "", "choice", "time", "measured best", "ratio",
                   "interval");
        titled = true;
        print_cell(&report->cells[i]);
    }
}

void cli_audit_print(const cli_audit_report *report)
{
    const cellgate_audit_result *of = &report->result;

    printf("%s: %" PRIu32 " %s of batch %" PRId64 " to %" PRId64, report->model,
           of->cells, cli_counted(of->cells, "shape", "shapes"),
           report->batch.least, report->batch.most);
    if (report->steps.least > 0)
        printf(", steps %" PRId64 " to %" PRId64, report->steps.least,
               report->steps.most);
    printf(", seed %" PRId64 "\n\n", report->seed);
    printf("%-30s %5s %5s %5s %9s %9s\n", "", "all", "right", "wrong",
           "undecided", "right");
    print_share("all", of->right, of->wrong, of->undecided);
    print_share("near a crossover", of->crossover_right, of->crossover_wrong,
                of->crossover_undecided);
    print_share("measured before at that shape", of->exact_right,
                of->exact_wrong, of->exact_undecided);
    printf("\nlost to the measured best: %.2f%% in the mean; %.2f times at "
           "worst\nthe choice against itself: off by %.2f%% in the median, "
           "%.2f%% at worst\n",
           100 * of->regret, of->worst, 100 * of->self_median,
           100 * of->self_worst);
    print_cells(report);
    if (of->left_out + of->unreached > 0)
        printf("\n%" PRIu32 " %s left out; %" PRIu32 " %s not reached%s\n",
               of->left_out,
               cli_counted(of->left_out, "shape was", "shapes were"),
               of->unreached, cli_counted(of->unreached, "was", "were"),
               report->stopped ? ": it was stopped" : " in the time");
    puts("\nright: within 5% of the measured best. near a crossover: with half "
         "or twice\nthe batch or the steps another one is chosen.");
}

/* ---- As data ------------------------------------------------------------- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *cell_json(const cellgate_audit_cell *cell)
{
    return json_pack(
        "{s:I, s:I, s:s, s:b, s:s, s:s, s:s, s:f, s:f, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:i, s:i, s:i, s:s}",
        "batch", (json_int_t)cell->batch, "steps", (json_int_t)cell->steps,
        "verdict", cellgate_audit_verdict_name(cell->verdict), "crossover",
        (int)cell->crossover, "choice", cell->choice, "best", cell->best,
        "estimate", cellgate_estimate_name(cell->estimate), "predicted",
        cell->predicted, "seconds", cell->seconds, "ratio", number(cell->ratio),
        "ratio_low", number(cell->ratio_low), "ratio_high",
        number(cell->ratio_high), "self", number(cell->self), "self_low",
        number(cell->self_low), "self_high", number(cell->self_high), "rivals",
        (int)cell->rivals, "far", (int)cell->far, "rounds", (int)cell->rounds,
        "note", cell->note);
}

static json_t *share_json(uint32_t right, uint32_t wrong, uint32_t undecided)
{
    return json_pack("{s:i, s:i, s:i}", "right", (int)right, "wrong",
                     (int)wrong, "undecided", (int)undecided);
}

json_t *cli_audit_json(const cli_audit_report *report)
{
    const cellgate_audit_result *of = &report->result;
    json_t *cells = json_array();

    for (size_t i = 0; i < report->count; i++)
        json_array_append_new(cells, cell_json(&report->cells[i]));
    return json_pack(
        "{s:s, s:I, s:i, s:i, s:i, s:b, s:o, s:o, s:o, s:f, s:f, s:f, s:f, "
        "s:o}",
        "model", report->model, "seed", (json_int_t)report->seed, "shapes",
        (int)of->cells, "left_out", (int)of->left_out, "unreached",
        (int)of->unreached, "stopped", (int)report->stopped, "all",
        share_json(of->right, of->wrong, of->undecided), "crossover",
        share_json(of->crossover_right, of->crossover_wrong,
                   of->crossover_undecided),
        "exact",
        share_json(of->exact_right, of->exact_wrong, of->exact_undecided),
        "regret", of->regret, "worst", of->worst, "self_median",
        of->self_median, "self_worst", of->self_worst, "cells", cells);
}

static void put_cell(FILE *to, const cellgate_audit_cell *cell)
{
    fprintf(to, "%" PRId64 ",%" PRId64 ",%s,%d,", cell->batch, cell->steps,
            cellgate_audit_verdict_name(cell->verdict), cell->crossover != 0);
    cli_csv_field(to, cell->choice);
    fputc(',', to);
    cli_csv_field(to, cell->best);
    fprintf(to,
            ",%s,%.9g,%.9g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%" PRIu32 ",%" PRIu32
            ",%" PRIu32 ",",
            cellgate_estimate_name(cell->estimate), cell->predicted,
            cell->seconds, cell->ratio, cell->ratio_low, cell->ratio_high,
            cell->self, cell->self_low, cell->self_high, cell->rivals,
            cell->far, cell->rounds);
    cli_csv_field(to, cell->note);
    fputc('\n', to);
}

cellgate_status cli_audit_csv(const cli_audit_report *report, const char *path,
                              cellgate_error *error)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    cellgate_status status;

    if (to == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    fputs("batch,steps,verdict,crossover,choice,best,estimate,predicted,"
          "seconds,ratio,ratio_low,ratio_high,self,self_low,self_high,rivals,"
          "far,rounds,note\n",
          to);
    for (size_t i = 0; i < report->count; i++)
        put_cell(to, &report->cells[i]);
    status = fclose(to) == 0
                 ? cellgate_file_write(path, text, size, error)
                 : cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    free(text);
    return status;
}
