/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/compare.h"
#include "cli/source.h"

cellgate_status cli_find_output(const cellgate_model *model, const char *name,
                                size_t *index, cellgate_error *error)
{
    cellgate_value_info info = { .struct_size = sizeof info };

    for (*index = 0;
         cellgate_model_output_get(model, *index, &info) == CELLGATE_OK;
         ++*index)
        if (strcmp(info.name, name) == 0)
            return CELLGATE_OK;
    return cli_no_such_value(model, cellgate_model_output_get, "output", name,
                             error);
}

static bool same_shape(const cellgate_tensor *a, const cellgate_tensor *b)
{
    int32_t axis;

    for (axis = 0; axis < a->rank && a->rank == b->rank; axis++)
        if (a->shape[axis] != b->shape[axis])
            return false;
    return a->rank == b->rank;
}

cellgate_status cli_compare_check(const char *file, const char *name,
                                  const cellgate_tensor *output,
                                  const cellgate_tensor *expected,
                                  cellgate_error *error)
{
    char got[160], wanted[160];

    if (same_shape(output, expected))
        return CELLGATE_OK;
    cli_shape_text(got, sizeof got, output->rank, output->shape);
    cli_shape_text(wanted, sizeof wanted, expected->rank, expected->shape);
    return cli_error(error, CELLGATE_BAD_SHAPE,
                     "%s: the array has shape %s; output '%s', which is to be "
                     "compared with it, has %s",
                     file, wanted, name, got);
}

static double difference(double output, double expected)
{
    if (isnan(output) && isnan(expected))
        return 0;
    if (isnan(output) || isnan(expected))
        return INFINITY;
    return output == expected ? 0 : fabs(output - expected);
}

void cli_compare_tensors(const cellgate_tensor *output,
                         const cellgate_tensor *expected,
                         cli_comparison *result)
{
    size_t i, count = cli_tensor_count(output);

    for (i = 0; i < count; i++) {
        double value = cli_tensor_value(expected, i);

        result->largest = fmax(result->largest,
                               difference(cli_tensor_value(output, i), value));
        if (!isnan(value))
            result->magnitude = fmax(result->magnitude, fabs(value));
    }
    if (result->largest > 0)
        result->relative = result->largest / result->magnitude;
}

void cli_compare_keep_worst(const cli_comparison *comparison,
                            cli_comparison *worst)
{
    if (!(comparison->relative <= worst->relative) || worst->magnitude == 0)
        *worst = *comparison;
}

static cellgate_status compare_one(const cellgate_model *model,
                                   const cellgate_tensor *outputs,
                                   const char *text, size_t place,
                                   cli_comparison *worst, cellgate_error *error)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    cellgate_tensor expected = { .struct_size = sizeof expected };
    cli_comparison comparison = { 0 };
    cli_source source;
    cellgate_status status;

    status = cli_source_init(&source, text, error);
    if (status != CELLGATE_OK)
        return status;
    if (source.name != NULL)
        status = cli_find_output(model, source.name, &place, error);
    if (status == CELLGATE_OK &&
        cellgate_model_output_get(model, place, &info) != CELLGATE_OK)
        status =
            cli_error(error, CELLGATE_INVALID,
                      "%s: more is to be compared than the model has outputs",
                      source.file);
    if (status == CELLGATE_OK)
        status = cli_source_tensor(&source, info.name, &expected, error);
    if (status == CELLGATE_OK)
        status = cli_compare_check(source.file, info.name, &outputs[place],
                                   &expected, error);
    if (status == CELLGATE_OK) {
        cli_compare_tensors(&outputs[place], &expected, &comparison);
        cli_compare_keep_worst(&comparison, worst);
    }
    cli_source_finish(&source);
    return status;
}

cellgate_status cli_compare(const cellgate_model *model,
                            const cellgate_tensor *outputs, char *const *list,
                            cli_comparison *worst, cellgate_error *error)
{
    cli_comparison result = { 0 };
    size_t i;

    for (i = 0; list[i] != NULL; i++) {
        cellgate_status status =
            compare_one(model, outputs, list[i], i, &result, error);

        if (status != CELLGATE_OK)
            return status;
    }
    *worst = result;
    return CELLGATE_OK;
}
