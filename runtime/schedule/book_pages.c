/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of a book, and how they are filled from the store. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "runtime/cost/clock.h"
#include "runtime/schedule/book_pages.h"

/* A store that cannot be read may make each try wait: seconds between them. */
#define RETRY 5.0

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory for costs");
}

static void free_page(cg_page *page)
{
    for (int regime = 0; regime < CG_REGIMES; regime++) {
        cg_surface_destroy(page->sides[regime].surface);
        free(page->sides[regime].points);
    }
    free(page->limits);
    free(page->key);
    free(page);
}

void cg_book_drop_pages(cg_cost_book *book)
{
    for (size_t slot = 0; slot < CG_BOOK_SLOTS; slot++)
        while (book->slots[slot] != NULL) {
            cg_page *page = book->slots[slot];

            book->slots[slot] = page->next;
            free_page(page);
        }
}

void cg_book_forget_pages(cg_cost_book *book)
{
    book->lenders++;
    for (size_t slot = 0; slot < CG_BOOK_SLOTS; slot++)
        for (cg_page **at = &book->slots[slot]; *at != NULL;) {
            cg_page *page = *at;

            if (page->unkept) {
                page->read = false;
                at = &page->next;
            } else {
                *at = page->next;
                free_page(page);
            }
        }
}

/* ---- Points ------------------------------------------------------------- */

static cg_cost_point *find_point(const cg_page_side *side,
                                 const cg_cost_shape *shape)
{
    for (size_t at = 0; at < side->count; at++) {
        const cg_cost_shape *known = &side->points[at].shape;

        if (known->batch == shape->batch && known->steps == shape->steps &&
            fabs(known->fill - shape->fill) < 1e-3)
            return &side->points[at];
    }
    return NULL;
}

const cg_surface *cg_page_surface(cg_page_side *side)
{
    if (side->surface == NULL && side->count > 0)
        side->surface = cg_surface_create(side->points, side->count);
    return side->surface;
}

static bool within(const cg_cost_limit *limit, const cg_cost_shape *shape)
{
    return limit->batch <= shape->batch && limit->steps <= shape->steps;
}

void cg_page_lift_limits(cg_page *page, const cg_cost_shape *shape)
{
    size_t left = 0;

    for (size_t at = 0; at < page->limit_count; at++)
        if (!within(&page->limits[at], shape))
            page->limits[left++] = page->limits[at];
    page->limit_count = left;
}

static bool is_void(const cg_page *page, const cg_cost_limit *limit)
{
    for (int regime = 0; regime < CG_REGIMES; regime++) {
        const cg_page_side *side = &page->sides[regime];

        for (size_t at = 0; at < side->count; at++)
            if (within(limit, &side->points[at].shape) &&
                side->points[at].at > limit->at)
                return true;
    }
    return false;
}

cellgate_status cg_page_add_limit(cg_page *page, const cg_cost_limit *limit,
                                  cellgate_error *error)
{
    cg_cost_limit *grown;

    for (size_t at = 0; at < page->limit_count; at++)
        if (page->limits[at].batch == limit->batch &&
            page->limits[at].steps == limit->steps) {
            if (page->limits[at].at < limit->at)
                page->limits[at].at = limit->at;
            return CELLGATE_OK;
        }
    if (is_void(page, limit))
        return CELLGATE_OK;
    grown = realloc(page->limits, (page->limit_count + 1) * sizeof *grown);
    if (grown == NULL)
        return no_memory(error);
    page->limits = grown;
    grown[page->limit_count++] = *limit;
    return CELLGATE_OK;
}

cellgate_status cg_page_set_point(cg_page *page, cg_regime regime,
                                  const cg_cost_point *point,
                                  cellgate_error *error)
{
    cg_page_side *side = &page->sides[regime];
    cg_cost_point *known = find_point(side, &point->shape), *grown;

    cg_surface_destroy(side->surface);
    side->surface = NULL;
    if (known != NULL) {
        *known = *point;
        return CELLGATE_OK;
    }
    grown = realloc(side->points, (side->count + 1) * sizeof *grown);
    if (grown == NULL)
        return no_memory(error);
    side->points = grown;
    side->points[side->count++] = *point;
    return CELLGATE_OK;
}

/* ---- From the store ----------------------------------------------------- */

/* Points that are in the page already are newer. */
static cellgate_status merge(cg_page *page, cg_regime regime,
                             const cg_cost_point *points, size_t count,
                             cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t at = 0; status == CELLGATE_OK && at < count; at++)
        if (find_point(&page->sides[regime], &points[at].shape) == NULL)
            status = cg_page_set_point(page, regime, &points[at], error);
    return status;
}

/* After the points. What is in the page already is newer. */
static cellgate_status read_facts(cg_cost_book *book,
                                  const cg_cost_candidate *candidate,
                                  const char *structure, cg_page *page,
                                  cellgate_error *error)
{
    cg_cost_limit *limits = NULL;
    cg_cost_once once = { 0, 0 };
    size_t count = 0;
    cellgate_status status =
        cg_cost_store_once(book->store, candidate, structure, &once, error);

    if (status == CELLGATE_OK)
        status = cg_cost_store_limits(book->store, candidate, structure,
                                      &limits, &count, error);
    for (size_t at = 0; status == CELLGATE_OK && at < count; at++)
        status = cg_page_add_limit(page, &limits[at], error);
    free(limits);
    if (status == CELLGATE_OK && page->once.seconds == 0)
        page->once = once;
    return status;
}

static cellgate_status read_page(cg_cost_book *book,
                                 const cg_cost_candidate *candidate,
                                 const char *structure, cg_page *page,
                                 cellgate_error *error)
{
    cg_cost_verdict verdict;
    cellgate_status status = cg_cost_store_verdict(book->store, candidate,
                                                   structure, &verdict, error);

    for (int regime = 0; status == CELLGATE_OK && regime < CG_REGIMES;
         regime++) {
        cg_cost_point *points = NULL;
        size_t count = 0;

        status =
            cg_cost_store_points(book->store, candidate, structure,
                                 (cg_regime)regime, &points, &count, error);
        if (status == CELLGATE_OK)
            status = merge(page, (cg_regime)regime, points, count, error);
        free(points);
    }
    if (status == CELLGATE_OK)
        status = read_facts(book, candidate, structure, page, error);
    if (status == CELLGATE_OK && !page->verdict.checked)
        page->verdict = verdict;
    page->read = status == CELLGATE_OK;
    return status;
}

/* Decisions that were made without the store are not to last. */
static void can_be_read(cg_cost_book *book)
{
    if (book->unread.status == CELLGATE_OK)
        return;
    book->unread.status = CELLGATE_OK;
    atomic_store(&book->outage, false);
    atomic_fetch_add(&book->generation, 1);
}

bool cg_book_may_read(const cg_cost_book *book)
{
    return book->unread.status == CELLGATE_OK ||
           cg_now(&cg_real_clock) >= book->retry;
}

void cg_book_cannot_be_read(cg_cost_book *book, const cellgate_error *why)
{
    if (book->unread.status == CELLGATE_OK && book->complain != NULL) {
        char text[sizeof why->text + 80];

        snprintf(text, sizeof text,
                 "%s; until it can be read, what it has is not used",
                 why->text);
        book->complain(book->complain_context, text);
    }
    book->unread = *why;
    book->retry = cg_now(&cg_real_clock) + RETRY;
    atomic_store(&book->outage, true);
}

/* False: no memory. */
static bool fill_page(cg_cost_book *book, const cg_cost_candidate *candidate,
                      const char *structure, cg_page *page)
{
    cellgate_error why = CELLGATE_ERROR_INIT;
    cellgate_status status;

    if (page->read || !cg_book_may_read(book))
        return true;
    status = read_page(book, candidate, structure, page, &why);
    if (status == CELLGATE_NO_MEMORY)
        return false;
    if (status == CELLGATE_OK)
        can_be_read(book);
    else
        cg_book_cannot_be_read(book, &why);
    return true;
}

/* ---- Opening ------------------------------------------------------------ */

static char *make_key(const cg_cost_candidate *of, const char *structure)
{
    char *key = NULL;

    if (asprintf(&key, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", of->plugin, of->build,
                 of->identity, of->settings, of->variant, of->numeric, of->host,
                 structure) < 0)
        return NULL;
    return key;
}

static cg_page *find_page(const cg_cost_book *book, size_t slot,
                          const char *key)
{
    for (cg_page *at = book->slots[slot]; at != NULL; at = at->next)
        if (strcmp(at->key, key) == 0)
            return at;
    return NULL;
}

cg_page *cg_book_open_page(cg_cost_book *book,
                           const cg_cost_candidate *candidate,
                           const char *structure)
{
    char *key = make_key(candidate, structure);
    cg_page *page;
    size_t slot;

    if (key == NULL)
        return NULL;
    slot = XXH3_64bits(key, strlen(key)) % CG_BOOK_SLOTS;
    page = find_page(book, slot, key);
    if (page == NULL && (page = calloc(1, sizeof *page)) != NULL) {
        page->key = key;
        page->structure = key + strlen(key) - strlen(structure);
        page->has_work = cg_work_read(structure, &page->work);
        page->next = book->slots[slot];
        book->slots[slot] = page;
        key = NULL;
    }
    free(key);
    return page != NULL && fill_page(book, candidate, structure, page) ? page
                                                                       : NULL;
}
