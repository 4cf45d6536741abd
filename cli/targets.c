/* SPDX-License-Identifier: Apache-2.0 */
/* Which output of a model goes to which file. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/run.h"

static bool ends_in(const char *path, const char *end)
{
    size_t length = strlen(path), size = strlen(end);

    return length > size && strcmp(path + length - size, end) == 0;
}

/* "'a', 'b' and 7 more", as far as they fit. */
static void list_outputs(const cellgate_model *model, char *text, size_t size)
{
    const size_t count = cellgate_model_output_count(model);
    cellgate_value_info info = { .struct_size = sizeof info };
    size_t used = 0, i;

    text[0] = '\0';
    for (i = 0; i < count; i++) {
        cellgate_model_output_get(model, i, &info);
        if (used + strlen(info.name) + 32 > size)
            break;
        used += (size_t)snprintf(text + used, size - used, "%s'%s'",
                                 i > 0 ? ", " : "", info.name);
    }
    if (i < count)
        (void)snprintf(text + used, size - used, " and %zu more", count - i);
}

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

/* What looks like NAME= and is no output is a name misspelt sooner than a file
   of that name. */
static cellgate_status fail_target(const cellgate_model *model,
                                   const char *text, cellgate_error *error)
{
    const char *equals = strchr(text, '=');
    const char *slash = strchr(text, '/');
    char outputs[600];

    list_outputs(model, outputs, sizeof outputs);
    if (equals != NULL && (slash == NULL || slash > equals))
        return cli_error(error, CELLGATE_INVALID,
                         "--output %s: the model has no output '%.*s'; its "
                         "outputs are %s (a file of that name: ./%s)",
                         text, (int)(equals - text), text, outputs, text);
    return cli_error(error, CELLGATE_INVALID,
                     "--output %s: the model has %zu outputs, each written "
                     "once, as [NAME=]FILE.npy: %s",
                     text, cellgate_model_output_count(model), outputs);
}

/* One .npy for two outputs would keep the second alone; a .npz takes both. */
static cellgate_status check_shared(const char *const *targets, size_t count,
                                    cellgate_error *error)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; targets[i] != NULL && k < i; k++)
            if (targets[k] != NULL && strcmp(targets[k], targets[i]) == 0 &&
                !ends_in(targets[i], ".npz"))
                return cli_error(error, CELLGATE_INVALID,
                                 "--output %s: two outputs go there; name a "
                                 "file for each, or a .npz for both",
                                 targets[i]);
    return CELLGATE_OK;
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
        const char *equals = strchr(path, '=');
        const char *slash = strchr(path, '/');

        named = named && path != outputs[i];
        if (index >= count || targets[index] != NULL ||
            (path == outputs[i] && equals != NULL &&
             (slash == NULL || slash > equals)))
            return fail_target(model, outputs[i], error);
        targets[index] = path;
    }
    if (given > 0 && given < count && !named)
        return cli_error(error, CELLGATE_INVALID,
                         "--output: the model has %zu outputs; give a .npz, a "
                         ".npy for each, or name those that are wanted: "
                         "NAME=FILE.npy",
                         count);
    return check_shared(targets, count, error);
}

bool cli_is_archive(const cellgate_model *model, char *const *outputs)
{
    size_t index = 0;

    return cli_list_length(outputs) == 1 && ends_in(outputs[0], ".npz") &&
           split_target(model, outputs[0], &index) == outputs[0];
}

cellgate_status cli_check_targets(const char *const *targets, size_t count,
                                  cellgate_error *error)
{
    size_t i;

    for (i = 0; i < count; i++)
        if (targets[i] != NULL && !ends_in(targets[i], ".npy") &&
            !ends_in(targets[i], ".npz"))
            return cli_error(error, CELLGATE_INVALID,
                             "--output %s: the name has to end in .npy, or in "
                             ".npz for all or several outputs in one file",
                             targets[i]);
    return CELLGATE_OK;
}
