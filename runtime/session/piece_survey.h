/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The survey of one piece of a model: its candidates are checked, and then
 * measured at the corners and the middle of the shapes that are asked for, and
 * wherever the decision is most in doubt, where requests come before where none
 * do, until all are sure or the time is up.
 */
#ifndef CELLGATE_RUNTIME_SESSION_PIECE_SURVEY_H
#define CELLGATE_RUNTIME_SESSION_PIECE_SURVEY_H

#include "runtime/cost/caches.h"
#include "runtime/session/pieces.h"

typedef struct cg_piece_survey {
    cellgate_session *session;
    const cellgate_calibration *options;
    cellgate_calibration_result *result; /* counts are added */
    const cg_piece *piece;
    cg_regime regime;
    double gap;                  /* seconds before each run; 0: back to back */
    cg_displacer *displacer;     /* NULL: caches are left alone */
    double budget;               /* seconds, of this piece */
    double share_from, share_to; /* of the whole, for progress */
    bool stopped;                /* by the application */
    /* OK, or why a measurement could not be kept beyond this process. */
    cellgate_error unkept;

    /* Private to piece_*.c. */
    double start;
    cg_cost_shape *cells;
    double *weights; /* one a cell: how much comes there in service */
    bool *done;      /* measured, known from before, or left out */
    size_t cell_count, columns;
    cg_surface **surfaces; /* one a candidate */
    bool *excluded;        /* its results are wrong, or it fails */
    bool *able; /* [candidate][cell]: it takes the shape, and has the memory */
} cg_piece_survey;

/* The caller sets what is not private, and all else to zero. */
cellgate_status cg_piece_survey_run(cg_piece_survey *of, cellgate_error *error);

/* ---- Private ------------------------------------------------------------ */

#define CG_SURVEY_WARM_UP 2
/* Samples that make a measurement; a shape of which fewer were taken, because
   the calibration ended, is measured again by the next one. */
#define CG_SURVEY_LEAST 5

/* Seconds. */
double cg_piece_survey_left(const cg_piece_survey *of);
/* Tells the application how far it is; false: it is to stop. */
bool cg_piece_survey_go_on(cg_piece_survey *of);

/* ---- piece_check.c: private --------------------------------------------- */

/* The candidate is not measured any more, and the log says why. */
void cg_piece_survey_exclude(cg_piece_survey *of, size_t at, const char *why);
/* After putting something into the book: what holds for this process alone is
   no reason to stop. */
cellgate_status cg_piece_survey_settle(cg_piece_survey *of,
                                       cellgate_status status,
                                       const cellgate_error *cause,
                                       cellgate_error *error);
/* What earlier checks of a candidate found. */
typedef enum cg_standing { CG_UNCHECKED, CG_RIGHT, CG_WRONG } cg_standing;
cellgate_status cg_piece_survey_standing(const cg_piece_survey *of, size_t at,
                                         cg_standing *standing,
                                         cellgate_error *error);
/* A candidate is checked once, on a small shape that it takes, with rows of
   several lengths and without; one that was wrong is looked at again. */
cellgate_status cg_piece_survey_check(cg_piece_survey *of, size_t at,
                                      cellgate_error *error);

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
/* Whether the candidate is offered at that shape. */
bool cg_piece_survey_takes(const cg_piece_survey *of, size_t at,
                           const cg_cost_shape *cell);
/* The candidate has no memory for that cell, nor for larger ones: where it is
   the device's memory, requests will not go there either. */
cellgate_status cg_piece_survey_too_large(cg_piece_survey *of, size_t at,
                                          size_t cell,
                                          const cellgate_error *why,
                                          cellgate_error *error);
/* The cell to measure next; SIZE_MAX: none that is worth it. */
cellgate_status cg_piece_survey_next(const cg_piece_survey *of, size_t *cell,
                                     cellgate_error *error);

/* ---- piece_measure.c: private ------------------------------------------- */

/* All candidates that are able to, at that cell. */
cellgate_status cg_piece_survey_measure(cg_piece_survey *of, size_t cell,
                                        cellgate_error *error);

#endif
