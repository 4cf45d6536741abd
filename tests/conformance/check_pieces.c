/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence in pieces, with the state carried, equals the whole. */
#include "config.h"

#include "tests/conformance/crash.h"
#include "tests/conformance/suite.h"
#include "tests/oracle/random.h"

#define MAX_PIECES 5

/* Cuts 0 = cut[0] <= ... <= cut[pieces] = steps; pieces may be empty. */
static int choose_cuts(const test_case *c, int64_t *cuts)
{
    random_source random = random_from(c->seed, 5);
    int pieces = (int)random_integer(&random, 2, MAX_PIECES);

    cuts[0] = 0;
    for (int i = 1; i < pieces; i++)
        cuts[i] = random_integer(&random, cuts[i - 1], c->steps);
    cuts[pieces] = c->steps;
    return pieces;
}

/* Puts a piece's results where they belong in the whole's. */
static void place(const results *piece, int64_t from, results *whole)
{
    for (int32_t i = 0; i < whole->data->tensor_count; i++) {
        const case_tensor *to = &whole->data->tensors[i];
        const case_tensor *part = &piece->data->tensors[i];
        for (int64_t r = 0; r < to->outer * to->batch && part->inner > 0; r++) {
            int64_t at = to->kind == CASE_Y ? from * to->features : 0;
            memcpy(whole->values[i] + r * to->inner + at,
                   piece->values[i] + r * part->inner,
                   (size_t)part->inner * sizeof(float));
        }
    }
}

/* The final states among the results so far, by op. */
static void final_states(const results *r, float **h, float **c)
{
    for (int32_t i = 0; i < r->data->tensor_count; i++) {
        const case_tensor *t = &r->data->tensors[i];
        if (t->kind == CASE_H)
            h[t->op] = r->values[i];
        else if (t->kind == CASE_C)
            c[t->op] = r->values[i];
    }
}

static int run_piece(suite_plan *p, const case_data *piece, results *got)
{
    suite_plan own = { 0 };
    execution with;
    int result = -1;

    /* A plan for exact steps is good for one length only. */
    if (p->variant.exact_steps &&
        suite_plan_init(&own, p->s, piece, &p->variant, p->weights,
                        piece->c.batch, piece->c.steps) != 0)
        return -1;
    if (execution_init(&with, piece, GUARD_MARGINS) == 0) {
        result = suite_run(own.s != NULL ? &own : p, &with, got);
        execution_finish(&with);
    }
    suite_plan_finish(&own);
    return result;
}

static int run_pieces(suite_plan *p, const case_data *data, results *whole)
{
    int64_t cuts[MAX_PIECES + 1];
    int pieces = choose_cuts(&data->c, cuts);
    int backward = data->c.ops[0].reverse;
    float *h[CASE_MAX_OPS] = { NULL }, *c[CASE_MAX_OPS] = { NULL };

    for (int n = 0; n < pieces; n++) {
        int k = backward ? pieces - 1 - n : n, result = -1;
        results got = { NULL, { NULL } };
        case_data piece;
        if (case_data_slice(&piece, data, cuts[k], cuts[k + 1], h, c) != 0)
            return -1;
        if (results_init(&got, &piece) == 0)
            result = run_piece(p, &piece, &got);
        if (result == 0)
            place(&got, cuts[k], whole);
        results_finish(&got);
        case_data_finish(&piece);
        if (result != 0)
            return -1;
        final_states(whole, h, c);
    }
    return 0;
}

static void try_variant(suite *s, const case_data *data,
                        const cellgate_variant *variant, expected *e)
{
    results whole = { NULL, { NULL } };
    suite_plan p;
    double share;

    if (suite_plan_init(&p, s, data, variant, NULL, data->c.batch,
                        data->c.steps) != 0)
        return;
    if (results_init(&whole, data) == 0 && run_pieces(&p, data, &whole) == 0) {
        share = suite_compare(&p, e, &whole, "in pieces");
        if (share != -1)
            report_passed(s->report, data->c.group, variant->name, share);
    }
    results_finish(&whole);
    suite_plan_finish(&p);
}

static void pieces(suite *s, const test_case *c)
{
    char description[1000];
    suite_offer offer;
    case_data data;
    expected e;

    if (!suite_wants(s, c) || case_data_init(&data, c) != 0)
        return;
    case_describe(c, description, sizeof description);
    suite_ask(s, &data, &offer);
    if (expected_init(&e, &data) == 0) {
        for (uint32_t i = 0; i < offer.count; i++) {
            crash_context(description, offer.variants[i].name);
            try_variant(s, &data, &offer.variants[i], &e);
        }
        expected_finish(&e);
    }
    case_data_finish(&data);
}

void group_pieces(suite *s)
{
    const uint32_t outputs =
        CELLGATE_LSTM_SEQUENCE | CELLGATE_LSTM_H | CELLGATE_LSTM_C;
    int count = s->options->full ? 300 : 60;

    for (int i = 0; i < count; i++) {
        test_case c = case_of("pieces", s->options->seed * 1000 + (uint64_t)i,
                              case_lstm(5 + i % 13));
        c.batch = 1 + i % 9;
        c.steps = 10 + i % 17;
        c.lengths = i % 3 == 0 ? CASE_FULL : CASE_WITH_ZEROS;
        c.state = i % 2 ? CASE_STATE_GIVEN : CASE_STATE_NONE;
        c.ops[0].outputs = outputs;
        if (i % 4 == 1)
            c.ops[0].reverse = 1;
        if (i % 4 == 2) { /* a stack, each layer with a state */
            c.op_count = 2;
            c.ops[1] = case_lstm(6);
            c.ops[1].outputs = outputs;
        }
        if (i % 4 == 3) {
            c.ops[0].projection = 3;
            c.ops[0].has_peepholes = 1;
        }
        pieces(s, &c);
    }
}
