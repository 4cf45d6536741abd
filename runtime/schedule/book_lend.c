/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of a structure that was never measured, from those that were. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/schedule/book_pages.h"

/* Work is compared at this shape. */
static const cg_cost_shape typical = { 1, 32, 1 };

/* The search for the structure whose work is most alike. */
typedef struct search {
    const cg_work *to;
    double least; /* |ln ratio| so far */
    char *best;   /* its text */
    bool memory;  /* false: there was none */
} search;

static void consider(search *of, const char *structure, const cg_work *work)
{
    const double ratio = cg_work_ratio(work, of->to, &typical);
    char *copy;

    if (!(ratio > 0) || fabs(log(ratio)) >= of->least)
        return;
    copy = strdup(structure);
    of->memory = of->memory && copy != NULL;
    if (copy == NULL)
        return;
    free(of->best);
    of->best = copy;
    of->least = fabs(log(ratio));
}

static cellgate_status visit(void *context, const char *structure,
                             size_t points)
{
    cg_work work;

    (void)points;
    if (cg_work_read(structure, &work))
        consider(context, structure, &work);
    return CELLGATE_OK;
}

/* Pages of the same candidate, whose keys begin alike: these have what could
   not be kept. */
static void search_pages(const cg_cost_book *book, const cg_page *page,
                         cg_regime regime, search *of)
{
    const size_t who = (size_t)(page->structure - page->key);

    for (size_t slot = 0; slot < CG_BOOK_SLOTS; slot++)
        for (const cg_page *at = book->slots[slot]; at != NULL; at = at->next)
            if (at->sides[regime].count > 0 && at->has_work &&
                strncmp(at->key, page->key, who) == 0)
                consider(of, at->structure, &at->work);
}

/* The page that lends, in *lender. */
static cellgate_status find_lender(cg_cost_book *book,
                                   const cg_cost_candidate *candidate,
                                   const cg_page *page, cg_regime regime,
                                   cg_page **lender, cellgate_error *error)
{
    search of = { .to = &page->work, .least = HUGE_VAL, .memory = true };
    cellgate_error why = CELLGATE_ERROR_INIT;
    cellgate_status status = CELLGATE_OK;

    *lender = NULL;
    search_pages(book, page, regime, &of);
    if (cg_book_may_read(book))
        status = cg_cost_store_structures(book->store, candidate, regime, visit,
                                          &of, &why);
    if (status == CELLGATE_BUSY || status == CELLGATE_IO)
        cg_book_cannot_be_read(book, &why);
    if (of.best != NULL) {
        *lender = cg_book_open_page(book, candidate, of.best);
        of.memory = of.memory && *lender != NULL;
    }
    free(of.best);
    if (!of.memory || status == CELLGATE_NO_MEMORY)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory for costs");
    return CELLGATE_OK;
}

cellgate_status cg_book_borrow(cg_cost_book *book,
                               const cg_cost_candidate *candidate,
                               cg_page *page, cg_regime regime,
                               const cg_cost_shape *shape, cg_cost *cost,
                               cellgate_error *error)
{
    cg_page_side *side = &page->sides[regime];
    cellgate_status status = CELLGATE_OK;
    const cg_surface *surface;

    if (!page->has_work)
        return CELLGATE_OK;
    if (side->looked != book->lenders || !page->read)
        status =
            find_lender(book, candidate, page, regime, &side->lender, error);
    if (status != CELLGATE_OK)
        return status;
    side->looked = book->lenders;
    if (side->lender == NULL || side->lender->sides[regime].count == 0)
        return CELLGATE_OK;
    surface = cg_page_surface(&side->lender->sides[regime]);
    if (surface == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory for costs");
    cg_cost_borrow(surface, &side->lender->work, &page->work, shape, cost);
    return CELLGATE_OK;
}
