/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop: what it chooses is what the whole model says about the whole
 * sequence, which a plain loop around cellgate_run() finds out here by running
 * all ids so far again for each next one.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/fail_allocation.h"
#include "tests/unit/session_rig.h"

#define WORDS 9
#define UNITS 6
#define LONGEST 8

static const char config[] = "[device cpu]\nplugin = openmp\n"
                             "[device card]\nplugin = remote\n";
static const char *const devices[] = { "host", "cpu", "card" };
static cellgate_runtime *runtime;

/* ---- Models ------------------------------------------------------------- */

/* ids -> embedding -> two LSTMs, their masks from the ids if asked -> scores of
   each step or of the last one */
static cellgate_model *language_model(bool masked, bool last, bool softmax,
                                      uint64_t seed)
{
    rig_model rig;
    rig_lstm first, second;
    int32_t ids, x;

    rig_model_begin(&rig, seed);
    ids = rig_input(&rig, CG_UNKNOWN, 0);
    rig_lstm_init(&first, UNITS, UNITS);
    rig_lstm_init(&second, UNITS, UNITS);
    if (masked)
        first.mask = second.mask = rig_simple(&rig, CG_NONZERO, ids);
    rig_add_lstm(&rig, rig_embedding(&rig, ids, WORDS, UNITS), &first);
    rig_add_lstm(&rig, first.sequence, &second);
    x = rig_dense(&rig, last ? second.last : second.sequence, UNITS, WORDS,
                  CELLGATE_LINEAR);
    /* Scores that are far from equal. */
    x = rig_dense(&rig, x, WORDS, WORDS, CELLGATE_LINEAR);
    rig_output(&rig, softmax ? rig_simple(&rig, CG_SOFTMAX, x) : x);
    return rig_model_end(&rig);
}

/* Features and source ids -> encoder -> states, and features for each step. */
static cellgate_model *translator(uint64_t seed)
{
    rig_model rig;
    rig_lstm encoder, decoder;
    int32_t source, target, x;

    rig_model_begin(&rig, seed);
    target = rig_input(&rig, CG_UNKNOWN, 0);
    source = rig_input(&rig, CG_UNKNOWN, 0);
    rig_lstm_init(&encoder, UNITS, UNITS);
    encoder.mask = rig_mask(&rig, 1);
    rig_add_lstm(&rig, rig_embedding(&rig, source, WORDS, UNITS), &encoder);
    rig_lstm_init(&decoder, UNITS, UNITS);
    decoder.initial[0] = encoder.final[0];
    decoder.initial[1] = encoder.final[1];
    rig_add_lstm(&rig, rig_embedding(&rig, target, WORDS, UNITS), &decoder);
    x = rig_dense(&rig, decoder.sequence, UNITS, WORDS, CELLGATE_LINEAR);
    x = rig_dense(&rig, x, WORDS, WORDS, CELLGATE_LINEAR);
    rig_output(&rig, rig_simple(&rig, CG_SOFTMAX, x));
    return rig_model_end(&rig);
}

/* ids -> embedding -> two layers of that kind, as language_model() -> scores */
static cellgate_model *recurrent_model(cg_kind kind, bool masked, bool last,
                                       uint64_t seed)
{
    rig_model rig;
    rig_recurrent first = { .kind = kind,
                            .input_size = UNITS,
                            .hidden_size = UNITS,
                            .reset_after = kind == CG_GRU,
                            .mask = CG_NO_VALUE,
                            .initial = CG_NO_VALUE };
    rig_recurrent second;
    int32_t ids, x;

    rig_model_begin(&rig, seed);
    ids = rig_input(&rig, CG_UNKNOWN, 0);
    if (masked)
        first.mask = rig_simple(&rig, CG_NONZERO, ids);
    second = first;
    rig_add_recurrent(&rig, rig_embedding(&rig, ids, WORDS, UNITS), &first);
    rig_add_recurrent(&rig, first.sequence, &second);
    x = rig_dense(&rig, last ? second.last : second.sequence, UNITS, WORDS,
                  CELLGATE_LINEAR);
    rig_output(&rig, rig_dense(&rig, x, WORDS, WORDS, CELLGATE_LINEAR));
    return rig_model_end(&rig);
}

/* A node of several inputs, without the weights that it may have. */
static int32_t add_joined(rig_model *rig, cg_node node, int32_t *inputs,
                          size_t count, const char *name)
{
    int32_t outputs[2] = { CG_NO_VALUE, CG_NO_VALUE };
    cg_weight weights[2] = { 0 };

    assert_int_equal(cg_model_add_value(rig->model, name, CELLGATE_F32, 0, NULL,
                                        &outputs[0], NULL),
                     CELLGATE_OK);
    node.name = node.layer = (char *)(uintptr_t)name;
    node.inputs = inputs;
    node.input_count = count;
    node.outputs = outputs;
    node.output_count = node.kind == CG_ATTENTION ? 2 : 1;
    node.weights = weights;
    node.weight_count = cg_node_weight_count(&node);
    assert_int_equal(cg_model_add_node(rig->model, &node, NULL), CELLGATE_OK);
    return outputs[0];
}

/* As translator(), but the decoder is a GRU whose steps look at the encoder's;
   the mask of the attention is the request's. */
static cellgate_model *attentive_translator(uint64_t seed)
{
    const cg_node attention = { .kind = CG_ATTENTION,
                                .as.attention.size = UNITS };
    const cg_node concat = { .kind = CG_CONCAT };
    rig_model rig;
    rig_lstm encoder;
    rig_recurrent decoder = { .kind = CG_GRU,
                              .input_size = UNITS,
                              .hidden_size = UNITS,
                              .reset_after = true,
                              .mask = CG_NO_VALUE };
    int32_t target, source, looks[5], both[2];

    rig_model_begin(&rig, seed);
    target = rig_input(&rig, CG_UNKNOWN, 0);
    source = rig_input(&rig, CG_UNKNOWN, 0);
    rig_lstm_init(&encoder, UNITS, UNITS);
    encoder.mask = rig_mask(&rig, 1);
    rig_add_lstm(&rig, rig_embedding(&rig, source, WORDS, UNITS), &encoder);
    decoder.initial = encoder.final[0];
    rig_add_recurrent(&rig, rig_embedding(&rig, target, WORDS, UNITS),
                      &decoder);
    looks[0] = both[0] = decoder.sequence;
    looks[1] = encoder.sequence;
    looks[CG_ATTENTION_INPUT_KEY] = CG_NO_VALUE;
    looks[CG_ATTENTION_INPUT_QUERY_MASK] = rig_simple(&rig, CG_NONZERO, target);
    looks[CG_ATTENTION_INPUT_VALUE_MASK] = encoder.mask;
    both[1] = add_joined(&rig, attention, looks, 5, "attend");
    source = add_joined(&rig, concat, both, 2, "join");
    source = rig_dense(&rig, source, 2 * UNITS, WORDS, CELLGATE_TANH);
    source = rig_dense(&rig, source, WORDS, WORDS, CELLGATE_LINEAR);
    rig_output(&rig, rig_simple(&rig, CG_SOFTMAX, source));
    return rig_model_end(&rig);
}

/* ---- The plain loop ----------------------------------------------------- */

/* Scores of what follows `ids`, by a run of the whole model on one row. */
static void whole_scores(cellgate_session *session, const int32_t *ids,
                         int64_t count, const cellgate_input *source,
                         float *scores)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_input inputs[2];
    float all[(2 * LONGEST + 1) * WORDS];
    cellgate_tensor output = { .struct_size = sizeof output };
    cellgate_request request = { .struct_size = sizeof request,
                                 .inputs = inputs,
                                 .input_count = source != NULL ? 2 : 1,
                                 .outputs = &output,
                                 .output_count = 1 };

    memset(inputs, 0, sizeof inputs);
    inputs[0].struct_size = sizeof inputs[0];
    inputs[0].tensor = (cellgate_tensor){ sizeof(cellgate_tensor),
                                          CELLGATE_I32,
                                          2,
                                          { 1, count },
                                          (void *)(uintptr_t)ids };
    if (source != NULL)
        inputs[1] = *source;
    assert_int_equal(
        cellgate_output_shape(session, &request, 0, &output, &error),
        CELLGATE_OK);
    output.data = all;
    if (cellgate_run(session, &request, NULL, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    memcpy(scores, output.rank == 3 ? all + (count - 1) * WORDS : all,
           WORDS * sizeof *scores);
}

typedef struct expected {
    int32_t ids[LONGEST];
    int64_t length;
    double score;
    bool stopped;
} expected;

static double log_probability(const float *scores, int id, bool softmax)
{
    double sum = 0;

    if (softmax)
        return log((double)scores[id]);
    for (int k = 0; k < WORDS; k++)
        sum += exp((double)scores[k]);
    return (double)scores[id] - log(sum);
}

/* `given`: what is read first. */
static expected plain_greedy(cellgate_session *session, const int32_t *given,
                             int64_t count, const cellgate_input *source,
                             int32_t stop, bool softmax)
{
    expected result = { .length = 0 };
    int32_t ids[2 * LONGEST];

    memcpy(ids, given, (size_t)count * sizeof *ids);
    while (!result.stopped && result.length < LONGEST) {
        float scores[WORDS];
        int best = 0;

        whole_scores(session, ids, count, source, scores);
        for (int id = 1; id < WORDS; id++)
            best = scores[id] > scores[best] ? id : best;
        result.score += log_probability(scores, best, softmax);
        result.stopped = best == stop;
        if (!result.stopped)
            ids[count++] = result.ids[result.length++] = best;
    }
    return result;
}

/* ---- Requests ----------------------------------------------------------- */

static cellgate_generator *make_generator(const cellgate_model *model,
                                          const char *device)
{
    const cellgate_session_options session = { .struct_size = sizeof session,
                                               .device = device };
    const cellgate_generator_options options = { .struct_size = sizeof options,
                                                 .session = &session };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_generator *generator = NULL;

    if (cellgate_generator_create(runtime, model, NULL, &options, &generator,
                                  &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return generator;
}

static cellgate_generation *generate(cellgate_generator *generator,
                                     const cellgate_generate_request *request,
                                     cellgate_report *report)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_generation *generation = NULL;

    if (cellgate_generate(generator, request, &generation, report, &error) !=
        CELLGATE_OK)
        fail_msg("%s", error.text);
    return generation;
}

static cellgate_generated result_of(const cellgate_generation *generation,
                                    int64_t row, int64_t result)
{
    cellgate_generated generated = { .struct_size = sizeof generated };

    assert_int_equal(
        cellgate_generation_get(generation, row, result, &generated),
        CELLGATE_OK);
    return generated;
}

static void expect_result(const cellgate_generation *generation, int64_t row,
                          const expected *wanted)
{
    const cellgate_generated got = result_of(generation, row, 0);

    assert_int_equal(got.length, wanted->length);
    assert_memory_equal(got.ids, wanted->ids,
                        (size_t)got.length * sizeof *got.ids);
    assert_int_equal(got.stopped, wanted->stopped);
    assert_true(fabs(got.score - wanted->score) < 1e-4);
}

static cellgate_input ids_input(int32_t *ids, int64_t rows, int64_t columns,
                                const int32_t *lengths)
{
    return (cellgate_input){
        sizeof(cellgate_input),
        { sizeof(cellgate_tensor), CELLGATE_I32, 2, { rows, columns }, ids },
        lengths,
        NULL
    };
}

static const cellgate_generate_request greedy = {
    .struct_size = sizeof greedy, .start = 1, .stop = 2, .max_length = LONGEST
};

/* ---- Greedy ------------------------------------------------------------- */

/* Prompts of several lengths, some with ids that are masked, and none. */
static void go_on_with_prompts(cellgate_model *model, const char *device,
                               bool softmax)
{
    int32_t prompts[6][4] = { { 3, 4, 5, 6 }, { 7, 0, 0, 0 }, { 0, 0, 3, 4 },
                              { 5, 0, 8, 0 }, { 0, 0, 0, 0 }, { 8, 8, 1, 0 } };
    const int32_t lengths[6] = { 4, 1, 4, 4, 2, 0 };

    cellgate_generator *generator = make_generator(model, device);
    cellgate_session *host = rig_session(runtime, model, "host", NULL);
    const cellgate_input prompt = ids_input(prompts[0], 6, 4, lengths);
    cellgate_generate_request request = greedy;
    cellgate_generation *generation;

    request.prompt = &prompt;
    generation = generate(generator, &request, NULL);
    assert_int_equal(cellgate_generation_rows(generation), 6);
    for (int64_t row = 0; row < 6; row++) {
        int32_t given[5] = { 1 };
        expected wanted;

        memcpy(given + 1, prompts[row], sizeof prompts[row]);
        wanted = plain_greedy(host, given, 1 + lengths[row], NULL, 2, softmax);
        expect_result(generation, row, &wanted);
    }
    cellgate_generation_destroy(generation);
    cellgate_generator_destroy(generator);
    cellgate_session_destroy(host);
    cellgate_model_destroy(model);
}

static void a_language_model_goes_on_with_prompts(void **state)
{
    (void)state;
    for (uint64_t at = 0; at < 3 * 8; at++) {
        const bool masked = at & 1, last = at & 2, softmax = at & 4;

        go_on_with_prompts(language_model(masked, last, softmax, 20 + at),
                           devices[at / 8], softmax);
    }
}

static void other_recurrent_layers_go_on_with_prompts(void **state)
{
    (void)state;
    for (uint64_t at = 0; at < 3 * 8; at++)
        go_on_with_prompts(recurrent_model(at & 1 ? CG_GRU : CG_SIMPLE_RNN,
                                           at & 2, at & 4, 120 + at),
                           devices[at / 8], false);
}

/* The encoder sees the request's lengths. */
static void translate(cellgate_model *model, const char *device, int64_t states)
{
    int32_t sources[4][5] = {
        { 3, 4, 5, 6, 7 }, { 8, 2, 1, 0, 0 }, { 5, 5, 0, 0, 0 }, { 4, 3, 2, 1 }
    };
    const int32_t lengths[4] = { 5, 3, 2, 0 };

    cellgate_generator *generator = make_generator(model, device);
    cellgate_session *host = rig_session(runtime, model, "host", NULL);
    const cellgate_input source = ids_input(sources[0], 4, 5, lengths);
    cellgate_generate_request request = greedy;
    cellgate_report report = { .struct_size = sizeof report };
    cellgate_generation *generation;
    cellgate_generator_info info = { .struct_size = sizeof info };

    request.inputs = &source;
    request.input_count = 1;
    generation = generate(generator, &request, &report);
    assert_true(report.seconds > 0 && report.device[0] != '\0');
    assert_int_equal(cellgate_generator_describe(generator, &info),
                     CELLGATE_OK);
    assert_int_equal(info.words, WORDS);
    assert_int_equal(info.states, states);
    assert_true(info.probabilities);
    for (int64_t row = 0; row < 4; row++) {
        const cellgate_input one = ids_input(sources[row], 1, 5, &lengths[row]);
        const int32_t start = 1;
        const expected wanted = plain_greedy(host, &start, 1, &one, 2, true);

        expect_result(generation, row, &wanted);
    }
    cellgate_generation_destroy(generation);
    cellgate_generator_destroy(generator);
    cellgate_session_destroy(host);
    cellgate_model_destroy(model);
}

static void a_translator_begins_with_its_encoder(void **state)
{
    (void)state;
    for (uint64_t at = 0; at < 3 * 4; at++)
        translate(translator(50 + at), devices[at / 4], 2);
}

static void attention_sees_the_encoders_steps(void **state)
{
    (void)state;
    for (uint64_t at = 0; at < 3 * 4; at++)
        translate(attentive_translator(150 + at), devices[at / 4], 1);
}

/* ---- Rows
 * ----------------------------------------------------------------------------
 */

static void expect_same(const cellgate_generation *a, int64_t row_a,
                        const cellgate_generation *b, int64_t row_b,
                        int64_t results)
{
    for (int64_t at = 0; at < results; at++) {
        const cellgate_generated x = result_of(a, row_a, at);
        const cellgate_generated y = result_of(b, row_b, at);

        assert_int_equal(x.length, y.length);
        assert_memory_equal(x.ids, y.ids, (size_t)x.length * sizeof *x.ids);
        assert_int_equal(x.stopped, y.stopped);
        assert_true(fabs(x.score - y.score) < 1e-5);
        assert_true(fabs(x.value - y.value) < 1e-5);
    }
}

/* Whatever the mode, a row alone has the results that it has among others, in
   any order. */
static void rows_do_not_depend_on_each_other(void **state)
{
    int32_t prompts[5][3] = {
        { 3, 4, 5 }, { 6, 7, 8 }, { 8, 8, 8 }, { 5, 1, 3 }, { 4, 4, 6 }
    };
    int32_t turned[5][3];
    cellgate_model *model = language_model(false, false, true, 5);
    const uint64_t seeds[5] = { 1, 2, 3, 4, 5 };
    const uint64_t turned_seeds[5] = { 5, 4, 3, 2, 1 };

    (void)state;
    for (int row = 0; row < 5; row++)
        memcpy(turned[row], prompts[4 - row], sizeof turned[row]);
    for (int at = 0; at < 3 * 3; at++) {
        cellgate_generator *generator = make_generator(model, devices[at / 3]);
        const cellgate_input all = ids_input(prompts[0], 5, 3, NULL);
        const cellgate_input other = ids_input(turned[0], 5, 3, NULL);
        cellgate_generate_request request = greedy;
        cellgate_generation *together, *reversed;

        request.mode = at % 3;
        request.results = request.mode == CELLGATE_GREEDY ? 1 : 3;
        request.temperature = 1.5;
        request.prompt = &all;
        request.seeds = seeds;
        together = generate(generator, &request, NULL);
        request.prompt = &other;
        request.seeds = turned_seeds;
        reversed = generate(generator, &request, NULL);
        for (int64_t row = 0; row < 5; row++) {
            const cellgate_input one = ids_input(prompts[row], 1, 3, NULL);
            cellgate_generation *alone;

            request.prompt = &one;
            request.seeds = NULL;
            request.seed = seeds[row];
            alone = generate(generator, &request, NULL);
            expect_same(alone, 0, together, row, request.results);
            expect_same(alone, 0, reversed, 4 - row, request.results);
            cellgate_generation_destroy(alone);
        }
        cellgate_generation_destroy(together);
        cellgate_generation_destroy(reversed);
        cellgate_generator_destroy(generator);
    }
    cellgate_model_destroy(model);
}

/* ---- Beam
 * ------------------------------------------------------------------------------
 */

typedef struct search {
    cellgate_session *session;
    double best;
    int32_t ids[4];
    int64_t length;
} search;

/* The most probable of all sequences of up to 3 ids. */
static void search_all(search *of, int32_t *ids, int64_t count, double sum)
{
    float scores[WORDS];

    whole_scores(of->session, ids, count, NULL, scores);
    for (int id = 0; id < WORDS; id++) {
        const double more = sum + log_probability(scores, id, true);
        const bool stopped = id == 2;

        ids[count] = id;
        if (!stopped && count < 3) {
            search_all(of, ids, count + 1, more);
        } else if (more > of->best) {
            of->best = more;
            of->length = count - stopped;
            memcpy(of->ids, ids + 1, sizeof of->ids);
        }
    }
}

/* With a beam that leaves nothing out: states follow their sequences. */
static void a_wide_beam_finds_the_most_probable(void **state)
{
    (void)state;
    for (uint64_t at = 0; at < 3; at++) {
        cellgate_model *model = language_model(false, true, true, 90 + at);
        cellgate_generator *generator = make_generator(model, devices[at]);
        search all = { .session = rig_session(runtime, model, "host", NULL),
                       .best = -INFINITY };
        cellgate_generate_request request = greedy;
        cellgate_generation *generation;
        int32_t ids[5] = { 1 };
        cellgate_generated best;

        search_all(&all, ids, 1, 0);
        request.mode = CELLGATE_BEAM;
        request.beam_width = 81;
        request.results = 5;
        request.max_length = 3;
        generation = generate(generator, &request, NULL);
        best = result_of(generation, 0, 0);
        assert_int_equal(best.length, all.length);
        assert_memory_equal(best.ids, all.ids,
                            (size_t)best.length * sizeof *best.ids);
        assert_true(fabs(best.score - all.best) < 1e-4);
        for (int64_t result = 1; result < 5; result++)
            assert_true(result_of(generation, 0, result).value <=
                        result_of(generation, 0, result - 1).value);
        cellgate_generation_destroy(generation);
        cellgate_session_destroy(all.session);
        cellgate_generator_destroy(generator);
        cellgate_model_destroy(model);
    }
}

/* ---- Sampling ----------------------------------------------------------- */

static void samples_follow_their_seed(void **state)
{
    cellgate_model *model = language_model(false, false, false, 7);
    cellgate_generator *generator = make_generator(model, "cpu");
    cellgate_generate_request request = greedy;
    cellgate_generation *first, *again, *other, *cold, *chosen;
    int same = 0;

    (void)state;
    request.mode = CELLGATE_SAMPLE;
    request.temperature = 3;
    request.results = 10;
    request.seed = 11;
    first = generate(generator, &request, NULL);
    again = generate(generator, &request, NULL);
    expect_same(first, 0, again, 0, 10);
    request.seed = 12;
    other = generate(generator, &request, NULL);
    for (int64_t at = 0; at < 10; at++)
        same += fabs(result_of(first, 0, at).score -
                     result_of(other, 0, at).score) < 1e-9;
    assert_true(same < 10);
    request.temperature = 1e-9;
    cold = generate(generator, &request, NULL);
    request = greedy;
    chosen = generate(generator, &request, NULL);
    for (int64_t at = 0; at < 10; at++)
        assert_true(fabs(result_of(cold, 0, at).score -
                         result_of(chosen, 0, 0).score) < 1e-9);
    cellgate_generation_destroy(first);
    cellgate_generation_destroy(again);
    cellgate_generation_destroy(other);
    cellgate_generation_destroy(cold);
    cellgate_generation_destroy(chosen);
    cellgate_generator_destroy(generator);
    cellgate_model_destroy(model);
}

/* ---- Faults
 * -----------------------------------------------------------------------------
 */

static void refuse(cellgate_generator *generator,
                   const cellgate_generate_request *request,
                   cellgate_status status, const char *part)
{
    cellgate_generation *generation = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;

    assert_int_equal(
        cellgate_generate(generator, request, &generation, NULL, &error),
        status);
    assert_null(generation);
    if (strstr(error.text, part) == NULL)
        fail_msg("%s", error.text);
}

static void requests_that_cannot_be_are_refused(void **state)
{
    cellgate_model *model = language_model(false, false, true, 5);
    cellgate_generator *generator = make_generator(model, "host");
    int32_t ids[2][2] = { { 3, 4 }, { 5, WORDS } };
    const int32_t lengths[2] = { 2, 1 }, long_lengths[2] = { 2, 3 };
    const int32_t none[2] = { 1, 0 };
    cellgate_input prompt = ids_input(ids[0], 2, 2, NULL);
    cellgate_generate_request request = greedy;

    (void)state;
    request.prompt = &prompt;
    refuse(generator, &request, CELLGATE_OUT_OF_RANGE,
           "row 1, step 1: id 9 is not in the vocabulary of 9");
    prompt.lengths = lengths; /* beyond it anything may stand */
    cellgate_generation_destroy(generate(generator, &request, NULL));
    prompt.lengths = long_lengths;
    refuse(generator, &request, CELLGATE_OUT_OF_RANGE, "length 3 of row 1");
    prompt.lengths = none;
    request.start = -1;
    refuse(generator, &request, CELLGATE_INVALID, "row 1 has neither");
    request = greedy;
    request.start = WORDS;
    refuse(generator, &request, CELLGATE_INVALID, "the start id is 9");
    request = greedy;
    request.stop = WORDS;
    refuse(generator, &request, CELLGATE_INVALID, "the stop id is 9");
    request = greedy;
    request.max_length = 0;
    refuse(generator, &request, CELLGATE_INVALID, "max_length is 0");
    request = greedy;
    request.results = 2;
    refuse(generator, &request, CELLGATE_INVALID, "one result a row");
    request.mode = CELLGATE_BEAM;
    request.beam_width = 1;
    refuse(generator, &request, CELLGATE_INVALID, "a beam of 1");
    request.mode = CELLGATE_SAMPLE;
    request.temperature = NAN;
    refuse(generator, &request, CELLGATE_INVALID, "temperature");
    request = greedy;
    request.input_count = 1;
    refuse(generator, &request, CELLGATE_INVALID, "there are 0 to bring");
    request = greedy;
    request.mode = 3;
    refuse(generator, &request, CELLGATE_INVALID, "mode is 3");
    cellgate_generator_destroy(generator);
    cellgate_model_destroy(model);
}

/* The second row's first scores are numbers, those after them are not. */
static void scores_that_are_no_numbers_name_row_and_step(void **state)
{
    rig_model rig;
    rig_lstm lstm;
    cellgate_model *model;
    cellgate_generator *generator;
    cellgate_generate_request request = greedy;
    int32_t ids, x, prompts[2][2] = { { 3, 3 }, { 3, 5 } };
    const cellgate_input prompt = ids_input(prompts[0], 2, 2, NULL);

    (void)state;
    rig_model_begin(&rig, 1);
    ids = rig_input(&rig, CG_UNKNOWN, 0);
    x = rig_embedding(&rig, ids, WORDS, UNITS);
    for (int k = 0; k < UNITS; k++)
        ((float *)(uintptr_t)rig.model->nodes[0].weights[0].data)[5 * UNITS +
                                                                  k] = NAN;
    rig_lstm_init(&lstm, UNITS, UNITS);
    rig_add_lstm(&rig, x, &lstm);
    x = rig_dense(&rig, lstm.sequence, UNITS, WORDS, CELLGATE_LINEAR);
    rig_output(&rig, rig_simple(&rig, CG_SOFTMAX, x));
    model = rig_model_end(&rig);
    request.prompt = &prompt;
    for (int at = 0; at < 3; at++) {
        generator = make_generator(model, devices[at]);
        refuse(generator, &request, CELLGATE_OUT_OF_RANGE,
               "row 1, step 2: the scores");
        cellgate_generator_destroy(generator);
    }
    cellgate_model_destroy(model);
}

/* ---- Memory
 * --------------------------------------------------------------------------------
 */

static const cellgate_model *under_test;

static cellgate_status create_and_generate(void *context)
{
    const cellgate_session_options session = { .struct_size = sizeof session,
                                               .device = "cpu" };
    const cellgate_generator_options options = { .struct_size = sizeof options,
                                                 .session = &session };
    cellgate_generate_request request = greedy;
    cellgate_generation *generation = NULL;
    cellgate_generator *generator = NULL;
    int32_t ids[2] = { 3, 4 };
    const cellgate_input source = ids_input(ids, 1, 2, NULL);
    cellgate_status status = cellgate_generator_create(
        runtime, under_test, NULL, &options, &generator, NULL);

    request.mode = *(int *)context;
    request.inputs = &source;
    request.input_count = 1;
    request.results = request.mode == CELLGATE_GREEDY ? 1 : 2;
    if (status == CELLGATE_OK)
        status =
            cellgate_generate(generator, &request, &generation, NULL, NULL);
    cellgate_generation_destroy(generation);
    cellgate_generator_destroy(generator);
    return status;
}

/* As test_session_allocation: a plan may do with less, and succeed. */
static void each_allocation_may_fail(void **state)
{
    cellgate_model *model = translator(3);
    size_t recovered = 0;

    (void)state;
    under_test = model;
    for (int mode = CELLGATE_GREEDY; mode <= CELLGATE_SAMPLE; mode++) {
        bool failed = true;

        assert_int_equal(create_and_generate(&mode), CELLGATE_OK);
        for (size_t nth = 1; failed; nth++) {
            cellgate_status status;

            fail_allocation_begin(nth);
            status = create_and_generate(&mode);
            failed = fail_allocation_end();
            assert_int_equal(fail_allocation_live(), 0);
            if (failed && status == CELLGATE_OK)
                recovered++;
            else
                assert_int_equal(status,
                                 failed ? CELLGATE_NO_MEMORY : CELLGATE_OK);
        }
    }
    assert_true(recovered <= 3 * 2 * 4); /* modes, sessions, plans */
    cellgate_model_destroy(model);
}

static int set_up(void **state)
{
    (void)state;
    runtime = rig_runtime(config);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cellgate_runtime_destroy(runtime);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_language_model_goes_on_with_prompts),
        cmocka_unit_test(other_recurrent_layers_go_on_with_prompts),
        cmocka_unit_test(a_translator_begins_with_its_encoder),
        cmocka_unit_test(attention_sees_the_encoders_steps),
        cmocka_unit_test(rows_do_not_depend_on_each_other),
        cmocka_unit_test(a_wide_beam_finds_the_most_probable),
        cmocka_unit_test(samples_follow_their_seed),
        cmocka_unit_test(requests_that_cannot_be_are_refused),
        cmocka_unit_test(scores_that_are_no_numbers_name_row_and_step),
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
