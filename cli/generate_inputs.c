/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/generate.h"
#include "cli/request.h"
#include "cli/valid.h"

/* Reads one array; the tensor's data live as `brought` does. */
static cellgate_status take(cli_brought *brought, const char *text,
                            cellgate_tensor *tensor, const char **name,
                            cellgate_error *error)
{
    cli_source *source = &brought->sources[brought->source_count];
    cellgate_status status = cli_source_init(source, text, error);

    if (status != CELLGATE_OK)
        return status;
    brought->source_count++;
    *name = source->name;
    tensor->struct_size = sizeof *tensor;
    return cli_source_tensor(source, NULL, tensor, error);
}

/* The input of that name, or, without one, the first that has no data. */
static cellgate_status place(const cli_brought *brought,
                             const cellgate_generator *generator,
                             const char *name, size_t *index,
                             cellgate_error *error)
{
    cellgate_value_info info = { .struct_size = sizeof info };

    for (*index = 0; *index < brought->count; ++*index) {
        cellgate_generator_input_get(generator, *index, &info);
        if (name != NULL ? strcmp(info.name, name) == 0
                         : brought->inputs[*index].tensor.data == NULL)
            return CELLGATE_OK;
    }
    if (name != NULL)
        return cli_error(error, CELLGATE_INVALID,
                         "there is no input '%s' to bring", name);
    return cli_error(error, CELLGATE_INVALID,
                     "more inputs are given than there are to bring (%zu)",
                     brought->count);
}

static cellgate_status take_input(cli_brought *brought,
                                  const cellgate_generator *generator,
                                  const char *text, cellgate_error *error)
{
    cellgate_tensor tensor;
    const char *name = NULL;
    size_t index;
    cellgate_status status = take(brought, text, &tensor, &name, error);

    if (status == CELLGATE_OK)
        status = place(brought, generator, name, &index, error);
    if (status != CELLGATE_OK)
        return status;
    if (brought->inputs[index].tensor.data != NULL)
        return cli_error(error, CELLGATE_INVALID, "input '%s' is given twice",
                         name);
    brought->inputs[index].tensor = tensor;
    return CELLGATE_OK;
}

static cellgate_status take_lengths(cli_brought *brought, const char *text,
                                    const cellgate_generator *generator,
                                    bool prompt, cellgate_error *error)
{
    cellgate_tensor tensor;
    const char *name = NULL;
    cellgate_input *input = &brought->prompt;
    size_t index = brought->count;
    cellgate_status status = take(brought, text, &tensor, &name, error);

    if (status == CELLGATE_OK && !prompt) {
        index = 0;
        if (name != NULL || brought->count == 0)
            status = place(brought, generator, name != NULL ? name : "", &index,
                           error);
        input = &brought->inputs[index];
    }
    if (status == CELLGATE_OK && brought->lengths[index] != NULL)
        status = cli_error(error, CELLGATE_INVALID,
                           "%s: lengths of this input are given already", text);
    if (status == CELLGATE_OK)
        status =
            cli_valid_check(text, &tensor, &input->tensor, 1, "lengths", error);
    if (status == CELLGATE_OK)
        status = cli_valid_lengths(&tensor, text, 0, &brought->lengths[index],
                                   error);
    if (status == CELLGATE_OK)
        input->lengths = brought->lengths[index];
    return status;
}

static cellgate_status check_complete(const cli_brought *brought,
                                      const cellgate_generator *generator,
                                      cellgate_error *error)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    size_t i;

    for (i = 0; i < brought->count; i++) {
        cellgate_generator_input_get(generator, i, &info);
        if (brought->inputs[i].tensor.data == NULL)
            return cli_error(error, CELLGATE_INVALID,
                             "input '%s' is missing; give it with --input "
                             "%s=FILE",
                             info.name, info.name);
    }
    return CELLGATE_OK;
}

static cellgate_status allocate(cli_brought *brought, size_t sources,
                                cellgate_error *error)
{
    size_t i;

    brought->inputs = calloc(brought->count + 1, sizeof *brought->inputs);
    brought->lengths = calloc(brought->count + 1, sizeof *brought->lengths);
    brought->sources = calloc(sources, sizeof *brought->sources);
    if (brought->inputs == NULL || brought->lengths == NULL ||
        brought->sources == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    for (i = 0; i < brought->count; i++) {
        brought->inputs[i].struct_size = sizeof brought->inputs[i];
        brought->inputs[i].tensor.struct_size = sizeof(cellgate_tensor);
    }
    brought->prompt.struct_size = sizeof brought->prompt;
    return CELLGATE_OK;
}

cellgate_status cli_brought_init(cli_brought *brought,
                                 const cellgate_generator *generator,
                                 char *const *inputs, char *const *lengths,
                                 const char *prompt, const char *prompt_lengths,
                                 cellgate_error *error)
{
    const char *name;
    cellgate_status status;
    size_t i;

    memset(brought, 0, sizeof *brought);
    brought->count = cellgate_generator_input_count(generator);
    status = allocate(
        brought, cli_list_length(inputs) + cli_list_length(lengths) + 2, error);
    for (i = 0; status == CELLGATE_OK && i < cli_list_length(inputs); i++)
        status = take_input(brought, generator, inputs[i], error);
    if (status == CELLGATE_OK)
        status = check_complete(brought, generator, error);
    for (i = 0; status == CELLGATE_OK && i < cli_list_length(lengths); i++)
        status = take_lengths(brought, lengths[i], generator, false, error);
    if (status == CELLGATE_OK && prompt != NULL)
        status = take(brought, prompt, &brought->prompt.tensor, &name, error);
    if (status == CELLGATE_OK && prompt_lengths != NULL)
        status = take_lengths(brought, prompt_lengths, generator, true, error);
    return status;
}

void cli_brought_finish(cli_brought *brought)
{
    size_t i;

    for (i = 0; brought->lengths != NULL && i <= brought->count; i++)
        free(brought->lengths[i]);
    for (i = 0; i < brought->source_count; i++)
        cli_source_finish(&brought->sources[i]);
    free(brought->inputs);
    free(brought->lengths);
    free(brought->sources);
}
