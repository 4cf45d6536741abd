/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of lengths, of layout, and every set of outputs. */
#include "config.h"

#include "tests/conformance/suite.h"

void group_lengths(suite *s)
{
    static const int64_t batches[] = { 1, 2, 7, 16, 33 };
    uint64_t seed = s->options->seed * 1000;

    for (size_t b = 0; b < sizeof batches / sizeof batches[0]; b++) {
        for (int32_t kind = CASE_FULL; kind <= CASE_ALL_ZERO; kind++) {
            for (int32_t state = 0; state <= CASE_STATE_C_ONLY; state++) {
                test_case c = case_of("lengths", seed++, case_lstm(9));
                c.batch = batches[b];
                c.steps = 11;
                c.lengths = kind;
                c.state = state;
                suite_case(s, &c);
                /* Beyond the minimum: both directions at once. */
                c.ops[0].directions = 2;
                suite_case(s, &c);
            }
        }
    }
}

void group_layouts(suite *s)
{
    uint64_t seed = s->options->seed * 1000;

    for (int32_t x = 0; x < CASE_LAYOUT_COUNT; x++) {
        for (int32_t y = 0; y < CASE_LAYOUT_COUNT; y++) {
            test_case c = case_of("layouts", seed++, case_lstm(10));
            c.batch = 9;
            c.steps = 6;
            c.input_size = 5;
            c.x_layout = x;
            c.y_layout = y;
            c.lengths = (x + y) % 2 ? CASE_WITH_ZEROS : CASE_FULL;
            suite_case(s, &c);
            c.ops[0].directions = 2;
            suite_case(s, &c);
        }
    }
}

void group_outputs(suite *s)
{
    uint64_t seed = s->options->seed * 1000;

    for (uint32_t outputs = 1; outputs < 16; outputs++) {
        for (int32_t state = 0; state <= CASE_STATE_GIVEN; state++) {
            test_case c = case_of("outputs", seed++, case_lstm(6));
            c.steps = 7;
            c.state = state;
            c.lengths = CASE_WITH_ZEROS;
            c.ops[0].outputs = outputs;
            suite_case(s, &c);
            c.lengths = CASE_FULL;
            c.ops[0].directions = 2;
            suite_case(s, &c);
            c.ops[0].directions = 1;
            c.no_finals = 1;
            if (outputs & (CELLGATE_LSTM_SEQUENCE | CELLGATE_LSTM_LAST))
                suite_case(s, &c);
        }
    }
}
