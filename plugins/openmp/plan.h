/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h: the memory of a run, and how its work is dealt out.
 *
 * The variant for one thread computes on the caller. The wide variant gives
 * each member of the team its own samples, which it takes through all stages
 * without waiting for anyone, if there are enough samples; else the members
 * share each stage: the two directions of an LSTM, then its units, with one
 * barrier a step, or the rows of a dense layer.
 */
#ifndef CELLGATE_OPENMP_PLAN_H
#define CELLGATE_OPENMP_PLAN_H

#include "plugins/openmp/lstm.h"

/* Rows of input products that a worker computes ahead, at the least. */
#define CPU_GATE_ROWS 64

/* The most that any stage of the segment needs, in floats a row. */
struct cpu_need {
    int64_t c;            /* padded hidden size */
    int64_t gates;        /* four of that */
    int64_t output;       /* of a direction */
    int64_t hidden;       /* of a layer with a projection, else 0 */
    int64_t between;      /* of a stage that is not the last */
    int64_t weight_bytes; /* of a layer's direction */
    int64_t staging;      /* of all rows that a worker stages, see dense.h */
    bool two_directions;
    bool hoists_all; /* the input product of a step of the whole batch */
};

struct cellgate_plan {
    const cellgate_host *host;
    const struct cpu_kernels *kernels;
    const cellgate_weights *weights;
    struct cpu_team *team; /* NULL: computed on the caller */
    int64_t batch, steps;  /* capacity */
    uint32_t threads;
    bool has_lstm;
    struct cpu_need need;

    /* Of the whole crew, and of each direction's part of it. */
    struct cpu_barrier all, half[2];
    uint32_t barriers; /* of these, initialised in this order */

    /* All below is in one block of memory. */
    struct cpu_pointers *pointers;     /* [threads] */
    struct cpu_lane *lanes;            /* [threads] */
    int32_t *sample, *length;          /* [batch]; each lane has a part */
    int32_t *order;                    /* [batch] */
    float *c[2], *h[2][2], *hidden[2]; /* [direction][parity] */
    float *zero;
    float *gates[2];
    float *between[2]; /* results of even and odd stages */
    void *memory;

    /* Of the run going on. */
    const cellgate_segment_run *run;
    bool own_samples; /* a lane a member, else one for all */
    bool rows_only;   /* the segment works on a row a sample throughout */
};

/*
 * From a sample to the next between two stages. It is the same for all stages,
 * as members that have samples of their own may be at different ones.
 */
static inline int64_t cpu_between_stride(const struct cellgate_plan *plan,
                                         int64_t steps)
{
    return (steps > 0 ? steps : 1) * plan->need.between;
}

/*
 * Reads a shape of the host's version. Refuses shapes that are too large or
 * newer than this plugin.
 */
cellgate_status cpu_shape_read(const cellgate_shape *given,
                               cellgate_shape *shape, cellgate_error *error);

/*
 * A variant is a number of threads, 1 or all of the device's, and a pack:
 * "t1", "t8", "t1-f16", "t8-f16", "t1-int8", "t8-int8". False: the device has
 * no variant with this id.
 */
bool cpu_variant_read(const cellgate_device *device, uint64_t id,
                      enum cpu_pack *pack, uint32_t *threads);

/* These are the table's operations of the same name. */
cellgate_status cpu_support(cellgate_device *device,
                            const cellgate_segment *segment,
                            const cellgate_shape *shape, uint32_t index,
                            cellgate_variant *variant, cellgate_error *error);
cellgate_status cpu_plan_create(cellgate_device *device,
                                cellgate_weights *weights, uint64_t variant,
                                const cellgate_shape *shape,
                                cellgate_plan **plan, cellgate_error *error);
void cpu_plan_destroy(cellgate_plan *plan);
cellgate_status cpu_run(cellgate_plan *plan, const cellgate_segment_run *run,
                        cellgate_error *error);

#endif /* CELLGATE_OPENMP_PLAN_H */
