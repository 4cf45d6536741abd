/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The acceptance test of reading and running: every model that Keras wrote
 * into tests/fixtures/keras, and Keras 2 into tf_keras beside it, computes what
 * Keras computed in float64, within 1e-5 of the largest magnitude of the
 * output: on the host ops and on the kernel levels of the CPU plugin (scalar,
 * avx2, and the best one here), from each file that holds it and from the
 * native file made of that. With weights kept as float16 or int8 it is off by
 * no more than the bounds below; how much is printed.
 *
 * test_keras_fixtures INI DEVICE does the same on that device of that
 * configuration alone.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/session_rig.h"

/* Differences of the largest magnitude. Float16 rounds a weight by 2^-11 of
   itself, int8 by 1/254 of the largest in its column; a few of them add up. */
typedef struct exactness {
    const char *variant; /* of the device; NULL: its default, float32 */
    const char *name;
    double tolerance;
    double worst; /* so far */
} exactness;

static exactness f32 = { NULL, "float32", 1e-5, 0 };
static exactness narrow[] = { { "t1-f16", "float16", 4e-3, 0 },
                              { "t1-int8", "int8", 0.1, 0 } };

static const char config[] = "[device scalar]\nplugin = openmp\n"
                             "level = scalar\n"
                             "[device avx2]\nplugin = openmp\nlevel = avx2\n"
                             "[device best]\nplugin = openmp\n";
static const char *config_path, *only_device; /* of the command line */
static cellgate_runtime *runtime;
static int models, comparisons;
static void *turned[16]; /* of one call */
static size_t turned_count;

/* ---- Arrays ------------------------------------------------------------ */

static bool find_array(const cellgate_arrays *arrays, const char *prefix,
                       size_t number, cellgate_tensor *tensor)
{
    char wanted[64];

    snprintf(wanted, sizeof wanted, "%s%zu", prefix, number);
    for (size_t at = 0; at < cellgate_arrays_count(arrays); at++) {
        const char *name;

        tensor->struct_size = sizeof *tensor;
        assert_int_equal(cellgate_arrays_get(arrays, at, &name, tensor),
                         CELLGATE_OK);
        if (strcmp(name, wanted) == 0)
            return true;
    }
    return false;
}

static size_t elements(const cellgate_tensor *tensor)
{
    size_t count = 1;

    for (int32_t axis = 0; axis < tensor->rank; axis++)
        count *= (size_t)tensor->shape[axis];
    return count;
}

/* With its first two axes in each other's place, in memory that lives as long
   as the test: arrays are in the order of Keras. */
static void turn(cellgate_tensor *tensor)
{
    const size_t rows = (size_t)tensor->shape[0];
    const size_t steps = (size_t)tensor->shape[1];
    const size_t size =
        elements(tensor) / (rows * steps) * cellgate_dtype_size(tensor->dtype);
    char *to = malloc(rows * steps * size + 1);

    assert_non_null(to);

    for (size_t i = 0; i < rows * steps; i++)
        memcpy(to + (i % steps * rows + i / steps) * size,
               (char *)tensor->data + i * size, size);
    if (turned_count == sizeof turned / sizeof turned[0])
        fail_msg("too many turned arrays");
    turned[turned_count++] = to;
    tensor->data = to;
    tensor->shape[0] = (int64_t)steps;
    tensor->shape[1] = (int64_t)rows;
}

static void forget_turned(void)
{
    while (turned_count > 0)
        free(turned[--turned_count]);
}

/* ---- One model on one device ------------------------------------------- */

typedef struct fixture {
    const char *name;
    const char *device; /* "host", "scalar", "avx2", "best" */
    const char *file;   /* its ending, or "native" */
    const cellgate_arrays *arrays;
    const cellgate_model *model;
    exactness *exactness;
    cellgate_session *session;
    cellgate_stream *stream;
} fixture;

static void compare(const fixture *of, const char *prefix, size_t index,
                    const cellgate_tensor *got)
{
    cellgate_tensor wanted;
    double largest = 0, difference = 0;

    cellgate_value_info info = { .struct_size = sizeof info };

    if (!find_array(of->arrays, prefix, index, &wanted))
        fail_msg("%s: there is no %s%zu", of->name, prefix, index);
    cellgate_model_output_get(of->model, index, &info);
    if (info.steps_first)
        turn(&wanted);
    assert_int_equal(wanted.dtype, CELLGATE_F64);
    if (wanted.rank != got->rank ||
        memcmp(wanted.shape, got->shape,
               (size_t)got->rank * sizeof got->shape[0]) != 0)
        fail_msg("%s (%s, %s): output %zu has another shape than Keras's",
                 of->name, of->file, of->device, index);
    for (size_t k = 0; k < elements(got); k++) {
        double value = ((const double *)wanted.data)[k];
        double off = fabs(value - (double)((const float *)got->data)[k]);

        largest = fmax(largest, fabs(value));
        difference = off <= difference ? difference : off; /* NaN too */
    }
    if (!(difference <= of->exactness->tolerance * largest))
        fail_msg("%s (%s, %s, %s): output %zu is off by %g; its largest "
                 "magnitude is %g",
                 of->name, of->file, of->device, of->exactness->name, index,
                 difference, largest);
    if (largest > 0)
        of->exactness->worst = fmax(of->exactness->worst, difference / largest);
    comparisons++;
}

static void fill_inputs(const fixture *of, const char *prefix,
                        cellgate_input *inputs, uint8_t **masks, size_t count)
{
    for (size_t at = 0; at < count; at++) {
        cellgate_value_info info = { .struct_size = sizeof info };
        cellgate_tensor given;

        inputs[at].struct_size = sizeof inputs[at];
        if (!find_array(of->arrays, prefix, at, &inputs[at].tensor))
            fail_msg("%s: there is no %s%zu", of->name, prefix, at);
        cellgate_model_input_get(of->model, at, &info);
        if (info.steps_first)
            turn(&inputs[at].tensor);
        if (find_array(of->arrays, "lengths", at, &given))
            inputs[at].lengths = given.data;
        if (find_array(of->arrays, "mask", at, &given))
            inputs[at].mask = masks[at] = given.data;
    }
}

static void run_call(const fixture *of, const char *in, const char *out)
{
    cellgate_input inputs[RIG_MOST * 4];
    cellgate_tensor outputs[RIG_MOST * 4];
    uint8_t *masks[RIG_MOST * 4] = { NULL };
    cellgate_request request = { .struct_size = sizeof request };
    cellgate_error error = CELLGATE_ERROR_INIT;

    memset(inputs, 0, sizeof inputs);
    memset(outputs, 0, sizeof outputs);
    request.inputs = inputs;
    request.outputs = outputs;
    request.input_count = cellgate_model_input_count(of->model);
    request.output_count = cellgate_model_output_count(of->model);
    request.stream = of->stream;
    assert_true(request.input_count <= RIG_MOST * 4);
    assert_true(request.output_count <= RIG_MOST * 4);
    fill_inputs(of, in, inputs, masks, request.input_count);
    for (size_t at = 0; at < request.output_count; at++) {
        outputs[at].struct_size = sizeof outputs[at];
        if (cellgate_output_shape(of->session, &request, at, &outputs[at],
                                  &error) != CELLGATE_OK)
            fail_msg("%s: %s", of->name, error.text);
        outputs[at].data = calloc(elements(&outputs[at]) + 1, sizeof(float));
        assert_non_null(outputs[at].data);
    }
    if (cellgate_run(of->session, &request, NULL, &error) != CELLGATE_OK)
        fail_msg("%s (%s, %s): %s", of->name, of->file, of->device, error.text);
    for (size_t at = 0; at < request.output_count; at++) {
        compare(of, out, at, &outputs[at]);
        free(outputs[at].data);
    }
    forget_turned();
}

/* Where Keras kept state from call to call, a stream does. */
static void run_on(fixture *of, const char *device, exactness *exact)
{
    cellgate_tensor first, next;
    bool continued = find_array(of->arrays, "next_in", 0, &next);

    of->device = device;
    of->exactness = exact;
    of->stream = NULL;
    of->session = rig_session(runtime, of->model, device, exact->variant);
    if (continued) {
        assert_true(find_array(of->arrays, "in", 0, &first));
        assert_int_equal(cellgate_stream_create(of->session, first.shape[0],
                                                &of->stream, NULL),
                         CELLGATE_OK);
    }
    run_call(of, "in", "out");
    if (continued)
        run_call(of, "next_in", "next_out");
    cellgate_stream_destroy(of->stream);
    cellgate_session_destroy(of->session);
}

/* Models without a product have no weights to be narrow, and one makes a mask
   of whether a product is 0, where no bound holds. */
static bool has_variant(const fixture *of, const char *device,
                        const char *variant)
{
    cellgate_session *session;
    cellgate_variant_info info = { .struct_size = sizeof info };
    bool found = false;

    if (strcmp(of->name, "call_masks") == 0)
        return false;
    session = rig_session(runtime, of->model, device, NULL);
    for (size_t at = 0; !found && cellgate_session_variant_get(
                                      session, at, &info) == CELLGATE_OK;
         at++)
        found = strcmp(info.name, variant) == 0;
    cellgate_session_destroy(session);
    return found;
}

/* Whether the plugin has that level, in this build and on this machine. */
static bool has_avx2(void)
{
#ifdef LEVEL_AVX2
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

static void run_model(fixture *of, const char *path)
{
    cellgate_model *model;
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (cellgate_model_load(path, &model, &error) != CELLGATE_OK)
        fail_msg("%s: %s", path, error.text);
    of->model = model;
    if (only_device) {
        run_on(of, only_device, &f32);
    } else {
        run_on(of, "host", &f32);
        run_on(of, "scalar", &f32);
        run_on(of, "best", &f32);
        if (has_avx2())
            run_on(of, "avx2", &f32);
        for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++)
            if (has_variant(of, "best", narrow[i].variant))
                run_on(of, "best", &narrow[i]);
    }
    cellgate_model_destroy(model);
}

/* The same model again, through the native file. */
static void run_native(fixture *of, const char *path)
{
    char native[] = "/tmp/cellgate-test-XXXXXX";
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model;
    int file = mkstemp(native);

    assert_true(file >= 0);
    close(file);
    assert_int_equal(cellgate_model_load(path, &model, NULL), CELLGATE_OK);
    if (cellgate_model_save(model, native, &error) != CELLGATE_OK)
        fail_msg("%s: %s", of->name, error.text);
    cellgate_model_destroy(model);
    of->file = "native";
    run_model(of, native);
    unlink(native);
}

/* The forms in which a fixture may be there; all of them are run. */
static const char *const endings[] = { ".keras", ".h5", ".weights.h5" };

static void run_file(const fixture *made, const char *folder,
                     const char *ending)
{
    fixture of = *made;
    char path[1024];

    snprintf(path, sizeof path, "%s/%s%s", folder, of.name, ending);
    if (access(path, F_OK) != 0)
        return;
    of.file = ending;
    run_model(&of, path);
    run_native(&of, path);
    models++;
}

static void run_fixture(const char *folder, const char *name)
{
    fixture of = { .name = name };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_arrays *arrays;
    const int before = models;
    char path[1024];

    snprintf(path, sizeof path, "%s/%s.npz", folder, name);
    if (cellgate_arrays_read(path, &arrays, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    of.arrays = arrays;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        run_file(&of, folder, endings[i]);
    if (models == before)
        fail_msg("%s/%s: no model file is there", folder, name);
    cellgate_arrays_destroy(arrays);
}

/* ---- All of them ------------------------------------------------------- */

static void run_folder(const char *name, int least)
{
    const char *srcdir = getenv("srcdir");
    const int before = models;
    char folder[256], line[512];
    FILE *manifest;

    snprintf(folder, sizeof folder, "%s/tests/fixtures/%s",
             srcdir != NULL ? srcdir : ".", name);
    snprintf(line, sizeof line, "%s/MANIFEST", folder);
    manifest = fopen(line, "r");
    assert_non_null(manifest);
    while (fgets(line, sizeof line, manifest) != NULL) {
        char *colon = strchr(line, ':');

        if (line[0] == '#' || colon == NULL ||
            strncmp(line, "refused_", 8) == 0)
            continue;
        *colon = '\0';
        run_fixture(folder, line);
    }
    fclose(manifest);
    print_message("%s: %d models, %d outputs compared so far; the worst is "
                  "off by %.3g; with float16 weights %.3g, with int8 %.3g%s\n",
                  name, models - before, comparisons, f32.worst,
                  narrow[0].worst, narrow[1].worst,
                  only_device || has_avx2() ? ""
                                            : "; there is no avx2 level here");
    assert_true(models - before >= least);
}

static void models_of_keras_3_agree(void **state)
{
    (void)state;
    run_folder("keras", 15);
}

static void models_of_tf_keras_agree(void **state)
{
    (void)state;
    run_folder("tf_keras", 130);
}

static void models_of_old_keras_agree(void **state)
{
    (void)state;
    run_folder("keras_old", 15);
}

static int open_runtime(void **state)
{
    const cellgate_runtime_options options = { .struct_size = sizeof options,
                                               .config_path = config_path };
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    if (!only_device)
        runtime = rig_runtime(config);
    else if (cellgate_runtime_create(&options, &runtime, &error) != CELLGATE_OK)
        fail_msg("%s: %s", config_path, error.text);
    return 0;
}

static int close_runtime(void **state)
{
    (void)state;
    cellgate_runtime_destroy(runtime);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_of_keras_3_agree),
        cmocka_unit_test(models_of_tf_keras_agree),
        cmocka_unit_test(models_of_old_keras_agree),
    };

    if (argc == 3) {
        config_path = argv[1];
        only_device = argv[2];
    }
    return cmocka_run_group_tests(tests, open_runtime, close_runtime);
}
