/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of a request that is only asked about. */
#ifndef CELLGATE_RUNTIME_SESSION_EXPLAIN_SHAPES_H
#define CELLGATE_RUNTIME_SESSION_EXPLAIN_SHAPES_H

#include "runtime/session/call.h"

/*
 * Fills the shapes of every value for inputs of so many rows and steps. *steps:
 * those of the first input, 0 where it has none. BAD_SHAPE: the model has no
 * request of that shape.
 */
cellgate_status cg_explain_shapes(const cg_graph *graph,
                                  const cellgate_question *question,
                                  cg_shape *shapes, int64_t *steps,
                                  cellgate_error *error);
/* An input of so many rows and steps, without data. */
void cg_explain_input(const cg_value *value, const cellgate_question *question,
                      cellgate_input *input);
/* Whether requests decide how many steps some input has. */
bool cg_explain_free_steps(const cellgate_model *model);
/* Whether some input takes lengths. */
bool cg_explain_takes_lengths(const cellgate_model *model);

#endif
