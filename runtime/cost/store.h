/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was measured, kept between processes: a SQLite file of the user's, over
 * one of the site's that is only read.
 *
 * A cost belongs to a candidate (who computed: all that changes its speed), a
 * structure (what was computed) and a regime (how the runs followed each
 * other), at a shape. Candidates and structures are compared by all of their
 * text: what does not match is not used, stays in the file, and can be shown
 * with the reason (cg_cost_store_diff()).
 *
 * FAULTS. Each write is one transaction: a process killed at any moment leaves
 * the file as it was before or after. Several processes may read and write; a
 * writer waits for the others up to a few seconds, a reader a fraction of one.
 * A user's file that is no database, or is damaged, is put aside
 * ("PATH.damaged") and a new one is begun; one that this version cannot read is
 * left alone and not used. A file that cannot be written is read. The notes say
 * so (cg_cost_store_note()).
 *
 * One thread at a time a store.
 */
#ifndef CELLGATE_RUNTIME_COST_STORE_H
#define CELLGATE_RUNTIME_COST_STORE_H

#include <stdio.h>
#include <time.h>

#include "cellgate/plugin.h"
#include "runtime/cost/surface.h"

typedef enum cg_regime {
    CG_BACK_TO_BACK, /* a run follows the last one at once */
    CG_SPACED        /* after an idle gap, with the caches used by others */
} cg_regime;
#define CG_REGIMES 2

/* "back-to-back", "spaced". */
const char *cg_regime_name(cg_regime regime);

/*
 * Who computes: everything that voids a measurement when it changes. Texts
 * without tabs and newlines; none is NULL.
 */
typedef struct cg_cost_candidate {
    const char *device;   /* its name in the configuration; not compared */
    const char *plugin;   /* name and version */
    const char *build;    /* the plugin's build signature */
    const char *identity; /* of the device */
    const char *settings; /* in effect: "threads=2 level=avx512" */
    const char *variant;
    const char *numeric; /* "f32" ... */
    const char *host;    /* CPU, its flags, thread budget, core's build */
} cg_cost_candidate;

/* What says whether a candidate's results were right: checked once for each
   structure, against the host reference. */
typedef struct cg_cost_verdict {
    bool checked;
    bool right;
    double worst; /* of |result - reference| / largest |reference|; or */
#define CG_VERDICT_BROKE (-1.0) /* there was no result: it broke its device */
    int64_t at; /* when, in seconds since 1970; 0 stands for now */
} cg_cost_verdict;

/*
 * What is done once before the first run: laying out weights for a candidate
 * and a structure; or opening a device, which is kept as a candidate without
 * settings, variant and numeric, and as CG_OPENING for its structure.
 */
typedef struct cg_cost_once {
    double seconds; /* measured; 0: it was not */
    int64_t at;     /* when, in seconds since 1970; 0 stands for now */
} cg_cost_once;
#define CG_OPENING ""

/* There was no memory for a run of that shape, nor is there for larger ones. */
typedef struct cg_cost_limit {
    int64_t batch, steps;
    int64_t at; /* as above */
} cg_cost_limit;

/* When something was measured, in seconds since 1970; 0 stands for now. */
static inline int64_t cg_cost_dated(int64_t at)
{
    return at > 0 ? at : (int64_t)time(NULL);
}

typedef struct cg_cost_store cg_cost_store;

/*
 * `user_path` NULL: nothing is kept. A file that is not there is made by the
 * first write. `site_path` NULL or not there: none.
 * Fails with NO_MEMORY only: whatever is wrong with the files becomes a note,
 * and the store works with what is left, if only within this process.
 */
cellgate_status cg_cost_store_open(const char *user_path, const char *site_path,
                                   cg_cost_store **store,
                                   cellgate_error *error);
void cg_cost_store_close(cg_cost_store *store); /* NULL is allowed */

/* What was wrong with the files: note number `index`, NULL past the last. */
const char *cg_cost_store_note(const cg_cost_store *store, size_t index);
/* Whether what is put is kept after this process. */
bool cg_cost_store_keeps(const cg_cost_store *store);

/*
 * The points of a candidate and a structure, the user's before the site's for
 * the same shape. `structure` is its canonical text. malloc'ed, the caller
 * frees *points; none: NULL and 0.
 */
cellgate_status cg_cost_store_points(cg_cost_store *store,
                                     const cg_cost_candidate *candidate,
                                     const char *structure, cg_regime regime,
                                     cg_cost_point **points, size_t *count,
                                     cellgate_error *error);
/* Replaces the point at that shape. IO: it could not be kept (the disk is
   full, say); nothing has changed then. */
cellgate_status cg_cost_store_put(cg_cost_store *store,
                                  const cg_cost_candidate *candidate,
                                  const char *structure, cg_regime regime,
                                  const cg_cost_point *point,
                                  cellgate_error *error);

cellgate_status cg_cost_store_verdict(cg_cost_store *store,
                                      const cg_cost_candidate *candidate,
                                      const char *structure,
                                      cg_cost_verdict *verdict,
                                      cellgate_error *error);
cellgate_status cg_cost_store_put_verdict(cg_cost_store *store,
                                          const cg_cost_candidate *candidate,
                                          const char *structure,
                                          const cg_cost_verdict *verdict,
                                          cellgate_error *error);

/* ---- store_facts.c ------------------------------------------------------ */

/* *once is all zero where it was not measured. The last measurement counts. */
cellgate_status cg_cost_store_once(cg_cost_store *store,
                                   const cg_cost_candidate *candidate,
                                   const char *structure, cg_cost_once *once,
                                   cellgate_error *error);
cellgate_status cg_cost_store_put_once(cg_cost_store *store,
                                       const cg_cost_candidate *candidate,
                                       const char *structure,
                                       const cg_cost_once *once,
                                       cellgate_error *error);
/* The user's and the site's. malloc'ed, the caller frees *limits; none: NULL
   and 0. A point that is put later lifts those at its shape and below. */
cellgate_status cg_cost_store_limits(cg_cost_store *store,
                                     const cg_cost_candidate *candidate,
                                     const char *structure,
                                     cg_cost_limit **limits, size_t *count,
                                     cellgate_error *error);
cellgate_status cg_cost_store_put_limit(cg_cost_store *store,
                                        const cg_cost_candidate *candidate,
                                        const char *structure,
                                        const cg_cost_limit *limit,
                                        cellgate_error *error);

/* ---- store.c ------------------------------------------------------------ */

/* Structures that a candidate has points for, one call each; stops at the
   first status that is not OK and returns it. The visitor must not use the
   store. */
typedef cellgate_status (*cg_cost_store_visitor)(void *context,
                                                 const char *structure,
                                                 size_t points);
cellgate_status cg_cost_store_structures(cg_cost_store *store,
                                         const cg_cost_candidate *candidate,
                                         cg_regime regime,
                                         cg_cost_store_visitor visit,
                                         void *context, cellgate_error *error);

/* Whether anything was measured on a device of that identity. */
cellgate_status cg_cost_store_knows(cg_cost_store *store, const char *identity,
                                    bool *known, cellgate_error *error);

/* ---- store_text.c: for a fleet ------------------------------------------ */

/*
 * All rows as text: a first line that says what it is, then one line a row,
 * fields separated by tabs. IO: the stream failed.
 */
cellgate_status cg_cost_store_export(cg_cost_store *store, FILE *stream,
                                     cellgate_error *error);
/*
 * Adds rows of that form; of two for the same shape the one with more samples
 * stays. All or none: BAD_FILE with the line's number, and nothing is changed.
 * `name` stands for the stream in messages. *rows: how many were read.
 */
cellgate_status cg_cost_store_import(cg_cost_store *store, FILE *stream,
                                     const char *name, size_t *rows,
                                     cellgate_error *error);
/* ---- store_diff.c ------------------------------------------------------- */

/*
 * What of the store does not hold for these candidates: one line for each
 * stored candidate that matches none of them, with the field that differs from
 * the one it is most like, and how many rows that leaves unused. *unused: all
 * of them together.
 */
cellgate_status cg_cost_store_diff(cg_cost_store *store,
                                   const cg_cost_candidate *candidates,
                                   size_t count, FILE *stream, size_t *unused,
                                   cellgate_error *error);

#endif
