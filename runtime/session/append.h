/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of a limited size, put together piece by piece. */
#ifndef CELLGATE_RUNTIME_SESSION_APPEND_H
#define CELLGATE_RUNTIME_SESSION_APPEND_H

#include <stddef.h>

#include "cellgate/plugin.h"

/* Behind what the text says already; what does not fit is cut. */
CELLGATE_PRINTF_LIKE(3, 4)
void cg_append(char *text, size_t size, const char *format, ...);

#endif
