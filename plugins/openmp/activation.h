/* SPDX-License-Identifier: Apache-2.0 */
/* activation.h: one activation of one float, with the C library's functions. */
#ifndef CELLGATE_OPENMP_ACTIVATION_H
#define CELLGATE_OPENMP_ACTIVATION_H

#include "cellgate/types.h"

/*
 * Every kind that types.h lists, within a few units in the last place. The
 * kernels use it, lane by lane, for the kinds that they have no vector code
 * for.
 */
float cpu_activation(const cellgate_activation *activation, float x);

#endif /* CELLGATE_OPENMP_ACTIVATION_H */
