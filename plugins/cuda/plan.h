/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h: a stream and memory for runs up to a shape.
 *
 * A run enqueues everything (uploads, compute, downloads) on the plan's own
 * stream and waits once, at the end.
 *
 * On the device a run has `rows` rows of `span` steps, batch-major or
 * time-major throughout. They are the run's batch and steps; or the plan's,
 * where cuDNN needs more memory for the smaller shape than for the larger one.
 */
#ifndef CELLGATE_CUDA_PLAN_H
#define CELLGATE_CUDA_PLAN_H

#include "plugins/cuda/segment.h"

/* A stack of layers that cuDNN runs. */
struct cud_fused {
    cud_cudnn_rnn rnn; /* the variant's algorithm */
    /* The standard one, for rows of several lengths, which the others refuse;
       NULL where the variant's is that, or where that is excluded. */
    cud_cudnn_rnn plain;
    /* The weights as either reads them. */
    const struct cud_buffer *rnn_weights, *plain_weights;
    cud_cudnn_data x, y;
    cud_cudnn_tensor h, c;
    struct cud_buffer work;
};

/* Steps of a layer as a graph; see graph.c. */
struct cud_graph {
    cudaGraphExec_t made; /* NULL: steps are launched one by one */
    struct cuk_lstm of;   /* what it is for */
    struct cuk_lstm last; /* the run before; */
    bool seen;            /* there was one */
    struct cud_buffer counter;
};

/* A layer that our own kernels run. */
struct cud_own {
    int64_t chunk;                      /* steps that are computed ahead */
    bool in_time;                       /* all of them, and they lie in time */
    struct cud_product_plan by_blas[2]; /* of each direction */
    struct cud_buffer unprojected, sync;
    struct cud_graph graph;
};

/* What of a plan belongs to one stage. */
struct cud_stage_plan {
    struct cud_fused fused;
    struct cud_own own;
    /*
     * State, [layers][directions][rows][R or H]. cuDNN reads h0 and c0 and
     * writes h and c. Our kernels have h twice, and begin in its first half and
     * in c.
     */
    struct cud_buffer h0, c0, h, c;
    bool given_h, given_c; /* a run's first state is there; else zeros */
};

#define CUD_BLAS_FLOATS (1 << 20) /* that cuBLASLt may use */

enum cud_mark {
    CUD_BEGIN,
    CUD_UPLOADED,
    CUD_COMPUTED,
    CUD_DOWNLOADED,
    CUD_MARKS
};

/* What the device, and cuDNN's descriptors, have of the run before: the lengths
   of so many rows and steps; or nothing. */
struct cud_sent {
    bool valid, time_major;
    bool full; /* all lengths are the span */
    int64_t rows, span;
};

/* The rows and steps that cuDNN was last asked for, and its answer. */
struct cud_asked {
    int64_t rows, span;
    bool fits;
};

struct cellgate_plan {
    cellgate_device *device;
    cellgate_weights *weights;
    const struct cud_variant *variant;
    int64_t batch, steps; /* capacity */
    cudaStream_t stream;
    cudaEvent_t marks[CUD_MARKS];
    struct cud_handle *handle;     /* of cuDNN, in fused variants */
    struct cud_stage_plan *stages; /* [stage_count] */
    struct cud_buffer x, lengths, order, y, last, products, between[2];
    struct cud_buffer blas; /* cuBLASLt's memory */
    /* Sequences that cuDNN makes, and nobody asks for. */
    struct cud_buffer unwanted;

    /* Pinned, [batch]. In fused variants lengths are at least 1, and `order` is
       the lengths as they are. */
    int32_t *host_lengths, *host_order;
    struct cud_sent sent;
    struct cud_asked asked;

    /* Of the run going on. */
    const cellgate_segment_run *run;
    int64_t rows, span;
    int64_t longest; /* length of a row */
    bool time_major;
    bool rows_only;  /* the segment works on a row a sample throughout */
    bool ragged;     /* not all lengths are `span` */
    bool empty_rows; /* some are 0 */

    /* It is not made because these weights were not laid out for it; others of
       the kind may be. */
    bool lacks_weights;
    bool measured;
    cellgate_breakdown breakdown;
};

/* State of every LSTM op, in the layout of cellgate_lstm_state. */
struct cellgate_resident {
    cellgate_device *device;
    const cellgate_weights *weights;
    int64_t batch;
    cudaStream_t stream;
    struct cud_buffer *h, *c;           /* [lstm_count] */
    struct cud_buffer *next_h, *next_c; /* what a run makes of them */
};

/* The next state is the state now. */
void cud_resident_turn(cellgate_resident *resident);

/* ---- On the device ----------------------------------------------------- */

/* Rows of one stage's input or result. */
struct cud_rows {
    float *memory;
    const int32_t *ids; /* the rows are the memory's at these places; or NULL */
    struct cuk_strides strides;
};

/* Strides of a sequence, for the run going on. */
struct cuk_strides cud_strides_of(const struct cellgate_plan *plan,
                                  int64_t width);

/* Length of a row of the run going on. */
int64_t cud_length(const struct cellgate_plan *plan, int64_t row);

enum cud_state { CUD_H, CUD_C };

/* Features of a layer's state. */
int64_t cud_state_width(const struct cud_lstm *lstm, enum cud_state which);

/* Where a layer's state is before a run, and after it. */
float *cud_state_first(const struct cellgate_plan *plan, uint32_t stage,
                       uint32_t layer, enum cud_state which);
float *cud_state_final(const struct cellgate_plan *plan, uint32_t stage,
                       uint32_t layer, enum cud_state which);

/* ---- Fused stages ------------------------------------------------------ */

cellgate_status cud_fused_create(struct cellgate_plan *plan, uint32_t stage,
                                 cellgate_error *error);
void cud_fused_destroy(struct cellgate_plan *plan, uint32_t stage);

/* Whether the memory of every stage does for the run's own shape. */
cellgate_status cud_fused_fits(struct cellgate_plan *plan, bool *fits,
                               cellgate_error *error);

/* Enqueues a stack from x to y, and its last output to `last` if not NULL. */
cellgate_status cud_enqueue_fused(struct cellgate_plan *plan, uint32_t stage,
                                  const struct cud_rows *x,
                                  const struct cud_rows *y, float *last,
                                  cellgate_error *error);

/* ---- Our own stages ---------------------------------------------------- */

cellgate_status cud_own_create(struct cellgate_plan *plan, uint32_t stage,
                               cellgate_error *error);
void cud_own_destroy(struct cellgate_plan *plan, uint32_t stage);
/* The memory of input products, which layers share. */
cellgate_status cud_own_products(struct cellgate_plan *plan,
                                 cellgate_error *error);

cellgate_status cud_graph_create(struct cellgate_plan *plan,
                                 struct cud_graph *graph,
                                 cellgate_error *error);
void cud_graph_destroy(struct cellgate_plan *plan, struct cud_graph *graph);
/* For a layer whose input products lie in time, whose runs will most often be
   like this. */
cellgate_status cud_graph_make(struct cellgate_plan *plan,
                               struct cud_graph *graph,
                               const struct cuk_lstm *a, cellgate_error *error);
/* Enqueues all steps of such a layer. */
cellgate_status cud_graph_run(struct cellgate_plan *plan,
                              struct cud_graph *graph, const struct cuk_lstm *a,
                              cellgate_error *error);

/* The graph of a stage, for runs of the shape that the plan has as that of its
   run going on. */
cellgate_status cud_own_graph(struct cellgate_plan *plan, uint32_t stage,
                              const struct cud_rows *x,
                              const struct cud_rows *y, float *last,
                              cellgate_error *error);

/* Enqueue one stage: from x to y; an LSTM's last output to `last` if not NULL,
   and its sequence nowhere where y has no memory. */
cellgate_status cud_enqueue_own(struct cellgate_plan *plan, uint32_t stage,
                                const struct cud_rows *x,
                                const struct cud_rows *y, float *last,
                                cellgate_error *error);
cellgate_status cud_enqueue_dense(struct cellgate_plan *plan, uint32_t stage,
                                  const struct cud_rows *x,
                                  const struct cud_rows *y,
                                  cellgate_error *error);
cellgate_status cud_enqueue_copy(struct cellgate_plan *plan, uint32_t stage,
                                 const struct cud_rows *x,
                                 const struct cud_rows *y,
                                 cellgate_error *error);
cellgate_status cud_enqueue_finishes(struct cellgate_plan *plan, uint32_t stage,
                                     const struct cud_rows *y,
                                     cellgate_error *error);

/* ---- Transfers --------------------------------------------------------- */

/* Records when what was enqueued so far ends. */
cellgate_status cud_mark(struct cellgate_plan *plan, enum cud_mark mark,
                         cellgate_error *error);

/* Chooses rows, span and layout of the run going on. */
cellgate_status cud_choose_layout(struct cellgate_plan *plan,
                                  cellgate_error *error);
/* Enqueues what the run brings, and what it wants. */
cellgate_status cud_enqueue_uploads(struct cellgate_plan *plan,
                                    cellgate_error *error);
cellgate_status cud_enqueue_downloads(struct cellgate_plan *plan,
                                      cellgate_error *error);
/* Waits for everything. */
cellgate_status cud_finish_run(struct cellgate_plan *plan,
                               cellgate_error *error);
/* Where the time went, after a run that succeeded. */
void cud_read_marks(struct cellgate_plan *plan);

/* Enqueues a copy of `rows` pieces of `width` floats; pitches in floats. */
struct cud_block {
    void *to;
    int64_t to_pitch;
    const void *from;
    int64_t from_pitch;
    int64_t width, rows;
};
cellgate_status cud_copy(struct cellgate_plan *plan,
                         const struct cud_block *block,
                         enum cudaMemcpyKind kind, cellgate_error *error);
/* Enqueues zeros: `rows` pieces of `width` floats. */
cellgate_status cud_zero(struct cellgate_plan *plan, void *to, int64_t pitch,
                         int64_t width, int64_t rows, cellgate_error *error);

/* The graphs of all stages, for runs of the plan's whole shape. */
cellgate_status cud_plan_graphs(struct cellgate_plan *plan,
                                cellgate_error *error);

/* ---- What turns out not to run ----------------------------------------- */

/*
 * What a plan could not be made or run for comes to: `status` and *error as
 * they are where the device is at fault, or lacks memory, or these weights lack
 * a layout; else UNSUPPORTED, and the variant is refused at that shape from now
 * on.
 */
cellgate_status cud_plan_failed(const struct cellgate_plan *plan,
                                const cellgate_shape *shape,
                                cellgate_status status, cellgate_error *error);
/* It ran: what fails later is not the variant's fault. */
void cud_plan_ran(struct cellgate_plan *plan);

/* ---- Kernels that fill the device -------------------------------------- */

/*
 * What is enqueued between the two waits for what was enqueued so before it, on
 * whichever plan of the device: blocks of such kernels wait for each other, and
 * two kernels that each had some of the multiprocessors would wait for ever.
 * Variants without such kernels take no turns.
 */
cellgate_status cud_turn_begin(struct cellgate_plan *plan,
                               cellgate_error *error);
/* Also after a failure in between. */
cellgate_status cud_turn_end(struct cellgate_plan *plan, cellgate_error *error);

/* Makes, runs once on zeros and destroys a plan of the variant. */
cellgate_status cud_plan_warm(cellgate_device *device,
                              cellgate_weights *weights, uint64_t variant,
                              cellgate_error *error);

/* The table's operations of the same name. */
cellgate_status cud_plan_create(cellgate_device *device,
                                cellgate_weights *weights, uint64_t variant,
                                const cellgate_shape *shape,
                                cellgate_plan **plan, cellgate_error *error);
void cud_plan_destroy(cellgate_plan *plan);
cellgate_status cud_run(cellgate_plan *plan, const cellgate_segment_run *run,
                        cellgate_error *error);
cellgate_status cud_breakdown(cellgate_plan *plan, cellgate_breakdown *out,
                              cellgate_error *error);
cellgate_status cud_resident_create(cellgate_weights *weights, int64_t batch,
                                    cellgate_resident **resident,
                                    cellgate_error *error);
void cud_resident_destroy(cellgate_resident *resident);
cellgate_status cud_resident_export(cellgate_resident *resident,
                                    const cellgate_lstm_state *states,
                                    cellgate_error *error);
cellgate_status cud_resident_import(cellgate_resident *resident,
                                    const cellgate_lstm_state *states,
                                    cellgate_error *error);

#endif /* CELLGATE_CUDA_PLAN_H */
