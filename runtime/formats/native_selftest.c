/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/json_text.h"
#include "runtime/formats/native.h"
#include "runtime/model/selftest.h"

/* ---- Writing ------------------------------------------------------------- */

/* One entry of the layout, by what it is; null if it is not there. */
static json_t *write_name(const cg_native_layout *layout, const char *what,
                          size_t index)
{
    for (size_t i = 0; i < layout->count; i++) {
        const cg_native_tensor *tensor = &layout->tensors[i];

        if (tensor->what != NULL && strcmp(tensor->what, what) == 0 &&
            tensor->index == index)
            return json_string(tensor->name);
    }
    return json_null();
}

json_t *cg_native_write_selftest(const cellgate_model *model,
                                 const cg_native_layout *layout)
{
    json_t *inputs = json_array(), *outputs = json_array();
    bool complete = inputs != NULL && outputs != NULL;
    char checksum[33];

    for (size_t i = 0; complete && i < model->input_count; i++)
        complete = json_array_append_new(
                       inputs, json_pack("{s:o, s:o}", "tensor",
                                         write_name(layout, "input", i), "mask",
                                         write_name(layout, "mask", i))) == 0;
    for (size_t i = 0; complete && i < model->output_count; i++)
        complete = json_array_append_new(outputs,
                                         write_name(layout, "output", i)) == 0;
    complete = complete && cg_selftest_checksum(model, model->selftest,
                                                checksum, NULL) == CELLGATE_OK;
    if (complete)
        return json_pack("{s:o, s:o, s:s}", "inputs", inputs, "outputs",
                         outputs, "checksum", checksum);
    json_decref(inputs);
    json_decref(outputs);
    return NULL;
}

/* ---- Reading ------------------------------------------------------------- */

static cellgate_status fail_selftest(cellgate_error *error, const char *problem)
{
    return cellgate_fail(error, CELLGATE_BAD_FILE,
                         "the self-test %s; convert the model again", problem);
}

static bool read_dtype(const char *name, int32_t *dtype)
{
    static const int32_t dtypes[] = { CELLGATE_F32, CELLGATE_I32, CELLGATE_U8 };

    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(cg_native_dtype(dtypes[i]), name) == 0) {
            *dtype = dtypes[i];
            return true;
        }
    return false;
}

/* The tensor that a name in the metadata stands for, in the file's memory. */
static bool read_tensor(const cg_safetensors *tensors, const json_t *json,
                        cellgate_tensor *tensor)
{
    const char *name = json_string_value(json);
    const cg_safetensor *found =
        name != NULL ? cg_safetensors_find(tensors, name) : NULL;

    if (found == NULL || !read_dtype(found->dtype, &tensor->dtype) ||
        (uintptr_t)found->data % CG_NATIVE_ALIGNMENT != 0)
        return false;
    tensor->rank = found->rank;
    memcpy(tensor->shape, found->shape, sizeof tensor->shape);
    tensor->data = (void *)(uintptr_t)found->data;
    return true;
}

static bool read_input(const cg_safetensors *tensors, const json_t *json,
                       cg_selftest_input *input)
{
    const json_t *name = json_object_get(json, "mask");
    cellgate_tensor mask = { .struct_size = sizeof mask };

    if (!read_tensor(tensors, json_object_get(json, "tensor"), &input->tensor))
        return false;
    if (name == NULL || json_is_null(name))
        return true;
    if (!read_tensor(tensors, name, &mask) || mask.dtype != CELLGATE_U8 ||
        mask.rank != 2 || input->tensor.rank < 2 ||
        memcmp(mask.shape, input->tensor.shape, 2 * sizeof mask.shape[0]) != 0)
        return false;
    input->mask = mask.data;
    return true;
}

static cellgate_status read_arrays(const cg_safetensors *tensors,
                                   const json_t *json, cellgate_model *model,
                                   cg_selftest *selftest, cellgate_error *error)
{
    const json_t *inputs = json_object_get(json, "inputs");
    const json_t *outputs = json_object_get(json, "outputs");

    if (json_array_size(inputs) != model->input_count ||
        json_array_size(outputs) != model->output_count)
        return fail_selftest(error, "has other inputs or outputs than the "
                                    "model");
    for (size_t i = 0; i < model->input_count; i++)
        if (!read_input(tensors, json_array_get(inputs, i),
                        &selftest->inputs[i]))
            return fail_selftest(error, "has an input that cannot be used");
    for (size_t i = 0; i < model->output_count; i++)
        if (!read_tensor(tensors, json_array_get(outputs, i),
                         &selftest->outputs[i]))
            return fail_selftest(error, "has an output that cannot be used");
    if (model->input_count > 0 && selftest->inputs[0].tensor.rank > 0)
        selftest->rows = selftest->inputs[0].tensor.shape[0];
    return cg_selftest_check(model, selftest, error);
}

static cellgate_status check_sum(const json_t *json,
                                 const cellgate_model *model,
                                 const cg_selftest *selftest,
                                 cellgate_error *error)
{
    const char *stored = json_string_value(json_object_get(json, "checksum"));
    char computed[33];
    cellgate_status status =
        cg_selftest_checksum(model, selftest, computed, error);

    if (status == CELLGATE_OK &&
        (stored == NULL || strcmp(stored, computed) != 0))
        return fail_selftest(error, "does not match its checksum: the file was "
                                    "damaged or edited");
    return status;
}

cellgate_status cg_native_read_selftest(const cg_safetensors *tensors,
                                        cellgate_model *model,
                                        cellgate_error *error)
{
    const char *text =
        json_string_value(json_object_get(tensors->metadata, "selftest"));
    cg_selftest *selftest;
    json_t *json;
    cellgate_status status;

    if (text == NULL)
        return CELLGATE_OK;
    selftest = cg_selftest_create(model);
    if (selftest == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory for the self-test");
    status = cg_json_parse("the self-test", text, strlen(text), &json, error);
    if (status != CELLGATE_OK)
        return status;
    status = read_arrays(tensors, json, model, selftest, error);
    if (status == CELLGATE_OK)
        status = check_sum(json, model, selftest, error);
    json_decref(json);
    if (status == CELLGATE_OK)
        model->selftest = selftest;
    return status;
}
