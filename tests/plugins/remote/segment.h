/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the stand-in takes: a chain that begins with an LSTM, goes on with LSTM
 * and Dense ops. No embedding, no peepholes, no coupled gates; tanh, sigmoid,
 * linear, relu and hard_sigmoid. The rest of a model is the core's to place
 * elsewhere, which is what these gaps are for.
 */
#ifndef REMOTE_SEGMENT_H
#define REMOTE_SEGMENT_H

#include <stdbool.h>

#include "tests/plugins/remote/device.h"

/* Of one direction; 0 for what the op lacks. */
struct remote_lstm_handles {
    remote_handle kernel, recurrent_kernel, bias, projection;
};

/*
 * One op as the device knows it. `features` counts what goes on to the next
 * op, both directions included.
 */
struct remote_op {
    int32_t kind; /* CELLGATE_OP_LSTM or CELLGATE_OP_DENSE */
    int64_t input, features;
    bool passes_sequence; /* goes on as a sequence, else as a row a sample */
    bool has_bias;
    /* LSTM */
    int64_t hidden, recurrent; /* H and R of plugin.h */
    int32_t directions;
    bool reverse, projects;
    uint32_t outputs;
    float clip;
    cellgate_activation activations[2][3];
    struct remote_lstm_handles lstm[2];
    /* Dense */
    cellgate_activation activation;
    remote_handle kernel, bias;
};

/*
 * Reads op number `index` of a segment into *out, handles zero. `before` is
 * what the op before it became, NULL for the first. UNSUPPORTED with a reason,
 * or INVALID for sizes that no op may have.
 */
cellgate_status remote_read_op(const cellgate_segment *segment, uint32_t index,
                               const struct remote_op *before,
                               struct remote_op *out, cellgate_error *error);

#endif
