/* SPDX-License-Identifier: Apache-2.0 */
/* One node with its values, built by hand, for the tests of host ops. */
#ifndef CELLGATE_TESTS_UNIT_HOST_CALL_H
#define CELLGATE_TESTS_UNIT_HOST_CALL_H

#include <string.h>

#include "runtime/host/host.h"

#define HOST_CALL_VALUES 16

typedef struct host_call {
    cellgate_model model;
    cg_node node;
    cg_value values[HOST_CALL_VALUES];
    cg_shape shapes[HOST_CALL_VALUES];
    void *buffers[HOST_CALL_VALUES];
    int32_t inputs[8], outputs[8];
    cg_weight weights[10];
    char name[8];
    double scratch[512];
} host_call;

static inline void host_call_init(host_call *call, cg_kind kind)
{
    memset(call, 0, sizeof *call);
    strcpy(call->name, "node");
    call->node.name = call->name;
    call->node.kind = kind;
    call->node.inputs = call->inputs;
    call->node.outputs = call->outputs;
    call->node.weights = call->weights;
    call->model.values = call->values;
    call->model.nodes = &call->node;
    call->model.node_count = 1;
}

static inline int32_t host_call_value(host_call *call, int32_t dtype,
                                      void *data, int32_t rank, int64_t a,
                                      int64_t b, int64_t c)
{
    size_t value = call->model.value_count++;
    cg_shape shape = { rank, { a, b, c } };

    call->values[value].dtype = dtype;
    call->values[value].rank = rank;
    call->shapes[value] = shape;
    call->buffers[value] = data;
    return (int32_t)value;
}

/* Data NULL: the input, output or weight is absent. */
static inline void host_call_input(host_call *call, int32_t dtype,
                                   const void *data, int32_t rank, int64_t a,
                                   int64_t b, int64_t c)
{
    call->inputs[call->node.input_count++] =
        data == NULL ? CG_NO_VALUE
                     : host_call_value(call, dtype, (void *)(uintptr_t)data,
                                       rank, a, b, c);
}

static inline void host_call_output(host_call *call, int32_t dtype, void *data,
                                    int32_t rank, int64_t a, int64_t b,
                                    int64_t c)
{
    call->outputs[call->node.output_count++] =
        data == NULL ? CG_NO_VALUE
                     : host_call_value(call, dtype, data, rank, a, b, c);
}

static inline void host_call_weight(host_call *call, const float *data)
{
    call->weights[call->node.weight_count++].data = data;
}

static inline cellgate_status host_call_run(host_call *call,
                                            cellgate_error *error)
{
    return cg_host_run(&call->model, &call->node, call->shapes, call->buffers,
                       call->scratch, error);
}

#endif
