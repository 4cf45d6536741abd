/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "runtime/schedule/book.h"

/* What is known of a candidate, a structure and a regime. */
typedef struct page {
    struct page *next; /* of the same slot */
    char *key;
    cg_cost_point *points;
    size_t count;
    cg_surface *surface; /* NULL: to be made */
} page;

#define SLOTS 256

struct cg_cost_book {
    atomic_size_t references;
    _Atomic uint64_t generation;
    pthread_mutex_t mutex; /* of all below */
    cg_cost_store *store;
    page *slots[SLOTS];
};

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory for costs");
}

/* ---- The book ----------------------------------------------------------- */

cellgate_status cg_cost_book_create(cg_cost_store *store, cg_cost_book **book,
                                    cellgate_error *error)
{
    cg_cost_book *made = calloc(1, sizeof *made);

    if (made == NULL) {
        cg_cost_store_close(store);
        return no_memory(error);
    }
    atomic_init(&made->references, 1);
    atomic_init(&made->generation, 1);
    pthread_mutex_init(&made->mutex, NULL);
    made->store = store;
    *book = made;
    return CELLGATE_OK;
}

cg_cost_book *cg_cost_book_reference(cg_cost_book *book)
{
    atomic_fetch_add(&book->references, 1);
    return book;
}

static void drop_pages(cg_cost_book *book)
{
    for (size_t slot = 0; slot < SLOTS; slot++)
        while (book->slots[slot] != NULL) {
            page *at = book->slots[slot];

            book->slots[slot] = at->next;
            cg_surface_destroy(at->surface);
            free(at->points);
            free(at->key);
            free(at);
        }
}

void cg_cost_book_release(cg_cost_book *book)
{
    if (book == NULL || atomic_fetch_sub(&book->references, 1) > 1)
        return;
    drop_pages(book);
    cg_cost_store_close(book->store);
    pthread_mutex_destroy(&book->mutex);
    free(book);
}

uint64_t cg_cost_book_generation(const cg_cost_book *book)
{
    return atomic_load_explicit(&book->generation, memory_order_acquire);
}

cg_cost_store *cg_cost_book_lock(cg_cost_book *book)
{
    pthread_mutex_lock(&book->mutex);
    return book->store;
}

void cg_cost_book_unlock(cg_cost_book *book, bool changed)
{
    if (changed) {
        drop_pages(book);
        atomic_fetch_add(&book->generation, 1);
    }
    pthread_mutex_unlock(&book->mutex);
}

/* ---- Pages -------------------------------------------------------------- */

static char *make_key(const cg_cost_candidate *of, const char *structure,
                      cg_regime regime)
{
    char *key = NULL;

    if (asprintf(&key, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", of->plugin,
                 of->build, of->identity, of->settings, of->variant,
                 of->numeric, of->host, structure, cg_regime_name(regime)) < 0)
        return NULL;
    return key;
}

static page *find_page(const cg_cost_book *book, size_t slot, const char *key)
{
    for (page *at = book->slots[slot]; at != NULL; at = at->next)
        if (strcmp(at->key, key) == 0)
            return at;
    return NULL;
}

static cellgate_status read_page(cg_cost_book *book,
                                 const cg_cost_candidate *candidate,
                                 const char *structure, cg_regime regime,
                                 size_t slot, char *key, page **found,
                                 cellgate_error *error)
{
    page *made = calloc(1, sizeof *made);
    cellgate_status status;

    if (made == NULL)
        return no_memory(error);
    status = cg_cost_store_points(book->store, candidate, structure, regime,
                                  &made->points, &made->count, error);
    if (status != CELLGATE_OK) {
        free(made);
        return status;
    }
    made->key = key;
    made->next = book->slots[slot];
    book->slots[slot] = *found = made;
    return CELLGATE_OK;
}

/* The page, read from the store on first need; the lock is held. */
static cellgate_status open_page(cg_cost_book *book,
                                 const cg_cost_candidate *candidate,
                                 const char *structure, cg_regime regime,
                                 page **found, cellgate_error *error)
{
    char *key = make_key(candidate, structure, regime);
    cellgate_status status;
    size_t slot;

    if (key == NULL)
        return no_memory(error);
    slot = XXH3_64bits(key, strlen(key)) % SLOTS;
    *found = find_page(book, slot, key);
    if (*found != NULL) {
        free(key);
        return CELLGATE_OK;
    }
    status =
        read_page(book, candidate, structure, regime, slot, key, found, error);
    if (status != CELLGATE_OK)
        free(key);
    return status;
}

/* ---- Asking ------------------------------------------------------------- */

static cellgate_status predict(cg_cost_book *book,
                               const cg_cost_candidate *candidate,
                               const char *structure, cg_regime regime,
                               const cg_cost_shape *shape, cg_cost *cost,
                               cellgate_error *error)
{
    page *at;
    cellgate_status status =
        open_page(book, candidate, structure, regime, &at, error);

    if (status != CELLGATE_OK || at->count == 0)
        return status;
    if (at->surface == NULL)
        at->surface = cg_surface_create(at->points, at->count);
    if (at->surface == NULL)
        return no_memory(error);
    cg_surface_predict(at->surface, shape, cost);
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

cellgate_status cg_cost_book_points(cg_cost_book *book,
                                    const cg_cost_candidate *candidate,
                                    const char *structure, cg_regime regime,
                                    cg_cost_point **points, size_t *count,
                                    cellgate_error *error)
{
    cg_cost_point *copy = NULL;
    cellgate_status status;
    page *at;

    pthread_mutex_lock(&book->mutex);
    status = open_page(book, candidate, structure, regime, &at, error);
    if (status == CELLGATE_OK && at->count > 0) {
        copy = malloc(at->count * sizeof *copy);
        if (copy == NULL)
            status = no_memory(error);
        else
            memcpy(copy, at->points, at->count * sizeof *copy);
    }
    if (status == CELLGATE_OK) {
        *points = copy;
        *count = at->count;
    }
    pthread_mutex_unlock(&book->mutex);
    return status;
}

bool cg_cost_book_knows(cg_cost_book *book, const char *identity)
{
    bool known = false;

    pthread_mutex_lock(&book->mutex);
    (void)cg_cost_store_knows(book->store, identity, &known, NULL);
    pthread_mutex_unlock(&book->mutex);
    return known;
}

/* ---- Putting ------------------------------------------------------------ */

static bool same_shape(const cg_cost_shape *a, const cg_cost_shape *b)
{
    return a->batch == b->batch && a->steps == b->steps &&
           fabs(a->fill - b->fill) < 1e-3;
}

static cellgate_status set_point(page *at, const cg_cost_point *point,
                                 cellgate_error *error)
{
    cg_cost_point *grown;

    cg_surface_destroy(at->surface);
    at->surface = NULL;
    for (size_t i = 0; i < at->count; i++)
        if (same_shape(&at->points[i].shape, &point->shape)) {
            at->points[i] = *point;
            return CELLGATE_OK;
        }
    grown = realloc(at->points, (at->count + 1) * sizeof *grown);
    if (grown == NULL)
        return no_memory(error);
    at->points = grown;
    at->points[at->count++] = *point;
    return CELLGATE_OK;
}

cellgate_status cg_cost_book_put(cg_cost_book *book,
                                 const cg_cost_candidate *candidate,
                                 const char *structure, cg_regime regime,
                                 const cg_cost_point *point,
                                 cellgate_error *error)
{
    cellgate_status status;
    page *at;

    pthread_mutex_lock(&book->mutex);
    status = open_page(book, candidate, structure, regime, &at, error);
    if (status == CELLGATE_OK)
        status = set_point(at, point, error);
    if (status == CELLGATE_OK) {
        atomic_fetch_add(&book->generation, 1);
        status = cg_cost_store_put(book->store, candidate, structure, regime,
                                   point, error);
    }
    pthread_mutex_unlock(&book->mutex);
    return status;
}

/* ---- Verdicts ----------------------------------------------------------- */

cellgate_status cg_cost_book_verdict(cg_cost_book *book,
                                     const cg_cost_candidate *candidate,
                                     const char *structure,
                                     cg_cost_verdict *verdict,
                                     cellgate_error *error)
{
    cellgate_status status;

    pthread_mutex_lock(&book->mutex);
    status = cg_cost_store_verdict(book->store, candidate, structure, verdict,
                                   error);
    pthread_mutex_unlock(&book->mutex);
    return status;
}

cellgate_status cg_cost_book_put_verdict(cg_cost_book *book,
                                         const cg_cost_candidate *candidate,
                                         const char *structure,
                                         const cg_cost_verdict *verdict,
                                         cellgate_error *error)
{
    cellgate_status status;

    pthread_mutex_lock(&book->mutex);
    status = cg_cost_store_put_verdict(book->store, candidate, structure,
                                       verdict, error);
    atomic_fetch_add(&book->generation, 1);
    pthread_mutex_unlock(&book->mutex);
    return status;
}
