/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cellgate/chain.h"
#include "plugins/cuda/segment.h"

/* The largest size of one axis: kernels count in 32 bits. */
#define SIZE_MOST (((int64_t)1 << 28) - 1)

cellgate_status cud_segment_check(const cellgate_segment *segment,
                                  cellgate_error *error)
{
    return cellgate_chain_check(segment, SIZE_MOST, error);
}

cellgate_status cud_shape_read(const cellgate_shape *given,
                               cellgate_shape *shape, cellgate_error *error)
{
    cellgate_status status =
        cellgate_shape_read(given, SIZE_MOST, shape, error);

    if (status == CELLGATE_OK && shape->batch * (shape->steps + 1) > SIZE_MOST)
        return cellgate_refuse(error, CELLGATE_REASON_SHAPE,
                               "batch %lld times steps %lld is not below 2^28",
                               (long long)shape->batch,
                               (long long)shape->steps);
    return status;
}
