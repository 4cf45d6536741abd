/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A segment's weights in device memory, in one pack. What is made from them
 * (plans, resident state) keeps the record alive but not the device memory: a
 * run after weights_free() finds stale handles and fails.
 */
#ifndef REMOTE_WEIGHTS_H
#define REMOTE_WEIGHTS_H

#include "tests/plugins/remote/support.h"

struct cellgate_weights {
    cellgate_device *device;
    enum remote_pack pack;
    uint32_t op_count;
    atomic_uint users; /* the host's hold, and one for each user */
    struct remote_op ops[];
};

/* The operations; see plugin.h. */
cellgate_status remote_prepare(cellgate_device *device,
                               const cellgate_segment *segment, uint32_t pack,
                               cellgate_weights **weights,
                               cellgate_error *error);
void remote_weights_free(cellgate_weights *weights);

/* A plan or resident state begins and ends to use the record. */
void remote_weights_hold(cellgate_weights *weights);
void remote_weights_drop(cellgate_weights *weights);

#endif
