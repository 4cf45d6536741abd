/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/keras_trailing.h"

const char *const cg_keras_prelu_options[] = { "shared_axes",
                                               CG_KERAS_TRAINING(alpha), NULL };

cellgate_status cg_keras_build_prelu(cg_keras_call *call, cellgate_error *error)
{
    const cg_keras_layer *layer = call->layer;
    const cg_extents none = { 0 };
    cg_extents shared = { 0 };
    cg_keras_tensor x = { 0 };
    cg_node node = { .kind = CG_PRELU };
    cg_extents *extents = &node.as.prelu;
    cg_weight weight;
    int32_t value = CG_NO_VALUE;
    cellgate_status status = cg_keras_take_numbers(call, &x, error);

    if (status == CELLGATE_OK)
        status = cg_keras_get_axes(layer, "shared_axes",
                                   cg_keras_own_rank(call, x.value), &none,
                                   &shared, error);
    if (status != CELLGATE_OK)
        return status;
    extents->count = cg_keras_own_rank(call, x.value) - 1;
    for (int32_t i = 0; i < shared.count; i++)
        extents->extent[shared.extent[i] - 1] = 1;
    for (int32_t i = 0; status == CELLGATE_OK && i < extents->count; i++)
        if (extents->extent[i] == 0)
            status = cg_keras_own_extent(call, x.value, i + 1,
                                         &extents->extent[i], error);
    if (status == CELLGATE_OK)
        status = cg_keras_load(layer, "", &node, 0, 1, &weight, error);
    if (status == CELLGATE_OK)
        status = cg_keras_emit_weighted(call, &node, x.value, &weight, 1, "",
                                        &value, error);
    return status == CELLGATE_OK ? cg_keras_return(call, value, x.mask, error)
                                 : status;
}
