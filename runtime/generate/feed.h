/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers that go into a step: what the encoder made, and the states that
 * the step before left, of as many rows as are still going. A row of a step is
 * a sequence that is being generated; several may belong to one row of the
 * request.
 */
#ifndef CELLGATE_RUNTIME_GENERATE_FEED_H
#define CELLGATE_RUNTIME_GENERATE_FEED_H

#include "runtime/generate/parts.h"

/* One input of the step; the numbers of a row lie together. */
typedef struct cg_feed_slot {
    size_t row_bytes;
    size_t mask_bytes;    /* of a row */
    const char *source;   /* [batch] rows; NULL: zeros */
    const uint8_t *masks; /* [batch] rows; NULL: no mask */
    char *current, *next; /* [capacity] rows; next: of a carried one */
    uint8_t *current_mask;
} cg_feed_slot;

typedef struct cg_feed {
    const cg_parts *parts;
    int64_t batch, capacity;
    cg_feed_slot *slots; /* an input of the step each */
    cellgate_input *inputs;
    cellgate_tensor *outputs;
    cellgate_tensor *encoded; /* outputs of the encoder, with memory */
    uint8_t **request_masks;  /* made of lengths; an input of the step each */
    int32_t *ids;  /* [capacity]: what the step reads; the caller fills it */
    float *scores; /* [capacity][words] */
    int64_t *arranged; /* the rows of the last arrangement */
    int64_t arranged_count;
} cg_feed;

/*
 * Runs the encoder on the request's inputs (of its own, in order), and takes
 * memory for `capacity` rows. `encoder` is NULL where there is none. The caller
 * ends it with cg_feed_finish(), also after an error; it takes all zeros.
 */
cellgate_status cg_feed_init(cg_feed *feed, const cg_parts *parts,
                             cellgate_session *encoder,
                             const cellgate_input *inputs, int64_t batch,
                             int64_t capacity, cellgate_report *report,
                             cellgate_error *error);
void cg_feed_finish(cg_feed *feed);

/*
 * Sets the rows of the next step: row i belongs to row rows[i] of the request
 * and goes on from row parents[i] of the last step; parents NULL: it begins.
 */
void cg_feed_arrange(cg_feed *feed, const int64_t *rows, const int64_t *parents,
                     int64_t count);

/* Runs a step of `count` rows: ids[] to scores[] and the states. */
cellgate_status cg_feed_step(cg_feed *feed, cellgate_session *step,
                             int64_t count, cellgate_report *report,
                             cellgate_error *error);

#endif
