/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/openmp/vec_avx2.h"
#define KERNELS_TABLE cpu_kernels_avx2
#define KERNELS_NAME "avx2"
#include "plugins/openmp/kernels.h"
