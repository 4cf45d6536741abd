/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/keras.h"

const char *const cg_keras_softmax_options[] = { "axis", NULL };

/* Keras spreads a mask of steps over the features, and fails where their
   numbers differ; where they happen to agree the result makes no sense. What a
   request may bring is passed on, as an Activation layer passes it on. */
static cellgate_status refuse_mask(const cg_keras_call *call,
                                   const cg_keras_tensor *x,
                                   cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;

    if (x->mask == CG_NO_VALUE ||
        layer->reader->model->values[x->mask].producer == -1)
        return CELLGATE_OK;
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                         "its input has a mask of steps, which Keras cannot "
                         "apply in it; use Activation('softmax'), which does "
                         "not look at masks");
}

/* Over the last axis, the two changed for each other around it. */
static cellgate_status over_axis(const cg_keras_call *call, int32_t axis,
                                 int32_t input, int32_t *value,
                                 cellgate_error *error)
{
    const cg_keras_activation softmax = { .kind = CG_SOFTMAX };
    const int32_t rank = call->layer->reader->shapes[input].rank;
    cg_extents order = { .count = rank };
    const bool moved = axis != rank - 1;
    cellgate_status status = CELLGATE_OK;

    for (int32_t i = 0; i < rank; i++)
        order.extent[i] = i;
    order.extent[axis] = rank - 1;
    order.extent[rank - 1] = axis;
    if (moved)
        status = cg_keras_permute(call, input, &order, ":moved", &input, error);
    if (status == CELLGATE_OK)
        status =
            cg_keras_activate(call, &softmax, input, moved ? ":softmax" : "",
                              moved ? ":softmax" : "", value, error);
    if (status == CELLGATE_OK && moved)
        status = cg_keras_permute(call, *value, &order, "", value, error);
    return status;
}

cellgate_status cg_keras_build_softmax(cg_keras_call *call,
                                       cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    cg_keras_tensor x = { 0 };
    cg_extents axes = { 0 }, absent = { .count = 1 };
    int32_t rank, value = CG_NO_VALUE;
    cellgate_status status = cg_keras_only_input(call, &x, error);

    if (status == CELLGATE_OK)
        status = cg_keras_claim(call, &x, CELLGATE_F32, error);
    if (status == CELLGATE_OK)
        status = refuse_mask(call, &x, error);
    if (status != CELLGATE_OK)
        return status;
    rank = layer->reader->shapes[x.value].rank - layer->lead;
    absent.extent[0] = rank - 1;
    status = cg_keras_get_axes(layer, "axis", rank, &absent, &axes, error);
    if (status == CELLGATE_OK && axes.count != 1)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "'axis' must be one axis, not %d",
                             (int)axes.count);
    if (status == CELLGATE_OK)
        status = over_axis(call, (int32_t)axes.extent[0] + layer->lead, x.value,
                           &value, error);
    return status == CELLGATE_OK ? cg_keras_return(call, value, x.mask, error)
                                 : status;
}
