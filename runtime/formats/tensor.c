/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/tensor.h"

#include <stdlib.h>

#include "cellgate/cellgate.h"

int cg_tensor_size(const cellgate_tensor *tensor, size_t *elements,
                   size_t *bytes)
{
    size_t item = cellgate_dtype_size(tensor->dtype);
    size_t product = 1;
    int empty = 0;

    if (item == 0 || tensor->rank < 0 || tensor->rank > CELLGATE_MAX_RANK)
        return 0;
    for (int32_t axis = 0; axis < tensor->rank; axis++) {
        int64_t extent = tensor->shape[axis];
        if (extent < 0)
            return 0;
        if (extent == 0)
            empty = 1;
        else if ((uint64_t)extent > (uint64_t)PTRDIFF_MAX / item / product)
            return 0;
        else
            product *= (size_t)extent;
    }
    if (empty)
        product = 0;
    if (elements != NULL)
        *elements = product;
    if (bytes != NULL)
        *bytes = product * item;
    return 1;
}

void *cg_tensor_allocate(size_t bytes)
{
    const size_t alignment = CG_TENSOR_ALIGNMENT;

    if (bytes > SIZE_MAX - alignment)
        return NULL;
    if (bytes == 0)
        bytes = 1;
    return aligned_alloc(alignment, (bytes + alignment - 1) & ~(alignment - 1));
}
