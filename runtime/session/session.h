/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session: a model, and the devices that may run its requests. Each request
 * goes where its shape was measured to cost least (route.h); where nothing was
 * measured, to the first usable device. The setting [scheduler] fallback says
 * when another one may take a failing one's place.
 */
#ifndef CELLGATE_RUNTIME_SESSION_SESSION_H
#define CELLGATE_RUNTIME_SESSION_SESSION_H

#include "runtime/schedule/learn.h"
#include "runtime/schedule/pace.h"
#include "runtime/schedule/queue.h"
#include "runtime/session/placement.h"
#include "runtime/session/readmission.h"
#include "runtime/session/recall.h"
#include "runtime/session/route.h"
#include "runtime/session/rules.h"
#include "runtime/session/shadow.h"

#define CG_UNTRIED (-1)

/* A device that may run the session's requests, or the host ops. */
typedef struct cg_candidate {
    cg_device *device; /* NULL: the host ops */
    cg_engine *engine; /* NULL before it was `opened` */
    bool opened;
    bool used;     /* not for looking at it alone, as explaining does */
    bool left_out; /* of the decision that is being made: once.c */
    /*
     * A cellgate_status, set once for each opening of the device, or CG_UNTRIED
     * before. OK: `placement` is there. Else why there is none, in `failure`.
     */
    atomic_int status;
    _Atomic uint64_t epoch; /* of the device, when this was tried */
    /* Until there is one of a later opening, that of an earlier one. */
    _Atomic(cg_placement *) placement;
    char failure[256];
} cg_candidate;

/* What was learned, the last of each segment and shape. */
typedef struct cg_learned {
    const cg_segment *segment;
    cg_regime regime;
    cg_cost_point point;
} cg_learned;

#define CG_LEARNED_MOST 64

typedef struct cg_lessons {
    pthread_mutex_t mutex;
    cg_learned of[CG_LEARNED_MOST];
    size_t count;
} cg_lessons;

struct cellgate_session {
    cg_device_table *table;
    cellgate_model *model;
    cg_graph graph;
    cg_segment_pool pool;
    char *variant; /* asked for by name, or NULL */
    cg_fallback fallback;
    double watchdog;
    double expected;          /* requests; infinite: many */
    bool named;               /* the application named the device */
    pthread_mutex_t mutex;    /* of making placements */
    cg_candidate *candidates; /* in the order in which they are tried */
    size_t candidate_count;
    size_t primary;        /* the one taken when the session was created */
    cg_rules rules;        /* none where the application named a device */
    cg_engine *engines;    /* all there ever were */
    cg_placement *retired; /* of candidates, replaced by later ones */
    cg_cost_book *book;
    cg_loads *loads;
    cg_learner *learner; /* with a router */
    bool learns;         /* what it is told changes what is known */
    bool watches_pace;   /* which decides the regime */
    cg_pace pace;
    cg_shadow shadow;
    cg_lessons lessons; /* to be written when the session ends */
    double handoff;     /* cg_session_handoff(); 0: not measured yet */
    cg_readmission *readmission;
    cg_queue *queue;   /* NULL: nothing was submitted yet */
    cg_router *router; /* NULL: every request goes to the primary one */
    cg_recalls recalls;
    cellgate_session *next; /* among those that a hung run keeps from going */
};

/* ---- candidate.c ------------------------------------------------------- */

/* Whether it is a device that is open and in service, and was not opened anew
   since. Cheap. */
bool cg_candidate_ready(const cg_candidate *candidate);
/* "host", or the device's name. */
const char *cg_candidate_name(const cg_candidate *candidate);

/*
 * Lists the candidates: the device of that name, or all of the table, and then
 * those that a failing run may fall back to. NOT_FOUND: no such device.
 */
cellgate_status cg_session_list_candidates(cellgate_session *session,
                                           const char *device,
                                           cellgate_error *error);
/* Takes the first that works, as far as the settings allow to go on. */
cellgate_status cg_session_choose(cellgate_session *session,
                                  cellgate_error *error);
/* Opens a candidate's device, once for each opening of it. The session's mutex
   is held, or nobody else has the session yet. */
cellgate_status cg_session_open(cellgate_session *session,
                                cg_candidate *candidate, cellgate_error *error);
/*
 * Where a device was opened anew, the session does the same: what it has of the
 * earlier opening is retired. Opens the devices that something was measured on,
 * so that they may be chosen; one that cannot be opened is left out, and the
 * log says why. Whether anything may be known at all. The session's mutex is
 * held.
 */
bool cg_session_open_measured(cellgate_session *session);
/* Whether anything of a device that may be used was measured. */
bool cg_candidate_measured(const cellgate_session *session,
                           const cg_candidate *candidate);
/* Opens a candidate's device if it may be used and is not open; a failure is
   logged. The session's mutex is held. */
void cg_session_open_choice(cellgate_session *session, cg_candidate *candidate);
/* Opens every usable device of the session, for a look; as above. */
void cg_session_open_all(cellgate_session *session);
/*
 * The placement of candidate `index`, made on first need, and again when its
 * device was opened anew. A failure is kept until then, but for NO_MEMORY:
 * later calls return it again.
 */
cellgate_status cg_session_placement(cellgate_session *session, size_t index,
                                     cg_placement **placement,
                                     cellgate_error *error);

/* The same for who holds the session's mutex. */
cellgate_status cg_session_placement_held(cellgate_session *session,
                                          size_t index,
                                          cg_placement **placement,
                                          cellgate_error *error);
/* Keeps a placement that was replaced, for those that have seen it. The
   session's mutex is held. */
void cg_session_keep_retired(cellgate_session *session,
                             cg_placement *placement);

/* ---- submit.c ------------------------------------------------------------ */

/* The session's threads for requests that are queued; made on first need. */
cellgate_status cg_session_queue(cellgate_session *session, cg_queue **queue,
                                 cellgate_error *error);
/* Seconds that it takes to give work to one of these threads and to hear of its
   end, measured once. BUSY: too much waits for them. The session's mutex is
   held. */
cellgate_status cg_session_handoff(cellgate_session *session, double *seconds,
                                   cellgate_error *error);

/* ---- learn.c ------------------------------------------------------------- */

/* A segment (`of->of`) takes so long at a shape: what was measured is
   corrected, where that differs by more than the margin and the noise; else
   such times are expected from then on. */
void cg_session_correct(cellgate_session *session, const cg_watched *of,
                        const cg_summary *seen);
/* Writes what was learned into the store. */
void cg_session_keep_learned(cellgate_session *session);

/* ---- no_device.c: errors that say what there is, and what to do ---------- */

/* NO_DEVICE: no candidate is usable. */
cellgate_status cg_session_no_device(const cellgate_session *session,
                                     cellgate_error *error);
/* NOT_FOUND: the device or the variant that the application named. */
cellgate_status cg_session_no_such_device(const cellgate_session *session,
                                          const char *name,
                                          cellgate_error *error);
cellgate_status cg_session_no_such_variant(const cellgate_session *session,
                                           const cg_placement *placement,
                                           cellgate_error *error);

#endif
