/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The survey of one piece of a model: its candidates are checked, and then
 * measured at the corners and the middle of the shapes that are asked for, and
 * wherever the decision is most in doubt, until all are sure or the time is up.
 */
#ifndef CELLGATE_RUNTIME_SESSION_PIECE_SURVEY_H
#define CELLGATE_RUNTIME_SESSION_PIECE_SURVEY_H

#include "runtime/session/pieces.h"

typedef struct cg_piece_survey {
    cellgate_session *session;
    const cellgate_calibration *options;
    cellgate_calibration_result *result; /* counts are added */
    const cg_piece *piece;
    cg_regime regime;
    double budget;               /* seconds, of this piece */
    double share_from, share_to; /* of the whole, for progress */
    bool stopped;                /* by the application */
    /* OK, or why a measurement could not be kept beyond this process. */
    cellgate_error unkept;

    /* Private to piece_*.c. */
    double start;
    cg_cost_shape *cells;
    bool *done; /* measured, known from before, or left out */
    size_t cell_count, columns;
    cg_surface **surfaces; /* one a candidate */
    bool *excluded;        /* its results are wrong, or it fails */
} cg_piece_survey;

/* The caller sets what is not private, and all else to zero. */
cellgate_status cg_piece_survey_run(cg_piece_survey *of, cellgate_error *error);

/* ---- piece_cells.c: private --------------------------------------------- */

/* The shapes that decisions are wanted for. */
cellgate_status cg_piece_survey_list_cells(cg_piece_survey *of,
                                           cellgate_error *error);
/* What was measured before: cells of which all is known are done. */
cellgate_status cg_piece_survey_read_known(cg_piece_survey *of,
                                           cellgate_error *error);
/* Candidate `at` anew from the book. */
cellgate_status cg_piece_survey_read_surface(cg_piece_survey *of, size_t at,
                                             cellgate_error *error);
/* The cell to measure next; SIZE_MAX: none that is worth it. */
cellgate_status cg_piece_survey_next(const cg_piece_survey *of, size_t *cell,
                                     cellgate_error *error);

#endif
