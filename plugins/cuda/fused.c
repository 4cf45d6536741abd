/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/cuda/fused.h"

/* ---- Descriptors ------------------------------------------------------- */

cellgate_status cud_dropout_create(cellgate_device *device,
                                   const struct cud_handle *handle,
                                   cellgate_error *error)
{
    const struct cud_cudnn *cudnn = &device->cudnn;
    int code = cudnn->CreateDropoutDescriptor(&device->no_dropout);

    if (code == CUD_CUDNN_SUCCESS)
        code = cudnn->SetDropoutDescriptor(device->no_dropout, handle->cudnn, 0,
                                           NULL, 0, 0);
    return cud_cudnn_check(device, error, code, "SetDropoutDescriptor",
                           "starting cuDNN");
}

void cud_dropout_destroy(cellgate_device *device)
{
    if (device->no_dropout && cud_device_enter_to_free(device))
        (void)device->cudnn.DestroyDropoutDescriptor(device->no_dropout);
    device->no_dropout = NULL;
}

cellgate_status cud_rnn_create(cellgate_device *device,
                               const struct cud_lstm *lstms, uint32_t layers,
                               int algorithm, int math, cud_cudnn_rnn *rnn,
                               cellgate_error *error)
{
    const struct cud_cudnn *cudnn = &device->cudnn;
    cud_cudnn_rnn made = NULL;
    cellgate_status status =
        cud_cudnn_check(device, error, cudnn->CreateRNNDescriptor(&made),
                        "CreateRNNDescriptor", "describing a layer");

    /* Two biases, the second of zeros: the persistent algorithms take no other
       number. A projection to the hidden size is none. */
    if (status == CELLGATE_OK)
        status = cud_cudnn_check(
            device, error,
            cudnn->SetRNNDescriptor_v8(
                made, algorithm, CUD_LSTM, CUD_RNN_DOUBLE_BIAS,
                lstms[0].directions == 2 ? CUD_BIDIRECTIONAL
                                         : CUD_UNIDIRECTIONAL,
                CUD_LINEAR_INPUT, CUD_DATA_FLOAT, CUD_DATA_FLOAT, math,
                (int32_t)lstms[0].input, (int32_t)lstms[0].hidden,
                (int32_t)lstms[0].output, (int32_t)layers, device->no_dropout,
                CUD_RNN_PADDED_IO_ENABLED),
            "SetRNNDescriptor_v8", "describing a layer");
    if (status == CELLGATE_OK)
        *rnn = made;
    else
        cud_rnn_destroy(device, made);
    return status;
}

void cud_rnn_destroy(cellgate_device *device, cud_cudnn_rnn rnn)
{
    /* What a dynamic algorithm compiled is lost with the device. */
    if (rnn && !atomic_load(&device->lost))
        (void)device->cudnn.DestroyRNNDescriptor(rnn);
}

/* A sequence; `lengths` of the rows, each at least 1. */
static cellgate_status set_data(cellgate_device *device, cud_cudnn_data data,
                                bool time_major, int64_t rows, int64_t span,
                                int64_t width, const int32_t *lengths,
                                cellgate_error *error)
{
    float padding = 0;

    return cud_cudnn_check(device, error,
                           device->cudnn.SetRNNDataDescriptor(
                               data, CUD_DATA_FLOAT,
                               time_major ? CUD_RNN_DATA_SEQ_MAJOR_UNPACKED
                                          : CUD_RNN_DATA_BATCH_MAJOR_UNPACKED,
                               (int)span, (int)rows, (int)width, lengths,
                               &padding),
                           "SetRNNDataDescriptor", "describing a sequence");
}

static cellgate_status set_state(cellgate_device *device,
                                 cud_cudnn_tensor tensor, int64_t layers,
                                 int64_t rows, int64_t width,
                                 cellgate_error *error)
{
    const int extents[3] = { (int)layers, (int)rows, (int)width };
    const int strides[3] = { (int)(rows * width), (int)width, 1 };

    return cud_cudnn_check(device, error,
                           device->cudnn.SetTensorNdDescriptor(
                               tensor, CUD_DATA_FLOAT, 3, extents, strides),
                           "SetTensorNdDescriptor", "describing a state");
}

static int64_t fused_width(const struct cud_lstm *lstm)
{
    return lstm->directions * lstm->output;
}

/* Of more elements cuDNN makes no tensor, whose strides are ints besides. */
static cellgate_status check_state(const struct cud_lstm *lstm, uint32_t layers,
                                   int64_t rows, cellgate_error *error)
{
    const int64_t width =
        lstm->hidden > lstm->output ? lstm->hidden : lstm->output;
    const int64_t of_row = layers * lstm->directions * width;

    if (rows <= INT32_MAX / of_row)
        return CELLGATE_OK;
    return cellgate_refuse(error, CELLGATE_REASON_SHAPE,
                           "batch %lld by %lld numbers of state is more than "
                           "the %d that cuDNN takes",
                           (long long)rows, (long long)of_row, INT32_MAX);
}

static cellgate_status work_size_of(cellgate_device *device,
                                    const struct cud_handle *handle,
                                    cud_cudnn_rnn rnn, cud_cudnn_data x,
                                    size_t *size, cellgate_error *error)
{
    size_t wanted = 0, reserve = 0;
    cellgate_status status = cud_cudnn_check(
        device, error,
        device->cudnn.GetRNNTempSpaceSizes(
            handle->cudnn, rnn, CUD_FWD_MODE_INFERENCE, x, &wanted, &reserve),
        "GetRNNTempSpaceSizes", "asking for a size");

    if (status == CELLGATE_OK && *size < wanted)
        *size = wanted;
    return status;
}

/* By cuDNN's reference the size is one of rows and steps, not of their lengths;
   it says nothing of layouts. */
cellgate_status
cud_rnn_work_size(cellgate_device *device, const struct cud_handle *handle,
                  cud_cudnn_rnn rnn, const struct cud_lstm *lstms,
                  uint32_t layers, int64_t rows, int64_t span, cud_cudnn_data x,
                  int32_t *lengths, size_t *size, cellgate_error *error)
{
    cellgate_status status = check_state(&lstms[0], layers, rows, error);
    int64_t b;
    int time_major;

    if (status != CELLGATE_OK)
        return status;
    *size = 0;
    for (b = 0; b < rows; b++)
        lengths[b] = (int32_t)span;
    for (time_major = 0; status == CELLGATE_OK && time_major < 2;
         time_major++) {
        status = set_data(device, x, time_major != 0, rows, span,
                          lstms[0].input, lengths, error);
        if (status == CELLGATE_OK)
            status = work_size_of(device, handle, rnn, x, size, error);
    }
    return status;
}

/* ---- Of a plan --------------------------------------------------------- */

static cellgate_status create_descriptors(struct cellgate_plan *plan,
                                          struct cud_fused *fused,
                                          cellgate_error *error)
{
    const struct cud_cudnn *cudnn = &plan->device->cudnn;
    int code = cudnn->CreateRNNDataDescriptor(&fused->x);

    if (code == CUD_CUDNN_SUCCESS)
        code = cudnn->CreateRNNDataDescriptor(&fused->y);
    if (code == CUD_CUDNN_SUCCESS)
        code = cudnn->CreateTensorDescriptor(&fused->h);
    if (code == CUD_CUDNN_SUCCESS)
        code = cudnn->CreateTensorDescriptor(&fused->c);
    return cud_cudnn_check(plan->device, error, code, "Create...Descriptor",
                           "creating a plan");
}

/* Why the weights are not laid out for a variant. */
static const char *lack_of(const struct cud_stage *stage,
                           const struct cud_variant *variant)
{
    uint32_t i;

    for (i = 0; i < stage->lack_count; i++)
        if (stage->lacks[i].of == variant)
            return stage->lacks[i].text;
    return "cuDNN looks for them in other places than then";
}

/* The weights of a variant, perhaps not the plan's own. No memory that is freed
   now brings a layout that there was none for when they were prepared: it is no
   DEVICE_MEMORY. */
static cellgate_status
find_weights(struct cellgate_plan *plan, const struct cud_stage *stage,
             const struct cud_variant *variant, cud_cudnn_rnn rnn,
             const struct cud_buffer **weights, cellgate_error *error)
{
    cellgate_status status =
        cud_rnn_weights(plan->device, plan->handle, rnn, stage, weights, error);

    if (status != CELLGATE_OK || *weights)
        return status;
    plan->lacks_weights = true;
    return cellgate_refuse(error, CELLGATE_REASON_OTHER,
                           "weights were not laid out for %s when they were "
                           "prepared: %s",
                           variant->name, lack_of(stage, variant));
}

static cellgate_status create_rnns(struct cellgate_plan *plan,
                                   const struct cud_stage *stage,
                                   struct cud_fused *fused,
                                   cellgate_error *error)
{
    const struct cud_variant *variant = plan->variant;
    const uint64_t standard = cud_standard_id(variant);
    cellgate_status status =
        cud_rnn_create(plan->device, stage->lstms, stage->layers,
                       variant->algorithm, variant->math, &fused->rnn, error);

    if (status == CELLGATE_OK)
        status = find_weights(plan, stage, variant, fused->rnn,
                              &fused->rnn_weights, error);
    if (status == CELLGATE_OK && cud_exact_batch(variant))
        status = cud_cudnn_check(
            plan->device, error,
            plan->device->cudnn.BuildRNNDynamic(plan->handle->cudnn, fused->rnn,
                                                (int)plan->batch),
            "BuildRNNDynamic", "creating a plan");
    if (status != CELLGATE_OK || variant->algorithm == CUD_RNN_ALGO_STANDARD ||
        cud_variant_excluded(plan->device, standard))
        return status;
    status = cud_rnn_create(plan->device, stage->lstms, stage->layers,
                            CUD_RNN_ALGO_STANDARD, variant->math, &fused->plain,
                            error);
    return status == CELLGATE_OK
               ? find_weights(plan, stage, cud_variant_at(standard),
                              fused->plain, &fused->plain_weights, error)
               : status;
}

/* The largest that either descriptor needs. */
static cellgate_status work_size(struct cellgate_plan *plan, uint32_t index,
                                 int64_t rows, int64_t span, size_t *size,
                                 cellgate_error *error)
{
    const struct cud_stage *stage = &plan->weights->stages[index];
    const struct cud_fused *fused = &plan->stages[index].fused;
    size_t plain = 0;
    cellgate_status status = cud_rnn_work_size(
        plan->device, plan->handle, fused->rnn, stage->lstms, stage->layers,
        rows, span, fused->x, plan->host_lengths, size, error);

    if (status == CELLGATE_OK && fused->plain)
        status = cud_rnn_work_size(plan->device, plan->handle, fused->plain,
                                   stage->lstms, stage->layers, rows, span,
                                   fused->x, plan->host_lengths, &plain, error);
    if (*size < plain)
        *size = plain;
    return status;
}

cellgate_status cud_fused_create(struct cellgate_plan *plan, uint32_t index,
                                 cellgate_error *error)
{
    const struct cud_stage *stage = &plan->weights->stages[index];
    struct cud_fused *fused = &plan->stages[index].fused;
    cellgate_status status = create_descriptors(plan, fused, error);
    size_t size = 0;

    if (status == CELLGATE_OK)
        status = create_rnns(plan, stage, fused, error);
    if (status == CELLGATE_OK && plan->steps > 0)
        status = work_size(plan, index, plan->batch, plan->steps, &size, error);
    if (status == CELLGATE_OK)
        status = cud_buffer_create(plan->device, (int64_t)size, 1, &fused->work,
                                   error);
    plan->asked = (struct cud_asked){ plan->batch, plan->steps, true };
    return status;
}

void cud_fused_destroy(struct cellgate_plan *plan, uint32_t index)
{
    const struct cud_cudnn *cudnn = &plan->device->cudnn;
    struct cud_fused *fused = &plan->stages[index].fused;

    cud_rnn_destroy(plan->device, fused->rnn);
    cud_rnn_destroy(plan->device, fused->plain);
    if (fused->x)
        (void)cudnn->DestroyRNNDataDescriptor(fused->x);
    if (fused->y)
        (void)cudnn->DestroyRNNDataDescriptor(fused->y);
    if (fused->h)
        (void)cudnn->DestroyTensorDescriptor(fused->h);
    if (fused->c)
        (void)cudnn->DestroyTensorDescriptor(fused->c);
    cud_buffer_destroy(plan->device, &fused->work);
}

/* ---- A run ------------------------------------------------------------- */

/* Sizes need not grow with the shape, says cuDNN's reference. */
cellgate_status cud_fused_fits(struct cellgate_plan *plan, bool *fits,
                               cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    uint32_t i;

    *fits = true;
    for (i = 0; status == CELLGATE_OK && i < plan->weights->stage_count; i++) {
        size_t size = 0;

        if (plan->weights->stages[i].kind != CUD_STAGE_FUSED)
            continue;
        status = work_size(plan, i, plan->run->batch, plan->run->steps, &size,
                           error);
        if (size > plan->stages[i].fused.work.size)
            *fits = false;
    }
    return status;
}

cellgate_status cud_fused_describe(struct cellgate_plan *plan, uint32_t index,
                                   cellgate_error *error)
{
    const struct cud_stage *stage = &plan->weights->stages[index];
    const struct cud_fused *fused = &plan->stages[index].fused;
    const struct cud_lstm *lstm = &stage->lstms[0];
    const int64_t layers = (int64_t)stage->layers * lstm->directions;
    cellgate_device *device = plan->device;
    cellgate_status status =
        set_data(device, fused->x, plan->time_major, plan->rows, plan->span,
                 lstm->input, plan->host_lengths, error);

    if (status == CELLGATE_OK)
        status =
            set_data(device, fused->y, plan->time_major, plan->rows, plan->span,
                     fused_width(lstm), plan->host_lengths, error);
    if (status == CELLGATE_OK)
        status = set_state(device, fused->h, layers, plan->rows, lstm->output,
                           error);
    if (status == CELLGATE_OK)
        status = set_state(device, fused->c, layers, plan->rows, lstm->hidden,
                           error);
    return status;
}

/* Rows of several lengths, or rows beside the run's own where cuDNN needs more
   memory for its shape than for the plan's. */
static cellgate_status refuse_lengths(const struct cellgate_plan *plan,
                                      cellgate_error *error)
{
    return cellgate_refuse(
        error, CELLGATE_REASON_SETTING,
        "%s runs rows of several lengths by cuDNN's standard algorithm, %s, "
        "which exclude leaves out",
        plan->variant->name,
        cud_variant_at(cud_standard_id(plan->variant))->name);
}

static cellgate_status forward(struct cellgate_plan *plan, uint32_t index,
                               const struct cud_rows *x,
                               const struct cud_rows *y, cellgate_error *error)
{
    const struct cud_stage_plan *of = &plan->stages[index];
    const struct cud_fused *fused = &of->fused;
    const bool plain = plan->ragged && fused->plain;
    const struct cud_buffer *weights =
        plain ? fused->plain_weights : fused->rnn_weights;
    const int code = plan->device->cudnn.RNNForward(
        plan->handle->cudnn, plain ? fused->plain : fused->rnn,
        CUD_FWD_MODE_INFERENCE, plan->lengths.memory, fused->x, x->memory,
        fused->y, y->memory, fused->h, of->given_h ? of->h0.memory : NULL,
        of->h.memory, fused->c, of->given_c ? of->c0.memory : NULL,
        of->c.memory, weights->size, weights->memory, fused->work.size,
        fused->work.memory, 0, NULL);

    return cud_cudnn_check(plan->device, error, code, "RNNForward",
                           "running a segment");
}

/* The last output of a direction is its final h. */
static cellgate_status copy_last(struct cellgate_plan *plan, uint32_t index,
                                 float *last, cellgate_error *error)
{
    const struct cud_stage *stage = &plan->weights->stages[index];
    const struct cud_lstm *lstm = &stage->lstms[stage->layers - 1];
    const float *h = cud_state_final(plan, index, stage->layers - 1, CUD_H);
    cellgate_status status = CELLGATE_OK;
    int d;

    for (d = 0; status == CELLGATE_OK && d < lstm->directions; d++) {
        const struct cud_block block = {
            .to = last + d * lstm->output,
            .to_pitch = stage->width,
            .from = h + d * plan->rows * lstm->output,
            .from_pitch = lstm->output,
            .width = lstm->output,
            .rows = plan->run->batch,
        };

        status = cud_copy(plan, &block, cudaMemcpyDeviceToDevice, error);
    }
    return status;
}

/* ---- What cuDNN has not ------------------------------------------------ */

/* Zeros of y beyond the longest row: cuDNN fills what is beyond the others. */
static cellgate_status zero_end(struct cellgate_plan *plan, uint32_t index,
                                const struct cud_rows *y, cellgate_error *error)
{
    const int64_t width = plan->weights->stages[index].width;
    const int64_t steps = plan->run->steps - plan->longest;
    float *to = y->memory + plan->longest * y->strides.time;

    return plan->time_major ? cud_zero(plan, to, plan->rows * width,
                                       plan->rows * width, steps, error)
                            : cud_zero(plan, to, y->strides.batch,
                                       steps * width, plan->rows, error);
}

/* Rows without a step, of which cuDNN did one. */
static cellgate_status mend(struct cellgate_plan *plan, uint32_t index,
                            const struct cud_rows *y, float *last,
                            cellgate_error *error)
{
    const struct cud_stage *stage = &plan->weights->stages[index];
    const struct cud_stage_plan *of = &plan->stages[index];
    const struct cud_lstm *lstm = &stage->lstms[0];
    const struct cuk_empty empty = {
        .batch = (int32_t)plan->run->batch,
        .steps = (int32_t)plan->span,
        .width = (int32_t)stage->width,
        .layers = (int32_t)stage->layers * lstm->directions,
        .state_rows = (int32_t)plan->rows,
        .h_width = (int32_t)lstm->output,
        .c_width = (int32_t)lstm->hidden,
        .lengths = plan->span > 0 ? plan->order.memory : NULL,
        .y = stage->sequence ? y->memory : NULL,
        .y_at = y->strides,
        .last = last,
        .last_stride = stage->width,
        .h0 = of->given_h ? of->h0.memory : NULL,
        .c0 = of->given_c ? of->c0.memory : NULL,
        .h = of->h.memory,
        .c = of->c.memory,
    };

    return cud_device_check(plan->device, error,
                            (cudaError_t)cuk_empty(&empty, plan->stream),
                            "cuk_empty", "running a segment");
}

cellgate_status cud_enqueue_fused(struct cellgate_plan *plan, uint32_t index,
                                  const struct cud_rows *x,
                                  const struct cud_rows *y, float *last,
                                  cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    if (plan->span > 0 && plan->ragged && !plan->stages[index].fused.plain &&
        plan->variant->algorithm != CUD_RNN_ALGO_STANDARD)
        return refuse_lengths(plan, error);
    if (plan->span > 0)
        status = forward(plan, index, x, y, error);
    if (status == CELLGATE_OK && plan->span > 0 && last)
        status = copy_last(plan, index, last, error);
    if (status == CELLGATE_OK && plan->longest < plan->run->steps &&
        plan->weights->stages[index].sequence)
        status = zero_end(plan, index, y, error);
    if (status == CELLGATE_OK && plan->empty_rows)
        status = mend(plan, index, y, last, error);
    return status;
}
