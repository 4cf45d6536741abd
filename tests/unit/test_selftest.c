/* SPDX-License-Identifier: Apache-2.0 */
/* Self-tests: making them, the native file, running them on a device. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/model/selftest.h"
#include "tests/unit/fail_allocation.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/session_rig.h"

static cellgate_runtime *runtime;

static void make(cellgate_model *model)
{
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (cellgate_model_make_selftest(model, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
}

/* LSTM(5) with a mask over 4 features, Dense(2); steps left open. */
static cellgate_model *masked_lstm(void)
{
    rig_model rig;
    rig_lstm lstm;
    int32_t x;

    rig_model_begin(&rig, 7);
    x = rig_input(&rig, CG_UNKNOWN, 4);
    rig_lstm_init(&lstm, 4, 5);
    lstm.mask = rig_mask(&rig, 0);
    rig_add_lstm(&rig, x, &lstm);
    rig_output(&rig, rig_dense(&rig, lstm.last, 5, 2, CELLGATE_TANH));
    rig_output(&rig, lstm.sequence);
    return rig_model_end(&rig);
}

/* ---- Making -------------------------------------------------------------- */

static void a_dense_layer_worked_out_in_double(void **state)
{
    rig_model rig;
    int32_t x;
    cellgate_model *model;
    const cg_selftest *selftest;

    (void)state;
    rig_model_begin(&rig, 3);
    x = rig_input(&rig, 4, 3);
    rig_output(&rig, rig_dense(&rig, x, 3, 2, CELLGATE_LINEAR));
    model = rig_model_end(&rig);
    assert_int_equal(cellgate_model_selftest_rows(model), 0);
    make(model);
    assert_int_equal(cellgate_model_selftest_rows(model), 3);
    selftest = model->selftest;
    assert_int_equal(selftest->outputs[0].rank, 3);
    assert_int_equal(selftest->outputs[0].shape[1], 4);
    for (int row = 0; row < 3 * 4; row++)
        for (int unit = 0; unit < 2; unit++) {
            const float *in = selftest->inputs[0].tensor.data;
            const float *kernel = model->nodes[0].weights[0].data;
            double sum = (double)model->nodes[0].weights[1].data[unit];

            for (int k = 0; k < 3; k++) {
                assert_in_range((int)floorf(in[row * 3 + k]) + 1, 0, 1);
                sum += (double)in[row * 3 + k] * (double)kernel[k * 2 + unit];
            }
            assert_true(fabs(sum - (double)((const float *)selftest->outputs[0]
                                                .data)[row * 2 + unit]) < 1e-6);
        }
    /* One that is there stays. */
    make(model);
    assert_ptr_equal(model->selftest, selftest);
    cellgate_model_destroy(model);
}

static void equal_models_get_equal_ones(void **state)
{
    cellgate_model *a = masked_lstm(), *b = masked_lstm();
    char x[33], y[33];

    (void)state;
    make(a);
    make(b);
    assert_int_equal(cg_selftest_checksum(a, a->selftest, x, NULL),
                     CELLGATE_OK);
    assert_int_equal(cg_selftest_checksum(b, b->selftest, y, NULL),
                     CELLGATE_OK);
    assert_string_equal(x, y);
    ((float *)b->selftest->outputs[0].data)[0] += 1;
    assert_int_equal(cg_selftest_checksum(b, b->selftest, y, NULL),
                     CELLGATE_OK);
    assert_string_not_equal(x, y);
    cellgate_model_destroy(a);
    cellgate_model_destroy(b);
}

static void masks_are_ragged_and_have_holes(void **state)
{
    static const uint8_t expected[3][6] = { { 1, 1, 1, 1, 1, 1 },
                                            { 1, 1, 1, 1, 0, 0 },
                                            { 1, 0, 1, 1, 0, 1 } };
    cellgate_model *model = masked_lstm();

    (void)state;
    make(model);
    assert_int_equal(model->selftest->inputs[0].tensor.shape[1], 6);
    assert_non_null(model->selftest->inputs[0].mask);
    assert_memory_equal(model->selftest->inputs[0].mask, expected,
                        sizeof expected);
    cellgate_model_destroy(model);
}

/* The same ids reach a large and a small table, one of them by a detour. */
static void ids_fit_the_smallest_vocabulary(void **state)
{
    rig_model rig;
    int32_t ids, large, small, turned;
    cellgate_model *model;
    const int32_t *made;

    (void)state;
    rig_model_begin(&rig, 5);
    ids = rig_input(&rig, CG_UNKNOWN, 0);
    large = rig_embedding(&rig, ids, 1000, 2);
    small = rig_embedding(&rig, ids, 2, 3);
    turned = rig_simple(&rig, CG_REVERSE, small);
    rig_output(&rig, large);
    rig_output(&rig, turned);
    model = rig_model_end(&rig);
    make(model);
    made = model->selftest->inputs[0].tensor.data;
    for (int at = 0; at < 3 * 6; at++)
        assert_in_range(made[at], 0, 1);
    /* Id 0 where a step is left out, and only there. */
    assert_int_equal(made[0], 1);
    assert_int_equal(made[6 + 4], 0);
    assert_int_equal(made[12 + 1], 0);
    cellgate_model_destroy(model);
}

static void a_masking_layer_gets_its_value(void **state)
{
    rig_model rig;
    rig_lstm lstm;
    int32_t x;
    cellgate_model *model;
    const float *made;

    (void)state;
    rig_model_begin(&rig, 5);
    x = rig_input(&rig, CG_UNKNOWN, 2);
    rig_lstm_init(&lstm, 2, 3);
    lstm.mask = rig_node(
        &rig, &(cg_node){ .kind = CG_NOT_EQUAL, .as.not_equal = -7 }, x);
    rig_add_lstm(&rig, x, &lstm);
    rig_output(&rig, lstm.last);
    model = rig_model_end(&rig);
    make(model);
    made = model->selftest->inputs[0].tensor.data;
    assert_true(made[(6 + 4) * 2] == -7 && made[(6 + 4) * 2 + 1] == -7);
    assert_true(made[(6 + 3) * 2] != -7);
    cellgate_model_destroy(model);
}

static void no_finite_answer(void **state)
{
    rig_model rig;
    int32_t x;
    cellgate_model *model;
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    rig_model_begin(&rig, 3);
    x = rig_input(&rig, 4, 3);
    rig_output(&rig, rig_dense(&rig, x, 3, 2, CELLGATE_LINEAR));
    model = rig_model_end(&rig);
    ((float *)(uintptr_t)model->nodes[0].weights[1].data)[0] = NAN;
    assert_int_equal(cellgate_model_make_selftest(model, &error),
                     CELLGATE_UNSUPPORTED);
    assert_non_null(strstr(error.text, "is not finite"));
    assert_int_equal(cellgate_model_selftest_rows(model), 0);
    cellgate_model_destroy(model);
}

/* A value of `times` times 6 numbers a row, of which the output is that or, if
   not `whole`, the first. */
static cellgate_model *growing(int64_t times, bool whole)
{
    const cg_node repeat = { .kind = CG_REPEAT, .as.repeat = { times, 2 } };
    const cg_node first = { .kind = CG_SLICE, .as.slice = { 0, 1, 2, 0 } };
    rig_model rig;
    int32_t x;

    rig_model_begin(&rig, 3);
    x = rig_node(&rig, &repeat, rig_input(&rig, CG_UNKNOWN, 1));
    rig_output(&rig, whole ? x : rig_node(&rig, &first, x));
    return rig_model_end(&rig);
}

static void expect_too_large(cellgate_model *model, const char *part)
{
    cellgate_error error = CELLGATE_ERROR_INIT;

    assert_int_equal(cellgate_model_make_selftest(model, &error),
                     CELLGATE_UNSUPPORTED);
    assert_int_equal(cellgate_model_selftest_rows(model), 0);
    if (strstr(error.text, part) == NULL)
        fail_msg("%s", error.text);
    cellgate_model_destroy(model);
}

/* 16 MiB of answers, 256 MiB of values; a few bytes of a model can ask for
   any number. */
static void sizes_are_bounded(void **state)
{
    cellgate_model *model = growing((1 << 22) / 7, true);

    (void)state;
    make(model);
    assert_int_equal(cellgate_model_selftest_rows(model), 1);
    cellgate_model_destroy(model);
    expect_too_large(growing(1 << 22, true),
                     "inputs and outputs of the smallest request would take 96 "
                     "MiB; at most 16 MiB");
    expect_too_large(growing(CG_MAX_SIZE, false),
                     "the layers' results of the smallest request would take "
                     "6144 MiB; at most 256 MiB");
}

/* ---- The native file ---------------------------------------------------- */

static const char *save(const cellgate_model *model, const char *name)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    const char *path = scratch_path(name);

    if (cellgate_model_save(model, path, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return path;
}

static cellgate_model *load(const char *path)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = NULL;

    if (cellgate_model_load(path, &model, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return model;
}

static void a_file_keeps_it(void **state)
{
    cellgate_model *model = masked_lstm(), *native;
    char x[33], y[33];
    size_t size, again_size;
    unsigned char *bytes, *again;

    (void)state;
    make(model);
    native = load(save(model, "with"));
    assert_int_equal(cellgate_model_selftest_rows(native), 3);
    (void)cg_selftest_checksum(model, model->selftest, x, NULL);
    (void)cg_selftest_checksum(native, native->selftest, y, NULL);
    assert_string_equal(x, y);
    assert_int_equal((uintptr_t)native->selftest->outputs[1].data % 64, 0);
    assert_memory_equal(native->selftest->inputs[0].mask,
                        model->selftest->inputs[0].mask, 18);
    bytes = read_whole_file(scratch_path("with"), &size);
    again = read_whole_file(save(native, "again"), &again_size);
    assert_int_equal(size, again_size);
    assert_memory_equal(bytes, again, size);
    free(bytes);
    free(again);
    cellgate_model_destroy(native);
    cellgate_model_destroy(model);
}

static void a_file_without_one_loads(void **state)
{
    cellgate_model *model = masked_lstm(), *native = load(save(model, "plain"));

    (void)state;
    assert_int_equal(cellgate_model_selftest_rows(native), 0);
    make(native);
    assert_int_equal(cellgate_model_selftest_rows(native), 3);
    cellgate_model_destroy(native);
    cellgate_model_destroy(model);
}

/* Every bit of the self-test's arrays counts. They end the file, after the
   weights; 64 bytes hold the last output's end. */
static void damaged_answers_are_refused(void **state)
{
    cellgate_model *model = masked_lstm(), *native = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;
    unsigned char *bytes;
    size_t size;

    (void)state;
    make(model);
    bytes = read_whole_file(save(model, "sound"), &size);
    for (size_t back = 1; back <= 64; back++) {
        bytes[size - back] ^= 4;
        assert_int_equal(cellgate_model_load(scratch_write("bad", bytes, size),
                                             &native, &error),
                         CELLGATE_BAD_FILE);
        assert_non_null(strstr(error.text, "does not match its checksum"));
        bytes[size - back] ^= 4;
    }
    free(bytes);
    cellgate_model_destroy(model);
}

/* `from` and `to` are of one length, so that nothing moves. */
static void expect_refused(const char *from, const char *to, const char *part)
{
    cellgate_model *model = masked_lstm(), *native = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;
    unsigned char *bytes;
    char *at;
    size_t size;

    assert_int_equal(strlen(from), strlen(to));
    make(model);
    bytes = read_whole_file(save(model, "sound"), &size);
    at = memmem(bytes, size, from, strlen(from));
    if (at == NULL)
        fail_msg("there is no %s", from);
    memcpy(at, to, strlen(to));
    assert_int_equal(
        cellgate_model_load(scratch_write("bad", bytes, size), &native, &error),
        CELLGATE_BAD_FILE);
    if (strstr(error.text, part) == NULL)
        fail_msg("%s lacks %s", error.text, part);
    free(bytes);
    cellgate_model_destroy(model);
}

static void wrong_self_tests_are_refused(void **state)
{
    (void)state;
    expect_refused("\\\"outputs\\\":[\\\"selftest/output_0\\\"",
                   "\\\"outputs\\\":[\\\"selftest/output_9\\\"",
                   "an output that cannot be used");
    expect_refused("\\\"tensor\\\":\\\"selftest/input_0\\\"",
                   "\\\"tensor\\\":\\\"selftest/input_9\\\"",
                   "an input that cannot be used");
    expect_refused("\\\"mask\\\":\\\"selftest/mask_0\\\"",
                   "\\\"mask\\\":\\\"selftest/mask_9\\\"",
                   "an input that cannot be used");
    expect_refused("\\\"outputs\\\":[\\\"selftest/output_0\\\"",
                   "\\\"outputs\\\":[\\\"selftest/output_1\\\"",
                   "does not fit output");
    expect_refused("{\\\"tensor\\\":\\\"selftest/input_0\\\"",
                   "{\\\"tensor\\\":\\\"selftest/mask_0\\\" ",
                   "does not fit input");
    expect_refused("\\\"checksum\\\":", "\\\"checksun\\\":",
                   "does not match its checksum");
    expect_refused("\"selftest\":\"{", "\"selftest\":\"[", "the self-test");
}

/* ---- On a device -------------------------------------------------------- */

static void devices_agree_until_an_answer_is_wrong(void **state)
{
    cellgate_model *model = masked_lstm();
    const char *devices[] = { "cpu", "host" };

    (void)state;
    make(model);
    for (size_t at = 0; at < 2; at++) {
        cellgate_session *session =
            rig_session(runtime, model, devices[at], NULL);
        cellgate_selftest_result result = { .struct_size = sizeof result };
        float *answer = model->selftest->outputs[1].data;
        const float kept = answer[0];
        float largest = 0;

        assert_int_equal(cellgate_session_selftest(session, &result, NULL),
                         CELLGATE_OK);
        assert_true(result.agrees);
        assert_true(result.tolerance == 1e-5);
        assert_true(result.difference <= 1e-6);
        assert_string_equal(result.report.device, devices[at]);
        /* Off by a thousandth of the largest magnitude. */
        for (int k = 0; k < 3 * 6 * 5; k++)
            largest = fmaxf(largest, fabsf(answer[k]));
        answer[0] += 1e-3f * largest;
        assert_int_equal(cellgate_session_selftest(session, &result, NULL),
                         CELLGATE_OK);
        assert_false(result.agrees);
        assert_true(fabs(result.difference - 1e-3) < 1e-5);
        answer[0] = NAN;
        assert_int_equal(cellgate_session_selftest(session, &result, NULL),
                         CELLGATE_OK);
        assert_false(result.agrees);
        assert_true(isinf(result.difference));
        answer[0] = kept;
        cellgate_session_destroy(session);
    }
    cellgate_model_destroy(model);
}

static void a_model_without_one_says_so(void **state)
{
    cellgate_model *model = masked_lstm();
    cellgate_session *session = rig_session(runtime, model, "host", NULL);
    cellgate_selftest_result result = { .struct_size = sizeof result };
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    assert_int_equal(cellgate_session_selftest(session, &result, &error),
                     CELLGATE_NOT_FOUND);
    assert_non_null(strstr(error.text, "cellgate_model_make_selftest"));
    assert_int_equal(cellgate_session_selftest(session, NULL, &error),
                     CELLGATE_INVALID);
    cellgate_session_destroy(session);
    cellgate_model_destroy(model);
}

static void variants_are_listed_once(void **state)
{
    rig_model rig;
    int32_t x;
    cellgate_model *model;
    cellgate_session *session;
    cellgate_variant_info info = { .struct_size = sizeof info };
    size_t count = 0, ones = 0;

    (void)state;
    /* Two segments with a host op between them. */
    rig_model_begin(&rig, 3);
    x = rig_dense(&rig, rig_input(&rig, 4, 3), 3, 2, CELLGATE_LINEAR);
    x = rig_simple(&rig, CG_REVERSE, x);
    rig_output(&rig, rig_dense(&rig, x, 2, 2, CELLGATE_LINEAR));
    model = rig_model_end(&rig);
    session = rig_session(runtime, model, "cpu", NULL);
    assert_int_equal(cellgate_session_segment_count(session), 3);
    while (cellgate_session_variant_get(session, count, &info) == CELLGATE_OK) {
        ones += strcmp(info.name, "t1") == 0;
        if (strcmp(info.name, "t1") == 0)
            assert_int_equal(info.threads, 1);
        assert_string_equal(cellgate_numeric_name(info.numeric),
                            strstr(info.name, "-f16")    ? "f16"
                            : strstr(info.name, "-int8") ? "int8"
                                                         : "f32");
        count++;
    }
    assert_in_range(count, 1, 64);
    assert_int_equal(ones, 1);
    cellgate_session_destroy(session);
    session = rig_session(runtime, model, "host", NULL);
    assert_int_equal(cellgate_session_variant_get(session, 0, &info),
                     CELLGATE_END);
    cellgate_session_destroy(session);
    cellgate_model_destroy(model);
}

/* ---- Memory ------------------------------------------------------------- */

static cellgate_status make_and_save(void *context)
{
    cellgate_model *model = NULL;
    cellgate_status status = cellgate_model_load(context, &model, NULL);

    if (status == CELLGATE_OK)
        status = cellgate_model_make_selftest(model, NULL);
    if (status == CELLGATE_OK)
        status = cellgate_model_save(model, scratch_path("made"), NULL);
    cellgate_model_destroy(model);
    if (status == CELLGATE_OK)
        status = cellgate_model_load(scratch_path("made"), &model, NULL);
    if (status == CELLGATE_OK)
        cellgate_model_destroy(model);
    return status;
}

static void each_allocation_may_fail(void **state)
{
    cellgate_model *model = masked_lstm();
    char *path = strdup(save(model, "plain"));

    (void)state;
    cellgate_model_destroy(model);
    assert_in_range(fail_each_allocation(make_and_save, path), 30, 10000);
    free(path);
}

static cellgate_status run_it(void *context)
{
    cellgate_selftest_result result = { .struct_size = sizeof result };

    return cellgate_session_selftest(context, &result, NULL);
}

static void each_allocation_of_a_run_may_fail(void **state)
{
    cellgate_model *model = masked_lstm();
    cellgate_session *session;
    cellgate_selftest_result result = { .struct_size = sizeof result };

    (void)state;
    make(model);
    session = rig_session(runtime, model, "host", NULL);
    /* Once before: the session keeps what the first request needs. */
    assert_int_equal(cellgate_session_selftest(session, &result, NULL),
                     CELLGATE_OK);
    assert_int_equal(fail_each_allocation(run_it, session), 4);
    cellgate_session_destroy(session);
    cellgate_model_destroy(model);
}

static int setup(void **state)
{
    runtime = rig_runtime("[device cpu]\nplugin = openmp\n");
    return scratch_folder_setup(state);
}

static int teardown(void **state)
{
    cellgate_runtime_destroy(runtime);
    return scratch_folder_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dense_layer_worked_out_in_double),
        cmocka_unit_test(equal_models_get_equal_ones),
        cmocka_unit_test(masks_are_ragged_and_have_holes),
        cmocka_unit_test(ids_fit_the_smallest_vocabulary),
        cmocka_unit_test(a_masking_layer_gets_its_value),
        cmocka_unit_test(no_finite_answer),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(a_file_keeps_it),
        cmocka_unit_test(a_file_without_one_loads),
        cmocka_unit_test(damaged_answers_are_refused),
        cmocka_unit_test(wrong_self_tests_are_refused),
        cmocka_unit_test(devices_agree_until_an_answer_is_wrong),
        cmocka_unit_test(a_model_without_one_says_so),
        cmocka_unit_test(variants_are_listed_once),
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(each_allocation_of_a_run_may_fail),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
