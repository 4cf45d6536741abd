/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decoder with attention over its encoder's steps, trained in Keras
 * (tests/fixtures/reversal): greedy results are Keras's word for word on the
 * host ops and on the kernel levels of the CPU plugin, also from the native
 * file, for all sources at once and for each alone. The fixture's script says
 * how far the best word is ahead of the second, and that some results need the
 * mask of the attention.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/session_rig.h"

#define SCORE_TOLERANCE 2e-5 /* of a sum of logarithms */

static const char config[] = "[device scalar]\nplugin = openmp\n"
                             "level = scalar\n"
                             "[device avx2]\nplugin = openmp\nlevel = avx2\n"
                             "[device avx512]\nplugin = openmp\n"
                             "level = avx512\n"
                             "[device best]\nplugin = openmp\n";
static cellgate_runtime *runtime;
static cellgate_arrays *arrays;
static cellgate_model *model, *native;

/* ---- Files -------------------------------------------------------------- */

static void fixture_path(char *path, size_t size, const char *name)
{
    const char *srcdir = getenv("srcdir");

    snprintf(path, size, "%s/tests/fixtures/reversal/%s",
             srcdir != NULL ? srcdir : ".", name);
}

static cellgate_model *load(const char *path)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *loaded = NULL;

    if (cellgate_model_load(path, &loaded, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
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
    char path[512], copy[] = "/tmp/cellgate-test-XXXXXX";
    const int file = mkstemp(copy);

    (void)state;
    assert_true(file >= 0);
    close(file);
    runtime = rig_runtime(config);
    fixture_path(path, sizeof path, "sentences.npz");
    assert_int_equal(cellgate_arrays_read(path, &arrays, NULL), CELLGATE_OK);
    fixture_path(path, sizeof path, "reversal.keras");
    model = load(path);
    assert_int_equal(cellgate_model_save(model, copy, NULL), CELLGATE_OK);
    native = load(copy);
    unlink(copy);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cellgate_model_destroy(model);
    cellgate_model_destroy(native);
    cellgate_arrays_destroy(arrays);
    cellgate_runtime_destroy(runtime);
    return 0;
}

/* ---- Results ------------------------------------------------------------ */

static cellgate_generator *make_generator(const cellgate_model *of,
                                          const char *device)
{
    const cellgate_session_options session = { .struct_size = sizeof session,
                                               .device = device };
    const cellgate_generator_options options = { .struct_size = sizeof options,
                                                 .session = &session };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_generator *generator = NULL;

    if (cellgate_generator_create(runtime, of, NULL, &options, &generator,
                                  &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return generator;
}

/* Row `at` of a generation against row `row` of the fixture. */
static void expect_row(const cellgate_generation *generation, int64_t at,
                       const char *device, int64_t row)
{
    const cellgate_tensor ids = array("greedy");
    const int64_t room = ids.shape[1];
    const int64_t length = ((const int32_t *)array("greedy_length").data)[row];
    const double score = ((const double *)array("greedy_score").data)[row];
    cellgate_generated got = { .struct_size = sizeof got };

    assert_int_equal(cellgate_generation_get(generation, at, 0, &got),
                     CELLGATE_OK);
    if (got.length != length ||
        memcmp(got.ids, (const int32_t *)ids.data + row * room,
               (size_t)length * sizeof(int32_t)) != 0)
        fail_msg("%s: source %d has other words than in Keras", device,
                 (int)row);
    if (!(fabs(got.score - score) < SCORE_TOLERANCE))
        fail_msg("%s: source %d scores %g, not %g", device, (int)row, got.score,
                 score);
    assert_int_equal(got.stopped, length < room);
}

/* Sources `first` to `first + count - 1`, of the first `steps` words. */
static void expect_rows(cellgate_generator *generator, const char *device,
                        int64_t first, int64_t count, int64_t steps)
{
    cellgate_input input = { .struct_size = sizeof input,
                             .tensor = array("source") };
    const cellgate_generate_request request = { .struct_size = sizeof request,
                                                .inputs = &input,
                                                .input_count = 1,
                                                .start = 1,
                                                .stop = 2,
                                                .max_length =
                                                    array("greedy").shape[1] };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_generation *generation = NULL;

    input.tensor.data =
        (int32_t *)input.tensor.data + first * input.tensor.shape[1];
    input.tensor.shape[0] = count;
    input.tensor.shape[1] = steps;
    if (cellgate_generate(generator, &request, &generation, NULL, &error) !=
        CELLGATE_OK)
        fail_msg("%s", error.text);
    assert_int_equal(cellgate_generation_rows(generation), count);
    for (int64_t row = 0; row < count; row++)
        expect_row(generation, row, device, first + row);
    cellgate_generation_destroy(generation);
}

/* ---- Tests -------------------------------------------------------------- */

static bool has_level(const char *device)
{
#ifdef LEVEL_AVX2
    if (strcmp(device, "avx2") == 0)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
#ifdef LEVEL_AVX512
    if (strcmp(device, "avx512") == 0)
        return __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512dq");
#endif
    return strncmp(device, "avx", 3) != 0;
}

static void all_at_once_say_what_keras_says(void **state)
{
    static const char *const devices[] = { "host", "scalar", "avx2", "avx512",
                                           "best" };
    const cellgate_tensor source = array("source");

    (void)state;
    for (size_t at = 0; at < sizeof devices / sizeof devices[0]; at++) {
        cellgate_generator *generator;

        if (!has_level(devices[at])) {
            print_message("there is no %s level here\n", devices[at]);
            continue;
        }
        for (int of = 0; of < 2; of++) {
            generator = make_generator(of == 0 ? model : native, devices[at]);
            expect_rows(generator, devices[at], 0, source.shape[0],
                        source.shape[1]);
            cellgate_generator_destroy(generator);
        }
    }
}

/* Without its padding, a source says the same: nothing looked at that. */
static void each_alone_says_the_same_without_padding(void **state)
{
    const cellgate_tensor source = array("source");
    cellgate_generator *generator = make_generator(model, "best");
    int64_t padded = 0;

    (void)state;
    for (int64_t row = 0; row < source.shape[0]; row++) {
        const int32_t *ids =
            (const int32_t *)source.data + row * source.shape[1];
        int64_t steps = source.shape[1];

        while (steps > 1 && ids[steps - 1] == 0)
            steps--;
        padded += steps < source.shape[1];
        expect_rows(generator, "best", row, 1, steps);
    }
    assert_true(padded > 8);
    cellgate_generator_destroy(generator);
}

static void the_step_is_given_the_encoders_steps(void **state)
{
    cellgate_generator *generator = make_generator(model, "host");
    cellgate_generator_info info = { .struct_size = sizeof info };

    (void)state;
    assert_int_equal(cellgate_generator_describe(generator, &info),
                     CELLGATE_OK);
    assert_int_equal(info.words, 18);
    assert_int_equal(info.states, 1);
    assert_true(info.probabilities);
    cellgate_generator_destroy(generator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_at_once_say_what_keras_says),
        cmocka_unit_test(each_alone_says_the_same_without_padding),
        cmocka_unit_test(the_step_is_given_the_encoders_steps),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
