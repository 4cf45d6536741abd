/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <xxhash.h>

#include "runtime/model/selftest.h"

int64_t cellgate_model_selftest_rows(const cellgate_model *model)
{
    return model != NULL && model->selftest != NULL ? model->selftest->rows : 0;
}

cg_selftest *cg_selftest_create(cellgate_model *model)
{
    cg_selftest *selftest = cg_model_memory(model, sizeof *selftest);

    if (selftest == NULL)
        return NULL;
    selftest->inputs = cg_model_memory(model, (model->input_count + 1) *
                                                  sizeof *selftest->inputs);
    selftest->outputs = cg_model_memory(model, (model->output_count + 1) *
                                                   sizeof *selftest->outputs);
    if (selftest->inputs == NULL || selftest->outputs == NULL)
        return NULL;
    for (size_t i = 0; i < model->input_count; i++)
        selftest->inputs[i].tensor.struct_size = sizeof(cellgate_tensor);
    for (size_t i = 0; i < model->output_count; i++)
        selftest->outputs[i].struct_size = sizeof(cellgate_tensor);
    return selftest;
}

size_t cg_selftest_bytes(const cellgate_tensor *tensor)
{
    size_t bytes = cellgate_dtype_size(tensor->dtype);

    for (int32_t axis = 0; axis < tensor->rank; axis++)
        bytes *= (size_t)tensor->shape[axis];
    return bytes;
}

/* ---- Shapes ------------------------------------------------------------- */

static bool input_fits(const cg_selftest *selftest, size_t index,
                       const cg_value *value)
{
    const cellgate_tensor *tensor = &selftest->inputs[index].tensor;

    if (tensor->dtype != value->dtype || tensor->rank != value->rank ||
        tensor->rank < 1 || tensor->shape[0] != selftest->rows)
        return false;
    for (int32_t axis = 1; axis < value->rank; axis++)
        if (tensor->shape[axis] < 0 || tensor->shape[axis] > CG_MAX_SIZE ||
            (value->shape[axis] != CG_UNKNOWN &&
             tensor->shape[axis] != value->shape[axis]))
            return false;
    return true;
}

static void set_shape(cg_shape *shape, const cellgate_tensor *tensor,
                      int32_t rank)
{
    shape->rank = rank;
    for (int32_t axis = 0; axis < rank; axis++)
        shape->extent[axis] = tensor->shape[axis];
}

cellgate_status cg_selftest_shapes(const cellgate_model *model,
                                   const cg_selftest *selftest,
                                   cg_shape *shapes, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; i < model->input_count; i++) {
        const cg_input *input = &model->inputs[i];
        const cellgate_tensor *tensor = &selftest->inputs[i].tensor;

        if (!input_fits(selftest, i, &model->values[input->value]))
            return cellgate_fail(error, CELLGATE_BAD_FILE,
                                 "the self-test does not fit input '%s'",
                                 model->values[input->value].name);
        set_shape(&shapes[input->value], tensor, tensor->rank);
        if (input->mask != CG_NO_VALUE)
            set_shape(&shapes[input->mask], tensor, 2);
    }
    for (size_t i = 0; status == CELLGATE_OK && i < model->node_count; i++)
        status = cg_node_infer(model, &model->nodes[i], shapes, error);
    return status;
}

/* ---- Sizes -------------------------------------------------------------- */

/* SIZE_MAX: more than there is. */
static size_t value_bytes(const cellgate_model *model, const cg_shape *shapes,
                          int32_t value)
{
    const int64_t elements = cg_shape_elements(&shapes[value]);

    return elements < 0 ? SIZE_MAX
                        : (size_t)elements *
                              cellgate_dtype_size(model->values[value].dtype);
}

static size_t add_bytes(size_t sum, size_t bytes)
{
    return bytes > SIZE_MAX - sum ? SIZE_MAX : sum + bytes;
}

static size_t kept_bytes(const cellgate_model *model, const cg_shape *shapes)
{
    size_t sum = 0;

    for (size_t i = 0; i < model->input_count; i++) {
        const cg_input *input = &model->inputs[i];

        sum = add_bytes(sum, value_bytes(model, shapes, input->value));
        if (input->mask != CG_NO_VALUE)
            sum = add_bytes(sum, value_bytes(model, shapes, input->mask));
    }
    for (size_t i = 0; i < model->output_count; i++)
        sum = add_bytes(sum, value_bytes(model, shapes, model->outputs[i]));
    return sum;
}

static cellgate_status too_large(size_t bytes, size_t most, const char *what,
                                 cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                         "%s of the smallest request would take %zu MiB%s; at "
                         "most %zu MiB are taken",
                         what, bytes >> 20, bytes == SIZE_MAX ? " or more" : "",
                         most >> 20);
}

cellgate_status cg_selftest_bound(const cellgate_model *model,
                                  const cg_shape *shapes, cellgate_error *error)
{
    const size_t kept = kept_bytes(model, shapes);
    size_t sum = 0;

    if (kept > CG_SELFTEST_MAX_BYTES)
        return too_large(kept, CG_SELFTEST_MAX_BYTES, "inputs and outputs",
                         error);
    for (size_t i = 0; i < model->value_count; i++)
        sum = add_bytes(sum, value_bytes(model, shapes, (int32_t)i));
    if (sum > CG_SELFTEST_MAX_VALUES)
        return too_large(sum, CG_SELFTEST_MAX_VALUES, "the layers' results",
                         error);
    return CELLGATE_OK;
}

/* ---- Checking ----------------------------------------------------------- */

static bool output_fits(const cellgate_tensor *tensor, const cg_value *value,
                        const cg_shape *shape)
{
    if (tensor->dtype != value->dtype || tensor->rank != shape->rank)
        return false;
    for (int32_t axis = 0; axis < shape->rank; axis++)
        if (tensor->shape[axis] != shape->extent[axis])
            return false;
    return true;
}

cellgate_status cg_selftest_check(const cellgate_model *model,
                                  const cg_selftest *selftest,
                                  cellgate_error *error)
{
    cellgate_error cause = CELLGATE_ERROR_INIT;
    cg_shape *shapes;
    cellgate_status status;

    if (selftest->rows < 1 || selftest->rows > CG_SELFTEST_MAX_ROWS)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "the self-test has %lld rows; it may have 1 to %d",
                             (long long)selftest->rows, CG_SELFTEST_MAX_ROWS);
    for (size_t i = 0; i < model->input_count; i++)
        if (selftest->inputs[i].mask != NULL &&
            model->inputs[i].mask == CG_NO_VALUE)
            return cellgate_fail(error, CELLGATE_BAD_FILE,
                                 "the self-test has a mask that no layer "
                                 "looks at");
    shapes = calloc(model->value_count + 1, sizeof *shapes);
    if (shapes == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory for the self-test");
    status = cg_selftest_shapes(model, selftest, shapes, &cause);
    if (status == CELLGATE_OK)
        status = cg_selftest_bound(model, shapes, &cause);
    if (status == CELLGATE_BAD_FILE)
        (void)cellgate_fail(error, status, "%s", cause.text);
    else if (status != CELLGATE_OK)
        status = cellgate_fail(error, CELLGATE_BAD_FILE, "the self-test: %s",
                               cause.text);
    for (size_t i = 0; status == CELLGATE_OK && i < model->output_count; i++)
        if (!output_fits(&selftest->outputs[i],
                         &model->values[model->outputs[i]],
                         &shapes[model->outputs[i]]))
            status = cellgate_fail(error, CELLGATE_BAD_FILE,
                                   "the self-test does not fit output '%s'",
                                   model->values[model->outputs[i]].name);
    free(shapes);
    return status;
}

/* ---- Checksum ----------------------------------------------------------- */

static void hash_tensor(XXH3_state_t *state, const cellgate_tensor *tensor)
{
    (void)XXH3_128bits_update(state, &tensor->dtype, sizeof tensor->dtype);
    (void)XXH3_128bits_update(state, &tensor->rank, sizeof tensor->rank);
    (void)XXH3_128bits_update(state, tensor->shape,
                              (size_t)tensor->rank * sizeof tensor->shape[0]);
    (void)XXH3_128bits_update(state, tensor->data, cg_selftest_bytes(tensor));
}

static void hash_selftest(XXH3_state_t *state, const cellgate_model *model,
                          const cg_selftest *selftest)
{
    for (size_t i = 0; i < model->input_count; i++) {
        const cg_selftest_input *input = &selftest->inputs[i];

        hash_tensor(state, &input->tensor);
        if (input->mask != NULL)
            (void)XXH3_128bits_update(
                state, input->mask,
                (size_t)(selftest->rows * input->tensor.shape[1]));
    }
    for (size_t i = 0; i < model->output_count; i++)
        hash_tensor(state, &selftest->outputs[i]);
}

cellgate_status cg_selftest_checksum(const cellgate_model *model,
                                     const cg_selftest *selftest, char text[33],
                                     cellgate_error *error)
{
    XXH3_state_t *state = XXH3_createState();
    XXH128_hash_t hash;

    if (state == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory for the self-test's checksum");
    (void)XXH3_128bits_reset(state);
    hash_selftest(state, model, selftest);
    hash = XXH3_128bits_digest(state);
    (void)XXH3_freeState(state);
    (void)snprintf(text, 33, "%016llx%016llx", (unsigned long long)hash.high64,
                   (unsigned long long)hash.low64);
    return CELLGATE_OK;
}
