/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/keras.h"

const char *const cg_keras_time_distributed_options[] = { "layer", NULL };

/* The layer inside, as it stands in the weights. `path` has `size` bytes. */
static cellgate_status init_inner(const cg_keras_layer *outer,
                                  cg_keras_layer *inner, char *path,
                                  size_t size, cellgate_error *error)
{
    const json_t *json = json_object_get(outer->config, "layer");
    cellgate_status status;

    *inner = *outer;
    if (!json_is_object(json))
        return cg_keras_fail(error, CELLGATE_BAD_FILE, outer,
                             "'layer' must be a layer");
    status = cg_keras_layer_init(inner, json, 0, 1, outer->name, error);
    if (status != CELLGATE_OK)
        return status;
    inner->lead++;
    if (snprintf(path, size, "%s/layer", outer->path) >= (int)size)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, outer,
                             "its path in the weights is too long");
    inner->path = cg_keras_saved_path(outer->reader->shared, json, path);
    return cg_keras_check_lead(inner, error);
}

cellgate_status cg_keras_check_lead(const cg_keras_layer *layer,
                                    cellgate_error *error)
{
    if (layer->lead == 0 || (layer->class->flags & CG_KERAS_PER_STEP))
        return CELLGATE_OK;
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                         "inside a TimeDistributed, layers that act on the "
                         "steps one by one or on axes behind them are "
                         "supported; this one would take every step for a "
                         "sequence of its own: make a model of the layers "
                         "inside, and give it these sequences as rows");
}

/*
 * A layer that acts on the trailing axes does the same to a whole sequence as
 * to each of its steps. The mask is the sequence's, and is passed on whatever
 * the layer inside makes of masks.
 */
cellgate_status cg_keras_build_time_distributed(cg_keras_call *call,
                                                cellgate_error *error)
{
    const cg_keras_layer *outer = call->layer;
    cg_keras_layer inner;
    cg_keras_tensor x = { 0 };
    char path[1024];
    int32_t mask;
    cellgate_status status = cg_keras_only_input(call, &x, error);

    if (status == CELLGATE_OK)
        status = init_inner(outer, &inner, path, sizeof path, error);
    if (status != CELLGATE_OK)
        return status;
    if (outer->reader->shapes[x.value].rank < 3 + outer->lead)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, outer,
                             "its input has no steps");
    if (call->mask.value != CG_NO_VALUE)
        status = cg_keras_make_mask(call, &call->mask,
                                    &call->inputs.items[0].mask, error);
    if (status != CELLGATE_OK)
        return status;
    mask = call->inputs.items[0].mask;
    call->mask.value = CG_NO_VALUE;
    call->layer = &inner;
    status = inner.class->build(call, error);
    call->layer = outer;
    for (size_t i = 0; i < call->outputs.count; i++)
        call->outputs.items[i].mask = mask;
    return status;
}
