/* SPDX-License-Identifier: Apache-2.0 */
/* Where a request of some shape would go, and why. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/plan.h"

/* ---- One shape ----------------------------------------------------------- */

static json_t *candidates_json(const cellgate_explanation *explanation)
{
    cellgate_candidate_info info = { .struct_size = sizeof info };
    json_t *array = json_array();

    for (size_t i = 0;
         cellgate_explanation_get(explanation, i, &info) == CELLGATE_OK; i++)
        json_array_append_new(
            array,
            json_pack(
                "{s:i, s:s, s:s, s:s, s:i, s:b, s:s, s:o, s:o, s:i, s:f, "
                "s:o, s:s, s:s, s:f, s:f}",
                "piece", (int)info.piece, "nodes", info.nodes, "device",
                info.device, "variant", info.variant, "threads",
                (int)info.threads, "chosen", (int)info.chosen, "estimate",
                cellgate_estimate_name(info.estimate), "seconds",
                info.estimate != CELLGATE_ESTIMATE_NONE
                    ? json_real(info.seconds)
                    : json_null(),
                "error",
                info.estimate != CELLGATE_ESTIMATE_NONE ? json_real(info.error)
                                                        : json_null(),
                "samples", (int)info.samples, "wait", info.wait, "measured",
                info.measured > 0 ? json_integer((json_int_t)info.measured)
                                  : json_null(),
                "note", info.note, "excluded", info.excluded, "opening",
                info.opening, "preparing", info.preparing));
    return array;
}

static json_t *decision_json(const char *path,
                             const cellgate_explanation *explanation,
                             const cellgate_decision *decision)
{
    return json_pack(
        "{s:s, s:I, s:I, s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:o, s:s, "
        "s:b, s:i, s:o}",
        "model", path, "batch", (json_int_t)decision->batch, "steps",
        (json_int_t)decision->steps, "choice", decision->choice, "reason",
        decision->reason, "rival", decision->rival, "estimate",
        cellgate_estimate_name(decision->estimate), "seconds",
        decision->seconds, "error", decision->error, "ahead", decision->ahead,
        "once", decision->once, "requests",
        decision->expected_requests > 0 ? json_real(decision->expected_requests)
                                        : json_null(),
        "regime", decision->regime, "kept", (int)decision->kept, "host_parts",
        (int)decision->host_parts, "candidates", candidates_json(explanation));
}

/* "3 d", since then. */
static void age_text(char *text, size_t size, int64_t measured)
{
    static const struct {
        const char *unit;
        int64_t seconds;
    } units[] = { { "d", 86400 }, { "h", 3600 }, { "min", 60 }, { "s", 1 } };
    const int64_t age = (int64_t)time(NULL) - measured;
    size_t i = 0;

    while (i < 3 && age < 2 * units[i].seconds)
        i++;
    snprintf(text, size, "%" PRId64 " %s", age > 0 ? age / units[i].seconds : 0,
             units[i].unit);
}

/* `least`: of the piece's candidates that may be chosen; 0: none is known. */
static void print_candidate(const cellgate_candidate_info *info, double least)
{
    char cost[32] = "-", spread[16] = "-", samples[16] = "-", times[32] = "-";
    char age[32] = "-", once[32] = "-", wait[48] = "";

    if (info->estimate != CELLGATE_ESTIMATE_NONE) {
        cli_time_text(cost, sizeof cost, info->seconds);
        snprintf(spread, sizeof spread, "%.1f%%", info->error * 100);
        snprintf(samples, sizeof samples, "%" PRIu32, info->samples);
        if (least > 0)
            snprintf(times, sizeof times, "%.2f", info->seconds / least);
    }
    if (info->measured > 0)
        age_text(age, sizeof age, info->measured);
    if (info->opening + info->preparing > 0)
        cli_time_text(once, sizeof once, info->opening + info->preparing);
    if (info->wait > 0) {
        char text[32];

        cli_time_text(text, sizeof text, info->wait);
        snprintf(wait, sizeof wait, "busy for %s; ", text);
    }
    printf("%c %-14s %-10s %9s %8s %7s %-12s %7s %6s %9s  %s%s\n",
           info->chosen ? '*' : ' ', info->device,
           info->variant[0] != '\0' ? info->variant : "-", cost, times, spread,
           cellgate_estimate_name(info->estimate), samples, age, once, wait,
           info->excluded);
    if (info->note[0] != '\0')
        printf("    not its fastest way: %s\n", info->note);
}

static double least_of(const cellgate_explanation *explanation, uint32_t piece)
{
    cellgate_candidate_info info = { .struct_size = sizeof info };
    double least = 0;

    for (size_t i = 0;
         cellgate_explanation_get(explanation, i, &info) == CELLGATE_OK; i++)
        if (info.piece == piece && info.excluded[0] == '\0' &&
            info.seconds > 0 && (least == 0 || info.seconds < least))
            least = info.seconds;
    return least;
}

static void print_candidates(const cellgate_explanation *explanation)
{
    cellgate_candidate_info info = { .struct_size = sizeof info };
    uint32_t piece = UINT32_MAX;

    for (size_t i = 0;
         cellgate_explanation_get(explanation, i, &info) == CELLGATE_OK; i++) {
        if (info.piece != piece)
            printf("\n%s\n  %-14s %-10s %9s %8s %7s %-12s %7s %6s %9s  %s\n",
                   info.nodes, "device", "variant", "cost", "x least", "error",
                   "estimate", "samples", "age", "once", "why not");
        piece = info.piece;
        print_candidate(&info, least_of(explanation, piece));
    }
}

static int show(const cli_shared *shared, const char *path,
                const cellgate_explanation *explanation)
{
    cellgate_decision decision = { .struct_size = sizeof decision };

    cellgate_explanation_decision(explanation, &decision);
    if (shared->json)
        return cli_print_json(decision_json(path, explanation, &decision));
    printf("%s: batch %" PRId64 ", steps %" PRId64 "\n%s: %s\n", path,
           decision.batch, decision.steps, decision.choice, decision.reason);
    if (decision.host_parts > 0)
        printf("%" PRIu32 " %s on the host ops, which no device takes and "
               "whose time is not counted\n",
               decision.host_parts,
               cli_counted(decision.host_parts, "part runs", "parts run"));
    print_candidates(explanation);
    return CLI_OK;
}

static int plan_one(const cli_shared *shared, const plan_options *options,
                    const char *path, cellgate_session *session,
                    const cellgate_model *model)
{
    cellgate_question question = { .struct_size = sizeof question,
                                   .fill = options->fill };
    cli_extents batch = { 0, 0 }, steps = { 0, 0 };
    cellgate_explanation *explanation = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;
    int exit_code;

    if (cli_extents_read(&batch, options->batch, "batch", &error) !=
            CELLGATE_OK ||
        cli_extents_read(&steps, options->steps, "steps", &error) !=
            CELLGATE_OK)
        return cli_fail(&error);
    if (batch.least == 0 || (steps.least == 0 && cli_free_steps(model)))
        return cli_report(CLI_USAGE, "plan takes --batch and --steps, or "
                                     "--grid");
    if (batch.least != batch.most || steps.least != steps.most)
        return cli_report(CLI_USAGE, "ranges of shapes take --grid");
    question.batch = batch.least;
    question.steps = steps.least;
    if (cellgate_explain(session, &question, &explanation, &error) !=
        CELLGATE_OK)
        return cli_fail(&error);
    exit_code = show(shared, path, explanation);
    cellgate_explanation_destroy(explanation);
    return exit_code;
}

/* ---- A grid -------------------------------------------------------------- */

static int plan_grid(const cli_shared *shared, const plan_options *options,
                     const char *path, cellgate_session *session,
                     const cellgate_model *model)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cli_grid grid = { 0 };
    cellgate_status status =
        cli_grid_init(&grid, path, session, model, options, &error);
    int exit_code = CLI_OK;

    if (status == CELLGATE_OK && options->csv != NULL)
        status = cli_grid_csv(&grid, options->csv, &error);
    if (status == CELLGATE_OK && options->picture != NULL)
        status = cli_grid_picture(&grid, options->picture, &error);
    if (status != CELLGATE_OK)
        exit_code = cli_fail(&error);
    else if (shared->json)
        exit_code = cli_print_json(cli_grid_json(&grid));
    else
        cli_grid_print(&grid);
    cli_grid_finish(&grid);
    return exit_code;
}

/* ---- The command --------------------------------------------------------- */

static int plan(const cli_shared *shared, const plan_options *options,
                const char *path)
{
    cellgate_session_options how = { .struct_size = sizeof how,
                                     .device = options->device,
                                     .expected_requests = options->requests };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_runtime *runtime = NULL;
    cellgate_model *model = NULL;
    cellgate_session *session = NULL;
    int exit_code;

    if (cellgate_model_load(path, &model, &error) != CELLGATE_OK ||
        cli_open(shared, &runtime, &error) != CELLGATE_OK ||
        cellgate_session_create(runtime, model, &how, &session, &error) !=
            CELLGATE_OK)
        exit_code = cli_fail(&error);
    else if (options->grid)
        exit_code = plan_grid(shared, options, path, session, model);
    else
        exit_code = plan_one(shared, options, path, session, model);
    cellgate_session_destroy(session);
    cellgate_runtime_destroy(runtime);
    cellgate_model_destroy(model);
    return exit_code;
}

static int plan_main(const cli_command *command, int argc, const char **argv)
{
    plan_options options = { 0 };
    struct poptOption table[] = {
        { "batch", 'b', POPT_ARG_STRING, &options.batch, 0,
          "rows of the request; with --grid a range (default 1-64)", "B" },
        { "steps", 't', POPT_ARG_STRING, &options.steps, 0,
          "its steps; with --grid a range (default 1-128)", "T" },
        { "fill", '\0', POPT_ARG_DOUBLE, &options.fill, 0,
          "share of the steps that lengths leave valid", "X" },
        { "device", 'd', POPT_ARG_STRING, &options.device, 0,
          "choose among this device's variants alone", "NAME" },
        { "requests", '\0', POPT_ARG_DOUBLE, &options.requests, 0,
          "as if a session were to serve so many: opening devices and laying "
          "out weights counts (default: [scheduler] requests)",
          "N" },
        { "grid", 'g', POPT_ARG_NONE, &options.grid, 0,
          "the crossover map: who is chosen at which shape", NULL },
        { "csv", '\0', POPT_ARG_STRING, &options.csv, 0,
          "write the map as comma-separated values", "FILE" },
        { "picture", '\0', POPT_ARG_STRING, &options.picture, 0,
          "draw the map with gnuplot", "FILE.png|.svg" },
        POPT_TABLEEND
    };
    cli_shared shared = { 0 };
    cli_arguments arguments;
    int exit_code;

    if (!cli_parse(command, argc, argv, table, 1, &shared, &arguments))
        exit_code = arguments.exit_code;
    else if (!(options.requests >= 0))
        exit_code = cli_report(CLI_USAGE, "--requests takes a number above 0");
    else if (!options.grid && (options.csv != NULL || options.picture != NULL))
        exit_code = cli_report(CLI_USAGE, "--csv and --picture take --grid");
    else
        exit_code = plan(&shared, &options, arguments.positional[0]);
    cli_finish(&shared, &arguments);
    free(options.batch);
    free(options.steps);
    free(options.device);
    free(options.csv);
    free(options.picture);
    return exit_code;
}

const cli_command cli_plan = {
    "plan",
    "MODEL [OPTION...]",
    "show where a request would go, and why; or the map of all shapes",
    plan_main,
};
