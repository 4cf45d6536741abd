/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the element types that users bring to the two that models compute with:
 * float32, and int32 for ids. Nothing here allocates; any thread.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_CONVERT_H
#define CELLGATE_RUNTIME_FORMATS_CONVERT_H

#include "cellgate/types.h"

/*
 * The value of a 16-bit pattern: IEEE 754 binary16, and bfloat16 (the upper
 * half of a binary32). Both are exact; a NaN keeps its sign and payload.
 */
float cg_half_to_float(uint16_t bits);
float cg_bfloat16_to_float(uint16_t bits);

/*
 * Every element as float32, in the tensor's order; `out` has room for all of
 * them and does not overlap the tensor. Rounds to nearest. A bool is 0 or 1,
 * whatever its byte. Infinities and NaNs pass. OUT_OF_RANGE: a finite float64
 * beyond float32's range; the text gives it and its place. INVALID: the
 * tensor's shape or dtype is none. After an error `out` holds some of the
 * results.
 *
 * `where`, unless NULL, receives the flat index of the element that does not
 * fit, for a caller that can name its row and step; it is set only then.
 */
cellgate_status cg_narrow_f32(const cellgate_tensor *tensor, float *out,
                              int64_t *where, cellgate_error *error);

/*
 * Every element as an int32 in [lowest, highest]: [0, vocabulary - 1] for ids.
 * Integers of any width and bools are taken, and floats that are whole
 * numbers. OUT_OF_RANGE: one that is outside, or is no whole number. The rest
 * is as above.
 */
cellgate_status cg_narrow_ids(const cellgate_tensor *tensor, int32_t lowest,
                              int32_t highest, int32_t *out, int64_t *where,
                              cellgate_error *error);

#endif
