/* SPDX-License-Identifier: Apache-2.0 */
/* Ops other than LSTM alone, and chains. */
#include "config.h"

#include "tests/conformance/suite.h"
#include "tests/oracle/random.h"

static case_op softmax(void)
{
    return (case_op){ .kind = CELLGATE_OP_SOFTMAX };
}

static case_op embedding(int64_t vocabulary, int64_t size)
{
    return (case_op){ .kind = CELLGATE_OP_EMBEDDING,
                      .size = size,
                      .vocabulary = vocabulary };
}

static case_op lstm_giving(int64_t hidden, uint32_t outputs)
{
    case_op op = case_lstm(hidden);

    op.outputs = outputs;
    return op;
}

/* One op, on sequences in every layout and on rows. */
static void op_alone(suite *s, case_op op, int64_t input, uint64_t seed)
{
    for (int32_t form = 0; form <= CASE_LAYOUT_COUNT; form++) {
        test_case c = case_of("ops", seed + (uint64_t)form, op);
        c.batch = 6;
        c.input_size = input;
        if (form < CASE_LAYOUT_COUNT) {
            c.x_layout = form;
            c.y_layout = CASE_LAYOUT_COUNT - 1 - form;
        } else if (op.kind != CELLGATE_OP_EMBEDDING) {
            c.takes_rows = 1;
            c.steps = 1;
        }
        c.values = form == 1 && op.kind == CELLGATE_OP_SOFTMAX ? CASE_SATURATING
                                                               : CASE_ORDINARY;
        suite_case(s, &c);
    }
}

void group_ops(suite *s)
{
    static const int64_t sizes[] = { 1, 3, 8, 17, 65, 130 };
    uint64_t seed = s->options->seed * 1000;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        case_op dense = case_dense(sizes[i], CELLGATE_LINEAR);
        op_alone(s, dense, 9, seed += 10);
        dense.has_bias = 0;
        op_alone(s, dense, sizes[i], seed += 10);
        op_alone(s, softmax(), sizes[i], seed += 10);
        op_alone(s, embedding(11, sizes[i]), 1, seed += 10);
    }
}

/* ---- Chains ------------------------------------------------------------- */

static test_case chain(uint64_t seed, const case_op *ops, int32_t count)
{
    test_case c = case_of("chains", seed, ops[0]);

    c.op_count = count;
    for (int32_t i = 0; i < count; i++)
        c.ops[i] = ops[i];
    c.batch = 5;
    c.steps = 7;
    if (ops[0].kind == CELLGATE_OP_EMBEDDING)
        c.input_size = 1;
    return c;
}

#define SEQUENCE CELLGATE_LSTM_SEQUENCE
#define LAST CELLGATE_LSTM_LAST
#define STATE (CELLGATE_LSTM_H | CELLGATE_LSTM_C)

/* A chain in every form of lengths, with states and without. */
static void vary(suite *s, const case_op *ops, int32_t count, uint64_t seed)
{
    for (int32_t lengths = 0; lengths <= CASE_ALL_ZERO; lengths++) {
        for (int bidirectional = 0; bidirectional < 2; bidirectional++) {
            test_case c = chain(seed++, ops, count);
            c.lengths = lengths;
            c.state = lengths % 2 ? CASE_STATE_GIVEN : CASE_STATE_NONE;
            c.x_layout = (int32_t)(seed % CASE_LAYOUT_COUNT);
            c.y_layout = (int32_t)(seed / 2 % CASE_LAYOUT_COUNT);
            for (int32_t i = 0; i < count && bidirectional; i++)
                if (c.ops[i].kind == CELLGATE_OP_LSTM)
                    c.ops[i].directions = 2;
            suite_case(s, &c);
        }
    }
}

static void fixed(suite *s)
{
    const case_op two[] = { lstm_giving(9, SEQUENCE | STATE),
                            lstm_giving(6, SEQUENCE | LAST | STATE) };
    const case_op three[] = { lstm_giving(8, SEQUENCE),
                              lstm_giving(8, SEQUENCE | STATE),
                              lstm_giving(8, LAST | STATE) };
    const case_op words[] = { embedding(23, 10), lstm_giving(7, SEQUENCE) };
    const case_op last[] = { lstm_giving(12, LAST | STATE),
                             case_dense(3, CELLGATE_LINEAR) };
    const case_op tags[] = { lstm_giving(6, SEQUENCE),
                             case_dense(5, CELLGATE_RELU), softmax() };
    const case_op state[] = { lstm_giving(5, SEQUENCE), lstm_giving(7, STATE) };
    const case_op all[] = { embedding(17, 6), lstm_giving(8, SEQUENCE | STATE),
                            lstm_giving(5, LAST), case_dense(4, CELLGATE_TANH),
                            softmax() };
    const case_op inside[] = { case_dense(6, CELLGATE_RELU),
                               lstm_giving(7, SEQUENCE),
                               { .kind = CELLGATE_OP_ACTIVATION,
                                 .activations = {
                                     { { CELLGATE_RELU, 0, 0 } } } } };
    uint64_t seed = s->options->seed * 1000;

#define VARY(ops, at)                                                          \
    vary(s, (ops), (int32_t)(sizeof(ops) / sizeof((ops)[0])), seed + (at))
    VARY(two, 0);
    VARY(three, 20);
    VARY(words, 40);
    VARY(last, 60);
    VARY(tags, 80);
    VARY(state, 100);
    VARY(all, 120);
    VARY(inside, 140);
#undef VARY
}

/* Stacks whose layers differ in direction, projection and size. */
static void stacks(suite *s)
{
    random_source random = random_from(s->options->seed, 300);
    int count = s->options->full ? 400 : 80;

    for (int i = 0; i < count; i++) {
        case_op ops[CASE_MAX_OPS];
        int32_t layers = (int32_t)random_integer(&random, 2, 4);
        for (int32_t k = 0; k < layers; k++) {
            ops[k] = lstm_giving(
                random_integer(&random, 1, 20),
                SEQUENCE |
                    (random_integer(&random, 0, 1) ? (uint32_t)STATE : 0u));
            ops[k].directions = (int32_t)random_integer(&random, 1, 2);
            ops[k].reverse =
                ops[k].directions == 1 && random_integer(&random, 0, 2) == 0;
            if (random_integer(&random, 0, 3) == 0)
                ops[k].projection = random_integer(&random, 1, 8);
        }
        ops[layers - 1].outputs = (uint32_t)random_integer(&random, 1, 15);
        test_case c =
            chain(s->options->seed * 1000 + 200 + (uint64_t)i, ops, layers);
        c.batch = random_integer(&random, 1, 18);
        c.lengths = (int32_t)random_integer(&random, 0, CASE_WITH_ZEROS);
        c.state = (int32_t)random_integer(&random, 0, CASE_STATE_C_ONLY);
        suite_case(s, &c);
    }
}

void group_chains(suite *s)
{
    fixed(s);
    stacks(s);
}
