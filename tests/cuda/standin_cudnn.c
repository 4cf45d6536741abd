/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standin_cudnn.c: cuDNN 9's RNN calls, as its reference describes them: LSTM,
 * float data, inference. What descriptors refuse was compared with cuDNN 9.19,
 * whose setters need no GPU. What follows where an application breaks the rules
 * is a fault here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin.h"
#include "tests/cuda/standin_cudnn.h"

#define NOT_SUPPORTED CUD_CUDNN_NOT_SUPPORTED
#define BAD_PARAM CUD_CUDNN_BAD_PARAM

static _Thread_local char last_words[200];

static int refuse(int code, const char *words)
{
    (void)snprintf(last_words, sizeof last_words, "%s", words);
    return code;
}

/* A call that works on a device, which is broken. */
static bool fails(int device)
{
    bool broken;

    standin_lock();
    broken = standin_library_call(device);
    standin_unlock();
    return broken;
}

/* Those that live. What is destroyed stays in memory for a while, so that its
   address is nothing else's, and who uses it is found. */
#define KEPT 1024
static struct standin_thing *things;
static struct standin_thing *destroyed[KEPT];
static size_t destroyed_count;

static void *make(enum standin_kind kind, size_t size, const char *name)
{
    struct standin_thing *thing = calloc(1, size);

    if (!thing)
        standin_fault("no memory");
    standin_lock();
    thing->kind = kind;
    thing->next = things;
    things = thing;
    standin_count(name, 1);
    standin_unlock();
    return thing;
}

void *standin_thing(const void *handle, enum standin_kind kind,
                    const char *function)
{
    struct standin_thing *at;

    for (at = things; at && at != handle; at = at->next)
        ;
    if (!at || at->kind != kind)
        standin_fault("%s: %p is not what it takes, or was destroyed", function,
                      handle);
    return at;
}

static int unmake(void *handle, enum standin_kind kind, const char *name)
{
    struct standin_thing **at = &things, **place;

    standin_lock();
    (void)standin_thing(handle, kind, "a destructor");
    while (*at != handle)
        at = &(*at)->next;
    *at = (*at)->next;
    place = &destroyed[destroyed_count++ % KEPT];
    free(*place);
    *place = handle;
    standin_count(name, -1);
    standin_unlock();
    return CUD_CUDNN_SUCCESS;
}

/* ---- The library ------------------------------------------------------- */

size_t cudnnGetVersion(void)
{
    return (size_t)standin_settings.cudnn;
}

const char *cudnnGetErrorString(int code)
{
    return code == NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
           : code == BAD_PARAM   ? "CUDNN_STATUS_BAD_PARAM"
                                 : "CUDNN_STATUS_OF_ANOTHER_NAME";
}

void cudnnGetLastErrorString(char *text, size_t size)
{
    (void)snprintf(text, size, "%s", last_words);
    last_words[0] = '\0';
}

int cudnnCreate(cud_cudnn_handle *to)
{
    struct standin_handle *handle;

    if (standin_settings.cudnn_create)
        return (int)standin_settings.cudnn_create;
    if (fails(standin_device()))
        return refuse(CUD_CUDNN_NOT_INITIALIZED, "cudaGetDevice");
    handle = make(STANDIN_HANDLE, sizeof *handle, "cuDNN handles");
    handle->device = standin_device();
    *to = (cud_cudnn_handle)(void *)handle;
    return CUD_CUDNN_SUCCESS;
}

/* A handle is of the device that was current when it was made. */
static struct standin_handle *check_current(cud_cudnn_handle of,
                                            const char *function)
{
    struct standin_handle *handle = standin_thing(of, STANDIN_HANDLE, function);

    if (handle->device != standin_device())
        standin_fault("%s: a handle of device %d, and %d is the current one",
                      function, handle->device, standin_device());
    return handle;
}

int cudnnDestroy(cud_cudnn_handle handle)
{
    standin_lock();
    check_current(handle, "cudnnDestroy");
    standin_unlock();
    return unmake(handle, STANDIN_HANDLE, "cuDNN handles");
}

int cudnnSetStream(cud_cudnn_handle of, cudaStream_t stream)
{
    struct standin_handle *handle;

    standin_lock();
    handle = check_current(of, "cudnnSetStream");
    if (stream && standin_stream_device(stream) != handle->device)
        standin_fault("cudnnSetStream: a stream of another device");
    handle->stream = stream;
    handle->has_stream = stream != NULL;
    standin_unlock();
    return CUD_CUDNN_SUCCESS;
}

/* ---- Tensors ----------------------------------------------------------- */

int cudnnCreateTensorDescriptor(cud_cudnn_tensor *to)
{
    *to = make(STANDIN_TENSOR, sizeof(struct standin_tensor),
               "tensor descriptors");
    return CUD_CUDNN_SUCCESS;
}

int cudnnDestroyTensorDescriptor(cud_cudnn_tensor tensor)
{
    return unmake(tensor, STANDIN_TENSOR, "tensor descriptors");
}

int cudnnSetTensorNdDescriptor(cud_cudnn_tensor of, int type, int axes,
                               const int *extents, const int *strides)
{
    struct standin_tensor *tensor;
    int64_t elements = 1;
    int i;

    standin_lock();
    tensor = standin_thing(of, STANDIN_TENSOR, "cudnnSetTensorNdDescriptor");
    standin_unlock();
    if (axes < 3 || axes > 8)
        return refuse(NOT_SUPPORTED, "number of axes");
    for (i = 0; i < axes; i++) {
        if (extents[i] < 1)
            return refuse(BAD_PARAM, "an extent below 1");
        if (strides[i] < 1) /* which cuDNN takes */
            standin_fault("a tensor with a stride of %d", strides[i]);
        elements *= extents[i];
        if (elements > INT32_MAX)
            return refuse(NOT_SUPPORTED, "2^31 elements");
    }
    tensor->type = type;
    tensor->axes = axes;
    memcpy(tensor->extents, extents, (size_t)axes * sizeof *extents);
    memcpy(tensor->strides, strides, (size_t)axes * sizeof *strides);
    return CUD_CUDNN_SUCCESS;
}

int cudnnGetTensorNdDescriptor(cud_cudnn_tensor of, int wanted, int *type,
                               int *axes, int *extents, int *strides)
{
    const struct standin_tensor *tensor;
    int i;

    standin_lock();
    tensor = standin_thing(of, STANDIN_TENSOR, "cudnnGetTensorNdDescriptor");
    standin_unlock();
    *type = tensor->type;
    *axes = tensor->axes;
    for (i = 0; i < wanted && i < tensor->axes; i++) {
        extents[i] = tensor->extents[i];
        strides[i] = tensor->strides[i];
    }
    return CUD_CUDNN_SUCCESS;
}

/* ---- Dropout ----------------------------------------------------------- */

int cudnnCreateDropoutDescriptor(cud_cudnn_dropout *to)
{
    *to = make(STANDIN_DROPOUT, sizeof(struct standin_dropout),
               "dropout descriptors");
    return CUD_CUDNN_SUCCESS;
}

int cudnnDestroyDropoutDescriptor(cud_cudnn_dropout dropout)
{
    return unmake(dropout, STANDIN_DROPOUT, "dropout descriptors");
}

int cudnnSetDropoutDescriptor(cud_cudnn_dropout of, cud_cudnn_handle handle,
                              float probability, void *states, size_t size,
                              unsigned long long seed)
{
    struct standin_dropout *dropout;

    if (!of || !handle)
        return refuse(BAD_PARAM, "!handle || !dropoutDesc");
    if (probability != 0 || states || size || seed)
        standin_fault("dropout of %g", (double)probability);
    standin_lock();
    (void)standin_thing(handle, STANDIN_HANDLE, "cudnnSetDropoutDescriptor");
    dropout = standin_thing(of, STANDIN_DROPOUT, "cudnnSetDropoutDescriptor");
    dropout->set = true;
    standin_unlock();
    return CUD_CUDNN_SUCCESS;
}

/* ---- Layers ------------------------------------------------------------ */

int cudnnCreateRNNDescriptor(cud_cudnn_rnn *to)
{
    *to = make(STANDIN_RNN, sizeof(struct standin_rnn), "RNN descriptors");
    return CUD_CUDNN_SUCCESS;
}

int cudnnDestroyRNNDescriptor(cud_cudnn_rnn rnn)
{
    const struct standin_rnn *of;

    standin_lock();
    of = standin_thing(rnn, STANDIN_RNN, "cudnnDestroyRNNDescriptor");
    if (of->built && of->device != standin_device())
        standin_fault("cudnnDestroyRNNDescriptor: it was compiled for device "
                      "%d, and %d is the current one",
                      of->device, standin_device());
    standin_unlock();
    return unmake(rnn, STANDIN_RNN, "RNN descriptors");
}

static bool is_math(int math)
{
    return math == CUD_DEFAULT_MATH || math == CUD_FMA_MATH ||
           math == CUD_TENSOR_OP_MATH_ALLOW_CONVERSION;
}

int cudnnSetRNNDescriptor_v8(cud_cudnn_rnn of, int algorithm, int cell,
                             int bias, int direction, int input_mode, int type,
                             int precision, int math, int32_t input,
                             int32_t hidden, int32_t projection, int32_t layers,
                             cud_cudnn_dropout dropout, uint32_t flags)
{
    struct standin_rnn *rnn;

    standin_lock();
    rnn = standin_thing(of, STANDIN_RNN, "cudnnSetRNNDescriptor_v8");
    standin_unlock();
    if (cell != CUD_LSTM || input_mode != CUD_LINEAR_INPUT ||
        type != CUD_DATA_FLOAT || precision != CUD_DATA_FLOAT ||
        !is_math(math) || algorithm < 0 || algorithm > 3)
        standin_fault("cudnnSetRNNDescriptor_v8: cell %d, input %d, types %d, "
                      "%d, math %d, algorithm %d",
                      cell, input_mode, type, precision, math, algorithm);
    if (input < 1 || hidden < 1 || layers < 1 || projection < 1)
        return refuse(BAD_PARAM, "a size below 1");
    if (projection > hidden)
        return refuse(NOT_SUPPORTED, "");
    if (algorithm != CUD_RNN_ALGO_STANDARD &&
        (bias != CUD_RNN_DOUBLE_BIAS || projection != hidden))
        return refuse(NOT_SUPPORTED, "");
    if (bias != CUD_RNN_DOUBLE_BIAS)
        standin_fault("one bias is not known here");
    rnn->set = true;
    rnn->dropout = dropout;
    rnn->algorithm = algorithm;
    rnn->math = math;
    rnn->directions = direction == CUD_BIDIRECTIONAL ? 2 : 1;
    rnn->input = input;
    rnn->hidden = hidden;
    rnn->output = projection;
    rnn->layers = layers;
    rnn->padded = (flags & CUD_RNN_PADDED_IO_ENABLED) != 0;
    rnn->built = 0;
    return CUD_CUDNN_SUCCESS;
}

struct standin_rnn *standin_rnn_of(cud_cudnn_rnn of, const char *function)
{
    struct standin_rnn *rnn = standin_thing(of, STANDIN_RNN, function);
    const struct standin_dropout *dropout;

    if (!rnn->set)
        standin_fault("%s: the RNN descriptor is not set", function);
    /* The setter takes none, and what then comes the reference does not say. */
    if (!rnn->dropout)
        standin_fault("%s: there is no dropout descriptor", function);
    dropout = standin_thing(rnn->dropout, STANDIN_DROPOUT, function);
    if (!dropout->set)
        standin_fault("%s: the dropout descriptor is not set", function);
    return rnn;
}

int cudnnBuildRNNDynamic(cud_cudnn_handle of, cud_cudnn_rnn desc, int batch)
{
    const struct standin_handle *handle;
    struct standin_rnn *rnn;

    standin_lock();
    handle = check_current(of, "cudnnBuildRNNDynamic");
    rnn = standin_rnn_of(desc, "cudnnBuildRNNDynamic");
    standin_unlock();
    if (fails(handle->device))
        return refuse(CUD_CUDNN_EXECUTION_FAILED, "cuModuleLoadData");
    if (rnn->algorithm != CUD_RNN_ALGO_PERSIST_DYNAMIC || batch < 1)
        return refuse(BAD_PARAM, "not a dynamic algorithm, or no batch");
    rnn->built = batch;
    rnn->device = handle->device;
    return CUD_CUDNN_SUCCESS;
}

/* ---- Weights ----------------------------------------------------------- */

/*
 * The layout is cuDNN's own affair. Here: projection, recurrent matrices, input
 * matrices, biases, the gates backwards, with gaps.
 */
#define GAP 3 /* floats */

static int64_t layer_input(const struct standin_rnn *rnn, int64_t layer)
{
    return layer == 0 ? rnn->input : (int64_t)rnn->directions * rnn->output;
}

static int64_t layer_size(const struct standin_rnn *rnn, int64_t layer)
{
    const int64_t h = rnn->hidden;

    return h * rnn->output + 4 * h * (rnn->output + layer_input(rnn, layer)) +
           8 * h +
           (17 + (standin_settings.cudnn_layouts > 1 ? rnn->math : 0)) * GAP;
}

static int64_t weight_floats(const struct standin_rnn *rnn)
{
    int64_t sum = 0;
    int32_t layer;

    for (layer = 0; layer < rnn->layers; layer++)
        sum += rnn->directions * layer_size(rnn, layer);
    return sum;
}

void standin_place(const struct standin_rnn *rnn, int32_t pseudo_layer,
                   int32_t matrix, struct standin_place *place)
{
    const int32_t layer = pseudo_layer / rnn->directions;
    const int64_t h = rnn->hidden, r = rnn->output, i = layer_input(rnn, layer);
    const bool otherwise = standin_settings.cudnn_layouts &&
                           rnn->algorithm != CUD_RNN_ALGO_STANDARD;
    const int32_t gate = otherwise ? matrix % 4 : 3 - matrix % 4;
    int64_t at = 0, k;

    for (k = 0; k < layer; k++)
        at += rnn->directions * layer_size(rnn, k);
    at += pseudo_layer % rnn->directions * layer_size(rnn, layer);
    *place = (struct standin_place){ h, matrix < 4 ? i : r, at, -1 };
    if (matrix == 8) {
        *place = (struct standin_place){ r, h, at, -1 };
        return;
    }
    at += h * r + GAP;
    place->matrix_at = matrix < 4
                           ? at + 4 * (h * r + GAP) + gate * (h * i + GAP)
                           : at + gate * (h * r + GAP);
    place->bias_at = at + 4 * (h * r + GAP) + 4 * (h * i + GAP) +
                     (matrix / 4 * 4 + gate) * (h + GAP);
}

int cudnnGetRNNWeightSpaceSize(cud_cudnn_handle of, cud_cudnn_rnn desc,
                               size_t *size)
{
    standin_lock();
    (void)standin_thing(of, STANDIN_HANDLE, "cudnnGetRNNWeightSpaceSize");
    *size = (size_t)weight_floats(
                standin_rnn_of(desc, "cudnnGetRNNWeightSpaceSize")) *
            sizeof(float);
    standin_unlock();
    return CUD_CUDNN_SUCCESS;
}

static void describe(cud_cudnn_tensor of, int64_t rows, int64_t columns)
{
    struct standin_tensor *tensor =
        standin_thing(of, STANDIN_TENSOR, "cudnnGetRNNWeightParams");

    tensor->type = CUD_DATA_FLOAT;
    tensor->axes = 3;
    tensor->extents[0] = 1;
    tensor->extents[1] = (int)rows;
    tensor->extents[2] = (int)columns;
    tensor->strides[0] = (int)(rows * columns);
    tensor->strides[1] = (int)columns;
    tensor->strides[2] = 1;
}

int cudnnGetRNNWeightParams(cud_cudnn_handle of, cud_cudnn_rnn desc,
                            int32_t layer, size_t size, const void *space,
                            int32_t matrix, cud_cudnn_tensor matrix_of,
                            void **matrix_at, cud_cudnn_tensor bias_of,
                            void **bias_at)
{
    const struct standin_rnn *rnn;
    struct standin_place place;
    char *base = (char *)space;

    standin_lock();
    (void)standin_thing(of, STANDIN_HANDLE, "cudnnGetRNNWeightParams");
    rnn = standin_rnn_of(desc, "cudnnGetRNNWeightParams");
    if (size != (size_t)weight_floats(rnn) * sizeof(float))
        standin_fault("cudnnGetRNNWeightParams: a space of %zu bytes", size);
    if (layer < 0 || layer >= rnn->layers * rnn->directions || matrix < 0 ||
        matrix > 8)
        standin_fault("cudnnGetRNNWeightParams: matrix %d of layer %d",
                      (int)matrix, (int)layer);
    *matrix_at = *bias_at = NULL;
    if (matrix < 8 || rnn->output != rnn->hidden) {
        standin_place(rnn, layer, matrix, &place);
        *matrix_at = base + place.matrix_at * (int64_t)sizeof(float);
        describe(matrix_of, place.rows, place.columns);
        if (place.bias_at >= 0) {
            *bias_at = base + place.bias_at * (int64_t)sizeof(float);
            describe(bias_of, place.rows, 1);
        }
    }
    standin_unlock();
    return CUD_CUDNN_SUCCESS;
}

/* ---- Sequences --------------------------------------------------------- */

int cudnnCreateRNNDataDescriptor(cud_cudnn_data *to)
{
    *to =
        make(STANDIN_DATA, sizeof(struct standin_data), "RNN data descriptors");
    return CUD_CUDNN_SUCCESS;
}

int cudnnDestroyRNNDataDescriptor(cud_cudnn_data of)
{
    struct standin_data *data;

    standin_lock();
    data = standin_thing(of, STANDIN_DATA, "cudnnDestroyRNNDataDescriptor");
    free(data->lengths);
    data->lengths = NULL;
    standin_unlock();
    return unmake(of, STANDIN_DATA, "RNN data descriptors");
}

int cudnnSetRNNDataDescriptor(cud_cudnn_data of, int type, int layout,
                              int steps, int batch, int width,
                              const int *lengths, void *padding)
{
    struct standin_data *data;
    int b;

    standin_lock();
    data = standin_thing(of, STANDIN_DATA, "cudnnSetRNNDataDescriptor");
    standin_unlock();
    if (type != CUD_DATA_FLOAT || (layout != CUD_RNN_DATA_SEQ_MAJOR_UNPACKED &&
                                   layout != CUD_RNN_DATA_BATCH_MAJOR_UNPACKED))
        standin_fault("cudnnSetRNNDataDescriptor: type %d, layout %d", type,
                      layout);
    if (steps < 1 || batch < 1 || width < 1 || !lengths)
        return refuse(BAD_PARAM, "maxSeqLength <= 0 || batchSize <= 0 || "
                                 "vectorSize <= 0");
    for (b = 0; b < batch; b++)
        if (lengths[b] < 0 || lengths[b] > steps)
            return refuse(BAD_PARAM, "currentSeqLength < 0 || "
                                     "currentSeqLength > maxSeqLength");
    free(data->lengths);
    data->lengths = malloc((size_t)batch * sizeof *lengths);
    if (!data->lengths)
        standin_fault("no memory");
    memcpy(data->lengths, lengths, (size_t)batch * sizeof *lengths);
    data->layout = layout;
    data->steps = steps;
    data->batch = batch;
    data->width = width;
    data->fills = padding != NULL;
    if (padding)
        memcpy(&data->padding, padding, sizeof data->padding);
    return CUD_CUDNN_SUCCESS;
}

/* ---- Memory that a run needs ------------------------------------------- */

/* Sizes are not monotonic, says the reference. */
size_t standin_work_size(const struct standin_rnn *rnn,
                         const struct standin_data *x)
{
    size_t size = (size_t)x->batch * (size_t)x->steps *
                  (size_t)(4 * rnn->hidden) * sizeof(float);

    if (x->batch % 2 == 1 && x->steps % 3 == 2)
        size = size * 8 + 4096;
    if (x->layout == CUD_RNN_DATA_SEQ_MAJOR_UNPACKED)
        size += 4096; /* of layouts it does not speak */
    return size;
}

int cudnnGetRNNTempSpaceSizes(cud_cudnn_handle of, cud_cudnn_rnn desc, int mode,
                              cud_cudnn_data x, size_t *work, size_t *reserve)
{
    const struct standin_handle *handle;
    const struct standin_rnn *rnn;
    const struct standin_data *data;

    standin_lock();
    handle = check_current(of, "cudnnGetRNNTempSpaceSizes");
    rnn = standin_rnn_of(desc, "cudnnGetRNNTempSpaceSizes");
    data = standin_thing(x, STANDIN_DATA, "cudnnGetRNNTempSpaceSizes");
    standin_unlock();
    if (mode != CUD_FWD_MODE_INFERENCE || !data->lengths ||
        data->width != rnn->input)
        standin_fault("cudnnGetRNNTempSpaceSizes: mode %d, width %d", mode,
                      data->width);
    if (rnn->algorithm == CUD_RNN_ALGO_PERSIST_STATIC_SMALL_H &&
        rnn->hidden > 128)
        return refuse(NOT_SUPPORTED, "hiddenSize > 128");
    if (rnn->algorithm == CUD_RNN_ALGO_PERSIST_STATIC &&
        standin_settings.cudnn_sizes)
        return refuse((int)standin_settings.cudnn_sizes, "a wrong size");
    if (fails(handle->device))
        return refuse(CUD_CUDNN_EXECUTION_FAILED, "cudaFuncGetAttributes");
    *work = standin_work_size(rnn, data);
    *reserve = 0;
    return CUD_CUDNN_SUCCESS;
}
