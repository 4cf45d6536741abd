/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/openmp/vec_neon.h"
#define KERNELS_TABLE cpu_kernels_neon
#define KERNELS_NAME "neon"
#include "plugins/openmp/kernels.h"
