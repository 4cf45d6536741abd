/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "plugins/openmp/dense.h"

/*
 * Rows that go through the product together, so that each weight read serves
 * them all while their results are still in the cache when they are finished.
 */
#define BLOCK 48

static void finish_row(const struct cpu_dense_run *run, float *row)
{
    const struct cpu_stage *stage = run->stage;
    uint32_t i;

    for (i = 0; i < stage->finish_count; i++)
        if (stage->finishes[i].softmax)
            run->kernels->softmax(row, stage->width);
        else
            run->kernels->activate(&stage->finishes[i].activation, row, row,
                                   stage->width);
}

static float *row_of(const struct cpu_dense_run *run, int64_t row)
{
    return cpu_target_row(&run->y, run->lane->sample[row / run->steps],
                          row % run->steps);
}

static void block(const struct cpu_dense_run *run, int64_t first, int64_t rows,
                  const struct cpu_pointers *pointers)
{
    struct cpu_product product = {
        .matrix = &run->stage->dense,
        .in = pointers->in,
        .out = pointers->out,
        .columns = run->stage->width,
        .rows = rows,
        .end_panel = run->stage->dense.panel_count,
    };
    int64_t i;

    for (i = 0; i < rows; i++) {
        int64_t b = run->lane->sample[(first + i) / run->steps];
        int64_t t = (first + i) % run->steps;

        pointers->in[i] = cpu_source_row(&run->x, b, t);
        pointers->out[i] = cpu_target_row(&run->y, b, t);
        if (run->stage->kind == CPU_STAGE_COPY)
            memcpy(pointers->out[i], pointers->in[i],
                   (size_t)run->stage->width * sizeof(float));
    }
    if (run->stage->kind == CPU_STAGE_DENSE)
        run->kernels->product(&product);
    for (i = 0; i < rows; i++)
        finish_row(run, pointers->out[i]);
}

void cpu_dense_rows(const struct cpu_dense_run *run,
                    const struct cpu_crew *crew,
                    const struct cpu_pointers *pointers)
{
    int64_t most = pointers->capacity < BLOCK ? pointers->capacity : BLOCK;
    int64_t first, end, rows;

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
        finish_row(run, row_of(run, row));
}
