/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cellgate/chain.h"
#include "plugins/opencl/clblast.h"
#include "plugins/opencl/half.h"
#include "plugins/opencl/plan.h"
#include "plugins/opencl/program.h"
#include "plugins/opencl/segment.h"

/* ---- Packing ----------------------------------------------------------- */

/* A packed matrix: `blocks` of `width` columns by `depth` rows; see lstm.cl. */
struct pack {
    float *to; /* zeros at first */
    int64_t blocks, width, depth;
    bool by_row; /* the blocks of a row follow each other */
};

static int64_t pack_size(const struct pack *pack)
{
    return pack->blocks * pack->width * pack->depth;
}

static float *pack_at(const struct pack *pack, int64_t row, int64_t block)
{
    int64_t at =
        pack->by_row ? row * pack->blocks + block : block * pack->depth + row;

    return pack->to + at * pack->width;
}

/* [depth][4 hidden], gate after gate, into blocks of V units by four gates. */
static void pack_gates(const struct pack *pack, const float *from, int64_t rows,
                       int64_t hidden, uint32_t vector)
{
    int64_t row, unit, gate;

    for (row = 0; row < rows; row++)
        for (gate = 0; gate < 4; gate++)
            for (unit = 0; unit < hidden; unit++)
                pack_at(pack, row,
                        unit / vector)[gate * vector + unit % vector] =
                    from[(row * 4 + gate) * hidden + unit];
}

/* What follows the last row of a matrix that CLBlast takes. */
static struct pack bias_row(const struct pack *matrix)
{
    struct pack row = *matrix;

    row.depth = 1;
    row.to = matrix->to + matrix->blocks * matrix->width * (matrix->depth - 1);
    return row;
}

/* [depth][columns] into blocks of so many columns. */
static void pack_columns(const struct pack *pack, const float *from,
                         int64_t rows, int64_t columns)
{
    int64_t row, column;

    for (row = 0; row < rows; row++)
        for (column = 0; column < columns; column++)
            pack_at(pack, row, column / pack->width)[column % pack->width] =
                from[row * columns + column];
}

/* ---- Uploading --------------------------------------------------------- */

/* Weights on their way: a host copy that is packed, then written. */
struct upload {
    cellgate_device *device;
    cl_command_queue queue;
    enum ocl_pack pack;
    float *host;
    int64_t count;
    size_t size; /* of an element on the device */
};

static cellgate_status upload_begin(struct upload *upload, int64_t count,
                                    bool matrix, struct ocl_buffer *buffer,
                                    cellgate_error *error)
{
    const size_t size = matrix && upload->pack == OCL_PACK_HALF
                            ? sizeof(uint16_t)
                            : sizeof(float);
    cellgate_status status =
        ocl_buffer_create(upload->device, count, size, buffer, error);

    if (status != CELLGATE_OK)
        return status;
    upload->size = size;
    upload->count = count > 0 ? count : 1;
    upload->host = calloc((size_t)upload->count, sizeof(float));
    if (!upload->host)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory to pack %lld weights",
                             (long long)count);
    return CELLGATE_OK;
}

/* In the same memory: an element takes the place of one before it. */
static cellgate_status round_to_half(struct upload *upload,
                                     cellgate_error *error)
{
    uint16_t *to = (uint16_t *)(void *)upload->host;
    int64_t i;

    for (i = 0; i < upload->count; i++) {
        const float from = upload->host[i];
        const uint16_t rounded = ocl_half(from);

        if (ocl_half_overflows(from))
            return cellgate_refuse(
                error, CELLGATE_REASON_DTYPE,
                "a weight of %g does not fit into half precision, which ends "
                "at 65504",
                (double)from);
        memcpy(to + i, &rounded, sizeof rounded);
    }
    return CELLGATE_OK;
}

static cellgate_status upload_end(struct upload *upload,
                                  const struct ocl_buffer *buffer,
                                  cellgate_error *error)
{
    cellgate_status status = upload->size == sizeof(float)
                                 ? CELLGATE_OK
                                 : round_to_half(upload, error);
    cl_int code;

    if (status != CELLGATE_OK)
        return status;
    code = upload->device->cl->EnqueueWriteBuffer(
        upload->queue, buffer->memory, CL_TRUE, 0,
        (size_t)upload->count * upload->size, upload->host, 0, NULL, NULL);
    free(upload->host);
    upload->host = NULL;
    if (code != CL_SUCCESS)
        return ocl_device_fail(upload->device, error, code,
                               "clEnqueueWriteBuffer", "uploading weights");
    return CELLGATE_OK;
}

static cellgate_status upload_array(struct upload *upload, const float *from,
                                    int64_t count, struct ocl_buffer *buffer,
                                    cellgate_error *error)
{
    cellgate_status status = upload_begin(upload, count, false, buffer, error);

    if (status != CELLGATE_OK)
        return status;
    memcpy(upload->host, from, (size_t)count * sizeof *from);
    return upload_end(upload, buffer, error);
}

/* ---- An LSTM ----------------------------------------------------------- */

enum lstm_matrix { KERNEL, RECURRENT, BIAS, PROJECTION };

/* One matrix of each direction. */
static cellgate_status
upload_matrix(struct upload *upload, const struct ocl_lstm *lstm,
              const cellgate_lstm *from, enum lstm_matrix which,
              struct ocl_buffer *buffer, cellgate_error *error)
{
    const uint32_t vector = upload->device->vector;
    const bool by_clblast = upload->pack == OCL_PACK_CLBLAST;
    struct pack pack = { NULL, lstm->blocks, 4 * vector, 1, vector == 1 };
    cellgate_status status;
    int d;

    if (which == KERNEL && by_clblast) {
        pack.depth = lstm->input + 1;
        pack.by_row = true;
    } else if (which == KERNEL)
        pack.depth = lstm->input;
    else if (which == RECURRENT)
        pack.depth = lstm->output;
    else if (which == PROJECTION)
        pack = (struct pack){ NULL, lstm->output_blocks, vector, lstm->hidden,
                              vector == 1 };
    status = upload_begin(upload, lstm->directions * pack_size(&pack),
                          which != BIAS, buffer, error);
    for (d = 0; status == CELLGATE_OK && d < lstm->directions; d++) {
        const cellgate_lstm_weights *w = &from->weights[d];

        pack.to = upload->host + d * pack_size(&pack);
        if (which == PROJECTION)
            pack_columns(&pack, w->projection, lstm->hidden, lstm->output);
        else if (which == BIAS && from->has_bias)
            pack_gates(&pack, w->bias, 1, lstm->hidden, vector);
        else if (which == KERNEL)
            pack_gates(&pack, w->kernel, lstm->input, lstm->hidden, vector);
        else if (which == RECURRENT)
            pack_gates(&pack, w->recurrent_kernel, lstm->output, lstm->hidden,
                       vector);
        if (which == KERNEL && by_clblast && from->has_bias) {
            const struct pack last = bias_row(&pack);

            pack_gates(&last, w->bias, 1, lstm->hidden, vector);
        }
    }
    return status == CELLGATE_OK ? upload_end(upload, buffer, error) : status;
}

static cellgate_status upload_peepholes(struct upload *upload,
                                        struct ocl_lstm *lstm,
                                        const cellgate_lstm *from,
                                        cellgate_error *error)
{
    const int64_t padded = (int64_t)lstm->blocks * upload->device->vector;
    cellgate_status status = upload_begin(upload, lstm->directions * 3 * padded,
                                          false, &lstm->peephole, error);
    int i;

    if (status != CELLGATE_OK)
        return status;
    for (i = 0; i < 3 * lstm->directions; i++)
        memcpy(upload->host + i * padded,
               from->weights[i / 3].peephole + i % 3 * lstm->hidden,
               (size_t)lstm->hidden * sizeof(float));
    return upload_end(upload, &lstm->peephole, error);
}

static cellgate_status upload_lstm(struct upload *upload, const cellgate_op *op,
                                   struct ocl_lstm *lstm, cellgate_error *error)
{
    cellgate_lstm from = { .op = { sizeof from, 0, 0 } };
    cellgate_status status;

    cellgate_struct_copy(&from, op);
    status = upload_matrix(upload, lstm, &from, KERNEL, &lstm->kernel, error);
    if (status == CELLGATE_OK)
        status = upload_matrix(upload, lstm, &from, RECURRENT, &lstm->recurrent,
                               error);
    if (status == CELLGATE_OK)
        status = upload_matrix(upload, lstm, &from, BIAS, &lstm->bias, error);
    if (status == CELLGATE_OK && lstm->projects)
        status = upload_matrix(upload, lstm, &from, PROJECTION,
                               &lstm->projection, error);
    if (status == CELLGATE_OK && lstm->peepholes)
        status = upload_peepholes(upload, lstm, &from, error);
    return status;
}

/* ---- Other ops --------------------------------------------------------- */

static cellgate_status upload_dense(struct upload *upload,
                                    const cellgate_dense *from,
                                    struct ocl_dense *dense,
                                    cellgate_error *error)
{
    const uint32_t width = 4 * upload->device->vector;
    const bool by_clblast = upload->pack == OCL_PACK_CLBLAST;
    struct pack pack = { NULL, (from->units + width - 1) / width, width,
                         from->input_size + by_clblast,
                         upload->device->vector == 1 || by_clblast };
    cellgate_status status;

    *dense = (struct ocl_dense){ .input = from->input_size,
                                 .units = from->units,
                                 .blocks = (int32_t)pack.blocks };
    status =
        upload_begin(upload, pack_size(&pack), true, &dense->kernel, error);
    if (status != CELLGATE_OK)
        return status;
    pack.to = upload->host;
    pack_columns(&pack, from->kernel, from->input_size, from->units);
    if (by_clblast && from->has_bias) {
        const struct pack last = bias_row(&pack);

        pack_columns(&last, from->bias, 1, from->units);
    }
    status = upload_end(upload, &dense->kernel, error);
    if (status == CELLGATE_OK)
        status = upload_begin(upload, pack.blocks * width, false, &dense->bias,
                              error);
    if (status != CELLGATE_OK)
        return status;
    if (from->has_bias)
        memcpy(upload->host, from->bias,
               (size_t)from->units * sizeof *from->bias);
    return upload_end(upload, &dense->bias, error);
}

static struct ocl_stage *add_stage(struct cellgate_weights *weights,
                                   enum ocl_stage_kind kind, int64_t width,
                                   bool sequence)
{
    struct ocl_stage *stage = &weights->stages[weights->stage_count];
    uint32_t finishes = 0;

    if (weights->stage_count > 0)
        finishes = (uint32_t)(stage[-1].finishes - weights->finishes) +
                   stage[-1].finish_count;
    weights->stage_count++;
    stage->kind = kind;
    stage->width = width;
    stage->sequence = sequence;
    stage->finishes = weights->finishes + finishes;
    return stage;
}

/* The stage whose rows an elementwise op works on. */
static struct ocl_stage *last_stage(struct cellgate_weights *weights,
                                    int64_t width)
{
    if (weights->stage_count == 0)
        return add_stage(weights, OCL_STAGE_COPY, width, true);
    return &weights->stages[weights->stage_count - 1];
}

/* `activation` NULL: a softmax. */
static void add_finish(struct ocl_stage *stage,
                       const cellgate_activation *activation)
{
    struct ocl_finish *finish = &stage->finishes[stage->finish_count];

    if (activation && activation->kind == CELLGATE_LINEAR)
        return;
    stage->finish_count++;
    finish->softmax = !activation;
    if (activation)
        finish->activation =
            (struct ocl_activation){ activation->kind, activation->alpha,
                                     activation->beta, 0 };
}

/* Whether what comes so far is a sequence. */
static bool is_sequence(const struct cellgate_weights *weights)
{
    return weights->stage_count == 0 ||
           weights->stages[weights->stage_count - 1].sequence;
}

static cellgate_status add_lstm(struct upload *upload,
                                struct cellgate_weights *weights, uint32_t at,
                                const cellgate_op *op, cellgate_error *error)
{
    struct ocl_lstm lstm;
    struct ocl_stage *stage;

    ocl_lstm_read(op, upload->device->vector, &lstm);
    lstm.op = at;
    stage = add_stage(weights, OCL_STAGE_LSTM, lstm.directions * lstm.output,
                      (lstm.outputs & CELLGATE_LSTM_SEQUENCE) != 0);
    stage->lstm = lstm;
    return upload_lstm(upload, op, &stage->lstm, error);
}

static cellgate_status add_dense(struct upload *upload,
                                 struct cellgate_weights *weights,
                                 const cellgate_op *op, cellgate_error *error)
{
    cellgate_dense dense = { .op = { sizeof dense, 0, 0 } };
    struct ocl_stage *stage;

    cellgate_struct_copy(&dense, op);
    stage =
        add_stage(weights, OCL_STAGE_DENSE, dense.units, is_sequence(weights));
    add_finish(stage, &dense.activation);
    return upload_dense(upload, &dense, &stage->dense, error);
}

static cellgate_status add_embedding(struct upload *upload,
                                     struct cellgate_weights *weights,
                                     const cellgate_op *op,
                                     cellgate_error *error)
{
    cellgate_embedding from = { .op = { sizeof from, 0, 0 } };

    cellgate_struct_copy(&from, op);
    weights->table_width = from.size;
    return upload_array(upload, from.table, from.vocabulary * from.size,
                        &weights->table, error);
}

static cellgate_status add_op(struct upload *upload,
                              struct cellgate_weights *weights, uint32_t at,
                              const cellgate_op *op, cellgate_error *error)
{
    cellgate_activation_op act = { .op = { sizeof act, 0, 0 } };
    cellgate_softmax softmax = { .op = { sizeof softmax, 0, 0 } };

    switch (op->kind) {
    case CELLGATE_OP_LSTM:
        return add_lstm(upload, weights, at, op, error);
    case CELLGATE_OP_DENSE:
        return add_dense(upload, weights, op, error);
    case CELLGATE_OP_EMBEDDING:
        return add_embedding(upload, weights, op, error);
    case CELLGATE_OP_ACTIVATION:
        cellgate_struct_copy(&act, op);
        add_finish(last_stage(weights, act.size), &act.activation);
        return CELLGATE_OK;
    default:
        cellgate_struct_copy(&softmax, op);
        add_finish(last_stage(weights, softmax.size), NULL);
        return CELLGATE_OK;
    }
}

/* ---- prepare() and weights_free() -------------------------------------- */

/* Features of the first op's input. */
static int64_t input_width(const cellgate_op *op)
{
    cellgate_lstm lstm = { .op = { sizeof lstm, 0, 0 } };
    cellgate_dense dense = { .op = { sizeof dense, 0, 0 } };
    cellgate_softmax softmax = { .op = { sizeof softmax, 0, 0 } };

    switch (op->kind) {
    case CELLGATE_OP_LSTM:
        cellgate_struct_copy(&lstm, op);
        return lstm.input_size;
    case CELLGATE_OP_DENSE:
        cellgate_struct_copy(&dense, op);
        return dense.input_size;
    case CELLGATE_OP_EMBEDDING:
        return 1;
    default: /* an activation begins like a softmax */
        cellgate_struct_copy(&softmax, op);
        return softmax.size;
    }
}

static cellgate_status fill(struct upload *upload,
                            struct cellgate_weights *weights,
                            const cellgate_segment *segment,
                            cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    uint32_t at;

    for (at = 0; status == CELLGATE_OK && at < segment->op_count; at++)
        status = add_op(upload, weights, at, segment->ops[at], error);
    free(upload->host);
    /* An embedding alone, or a linear activation: rows all the same. */
    if (status == CELLGATE_OK && weights->stage_count == 0)
        (void)add_stage(weights, OCL_STAGE_COPY,
                        weights->table_width ? weights->table_width
                                             : weights->input_width,
                        true);
    return status;
}

/* What is wrong with more than one variant, or will not be so later. A kernel
   that needs more registers than there are is CL_OUT_OF_RESOURCES too. */
static bool concerns_all(cellgate_status status, const cellgate_error *why)
{
    return status == CELLGATE_DEVICE_LOST || status == CELLGATE_NO_MEMORY ||
           (status == CELLGATE_DEVICE_MEMORY &&
            why->vendor_code != CL_OUT_OF_RESOURCES);
}

/*
 * One run of the smallest shape in every variant that is not excluded: programs
 * are built, drivers that compile at the first launch have compiled, and
 * libraries are awake before the first request comes. A variant that fails is
 * refused from then on; if all do, there is nothing to prepare for.
 */
static cellgate_status warm_up(cellgate_device *device,
                               cellgate_weights *weights, cellgate_error *error)
{
    const struct ocl_outline *outline = &weights->outline;
    cellgate_error first = CELLGATE_ERROR_INIT;
    uint32_t i, tried = 0, started = 0;
    uint64_t id;

    for (i = 0; ocl_variant_offered(device, outline, 0, i, &id); i++) {
        cellgate_error why = CELLGATE_ERROR_INIT;
        cellgate_status status;

        if (ocl_variant_at(id)->pack != weights->pack)
            continue;
        tried++;
        if (ocl_variant_excluded(device, id))
            continue;
        status = ocl_variant_check(device, outline, id, 0, &why);
        if (status == CELLGATE_OK) {
            if (weights->pack == OCL_PACK_CLBLAST)
                status = ocl_clblast_wake(device, &why);
            if (status == CELLGATE_OK)
                status = ocl_plan_warm(device, weights, id, &why);
            if (concerns_all(status, &why)) {
                *error = why;
                return status;
            }
            if (status != CELLGATE_OK)
                ocl_refuse_variant(device, outline, id, why.text);
        }
        started += status == CELLGATE_OK;
        if (first.status == CELLGATE_OK)
            first = why;
    }
    if (started > 0)
        return CELLGATE_OK;
    if (tried == 0)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "no variant of this segment is of pack %u",
                             (unsigned)weights->pack);
    *error = first;
    return (cellgate_status)first.status;
}

cellgate_status ocl_prepare(cellgate_device *device,
                            const cellgate_segment *segment, uint32_t pack,
                            cellgate_weights **weights, cellgate_error *error)
{
    const size_t ops = segment->op_count;
    struct upload upload = { .device = device, .pack = (enum ocl_pack)pack };
    cellgate_status status = ocl_device_check(device, error);
    struct cellgate_weights *made;
    cl_int code;

    if (status == CELLGATE_OK)
        status = ocl_segment_check(segment, error);
    if (status == CELLGATE_OK)
        status = cellgate_chain_check_weights(segment, error);
    if (status != CELLGATE_OK)
        return status;
    if (pack >= OCL_PACKS)
        return cellgate_fail(error, CELLGATE_INVALID, "no pack %u", pack);
    made = calloc(1, sizeof *made + ops * (sizeof made->stages[0] +
                                           sizeof made->finishes[0]));
    if (!made)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
    made->device = device;
    made->pack = (enum ocl_pack)pack;
    made->op_count = segment->op_count;
    ocl_outline_read(segment, device->vector, &made->outline);
    made->input_width = input_width(segment->ops[0]);
    made->stages = (struct ocl_stage *)(made + 1);
    made->finishes = (struct ocl_finish *)(made->stages + ops);
    upload.queue =
        device->cl->CreateCommandQueue(device->context, device->id, 0, &code);
    if (code != CL_SUCCESS) {
        free(made);
        return ocl_device_fail(device, error, code, "clCreateCommandQueue",
                               "preparing weights");
    }
    status = fill(&upload, made, segment, error);
    (void)device->cl->ReleaseCommandQueue(upload.queue);
    if (status == CELLGATE_OK)
        status = warm_up(device, made, error);
    if (status == CELLGATE_OK)
        *weights = made;
    else
        ocl_weights_free(made);
    return status;
}

void ocl_weights_free(cellgate_weights *weights)
{
    cellgate_device *device;
    uint32_t i;

    if (!weights)
        return;
    device = weights->device;
    for (i = 0; i < weights->stage_count; i++) {
        struct ocl_lstm *lstm = &weights->stages[i].lstm;
        struct ocl_dense *dense = &weights->stages[i].dense;

        ocl_buffer_destroy(device, &lstm->kernel);
        ocl_buffer_destroy(device, &lstm->recurrent);
        ocl_buffer_destroy(device, &lstm->projection);
        ocl_buffer_destroy(device, &lstm->bias);
        ocl_buffer_destroy(device, &lstm->peephole);
        ocl_buffer_destroy(device, &dense->kernel);
        ocl_buffer_destroy(device, &dense->bias);
    }
    ocl_buffer_destroy(device, &weights->table);
    free(weights);
}
