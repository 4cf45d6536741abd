/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/source.h"

/* A file's name may hold '=' and ':', so what exists is taken whole. */
cellgate_status cli_source_split(cli_source *source, const char *text,
                                 cellgate_error *error)
{
    const char *equals = strchr(text, '=');
    const char *slash = strchr(text, '/');
    char *colon;

    if (equals != NULL && equals != text && access(text, F_OK) != 0 &&
        (slash == NULL || equals < slash)) {
        source->name = strndup(text, (size_t)(equals - text));
        if (source->name == NULL)
            return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
        text = equals + 1;
    }
    source->file = strdup(text);
    if (source->file == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    colon = strrchr(source->file, ':');
    if (colon != NULL && access(source->file, F_OK) != 0) {
        *colon = '\0';
        source->array = strdup(colon + 1);
        if (source->array == NULL)
            return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    }
    return CELLGATE_OK;
}

cellgate_status cli_source_init(cli_source *source, const char *text,
                                cellgate_error *error)
{
    cellgate_status status;

    memset(source, 0, sizeof *source);
    status = cli_source_split(source, text, error);
    if (status == CELLGATE_OK)
        status = cellgate_arrays_read(source->file, &source->arrays, error);
    if (status != CELLGATE_OK)
        cli_source_finish(source);
    return status;
}

void cli_source_finish(cli_source *source)
{
    free(source->name);
    free(source->file);
    free(source->array);
    cellgate_arrays_destroy(source->arrays);
    memset(source, 0, sizeof *source);
}

static void list_names(const cellgate_arrays *arrays, char *text, size_t size)
{
    cellgate_tensor tensor = { .struct_size = sizeof tensor };
    const char *name;
    size_t i, used = 0;

    text[0] = '\0';
    for (i = 0; used < size &&
                cellgate_arrays_get(arrays, i, &name, &tensor) == CELLGATE_OK;
         i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 i == 0 ? "" : ", ", name);
}

cellgate_status cli_source_tensor(const cli_source *source, const char *wanted,
                                  cellgate_tensor *tensor,
                                  cellgate_error *error)
{
    const char *asked = source->array != NULL ? source->array : wanted;
    cellgate_tensor found = { .struct_size = sizeof found };
    const char *name;
    char names[256];
    size_t i;

    for (i = 0;
         cellgate_arrays_get(source->arrays, i, &name, &found) == CELLGATE_OK;
         i++)
        if (asked != NULL && strcmp(name, asked) == 0) {
            *tensor = found;
            return CELLGATE_OK;
        }
    if (source->array == NULL && cellgate_arrays_count(source->arrays) == 1)
        return cellgate_arrays_get(source->arrays, 0, &name, tensor);
    list_names(source->arrays, names, sizeof names);
    if (source->array != NULL)
        return cli_error(error, CELLGATE_BAD_FILE,
                         "%s: there is no array '%s' in the file; it has: %s",
                         source->file, source->array, names);
    return cli_error(error, CELLGATE_BAD_FILE,
                     "%s: name one of its arrays as FILE:ARRAY; it has: %s",
                     source->file, names);
}

cellgate_status cli_no_such_value(const cellgate_model *model,
                                  cli_value_getter *get, const char *what,
                                  const char *name, cellgate_error *error)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    char names[300] = "";
    size_t i, used = 0;

    for (i = 0; used < sizeof names && get(model, i, &info) == CELLGATE_OK; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                 i == 0 ? "" : ", ", info.name);
    return cli_error(error, CELLGATE_INVALID,
                     "the model has no %s '%s'; it has: %s", what, name, names);
}

size_t cli_tensor_count(const cellgate_tensor *tensor)
{
    size_t count = 1;
    int32_t axis;

    for (axis = 0; axis < tensor->rank; axis++)
        count *= (size_t)tensor->shape[axis];
    return count;
}

/* Of an IEEE half: sign, 5 bits of exponent, 10 of fraction. */
static double half_value(uint16_t bits)
{
    const double sign = bits & 0x8000 ? -1 : 1;
    const int exponent = bits >> 10 & 0x1F, fraction = bits & 0x3FF;

    if (exponent == 0x1F)
        return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, -24);
    return sign * ldexp(0x400 + fraction, exponent - 25);
}

double cli_tensor_value(const cellgate_tensor *tensor, size_t index)
{
    switch (tensor->dtype) {
    case CELLGATE_F32:
        return (double)((const float *)tensor->data)[index];
    case CELLGATE_F64:
        return ((const double *)tensor->data)[index];
    case CELLGATE_F16:
        return half_value(((const uint16_t *)tensor->data)[index]);
    case CELLGATE_I32:
        return (double)((const int32_t *)tensor->data)[index];
    case CELLGATE_I64:
        return (double)((const int64_t *)tensor->data)[index];
    case CELLGATE_U8:
    case CELLGATE_BOOL:
        return (double)((const uint8_t *)tensor->data)[index];
    default:
        return (double)NAN; /* files hold no others */
    }
}
