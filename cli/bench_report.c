/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a bench: for people, as JSON, as CSV. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"
#include "cli/csv.h"
#include "cli/extents.h"

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void sum_up(double *seconds, int count, bench_summary *summary)
{
    qsort(seconds, (size_t)count, sizeof *seconds, by_size);
    summary->least = seconds[0];
    summary->low = seconds[(count - 1) / 4];
    summary->high = seconds[count - 1 - (count - 1) / 4];
    summary->median = (seconds[(count - 1) / 2] + seconds[count / 2]) / 2;
}

bool bench_summarise(const bench_subject *of, bench_summary *all,
                     bench_summary *compute, bool *computes)
{
    if (of->session == NULL || of->runs == 0)
        return false;
    sum_up(of->seconds, of->runs, all);
    sum_up(of->compute, of->runs, compute);
    *computes = compute->median > 0;
    return true;
}

static const char *variant_of(const bench_subject *of)
{
    return of->variant[0] != '\0' ? of->variant : "-";
}

/* ---- For people ---------------------------------------------------------- */

static void print_subject(const bench_subject *of)
{
    char first[32], median[32], least[32], computing[32] = "-";
    bench_summary all, compute;
    bool computes;

    if (!bench_summarise(of, &all, &compute, &computes)) {
        printf("%-16s %-12s not timed: %s\n", of->device, variant_of(of),
               of->reason);
        return;
    }
    cli_time_text(first, sizeof first, of->first);
    cli_time_text(median, sizeof median, all.median);
    cli_time_text(least, sizeof least, all.least);
    if (computes)
        cli_time_text(computing, sizeof computing, compute.median);
    printf("%-16s %-12s %10s %10s %7.1f%% %10s %10s", of->device,
           variant_of(of), first, median,
           100 * (all.high - all.low) / all.median, least, computing);
    if (of->host_segments > 0 && strcmp(of->device, "host") != 0)
        printf("  (%" PRIu32 " of %" PRIu32 " parts on the host)",
               of->host_segments, of->host_segments + of->segments);
    if (of->note[0] != '\0')
        printf("  (not its fastest way: %s)", of->note);
    putchar('\n');
}

void bench_print(const bench *of)
{
    printf("%s: batch %" PRId64 ", steps %" PRId64 "; %d runs after a first "
           "one and %d of warm-up, in turns, from host memory to host "
           "memory\n\n%-16s %-12s %10s %10s %8s %10s %10s\n",
           of->model_name, of->batch, of->steps, of->runs, of->warm_up,
           "device", "variant", "first", "median", "spread", "least",
           "compute");
    for (size_t i = 0; i < of->count; i++)
        print_subject(&of->subjects[i]);
    puts("\nspread: between the quartiles, of the median; compute: the median "
         "time without transfers, where the device says");
}

/* ---- As data ------------------------------------------------------------- */

static json_t *subject_json(const bench_subject *of)
{
    bench_summary all, compute;
    bool computes;
    json_t *json = json_pack("{s:s, s:s, s:s}", "device", of->device, "variant",
                             of->variant, "note", of->note);

    if (!bench_summarise(of, &all, &compute, &computes)) {
        json_object_set_new(json, "error", json_string(of->reason));
        return json;
    }
    json_object_update_new(
        json,
        json_pack("{s:f, s:f, s:f, s:f, s:f, s:o, s:i, s:i, s:i}", "first",
                  of->first, "median", all.median, "quartile_low", all.low,
                  "quartile_high", all.high, "least", all.least, "compute",
                  computes ? json_real(compute.median) : json_null(), "runs",
                  of->runs, "segments", (int)of->segments, "host_segments",
                  (int)of->host_segments));
    return json;
}

json_t *bench_json(const bench *of)
{
    json_t *results = json_array();

    for (size_t i = 0; i < of->count; i++)
        json_array_append_new(results, subject_json(&of->subjects[i]));
    return json_pack("{s:s, s:I, s:I, s:i, s:i, s:o}", "model", of->model_name,
                     "batch", (json_int_t)of->batch, "steps",
                     (json_int_t)of->steps, "warm_up", of->warm_up, "runs",
                     of->runs, "results", results);
}

cellgate_status bench_csv(const bench *of, const char *path,
                          cellgate_error *error)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    cellgate_status status;

    if (to == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    fputs("device,variant,batch,steps,runs,first,median,quartile_low,"
          "quartile_high,least,compute\n",
          to);
    for (size_t i = 0; i < of->count; i++) {
        bench_summary all, compute;
        bool computes;

        if (!bench_summarise(&of->subjects[i], &all, &compute, &computes))
            continue;
        cli_csv_field(to, of->subjects[i].device);
        fputc(',', to);
        cli_csv_field(to, of->subjects[i].variant);
        fprintf(to, ",%" PRId64 ",%" PRId64 ",%d,%.9g,%.9g,%.9g,%.9g,%.9g,",
                of->batch, of->steps, of->subjects[i].runs,
                of->subjects[i].first, all.median, all.low, all.high,
                all.least);
        if (computes)
            fprintf(to, "%.9g", compute.median);
        fputc('\n', to);
    }
    status = fclose(to) == 0
                 ? cellgate_file_write(path, text, size, error)
                 : cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    free(text);
    return status;
}
