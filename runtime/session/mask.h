/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks of any pattern on devices that know lengths only: valid steps are moved
 * to the front before a run, and results back to their steps after it.
 *
 * A mask is uint8 [batch][steps], non-zero for valid steps. Everything here is
 * dense and row-major; nothing allocates.
 */
#ifndef CELLGATE_RUNTIME_SESSION_MASK_H
#define CELLGATE_RUNTIME_SESSION_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a mask lies over a run. */
typedef struct cg_mask {
    const uint8_t *valid; /* [batch][steps] */
    int64_t batch, steps;
} cg_mask;

/* How masked steps of a result are filled. */
typedef enum cg_mask_fill {
    CG_FILL_PADDING, /* with what the device computes from a padded step */
    CG_FILL_FORWARD, /* with the valid step before, else as padding */
    CG_FILL_BACKWARD /* with the valid step after, else as padding */
} cg_mask_fill;

/* The mask of rows with `lengths` valid steps; `valid` has batch x steps. */
void cg_mask_from_lengths(uint8_t *valid, const int32_t *lengths, int64_t batch,
                          int64_t steps);

/* Counts the valid steps of each row; whether every row is padded on the
   right, so that the lengths say all. */
bool cg_mask_lengths(const cg_mask *mask, int32_t *lengths);

/* Moves the valid steps of x, `bytes` each, to the front of `packed`; the rest
   of each row is zero. */
void cg_mask_pack(const cg_mask *mask, const void *x, void *packed,
                  size_t bytes);

/* Moves results of packed steps back to their places in y, and fills the masked
   steps. `features` floats a step, of which [begin, end) are moved. */
void cg_mask_unpack(const cg_mask *mask, const float *packed, float *y,
                    int64_t features, int64_t begin, int64_t end,
                    cg_mask_fill fill);

/* The same in place, for a mask that is padded on the right: repeats the last
   valid step of each row in its padding. */
void cg_mask_repeat_last(const cg_mask *mask, const int32_t *lengths, float *y,
                         int64_t features, int64_t begin, int64_t end);

/* Zeroes [begin, end) of the rows whose step number `step` is masked. */
void cg_mask_zero_rows(const cg_mask *mask, int64_t step, float *y,
                       int64_t features, int64_t begin, int64_t end);

#endif
