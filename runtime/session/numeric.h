/* SPDX-License-Identifier: Apache-2.0 */
/* How exact the numeric classes of variants are. */
#ifndef CELLGATE_RUNTIME_SESSION_NUMERIC_H
#define CELLGATE_RUNTIME_SESSION_NUMERIC_H

#include <stdint.h>

/* What may differ from the host ops, relative to the largest magnitude, as
   cellgate_selftest_result says; a number that is none is taken as f32. */
double cg_numeric_tolerance(int32_t numeric);

#endif
