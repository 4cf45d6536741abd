/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes beyond the end: every array, weights too, ends where a page
 * begins that can't be touched. A violation crashes; crash.c then names the
 * case.
 */
#include "config.h"

#include "tests/conformance/crash.h"
#include "tests/conformance/suite.h"

#define MAX_ARRAYS (5 * 2 * CASE_MAX_OPS)

/* Weights, each array moved in front of a page of its own. */
typedef struct moved_weights {
    int count;
    guarded arrays[MAX_ARRAYS];
} moved_weights;

static int move(moved_weights *to, const float **weights, int64_t count)
{
    guarded *g = &to->arrays[to->count];

    if (*weights == NULL)
        return 0;
    if (guarded_init(g, (size_t)count, GUARD_PAGE) != 0)
        return -1;
    to->count++;
    memcpy(g->data, *weights, (size_t)count * sizeof(float));
    *weights = g->data;
    return guarded_seal(g);
}

static int move_lstm(moved_weights *to, const case_op *op, int64_t in,
                     cellgate_lstm *lstm)
{
    int64_t h = op->size, r = case_state_width(op);

    for (int d = 0; d < op->directions; d++) {
        cellgate_lstm_weights *w = &lstm->weights[d];
        if (move(to, &w->kernel, in * 4 * h) != 0 ||
            move(to, &w->recurrent_kernel, r * 4 * h) != 0 ||
            move(to, &w->bias, 4 * h) != 0 ||
            move(to, &w->peephole, 3 * h) != 0 ||
            move(to, &w->projection, h * r) != 0)
            return -1;
    }
    return 0;
}

static int move_weights(moved_weights *to, case_data *data)
{
    for (int32_t i = 0; i < data->c.op_count; i++) {
        int64_t in = case_op_input(&data->c, i), size = data->c.ops[i].size;
        case_op_storage *op = &data->ops[i];
        int result = 0;
        if (data->c.ops[i].kind == CELLGATE_OP_LSTM)
            result = move_lstm(to, &data->c.ops[i], in, &op->lstm);
        else if (data->c.ops[i].kind == CELLGATE_OP_DENSE)
            result = move(to, &op->dense.kernel, in * size) != 0 ||
                     move(to, &op->dense.bias, size) != 0;
        if (result != 0)
            return -1;
    }
    return 0;
}

static int weights_intact(const moved_weights *w)
{
    int intact = 1;

    for (int i = 0; i < w->count; i++)
        intact = intact && guarded_is_sealed(&w->arrays[i]);
    return intact;
}

static void try_variant(suite *s, const case_data *data,
                        const cellgate_variant *variant, expected *e,
                        const moved_weights *weights)
{
    results got = { NULL, { NULL } };
    execution with;
    suite_plan p;
    double share;

    if (suite_plan_init(&p, s, data, variant, NULL, data->c.batch,
                        data->c.steps) != 0)
        return;
    if (execution_init(&with, data, GUARD_PAGE) == 0) {
        if (results_init(&got, data) == 0 && suite_run(&p, &with, &got) == 0) {
            share = suite_compare(&p, e, &got, NULL);
            if (share != -1 && !weights_intact(weights))
                suite_fail(&p, "weights of the host were overwritten");
            else if (share != -1)
                report_passed(s->report, data->c.group, variant->name, share);
        }
        results_finish(&got);
        execution_finish(&with);
    }
    suite_plan_finish(&p);
}

static void bounds(suite *s, const test_case *c)
{
    static moved_weights weights;
    char description[1000];
    suite_offer offer;
    case_data data;
    expected e;

    if (!suite_wants(s, c) || case_data_init(&data, c) != 0)
        return;
    memset(&weights, 0, sizeof weights);
    case_describe(c, description, sizeof description);
    suite_ask(s, &data, &offer);
    if (move_weights(&weights, &data) == 0 && expected_init(&e, &data) == 0) {
        for (uint32_t i = 0; i < offer.count; i++) {
            crash_context(description, offer.variants[i].name);
            try_variant(s, &data, &offer.variants[i], &e, &weights);
        }
        expected_finish(&e);
    }
    for (int i = 0; i < weights.count; i++)
        guarded_finish(&weights.arrays[i]);
    case_data_finish(&data);
}

void group_bounds(suite *s)
{
    static const int64_t hidden[] = { 1, 3, 5, 7, 8, 9, 15, 17, 31, 33, 100 };
    static const int64_t input[] = { 1, 2, 3, 5, 7, 9, 13, 16, 17, 33 };
    uint64_t seed = s->options->seed * 1000;

    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        for (size_t k = 0; k < sizeof input / sizeof input[0]; k++) {
            test_case c = case_of("bounds", seed++, case_lstm(hidden[i]));
            c.batch = 1 + (int64_t)(i * 5 + k * 3) % 19;
            c.steps = 1 + (int64_t)(i + k) % 4;
            c.input_size = input[k];
            c.x_layout = (int32_t)((i + k) % CASE_LAYOUT_COUNT);
            c.y_layout = (int32_t)((i + 2 * k) % CASE_LAYOUT_COUNT);
            c.lengths = k % 2 ? CASE_FULL : CASE_WITH_ZEROS;
            c.state = k % 3 ? CASE_STATE_GIVEN : CASE_STATE_NONE;
            if (k % 4 == 3) { /* beyond the minimum */
                c.ops[0].directions = 2;
                c.ops[0].has_peepholes = 1;
                c.ops[0].projection = i % 2 ? 3 : 0;
            } else if (k % 4 == 2) {
                c.op_count = 2;
                c.ops[0].outputs = CELLGATE_LSTM_LAST;
                c.ops[1] = case_dense(1 + (int64_t)i, CELLGATE_SIGMOID);
            }
            bounds(s, &c);
        }
    }
}
