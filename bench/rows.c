/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "bench/rows.h"

const struct bench_row bench_rows[] = {
    { 1, true, "64,20,16,32 + Dense(1)", 64, 20, 16, 32, 1, 1, 1, false, false,
      false },
    { 2, false, "64,30,50,50,2 + Dense(10000) softmax", 64, 30, 50, 50, 2, 1,
      10000, true, false, false },
    { 3, true, "1,30,50,50,2 + Dense(10000) softmax", 1, 30, 50, 50, 2, 1,
      10000, true, false, false },
    { 4, true, "1,1,128,128", 1, 1, 128, 128, 1, 1, 0, false, false, false },
    { 5, true, "1,63,24,32 bidirectional", 1, 63, 24, 32, 1, 2, 0, false, false,
      false },
    { 6, false, "6,3047,104,40", 6, 3047, 104, 40, 1, 1, 0, false, false,
      false },
    { 7, false, "62,2058,16,168", 62, 2058, 16, 168, 1, 1, 0, false, false,
      false },
    { 8, true, "32,100,128,64 bidirectional", 32, 100, 128, 64, 1, 2, 0, false,
      false, false },
    { 9, false, "1,50000,3,20", 1, 50000, 3, 20, 1, 1, 0, false, false, false },
    { 10, false, "64,100,123,320", 64, 100, 123, 320, 1, 1, 0, false, false,
      false },
    { 11, true, "1,150,256,256", 1, 150, 256, 256, 1, 1, 0, false, false,
      false },
    { 12, false, "16,150,256,256", 16, 150, 256, 256, 1, 1, 0, false, false,
      false },
    { 13, true, "1,25,512,512", 1, 25, 512, 512, 1, 1, 0, false, false, false },
    { 14, false, "4,25,1024,1024", 4, 25, 1024, 1024, 1, 1, 0, false, false,
      false },
    { 15, false, "1,50,1536,1536", 1, 50, 1536, 1536, 1, 1, 0, false, false,
      false },
    { 16, true, "128,25,1024,1024", 128, 25, 1024, 1024, 1, 1, 0, false, false,
      false },
    { 17, false, "16,1024,768,768", 16, 1024, 768, 768, 1, 1, 0, false, false,
      false },
    { 18, false, "128,25,4096,4096", 128, 25, 4096, 4096, 1, 1, 0, false, false,
      false },
    { 19, false, "64,10 to 101,512,512", 64, 101, 512, 512, 1, 1, 0, false,
      true, false },
    { 20, false, "64,100,123,320 hard_sigmoid", 64, 100, 123, 320, 1, 1, 0,
      false, false, true },
    { 0 },
};

test_case bench_row_case(const struct bench_row *row, uint64_t seed)
{
    test_case c = case_of("bench", seed, case_lstm(row->hidden));
    int layer, direction;

    c.batch = row->batch;
    c.steps = row->steps;
    c.input_size = row->input;
    c.lengths = row->ragged ? CASE_RAGGED : CASE_FULL;
    c.op_count = 0;
    for (layer = 0; layer < row->layers; layer++) {
        case_op *op = &c.ops[c.op_count++];

        *op = case_lstm(row->hidden);
        op->directions = row->directions;
        op->has_bias = 1;
        op->outputs =
            row->dense && !row->on_each_step && layer + 1 == row->layers
                ? CELLGATE_LSTM_LAST
                : CELLGATE_LSTM_SEQUENCE;
        for (direction = 0; direction < 2; direction++) {
            op->activations[direction][0].kind = CELLGATE_SIGMOID;
            if (row->hard_gates)
                op->activations[direction][0] =
                    (cellgate_activation){ CELLGATE_HARD_SIGMOID, 1.0f / 6.0f,
                                           0.5f };
        }
    }
    if (row->dense) {
        c.ops[c.op_count] = case_dense(row->dense, CELLGATE_LINEAR);
        c.ops[c.op_count++].has_bias = 1;
    }
    if (row->on_each_step)
        c.ops[c.op_count++] =
            (case_op){ .kind = CELLGATE_OP_SOFTMAX, .size = row->dense };
    return c;
}

struct bench_work bench_row_work(const struct bench_row *row,
                                 const int32_t *lengths)
{
    const double gates = 4.0 * (double)row->hidden;
    struct bench_work work = { 0, 0, 0, (double)row->steps };
    double rows = (double)(row->batch * row->steps), input;
    int64_t b;
    int layer;

    if (lengths)
        for (b = 0, rows = 0; b < row->batch; b++)
            rows += lengths[b];
    for (layer = 0; layer < row->layers; layer++) {
        input = layer == 0 ? (double)row->input
                           : (double)row->hidden * row->directions;
        work.operations +=
            2 * rows * gates * (input + (double)row->hidden) * row->directions;
        work.recurrent_bytes +=
            4 * gates * (double)row->hidden * row->directions;
        work.input_bytes += 4 * gates * input * row->directions;
    }
    if (row->dense) {
        work.operations += 2 * (double)row->dense * (double)row->hidden *
                           (row->on_each_step ? rows : (double)row->batch);
        work.input_bytes += 4 * (double)row->dense * (double)row->hidden;
    }
    return work;
}
