/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "plugins/openmp/dense.h"

#define STREAM_BYTES (16 << 20)
#define STAGING_BYTES (1 << 20)

int64_t cpu_dense_staging(const struct cpu_kernels *kernels,
                          const struct cpu_stage *stage, int64_t batch,
                          int64_t steps)
{
    const int64_t row = stage->width * (int64_t)sizeof(float);
    const int64_t rows = STAGING_BYTES / row / kernels->tile * kernels->tile;

    if (stage->kind != CPU_STAGE_DENSE || rows < 2 * kernels->tile ||
        (double)batch * (double)(steps > 0 ? steps : 1) * (double)row <
            STREAM_BYTES)
        return 0;
    return rows < CPU_DENSE_BLOCK ? rows : CPU_DENSE_BLOCK;
}

/*
 * Does what follows the stage's rows to one of them, and takes it past the
 * caches to `to`, or leaves it in place. `largest` as exponentials() takes it.
 */
static void finish_row(const struct cpu_dense_run *run, float *row,
                       const float *largest, float *to)
{
    const struct cpu_kernels *kernels = run->kernels;
    const struct cpu_stage *stage = run->stage;
    float factor = 1;
    uint32_t i;

    for (i = 0; i < stage->finish_count; i++) {
        if (factor != 1)
            kernels->scale(row, row, factor, stage->width, false);
        factor = 1;
        if (stage->finishes[i].softmax)
            factor = kernels->exponentials(row, stage->width,
                                           i == 0 ? largest : NULL);
        else
            kernels->activate(&stage->finishes[i].activation, row, row,
                              stage->width);
    }
    if (to)
        kernels->scale(to, row, factor, stage->width, true);
    else if (factor != 1)
        kernels->scale(row, row, factor, stage->width, false);
}

static float *row_of(const struct cpu_dense_run *run, int64_t row)
{
    return cpu_target_row(&run->y, run->lane->sample[row / run->steps],
                          row % run->steps);
}

/* Where the rows are made, and where they come from. */
static void point(const struct cpu_dense_run *run, int64_t first, int64_t rows,
                  const struct cpu_pointers *pointers)
{
    int64_t i;

    for (i = 0; i < rows; i++) {
        int64_t b = run->lane->sample[(first + i) / run->steps];
        int64_t t = (first + i) % run->steps;

        pointers->in[i] = cpu_source_row(&run->x, b, t);
        pointers->out[i] = run->staging_rows > 0
                               ? pointers->staging + i * run->stage->width
                               : cpu_target_row(&run->y, b, t);
        if (run->stage->kind == CPU_STAGE_COPY)
            memcpy(pointers->out[i], pointers->in[i],
                   (size_t)run->stage->width * sizeof(float));
    }
}

static void block(const struct cpu_dense_run *run, int64_t first, int64_t rows,
                  const struct cpu_pointers *pointers)
{
    const struct cpu_stage *stage = run->stage;
    const int64_t vector = run->kernels->vector;
    const bool dense = stage->kind == CPU_STAGE_DENSE;
    const bool softmax =
        dense && stage->finish_count > 0 && stage->finishes[0].softmax;
    float largest[CPU_DENSE_BLOCK * CPU_VECTOR];
    struct cpu_product product = {
        .matrix = &stage->dense,
        .in = pointers->in,
        .out = pointers->out,
        .columns = stage->width,
        .rows = rows,
        .end_panel = stage->dense.panel_count,
        .largest = softmax ? largest : NULL,
    };
    int64_t i;

    point(run, first, rows, pointers);
    for (i = 0; softmax && i < rows * vector; i++)
        largest[i] = -INFINITY;
    if (dense)
        run->kernels->product(&product);
    for (i = 0; i < rows; i++)
        finish_row(run, pointers->out[i], softmax ? largest + i * vector : NULL,
                   run->staging_rows > 0 ? row_of(run, first + i) : NULL);
}

void cpu_dense_rows(const struct cpu_dense_run *run,
                    const struct cpu_crew *crew,
                    const struct cpu_pointers *pointers)
{
    int64_t most = run->staging_rows > 0 ? run->staging_rows : CPU_DENSE_BLOCK;
    int64_t first, end, rows;

    if (most > pointers->capacity)
        most = pointers->capacity;
    cpu_crew_share(crew, run->lane->count * run->steps, &first, &end);
    for (; first < end; first += rows) {
        rows = end - first < most ? end - first : most;
        block(run, first, rows, pointers);
    }
}

void cpu_finish_rows(const struct cpu_dense_run *run,
                     const struct cpu_crew *crew)
{
    int64_t row, end;

    if (run->stage->finish_count == 0)
        return;
    cpu_crew_share(crew, run->lane->count * run->steps, &row, &end);
    for (; row < end; row++)
        finish_row(run, row_of(run, row), NULL, NULL);
}
