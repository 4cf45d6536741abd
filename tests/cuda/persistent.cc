/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/executor_cuda.h"

#include "plugins/cuda/kernels/persistent.cu"
