/* SPDX-License-Identifier: Apache-2.0 */
/* clblast_side.h: the peer of the OpenCL plugin. */
#ifndef BENCH_CLBLAST_SIDE_H
#define BENCH_CLBLAST_SIDE_H

#include "bench/sides.h"

/*
 * A loop over the steps of CLBlast's products and pointwise kernels, on device
 * `index` of all platforms together, as the plugin counts them. The input
 * products of all steps are one product, ahead of the loop; every upload and
 * download is part of a run. -1 with a sentence in `why`.
 */
int bench_clblast(struct bench_side *side, const struct bench_data *data,
                  uint32_t index, char *why, size_t size);

#endif /* BENCH_CLBLAST_SIDE_H */
