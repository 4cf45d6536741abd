/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pieces of a model that are measured, and what may run each: what
 * calibrating and explaining go through.
 */
#ifndef CELLGATE_RUNTIME_SESSION_PIECES_H
#define CELLGATE_RUNTIME_SESSION_PIECES_H

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

#endif
