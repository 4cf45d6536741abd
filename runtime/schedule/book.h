/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every candidate costs, for all sessions of a runtime: the store's points
 * as surfaces, made when they are first asked for and again when something was
 * measured.
 *
 * A store that cannot be read, for a while or at all, is the same as one that
 * has nothing: no request fails of it. What cannot be written holds for this
 * process. Whoever is told of complaints hears of either once, and
 * cg_cost_book_trouble() says it as long as it lasts.
 *
 * Any thread. Nothing here is on the way of a request whose shape was seen.
 */
#ifndef CELLGATE_RUNTIME_SCHEDULE_BOOK_H
#define CELLGATE_RUNTIME_SCHEDULE_BOOK_H

#include "runtime/cost/store.h"

typedef struct cg_cost_book cg_cost_book;

/* Is told what is wrong with the store, in words; under the book's lock, so it
   must not call the book. Any thread. */
typedef void (*cg_book_complain)(void *context, const char *text);

/* Takes over the store, also on failure; its notes are complaints, now and
   later. `complain` NULL: nobody is told. `context` must outlive the book. */
cellgate_status cg_cost_book_create(cg_cost_store *store,
                                    cg_book_complain complain, void *context,
                                    cg_cost_book **book, cellgate_error *error);
cg_cost_book *cg_cost_book_reference(cg_cost_book *book);
void cg_cost_book_release(cg_cost_book *book); /* NULL is allowed */

/* OK, or why the store cannot be read now: BUSY, IO. */
cellgate_status cg_cost_book_trouble(cg_cost_book *book, cellgate_error *error);

/* What a candidate costs at a shape; of a structure that was not measured on
   it, what it may cost, by those that were (work.h); NONE where nothing is
   known. Fails with NO_MEMORY only. */
cellgate_status cg_cost_book_predict(cg_cost_book *book,
                                     const cg_cost_candidate *candidate,
                                     const char *structure, cg_regime regime,
                                     const cg_cost_shape *shape, cg_cost *cost,
                                     cellgate_error *error);

/*
 * A measurement: replaces what was known at that shape. IO, BUSY: it holds for
 * this process and could not be kept.
 */
cellgate_status cg_cost_book_put(cg_cost_book *book,
                                 const cg_cost_candidate *candidate,
                                 const char *structure, cg_regime regime,
                                 const cg_cost_point *point,
                                 cellgate_error *error);

/* The same for this process alone: nothing is written. NO_MEMORY only. */
cellgate_status cg_cost_book_hold(cg_cost_book *book,
                                  const cg_cost_candidate *candidate,
                                  const char *structure, cg_regime regime,
                                  const cg_cost_point *point,
                                  cellgate_error *error);

/* Not checked where nothing is known; NO_MEMORY only. */
cellgate_status cg_cost_book_verdict(cg_cost_book *book,
                                     const cg_cost_candidate *candidate,
                                     const char *structure,
                                     cg_cost_verdict *verdict,
                                     cellgate_error *error);
/* As cg_cost_book_put(). */
cellgate_status cg_cost_book_put_verdict(cg_cost_book *book,
                                         const cg_cost_candidate *candidate,
                                         const char *structure,
                                         const cg_cost_verdict *verdict,
                                         cellgate_error *error);

/* The points of a candidate and structure, as cg_cost_store_points() gives them
   and with what could not be kept; NO_MEMORY only. */
cellgate_status cg_cost_book_points(cg_cost_book *book,
                                    const cg_cost_candidate *candidate,
                                    const char *structure, cg_regime regime,
                                    cg_cost_point **points, size_t *count,
                                    cellgate_error *error);

/* Whether anything was measured on a device of that identity; false also where
   the store cannot be read. */
bool cg_cost_book_knows(cg_cost_book *book, const char *identity);

/* Whether anything was measured of a candidate and structure in that regime;
   false also where the store cannot be read. */
bool cg_cost_book_has(cg_cost_book *book, const cg_cost_candidate *candidate,
                      const char *structure, cg_regime regime);

/* Changes whenever something was put, and when a store that could not be read
   is to be tried again: decisions made before may not hold. */
uint64_t cg_cost_book_generation(cg_cost_book *book);

/* ---- book_facts.c ------------------------------------------------------- */

/* What is done once, as cg_cost_store_once(); NO_MEMORY only. */
cellgate_status cg_cost_book_once(cg_cost_book *book,
                                  const cg_cost_candidate *candidate,
                                  const char *structure, cg_cost_once *once,
                                  cellgate_error *error);
/* As cg_cost_book_put(). */
cellgate_status cg_cost_book_put_once(cg_cost_book *book,
                                      const cg_cost_candidate *candidate,
                                      const char *structure,
                                      const cg_cost_once *once,
                                      cellgate_error *error);
/* Whether there was no memory for a shape when it was last tried: *limit is
   the smallest batch with that; NO_MEMORY only. */
cellgate_status cg_cost_book_limit(cg_cost_book *book,
                                   const cg_cost_candidate *candidate,
                                   const char *structure,
                                   const cg_cost_shape *shape, bool *limited,
                                   cg_cost_limit *limit, cellgate_error *error);
/* As cg_cost_book_put(). */
cellgate_status cg_cost_book_put_limit(cg_cost_book *book,
                                       const cg_cost_candidate *candidate,
                                       const char *structure,
                                       const cg_cost_limit *limit,
                                       cellgate_error *error);

/* ---- book_traffic.c: what comes in service ------------------------------ */

/* Shapes that are remembered, of all structures together. */
#define CG_BOOK_TRAFFIC 256

/*
 * Requests of that structure and shape came: calibration looks at such shapes
 * more closely. For this process; of too many shapes the rarest are forgotten.
 */
void cg_cost_book_saw(cg_cost_book *book, const char *structure,
                      const cg_cost_shape *shape, double requests);
/*
 * How the traffic of a structure is spread over shapes: weights[i] is 1, and
 * CG_TRAFFIC_WEIGHT more times the share of it that is nearest to cells[i]. All
 * are 1 where none was seen.
 */
#define CG_TRAFFIC_WEIGHT 9
void cg_cost_book_weights(cg_cost_book *book, const char *structure,
                          const cg_cost_shape *cells, size_t count,
                          double *weights);

/* The store, for export, import and notes, under the book's lock: no other
   call of the book until it is given back. */
cg_cost_store *cg_cost_book_lock(cg_cost_book *book);
/* `changed`: what was known is to be read anew. */
void cg_cost_book_unlock(cg_cost_book *book, bool changed);

#endif
