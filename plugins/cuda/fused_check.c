/* SPDX-License-Identifier: Apache-2.0 */
/* fused_check.c: which layers cuDNN has, and what of the others prevents it. */
#include "config.h"

#include <stdlib.h>

#include "plugins/cuda/fused.h"

static const char *activation_name(int32_t kind)
{
    switch (kind) {
#define NAME(name, value, text, parameters)                                    \
    case value:                                                                \
        return text;
        CELLGATE_ACTIVATION_LIST(NAME)
#undef NAME
    default:
        return "unknown";
    }
}

static cellgate_status check_activations(const struct cud_lstm *lstm,
                                         cellgate_error *error)
{
    int d;

    for (d = 0; d < lstm->directions; d++) {
        const cellgate_activation *of = lstm->activations[d];

        if (of[0].kind != CELLGATE_SIGMOID)
            return cellgate_refuse(error, CELLGATE_REASON_ACTIVATION,
                                   "recurrent_activation %s is not fused: "
                                   "cuDNN has sigmoid alone",
                                   activation_name(of[0].kind));
        if (of[1].kind != CELLGATE_TANH || of[2].kind != CELLGATE_TANH)
            return cellgate_refuse(
                error, CELLGATE_REASON_ACTIVATION,
                "activation %s is not fused: cuDNN has tanh alone",
                activation_name(of[1].kind != CELLGATE_TANH ? of[1].kind
                                                            : of[2].kind));
    }
    return CELLGATE_OK;
}

cellgate_status cud_fused_check(const struct cud_lstm *lstm,
                                cellgate_error *error)
{
    cellgate_status status = check_activations(lstm, error);

    if (status != CELLGATE_OK)
        return status;
    if (lstm->reverse)
        return cellgate_refuse(error, CELLGATE_REASON_DIRECTIONS,
                               "go_backwards is not fused: cuDNN runs forward, "
                               "or both ways");
    if (lstm->peepholes)
        return cellgate_refuse(error, CELLGATE_REASON_PEEPHOLES,
                               "peepholes are not fused: cuDNN has none");
    if (lstm->coupled)
        return cellgate_refuse(error, CELLGATE_REASON_COUPLED,
                               "coupled gates (input_forget) are not fused: "
                               "cuDNN has none");
    if (lstm->clip > 0)
        return cellgate_refuse(error, CELLGATE_REASON_CLIP,
                               "clip %g is not fused: cuDNN clips the cell's "
                               "state, and not what goes into the gates",
                               (double)lstm->clip);
    if (lstm->projects && lstm->output > lstm->hidden)
        return cellgate_refuse(error, CELLGATE_REASON_PROJECTION,
                               "a projection to more features (%lld) than the "
                               "layer has units (%lld) is not fused",
                               (long long)lstm->output,
                               (long long)lstm->hidden);
    if (lstm->projects && lstm->output == lstm->hidden)
        return cellgate_refuse(error, CELLGATE_REASON_PROJECTION,
                               "a projection to as many features as the layer "
                               "has units (%lld) is not fused: cuDNN takes it "
                               "for none",
                               (long long)lstm->hidden);
    return CELLGATE_OK;
}

bool cud_fused_stacks(const struct cud_lstm *below,
                      const struct cud_lstm *above)
{
    return below->hidden == above->hidden && below->output == above->output &&
           below->projects == above->projects &&
           below->directions == above->directions &&
           (below->outputs & CELLGATE_LSTM_LAST) == 0;
}

static cellgate_status ask_size(cellgate_device *device,
                                const struct cud_lstm *lstms, uint32_t layers,
                                cud_cudnn_rnn rnn, const cellgate_shape *shape,
                                cellgate_error *error)
{
    int32_t *lengths = malloc((size_t)shape->batch * sizeof *lengths);
    struct cud_handle *handle = NULL;
    cud_cudnn_data x = NULL;
    cellgate_status status;
    size_t size = 0;

    if (!lengths)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
    status = cud_cudnn_check(
        device, error, device->cudnn.CreateRNNDataDescriptor(&x),
        "CreateRNNDataDescriptor", "describing a sequence");
    if (status == CELLGATE_OK)
        status = cud_handle_take(device, &handle, error);
    if (status == CELLGATE_OK)
        status =
            cud_rnn_work_size(device, handle, rnn, lstms, layers, shape->batch,
                              shape->steps, x, lengths, &size, error);
    cud_handle_give(device, handle);
    if (x)
        (void)device->cudnn.DestroyRNNDataDescriptor(x);
    free(lengths);
    return status;
}

cellgate_status cud_fused_ask(cellgate_device *device,
                              const struct cud_lstm *lstms, uint32_t layers,
                              const struct cud_variant *variant,
                              const cellgate_shape *shape,
                              cellgate_error *error)
{
    cud_cudnn_rnn rnn = NULL;
    cellgate_status status = cud_rnn_create(
        device, lstms, layers, variant->algorithm, variant->math, &rnn, error);

    if (status == CELLGATE_OK && shape && shape->steps > 0)
        status = ask_size(device, lstms, layers, rnn, shape, error);
    cud_rnn_destroy(device, rnn);
    return status;
}
