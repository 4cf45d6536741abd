/* SPDX-License-Identifier: Apache-2.0 */
/* What the descriptions of all kinds share. Private to describe*.c. */
#ifndef CELLGATE_RUNTIME_MODEL_DESCRIBE_H
#define CELLGATE_RUNTIME_MODEL_DESCRIBE_H

#include "runtime/model/kinds.h"

/* Adds to a text of `size` bytes, separated by ", "; what doesn't fit is cut.
 */
CELLGATE_PRINTF_LIKE(3, 4)
void cg_detail_append(char *text, size_t size, const char *format, ...);
void cg_detail_activation(char *text, size_t size,
                          const cellgate_activation *activation);

#endif
