/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/generate/feed.h"

static cellgate_status no_memory(const cg_feed *feed, cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory to generate %lld sequences",
                         (long long)feed->capacity);
}

/* [rows][row_bytes] of zeros, or NULL; never of size 0. */
static void *take(int64_t rows, size_t row_bytes)
{
    size_t size;

    if (__builtin_mul_overflow((size_t)rows, row_bytes, &size) ||
        size > PTRDIFF_MAX - 64)
        return NULL;
    return calloc(1, size + 64);
}

/* Bytes of a row; the extents are known. SIZE_MAX: more than memory can be. */
static size_t row_bytes(const cellgate_tensor *tensor)
{
    size_t bytes = cellgate_dtype_size(tensor->dtype);

    for (int32_t axis = 1; axis < tensor->rank; axis++)
        if (__builtin_mul_overflow(bytes, (size_t)tensor->shape[axis], &bytes))
            return SIZE_MAX;
    return bytes;
}

/* ---- The encoder -------------------------------------------------------- */

static cellgate_status run_encoder(cg_feed *feed, cellgate_session *encoder,
                                   const cellgate_input *inputs,
                                   cellgate_report *report,
                                   cellgate_error *error)
{
    const cellgate_model *model = feed->parts->encoder;
    cellgate_request request = { .struct_size = sizeof request,
                                 .inputs = inputs,
                                 .input_count = model->input_count,
                                 .outputs = feed->encoded,
                                 .output_count = model->output_count };
    cellgate_status status = CELLGATE_OK;

    for (size_t o = 0; status == CELLGATE_OK && o < model->output_count; o++) {
        cellgate_tensor *output = &feed->encoded[o];

        output->struct_size = sizeof *output;
        status = cellgate_output_shape(encoder, &request, o, output, error);
        if (status != CELLGATE_OK)
            break;
        output->data = take(feed->batch, row_bytes(output));
        if (output->data == NULL)
            status = no_memory(feed, error);
    }
    return status == CELLGATE_OK
               ? cellgate_run(encoder, &request, report, error)
               : status;
}

/* ---- Slots -------------------------------------------------------------- */

/* A mask [batch][steps] of the request's lengths or mask; none: NULL. */
static cellgate_status request_mask(cg_feed *feed, size_t slot,
                                    const cellgate_input *input,
                                    cellgate_error *error)
{
    const int64_t steps = input->tensor.shape[1];
    uint8_t *mask;

    feed->slots[slot].mask_bytes = (size_t)steps;
    feed->slots[slot].masks = input->mask;
    if (input->lengths == NULL)
        return CELLGATE_OK;
    mask = take(feed->batch, (size_t)steps);
    if (mask == NULL)
        return no_memory(feed, error);
    for (int64_t row = 0; row < feed->batch; row++)
        memset(mask + row * steps, 1, (size_t)input->lengths[row]);
    feed->request_masks[slot] = mask;
    feed->slots[slot].masks = mask;
    return CELLGATE_OK;
}

/* What the slot begins with, and the shape of its tensor. */
static cellgate_status set_source(cg_feed *feed, size_t slot,
                                  const cellgate_input *inputs,
                                  cellgate_error *error)
{
    const cellgate_model *step = feed->parts->step;
    const cg_value *value = &step->values[step->inputs[slot].value];
    const cg_wire *wire = &feed->parts->wires[slot];
    cellgate_tensor *tensor = &feed->inputs[slot].tensor;
    cg_feed_slot *own = &feed->slots[slot];
    cellgate_status status = CELLGATE_OK;

    tensor->dtype = value->dtype;
    tensor->rank = value->rank;
    memcpy(tensor->shape, value->shape, sizeof tensor->shape);
    if (wire->from != CG_NONE) {
        own->source = feed->encoded[wire->from].data;
        memcpy(tensor->shape, feed->encoded[wire->from].shape,
               sizeof tensor->shape);
    } else if (wire->mask != CG_NONE) {
        own->masks = feed->encoded[wire->mask].data;
        own->mask_bytes = (size_t)feed->encoded[wire->mask].shape[1];
        tensor->shape[1] = (int64_t)own->mask_bytes;
    } else if (wire->request_mask != CG_NONE) {
        status = request_mask(feed, slot, &inputs[wire->request_mask], error);
        tensor->shape[1] = (int64_t)own->mask_bytes;
    }
    for (int32_t axis = 1; axis < tensor->rank; axis++)
        if (tensor->shape[axis] < 0)
            return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                                 "nothing says how large axis %d of '%s' is",
                                 (int)axis, value->name);
    own->row_bytes = row_bytes(tensor);
    return status;
}

static cellgate_status init_slot(cg_feed *feed, size_t slot,
                                 const cellgate_input *inputs,
                                 cellgate_error *error)
{
    cg_feed_slot *own = &feed->slots[slot];
    cellgate_input *input = &feed->inputs[slot];
    cellgate_status status;

    input->struct_size = sizeof *input;
    input->tensor.struct_size = sizeof input->tensor;
    status = set_source(feed, slot, inputs, error);
    if (status != CELLGATE_OK)
        return status;
    own->current = take(feed->capacity, own->row_bytes);
    if (feed->parts->wires[slot].carried != CG_NONE)
        own->next = take(feed->capacity, own->row_bytes);
    if (own->masks != NULL)
        own->current_mask = take(feed->capacity, own->mask_bytes);
    if (own->current == NULL ||
        (feed->parts->wires[slot].carried != CG_NONE && own->next == NULL) ||
        (own->masks != NULL && own->current_mask == NULL))
        return no_memory(feed, error);
    input->tensor.data = own->current;
    input->mask = own->current_mask;
    return CELLGATE_OK;
}

static void init_token(cg_feed *feed)
{
    cellgate_input *input = &feed->inputs[feed->parts->token];

    input->struct_size = sizeof *input;
    input->tensor = (cellgate_tensor){
        sizeof input->tensor, CELLGATE_I32, 2, { 0, 1 }, feed->ids
    };
}

/* ---- Outputs ------------------------------------------------------------ */

/* Scores, states, and outputs that nothing takes. */
static void init_outputs(cg_feed *feed)
{
    const cellgate_model *step = feed->parts->step;

    for (size_t o = 0; o < step->output_count; o++) {
        const cg_value *value = &step->values[step->outputs[o]];
        cellgate_tensor *output = &feed->outputs[o];

        output->struct_size = sizeof *output;
        output->dtype = value->dtype;
        output->rank = value->rank;
        memcpy(output->shape, value->shape, sizeof output->shape);
    }
    for (size_t slot = 0; slot < step->input_count; slot++) {
        const size_t carried = feed->parts->wires[slot].carried;

        if (slot == feed->parts->token || carried == CG_NONE)
            continue;
        feed->outputs[carried].data = feed->slots[slot].next;
        memcpy(feed->outputs[carried].shape, feed->inputs[slot].tensor.shape,
               sizeof feed->outputs[carried].shape);
    }
    feed->outputs[feed->parts->scores].data = feed->scores;
    if (feed->outputs[feed->parts->scores].rank == 3)
        feed->outputs[feed->parts->scores].shape[1] = 1;
}

/* ---- All of it ---------------------------------------------------------- */

static cellgate_status allocate(cg_feed *feed, cellgate_error *error)
{
    const cellgate_model *step = feed->parts->step;
    const cellgate_model *encoder = feed->parts->encoder;
    const size_t encoded = encoder != NULL ? encoder->output_count : 0;
    size_t words;

    feed->slots = calloc(step->input_count, sizeof *feed->slots);
    feed->inputs = calloc(step->input_count, sizeof *feed->inputs);
    feed->outputs = calloc(step->output_count, sizeof *feed->outputs);
    feed->encoded = calloc(encoded + 1, sizeof *feed->encoded);
    feed->request_masks =
        calloc(step->input_count, sizeof *feed->request_masks);
    feed->ids = take(feed->capacity, sizeof *feed->ids);
    feed->arranged = take(feed->capacity, sizeof *feed->arranged);
    if (__builtin_mul_overflow((size_t)feed->parts->words, sizeof(float),
                               &words))
        return no_memory(feed, error);
    feed->scores = take(feed->capacity, words);
    if (feed->slots == NULL || feed->inputs == NULL || feed->outputs == NULL ||
        feed->encoded == NULL || feed->request_masks == NULL ||
        feed->ids == NULL || feed->arranged == NULL || feed->scores == NULL)
        return no_memory(feed, error);
    return CELLGATE_OK;
}

cellgate_status cg_feed_init(cg_feed *feed, const cg_parts *parts,
                             cellgate_session *encoder,
                             const cellgate_input *inputs, int64_t batch,
                             int64_t capacity, cellgate_report *report,
                             cellgate_error *error)
{
    cellgate_status status;

    memset(feed, 0, sizeof *feed);
    feed->parts = parts;
    feed->batch = batch;
    feed->capacity = capacity;
    status = allocate(feed, error);
    if (status == CELLGATE_OK && encoder != NULL)
        status = run_encoder(feed, encoder, inputs, report, error);
    if (status != CELLGATE_OK)
        return status;
    init_token(feed);
    for (size_t slot = 0;
         status == CELLGATE_OK && slot < parts->step->input_count; slot++)
        if (slot != parts->token)
            status = init_slot(feed, slot, inputs, error);
    if (status == CELLGATE_OK)
        init_outputs(feed);
    return status;
}

void cg_feed_finish(cg_feed *feed)
{
    const cg_parts *parts = feed->parts;

    if (parts == NULL)
        return;
    for (size_t slot = 0; slot < parts->step->input_count; slot++) {
        if (feed->slots != NULL) {
            free(feed->slots[slot].current);
            free(feed->slots[slot].next);
            free(feed->slots[slot].current_mask);
        }
        if (feed->request_masks != NULL)
            free(feed->request_masks[slot]);
    }
    for (size_t o = 0; feed->encoded != NULL && parts->encoder != NULL &&
                       o < parts->encoder->output_count;
         o++)
        free(feed->encoded[o].data);
    free(feed->slots);
    free(feed->inputs);
    free(feed->outputs);
    free(feed->encoded);
    free(feed->request_masks);
    free(feed->ids);
    free(feed->arranged);
    free(feed->scores);
    memset(feed, 0, sizeof *feed);
}

/* ---- Steps -------------------------------------------------------------- */

static void gather(char *to, const char *from, size_t bytes,
                   const int64_t *rows, int64_t count)
{
    for (int64_t i = 0; bytes > 0 && i < count; i++)
        memcpy(to + (size_t)i * bytes, from + (size_t)rows[i] * bytes, bytes);
}

static void arrange_slot(cg_feed_slot *slot, const int64_t *rows,
                         const int64_t *parents, int64_t count, bool moved)
{
    if (parents != NULL && slot->next != NULL)
        gather(slot->current, slot->next, slot->row_bytes, parents, count);
    else if (moved && slot->source != NULL)
        gather(slot->current, slot->source, slot->row_bytes, rows, count);
    if (moved && slot->masks != NULL)
        gather((char *)slot->current_mask, (const char *)slot->masks,
               slot->mask_bytes, rows, count);
}

void cg_feed_arrange(cg_feed *feed, const int64_t *rows, const int64_t *parents,
                     int64_t count)
{
    const size_t bytes = (size_t)count * sizeof *rows;
    const bool moved = parents == NULL || count != feed->arranged_count ||
                       memcmp(rows, feed->arranged, bytes) != 0;

    for (size_t slot = 0; slot < feed->parts->step->input_count; slot++)
        if (slot != feed->parts->token)
            arrange_slot(&feed->slots[slot], rows, parents, count, moved);
    memcpy(feed->arranged, rows, bytes);
    feed->arranged_count = count;
}

cellgate_status cg_feed_step(cg_feed *feed, cellgate_session *step,
                             int64_t count, cellgate_report *report,
                             cellgate_error *error)
{
    const cellgate_model *model = feed->parts->step;
    cellgate_request request = { .struct_size = sizeof request,
                                 .inputs = feed->inputs,
                                 .input_count = model->input_count,
                                 .outputs = feed->outputs,
                                 .output_count = model->output_count };

    for (size_t i = 0; i < model->input_count; i++)
        feed->inputs[i].tensor.shape[0] = count;
    for (size_t o = 0; o < model->output_count; o++)
        feed->outputs[o].shape[0] = count;
    return cellgate_run(step, &request, report, error);
}
