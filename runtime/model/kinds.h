/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of kinds: everything that the model knows about a kind of node is
 * one entry here. A new kind gets a name in model.h, an entry in kinds.c, and
 * a host version in host/.
 */
#ifndef CELLGATE_RUNTIME_MODEL_KINDS_H
#define CELLGATE_RUNTIME_MODEL_KINDS_H

#include "runtime/model/model.h"

/* How an attribute lies in memory; files and the fingerprint follow it. */
typedef enum cg_attribute_type {
    CG_ATTRIBUTE_SIZE,       /* int64_t */
    CG_ATTRIBUTE_INTEGER,    /* int64_t that may be negative */
    CG_ATTRIBUTE_COUNT,      /* int32_t */
    CG_ATTRIBUTE_FLAG,       /* int32_t, 0 or 1 */
    CG_ATTRIBUTE_BOOL,       /* bool */
    CG_ATTRIBUTE_FLOAT,      /* float, finite */
    CG_ATTRIBUTE_ACTIVATION, /* cellgate_activation */
    CG_ATTRIBUTE_CHOICE,     /* an enum that counts from 0; see `choices` */
    CG_ATTRIBUTE_EXTENTS     /* cg_extents */
} cg_attribute_type;

typedef struct cg_attribute {
    const char *name;
    cg_attribute_type type;
    size_t offset; /* in cg_node */
    /* Of a CHOICE: the names by number, up to a NULL. */
    const char *const *choices;
    /*
     * A number that came after files of this version were written: where it is
     * 0, which has to mean what those files mean, neither the file nor the
     * fingerprint has it.
     */
    bool optional;
} cg_attribute;

#define CG_ANY_COUNT SIZE_MAX

/* Beside the dtypes themselves, what an entry may say of an input or output.
   An output of any dtype has the one that a CAST casts to. */
#define CG_DTYPE_ANY (-1)
#define CG_DTYPE_FIRST (-2) /* that of the first input */
#define CG_KIND_DTYPES 5

typedef struct cg_kind_entry {
    const char *name;
    size_t min_inputs, max_inputs; /* CG_ANY_COUNT: no limit */
    size_t outputs, max_outputs;   /* at least, at most; 0: no more than that */
    /* The first `required` inputs must be there, the others may be left out. */
    size_t required;
    /* Outputs that nothing uses may be CG_NO_VALUE. */
    bool optional_outputs;
    /* By input; inputs beyond these are as the first. */
    int32_t input_dtypes[CG_KIND_DTYPES];
    int32_t output_dtype;
    const cg_attribute *attributes;
    size_t attribute_count;
    /* Checks the attributes' values and, where they decide it, the arity;
       NULL if any value will do. */
    cellgate_status (*check)(const cg_node *node, cellgate_error *error);
    /* Fills the outputs' shapes. */
    cellgate_status (*infer)(const cg_node *node, cg_shape *shapes,
                             cellgate_error *error);
    /* Weight slots; NULL for a kind without weights. */
    size_t (*weight_count)(const cg_node *node);
    bool (*weight)(const cg_node *node, size_t index, cg_weight *expected);
    /* Writes the detail for people; NULL for "". */
    void (*describe)(const cg_node *node, char *text, size_t size);
    /* Multiplications and additions a row and step; NULL for none. */
    int64_t (*operations)(const cg_node *node, const cg_shape *output);
} cg_kind_entry;

/* The dtype of a node's outputs; its inputs are set. */
int32_t cg_node_output_dtype(const cellgate_model *model, const cg_node *node);

/* The entry of a node's kind; NULL for a number that is none. */
const cg_kind_entry *cg_kind_get(int kind);
/* The kind of that name, or -1. */
int cg_kind_find(const char *name);

/* Fills *error with "LAYER: text" and returns `status`. */
CELLGATE_PRINTF_LIKE(4, 5)
cellgate_status cg_node_fail(cellgate_error *error, cellgate_status status,
                             const cg_node *node, const char *format, ...);

/* infer.c */
#define CG_INFER(kind)                                                         \
    cellgate_status cg_infer_##kind(const cg_node *node, cg_shape *shapes,     \
                                    cellgate_error *error)
CG_INFER(same); /* outputs have the shape of the first input */
CG_INFER(embedding);
CG_INFER(lstm);
CG_INFER(recurrent);
CG_INFER(attention);
CG_INFER(dense);
CG_INFER(reverse);
CG_INFER(merge);
CG_INFER(not_equal);
CG_INFER(masked);
/* infer_moving.c */
CG_INFER(slice);
CG_INFER(concat);
CG_INFER(pad);
CG_INFER(repeat);
CG_INFER(reshape);
CG_INFER(permute);
/* infer_merge.c */
CG_INFER(combine); /* and LOGIC */
CG_INFER(select);
CG_INFER(dot);
CG_INFER(valid);

/* infer_window.c: all there is of WINDOW, POOL and REDUCE */
CG_INFER(window);
CG_INFER(pool);
CG_INFER(reduce);
cellgate_status cg_check_window(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_pool(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_reduce(const cg_node *node, cellgate_error *error);
void cg_describe_window(const cg_node *node, char *text, size_t size);
void cg_describe_pool(const cg_node *node, char *text, size_t size);
void cg_describe_reduce(const cg_node *node, char *text, size_t size);
int64_t cg_operations_pool(const cg_node *node, const cg_shape *output);

/* infer_normalize.c: all there is of NORMALIZE, AFFINE, PRELU and RELU */
CG_INFER(normalize);
CG_INFER(affine);
CG_INFER(prelu);
cellgate_status cg_check_normalize(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_affine(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_prelu(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_relu(const cg_node *node, cellgate_error *error);
size_t cg_weight_count_normalize(const cg_node *node);
size_t cg_weight_count_affine(const cg_node *node);
size_t cg_weight_count_prelu(const cg_node *node);
bool cg_weight_normalize(const cg_node *node, size_t index,
                         cg_weight *expected);
bool cg_weight_affine(const cg_node *node, size_t index, cg_weight *expected);
bool cg_weight_prelu(const cg_node *node, size_t index, cg_weight *expected);
void cg_describe_normalize(const cg_node *node, char *text, size_t size);
void cg_describe_affine(const cg_node *node, char *text, size_t size);
void cg_describe_prelu(const cg_node *node, char *text, size_t size);
void cg_describe_relu(const cg_node *node, char *text, size_t size);
int64_t cg_operations_normalize(const cg_node *node, const cg_shape *output);
int64_t cg_operations_affine(const cg_node *node, const cg_shape *output);

/* describe.c */
void cg_describe_lstm(const cg_node *node, char *text, size_t size);
void cg_describe_recurrent(const cg_node *node, char *text, size_t size);
void cg_describe_attention(const cg_node *node, char *text, size_t size);
void cg_describe_dense(const cg_node *node, char *text, size_t size);
void cg_describe_embedding(const cg_node *node, char *text, size_t size);
void cg_describe_activation(const cg_node *node, char *text, size_t size);
void cg_describe_merge(const cg_node *node, char *text, size_t size);
void cg_describe_not_equal(const cg_node *node, char *text, size_t size);
int64_t cg_operations_lstm(const cg_node *node, const cg_shape *output);
int64_t cg_operations_recurrent(const cg_node *node, const cg_shape *output);
int64_t cg_operations_dense(const cg_node *node, const cg_shape *output);
int64_t cg_operations_merge(const cg_node *node, const cg_shape *output);
/* describe_moving.c */
void cg_describe_slice(const cg_node *node, char *text, size_t size);
void cg_describe_concat(const cg_node *node, char *text, size_t size);
void cg_describe_pad(const cg_node *node, char *text, size_t size);
void cg_describe_repeat(const cg_node *node, char *text, size_t size);
void cg_describe_permute(const cg_node *node, char *text, size_t size);
void cg_describe_cast(const cg_node *node, char *text, size_t size);
void cg_describe_combine(const cg_node *node, char *text, size_t size);
void cg_describe_dot(const cg_node *node, char *text, size_t size);
void cg_describe_logic(const cg_node *node, char *text, size_t size);
int64_t cg_operations_combine(const cg_node *node, const cg_shape *output);

/* weights.c */
size_t cg_weight_count_embedding(const cg_node *node);
size_t cg_weight_count_lstm(const cg_node *node);
size_t cg_weight_count_recurrent(const cg_node *node);
size_t cg_weight_count_attention(const cg_node *node);
size_t cg_weight_count_dense(const cg_node *node);
bool cg_weight_embedding(const cg_node *node, size_t index,
                         cg_weight *expected);
bool cg_weight_lstm(const cg_node *node, size_t index, cg_weight *expected);
bool cg_weight_recurrent(const cg_node *node, size_t index,
                         cg_weight *expected);
bool cg_weight_attention(const cg_node *node, size_t index,
                         cg_weight *expected);
bool cg_weight_dense(const cg_node *node, size_t index, cg_weight *expected);

/*
 * attributes.c: what the values of attributes may be. cg_node_check() looks at
 * the choices of any kind, and then asks the kind's own check.
 */
cellgate_status cg_node_check(const cg_node *node, cellgate_error *error);
/* BAD_FILE unless a size, which messages call `name`, is between `least` and
   CG_MAX_SIZE. */
cellgate_status cg_check_size(const cg_node *node, const char *name,
                              int64_t size, int64_t least,
                              cellgate_error *error);
typedef struct cg_activation_entry {
    const char *name;
    int parameters; /* 0, 1: alpha, or 2: and beta */
} cg_activation_entry;
extern const cg_activation_entry
    cg_activations[CELLGATE_ACTIVATION_COUNT]; /* by kind */
cellgate_status cg_check_embedding(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_lstm(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_recurrent(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_attention(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_dense(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_activation(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_not_equal(const cg_node *node, cellgate_error *error);
/* attributes_moving.c */
cellgate_status cg_check_slice(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_concat(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_pad(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_repeat(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_reshape(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_permute(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_combine(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_select(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_dot(const cg_node *node, cellgate_error *error);
cellgate_status cg_check_logic(const cg_node *node, cellgate_error *error);

/*
 * Sets what has no meaning to zero (parameters that an activation doesn't have,
 * a second direction that isn't there), so that equal nodes are equal bytes,
 * and the LSTM's output flags from the outputs in use.
 */
void cg_node_normalise(cg_node *node);

/* Whether it is an optional attribute that is 0. */
bool cg_attribute_left_out(const cg_node *node, const cg_attribute *attribute);

/* fingerprint.c: of a finished model, 32 hex digits and a NUL. */
cellgate_status cg_fingerprint(const cellgate_model *model, char text[33],
                               cellgate_error *error);

#endif
