/* SPDX-License-Identifier: Apache-2.0 */
/* Every pair of activations in an LSTM, every hidden activation, and every
 * activation of a dense layer and of an op of its own. */
#include "config.h"

#include "tests/conformance/suite.h"

/* An activation with parameters as models have them. */
static cellgate_activation usual(int32_t kind)
{
    static const struct {
        int32_t kind;
        float alpha, beta;
    } parameters[] = {
        { CELLGATE_LEAKY_RELU, 0.2f, 0.0f },
        { CELLGATE_ELU, 0.8f, 0.0f },
        { CELLGATE_CELU, 1.3f, 0.0f },
        { CELLGATE_SQUAREPLUS, 4.0f, 0.0f },
        { CELLGATE_SOFT_SHRINK, 0.15f, 0.0f },
        { CELLGATE_HARD_SHRINK, 0.2f, 0.0f },
        { CELLGATE_THRESHOLD, 0.1f, -0.3f },
        { CELLGATE_HARD_SIGMOID, 0.2f, 0.5f },
        { CELLGATE_AFFINE, 0.7f, -0.1f },
        { CELLGATE_SCALED_TANH, 1.7159f, 0.6667f },
    };
    cellgate_activation a = { kind, 0.0f, 0.0f };

    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) {
        if (parameters[i].kind == kind) {
            a.alpha = parameters[i].alpha;
            a.beta = parameters[i].beta;
        }
    }
    return a;
}

static test_case small_lstm(suite *s, uint64_t number)
{
    test_case c =
        case_of("activations", s->options->seed * 10000 + number, case_lstm(5));

    c.batch = 4;
    c.steps = 3; /* e^x as a gate and a cell grows fast */
    c.weight_scale = 0.7f;
    return c;
}

/* Gate and cell, as frameworks let one choose; hidden like the cell. */
static void pairs(suite *s)
{
    for (int32_t gate = 0; gate < CELLGATE_ACTIVATION_COUNT; gate++) {
        for (int32_t cell = 0; cell < CELLGATE_ACTIVATION_COUNT; cell++) {
            test_case c = small_lstm(s, (uint64_t)(gate * 100 + cell));
            if (cell == CELLGATE_EXPONENTIAL)
                c.steps = 1; /* a second one has e^(e^x) in it */
            c.ops[0].activations[0][0] = usual(gate);
            c.ops[0].activations[0][1] = usual(cell);
            c.ops[0].activations[0][2] = usual(cell);
            suite_case(s, &c);
        }
    }
}

/* Three different ones, and other ones in the other direction. */
static void triples(suite *s)
{
    for (int32_t k = 0; k < CELLGATE_ACTIVATION_COUNT; k++) {
        test_case c = small_lstm(s, 5000 + (uint64_t)k);
        c.ops[0].activations[0][2] = usual(k);
        suite_case(s, &c);
        c.ops[0].directions = 2;
        for (int32_t a = 0; a < 3; a++)
            c.ops[0].activations[1][a] =
                usual((k + 5 * a + 3) % CELLGATE_ACTIVATION_COUNT);
        suite_case(s, &c);
    }
}

/* The same kind with other parameters: hard_sigmoid has two conventions. */
static void parameters(suite *s)
{
    static const cellgate_activation others[] = {
        { CELLGATE_HARD_SIGMOID, 1.0f / 6, 0.5f },
        { CELLGATE_HARD_SIGMOID, 0.5f, 0.25f },
        { CELLGATE_LEAKY_RELU, 0.01f, 0.0f },
        { CELLGATE_ELU, 1.0f, 0.0f },
        { CELLGATE_THRESHOLD, 1.0f, 0.0f },
        { CELLGATE_AFFINE, -0.5f, 0.25f },
        { CELLGATE_SCALED_TANH, 1.0f, 1.0f },
    };

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        for (int32_t place = 0; place < 3; place++) {
            test_case c = small_lstm(s, 6000 + i * 3 + (uint64_t)place);
            c.ops[0].activations[0][place] = others[i];
            suite_case(s, &c);
        }
    }
}

/* Over a wide range of arguments. */
static void alone(suite *s)
{
    for (int32_t k = 0; k < CELLGATE_ACTIVATION_COUNT; k++) {
        for (int32_t values = CASE_ORDINARY; values <= CASE_LARGE; values++) {
            uint64_t number = 7000 + (uint64_t)(k * 10 + values);
            test_case c = small_lstm(s, number);
            c.ops[0] = (case_op){ .kind = CELLGATE_OP_ACTIVATION };
            c.ops[0].activations[0][0] = usual(k);
            c.input_size = 37;
            c.values = values;
            suite_case(s, &c);
            c.ops[0] = case_dense(11, k);
            c.ops[0].activations[0][0] = usual(k);
            suite_case(s, &c);
        }
    }
}

void group_activations(suite *s)
{
    pairs(s);
    triples(s);
    parameters(s);
    alone(s);
}
