/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h: a queue, kernels and memory for runs up to a shape.
 *
 * A run enqueues everything (uploads, kernels, downloads) on the plan's own
 * in-order queue and waits once, at the end. The input product of a layer is
 * computed a chunk of steps ahead; the kernels that follow do the chunk's
 * steps.
 */
#ifndef CELLGATE_OPENCL_PLAN_H
#define CELLGATE_OPENCL_PLAN_H

#include "plugins/opencl/pinned.h"
#include "plugins/opencl/segment.h"

/*
 * Watchdogs of displays end a kernel that takes seconds. Operations that one
 * launch gives a compute unit: below a second on the smallest.
 */
#define WORK_A_LAUNCH 2e9

/* What of a plan belongs to one stage. */
struct ocl_stage_plan {
    cl_kernel main; /* the layer, whole or a step */
    cl_kernel project, last;
    size_t items;  /* of a group, in its first dimension */
    int64_t chunk; /* steps that are computed ahead */
    struct ocl_buffer h, c, hidden;
};

enum ocl_phase { OCL_UPLOAD, OCL_DOWNLOAD, OCL_PHASES };

/* Rows of one stage's input or result in device memory. */
struct ocl_rows {
    struct ocl_buffer buffer;
    struct ocl_buffer ids; /* the rows are the buffer's at these places */
    struct ocl_strides strides;
};

/* What goes in and out; each may lie in memory that the device shares. */
enum ocl_end { OCL_X, OCL_Y, OCL_LAST, OCL_ENDS };

struct cellgate_plan {
    cellgate_device *device;
    const cellgate_weights *weights;
    const struct ocl_variant *variant;
    int64_t batch, steps; /* capacity */
    cl_command_queue queue;
    cl_kernel product, gather, activate, softmax;
    struct ocl_stage_plan *stages; /* [stage_count] */
    struct ocl_buffer x, lengths, order, y, last, products, gathered;
    struct ocl_buffer between[2];
    int32_t *host_lengths, *host_order; /* [batch] */
    /* What the device has as lengths: full ones of so many rows and steps, or
       others where the batch is 0. */
    int64_t full_batch, full_steps;

    /* Of the run going on. */
    const cellgate_segment_run *run;
    struct ocl_rows ends[OCL_ENDS]; /* its x and results, on the device */
    struct ocl_pinned
        *shared[OCL_ENDS]; /* which is the host's memory, or NULL */
    bool given[OCL_ENDS];  /* and the device's for now */
    bool rows_only;        /* the segment works on a row a sample throughout */
    bool ragged;
    cl_event marks[OCL_PHASES][2]; /* first and last of a phase */
    cl_event began, launched;      /* the first kernel, and the latest */
    uint32_t unflushed;            /* kernels since the device was told */

    bool measured;
    double copying[OCL_PHASES]; /* by the host, seconds */
    cellgate_breakdown breakdown;
};

/* State of every LSTM op, in the layout of cellgate_lstm_state. */
struct cellgate_resident {
    cellgate_device *device;
    const cellgate_weights *weights;
    int64_t batch;
    cl_command_queue queue;
    struct ocl_buffer *h, *c;           /* [stage_count] */
    struct ocl_buffer *next_h, *next_c; /* what a run makes of them */
};

/* The next state is the state now. */
void ocl_resident_turn(cellgate_resident *resident);

/* An argument of a kernel: local memory, or no buffer, where value is NULL. */
struct ocl_argument {
    size_t size;
    const void *value;
};
#define OCL_VALUE(variable)                                                    \
    {                                                                          \
        sizeof(variable), &(variable)                                          \
    }
#define OCL_MEMORY(buffer)                                                     \
    {                                                                          \
        sizeof(cl_mem),                                                        \
            (buffer).memory ? (const void *)&(buffer).memory : NULL            \
    }

/* Remembers the event of a kernel that was enqueued, and flushes from time to
   time. */
cellgate_status ocl_launched(struct cellgate_plan *plan, cl_event event,
                             cellgate_error *error);

/* Sets the arguments and enqueues the kernel. */
cellgate_status ocl_launch(struct cellgate_plan *plan, cl_kernel kernel,
                           const struct ocl_argument *arguments,
                           uint32_t argument_count, const size_t *global,
                           const size_t *local, cellgate_error *error);

#define OCL_LAUNCH(plan, kernel, arguments, global, local, error)              \
    ocl_launch(plan, kernel, arguments,                                        \
               sizeof(arguments) / sizeof((arguments)[0]), global, local,      \
               error)

static inline size_t ocl_divide_up(int64_t count, int64_t by)
{
    return (size_t)((count + by - 1) / by);
}

/* Steps of a stage's rows where they are a sequence. */
static inline int64_t ocl_run_steps(const struct cellgate_plan *plan)
{
    return plan->rows_only ? 1 : plan->run->steps;
}

static inline int ocl_reversed(const struct ocl_lstm *lstm, int direction)
{
    return direction == 1 || lstm->reverse;
}

/*
 * Lets the device begin with what is enqueued so far, and looks at the latest
 * kernel that was: a run that has failed goes no further.
 */
cellgate_status ocl_flush(struct cellgate_plan *plan, cellgate_error *error);
/* A driver may accept a kernel, and end it later. */
cellgate_status ocl_check_launched(struct cellgate_plan *plan,
                                   cellgate_error *error);

/* Enqueues the input products of steps [first, end) into plan->products. */
cellgate_status ocl_enqueue_products(struct cellgate_plan *plan,
                                     const struct ocl_lstm *lstm,
                                     const struct ocl_rows *x, int64_t first,
                                     int64_t end, cellgate_error *error);

/* Enqueues one stage: from the rows x to the rows y, and, for an LSTM with a
   sequence, to `last` too where it is wanted. */
cellgate_status ocl_enqueue_lstm(struct cellgate_plan *plan, uint32_t stage,
                                 const struct ocl_rows *x,
                                 const struct ocl_rows *y,
                                 const struct ocl_rows *last,
                                 cellgate_error *error);
cellgate_status ocl_enqueue_dense(struct cellgate_plan *plan, uint32_t stage,
                                  const struct ocl_rows *x,
                                  const struct ocl_rows *y,
                                  cellgate_error *error);
cellgate_status ocl_enqueue_copy(struct cellgate_plan *plan, uint32_t stage,
                                 const struct ocl_rows *x,
                                 const struct ocl_rows *y,
                                 cellgate_error *error);
cellgate_status ocl_enqueue_finishes(struct cellgate_plan *plan, uint32_t stage,
                                     const struct ocl_rows *y,
                                     cellgate_error *error);

/* Which half of the h buffer of a stage holds the final h, in elements. */
int64_t ocl_final_h_at(const struct cellgate_plan *plan, uint32_t stage);

/*
 * Strides of a sequence on the device, where it lies without gaps: as on the
 * host if it has none there, so that it moves in one block, else batch after
 * batch, and false.
 */
bool ocl_dense_strides(const cellgate_sequence *of, int64_t batch,
                       int64_t steps, int64_t width,
                       struct ocl_strides *strides);

/* Where the run's x and results are on the device: in the plan's buffers, or in
   the host's memory where the device shares it, which is claimed. */
void ocl_find_ends(struct cellgate_plan *plan);
/* Gives the memory that is shared to the device, and takes it back. */
cellgate_status ocl_give_shared(struct cellgate_plan *plan,
                                cellgate_error *error);
cellgate_status ocl_take_back_shared(struct cellgate_plan *plan,
                                     cellgate_error *error);
/* Where the next command of a phase leaves its event: the first of them stays,
   and the latest. */
cl_event *ocl_mark(struct cellgate_plan *plan, enum ocl_phase phase);

/* Enqueues what the run brings, and what it wants. */
cellgate_status ocl_enqueue_uploads(struct cellgate_plan *plan,
                                    cellgate_error *error);
cellgate_status ocl_enqueue_downloads(struct cellgate_plan *plan,
                                      cellgate_error *error);
/* Waits for everything, and reads the clock of what was enqueued. */
cellgate_status ocl_finish_run(struct cellgate_plan *plan,
                               cellgate_error *error);

/* Makes, runs once on zeros and destroys a plan of the variant. */
cellgate_status ocl_plan_warm(cellgate_device *device,
                              cellgate_weights *weights, uint64_t variant,
                              cellgate_error *error);

/* The table's operations of the same name. */
cellgate_status ocl_plan_create(cellgate_device *device,
                                cellgate_weights *weights, uint64_t variant,
                                const cellgate_shape *shape,
                                cellgate_plan **plan, cellgate_error *error);
void ocl_plan_destroy(cellgate_plan *plan);
cellgate_status ocl_run(cellgate_plan *plan, const cellgate_segment_run *run,
                        cellgate_error *error);
cellgate_status ocl_breakdown(cellgate_plan *plan, cellgate_breakdown *out,
                              cellgate_error *error);
cellgate_status ocl_resident_create(cellgate_weights *weights, int64_t batch,
                                    cellgate_resident **resident,
                                    cellgate_error *error);
void ocl_resident_destroy(cellgate_resident *resident);
cellgate_status ocl_resident_export(cellgate_resident *resident,
                                    const cellgate_lstm_state *states,
                                    cellgate_error *error);
cellgate_status ocl_resident_import(cellgate_resident *resident,
                                    const cellgate_lstm_state *states,
                                    cellgate_error *error);

#endif /* CELLGATE_OPENCL_PLAN_H */
