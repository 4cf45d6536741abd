/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decoder that feeds itself, as two models that share their weights: the
 * encoder, which runs once a request, and the step, from one id a row to the
 * scores of the next; and how numbers go from one to the other, and from one
 * step to the next.
 */
#ifndef CELLGATE_RUNTIME_GENERATE_PARTS_H
#define CELLGATE_RUNTIME_GENERATE_PARTS_H

#include "runtime/model/model.h"

#define CG_NONE SIZE_MAX

/* What one input of the step gets. */
typedef struct cg_wire {
    /* Output of the encoder that it begins with, and keeps unless it is
       carried. CG_NONE: it begins with zeros. */
    size_t from;
    /* Output of the step that it gets for the next one, or CG_NONE. */
    size_t carried;
    /* A mask that goes with it: an output of the encoder (uint8), or the mask
       that the request gives with input `request_mask` of the encoder. Such an
       input has no use but for its mask. CG_NONE both: no mask. */
    size_t mask, request_mask;
} cg_wire;

typedef struct cg_parts {
    cellgate_model *encoder; /* NULL: nothing comes before the steps */
    cellgate_model *step;
    cg_wire *wires; /* an input of the step each; the token's is unused */
    size_t token;   /* input of the step: int32 [batch][1] */
    size_t scores; /* output of the step: [batch][1][words] or [batch][words] */
    int64_t words; /* ids that have a score */
    int64_t known; /* ids that the step can read: 0 to known - 1 */
    bool probabilities; /* the scores come out of a softmax */
    int64_t window;     /* ids that a sequence can read at most; 0: any */
} cg_parts;

/* Takes parts that are all zeros. */
void cg_parts_finish(cg_parts *parts);

/*
 * Splits one model at the input that takes the generated ids, by name, or NULL
 * for the only one that will do; `scores` likewise for the output. NOT_FOUND:
 * there is none of that name. INVALID: there are several that will do; the text
 * lists them. UNSUPPORTED: it cannot be computed a step at a time; the text
 * names the layer. The parts share the model's weights and keep it alive.
 */
cellgate_status cg_split(const cellgate_model *model, const char *token,
                         const char *scores, cg_parts *parts,
                         cellgate_error *error);

/*
 * Two models that were split by whoever trained them: an encoder (NULL: the
 * request brings the first states) and a decoder from one step's ids and states
 * to its scores and new states. `initial` and `carried` are pairs OUTPUT=INPUT,
 * the outputs of the encoder and of the decoder, the inputs of the decoder;
 * without them the pairs follow from order and shape where these leave no
 * choice. INVALID: they do; the text says which option names them.
 */
typedef struct cg_pairs {
    const char *const *initial;
    size_t initial_count;
    const char *const *carried;
    size_t carried_count;
} cg_pairs;
cellgate_status cg_pair(const cellgate_model *encoder,
                        const cellgate_model *decoder, const char *token,
                        const char *scores, const cg_pairs *pairs,
                        cg_parts *parts, cellgate_error *error);

/* What both say of a step: words, known, probabilities. BAD_SHAPE: the scores
   have no known number of words, or are not [batch][steps][words] or
   [batch][words]. */
cellgate_status cg_parts_describe(cg_parts *parts, cellgate_error *error);

#endif
