/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the file, stretched over axes of the input. */
#include "config.h"

#include "runtime/formats/keras_trailing.h"

/* The number of an array that stands at `at` of `extents` if it is stretched
   over them, aligned at the last axis. */
static double stretched(const cg_keras_numbers *numbers,
                        const cg_extents *extents, int64_t at)
{
    int64_t index = 0, size = 1;

    for (int32_t i = 1; i <= numbers->shape.count; i++) {
        const int64_t extent = extents->extent[extents->count - i];
        const int64_t own = numbers->shape.extent[numbers->shape.count - i];

        if (own != 1)
            index += at % extent * size;
        size *= own;
        at /= extent;
    }
    return numbers->items[index];
}

bool cg_keras_stretch(cg_extents *extents, const cg_keras_numbers *numbers)
{
    const cg_extents *shape = &numbers->shape;
    cg_extents wide = { .count = extents->count > shape->count ? extents->count
                                                               : shape->count };

    for (int32_t i = 1; i <= wide.count; i++) {
        const int64_t one =
            i <= extents->count ? extents->extent[extents->count - i] : 1;
        const int64_t other =
            i <= shape->count ? shape->extent[shape->count - i] : 1;

        if (one != other && one != 1 && other != 1)
            return false;
        wide.extent[wide.count - i] = one != 1 ? one : other;
    }
    *extents = wide;
    return true;
}

int64_t cg_keras_product(const cg_extents *extents)
{
    int64_t elements = 1;

    for (int32_t i = 0; i < extents->count; i++)
        if (elements <= CG_MAX_SIZE)
            elements *= extents->extent[i];
    return elements;
}

cellgate_status cg_keras_stretch_weight(const cg_keras_layer *layer,
                                        const char *name,
                                        const cg_keras_numbers *numbers,
                                        const cg_extents *extents,
                                        const float **data,
                                        cellgate_error *error)
{
    const int64_t count = cg_keras_product(extents);
    float *made = NULL;
    bool fresh;
    cellgate_status status;

    if (count > CG_MAX_SIZE)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "'%s' stretches to too many numbers", name);
    status = cg_keras_derive(layer, name, (size_t)count, &made, &fresh, error);
    for (int64_t i = 0; status == CELLGATE_OK && fresh && i < count; i++)
        made[i] = (float)stretched(numbers, extents, i);
    *data = made;
    return status;
}
