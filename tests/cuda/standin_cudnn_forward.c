/* SPDX-License-Identifier: Apache-2.0 */
/* standin_cudnn_forward.c: cudnnRNNForward(), by the oracle. */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin.h"
#include "tests/cuda/standin_cudnn.h"
#include "tests/oracle/oracle.h"

/* A run that a stream will do. What is not memory of the device is copied. */
struct forward {
    struct standin_rnn rnn;
    struct standin_data x_of, y_of; /* lengths are a copy */
    const int32_t *lengths;
    const float *x, *hx, *cx, *weights;
    float *y, *hy, *cy;
    cudaStream_t stream;
};

static void *allocate(size_t count, size_t size)
{
    void *made = calloc(count > 0 ? count : 1, size);

    if (!made)
        standin_fault("no memory");
    return made;
}

/* ---- Layers for the oracle --------------------------------------------- */

/* [rows][columns] of cuDNN into [columns][stride] of ours. */
static void transpose(const float *from, const struct standin_place *place,
                      float *to, int64_t stride)
{
    int64_t row, column;

    for (row = 0; row < place->rows; row++)
        for (column = 0; column < place->columns; column++)
            to[column * stride + row] = from[row * place->columns + column];
}

/* The weights of one direction; the two biases are added up. */
static cellgate_lstm_weights read_weights(const struct forward *f,
                                          int32_t pseudo_layer, int64_t input)
{
    const int64_t h = f->rnn.hidden, r = f->rnn.output;
    float *kernel = allocate((size_t)(input * 4 * h), sizeof(float));
    float *recurrent = allocate((size_t)(r * 4 * h), sizeof(float));
    float *bias = allocate((size_t)(4 * h), sizeof(float));
    float *projection =
        r != h ? allocate((size_t)(h * r), sizeof(float)) : NULL;
    struct standin_place place;
    int32_t matrix;
    int64_t unit;

    for (matrix = 0; matrix < 8; matrix++) {
        standin_place(&f->rnn, pseudo_layer, matrix, &place);
        transpose(f->weights + place.matrix_at, &place,
                  (matrix < 4 ? kernel : recurrent) + matrix % 4 * h, 4 * h);
        for (unit = 0; unit < h; unit++)
            bias[matrix % 4 * h + unit] += f->weights[place.bias_at + unit];
    }
    if (projection) {
        standin_place(&f->rnn, pseudo_layer, 8, &place);
        transpose(f->weights + place.matrix_at, &place, projection, r);
    }
    return (cellgate_lstm_weights){ kernel, recurrent, bias, NULL, projection };
}

static cellgate_lstm make_layer(const struct forward *f, int32_t layer)
{
    const int32_t directions = f->rnn.directions;
    cellgate_lstm lstm = {
        .op = { sizeof lstm, CELLGATE_OP_LSTM, 0 },
        .input_size =
            layer == 0 ? f->rnn.input : (int64_t)directions * f->rnn.output,
        .hidden_size = f->rnn.hidden,
        .projection_size = f->rnn.output != f->rnn.hidden ? f->rnn.output : 0,
        .directions = directions,
        .outputs = CELLGATE_LSTM_SEQUENCE | CELLGATE_LSTM_H | CELLGATE_LSTM_C,
        .has_bias = 1,
    };
    int d;

    for (d = 0; d < directions; d++) {
        lstm.activations[d][0].kind = CELLGATE_SIGMOID;
        lstm.activations[d][1].kind = CELLGATE_TANH;
        lstm.activations[d][2].kind = CELLGATE_TANH;
        lstm.weights[d] =
            read_weights(f, layer * directions + d, lstm.input_size);
    }
    return lstm;
}

static void free_layer(cellgate_lstm *lstm)
{
    int d;

    for (d = 0; d < lstm->directions; d++) {
        free((float *)lstm->weights[d].kernel);
        free((float *)lstm->weights[d].recurrent_kernel);
        free((float *)lstm->weights[d].bias);
        free((float *)lstm->weights[d].projection);
    }
}

/* ---- Data -------------------------------------------------------------- */

static int64_t data_at(const struct standin_data *of, int64_t b, int64_t t)
{
    return of->layout == CUD_RNN_DATA_BATCH_MAJOR_UNPACKED
               ? (b * of->steps + t) * of->width
               : (t * of->batch + b) * of->width;
}

static float *read_x(const struct forward *f)
{
    const struct standin_data *of = &f->x_of;
    float *x =
        allocate((size_t)of->batch * (size_t)of->steps * (size_t)of->width,
                 sizeof(float));
    int64_t b, t;

    for (b = 0; b < of->batch; b++)
        for (t = 0; t < of->lengths[b]; t++)
            memcpy(x + (b * of->steps + t) * of->width,
                   f->x + data_at(of, b, t), (size_t)of->width * sizeof(float));
    return x;
}

static int64_t longest(const struct standin_data *of)
{
    int64_t most = 0, b;

    for (b = 0; b < of->batch; b++)
        most = most < of->lengths[b] ? of->lengths[b] : most;
    return most;
}

/* What the longest row does not reach is left as it was. */
static void write_y(const struct forward *f, const double *y)
{
    const struct standin_data *of = &f->y_of;
    const int64_t steps = longest(of);
    int64_t b, t, k;

    for (b = 0; b < of->batch; b++)
        for (t = 0; t < steps; t++)
            for (k = 0; k < of->width; k++) {
                const bool valid = t < of->lengths[b];

                if (!valid && !of->fills)
                    continue;
                f->y[data_at(of, b, t) + k] =
                    valid ? (float)y[(b * of->steps + t) * of->width + k]
                          : of->padding;
            }
}

static void write_state(const double *from, float *to, int64_t count)
{
    int64_t i;

    for (i = 0; to && i < count; i++)
        to[i] = (float)from[i];
}

static void check_lengths(const struct forward *f)
{
    int b;

    for (b = 0; b < f->x_of.batch; b++)
        if (f->lengths[b] != f->x_of.lengths[b])
            standin_fault("cudnnRNNForward: length %d of row %d on the device, "
                          "%d in the descriptor",
                          (int)f->lengths[b], b, f->x_of.lengths[b]);
}

static void compute(const struct forward *f, cellgate_lstm *layers,
                    const cellgate_op **ops, oracle_state *states)
{
    const int64_t rows = (int64_t)f->rnn.directions * f->x_of.batch;
    const cellgate_segment segment = { sizeof segment, (uint32_t)f->rnn.layers,
                                       0, ops };
    float *x = read_x(f);
    double *y = allocate((size_t)f->y_of.batch * (size_t)f->y_of.steps *
                             (size_t)f->y_of.width,
                         sizeof(double));
    const oracle_run run = {
        .batch = f->x_of.batch,
        .steps = f->x_of.steps,
        .x = x,
        .lengths = f->x_of.lengths,
        .y = y,
        .states = states,
    };
    int32_t i;

    for (i = 0; i < f->rnn.layers; i++) {
        const int64_t h = rows * f->rnn.output, c = rows * f->rnn.hidden;

        layers[i] = make_layer(f, i);
        ops[i] = &layers[i].op;
        states[i] = (oracle_state){
            .h0 = f->hx ? f->hx + i * h : NULL,
            .c0 = f->cx ? f->cx + i * c : NULL,
            .h = allocate((size_t)h, sizeof(double)),
            .c = allocate((size_t)c, sizeof(double)),
        };
    }
    if (oracle_segment_run(&segment, &run) != 0)
        standin_fault("the oracle cannot run the segment");
    write_y(f, y);
    for (i = 0; i < f->rnn.layers; i++) {
        const int64_t h = rows * f->rnn.output, c = rows * f->rnn.hidden;

        write_state(states[i].h, f->hy ? f->hy + i * h : NULL, h);
        write_state(states[i].c, f->cy ? f->cy + i * c : NULL, c);
        free(states[i].h);
        free(states[i].c);
        free_layer(&layers[i]);
    }
    free(x);
    free(y);
}

static void do_forward(void *arguments)
{
    struct forward *f = arguments;
    const size_t layers = (size_t)f->rnn.layers;
    cellgate_lstm *lstms = allocate(layers, sizeof *lstms);
    const cellgate_op **ops = allocate(layers, sizeof *ops);
    oracle_state *states = allocate(layers, sizeof *states);

    check_lengths(f);
    compute(f, lstms, ops, states);
    if (standin_settings.cudnn_wrong &&
        f->rnn.algorithm != CUD_RNN_ALGO_STANDARD)
        f->y[0] = f->hy[0] = 1;
    if (standin_settings.cudnn_fault &&
        f->rnn.algorithm == CUD_RNN_ALGO_PERSIST_STATIC)
        standin_break(standin_stream_device(f->stream),
                      cudaErrorIllegalAddress);
    free(states);
    free(ops);
    free(lstms);
}

/* ---- The call ---------------------------------------------------------- */

static void check_state(const struct standin_rnn *rnn, int batch,
                        cud_cudnn_tensor of, int32_t width, const void *in,
                        const void *out, int device, const char *what)
{
    const int layers = rnn->layers * rnn->directions;
    const size_t size =
        (size_t)layers * (size_t)batch * (size_t)width * sizeof(float);
    const struct standin_tensor *tensor;

    if (!in && !out)
        return;
    tensor = standin_thing(of, STANDIN_TENSOR, "cudnnRNNForward");
    if (tensor->axes != 3 || tensor->type != CUD_DATA_FLOAT ||
        tensor->extents[0] != layers || tensor->extents[1] != batch ||
        tensor->extents[2] != width || tensor->strides[2] != 1 ||
        tensor->strides[1] != width || tensor->strides[0] != batch * width)
        standin_fault("cudnnRNNForward: the descriptor of %s is [%d][%d][%d], "
                      "not [%d][%d][%d]",
                      what, tensor->extents[0], tensor->extents[1],
                      tensor->extents[2], layers, batch, (int)width);
    if (in)
        standin_check_device(in, size, device, what);
    if (out)
        standin_check_device(out, size, device, what);
}

static bool lengths_differ(const struct standin_data *x)
{
    int b;

    for (b = 0; b < x->batch; b++)
        if (x->lengths[b] != x->steps)
            return true;
    return false;
}

static void check_data(const struct standin_rnn *rnn,
                       const struct standin_data *x,
                       const struct standin_data *y)
{
    int b;

    if (!x->lengths || !y->lengths || x->layout != y->layout ||
        x->batch != y->batch || x->steps != y->steps ||
        memcmp(x->lengths, y->lengths, (size_t)x->batch * sizeof *x->lengths) !=
            0)
        standin_fault("cudnnRNNForward: x and y do not agree");
    if (x->width != rnn->input || y->width != rnn->directions * rnn->output)
        standin_fault("cudnnRNNForward: x has %d features, y %d", x->width,
                      y->width);
    for (b = 0; b < x->batch; b++)
        if (x->lengths[b] < 1)
            standin_fault("cudnnRNNForward: a row of length 0");
    if (!rnn->padded)
        standin_fault("cudnnRNNForward: padded data without the flag for it");
}

/* What an algorithm answers. */
static int answer(const struct standin_rnn *rnn, const struct standin_data *x)
{
    if (rnn->algorithm == CUD_RNN_ALGO_STANDARD)
        return (int)standin_settings.cudnn_standard;
    if (rnn->algorithm == CUD_RNN_ALGO_PERSIST_DYNAMIC &&
        rnn->built != x->batch)
        standin_fault("cudnnRNNForward: built for %d rows, run with %d",
                      rnn->built, x->batch);
    if (lengths_differ(x) ||
        (rnn->algorithm == CUD_RNN_ALGO_PERSIST_STATIC_SMALL_H &&
         rnn->hidden > 128))
        return CUD_CUDNN_NOT_SUPPORTED;
    return standin_settings.cudnn_refuse_below == 0 ||
                   x->batch < standin_settings.cudnn_refuse_below
               ? (int)standin_settings.cudnn_refuse
               : CUD_CUDNN_SUCCESS;
}

static size_t data_size(const struct standin_data *of)
{
    return (size_t)of->batch * (size_t)of->steps * (size_t)of->width *
           sizeof(float);
}

int cudnnRNNForward(cud_cudnn_handle of, cud_cudnn_rnn desc, int mode,
                    const int32_t *lengths, cud_cudnn_data x_desc,
                    const void *x, cud_cudnn_data y_desc, void *y,
                    cud_cudnn_tensor h_desc, const void *hx, void *hy,
                    cud_cudnn_tensor c_desc, const void *cx, void *cy,
                    size_t weights_size, const void *weights, size_t work_size,
                    void *work, size_t reserve_size, void *reserve)
{
    const struct standin_handle *handle;
    const struct standin_rnn *rnn;
    const struct standin_data *x_of, *y_of;
    struct forward f;
    size_t size = 0;
    int code, device;

    (void)cudnnGetRNNWeightSpaceSize(of, desc, &size);
    standin_lock();
    handle = standin_thing(of, STANDIN_HANDLE, "cudnnRNNForward");
    rnn = standin_rnn_of(desc, "cudnnRNNForward");
    x_of = standin_thing(x_desc, STANDIN_DATA, "cudnnRNNForward");
    y_of = standin_thing(y_desc, STANDIN_DATA, "cudnnRNNForward");
    device = handle->device;
    if (!handle->has_stream || device != standin_device())
        standin_fault("cudnnRNNForward: no stream, or another device is the "
                      "current one");
    if (mode != CUD_FWD_MODE_INFERENCE || reserve || reserve_size)
        standin_fault("cudnnRNNForward: mode %d, reserve of %zu", mode,
                      reserve_size);
    check_data(rnn, x_of, y_of);
    if (weights_size != size || work_size < standin_work_size(rnn, x_of))
        standin_fault("cudnnRNNForward: weights of %zu bytes, not %zu; %zu "
                      "bytes of memory, %zu are needed",
                      weights_size, size, work_size,
                      standin_work_size(rnn, x_of));
    standin_check_device(lengths, (size_t)x_of->batch * sizeof *lengths, device,
                         "lengths");
    standin_check_device(x, data_size(x_of), device, "x");
    standin_check_device(y, data_size(y_of), device, "y");
    standin_check_device(weights, size, device, "weights");
    standin_check_device(work, work_size, device, "work");
    check_state(rnn, x_of->batch, h_desc, rnn->output, hx, hy, device, "h");
    check_state(rnn, x_of->batch, c_desc, rnn->hidden, cx, cy, device, "c");
    code = answer(rnn, x_of);
    if (code == CUD_CUDNN_SUCCESS && standin_library_call(device))
        code = CUD_CUDNN_EXECUTION_FAILED;
    if (code == CUD_CUDNN_SUCCESS) {
        f = (struct forward){
            *rnn, *x_of,   *y_of, lengths, x,  hx,
            cx,   weights, y,     hy,      cy, handle->stream
        };
        f.x_of.lengths = malloc((size_t)x_of->batch * sizeof(int));
        if (!f.x_of.lengths)
            standin_fault("no memory");
        memcpy(f.x_of.lengths, x_of->lengths,
               (size_t)x_of->batch * sizeof(int));
        f.y_of.lengths = f.x_of.lengths;
        if (standin_enqueue(handle->stream, do_forward, &f, sizeof f, true,
                            f.x_of.lengths) != cudaSuccess)
            code = CUD_CUDNN_EXECUTION_FAILED;
        else if (rnn->algorithm != CUD_RNN_ALGO_STANDARD)
            standin_fills_device(handle->stream);
    }
    standin_unlock();
    return code;
}
