/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Legacy files of Keras: what is refused, and with which words; models in two
 * files; what a version means. That numbers agree is in test_keras_fixtures.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/model/model.h"
#include "tests/unit/fail_allocation.h"
#include "tests/unit/scratch_folder.h"

static const char *fixture(const char *path)
{
    static char full[4096];

    snprintf(full, sizeof full, "%s/%s", CELLGATE_FIXTURES, path);
    return full;
}

static void assert_refused(const char *path, const char *part)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = NULL;
    const cellgate_status status = cellgate_model_load(path, &model, &error);

    assert_null(model);
    if ((status != CELLGATE_BAD_FILE && status != CELLGATE_UNSUPPORTED) ||
        error.status != (int32_t)status || strstr(error.text, part) == NULL ||
        strncmp(error.text, path, strlen(path)) != 0)
        fail_msg("%s: %s, not '%s'", cellgate_status_name(status), error.text,
                 part);
}

static cellgate_model *load(const char *path)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model;

    if (cellgate_model_load(path, &model, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return model;
}

/* ---- Refusals ------------------------------------------------------------ */

static void what_keras_2_can_hold_is_named(void **state)
{
    (void)state;
    assert_refused(fixture("tf_keras/refused_lambda.h5"),
                   "layer 3 of 3, 'twice' (Lambda): code of your own");
    assert_refused(fixture("tf_keras/refused_training.h5"),
                   "'norm' (BatchNormalization): it is called with "
                   "training=True");
    assert_refused(fixture("tf_keras/refused_operation.h5"),
                   "'tf.math.reduce_std' (TFOpLambda): tf.math.reduce_std, "
                   "as it is called here, is an operation of TensorFlow");
    assert_refused(fixture("tf_keras/refused_conv_lstm.h5"),
                   "layer 2 of 2, 'images' (ConvLSTM2D): this kind of layer");
    assert_refused(fixture("keras/refused_lora.h5"),
                   "layer 'adapted' has the weights of enable_lora()");
    assert_refused(fixture("tf_keras/refused_time_major.h5"),
                   "layer 3 of 3, 'turned' (LSTM): time_major=True is "
                   "supported on inputs of the model");
    assert_refused(fixture("tf_keras/refused_custom.h5"),
                   "layer 3 of 3, 'scale' (Scale): this kind of layer, or your "
                   "own, is not supported");
}

/* Files of TensorFlow 1 and 2 say the same version; their defaults differ. */
static void a_default_that_cannot_be_known(void **state)
{
    (void)state;
    assert_refused(fixture("keras_old/refused_tf1.15.5_absent.h5"),
                   "(LSTM): the file does not say its 'recurrent_activation', "
                   "which in Keras 2.2.4-tf is hard_sigmoid under TensorFlow 1 "
                   "and sigmoid under 2");
}

static void broken_files_are_refused(void **state)
{
    FILE *manifest = fopen(fixture("h5_broken/MANIFEST"), "r");
    char line[1024], path[1100];
    int files = 0;

    (void)state;
    assert_non_null(manifest);
    while (fgets(line, sizeof line, manifest) != NULL) {
        char *says = strstr(line, ": ");

        if (line[0] == '#' || says == NULL)
            continue;
        *says = '\0';
        says += 2;
        says[strcspn(says, "\n")] = '\0';
        snprintf(path, sizeof path, "h5_broken/%s.h5", line);
        assert_refused(fixture(path), says);
        files++;
    }
    fclose(manifest);
    assert_true(files >= 19);
}

/* Every 64th byte is an end. */
static void cut_files_are_refused(void **state)
{
    static char bytes[65536];
    FILE *file = fopen(fixture("tf_keras/time_distributed.h5"), "rb");
    size_t size;

    (void)state;
    assert_non_null(file);
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_in_range(size, 1024, sizeof bytes - 1);
    for (size_t cut = 64; cut < size; cut += 64)
        assert_refused(scratch_write("cut.h5", bytes, cut), "cut.h5: ");
}

/* ---- Two files ----------------------------------------------------------- */

static const char *copy(const char *from, const char *name)
{
    static char bytes[65536];
    FILE *file = fopen(fixture(from), "rb");
    size_t size;

    assert_non_null(file);
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(size < sizeof bytes);
    return scratch_write(name, bytes, size);
}

static void weights_find_their_architecture(void **state)
{
    char path[1024];

    (void)state;
    snprintf(path, sizeof path, "%s", copy("tf_keras/weights_only.h5", "m.h5"));
    assert_refused(path, "looked for in 'm.json' beside it; write it in Keras: "
                         "open(\"m.json\", \"w\").write(model.to_json())");
    copy("tf_keras/weights_only.json", "m.json");
    cellgate_model_destroy(load(path));
    snprintf(path, sizeof path, "%s",
             copy("tf_keras/weights_only.h5", "m.hdf5"));
    cellgate_model_destroy(load(path));
    copy("tf_keras/weights_only.json", "n.json");
    snprintf(path, sizeof path, "%s",
             copy("tf_keras/new_weights_only.weights.h5", "n.weights.h5"));
    cellgate_model_destroy(load(path));
}

static void an_architecture_finds_its_weights(void **state)
{
    char path[1024];

    (void)state;
    snprintf(path, sizeof path, "%s",
             copy("tf_keras/weights_only.json", "x.y.json"));
    assert_refused(path, "looked for in 'x.y.weights.h5', 'x.y.h5' and "
                         "'x.y.hdf5' beside it");
    copy("tf_keras/weights_only.h5", "x.y.h5");
    cellgate_model_destroy(load(path));
    copy("tf_keras/weights_only.h5", "x.y.weights.h5");
    {
        cellgate_error error = CELLGATE_ERROR_INIT;
        cellgate_model *model = NULL;

        assert_int_equal(cellgate_model_load(path, &model, &error),
                         CELLGATE_INVALID);
        assert_non_null(strstr(error.text, "may be in 'x.y.weights.h5' or in "
                                           "'x.y.h5'"));
    }
}

/* What goes wrong in the other file names that file. */
static void the_other_file_is_named(void **state)
{
    char path[1024];

    (void)state;
    snprintf(path, sizeof path, "%s", copy("tf_keras/weights_only.h5", "o.h5"));
    scratch_write("o.json", "{\"class_name\": ", 15);
    assert_refused(path, "o.json: ");
    snprintf(path, sizeof path, "%s",
             copy("tf_keras/weights_only.json", "p.json"));
    scratch_write("p.h5", "no weights", 10);
    assert_refused(path, "p.h5: this is not an HDF5 file of weights");
    scratch_write("q.json", "{\"a\": 1}", 8);
    assert_refused(scratch_path("q.json"), "it has no class_name");
}

/* Another model's weights do not fit, and the layer is named. */
static void weights_of_another_model(void **state)
{
    char path[1024];

    (void)state;
    copy("tf_keras/weights_only.json", "r.json");
    snprintf(path, sizeof path, "%s",
             copy("tf_keras/time_distributed.h5", "r.h5"));
    cellgate_model_destroy(load(path)); /* a whole model: it needs no other */
    assert_refused(scratch_path("r.json"),
                   "layer 'bidirectional' has 6 weights; "
                   "'model_weights/time_distributed' in");
}

/* ---- Versions ------------------------------------------------------------ */

static void the_version_is_told(void **state)
{
    cellgate_model *model = load(fixture("tf_keras/lstm_last.h5"));

    (void)state;
    assert_string_equal(cellgate_model_format(model), "keras");
    assert_string_equal(cellgate_model_format_version(model), "2.21.0");
    cellgate_model_destroy(model);
    model = load(fixture("keras_old/k1.2.2_stacked.h5"));
    assert_string_equal(cellgate_model_format_version(model), "1.2.2");
    cellgate_model_destroy(model);
}

static float gate_slope(const char *path)
{
    cellgate_model *model = load(fixture(path));
    float slope = 0;

    for (size_t i = 0; i < model->node_count; i++)
        if (model->nodes[i].kind == CG_LSTM) {
            assert_int_equal(
                model->nodes[i].as.lstm.shape.activations[0][0].kind,
                CELLGATE_HARD_SIGMOID);
            slope = model->nodes[i].as.lstm.shape.activations[0][0].alpha;
        }
    cellgate_model_destroy(model);
    return slope;
}

static void hard_sigmoid_by_version(void **state)
{
    (void)state;
    assert_float_equal(gate_slope("keras_old/k1.2.2_hard_sigmoid.h5"), 0.2, 0);
    assert_float_equal(gate_slope("tf_keras/lstm_hard_sigmoid.h5"), 0.2, 1e-8);
    assert_float_equal(gate_slope("tf_keras/lstm_hard_sigmoid.keras"), 0.2,
                       1e-8);
    assert_float_equal(gate_slope("keras/lstm_hard_sigmoid.keras"), 1.0 / 6.0,
                       1e-8);
}

/* ---- Memory -------------------------------------------------------------- */

static cellgate_status attempt(void *context)
{
    cellgate_model *model = NULL;
    const cellgate_status status =
        cellgate_model_load(fixture(context), &model, NULL);

    cellgate_model_destroy(model);
    return status;
}

static void no_failing_allocation_leaks(void **state)
{
    static char paths[][64] = { "tf_keras/nested_frozen.h5",
                                "keras_old/k1.2.2_bidirectional.h5",
                                "tf_keras/cudnn_bidirectional.h5",
                                "keras_old/tf2.13.1_nested.keras",
                                "tf_keras/weights_only.json" };

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_true(fail_each_allocation(attempt, paths[i]) > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_keras_2_can_hold_is_named),
        cmocka_unit_test(a_default_that_cannot_be_known),
        cmocka_unit_test(broken_files_are_refused),
        cmocka_unit_test(cut_files_are_refused),
        cmocka_unit_test(weights_find_their_architecture),
        cmocka_unit_test(an_architecture_finds_its_weights),
        cmocka_unit_test(the_other_file_is_named),
        cmocka_unit_test(weights_of_another_model),
        cmocka_unit_test(the_version_is_told),
        cmocka_unit_test(hard_sigmoid_by_version),
        cmocka_unit_test(no_failing_allocation_leaks),
    };

    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
