/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/openmp/vec_neon.h"
#define KERNELS_TABLE cpu_kernels_neon_int8
#define KERNELS_NAME "neon"
#define WEIGHTS_INT8
#include "plugins/openmp/kernels.h"
