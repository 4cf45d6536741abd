/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cellgate/calibrate.h: measuring what a model costs on each device, and why a
 * request goes where it goes. A part of cellgate/cellgate.h, which includes it.
 */
#ifndef CELLGATE_CALIBRATE_H
#define CELLGATE_CALIBRATE_H

#include "cellgate/cellgate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Calibration -------------------------------------------------------- */

/* What to measure; zero and NULL are the defaults. */
typedef struct cellgate_calibration {
    size_t struct_size;
    double seconds;      /* time to spend at most; 30. What was measured before
                            counts: a second call goes on where one ended */
    int64_t batch_least; /* shapes that decisions are wanted for: 1 */
    int64_t batch_most;  /* 64 */
    int64_t steps_least; /* 1; a model of fixed steps has those */
    int64_t steps_most;  /* 128 */
    /* Called now and then, with the share of the work done; a value other than
       0 ends the calibration, and what was measured stays. NULL: not called. */
    int32_t (*progress)(void *context, double done);
    void *progress_context;
    uint32_t cells_most; /* shapes to measure at most, of each piece of the
                            model that a device takes as a unit; 0: as many as
                            decisions need and the time allows */
} cellgate_calibration;

typedef struct cellgate_calibration_result {
    size_t struct_size;
    uint32_t candidates;     /* pieces of the model times devices' variants */
    uint32_t cells;          /* shapes that decisions are wanted for */
    uint32_t cells_measured; /* in this call */
    uint32_t cells_left_out; /* too large for the time or the memory */
    uint32_t wrong;          /* candidates whose results are wrong: they are
                                never chosen; the log says which */
    uint64_t samples;        /* in this call */
    uint32_t failed;         /* candidates that could not be run: they are not
                                measured any further; the log says why */
    uint32_t unreached;      /* candidates whose weights were still to be laid
                                out when half of the time was over: they come
                                first the next time; the log says which */
} cellgate_calibration_result;

/*
 * Measures what the session's model costs on every device it may use, at the
 * shapes where that decides most, and keeps it in the runtime's store: from
 * then on requests go where they cost least, in this session, in others, and in
 * other processes. Each candidate is checked against the host ops before it is
 * timed. One that fails is left out for this time, one that has no memory for a
 * shape at that shape and larger ones; the log says so. The regime is that of
 * the configuration; with [scheduler] regime = auto both are measured, each in
 * half of the time, and cells, cells_measured, samples and the like are of
 * both. Either argument after the session may be NULL. Requests of this and of
 * other sessions may go on meanwhile, but what is measured beside them is too
 * long: better nothing else uses the devices. IO: the store cannot be written;
 * what was measured holds for this process.
 */
CELLGATE_API cellgate_status cellgate_calibrate(
    cellgate_session *session, const cellgate_calibration *options,
    cellgate_calibration_result *result, cellgate_error *error);

/*
 * What was measured, as text, for other machines of the same kind: all rows of
 * the runtime's store, the user's and the site's. Written atomically.
 */
CELLGATE_API cellgate_status cellgate_calibration_export(
    const cellgate_runtime *runtime, const char *path, cellgate_error *error);
/*
 * Adds such a file's rows to the runtime's store: all of them, or none. Of two
 * for the same shape the one with more samples stays. Rows of devices that are
 * not here do no harm: they are not used. *rows, unless NULL: how many the file
 * has. BAD_FILE names its line. IO: it cannot be read, or the store cannot be
 * written.
 */
CELLGATE_API cellgate_status
cellgate_calibration_import(cellgate_runtime *runtime, const char *path,
                            uint64_t *rows, cellgate_error *error);
/*
 * What of the store holds for no candidate of the session any more: calls
 * `tell`, unless NULL, with a line for each set of rows, that names the first
 * thing that differs (the plugin's build, the device, its settings, the CPU).
 * *unused: how many rows. A row that is not used stays, and does no harm.
 */
CELLGATE_API cellgate_status cellgate_calibration_unused(
    cellgate_session *session, void (*tell)(void *context, const char *line),
    void *context, uint64_t *unused, cellgate_error *error);

/* ---- Explaining --------------------------------------------------------- */

/* A shape that somebody asks about. */
typedef struct cellgate_question {
    size_t struct_size;
    int64_t batch;
    /* Of every input whose steps a request decides. 0 for a model of fixed
       steps. */
    int64_t steps;
    double fill; /* share of batch * steps that is valid, with lengths; 0: 1,
                    a request without any */
} cellgate_question;

/* Where a predicted time comes from, from the best down. */
typedef enum cellgate_estimate {
    CELLGATE_ESTIMATE_NONE = 0,         /* nothing was measured */
    CELLGATE_ESTIMATE_BORROWED = 1,     /* from another model's structure */
    CELLGATE_ESTIMATE_EXTRAPOLATED = 2, /* from beyond the measured shapes */
    CELLGATE_ESTIMATE_INTERPOLATED = 3, /* from between them */
    CELLGATE_ESTIMATE_EXACT = 4         /* measured at this shape */
} cellgate_estimate;

/* "exact"; "none" for a number that is none. */
CELLGATE_API const char *cellgate_estimate_name(int32_t estimate);

typedef struct cellgate_explanation cellgate_explanation;

/*
 * What a request of that shape would be given to, and why: every candidate of
 * every piece of the model, with what it is predicted to cost. The session's
 * devices are opened; nothing runs. It says what holds now: a measurement
 * afterwards changes nothing in it. BAD_SHAPE: the model has no request of
 * that shape. INVALID: there is a fill, and no layer would look at lengths.
 * The caller destroys the explanation, which outlives the session if need be.
 */
CELLGATE_API cellgate_status
cellgate_explain(cellgate_session *session, const cellgate_question *question,
                 cellgate_explanation **explanation, cellgate_error *error);
CELLGATE_API void
cellgate_explanation_destroy(cellgate_explanation *explanation);

/* The decision. Strings live as the explanation does. */
typedef struct cellgate_decision {
    size_t struct_size;
    int64_t batch;
    int64_t steps;       /* of the first input; 0 where it has none */
    const char *choice;  /* "card any", or "card any + cpu t1" where the model
                            is cut; "host" */
    const char *reason;  /* as in a report */
    const char *rival;   /* the best other candidate for the part that takes
                            longest; "": none that is measured */
    double ahead;        /* the rival's time over that part's; 0 without one */
    double seconds;      /* predicted, all parts on devices; 0: not measured */
    double error;        /* standard error of ln(seconds) */
    int32_t estimate;    /* a cellgate_estimate, the worst of the parts' */
    uint32_t pieces;     /* that candidates are compared for */
    uint32_t host_parts; /* nodes that no device takes */
    double expected_requests; /* that what is done once is spread over; 0: many,
                                 so that it does not count */
    double once;  /* seconds to be spent once before the first request there, as
                     far as they were measured: see a cellgate_candidate_info */
    int32_t kept; /* non-zero: requests of the shape go there since `pinned`,
                     and the rival, which is better, is not so by enough */
    double needed;  /* of one that is kept: so many times less the rival's time
                       would have to be predicted; the margin or the noise */
    int64_t pinned; /* in seconds since 1970; 0: the session has had no request
                       of that class of shapes yet */
    const char *regime; /* "back-to-back" or "spaced": costs are of that one */
} cellgate_decision;

/* `decision->struct_size` must be set. */
CELLGATE_API cellgate_status cellgate_explanation_decision(
    const cellgate_explanation *explanation, cellgate_decision *decision);

/* A device and a variant that might run a piece of the model. */
typedef struct cellgate_candidate_info {
    size_t struct_size;
    uint32_t piece;    /* counts from 0 */
    uint32_t threads;  /* 0 where it is not known */
    const char *nodes; /* of the piece, separated by ", " */
    const char *device;
    const char *variant;  /* "": no variant takes the piece */
    int32_t chosen;       /* non-zero: a request would be given to it */
    int32_t estimate;     /* a cellgate_estimate */
    double seconds;       /* predicted; 0 with CELLGATE_ESTIMATE_NONE */
    double error;         /* standard error of ln(seconds) */
    uint32_t samples;     /* at the nearest measured shape */
    const char *excluded; /* "", or why it is not considered: what the device
                             says, wrong results, not measured, ... */
    double wait;          /* seconds until its resource is predicted to be free
                             of what runs and waits there now */
    int64_t measured;     /* when the nearest shape was measured, in seconds
                             since 1970; 0: not known */
    char note[160];       /* as in a cellgate_segment_info */
    /* Seconds that opening the device and laying out the weights take; 0: that
       is done already, or was not measured. */
    double opening, preparing;
} cellgate_candidate_info;

/* `info->struct_size` must be set. END past the last one. */
CELLGATE_API cellgate_status
cellgate_explanation_get(const cellgate_explanation *explanation, size_t index,
                         cellgate_candidate_info *info);

/* ---- Service ------------------------------------------------------------ */

/* What became of a session's requests that were routed by measured costs. */
typedef struct cellgate_service {
    size_t struct_size;
    uint64_t requests;
    uint64_t elsewhere;   /* of these, not on the best device, which was busy */
    uint64_t failed_over; /* of these, answered after a device had failed */
    uint64_t learned;     /* times that what was measured was corrected:
                             [scheduler] learn */
    uint64_t judged;      /* requests that had their devices to themselves and
                             another measured way to go: the next two numbers
                             are of these */
    double seconds;       /* on devices */
    double regret;        /* seconds of these that the best other way was
                             predicted to save: what the choice has cost */
    uint64_t shadow_runs; /* of the second best, beside requests: [scheduler]
                             shadow */
    double shadow_seconds;
} cellgate_service;

/* `service->struct_size` must be set. Any thread. INVALID: it is not, or the
   session is NULL. All zero for a session that does not choose by cost. */
CELLGATE_API cellgate_status cellgate_session_service(
    const cellgate_session *session, cellgate_service *service);

/* ---- Auditing ------------------------------------------------------------ */

/* What came of one shape. */
typedef enum cellgate_audit_verdict {
    CELLGATE_AUDIT_UNDECIDED = 0, /* the time did not suffice to tell */
    CELLGATE_AUDIT_RIGHT = 1,     /* within 5% of the measured best */
    CELLGATE_AUDIT_WRONG = 2,     /* slower than it by more */
    CELLGATE_AUDIT_LEFT_OUT = 3   /* a request of that shape cannot be run, or
                                     takes too much memory */
} cellgate_audit_verdict;

/* "right"; "undecided" for a number that is none. */
CELLGATE_API const char *cellgate_audit_verdict_name(int32_t verdict);

/* One shape of an audit. Strings live until the function that it is given to
   returns. */
typedef struct cellgate_audit_cell {
    size_t struct_size;
    int64_t batch;
    int64_t steps;      /* of the first input; 0 where it has none */
    int32_t verdict;    /* a cellgate_audit_verdict */
    int32_t crossover;  /* non-zero: with half or twice the batch or the
                           steps another one is chosen */
    const char *choice; /* "card any"; as in a cellgate_decision */
    const char *best;   /* the fastest one as measured: it, or a rival */
    const char *note;   /* "", or why the shape is left out, or which rival
                           could not be run */
    int32_t estimate;   /* a cellgate_estimate: where the prediction for the
                           choice comes from */
    double predicted;   /* seconds, of the choice; 0: not measured before */
    double seconds;     /* its median now, host memory to host memory */
    /* Its time over that of the rival that is hardest to tell from a better
       one, and an interval of that ratio. All 0 without rivals. */
    double ratio, ratio_low, ratio_high;
    /* Its time over its own, measured in the same way: what the audit cannot
       tell apart. */
    double self, self_low, self_high;
    uint32_t rivals; /* compared with it */
    uint32_t far;    /* of these, at least three times slower: few samples */
    uint32_t rounds; /* samples of the choice */
} cellgate_audit_cell;

/* What to look at; zero and NULL are the defaults. */
typedef struct cellgate_audit_options {
    size_t struct_size;
    double seconds;      /* time to spend at most; 60 */
    int64_t batch_least; /* a grid of powers of two, and both ends: 1 */
    int64_t batch_most;  /* 64 */
    int64_t steps_least; /* 1; a model of fixed steps has those */
    int64_t steps_most;  /* 128 */
    uint32_t cells;      /* so many of the grid's shapes, drawn at random
                            without repetition; 0: all */
    uint64_t seed;       /* of the drawing, and of the order: the same seed
                            gives the same shapes */
    /* Called now and then, with the share of the work done; a value other than
       0 ends the audit, and the rest is not reached. NULL: not called. */
    int32_t (*progress)(void *context, double done);
    void *progress_context;
    /* Told of each shape when it is done. NULL: not called. */
    void (*cell)(void *context, const cellgate_audit_cell *cell);
    void *cell_context;
} cellgate_audit_options;

/* right + wrong + undecided + left_out + unreached == cells. */
typedef struct cellgate_audit_result {
    size_t struct_size;
    uint32_t cells; /* shapes that were asked for */
    uint32_t right, wrong, undecided;
    uint32_t left_out;
    uint32_t unreached; /* the time was up before */
    /* Of the right, wrong and undecided ones: those near a crossover. */
    uint32_t crossover_right, crossover_wrong, crossover_undecided;
    /* And those whose choice was measured at the very shape before. */
    uint32_t exact_right, exact_wrong, exact_undecided;
    double regret; /* what the choice loses to the measured best, relative to
                      it, mean over the shapes that are decided */
    double worst;  /* the largest ratio of the choice to the best */
    /* The choice against itself, as |ratio - 1|: median and largest. */
    double self_median, self_worst;
} cellgate_audit_result;

/*
 * Whether requests are given to the right device. At each shape a request is
 * run to see where it goes; then that choice is measured against the model on
 * each other device and variant, fresh, in pairs and by turns, until the
 * interval (99%) of the ratio of their times lies within 1.05 or beyond it. At
 * least one fresh sample is taken of every rival, whatever it was predicted to
 * cost; only one whose samples are all three times slower is let go without an
 * interval. Rivals whose results are wrong or of another precision are not
 * compared, for a request never goes there.
 *
 * Nothing is kept: costs and pins are as before, and requests are given to what
 * a new session would give them to. The regime is that of the configuration.
 * Nothing else should use the devices meanwhile. Weights are laid out once more
 * for each variant. `options` may be NULL; `result` must not be.
 */
CELLGATE_API cellgate_status
cellgate_audit(cellgate_session *session, const cellgate_audit_options *options,
               cellgate_audit_result *result, cellgate_error *error);

#ifdef __cplusplus
}
#endif

#endif /* CELLGATE_CALIBRATE_H */
