/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/openmp/vec_scalar.h"
#define KERNELS_TABLE cpu_kernels_scalar
#define KERNELS_NAME "scalar"
#include "plugins/openmp/kernels.h"
