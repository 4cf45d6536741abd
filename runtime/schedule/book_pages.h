/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages of a book: what is known of a candidate and a structure. Private to
 * book*.c; everything under the book's lock.
 */
#ifndef CELLGATE_RUNTIME_SCHEDULE_BOOK_PAGES_H
#define CELLGATE_RUNTIME_SCHEDULE_BOOK_PAGES_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/cost/work.h"
#include "runtime/schedule/book.h"

/* The points of one regime. */
typedef struct cg_page_side {
    cg_cost_point *points;
    size_t count;
    cg_surface *surface; /* NULL: to be made */
    /* Without points: the page of another structure whose costs are borrowed,
       NULL for none, as it was looked for when the book's `lenders` was so. */
    struct cg_page *lender;
    uint64_t looked;
} cg_page_side;

typedef struct cg_page {
    struct cg_page *next; /* of the same slot */
    char *key;
    const char *structure; /* within the key */
    bool has_work;         /* else it lends and borrows nothing */
    cg_work work;
    bool read;   /* what the store has is in it */
    bool unkept; /* it has what the store could not keep */
    cg_page_side sides[CG_REGIMES];
    cg_cost_verdict verdict;
    cg_cost_once once;
    cg_cost_limit *limits;
    size_t limit_count;
} cg_page;

#define CG_BOOK_SLOTS 256

/* Requests that came. */
typedef struct cg_seen {
    uint64_t structure; /* its hash */
    cg_cost_shape shape;
    double requests;
} cg_seen;

struct cg_cost_book {
    atomic_size_t references;
    _Atomic uint64_t generation;
    pthread_mutex_t mutex; /* of all below */
    cg_cost_store *store;
    cg_page *slots[CG_BOOK_SLOTS];
    cg_book_complain complain;
    void *complain_context;
    size_t notes; /* of the store, that were passed on */
    bool unkept;  /* some page has what the store could not keep */
    cellgate_error
        unread;         /* OK, or why the store could not be read last time */
    double retry;       /* when reading is tried again, by the real clock */
    atomic_bool outage; /* it could not be read, and nobody was told since to
                           decide again */
    cg_seen seen[CG_BOOK_TRAFFIC];
    size_t seen_count;
    uint64_t lenders; /* changes when there may be another one; above 0 */
};

/* The page, with what the store has as far as that can be read. NULL: no
   memory. */
cg_page *cg_book_open_page(cg_cost_book *book,
                           const cg_cost_candidate *candidate,
                           const char *structure);
/* Replaces the point at that shape, or adds it. */
cellgate_status cg_page_set_point(cg_page *page, cg_regime regime,
                                  const cg_cost_point *point,
                                  cellgate_error *error);
/* Adds a limit; one that a newer measurement of that shape or a larger one
   speaks against is left out. */
cellgate_status cg_page_add_limit(cg_page *page, const cg_cost_limit *limit,
                                  cellgate_error *error);
/* A run of that shape has shown them to be none. */
void cg_page_lift_limits(cg_page *page, const cg_cost_shape *shape);
/* NULL: there are no points, or no memory. */
const cg_surface *cg_page_surface(cg_page_side *side);
/* Whether the store may be read now, and that it could not be. */
bool cg_book_may_read(const cg_cost_book *book);
void cg_book_cannot_be_read(cg_cost_book *book, const cellgate_error *why);
/* What the store has is read anew; what it could not keep stays. */
void cg_book_forget_pages(cg_cost_book *book);
void cg_book_drop_pages(cg_cost_book *book);

/*
 * book_lend.c: what a page without points in that regime can say, from the
 * candidate's other structures; NONE where these say nothing. Fails with
 * NO_MEMORY only.
 */
cellgate_status cg_book_borrow(cg_cost_book *book,
                               const cg_cost_candidate *candidate,
                               cg_page *page, cg_regime regime,
                               const cg_cost_shape *shape, cg_cost *cost,
                               cellgate_error *error);

/* book.c: passes on what the store has noted since the last time. */
void cg_book_tell_notes(cg_cost_book *book);
/* What came of putting something into the store that is in the page now. */
cellgate_status cg_book_settle(cg_cost_book *book, cg_page *page,
                               cellgate_status status, cellgate_error *why,
                               cellgate_error *error);

#endif
