/* SPDX-License-Identifier: Apache-2.0 */
/* One request: the way it goes, and the one it goes when that fails. */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/call.h"
#include "runtime/session/session.h"
#include "runtime/session/split.h"

/* ---- One placement ------------------------------------------------------ */

/* `start`: when it got its context. */
static cellgate_status run_in_context(cg_call *call, double start,
                                      cellgate_error *error)
{
    cellgate_status status = cg_call_bind(call, error);

    if (status == CELLGATE_OK)
        status = cg_call_execute(call, error);
    if (status == CELLGATE_OK)
        cg_call_deliver(call);
    if (call->timed)
        call->times.host =
            cg_call_now(call) - start - call->times.device - call->times.wait;
    return status;
}

static cellgate_status run_placed(cg_call *call, cellgate_error *error)
{
    cg_placement *placement = call->placement;
    const double start = cg_call_now(call);
    double begun;
    cellgate_status status = cg_placement_partition(placement, call->masked,
                                                    &call->partition, error);

    if (status == CELLGATE_OK)
        status = cg_placement_acquire(placement, &call->context, error);
    if (status != CELLGATE_OK)
        return status;
    begun = cg_call_now(call);
    /* The run before may have been the device's last. */
    status = cg_placement_usable(placement, error);
    if (status == CELLGATE_OK)
        status = run_in_context(call, begun, error);
    call->times.wait += begun - start;
    if (call->context != NULL)
        cg_placement_release(placement, call->context);
    return status;
}

static cellgate_status run_on(cg_call *call, cg_placement *placement,
                              cellgate_error *error)
{
    call->placement = placement;
    call->context = NULL;
    call->culprit = NULL;
    call->lesson_count = 0;
    memset(&call->times, 0, sizeof call->times);
    return run_placed(call, error);
}

/* ---- One way ------------------------------------------------------------ */

/* The placement of a cut; made under the session's mutex. */
static cellgate_status place(cellgate_session *session, cg_cut *cut,
                             cg_placement **placement, cellgate_error *error)
{
    cellgate_status status;

    *placement = atomic_load_explicit(&cut->placement, memory_order_acquire);
    if (*placement != NULL)
        return CELLGATE_OK;
    pthread_mutex_lock(&session->mutex);
    status =
        cg_cut_place(cut, &session->pool, session->watchdog, placement, error);
    pthread_mutex_unlock(&session->mutex);
    return status;
}

cellgate_status cg_call_run_way(cg_call *call, cellgate_session *session,
                                size_t index, bool failed_over,
                                cellgate_error *error)
{
    const cg_way *way = &call->pin->ways[index];
    const cg_cut *cut = way->cut;
    cg_hold holds[CG_CUT_DEVICES];
    bool alone = true;
    cg_placement *placement;
    cellgate_status status = place(session, way->cut, &placement, error);

    if (status != CELLGATE_OK)
        return status;
    call->way = way;
    for (size_t at = 0; at < cut->engine_count; at++)
        cg_load_begin(cut->engines[at]->load, cut->places[at],
                      (double)way->on[at], &holds[at]);
    status = run_on(call, placement, error);
    for (size_t at = 0; at < cut->engine_count; at++)
        alone = cg_load_end(cut->engines[at]->load, &holds[at]) && alone;
    if (status == CELLGATE_OK)
        cg_call_learn(call, session, alone, failed_over);
    return status;
}

/* A placement that no cost led to: it takes its devices' places all the same,
   for so long as it runs. */
static cellgate_status run_unmeasured(cg_call *call, cg_placement *placement,
                                      cellgate_error *error)
{
    const size_t most = placement->engine_count < CG_CUT_DEVICES
                            ? placement->engine_count
                            : CG_CUT_DEVICES;
    cg_hold holds[CG_CUT_DEVICES];
    cellgate_status status;

    call->way = NULL;
    for (size_t at = 0; at < most; at++)
        cg_load_begin(placement->engines[at]->load, 1, 0, &holds[at]);
    status = run_on(call, placement, error);
    for (size_t at = 0; at < most; at++)
        (void)cg_load_end(placement->engines[at]->load, &holds[at]);
    return status;
}

static cellgate_status run_candidate(cg_call *call, cellgate_session *session,
                                     size_t index, cellgate_error *error)
{
    cg_placement *placement;
    cellgate_status status =
        cg_session_placement(session, index, &placement, error);

    return status == CELLGATE_OK ? run_unmeasured(call, placement, error)
                                 : status;
}

/* What disagreed with the host ops never runs. */
static cellgate_status refuse_wrong(cg_call *call, cellgate_error *error)
{
    const cg_segment *wrong = call->pin->wrong;

    call->way = NULL;
    call->culprit = wrong->engine->device;
    return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                         "device '%s' gave wrong results for %s when it was "
                         "calibrated, and no other device is measured: "
                         "calibrate again, or name another device",
                         cg_device_name(wrong->engine->device), wrong->names);
}

static cellgate_status run_pinned(cg_call *call, cellgate_session *session,
                                  cellgate_error *error)
{
    cellgate_status status =
        cg_router_pin(session->router, session, call, error);

    if (status != CELLGATE_OK)
        return status;
    if (call->pin->wrong != NULL)
        return refuse_wrong(call, error);
    if (call->pin->way_count == 0)
        return run_candidate(call, session, session->primary, error);
    if (cg_split_wanted(call))
        return cg_split_run(call, session, error);
    return cg_call_run_way(call, session, cg_pin_turn(call->pin, call->behind),
                           false, error);
}

static cg_rule *find_rule(const cg_call *call, const cellgate_session *session)
{
    const cellgate_model *model = session->model;
    const cg_value *value = &model->values[model->inputs[0].value];
    cellgate_input first;

    if (session->rules.count == 0)
        return NULL;
    cg_request_input(call->request, 0, &first);
    return cg_rules_find(&session->rules, call->batch,
                         cg_value_has_steps(value) ? first.tensor.shape[1] : 0);
}

static cellgate_status run_rule(cg_call *call, cellgate_session *session,
                                cg_rule *rule, cellgate_error *error)
{
    cg_placement *placement;
    cellgate_status status =
        cg_rule_placement(rule, session, &placement, error);

    return status == CELLGATE_OK ? run_unmeasured(call, placement, error)
                                 : status;
}

/* Where a rule sends it, or where the shape was measured to be best; else on
   the first device. */
static cellgate_status run_routed(cg_call *call, cellgate_session *session,
                                  cellgate_error *error)
{
    cg_rule *rule = find_rule(call, session);
    cellgate_status status;

    if (rule != NULL)
        return run_rule(call, session, rule, error);
    if (session->router == NULL)
        return run_candidate(call, session, session->primary, error);
    status = run_pinned(call, session, error);
    if (status == CELLGATE_UNSUPPORTED && call->way != NULL &&
        cg_router_narrow(session->router, session, call)) {
        if (error != NULL)
            *error = (cellgate_error)CELLGATE_ERROR_INIT;
        status = run_pinned(call, session, error);
    }
    return status;
}

/* ---- After a failure ---------------------------------------------------- */

/* The devices that have failed a request; of more than that some are tried
   again, in vain. */
typedef struct failed_devices {
    const cg_device *of[16];
    size_t count;
} failed_devices;

/* Failures that another device may not have; the request itself is sound. */
static bool device_failed(cellgate_status status)
{
    return status == CELLGATE_DEVICE_FAILED || status == CELLGATE_DEVICE_LOST ||
           status == CELLGATE_DEVICE_MEMORY || status == CELLGATE_TIMEOUT ||
           status == CELLGATE_NO_DEVICE || status == CELLGATE_UNSUPPORTED;
}

static void note(failed_devices *failed, const cg_device *device)
{
    if (device != NULL &&
        failed->count < sizeof failed->of / sizeof failed->of[0])
        failed->of[failed->count++] = device;
}

/* The one that failed, or all that the placement is on. */
static void note_failure(failed_devices *failed, const cg_call *call)
{
    const cg_placement *placement = call->placement;

    note(failed, call->culprit);
    for (size_t at = 0; call->culprit == NULL && placement != NULL &&
                        at < placement->engine_count;
         at++)
        note(failed, placement->engines[at]->device);
}

static bool has_failed(const failed_devices *failed, const cg_device *device)
{
    for (size_t at = 0; at < failed->count; at++)
        if (failed->of[at] == device)
            return true;
    return false;
}

static bool avoids(const cg_partition *partition, const failed_devices *failed)
{
    for (size_t at = 0; at < partition->count; at++) {
        const cg_segment *segment = partition->parts[at].segment;

        if (segment != NULL && has_failed(failed, segment->engine->device))
            return false;
    }
    return true;
}

/* The pin's other ways, from the best down. */
static cellgate_status run_other_ways(cg_call *call, cellgate_session *session,
                                      failed_devices *failed,
                                      cellgate_status status,
                                      cellgate_error *cause)
{
    for (size_t at = 0; device_failed(status) && at < call->pin->way_count;
         at++) {
        if (!avoids(&call->pin->ways[at].cut->partition, failed))
            continue;
        status = cg_call_run_way(call, session, at, true, cause);
        note_failure(failed, call);
    }
    return status;
}

/* What is not measured, in the order of the configuration; the host last. */
static cellgate_status run_candidates(cg_call *call, cellgate_session *session,
                                      const failed_devices *failed,
                                      cellgate_status status,
                                      cellgate_error *cause)
{
    for (size_t at = 0; device_failed(status) && at < session->candidate_count;
         at++)
        if (session->candidates[at].device == NULL ||
            !has_failed(failed, session->candidates[at].device))
            status = run_candidate(call, session, at, cause);
    return status;
}

/* The first failure is told, unless another device answers. */
static cellgate_status fall_back(cg_call *call, cellgate_session *session,
                                 cellgate_status first, cellgate_error *failure)
{
    cellgate_error cause = CELLGATE_ERROR_INIT;
    failed_devices failed = { .count = 0 };
    cellgate_status status = first;

    note_failure(&failed, call);
    status = run_other_ways(call, session, &failed, status, &cause);
    status = run_candidates(call, session, &failed, status, &cause);
    if (status == CELLGATE_OK)
        return CELLGATE_OK;
    return device_failed(status)
               ? first
               : cellgate_fail(failure, status, "%s", cause.text);
}

cellgate_status cg_call_attempt(cg_call *call, cellgate_session *session,
                                cellgate_error *failure)
{
    const cellgate_status status = run_routed(call, session, failure);

    return session->fallback == CG_FALLBACK_RUN && device_failed(status)
               ? fall_back(call, session, status, failure)
               : status;
}
