/* SPDX-License-Identifier: Apache-2.0 */
/* A model made of a part of another one's nodes. */
#ifndef CELLGATE_RUNTIME_GENERATE_PART_MODEL_H
#define CELLGATE_RUNTIME_GENERATE_PART_MODEL_H

#include "runtime/model/model.h"

/* A model in the making, and which of its values stands for which of the whole
   one's: CG_NO_VALUE where none does. */
typedef struct cg_part_model {
    const cellgate_model *whole;
    cellgate_model *model;
    int32_t *values; /* [whole->value_count] */
} cg_part_model;

cellgate_status cg_part_begin(cg_part_model *part, const cellgate_model *whole,
                              cellgate_error *error);
/* Gives up what is left of it. */
void cg_part_end(cg_part_model *part);

/* An input in the place of a value of the whole model, of its shape, or of the
   given one. Its optional mask stands for `mask`, unless that's CG_NO_VALUE. */
cellgate_status cg_part_input(cg_part_model *part, int32_t value, int32_t mask,
                              const int64_t *shape, cellgate_error *error);
/* The value that stands for one that a node of the part makes. */
cellgate_status cg_part_value(cg_part_model *part, int32_t value, int32_t *made,
                              cellgate_error *error);
/* A node with its weights, whose inputs and outputs stand for the whole's, but
   for those that `inputs` and `outputs` name (NULL: none; entries that are
   CG_NO_VALUE: as the whole's). */
cellgate_status cg_part_node(cg_part_model *part, const cg_node *node,
                             const int32_t *inputs, const int32_t *outputs,
                             cellgate_error *error);
cellgate_status cg_part_output(cg_part_model *part, int32_t value,
                               cellgate_error *error);

#endif
