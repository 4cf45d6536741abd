/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recurrent layer's weights have had several forms. Keras 1 stored each
 * gate's kernel, recurrent kernel and bias, the gates in another order. The
 * layers made for cuDNN (CuDNNLSTM) store for each gate the transposed
 * recurrent kernel and the kernel's transpose in its memory order, and two
 * biases in a row, whose sum counts.
 */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras_order.h"

size_t cg_keras_gates(cg_kind kind)
{
    return kind == CG_LSTM ? 4 : kind == CG_GRU ? 3 : 0;
}

/* Where in the file the gate's three weights are, which is `gate` here. */
static size_t old_gate(cg_kind kind, size_t gate)
{
    static const size_t lstm[] = { 0, 2, 1, 3 }; /* i, c, f, o */

    return kind == CG_LSTM ? lstm[gate] : gate;
}

static size_t number_of(const cg_keras_spot *spot, size_t index)
{
    return index < spot->trained ? spot->first + index
                                 : spot->rest + index - spot->trained;
}

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while reading the weights");
}

/* ---- One dataset --------------------------------------------------------- */

static cellgate_status check(const cg_keras_order *order, size_t group,
                             size_t number, const cg_weight *shape,
                             cellgate_error *error)
{
    char *path;
    cellgate_status status =
        cg_keras_dataset(order, group, number, &path, error);

    if (status != CELLGATE_OK)
        return status;
    status = cg_h5_check(order->h5, path, shape->rank, shape->shape, error);
    free(path);
    return status;
}

static cellgate_status read(const cg_keras_order *order, size_t group,
                            size_t number, size_t elements, float *data,
                            cellgate_error *error)
{
    char *path;
    cellgate_status status =
        cg_keras_dataset(order, group, number, &path, error);

    if (status != CELLGATE_OK)
        return status;
    status = cg_h5_read(order->h5, path, elements, data, error);
    free(path);
    return status;
}

/* ---- Gate by gate -------------------------------------------------------- */

static cg_weight gate_shape(const cg_weight *weight, size_t gates)
{
    cg_weight one = *weight;

    one.shape[one.rank - 1] /= (int64_t)gates;
    return one;
}

static size_t gate_number(const cg_keras_spot *spot,
                          const cg_keras_wanted *wanted, size_t gate)
{
    return number_of(spot, 0) + 3 * old_gate(wanted->kind, gate) +
           wanted->index;
}

static cellgate_status read_gates(const cg_keras_order *order,
                                  const cg_keras_spot *spot,
                                  const cg_keras_wanted *wanted,
                                  const cg_weight *weight, float *data,
                                  cellgate_error *error)
{
    const size_t gates = cg_keras_gates(wanted->kind);
    const cg_weight one = gate_shape(weight, gates);
    const size_t elements = cg_keras_elements(&one);
    const size_t width = (size_t)one.shape[one.rank - 1];
    float *gate = malloc(elements * sizeof *gate);
    cellgate_status status = CELLGATE_OK;

    if (gate == NULL)
        return no_memory(error);
    for (size_t g = 0; status == CELLGATE_OK && g < gates; g++) {
        status = read(order, spot->group, gate_number(spot, wanted, g),
                      elements, gate, error);
        for (size_t row = 0; status == CELLGATE_OK && row < elements / width;
             row++)
            memcpy(data + (row * gates + g) * width, gate + row * width,
                   width * sizeof *data);
    }
    free(gate);
    return status;
}

/* ---- cuDNN --------------------------------------------------------------- */

/* The bias tells: it is twice as long. */
static cellgate_status see_cudnn(const cg_keras_order *order,
                                 const cg_keras_spot *spot,
                                 const cg_keras_wanted *wanted, bool *is,
                                 cellgate_error *error)
{
    const cg_keras_asked *asked =
        cg_keras_find_asked(&order->survey, wanted->group);
    cg_h5_extents shape;
    cellgate_status status;

    *is = false;
    if (cg_keras_gates(wanted->kind) == 0 || asked->count != 3)
        return CELLGATE_OK;
    status = cg_keras_dataset_shape(order, spot->group, number_of(spot, 2),
                                    &shape, error);
    *is = status == CELLGATE_OK && shape.rank == 1 &&
          shape.extents[0] == 2 * asked->last;
    return status;
}

/* The dataset's shape: that of the weight, but for the bias. */
static cg_weight cudnn_shape(const cg_keras_wanted *wanted,
                             const cg_weight *weight)
{
    cg_weight stored = *weight;

    if (wanted->index == 2 && weight->rank == 1) {
        stored.shape[0] *= 2;
    } else if (wanted->index == 2) {
        stored.rank = 1;
        stored.shape[0] = weight->shape[0] * weight->shape[1];
    }
    return stored;
}

static void turn_kernel(const float *stored, size_t inputs, size_t units,
                        size_t gates, float *kernel)
{
    for (size_t g = 0; g < gates; g++)
        for (size_t i = 0; i < inputs; i++)
            for (size_t u = 0; u < units; u++) {
                const size_t at = u * inputs + i;

                kernel[i * gates * units + g * units + u] =
                    stored[at / units * gates * units + g * units + at % units];
            }
}

static void turn_recurrent(const float *stored, size_t units, size_t gates,
                           float *kernel)
{
    for (size_t g = 0; g < gates; g++)
        for (size_t i = 0; i < units; i++)
            for (size_t u = 0; u < units; u++)
                kernel[i * gates * units + g * units + u] =
                    stored[u * gates * units + g * units + i];
}

static void turn(const cg_keras_wanted *wanted, const cg_weight *weight,
                 const float *stored, float *data)
{
    const size_t gates = cg_keras_gates(wanted->kind);
    const size_t last = (size_t)weight->shape[weight->rank - 1];

    if (wanted->index == 0)
        turn_kernel(stored, (size_t)weight->shape[0], last / gates, gates,
                    data);
    else if (wanted->index == 1)
        turn_recurrent(stored, last / gates, gates, data);
    else if (weight->rank == 2)
        memcpy(data, stored, 2 * last * sizeof *data);
    else
        for (size_t i = 0; i < last; i++)
            data[i] = stored[i] + stored[last + i];
}

static cellgate_status read_cudnn(const cg_keras_order *order,
                                  const cg_keras_spot *spot,
                                  const cg_keras_wanted *wanted,
                                  const cg_weight *weight, float *data,
                                  cellgate_error *error)
{
    const cg_weight shape = cudnn_shape(wanted, weight);
    const size_t elements = cg_keras_elements(&shape);
    float *stored = malloc(elements * sizeof *stored);
    cellgate_status status;

    if (stored == NULL)
        return no_memory(error);
    status = read(order, spot->group, number_of(spot, wanted->index), elements,
                  stored, error);
    if (status == CELLGATE_OK)
        turn(wanted, weight, stored, data);
    free(stored);
    return status;
}

/* ---- Any form ------------------------------------------------------------ */

cellgate_status cg_keras_order_check(const cg_keras_order *order,
                                     const cg_keras_spot *spot,
                                     const cg_keras_wanted *wanted,
                                     const cg_weight *weight,
                                     cellgate_error *error)
{
    cg_weight shape = *weight;
    bool cudnn = false;
    cellgate_status status;

    if (spot->gate_by_gate) {
        shape = gate_shape(weight, cg_keras_gates(wanted->kind));
        status = CELLGATE_OK;
        for (size_t g = 0;
             status == CELLGATE_OK && g < cg_keras_gates(wanted->kind); g++)
            status = check(order, spot->group, gate_number(spot, wanted, g),
                           &shape, error);
        return status;
    }
    status = see_cudnn(order, spot, wanted, &cudnn, error);
    if (status == CELLGATE_OK && cudnn)
        shape = cudnn_shape(wanted, weight);
    return status == CELLGATE_OK
               ? check(order, spot->group, number_of(spot, wanted->index),
                       &shape, error)
               : status;
}

cellgate_status cg_keras_order_read(const cg_keras_order *order,
                                    const cg_keras_spot *spot,
                                    const cg_keras_wanted *wanted,
                                    const cg_weight *weight, float *data,
                                    cellgate_error *error)
{
    bool cudnn = false;
    cellgate_status status;

    if (spot->gate_by_gate)
        return read_gates(order, spot, wanted, weight, data, error);
    status = see_cudnn(order, spot, wanted, &cudnn, error);
    if (status != CELLGATE_OK)
        return status;
    if (cudnn)
        return read_cudnn(order, spot, wanted, weight, data, error);
    return read(order, spot->group, number_of(spot, wanted->index),
                cg_keras_elements(weight), data, error);
}
