/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/cuda/fused.h"

/* ---- The clock --------------------------------------------------------- */

cellgate_status cud_mark(struct cellgate_plan *plan, enum cud_mark mark,
                         cellgate_error *error)
{
    return cud_device_check(plan->device, error,
                            cudaEventRecord(plan->marks[mark], plan->stream),
                            "cudaEventRecord", "running a segment");
}

static double seconds_between(const struct cellgate_plan *plan,
                              enum cud_mark from, enum cud_mark to)
{
    float milliseconds = 0;

    if (cudaEventElapsedTime(&milliseconds, plan->marks[from],
                             plan->marks[to]) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return 1e-3 * (double)milliseconds;
}

cellgate_status cud_finish_run(struct cellgate_plan *plan,
                               cellgate_error *error)
{
    return cud_device_check(plan->device, error,
                            cudaStreamSynchronize(plan->stream),
                            "cudaStreamSynchronize", "running a segment");
}

void cud_read_marks(struct cellgate_plan *plan)
{
    plan->breakdown = (cellgate_breakdown){
        .struct_size = sizeof plan->breakdown,
        .upload = seconds_between(plan, CUD_BEGIN, CUD_UPLOADED),
        .compute = seconds_between(plan, CUD_UPLOADED, CUD_COMPUTED),
        .download = seconds_between(plan, CUD_COMPUTED, CUD_DOWNLOADED),
    };
    plan->measured = true;
}

/* ---- Blocks of memory -------------------------------------------------- */

/* Copies in two dimensions have a pitch of 31 bits. */
#define PITCH_MOST ((int64_t)1 << 28) /* floats */

static cudaError_t copy_block(struct cellgate_plan *plan,
                              const struct cud_block *block,
                              enum cudaMemcpyKind kind)
{
    const size_t width = (size_t)block->width * sizeof(float);
    cudaError_t code = cudaSuccess;
    int64_t row;

    if (block->rows == 1)
        return cudaMemcpyAsync(block->to, block->from, width, kind,
                               plan->stream);
    if (block->to_pitch == block->width && block->from_pitch == block->width)
        return cudaMemcpyAsync(block->to, block->from,
                               width * (size_t)block->rows, kind, plan->stream);
    if (block->to_pitch < PITCH_MOST && block->from_pitch < PITCH_MOST)
        return cudaMemcpy2DAsync(
            block->to, (size_t)block->to_pitch * sizeof(float), block->from,
            (size_t)block->from_pitch * sizeof(float), width,
            (size_t)block->rows, kind, plan->stream);
    for (row = 0; code == cudaSuccess && row < block->rows; row++)
        code = cudaMemcpyAsync((float *)block->to + row * block->to_pitch,
                               (const float *)block->from +
                                   row * block->from_pitch,
                               width, kind, plan->stream);
    return code;
}

cellgate_status cud_copy(struct cellgate_plan *plan,
                         const struct cud_block *block,
                         enum cudaMemcpyKind kind, cellgate_error *error)
{
    if (block->width == 0 || block->rows == 0)
        return CELLGATE_OK;
    return cud_device_check(plan->device, error, copy_block(plan, block, kind),
                            "cudaMemcpyAsync", "running a segment");
}

cellgate_status cud_zero(struct cellgate_plan *plan, void *to, int64_t pitch,
                         int64_t width, int64_t rows, cellgate_error *error)
{
    const size_t bytes = (size_t)width * sizeof(float);
    cudaError_t code = cudaSuccess;
    int64_t row;

    if (width == 0 || rows == 0)
        return CELLGATE_OK;
    if (pitch == width || rows == 1)
        code = cudaMemsetAsync(to, 0, bytes * (size_t)rows, plan->stream);
    else if (pitch < PITCH_MOST)
        code = cudaMemset2DAsync(to, (size_t)pitch * sizeof(float), 0, bytes,
                                 (size_t)rows, plan->stream);
    else
        for (row = 0; code == cudaSuccess && row < rows; row++)
            code = cudaMemsetAsync((float *)to + row * pitch, 0, bytes,
                                   plan->stream);
    return cud_device_check(plan->device, error, code, "cudaMemsetAsync",
                            "running a segment");
}

/* ---- Sequences --------------------------------------------------------- */

/* A sequence of the host, and its place on the device. */
struct extent {
    const cellgate_sequence *of;
    int64_t batch, steps, width;
    float *device;
    struct cuk_strides strides;
};

static bool is_batch_major(const struct extent *extent)
{
    return extent->steps == 1 || extent->of->time_stride == extent->width;
}

static bool is_time_major(const struct extent *extent)
{
    return extent->batch == 1 || extent->of->batch_stride == extent->width;
}

static cellgate_status move_block(struct cellgate_plan *plan,
                                  const struct cud_block *block, bool up,
                                  cellgate_error *error)
{
    const struct cud_block down = { (void *)block->from, block->from_pitch,
                                    block->to,           block->to_pitch,
                                    block->width,        block->rows };

    return up ? cud_copy(plan, block, cudaMemcpyHostToDevice, error)
              : cud_copy(plan, &down, cudaMemcpyDeviceToHost, error);
}

/* The rows of one sample, or of one step. */
static cellgate_status move_line(struct cellgate_plan *plan,
                                 const struct extent *extent, int64_t number,
                                 bool by_sample, bool up, cellgate_error *error)
{
    const struct cuk_strides host = { extent->of->batch_stride,
                                      extent->of->time_stride };
    const struct cuk_strides at = extent->strides;
    const struct cud_block block = {
        .to = extent->device + number * (by_sample ? at.batch : at.time),
        .to_pitch = by_sample ? at.time : at.batch,
        .from = (const float *)extent->of->data +
                number * (by_sample ? host.batch : host.time),
        .from_pitch = by_sample ? host.time : host.batch,
        .width = extent->width,
        .rows = by_sample ? extent->steps : extent->batch,
    };

    return move_block(plan, &block, up, error);
}

/* In one copy where the two are alike, else in as few as may be. */
static cellgate_status move_sequence(struct cellgate_plan *plan,
                                     const struct extent *extent, bool up,
                                     cellgate_error *error)
{
    const bool by_sample = extent->batch <= extent->steps;
    const int64_t lines = by_sample ? extent->batch : extent->steps;
    const struct cud_block samples = { extent->device,
                                       extent->strides.batch,
                                       extent->of->data,
                                       extent->of->batch_stride,
                                       extent->steps * extent->width,
                                       extent->batch };
    const struct cud_block steps = { extent->device,
                                     extent->strides.time,
                                     extent->of->data,
                                     extent->of->time_stride,
                                     extent->batch * extent->width,
                                     extent->steps };
    cellgate_status status = CELLGATE_OK;
    int64_t i;

    if (!extent->of->data || extent->batch * extent->steps == 0)
        return CELLGATE_OK;
    if (is_batch_major(extent) &&
        (extent->steps == 1 || extent->strides.time == extent->width))
        return move_block(plan, &samples, up, error);
    if (is_time_major(extent) &&
        (extent->batch == 1 || extent->strides.batch == extent->width))
        return move_block(plan, &steps, up, error);
    for (i = 0; status == CELLGATE_OK && i < lines; i++)
        status = move_line(plan, extent, i, by_sample, up, error);
    return status;
}

static int64_t sequence_steps(const struct cellgate_plan *plan)
{
    return plan->rows_only ? 1 : plan->run->steps;
}

static struct extent input_extent(const struct cellgate_plan *plan)
{
    const int64_t width = plan->weights->input_width;

    return (struct extent){ &plan->run->x,        plan->run->batch,
                            sequence_steps(plan), width,
                            plan->x.memory,       cud_strides_of(plan, width) };
}

/* ---- Layout and lengths ------------------------------------------------ */

/* Whether the memory of cuDNN's stages does for the run's own shape. Sizes are
   of rows and steps alone: the last answer still holds for the same. */
static cellgate_status ask_fits(struct cellgate_plan *plan, bool *fits,
                                cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    if (plan->asked.rows != plan->rows || plan->asked.span != plan->span) {
        plan->asked.rows = 0;
        plan->sent.valid = false; /* it is described otherwise to ask */
        status = cud_fused_fits(plan, &plan->asked.fits, error);
        if (status != CELLGATE_OK)
            return status;
        plan->asked.rows = plan->rows;
        plan->asked.span = plan->span;
    }
    *fits = plan->asked.fits;
    return status;
}

/* What the run's lengths are. */
static void look_at_lengths(struct cellgate_plan *plan)
{
    const cellgate_segment_run *run = plan->run;
    const int64_t steps = sequence_steps(plan);
    int64_t b;

    plan->longest = run->lengths && plan->span > 0 ? 1 : steps;
    plan->ragged = plan->rows > run->batch || plan->span > steps;
    plan->empty_rows = run->steps == 0;
    for (b = 0; run->lengths && b < run->batch; b++) {
        plan->ragged = plan->ragged || run->lengths[b] != plan->span;
        plan->empty_rows = plan->empty_rows || run->lengths[b] == 0;
        if (plan->longest < run->lengths[b])
            plan->longest = run->lengths[b];
    }
}

cellgate_status cud_choose_layout(struct cellgate_plan *plan,
                                  cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    bool fits = true;
    struct extent x;

    plan->rows = plan->run->batch;
    plan->span = sequence_steps(plan);
    plan->time_major = false;
    x = input_extent(plan);
    plan->time_major = !is_batch_major(&x) && is_time_major(&x);
    if (plan->handle && plan->span > 0)
        status = ask_fits(plan, &fits, error);
    if (!fits) {
        plan->rows = plan->batch;
        plan->span = plan->steps;
    }
    look_at_lengths(plan);
    return status;
}

/* Sorts places in the batch by length, the longest first (a shell sort). */
static void sort_samples(int32_t *order, int64_t count, const int32_t *lengths)
{
    int64_t gap, i, j;

    for (gap = count / 2; gap > 0; gap /= 2)
        for (i = gap; i < count; i++) {
            int32_t moved = order[i];

            for (j = i; j >= gap && lengths[order[j - gap]] < lengths[moved];
                 j -= gap)
                order[j] = order[j - gap];
            order[j] = moved;
        }
}

/* Whether they are others than those that are there. */
static bool fill_lengths(struct cellgate_plan *plan)
{
    const bool fused = plan->handle != NULL;
    bool changed = false;
    int64_t b;

    for (b = 0; b < plan->rows; b++) {
        const int32_t length =
            b < plan->run->batch ? (int32_t)cud_length(plan, b) : 1;
        const int32_t sent = fused && length == 0 ? 1 : length;

        changed = changed || plan->host_lengths[b] != sent ||
                  (fused && plan->host_order[b] != length);
        plan->host_lengths[b] = sent;
        if (fused)
            plan->host_order[b] = length;
    }
    return changed;
}

static void fill_order(struct cellgate_plan *plan)
{
    int64_t b;

    for (b = 0; b < plan->rows; b++)
        plan->host_order[b] = (int32_t)b;
    if (plan->ragged)
        sort_samples(plan->host_order, plan->rows, plan->host_lengths);
}

static cellgate_status send_lengths(struct cellgate_plan *plan,
                                    cellgate_error *error)
{
    const struct cud_block lengths = { plan->lengths.memory, plan->rows,
                                       plan->host_lengths,   plan->rows,
                                       plan->rows,           1 };
    const struct cud_block order = { plan->order.memory, plan->rows,
                                     plan->host_order,   plan->rows,
                                     plan->rows,         1 };
    cellgate_status status =
        cud_copy(plan, &lengths, cudaMemcpyHostToDevice, error);

    if (status == CELLGATE_OK && (!plan->handle || plan->empty_rows))
        status = cud_copy(plan, &order, cudaMemcpyHostToDevice, error);
    return status;
}

static cellgate_status upload_lengths(struct cellgate_plan *plan,
                                      cellgate_error *error)
{
    const struct cud_sent wanted = { true, plan->time_major, !plan->ragged,
                                     plan->rows, plan->span };
    const bool alike =
        plan->sent.valid && plan->sent.time_major == wanted.time_major &&
        plan->sent.full == wanted.full && plan->sent.rows == wanted.rows &&
        plan->sent.span == wanted.span;
    cellgate_status status;
    uint32_t i;

    /* Nothing, or what the run before had. */
    if (plan->span == 0 || (alike && wanted.full) ||
        (!fill_lengths(plan) && alike))
        return CELLGATE_OK;
    if (!plan->handle)
        fill_order(plan);
    plan->sent.valid = false;
    status = send_lengths(plan, error);
    for (i = 0; status == CELLGATE_OK && i < plan->weights->stage_count; i++)
        if (plan->weights->stages[i].kind == CUD_STAGE_FUSED)
            status = cud_fused_describe(plan, i, error);
    if (status == CELLGATE_OK)
        plan->sent = wanted;
    return status;
}

/* ---- States ------------------------------------------------------------ */

/* A layer's state between the device and an array [directions][batch][width],
   of the host or of the device. */
static cellgate_status move_state(struct cellgate_plan *plan,
                                  const struct cud_lstm *lstm,
                                  enum cud_state which, float *device,
                                  float *other, bool to_device, bool resident,
                                  cellgate_error *error)
{
    const int64_t width = cud_state_width(lstm, which);
    const int64_t batch = plan->run->batch;
    const struct cud_block in = { device,        plan->rows * width,
                                  other,         batch * width,
                                  batch * width, lstm->directions };
    const struct cud_block out = { other,         batch * width,
                                   device,        plan->rows * width,
                                   batch * width, lstm->directions };

    return cud_copy(plan, to_device ? &in : &out,
                    resident    ? cudaMemcpyDeviceToDevice
                    : to_device ? cudaMemcpyHostToDevice
                                : cudaMemcpyDeviceToHost,
                    error);
}

/* What a run begins with: NULL for zeros. */
static const float *given_state(const struct cellgate_plan *plan,
                                const struct cud_lstm *lstm,
                                enum cud_state which)
{
    const cellgate_segment_run *run = plan->run;
    const size_t number = (size_t)(lstm - plan->weights->lstms);

    if (run->resident)
        return which == CUD_H ? run->resident->h[number].memory
                              : run->resident->c[number].memory;
    if (!run->states)
        return NULL;
    return which == CUD_H ? run->states[lstm->op].h0 : run->states[lstm->op].c0;
}

/* Of all layers of a stage; zeros beside one that has a state. */
static cellgate_status upload_state(struct cellgate_plan *plan, uint32_t index,
                                    enum cud_state which, cellgate_error *error)
{
    const struct cud_stage *stage = &plan->weights->stages[index];
    struct cud_stage_plan *of = &plan->stages[index];
    cellgate_status status = CELLGATE_OK;
    bool given = false;
    uint32_t i;

    for (i = 0; i < stage->layers; i++)
        given = given || given_state(plan, &stage->lstms[i], which);
    if (which == CUD_H)
        of->given_h = given;
    else
        of->given_c = given;
    for (i = 0; given && status == CELLGATE_OK && i < stage->layers; i++) {
        const struct cud_lstm *lstm = &stage->lstms[i];
        const float *from = given_state(plan, lstm, which);
        float *to = cud_state_first(plan, index, i, which);
        const int64_t size =
            lstm->directions * plan->rows * cud_state_width(lstm, which);

        status = from ? move_state(plan, lstm, which, to, (float *)from, true,
                                   plan->run->resident != NULL, error)
                      : cud_zero(plan, to, size, size, 1, error);
    }
    return status;
}

static cellgate_status download_state(struct cellgate_plan *plan,
                                      uint32_t index, enum cud_state which,
                                      cellgate_error *error)
{
    const struct cud_stage *stage = &plan->weights->stages[index];
    const cellgate_segment_run *run = plan->run;
    cellgate_status status = CELLGATE_OK;
    uint32_t i;

    for (i = 0; status == CELLGATE_OK && i < stage->layers; i++) {
        const struct cud_lstm *lstm = &stage->lstms[i];
        const size_t number = (size_t)(lstm - plan->weights->lstms);
        float *from = cud_state_final(plan, index, i, which);
        float *to = NULL;

        if (run->states)
            to = which == CUD_H ? run->states[lstm->op].h
                                : run->states[lstm->op].c;
        if (to)
            status =
                move_state(plan, lstm, which, from, to, false, false, error);
        if (status == CELLGATE_OK && run->resident)
            status = move_state(plan, lstm, which, from,
                                which == CUD_H
                                    ? run->resident->next_h[number].memory
                                    : run->resident->next_c[number].memory,
                                false, true, error);
    }
    return status;
}

static bool has_state(const struct cud_stage *stage)
{
    return stage->kind == CUD_STAGE_FUSED || stage->kind == CUD_STAGE_LSTM;
}

/* ---- All of it --------------------------------------------------------- */

cellgate_status cud_enqueue_uploads(struct cellgate_plan *plan,
                                    cellgate_error *error)
{
    const cellgate_weights *weights = plan->weights;
    cellgate_status status = CELLGATE_OK;
    struct extent x = input_extent(plan);
    uint32_t i;

    if (weights->lstm_count > 0)
        status = upload_lengths(plan, error);
    for (i = 0; status == CELLGATE_OK && i < weights->stage_count; i++) {
        if (!has_state(&weights->stages[i]))
            continue;
        status = upload_state(plan, i, CUD_H, error);
        if (status == CELLGATE_OK)
            status = upload_state(plan, i, CUD_C, error);
    }
    if (status == CELLGATE_OK)
        status = move_sequence(plan, &x, true, error);
    return status;
}

cellgate_status cud_enqueue_downloads(struct cellgate_plan *plan,
                                      cellgate_error *error)
{
    const cellgate_weights *weights = plan->weights;
    const int64_t width = weights->stages[weights->stage_count - 1].width;
    const struct extent y = { &plan->run->y,    plan->run->batch,
                              plan->run->steps, width,
                              plan->y.memory,   cud_strides_of(plan, width) };
    const struct extent last = { &plan->run->y_last, plan->run->batch, 1, width,
                                 plan->last.memory,  { width, width } };
    cellgate_status status = CELLGATE_OK;
    uint32_t i;

    for (i = 0; status == CELLGATE_OK && i < weights->stage_count; i++) {
        if (!has_state(&weights->stages[i]))
            continue;
        status = download_state(plan, i, CUD_H, error);
        if (status == CELLGATE_OK)
            status = download_state(plan, i, CUD_C, error);
    }
    if (status == CELLGATE_OK && !plan->rows_only)
        status = move_sequence(plan, &y, false, error);
    if (status == CELLGATE_OK)
        status = move_sequence(plan, &last, false, error);
    return status;
}
