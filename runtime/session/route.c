/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/session/call.h"
#include "runtime/session/once.h"
#include "runtime/session/route_table.h"
#include "runtime/session/session.h"

struct cg_router {
    cg_route_table *table;
    _Atomic uint64_t regimes;    /* changes of that in which requests come */
    _Atomic uint64_t narrowings; /* of pins in the table */
    cg_cut *cuts;                /* under the session's mutex */
    cg_regime regime;
    cg_policy policy;
};

/* Whether any part of the model was measured spaced, on any candidate. */
static bool measured_spaced(cellgate_session *session)
{
    const cg_segment *segment;
    bool has = false;

    for (size_t at = 0;
         !has && (segment = cg_segment_pool_at(&session->pool, at)) != NULL;
         at++) {
        cellgate_error ignored = CELLGATE_ERROR_INIT;
        cg_cost_candidate candidate;

        has = cg_segment_candidate(segment, &candidate, &ignored) ==
                  CELLGATE_OK &&
              cg_cost_book_has(session->book, &candidate, segment->structure,
                               CG_SPACED);
    }
    return has;
}

/* Costs of spaced runs are used only where there are any. */
static cg_regime observed(cellgate_session *session)
{
    return cg_pace_regime(&session->pace) == CG_SPACED &&
                   measured_spaced(session)
               ? CG_SPACED
               : CG_BACK_TO_BACK;
}

void cg_route_settings(cellgate_session *session, cg_regime *regime,
                       cg_policy *policy)
{
    const cg_config *config = cg_device_table_config(session->table);

    cg_policy_init(policy);
    policy->margin = config->margin / 100.0;
    policy->expected_requests = session->expected;
    policy->objective =
        config->objective == CG_AIM_THROUGHPUT ? CG_THROUGHPUT : CG_LATENCY;
    *regime =
        session->watches_pace ? observed(session) : cg_route_arrivals(session);
}

cg_regime cg_route_arrivals(const cellgate_session *session)
{
    if (session->watches_pace)
        return cg_pace_regime(&session->pace);
    return cg_device_table_config(session->table)->regime == CG_ARRIVALS_SPACED
               ? CG_SPACED
               : CG_BACK_TO_BACK;
}

void cg_route_arrivals_changed(cellgate_session *session)
{
    atomic_fetch_add(&session->router->regimes, 1);
}

uint64_t cg_route_generation(const cellgate_session *session)
{
    return cg_cost_book_generation(session->book) +
           atomic_load_explicit(&session->router->regimes,
                                memory_order_acquire) +
           (cg_device_table_changes(session->table) << 40);
}

void cg_route_text(const cg_route *route, char *text, size_t size)
{
    const cg_segment *rival = route->rival;
    const int tenths = (int)(route->ahead * 10 + 0.5);
    size_t used;

    snprintf(text, size, "measured: %lld us predicted (%s, %u samples)",
             (long long)(route->cost.seconds * 1e6 + 0.5),
             cg_cost_kind_name(route->cost.kind), route->cost.samples);
    if (route->once > 0) {
        used = strlen(text);
        snprintf(text + used, size - used,
                 ", and %lld us once for %.15g request%s",
                 (long long)((double)route->once * 1e6 + 0.5), route->requests,
                 route->requests == 1 ? "" : "s");
    }
    used = strlen(text);
    if (rival == NULL || !(route->ahead > 0))
        return;
    if (route->kept)
        snprintf(text + used, size - used,
                 ", kept: %s %s is predicted %d%% faster; more than %d%% (%s) "
                 "would overturn that",
                 cg_device_name(rival->engine->device), rival->variant.name,
                 (int)((1 / route->ahead - 1) * 100 + 0.5),
                 (int)((double)(route->needed - 1) * 100 + 0.5),
                 route->by_margin ? "the margin" : "the noise");
    else
        snprintf(text + used, size - used, ", %d.%d times ahead of %s %s",
                 tenths / 10, tenths % 10,
                 cg_device_name(rival->engine->device), rival->variant.name);
}

cellgate_status cg_router_create(cellgate_session *session, cg_router **router,
                                 cellgate_error *error)
{
    cg_router *new = calloc(1, sizeof *new);

    if (new != NULL)
        new->table = cg_route_table_create();
    if (new == NULL || new->table == NULL) {
        free(new);
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory to route requests");
    }
    cg_route_settings(session, &new->regime, &new->policy);
    *router = new;
    return CELLGATE_OK;
}

bool cg_router_destroy(cg_router *router)
{
    if (router == NULL)
        return true;
    if (!cg_cuts_destroy(router->cuts))
        return false;
    cg_route_table_destroy(router->table);
    free(router);
    return true;
}

cg_cut **cg_router_cuts(cg_router *router)
{
    return &router->cuts;
}

void cg_router_retire(cg_router *router, const cg_engine *engine)
{
    if (router != NULL)
        cg_cuts_retire(router->cuts, engine);
}

/* ---- Classes ------------------------------------------------------------ */

/* Extents up to 16 are classes of their own, larger ones a quarter of an octave
   wide: costs within a class differ by less than is worth another decision. */
static uint64_t class_of(int64_t extent)
{
    uint64_t octave = 0;

    if (extent <= 16)
        return (uint64_t)(extent > 0 ? extent : 0);
    while (extent >> (octave + 1) != 0)
        octave++;
    return 4 * octave + ((uint64_t)extent >> (octave - 2) & 3);
}

/* Fifths of the batch * steps that are valid. */
static uint64_t class_of_fill(double fill)
{
    return (uint64_t)(fill * 5);
}

static uint64_t mix(uint64_t key, uint64_t more)
{
    key = (key ^ more) * UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key >> 32;
}

/* Of the first input that has lengths; masks count as full. */
static double fill_of(const cg_call *call)
{
    for (size_t at = 0; at < call->request->input_count; at++) {
        cellgate_input input;
        int64_t valid = 0, all;

        cg_request_input(call->request, at, &input);
        if (input.lengths == NULL)
            continue;
        all = input.tensor.shape[0] * input.tensor.shape[1];
        for (int64_t row = 0; row < input.tensor.shape[0]; row++)
            valid += input.lengths[row];
        return all > 0 ? (double)valid / (double)all : 1;
    }
    return 1;
}

/* `exact`: of this shape alone. */
static uint64_t key_of(const cg_call *call, double fill, bool exact)
{
    uint64_t key = mix(UINT64_C(0x243f6a8885a308d3), call->masked ? 1 : 2);

    for (size_t at = 0; at < call->request->input_count; at++) {
        cellgate_input input;

        cg_request_input(call->request, at, &input);
        for (int32_t axis = 0; axis < input.tensor.rank; axis++)
            key = mix(key, exact ? (uint64_t)input.tensor.shape[axis]
                                 : class_of(input.tensor.shape[axis]));
    }
    key = mix(mix(key, class_of_fill(fill)), exact);
    return key != 0 ? key : 1;
}

/* ---- Deciding ----------------------------------------------------------- */

/* Without costs the session's first device takes the request, unless it was
   found to be wrong. The session's mutex is held. */
static cellgate_status check_first(const cg_costing *costing,
                                   const cg_call *call, cg_pin *pin,
                                   cellgate_error *error)
{
    cellgate_error why = CELLGATE_ERROR_INIT;
    const cg_partition *partition;
    cg_placement *placement;
    cellgate_status status = cg_session_placement_held(
        costing->session, costing->session->primary, &placement, &why);

    if (status == CELLGATE_OK)
        status =
            cg_placement_partition(placement, call->masked, &partition, &why);
    if (status == CELLGATE_OK)
        return cg_pin_check(costing, partition, pin, error);
    /* What else is wrong the run will say. */
    return status == CELLGATE_NO_MEMORY
               ? cellgate_fail(error, status, "%s", why.text)
               : CELLGATE_OK;
}

static cellgate_status decide(cg_router *router, cellgate_session *session,
                              const cg_call *call, double fill,
                              const cg_pin *before, cg_pin *pin,
                              cellgate_error *error)
{
    cg_shape *shapes = calloc(session->graph.value_count + 1, sizeof *shapes);
    cg_costing costing = { .session = session,
                           .shapes = shapes,
                           .fill = fill,
                           .regime = router->regime,
                           .policy = router->policy };
    cellgate_status status;

    if (shapes == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory to route a request");
    cg_route_settings(session, &costing.regime, &costing.policy);
    memset(pin, 0, sizeof *pin);
    status = cg_request_shapes(call->request, &session->graph, shapes, error);
    if (status == CELLGATE_OK)
        status = cg_once_decide(&costing, &router->cuts, call->masked, before,
                                pin, error);
    if (status == CELLGATE_OK && pin->way_count == 0)
        status = check_first(&costing, call, pin, error);
    free(shapes);
    return status;
}

/* The pin of a key; the session's mutex is held. */
static cellgate_status pin_key(cg_router *router, cellgate_session *session,
                               const cg_call *call, double fill, uint64_t key,
                               cg_pin *pin, cellgate_error *error)
{
    const uint64_t generation = cg_route_generation(session);
    uint64_t made_in;
    cg_pin before;
    const bool known =
        cg_route_table_find(router->table, key, &made_in, &before);
    cellgate_status status;

    if (known && made_in == generation) {
        *pin = before;
        return CELLGATE_OK;
    }
    status =
        decide(router, session, call, fill, known ? &before : NULL, pin, error);
    if (status != CELLGATE_OK)
        return status;
    pin->narrow = pin->narrow || (known && before.narrow);
    cg_route_table_put(router->table, key, generation, pin);
    return CELLGATE_OK;
}

static cellgate_status find_pin(cg_router *router, cellgate_session *session,
                                const cg_call *call, double fill, uint64_t key,
                                cg_pin *pin, cellgate_error *error)
{
    cellgate_status status;
    uint64_t made_in;

    if (cg_route_table_find(router->table, key, &made_in, pin) &&
        made_in == cg_route_generation(session))
        return CELLGATE_OK;
    pthread_mutex_lock(&session->mutex);
    status = pin_key(router, session, call, fill, key, pin, error);
    pthread_mutex_unlock(&session->mutex);
    return status;
}

/* Of its class of shapes, or of its shape alone. */
static cellgate_status look_up(cg_router *router, cellgate_session *session,
                               cg_call *call, cellgate_error *error)
{
    cellgate_status status;

    call->fill = fill_of(call);
    status = find_pin(router, session, call, call->fill,
                      key_of(call, call->fill, false), call->pin, error);
    if (status != CELLGATE_OK || !call->pin->narrow)
        return status;
    status = find_pin(router, session, call, call->fill,
                      key_of(call, call->fill, true), call->pin, error);
    call->pin->narrow = true;
    return status;
}

cellgate_status cg_router_pin(cg_router *router, cellgate_session *session,
                              cg_call *call, cellgate_error *error)
{
    const cg_pin_age now = { cg_route_generation(session),
                             atomic_load_explicit(&router->narrowings,
                                                  memory_order_acquire) };
    cg_recall *recall = call->recall;
    cellgate_status status;

    call->generation = now.generation;
    if (recall != NULL && recall->age.generation == now.generation &&
        recall->age.narrowings == now.narrowings)
        return CELLGATE_OK;
    status = look_up(router, session, call, error);
    if (status != CELLGATE_OK)
        call->pin->way_count = 0;
    if (recall != NULL)
        recall->age = status == CELLGATE_OK ? now : (cg_pin_age){ 0, 0 };
    return status;
}

bool cg_router_find(const cg_router *router, const cg_call *call, double fill,
                    cg_pin *pin)
{
    uint64_t made_in;

    return cg_route_table_find(router->table, key_of(call, fill, false),
                               &made_in, pin) &&
           (!pin->narrow ||
            cg_route_table_find(router->table, key_of(call, fill, true),
                                &made_in, pin));
}

bool cg_router_narrow(cg_router *router, cellgate_session *session,
                      const cg_call *call)
{
    const uint64_t key = key_of(call, fill_of(call), false);
    uint64_t made_in;
    bool was = true;
    cg_pin pin;

    pthread_mutex_lock(&session->mutex);
    if (cg_route_table_find(router->table, key, &made_in, &pin)) {
        was = pin.narrow;
        pin.narrow = true;
        cg_route_table_put(router->table, key, made_in, &pin);
        atomic_fetch_add(&router->narrowings, 1);
    }
    pthread_mutex_unlock(&session->mutex);
    return !was;
}
