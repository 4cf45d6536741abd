/* SPDX-License-Identifier: Apache-2.0 */
/* Which candidates a session has, which one it takes, and why. */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/append.h"
#include "runtime/session/session.h"

const char *cg_candidate_name(const cg_candidate *candidate)
{
    return candidate->device != NULL ? cg_device_name(candidate->device)
                                     : "host";
}

bool cg_candidate_ready(const cg_candidate *candidate)
{
    return candidate->opened &&
           cg_device_usable(candidate->device, NULL) == CELLGATE_OK &&
           candidate->engine->epoch == cg_device_epoch(candidate->device);
}

/* ---- Listing ----------------------------------------------------------- */

/* Once; NULL stands for the host ops. */
static void add(cellgate_session *session, cg_device *device)
{
    cg_candidate *candidate = &session->candidates[session->candidate_count];

    for (size_t at = 0; at < session->candidate_count; at++)
        if (session->candidates[at].device == device)
            return;
    candidate->device = device;
    atomic_init(&candidate->status, CG_UNTRIED);
    atomic_init(&candidate->epoch, 0);
    atomic_init(&candidate->placement, NULL);
    session->candidate_count++;
}

static cellgate_status add_named(cellgate_session *session, const char *name,
                                 cellgate_error *error)
{
    cg_device *device = cg_device_table_find(session->table, name);

    if (device == NULL && strcmp(name, "host") != 0)
        return cg_session_no_such_device(session, name, error);
    add(session, device);
    return CELLGATE_OK;
}

cellgate_status cg_session_list_candidates(cellgate_session *session,
                                           const char *device,
                                           cellgate_error *error)
{
    size_t count = cg_device_table_count(session->table);
    bool run = session->fallback == CG_FALLBACK_RUN;
    cellgate_status status = CELLGATE_OK;

    session->candidates = calloc(count + 1, sizeof *session->candidates);
    if (session->candidates == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a session's devices");
    session->named = device != NULL;
    if (device != NULL)
        status = add_named(session, device, error);
    for (size_t at = 0; (device == NULL || run) && at < count; at++)
        add(session, cg_device_table_at(session->table, at));
    if (run)
        add(session, NULL);
    return status;
}

/* ---- Placements -------------------------------------------------------- */

static void choice_text(const cellgate_session *session, size_t index,
                        char *text, size_t size)
{
    const char *why = "first usable device in configuration order";

    if (session->named && index == 0)
        why = "named by the application";
    else if (session->candidates[index].device == NULL)
        why = "the host ops, as the last resort";
    snprintf(text, size, "%s", why);
    for (size_t at = 0; at < index; at++)
        if (atomic_load(&session->candidates[at].status) > CELLGATE_OK)
            cg_append(text, size, "; not %s: %s",
                      cg_candidate_name(&session->candidates[at]),
                      session->candidates[at].failure);
}

/* An unusable device's own reason; what fails later is in `cause`. */
static void keep_failure(cg_candidate *candidate, const cellgate_error *cause)
{
    cellgate_device_info info = { .struct_size = sizeof info };
    const char *why = cause->text;

    if (candidate->device != NULL)
        cg_device_info_get(candidate->device, &info);
    if (info.status != CELLGATE_OK && info.reason[0] != '\0')
        why = info.reason;
    snprintf(candidate->failure, sizeof candidate->failure, "%.*s",
             (int)sizeof candidate->failure - 1, why);
}

/* The device's current opening, as an engine of the session. */
static cellgate_status new_engine(cellgate_session *session, cg_device *device,
                                  cg_engine **engine, cellgate_error *error)
{
    const cellgate_device_description *about =
        cg_device_description_get(device);
    cg_opening *opening;
    cg_load *load;
    cellgate_status status = cg_device_open(device, &opening, error);

    if (status != CELLGATE_OK)
        return status;
    load = cg_loads_of(session->loads, about->resource,
                       cg_device_thread_budget(device));
    status = load != NULL ? cg_engine_create(device, opening, load,
                                             &session->pool, engine, error)
                          : cellgate_fail(error, CELLGATE_NO_MEMORY,
                                          "no memory for a session's devices");
    if (status != CELLGATE_OK) {
        cg_opening_release(opening);
        return status;
    }
    (*engine)->next = session->engines;
    session->engines = *engine;
    return CELLGATE_OK;
}

/* What was made of an earlier opening of its device ends. */
static void retire(cellgate_session *session, const cg_candidate *candidate)
{
    cg_placement *placement = atomic_load(&candidate->placement);
    cg_engine *engine = candidate->engine;

    if (placement != NULL)
        cg_placement_retire(placement);
    cg_router_retire(session->router, engine);
    cg_rules_retire(&session->rules, engine);
    cg_engine_retire(engine);
}

/* Whether its device was opened anew since it was tried. */
static bool is_stale(const cg_candidate *candidate)
{
    return candidate->device != NULL &&
           atomic_load_explicit(&candidate->epoch, memory_order_acquire) !=
               cg_device_epoch(candidate->device);
}

cellgate_status cg_session_open(cellgate_session *session,
                                cg_candidate *candidate, cellgate_error *error)
{
    cg_engine *engine;
    cellgate_status status;

    candidate->used = true;
    if (candidate->device == NULL ||
        (candidate->opened && !is_stale(candidate)))
        return CELLGATE_OK;
    status = new_engine(session, candidate->device, &engine, error);
    if (status != CELLGATE_OK)
        return status;
    if (candidate->opened)
        retire(session, candidate);
    candidate->engine = engine;
    candidate->opened = true;
    atomic_store_explicit(&candidate->status, CG_UNTRIED, memory_order_relaxed);
    atomic_store_explicit(&candidate->epoch, engine->epoch,
                          memory_order_release);
    return CELLGATE_OK;
}

static bool is_usable(const cg_candidate *candidate)
{
    return candidate->device != NULL &&
           cg_device_usable(candidate->device, NULL) == CELLGATE_OK;
}

void cg_session_open_choice(cellgate_session *session, cg_candidate *candidate)
{
    cellgate_error cause = CELLGATE_ERROR_INIT;

    if (is_usable(candidate) &&
        cg_session_open(session, candidate, &cause) != CELLGATE_OK)
        cg_log_line(cg_device_table_log(session->table), CELLGATE_LOG_WARNING,
                    "device '%s' is not among the choices: %s",
                    cg_candidate_name(candidate), cause.text);
}

bool cg_candidate_measured(const cellgate_session *session,
                           const cg_candidate *candidate)
{
    return is_usable(candidate) &&
           cg_cost_book_knows(
               session->book,
               cg_device_description_get(candidate->device)->identity);
}

bool cg_session_open_measured(cellgate_session *session)
{
    /* What could not be kept is known to the book alone. */
    bool any = cg_cost_book_generation(session->book) > 1;

    for (size_t at = 0; at < session->candidate_count; at++) {
        cg_candidate *candidate = &session->candidates[at];

        if (!cg_candidate_measured(session, candidate))
            continue;
        cg_session_open_choice(session, candidate);
        any = true;
    }
    return any;
}

void cg_session_open_all(cellgate_session *session)
{
    for (size_t at = 0; at < session->candidate_count; at++) {
        cg_candidate *candidate = &session->candidates[at];
        const bool used = candidate->opened
                              ? candidate->used
                              : candidate->device != NULL &&
                                    cg_device_epoch(candidate->device) > 0;

        cg_session_open_choice(session, candidate);
        candidate->used = used;
    }
}

void cg_session_keep_retired(cellgate_session *session, cg_placement *placement)
{
    placement->next = session->retired;
    session->retired = placement;
}

static cellgate_status make_placement(cellgate_session *session, size_t index)
{
    cg_candidate *candidate = &session->candidates[index];
    cellgate_error cause = CELLGATE_ERROR_INIT;
    cg_placement *made = NULL;
    char reason[1024];
    cellgate_status status = cg_session_open(session, candidate, &cause);

    choice_text(session, index, reason, sizeof reason);
    if (status == CELLGATE_OK)
        status = cg_placement_create(&session->pool, candidate->engine,
                                     session->variant, reason,
                                     session->watchdog, &made, &cause);
    if (status == CELLGATE_OK)
        made = atomic_exchange(&candidate->placement, made);
    else
        keep_failure(candidate, &cause);
    if (made != NULL)
        cg_session_keep_retired(session, made);
    if (status != CELLGATE_NO_MEMORY) /* there may be some the next time */
        atomic_store_explicit(&candidate->status, (int)status,
                              memory_order_release);
    return status;
}

cellgate_status cg_session_placement_held(cellgate_session *session,
                                          size_t index,
                                          cg_placement **placement,
                                          cellgate_error *error)
{
    cg_candidate *candidate = &session->candidates[index];
    int status = atomic_load_explicit(&candidate->status, memory_order_relaxed);

    if (status == CG_UNTRIED ||
        (is_stale(candidate) &&
         cg_device_usable(candidate->device, NULL) == CELLGATE_OK))
        status = (int)make_placement(session, index);
    if (status != CELLGATE_OK)
        return cellgate_fail(error, (cellgate_status)status, "device '%s': %s",
                             cg_candidate_name(candidate), candidate->failure);
    *placement = atomic_load(&candidate->placement);
    return CELLGATE_OK;
}

cellgate_status cg_session_placement(cellgate_session *session, size_t index,
                                     cg_placement **placement,
                                     cellgate_error *error)
{
    cg_candidate *candidate = &session->candidates[index];
    cellgate_status status;

    if (atomic_load_explicit(&candidate->status, memory_order_acquire) ==
            CELLGATE_OK &&
        !is_stale(candidate)) {
        *placement = atomic_load(&candidate->placement);
        return CELLGATE_OK;
    }
    pthread_mutex_lock(&session->mutex);
    status = cg_session_placement_held(session, index, placement, error);
    pthread_mutex_unlock(&session->mutex);
    return status;
}

/* ---- Choosing ---------------------------------------------------------- */

/* One that's known not to be usable is passed over; one that only fails now is
   an error, unless the settings allow to fall back. */
static bool may_pass(const cellgate_session *session, bool known)
{
    if (session->named)
        return false;
    return known || session->fallback != CG_FALLBACK_NEVER;
}

static void log_fallback(const cellgate_session *session, size_t index,
                         const char *why)
{
    cg_log_line(cg_device_table_log(session->table), CELLGATE_LOG_WARNING,
                "device '%s' is passed over: %s",
                cg_candidate_name(&session->candidates[index]), why);
}

static cellgate_status check_variant(const cellgate_session *session,
                                     const cg_placement *placement,
                                     cellgate_error *error)
{
    if (session->variant == NULL ||
        cg_placement_has_variant(placement, session->variant))
        return CELLGATE_OK;
    return cg_session_no_such_variant(session, placement, error);
}

cellgate_status cg_session_choose(cellgate_session *session,
                                  cellgate_error *error)
{
    for (size_t at = 0; at < session->candidate_count; at++) {
        cg_candidate *candidate = &session->candidates[at];
        cellgate_error cause = CELLGATE_ERROR_INIT;
        bool known = candidate->device != NULL &&
                     cg_device_usable(candidate->device, &cause) != CELLGATE_OK;
        cg_placement *placement;
        cellgate_status status =
            cg_session_placement(session, at, &placement, &cause);

        if (status == CELLGATE_OK) {
            session->primary = at;
            return check_variant(session, placement, error);
        }
        if (status == CELLGATE_NO_MEMORY || !may_pass(session, known))
            return cellgate_fail(error, status, "%s", cause.text);
        if (!known)
            log_fallback(session, at, candidate->failure);
    }
    return cg_session_no_device(session, error);
}
