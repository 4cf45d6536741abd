/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/session/once.h"

cellgate_status cg_once_candidate(cg_device *device,
                                  cg_cost_candidate *candidate,
                                  cellgate_error *error)
{
    cg_device_identity identity;
    cellgate_status status =
        cg_device_identify_probed(device, &identity, error);

    if (status == CELLGATE_OK)
        *candidate = (cg_cost_candidate){ .device = cg_device_name(device),
                                          .plugin = identity.plugin,
                                          .build = identity.build,
                                          .identity = identity.identity,
                                          .settings = identity.settings,
                                          .variant = "",
                                          .numeric = "",
                                          .host = identity.host };
    return status;
}

/* ---- What it takes ------------------------------------------------------ */

/* As it was measured, done or not. */
static cellgate_status opening_of(const cellgate_session *session,
                                  cg_device *device, double *seconds,
                                  cellgate_error *error)
{
    cg_cost_once once = { 0, 0 };
    cg_cost_candidate candidate;
    cellgate_status status = cg_once_candidate(device, &candidate, error);

    if (status == CELLGATE_OK)
        status = cg_cost_book_once(session->book, &candidate, CG_OPENING, &once,
                                   error);
    *seconds = once.seconds;
    return status;
}

cellgate_status cg_once_opening(const cellgate_session *session,
                                const cg_candidate *candidate, double *seconds,
                                cellgate_error *error)
{
    *seconds = 0;
    if (candidate->device == NULL || candidate->used)
        return CELLGATE_OK;
    return opening_of(session, candidate->device, seconds, error);
}

cellgate_status cg_once_preparing(cellgate_session *session,
                                  const cg_segment *segment,
                                  const cg_cost_candidate *candidate,
                                  double *seconds, cellgate_error *error)
{
    cg_cost_once once = { 0, 0 };
    cellgate_status status = CELLGATE_OK;
    double done;

    if (!cg_segment_pool_prepared(&session->pool, segment, &done))
        status = cg_cost_book_once(session->book, candidate, segment->structure,
                                   &once, error);
    *seconds = once.seconds;
    return status;
}

/* ---- What is opened ----------------------------------------------------- */

/* Whether a request would have to wait until it is open. */
static bool is_closed(const cg_costing *costing, const cg_candidate *candidate)
{
    if (costing->asks)
        return !candidate->used;
    return !candidate->opened && cg_device_epoch(candidate->device) == 0;
}

/* Opens what is open already, for other sessions or anew, and leaves out what
   is not. Whether anything may be known. */
static bool begin(const cg_costing *costing)
{
    cellgate_session *session = costing->session;
    bool any = cg_cost_book_generation(session->book) > 1;

    for (size_t at = 0; at < session->candidate_count; at++) {
        cg_candidate *candidate = &session->candidates[at];

        if (!cg_candidate_measured(session, candidate))
            continue;
        any = true;
        candidate->left_out = is_closed(costing, candidate);
        if (!candidate->left_out && !costing->asks)
            cg_session_open_choice(session, candidate);
    }
    return any;
}

/* The one that opens fastest of those left out, or NULL. */
static cellgate_status find_next(const cellgate_session *session,
                                 cg_candidate **next, double *seconds,
                                 cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    *next = NULL;
    *seconds = HUGE_VAL;
    for (size_t at = 0; status == CELLGATE_OK && at < session->candidate_count;
         at++) {
        cg_candidate *candidate = &session->candidates[at];
        double taken;

        if (!candidate->left_out)
            continue;
        status = opening_of(session, candidate->device, &taken, error);
        if (status == CELLGATE_OK && taken < *seconds) {
            *next = candidate;
            *seconds = taken;
        }
    }
    return status;
}

/* Each that is opened may make the next one not worth it. */
static cellgate_status decide_by_steps(cg_costing *costing, cg_cut **cuts,
                                       bool masked, const cg_pin *before,
                                       cg_pin *pin, cellgate_error *error)
{
    cellgate_session *session = costing->session;
    cg_candidate *next;
    double opening;

    for (;;) {
        const cg_route none = { .measured = false };
        cellgate_status status;
        double all;

        costing->route = none;
        costing->longest = 0;
        status = cg_pin_decide(costing, cuts, masked, before, pin, error);
        if (status == CELLGATE_OK)
            status = find_next(session, &next, &opening, error);
        if (status != CELLGATE_OK || next == NULL)
            return status;
        all = pin->way_count > 0 ? (double)pin->ways[0].seconds *
                                       costing->policy.expected_requests
                                 : HUGE_VAL;
        if (opening >= all)
            return CELLGATE_OK;
        next->left_out = false;
        if (!costing->asks)
            cg_session_open_choice(session, next);
    }
}

cellgate_status cg_once_decide(cg_costing *costing, cg_cut **cuts, bool masked,
                               const cg_pin *before, cg_pin *pin,
                               cellgate_error *error)
{
    cellgate_session *session = costing->session;

    memset(pin, 0, sizeof *pin);
    for (size_t at = 0; at < session->candidate_count; at++)
        session->candidates[at].left_out = false;
    if (cg_once_counts(&costing->policy))
        return begin(costing)
                   ? decide_by_steps(costing, cuts, masked, before, pin, error)
                   : CELLGATE_OK;
    if (!costing->asks && !cg_session_open_measured(session))
        return CELLGATE_OK;
    return cg_pin_decide(costing, cuts, masked, before, pin, error);
}

/* ---- What was measured -------------------------------------------------- */

cellgate_status cg_once_keep_opening(cellgate_session *session,
                                     const cg_candidate *candidate,
                                     cellgate_error *error)
{
    cg_cost_candidate opening;
    cg_cost_once once = { 0, 0 };
    cellgate_status status;

    if (!cg_candidate_ready(candidate) || !(candidate->engine->opened_in > 0))
        return CELLGATE_OK;
    once.seconds = candidate->engine->opened_in;
    status = cg_once_candidate(candidate->device, &opening, error);
    return status == CELLGATE_OK
               ? cg_cost_book_put_once(session->book, &opening, CG_OPENING,
                                       &once, error)
               : status;
}

cellgate_status cg_once_keep_preparing(cellgate_session *session,
                                       const cg_segment *segment,
                                       cellgate_error *error)
{
    cg_cost_candidate candidate;
    cg_cost_once once = { 0, 0 };
    cellgate_status status;

    if (!cg_segment_pool_prepared(&session->pool, segment, &once.seconds) ||
        !(once.seconds > 0))
        return CELLGATE_OK;
    status = cg_segment_candidate(segment, &candidate, error);
    return status == CELLGATE_OK
               ? cg_cost_book_put_once(session->book, &candidate,
                                       segment->structure, &once, error)
               : status;
}
