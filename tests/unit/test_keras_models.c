/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The models that Keras made: SUMMARY says what Keras says of each. That they
 * compute what Keras computes is tested with the session.
 */
#include "config.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/model/model.h"
#include "tests/unit/scratch_folder.h"

static const char *fixture(const char *folder, const char *name)
{
    static char path[1024];

    snprintf(path, sizeof path, "%s/%s/%s.keras", CELLGATE_FIXTURES, folder,
             name);
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

/* Weights that several nodes share count once. */
static int64_t count_parameters(const cellgate_model *model)
{
    const float *seen[256];
    size_t count = 0;
    int64_t parameters = 0;

    for (size_t i = 0; i < model->node_count; i++)
        for (size_t j = 0; j < model->nodes[i].weight_count; j++) {
            const cg_weight *weight = &model->nodes[i].weights[j];
            int64_t size = weight->data != NULL;

            for (size_t k = 0; k < count; k++)
                if (seen[k] == weight->data)
                    size = 0;
            for (int32_t axis = 0; axis < weight->rank; axis++)
                size *= weight->shape[axis];
            if (size == 0)
                continue;
            assert_in_range(count, 0, 255);
            seen[count++] = weight->data;
            parameters += size;
        }
    return parameters;
}

/* "-,6,5" */
static void assert_shape(const char *name, const cellgate_value_info *info,
                         char *text)
{
    int32_t axis = 0;
    char *rest;

    for (char *word = strtok_r(text, ",", &rest); word != NULL;
         word = strtok_r(NULL, ",", &rest), axis++) {
        if (axis >= info->rank)
            fail_msg("%s: '%s' has too few axes", name, info->name);
        if (info->shape[axis] !=
            (strcmp(word, "-") == 0 ? -1 : strtoll(word, NULL, 10)))
            fail_msg("%s: '%s' has extent %lld on axis %d, not %s", name,
                     info->name, (long long)info->shape[axis], (int)axis, word);
    }
    assert_int_equal(axis, info->rank);
}

/* A line of SUMMARY after its first two words. */
static void assert_values(const cellgate_model *model, const char *name,
                          char *words)
{
    size_t inputs = 0, outputs = 0;
    char *rest;

    for (char *word = strtok_r(words, " \n", &rest); word != NULL;
         word = strtok_r(NULL, " \n", &rest)) {
        cellgate_value_info info = { .struct_size = sizeof info };

        if (strcmp(word, "in") == 0) {
            assert_int_equal(cellgate_model_input_get(model, inputs++, &info),
                             CELLGATE_OK);
            word = strtok_r(NULL, " \n", &rest);
            /* Floating-point numbers are computed in float32; those that an
               Embedding takes are ids. */
            if (strcmp(name, "embedding_float_input") == 0)
                word = (char *)(uintptr_t) "int32";
            else if (strncmp(word, "float", 5) == 0)
                word = (char *)(uintptr_t) "float32";
            else if (strcmp(word, "bool") == 0) /* read as 0 and 1 */
                word = (char *)(uintptr_t) "int32";
            assert_string_equal(cellgate_dtype_name(info.dtype), word);
        } else {
            assert_string_equal(word, "out");
            assert_int_equal(cellgate_model_output_get(model, outputs++, &info),
                             CELLGATE_OK);
        }
        assert_shape(name, &info, strtok_r(NULL, " \n", &rest));
    }
    assert_int_equal(inputs, cellgate_model_input_count(model));
    assert_int_equal(outputs, cellgate_model_output_count(model));
}

/* Saved, loaded, saved again: the same model, then the same bytes. */
static void assert_survives_saving(const cellgate_model *model)
{
    const char *first = scratch_path("first"), *second = scratch_path("second");
    size_t first_size, second_size;
    unsigned char *first_bytes, *second_bytes;
    cellgate_model *native;

    assert_int_equal(cellgate_model_save(model, first, NULL), CELLGATE_OK);
    native = load(first);
    assert_string_equal(cellgate_model_format(native), "native");
    assert_string_equal(cellgate_model_fingerprint(native),
                        cellgate_model_fingerprint(model));
    assert_int_equal(count_parameters(native), count_parameters(model));
    assert_int_equal(cellgate_model_save(native, second, NULL), CELLGATE_OK);
    cellgate_model_destroy(native);
    first_bytes = read_whole_file(first, &first_size);
    second_bytes = read_whole_file(second, &second_size);
    assert_int_equal(first_size, second_size);
    assert_memory_equal(first_bytes, second_bytes, first_size);
    free(first_bytes);
    free(second_bytes);
}

static FILE *open_list(const char *folder, const char *name)
{
    char path[1024];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s/%s", CELLGATE_FIXTURES, folder, name);
    file = fopen(path, "r");
    assert_non_null(file);
    return file;
}

static void each_is_what_keras_says(void **state)
{
    FILE *summary = open_list("keras", "SUMMARY");
    char line[4096];
    int models = 0;

    (void)state;
    while (fgets(line, sizeof line, summary) != NULL) {
        cellgate_model *model;
        char *name, *rest;
        int64_t parameters;

        if (line[0] == '#')
            continue;
        name = strtok_r(line, " ", &rest);
        parameters = strtoll(strtok_r(NULL, " ", &rest), NULL, 10);
        model = load(fixture("keras", name));
        if (count_parameters(model) != parameters)
            fail_msg("%s has %lld parameters, not %lld", name,
                     (long long)count_parameters(model), (long long)parameters);
        assert_values(model, name, rest);
        assert_survives_saving(model);
        cellgate_model_destroy(model);
        models++;
    }
    fclose(summary);
    assert_true(models >= 70);
}

static void assert_refused(const char *name, const char *part)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = NULL;

    assert_int_equal(
        cellgate_model_load(fixture("keras", name), &model, &error),
        CELLGATE_UNSUPPORTED);
    assert_null(model);
    if (strstr(error.text, part) == NULL)
        fail_msg("%s", error.text);
}

static void what_is_not_supported_is_named(void **state)
{
    (void)state;
    assert_refused("refused_custom_cell",
                   "layer 1 of 1 of 'outer', 'slow' (SlowCell): a custom");
    assert_refused("refused_conv_lstm", "layer 2 of 2, 'images' (ConvLSTM1D)");
    assert_refused("refused_multi_head",
                   "layer 2 of 2, 'heads' (MultiHeadAttention)");
    assert_refused("refused_softmax_mask",
                   "'share' (Softmax): it is called with mask=, which");
    assert_refused("refused_operation",
                   "layer 3 of 3, 'std' (Std): an operation on tensors");
}

/* Each says how it has to be taken: refused, sound or either. */
static void broken_files_are_survived(void **state)
{
    FILE *manifest = open_list("keras_broken", "MANIFEST");
    char line[1024];
    int files = 0;

    (void)state;
    while (fgets(line, sizeof line, manifest) != NULL) {
        cellgate_error error = CELLGATE_ERROR_INIT;
        cellgate_model *model = NULL;
        char *rest, *name = strtok_r(line, ":", &rest);
        const char *verdict = strtok_r(NULL, " :", &rest);
        cellgate_status status;

        if (line[0] == '#')
            continue;
        status =
            cellgate_model_load(fixture("keras_broken", name), &model, &error);
        if (strcmp(verdict, "refused") == 0 && status != CELLGATE_BAD_FILE &&
            status != CELLGATE_UNSUPPORTED)
            fail_msg("%s: %s", name, cellgate_status_name(status));
        if (strcmp(verdict, "sound") == 0 && status != CELLGATE_OK)
            fail_msg("%s: %s", name, error.text);
        cellgate_model_destroy(model);
        files++;
    }
    fclose(manifest);
    assert_true(files >= 50);
}

/* HDF5 is not thread safe by itself. */
static void *load_again_and_again(void *name)
{
    char *fingerprint = malloc(33);

    for (int i = 0; i < 10; i++) {
        cellgate_model *model = NULL;
        char path[1024];

        snprintf(path, sizeof path, "%s/keras/%s.keras", CELLGATE_FIXTURES,
                 (const char *)name);
        if (cellgate_model_load(path, &model, NULL) != CELLGATE_OK)
            break;
        strcpy(fingerprint, cellgate_model_fingerprint(model));
        cellgate_model_destroy(model);
    }
    return fingerprint;
}

static void models_are_read_side_by_side(void **state)
{
    static const char *const names[4] = { "article", "nested_functional",
                                          "article", "lstm_bfloat16_weights" };
    pthread_t threads[4];
    void *fingerprints[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, load_again_and_again,
                                        (void *)(uintptr_t)names[i]),
                         0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], &fingerprints[i]), 0);
    for (int i = 0; i < 4; i++) {
        cellgate_model *model = load(fixture("keras", names[i]));

        assert_string_equal(fingerprints[i], cellgate_model_fingerprint(model));
        cellgate_model_destroy(model);
        free(fingerprints[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_what_keras_says),
        cmocka_unit_test(what_is_not_supported_is_named),
        cmocka_unit_test(broken_files_are_survived),
        cmocka_unit_test(models_are_read_side_by_side),
    };
    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
