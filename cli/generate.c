/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/generate.h"
#include "cli/request.h"

#define NOT_GIVEN INT_MIN /* of a number for which 0 says something */

typedef struct generate_options {
    char **inputs, **lengths, **initial, **carried;
    char *prompt, *prompt_lengths, *output, *vocabulary, *device, *variant;
    char *token, *scores;
    int start, stop, max_length, beam, results, top_k, sample, rows;
    double penalty, temperature;
    long long seed;
} generate_options;

/* Everything that it holds; all of it may be NULL. */
typedef struct generate_state {
    cellgate_runtime *runtime;
    cellgate_model *model, *decoder;
    cellgate_generator *generator;
    cellgate_generation *generation;
    cellgate_generate_request request;
    cellgate_report report;
    cli_brought brought;
    cli_words words;
} generate_state;

/* ---- Generating --------------------------------------------------------- */

static cellgate_status make_generator(generate_state *state,
                                      const cli_shared *shared,
                                      const generate_options *options,
                                      cellgate_error *error)
{
    const cellgate_session_options session = { .struct_size = sizeof session,
                                               .device = options->device,
                                               .variant = options->variant };
    const cellgate_generator_options made = {
        .struct_size = sizeof made,
        .session = &session,
        .token = options->token,
        .scores = options->scores,
        .initial = (const char *const *)options->initial,
        .initial_count = cli_list_length(options->initial),
        .carried = (const char *const *)options->carried,
        .carried_count = cli_list_length(options->carried),
    };
    cellgate_status status = cli_open(shared, &state->runtime, error);

    if (status == CELLGATE_OK)
        status = cellgate_generator_create(state->runtime, state->model,
                                           state->decoder, &made,
                                           &state->generator, error);
    return status;
}

static void fill_request(generate_state *state, const generate_options *options)
{
    state->request = (cellgate_generate_request){
        .struct_size = sizeof state->request,
        .inputs = state->brought.inputs,
        .input_count = state->brought.count,
        .prompt = options->prompt != NULL ? &state->brought.prompt : NULL,
        .batch = options->rows,
        .mode = options->beam > 0 ? CELLGATE_BEAM
                : options->sample ? CELLGATE_SAMPLE
                                  : CELLGATE_GREEDY,
        .start = options->start,
        .stop = options->stop,
        .max_length = options->max_length,
        .results = options->results,
        .beam_width = options->beam,
        .length_penalty = isnan(options->penalty) ? 0 : options->penalty,
        .temperature = isnan(options->temperature) ? 1 : options->temperature,
        .top_k = options->top_k == NOT_GIVEN ? 0 : options->top_k,
        .seed = options->seed == NOT_GIVEN ? 0 : (uint64_t)options->seed,
    };
}

/* More words than the model has are none of its concern. */
static cellgate_status check_words(const generate_state *state,
                                   const generate_options *options,
                                   cellgate_error *error)
{
    cellgate_generator_info info = { .struct_size = sizeof info };

    cellgate_generator_describe(state->generator, &info);
    if (options->vocabulary == NULL ||
        (uint64_t)info.words <= state->words.count)
        return CELLGATE_OK;
    return cli_error(error, CELLGATE_INVALID,
                     "%s has %zu lines, but the model scores %" PRId64
                     " ids: a word a line is expected, in the order of the ids "
                     "from 0",
                     options->vocabulary, state->words.count, info.words);
}

static cellgate_status generate_all(generate_state *state,
                                    const cli_shared *shared,
                                    const generate_options *options,
                                    const cli_arguments *arguments,
                                    cellgate_error *error)
{
    cellgate_status status =
        cellgate_model_load(arguments->positional[0], &state->model, error);

    if (status == CELLGATE_OK && arguments->count > 1)
        status = cellgate_model_load(arguments->positional[1], &state->decoder,
                                     error);
    if (status == CELLGATE_OK && options->vocabulary != NULL)
        status = cli_words_read(&state->words, options->vocabulary, error);
    if (status == CELLGATE_OK)
        status = make_generator(state, shared, options, error);
    if (status == CELLGATE_OK)
        status = check_words(state, options, error);
    if (status == CELLGATE_OK)
        status = cli_brought_init(
            &state->brought, state->generator, options->inputs,
            options->lengths, options->prompt, options->prompt_lengths, error);
    if (status != CELLGATE_OK)
        return status;
    fill_request(state, options);
    state->report.struct_size = sizeof state->report;
    return cellgate_generate(state->generator, &state->request,
                             &state->generation, &state->report, error);
}

/* ---- Showing ------------------------------------------------------------ */

static int print_json(const generate_state *state, const cli_words *words)
{
    cellgate_generator_info info = { .struct_size = sizeof info };

    cellgate_generator_describe(state->generator, &info);
    return cli_print_json(json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:I, s:I, s:f, s:o}", "device",
        state->report.device, "variant", state->report.variant, "numeric",
        cellgate_numeric_name(state->report.numeric), "reason",
        state->report.reason, "token", info.token, "scores", info.scores,
        "probabilities", (int)info.probabilities, "words",
        (json_int_t)info.words, "steps",
        (json_int_t)cellgate_generation_steps(state->generation), "seconds",
        state->report.seconds, "rows",
        cli_results_json(state->generation, words)));
}

static int show(const generate_state *state, const cli_shared *shared,
                const generate_options *options)
{
    const cli_words *words = options->vocabulary != NULL ? &state->words : NULL;
    const int64_t results = options->results > 0 ? options->results : 1;
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (options->output != NULL &&
        cli_results_write(state->generation, results, options->output,
                          &error) != CELLGATE_OK)
        return cli_fail(&error);
    if (shared->json)
        return print_json(state, words);
    if (options->output == NULL)
        cli_results_print(state->generation, words);
    fprintf(options->output == NULL ? stderr : stdout,
            "device: %s%s%s (%s)\ntime: %.3g s, %" PRId64 " steps\n",
            state->report.device, state->report.variant[0] != '\0' ? " " : "",
            state->report.variant, state->report.reason, state->report.seconds,
            cellgate_generation_steps(state->generation));
    return CLI_OK;
}

/* ---- The command -------------------------------------------------------- */

static int check_options(const generate_options *options)
{
    if (options->max_length < 1)
        return cli_report(CLI_USAGE, "generate needs --max-length N, from 1 "
                                     "up: the most ids of a result");
    if (options->start < 0 && options->prompt == NULL)
        return cli_report(CLI_USAGE, "generate needs --start ID or --prompt "
                                     "FILE: what the decoder reads first");
    if (options->beam < 0 || (options->beam > 0 && options->sample))
        return cli_report(CLI_USAGE, "--beam takes a number from 1 up, and "
                                     "does not go with --sample");
    if (options->beam == 0 && !isnan(options->penalty))
        return cli_report(CLI_USAGE, "--length-penalty goes with --beam");
    if (!options->sample &&
        (!isnan(options->temperature) || options->top_k != NOT_GIVEN ||
         options->seed != NOT_GIVEN))
        return cli_report(CLI_USAGE, "--temperature, --top-k and --seed go "
                                     "with --sample");
    if (options->prompt_lengths != NULL && options->prompt == NULL)
        return cli_report(CLI_USAGE, "--prompt-lengths goes with --prompt");
    return CLI_OK;
}

static int generate(const cli_shared *shared, const generate_options *options,
                    const cli_arguments *arguments)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    generate_state state;
    int exit_code = check_options(options);

    if (exit_code != CLI_OK)
        return exit_code;
    memset(&state, 0, sizeof state);
    if (generate_all(&state, shared, options, arguments, &error) == CELLGATE_OK)
        exit_code = show(&state, shared, options);
    else
        exit_code = cli_fail(&error);
    cellgate_generation_destroy(state.generation);
    cli_brought_finish(&state.brought);
    cli_words_finish(&state.words);
    cellgate_generator_destroy(state.generator);
    cellgate_model_destroy(state.decoder);
    cellgate_model_destroy(state.model);
    cellgate_runtime_destroy(state.runtime);
    return exit_code;
}

static void free_list(char **list)
{
    size_t i;

    for (i = 0; list != NULL && list[i] != NULL; i++)
        free(list[i]);
    free(list);
}

static void generate_options_finish(generate_options *options)
{
    free_list(options->inputs);
    free_list(options->lengths);
    free_list(options->initial);
    free_list(options->carried);
    free(options->prompt);
    free(options->prompt_lengths);
    free(options->output);
    free(options->vocabulary);
    free(options->device);
    free(options->variant);
    free(options->token);
    free(options->scores);
}

static int generate_main(const cli_command *command, int argc,
                         const char **argv)
{
    generate_options options = { .start = -1,
                                 .stop = -1,
                                 .penalty = (double)NAN,
                                 .temperature = (double)NAN,
                                 .top_k = NOT_GIVEN,
                                 .seed = NOT_GIVEN };
    struct poptOption table[] = {
        { "input", 'i', POPT_ARG_ARGV, &options.inputs, 0,
          "an input of the encoder; repeat for several inputs",
          "[NAME=]FILE[:ARRAY]" },
        { "lengths", '\0', POPT_ARG_ARGV, &options.lengths, 0,
          "valid steps of each row of an input", "[NAME=]FILE[:ARRAY]" },
        { "prompt", '\0', POPT_ARG_STRING, &options.prompt, 0,
          "ids that the decoder reads first, (batch, steps)", "FILE[:ARRAY]" },
        { "prompt-lengths", '\0', POPT_ARG_STRING, &options.prompt_lengths, 0,
          "valid steps of each row of the prompt", "FILE[:ARRAY]" },
        { "start", '\0', POPT_ARG_INT, &options.start, 0,
          "id that is read before everything", "ID" },
        { "stop", '\0', POPT_ARG_INT, &options.stop, 0, "id that ends a result",
          "ID" },
        { "max-length", '\0', POPT_ARG_INT, &options.max_length, 0,
          "most ids of a result", "N" },
        { "rows", '\0', POPT_ARG_INT, &options.rows, 0,
          "rows, where there is neither input nor prompt (default: 1)", "N" },
        { "beam", '\0', POPT_ARG_INT, &options.beam, 0,
          "beam search that keeps N sequences", "N" },
        { "length-penalty", '\0', POPT_ARG_DOUBLE, &options.penalty, 0,
          "of beam search: score / length ^ X (default: 0)", "X" },
        { "sample", '\0', POPT_ARG_NONE, &options.sample, 0,
          "draw ids at random", NULL },
        { "temperature", '\0', POPT_ARG_DOUBLE, &options.temperature, 0,
          "of sampling (default: 1)", "X" },
        { "top-k", '\0', POPT_ARG_INT, &options.top_k, 0,
          "sample among the N most probable ids only", "N" },
        { "seed", '\0', POPT_ARG_LONGLONG, &options.seed, 0,
          "of sampling (default: 0)", "N" },
        { "results", '\0', POPT_ARG_INT, &options.results, 0,
          "results of each row, of beam search or sampling (default: 1)", "N" },
        { "output", 'o', POPT_ARG_STRING, &options.output, 0,
          "write the ids here, -1 behind the end of each", "FILE.npy" },
        { "vocabulary", '\0', POPT_ARG_STRING, &options.vocabulary, 0,
          "print words: one a line, in the order of their ids", "FILE" },
        { "token", '\0', POPT_ARG_STRING, &options.token, 0,
          "the input that takes the generated ids", "NAME" },
        { "scores", '\0', POPT_ARG_STRING, &options.scores, 0,
          "the output that scores the next id", "NAME" },
        { "initial", '\0', POPT_ARG_ARGV, &options.initial, 0,
          "output of the encoder that an input of DECODER begins with",
          "OUTPUT=INPUT" },
        { "carried", '\0', POPT_ARG_ARGV, &options.carried, 0,
          "output of the decoder that is its input at the next step",
          "OUTPUT=INPUT" },
        { "device", 'd', POPT_ARG_STRING, &options.device, 0,
          "run on this device or fail; host is the plain reference", "NAME" },
        { "variant", '\0', POPT_ARG_STRING, &options.variant, 0,
          "run this variant of the device", "NAME" },
        POPT_TABLEEND
    };
    cli_shared shared = { 0 };
    cli_arguments arguments;
    int exit_code;

    if (cli_parse_range(command, argc, argv, table, 1, 2, &shared, &arguments))
        exit_code = generate(&shared, &options, &arguments);
    else
        exit_code = arguments.exit_code;
    cli_finish(&shared, &arguments);
    generate_options_finish(&options);
    return exit_code;
}

const cli_command cli_generate = {
    "generate",
    "MODEL [DECODER] --max-length N [OPTION...]",
    "run a decoder that feeds itself",
    generate_main,
};
