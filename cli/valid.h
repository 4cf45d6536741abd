/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths and masks, from arrays of any type to what a request takes. */
#ifndef CELLGATE_CLI_VALID_H
#define CELLGATE_CLI_VALID_H

#include "cellgate/cellgate.h"

/*
 * Whether an array with the first `rank` axes of the input it belongs to is
 * given: 1 for lengths, 2 for a mask. `what` names it in BAD_SHAPE's text.
 */
cellgate_status cli_valid_check(const char *file, const cellgate_tensor *given,
                                const cellgate_tensor *input, int32_t rank,
                                const char *what, cellgate_error *error);

/* malloc'ed; `first` is the file's row that the tensor begins with. */
cellgate_status cli_valid_lengths(const cellgate_tensor *tensor,
                                  const char *file, int64_t first,
                                  int32_t **lengths, cellgate_error *error);
cellgate_status cli_valid_mask(const cellgate_tensor *tensor, uint8_t **mask,
                               cellgate_error *error);
/* INVALID: no layer of the model looks at `what`, "lengths" or "a mask", of
   that input; the text says if that is since it finds masked steps itself. */
cellgate_status cli_valid_wanted(const cellgate_model *model, size_t input,
                                 const char *what, cellgate_error *error);

#endif
