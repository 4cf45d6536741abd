/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM state that stays in device memory from run to run. */
#ifndef REMOTE_RESIDENT_H
#define REMOTE_RESIDENT_H

#include "tests/plugins/remote/weights.h"

/* Of one op: [D][B][R] and [D][B][H]; 0 for an op without state. */
struct remote_resident_state {
    remote_handle h, c;
};

struct cellgate_resident {
    cellgate_device *device;
    cellgate_weights *weights;
    int64_t batch;
    atomic_bool busy;                      /* a run uses it */
    struct remote_resident_state states[]; /* one an op */
};

/* The operations; see plugin.h. */
cellgate_status remote_resident_create(cellgate_weights *weights, int64_t batch,
                                       cellgate_resident **resident,
                                       cellgate_error *error);
void remote_resident_destroy(cellgate_resident *resident);
cellgate_status remote_resident_export(cellgate_resident *resident,
                                       const cellgate_lstm_state *states,
                                       cellgate_error *error);
cellgate_status remote_resident_import(cellgate_resident *resident,
                                       const cellgate_lstm_state *states,
                                       cellgate_error *error);

/* Bytes of an op's h and c for `batch` rows. */
size_t remote_h_bytes(const struct remote_op *op, int64_t batch);
size_t remote_c_bytes(const struct remote_op *op, int64_t batch);

#endif
