/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h: where the rows of a sequence lie, and which rows a worker has.
 */
#ifndef CELLGATE_OPENMP_ROWS_H
#define CELLGATE_OPENMP_ROWS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Row (b, t) is at base + b * batch_stride + t * time_stride; or, with ids,
 * at base + width * ids[the same place]. Strides are in elements.
 */
struct cpu_source {
    const float *base;
    const int32_t *ids; /* NULL without an embedding */
    int64_t width;      /* of a row of the embedding's table */
    int64_t batch_stride;
    int64_t time_stride;
};

static inline const float *cpu_source_row(const struct cpu_source *source,
                                          int64_t b, int64_t t)
{
    int64_t at = b * source->batch_stride + t * source->time_stride;

    if (source->ids)
        return source->base + source->ids[at] * source->width;
    return source->base + at;
}

/* Where rows are written; base NULL when nobody wants them. */
struct cpu_target {
    float *base;
    int64_t batch_stride;
    int64_t time_stride;
};

static inline float *cpu_target_row(const struct cpu_target *target, int64_t b,
                                    int64_t t)
{
    return target->base + b * target->batch_stride + t * target->time_stride;
}

/* The samples that one worker computes, the longest first. */
struct cpu_lane {
    int64_t count;
    int64_t steps;         /* of the run, to which the results extend */
    const int32_t *sample; /* [count], places in the batch */
    const int32_t *length; /* [count], descending */
};

#endif /* CELLGATE_OPENMP_ROWS_H */
