/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of the stand-in card. A launch names device memory by handles;
 * a kernel sees nothing else. Arrays are dense; B batch, T steps, I input
 * size, H hidden size, R recurrent size, D directions. DEVICE_FAILED: a handle
 * is stale or an access fell outside its block.
 *
 * In pack BF16 matrices are bfloat16 and the other factor of every product is
 * rounded to it first; sums, biases and state are float32 in both packs.
 */
#ifndef REMOTE_KERNELS_H
#define REMOTE_KERNELS_H

#include "tests/plugins/remote/support.h"

enum remote_lstm_buffer {
    REMOTE_LSTM_INPUT = 0,        /* [B][T][I] */
    REMOTE_LSTM_LENGTHS,          /* int32 [B] */
    REMOTE_LSTM_KERNEL,           /* [I][4H] */
    REMOTE_LSTM_RECURRENT_KERNEL, /* [R][4H] */
    REMOTE_LSTM_BIAS,             /* [4H], or 0 */
    REMOTE_LSTM_PROJECTION,       /* [H][R], or 0 */
    REMOTE_LSTM_H,                /* [D][B][R]: initial, then final */
    REMOTE_LSTM_C,                /* [D][B][H]: likewise */
    REMOTE_LSTM_SEQUENCE_OUT,     /* [B][T][D R], or 0 */
    REMOTE_LSTM_LAST_OUT,         /* [B][D R], or 0 */
    REMOTE_LSTM_WORKSPACE,        /* remote_workspace_size() floats */
    REMOTE_LSTM_BUFFERS
};

/* One direction of one LSTM op. */
struct remote_lstm_launch {
    const struct remote_op *op;
    enum remote_pack pack;
    int32_t direction;
    int64_t batch, steps;
    remote_handle buffers[REMOTE_LSTM_BUFFERS];
};

cellgate_status remote_lstm_kernel(struct remote_memory *memory,
                                   const struct remote_lstm_launch *launch,
                                   cellgate_error *error);

enum remote_dense_buffer {
    REMOTE_DENSE_INPUT = 0, /* [rows][I] */
    REMOTE_DENSE_KERNEL,    /* [I][features] */
    REMOTE_DENSE_BIAS,      /* [features], or 0 */
    REMOTE_DENSE_OUTPUT,    /* [rows][features] */
    REMOTE_DENSE_WORKSPACE,
    REMOTE_DENSE_BUFFERS
};

struct remote_dense_launch {
    const struct remote_op *op;
    enum remote_pack pack;
    int64_t rows;
    remote_handle buffers[REMOTE_DENSE_BUFFERS];
};

cellgate_status remote_dense_kernel(struct remote_memory *memory,
                                    const struct remote_dense_launch *launch,
                                    cellgate_error *error);

/* Multiplies `count` floats by `factor`. */
cellgate_status remote_scale_kernel(struct remote_memory *memory,
                                    remote_handle handle, int64_t count,
                                    float factor, cellgate_error *error);

/* Floats of workspace that the kernels need for an op. */
int64_t remote_workspace_size(const struct remote_op *op);

#endif
