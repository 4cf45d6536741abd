/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/cuda/kernels/fit.h"
#include "plugins/cuda/kernels/shapes.h"

int cuk_setup(const struct cuk_device *device)
{
    const int code = cuk_block_setup(device);

    return code ? code : cuk_persistent_setup(device);
}

/* ---- One block --------------------------------------------------------- */

static int held_groups(int hidden)
{
#define HELD(most, kept)                                                       \
    if (hidden <= (most))                                                      \
        return kept;
    CUK_BLOCK_SIZES(HELD)
#undef HELD
    return 0;
}

void cuk_block_shape(const struct cuk_device *device,
                     const struct cuk_lstm *lstm, struct cuk_block_shape *shape)
{
    const int64_t rows = (int64_t)lstm->batch * lstm->directions;
    int spilled;

    shape->held = held_groups(lstm->hidden);
    shape->rows = rows > device->multiprocessors ? CUK_BLOCK_ROWS : 1;
    shape->groups = CUK_DIVIDE_UP(lstm->hidden, 4 * CUK_BLOCK_SLICES);
    shape->threads = CUK_DIVIDE_UP(lstm->hidden * CUK_BLOCK_SLICES, 32) * 32;
    shape->blocks = CUK_DIVIDE_UP(lstm->batch, shape->rows);
    spilled = shape->groups > shape->held ? shape->groups - shape->held : 0;
    shape->shared =
        sizeof(float) * 4 *
        ((size_t)(2 * shape->rows * shape->groups) * CUK_BLOCK_SLICES +
         (size_t)spilled * 4 * (size_t)shape->threads);
}

void cuk_block_fit(const struct cuk_device *device, const struct cuk_lstm *lstm,
                   struct cuk_fit *fit)
{
    struct cuk_block_shape shape;

    memset(fit, 0, sizeof *fit);
    if (lstm->projection) {
        (void)snprintf(fit->why, sizeof fit->why,
                       "a projection is not done in one block");
        return;
    }
    if (lstm->hidden > CUK_BLOCK_HIDDEN) {
        (void)snprintf(fit->why, sizeof fit->why,
                       "hidden size %d is more than the %d that one block "
                       "takes",
                       (int)lstm->hidden, CUK_BLOCK_HIDDEN);
        return;
    }
    cuk_block_shape(device, lstm, &shape);
    fit->blocks = shape.blocks * lstm->directions;
    fit->threads = shape.threads;
    fit->shared = (int64_t)shape.shared;
    fit->fits = fit->shared <= device->shared;
    if (!fit->fits)
        (void)snprintf(fit->why, sizeof fit->why,
                       "hidden size %d takes %lld bytes of shared memory in "
                       "one block, which has %d",
                       (int)lstm->hidden, (long long)fit->shared,
                       (int)device->shared);
}

/* ---- A grid ------------------------------------------------------------ */

static size_t grid_shared(const struct cuk_lstm *lstm, int lanes, int each)
{
    const enum cuk_type type = (enum cuk_type)lstm->type;
    const int stride = CUK_PERSISTENT_THREADS / lanes;
    const int groups = CUK_DIVIDE_UP(lstm->output, 4 * stride);
    const int held = CUK_PERSISTENT_HELD(type, each);
    const size_t spilled = groups > held ? (size_t)(groups - held) : 0;
    const size_t units = (size_t)(lanes * each), batch = (size_t)lstm->batch;

    return spilled * 4 * (size_t)each * CUK_PERSISTENT_THREADS * 4 *
               cuk_type_size(type) +
           CUK_PERSISTENT_THREADS / 32 * CUK_PERSISTENT_CHUNK * units * 4 *
               sizeof(float) +
           batch * units * sizeof(float) + batch * 2 * sizeof(int);
}

int cuk_persistent_shape(const struct cuk_device *device,
                         const struct cuk_lstm *lstm,
                         struct cuk_persistent_shape *shape)
{
#define TRY(lanes, each)                                                       \
    shape->rows = lstm->batch == 1 ? 1 : CUK_PERSISTENT_ROWS(each);            \
    shape->units = (lanes) * (each);                                           \
    shape->blocks = CUK_DIVIDE_UP(lstm->hidden, shape->units);                 \
    shape->shared = grid_shared(lstm, lanes, each);                            \
    if (shape->blocks * lstm->directions <= device->multiprocessors &&         \
        shape->shared <= (size_t)device->shared)                               \
        return 1;
    CUK_PERSISTENT_UNITS(TRY)
#undef TRY
    return 0;
}

void cuk_persistent_fit(const struct cuk_device *device,
                        const struct cuk_lstm *lstm, struct cuk_fit *fit)
{
    struct cuk_persistent_shape shape;

    memset(fit, 0, sizeof *fit);
    fit->fits = cuk_persistent_shape(device, lstm, &shape);
    fit->blocks = shape.blocks * lstm->directions;
    fit->threads = CUK_PERSISTENT_THREADS;
    fit->shared = (int64_t)shape.shared;
    if (!device->cooperative) {
        fit->fits = 0;
        (void)snprintf(fit->why, sizeof fit->why,
                       "the device has no cooperative launches");
    } else if (fit->blocks > device->multiprocessors) {
        (void)snprintf(fit->why, sizeof fit->why,
                       "hidden size %d in %d direction(s) takes %d "
                       "multiprocessors, and there are %d",
                       (int)lstm->hidden, (int)lstm->directions,
                       (int)fit->blocks, (int)device->multiprocessors);
    } else if (!fit->fits) {
        (void)snprintf(fit->why, sizeof fit->why,
                       "hidden size %d and batch %d take %lld bytes of shared "
                       "memory a block, which has %d",
                       (int)lstm->hidden, (int)lstm->batch,
                       (long long)fit->shared, (int)device->shared);
    }
}
