/* SPDX-License-Identifier: Apache-2.0 */
/* `run --state-in --state-out`: the state of recurrent layers between calls. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run.h"

/* The name of a state in the archive: "lstm.h"; malloc'ed. */
static char *state_name(const cellgate_stream *stream, size_t index)
{
    cellgate_state_info info = { .struct_size = sizeof info };
    size_t size;
    char *name;

    cellgate_stream_state_get(stream, index, &info);
    size = strlen(info.name) + strlen(info.state) + 2;
    name = malloc(size);
    if (name != NULL)
        snprintf(name, size, "%s.%s", info.name, info.state);
    return name;
}

static bool find_state(const cellgate_arrays *arrays, const char *wanted,
                       cellgate_tensor *tensor)
{
    const char *name;
    size_t i;

    tensor->struct_size = sizeof *tensor;
    for (i = 0; cellgate_arrays_get(arrays, i, &name, tensor) == CELLGATE_OK;
         i++)
        if (strcmp(name, wanted) == 0)
            return true;
    return false;
}

static cellgate_status read_state(const run_state *state, const char *path,
                                  const cellgate_arrays *arrays, size_t index,
                                  cellgate_error *error)
{
    cellgate_error cause = CELLGATE_ERROR_INIT;
    cellgate_tensor tensor;
    char *name = state_name(state->stream, index);
    cellgate_status status;

    if (name == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    if (!find_state(arrays, name, &tensor)) {
        status = cli_error(error, CELLGATE_BAD_FILE,
                           "%s: there is no array '%s' in the file, which the "
                           "model needs; --state-out writes what it takes",
                           path, name);
    } else {
        status = cellgate_stream_import(state->stream, index, &tensor, &cause);
        if (status != CELLGATE_OK)
            cli_error(error, status, "%s, '%s': %.400s", path, name,
                      cause.text);
    }
    free(name);
    return status;
}

static cellgate_status read_states(const run_state *state, const char *path,
                                   cellgate_error *error)
{
    cellgate_arrays *arrays = NULL;
    cellgate_status status = cellgate_arrays_read(path, &arrays, error);
    size_t i, count = cellgate_stream_state_count(state->stream);

    for (i = 0; status == CELLGATE_OK && i < count; i++)
        status = read_state(state, path, arrays, i, error);
    if (status == CELLGATE_OK && cellgate_arrays_count(arrays) != count)
        status = cli_error(error, CELLGATE_BAD_FILE,
                           "%s: it has %zu arrays; the model has %zu states",
                           path, cellgate_arrays_count(arrays), count);
    cellgate_arrays_destroy(arrays);
    return status;
}

cellgate_status cli_states_begin(run_state *state, const run_options *options,
                                 cellgate_error *error)
{
    cellgate_status status;

    if (options->state_in == NULL && options->state_out == NULL)
        return CELLGATE_OK;
    status = cellgate_stream_create(state->session,
                                    state->request.inputs[0].tensor.shape[0],
                                    &state->stream, error);
    if (status != CELLGATE_OK)
        return status;
    if (cellgate_stream_state_count(state->stream) == 0)
        return cli_error(error, CELLGATE_INVALID,
                         "no layer of the model has a state to keep");
    state->request.request.stream = state->stream;
    return options->state_in != NULL
               ? read_states(state, options->state_in, error)
               : CELLGATE_OK;
}

/* One state, in memory of its own. */
static cellgate_status export_state(const run_state *state, size_t index,
                                    char **name, cellgate_tensor *tensor,
                                    cellgate_error *error)
{
    *name = state_name(state->stream, index);
    tensor->struct_size = sizeof *tensor;
    cellgate_stream_state_shape(state->stream, index, tensor);
    tensor->data = malloc(cli_tensor_count(tensor) * sizeof(float) + 1);
    if (*name == NULL || tensor->data == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    return cellgate_stream_export(state->stream, index, tensor, error);
}

cellgate_status cli_states_end(const run_state *state,
                               const run_options *options,
                               cellgate_error *error)
{
    size_t i, count;
    char **names;
    cellgate_tensor *tensors;
    cellgate_status status = CELLGATE_OK;

    if (options->state_out == NULL)
        return CELLGATE_OK;
    count = cellgate_stream_state_count(state->stream);
    names = calloc(count, sizeof *names);
    tensors = calloc(count, sizeof *tensors);
    if (names == NULL || tensors == NULL)
        status = cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    for (i = 0; status == CELLGATE_OK && i < count; i++)
        status = export_state(state, i, &names[i], &tensors[i], error);
    if (status == CELLGATE_OK)
        status = cellgate_arrays_write(options->state_out,
                                       (const char *const *)names, tensors,
                                       count, error);
    for (i = 0; names != NULL && tensors != NULL && i < count; i++) {
        free(names[i]);
        free(tensors[i].data);
    }
    free(names);
    free(tensors);
    return status;
}
