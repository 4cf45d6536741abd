/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/session/offers.h"

/* Whether a variant may run at all; else why not, in `text`. */
static bool may_run(const cg_engine *engine, const cellgate_variant *variant,
                    char *text, size_t size)
{
    const uint32_t budget = cg_device_thread_budget(engine->device);
    const char *needs =
        cg_device_needs_precision(engine->device, variant->numeric);

    if (variant->refusal[0] != '\0')
        snprintf(text, size, "%s", variant->refusal);
    else if (cellgate_numeric_name(variant->numeric) == NULL)
        snprintf(text, size, "its numeric class %d is not known",
                 (int)variant->numeric);
    else if (needs != NULL)
        snprintf(text, size,
                 "its results are %s, which [scheduler] precision = %s allows",
                 cellgate_numeric_name(variant->numeric), needs);
    else if (variant->threads > budget)
        snprintf(text, size, "it needs %u threads; the device may use %u",
                 (unsigned)variant->threads, (unsigned)budget);
    else
        return true;
    return false;
}

static cellgate_status offer_variant(cg_segment_pool *pool,
                                     const cg_segment *first,
                                     const cellgate_variant *variant,
                                     cg_offer_visitor visit, void *context,
                                     cellgate_error *error)
{
    cg_offer offer = { .engine = first->engine,
                       .variant = variant->name,
                       .threads = variant->threads,
                       .note = variant->note };
    cellgate_status status = CELLGATE_OK;
    char text[sizeof variant->refusal];

    if (!may_run(first->engine, variant, text, sizeof text))
        offer.refusal = text;
    else
        status = cg_segment_pool_get(pool, first->engine, first->nodes,
                                     first->node_count, variant, NULL,
                                     &offer.segment, error);
    return status == CELLGATE_OK ? visit(context, &offer, error) : status;
}

cellgate_status cg_offers_visit(cg_segment_pool *pool, const cg_engine *engine,
                                const size_t *nodes, size_t count,
                                cg_offer_visitor visit, void *context,
                                cellgate_error *error)
{
    cellgate_error refusal = CELLGATE_ERROR_INIT;
    cellgate_variant variant;
    cg_segment *first;
    cellgate_status status = cg_segment_pool_get(pool, engine, nodes, count,
                                                 NULL, NULL, &first, &refusal);

    if (status == CELLGATE_NO_MEMORY)
        return cellgate_fail(error, status, "%s", refusal.text);
    if (status != CELLGATE_OK) {
        const cg_offer none = {
            .engine = engine, .variant = "", .refusal = refusal.text, .note = ""
        };

        return visit(context, &none, error);
    }
    for (uint32_t index = 0; status == CELLGATE_OK &&
                             cg_segment_variant(first, NULL, index, &variant,
                                                &refusal) == CELLGATE_OK;
         index++) {
        variant.name[sizeof variant.name - 1] = '\0';
        variant.threads = variant.threads > 0 ? variant.threads : 1;
        status = offer_variant(pool, first, &variant, visit, context, error);
    }
    return status;
}
