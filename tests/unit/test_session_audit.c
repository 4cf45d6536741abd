/* SPDX-License-Identifier: Apache-2.0 */
/* cellgate_audit(): which shapes, in which order, and what is told of them. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/cost_rig.h"

#define MOST 64

static const char devices[] =
    "[cellgate]\nunlisted = no\n[calibration]\nstore = /dev/null/none\n[device "
    "cpu]\nplugin = openmp\nthreads = 1\n"
    "[device card]\nplugin = remote\nsimulate = yes\nvariants = any\n"
    "launch = 0.003\n";

typedef struct set_up {
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_session *session;
    cellgate_audit_options options;
    cellgate_audit_result result;
    cellgate_error error;
    cellgate_audit_cell cells[MOST]; /* texts are gone */
    char choices[MOST][32], best[MOST][32];
    size_t count;
    int32_t stop_after; /* calls of progress; 0: never */
    double shown;
} set_up;

static void keep(void *context, const cellgate_audit_cell *cell)
{
    set_up *with = context;

    assert_true(with->count < MOST);
    assert_int_equal(cell->struct_size, sizeof *cell);
    snprintf(with->choices[with->count], 32, "%s", cell->choice);
    snprintf(with->best[with->count], 32, "%s", cell->best);
    with->cells[with->count++] = *cell;
}

static int32_t show(void *context, double done)
{
    set_up *with = context;

    assert_true(done >= with->shown && done <= 1);
    with->shown = done;
    return with->stop_after > 0 && --with->stop_after == 0;
}

static void begin(set_up *with)
{
    memset(with, 0, sizeof *with);
    with->error = (cellgate_error)CELLGATE_ERROR_INIT;
    with->runtime = rig_runtime(devices);
    with->model = cost_rig_model();
    with->session = rig_session(with->runtime, with->model, NULL, NULL);
    with->options =
        (cellgate_audit_options){ .struct_size = sizeof with->options,
                                  .seconds = 30,
                                  .batch_most = 4,
                                  .steps_least = 5,
                                  .steps_most = 6,
                                  .cell = keep,
                                  .cell_context = with,
                                  .progress = show,
                                  .progress_context = with };
    with->result.struct_size = sizeof with->result;
}

static void end(set_up *with)
{
    cellgate_session_destroy(with->session);
    cellgate_model_destroy(with->model);
    cellgate_runtime_destroy(with->runtime);
}

static cellgate_status audit(set_up *with)
{
    with->count = 0;
    with->shown = 0;
    return cellgate_audit(with->session, &with->options, &with->result,
                          &with->error);
}

/* Nothing is measured: the first device takes all, and the card is no better.
 */
static void test_a_grid(void **state)
{
    set_up with;
    bool seen[5][7] = { { false } };

    (void)state;
    begin(&with);
    assert_int_equal(audit(&with), CELLGATE_OK);
    assert_int_equal(with.result.cells, 6);
    assert_int_equal(with.count, 6);
    for (size_t at = 0; at < with.count; at++) {
        const cellgate_audit_cell *cell = &with.cells[at];

        assert_in_range(cell->batch, 1, 4);
        assert_in_range(cell->steps, 5, 6);
        assert_false(seen[cell->batch][cell->steps]);
        seen[cell->batch][cell->steps] = true;
        assert_string_equal(with.choices[at], "cpu t1");
        assert_string_equal(with.best[at], "cpu t1");
        assert_int_equal(cell->verdict, CELLGATE_AUDIT_RIGHT);
        assert_int_equal(cell->estimate, CELLGATE_ESTIMATE_NONE);
        assert_int_equal(cell->rivals, 1);
        assert_int_equal(cell->far, 1);
        assert_false(cell->crossover);
        assert_true(cell->seconds > 0 && cell->seconds < 3e-3);
    }
    assert_int_equal(with.result.right, 6);
    assert_int_equal(with.result.wrong + with.result.undecided, 0);
    assert_true(with.result.regret == 0 && with.result.worst == 1);
    end(&with);
}

/* Costs that make the card the better one from 4 rows on, which is false but
   not looked at; and from 1 on. */
static void test_false_costs(void **state)
{
    set_up with;

    (void)state;
    begin(&with);
    cost_rig_set(with.session, "cpu", "t1", 1e-3, 64e-3);
    cost_rig_set(with.session, "card", "any", 3e-3, 3e-3);
    with.options.steps_most = 5;
    with.options.batch_most = 2;
    assert_int_equal(audit(&with), CELLGATE_OK);
    assert_int_equal(with.result.right, 2);
    assert_int_equal(with.result.crossover_right, 1);
    assert_int_equal(with.result.exact_right, 1);
    cost_rig_set(with.session, "card", "any", 1e-6, 1e-6);
    assert_int_equal(audit(&with), CELLGATE_OK);
    assert_int_equal(with.result.wrong, 2);
    assert_string_equal(with.choices[0], "card any");
    assert_string_equal(with.best[0], "cpu t1");
    assert_true(with.result.worst > 3);
    assert_true(with.cells[0].ratio_low > 1.05);
    end(&with);
}

/* A draw is of the grid, without repetition, and the seed decides it. */
static void test_a_draw(void **state)
{
    set_up with;
    int64_t batches[3], steps[3];

    (void)state;
    begin(&with);
    with.options.cells = 3;
    with.options.batch_most = 1 << 20;
    with.options.seconds = 1e-9; /* none is reached: only the draw counts */
    assert_int_equal(audit(&with), CELLGATE_OK);
    assert_int_equal(with.result.cells, 3);
    assert_int_equal(with.result.unreached, 3);
    with.options.batch_most = 64;
    with.options.seconds = 30;
    with.options.seed = 5;
    assert_int_equal(audit(&with), CELLGATE_OK);
    for (size_t at = 0; at < 3; at++) {
        batches[at] = with.cells[at].batch;
        steps[at] = with.cells[at].steps;
        for (size_t other = 0; other < at; other++)
            assert_true(batches[at] != batches[other] ||
                        steps[at] != steps[other]);
    }
    assert_int_equal(audit(&with), CELLGATE_OK);
    for (size_t at = 0; at < 3; at++) {
        assert_int_equal(with.cells[at].batch, batches[at]);
        assert_int_equal(with.cells[at].steps, steps[at]);
    }
    end(&with);
}

/* Asked before each shape and each round. */
static void test_stopped(void **state)
{
    set_up with;

    (void)state;
    begin(&with);
    with.stop_after = 1;
    assert_int_equal(audit(&with), CELLGATE_OK);
    assert_int_equal(with.result.unreached, 6);
    assert_int_equal(with.count, 0);
    end(&with);
}

static void test_wrong_use(void **state)
{
    set_up with;

    (void)state;
    begin(&with);
    with.options.batch_least = 9;
    assert_int_equal(audit(&with), CELLGATE_INVALID);
    assert_non_null(strstr(with.error.text, "batch 9 to 4"));
    with.options.batch_least = 0;
    with.options.struct_size = 0;
    assert_int_equal(audit(&with), CELLGATE_INVALID);
    with.result.struct_size = 0;
    assert_int_equal(audit(&with), CELLGATE_INVALID);
    assert_int_equal(cellgate_audit(NULL, NULL, &with.result, NULL),
                     CELLGATE_INVALID);
    assert_string_equal(cellgate_audit_verdict_name(CELLGATE_AUDIT_WRONG),
                        "wrong");
    assert_string_equal(cellgate_audit_verdict_name(99), "undecided");
    end(&with);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_grid),    cmocka_unit_test(test_false_costs),
        cmocka_unit_test(test_a_draw),    cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_wrong_use),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
