/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/session/call.h"
#include "runtime/session/route_table.h"
#include "runtime/session/session.h"

/* A placement that was made for some class, and is kept for the others. */
typedef struct made {
    struct made *next;
    bool masked;
    cg_placement *placement;
} made;

struct cg_router {
    cg_route_table *table;
    _Atomic uint64_t forgotten; /* counts cg_router_forget() */
    made *placements;           /* under the session's mutex */
    cg_regime regime;
    cg_policy policy;
};

void cg_route_settings(const cellgate_session *session, cg_regime *regime,
                       cg_policy *policy)
{
    const cg_config *config = cg_device_table_config(session->table);

    cg_policy_init(policy);
    policy->margin = config->margin / 100.0;
    policy->objective =
        config->objective == CG_AIM_THROUGHPUT ? CG_THROUGHPUT : CG_LATENCY;
    *regime =
        config->regime == CG_ARRIVALS_SPACED ? CG_SPACED : CG_BACK_TO_BACK;
}

void cg_route_text(const cg_route *route, char *text, size_t size)
{
    const cg_segment *rival = route->rival;
    const int tenths = (int)(route->ahead * 10 + 0.5);

    snprintf(text, size, "measured: %lld us predicted (%s, %u samples)",
             (long long)(route->cost.seconds * 1e6 + 0.5),
             cg_cost_kind_name(route->cost.kind), route->cost.samples);
    if (route->ahead > 0)
        snprintf(text + strlen(text), size - strlen(text),
                 ", %d.%d times ahead of %s %s", tenths / 10, tenths % 10,
                 cg_device_name(rival->engine->device), rival->variant.name);
}

cellgate_status cg_router_create(const cellgate_session *session,
                                 cg_router **router, cellgate_error *error)
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
    bool freed = true;

    if (router == NULL)
        return true;
    for (const made *at = router->placements; at != NULL; at = at->next)
        freed = cg_placement_destroy(at->placement) && freed;
    if (!freed)
        return false;
    while (router->placements != NULL) {
        made *next = router->placements->next;

        free(router->placements);
        router->placements = next;
    }
    cg_route_table_destroy(router->table);
    free(router);
    return true;
}

void cg_router_forget(cg_router *router)
{
    if (router != NULL)
        atomic_fetch_add(&router->forgotten, 1);
}

/* ---- Classes
 * ------------------------------------------------------------------ */

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

static uint64_t key_of(const cg_call *call, double fill)
{
    uint64_t key = mix(UINT64_C(0x243f6a8885a308d3),
                       cg_request_masked(call->request) ? 1 : 2);

    for (size_t at = 0; at < call->request->input_count; at++) {
        cellgate_input input;

        cg_request_input(call->request, at, &input);
        for (int32_t axis = 0; axis < input.tensor.rank; axis++)
            key = mix(key, class_of(input.tensor.shape[axis]));
    }
    key = mix(key, class_of_fill(fill));
    return key != 0 ? key : 1;
}

/* ---- Deciding
 * ------------------------------------------------------------------ */

static bool same_parts(const cg_partition *a, const cg_partition *b)
{
    if (a->count != b->count)
        return false;
    for (size_t at = 0; at < a->count; at++)
        if (a->parts[at].segment != b->parts[at].segment ||
            a->parts[at].node != b->parts[at].node)
            return false;
    return true;
}

static cg_placement *find_made(const cg_router *router, bool masked,
                               const cg_partition *partition)
{
    for (const made *at = router->placements; at != NULL; at = at->next)
        if (at->masked == masked &&
            same_parts(&at->placement->partitions[masked], partition))
            return at->placement;
    return NULL;
}

/* A placement of what was chosen: one made before, or a new one, whose weights
   are laid out now. */
static cellgate_status place_chosen(cg_router *router, cg_costing *costing,
                                    bool masked, cg_partition *chosen,
                                    cellgate_error *error)
{
    cellgate_session *session = costing->session;
    const cg_chooser chooser = { cg_choose_by_cost, costing };
    const cg_route found = costing->route;
    cellgate_status status;
    made *new;

    costing->route.placement = find_made(router, masked, chosen);
    if (costing->route.placement != NULL)
        return CELLGATE_OK;
    new = calloc(1, sizeof *new);
    if (new == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a placement");
    status = cg_placement_create_chosen(
        &session->pool, &chooser, masked, "measured to be the best",
        session->watchdog, &new->placement, error);
    if (status != CELLGATE_OK) {
        free(new);
        return status;
    }
    new->masked = masked;
    new->next = router->placements;
    router->placements = new;
    costing->route = found;
    costing->route.placement = new->placement;
    return CELLGATE_OK;
}

static cellgate_status choose(cg_router *router, cg_costing *costing,
                              bool masked, cellgate_error *error)
{
    cellgate_session *session = costing->session;
    const cg_chooser chooser = { cg_choose_by_cost, costing };
    cg_partition chosen;
    cellgate_status status = cg_partition_init(&chosen, &session->graph,
                                               &chooser, "", masked, error);

    if (status != CELLGATE_OK)
        return status;
    if (costing->route.measured)
        status = place_chosen(router, costing, masked, &chosen, error);
    else
        costing->route.placement =
            session->candidates[session->primary].placement;
    cg_partition_finish(&chosen);
    return status;
}

static cellgate_status decide(cg_router *router, cellgate_session *session,
                              const cg_call *call, double fill, cg_route *route,
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
    cg_session_open_measured(session);
    status = cg_request_shapes(call->request, &session->graph, shapes, error);
    if (status == CELLGATE_OK)
        status =
            choose(router, &costing, cg_request_masked(call->request), error);
    free(shapes);
    if (status == CELLGATE_OK)
        *route = costing.route;
    return status;
}

cellgate_status cg_router_route(cg_router *router, cellgate_session *session,
                                const cg_call *call, cg_route *route,
                                cellgate_error *error)
{
    const uint64_t generation =
        cg_cost_book_generation(session->book) +
        (atomic_load_explicit(&router->forgotten, memory_order_relaxed) << 40);
    const double fill = fill_of(call);
    const uint64_t key = key_of(call, fill);
    cellgate_status status = CELLGATE_OK;

    if (cg_route_table_find(router->table, key, generation, route))
        return CELLGATE_OK;
    pthread_mutex_lock(&session->mutex);
    if (!cg_route_table_find(router->table, key, generation, route)) {
        status = decide(router, session, call, fill, route, error);
        if (status == CELLGATE_OK)
            cg_route_table_put(router->table, key, generation, route);
    }
    pthread_mutex_unlock(&session->mutex);
    return status;
}
