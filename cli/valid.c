/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

/* A node that finds masked steps by itself. */
static bool find_masking(const cellgate_model *model, cellgate_node_info *node)
{
    size_t i;

    node->struct_size = sizeof *node;
    for (i = 0; cellgate_model_node_get(model, i, node) == CELLGATE_OK; i++)
        if (strcmp(node->kind, "not_equal") == 0 ||
            strcmp(node->kind, "nonzero") == 0)
            return true;
    return false;
}

cellgate_status cli_valid_wanted(const cellgate_model *model, size_t input,
                                 const char *what, cellgate_error *error)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    cellgate_node_info node;

    if (cellgate_model_input_get(model, input, &info) == CELLGATE_OK &&
        info.takes_mask)
        return CELLGATE_OK;
    if (find_masking(model, &node))
        return cli_error(error, CELLGATE_INVALID,
                         "no layer of the model would look at %s of input "
                         "'%s': it finds the padding itself (%s), by its "
                         "values; leave the option away",
                         what, info.name, node.name);
    return cli_error(error, CELLGATE_INVALID,
                     "no layer of the model would look at %s of input '%s'",
                     what, info.name);
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
