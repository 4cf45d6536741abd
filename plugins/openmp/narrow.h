/* SPDX-License-Identifier: Apache-2.0 */
/*
 * narrow.h: the types that weights are kept in. The arithmetic is float32 in
 * all of them: a weight is widened as it is read, so a narrower one saves
 * bytes, where reading the weights is what takes the time.
 *
 *   float32  as given
 *   float16  to nearest; off by at most 2^-11 of itself, or by 2^-25 below
 *            2^-14
 *   int8     round(w / s), s the largest magnitude of its column (one gate of
 *            one unit) over 127; off by at most s/2
 */
#ifndef CELLGATE_OPENMP_NARROW_H
#define CELLGATE_OPENMP_NARROW_H

#include <stddef.h>
#include <stdint.h>

#include "cellgate/plugin.h"

/* As the ABI numbers packs. */
enum cpu_pack { CPU_PACK_F32, CPU_PACK_F16, CPU_PACK_INT8, CPU_PACKS };

/* Bytes a weight. */
size_t cpu_weight_size(enum cpu_pack pack);

/* What variants of the pack say of themselves: a cellgate_numeric, and what
   their names end with. */
int32_t cpu_pack_numeric(enum cpu_pack pack);
const char *cpu_pack_suffix(enum cpu_pack pack);

/* To nearest, ties to even; beyond the largest finite one infinity. */
uint16_t cpu_to_f16(float x);

/* Writes `count` weights in the pack's type; `per` has 1 / scale of each, and
   is not read but for int8. */
void cpu_narrow(enum cpu_pack pack, const float *weights, int64_t count,
                const float *per, void *to);

/* Whether the type can hold all of these weights of op `op`; else UNSUPPORTED:
   float16 ends at 65504, and int8 has neither NaN nor infinity. */
cellgate_status cpu_narrow_check(enum cpu_pack pack, uint32_t op,
                                 const float *weights, int64_t count,
                                 cellgate_error *error);

#endif /* CELLGATE_OPENMP_NARROW_H */
