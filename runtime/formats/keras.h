/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of Keras's files, from Keras 1 to 3. Private to keras_*.c.
 *
 *   keras_config.c      .keras: the zip and what lies in it
 *   keras_hdf5.c        .h5; with keras_beside.c, which finds the other one of
 *                       an architecture and its weights
 *   keras_read.c        a model of both, wherever they lie
 *   keras_upgrade.c     configurations of Keras 1 and 2; with keras_versions.c
 *   keras_json.c        typed look-ups in a layer's configuration
 *   keras_graph.c       wiring, nested models; with keras_sequential.c,
 *                       keras_functional.c, keras_inputs.c, keras_tensors.c
 *   keras_layers.c      the table of layers, and the simple ones
 *   keras_moving.c      layers that move numbers about
 *   keras_merge.c       layers that merge tensors, and keras_combine.c
 *   keras_recurrent.c   LSTM, GRU, SimpleRNN, RNN; with keras_cells.c and
 *                       keras_bidirectional.c
 *   keras_attention.c   Attention, AdditiveAttention
 *   keras_conv.c        Conv1D and pooling
 *   keras_normalize.c   normalisation by the input's own moments; by numbers of
 *                       the file: keras_batch_normalization.c,
 *                       keras_rescaling.c; keras_prelu.c, keras_softmax.c; what
 *                       they share is in keras_trailing.h
 *   keras_time.c        TimeDistributed
 *   keras_steps_first.c time_major=True
 *   keras_operation.c   operations on tensors; keras_operation.h lists the rest
 *   keras_axes.c        axes and arrays of numbers in configurations
 *   keras_activation.c  activations by name and as objects
 *   keras_emit.c        adding nodes and values to the model
 *   keras_claim.c       numbers or ids: the dtypes of values
 *   keras_weights.c     weights for a layer; with keras_paths.c and what
 *                       keras_source.h lists
 *
 * To support one more layer, write a builder and add an entry to the table in
 * keras_layers.c. A builder gets a call: the layer's configuration, the tensors
 * it is called on, and where its results go.
 *
 * MASKS travel with tensors as in Keras: a layer that supports masking passes
 * its input's mask on, others drop it; merging layers merge masks, in Keras 3
 * otherwise than in Keras 2 (keras_merge.h); TimeDistributed passes its mask on
 * whatever it holds. Two things follow Keras by measurement, not by its
 * documentation: in Keras 3, a recurrent layer called with initial_state as
 * tensors does not look at the mask of its input (only at one given as mask=),
 * but passes it on, where in Keras 2 it looks at it; and a functional model's
 * configuration spells masks out as mask= with operations, which the table
 * takes for that purpose (keras_masks.c).
 * One thing differs: an Embedding without mask_zero passes on the mask that a
 * request gives with the ids, where Keras warns and drops it.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_KERAS_H
#define CELLGATE_RUNTIME_FORMATS_KERAS_H

#include <jansson.h>

#include "runtime/formats/h5.h"
#include "runtime/model/model.h"

/* Bounds on what a configuration may ask for; real models stay far below. */
#define CG_KERAS_MAX_DEPTH 16 /* models inside models */
/* Layers and their calls, all together. A model counts anew each time it is
   called: a small file can ask for it very often. */
#define CG_KERAS_MAX_LAYERS 65536
/* What they become: some layers are many nodes, as a convolution in groups. */
#define CG_KERAS_MAX_NODES 65536
#define CG_KERAS_MAX_SWEEPS 1024 /* over the layers of a functional model */
/* Tensors looked up, those of calls that have to wait again and again. */
#define CG_KERAS_MAX_LOOKUPS (1 << 20)
#define CG_KERAS_PLACE 256

/* What a tensor stands for that is no value of the model; only the making of a
   mask may use it. */
typedef enum cg_keras_stand {
    CG_KERAS_ITSELF,
    CG_KERAS_STRETCHED, /* the mask `value`, the same for each feature */
    CG_KERAS_ZEROS
} cg_keras_stand;

/* A symbolic tensor: a value of the model and the mask that goes with it. */
typedef struct cg_keras_tensor {
    int32_t value;
    int32_t mask; /* CG_NO_VALUE: none */
    /* It stands for `value` != `constant`, element by element, which only the
       making of a mask may use. */
    bool compared;
    float constant;
    cg_keras_stand stands;
    bool turned; /* Keras's has steps before rows: keras_steps_first.c */
} cg_keras_tensor;

/* A growing list of tensors. */
typedef struct cg_keras_list {
    cg_keras_tensor *items;
    size_t count, room;
} cg_keras_list;

cellgate_status cg_keras_list_add(cg_keras_list *list, cg_keras_tensor tensor,
                                  cellgate_error *error);
void cg_keras_list_finish(cg_keras_list *list);

typedef struct cg_keras_source cg_keras_source; /* keras_source.h */

/* Weights already read, and what is known of values; see keras_weights.c and
   keras_emit.c. */
typedef struct cg_keras_reader {
    cellgate_model *model;
    const char *keras_version;
    int keras_major, keras_minor; /* 2 for files of tf.keras */
    cg_keras_source *source;
    json_t *loaded; /* group and number -> index into `weights` */
    cg_weight *weights;
    size_t weight_count, weight_room;
    json_t *steps_first; /* names of inputs that are so -> true */
    json_t *shared;      /* "id" of a layer in several places -> its path */
    json_t *names;       /* of nodes and values in use */
    json_t *made;        /* masks and casts that are there: keras_emit.c */
    cg_shape *shapes;    /* by value number */
    bool *claimed;       /* a model input that a layer has fixed the dtype of */
    int32_t *declared;   /* of a model input: the dtype that the file says */
    size_t shape_room;
    size_t layers, lookups; /* see CG_KERAS_MAX_LAYERS, _LOOKUPS */
    size_t derivable;       /* numbers that cg_keras_derive() may still make */
} cg_keras_reader;

typedef struct cg_keras_class cg_keras_class;

/* A layer of the file. Strings are the configuration's or the caller's. */
typedef struct cg_keras_layer {
    cg_keras_reader *reader;
    const cg_keras_class *class;
    const json_t *json;   /* the whole object: class_name, config ... */
    const json_t *config; /* its "config" */
    const char *class_name;
    const char *name;
    char place[CG_KERAS_PLACE]; /* "layer 2 of 3, 'forecast' (LSTM)" */
    const char *path;           /* of its group in the weights: "layers/lstm" */
    const char *prefix; /* of names, for a nested model: "inner/" or "" */
    int depth;          /* models around it */
    /* Axes between the batch and what the layer takes for the axis after it:
       as many as there are TimeDistributed around it. */
    int32_t lead;
} cg_keras_layer;

/* One call of a layer. */
typedef struct cg_keras_call {
    const cg_keras_layer *layer;
    const char *name;     /* unique; what its node and main value are called */
    cg_keras_list inputs; /* tensors among the positional arguments, flat */
    cg_keras_list states; /* initial_state= */
    const json_t *args;   /* positional arguments as written, or NULL */
    const json_t *keywords; /* likewise, for a class that reads them */
    cg_keras_tensor mask;   /* mask=; value is CG_NO_VALUE without one */
    /* mask= of a layer that takes several: one a tensor, likewise */
    cg_keras_list masks;
    bool causal; /* use_causal_mask= */
    bool scores; /* return_attention_scores= */
    cg_keras_list outputs;
} cg_keras_call;

static inline const cg_shape *cg_keras_shape(const cg_keras_call *call,
                                             int32_t value)
{
    return &call->layer->reader->shapes[value];
}

typedef cellgate_status (*cg_keras_builder)(cg_keras_call *call,
                                            cellgate_error *error);

/* An entry of the table of layers. */
struct cg_keras_class {
    const char *name;
    cg_keras_builder build;
    /* Keys of its configuration that the builder honours, or that have no
       effect at inference; NULL at the end. Others may only say null, false,
       0 or "". */
    const char *const *options;
    uint32_t flags;
};

/* What training does to a weight. */
#define CG_KERAS_TRAINING(weight)                                              \
#weight "_initializer", #weight "_regularizer", #weight "_constraint"

enum {
    /* Its builder heeds `lead`: TimeDistributed(it) is the same as it, on one
       more axis */
    CG_KERAS_PER_STEP = 1u << 0,
    CG_KERAS_MODEL = 1u << 1,     /* holds layers of its own */
    CG_KERAS_OPERATION = 1u << 2, /* an operation, not a layer */
    CG_KERAS_INPUT = 1u << 3,
    CG_KERAS_ATTENDS = 1u << 4, /* takes the keywords of attention, and a list
                                   of masks */
    /* Does the same whichever of its first two axes are the rows */
    CG_KERAS_ANY_ORDER = 1u << 5,
    CG_KERAS_TURNS = 1u << 6,   /* its builder heeds `turned` */
    CG_KERAS_KEYWORDS = 1u << 7 /* its builder reads the keywords */
};

/* Among the flags: how many of a class's weights, the last ones, training does
   not change. */
#define CG_KERAS_UNTRAINED(count) ((uint32_t)(count) << 8)

/* Fills *error with "PLACE: text" and returns `status`. */
CELLGATE_PRINTF_LIKE(4, 5)
cellgate_status cg_keras_fail(cellgate_error *error, cellgate_status status,
                              const cg_keras_layer *layer, const char *format,
                              ...);

/* ---- keras_layers.c ---------------------------------------------------- */

/*
 * Fills class, config, class_name, name and place of a layer from its JSON;
 * reader, prefix and depth are set. `index` and `count` say its place in the
 * model; `model` names a nested one, or is NULL. UNSUPPORTED: a class that is
 * not in the table, or an option it doesn't know.
 */
cellgate_status cg_keras_layer_init(cg_keras_layer *layer, const json_t *json,
                                    size_t index, size_t count,
                                    const char *model, cellgate_error *error);
/* The entry for a class of Keras's own; NULL for any other. */
const cg_keras_class *cg_keras_find_class(const json_t *json);

/* Gives on what it takes. */
cellgate_status cg_keras_build_identity(cg_keras_call *call,
                                        cellgate_error *error);
/* The call's only tensor. */
cellgate_status cg_keras_only_input(const cg_keras_call *call,
                                    cg_keras_tensor *tensor,
                                    cellgate_error *error);

/* ---- keras_moving.c ----------------------------------------------------- */

cellgate_status cg_keras_build_repeat_vector(cg_keras_call *call,
                                             cellgate_error *error);
cellgate_status cg_keras_build_flatten(cg_keras_call *call,
                                       cellgate_error *error);
cellgate_status cg_keras_build_reshape(cg_keras_call *call,
                                       cellgate_error *error);
cellgate_status cg_keras_build_permute(cg_keras_call *call,
                                       cellgate_error *error);
cellgate_status cg_keras_build_up_sampling(cg_keras_call *call,
                                           cellgate_error *error);
cellgate_status cg_keras_build_zero_padding(cg_keras_call *call,
                                            cellgate_error *error);
cellgate_status cg_keras_build_cropping(cg_keras_call *call,
                                        cellgate_error *error);

/* ---- keras_merge.c ------------------------------------------------------ */

/* Add, Subtract, Multiply, Average, Maximum, Minimum. */
cellgate_status cg_keras_build_combine(cg_keras_call *call,
                                       cellgate_error *error);
cellgate_status cg_keras_build_concatenate(cg_keras_call *call,
                                           cellgate_error *error);
cellgate_status cg_keras_build_dot(cg_keras_call *call, cellgate_error *error);

/* ---- keras_recurrent.c, keras_cells.c, keras_bidirectional.c ------------ */

/* LSTM, GRU, SimpleRNN, RNN. */
cellgate_status cg_keras_build_recurrent(cg_keras_call *call,
                                         cellgate_error *error);
/* A cell called as a layer. */
cellgate_status cg_keras_build_cell(cg_keras_call *call, cellgate_error *error);
cellgate_status cg_keras_build_bidirectional(cg_keras_call *call,
                                             cellgate_error *error);
extern const char *const cg_keras_lstm_options[];
extern const char *const cg_keras_gru_options[];
extern const char *const cg_keras_simple_rnn_options[];
extern const char *const cg_keras_rnn_options[];
extern const char *const cg_keras_lstm_cell_options[];
extern const char *const cg_keras_gru_cell_options[];
extern const char *const cg_keras_simple_rnn_cell_options[];
extern const char *const cg_keras_stacked_cells_options[];
extern const char *const cg_keras_bidirectional_options[];

/* ---- keras_attention.c -------------------------------------------------- */

cellgate_status cg_keras_build_attention(cg_keras_call *call,
                                         cellgate_error *error);
extern const char *const cg_keras_attention_options[];

/* ---- keras_graph.c ----------------------------------------------------- */

/* The whole model: inputs, layers, outputs. */
cellgate_status cg_keras_build_top(cg_keras_reader *reader, const json_t *json,
                                   cellgate_error *error);
/* A Sequential or functional model called as a layer. */
cellgate_status cg_keras_build_model(cg_keras_call *call,
                                     cellgate_error *error);

/* ---- keras_activation.c ------------------------------------------------ */

typedef struct cg_keras_activation {
    /* ACTIVATION; or a node of its own, with `elementwise` LINEAR: SOFTMAX,
       LOG_SOFTMAX, SPARSEMAX, RELU */
    cg_kind kind;
    cellgate_activation elementwise;
    cg_relu relu; /* of a RELU */
} cg_keras_activation;

/* From a layer's configuration; null is linear. `absent` names the layer's own
   default; NULL: it has none, and the key has to be there. */
cellgate_status cg_keras_get_activation(const cg_keras_layer *layer,
                                        const char *key, const char *absent,
                                        cg_keras_activation *activation,
                                        cellgate_error *error);
/* From an activation layer: LeakyReLU, ReLU, ELU, Softmax, Activation. */
cellgate_status cg_keras_layer_activation(const cg_keras_layer *layer,
                                          const json_t *json,
                                          cg_keras_activation *activation,
                                          cellgate_error *error);

/*
 * Adds the node of an activation that is one of its own (`kind` is not
 * ACTIVATION), or of an elementwise one. The node is called by `suffix`, its
 * value by `name`.
 */
cellgate_status cg_keras_activate(const cg_keras_call *call,
                                  const cg_keras_activation *activation,
                                  int32_t input, const char *suffix,
                                  const char *name, int32_t *value,
                                  cellgate_error *error);

/* ---- keras_conv.c ------------------------------------------------------ */

cellgate_status cg_keras_build_conv(cg_keras_call *call, cellgate_error *error);
cellgate_status cg_keras_build_pool(cg_keras_call *call, cellgate_error *error);
cellgate_status cg_keras_build_global_pool(cg_keras_call *call,
                                           cellgate_error *error);
extern const char *const cg_keras_conv_options[];
extern const char *const cg_keras_pool_options[];
extern const char *const cg_keras_global_pool_options[];

/* ---- keras_normalize.c and its kin, keras_softmax.c --------------------- */

cellgate_status cg_keras_build_layer_normalization(cg_keras_call *call,
                                                   cellgate_error *error);
cellgate_status cg_keras_build_batch_normalization(cg_keras_call *call,
                                                   cellgate_error *error);
cellgate_status cg_keras_build_normalization(cg_keras_call *call,
                                             cellgate_error *error);
cellgate_status cg_keras_build_rescaling(cg_keras_call *call,
                                         cellgate_error *error);
cellgate_status cg_keras_build_prelu(cg_keras_call *call,
                                     cellgate_error *error);
cellgate_status cg_keras_build_softmax(cg_keras_call *call,
                                       cellgate_error *error);
extern const char *const cg_keras_layer_normalization_options[];
extern const char *const cg_keras_batch_normalization_options[];
extern const char *const cg_keras_normalization_options[];
extern const char *const cg_keras_rescaling_options[];
extern const char *const cg_keras_prelu_options[];
extern const char *const cg_keras_softmax_options[];

/* ---- keras_time.c ------------------------------------------------------ */

cellgate_status cg_keras_build_time_distributed(cg_keras_call *call,
                                                cellgate_error *error);
extern const char *const cg_keras_time_distributed_options[];
/* UNSUPPORTED for a layer inside a TimeDistributed that does not heed it. */
cellgate_status cg_keras_check_lead(const cg_keras_layer *layer,
                                    cellgate_error *error);

/* ---- keras_steps_first.c ------------------------------------------------ */

/* Adds the names of the inputs of the model at the top that have steps first.
 */
cellgate_status cg_keras_find_steps_first(json_t *names, const json_t *model,
                                          cellgate_error *error);
/* Runs the builder of a call: results are turned where all inputs are and the
   class is of any order. UNSUPPORTED: it can't be that way round. */
cellgate_status cg_keras_run_in_order(cg_keras_call *call,
                                      cellgate_error *error);
/* That the call's first input is turned just as the layer says, and no state
   is. */
cellgate_status cg_keras_check_turned(const cg_keras_call *call,
                                      bool time_major, cellgate_error *error);

/* ---- keras_operation.c -------------------------------------------------- */

/* An operation of Keras 3; NULL: none that is taken. */
const cg_keras_class *cg_keras_find_operation(const char *name);
/* TFOpLambda and SlicingOpLambda, of Keras 2. */
cellgate_status cg_keras_build_tf_operation(cg_keras_call *call,
                                            cellgate_error *error);

/* ---- keras_axes.c ------------------------------------------------------ */

/* A list of axes, or a single one, or null for none: in the order of the file,
   counted as the layer counts them, from 0 for the batch; it has `rank` axes.
   BAD_FILE: an axis it has not, the batch, or one twice. */
cellgate_status cg_keras_get_axes(const cg_keras_layer *layer, const char *key,
                                  int32_t rank, const cg_extents *absent,
                                  cg_extents *axes, cellgate_error *error);
/* A size, alone or in a list of its own; `absent` 0: it has to be there. */
cellgate_status cg_keras_get_one(const cg_keras_layer *layer, const char *key,
                                 int64_t absent, int64_t *size,
                                 cellgate_error *error);
/* data_format: whether features come before steps. */
cellgate_status cg_keras_features_first(const cg_keras_layer *layer,
                                        bool *first, cellgate_error *error);
/* Numbers in lists in lists, as many as the shape says. */
typedef struct cg_keras_numbers {
    cg_extents shape; /* of count 0: one number */
    double *items;    /* malloc'ed */
} cg_keras_numbers;
/* *numbers is to be freed (its items) in every case; `what` is for messages. */
cellgate_status cg_keras_read_numbers(const cg_keras_layer *layer,
                                      const char *what, const json_t *json,
                                      cg_keras_numbers *numbers,
                                      cellgate_error *error);
/* The same, of the layer's configuration. */
cellgate_status cg_keras_get_numbers(const cg_keras_layer *layer,
                                     const char *key, cg_keras_numbers *numbers,
                                     cellgate_error *error);
/* The value with its axes in another order, all of them counted. */
cellgate_status cg_keras_permute(const cg_keras_call *call, int32_t input,
                                 const cg_extents *order, const char *suffix,
                                 int32_t *value, cellgate_error *error);
/* The same, with the last two axes changed for each other. */
cellgate_status cg_keras_swap(const cg_keras_call *call, int32_t input,
                              const char *suffix, int32_t *value,
                              cellgate_error *error);

/* ---- keras_refusals.c -------------------------------------------------- */

/* Why a class is not taken, and the way out; NULL: nothing more
   can be said of it. */
const char *cg_keras_class_advice(const char *class_name);
/* UNSUPPORTED: an operation where a layer would have been taken. */
cellgate_status cg_keras_refuse_operation(const cg_keras_layer *layer,
                                          cellgate_error *error);

/* ---- keras_json.c: of a layer's configuration --------------------------- */

/* A flag's value as a program may have given it: 1 for true and 1, 0 for false
   and 0, -1 for anything else or NULL. */
int cg_keras_truth(const json_t *value);
cellgate_status cg_keras_get_flag(const cg_keras_layer *layer, const char *key,
                                  bool absent, bool *flag,
                                  cellgate_error *error);
/* A size: from 1 to CG_MAX_SIZE; it has to be there. */
cellgate_status cg_keras_get_size(const cg_keras_layer *layer, const char *key,
                                  int64_t *size, cellgate_error *error);
/* NumPy's numbers and arrays, and TensorFlow's, may have their dtype written
   around them: what is inside. NULL: nothing, or a damaged one of those. */
const json_t *cg_keras_unwrap(const json_t *json);
/* What the key says, so unwrapped. */
const json_t *cg_keras_get_value(const cg_keras_layer *layer, const char *key);
/* A finite number. */
cellgate_status cg_keras_get_number(const cg_keras_layer *layer,
                                    const char *key, double absent,
                                    float *number, cellgate_error *error);
/* A list of `least` to `most` whole numbers of up to CG_MAX_SIZE, of either
   sign; one number by itself is a list of one, null is -1. */
cellgate_status cg_keras_get_integers(const cg_keras_layer *layer,
                                      const char *key, size_t least,
                                      size_t most, int64_t *numbers,
                                      size_t *count, cellgate_error *error);
/* The dtype policy: any that keeps weights in floating point. */
cellgate_status cg_keras_check_policy(const cg_keras_layer *layer,
                                      cellgate_error *error);
/* Refuses keys that neither `options` nor every layer has, unless they say
   nothing. */
cellgate_status cg_keras_check_options(const cg_keras_layer *layer,
                                       const char *const *options,
                                       cellgate_error *error);

/* ---- keras_emit.c ------------------------------------------------------ */

/* What value number the emitting of a node is to fill in. */
#define CG_KERAS_NEW (-2)

/*
 * Adds a node of the call. Its kind, attributes, weights and inputs are set;
 * of its outputs, those that are CG_KERAS_NEW become new values. The node is
 * called after the call, with `suffix` (":reverse", or ""); output i likewise,
 * with suffixes[i]. A name in use gets a number.
 */
cellgate_status cg_keras_emit(const cg_keras_call *call, cg_node *node,
                              const char *suffix, const char *const *suffixes,
                              cellgate_error *error);
/* The same for a kind of one output and no weights. */
cellgate_status cg_keras_emit_simple(const cg_keras_call *call,
                                     const cg_node *node, const int32_t *inputs,
                                     size_t count, const char *suffix,
                                     int32_t *value, cellgate_error *error);
/* The same for a comparison or a cast, of which one is enough for any input. */
cellgate_status cg_keras_emit_once(const cg_keras_call *call,
                                   const cg_node *node, int32_t input,
                                   const char *suffix, int32_t *value,
                                   cellgate_error *error);
/* Adds a result to the call's outputs. */
cellgate_status cg_keras_return(cg_keras_call *call, int32_t value,
                                int32_t mask, cellgate_error *error);

/* A value for a model input, known by its shape. */
cellgate_status cg_keras_add_input(cg_keras_reader *reader, const char *name,
                                   int32_t dtype, int32_t rank,
                                   const int64_t *shape,
                                   cg_keras_tensor *tensor,
                                   cellgate_error *error);
/* The mask that a comparison or a mask tensor stands for. */
cellgate_status cg_keras_make_mask(const cg_keras_call *call,
                                   const cg_keras_tensor *tensor, int32_t *mask,
                                   cellgate_error *error);
/* Where each element of a comparison differs from its constant. */
cellgate_status cg_keras_compare_each(const cg_keras_call *call,
                                      const cg_keras_tensor *tensor,
                                      int32_t *mask, cellgate_error *error);
/* Extent of the last axis; it has to be known. */
cellgate_status cg_keras_features(const cg_keras_call *call,
                                  const cg_keras_tensor *tensor,
                                  int64_t *features, cellgate_error *error);
/* `wanted`, or with "_2", "_3" ... appended, never used before; lives as the
   reader. NULL if there is no memory. */
const char *cg_keras_unique_name(cg_keras_reader *reader, const char *wanted);

/* ---- keras_claim.c ------------------------------------------------------ */

/*
 * Says that the call takes the tensor as F32 numbers or I32 ids. A model input
 * becomes what its users take; where that is both, and for any other value of
 * the other dtype, the tensor becomes a cast. Not for a mask.
 */
cellgate_status cg_keras_claim(const cg_keras_call *call,
                               cg_keras_tensor *tensor, int32_t dtype,
                               cellgate_error *error);
/* Says that the call takes the tensor as it is: a model input keeps the dtype
   that the file says. */
cellgate_status cg_keras_claim_any(const cg_keras_call *call,
                                   const cg_keras_tensor *tensor,
                                   cellgate_error *error);

/* ---- keras_read.c ------------------------------------------------------ */

/* A model in the files of Keras; all of it is the caller's. */
typedef struct cg_keras_file {
    const char *path;         /* for messages and the model */
    const char *version;      /* "2.2.4-tf" */
    json_t *config;           /* changed into the form of Keras 3 */
    const char *weights_name; /* of the HDF5 file, for messages */
    size_t weights_size;
} cg_keras_file;

/* How many numbers the datasets may unpack to, see cg_h5_check(); as many may
   be computed of them and of the configuration. */
size_t cg_keras_most_numbers(const cg_keras_file *file);

/* The whole model, finished. */
cellgate_status cg_keras_assemble(const cg_keras_file *file, cg_h5 *h5,
                                  cellgate_model **model,
                                  cellgate_error *error);
/* The graph, with weights of that source, unfinished. */
cellgate_status cg_keras_build(const cg_keras_file *file,
                               cg_keras_source *source, cellgate_model **model,
                               cellgate_error *error);
/* Whether weights lie in groups of layers in order, and below which group. */
cellgate_status cg_keras_layout(cg_h5 *h5, const char **root, bool *by_order,
                                cellgate_error *error);

/* ---- keras_upgrade.c --------------------------------------------------- */

/* Brings a configuration of Keras 1 or 2 into the form that is read here. */
cellgate_status cg_keras_upgrade(json_t *config, const char *version,
                                 cellgate_error *error);

/* ---- keras_versions.c -------------------------------------------------- */

/* Whether the file is of Keras before it was part of TensorFlow. */
bool cg_keras_before_tensorflow(const cg_keras_reader *reader);
/* Name of the activation of gates where the layer does not say it, in that
   version of Keras; UNSUPPORTED: the version does not tell. */
cellgate_status cg_keras_default_gate(const cg_keras_layer *layer,
                                      const char **name, cellgate_error *error);
bool cg_keras_default_reset_after(const cg_keras_layer *layer);

/* ---- keras_paths.c ----------------------------------------------------- */

/* "layers/lstm_1" for a layer of this class among those before it, counted in
   `counts` (class -> number so far); malloc'ed, NULL if there is no memory. */
char *cg_keras_path(json_t *counts, const char *base, const json_t *layer);

typedef cellgate_status (*cg_keras_layer_visitor)(void *context,
                                                  const json_t *layer,
                                                  const char *path, int depth,
                                                  cellgate_error *error);
/* Visits the layers of the model at `path` ("" at the top), `depth` models
   deep, in order; not those of models in it. */
cellgate_status cg_keras_visit_layers(const json_t *model, const char *path,
                                      int depth, cg_keras_layer_visitor visit,
                                      void *context, cellgate_error *error);

/* Fills `shared` for a whole model: "id" of a layer in several places -> the
   path of the first. */
cellgate_status cg_keras_find_shared(json_t *shared, const json_t *model,
                                     cellgate_error *error);
/* The path under which a layer's weights were saved. */
const char *cg_keras_saved_path(const json_t *shared, const json_t *layer,
                                const char *path);

/* ---- keras_weights.c --------------------------------------------------- */

/*
 * Fills weights[0..] of a node with those that the layer has in group SUFFIX
 * ("/cell", or "" for its own): as many as the node has according to
 * cg_node_weight() for slots `first` to `first` + count - 1.
 */
cellgate_status cg_keras_load(const cg_keras_layer *layer, const char *suffix,
                              const cg_node *node, size_t first, size_t count,
                              cg_weight *weights, cellgate_error *error);
/*
 * The same, for a node of that kind, with the shapes in the file: name, rank
 * and shape of each are set; one without a name is not there. One of rank -1, a
 * count of what a layer was adapted to, is in the file but is not read.
 */
cellgate_status cg_keras_load_shaped(const cg_keras_layer *layer,
                                     const char *suffix, cg_kind kind,
                                     cg_weight *weights, size_t count,
                                     cellgate_error *error);
/*
 * Memory for what is computed of a layer's weights, once for all of its calls:
 * the same for the same `name`. The caller fills it if it is *fresh. BAD_FILE:
 * more than cg_keras_most_numbers() in all.
 */
cellgate_status cg_keras_derive(const cg_keras_layer *layer, const char *name,
                                size_t elements, float **data, bool *fresh,
                                cellgate_error *error);

#endif
