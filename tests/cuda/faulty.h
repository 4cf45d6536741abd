/* SPDX-License-Identifier: Apache-2.0 */
/* faulty.h: kernels that do what they must not, and some that may. */
#ifndef TESTS_CUDA_FAULTY_H
#define TESTS_CUDA_FAULTY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum faulty {
    FAULTY_NOTHING, /* out[i] is the number of the block's thread i + 1 */
    FAULTY_GRID,    /* out[i]: after a grid barrier, what block i + 1 wrote */
    FAULTY_POISON,  /* out[0] is shared memory that nobody wrote */
    FAULTY_MISSED,  /* some threads do not come to the barrier */
    FAULTY_OTHER_PLACE,  /* some threads come to another one */
    FAULTY_ENDED,        /* some threads have ended when others come */
    FAULTY_LANES,        /* a shuffle that half of the mask does not reach */
    FAULTY_OUTSIDE_MASK, /* a shuffle from a lane that is not in the mask */
    FAULTY_WAIT          /* all wait for a number that nobody changes */
};

struct faulty_parameters {
    enum faulty what;
    int32_t *out; /* a number a thread of the grid */
    uint32_t *sync;
};

/* `warps` warps a block. */
int faulty_launch(const struct faulty_parameters *parameters, unsigned blocks,
                  unsigned warps, int cooperative);

#ifdef __cplusplus
}
#endif

#endif /* TESTS_CUDA_FAULTY_H */
