/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/openmp/vec_avx512.h"
#define KERNELS_TABLE cpu_kernels_avx512_int8
#define KERNELS_NAME "avx512"
#define WEIGHTS_INT8
#include "plugins/openmp/kernels.h"
