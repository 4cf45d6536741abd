/* SPDX-License-Identifier: Apache-2.0 */
/* Which output of a model goes to which file. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/run.h"

/* NAME= counts only where the model has that output: a path may have any '='.
 */
static const char *split_target(const cellgate_model *model, const char *text,
                                size_t *index)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    const char *equals = strchr(text, '=');
    size_t i;

    for (i = 0; equals != NULL &&
                cellgate_model_output_get(model, i, &info) == CELLGATE_OK;
         i++)
        if (strlen(info.name) == (size_t)(equals - text) &&
            memcmp(info.name, text, (size_t)(equals - text)) == 0) {
            *index = i;
            return equals + 1;
        }
    return text;
}

cellgate_status cli_find_targets(const cellgate_model *model,
                                 char *const *outputs, const char **targets,
                                 cellgate_error *error)
{
    size_t i, count = cellgate_model_output_count(model);
    size_t given = cli_list_length(outputs);
    bool named = true;

    for (i = 0; i < given; i++) {
        size_t index = i;
        const char *path = split_target(model, outputs[i], &index);

        named = named && path != outputs[i];
        if (index >= count || targets[index] != NULL)
            return cli_error(error, CELLGATE_INVALID,
                             "--output %s: the model has %zu outputs, each "
                             "written once, as [NAME=]FILE.npy",
                             path, count);
        targets[index] = path;
    }
    if (given > 0 && given < count && !named)
        return cli_error(error, CELLGATE_INVALID,
                         "--output: the model has %zu outputs; give a .npz, a "
                         ".npy for each, or name those that are wanted: "
                         "NAME=FILE.npy",
                         count);
    return CELLGATE_OK;
}

static bool ends_in(const char *path, const char *end)
{
    size_t length = strlen(path), size = strlen(end);

    return length > size && strcmp(path + length - size, end) == 0;
}

bool cli_is_archive(char *const *outputs)
{
    return cli_list_length(outputs) == 1 && ends_in(outputs[0], ".npz");
}

cellgate_status cli_check_targets(const char *const *targets, size_t count,
                                  cellgate_error *error)
{
    size_t i;

    for (i = 0; i < count; i++)
        if (targets[i] != NULL && !ends_in(targets[i], ".npy"))
            return cli_error(error, CELLGATE_INVALID,
                             "--output %s: the name has to end in .npy, or in "
                             ".npz for all outputs in one file",
                             targets[i]);
    return CELLGATE_OK;
}
