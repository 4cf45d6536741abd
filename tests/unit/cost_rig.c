/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/cost_rig.h"

/* LSTM and Dense: the card and the CPU both take the two as one chain. */
cellgate_model *cost_rig_model(void)
{
    rig_model rig;
    rig_lstm lstm;
    int32_t x;

    rig_model_begin(&rig, 4);
    x = rig_input(&rig, CG_UNKNOWN, 4);
    rig_lstm_init(&lstm, 4, 6);
    lstm.mask = rig_mask(&rig, 0);
    rig_add_lstm(&rig, x, &lstm);
    rig_output(&rig, rig_dense(&rig, lstm.last, 6, 3, CELLGATE_LINEAR));
    return rig_model_end(&rig);
}

/* An engine of the session for a device, open. */
static const cg_engine *engine_of(cellgate_session *session, const char *name)
{
    for (size_t at = 0; at < session->candidate_count; at++) {
        cg_placement *placement;

        if (strcmp(cg_candidate_name(&session->candidates[at]), name) != 0)
            continue;
        assert_int_equal(cg_session_placement(session, at, &placement, NULL),
                         CELLGATE_OK);
        return session->candidates[at].engine;
    }
    fail_msg("the session has no device %s", name);
    return NULL;
}

/* The session's segment of nodes [first, first + count). */
cg_segment *cost_rig_segment(cellgate_session *session, const char *device,
                             const char *variant, size_t first, size_t count)
{
    const size_t nodes[2] = { first, first + 1 };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_segment *segment = NULL;

    if (cg_segment_pool_get(&session->pool, engine_of(session, device), nodes,
                            count, NULL, variant, &segment,
                            &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return segment;
}

void cost_rig_put_at(cellgate_session *session, const cg_segment *segment,
                     int64_t batch, int64_t steps, double seconds)
{
    const cg_cost_point point = { { batch, segment->rows ? 1 : steps, 1 },
                                  { .median = seconds,
                                    .low = seconds,
                                    .high = seconds,
                                    .error = 0.01,
                                    .count = 31 },
                                  0 };
    cg_cost_candidate candidate;

    assert_int_equal(cg_segment_candidate(segment, &candidate, NULL),
                     CELLGATE_OK);
    (void)cg_cost_book_put(session->book, &candidate, segment->structure,
                           CG_BACK_TO_BACK, &point, NULL);
}

void cost_rig_put(cellgate_session *session, const cg_segment *segment,
                  int64_t batch, double seconds)
{
    cost_rig_put_at(session, segment, batch, 5, seconds);
}

/* The whole chain costs so much for 1 row and for 64. */
void cost_rig_set(cellgate_session *session, const char *device,
                  const char *variant, double one, double many)
{
    const cg_segment *segment =
        cost_rig_segment(session, device, variant, 0, 2);

    cost_rig_put(session, segment, 1, one);
    cost_rig_put(session, segment, 64, many);
}
