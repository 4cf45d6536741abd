/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opencl.c: the OpenCL plugin against a loop of CLBlast's products on the same
 * device, with the OpenMP plugin beside it, all in turn in one process. See
 * README.md beside it.
 */
#include "config.h"

#include <math.h>
#include <popt.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/clblast_side.h"
#include "bench/measure.h"

#define MOST_DIFFERENCE 1e-3 /* of outputs, relative; more stops the run */
#define VARIANTS_MAX 32

struct options {
    const char *opencl, *openmp, *rows;
    int device, pairs;
    double budget;
    long seed;
};

/* A plugin with one of its devices. */
struct subject {
    plugin_file plugin;
    cellgate_device *device;
    char name[128];
};

static int subject_open(struct subject *subject, const char *path,
                        uint32_t index)
{
    cellgate_device_description description = { .struct_size =
                                                    sizeof description };
    cellgate_error error = CELLGATE_ERROR_INIT;
    const cellgate_plugin *table = &subject->plugin.table;
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    char why[700];

    if (plugin_file_open(&subject->plugin, path, (uint32_t)processors, 0, why,
                         sizeof why) != 0) {
        (void)fprintf(stderr, "%s: %s\n", path, why);
        return -1;
    }
    if (table->device_describe(subject->plugin.instance, index, &description,
                               &error) != CELLGATE_OK ||
        table->device_open(subject->plugin.instance, index, NULL,
                           &subject->device, &error) != CELLGATE_OK) {
        (void)fprintf(stderr, "%s: %s\n", path, error.text);
        return -1;
    }
    (void)snprintf(subject->name, sizeof subject->name, "%.60s, %.60s",
                   description.name, description.driver);
    return 0;
}

static void subject_close(struct subject *subject)
{
    subject->plugin.table.device_close(subject->device);
    plugin_file_close(&subject->plugin);
}

/* The fastest of a plugin's float32 variants for a row: the peer is that. */
static int choose(struct bench_side *best, const struct bench_data *data,
                  struct subject *subject)
{
    struct bench_side side;
    double least = INFINITY;
    char why[300] = "no variant";
    uint32_t i;

    for (i = 0; i < VARIANTS_MAX; i++) {
        struct bench_side *one[1] = { &side };
        struct bench_times times;

        if (bench_cellgate(&side, data, &subject->plugin, subject->device, i,
                           why, sizeof why) != 0)
            break;
        if (side.numeric != CELLGATE_NUMERIC_F32) {
            side.destroy(side.state);
            continue;
        }
        bench_measure(&times, one, 1, 11, 0.5);
        if (bench_best(&times, 0) < least) {
            if (isfinite(least))
                best->destroy(best->state);
            least = bench_best(&times, 0);
            *best = side;
        } else {
            side.destroy(side.state);
        }
    }
    if (!isfinite(least))
        (void)fprintf(stderr, "row %d: %s\n", data->row->number, why);
    return isfinite(least) ? 0 : -1;
}

static double difference(const struct bench_data *data, const float *a,
                         const float *b)
{
    double worst = 0, largest = 0;
    int64_t i;

    for (i = 0; i < data->y_count; i++) {
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
        largest = fmax(largest, fabs((double)b[i]));
    }
    return worst / largest;
}

static int run_row(const struct options *options, struct subject *opencl,
                   struct subject *openmp, const struct bench_row *row)
{
    struct bench_side ours, peer, cpu;
    struct bench_side *sides[4] = { &ours, &ours, &peer, &cpu };
    struct bench_times times;
    struct bench_data data;
    char why[300];
    double apart;

    if (bench_data_init(&data, row, (uint64_t)options->seed) != 0)
        return -1;
    if (bench_clblast(&peer, &data, (uint32_t)options->device, why,
                      sizeof why) != 0) {
        (void)fprintf(stderr, "row %d: %s\n", row->number, why);
        return -1;
    }
    if (choose(&ours, &data, opencl) != 0 || choose(&cpu, &data, openmp) != 0)
        return -1;
    ours.run(ours.state);
    peer.run(peer.state);
    apart = difference(&data, ours.y, peer.y);
    if (!(apart <= MOST_DIFFERENCE)) {
        (void)fprintf(stderr, "row %d: outputs differ by %g\n", row->number,
                      apart);
        return -1;
    }
    bench_measure(&times, sides, 4, options->pairs, options->budget);
    (void)printf(
        "| %d | %s | %s | %.1f | %.1f | **%.2f** | %.2f | %.2f-%.2f | "
        "%s | %.1f | %.2f | %d | %.1e |\n",
        row->number, row->text, ours.name, bench_median(&times, 0) * 1e6,
        bench_median(&times, 2) * 1e6, bench_ratio(&times, 2, 0, 0.5),
        bench_best(&times, 2) / bench_best(&times, 0),
        bench_ratio(&times, 1, 0, 0.05), bench_ratio(&times, 1, 0, 0.95),
        cpu.name, bench_median(&times, 3) * 1e6, bench_ratio(&times, 3, 0, 0.5),
        times.pairs, apart);
    (void)fflush(stdout);
    ours.destroy(ours.state);
    peer.destroy(peer.state);
    cpu.destroy(cpu.state);
    bench_data_finish(&data);
    return 0;
}

static bool selected(const char *at, int wanted)
{
    while (*at) {
        char *end;
        long number = strtol(at, &end, 10);

        if (end == at)
            return false;
        if (number == wanted)
            return true;
        at = *end ? end + 1 : end;
    }
    return false;
}

static int run_bench(const struct options *options)
{
    struct subject opencl = { .device = NULL }, openmp = { .device = NULL };
    const struct bench_row *row;
    int failed = 0;

    if (subject_open(&opencl, options->opencl, (uint32_t)options->device) !=
            0 ||
        subject_open(&openmp, options->openmp, 0) != 0)
        return EXIT_FAILURE;
    (void)printf("- OpenCL: %s\n- OpenMP: %s\n- Processors online: %ld\n"
                 "- Seed: %ld\n\n",
                 opencl.name, openmp.name, sysconf(_SC_NPROCESSORS_ONLN),
                 options->seed);
    (void)printf(
        "| row | batch, steps, input, hidden, layers | variant | OpenCL us | "
        "CLBlast us | ratio | of bests | A/A 5-95%% | OpenMP variant | OpenMP "
        "us | OpenMP/OpenCL | pairs | difference |\n"
        "|--:|---|---|--:|--:|--:|--:|---|---|--:|--:|--:|--:|\n");
    for (row = bench_rows; row->number != 0 && !failed; row++)
        if (selected(options->rows, row->number))
            failed = run_row(options, &opencl, &openmp, row) != 0;
    subject_close(&opencl);
    subject_close(&openmp);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, const char **argv)
{
    static struct options o = { .opencl = "plugins/opencl/.libs/opencl.so",
                                .openmp = ".libs/openmp.so",
                                .rows = "1,4,5,8,11,13,14",
                                .pairs = 51,
                                .budget = 6,
                                .seed = 1 };
    const struct poptOption table[] = {
        { "opencl", 0, POPT_ARG_STRING | POPT_ARGFLAG_SHOW_DEFAULT, &o.opencl,
          0, "The OpenCL plugin", "FILE" },
        { "openmp", 0, POPT_ARG_STRING | POPT_ARGFLAG_SHOW_DEFAULT, &o.openmp,
          0, "The OpenMP plugin", "FILE" },
        { "device", 0, POPT_ARG_INT | POPT_ARGFLAG_SHOW_DEFAULT, &o.device, 0,
          "Number of the OpenCL device", "N" },
        { "rows", 0, POPT_ARG_STRING | POPT_ARGFLAG_SHOW_DEFAULT, &o.rows, 0,
          "These rows", "1,2,..." },
        { "pairs", 0, POPT_ARG_INT | POPT_ARGFLAG_SHOW_DEFAULT, &o.pairs, 0,
          "Turns a row, up to 201", "N" },
        { "budget", 0, POPT_ARG_DOUBLE | POPT_ARGFLAG_SHOW_DEFAULT, &o.budget,
          0, "Seconds a row after which no turn begins", "SECONDS" },
        { "seed", 0, POPT_ARG_LONG | POPT_ARGFLAG_SHOW_DEFAULT, &o.seed, 0,
          "Of weights and inputs", "N" },
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
