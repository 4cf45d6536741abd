/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/session/call.h"
#include "runtime/session/route.h"
#include "runtime/session/session.h"

#define SLOTS 1024u /* a power of two */
#define TRIES 8u    /* places where a class may lie */

/*
 * A pinned class. Read without a lock: `version` is odd while the rest is
 * written, and what was read counts only if it did not change meanwhile.
 */
typedef struct slot {
    _Atomic uint32_t version;
    _Atomic uint64_t key; /* 0: free */
    _Atomic uint64_t generation;
    _Atomic(cg_placement *) placement;
    _Atomic(const cg_segment *) rival;
    _Atomic uint64_t numbers[2]; /* seconds and error, ahead and kind, packed */
    _Atomic uint32_t samples;
} slot;

/* A placement that was made for some class, and is kept for the others. */
typedef struct made {
    struct made *next;
    bool masked;
    cg_placement *placement;
} made;

struct cg_router {
    slot *slots;
    _Atomic uint64_t forgotten; /* counts cg_router_forget() */
    made *placements;           /* under the session's mutex */
    cg_regime regime;
    cg_policy policy;
};

cellgate_status cg_router_create(const cellgate_session *session,
                                 cg_router **router, cellgate_error *error)
{
    const cg_config *config = cg_device_table_config(session->table);
    cg_router *new = calloc(1, sizeof *new);

    if (new != NULL)
        new->slots = calloc(SLOTS, sizeof *new->slots);
    if (new == NULL || new->slots == NULL) {
        free(new);
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory to route requests");
    }
    cg_policy_init(&new->policy);
    new->policy.margin = config->margin / 100.0;
    new->policy.objective =
        config->objective == CG_AIM_THROUGHPUT ? CG_THROUGHPUT : CG_LATENCY;
    new->regime =
        config->regime == CG_ARRIVALS_SPACED ? CG_SPACED : CG_BACK_TO_BACK;
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
    free(router->slots);
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

/* ---- The table
 * ----------------------------------------------------------------- */

static uint64_t pack(float first, float second)
{
    uint32_t words[2];
    uint64_t packed;

    memcpy(&words[0], &first, sizeof first);
    memcpy(&words[1], &second, sizeof second);
    memcpy(&packed, words, sizeof packed);
    return packed;
}

static void unpack(uint64_t packed, float *first, float *second)
{
    uint32_t words[2];

    memcpy(words, &packed, sizeof words);
    memcpy(first, &words[0], sizeof *first);
    memcpy(second, &words[1], sizeof *second);
}

static slot *slot_at(const cg_router *router, uint64_t key, uint32_t try)
{
    return &router->slots[(key + try) & (SLOTS - 1)];
}

static void read_route(slot *from, cg_route *route)
{
    float seconds, error, ahead, kind;

    route->placement =
        atomic_load_explicit(&from->placement, memory_order_relaxed);
    unpack(atomic_load_explicit(&from->numbers[0], memory_order_relaxed),
           &seconds, &error);
    unpack(atomic_load_explicit(&from->numbers[1], memory_order_relaxed),
           &ahead, &kind);
    route->cost.seconds = seconds;
    route->cost.error = error;
    route->cost.kind = (cg_cost_kind)kind;
    route->cost.samples =
        atomic_load_explicit(&from->samples, memory_order_relaxed);
    route->measured = route->cost.kind != CG_COST_NONE;
    route->ahead = ahead;
    route->rival = atomic_load_explicit(&from->rival, memory_order_relaxed);
}

static bool look_up(const cg_router *router, uint64_t key, uint64_t generation,
                    cg_route *route)
{
    for (uint32_t try = 0; try < TRIES; try++) {
        slot *at = slot_at(router, key, try);
        const uint32_t version =
            atomic_load_explicit(&at->version, memory_order_acquire);
        uint64_t found, made_in;

        if (version % 2 != 0)
            continue;
        found = atomic_load_explicit(&at->key, memory_order_relaxed);
        if (found == 0)
            return false;
        if (found != key)
            continue;
        made_in = atomic_load_explicit(&at->generation, memory_order_relaxed);
        read_route(at, route);
        atomic_thread_fence(memory_order_acquire);
        return atomic_load_explicit(&at->version, memory_order_relaxed) ==
                   version &&
               made_in == generation;
    }
    return false;
}

/* The class's place, a free one, or, where all are taken, the first: the class
   there is decided again when it comes. */
static slot *place_for(const cg_router *router, uint64_t key)
{
    for (uint32_t try = 0; try < TRIES; try++) {
        slot *at = slot_at(router, key, try);
        const uint64_t found =
            atomic_load_explicit(&at->key, memory_order_relaxed);

        if (found == 0 || found == key)
            return at;
    }
    return slot_at(router, key, 0);
}

/* One writer at a time: under the session's mutex. */
static void keep(const cg_router *router, uint64_t key, uint64_t generation,
                 const cg_route *route)
{
    slot *at = place_for(router, key);
    const uint32_t version =
        atomic_load_explicit(&at->version, memory_order_relaxed);

    atomic_store_explicit(&at->version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&at->key, key, memory_order_relaxed);
    atomic_store_explicit(&at->generation, generation, memory_order_relaxed);
    atomic_store_explicit(&at->placement, route->placement,
                          memory_order_relaxed);
    atomic_store_explicit(
        &at->numbers[0],
        pack((float)route->cost.seconds, (float)route->cost.error),
        memory_order_relaxed);
    atomic_store_explicit(
        &at->numbers[1],
        pack((float)route->ahead,
             route->measured ? (float)route->cost.kind : 0.0f),
        memory_order_relaxed);
    atomic_store_explicit(&at->rival, route->rival, memory_order_relaxed);
    atomic_store_explicit(&at->samples, route->cost.samples,
                          memory_order_relaxed);
    atomic_store_explicit(&at->version, version + 2, memory_order_release);
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

    if (look_up(router, key, generation, route))
        return CELLGATE_OK;
    pthread_mutex_lock(&session->mutex);
    if (!look_up(router, key, generation, route)) {
        status = decide(router, session, call, fill, route, error);
        if (status == CELLGATE_OK)
            keep(router, key, generation, route);
    }
    pthread_mutex_unlock(&session->mutex);
    return status;
}
