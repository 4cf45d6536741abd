/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.h: which segments the plugin takes, and what it makes of them.
 *
 * A segment becomes stages. A stage is an op that makes new rows (an LSTM, a
 * dense product, or a mere copy) followed by the elementwise ops and softmaxes
 * that work on those rows in place. In the fused variants a stage has several
 * LSTMs in a row, which cuDNN runs as a stack. An embedding makes no rows where
 * a kernel of ours comes next: that reads the table's rows where they lie.
 */
#ifndef CELLGATE_CUDA_SEGMENT_H
#define CELLGATE_CUDA_SEGMENT_H

#include "plugins/cuda/device.h"
#include "plugins/cuda/kernels/kernels.h"

/* ---- Variants ---------------------------------------------------------- */

/* How a variant runs an LSTM. */
enum cud_way { CUD_FUSED, CUD_STEP, CUD_BLOCK, CUD_PERSISTENT };

/* In which weights: cuDNN's, or ours in one type. */
enum cud_pack {
    CUD_PACK_FUSED,
    CUD_PACK_F32,
    CUD_PACK_F16,
    CUD_PACK_BF16,
    CUD_PACKS
};

struct cud_variant {
    const char *name;
    enum cud_way way;
    enum cud_pack pack;
    int32_t numeric;
    int algorithm; /* of cuDNN */
    int math;      /* of cuDNN */
    bool blas;     /* input products are cuBLASLt's */
};

/* Whether it runs no other batch than its plan's. */
bool cud_exact_batch(const struct cud_variant *variant);

/* Whether the device and the libraries that were found have it at all. */
bool cud_variant_exists(const cellgate_device *device, uint64_t id);
/* Whether the device's settings leave it out. */
bool cud_variant_excluded(const cellgate_device *device, uint64_t id);

/* The variants, numbered by their ids; NULL beyond the last. */
const struct cud_variant *cud_variant_at(uint64_t id);
/* All names that they have, in any segment; the last is NULL. */
extern const char *const cud_variant_names[];
/* The id of the one that is of the same math type and cuDNN's standard
   algorithm: what runs rows of several lengths in a fused variant. */
uint64_t cud_standard_id(const struct cud_variant *variant);
/* Ids of the two that run everywhere: "cudnn" and "step". */
#define CUD_CUDNN_ID 0u
#define CUD_STEP_ID 1u

/* The type of our own weights in a pack. */
enum cuk_type cud_pack_type(enum cud_pack pack);

/* ---- Structure --------------------------------------------------------- */

/* The structure of one layer. */
struct cud_lstm {
    int64_t input, hidden;
    int64_t output; /* of a direction: projection or hidden size */
    int32_t directions;
    bool reverse; /* direction 0 */
    bool projects, has_bias, peepholes, coupled;
    float clip;
    uint32_t outputs;
    uint32_t op; /* its place in the segment, for states */
    cellgate_activation activations[2][3];
};

/* Reads the structure of an LSTM: all of it but the weights. */
void cud_lstm_read(const cellgate_op *op, uint32_t at, struct cud_lstm *lstm);

enum cud_stage_kind {
    CUD_STAGE_FUSED,
    CUD_STAGE_LSTM,
    CUD_STAGE_DENSE,
    CUD_STAGE_COPY
};

/* Something done to finished rows in place. */
struct cud_finish {
    bool softmax; /* else `activation` */
    cellgate_activation activation;
};

/* What our own kernels read of a layer, [directions] each; or of a dense one,
   `kernel` and `bias`. */
struct cud_matrices {
    struct cud_buffer kernel, recurrent, projection, bias, peephole;
    int64_t recurrent_direction; /* from one to the next, in elements */
};

/* The weights of a stack as some of cuDNN's descriptors want them. */
struct cud_space {
    struct cud_buffer memory;
    uint64_t layout; /* where the matrices lie in it */
};
#define CUD_SPACES_MAX 12 /* algorithms times math types */

/* Why there are no weights as a variant wants them. */
struct cud_lack {
    const struct cud_variant *of;
    char text[160];
};

struct cud_stage {
    enum cud_stage_kind kind;
    uint32_t op;            /* the one that it begins with */
    int64_t width;          /* features of the result */
    bool sequence;          /* the result is a sequence, else a row a sample */
    uint32_t layers;        /* of LSTM; 1 in one of our own */
    struct cud_lstm *lstms; /* [layers], of the weights' block */
    struct cud_space spaces[CUD_SPACES_MAX]; /* of fused ones, most often one */
    uint32_t space_count;
    struct cud_lack lacks[CUD_SPACES_MAX]; /* of the variants left out */
    uint32_t lack_count;
    struct cud_matrices own;
    int64_t dense_input;
    cellgate_activation dense_activation;
    uint32_t finish_count;
    struct cud_finish *finishes; /* [op_count], of the weights' block */
};

struct cellgate_weights {
    cellgate_device *device;
    enum cud_pack pack;
    uint64_t digest;         /* of its structure */
    _Atomic uint64_t proved; /* bits of variants that ran with it, by id */
    uint32_t op_count;
    uint32_t stage_count;
    uint32_t lstm_count;
    int64_t input_width;         /* of x; 1 with an embedding */
    struct cud_buffer table;     /* the embedding's */
    int64_t table_width;         /* 0 without an embedding */
    struct cud_stage *stages;    /* [op_count + 1] */
    struct cud_lstm *lstms;      /* [op_count], of which lstm_count */
    struct cud_finish *finishes; /* [op_count] */
};

/* ---- What is taken ----------------------------------------------------- */

/*
 * Whether the plugin can compute this segment at all: CELLGATE_OK, or
 * UNSUPPORTED with the reason. Sizes are bounded so that products of two never
 * overflow.
 */
cellgate_status cud_segment_check(const cellgate_segment *segment,
                                  cellgate_error *error);

/*
 * Reads a shape of the host's version. Refuses shapes that are too large or
 * newer than this plugin.
 */
cellgate_status cud_shape_read(const cellgate_shape *given,
                               cellgate_shape *shape, cellgate_error *error);

/*
 * Whether cuDNN has this layer. Else UNSUPPORTED, with the setting that
 * prevents it in the words of Keras, which wrote most models.
 */
cellgate_status cud_fused_check(const struct cud_lstm *lstm,
                                cellgate_error *error);

/* Whether the next layer goes into the same stack. */
bool cud_fused_stacks(const struct cud_lstm *below,
                      const struct cud_lstm *above);

/*
 * Asks cuDNN whether it has an algorithm for a stack, at a shape if there is
 * one. UNSUPPORTED with its answer.
 */
cellgate_status cud_fused_ask(cellgate_device *device,
                              const struct cud_lstm *lstms, uint32_t layers,
                              const struct cud_variant *variant,
                              const cellgate_shape *shape,
                              cellgate_error *error);

/* What the kernels are asked with. */
struct cuk_device cud_kernel_device(const cellgate_device *device);
/* Whether a kernel of a way takes a layer; else why not, in `why`. */
bool cud_own_fits(const cellgate_device *device, enum cud_way way,
                  const struct cuk_lstm *lstm, char *why, size_t size);
/* The numbers of a layer that its shape and kernels depend on. */
struct cuk_lstm cud_kernel_lstm(const struct cud_lstm *lstm, enum cuk_type type,
                                int64_t batch, int64_t steps);

/* The layers of a segment, and whether cuDNN has all of them. */
struct cud_layers {
    uint32_t count;
    struct cud_lstm *of; /* [count] */
    bool fused;
    cellgate_error why; /* where it is not */
    uint64_t digest;    /* of what in any op may keep a variant from starting */
};
cellgate_status cud_layers_read(const cellgate_device *device,
                                const cellgate_segment *segment,
                                struct cud_layers *layers,
                                cellgate_error *error);
void cud_layers_free(struct cud_layers *layers);

/* Variant number `index` of those that are there for such layers, to run or to
   be refused; false: no more. */
bool cud_variant_offered(const cellgate_device *device,
                         const struct cud_layers *layers, uint32_t index,
                         uint64_t *id);
/* Whether one of these runs, at a shape if there is one; UNSUPPORTED with the
   reason. */
cellgate_status cud_variant_check(cellgate_device *device,
                                  const struct cud_layers *layers, uint64_t id,
                                  const cellgate_shape *shape,
                                  cellgate_error *error);

/* ---- Refusals ---------------------------------------------------------- */

/* What is wrong with more than one variant, or will not be so later. */
bool cud_concerns_all(cellgate_status status);
/* A variant turned out not to run such layers at any shape: support() says so
   from now on. */
void cud_refuse_variant(cellgate_device *device, uint64_t digest, uint64_t id,
                        const char *why);
/* The same of all that are cuDNN's, for the reason in *error, which comes to
   UNSUPPORTED: without its standard algorithm the others are of no use, as rows
   of several lengths are run by that. */
cellgate_status cud_refuse_fused(cellgate_device *device, uint64_t digest,
                                 cellgate_error *error);
/* Whether that was said of it, or cud_plan_failed() of that shape. */
bool cud_variant_refused(cellgate_device *device, uint64_t digest, uint64_t id,
                         const cellgate_shape *shape, char why[160]);

/* ---- Weights ----------------------------------------------------------- */

/* Upload the weights of a stage, whose ops are in the segment. */
cellgate_status cud_fused_prepare(cellgate_device *device,
                                  struct cud_stage *stage,
                                  const cellgate_segment *segment,
                                  cellgate_error *error);
cellgate_status cud_own_prepare(cellgate_device *device,
                                struct cud_stage *stage,
                                const cellgate_segment *segment,
                                enum cuk_type type, cellgate_error *error);
cellgate_status cud_dense_prepare(cellgate_device *device,
                                  struct cud_stage *stage,
                                  const cellgate_dense *dense,
                                  enum cuk_type type, cellgate_error *error);

/* The table's operations of the same name. */
cellgate_status cud_support(cellgate_device *device,
                            const cellgate_segment *segment,
                            const cellgate_shape *shape, uint32_t index,
                            cellgate_variant *variant, cellgate_error *error);
cellgate_status cud_prepare(cellgate_device *device,
                            const cellgate_segment *segment, uint32_t pack,
                            cellgate_weights **weights, cellgate_error *error);
void cud_weights_free(cellgate_weights *weights);

#endif /* CELLGATE_CUDA_SEGMENT_H */
