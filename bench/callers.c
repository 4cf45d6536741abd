/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callers.c: threads of an application that call one session at once, each
 * for a variant of one thread: as many as there are processors, as many again
 * to compare that with itself, and twice as many. More callers than processors
 * should cost no throughput.
 */
#include "config.h"

#include <popt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench/measure.h"
#include "cellgate/cellgate.h"

#define MOST_CALLERS 256
#define LOSS 0.10 /* of the throughput, that twice the callers may cost */
#define TURN_SIDES 3

struct options {
    const char *plugins, *level, *rows;
    int processors, pairs;
    double seconds; /* of a turn */
};

struct caller {
    pthread_t thread;
    struct contest *contest;
    float *y;
    long runs;
};

/* A row's model in a session, and who calls it. */
struct contest {
    const struct bench_row *row;
    cellgate_session *session;
    float *x;
    int64_t y_count;
    pthread_barrier_t start;
    _Atomic int stop, failed;
    struct caller callers[MOST_CALLERS];
};

/* ---- A caller ---------------------------------------------------------- */

static cellgate_status call(struct contest *contest, float *y,
                            cellgate_error *error)
{
    const struct bench_row *row = contest->row;
    cellgate_input input = {
        .struct_size = sizeof input,
        .tensor = { sizeof(cellgate_tensor),
                    CELLGATE_F32,
                    3,
                    { row->batch, row->steps, row->input },
                    contest->x },
    };
    cellgate_tensor output = { sizeof output,
                               CELLGATE_F32,
                               3,
                               { row->batch, row->steps,
                                 row->hidden * row->directions },
                               y };
    cellgate_request request = {
        .struct_size = sizeof request,
        .inputs = &input,
        .input_count = 1,
        .outputs = &output,
        .output_count = 1,
    };

    return cellgate_run(contest->session, &request, NULL, error);
}

static void *keep_calling(void *argument)
{
    struct caller *caller = argument;
    struct contest *contest = caller->contest;
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)pthread_barrier_wait(&contest->start);
    for (caller->runs = 0; !atomic_load(&contest->stop); caller->runs++)
        if (call(contest, caller->y, &error) != CELLGATE_OK) {
            (void)fprintf(stderr, "run: %s\n", error.text);
            atomic_store(&contest->failed, 1);
            break;
        }
    return NULL;
}

/* Runs a second of so many callers. */
static double throughput(struct contest *contest, int callers, double seconds)
{
    const struct timespec pause = {
        (time_t)seconds, (long)((seconds - (double)(long)seconds) * 1e9)
    };
    double begin, runs = 0;
    int i;

    atomic_store(&contest->stop, 0);
    (void)pthread_barrier_init(&contest->start, NULL, (unsigned)callers + 1);
    for (i = 0; i < callers; i++)
        if (pthread_create(&contest->callers[i].thread, NULL, keep_calling,
                           &contest->callers[i]) != 0)
            abort();
    (void)pthread_barrier_wait(&contest->start);
    begin = bench_now();
    (void)nanosleep(&pause, NULL);
    atomic_store(&contest->stop, 1);
    for (i = 0; i < callers; i++) {
        (void)pthread_join(contest->callers[i].thread, NULL);
        runs += (double)contest->callers[i].runs;
    }
    seconds = bench_now() - begin;
    (void)pthread_barrier_destroy(&contest->start);
    return runs / seconds;
}

/* ---- A row ------------------------------------------------------------- */

static void contest_finish(struct contest *contest)
{
    int i;

    for (i = 0; i < MOST_CALLERS; i++)
        free(contest->callers[i].y);
    free(contest->x);
    cellgate_session_destroy(contest->session);
}

/* The session keeps the model alive. */
static cellgate_status open_session(struct contest *contest,
                                    cellgate_runtime *runtime,
                                    cellgate_error *error)
{
    const struct bench_row *row = contest->row;
    const cellgate_lstm_stack stack = { sizeof stack, row->input, row->hidden,
                                        row->layers, row->directions == 2 };
    const cellgate_session_options one = { .struct_size = sizeof one,
                                           .device = "cpu",
                                           .variant = "t1" };
    cellgate_model *model = NULL;
    cellgate_status status = cellgate_model_make_lstm(&stack, &model, error);

    if (status == CELLGATE_OK)
        status = cellgate_session_create(runtime, model, &one,
                                         &contest->session, error);
    cellgate_model_destroy(model);
    return status;
}

static int contest_init(struct contest *contest, const struct bench_row *row,
                        cellgate_runtime *runtime, int callers)
{
    const int64_t count = row->batch * row->steps * row->input;
    cellgate_error error = CELLGATE_ERROR_INIT;
    int64_t i;

    memset(contest, 0, sizeof *contest);
    contest->row = row;
    contest->y_count = row->batch * row->steps * row->hidden * row->directions;
    if (open_session(contest, runtime, &error) != CELLGATE_OK) {
        (void)fprintf(stderr, "row %d: %s\n", row->number, error.text);
        return -1;
    }
    contest->x = malloc((size_t)count * sizeof *contest->x);
    for (i = 0; contest->x && i < count; i++)
        contest->x[i] = (float)(i * 7919 % 2003) / 1001.5f - 1;
    for (i = 0; i < callers; i++) {
        contest->callers[i].contest = contest;
        contest->callers[i].y =
            malloc((size_t)contest->y_count * sizeof(float));
        if (!contest->callers[i].y || !contest->x) {
            contest_finish(contest);
            return -1;
        }
    }
    return 0;
}

/*
 * The three sides' seconds a run, in turn; each turn begins with another one,
 * since what follows a side finds the machine as that left it.
 */
static void take_turns(struct contest *contest, const struct options *options,
                       struct bench_times *times)
{
    const int callers[TURN_SIDES] = { options->processors, options->processors,
                                      2 * options->processors };
    int i;

    (void)throughput(contest, callers[2], options->seconds);
    for (times->pairs = 0; times->pairs < options->pairs; times->pairs++)
        for (i = 0; i < TURN_SIDES; i++) {
            int side = (i + times->pairs) % TURN_SIDES;

            times->seconds[side][times->pairs] =
                1 / throughput(contest, callers[side], options->seconds);
        }
}

static int run_row(const struct bench_row *row, cellgate_runtime *runtime,
                   const struct options *options, bool *met)
{
    static struct contest contest;
    struct bench_times times;
    double kept;

    if (contest_init(&contest, row, runtime, 2 * options->processors) != 0)
        return -1;
    take_turns(&contest, options, &times);
    kept = bench_ratio(&times, 0, 2, 0.5);
    (void)printf("| %d | %s | %.0f | %.0f | %.1f%% | %.2f-%.2f | %d | %s |\n",
                 row->number, row->text, 1 / bench_median(&times, 0),
                 1 / bench_median(&times, 2), 100 * (1 - kept),
                 bench_ratio(&times, 1, 0, 0.05),
                 bench_ratio(&times, 1, 0, 0.95), times.pairs,
                 kept > 1 - LOSS ? "met" : "missed");
    (void)fflush(stdout);
    *met = *met && kept > 1 - LOSS;
    contest_finish(&contest);
    return atomic_load(&contest.failed) ? -1 : 0;
}

/* ---- All rows ---------------------------------------------------------- */

static bool listed(const char *numbers, int number)
{
    char *end;

    for (; *numbers; numbers = *end ? end + 1 : end)
        if (strtol(numbers, &end, 10) == number)
            return true;
        else if (end == numbers)
            return false;
    return false;
}

/* A configuration of the CPU alone; its name goes to `path`. */
static int write_config(char *path, const struct options *options)
{
    int descriptor = mkstemp(path);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");

    if (!file)
        return -1;
    (void)fprintf(file,
                  "[cellgate]\nunlisted = no\n[scheduler]\nthreads = %d\n"
                  "[device cpu]\nplugin = openmp\nlevel = %s\n",
                  options->processors, options->level);
    return fclose(file) == 0 ? 0 : -1;
}

/* In the folder of a build the helper that looks at plugins is not installed.
 */
static void use_probe_of_build(void)
{
    char *probe = realpath("cellgate-probe", NULL);

    if (probe)
        (void)setenv("CELLGATE_PROBE", probe, 0);
    free(probe);
}

static int run_rows(const struct options *options)
{
    char path[] = "/tmp/cellgate-callers-XXXXXX";
    const cellgate_runtime_options where = { .struct_size = sizeof where,
                                             .config_path = path,
                                             .plugin_path = options->plugins };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_runtime *runtime = NULL;
    const struct bench_row *row;
    int failed = write_config(path, options);
    bool met = true;

    use_probe_of_build();
    if (failed ||
        cellgate_runtime_create(&where, &runtime, &error) != CELLGATE_OK) {
        (void)fprintf(stderr, "%s\n", failed ? path : error.text);
        (void)unlink(path);
        return EXIT_FAILURE;
    }
    (void)unlink(path);
    (void)printf("| row | shape | runs/s of %d callers | of %d | loss | "
                 "A/A 5-95%% | turns | goal |\n|--:|---|--:|--:|--:|---|--:|"
                 "---|\n",
                 options->processors, 2 * options->processors);
    for (row = bench_rows; row->number != 0 && !failed; row++)
        if (listed(options->rows, row->number))
            failed = run_row(row, runtime, options, &met) != 0;
    (void)printf("\n%d callers lose less than %.0f%% of the throughput of "
                 "%d: %s\n",
                 2 * options->processors, 100 * LOSS, options->processors,
                 failed ? "not measured"
                 : met  ? "yes"
                        : "no");
    cellgate_runtime_destroy(runtime);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, const char **argv)
{
    static struct options o = { .plugins = ".libs",
                                .level = "auto",
                                .rows = "4,5,8,11,12,13",
                                .pairs = 21,
                                .seconds = 0.2 };
    const struct poptOption table[] = {
        { "plugin-path", 0, POPT_ARG_STRING | POPT_ARGFLAG_SHOW_DEFAULT,
          &o.plugins, 0, "Where the plugin is", "DIR" },
        { "level", 0, POPT_ARG_STRING | POPT_ARGFLAG_SHOW_DEFAULT, &o.level, 0,
          "Its instruction set", "NAME" },
        { "rows", 0, POPT_ARG_STRING | POPT_ARGFLAG_SHOW_DEFAULT, &o.rows, 0,
          "Of the table's, without dense layers and lengths", "1,2,..." },
        { "processors", 0, POPT_ARG_INT, &o.processors, 0,
          "Callers to start from (default: processors online)", "N" },
        { "pairs", 0, POPT_ARG_INT | POPT_ARGFLAG_SHOW_DEFAULT, &o.pairs, 0,
          "Turns a row, up to 201", "N" },
        { "seconds", 0, POPT_ARG_DOUBLE | POPT_ARGFLAG_SHOW_DEFAULT, &o.seconds,
          0, "Of a side's turn", "SECONDS" },
        POPT_AUTOHELP POPT_TABLEEND
    };
    poptContext context = poptGetContext(NULL, argc, argv, table, 0);
    int rc = poptGetNextOpt(context), status = EXIT_FAILURE;

    if (o.processors == 0)
        o.processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (rc < -1)
        (void)fprintf(stderr, "%s: %s\n", poptBadOption(context, 0),
                      poptStrerror(rc));
    else if (o.pairs < 1 || o.pairs > MEASURE_PAIRS || o.seconds <= 0 ||
             o.processors < 1 || 2 * o.processors > MOST_CALLERS)
        (void)fprintf(stderr, "--pairs takes 1 to %d, --processors 1 to %d\n",
                      MEASURE_PAIRS, MOST_CALLERS / 2);
    else
        status = run_rows(&o);
    poptFreeContext(context);
    return status;
}
