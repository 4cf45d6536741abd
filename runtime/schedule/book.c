/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/schedule/book_pages.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory for costs");
}

/* ---- The book ----------------------------------------------------------- */

void cg_book_tell_notes(cg_cost_book *book)
{
    const char *note;

    while ((note = cg_cost_store_note(book->store, book->notes)) != NULL) {
        book->notes++;
        if (book->complain != NULL)
            book->complain(book->complain_context, note);
    }
}

cellgate_status cg_cost_book_create(cg_cost_store *store,
                                    cg_book_complain complain, void *context,
                                    cg_cost_book **book, cellgate_error *error)
{
    cg_cost_book *made = calloc(1, sizeof *made);

    if (made == NULL) {
        cg_cost_store_close(store);
        return no_memory(error);
    }
    atomic_init(&made->references, 1);
    atomic_init(&made->generation, 1);
    atomic_init(&made->outage, false);
    pthread_mutex_init(&made->mutex, NULL);
    made->store = store;
    made->lenders = 1;
    made->complain = complain;
    made->complain_context = context;
    cg_book_tell_notes(made);
    *book = made;
    return CELLGATE_OK;
}

cg_cost_book *cg_cost_book_reference(cg_cost_book *book)
{
    atomic_fetch_add(&book->references, 1);
    return book;
}

void cg_cost_book_release(cg_cost_book *book)
{
    if (book == NULL || atomic_fetch_sub(&book->references, 1) > 1)
        return;
    cg_book_drop_pages(book);
    cg_cost_store_close(book->store);
    pthread_mutex_destroy(&book->mutex);
    free(book);
}

/* Decisions that were made without the store are made again, and with them it
   is tried again. A request does not wait for one that is trying. */
static void end_outage(cg_cost_book *book)
{
    if (pthread_mutex_trylock(&book->mutex) != 0)
        return;
    if (atomic_load(&book->outage) && cg_book_may_read(book)) {
        atomic_store(&book->outage, false);
        atomic_fetch_add(&book->generation, 1);
    }
    pthread_mutex_unlock(&book->mutex);
}

uint64_t cg_cost_book_generation(cg_cost_book *book)
{
    if (atomic_load_explicit(&book->outage, memory_order_relaxed))
        end_outage(book);
    return atomic_load_explicit(&book->generation, memory_order_acquire);
}

cg_cost_store *cg_cost_book_lock(cg_cost_book *book)
{
    pthread_mutex_lock(&book->mutex);
    return book->store;
}

void cg_cost_book_unlock(cg_cost_book *book, bool changed)
{
    cg_book_tell_notes(book);
    if (changed) {
        cg_book_forget_pages(book);
        atomic_fetch_add(&book->generation, 1);
    }
    pthread_mutex_unlock(&book->mutex);
}

cellgate_status cg_cost_book_trouble(cg_cost_book *book, cellgate_error *error)
{
    cellgate_status status;

    pthread_mutex_lock(&book->mutex);
    status = (cellgate_status)book->unread.status;
    if (status != CELLGATE_OK)
        (void)cellgate_fail(error, status, "%s", book->unread.text);
    pthread_mutex_unlock(&book->mutex);
    return status;
}

/* ---- Asking ------------------------------------------------------------- */

static cellgate_status predict(cg_cost_book *book,
                               const cg_cost_candidate *candidate,
                               const char *structure, cg_regime regime,
                               const cg_cost_shape *shape, cg_cost *cost,
                               cellgate_error *error)
{
    cg_page *page = cg_book_open_page(book, candidate, structure);
    const cg_surface *surface;

    if (page == NULL)
        return no_memory(error);
    if (page->sides[regime].count == 0)
        return cg_book_borrow(book, candidate, page, regime, shape, cost,
                              error);
    surface = cg_page_surface(&page->sides[regime]);
    if (surface == NULL)
        return no_memory(error);
    cg_surface_predict(surface, shape, cost);
    return CELLGATE_OK;
}

cellgate_status cg_cost_book_predict(cg_cost_book *book,
                                     const cg_cost_candidate *candidate,
                                     const char *structure, cg_regime regime,
                                     const cg_cost_shape *shape, cg_cost *cost,
                                     cellgate_error *error)
{
    cellgate_status status;

    cg_surface_predict(NULL, shape, cost);
    pthread_mutex_lock(&book->mutex);
    status = predict(book, candidate, structure, regime, shape, cost, error);
    pthread_mutex_unlock(&book->mutex);
    return status;
}

cellgate_status cg_cost_book_verdict(cg_cost_book *book,
                                     const cg_cost_candidate *candidate,
                                     const char *structure,
                                     cg_cost_verdict *verdict,
                                     cellgate_error *error)
{
    const cg_page *page;

    pthread_mutex_lock(&book->mutex);
    page = cg_book_open_page(book, candidate, structure);
    if (page != NULL)
        *verdict = page->verdict;
    pthread_mutex_unlock(&book->mutex);
    return page != NULL ? CELLGATE_OK : no_memory(error);
}

static cellgate_status copy_points(const cg_page_side *side,
                                   cg_cost_point **points, size_t *count,
                                   cellgate_error *error)
{
    cg_cost_point *copy = NULL;

    if (side->count > 0) {
        copy = malloc(side->count * sizeof *copy);
        if (copy == NULL)
            return no_memory(error);
        memcpy(copy, side->points, side->count * sizeof *copy);
    }
    *points = copy;
    *count = side->count;
    return CELLGATE_OK;
}

cellgate_status cg_cost_book_points(cg_cost_book *book,
                                    const cg_cost_candidate *candidate,
                                    const char *structure, cg_regime regime,
                                    cg_cost_point **points, size_t *count,
                                    cellgate_error *error)
{
    cellgate_status status;
    const cg_page *page;

    pthread_mutex_lock(&book->mutex);
    page = cg_book_open_page(book, candidate, structure);
    status = page != NULL
                 ? copy_points(&page->sides[regime], points, count, error)
                 : no_memory(error);
    pthread_mutex_unlock(&book->mutex);
    return status;
}

bool cg_cost_book_knows(cg_cost_book *book, const char *identity)
{
    cellgate_error why = CELLGATE_ERROR_INIT;
    bool known = false;

    pthread_mutex_lock(&book->mutex);
    if (cg_book_may_read(book) &&
        cg_cost_store_knows(book->store, identity, &known, &why) != CELLGATE_OK)
        cg_book_cannot_be_read(book, &why);
    pthread_mutex_unlock(&book->mutex);
    return known;
}

bool cg_cost_book_has(cg_cost_book *book, const cg_cost_candidate *candidate,
                      const char *structure, cg_regime regime)
{
    const cg_page *page;
    bool has;

    pthread_mutex_lock(&book->mutex);
    page = cg_book_open_page(book, candidate, structure);
    has = page != NULL && page->sides[regime].count > 0;
    pthread_mutex_unlock(&book->mutex);
    return has;
}

/* ---- Putting ------------------------------------------------------------ */

static void complain_once(cg_cost_book *book, const cellgate_error *why)
{
    char text[sizeof why->text + 80];

    if (book->unkept || book->complain == NULL)
        return;
    snprintf(text, sizeof text,
             "%s; what is measured holds for this process alone", why->text);
    book->complain(book->complain_context, text);
}

/* A store without a file keeps nothing, and says so in a note if it should. */
static cellgate_status no_file(const cg_cost_book *book, cellgate_error *why)
{
    if (book->notes > 0)
        return cellgate_fail(why, CELLGATE_IO, "%s",
                             cg_cost_store_note(book->store, book->notes - 1));
    return cellgate_fail(why, CELLGATE_IO,
                         "there is no file that measurements could be kept in "
                         "([calibration] store names one)");
}

cellgate_status cg_book_settle(cg_cost_book *book, cg_page *page,
                               cellgate_status status, cellgate_error *why,
                               cellgate_error *error)
{
    cg_book_tell_notes(book);
    if (status == CELLGATE_OK && cg_cost_store_keeps(book->store))
        return CELLGATE_OK;
    if (status == CELLGATE_OK)
        status = no_file(book, why);
    complain_once(book, why);
    page->unkept = book->unkept = true;
    return cellgate_fail(error, status, "%s", why->text);
}

/* Puts it into its page, which is returned, and says when it was measured; NULL
   with *error. The lock is held. */
static cg_page *hold_point(cg_cost_book *book,
                           const cg_cost_candidate *candidate,
                           const char *structure, cg_regime regime,
                           cg_cost_point *point, cellgate_error *error)
{
    cg_page *page = cg_book_open_page(book, candidate, structure);

    point->at = cg_cost_dated(point->at);
    if (page == NULL) {
        (void)no_memory(error);
        return NULL;
    }
    if (page->sides[regime].count == 0)
        book->lenders++;
    if (cg_page_set_point(page, regime, point, error) != CELLGATE_OK)
        return NULL;
    cg_page_lift_limits(page, &point->shape);
    atomic_fetch_add(&book->generation, 1);
    return page;
}

cellgate_status cg_cost_book_put(cg_cost_book *book,
                                 const cg_cost_candidate *candidate,
                                 const char *structure, cg_regime regime,
                                 const cg_cost_point *point,
                                 cellgate_error *error)
{
    cellgate_error why = CELLGATE_ERROR_INIT;
    cellgate_status status = CELLGATE_NO_MEMORY;
    cg_cost_point dated = *point;
    cg_page *page;

    pthread_mutex_lock(&book->mutex);
    page = hold_point(book, candidate, structure, regime, &dated, error);
    if (page != NULL) {
        status = cg_cost_store_put(book->store, candidate, structure, regime,
                                   &dated, &why);
        status = cg_book_settle(book, page, status, &why, error);
    }
    pthread_mutex_unlock(&book->mutex);
    return status;
}

cellgate_status cg_cost_book_hold(cg_cost_book *book,
                                  const cg_cost_candidate *candidate,
                                  const char *structure, cg_regime regime,
                                  const cg_cost_point *point,
                                  cellgate_error *error)
{
    cg_cost_point dated = *point;
    const cg_page *page;

    pthread_mutex_lock(&book->mutex);
    page = hold_point(book, candidate, structure, regime, &dated, error);
    pthread_mutex_unlock(&book->mutex);
    return page != NULL ? CELLGATE_OK : CELLGATE_NO_MEMORY;
}

cellgate_status cg_cost_book_put_verdict(cg_cost_book *book,
                                         const cg_cost_candidate *candidate,
                                         const char *structure,
                                         const cg_cost_verdict *verdict,
                                         cellgate_error *error)
{
    cellgate_error why = CELLGATE_ERROR_INIT;
    cellgate_status status;
    cg_page *page;

    pthread_mutex_lock(&book->mutex);
    page = cg_book_open_page(book, candidate, structure);
    if (page == NULL) {
        status = no_memory(error);
    } else {
        page->verdict = *verdict;
        page->verdict.at = cg_cost_dated(verdict->at);
        atomic_fetch_add(&book->generation, 1);
        status = cg_cost_store_put_verdict(book->store, candidate, structure,
                                           &page->verdict, &why);
        status = cg_book_settle(book, page, status, &why, error);
    }
    pthread_mutex_unlock(&book->mutex);
    return status;
}
