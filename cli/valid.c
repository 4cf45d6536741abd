/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/source.h"
#include "cli/valid.h"

/* The run checks them against the number of steps. */
cellgate_status cli_valid_lengths(const cellgate_tensor *tensor,
                                  const char *file, int64_t first,
                                  int32_t **lengths, cellgate_error *error)
{
    size_t i, count = cli_tensor_count(tensor);
    int32_t *made = malloc((count + 1) * sizeof *made);

    if (made == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    for (i = 0; i < count; i++) {
        double value = cli_tensor_value(tensor, i);

        if (!(value >= 0 && value <= INT32_MAX) || value != (int32_t)value) {
            free(made);
            return cli_error(error, CELLGATE_OUT_OF_RANGE,
                             "%s: the length of row %" PRId64
                             " is %.9g; it must be a "
                             "number of steps",
                             file, first + (int64_t)i, value);
        }
        made[i] = (int32_t)value;
    }
    *lengths = made;
    return CELLGATE_OK;
}

cellgate_status cli_valid_mask(const cellgate_tensor *tensor, uint8_t **mask,
                               cellgate_error *error)
{
    size_t i, count = cli_tensor_count(tensor);

    *mask = malloc(count + 1);
    if (*mask == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    for (i = 0; i < count; i++)
        (*mask)[i] = cli_tensor_value(tensor, i) != 0;
    return CELLGATE_OK;
}

cellgate_status cli_valid_check(const char *file, const cellgate_tensor *given,
                                const cellgate_tensor *input, int32_t rank,
                                const char *what, cellgate_error *error)
{
    char got[160], whole[160], wanted[160];
    int32_t axis;
    bool fits = given->rank == rank && input->rank >= rank;

    for (axis = 0; fits && axis < rank; axis++)
        fits = given->shape[axis] == input->shape[axis];
    if (fits)
        return CELLGATE_OK;
    cli_shape_text(got, sizeof got, given->rank, given->shape);
    cli_shape_text(whole, sizeof whole, input->rank, input->shape);
    if (input->rank < rank)
        return cli_error(error, CELLGATE_BAD_SHAPE,
                         "%s: %s cannot be given for an input of shape %s, "
                         "which has no steps",
                         file, what, whole);
    cli_shape_text(wanted, sizeof wanted, rank, input->shape);
    return cli_error(error, CELLGATE_BAD_SHAPE,
                     "%s: %s of shape %s for an input of shape %s; it must be "
                     "%s",
                     file, what, got, whole, wanted);
}
