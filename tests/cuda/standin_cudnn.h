/* SPDX-License-Identifier: Apache-2.0 */
/* standin_cudnn.h: what cuDNN's stand-in knows of its things. */
#ifndef TESTS_CUDA_STANDIN_CUDNN_H
#define TESTS_CUDA_STANDIN_CUDNN_H

#include "plugins/cuda/cudnn_api.h"

enum standin_kind {
    STANDIN_HANDLE,
    STANDIN_TENSOR,
    STANDIN_RNN,
    STANDIN_DATA,
    STANDIN_DROPOUT
};

struct standin_thing {
    enum standin_kind kind;
    struct standin_thing *next;
};

struct standin_handle {
    struct standin_thing thing;
    int device;
    bool has_stream;
    cudaStream_t stream;
};

struct standin_tensor {
    struct standin_thing thing;
    int type, axes;
    int extents[8], strides[8];
};

struct standin_dropout {
    struct standin_thing thing;
    bool set;
};

struct standin_rnn {
    struct standin_thing thing;
    cud_cudnn_dropout dropout;
    bool set, padded;
    int algorithm, math, directions;
    int32_t input, hidden, output, layers;
    int built;  /* batch of a dynamic algorithm, */
    int device; /* and where it was compiled */
};

struct standin_data {
    struct standin_thing thing;
    int layout, steps, batch, width;
    int *lengths; /* [batch]; NULL: not set */
    bool fills;
    float padding;
};

/* A matrix of a pseudo-layer and its bias in the weight space, in floats. */
struct standin_place {
    int64_t rows, columns, matrix_at, bias_at;
};

/* The thing behind a handle; a fault where it is none. Under the lock. */
void *standin_thing(const void *handle, enum standin_kind kind,
                    const char *function);
/* The same of a descriptor that is set, whose layers have a dropout between
   them that is 0. */
struct standin_rnn *standin_rnn_of(cud_cudnn_rnn of, const char *function);
void standin_place(const struct standin_rnn *rnn, int32_t pseudo_layer,
                   int32_t matrix, struct standin_place *place);
size_t standin_work_size(const struct standin_rnn *rnn,
                         const struct standin_data *x);

/* What is exported. */
#define STANDIN_DECLARE(name, result, parameters) result cudnn##name parameters;
CUD_CUDNN_FUNCTION_LIST(STANDIN_DECLARE)
#undef STANDIN_DECLARE

#endif
