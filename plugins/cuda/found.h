/* SPDX-License-Identifier: Apache-2.0 */
/* found.h: the GPUs that the driver shows, without a context. */
#ifndef CELLGATE_CUDA_FOUND_H
#define CELLGATE_CUDA_FOUND_H

#include "plugins/cuda/blaslt.h"
#include "plugins/cuda/cudnn_api.h"
#include "plugins/cuda/status.h"

#define CUD_DEVICES_MAX 64

/* A GPU, and what kernels depend on. */
struct cud_found {
    int ordinal; /* as the runtime counts */
    cellgate_device_description description;
    char lacks[240];   /* "", or why it cannot be used and what to do */
    char unusable[64]; /* the same in few words, beside the driver's version */

    int major, minor; /* compute capability */
    int multiprocessors;
    int shared; /* bytes of shared memory that a block may opt in to */
    bool cooperative;
    uint64_t memory;
};

struct cud_found_list {
    uint32_t count;
    struct cud_found devices[CUD_DEVICES_MAX];
};

/*
 * Fills *list. NO_DEVICE: no driver, one that
 * is too old or not fit, no GPU, or none that can be used; the text says which
 * and what to do.
 */
cellgate_status cud_find_devices(struct cud_found_list *list,
                                 cellgate_error *error);

/* Completes the descriptions: the versions of what computes. */
void cud_describe_devices(struct cud_found_list *list,
                          const struct cud_cudnn *cudnn,
                          const struct cud_blaslt *blaslt);

#endif /* CELLGATE_CUDA_FOUND_H */
