/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/given.h"
#include "runtime/session/call.h"

/* Requests are arrays of structs of the application's own size. */
static const void *element(const void *array, size_t index)
{
    size_t size;

    memcpy(&size, array, sizeof size);
    return (const char *)array + index * size;
}

void cg_request_input(const cellgate_request *request, size_t index,
                      cellgate_input *input)
{
    cg_struct_read(element(request->inputs, index), input, sizeof *input);
}

void cg_request_output(const cellgate_request *request, size_t index,
                       cellgate_tensor *output)
{
    cg_struct_read(element(request->outputs, index), output, sizeof *output);
}

/* ---- Inputs ------------------------------------------------------------ */

/* Structs of one size, `least` bytes or more (given.h), of which `known` ones
   are known here. */
static cellgate_status check_structs(const void *array, size_t count,
                                     size_t least, size_t known,
                                     const char *what, cellgate_error *error)
{
    size_t first, each;

    if (count == 0)
        return CELLGATE_OK;
    if (array == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the request's %s are NULL", what);
    memcpy(&first, array, sizeof first);
    if (first < least)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "struct_size of the request's %s is %zu; set it "
                             "to sizeof(struct), %zu here",
                             what, first, known);
    for (size_t at = 0; at < count; at++) {
        const void *object = (const char *)array + at * first;

        memcpy(&each, object, sizeof each);
        if (each != first || !cg_given_known(object, least, known))
            return cellgate_fail(error, CELLGATE_INVALID,
                                 "struct_size of %s number %zu of the request "
                                 "is %zu, not %zu, or it has members that this "
                                 "libcellgate does not know",
                                 what, at, each, first);
    }
    return CELLGATE_OK;
}

static const char *place_of(int32_t axis)
{
    static const char *const names[] = {
        "batch",  "axis 1", "axis 2", "axis 3",
        "axis 4", "axis 5", "axis 6", "axis 7"
    };

    return names[axis];
}

static bool convertible(int32_t from, int32_t to)
{
    if (cellgate_dtype_size(from) == 0)
        return false;
    return to == CELLGATE_F32 || to == CELLGATE_I32;
}

/* An axis that the model leaves open by the name that it has there. */
static void shape_text(char *text, size_t size, const int64_t *extents,
                       int32_t rank)
{
    static const char *const open[] = { "batch", "steps" };
    size_t used = 0;

    text[0] = '\0';
    for (int32_t axis = 0; axis < rank && used < size; axis++) {
        const char *comma = axis > 0 ? ", " : "";

        if (axis < 2 && extents[axis] == CG_UNKNOWN)
            used += (size_t)snprintf(text + used, size - used, "%s%s", comma,
                                     open[axis]);
        else
            used += (size_t)snprintf(text + used, size - used, "%s%lld", comma,
                                     (long long)extents[axis]);
    }
}

/* Whether extents[0 .. rank - first) are what the value has from axis `first`
   on. */
static bool fits(const int64_t *extents, const cg_value *value, int32_t first)
{
    for (int32_t axis = first; axis < value->rank; axis++)
        if (value->shape[axis] != CG_UNKNOWN &&
            value->shape[axis] != extents[axis - first])
            return false;
    return true;
}

/* What was probably meant, and how to give it; "" if that is not plain. */
static const char *shape_advice(const cellgate_tensor *tensor,
                                const cg_value *value)
{
    int64_t swapped[CELLGATE_MAX_RANK];

    if (tensor->rank == value->rank - 1 && fits(tensor->shape, value, 1))
        return "; one sample, too, needs a batch axis, of 1";
    if (tensor->rank != value->rank || value->rank < 2)
        return "";
    memcpy(swapped, tensor->shape, sizeof swapped);
    swapped[0] = tensor->shape[1];
    swapped[1] = tensor->shape[0];
    return fits(swapped, value, 0)
               ? "; it would with the first two axes swapped"
               : "";
}

static cellgate_status wrong_shape(const cellgate_tensor *tensor,
                                   const cg_value *value, cellgate_error *error)
{
    char got[180], wanted[180];

    shape_text(wanted, sizeof wanted, value->shape, value->rank);
    if (tensor->rank < 0 || tensor->rank > CELLGATE_MAX_RANK)
        return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                             "input '%s' has %d axes; the model takes (%s)",
                             value->name, (int)tensor->rank, wanted);
    shape_text(got, sizeof got, tensor->shape, tensor->rank);
    return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                         "input '%s' has shape (%s); the model takes (%s)%s",
                         value->name, got, wanted, shape_advice(tensor, value));
}

static cellgate_status check_extents(const cellgate_tensor *tensor,
                                     const cg_value *value,
                                     cellgate_error *error)
{
    if (tensor->rank != value->rank)
        return wrong_shape(tensor, value, error);
    for (int32_t axis = 0; axis < value->rank; axis++) {
        int64_t got = tensor->shape[axis];

        if (got < 0 || (axis == 0 && got == 0))
            return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                                 "input '%s': %s is %lld; it must be at least "
                                 "%d",
                                 value->name, place_of(axis), (long long)got,
                                 axis == 0);
        if (got > INT32_MAX) /* lengths count steps in int32 */
            return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                                 "input '%s': %s is %lld; no axis may be "
                                 "larger than memory can be",
                                 value->name, place_of(axis), (long long)got);
    }
    return fits(tensor->shape, value, 0) ? CELLGATE_OK
                                         : wrong_shape(tensor, value, error);
}

static int64_t elements(const cellgate_tensor *tensor)
{
    int64_t count = 1;

    for (int32_t axis = 0; axis < tensor->rank; axis++)
        if (__builtin_mul_overflow(count, tensor->shape[axis], &count) ||
            count > INT64_MAX / 8)
            return -1;
    return count;
}

static cellgate_status check_tensor(const cellgate_tensor *tensor,
                                    const cg_value *value,
                                    cellgate_error *error)
{
    cellgate_status status;
    int64_t count;

    if (!convertible(tensor->dtype, value->dtype))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "input '%s' has dtype number %d, which is none",
                             value->name, (int)tensor->dtype);
    status = check_extents(tensor, value, error);
    if (status != CELLGATE_OK)
        return status;
    count = elements(tensor);
    if (count < 0)
        return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                             "input '%s' is larger than memory can be",
                             value->name);
    if (tensor->data == NULL && count > 0)
        return cellgate_fail(error, CELLGATE_INVALID, "input '%s' has no data",
                             value->name);
    return CELLGATE_OK;
}

static cellgate_status check_lengths(const cellgate_input *input,
                                     const char *name, cellgate_error *error)
{
    int64_t batch = input->tensor.shape[0], steps = input->tensor.shape[1];

    for (int64_t b = 0; b < batch; b++)
        if (input->lengths[b] < 0 || input->lengths[b] > steps)
            return cellgate_fail(error, CELLGATE_OUT_OF_RANGE,
                                 "input '%s': length %d of row %lld is not in "
                                 "[0, %lld]",
                                 name, (int)input->lengths[b], (long long)b,
                                 (long long)steps);
    return CELLGATE_OK;
}

static cellgate_status check_mask(const cellgate_input *input,
                                  const cg_input *as, const char *name,
                                  cellgate_error *error)
{
    if (input->lengths == NULL && input->mask == NULL)
        return CELLGATE_OK;
    if (input->lengths != NULL && input->mask != NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "input '%s' has lengths and a mask; give one",
                             name);
    if (as->mask == CG_NO_VALUE)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "input '%s' has a mask or lengths, but no layer "
                             "of the model would look at them",
                             name);
    return input->lengths != NULL ? check_lengths(input, name, error)
                                  : CELLGATE_OK;
}

/* The batch is the request's: all inputs have the same. */
static cellgate_status check_input(const cellgate_request *request,
                                   const cellgate_model *model, size_t index,
                                   cellgate_error *error)
{
    const cg_input *as = &model->inputs[index];
    const cg_value *value = &model->values[as->value];
    cellgate_input input, first;
    cellgate_status status;

    cg_request_input(request, index, &input);
    status = check_tensor(&input.tensor, value, error);
    if (status == CELLGATE_OK)
        status = check_mask(&input, as, value->name, error);
    if (status != CELLGATE_OK || index == 0)
        return status;
    cg_request_input(request, 0, &first);
    if (input.tensor.shape[0] != first.tensor.shape[0])
        return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                             "input '%s' has %lld rows, but input '%s' has "
                             "%lld",
                             value->name, (long long)input.tensor.shape[0],
                             model->values[model->inputs[0].value].name,
                             (long long)first.tensor.shape[0]);
    return CELLGATE_OK;
}

cellgate_status cg_request_check_inputs(const cellgate_request *request,
                                        const cellgate_model *model,
                                        cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    if (request->input_count != model->input_count || model->input_count == 0)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the request has %zu inputs; the model takes %zu",
                             request->input_count, model->input_count);
    status =
        check_structs(request->inputs, request->input_count, CG_FIRST_INPUT,
                      sizeof(cellgate_input), "inputs", error);
    for (size_t at = 0; status == CELLGATE_OK && at < model->input_count; at++)
        status = check_input(request, model, at, error);
    return status;
}

bool cg_request_masked(const cellgate_request *request)
{
    cellgate_input input;

    for (size_t at = 0; at < request->input_count; at++) {
        cg_request_input(request, at, &input);
        if (input.lengths != NULL || input.mask != NULL)
            return true;
    }
    return false;
}

/* ---- Shapes ------------------------------------------------------------ */

static void set_shape(cg_shape *shape, const int64_t *extents, int32_t rank)
{
    shape->rank = rank;
    for (int32_t axis = 0; axis < rank; axis++)
        shape->extent[axis] = extents[axis];
}

cellgate_status cg_request_shapes(const cellgate_request *request,
                                  const cg_graph *graph, cg_shape *shapes,
                                  cellgate_error *error)
{
    const cellgate_model *model = graph->model;
    cellgate_status status = CELLGATE_OK;

    for (size_t at = 0; at < model->input_count; at++) {
        cellgate_input input;

        cg_request_input(request, at, &input);
        set_shape(&shapes[model->inputs[at].value], input.tensor.shape,
                  input.tensor.rank);
        if (model->inputs[at].mask != CG_NO_VALUE)
            set_shape(&shapes[model->inputs[at].mask], input.tensor.shape, 2);
    }
    for (size_t at = 0; status == CELLGATE_OK && at < model->node_count; at++)
        status = cg_node_infer(model, &model->nodes[at], shapes, error);
    return status;
}

/* ---- Outputs ----------------------------------------------------------- */

static cellgate_status check_output(const cellgate_tensor *output,
                                    const cg_value *value,
                                    const cg_shape *shape,
                                    cellgate_error *error)
{
    char got[128], wanted[128];
    bool same = output->rank == shape->rank;

    if (output->data == NULL)
        return CELLGATE_OK;
    if (output->dtype != value->dtype)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "output '%s' is %s; the tensor given for it has "
                             "dtype number %d",
                             value->name, cellgate_dtype_name(value->dtype),
                             (int)output->dtype);
    if (output->rank < 0 || output->rank > CELLGATE_MAX_RANK)
        return cellgate_fail(error, CELLGATE_INVALID, "output '%s' has %d axes",
                             value->name, (int)output->rank);
    for (int32_t axis = 0; same && axis < shape->rank; axis++)
        same = output->shape[axis] == shape->extent[axis];
    if (same)
        return CELLGATE_OK;
    shape_text(got, sizeof got, output->shape, output->rank);
    shape_text(wanted, sizeof wanted, shape->extent, shape->rank);
    return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                         "output '%s' has shape (%s); the tensor given for it "
                         "has (%s)",
                         value->name, wanted, got);
}

cellgate_status cg_request_check_outputs(const cellgate_request *request,
                                         const cellgate_model *model,
                                         const cg_shape *shapes,
                                         cellgate_error *error)
{
    cellgate_status status;

    if (request->output_count != model->output_count)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the request has %zu outputs; the model gives %zu "
                             "(data NULL for one that is not wanted)",
                             request->output_count, model->output_count);
    status =
        check_structs(request->outputs, request->output_count, CG_FIRST_TENSOR,
                      sizeof(cellgate_tensor), "outputs", error);
    for (size_t at = 0; status == CELLGATE_OK && at < model->output_count;
         at++) {
        int32_t value = model->outputs[at];
        cellgate_tensor output;

        cg_request_output(request, at, &output);
        status =
            check_output(&output, &model->values[value], &shapes[value], error);
    }
    return status;
}
