/* SPDX-License-Identifier: Apache-2.0 */
/* One plan for many shapes: right within its capacity, INVALID outside. */
#include "config.h"

#include "tests/conformance/crash.h"
#include "tests/conformance/suite.h"
#include "tests/oracle/random.h"

/* Another shape of the same case: the same weights, other inputs. */
static test_case reshaped(const test_case *c, int64_t batch, int64_t steps,
                          uint64_t number)
{
    test_case other = *c;

    other.batch = batch;
    other.steps = steps;
    other.lengths = (int32_t)(number % CASE_ALL_ZERO);
    other.state = (int32_t)(number / 2 % 4);
    other.x_layout = (int32_t)(number / 3 % CASE_LAYOUT_COUNT);
    return other;
}

/* Runs the plan at one shape within its capacity and compares. */
static int run_shape(suite_plan *p, const test_case *c, const char *note,
                     results *keep)
{
    results got = { NULL, { NULL } };
    execution with;
    case_data data;
    expected e;
    double share = -1;

    if (case_data_init(&data, c) != 0)
        return -1;
    if (execution_init(&with, &data, GUARD_MARGINS) == 0) {
        if (results_init(&got, &data) == 0 && suite_run(p, &with, &got) == 0 &&
            expected_init(&e, &data) == 0) {
            share = suite_compare(p, &e, &got, note);
            expected_finish(&e);
        }
        execution_finish(&with);
    }
    if (keep != NULL && share != -1)
        for (int32_t i = 0; i < data.tensor_count; i++)
            memcpy(keep->values[i], got.values[i],
                   (size_t)(data.tensors[i].outer * data.tensors[i].batch *
                            data.tensors[i].inner) *
                       sizeof(float));
    results_finish(&got);
    case_data_finish(&data);
    return share == -1 ? -1 : 0;
}

static int reuse(suite_plan *p, const test_case *c)
{
    random_source random = random_from(c->seed, 6);
    int count = p->s->options->full ? 60 : 20;

    for (int i = 0; i < count; i++) {
        int64_t batch = p->variant.exact_batch
                            ? c->batch
                            : random_integer(&random, 1, c->batch);
        int64_t steps = p->variant.exact_steps
                            ? c->steps
                            : random_integer(&random, 0, c->steps);
        test_case other = reshaped(c, batch, steps, (uint64_t)i);
        char note[120];
        (void)snprintf(note, sizeof note,
                       "the plan at %lld rows, %lld steps, run number %d",
                       (long long)batch, (long long)steps, i);
        if (run_shape(p, &other, note, NULL) != 0)
            return -1;
    }
    return 0;
}

/* A run that the plan must refuse; its inputs must stay intact. */
static int refused(suite_plan *p, const test_case *c, int64_t batch,
                   int64_t steps)
{
    test_case other = reshaped(c, batch, steps, 0);
    cellgate_error error = CELLGATE_ERROR_INIT;
    execution with;
    case_data data;
    int intact, result = -1;
    cellgate_status status;

    if (case_data_init(&data, &other) != 0)
        return -1;
    if (execution_init(&with, &data, GUARD_MARGINS) == 0) {
        status = p->s->plugin.table.run(p->plan, &with.run, &error);
        intact = execution_inputs_intact(&with);
        if (status != CELLGATE_INVALID)
            suite_fail(p,
                       "a run of %lld rows and %lld steps gave status %d "
                       "and not INVALID (the plan is for %s%lld, %s%lld)",
                       (long long)batch, (long long)steps, (int)status,
                       p->variant.exact_batch ? "exactly " : "up to ",
                       (long long)c->batch,
                       p->variant.exact_steps ? "exactly " : "up to ",
                       (long long)c->steps);
        else if (!intact)
            suite_fail(p, "a refused run overwrote an input");
        else if (error.text[0] == '\0')
            suite_fail(p, "a refused run left no text in the error");
        else
            result = 0;
        execution_finish(&with);
    }
    case_data_finish(&data);
    return result;
}

static int capacity(suite_plan *p, const test_case *c)
{
    if (refused(p, c, c->batch + 1, c->steps) != 0 ||
        refused(p, c, c->batch, c->steps + 1) != 0)
        return -1;
    if (p->variant.exact_batch && refused(p, c, c->batch - 1, c->steps) != 0)
        return -1;
    if (p->variant.exact_steps && refused(p, c, c->batch, c->steps - 1) != 0)
        return -1;
    return run_shape(p, c, "after refused runs", NULL);
}

/* Big, then small: the same bits as the small run on a fresh plan. */
static int stale(suite_plan *p, const test_case *c)
{
    int64_t batch = p->variant.exact_batch ? c->batch : c->batch / 2;
    int64_t steps = p->variant.exact_steps ? c->steps : c->steps / 2;
    test_case big = reshaped(c, c->batch, c->steps, 4);
    test_case small = reshaped(c, batch, steps, 0);
    results after = { NULL, { NULL } }, fresh = { NULL, { NULL } };
    suite_plan other = { 0 };
    case_data data;
    int result = -1;

    big.values = CASE_NAN_IN_A_ROW;
    if (case_data_init(&data, &small) != 0)
        return -1;
    if (results_init(&after, &data) == 0 && results_init(&fresh, &data) == 0 &&
        suite_plan_init(&other, p->s, p->data, &p->variant, p->weights,
                        c->batch, c->steps) == 0 &&
        run_shape(p, &big, "with a NaN", NULL) == 0 &&
        run_shape(p, &small, "after a run with a NaN", &after) == 0 &&
        run_shape(&other, &small, "on a fresh plan", &fresh) == 0) {
        if (results_differ(&after, &fresh, -1) >= 0)
            suite_fail(p, "a run's results depend on the run before it");
        else
            result = 0;
    }
    suite_plan_finish(&other);
    results_finish(&after);
    results_finish(&fresh);
    case_data_finish(&data);
    return result;
}

static void try_plan(suite *s, const test_case *c)
{
    static int (*const checks[])(
        suite_plan *, const test_case *) = { reuse, capacity, stale };
    char description[1000];
    suite_offer offer;
    case_data data;
    suite_plan p;

    if (!suite_wants(s, c) || case_data_init(&data, c) != 0)
        return;
    case_describe(c, description, sizeof description);
    suite_ask(s, &data, &offer);
    for (uint32_t i = 0; i < offer.count; i++) {
        crash_context(description, offer.variants[i].name);
        if (suite_plan_init(&p, s, &data, &offer.variants[i], NULL, c->batch,
                            c->steps) != 0)
            continue;
        for (size_t k = 0; k < sizeof checks / sizeof checks[0]; k++)
            if (checks[k](&p, c) == 0)
                report_passed(s->report, c->group, p.variant.name, 0);
        suite_plan_finish(&p);
    }
    case_data_finish(&data);
}

void group_plans(suite *s)
{
    uint64_t seed = s->options->seed * 1000;

    for (int i = 0; i < 4; i++) {
        test_case c = case_of("plans", seed++, case_lstm(i == 0 ? 7 : 20));
        c.batch = i == 1 ? 33 : 10;
        c.steps = 12;
        if (i >= 2)
            c.ops[0].directions = 2;
        if (i == 3) {
            c.op_count = 2;
            c.ops[0].outputs = CELLGATE_LSTM_SEQUENCE;
            c.ops[1] = case_lstm(5);
        }
        try_plan(s, &c);
    }
}
