/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of a case: the segment with its weights, and dense inputs, made
 * from the case's seed; and the list of the tensors that the run gives.
 */
#ifndef TESTS_CONFORMANCE_CASE_DATA_H
#define TESTS_CONFORMANCE_CASE_DATA_H

#include "tests/conformance/case.h"

typedef union case_op_storage {
    cellgate_op op;
    cellgate_lstm lstm;
    cellgate_dense dense;
    cellgate_embedding embedding;
    cellgate_activation_op activation;
    cellgate_softmax softmax;
} case_op_storage;

#define CASE_MAX_TENSORS (2 + 2 * CASE_MAX_OPS)

typedef enum case_tensor_kind {
    CASE_Y,      /* [batch][steps][features] */
    CASE_Y_LAST, /* [batch][features] */
    CASE_H,      /* [directions][batch][R] */
    CASE_C       /* [directions][batch][H] */
} case_tensor_kind;

/* One tensor that the run gives: [outer][batch][inner]. */
typedef struct case_tensor {
    int32_t kind; /* a case_tensor_kind */
    int32_t op;   /* H, C: the LSTM it belongs to */
    int64_t outer, batch, inner;
    int64_t features; /* inner is a multiple of it */
} case_tensor;

typedef struct case_data {
    test_case c;
    case_op_storage ops[CASE_MAX_OPS];
    const cellgate_op *op_list[CASE_MAX_OPS];
    cellgate_segment segment; /* with weights */
    case_op_storage bare_ops[CASE_MAX_OPS];
    const cellgate_op *bare_list[CASE_MAX_OPS];
    cellgate_segment structure; /* the same without weights, for support() */
    float *weights;             /* all of them; owned */
    int64_t weight_count;
    float *x;                /* [batch][steps][input_size], or NULL; owned */
    int32_t *ids;            /* [batch][steps] for an embedding; owned */
    int32_t *lengths;        /* [batch], or NULL: full; owned */
    float *h0[CASE_MAX_OPS]; /* [directions][batch][R], or NULL; owned */
    float *c0[CASE_MAX_OPS];
    int64_t special_row; /* the row with a NaN or infinity, or -1 */
    int32_t tensor_count;
    case_tensor tensors[CASE_MAX_TENSORS];
} case_data;

/*
 * Makes the data; -1 without memory. `data` must not move afterwards: the
 * segments point into it.
 */
int case_data_init(case_data *data, const test_case *c);
void case_data_finish(case_data *data);

/*
 * The steps [from, to) of every row of `whole`, as a case of its own with the
 * same weights: row lengths are what falls into the piece. Its initial states
 * are copies of h[i] and c[i] (in the layout of h0 and c0, i the op), or those
 * of `whole` where these are NULL. `whole` must outlive it. -1 without memory.
 */
int case_data_slice(case_data *piece, const case_data *whole, int64_t from,
                    int64_t to, float *const *h, float *const *c);

/* Length of a row, whether listed or not. */
int64_t case_length(const case_data *data, int64_t row);

/* Width of an LSTM's h: its projection size, or else its hidden size. */
int64_t case_state_width(const case_op *op);

#endif
