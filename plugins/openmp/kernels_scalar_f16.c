/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/openmp/vec_scalar.h"
#define KERNELS_TABLE cpu_kernels_scalar_f16
#define KERNELS_NAME "scalar"
#define WEIGHTS_F16
#include "plugins/openmp/kernels.h"
