/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of a run's outputs with stored ones. */
#ifndef CELLGATE_CLI_COMPARE_H
#define CELLGATE_CLI_COMPARE_H

#include "cellgate/cellgate.h"

typedef struct cli_comparison {
    double largest;   /* of |output - expected|; infinity where only one of
                         them is NaN */
    double magnitude; /* the largest |expected| */
    double relative;  /* largest / magnitude; 0 where both are 0 */
} cli_comparison;

/*
 * Compares outputs with those that `list` names ([NAME=]FILE[:ARRAY], in order
 * without NAME, NULL-terminated): the worst relative one goes to *worst.
 */
cellgate_status cli_compare(const cellgate_model *model,
                            const cellgate_tensor *outputs, char *const *list,
                            cli_comparison *worst, cellgate_error *error);

/* The parts of it, for arrays that are compared in pieces: */

/* The model output of that name; INVALID lists those that there are. */
cellgate_status cli_find_output(const cellgate_model *model, const char *name,
                                size_t *index, cellgate_error *error);
/* BAD_SHAPE: the array in the file has another shape than the output. */
cellgate_status cli_compare_check(const char *file, const char *name,
                                  const cellgate_tensor *output,
                                  const cellgate_tensor *expected,
                                  cellgate_error *error);
/* Adds tensors of one shape to a comparison, which is all zeros at first. */
void cli_compare_tensors(const cellgate_tensor *output,
                         const cellgate_tensor *expected,
                         cli_comparison *result);
/* Of the outputs of a model; *worst is all zeros at first. */
void cli_compare_keep_worst(const cli_comparison *comparison,
                            cli_comparison *worst);

#endif
