/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that are large, tiny, NaN or infinite. */
#include "config.h"

#include "tests/conformance/crash.h"
#include "tests/conformance/suite.h"

void group_values(suite *s)
{
    static const int32_t kinds[] = { CASE_SATURATING, CASE_LARGE,
                                     CASE_DENORMAL };
    uint64_t seed = s->options->seed * 1000;

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (int i = 0; i < 8; i++) {
            test_case c = case_of("values", seed++, case_lstm(i % 2 ? 19 : 8));
            c.batch = 5;
            c.steps = 9;
            c.input_size = 1 + 6 * (i % 3);
            c.values = kinds[k];
            c.state = i % 4 < 2 ? CASE_STATE_NONE : CASE_STATE_GIVEN;
            c.lengths = i % 3 ? CASE_FULL : CASE_RAGGED;
            c.ops[0].has_bias = i < 4;
            c.weight_scale = i == 7 ? 20.0f : 1.0f;
            suite_case(s, &c);
        }
    }
}

/* ---- A NaN or infinity stays in its row --------------------------------- */

/* The data of the same case without the spoiled value. */
static int init_clean(case_data *clean, const test_case *c)
{
    test_case ordinary = *c;

    ordinary.values = CASE_ORDINARY;
    return case_data_init(clean, &ordinary);
}

static int run_data(suite_plan *p, const case_data *data, results *to)
{
    execution with;
    int result;

    if (execution_init(&with, data, GUARD_MARGINS) != 0) {
        suite_fail(p, "no memory for the case");
        return -1;
    }
    result = suite_run(p, &with, to);
    execution_finish(&with);
    return result;
}

static void compare_runs(suite_plan *p, const case_data *spoiled,
                         const case_data *clean, expected *e)
{
    static const char *const names[] = { "y", "y_last", "h", "c" };
    results dirty = { NULL, { NULL } }, pure = { NULL, { NULL } };
    int tensor;
    double share;

    if (results_init(&dirty, spoiled) == 0 && results_init(&pure, clean) == 0 &&
        run_data(p, spoiled, &dirty) == 0 && run_data(p, clean, &pure) == 0) {
        share = suite_compare(p, e, &dirty, NULL);
        tensor = results_differ(&dirty, &pure, spoiled->special_row);
        if (share != -1 && tensor >= 0)
            suite_fail(p,
                       "row %lld has a NaN or infinity, and other rows of "
                       "%s are not bit-identical to a run without it",
                       (long long)spoiled->special_row,
                       names[spoiled->tensors[tensor].kind]);
        else if (share != -1)
            report_passed(p->s->report, spoiled->c.group, p->variant.name,
                          share > 0 ? share : 0);
    }
    results_finish(&dirty);
    results_finish(&pure);
}

static void isolation(suite *s, const test_case *c)
{
    char description[1000];
    case_data spoiled, clean;
    suite_offer offer;
    suite_plan p;
    expected e;

    if (!suite_wants(s, c) || case_data_init(&spoiled, c) != 0)
        return;
    case_describe(c, description, sizeof description);
    suite_ask(s, &spoiled, &offer);
    if (init_clean(&clean, c) == 0) {
        if (expected_init(&e, &spoiled) == 0) {
            for (uint32_t i = 0; i < offer.count; i++) {
                crash_context(description, offer.variants[i].name);
                if (suite_plan_init(&p, s, &spoiled, &offer.variants[i], NULL,
                                    c->batch, c->steps) != 0)
                    continue;
                compare_runs(&p, &spoiled, &clean, &e);
                suite_plan_finish(&p);
            }
            expected_finish(&e);
        }
        case_data_finish(&clean);
    }
    case_data_finish(&spoiled);
}

void group_nonfinite(suite *s)
{
    static const int64_t batches[] = { 1, 2, 5, 8, 17, 33 };
    uint64_t seed = s->options->seed * 1000;

    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        for (int32_t v = CASE_NAN_IN_A_ROW; v <= CASE_INFINITY_IN_A_ROW; v++) {
            test_case c = case_of("nonfinite", seed++, case_lstm(12));
            c.batch = batches[i];
            c.steps = 6;
            c.input_size = 7;
            c.values = v;
            c.lengths = i % 2 ? CASE_RAGGED : CASE_FULL;
            isolation(s, &c);
            c.ops[0].directions = 2;
            isolation(s, &c);
            c = case_of("nonfinite", seed++, case_dense(9, CELLGATE_RELU));
            c.batch = batches[i];
            c.values = v;
            isolation(s, &c);
        }
    }
}
