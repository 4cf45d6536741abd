/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are queued, and run by threads of the session's. */
#include "config.h"

#include <stdlib.h>

#include "runtime/given.h"
#include "runtime/session/call.h"
#include "runtime/session/session.h"

/* How often the way to a thread is timed. */
#define HANDOFFS 9

struct cellgate_ticket {
    cg_queue_job job; /* first: the queue hands it back as itself */
    cellgate_session *session;
    cellgate_request request;
    cellgate_report report;
    cellgate_error error;
    cellgate_status status;
};

static void work(cg_queue_job *job)
{
    cellgate_ticket *ticket = (cellgate_ticket *)job;

    ticket->status = cg_session_run(ticket->session, &ticket->request,
                                    cg_queue_waiting(ticket->session->queue),
                                    &ticket->report, &ticket->error);
}

/* One thread for each run that the devices are worth at once: more would only
   wait for them. */
static unsigned useful_threads(const cellgate_session *session)
{
    unsigned threads = 0;

    for (size_t at = 0; at < session->candidate_count; at++) {
        const cg_device *device = session->candidates[at].device;
        const cellgate_device_description *about;

        if (device == NULL || cg_device_usable(device, NULL) != CELLGATE_OK)
            continue;
        about = cg_device_description_get(device);
        if (about->flags & CELLGATE_DEVICE_ON_CALLER)
            threads += cg_device_thread_budget(device);
        else
            threads += about->queue_depth > 0 ? about->queue_depth : 1;
    }
    return threads > 0 ? threads : 1;
}

/* The session's mutex is held. */
static cellgate_status make_queue(cellgate_session *session,
                                  cellgate_error *error)
{
    const cg_config *config = cg_device_table_config(session->table);

    return session->queue != NULL
               ? CELLGATE_OK
               : cg_queue_create(useful_threads(session), config->queue,
                                 &cg_real_clock, &session->queue, error);
}

cellgate_status cg_session_queue(cellgate_session *session, cg_queue **queue,
                                 cellgate_error *error)
{
    cellgate_status status;

    pthread_mutex_lock(&session->mutex);
    status = make_queue(session, error);
    *queue = session->queue;
    pthread_mutex_unlock(&session->mutex);
    return status;
}

static void do_nothing(cg_queue_job *job)
{
    (void)job;
}

static cellgate_status time_handoff(cellgate_session *session,
                                    cellgate_error *error)
{
    double seconds[HANDOFFS];
    cg_summary summary;
    cellgate_status status = make_queue(session, error);

    for (int at = 0; status == CELLGATE_OK && at < HANDOFFS; at++) {
        const double start = cg_now(&cg_real_clock);
        cg_queue_job job = { .work = do_nothing };

        status = cg_queue_put(session->queue, &job, error);
        if (status == CELLGATE_OK)
            (void)cg_queue_wait(session->queue, &job, -1);
        seconds[at] = cg_now(&cg_real_clock) - start;
    }
    if (status != CELLGATE_OK)
        return status;
    cg_summarise(seconds, HANDOFFS, &summary);
    session->handoff = summary.median;
    return CELLGATE_OK;
}

cellgate_status cg_session_handoff(cellgate_session *session, double *seconds,
                                   cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    if (session->handoff <= 0)
        status = time_handoff(session, error);
    if (status == CELLGATE_OK)
        *seconds = session->handoff;
    return status;
}

static cellgate_status read_arguments(const cellgate_request *request,
                                      const cellgate_submission *options,
                                      cellgate_ticket *ticket,
                                      cellgate_submission *read,
                                      cellgate_error *error)
{
    *read = (cellgate_submission){ .struct_size = sizeof *read };
    if (!cg_given_known(request, CG_FIRST_REQUEST, sizeof *request) ||
        (options != NULL &&
         !cg_given_known(options, CG_FIRST_ANY, sizeof *read)))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "struct_size of the request or of the submission "
                             "is not set, or they have members that this "
                             "libcellgate does not know");
    ticket->request.struct_size = sizeof ticket->request;
    cellgate_struct_copy(&ticket->request, request);
    if (options != NULL)
        cellgate_struct_copy(read, options);
    if (!(read->deadline >= 0))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "a deadline is a number of seconds from now, not "
                             "%g",
                             read->deadline);
    return CELLGATE_OK;
}

static cellgate_ticket *ticket_new(cellgate_session *session)
{
    cellgate_ticket *ticket = calloc(1, sizeof *ticket);

    if (ticket == NULL)
        return NULL;
    ticket->session = session;
    ticket->job.work = work;
    ticket->report.struct_size = sizeof ticket->report;
    ticket->error.struct_size = sizeof ticket->error;
    return ticket;
}

cellgate_status cellgate_submit(cellgate_session *session,
                                const cellgate_request *request,
                                const cellgate_submission *options,
                                cellgate_ticket **ticket, cellgate_error *error)
{
    cellgate_submission read;
    cellgate_ticket *made;
    cg_queue *queue;
    cellgate_status status = cg_process_check(error);

    if (status != CELLGATE_OK)
        return status;
    if (session == NULL || request == NULL || ticket == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "a submission needs a session, a request and a "
                             "place for the ticket");
    status = cg_session_queue(session, &queue, error);
    if (status != CELLGATE_OK)
        return status;
    made = ticket_new(session);
    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for one more request");
    status = read_arguments(request, options, made, &read, error);
    made->job.lane = made->request.stream;
    if (read.deadline > 0)
        made->job.deadline = cg_now(&cg_real_clock) + read.deadline;
    if (status == CELLGATE_OK)
        status = cg_queue_put(queue, &made->job, error);
    if (status != CELLGATE_OK) {
        free(made);
        return status;
    }
    *ticket = made;
    return CELLGATE_OK;
}

/* What the run itself said. */
static cellgate_status tell(const cellgate_ticket *ticket,
                            cellgate_report *report, cellgate_error *error)
{
    if (ticket->status == CELLGATE_OK) {
        if (report != NULL)
            cellgate_struct_copy(report, &ticket->report);
        return CELLGATE_OK;
    }
    cellgate_fail(error, ticket->status, "%s", ticket->error.text);
    if (error != NULL) {
        error->reason = ticket->error.reason;
        error->vendor_code = ticket->error.vendor_code;
    }
    return ticket->status;
}

cellgate_status cellgate_wait(cellgate_ticket *ticket, double seconds,
                              cellgate_report *report, cellgate_error *error)
{
    cellgate_status status = cg_process_check(error);

    if (status != CELLGATE_OK)
        return status;
    if (ticket == NULL || (report != NULL && !cg_given_fillable(report)))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "waiting needs a ticket, and the report's "
                             "struct_size");
    switch (cg_queue_wait(ticket->session->queue, &ticket->job, seconds)) {
    case CG_JOB_DONE:
        return tell(ticket, report, error);
    case CG_JOB_CANCELLED:
        return cellgate_fail(error, CELLGATE_CANCELLED,
                             "the request was cancelled before it began");
    case CG_JOB_LATE:
        return cellgate_fail(error, CELLGATE_EXPIRED,
                             "the request did not begin before its deadline");
    default:
        return cellgate_fail(error, CELLGATE_PENDING,
                             "the request has not ended yet");
    }
}

cellgate_status cellgate_cancel(cellgate_ticket *ticket)
{
    if (ticket == NULL)
        return CELLGATE_INVALID;
    if (cg_process_check(NULL) != CELLGATE_OK)
        return CELLGATE_FORKED;
    switch (cg_queue_cancel(ticket->session->queue, &ticket->job)) {
    case CG_JOB_CANCELLED:
        return CELLGATE_OK;
    case CG_JOB_RUNNING:
        return CELLGATE_BUSY;
    default:
        return CELLGATE_END;
    }
}

void cellgate_ticket_destroy(cellgate_ticket *ticket)
{
    if (ticket == NULL || cg_process_check(NULL) != CELLGATE_OK)
        return;
    (void)cg_queue_cancel(ticket->session->queue, &ticket->job);
    (void)cg_queue_wait(ticket->session->queue, &ticket->job, -1);
    free(ticket);
}
