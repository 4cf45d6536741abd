/* SPDX-License-Identifier: Apache-2.0 */
/* The minimum profile over shapes, lengths, layouts and outputs. */
#include "config.h"

#include "tests/conformance/suite.h"
#include "tests/oracle/random.h"

/* Sizes that fit no vector length, and some that do. */
static const int64_t sizes[] = { 1,  2,  3,  4,   5,   7,   8,  9,
                                 13, 16, 17, 24,  31,  32,  33, 63,
                                 64, 65, 96, 100, 127, 128, 129 };
static const int64_t batches[] = { 1,  2,  3,  4,  5,  6,  7,  8,  9,
                                   12, 15, 16, 17, 31, 32, 33, 64, 67 };
static const int64_t steps[] = { 0, 1, 2, 3, 4, 5, 8, 13, 20, 47, 100, 300 };

#define PICK(random, list)                                                     \
    (list)[random_integer((random), 0,                                         \
                          (int64_t)(sizeof(list) / sizeof((list)[0])) - 1)]

/* Everything about the case that every plugin must take, at random. */
static void vary(test_case *c, random_source *random)
{
    c->lengths = (int32_t)random_integer(random, CASE_FULL, CASE_ALL_ZERO - 1);
    c->x_layout = (int32_t)random_integer(random, 0, CASE_LAYOUT_COUNT - 1);
    c->y_layout = (int32_t)random_integer(random, 0, CASE_LAYOUT_COUNT - 1);
    c->state = (int32_t)random_integer(random, 0, CASE_STATE_C_ONLY);
    c->ops[0].outputs = (uint32_t)random_integer(random, 1, 15);
    c->ops[0].has_bias = random_integer(random, 0, 3) != 0;
}

static void edge_shapes(suite *s)
{
    static const struct {
        int64_t batch, steps, input, hidden;
    } edges[] = { { 1, 1, 1, 1 },     { 1, 0, 1, 1 },   { 67, 0, 3, 5 },
                  { 67, 1, 1, 1 },    { 1, 300, 1, 1 }, { 1, 300, 5, 33 },
                  { 67, 3, 129, 65 }, { 1, 2, 1, 129 }, { 2, 2, 129, 1 },
                  { 64, 20, 16, 32 }, { 5, 300, 2, 7 }, { 1, 1, 300, 3 },
                  { 3, 2, 3, 257 } };

    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        test_case c =
            case_of("shapes", s->options->seed + i, case_lstm(edges[i].hidden));
        c.batch = edges[i].batch;
        c.steps = edges[i].steps;
        c.input_size = edges[i].input;
        suite_case(s, &c);
    }
}

void group_shapes(suite *s)
{
    random_source random = random_from(s->options->seed, 100);
    int64_t most = s->options->full ? 20000000 : 3000000;
    int count = s->options->full ? 600 : 300;

    edge_shapes(s);
    for (int i = 0; i < count; i++) {
        test_case c = case_of("shapes", s->options->seed * 1000 + (uint64_t)i,
                              case_lstm(1));
        do {
            c.batch = PICK(&random, batches);
            c.steps = PICK(&random, steps);
            c.input_size = PICK(&random, sizes);
            c.ops[0].size = PICK(&random, sizes);
        } while (case_cost(&c) > most);
        vary(&c, &random);
        suite_case(s, &c);
    }
}
