/* SPDX-License-Identifier: Apache-2.0 */
/* What comes in service. */
#include "config.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "runtime/schedule/book_pages.h"

static bool is_same(const cg_seen *of, uint64_t structure,
                    const cg_cost_shape *shape)
{
    return of->structure == structure && of->shape.batch == shape->batch &&
           of->shape.steps == shape->steps &&
           fabs(of->shape.fill - shape->fill) < 1e-3;
}

/* The entry of that shape: its own, a new one, or the rarest one's. */
static cg_seen *entry_of(cg_cost_book *book, uint64_t structure,
                         const cg_cost_shape *shape)
{
    cg_seen *rarest = &book->seen[0];

    for (size_t at = 0; at < book->seen_count; at++) {
        if (is_same(&book->seen[at], structure, shape))
            return &book->seen[at];
        if (book->seen[at].requests < rarest->requests)
            rarest = &book->seen[at];
    }
    if (book->seen_count < CG_BOOK_TRAFFIC)
        rarest = &book->seen[book->seen_count++];
    *rarest = (cg_seen){ .structure = structure, .shape = *shape };
    return rarest;
}

void cg_cost_book_saw(cg_cost_book *book, const char *structure,
                      const cg_cost_shape *shape, double requests)
{
    const uint64_t hash = XXH3_64bits(structure, strlen(structure));

    pthread_mutex_lock(&book->mutex);
    entry_of(book, hash, shape)->requests += requests;
    pthread_mutex_unlock(&book->mutex);
}

static size_t nearest(const cg_cost_shape *cells, size_t count,
                      const cg_cost_shape *shape)
{
    double least = HUGE_VAL;
    size_t best = 0;

    for (size_t at = 0; at < count; at++) {
        const double distance = cg_cost_distance(&cells[at], shape);

        if (distance < least) {
            least = distance;
            best = at;
        }
    }
    return best;
}

void cg_cost_book_weights(cg_cost_book *book, const char *structure,
                          const cg_cost_shape *cells, size_t count,
                          double *weights)
{
    const uint64_t hash = XXH3_64bits(structure, strlen(structure));
    double all = 0;

    for (size_t at = 0; at < count; at++)
        weights[at] = 1;
    pthread_mutex_lock(&book->mutex);
    for (size_t at = 0; at < book->seen_count; at++)
        if (book->seen[at].structure == hash)
            all += book->seen[at].requests;
    for (size_t at = 0; at < book->seen_count && count > 0 && all > 0; at++)
        if (book->seen[at].structure == hash)
            weights[nearest(cells, count, &book->seen[at].shape)] +=
                CG_TRAFFIC_WEIGHT * book->seen[at].requests / all;
    pthread_mutex_unlock(&book->mutex);
}
