/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes that are audited: a grid, or some of it drawn at random. */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/audit.h"
#include "runtime/session/explain_shapes.h"
#include "runtime/session/extents.h"

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next(uint64_t *seed)
{
    uint64_t z = (*seed += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Fisher and Yates: the first cells are a draw without repetition, and an audit
   that ends early has seen a random part. */
static void shuffle(cg_audit *audit)
{
    uint64_t seed = audit->options.seed;

    for (size_t at = 0; at + 1 < audit->count; at++) {
        const size_t other = at + next(&seed) % (audit->count - at);
        const cg_audit_cell kept = audit->cells[at];

        audit->cells[at] = audit->cells[other];
        audit->cells[other] = kept;
    }
}

cellgate_status cg_audit_list_cells(cg_audit *audit, cellgate_error *error)
{
    const cellgate_audit_options *options = &audit->options;
    int64_t batches[CG_AXIS_MOST], steps[CG_AXIS_MOST] = { 0 };
    const size_t rows =
        cg_extents_axis(options->batch_least, options->batch_most, batches);
    size_t columns = 1;

    if (cg_explain_free_steps(audit->session->model))
        columns =
            cg_extents_axis(options->steps_least, options->steps_most, steps);
    audit->cells = calloc(rows * columns, sizeof *audit->cells);
    if (audit->cells == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for an audit");
    audit->count = rows * columns;
    for (size_t at = 0; at < audit->count; at++) {
        audit->cells[at].told.batch = batches[at / columns];
        audit->cells[at].asked = steps[at % columns];
    }
    shuffle(audit);
    if (options->cells > 0 && options->cells < audit->count)
        audit->count = options->cells;
    return CELLGATE_OK;
}
