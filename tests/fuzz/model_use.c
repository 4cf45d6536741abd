/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include "runtime/model/model.h"
#include "tests/fuzz/model_use.h"
#include "tests/fuzz/target.h"

/* What is run has at most so many of each. */
#define ELEMENTS_MOST 4096    /* of one value */
#define OPERATIONS_MOST 65536 /* of one node, a row and step */
#define VALUES_MOST 64
#define BATCH 2
#define STEPS 3

/* ---- Describing ---------------------------------------------------------- */

static void describe_values(const cellgate_model *model)
{
    cellgate_value_info info = { .struct_size = sizeof info };

    FUZZ_REQUIRE(cellgate_model_output_count(model) > 0);
    for (size_t i = 0; i < cellgate_model_input_count(model); i++) {
        FUZZ_REQUIRE(cellgate_model_input_get(model, i, &info) == CELLGATE_OK);
        FUZZ_REQUIRE(info.name != NULL && info.rank >= 1);
    }
    for (size_t i = 0; i < cellgate_model_output_count(model); i++) {
        FUZZ_REQUIRE(cellgate_model_output_get(model, i, &info) == CELLGATE_OK);
        FUZZ_REQUIRE(info.name != NULL && info.rank >= 1);
    }
}

/* Returns whether every node is cheap enough to be run. */
static bool describe_nodes(const cellgate_model *model)
{
    cellgate_node_info info = { .struct_size = sizeof info };
    bool cheap = true;

    for (size_t i = 0; i < cellgate_model_node_count(model); i++) {
        FUZZ_REQUIRE(cellgate_model_node_get(model, i, &info) == CELLGATE_OK);
        FUZZ_REQUIRE(info.name != NULL && info.kind != NULL &&
                     info.detail != NULL);
        FUZZ_REQUIRE(info.parameters >= 0 && info.operations >= 0);
        cheap = cheap && info.operations <= OPERATIONS_MOST;
    }
    return cheap;
}

/* ---- Saving -------------------------------------------------------------- */

static char saved_path[64];

static void remove_saved(void)
{
    (void)unlink(saved_path);
}

static void save_and_load(const cellgate_model *model)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *again = NULL;
    cellgate_status status;

    if (saved_path[0] == '\0') {
        (void)snprintf(saved_path, sizeof saved_path,
                       "%s/cellgate-fuzz-%ld.safetensors",
                       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
                       (long)getpid());
        FUZZ_REQUIRE(atexit(remove_saved) == 0);
    }
    status = cellgate_model_save(model, saved_path, &error);
    if (status == CELLGATE_OK)
        status = cellgate_model_load(saved_path, &again, &error);
    if (status != CELLGATE_OK)
        (void)fprintf(stderr, "%s\n", error.text);
    FUZZ_REQUIRE(status == CELLGATE_OK);
    FUZZ_REQUIRE(strcmp(cellgate_model_fingerprint(model),
                        cellgate_model_fingerprint(again)) == 0);
    cellgate_model_destroy(again);
}

/* ---- Running ------------------------------------------------------------- */

/* Elements of a value with the request's batch and steps; -1: too many. */
static int64_t set_shape(cellgate_tensor *tensor, const cg_value *value)
{
    int64_t elements = 1;

    *tensor = (cellgate_tensor){ .struct_size = sizeof *tensor,
                                 .dtype = value->dtype,
                                 .rank = value->rank };
    for (int32_t axis = 0; axis < value->rank; axis++) {
        const int64_t known = value->shape[axis];
        const int64_t extent = axis == 0 ? BATCH : known < 0 ? STEPS : known;

        tensor->shape[axis] = extent;
        if (extent > ELEMENTS_MOST || elements * extent > ELEMENTS_MOST)
            return -1;
        elements *= extent;
    }
    return elements;
}

static bool is_small(const cellgate_model *model)
{
    bool small = model->input_count <= VALUES_MOST &&
                 model->output_count <= VALUES_MOST &&
                 model->value_count <= VALUES_MOST * 4;

    for (size_t i = 0; small && i < model->value_count; i++) {
        cellgate_tensor tensor;

        small = set_shape(&tensor, &model->values[i]) >= 0;
    }
    return small;
}

static cellgate_runtime *host_runtime(void)
{
    static cellgate_runtime *runtime;
    static const char text[] = "[cellgate]\nprobe_cache = no\nlog = error\n";
    cellgate_runtime_options options = { .struct_size = sizeof options,
                                         .plugin_path = "/nonexistent" };
    char path[] = "/tmp/cellgate-fuzz-XXXXXX";
    int fd;

    if (runtime != NULL)
        return runtime;
    fd = mkstemp(path);
    FUZZ_REQUIRE(fd >= 0);
    FUZZ_REQUIRE(write(fd, text, sizeof text - 1) == sizeof text - 1);
    (void)close(fd);
    options.config_path = path;
    FUZZ_REQUIRE(cellgate_runtime_create(&options, &runtime, NULL) ==
                 CELLGATE_OK);
    (void)unlink(path);
    return runtime;
}

/* Memory of the inputs: small numbers, and a mask with holes. */
static void fill_input(cellgate_input *input, const cellgate_model *model,
                       size_t index, void *memory, uint8_t *mask)
{
    const cg_input *of = &model->inputs[index];
    const int64_t elements =
        set_shape(&input->tensor, &model->values[of->value]);

    input->struct_size = sizeof *input;
    input->tensor.data = memory;
    for (int64_t i = 0; i < elements; i++) {
        if (input->tensor.dtype == CELLGATE_F32)
            ((float *)memory)[i] = (float)(i % 5) * 0.25f - 0.5f;
        else
            ((int32_t *)memory)[i] = (int32_t)(i % 3);
    }
    for (size_t i = 0; i < ELEMENTS_MOST; i++)
        mask[i] = i % 3 != 1;
    if (of->mask != CG_NO_VALUE)
        input->mask = mask;
}

typedef struct request_memory {
    cellgate_input inputs[VALUES_MOST];
    cellgate_tensor outputs[VALUES_MOST];
    float elements[2 * VALUES_MOST][ELEMENTS_MOST];
    uint8_t masks[VALUES_MOST][ELEMENTS_MOST];
} request_memory;

static void run_request(cellgate_session *session, const cellgate_model *model,
                        request_memory *memory)
{
    cellgate_request request = { .struct_size = sizeof request,
                                 .inputs = memory->inputs,
                                 .input_count = model->input_count,
                                 .outputs = memory->outputs,
                                 .output_count = model->output_count };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_status status = CELLGATE_OK;

    memset(memory->inputs, 0, sizeof memory->inputs);
    for (size_t i = 0; i < model->input_count; i++)
        fill_input(&memory->inputs[i], model, i, memory->elements[i],
                   memory->masks[i]);
    for (size_t i = 0; status == CELLGATE_OK && i < model->output_count; i++) {
        cellgate_tensor *output = &memory->outputs[i];
        size_t elements = 1;

        *output = (cellgate_tensor){ .struct_size = sizeof *output };
        status = cellgate_output_shape(session, &request, i, output, &error);
        for (int32_t axis = 0; status == CELLGATE_OK && axis < output->rank;
             axis++)
            elements *= (size_t)output->shape[axis];
        if (elements > ELEMENTS_MOST)
            return;
        output->data = memory->elements[VALUES_MOST + i];
    }
    if (status == CELLGATE_OK)
        status = cellgate_run(session, &request, NULL, &error);
    fuzz_check_error(status, &error);
}

static void run_small(const cellgate_model *model)
{
    const cellgate_session_options options = { .struct_size = sizeof options,
                                               .device = "host" };
    static request_memory memory;
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_session *session = NULL;
    const cellgate_status status = cellgate_session_create(
        host_runtime(), model, &options, &session, &error);

    fuzz_check_error(status, &error);
    if (status == CELLGATE_OK)
        run_request(session, model, &memory);
    cellgate_session_destroy(session);
}

/* -------------------------------------------------------------------------- */

void fuzz_use_model(const cellgate_model *model)
{
    bool cheap;

    FUZZ_REQUIRE(strlen(cellgate_model_fingerprint(model)) == 32);
    FUZZ_REQUIRE(cellgate_model_format(model) != NULL &&
                 cellgate_model_format_version(model) != NULL);
    describe_values(model);
    cheap = describe_nodes(model);
    save_and_load(model);
    if (cheap && is_small(model))
        run_small(model);
}

void fuzz_load_model(const char *path)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = NULL;
    const cellgate_status status = cellgate_model_load(path, &model, &error);

    fuzz_check_error(status, &error);
    FUZZ_REQUIRE((status == CELLGATE_OK) == (model != NULL));
    if (model != NULL)
        fuzz_use_model(model);
    cellgate_model_destroy(model);
}
