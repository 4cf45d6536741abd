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

#endif
