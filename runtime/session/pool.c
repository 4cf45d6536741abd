/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/cost/clock.h"
#include "runtime/session/pool.h"

void cg_segment_pool_init(cg_segment_pool *pool, const cg_graph *graph)
{
    memset(pool, 0, sizeof *pool);
    pool->graph = graph;
    pthread_mutex_init(&pool->mutex, NULL);
}

void cg_segment_pool_finish(cg_segment_pool *pool)
{
    for (size_t at = 0; at < pool->count; at++)
        cg_segment_destroy(pool->segments[at]);
    free(pool->segments);
    pthread_mutex_destroy(&pool->mutex);
}

void cg_segment_pool_leave(cg_segment_pool *pool, cg_remnant *remnant)
{
    pthread_mutex_lock(&pool->mutex);
    remnant->next = pool->remnants;
    pool->remnants = remnant;
    pthread_mutex_unlock(&pool->mutex);
}

bool cg_segment_pool_has_remnants(cg_segment_pool *pool)
{
    bool has;

    pthread_mutex_lock(&pool->mutex);
    has = pool->remnants != NULL;
    pthread_mutex_unlock(&pool->mutex);
    return has;
}

/* ---- Segments ------------------------------------------------------------ */

static bool same_chain(const cg_segment *segment, const cg_engine *engine,
                       const size_t *nodes, size_t count)
{
    return segment->engine == engine && segment->node_count == count &&
           memcmp(segment->nodes, nodes, count * sizeof *nodes) == 0;
}

/* What cg_segment_create() made may be there already, or is added. */
static cellgate_status settle(cg_segment_pool *pool, cg_segment *made,
                              cg_segment **segment, cellgate_error *error)
{
    for (size_t at = 0; at < pool->count; at++)
        if (same_chain(pool->segments[at], made->engine, made->nodes,
                       made->node_count) &&
            pool->segments[at]->variant.id == made->variant.id) {
            cg_segment_destroy(made);
            *segment = pool->segments[at];
            return CELLGATE_OK;
        }
    if (pool->count == pool->capacity) {
        const size_t capacity = 2 * pool->capacity + 8;
        cg_segment **grown = realloc(pool->segments, capacity * sizeof *grown);

        if (grown == NULL) {
            cg_segment_destroy(made);
            return cellgate_fail(error, CELLGATE_NO_MEMORY,
                                 "no memory for the segments of a model");
        }
        pool->segments = grown;
        pool->capacity = capacity;
    }
    made->index = pool->count;
    pool->segments[pool->count++] = *segment = made;
    return CELLGATE_OK;
}

cellgate_status cg_segment_pool_get(cg_segment_pool *pool,
                                    const cg_engine *engine,
                                    const size_t *nodes, size_t count,
                                    const cellgate_variant *wanted,
                                    const char *name, cg_segment **segment,
                                    cellgate_error *error)
{
    cg_segment *made;
    cellgate_status status = cg_segment_create(
        pool->graph, engine, nodes, count, wanted, name, &made, error);

    if (status != CELLGATE_OK)
        return status;
    pthread_mutex_lock(&pool->mutex);
    status = settle(pool, made, segment, error);
    pthread_mutex_unlock(&pool->mutex);
    return status;
}

const cg_segment *cg_segment_pool_at(cg_segment_pool *pool, size_t index)
{
    const cg_segment *segment;

    pthread_mutex_lock(&pool->mutex);
    segment = index < pool->count ? pool->segments[index] : NULL;
    pthread_mutex_unlock(&pool->mutex);
    return segment;
}

/* ---- Weights ------------------------------------------------------------ */

static const cg_segment *with_weights(const cg_segment_pool *pool,
                                      const cg_segment *like)
{
    for (size_t at = 0; at < pool->count; at++) {
        const cg_segment *segment = pool->segments[at];

        if (segment->owns_weights &&
            segment->variant.pack == like->variant.pack &&
            same_chain(segment, like->engine, like->nodes, like->node_count))
            return segment;
    }
    return NULL;
}

static cellgate_status prepare(const cg_segment_pool *pool, cg_segment *segment,
                               cellgate_error *error)
{
    const cg_engine *engine = segment->engine;
    const cg_segment *other = with_weights(pool, segment);
    cellgate_status status;

    const double start = cg_now(&cg_real_clock);

    if (other != NULL) {
        segment->weights = other->weights;
        segment->prepared_in = other->prepared_in;
        return CELLGATE_OK;
    }
    status =
        engine->ops->prepare(engine->handle, &segment->chain,
                             segment->variant.pack, &segment->weights, error);
    segment->owns_weights = status == CELLGATE_OK;
    if (status == CELLGATE_OK)
        segment->prepared_in = cg_now(&cg_real_clock) - start;
    return status;
}

cellgate_status cg_segment_pool_prepare(cg_segment_pool *pool,
                                        cg_segment *segment,
                                        cellgate_error *error)
{
    cellgate_status status = cg_engine_hold(segment->engine, error);

    if (status != CELLGATE_OK)
        return status;
    pthread_mutex_lock(&pool->mutex);
    if (segment->weights == NULL)
        status = prepare(pool, segment, error);
    pthread_mutex_unlock(&pool->mutex);
    cg_engine_let_go(segment->engine);
    return status;
}

bool cg_segment_pool_prepared(cg_segment_pool *pool, const cg_segment *segment,
                              double *seconds)
{
    const cg_segment *of;

    pthread_mutex_lock(&pool->mutex);
    of = segment->weights != NULL ? segment : with_weights(pool, segment);
    *seconds = of != NULL ? of->prepared_in : 0;
    pthread_mutex_unlock(&pool->mutex);
    return of != NULL;
}

void cg_segment_pool_drop(cg_segment_pool *pool, const cg_engine *engine)
{
    pthread_mutex_lock(&pool->mutex);
    for (size_t at = 0; at < pool->count; at++) {
        cg_segment *segment = pool->segments[at];

        if (segment->engine != engine)
            continue;
        if (segment->owns_weights)
            engine->ops->weights_free(segment->weights);
        segment->owns_weights = false;
        segment->weights = NULL;
    }
    pthread_mutex_unlock(&pool->mutex);
}
