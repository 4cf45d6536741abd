/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call: one request on its way through a placement. It lives on the stack of
 * cellgate_run(); what it points to is the request's, the context's or shared.
 */
#ifndef CELLGATE_RUNTIME_SESSION_CALL_H
#define CELLGATE_RUNTIME_SESSION_CALL_H

#include "runtime/cost/clock.h"
#include "runtime/session/placement.h"
#include "runtime/session/recall.h"
#include "runtime/session/stream.h"

typedef struct cg_times {
    double device, host, wait;
    double upload, compute, download;
    uint32_t segments, host_segments;
    int32_t numeric;              /* the least exact class that ran */
    double longest;               /* of one segment on a device */
    const cg_segment *longest_in; /* NULL: all ran on the host */
} cg_times;

/* A run that says what a segment costs. */
typedef struct cg_lesson {
    const cg_segment *segment;
    cg_cost_shape shape;
    double seconds; /* from host memory to host memory */
} cg_lesson;

/* Segments of a request beyond these are not learned from. */
#define CG_LESSONS 8

typedef struct cg_call {
    const cellgate_request *request;
    cg_recall *recall;   /* that it may be; NULL: it is not remembered */
    uint64_t number;     /* of all requests like it; 0: unknown */
    bool masked;         /* it gives a mask or lengths with some input */
    bool timed;          /* somebody is told how long what has taken */
    double fill;         /* of its steps those that are valid */
    uint64_t generation; /* of what the pin was decided from */
    cg_placement *placement;
    cg_pin *pin;       /* what is decided for its shape */
    const cg_way *way; /* of these the one it goes; NULL: the placement says */
    const cg_device *culprit; /* that failed it; NULL: none in particular */
    bool is_part;             /* it is some rows of a request that is split */
    bool was_split;
    cg_lesson lessons[CG_LESSONS];
    size_t lesson_count;
    size_t behind; /* requests that wait in line for their turn */
    const cg_graph *graph;
    const cg_partition *partition;
    cg_context *context;
    cellgate_stream *stream; /* NULL: from zeros */
    int64_t batch;
    cg_times times;
} cg_call;

/* The time, where it is asked for. */
static inline double cg_call_now(const cg_call *call)
{
    return call->timed ? cg_now(&cg_real_clock) : 0;
}

/* As CELLGATE_ERROR_INIT has it, but for the text behind its end: a request
   clears two of them. */
static inline void cg_error_clear(cellgate_error *error)
{
    error->struct_size = sizeof *error;
    error->status = CELLGATE_OK;
    error->reason = 0;
    error->vendor_code = 0;
    error->text[0] = '\0';
}

/* As cellgate_struct_copy() does, into one that is set by that; most are of the
   size that is known here. */
static inline void cg_struct_read(const void *from, void *to, size_t known)
{
    size_t size;

    memcpy(&size, from, sizeof size);
    if (size == known) {
        memcpy(to, from, known);
        return;
    }
    memcpy(to, &known, sizeof known);
    cellgate_struct_copy(to, from);
}

/* ---- request.c: is the request well formed? ---------------------------- */

/* Input and output number `index`, read at whatever size the application's
   structs have. */
void cg_request_input(const cellgate_request *request, size_t index,
                      cellgate_input *input);
void cg_request_output(const cellgate_request *request, size_t index,
                       cellgate_tensor *output);

/* Counts, struct sizes, dtypes, ranks, extents and lengths of the inputs. */
cellgate_status cg_request_check_inputs(const cellgate_request *request,
                                        const cellgate_model *model,
                                        cellgate_error *error);
/* Shapes of every value of the model for checked inputs. */
cellgate_status cg_request_shapes(const cellgate_request *request,
                                  const cg_graph *graph, cg_shape *shapes,
                                  cellgate_error *error);
/* Dtype and shape of the outputs that are wanted. */
cellgate_status cg_request_check_outputs(const cellgate_request *request,
                                         const cellgate_model *model,
                                         const cg_shape *shapes,
                                         cellgate_error *error);
/* Whether it gives a mask or lengths with any input. */
bool cg_request_masked(const cellgate_request *request);

/* ---- attempt.c: which way, and which one when that fails ---------------- */

/* Runs the request: where its shape was measured to cost least, or on the
   session's first device; and on others, where the settings say so, when a
   device fails. *failure: the first failure, also where another one answered.
 */
cellgate_status cg_call_attempt(cg_call *call, struct cellgate_session *session,
                                cellgate_error *failure);

/* One way of the request's pin, to its end. `failed_over`: another one has
   failed. */
cellgate_status cg_call_run_way(cg_call *call, struct cellgate_session *session,
                                size_t index, bool failed_over,
                                cellgate_error *error);

/* ---- learn.c: what a request in service says ----------------------------- */

/* Of one that was answered: counts it, and corrects what was measured.
   `alone`: nothing else was on its devices. */
void cg_call_learn(const cg_call *call, struct cellgate_session *session,
                   bool alone, bool failed_over);

/* ---- report.c ----------------------------------------------------------- */

/* What became of a request that was answered, in so many seconds. */
void cg_call_report(const cg_call *call, const cellgate_error *failure,
                    double seconds, cellgate_report *report);

/* ---- run.c -------------------------------------------------------------- */

/* cellgate_run(), for a request behind which others wait in line. */
cellgate_status cg_session_run(struct cellgate_session *session,
                               const cellgate_request *request, size_t behind,
                               cellgate_report *report, cellgate_error *error);

/* ---- bind.c: where do its numbers lie? --------------------------------- */

/* Checks the outputs, gives every value a buffer, and fills those of the
   inputs. */
cellgate_status cg_call_bind(cg_call *call, cellgate_error *error);
/* Copies to the application what it doesn't have yet. */
void cg_call_deliver(const cg_call *call);

/* ---- follow.c: where do they lie this time? ------------------------------ */

/* Of a context that was laid out. */
void cg_call_note_memory(const cg_call *call);
/* The context is laid out for a request that differs at most in where its
   numbers lie: it is for this one, unless false is returned. */
bool cg_call_follow(cg_call *call);

/* ---- execute.c: compute ------------------------------------------------- */

/* Scratch memory of one part; NULL for what it doesn't need. */
typedef struct cg_part_memory {
    void *host;       /* of a host op */
    int32_t *lengths; /* of a segment with a mask: [batch] */
    void *x;          /* likewise: valid steps only */
    float *y;
} cg_part_memory;

/* Takes it from the arena. */
void cg_part_take(const cg_call *call, const cg_part *part, cg_arena *arena,
                  cg_part_memory *memory);
/* Runs all parts. TIMEOUT: call->context is NULL, it has been left behind. */
cellgate_status cg_call_execute(cg_call *call, cellgate_error *error);

/* Steps of a segment's run; 1 where it takes rows. */
static inline int64_t cg_call_steps(const cg_call *call,
                                    const cg_segment *segment)
{
    return segment->rows ? 1 : call->context->shapes[segment->x].extent[1];
}

/* Size of a value's last axis. */
static inline int64_t cg_call_features(const cg_call *call, int32_t value)
{
    const cg_shape *shape = &call->context->shapes[value];

    return shape->extent[shape->rank - 1];
}

/* ---- launch.c: one run of a device -------------------------------------- */

/* Runs what context->flight.run says, with a plan and threads for it. */
cellgate_status cg_call_launch(cg_call *call, const cg_segment *segment,
                               cellgate_error *error);

/* ---- unmask.c: after a run over lengths --------------------------------- */

struct cg_mask;

/* Puts a segment's results where the mask has them, and fills masked steps.
   `packed`: they are of valid steps only, in memory->y. */
void cg_call_apply_mask(const cg_call *call, const cg_segment *segment,
                        const struct cg_mask *mask,
                        const cg_part_memory *memory, bool packed);

#endif
