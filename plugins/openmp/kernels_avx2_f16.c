/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/openmp/vec_avx2.h"
#define KERNELS_TABLE cpu_kernels_avx2_f16
#define KERNELS_NAME "avx2"
#define WEIGHTS_F16
#include "plugins/openmp/kernels.h"
