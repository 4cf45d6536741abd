/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/host/ops.h"

/* `place` counts ids; the step is its place in the row. */
static cellgate_status id_refused(const cg_host_call *call, int64_t place,
                                  int32_t id, cellgate_error *error)
{
    const cg_shape *shape = cg_host_input_shape(call, 0);
    int64_t row_ids = cg_host_extent(shape, 1, shape->rank);

    return cellgate_fail(error, CELLGATE_OUT_OF_RANGE,
                         "embedding '%s': id %d in row %lld, step %lld is not "
                         "in the vocabulary of %lld (0 to %lld)",
                         call->node->name, (int)id,
                         (long long)(place / row_ids),
                         (long long)(place % row_ids),
                         (long long)call->node->as.embedding.vocabulary,
                         (long long)call->node->as.embedding.vocabulary - 1);
}

cellgate_status cg_host_embedding(const cg_host_call *call,
                                  cellgate_error *error)
{
    const cg_embedding *embedding = &call->node->as.embedding;
    const cg_shape *shape = cg_host_input_shape(call, 0);
    const int32_t *ids = cg_host_input(call, 0);
    const float *table = cg_host_weight(call, 0);
    float *y = cg_host_output(call, 0);
    int64_t count = cg_host_extent(shape, 0, shape->rank);
    size_t bytes = (size_t)embedding->size * sizeof *y;

    for (int64_t k = 0; k < count; k++) {
        if (ids[k] < 0 || ids[k] >= embedding->vocabulary)
            return id_refused(call, k, ids[k], error);
        if (y != NULL)
            memcpy(y + k * embedding->size, table + ids[k] * embedding->size,
                   bytes);
    }
    return CELLGATE_OK;
}
