/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The translation example, trained in Keras (tests/fixtures/translation):
 * greedy translations are Keras's word for word, and those of beam search the
 * ones of a plain search, on the host ops and on the kernel levels of the CPU
 * plugin; from the model for training and from the encoder and decoder, and
 * from the native file. The fixture's script states how far the best word is
 * ahead of the second: rounding cannot turn it.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/session_rig.h"

#define SCORE_TOLERANCE 5e-5 /* of a sum of logarithms */

static const char config[] = "[device scalar]\nplugin = openmp\n"
                             "level = scalar\n"
                             "[device avx2]\nplugin = openmp\nlevel = avx2\n"
                             "[device best]\nplugin = openmp\n";
static cellgate_runtime *runtime;
static cellgate_arrays *arrays;
static cellgate_model *whole, *native, *encoder, *decoder;

/* ---- Files -------------------------------------------------------------- */

static void fixture_path(char *path, size_t size, const char *name)
{
    const char *srcdir = getenv("srcdir");

    snprintf(path, size, "%s/tests/fixtures/translation/%s",
             srcdir != NULL ? srcdir : ".", name);
}

static cellgate_model *load(const char *path)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = NULL;

    if (cellgate_model_load(path, &model, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return model;
}

static cellgate_model *load_fixture(const char *name)
{
    char path[512];

    fixture_path(path, sizeof path, name);
    return load(path);
}

static cellgate_model *through_native(const cellgate_model *model)
{
    char path[] = "/tmp/cellgate-test-XXXXXX";
    const int file = mkstemp(path);
    cellgate_model *loaded;

    assert_true(file >= 0);
    close(file);
    assert_int_equal(cellgate_model_save(model, path, NULL), CELLGATE_OK);
    loaded = load(path);
    unlink(path);
    return loaded;
}

static cellgate_tensor array(const char *wanted)
{
    cellgate_tensor tensor = { .struct_size = sizeof tensor };
    const char *name;

    for (size_t at = 0; at < cellgate_arrays_count(arrays); at++) {
        assert_int_equal(cellgate_arrays_get(arrays, at, &name, &tensor),
                         CELLGATE_OK);
        if (strcmp(name, wanted) == 0)
            return tensor;
    }
    fail_msg("sentences.npz has no %s", wanted);
    return tensor;
}

static int set_up(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    char path[512];

    (void)state;
    runtime = rig_runtime(config);
    fixture_path(path, sizeof path, "sentences.npz");
    if (cellgate_arrays_read(path, &arrays, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    whole = load_fixture("translation.keras");
    native = through_native(whole);
    encoder = load_fixture("encoder.keras");
    decoder = load_fixture("decoder.keras");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cellgate_model_destroy(whole);
    cellgate_model_destroy(native);
    cellgate_model_destroy(encoder);
    cellgate_model_destroy(decoder);
    cellgate_arrays_destroy(arrays);
    cellgate_runtime_destroy(runtime);
    return 0;
}

/* ---- Translations ------------------------------------------------------- */

static cellgate_generator *make_generator(const cellgate_model *model,
                                          const cellgate_model *second,
                                          const char *device)
{
    const cellgate_session_options session = { .struct_size = sizeof session,
                                               .device = device };
    const cellgate_generator_options options = { .struct_size = sizeof options,
                                                 .session = &session };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_generator *generator = NULL;

    if (cellgate_generator_create(runtime, model, second, &options, &generator,
                                  &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return generator;
}

/* Result `at` of a row, against entry `entry` of the fixture's arrays. */
static void expect_result(const cellgate_generation *generation,
                          const char *device, int64_t row, int64_t at,
                          const char *kind, int64_t entry)
{
    cellgate_generated got = { .struct_size = sizeof got };
    const cellgate_tensor ids = array(kind);
    const int64_t room = ids.shape[ids.rank - 1];
    char name[32];
    int64_t length;
    double score;

    snprintf(name, sizeof name, "%s_length", kind);
    length = ((const int32_t *)array(name).data)[entry];
    snprintf(name, sizeof name, "%s_score", kind);
    score = ((const double *)array(name).data)[entry];
    assert_int_equal(cellgate_generation_get(generation, row, at, &got),
                     CELLGATE_OK);
    if (got.length != length ||
        memcmp(got.ids, (const int32_t *)ids.data + entry * room,
               (size_t)length * sizeof(int32_t)) != 0)
        fail_msg("%s, %s: sentence %d, result %d has other words than Keras",
                 kind, device, (int)row, (int)at);
    if (!(fabs(got.score - score) < SCORE_TOLERANCE))
        fail_msg("%s, %s: sentence %d, result %d scores %g, not %g", kind,
                 device, (int)row, (int)at, got.score, score);
    assert_int_equal(got.stopped, length < room);
}

static void translate(cellgate_generator *generator, const char *device,
                      int32_t mode)
{
    const cellgate_tensor sources = array("source"), beams = array("beam");
    const cellgate_input input = { .struct_size = sizeof input,
                                   .tensor = sources };
    cellgate_generate_request request = { .struct_size = sizeof request,
                                          .inputs = &input,
                                          .input_count = 1,
                                          .mode = mode,
                                          .start = 1,
                                          .stop = 2,
                                          .max_length = beams.shape[2] };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_generation *generation = NULL;

    if (mode == CELLGATE_BEAM) {
        request.results = beams.shape[1];
        request.length_penalty = 0.6;
    }
    if (cellgate_generate(generator, &request, &generation, NULL, &error) !=
        CELLGATE_OK)
        fail_msg("%s", error.text);
    assert_int_equal(cellgate_generation_rows(generation), sources.shape[0]);
    for (int64_t row = 0; row < sources.shape[0]; row++) {
        if (mode == CELLGATE_GREEDY)
            expect_result(generation, device, row, 0, "greedy", row);
        for (int64_t at = 0; mode == CELLGATE_BEAM && at < beams.shape[1]; at++)
            expect_result(generation, device, row, at, "beam",
                          row * beams.shape[1] + at);
    }
    cellgate_generation_destroy(generation);
}

static bool has_avx2(void)
{
#ifdef LEVEL_AVX2
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

static void translate_on(const cellgate_model *model,
                         const cellgate_model *second, const char *device)
{
    cellgate_generator *generator = make_generator(model, second, device);

    translate(generator, device, CELLGATE_GREEDY);
    /* The host ops take their time. */
    if (strcmp(device, "host") != 0)
        translate(generator, device, CELLGATE_BEAM);
    cellgate_generator_destroy(generator);
}

static void translate_everywhere(const cellgate_model *model,
                                 const cellgate_model *second)
{
    translate_on(model, second, "host");
    translate_on(model, second, "scalar");
    translate_on(model, second, "best");
    if (has_avx2())
        translate_on(model, second, "avx2");
    else
        print_message("there is no avx2 level here\n");
}

static void the_model_for_training_translates_as_keras(void **state)
{
    (void)state;
    translate_everywhere(whole, NULL);
}

static void the_native_file_translates_as_keras(void **state)
{
    (void)state;
    translate_on(native, NULL, "best");
}

static void the_encoder_and_the_decoder_translate_as_keras(void **state)
{
    (void)state;
    translate_everywhere(encoder, decoder);
}

/* The decoder by itself: the request brings what the encoder said. */
static void the_decoder_alone_takes_states(void **state)
{
    cellgate_generator *generator = make_generator(decoder, NULL, "best");
    cellgate_session *session = rig_session(runtime, encoder, "best", NULL);
    const cellgate_input source = { .struct_size = sizeof source,
                                    .tensor = array("source") };
    const int64_t rows = source.tensor.shape[0];
    cellgate_tensor states[4];
    cellgate_input inputs[4];
    const cellgate_request run = { .struct_size = sizeof run,
                                   .inputs = &source,
                                   .input_count = 1,
                                   .outputs = states,
                                   .output_count = 4 };
    const cellgate_generate_request request = { .struct_size = sizeof request,
                                                .inputs = inputs,
                                                .input_count = 4,
                                                .start = 1,
                                                .stop = 2,
                                                .max_length = 12 };
    cellgate_generation *generation = NULL;

    (void)state;
    assert_int_equal(cellgate_generator_input_count(generator), 4);
    for (int at = 0; at < 4; at++) {
        states[at] = (cellgate_tensor){ sizeof states[at],
                                        CELLGATE_F32,
                                        2,
                                        { rows, 50 },
                                        malloc((size_t)rows * 50 * 4) };
        assert_non_null(states[at].data);
        inputs[at] = (cellgate_input){ .struct_size = sizeof inputs[at],
                                       .tensor = states[at] };
    }
    assert_int_equal(cellgate_run(session, &run, NULL, NULL), CELLGATE_OK);
    assert_int_equal(
        cellgate_generate(generator, &request, &generation, NULL, NULL),
        CELLGATE_OK);
    for (int64_t row = 0; row < rows; row++)
        expect_result(generation, "best", row, 0, "greedy", row);
    for (int at = 0; at < 4; at++)
        free(states[at].data);
    cellgate_generation_destroy(generation);
    cellgate_session_destroy(session);
    cellgate_generator_destroy(generator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_model_for_training_translates_as_keras),
        cmocka_unit_test(the_native_file_translates_as_keras),
        cmocka_unit_test(the_encoder_and_the_decoder_translate_as_keras),
        cmocka_unit_test(the_decoder_alone_takes_states),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
