/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cellgate/chain.h"
#include "plugins/opencl/segment.h"

/* The largest size of one axis: kernels count in 32 bits. */
#define SIZE_MOST (((int64_t)1 << 28) - 1)

cellgate_status ocl_segment_check(const cellgate_segment *segment,
                                  cellgate_error *error)
{
    return cellgate_chain_check(segment, SIZE_MOST, error);
}

cellgate_status ocl_shape_read(const cellgate_shape *given,
                               cellgate_shape *shape, cellgate_error *error)
{
    cellgate_status status =
        cellgate_shape_read(given, SIZE_MOST, shape, error);

    if (status == CELLGATE_OK && shape->batch * (shape->steps + 1) > SIZE_MOST)
        return cellgate_refuse(error, CELLGATE_REASON_SHAPE,
                               "batch %lld times steps %lld is not below 2^28",
                               (long long)shape->batch,
                               (long long)shape->steps);
    return status;
}

/* ---- A layer ----------------------------------------------------------- */

static int32_t blocks_of(int64_t size, uint32_t vector)
{
    return (int32_t)((size + vector - 1) / vector);
}

static struct ocl_activation activation_of(const cellgate_activation *from)
{
    return (struct ocl_activation){ from->kind, from->alpha, from->beta, 0 };
}

static bool is_usual(const cellgate_lstm *lstm)
{
    bool usual = true;
    int d;

    for (d = 0; d < lstm->directions; d++)
        usual = usual && lstm->activations[d][0].kind == CELLGATE_SIGMOID &&
                lstm->activations[d][1].kind == CELLGATE_TANH &&
                lstm->activations[d][2].kind == CELLGATE_TANH;
    return usual;
}

void ocl_lstm_read(const cellgate_op *op, uint32_t vector,
                   struct ocl_lstm *lstm)
{
    cellgate_lstm from = { .op = { sizeof from, 0, 0 } };
    int i;

    cellgate_struct_copy(&from, op);
    *lstm = (struct ocl_lstm){
        .input = from.input_size,
        .hidden = from.hidden_size,
        .output =
            from.projection_size ? from.projection_size : from.hidden_size,
        .directions = from.directions,
        .reverse = from.reverse != 0,
        .projects = from.projection_size != 0,
        .usual = is_usual(&from),
        .peepholes = from.has_peepholes != 0,
        .coupled = from.coupled != 0,
        .clip = from.clip,
        .outputs = from.outputs,
    };
    lstm->blocks = blocks_of(lstm->hidden, vector);
    lstm->output_blocks = blocks_of(lstm->output, vector);
    for (i = 0; i < 6; i++)
        lstm->activations[i / 3][i % 3] =
            activation_of(&from.activations[i / 3][i % 3]);
}
