/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/generate/generator.h"
#include "runtime/given.h"

static cellgate_status no_memory(int64_t batch, int64_t results,
                                 int64_t longest, cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory for %lld times %lld results of up to %lld "
                         "ids",
                         (long long)batch, (long long)results,
                         (long long)longest);
}

cellgate_status cg_generation_create(int64_t batch, int64_t results,
                                     int64_t longest,
                                     cellgate_generation **generation,
                                     cellgate_error *error)
{
    cellgate_generation *made;
    int64_t count, ids;

    if (__builtin_mul_overflow(batch, results, &count) ||
        __builtin_mul_overflow(count, longest, &ids) || ids > PTRDIFF_MAX / 8 ||
        count > PTRDIFF_MAX / 64)
        return no_memory(batch, results, longest, error);
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return no_memory(batch, results, longest, error);
    made->batch = batch;
    made->results = results;
    made->longest = longest;
    made->sequences = calloc((size_t)count, sizeof *made->sequences);
    made->counts = calloc((size_t)batch, sizeof *made->counts);
    made->ids = calloc((size_t)ids, sizeof *made->ids);
    if (made->sequences == NULL || made->counts == NULL || made->ids == NULL) {
        cellgate_generation_destroy(made);
        return no_memory(batch, results, longest, error);
    }
    for (int64_t at = 0; at < count; at++)
        made->sequences[at].ids = made->ids + at * longest;
    *generation = made;
    return CELLGATE_OK;
}

void cellgate_generation_destroy(cellgate_generation *generation)
{
    if (generation == NULL)
        return;
    free(generation->sequences);
    free(generation->counts);
    free(generation->ids);
    free(generation);
}

int64_t cellgate_generation_rows(const cellgate_generation *generation)
{
    return generation->batch;
}

int64_t cellgate_generation_steps(const cellgate_generation *generation)
{
    return generation->steps;
}

cellgate_status cellgate_generation_get(const cellgate_generation *generation,
                                        int64_t row, int64_t result,
                                        cellgate_generated *generated)
{
    cellgate_generated filled = { .struct_size = sizeof filled };
    const cg_sequence *sequence;

    if (!cg_given_fillable(generated))
        return CELLGATE_INVALID;
    if (row < 0 || row >= generation->batch || result < 0 ||
        result >= generation->counts[row])
        return CELLGATE_END;
    sequence = &generation->sequences[row * generation->results + result];
    filled.ids = sequence->ids;
    filled.length = sequence->length;
    filled.score = sequence->score;
    filled.value = sequence->value;
    filled.stopped = sequence->stopped;
    cellgate_struct_copy(generated, &filled);
    return CELLGATE_OK;
}
