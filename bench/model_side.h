/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_side.h: a row as an application runs it, a model file through
 * cellgate.h, on the device and variant that the core chooses.
 */
#ifndef BENCH_MODEL_SIDE_H
#define BENCH_MODEL_SIDE_H

#include "bench/sides.h"

/*
 * `model` computes the row; the result is batch-major. The side is named after
 * the device and variant of its last run. -1 with a sentence in `why`.
 */
int bench_model(struct bench_side *side, const struct bench_data *data,
                const char *config, const char *model, char *why, size_t size);

#endif /* BENCH_MODEL_SIDE_H */
