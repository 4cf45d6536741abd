/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c: the benchmark table. Each row is computed by the plugin, through
 * the ABI and without the core, and by oneDNN; see README.md beside it.
 */
#include "config.h"

#include <math.h>
#include <popt.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/device.h"
#include "bench/limits.h"
#include "bench/measure.h"

#define MOST_DIFFERENCE 1e-3 /* of outputs, relative; more stops the run */

struct options {
    const char *plugin;
    const char *level;
    const char *csv;
    const char *rows; /* "1,3,5", or NULL */
    int full;
    int threads; /* of the second table; 0: all processors */
    int pairs;
    double budget; /* seconds a row */
    long seed;
};

/* Everything that outlives a row. */
struct bench {
    const struct options *options;
    struct bench_device device;
    FILE *csv;
    double log_ratios; /* sum of the logarithms, for the geometric mean */
    int ratio_count;
};

/* ---- Surroundings ------------------------------------------------------ */

static void print_cpu(void)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[4096];
    bool name = false, flags = false;

    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');

        if (!colon)
            continue;
        if (!name && strncmp(line, "model name", 10) == 0) {
            (void)printf("- CPU:%s", colon + 1);
            name = true;
        }
        if (!flags && strncmp(line, "flags", 5) == 0) {
            char *flag = strtok(colon + 1, " \n");

            (void)printf("- Its vector flags:");
            for (; flag; flag = strtok(NULL, " \n"))
                if (strncmp(flag, "avx", 3) == 0 || strcmp(flag, "fma") == 0 ||
                    strcmp(flag, "f16c") == 0)
                    (void)printf(" %s", flag);
            (void)printf("\n");
            flags = true;
        }
    }
    if (file)
        (void)fclose(file);
}

static void print_surroundings(const struct bench *bench)
{
    print_cpu();
    (void)printf("- Processors online: %ld\n", sysconf(_SC_NPROCESSORS_ONLN));
    (void)printf("- Plugin: %s %s (%s), level %s\n",
                 bench->device.plugin.table.name,
                 bench->device.plugin.table.version,
                 bench->device.plugin.table.build, bench->options->level);
    (void)printf("- Compiler of the bench: %s\n", __VERSION__);
    (void)printf("- oneDNN: %s\n", bench_onednn_version());
    (void)printf("- Seed: %ld\n", bench->options->seed);
}

static void print_limits(const struct bench_limits *limits)
{
    static const char *const names[] = { "L1", "L2", "L3", "memory" };
    int level;

    (void)printf("\nMeasured with %s on %d thread%s: %.0f GFLOP/s",
                 limits->vectors, limits->threads,
                 limits->threads == 1 ? "" : "s", limits->operations * 1e-9);
    for (level = 0; level < LIMIT_LEVELS; level++)
        (void)printf(", %s %.0f GB/s", names[level],
                     limits->bandwidth[level] * 1e-9);
    (void)printf("\n\n");
}

/* ---- A row ------------------------------------------------------------- */

/* A row's sides: ours (twice, to compare it with itself) and the peer. */
struct contest {
    struct bench_side ours[2]; /* one thread, and all of them */
    int our_count;
    struct bench_side peer;
    bool has_peer;
    char why[200]; /* there is no peer */
    double difference;
};

static void contest_finish(struct contest *contest)
{
    int i;

    for (i = 0; i < contest->our_count; i++)
        contest->ours[i].destroy(contest->ours[i].state);
    if (contest->has_peer)
        contest->peer.destroy(contest->peer.state);
}

static int contest_init(struct contest *contest, struct bench *bench,
                        const struct bench_data *data, int threads)
{
    uint32_t variants = threads > 1 ? 2 : 1, i;

    memset(contest, 0, sizeof *contest);
    for (i = 0; i < variants; i++, contest->our_count++)
        if (bench_cellgate(&contest->ours[i], data, &bench->device.plugin,
                           bench->device.device, i, contest->why,
                           sizeof contest->why) != 0) {
            (void)fprintf(stderr, "row %d: %s\n", data->row->number,
                          contest->why);
            contest_finish(contest);
            return -1;
        }
    contest->has_peer = bench_onednn(&contest->peer, data, threads,
                                     contest->why, sizeof contest->why) == 0;
    for (i = 0; contest->has_peer && i < variants; i++) {
        contest->ours[i].run(contest->ours[i].state);
        contest->peer.run(contest->peer.state);
        contest->difference =
            fmax(contest->difference,
                 bench_difference(data, contest->ours[i].y, contest->peer.y));
    }
    return 0;
}

/* The faster of our variants. */
static struct bench_side *choose(struct contest *contest, double budget)
{
    struct bench_side *sides[2] = { &contest->ours[0], &contest->ours[1] };
    struct bench_times times;

    if (contest->our_count == 1)
        return sides[0];
    bench_measure(&times, sides, 2, 31, budget);
    return bench_best(&times, 1) < bench_best(&times, 0) ? sides[1] : sides[0];
}

static void print_row(struct bench *bench, const struct bench_data *data,
                      const struct bench_limits *limits,
                      const struct contest *contest,
                      const struct bench_side *ours,
                      const struct bench_times *times)
{
    const struct bench_work work =
        bench_row_work(data->row, data->cases.lengths);
    const double limit = bench_limits_time(limits, &work);
    const double seconds = bench_median(times, 0);
    const int peer = contest->has_peer ? 2 : 0;
    const double ratio = bench_ratio(times, peer, 0, 0.5);

    (void)printf("| %d | %s | %s | %.1f | ", data->row->number, data->row->text,
                 ours->name, seconds * 1e6);
    if (contest->has_peer)
        (void)printf("%.1f | **%.2f** | %.2f | ", bench_median(times, 2) * 1e6,
                     ratio, bench_best(times, 2) / bench_best(times, 0));
    else
        (void)printf("%s | - | - | ", contest->why);
    (void)printf("%.2f-%.2f | %d | %.0f%% | %.1e |\n",
                 bench_ratio(times, 1, 0, 0.05), bench_ratio(times, 1, 0, 0.95),
                 times->pairs, 100 * limit / bench_best(times, 0),
                 contest->difference);
    (void)fflush(stdout);
    if (bench->csv)
        (void)fprintf(bench->csv,
                      "%d,%d,%s,%.9g,%.9g,%.4f,%.4f,%.4f,%.4f,%d,%.9g\n",
                      data->row->number, limits->threads, ours->name, seconds,
                      contest->has_peer ? bench_median(times, 2) : 0.0,
                      contest->has_peer ? ratio : 0.0,
                      bench_best(times, peer) / bench_best(times, 0),
                      bench_ratio(times, 1, 0, 0.05),
                      bench_ratio(times, 1, 0, 0.95), times->pairs, limit);
    if (contest->has_peer) {
        bench->log_ratios += log(ratio);
        bench->ratio_count++;
    }
}

static int run_row(struct bench *bench, const struct bench_row *row,
                   const struct bench_limits *limits)
{
    const struct options *options = bench->options;
    struct bench_side *sides[MEASURE_SIDES];
    struct bench_data data;
    struct contest contest;
    struct bench_times times;

    if (bench_data_init(&data, row, (uint64_t)options->seed) != 0 ||
        contest_init(&contest, bench, &data, limits->threads) != 0)
        return -1;
    if (contest.difference > MOST_DIFFERENCE) {
        (void)fprintf(stderr, "row %d: outputs differ by %g\n", row->number,
                      contest.difference);
        return -1;
    }
    sides[0] = sides[1] = choose(&contest, options->budget / 2);
    sides[2] = &contest.peer;
    bench_measure(&times, sides, contest.has_peer ? 3 : 2, options->pairs,
                  options->budget);
    print_row(bench, &data, limits, &contest, sides[0], &times);
    contest_finish(&contest);
    bench_data_finish(&data);
    return 0;
}

/* ---- The tables -------------------------------------------------------- */

static bool selected(const struct options *options, const struct bench_row *row)
{
    const char *at = options->rows;

    if (!at)
        return options->full || row->quick;
    while (*at) {
        char *end;
        long number = strtol(at, &end, 10);

        if (end == at)
            return false;
        if (number == row->number)
            return true;
        at = *end ? end + 1 : end;
    }
    return false;
}

static int run_table(struct bench *bench, int threads)
{
    const struct bench_row *row;
    struct bench_limits limits;

    if (bench_limits_measure(&limits, threads) != 0)
        return -1;
    (void)printf("\n## %d thread%s\n", threads, threads == 1 ? "" : "s");
    print_limits(&limits);
    (void)printf(
        "| row | batch, steps, input, hidden, layers | variant | "
        "Cellgate us | oneDNN us | ratio | of bests | A/A 5-95%% | pairs | "
        "of limit | difference |\n"
        "|--:|---|---|--:|--:|--:|--:|---|--:|--:|--:|\n");
    bench->log_ratios = 0;
    bench->ratio_count = 0;
    for (row = bench_rows; row->number != 0; row++)
        if (selected(bench->options, row) && run_row(bench, row, &limits) != 0)
            return -1;
    if (bench->ratio_count > 0)
        (void)printf("\nGeometric mean of the ratios: %.2f\n",
                     exp(bench->log_ratios / bench->ratio_count));
    return 0;
}

static int run_bench(const struct options *options)
{
    struct bench bench = { .options = options };
    char why[300];
    int all = options->threads ? options->threads
                               : (int)sysconf(_SC_NPROCESSORS_ONLN);
    int failed;

    if (bench_device_open(&bench.device, options->plugin, all, options->level,
                          why, sizeof why) != 0) {
        (void)fprintf(stderr, "%s: %s\n", options->plugin, why);
        return EXIT_FAILURE;
    }
    if (options->csv) {
        bench.csv = fopen(options->csv, "w");
        if (!bench.csv) {
            perror(options->csv);
            return EXIT_FAILURE;
        }
        (void)fprintf(bench.csv,
                      "row,threads,variant,seconds,peer_seconds,"
                      "ratio,ratio_of_bests,aa_5,aa_95,pairs,limit_seconds\n");
    }
    print_surroundings(&bench);
    failed = run_table(&bench, 1) != 0;
    if (!failed && all > 1)
        failed = run_table(&bench, all) != 0;
    if (bench.csv && fclose(bench.csv) != 0)
        failed = 1;
    bench_device_close(&bench.device);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, const char **argv)
{
    static struct options o = { .plugin = ".libs/openmp.so",
                                .level = "auto",
                                .pairs = 51,
                                .budget = 6,
                                .seed = 1 };
    const struct poptOption table[] = {
        { "plugin", 0, POPT_ARG_STRING | POPT_ARGFLAG_SHOW_DEFAULT, &o.plugin,
          0, "The plugin to time", "FILE" },
        { "level", 0, POPT_ARG_STRING | POPT_ARGFLAG_SHOW_DEFAULT, &o.level, 0,
          "Its instruction set", "NAME" },
        { "full", 0, POPT_ARG_NONE, &o.full, 0, "All rows, not the quick ones",
          NULL },
        { "rows", 0, POPT_ARG_STRING, &o.rows, 0, "Only these rows",
          "1,2,..." },
        { "threads", 0, POPT_ARG_INT, &o.threads, 0,
          "Threads of the second table (default: processors online)", "N" },
        { "pairs", 0, POPT_ARG_INT | POPT_ARGFLAG_SHOW_DEFAULT, &o.pairs, 0,
          "Turns a row, up to 201", "N" },
        { "budget", 0, POPT_ARG_DOUBLE | POPT_ARGFLAG_SHOW_DEFAULT, &o.budget,
          0, "Seconds a row after which no turn begins", "SECONDS" },
        { "seed", 0, POPT_ARG_LONG | POPT_ARGFLAG_SHOW_DEFAULT, &o.seed, 0,
          "Of weights and inputs", "N" },
        { "csv", 0, POPT_ARG_STRING, &o.csv, 0, "Also write the numbers here",
          "FILE" },
        POPT_AUTOHELP POPT_TABLEEND
    };
    poptContext context = poptGetContext(NULL, argc, argv, table, 0);
    int rc = poptGetNextOpt(context), status = EXIT_FAILURE;

    if (rc < -1)
        (void)fprintf(stderr, "%s: %s\n", poptBadOption(context, 0),
                      poptStrerror(rc));
    else if (o.pairs < 1 || o.pairs > MEASURE_PAIRS)
        (void)fprintf(stderr, "--pairs takes 1 to %d\n", MEASURE_PAIRS);
    else
        status = run_bench(&o);
    poptFreeContext(context);
    return status;
}
