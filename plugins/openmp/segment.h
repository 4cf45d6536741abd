/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.h: which segments the plugin takes, and what it makes of them.
 *
 * A segment becomes stages. A stage is one op that makes new rows (an LSTM, a
 * dense product, or a mere copy) followed by the elementwise ops and softmaxes
 * that work on those rows in place. An embedding makes no rows: the first
 * stage reads the table's rows where they lie.
 */
#ifndef CELLGATE_OPENMP_SEGMENT_H
#define CELLGATE_OPENMP_SEGMENT_H

#include "cellgate/plugin.h"
#include "plugins/openmp/arena.h"
#include "plugins/openmp/levels.h"

/* One direction of an LSTM, packed. */
struct cpu_direction {
    bool reversed;
    struct cpu_matrix kernel;
    struct cpu_matrix recurrent;
    struct cpu_matrix projection; /* panel_count 0 without */
    struct cpu_cell cell;
};

struct cpu_lstm {
    int64_t hidden;
    int64_t output; /* of a direction: projection or hidden size */
    uint32_t outputs;
    uint32_t op; /* its place in the segment, for states */
    int32_t directions;
    struct cpu_direction direction[2];
};

/* Something done to finished rows in place. */
struct cpu_finish {
    bool softmax; /* else `activation` */
    cellgate_activation activation;
};

enum cpu_stage_kind { CPU_STAGE_LSTM, CPU_STAGE_DENSE, CPU_STAGE_COPY };

struct cpu_stage {
    enum cpu_stage_kind kind;
    int64_t width;  /* features of the result */
    bool sequence;  /* the result is a sequence, else a row a sample */
    bool row_input; /* the input is a row a sample */
    struct cpu_lstm lstm;
    struct cpu_matrix dense;
    uint32_t finish_count;
    struct cpu_finish *finishes;
};

struct cellgate_weights {
    const cellgate_host *host;
    const struct cpu_kernels *kernels;
    void *packed;       /* the memory of every matrix */
    const float *table; /* the embedding's, not packed; NULL without */
    int64_t table_width;
    uint32_t op_count;
    uint32_t stage_count;
    struct cpu_stage *stages;
};

/*
 * Whether the plugin computes this segment: CELLGATE_OK, or UNSUPPORTED with
 * the reason. Sizes are bounded so that products of two never overflow.
 */
cellgate_status cpu_segment_check(const cellgate_segment *segment,
                                  cellgate_error *error);

/* prepare() and weights_free(). */
cellgate_status cpu_prepare(cellgate_device *device,
                            const cellgate_segment *segment, uint32_t pack,
                            cellgate_weights **weights, cellgate_error *error);
void cpu_weights_free(cellgate_weights *weights);

#endif /* CELLGATE_OPENMP_SEGMENT_H */
