/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request put together from files: the model's inputs with their lengths or
 * masks, and memory for its outputs.
 */
#ifndef CELLGATE_CLI_REQUEST_H
#define CELLGATE_CLI_REQUEST_H

#include "cellgate/cellgate.h"
#include "cli/source.h"

typedef struct cli_request {
    const cellgate_model *model;
    cellgate_request request;
    cellgate_input *inputs;
    cellgate_tensor *outputs;
    cli_source *sources; /* what the inputs point into */
    size_t source_count;
    int32_t **lengths; /* an input each, where given */
    uint8_t **masks;
    void **turned; /* data of an input whose file has steps first, or NULL */
} cli_request;

/* Empty inputs and outputs, room for so many sources. cli_request_finish()
   after a failure too. */
cellgate_status cli_request_allocate(cli_request *request,
                                     const cellgate_model *model,
                                     size_t sources, cellgate_error *error);

/* How many texts a NULL-terminated list has; none for NULL. */
size_t cli_list_length(char *const *list);
/* The model input of that name; INVALID lists those that there are. */
cellgate_status cli_find_input(const cellgate_model *model, const char *name,
                               size_t *index, cellgate_error *error);

/*
 * Each list is NULL-terminated, or NULL: [NAME=]FILE[:ARRAY] texts for inputs,
 * lengths and masks. Without NAME, inputs are taken in the model's order, and
 * lengths and masks belong to the first input. The caller finishes it.
 */
cellgate_status cli_request_init(cli_request *request,
                                 const cellgate_model *model,
                                 char *const *inputs, char *const *lengths,
                                 char *const *masks, cellgate_error *error);
/* Gives every output its shape and memory. */
cellgate_status cli_request_outputs(cli_request *request,
                                    const cellgate_session *session,
                                    cellgate_error *error);
void cli_request_finish(cli_request *request);

/* ---- turn.c: steps before rows ------------------------------------------ */

/* Puts the rows first in inputs that the model's file has the other way. */
cellgate_status cli_turn_inputs(cli_request *request, cellgate_error *error);
/* The other way round, of outputs, after the run. */
cellgate_status cli_turn_outputs(cli_request *request, cellgate_error *error);
/* UNSUPPORTED: the model has such inputs or outputs, and `what` takes none. */
cellgate_status cli_refuse_turned(const cellgate_model *model,
                                  const char *what, cellgate_error *error);

#endif
