/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model: a graph of nodes over values, with weights, immutable once
 * finished and shared by threads.
 *
 * A value is a tensor that a node makes or that a request brings. Axis 0 is
 * the batch; axis 1 of a sequence is the time step. Masks are values of their
 * own (uint8 [batch][steps], non-zero for valid steps): readers work out at
 * load time how a mask travels, so nothing is implicit at run time.
 *
 * A reader builds a graph with cg_model_create(), cg_model_add_*() and
 * cg_model_finish(), which infers shapes and validates. Whatever is added to
 * Keras support becomes one entry in the table of layers (formats/) and, if no
 * kind below fits, one kind here with its inference (model/) and its host
 * version (host/).
 */
#ifndef CELLGATE_RUNTIME_MODEL_MODEL_H
#define CELLGATE_RUNTIME_MODEL_MODEL_H

#include <stdbool.h>

#include "cellgate/cellgate.h"
#include "cellgate/plugin.h"

#define CG_UNKNOWN (-1) /* a dimension that the request decides */
#define CG_NO_VALUE (-1)

/* A list of extents, or of axes, in an attribute. */
typedef struct cg_extents {
    int32_t count;
    int64_t extent[CELLGATE_MAX_RANK]; /* zero beyond the count */
} cg_extents;

/* Kinds of node: X(NAME, text) */
#define CG_KIND_LIST(X)                                                        \
    X(EMBEDDING, "embedding")                                                  \
    X(LSTM, "lstm")                                                            \
    X(GRU, "gru")                                                              \
    X(SIMPLE_RNN, "simple_rnn")                                                \
    X(DENSE, "dense")                                                          \
    X(ACTIVATION, "activation")                                                \
    X(SOFTMAX, "softmax")     /* over the last axis */                         \
    X(REVERSE, "reverse")     /* of the time axis, all steps */                \
    X(MERGE, "merge")         /* sum, average or product of the two halves of  \
                                 the last axis: what Bidirectional does */     \
    X(SLICE, "slice")         /* a range of an axis, or some of it */          \
    X(CONCAT, "concat")       /* of any number of inputs, along an axis */     \
    X(PAD, "pad")             /* zeros before and after along an axis */       \
    X(REPEAT, "repeat")       /* each index of an axis several times */        \
    X(RESHAPE, "reshape")     /* the same numbers in another shape */          \
    X(PERMUTE, "permute")     /* the axes in another order */                  \
    X(CAST, "cast")           /* to another dtype */                           \
    X(COMBINE, "combine")     /* of inputs, element by element */              \
    X(SELECT, "select")       /* x, something else where it is masked */       \
    X(DOT, "dot")             /* of two inputs, over an axis of each */        \
    X(VALID, "valid")         /* x -> mask of its steps, all valid */          \
    X(LOGIC, "logic")         /* of masks, step by step */                     \
    X(ATTENTION, "attention") /* dot product, and additive */                  \
    X(NONZERO, "nonzero")     /* ids or numbers -> mask: not 0 */              \
    X(NOT_EQUAL, "not_equal") /* features -> mask: any differs from a value */ \
    X(MASKED, "masked")       /* x with masked steps set to zero */            \
    X(LOG_SOFTMAX, "log_softmax") /* over the last axis */                     \
    X(SPARSEMAX, "sparsemax")     /* over the last axis */                     \
    X(RELU, "relu")               /* with all of Keras's options */            \
    X(PRELU, "prelu")             /* a slope for each element */               \
    X(NORMALIZE, "normalize")     /* by the input's own moments */             \
    X(AFFINE, "affine")           /* (x - shift) * scale + offset */           \
    X(WINDOW, "window")           /* steps side by side, for a convolution */  \
    X(POOL, "pool")               /* windows of steps to one step each */      \
    X(REDUCE, "reduce")           /* all steps to one */

typedef enum cg_kind {
#define CG_KIND_ENUM(name, text) CG_##name,
    CG_KIND_LIST(CG_KIND_ENUM)
#undef CG_KIND_ENUM
        CG_KIND_COUNT
} cg_kind;

typedef struct cg_value {
    char *name;
    int32_t dtype; /* F32, I32 (ids) or U8 (masks) */
    int32_t rank;
    int64_t shape[CELLGATE_MAX_RANK]; /* CG_UNKNOWN where the request decides */
    int32_t producer; /* node, or -1 for what a request brings */
} cg_value;

/* An attribute set a kind. */

typedef struct cg_embedding {
    int64_t vocabulary, size;
} cg_embedding; /* in: ids; weights: table [vocabulary][size] */

/*
 * inputs:  0 x, 1 mask or none, then for each direction h0, c0 or none
 * outputs: 0 sequence, 1 last, then for each direction h, c; CG_NO_VALUE for
 *          those that nothing uses
 * weights: for each direction kernel, recurrent kernel, bias, peephole,
 *          projection, as cellgate_lstm_weights; absent ones have no data
 * `shape` holds all of plugin.h's attributes; its weights and op header are
 * unused here. Meaning is plugin.h's, except for masks: a masked step leaves
 * the state alone and its sequence output repeats the row's previous output
 * (in processing order; zeros before the first), or is zero with
 * `zero_masked`. With zero_masked, LAST is zero where the last step in
 * processing order is masked.
 */
typedef struct cg_lstm {
    cellgate_lstm shape;
    bool zero_masked;
    bool stateful; /* as the file says; streams do not need it */
} cg_lstm;

/* Inputs and outputs of every recurrent kind. */
#define CG_RECURRENT_INPUT_MASK 1
#define CG_RECURRENT_INPUT_STATE 2
#define CG_RECURRENT_OUTPUT_SEQUENCE 0
#define CG_RECURRENT_OUTPUT_LAST 1
#define CG_RECURRENT_OUTPUT_STATE 2

#define CG_LSTM_INPUT_MASK CG_RECURRENT_INPUT_MASK
/* + 2 * direction: h0, then c0 */
#define CG_LSTM_INPUT_STATE CG_RECURRENT_INPUT_STATE
#define CG_LSTM_OUTPUT_SEQUENCE CG_RECURRENT_OUTPUT_SEQUENCE
#define CG_LSTM_OUTPUT_LAST CG_RECURRENT_OUTPUT_LAST
/* + 2 * direction: h, then c */
#define CG_LSTM_OUTPUT_STATE CG_RECURRENT_OUTPUT_STATE
#define CG_LSTM_WEIGHTS 5 /* a direction */

/*
 * GRU and SIMPLE_RNN, of one direction.
 *
 * inputs:  0 x, 1 mask or none, 2 h0 or none
 * outputs: 0 sequence, 1 last, 2 h; CG_NO_VALUE for those that nothing uses.
 *          What they hold, masks and zero_masked are as for an LSTM
 *
 * GRU, with W the kernel [input_size][3 * hidden_size], U the recurrent kernel
 * [hidden_size][3 * hidden_size], parts z, r, n in this order:
 *   z = gate(x Wz + bz + h Uz + dz)      r = gate(x Wr + br + h Ur + dr)
 *   n = activation(x Wn + bn + r * (h Un + dn))       with reset_after
 *   n = activation(x Wn + bn + (r * h) Un)            without
 *   h' = z * h + (1 - z) * n
 * weights: kernel, recurrent kernel, bias: [2][3 * hidden_size], b and d, with
 * reset_after, else [3 * hidden_size], b, and d is zero.
 *
 * SIMPLE_RNN: h' = activation(x W + b + h U); weights: kernel
 * [input_size][hidden_size], recurrent kernel [hidden_size][hidden_size], bias
 * [hidden_size].
 */
typedef struct cg_recurrent {
    int64_t input_size, hidden_size;
    bool has_bias;
    bool reset_after; /* of a GRU, as is `gate` */
    bool reverse;     /* from the last step to the first; outputs keep time */
    bool zero_masked;
    bool stateful;
    cellgate_activation gate, activation;
} cg_recurrent;

#define CG_RECURRENT_WEIGHTS 3

typedef struct cg_dense {
    int64_t input_size, units;
    bool has_bias;
    cellgate_activation activation;
} cg_dense; /* weights: kernel [input_size][units], bias [units] */

typedef enum cg_attention_mode {
    CG_ATTENTION_DOT,     /* score = scale * sum_d q[d] k[d] */
    CG_ATTENTION_CONCAT,  /* weight * sum_d tanh(scale * (q[d] + k[d])) */
    CG_ATTENTION_ADDITIVE /* sum_d scale[d] tanh(q[d] + k[d]) */
} cg_attention_mode;

/*
 * inputs:  0 query [batch][Tq][size], 1 value [batch][Tv][V], 2 key
 *          [batch][Tv][size] or none, which means the value, 3 mask of the
 *          query or none, 4 mask of the value or none
 * outputs: 0 context [batch][Tq][V], 1 weights [batch][Tq][Tv]
 * weights: 0 scale, one number or, of ADDITIVE, [size]; absent: 1; 1 weight of
 *          CONCAT, one number
 *
 * The weights of a step of the query are the softmax of its scores, and its
 * context is the sum of the values by these weights; zero where the mask hides
 * the step. Steps of the value that are masked, or with `causal` later than the
 * query's own, score 1e9 less in single precision: no weight, but where there
 * is none of another kind all of them weigh the same, as in Keras.
 */
typedef struct cg_attention {
    cg_attention_mode mode;
    int64_t size;
    bool scaled; /* it has the weight */
    bool causal;
} cg_attention;

#define CG_ATTENTION_INPUT_KEY 2
#define CG_ATTENTION_INPUT_QUERY_MASK 3
#define CG_ATTENTION_INPUT_VALUE_MASK 4

typedef enum cg_merge_mode {
    CG_MERGE_SUM,
    CG_MERGE_AVERAGE,
    CG_MERGE_PRODUCT
} cg_merge_mode;

/*
 * Axes count from 0, the batch, which nothing moves. Slices, concatenations,
 * paddings, repetitions, reshaped and permuted values have the dtype of their
 * input, whichever that is: masks are moved too.
 */

typedef struct cg_slice {
    /* begin < 0, end <= 0: that many before the axis's end */
    int64_t begin, end;
    int32_t axis; /* 0: the last one */
    /* Of the range every step-th index, the first one first; of step < 0 every
       -step-th, the last one first. 0: 1, all of them. */
    int64_t step;
} cg_slice;

/* How many indices it takes of a range of `width`, which is CG_UNKNOWN or at
   least 1. */
int64_t cg_slice_count(const cg_slice *slice, int64_t width);

/* A concatenation's attribute is its axis, 0 being the last one. An input that
   is absent, a mask that the request did not bring, is all valid. */

typedef struct cg_pad {
    int64_t before, after;
    int32_t axis;
} cg_pad;

typedef struct cg_repeat {
    int64_t times;
    int32_t axis;
} cg_repeat;

typedef struct cg_reshape {
    cg_extents extents; /* after the kept axes; one may be -1: what is left */
    int32_t keep;       /* leading axes that stay, 1 or more */
} cg_reshape;

/* A permutation's attribute: which of the input's axes stands where. */

/* Numbers to ids are cut off towards zero; ones that int32 does not hold become
   INT32_MIN. */
typedef enum cg_cast {
    CG_CAST_NUMBERS, /* to F32; a mask becomes 0 and 1 */
    CG_CAST_IDS      /* to I32 */
} cg_cast;

/* Inputs of fewer axes lack those behind the batch; an extent of 1 stretches,
   but not that of the batch. The maximum or minimum with a NaN is NaN. */
typedef enum cg_combine {
    CG_COMBINE_ADD,
    CG_COMBINE_SUBTRACT, /* of two */
    CG_COMBINE_MULTIPLY,
    CG_COMBINE_AVERAGE,
    CG_COMBINE_MAXIMUM,
    CG_COMBINE_MINIMUM,
    CG_COMBINE_DIVIDE /* of two */
} cg_combine;

/*
 * inputs: x, its mask of one axis less (valid everywhere if absent), and what
 * stands for x at masked steps; without that, the attribute does. Axes match as
 * those of a combination.
 */

/*
 * Sums over axis_a of the first input and axis_b of the second one; then come
 * the first one's other axes, then the second one's without the batch, or an
 * axis of 1 where there are none. With `normalize` each is divided by its
 * Euclidean norm over that axis, whose square counts as least_square at least.
 */
typedef struct cg_dot {
    int32_t axis_a, axis_b;
    float least_square;
    bool normalize;
} cg_dot;

/* Absent masks are all valid. Axes match as those of a combination. */
typedef enum cg_logic {
    CG_LOGIC_AND,
    CG_LOGIC_OR,
    CG_LOGIC_NOT /* of one */
} cg_logic;

/* x > threshold ? min(x, limit) : slope * (x - threshold) */
typedef struct cg_relu {
    float slope, threshold, limit;
    bool limited; /* false: there is no limit, and it is 0 */
} cg_relu;

/* What of the trailing axes, which have these extents, is brought to 1 by
   division; MOMENTS takes the mean away before. */
typedef enum cg_normalize_mode {
    CG_NORMALIZE_MOMENTS,  /* sqrt(variance + epsilon) */
    CG_NORMALIZE_VARIANCE, /* the same, and the mean stays */
    CG_NORMALIZE_RMS,      /* sqrt(mean of x^2 + epsilon) */
    CG_NORMALIZE_UNIT      /* sqrt(max(sum of x^2, epsilon)) */
} cg_normalize_mode;

typedef struct cg_normalize {
    cg_normalize_mode mode;
    cg_extents extents;
    float epsilon;
    bool has_gamma, has_beta;
} cg_normalize; /* weights: gamma, beta, of the extents */

/* The extents lie over the trailing axes of x; 1 serves the whole axis. */
typedef struct cg_affine {
    cg_extents extents;
    bool has_shift, has_offset;
} cg_affine; /* weights: shift, scale, offset, of the extents */
/* PRELU: extents likewise; weights: alpha, of the extents */

/*
 * Windows over the steps, the last axis but one: window i holds `size` steps,
 * `dilation` apart, from i * stride - before on. VALID: all of them are steps
 * of x. SAME: as many windows as there are multiples of the stride, with half
 * of what is too much, rounded down, before. CAUSAL: the last step of window i
 * is step i * stride. A step outside of x is zeros.
 */
typedef enum cg_padding {
    CG_PADDING_VALID,
    CG_PADDING_SAME,
    CG_PADDING_CAUSAL
} cg_padding;

typedef struct cg_window {
    int64_t size, stride, dilation;
    cg_padding padding;
} cg_window; /* [.., steps, f] -> [.., windows, size * f] */

typedef enum cg_pool_mode {
    CG_POOL_MAXIMUM,
    CG_POOL_AVERAGE, /* of the steps of x in a window: padding does not count */
    CG_POOL_SUM,     /* of a reduction only, as is the next */
    CG_POOL_MINIMUM
} cg_pool_mode;

typedef struct cg_pool {
    cg_pool_mode mode;
    cg_window window; /* VALID or SAME; its dilation is 1 */
} cg_pool;            /* [.., steps, f] -> [.., windows, f] */

/* inputs: x, and for an average a mask, or none: it counts valid steps only,
   and is NaN for a row without. */
typedef struct cg_reduce {
    cg_pool_mode mode;
    bool keep; /* the axis of the steps, as one step */
} cg_reduce;

/* The most that any number of a file may say: sizes, vocabulary. Products of
   two of them fit in 64 bits with room to spare. */
#define CG_MAX_SIZE ((int64_t)1 << 28)

typedef struct cg_weight {
    const char *name;  /* "kernel"; unique within its node; static */
    const float *data; /* 64-byte aligned; NULL for an absent one */
    int32_t rank;
    int64_t shape[CELLGATE_MAX_RANK];
} cg_weight;

typedef struct cg_node {
    char *name;   /* the layer's; unique in the model */
    char *layer;  /* its place and class in the file, for messages:
                     "layer 2 of 3, 'forecast' (LSTM)" */
    char *detail; /* options worth knowing, for people; set by finish */
    cg_kind kind;
    int32_t *inputs; /* values; CG_NO_VALUE for an optional one left out */
    size_t input_count;
    int32_t *outputs;
    size_t output_count;
    cg_weight *weights;
    size_t weight_count;
    union {
        cg_embedding embedding;
        cg_lstm lstm;
        cg_recurrent recurrent;
        cg_attention attention;
        cg_dense dense;
        cellgate_activation activation;
        cg_merge_mode merge;
        cg_slice slice;
        int32_t concat;
        cg_pad pad;
        cg_repeat repeat;
        cg_reshape reshape;
        cg_extents permute;
        cg_cast cast;
        cg_combine combine;
        float select;
        cg_dot dot;
        cg_logic logic;
        cg_relu relu;
        cg_extents prelu;
        cg_normalize normalize;
        cg_affine affine;
        cg_window window;
        cg_pool pool;
        cg_reduce reduce;
        float not_equal;
    } as;
} cg_node;

/*
 * What a request brings for one model input: the value, and the optional mask
 * that the request may give with it. The mask is CG_NO_VALUE where no node
 * would look at it: a request that gives one there asks for something that
 * does not happen, and is refused.
 */
typedef struct cg_input {
    int32_t value;
    int32_t mask;
    /* The file has the axis of steps before that of rows, as Keras's
       time_major; the value has not. */
    bool steps_first;
} cg_input;

struct cellgate_model {
    char *path;   /* of the file, for messages */
    char *format; /* "keras", "native" */
    char *format_version;
    char *note; /* on how the file was read, for people; NULL: nothing */
    char fingerprint[33]; /* XXH3 128 bit, in hex */
    cg_value *values;
    size_t value_count;
    cg_node *nodes; /* in an order in which they can be computed; each is
                       needed by an output */
    size_t node_count;
    cg_input *inputs;
    size_t input_count;
    int32_t *outputs;         /* values */
    bool *output_steps_first; /* as cg_input's, for each output */
    char **output_names;      /* NULL for one that is called as its value */
    size_t output_count;
    /* NULL: none yet; see selftest.h */
    const struct cg_selftest *selftest;
    /* private to model/: memory that weights live in, reference count */
    struct cg_model_store *store;
};

/* ---- Building ---------------------------------------------------------- */

/*
 * Everything here is for one thread. A model under construction is given up
 * with cellgate_model_destroy(). `format` and `format_version` are what
 * cellgate_model_format() and _version() will say.
 */
cellgate_status cg_model_create(const char *path, const char *format,
                                const char *format_version,
                                cellgate_model **model, cellgate_error *error);

/* Sets the note, unless there is one: the first thing worth saying counts. */
cellgate_status cg_model_add_note(cellgate_model *model, const char *text,
                                  cellgate_error *error);

/*
 * Adds a value; its number goes to *value. Names are unique. `shape` may be
 * NULL for a value whose rank and shape cg_model_finish() infers from its
 * producer; one that is given must agree with what is inferred.
 */
cellgate_status cg_model_add_value(cellgate_model *model, const char *name,
                                   int32_t dtype, int32_t rank,
                                   const int64_t *shape, int32_t *value,
                                   cellgate_error *error);
/*
 * Declares `value`, of numbers or ids, the next model input; makes its mask
 * value, "NAME:mask" of shape [batch][steps], for a rank of 2 (which serves
 * ids) or more. cg_model_finish() drops the mask again if no node looks at it.
 */
cellgate_status cg_model_add_input(cellgate_model *model, int32_t value,
                                   cellgate_error *error);
/* The same value may be several outputs, and may be an input too. */
cellgate_status cg_model_add_output(cellgate_model *model, int32_t value,
                                    cellgate_error *error);
/* Says of the newest input or output that the file has its steps before its
   rows. BAD_FILE: it has no steps, or there is none. */
cellgate_status cg_model_turn_input(cellgate_model *model,
                                    cellgate_error *error);
cellgate_status cg_model_turn_output(cellgate_model *model,
                                     cellgate_error *error);
/* Calls the newest output otherwise than its value. BAD_FILE: there is none. */
cellgate_status cg_model_name_output(cellgate_model *model, const char *name,
                                     cellgate_error *error);
/*
 * Adds a copy of `node`: its strings and arrays are copied. Weights' data are
 * not, they must be in memory from cg_model_memory() or a mapping given to
 * cg_model_map(); several nodes may point to the same. Weights lie in the
 * order of the kind's slots (cg_node_weight()); their names are set here.
 */
cellgate_status cg_model_add_node(cellgate_model *model, const cg_node *node,
                                  cellgate_error *error);
/* Zeroed, 64-byte-aligned memory that lives as the model does; NULL if none. */
void *cg_model_memory(cellgate_model *model, size_t size);
/* Hands over a mapping, to be unmapped with the model (after a failure it is
   still the caller's). */
cellgate_status cg_model_map(cellgate_model *model, void *address, size_t size,
                             cellgate_error *error);
/* The weights of `from`, which lives as long as the model from here on, may be
   those of the model's nodes. At most once a model. */
void cg_model_share(cellgate_model *model, const cellgate_model *from);

/*
 * Drops what no output needs, sorts the nodes (those in a usable order keep
 * it), renumbers the values, infers every shape, checks everything (arity,
 * dtypes, ranks, sizes, weights' shapes, cycles, duplicate names), sets LSTM
 * output flags from what is used, and computes the fingerprint. BAD_FILE names
 * the layer. The batch axis of every value is unknown afterwards.
 */
cellgate_status cg_model_finish(cellgate_model *model, cellgate_error *error);

/* ---- Recurrent nodes ---------------------------------------------------- */

/* Kinds of state a node carries from step to step: an LSTM has h and c, a GRU
   or SimpleRNN h, others have none. */
static inline int32_t cg_node_state_kinds(const cg_node *node)
{
    return node->kind == CG_LSTM                                 ? 2
           : node->kind == CG_GRU || node->kind == CG_SIMPLE_RNN ? 1
                                                                 : 0;
}

/* Directions in which it runs; 0 for a node that is not recurrent. State
   number kinds * d + k of a node is its kind k in direction d. */
static inline int32_t cg_node_directions(const cg_node *node)
{
    return node->kind == CG_LSTM ? node->as.lstm.shape.directions
                                 : cg_node_state_kinds(node);
}

/* Numbers in a row of a state of kind h (0) or c (1). */
static inline int64_t cg_node_state_width(const cg_node *node, int32_t kind)
{
    const cellgate_lstm *lstm = &node->as.lstm.shape;

    if (node->kind != CG_LSTM)
        return node->as.recurrent.hidden_size;
    return kind == 0 && lstm->projection_size > 0 ? lstm->projection_size
                                                  : lstm->hidden_size;
}

/* ---- Using ------------------------------------------------------------- */

/* Another owner: each is ended by cellgate_model_destroy(). Any thread. */
cellgate_model *cg_model_reference(const cellgate_model *model);

/*
 * Weight slots of a node, from its kind and attributes alone. _count() is how
 * many there are; cg_node_weight() fills name, rank and shape of slot `index`
 * and says whether the node has that weight (false: its data is NULL).
 */
size_t cg_node_weight_count(const cg_node *node);
bool cg_node_weight(const cg_node *node, size_t index, cg_weight *expected);

/*
 * Shapes of a node's outputs from those of its inputs. Unknown dimensions stay
 * unknown, so it serves at load time and, with a request's real shapes, at run
 * time. `shapes` is indexed by value number. Allocates nothing; any thread.
 * BAD_SHAPE names the node and the axis.
 */
typedef struct cg_shape {
    int32_t rank;
    int64_t extent[CELLGATE_MAX_RANK];
} cg_shape;
cellgate_status cg_node_infer(const cellgate_model *model, const cg_node *node,
                              cg_shape *shapes, cellgate_error *error);

/* How many windows lie over `steps`, and what padding lies before; -1 if there
   are too few steps for one. */
int64_t cg_window_count(const cg_window *window, int64_t steps,
                        int64_t *before);

/* Number of elements of a shape; -1 with an unknown dimension, or with one
   whose size in bytes does not fit in memory. */
int64_t cg_shape_elements(const cg_shape *shape);

#endif
