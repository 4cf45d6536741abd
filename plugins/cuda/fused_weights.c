/* SPDX-License-Identifier: Apache-2.0 */
/* fused_weights.c: weights as cuDNN wants them. */
#include "config.h"

#include <stdlib.h>

#include "plugins/cuda/fused.h"

/*
 * A layer and direction has matrices 0 to 3, of the input, 4 to 7, of the
 * state, in the order of the gates i, f, c, o, and 8, the projection. Those of
 * gates have biases, of which the second half stays zero.
 */
#define GATES 4
#define MATRICES 8
#define PROJECTION 8

/* One matrix, or its bias, in cuDNN's weight space. */
struct place {
    int32_t layer; /* pseudo-layer: layer * directions + direction */
    int32_t matrix;
    int rows, columns;
    int64_t matrix_at, bias_at; /* bytes; -1: there is none */
};

static int64_t offset_of(const struct cud_buffer *space, const void *address)
{
    return address ? (const char *)address - (const char *)space->memory : -1;
}

/* Rows and columns of a descriptor [1][rows][columns]. */
static cellgate_status matrix_extent(cellgate_device *device,
                                     cud_cudnn_tensor tensor, int *rows,
                                     int *columns, cellgate_error *error)
{
    int type, axes, extents[3] = { 0 }, strides[3];
    cellgate_status status =
        cud_cudnn_check(device, error,
                        device->cudnn.GetTensorNdDescriptor(
                            tensor, 3, &type, &axes, extents, strides),
                        "GetTensorNdDescriptor", "laying out weights");

    if (status != CELLGATE_OK)
        return status;
    if (axes != 3 || extents[0] != 1 || strides[1] != extents[2] ||
        strides[2] != 1 || type != CUD_DATA_FLOAT)
        return cellgate_fail(error, CELLGATE_DEVICE_FAILED,
                             "cuDNN lays out weights in a way that this plugin "
                             "does not know");
    *rows = extents[1];
    *columns = extents[2];
    return CELLGATE_OK;
}

/* Asks where a matrix of a layer and its bias lie. */
static cellgate_status find_place(cellgate_device *device,
                                  const struct cud_handle *handle,
                                  cud_cudnn_rnn rnn,
                                  const struct cud_buffer *space,
                                  struct place *place, cellgate_error *error)
{
    const struct cud_cudnn *cudnn = &device->cudnn;
    cud_cudnn_tensor matrix = NULL, bias = NULL;
    void *matrix_address = NULL, *bias_address = NULL;
    cellgate_status status;

    status =
        cud_cudnn_check(device, error, cudnn->CreateTensorDescriptor(&matrix),
                        "CreateTensorDescriptor", "laying out weights");
    if (status == CELLGATE_OK)
        status =
            cud_cudnn_check(device, error, cudnn->CreateTensorDescriptor(&bias),
                            "CreateTensorDescriptor", "laying out weights");
    if (status == CELLGATE_OK)
        status = cud_cudnn_check(
            device, error,
            cudnn->GetRNNWeightParams(
                handle->cudnn, rnn, place->layer, space->size, space->memory,
                place->matrix, matrix, &matrix_address, bias, &bias_address),
            "GetRNNWeightParams", "laying out weights");
    place->matrix_at = offset_of(space, matrix_address);
    place->bias_at = offset_of(space, bias_address);
    if (status == CELLGATE_OK && matrix_address)
        status =
            matrix_extent(device, matrix, &place->rows, &place->columns, error);
    if (matrix)
        (void)cudnn->DestroyTensorDescriptor(matrix);
    if (bias)
        (void)cudnn->DestroyTensorDescriptor(bias);
    return status;
}

static int32_t matrix_count(const struct cud_stage *stage)
{
    return stage->lstms[0].projects ? PROJECTION + 1 : MATRICES;
}

static int32_t pseudo_layers(const struct cud_stage *stage)
{
    return (int32_t)stage->layers * stage->lstms[0].directions;
}

static cellgate_status space_size(cellgate_device *device,
                                  const struct cud_handle *handle,
                                  cud_cudnn_rnn rnn, size_t *size,
                                  cellgate_error *error)
{
    return cud_cudnn_check(
        device, error,
        device->cudnn.GetRNNWeightSpaceSize(handle->cudnn, rnn, size),
        "GetRNNWeightSpaceSize", "laying out weights");
}

/* Where the matrices of a stack lie in a space of the right size, as one
   number: descriptors that agree in it can share weights. */
static cellgate_status find_layout(cellgate_device *device,
                                   const struct cud_handle *handle,
                                   cud_cudnn_rnn rnn,
                                   const struct cud_stage *stage,
                                   const struct cud_buffer *space,
                                   uint64_t *layout, cellgate_error *error)
{
    uint64_t sum = 0xcbf29ce484222325u;
    cellgate_status status = CELLGATE_OK;
    int32_t i;

    for (i = 0; status == CELLGATE_OK &&
                i < pseudo_layers(stage) * matrix_count(stage);
         i++) {
        struct place place = { .layer = i / matrix_count(stage),
                               .matrix = i % matrix_count(stage) };

        status = find_place(device, handle, rnn, space, &place, error);
        sum = (sum ^ (uint64_t)place.matrix_at) * 0x100000001b3u;
        sum = (sum ^ (uint64_t)place.bias_at) * 0x100000001b3u;
    }
    *layout = sum;
    return status;
}

cellgate_status
cud_rnn_weights(cellgate_device *device, const struct cud_handle *handle,
                cud_cudnn_rnn rnn, const struct cud_stage *stage,
                const struct cud_buffer **weights, cellgate_error *error)
{
    size_t size = 0;
    cellgate_status status = space_size(device, handle, rnn, &size, error);
    uint32_t i;

    *weights = NULL;
    for (i = 0; status == CELLGATE_OK && !*weights && i < stage->space_count;
         i++) {
        const struct cud_space *space = &stage->spaces[i];
        uint64_t layout = 0;

        if (space->memory.size != size)
            continue;
        status = find_layout(device, handle, rnn, stage, &space->memory,
                             &layout, error);
        if (status == CELLGATE_OK && layout == space->layout)
            *weights = &space->memory;
    }
    return status;
}

/* ---- Filling ----------------------------------------------------------- */

/* [columns][stride] of ours, from a column of it on, into [rows][columns]. */
static void transpose(const float *from, int64_t stride,
                      const struct place *place, float *to)
{
    int64_t row, column;

    for (row = 0; row < place->rows; row++)
        for (column = 0; column < place->columns; column++)
            to[row * place->columns + column] = from[column * stride + row];
}

static void fill_matrix(const struct cud_lstm *lstm,
                        const cellgate_lstm_weights *w,
                        const struct place *place, char *host)
{
    float *matrix = (float *)(void *)(host + place->matrix_at);
    const int64_t gate = place->matrix % GATES * lstm->hidden;

    if (place->matrix == PROJECTION) {
        transpose(w->projection, lstm->output, place, matrix);
        return;
    }
    if (place->matrix < GATES)
        transpose(w->kernel + gate, GATES * lstm->hidden, place, matrix);
    else
        transpose(w->recurrent_kernel + gate, GATES * lstm->hidden, place,
                  matrix);
    if (lstm->has_bias && place->matrix < GATES)
        memcpy(host + place->bias_at, w->bias + gate,
               (size_t)lstm->hidden * sizeof(float));
}

/* Whether the place has the extent that it must have, inside the space. */
static cellgate_status check_place(const struct cud_buffer *space,
                                   const struct cud_lstm *lstm,
                                   const struct place *place,
                                   cellgate_error *error)
{
    const int64_t rows =
        place->matrix == PROJECTION ? lstm->output : lstm->hidden;
    const int64_t columns = place->matrix == PROJECTION ? lstm->hidden
                            : place->matrix < GATES     ? lstm->input
                                                        : lstm->output;
    const int64_t floats = (int64_t)(space->size / sizeof(float));
    const bool biased = place->matrix < GATES;

    if (place->matrix_at >= 0 && place->matrix_at % 4 == 0 &&
        place->rows == rows && place->columns == columns &&
        place->matrix_at / 4 + rows * columns <= floats &&
        (!biased || (place->bias_at >= 0 && place->bias_at % 4 == 0 &&
                     place->bias_at / 4 + rows <= floats)))
        return CELLGATE_OK;
    return cellgate_fail(error, CELLGATE_DEVICE_FAILED,
                         "op %u: cuDNN's matrix %d is %d by %d, not %lld by "
                         "%lld",
                         lstm->op, (int)place->matrix, place->rows,
                         place->columns, (long long)rows, (long long)columns);
}

static cellgate_status fill(cellgate_device *device,
                            const struct cud_handle *handle, cud_cudnn_rnn rnn,
                            const struct cud_stage *stage,
                            const struct cud_buffer *space,
                            const cellgate_segment *segment, char *host,
                            cellgate_error *error)
{
    const int32_t directions = stage->lstms[0].directions;
    cellgate_status status = CELLGATE_OK;
    int32_t i;

    for (i = 0; status == CELLGATE_OK &&
                i < pseudo_layers(stage) * matrix_count(stage);
         i++) {
        struct place place = { .layer = i / matrix_count(stage),
                               .matrix = i % matrix_count(stage) };
        const struct cud_lstm *lstm = &stage->lstms[place.layer / directions];
        cellgate_lstm from = { .op = { sizeof from, 0, 0 } };

        cellgate_struct_copy(&from, segment->ops[lstm->op]);
        status = find_place(device, handle, rnn, space, &place, error);
        if (status == CELLGATE_OK)
            status = check_place(space, lstm, &place, error);
        if (status == CELLGATE_OK)
            fill_matrix(lstm, &from.weights[place.layer % directions], &place,
                        host);
    }
    return status;
}

static cellgate_status upload(cellgate_device *device,
                              const struct cud_handle *handle,
                              cud_cudnn_rnn rnn, const struct cud_stage *stage,
                              struct cud_space *space,
                              const cellgate_segment *segment,
                              cellgate_error *error)
{
    const size_t size = space->memory.size;
    char *host = calloc(1, size);
    cellgate_status status;

    if (!host)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory to lay out %zu bytes of weights", size);
    status =
        fill(device, handle, rnn, stage, &space->memory, segment, host, error);
    if (status == CELLGATE_OK)
        status = cud_upload(device, &space->memory, host, size, error);
    free(host);
    return status == CELLGATE_OK
               ? find_layout(device, handle, rnn, stage, &space->memory,
                             &space->layout, error)
               : status;
}

static cellgate_status add_space(cellgate_device *device,
                                 const struct cud_handle *handle,
                                 cud_cudnn_rnn rnn, struct cud_stage *stage,
                                 const cellgate_segment *segment,
                                 cellgate_error *error)
{
    struct cud_space *space = &stage->spaces[stage->space_count];
    size_t size = 0;
    cellgate_status status;

    if (stage->space_count == CUD_SPACES_MAX)
        return cellgate_fail(error, CELLGATE_INTERNAL,
                             "cuDNN lays out weights in more than %d ways",
                             CUD_SPACES_MAX);
    status = space_size(device, handle, rnn, &size, error);
    if (status == CELLGATE_OK)
        status =
            cud_buffer_create(device, (int64_t)size, 1, &space->memory, error);
    if (status != CELLGATE_OK)
        return status;
    status = upload(device, handle, rnn, stage, space, segment, error);
    if (status == CELLGATE_OK)
        stage->space_count++;
    else
        cud_buffer_destroy(device, &space->memory);
    return status;
}

/* Lays the weights out for one algorithm and math type, unless they are so. */
static cellgate_status
lay_out(cellgate_device *device, const struct cud_handle *handle,
        const struct cud_variant *variant, struct cud_stage *stage,
        const cellgate_segment *segment, cellgate_error *error)
{
    const struct cud_buffer *there = NULL;
    cud_cudnn_rnn rnn = NULL;
    cellgate_status status =
        cud_rnn_create(device, stage->lstms, stage->layers, variant->algorithm,
                       variant->math, &rnn, error);

    if (status == CELLGATE_OK)
        status = cud_rnn_weights(device, handle, rnn, stage, &there, error);
    if (status == CELLGATE_OK && !there)
        status = add_space(device, handle, rnn, stage, segment, error);
    cud_rnn_destroy(device, rnn);
    return status;
}

/* What support() says of itself is only for who looks closely. */
static void note_lack(cellgate_device *device, struct cud_stage *stage,
                      const struct cud_variant *variant,
                      const cellgate_error *why)
{
    const cellgate_log_level level = why->status == CELLGATE_UNSUPPORTED
                                         ? CELLGATE_LOG_DEBUG
                                         : CELLGATE_LOG_WARNING;
    struct cud_lack *lack = &stage->lacks[stage->lack_count];
    char line[300];

    if (stage->lack_count == CUD_SPACES_MAX)
        return;
    stage->lack_count++;
    lack->of = variant;
    (void)snprintf(lack->text, sizeof lack->text, "%.159s", why->text);
    (void)snprintf(line, sizeof line,
                   "op %u: weights are not laid out for variant %s: %.180s",
                   (unsigned)stage->op, variant->name, why->text);
    device->host->log(device->host->context, (int32_t)level, line);
}

static bool is_wanted(const cellgate_device *device, uint64_t id)
{
    return cud_variant_at(id)->way == CUD_FUSED &&
           cud_variant_exists(device, id) && !cud_variant_excluded(device, id);
}

/* *first is what the first variant that was left out failed with. */
static cellgate_status lay_out_all(cellgate_device *device,
                                   const struct cud_handle *handle,
                                   struct cud_stage *stage,
                                   const cellgate_segment *segment,
                                   cellgate_error *first, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    uint64_t id;

    for (id = 0; status == CELLGATE_OK && cud_variant_at(id); id++) {
        const struct cud_variant *variant = cud_variant_at(id);
        cellgate_error why = CELLGATE_ERROR_INIT;

        if (!is_wanted(device, id))
            continue;
        status = lay_out(device, handle, variant, stage, segment, &why);
        if (status == CELLGATE_DEVICE_LOST || id == CUD_CUDNN_ID) {
            if (status != CELLGATE_OK)
                *error = why;
        } else if (status != CELLGATE_OK) {
            note_lack(device, stage, variant, &why);
            if (first->status == CELLGATE_OK)
                *first = why;
            status = CELLGATE_OK;
        }
    }
    return status;
}

/* The layout is cuDNN's affair, and may differ between algorithms and math
   types; where one cannot be had, plans of its variants say so. "cudnn" has to
   have one, and where that is excluded any other. */
cellgate_status cud_fused_prepare(cellgate_device *device,
                                  struct cud_stage *stage,
                                  const cellgate_segment *segment,
                                  cellgate_error *error)
{
    struct cud_handle *handle = NULL;
    cellgate_error first = CELLGATE_ERROR_INIT;
    cellgate_status status = cud_handle_take(device, &handle, error);

    if (status == CELLGATE_OK)
        status = lay_out_all(device, handle, stage, segment, &first, error);
    cud_handle_give(device, handle);
    if (status != CELLGATE_OK || stage->space_count > 0 ||
        first.status == CELLGATE_OK)
        return status;
    *error = first;
    return (cellgate_status)first.status;
}
