/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that are routed by cost allocate nothing once they have been seen,
 * also when windows of lessons are full, and in whatever regime they come: of
 * 31 requests one looks at what was measured.
 */
#include "config.h"

#include "tests/unit/cost_rig.h"
#include "tests/unit/heap_watch.h"

#define CONFIG(regime)                                                         \
    "[cellgate]\nunlisted = no\n[calibration]\nstore = /dev/null/none\n"       \
    "[scheduler]\nsplit = no\nmargin = 100\nregime = " regime                  \
    "\n[device cpu]\nplugin = openmp\nthreads = 1\n"                           \
    "[device card]\nplugin = remote\n"

/* Of one row. */
static void put(cellgate_session *session, const char *device,
                const char *variant, cg_regime regime, double seconds)
{
    const cg_cost_point point = { { 1, 5, 1 },
                                  { seconds, seconds, seconds, 0.01, 31 },
                                  0 };
    const cg_segment *segment =
        cost_rig_segment(session, device, variant, 0, 2);
    cg_cost_candidate candidate;

    assert_int_equal(cg_segment_candidate(segment, &candidate, NULL),
                     CELLGATE_OK);
    (void)cg_cost_book_put(session->book, &candidate, segment->structure,
                           regime, &point, NULL);
}

static void allocates_nothing(const char *config, cg_regime regime)
{
    cellgate_runtime *runtime = rig_runtime(config);
    cellgate_model *model = cost_rig_model();
    cellgate_session *session = rig_session(runtime, model, NULL, NULL);
    cellgate_service service = { .struct_size = sizeof service };
    uint64_t random = 1;
    rig_request request;

    put(session, "cpu", "t1", regime, 1e-5);
    put(session, "card", "any", regime, 1);
    rig_request_init(&request, session, model, 1, 5, 0, &random);
    /* What it costs is learned at first. */
    for (unsigned at = 0; at < 6 * CG_LEARN_WINDOW; at++)
        rig_run(session, &request, NULL);
    heap_watch_begin(0);
    for (unsigned at = 0; at < 6 * CG_LEARN_WINDOW; at++)
        rig_run(session, &request, NULL);
    (void)heap_watch_end();
    assert_int_equal(heap_watch_count(), 0);
    assert_int_equal(cellgate_session_service(session, &service), CELLGATE_OK);
    assert_int_equal(service.requests, 12 * CG_LEARN_WINDOW);
    rig_request_finish(&request);
    cellgate_session_destroy(session);
    cellgate_model_destroy(model);
    cellgate_runtime_destroy(runtime);
}

static void back_to_back(void **state)
{
    (void)state;
    allocates_nothing(CONFIG("back-to-back"), CG_BACK_TO_BACK);
}

static void spaced(void **state)
{
    (void)state;
    allocates_nothing(CONFIG("spaced"), CG_SPACED);
}

static void as_they_come(void **state)
{
    (void)state;
    allocates_nothing(CONFIG("auto"), CG_BACK_TO_BACK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(back_to_back),
        cmocka_unit_test(spaced),
        cmocka_unit_test(as_they_come),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
