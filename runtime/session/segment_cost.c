/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a segment's cost. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/session/numeric.h"
#include "runtime/session/once.h"
#include "runtime/session/route.h"
#include "runtime/session/session.h"

cellgate_status cg_segment_candidate(const cg_segment *segment,
                                     cg_cost_candidate *candidate,
                                     cellgate_error *error)
{
    cg_device *device = segment->engine->device;
    cg_device_identity identity;
    cellgate_status status = cg_device_identify(device, &identity, error);

    if (status != CELLGATE_OK)
        return status;
    *candidate = (cg_cost_candidate){ .device = cg_device_name(device),
                                      .plugin = identity.plugin,
                                      .build = identity.build,
                                      .identity = identity.identity,
                                      .settings = identity.settings,
                                      .variant = segment->variant.name,
                                      .numeric = cellgate_numeric_name(
                                          segment->variant.numeric),
                                      .host = identity.host };
    return CELLGATE_OK;
}

void cg_segment_cost_shape(const cg_segment *segment, const cg_shape *shapes,
                           double fill, cg_cost_shape *shape)
{
    const cg_shape *x = &shapes[segment->x];

    *shape = (cg_cost_shape){ .batch = x->extent[0],
                              .steps = segment->rows ? 1 : x->extent[1],
                              .fill = segment->rows ? 1 : fill };
}

/* ---- One piece on one candidate ----------------------------------------- */

static double share_of(const cg_segment *segment)
{
    const cg_engine *engine = segment->engine;

    if (engine->staged)
        return 1.0 / engine->queue_depth;
    return (double)segment->variant.threads /
           fmax(cg_device_thread_budget(engine->device), 1);
}

static const char *why_wrong(const cg_cost_verdict *verdict,
                             cellgate_error *refusal)
{
    const time_t at = (time_t)verdict->at;
    char day[16] = "";
    struct tm date;

    if (gmtime_r(&at, &date) != NULL)
        (void)strftime(day, sizeof day, "%Y-%m-%d", &date);
    if (verdict->worst < 0)
        (void)cellgate_fail(refusal, CELLGATE_DEVICE_FAILED,
                            "it broke its device, or hung, when it was checked "
                            "on %s",
                            day);
    else if (isfinite(verdict->worst))
        (void)cellgate_fail(refusal, CELLGATE_DEVICE_FAILED,
                            "its results are wrong, by %.2g of the largest, "
                            "as it was found on %s",
                            verdict->worst, day);
    else
        (void)cellgate_fail(refusal, CELLGATE_DEVICE_FAILED,
                            "its results are wrong, some are no numbers, as it "
                            "was found on %s",
                            day);
    return refusal->text;
}

/* Whether the device takes the shape and had the memory for it. */
static cellgate_status look_at_shape(const cg_costing *costing,
                                     const cg_segment *segment,
                                     const cg_cost_candidate *candidate,
                                     const cg_cost_shape *shape,
                                     cellgate_error *refusal)
{
    const cellgate_shape wanted = { sizeof wanted, shape->batch, shape->steps };
    bool limited = false;
    cg_cost_limit limit;
    cellgate_status status = cg_cost_book_limit(
        costing->session->book, candidate, segment->structure, shape, &limited,
        &limit, refusal);

    if (status != CELLGATE_OK)
        return status;
    if (limited)
        return cellgate_fail(refusal, CELLGATE_DEVICE_MEMORY,
                             "it had no memory for batch %lld, steps %lld when "
                             "it was calibrated",
                             (long long)limit.batch, (long long)limit.steps);
    return cg_segment_fits(segment, &wanted, refusal);
}

cellgate_status cg_segment_option(const cg_costing *costing,
                                  const cg_segment *segment, cg_option *option,
                                  cellgate_error *refusal,
                                  cellgate_error *error)
{
    cg_cost_book *book = costing->session->book;
    cg_cost_verdict verdict;
    cg_cost_candidate candidate;
    cg_cost_shape shape;
    cellgate_status status = cg_segment_candidate(segment, &candidate, error);

    memset(option, 0, sizeof *option);
    option->share = share_of(segment);
    cg_segment_cost_shape(segment, costing->shapes, costing->fill, &shape);
    if (status == CELLGATE_OK)
        status = cg_cost_book_verdict(book, &candidate, segment->structure,
                                      &verdict, error);
    if (status == CELLGATE_OK)
        status =
            cg_cost_book_predict(book, &candidate, segment->structure,
                                 costing->regime, &shape, &option->cost, error);
    if (status != CELLGATE_OK)
        return status;
    if (verdict.checked && !verdict.right)
        option->excluded = why_wrong(&verdict, refusal);
    else if (look_at_shape(costing, segment, &candidate, &shape, refusal) !=
             CELLGATE_OK)
        option->excluded = refusal->text;
    return cg_once_counts(&costing->policy)
               ? cg_once_preparing(costing->session, segment, &candidate,
                                   &option->once, error)
               : CELLGATE_OK;
}

/* ---- Once for a request ------------------------------------------------- */

struct cg_memo_entry {
    bool known;
    cg_option option;
};

static bool make_room(cg_cost_memo *memo, size_t index)
{
    const size_t capacity = 2 * index + 16;
    struct cg_memo_entry *grown;

    if (index < memo->capacity)
        return true;
    grown = realloc(memo->entries, capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    memset(grown + memo->capacity, 0,
           (capacity - memo->capacity) * sizeof *grown);
    memo->entries = grown;
    memo->capacity = capacity;
    return true;
}

cellgate_status cg_segment_option_once(const cg_costing *costing,
                                       const cg_segment *segment,
                                       cg_option *option, cellgate_error *error)
{
    cellgate_error refusal = CELLGATE_ERROR_INIT;
    cg_cost_memo *memo = costing->memo;
    cellgate_status status;

    if (memo != NULL && segment->index < memo->capacity &&
        memo->entries[segment->index].known) {
        *option = memo->entries[segment->index].option;
        return CELLGATE_OK;
    }
    status = cg_segment_option(costing, segment, option, &refusal, error);
    if (status != CELLGATE_OK)
        return status;
    if (option->excluded != NULL)
        option->excluded = "";
    if (memo != NULL && (refusal.status == CELLGATE_UNSUPPORTED ||
                         refusal.status == CELLGATE_DEVICE_MEMORY))
        memo->refused = true;
    if (memo == NULL)
        return CELLGATE_OK;
    if (!make_room(memo, segment->index))
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory to choose devices");
    memo->entries[segment->index] = (struct cg_memo_entry){ true, *option };
    return CELLGATE_OK;
}

void cg_cost_memo_finish(cg_cost_memo *memo)
{
    free(memo->entries);
    *memo = (cg_cost_memo){ .entries = NULL };
}
