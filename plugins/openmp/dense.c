/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

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
        pointers->out[i] = run->staging_rows > 0
                               ? pointers->staging + i * run->stage->width
                               : cpu_target_row(&run->y, b, t);
        if (run->stage->kind == CPU_STAGE_COPY)
            memcpy(pointers->out[i], pointers->in[i],
                   (size_t)run->stage->width * sizeof(float));
    }
    if (run->stage->kind == CPU_STAGE_DENSE)
        run->kernels->product(&product);
    for (i = 0; i < rows; i++) {
        finish_row(run, pointers->out[i]);
        if (run->staging_rows > 0)
            run->kernels->stream(row_of(run, first + i), pointers->out[i],
                                 run->stage->width);
    }
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
        finish_row(run, row_of(run, row));
}
