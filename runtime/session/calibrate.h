/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring a model's segments on every device: which shapes, in which order,
 * and for how long. Private to session/.
 */
#ifndef CELLGATE_RUNTIME_SESSION_CALIBRATE_H
#define CELLGATE_RUNTIME_SESSION_CALIBRATE_H

#include "runtime/cost/measure.h"
#include "runtime/session/session.h"

/* Something that a device may be given: a piece of a chain, and all that may
   run it. */
typedef struct cg_piece {
    size_t *nodes;
    size_t count;
    cg_segment **segments; /* one a candidate: a device and a variant */
    size_t segment_count;
} cg_piece;

typedef struct cg_piece_list {
    cg_piece *pieces;
    size_t count;
} cg_piece_list;

/*
 * The pieces of the model: what each device takes as one segment, cut wherever
 * some device cuts, so that the pieces of one fit between those of another.
 * Every usable device is opened. The session's mutex is held.
 */
cellgate_status cg_pieces_list(cellgate_session *session, cg_piece_list *list,
                               cellgate_error *error);
void cg_pieces_free(cg_piece_list *list);

/* Opens every usable device of the session; the session's mutex is held. */
void cg_session_open_all(cellgate_session *session);

#endif
