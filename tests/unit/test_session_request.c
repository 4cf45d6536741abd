/* SPDX-License-Identifier: Apache-2.0 */
/* What a request may bring, what is made of it, and what is said of a wrong
   one. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/session_rig.h"

static const char config[] = "[device cpu]\nplugin = openmp\n"
                             "[device card]\nplugin = remote\n";

typedef struct rig {
    cellgate_runtime *runtime;
    cellgate_model *model; /* floats [batch][5][3] -> [batch][5][4] and c */
    cellgate_session *session;
    cellgate_model *ids_model; /* ids [batch][steps] -> [batch][2] */
    cellgate_session *ids_session;
} rig;

static rig with;

static int set_up(void **state)
{
    rig_model build;
    rig_lstm lstm;
    int32_t x;

    (void)state;
    with.runtime = rig_runtime(config);
    rig_model_begin(&build, 2);
    x = rig_input(&build, 5, 3);
    rig_lstm_init(&lstm, 3, 4);
    lstm.mask = rig_mask(&build, 0);
    rig_add_lstm(&build, x, &lstm);
    rig_output(&build, lstm.sequence);
    rig_output(&build, lstm.final[1]);
    with.model = rig_model_end(&build);
    with.session = rig_session(with.runtime, with.model, "cpu", NULL);
    rig_model_begin(&build, 2);
    x = rig_input(&build, CG_UNKNOWN, 0);
    rig_lstm_init(&lstm, 3, 4);
    rig_add_lstm(&build, rig_embedding(&build, x, 10, 3), &lstm);
    rig_output(&build, rig_dense(&build, lstm.last, 4, 2, CELLGATE_LINEAR));
    with.ids_model = rig_model_end(&build);
    with.ids_session = rig_session(with.runtime, with.ids_model, "cpu", NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cellgate_session_destroy(with.session);
    cellgate_session_destroy(with.ids_session);
    cellgate_model_destroy(with.model);
    cellgate_model_destroy(with.ids_model);
    cellgate_runtime_destroy(with.runtime);
    return 0;
}

static void make(rig_request *request)
{
    uint64_t random = 5;

    rig_request_init(request, with.session, with.model, 2, 5, 0, &random);
}

static void make_ids(rig_request *request)
{
    uint64_t random = 5;

    rig_request_init(request, with.ids_session, with.ids_model, 2, 4, 10,
                     &random);
}

static void refused(cellgate_session *session, const cellgate_request *request,
                    cellgate_status status, const char *text)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_status got = cellgate_run(session, request, NULL, &error);

    if (got != status || strstr(error.text, text) == NULL)
        fail_msg("instead of \"%s\": %s: %s", text, cellgate_status_name(got),
                 error.text);
}

/* ---- Shapes ------------------------------------------------------------ */

static void wrong_shapes_are_named(void **state)
{
    rig_request request;
    cellgate_tensor *x;

    (void)state;
    make(&request);
    x = &request.inputs[0].tensor;
    x->rank = 2;
    refused(with.session, &request.request, CELLGATE_BAD_SHAPE,
            "input 'x_0' has shape (2, 5); the model takes (batch, 5, 3)");
    x->rank = 3;
    x->shape[1] = 4;
    refused(with.session, &request.request, CELLGATE_BAD_SHAPE,
            "input 'x_0' has shape (2, 4, 3); the model takes (batch, 5, 3)");
    x->shape[1] = 5;
    x->shape[2] = 2;
    refused(with.session, &request.request, CELLGATE_BAD_SHAPE,
            "has shape (2, 5, 2); the model takes (batch, 5, 3)");
    x->shape[2] = 3;
    x->shape[0] = 5;
    x->shape[1] = 2;
    refused(with.session, &request.request, CELLGATE_BAD_SHAPE,
            "has shape (5, 2, 3); the model takes (batch, 5, 3); it would with "
            "the first two axes swapped");
    x->shape[1] = 3;
    x->rank = 2;
    refused(with.session, &request.request, CELLGATE_BAD_SHAPE,
            "one sample, too, needs a batch axis");
    x->rank = CELLGATE_MAX_RANK + 1;
    refused(with.session, &request.request, CELLGATE_BAD_SHAPE,
            "has 9 axes; the model takes (batch, 5, 3)");
    x->rank = 3;
    x->shape[0] = 2;
    x->shape[1] = 5;
    x->shape[0] = 0;
    refused(with.session, &request.request, CELLGATE_BAD_SHAPE,
            "batch is 0; it must be at least 1");
    x->shape[0] = -1;
    refused(with.session, &request.request, CELLGATE_BAD_SHAPE, "batch is -1");
    x->shape[0] = INT64_MAX / 4;
    refused(with.session, &request.request, CELLGATE_BAD_SHAPE,
            "larger than memory");
    x->shape[0] = 2;
    request.outputs[1].shape[1] = 3;
    refused(with.session, &request.request, CELLGATE_BAD_SHAPE,
            "has shape (2, 4); the tensor given for it has (2, 3)");
    request.outputs[1].shape[1] = 4;
    request.outputs[1].dtype = CELLGATE_F64;
    refused(with.session, &request.request, CELLGATE_INVALID, "is float32");
    request.outputs[1].dtype = CELLGATE_F32;
    rig_run(with.session, &request, NULL);
    rig_request_finish(&request);
}

static void wrong_counts_and_sizes_are_named(void **state)
{
    rig_request request;

    (void)state;
    make(&request);
    request.request.input_count = 2;
    refused(with.session, &request.request, CELLGATE_INVALID,
            "2 inputs; the model takes 1");
    request.request.input_count = 1;
    request.request.output_count = 1;
    refused(with.session, &request.request, CELLGATE_INVALID,
            "1 outputs; the model gives 2");
    request.request.output_count = 2;
    request.inputs[0].struct_size = 0;
    refused(with.session, &request.request, CELLGATE_INVALID, "struct_size");
    request.inputs[0].struct_size = sizeof request.inputs[0];
    request.outputs[1].struct_size = 8;
    refused(with.session, &request.request, CELLGATE_INVALID, "struct_size");
    request.outputs[1].struct_size = sizeof request.outputs[1];
    request.request.struct_size = 3;
    refused(with.session, &request.request, CELLGATE_INVALID, "struct_size");
    request.request.struct_size = sizeof request.request;
    request.inputs[0].tensor.dtype = 99;
    refused(with.session, &request.request, CELLGATE_INVALID, "dtype");
    request.inputs[0].tensor.dtype = CELLGATE_F32;
    rig_request_finish(&request);
    refused(with.session, NULL, CELLGATE_INVALID, "request");
    refused(NULL, &request.request, CELLGATE_INVALID, "session");
}

static void no_steps_are_no_error(void **state)
{
    const char *const devices[] = { "cpu", "card", "host" };

    (void)state;
    for (int at = 0; at < 3; at++) {
        cellgate_session *session =
            rig_session(with.runtime, with.ids_model, devices[at], NULL);
        uint64_t random = 5;
        rig_request request;

        rig_request_init(&request, session, with.ids_model, 2, 0, 10, &random);
        rig_run(session, &request, NULL); /* the Dense layer's bias, twice */
        assert_memory_equal(request.outputs[0].data,
                            (float *)request.outputs[0].data + 2,
                            2 * sizeof(float));
        rig_request_finish(&request);
        cellgate_session_destroy(session);
    }
}

/* ---- Masks ------------------------------------------------------------- */

static void wrong_lengths_are_named(void **state)
{
    int32_t lengths[2] = { 5, 6 };
    const uint8_t mask[10] = { 1 };
    rig_request request;

    (void)state;
    make(&request);
    request.inputs[0].lengths = lengths;
    refused(with.session, &request.request, CELLGATE_OUT_OF_RANGE,
            "length 6 of row 1 is not in [0, 5]");
    lengths[1] = -1;
    refused(with.session, &request.request, CELLGATE_OUT_OF_RANGE,
            "length -1 of row 1");
    lengths[1] = 0;
    rig_run(with.session, &request, NULL);
    request.inputs[0].mask = mask;
    refused(with.session, &request.request, CELLGATE_INVALID,
            "lengths and a mask");
    request.inputs[0].lengths = NULL;
    request.inputs[0].mask = NULL;
    rig_request_finish(&request);
    make_ids(&request);
    lengths[0] = 1;
    request.inputs[0].lengths = lengths;
    refused(with.ids_session, &request.request, CELLGATE_INVALID,
            "no layer of the model");
    request.inputs[0].lengths = NULL;
    rig_request_finish(&request);
}

/* Lengths, and the mask that says the same, are the same. */
static void lengths_are_masks(void **state)
{
    const int32_t lengths[2] = { 3, 5 };
    const uint8_t mask[10] = { 1, 7, 1, 0, 0, 1, 1, 255, 1, 1 };
    rig_request request;
    float *wanted;
    size_t count;

    (void)state;
    make(&request);
    request.inputs[0].lengths = lengths;
    rig_run(with.session, &request, NULL);
    wanted = rig_outputs(&request, &count);
    request.inputs[0].lengths = NULL;
    request.inputs[0].mask = mask;
    rig_run(with.session, &request, NULL);
    rig_expect(&request, wanted, 0);
    request.inputs[0].mask = NULL;
    rig_run(with.session, &request, NULL);
    assert_memory_not_equal(request.outputs[0].data, wanted,
                            20 * sizeof(float));
    free(wanted);
    rig_request_finish(&request);
}

/* Two LSTMs that share nothing: [batch][5][3] and [batch][4][2]. */
static cellgate_model *two_inputs(void)
{
    rig_model build;
    rig_lstm lstm;
    int32_t x[2];

    rig_model_begin(&build, 3);
    x[0] = rig_input(&build, 5, 3);
    x[1] = rig_input(&build, 4, 2);
    for (size_t at = 0; at < 2; at++) {
        rig_lstm_init(&lstm, at == 0 ? 3 : 2, 4);
        lstm.mask = rig_mask(&build, at);
        rig_add_lstm(&build, x[at], &lstm);
        rig_output(&build, lstm.sequence);
        rig_output(&build, lstm.last);
    }
    return rig_model_end(&build);
}

static void each_input_has_its_own_lengths(void **state)
{
    const int32_t first[3] = { 3, 5, 0 }, second[3] = { 4, 0, 1 };
    cellgate_model *model = two_inputs();
    cellgate_session *host = rig_session(with.runtime, model, "host", NULL);
    cellgate_session *cpu = rig_session(with.runtime, model, "cpu", NULL);
    uint64_t random = 5;
    rig_request request;

    (void)state;
    rig_request_init(&request, cpu, model, 3, 0, 0, &random);
    for (int given = 0; given < 4; given++) {
        const float *last = request.outputs[3].data;
        float *wanted;
        size_t count;

        request.inputs[0].lengths = given & 1 ? first : NULL;
        request.inputs[1].lengths = given & 2 ? second : NULL;
        rig_run(host, &request, NULL);
        wanted = rig_outputs(&request, &count);
        rig_run(cpu, &request, NULL);
        rig_expect(&request, wanted, 1e-5);
        /* A row without a step says so: the masks reach the host ops too. */
        assert_int_equal(last[4] == 0, (given & 2) != 0);
        free(wanted);
    }
    request.inputs[0].lengths = request.inputs[1].lengths = NULL;
    rig_request_finish(&request);
    cellgate_session_destroy(host);
    cellgate_session_destroy(cpu);
    cellgate_model_destroy(model);
}

/* Nothing in the graph would bring the two together. */
static void all_inputs_have_one_batch(void **state)
{
    cellgate_model *model = two_inputs();
    cellgate_session *session = rig_session(with.runtime, model, "cpu", NULL);
    uint64_t random = 5;
    rig_request request;

    (void)state;
    rig_request_init(&request, session, model, 3, 0, 0, &random);
    request.inputs[1].tensor.shape[0] = 2;
    refused(session, &request.request, CELLGATE_BAD_SHAPE, "has 2 rows, but");
    request.inputs[1].tensor.shape[0] = 3;
    rig_run(session, &request, NULL);
    rig_request_finish(&request);
    cellgate_session_destroy(session);
    cellgate_model_destroy(model);
}

/* ---- Numbers ----------------------------------------------------------- */

static void other_dtypes_are_converted(void **state)
{
    double doubles[30];
    int64_t integers[30];
    float floats[30];
    rig_request request;
    void *data;
    float *wanted;
    size_t count;

    (void)state;
    make(&request);
    data = request.inputs[0].tensor.data;
    for (int k = 0; k < 30; k++) {
        integers[k] = k % 7 - 3;
        doubles[k] = floats[k] = (float)integers[k];
    }
    request.inputs[0].tensor.data = floats;
    rig_run(with.session, &request, NULL);
    wanted = rig_outputs(&request, &count);
    request.inputs[0].tensor.data = doubles;
    request.inputs[0].tensor.dtype = CELLGATE_F64;
    rig_run(with.session, &request, NULL);
    rig_expect(&request, wanted, 0);
    request.inputs[0].tensor.data = integers;
    request.inputs[0].tensor.dtype = CELLGATE_I64;
    rig_run(with.session, &request, NULL);
    rig_expect(&request, wanted, 0);
    doubles[20] = 1e300;
    request.inputs[0].tensor.data = doubles;
    request.inputs[0].tensor.dtype = CELLGATE_F64;
    refused(with.session, &request.request, CELLGATE_OUT_OF_RANGE,
            "input 'x_0', row 1, step 1");
    free(wanted);
    request.inputs[0].tensor.data = data;
    rig_request_finish(&request);
}

static void ids_are_checked(void **state)
{
    const char *const devices[] = { "cpu", "card", "host" };

    (void)state;
    for (int at = 0; at < 3; at++) {
        cellgate_session *session =
            rig_session(with.runtime, with.ids_model, devices[at], NULL);
        int64_t wide[8] = { 0, 9, 1, 2, 3, 4, 5, 6 };
        float real[8] = { 0, 9, 1, 2, 3, 4, 5, 6 };
        rig_request request;
        int32_t *ids;

        make_ids(&request);
        ids = request.inputs[0].tensor.data;
        ids[6] = 10;
        refused(session, &request.request, CELLGATE_OUT_OF_RANGE,
                "id 10 in row 1, step 2");
        ids[6] = -1;
        refused(session, &request.request, CELLGATE_OUT_OF_RANGE, "id -1");
        request.inputs[0].tensor.data = wide;
        request.inputs[0].tensor.dtype = CELLGATE_I64;
        rig_run(session, &request, NULL);
        wide[5] = INT64_C(1) << 32; /* 0, if it were only cut off */
        refused(session, &request.request, CELLGATE_OUT_OF_RANGE,
                "input 'x_0', row 1, number 1");
        request.inputs[0].tensor.data = real;
        request.inputs[0].tensor.dtype = CELLGATE_F32;
        rig_run(session, &request, NULL);
        real[5] = 1.5f;
        refused(session, &request.request, CELLGATE_OUT_OF_RANGE,
                "row 1, number 1");
        request.inputs[0].tensor.data = ids;
        rig_request_finish(&request);
        cellgate_session_destroy(session);
    }
}

static void nan_spoils_its_own_row(void **state)
{
    const char *const devices[] = { "cpu", "card", "host" };

    (void)state;
    for (int at = 0; at < 3; at++) {
        cellgate_session *session =
            rig_session(with.runtime, with.model, devices[at], NULL);
        rig_request request;
        float *clean, *y, first;
        size_t count;

        make(&request);
        rig_run(session, &request, NULL);
        clean = rig_outputs(&request, &count);
        first = ((float *)request.inputs[0].tensor.data)[0];
        ((float *)request.inputs[0].tensor.data)[0] = NAN;
        rig_run(session, &request, NULL);
        y = request.outputs[0].data;
        assert_true(isnan(y[0]) && isnan(y[19]));
        assert_memory_equal(y + 20, clean + 20, 20 * sizeof *y);
        /* And its own request only: memory is used again. */
        ((float *)request.inputs[0].tensor.data)[0] = first;
        rig_run(session, &request, NULL);
        rig_expect(&request, clean, 0);
        free(clean);
        rig_request_finish(&request);
        cellgate_session_destroy(session);
    }
}

/* ---- Outputs ----------------------------------------------------------- */

/* Padding may hold anything: on the right, and in between. */
static void what_is_masked_may_be_nan(void **state)
{
    const char *const devices[] = { "cpu", "card", "host" };
    static const uint8_t masks[2][10] = { { 1, 1, 1, 0, 0, 1, 1, 1, 1, 0 },
                                          { 0, 1, 0, 1, 0, 1, 0, 1, 1, 1 } };

    (void)state;
    for (int at = 0; at < 6; at++) {
        const uint8_t *mask = masks[at % 2];
        cellgate_session *session =
            rig_session(with.runtime, with.model, devices[at / 2], NULL);
        rig_request request;
        float *clean;
        size_t count;

        make(&request);
        request.inputs[0].mask = mask;
        rig_run(session, &request, NULL);
        clean = rig_outputs(&request, &count);
        for (int k = 0; k < 30; k++)
            if (!mask[k / 3])
                ((float *)request.inputs[0].tensor.data)[k] = NAN;
        rig_run(session, &request, NULL);
        rig_expect(&request, clean, 0);
        request.inputs[0].mask = NULL;
        free(clean);
        rig_request_finish(&request);
        cellgate_session_destroy(session);
    }
}

static void outputs_may_be_left_out(void **state)
{
    rig_request request;
    float *wanted, *sequence, *c;
    size_t count;

    (void)state;
    make(&request);
    rig_run(with.session, &request, NULL);
    wanted = rig_outputs(&request, &count);
    sequence = request.outputs[0].data;
    c = request.outputs[1].data;
    memset(c, 0, 8 * sizeof *c);
    request.outputs[0].data = NULL;
    rig_run(with.session, &request, NULL);
    assert_memory_equal(c, wanted + 40, 8 * sizeof *c);
    request.outputs[1].data = NULL;
    rig_run(with.session, &request, NULL);
    request.outputs[0].data = sequence;
    request.outputs[1].data = c;
    free(wanted);
    rig_request_finish(&request);
}

/* The result may replace the input, on any device. */
static void an_output_may_lie_over_an_input(void **state)
{
    const char *const devices[] = { "cpu", "card", "host" };

    (void)state;
    for (int at = 0; at < 3; at++) {
        cellgate_session *session =
            rig_session(with.runtime, with.model, devices[at], NULL);
        float memory[64];
        rig_request request;
        void *x, *y;
        float *wanted;
        size_t count;

        make(&request);
        rig_run(session, &request, NULL);
        wanted = rig_outputs(&request, &count);
        x = request.inputs[0].tensor.data;
        y = request.outputs[0].data;
        memcpy(memory + 8, x, 30 * sizeof *memory);
        request.inputs[0].tensor.data = memory + 8;
        request.outputs[0].data = memory;
        rig_run(session, &request, NULL);
        assert_memory_equal(memory, wanted, 40 * sizeof *memory);
        request.inputs[0].tensor.data = x;
        request.outputs[0].data = y;
        free(wanted);
        rig_request_finish(&request);
        cellgate_session_destroy(session);
    }
}

static void output_shapes_follow_the_request(void **state)
{
    cellgate_tensor shape = { .struct_size = sizeof shape };
    cellgate_error error = CELLGATE_ERROR_INIT;
    rig_request request;

    (void)state;
    make(&request);
    assert_int_equal(
        cellgate_output_shape(with.session, &request.request, 0, &shape, NULL),
        CELLGATE_OK);
    assert_int_equal(shape.rank, 3);
    assert_int_equal(shape.dtype, CELLGATE_F32);
    assert_int_equal(shape.shape[0], 2);
    assert_int_equal(shape.shape[1], 5);
    assert_int_equal(shape.shape[2], 4);
    assert_int_equal(cellgate_output_shape(with.session, &request.request, 2,
                                           &shape, &error),
                     CELLGATE_END);
    request.inputs[0].tensor.shape[1] = 6;
    assert_int_equal(cellgate_output_shape(with.session, &request.request, 0,
                                           &shape, &error),
                     CELLGATE_BAD_SHAPE);
    rig_request_finish(&request);
}

/* An older application's structs are shorter, a newer one's may be longer. */
static void longer_structs_are_read_up_to_what_is_known(void **state)
{
    struct newer {
        cellgate_input input;
        int64_t more;
    } inputs[1];
    rig_request request;

    (void)state;
    make(&request);
    memset(inputs, 0, sizeof inputs);
    inputs[0].input = request.inputs[0];
    inputs[0].input.struct_size = sizeof inputs[0];
    request.request.inputs = &inputs[0].input;
    rig_run(with.session, &request, NULL);
    inputs[0].more = 1;
    refused(with.session, &request.request, CELLGATE_INVALID, "does not know");
    rig_request_finish(&request);
}

/* ---- Sessions ---------------------------------------------------------- */

static void wrong_names_are_told(void **state)
{
    cellgate_session_options options = { .struct_size = sizeof options };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_session *session;

    (void)state;
    options.device = "gpu";
    assert_int_equal(cellgate_session_create(with.runtime, with.model, &options,
                                             &session, &error),
                     CELLGATE_NOT_FOUND);
    /* The plugins of the tree, beside those with sections, in any number. */
    assert_non_null(
        strstr(error.text, "no device 'gpu'; there are cpu, card, "));
    assert_non_null(strstr(error.text, "host"));
    options.device = "cpu";
    options.variant = "t99";
    assert_int_equal(cellgate_session_create(with.runtime, with.model, &options,
                                             &session, &error),
                     CELLGATE_NOT_FOUND);
    assert_non_null(strstr(error.text, "no variant 't99'"));
    assert_non_null(strstr(error.text, "it has 't1'"));
    options.device = "host";
    options.variant = "t1";
    assert_int_equal(cellgate_session_create(with.runtime, with.model, &options,
                                             &session, &error),
                     CELLGATE_NOT_FOUND);
    assert_non_null(strstr(error.text, "it has none"));
    assert_int_equal(
        cellgate_session_create(NULL, with.model, NULL, &session, &error),
        CELLGATE_INVALID);
}

static void no_device_at_all_is_told(void **state)
{
    cellgate_runtime *runtime = rig_runtime(
        "[cellgate]\nunlisted = no\n[device none]\nplugin = absent\n");
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_session *session;

    (void)state;
    assert_int_equal(
        cellgate_session_create(runtime, with.model, NULL, &session, &error),
        CELLGATE_NO_DEVICE);
    assert_non_null(strstr(error.text, "none: no plugin named absent"));
    session = rig_session(runtime, with.model, "host", NULL);
    cellgate_runtime_destroy(runtime); /* the session keeps what it needs */
    cellgate_session_destroy(session);
}

/* Without a section there is no device to blame: the plugins are named. */
static void plugins_left_out_are_told(void **state)
{
    cellgate_runtime *runtime = rig_runtime("[cellgate]\nunlisted = no\n");
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_session *session;

    (void)state;
    assert_int_equal(
        cellgate_session_create(runtime, with.model, NULL, &session, &error),
        CELLGATE_NO_DEVICE);
    assert_non_null(strstr(error.text, "unlisted = no"));
    assert_non_null(strstr(error.text, ".so: "));
    cellgate_runtime_destroy(runtime);
}

/* A device that cannot be used is passed over, and the report says so. */
static void unusable_devices_are_passed_over(void **state)
{
    cellgate_runtime *runtime = rig_runtime(
        "[scheduler]\nfallback = never\n"
        "[device none]\nplugin = absent\n[device cpu]\nplugin = openmp\n");
    cellgate_session_options named = { .struct_size = sizeof named,
                                       .device = "none" };
    cellgate_report report = { .struct_size = sizeof report };
    cellgate_session *session = rig_session(runtime, with.model, NULL, NULL);
    rig_request request;

    (void)state;
    make(&request);
    rig_run(session, &request, &report);
    assert_string_equal(report.device, "cpu");
    assert_string_equal(report.variant, "t1");
    assert_non_null(strstr(report.reason, "not none: "));
    cellgate_session_destroy(session);
    assert_int_not_equal(
        cellgate_session_create(runtime, with.model, &named, &session, NULL),
        CELLGATE_OK);
    rig_request_finish(&request);
    cellgate_runtime_destroy(runtime);
}

static void a_session_outlives_what_it_was_made_of(void **state)
{
    cellgate_runtime *runtime = rig_runtime(config);
    cellgate_session *session;
    rig_request request;
    rig_model build;
    rig_lstm lstm;
    uint64_t random = 1;
    cellgate_model *model;
    int32_t x;

    (void)state;
    rig_model_begin(&build, 2);
    x = rig_input(&build, 5, 3);
    rig_lstm_init(&lstm, 3, 4);
    rig_add_lstm(&build, x, &lstm);
    rig_output(&build, lstm.sequence);
    model = rig_model_end(&build);
    session = rig_session(runtime, model, NULL, NULL);
    rig_request_init(&request, session, model, 2, 5, 0, &random);
    cellgate_model_destroy(model);
    cellgate_runtime_destroy(runtime);
    rig_run(session, &request, NULL);
    cellgate_session_destroy(session);
    rig_request_finish(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_shapes_are_named),
        cmocka_unit_test(wrong_counts_and_sizes_are_named),
        cmocka_unit_test(no_steps_are_no_error),
        cmocka_unit_test(wrong_lengths_are_named),
        cmocka_unit_test(lengths_are_masks),
        cmocka_unit_test(each_input_has_its_own_lengths),
        cmocka_unit_test(all_inputs_have_one_batch),
        cmocka_unit_test(other_dtypes_are_converted),
        cmocka_unit_test(ids_are_checked),
        cmocka_unit_test(nan_spoils_its_own_row),
        cmocka_unit_test(what_is_masked_may_be_nan),
        cmocka_unit_test(outputs_may_be_left_out),
        cmocka_unit_test(an_output_may_lie_over_an_input),
        cmocka_unit_test(output_shapes_follow_the_request),
        cmocka_unit_test(longer_structs_are_read_up_to_what_is_known),
        cmocka_unit_test(wrong_names_are_told),
        cmocka_unit_test(no_device_at_all_is_told),
        cmocka_unit_test(plugins_left_out_are_told),
        cmocka_unit_test(unusable_devices_are_passed_over),
        cmocka_unit_test(a_session_outlives_what_it_was_made_of),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
