/* SPDX-License-Identifier: Apache-2.0 */
/* What a book knows beside costs: what is done once, and where memory ends. */
#include "config.h"

#include "runtime/schedule/book_pages.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory for costs");
}

/* ---- What is done once -------------------------------------------------- */

cellgate_status cg_cost_book_once(cg_cost_book *book,
                                  const cg_cost_candidate *candidate,
                                  const char *structure, cg_cost_once *once,
                                  cellgate_error *error)
{
    const cg_page *page;

    pthread_mutex_lock(&book->mutex);
    page = cg_book_open_page(book, candidate, structure);
    if (page != NULL)
        *once = page->once;
    pthread_mutex_unlock(&book->mutex);
    return page != NULL ? CELLGATE_OK : no_memory(error);
}

cellgate_status cg_cost_book_put_once(cg_cost_book *book,
                                      const cg_cost_candidate *candidate,
                                      const char *structure,
                                      const cg_cost_once *once,
                                      cellgate_error *error)
{
    cellgate_error why = CELLGATE_ERROR_INIT;
    cellgate_status status = CELLGATE_NO_MEMORY;
    cg_page *page;

    pthread_mutex_lock(&book->mutex);
    page = cg_book_open_page(book, candidate, structure);
    if (page == NULL) {
        (void)no_memory(error);
    } else {
        page->once = *once;
        page->once.at = cg_cost_dated(once->at);
        atomic_fetch_add(&book->generation, 1);
        status = cg_cost_store_put_once(book->store, candidate, structure,
                                        &page->once, &why);
        status = cg_book_settle(book, page, status, &why, error);
    }
    pthread_mutex_unlock(&book->mutex);
    return status;
}

/* ---- Where memory ends -------------------------------------------------- */

static bool find_limit(const cg_page *page, const cg_cost_shape *shape,
                       cg_cost_limit *limit)
{
    bool found = false;

    for (size_t at = 0; at < page->limit_count; at++) {
        const cg_cost_limit *of = &page->limits[at];

        if (of->batch > shape->batch || of->steps > shape->steps)
            continue;
        if (!found || of->batch < limit->batch)
            *limit = *of;
        found = true;
    }
    return found;
}

cellgate_status cg_cost_book_limit(cg_cost_book *book,
                                   const cg_cost_candidate *candidate,
                                   const char *structure,
                                   const cg_cost_shape *shape, bool *limited,
                                   cg_cost_limit *limit, cellgate_error *error)
{
    const cg_page *page;

    pthread_mutex_lock(&book->mutex);
    page = cg_book_open_page(book, candidate, structure);
    if (page != NULL)
        *limited = find_limit(page, shape, limit);
    pthread_mutex_unlock(&book->mutex);
    return page != NULL ? CELLGATE_OK : no_memory(error);
}

cellgate_status cg_cost_book_put_limit(cg_cost_book *book,
                                       const cg_cost_candidate *candidate,
                                       const char *structure,
                                       const cg_cost_limit *limit,
                                       cellgate_error *error)
{
    cellgate_error why = CELLGATE_ERROR_INIT;
    cellgate_status status = CELLGATE_NO_MEMORY;
    cg_cost_limit dated = *limit;
    cg_page *page;

    dated.at = cg_cost_dated(dated.at);
    pthread_mutex_lock(&book->mutex);
    page = cg_book_open_page(book, candidate, structure);
    if (page == NULL || cg_page_add_limit(page, &dated, error) != CELLGATE_OK) {
        (void)no_memory(error);
    } else {
        atomic_fetch_add(&book->generation, 1);
        status = cg_cost_store_put_limit(book->store, candidate, structure,
                                         &dated, &why);
        status = cg_book_settle(book, page, status, &why, error);
    }
    pthread_mutex_unlock(&book->mutex);
    return status;
}
