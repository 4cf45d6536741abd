/* SPDX-License-Identifier: Apache-2.0 */
/* The LSTM's attributes: each alone, every combination, and at random. */
#include "config.h"

#include "tests/conformance/suite.h"
#include "tests/oracle/random.h"

enum { PEEPHOLES = 1, COUPLED = 2, CLIP = 4, PROJECTION = 8, NO_BIAS = 16 };

static void set_attributes(case_op *op, int attributes)
{
    op->has_peepholes = (attributes & PEEPHOLES) != 0;
    op->coupled = (attributes & COUPLED) != 0;
    op->clip = attributes & CLIP ? 0.6f : 0.0f;
    op->projection = attributes & PROJECTION ? 3 : 0;
    op->has_bias = (attributes & NO_BIAS) == 0;
}

/* Forward, reversed, both. */
static void set_direction(case_op *op, int direction)
{
    op->directions = direction == 2 ? 2 : 1;
    op->reverse = direction == 1;
}

static void combinations(suite *s)
{
    uint64_t seed = s->options->seed * 1000;

    for (int direction = 0; direction < 3; direction++) {
        for (int attributes = 0; attributes < 32; attributes++) {
            test_case c = case_of("attributes", seed++, case_lstm(7));
            c.steps = 6;
            c.lengths = attributes % 2 ? CASE_FULL : CASE_WITH_ZEROS;
            c.state = attributes % 3 ? CASE_STATE_GIVEN : CASE_STATE_NONE;
            c.weight_scale = 1.5f; /* so that clipping happens */
            set_direction(&c.ops[0], direction);
            set_attributes(&c.ops[0], attributes);
            suite_case(s, &c);
        }
    }
}

static void at_random(suite *s)
{
    random_source random = random_from(s->options->seed, 200);
    int count = s->options->full ? 1000 : 250;

    for (int i = 0; i < count; i++) {
        uint64_t seed = s->options->seed * 1000 + 500 + (uint64_t)i;
        test_case c = case_of("attributes", seed, case_lstm(1));
        case_op *op = &c.ops[0];
        c.batch = random_integer(&random, 1, 20);
        c.steps = random_integer(&random, 0, 24);
        c.input_size = random_integer(&random, 1, 40);
        op->size = random_integer(&random, 1, 40);
        set_direction(op, (int)random_integer(&random, 0, 2));
        set_attributes(op, (int)random_integer(&random, 0, 31));
        if (op->projection > 0)
            op->projection = random_integer(&random, 1, 45);
        op->outputs = (uint32_t)random_integer(&random, 1, 15);
        c.lengths = (int32_t)random_integer(&random, 0, CASE_WITH_ZEROS);
        c.state = (int32_t)random_integer(&random, 0, CASE_STATE_C_ONLY);
        c.x_layout = (int32_t)random_integer(&random, 0, 3);
        c.y_layout = (int32_t)random_integer(&random, 0, 3);
        suite_case(s, &c);
    }
}

void group_attributes(suite *s)
{
    combinations(s);
    at_random(s);
}
