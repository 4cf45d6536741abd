/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras_trailing.h"

int32_t cg_keras_own_rank(const cg_keras_call *call, int32_t value)
{
    return cg_keras_shape(call, value)->rank - call->layer->lead;
}

cellgate_status cg_keras_own_extent(const cg_keras_call *call, int32_t value,
                                    int64_t axis, int64_t *extent,
                                    cellgate_error *error)
{
    *extent = cg_keras_shape(call, value)->extent[axis + call->layer->lead];
    if (*extent >= 1)
        return CELLGATE_OK;
    return cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                         "the extent of axis %lld of its input is not known",
                         (long long)axis);
}

cellgate_status cg_keras_take_numbers(const cg_keras_call *call,
                                      cg_keras_tensor *x, cellgate_error *error)
{
    cellgate_status status = cg_keras_only_input(call, x, error);

    if (status == CELLGATE_OK)
        status = cg_keras_claim(call, x, CELLGATE_F32, error);
    if (status == CELLGATE_OK && cg_keras_own_rank(call, x->value) < 2)
        status = cg_keras_fail(error, CELLGATE_BAD_FILE, call->layer,
                               "its input has no axis but the batch");
    return status;
}

cg_extents cg_keras_last_axis(int32_t rank)
{
    return (cg_extents){ .count = 1, .extent = { rank - 1 } };
}

cellgate_status cg_keras_emit_weighted(const cg_keras_call *call,
                                       const cg_node *attributes, int32_t input,
                                       cg_weight *weights, size_t count,
                                       const char *suffix, int32_t *value,
                                       cellgate_error *error)
{
    int32_t output = CG_KERAS_NEW;
    cg_node node = *attributes;
    cellgate_status status;

    node.inputs = &input;
    node.input_count = 1;
    node.outputs = &output;
    node.output_count = 1;
    node.weights = weights;
    node.weight_count = count;
    for (size_t i = 0; i < count; i++) {
        const float *data = weights[i].data;

        /* The same numbers may have other axes in the file. */
        (void)cg_node_weight(&node, i, &weights[i]);
        weights[i].data = data;
    }
    status = cg_keras_emit(call, &node, suffix, &suffix, error);
    *value = output;
    return status;
}

static int compare_axes(const void *a, const void *b)
{
    const int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

    return one < other ? -1 : one > other;
}

void cg_keras_sort_axes(cg_extents *axes)
{
    qsort(axes->extent, (size_t)axes->count, sizeof axes->extent[0],
          compare_axes);
}
