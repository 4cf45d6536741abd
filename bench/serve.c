/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c: runs one side of the benchmark's rows for whoever times it, who
 * asks line by line on standard input and is answered with "ok ..." or
 * "no WHY" on standard output: bench/peers, which has sides in several
 * processes take turns. README.md beside it lists the requests.
 */
#include "config.h"

#include <dlfcn.h>
#include <popt.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/device.h"
#include "bench/limits.h"
#include "bench/measure.h"
#include "bench/model_side.h"
#include "cellgate/cellgate.h"

#define SIDES 16
#define LINE 4096

typedef int onednn_fn(struct bench_side *side, const struct bench_data *data,
                      int threads, char *why, size_t size);
typedef const char *version_fn(void);

struct options {
    const char *folder; /* that files lie in */
    const char *plugin, *level;
    const char *config, *plugins; /* of a model's session */
    int threads;
    int rows;
};

struct server {
    const struct options *options;
    struct bench_device device; /* opened where the side is the plugin's */
    onednn_fn *onednn;          /* where it is oneDNN's */
    const char *version;
    struct bench_limits limits;
    struct bench_data data;
    bool prepared;
    struct bench_side sides[SIDES];
    int count;
    char why[400];
};

static void no(const char *why)
{
    (void)printf("no %s\n", why);
}

/* ---- A row ------------------------------------------------------------- */

static void release(struct server *server)
{
    while (server->count > 0) {
        struct bench_side *side = &server->sides[--server->count];

        side->destroy(side->state);
    }
    if (server->prepared)
        bench_data_finish(&server->data);
    server->prepared = false;
}

/* Every variant of the plugin, or the one side of the others. */
static int make_sides(struct server *server)
{
    const struct options *options = server->options;
    char path[LINE];
    int failed = 0;

    if (server->onednn) {
        failed =
            server->onednn(&server->sides[0], &server->data, options->threads,
                           server->why, sizeof server->why);
        server->count = failed ? 0 : 1;
    } else if (options->config) {
        (void)snprintf(path, sizeof path, "%s/row.keras", options->folder);
        failed = bench_model(&server->sides[0], &server->data, options->config,
                             path, server->why, sizeof server->why);
        server->count = failed ? 0 : 1;
    } else {
        for (; server->count < SIDES && failed == 0;
             server->count += failed == 0)
            failed = bench_cellgate(
                &server->sides[server->count], &server->data,
                &server->device.plugin, server->device.device,
                (uint32_t)server->count, server->why, sizeof server->why);
        failed = failed < 0 || server->count == 0 ? -1 : 0;
    }
    return failed;
}

static void prepare(struct server *server, const char *arguments)
{
    const struct bench_row *row = bench_rows;
    unsigned long seed;
    int number, i;

    release(server);
    if (sscanf(arguments, "%d %lu", &number, &seed) != 2) {
        no("prepare takes a row and a seed");
        return;
    }
    while (row->number != 0 && row->number != number)
        row++;
    if (row->number == 0 || bench_data_init(&server->data, row, seed) != 0) {
        no("no such row, or no memory for it");
        return;
    }
    server->prepared = true;
    if (make_sides(server) != 0) {
        release(server);
        no(server->why);
        return;
    }
    (void)printf("ok");
    for (i = 0; i < server->count; i++)
        (void)printf("%c%s:%s", i == 0 ? ' ' : '\t', server->sides[i].name,
                     cellgate_numeric_name(server->sides[i].numeric));
    (void)printf("\n");
}

/* ---- Files ------------------------------------------------------------- */

static int write_array(const struct server *server, const char *name,
                       const void *data, int64_t count, size_t size)
{
    char path[LINE];
    FILE *file;
    size_t written;

    (void)snprintf(path, sizeof path, "%s/%s", server->options->folder, name);
    file = fopen(path, "wb");
    if (!file)
        return -1;
    written = fwrite(data, size, (size_t)count, file);
    return fclose(file) == 0 && written == (size_t)count ? 0 : -1;
}

static float *read_result(const struct server *server, const char *name)
{
    const size_t count = (size_t)server->data.y_count;
    float *result = malloc(count * sizeof *result);
    char path[LINE];
    FILE *file;
    size_t got = 0;

    (void)snprintf(path, sizeof path, "%s/%s", server->options->folder, name);
    file = fopen(path, "rb");
    if (file && result)
        got = fread(result, sizeof *result, count, file);
    if (file && fclose(file) == 0 && got == count)
        return result;
    free(result);
    return NULL;
}

/* What the other sides compute with: see README.md for the files. */
static void write_data(struct server *server)
{
    const struct bench_data *data = &server->data;
    const struct bench_row *row = data->row;
    const int64_t rows = row->batch * row->steps;

    if (write_array(server, "x.f32", data->x, rows * row->input,
                    sizeof *data->x) == 0 &&
        write_array(server, "weights.f32", data->cases.weights,
                    data->cases.weight_count,
                    sizeof *data->cases.weights) == 0 &&
        (!data->cases.lengths ||
         write_array(server, "lengths.i32", data->cases.lengths, row->batch,
                     sizeof *data->cases.lengths) == 0))
        (void)printf("ok\n");
    else
        no("the row's data could not be written");
}

static void compare(struct server *server, const char *arguments)
{
    char names[2][128];
    float *a = NULL, *b = NULL;

    if (sscanf(arguments, "%127s %127s", names[0], names[1]) == 2) {
        a = read_result(server, names[0]);
        b = read_result(server, names[1]);
    }
    if (a && b)
        (void)printf("ok %.9g\n", bench_difference(&server->data, a, b));
    else
        no("a result is missing or has another size");
    free(a);
    free(b);
}

/* ---- Runs -------------------------------------------------------------- */

static double time_runs(const struct bench_side *side, long runs)
{
    const double begin = bench_now();
    long i;

    for (i = 0; i < runs; i++)
        side->run(side->state);
    return (bench_now() - begin) / (double)runs;
}

/* "SIDE REST"; NULL with an answer given where there is no such side. */
static struct bench_side *side_of(struct server *server, const char *arguments,
                                  const char **rest)
{
    char *end;
    long index = strtol(arguments, &end, 10);

    if (end == arguments || index < 0 || index >= server->count) {
        no("no such side");
        return NULL;
    }
    *rest = *end ? end + 1 : end;
    return &server->sides[index];
}

static void turn(struct server *server, const char *arguments)
{
    const char *rest;
    struct bench_side *side = side_of(server, arguments, &rest);
    long warm, runs;

    if (!side)
        return;
    if (sscanf(rest, "%ld %ld", &warm, &runs) != 2 || warm < 0 || runs < 1) {
        no("turn takes a side and two numbers of runs");
        return;
    }
    if (warm > 0)
        (void)time_runs(side, warm);
    (void)printf("ok %.9g\n", time_runs(side, runs));
}

/* [batch][steps][features] as [steps][batch][features]; NULL without memory. */
static float *time_major(const struct bench_data *data, const float *y)
{
    const int64_t batch = data->row->batch, features = data->y_features;
    const int64_t steps = data->y_count / features / batch;
    float *turned = malloc((size_t)data->y_count * sizeof *turned);
    int64_t b, t;

    for (t = 0; turned && t < steps; t++)
        for (b = 0; b < batch; b++)
            memcpy(turned + (t * batch + b) * features,
                   y + (b * steps + t) * features,
                   (size_t)features * sizeof *turned);
    return turned;
}

static void output(struct server *server, const char *arguments)
{
    const char *name;
    struct bench_side *side = side_of(server, arguments, &name);
    float *turned = NULL;
    double seconds;

    if (!side)
        return;
    seconds = time_runs(side, 1);
    if (side->batch_major)
        turned = time_major(&server->data, side->y);
    if ((side->batch_major && !turned) ||
        write_array(server, name, turned ? turned : side->y,
                    server->data.y_count, sizeof *side->y) != 0)
        no("the result could not be written");
    else
        (void)printf("ok %.9g\n", seconds);
    free(turned);
}

static void name_side(struct server *server, const char *arguments)
{
    const char *rest;
    const struct bench_side *side = side_of(server, arguments, &rest);

    if (side)
        (void)printf("ok %s\n", side->name);
}

/* ---- Limits and rows --------------------------------------------------- */

static void measure_limits(struct server *server)
{
    struct bench_limits *limits = &server->limits;
    int level;

    if (bench_limits_measure(limits, server->options->threads) != 0) {
        no("no memory to measure the limits");
        return;
    }
    (void)printf("ok %s\t%.6g", limits->vectors, limits->operations);
    for (level = 0; level < LIMIT_LEVELS; level++)
        (void)printf("\t%.6g", limits->bandwidth[level]);
    (void)printf("\n");
}

static void limit_of_row(struct server *server)
{
    const struct bench_work work =
        bench_row_work(server->data.row, server->data.cases.lengths);

    if (server->limits.operations > 0)
        (void)printf("ok %.9g\n", bench_limits_time(&server->limits, &work));
    else
        no("the limits were not measured");
}

static void print_rows(void)
{
    const struct bench_row *row;

    for (row = bench_rows; row->number != 0; row++)
        (void)printf("number=%d\tquick=%d\ttext=%s\tbatch=%ld\tsteps=%ld\t"
                     "input=%ld\thidden=%ld\tlayers=%d\tdirections=%d\t"
                     "dense=%ld\ton_each_step=%d\tragged=%d\thard_gates=%d\n",
                     row->number, row->quick, row->text, (long)row->batch,
                     (long)row->steps, (long)row->input, (long)row->hidden,
                     row->layers, row->directions, (long)row->dense,
                     row->on_each_step, row->ragged, row->hard_gates);
}

/* ---- Requests ---------------------------------------------------------- */

/* Requests about a row that was prepared. */
static bool answer_of_row(struct server *server, const char *verb,
                          const char *arguments)
{
    if (strcmp(verb, "write") == 0)
        write_data(server);
    else if (strcmp(verb, "compare") == 0)
        compare(server, arguments);
    else if (strcmp(verb, "turn") == 0)
        turn(server, arguments);
    else if (strcmp(verb, "output") == 0)
        output(server, arguments);
    else if (strcmp(verb, "name") == 0)
        name_side(server, arguments);
    else if (strcmp(verb, "limit") == 0)
        limit_of_row(server);
    else
        return false;
    return true;
}

static void answer(struct server *server, char *line)
{
    char *arguments;

    line[strcspn(line, "\n")] = '\0';
    arguments = strchr(line, ' ');
    if (arguments)
        *arguments++ = '\0';
    else
        arguments = line + strlen(line);
    if (strcmp(line, "version") == 0)
        (void)printf("ok %s\n", server->version);
    else if (strcmp(line, "limits") == 0)
        measure_limits(server);
    else if (strcmp(line, "prepare") == 0)
        prepare(server, arguments);
    else if (strcmp(line, "release") == 0) {
        release(server);
        (void)printf("ok\n");
    } else if (!server->prepared || !answer_of_row(server, line, arguments))
        no(server->prepared ? "no such request" : "no row is prepared");
    (void)fflush(stdout);
}

/* ---- Sides ------------------------------------------------------------- */

/*
 * A library of onednn_side.c and some oneDNN: there are several, and none is
 * linked to this program.
 */
static int load_onednn(struct server *server, const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *make, *version;
    version_fn *tell;

    make = library ? dlsym(library, "bench_onednn") : NULL;
    version = library ? dlsym(library, "bench_onednn_version") : NULL;
    if (!make || !version) {
        (void)fprintf(stderr, "%s\n", dlerror());
        return -1;
    }
    memcpy(&server->onednn, &make, sizeof make);
    memcpy(&tell, &version, sizeof version);
    server->version = tell();
    return 0;
}

static int open_side(struct server *server, const char *side)
{
    const struct options *options = server->options;

    if (strcmp(side, "model") == 0) {
        server->version = VERSION;
        return options->config ? 0 : -1;
    }
    if (strcmp(side, "cellgate") != 0)
        return load_onednn(server, side);
    if (bench_device_open(&server->device, options->plugin, options->threads,
                          options->level, server->why,
                          sizeof server->why) != 0) {
        (void)fprintf(stderr, "%s: %s\n", options->plugin, server->why);
        return -1;
    }
    server->version = server->device.plugin.table.build;
    return 0;
}

static int serve(const struct options *options, const char *side)
{
    static struct server server;
    char line[LINE];

    server.options = options;
    if (open_side(&server, side) != 0)
        return EXIT_FAILURE;
    while (fgets(line, sizeof line, stdin))
        answer(&server, line);
    release(&server);
    if (server.device.device)
        bench_device_close(&server.device);
    return EXIT_SUCCESS;
}

int main(int argc, const char **argv)
{
    static struct options o = { .folder = ".",
                                .plugin = ".libs/openmp.so",
                                .level = "auto",
                                .threads = 1 };
    const struct poptOption table[] = {
        { "folder", 0, POPT_ARG_STRING, &o.folder, 0, "Where files lie",
          "DIR" },
        { "plugin", 0, POPT_ARG_STRING, &o.plugin, 0, "The plugin to run",
          "FILE" },
        { "level", 0, POPT_ARG_STRING, &o.level, 0, "Its instruction set",
          "NAME" },
        { "config", 0, POPT_ARG_STRING, &o.config, 0,
          "Configuration of `model`", "FILE" },
        { "threads", 0, POPT_ARG_INT, &o.threads, 0, "Threads of a run", "N" },
        { "rows", 0, POPT_ARG_NONE, &o.rows, 0, "Print the rows and exit",
          NULL },
        POPT_AUTOHELP POPT_TABLEEND
    };
    poptContext context = poptGetContext(NULL, argc, argv, table, 0);
    int rc = poptGetNextOpt(context), status = EXIT_FAILURE;
    const char *side;

    poptSetOtherOptionHelp(context, "[OPTION...] cellgate|model|FILE");
    side = poptGetArg(context);
    if (rc < -1)
        (void)fprintf(stderr, "%s: %s\n", poptBadOption(context, 0),
                      poptStrerror(rc));
    else if (o.rows) {
        print_rows();
        status = EXIT_SUCCESS;
    } else if (!side)
        poptPrintUsage(context, stderr, 0);
    else
        status = serve(&o, side);
    poptFreeContext(context);
    return status;
}
