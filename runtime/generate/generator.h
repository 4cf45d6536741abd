/* SPDX-License-Identifier: Apache-2.0 */
/* What the objects of the interface hold. */
#ifndef CELLGATE_RUNTIME_GENERATE_GENERATOR_H
#define CELLGATE_RUNTIME_GENERATE_GENERATOR_H

#include "runtime/generate/parts.h"

struct cellgate_generator {
    cg_parts parts;
    cellgate_session *encoder; /* NULL: there is none */
    cellgate_session *step;
};

/* One result. */
typedef struct cg_sequence {
    int32_t *ids;
    int64_t length;
    double score, value;
    bool stopped;
} cg_sequence;

struct cellgate_generation {
    int64_t batch;
    int64_t results; /* room of a row */
    int64_t longest;
    int64_t steps;          /* of the decoder */
    cg_sequence *sequences; /* [batch][results], a row's best first */
    int64_t *counts;        /* [batch]: results of each row */
    int32_t *ids;           /* [batch][results][longest] */
};

/* All empty. NO_MEMORY. */
cellgate_status cg_generation_create(int64_t batch, int64_t results,
                                     int64_t longest,
                                     cellgate_generation **generation,
                                     cellgate_error *error);

#endif
