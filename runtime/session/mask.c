/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "runtime/session/mask.h"

void cg_mask_from_lengths(uint8_t *valid, const int32_t *lengths, int64_t batch,
                          int64_t steps)
{
    for (int64_t b = 0; b < batch; b++) {
        uint8_t *row = valid + b * steps;

        memset(row, 1, (size_t)lengths[b]);
        memset(row + lengths[b], 0, (size_t)(steps - lengths[b]));
    }
}

bool cg_mask_lengths(const cg_mask *mask, int32_t *lengths)
{
    bool padded_right = true;

    for (int64_t b = 0; b < mask->batch; b++) {
        const uint8_t *row = mask->valid + b * mask->steps;
        int32_t count = 0;

        for (int64_t t = 0; t < mask->steps; t++) {
            if (row[t] == 0)
                continue;
            padded_right = padded_right && count == t;
            count++;
        }
        lengths[b] = count;
    }
    return padded_right;
}

void cg_mask_pack(const cg_mask *mask, const void *x, void *packed,
                  size_t bytes)
{
    for (int64_t b = 0; b < mask->batch; b++) {
        const uint8_t *row = mask->valid + b * mask->steps;
        size_t start = (size_t)(b * mask->steps) * bytes, to = start;
        const char *from = (const char *)x + start;

        for (int64_t t = 0; t < mask->steps; t++, from += bytes)
            if (row[t] != 0) {
                memcpy((char *)packed + to, from, bytes);
                to += bytes;
            }
        memset((char *)packed + to, 0,
               start + (size_t)mask->steps * bytes - to);
    }
}

/*
 * The packed step that step t of a row shows. `before` is how many valid steps
 * come before t, `count` how many the row has: packed step `count` is padding,
 * which is there because t is masked.
 */
static int64_t source(bool valid, int64_t before, int64_t count,
                      cg_mask_fill fill)
{
    if (valid)
        return before;
    if (fill == CG_FILL_FORWARD && before > 0)
        return before - 1;
    if (fill == CG_FILL_BACKWARD && before < count)
        return before;
    return count;
}

static int64_t count_valid(const uint8_t *row, int64_t steps)
{
    int64_t count = 0;

    for (int64_t t = 0; t < steps; t++)
        count += row[t] != 0;
    return count;
}

void cg_mask_unpack(const cg_mask *mask, const float *packed, float *y,
                    int64_t features, int64_t begin, int64_t end,
                    cg_mask_fill fill)
{
    size_t bytes = (size_t)(end - begin) * sizeof *y;

    for (int64_t b = 0; b < mask->batch; b++) {
        const uint8_t *row = mask->valid + b * mask->steps;
        int64_t count = count_valid(row, mask->steps), before = 0;
        int64_t start = b * mask->steps;

        for (int64_t t = 0; t < mask->steps; t++) {
            int64_t from = source(row[t] != 0, before, count, fill);

            memcpy(y + (start + t) * features + begin,
                   packed + (start + from) * features + begin, bytes);
            before += row[t] != 0;
        }
    }
}

void cg_mask_repeat_last(const cg_mask *mask, const int32_t *lengths, float *y,
                         int64_t features, int64_t begin, int64_t end)
{
    size_t bytes = (size_t)(end - begin) * sizeof *y;

    for (int64_t b = 0; b < mask->batch; b++) {
        float *row = y + b * mask->steps * features + begin;

        for (int64_t t = lengths[b]; lengths[b] > 0 && t < mask->steps; t++)
            memcpy(row + t * features, row + (lengths[b] - 1) * features,
                   bytes);
    }
}

void cg_mask_zero_rows(const cg_mask *mask, int64_t step, float *y,
                       int64_t features, int64_t begin, int64_t end)
{
    size_t bytes = (size_t)(end - begin) * sizeof *y;

    for (int64_t b = 0; b < mask->batch; b++)
        if (mask->valid[b * mask->steps + step] == 0)
            memset(y + b * features + begin, 0, bytes);
}
