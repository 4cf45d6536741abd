/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.h: which segments the plugin takes, and what it makes of them.
 *
 * A segment becomes stages. A stage is one op that makes new rows (an LSTM, a
 * dense product, or a mere copy) followed by the elementwise ops and softmaxes
 * that work on those rows in place. An embedding makes no rows: the first
 * stage reads the table's rows where they lie.
 */
#ifndef CELLGATE_OPENCL_SEGMENT_H
#define CELLGATE_OPENCL_SEGMENT_H

#include "plugins/opencl/arguments.h"
#include "plugins/opencl/device.h"

/* One layer: its structure, and its weights, packed as lstm.cl says. */
struct ocl_lstm {
    int64_t input, hidden;
    int64_t output; /* of a direction: projection or hidden size */
    int32_t blocks, output_blocks;
    int32_t directions;
    bool reverse; /* direction 0 */
    bool projects, usual, peepholes, coupled;
    float clip;
    uint32_t outputs;
    uint32_t op; /* its place in the segment, for states */
    struct ocl_activation activations[2][3];
    /* [directions] of them in each buffer */
    struct ocl_buffer kernel, recurrent, projection, bias, peephole;
};

struct ocl_dense {
    int64_t input, units;
    int32_t blocks; /* of 4 V columns */
    struct ocl_buffer kernel, bias;
};

/* Something done to finished rows in place. */
struct ocl_finish {
    bool softmax; /* else `activation` */
    struct ocl_activation activation;
};

enum ocl_stage_kind { OCL_STAGE_LSTM, OCL_STAGE_DENSE, OCL_STAGE_COPY };

struct ocl_stage {
    enum ocl_stage_kind kind;
    int64_t width; /* features of the result */
    bool sequence; /* the result is a sequence, else a row a sample */
    struct ocl_lstm lstm;
    struct ocl_dense dense;
    uint32_t finish_count;
    struct ocl_finish *finishes; /* [op_count], of the weights' block */
};

/* What decides which variants run a segment. */
struct ocl_outline {
    bool has_lstm, has_matrix;
    uint64_t whole_row, fused_row; /* most local memory of a sample, bytes */
    uint64_t digest; /* of what may keep a variant from starting */
};

/* How matrices are kept. */
enum ocl_pack {
    OCL_PACK_FLOAT,
    OCL_PACK_HALF,
    OCL_PACK_CLBLAST, /* floats; row-major with the bias last, where CLBlast
                         multiplies */
    OCL_PACKS
};

struct cellgate_weights {
    cellgate_device *device;
    enum ocl_pack pack;
    struct ocl_outline outline;
    uint32_t op_count;
    uint32_t stage_count;
    int64_t input_width;         /* of x; 1 with an embedding */
    struct ocl_buffer table;     /* the embedding's */
    int64_t table_width;         /* 0 without an embedding */
    struct ocl_stage *stages;    /* [op_count] */
    struct ocl_finish *finishes; /* [op_count] */
};

/* How a variant runs an LSTM; OCL_ROWS: there is none. */
enum ocl_way { OCL_WHOLE, OCL_FUSED, OCL_STEP, OCL_ROWS };

struct ocl_variant {
    const char *name;
    enum ocl_way way;
    uint32_t rows; /* samples of a work-group */
    enum ocl_pack pack;
};

/* The variants, numbered by their ids; NULL beyond the last. */
const struct ocl_variant *ocl_variant_at(uint64_t id);

void ocl_outline_read(const cellgate_segment *segment, uint32_t vector,
                      struct ocl_outline *outline);

/* All names that they have; the last is NULL. */
extern const char *const ocl_variant_names[];
/* Whether the device's settings leave a variant out. */
bool ocl_variant_excluded(const cellgate_device *device, uint64_t id);

/* Variant number `index` of those that are offered for a batch (0: any), with
   those that turned out not to run; false: no more. */
bool ocl_variant_offered(const cellgate_device *device,
                         const struct ocl_outline *outline, int64_t batch,
                         uint32_t index, uint64_t *id);
/* Whether the variant runs such a segment and batch (0: any); UNSUPPORTED with
   the reason. INVALID: there is no such variant. */
cellgate_status ocl_variant_check(cellgate_device *device,
                                  const struct ocl_outline *outline,
                                  uint64_t id, int64_t batch,
                                  cellgate_error *error);
/* It turned out not to run: support() says so from now on. */
void ocl_refuse_variant(cellgate_device *device,
                        const struct ocl_outline *outline, uint64_t id,
                        const char *why);

/* Local memory that the whole-sequence kernel needs for a layer, bytes. */
uint64_t ocl_whole_memory(const struct ocl_lstm *lstm, uint32_t vector,
                          const struct ocl_variant *variant);

/* Reads the structure of an LSTM: all of it but the weights. */
void ocl_lstm_read(const cellgate_op *op, uint32_t vector,
                   struct ocl_lstm *lstm);

/*
 * Whether the plugin computes this segment: CELLGATE_OK, or UNSUPPORTED with
 * the reason. Sizes are bounded so that products of two never overflow.
 */
cellgate_status ocl_segment_check(const cellgate_segment *segment,
                                  cellgate_error *error);

/*
 * Reads a shape of the host's version. Refuses shapes that are too large or
 * newer than this plugin.
 */
cellgate_status ocl_shape_read(const cellgate_shape *given,
                               cellgate_shape *shape, cellgate_error *error);

/* The table's operations of the same name. */
cellgate_status ocl_support(cellgate_device *device,
                            const cellgate_segment *segment,
                            const cellgate_shape *shape, uint32_t index,
                            cellgate_variant *variant, cellgate_error *error);
cellgate_status ocl_prepare(cellgate_device *device,
                            const cellgate_segment *segment, uint32_t pack,
                            cellgate_weights **weights, cellgate_error *error);
void ocl_weights_free(cellgate_weights *weights);

#endif /* CELLGATE_OPENCL_SEGMENT_H */
