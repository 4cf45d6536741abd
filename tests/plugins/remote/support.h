/* SPDX-License-Identifier: Apache-2.0 */
/* Which segments the stand-in takes, and in which variants. */
#ifndef REMOTE_SUPPORT_H
#define REMOTE_SUPPORT_H

#include "tests/plugins/remote/segment.h"

/* Packs: float32 weights, or matrices in bfloat16 at half the memory. */
enum remote_pack {
    REMOTE_PACK_F32 = 0,
    REMOTE_PACK_BF16 = 1,
    REMOTE_PACK_COUNT
};

/* The variant with this id, or NULL. */
const cellgate_variant *remote_variant(uint64_t id);

/* OK, UNSUPPORTED with a reason, or INVALID. */
cellgate_status remote_check_segment(const cellgate_segment *segment,
                                     cellgate_error *error);

/* Reads a shape of the host's version, and checks it. */
cellgate_status remote_read_shape(const cellgate_shape *given,
                                  cellgate_shape *shape, cellgate_error *error);

/* The operation; see plugin.h. */
cellgate_status remote_support(cellgate_device *device,
                               const cellgate_segment *segment,
                               const cellgate_shape *shape, uint32_t index,
                               cellgate_variant *variant,
                               cellgate_error *error);

#endif
