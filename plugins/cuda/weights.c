/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cellgate/chain.h"
#include "plugins/cuda/plan.h"

/* ---- Stages ------------------------------------------------------------ */

static struct cud_stage *add_stage(struct cellgate_weights *weights,
                                   enum cud_stage_kind kind, uint32_t op,
                                   int64_t width, bool sequence)
{
    struct cud_stage *stage = &weights->stages[weights->stage_count];
    uint32_t finishes = 0;

    if (weights->stage_count > 0)
        finishes = (uint32_t)(stage[-1].finishes - weights->finishes) +
                   stage[-1].finish_count;
    weights->stage_count++;
    stage->kind = kind;
    stage->op = op;
    stage->width = width;
    stage->sequence = sequence;
    stage->finishes = weights->finishes + finishes;
    return stage;
}

static struct cud_stage *last_stage(const struct cellgate_weights *weights)
{
    return weights->stage_count > 0 ? &weights->stages[weights->stage_count - 1]
                                    : NULL;
}

/* Whether what comes so far is a sequence. */
static bool is_sequence(const struct cellgate_weights *weights)
{
    const struct cud_stage *last = last_stage(weights);

    return !last || last->sequence;
}

/* The rows themselves: what nothing computes, and what cuDNN cannot look up. */
static struct cud_stage *add_copy(struct cellgate_weights *weights)
{
    return add_stage(weights, CUD_STAGE_COPY, 0,
                     weights->table_width ? weights->table_width
                                          : weights->input_width,
                     true);
}

static void add_lstm(struct cellgate_weights *weights, uint32_t at,
                     const cellgate_op *op)
{
    struct cud_lstm *lstm = &weights->lstms[weights->lstm_count++];
    const bool fused = weights->pack == CUD_PACK_FUSED;
    struct cud_stage *stage = last_stage(weights);

    cud_lstm_read(op, at, lstm);
    if (!stage || stage->kind != CUD_STAGE_FUSED || stage->finish_count > 0 ||
        lstm[-1].op + 1 != at || !cud_fused_stacks(&lstm[-1], lstm)) {
        if (fused && !stage && weights->table_width)
            (void)add_copy(weights);
        stage = add_stage(weights, fused ? CUD_STAGE_FUSED : CUD_STAGE_LSTM, at,
                          0, false);
        stage->lstms = lstm;
    }
    stage->layers++;
    stage->width = lstm->directions * lstm->output;
    stage->sequence = (lstm->outputs & CELLGATE_LSTM_SEQUENCE) != 0;
}

static void add_dense(struct cellgate_weights *weights, uint32_t at,
                      const cellgate_op *op)
{
    cellgate_dense dense = { .op = { sizeof dense, 0, 0 } };
    struct cud_stage *stage;

    cellgate_struct_copy(&dense, op);
    stage = add_stage(weights, CUD_STAGE_DENSE, at, dense.units,
                      is_sequence(weights));
    stage->dense_input = dense.input_size;
    stage->dense_activation = dense.activation;
}

/* `activation` NULL: a softmax. */
static void add_finish(struct cellgate_weights *weights,
                       const cellgate_activation *activation)
{
    struct cud_stage *stage = last_stage(weights);
    struct cud_finish *finish;

    if (!stage)
        stage = add_copy(weights);
    if (activation && activation->kind == CELLGATE_LINEAR)
        return;
    finish = &stage->finishes[stage->finish_count++];
    finish->softmax = !activation;
    if (activation)
        finish->activation = *activation;
}

static void add_op(struct cellgate_weights *weights, uint32_t at,
                   const cellgate_op *op)
{
    cellgate_activation_op act = { .op = { sizeof act, 0, 0 } };
    cellgate_embedding embedding = { .op = { sizeof embedding, 0, 0 } };

    switch (op->kind) {
    case CELLGATE_OP_LSTM:
        add_lstm(weights, at, op);
        break;
    case CELLGATE_OP_DENSE:
        add_dense(weights, at, op);
        break;
    case CELLGATE_OP_EMBEDDING:
        cellgate_struct_copy(&embedding, op);
        weights->table_width = embedding.size;
        break;
    case CELLGATE_OP_ACTIVATION:
        cellgate_struct_copy(&act, op);
        add_finish(weights, &act.activation);
        break;
    default:
        add_finish(weights, NULL);
    }
}

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

/* ---- Uploading --------------------------------------------------------- */

static cellgate_status upload_table(struct cellgate_weights *weights,
                                    const cellgate_op *op,
                                    cellgate_error *error)
{
    cellgate_embedding from = { .op = { sizeof from, 0, 0 } };
    cellgate_status status;
    int64_t count;

    cellgate_struct_copy(&from, op);
    count = from.vocabulary * from.size;
    status = cud_buffer_create(weights->device, count, sizeof(float),
                               &weights->table, error);
    if (status != CELLGATE_OK)
        return status;
    return cud_upload(weights->device, &weights->table, from.table,
                      (size_t)count * sizeof(float), error);
}

static cellgate_status upload_stage(struct cellgate_weights *weights,
                                    struct cud_stage *stage,
                                    const cellgate_segment *segment,
                                    cellgate_error *error)
{
    const enum cuk_type type = cud_pack_type(weights->pack);
    cellgate_dense dense = { .op = { sizeof dense, 0, 0 } };

    switch (stage->kind) {
    case CUD_STAGE_FUSED:
        return cud_fused_prepare(weights->device, stage, segment, error);
    case CUD_STAGE_LSTM:
        return cud_own_prepare(weights->device, stage, segment, type, error);
    case CUD_STAGE_DENSE:
        cellgate_struct_copy(&dense, segment->ops[stage->op]);
        return cud_dense_prepare(weights->device, stage, &dense, type, error);
    default:
        return CELLGATE_OK;
    }
}

static cellgate_status fill(struct cellgate_weights *weights,
                            const cellgate_segment *segment,
                            cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    uint32_t at;

    for (at = 0; at < segment->op_count; at++)
        add_op(weights, at, segment->ops[at]);
    /* An embedding alone, or a linear activation: rows all the same. */
    if (weights->stage_count == 0)
        (void)add_copy(weights);
    if (weights->table_width)
        status = upload_table(weights, segment->ops[0], error);
    for (at = 0; status == CELLGATE_OK && at < weights->stage_count; at++)
        status = upload_stage(weights, &weights->stages[at], segment, error);
    return status;
}

/* ---- prepare() and weights_free() -------------------------------------- */

/* The variant of a pack that is sure to run, if anything is; UINT64_MAX: the
   pack has none. */
static uint64_t plain_variant(enum cud_pack pack)
{
    return pack == CUD_PACK_FUSED ? CUD_CUDNN_ID
           : pack == CUD_PACK_F32 ? CUD_STEP_ID
                                  : UINT64_MAX;
}

/*
 * One run of a small shape in the plain variant: kernels are loaded, and
 * libraries awake, before the first request comes. The others run when they are
 * chosen, and not before: one that breaks the device is only run by who wants
 * it, and one that hangs does so under the host's watchdog.
 */
static cellgate_status warm_up(struct cellgate_weights *weights,
                               cellgate_error *error)
{
    cellgate_device *device = weights->device;
    const uint64_t id = plain_variant(weights->pack);
    cellgate_error why = CELLGATE_ERROR_INIT;
    cellgate_status status;

    if (!cud_variant_at(id) || cud_variant_excluded(device, id))
        return CELLGATE_OK;
    status = cud_plan_warm(device, weights, id, &why);
    if (status == CELLGATE_OK)
        return CELLGATE_OK;
    if (weights->pack == CUD_PACK_FUSED || cud_concerns_all(status)) {
        *error = why;
        return status;
    }
    cud_refuse_variant(device, weights->digest, id, why.text);
    return CELLGATE_OK;
}

static struct cellgate_weights *allocate(cellgate_device *device, size_t ops)
{
    struct cellgate_weights *made = calloc(1, sizeof *made);

    if (!made)
        return NULL;
    made->device = device;
    made->stages = calloc(ops + 1, sizeof *made->stages);
    made->lstms = calloc(ops, sizeof *made->lstms);
    made->finishes = calloc(ops, sizeof *made->finishes);
    if (made->stages && made->lstms && made->finishes)
        return made;
    cud_weights_free(made);
    return NULL;
}

/* What of the layers variants depend on, and whether they have the pack. */
static cellgate_status read_layers(cellgate_device *device,
                                   const cellgate_segment *segment,
                                   uint32_t pack, uint64_t *digest,
                                   cellgate_error *error)
{
    struct cud_layers layers;
    cellgate_status status = cud_layers_read(device, segment, &layers, error);

    if (status != CELLGATE_OK)
        return status;
    *digest = layers.digest;
    if (pack == CUD_PACK_FUSED && !layers.fused) {
        *error = layers.why;
        status = CELLGATE_UNSUPPORTED;
    }
    cud_layers_free(&layers);
    return status;
}

static cellgate_status check(cellgate_device *device,
                             const cellgate_segment *segment, uint32_t pack,
                             uint64_t *digest, cellgate_error *error)
{
    cellgate_status status = cud_device_enter(device, error);

    if (status == CELLGATE_OK)
        status = cud_segment_check(segment, error);
    if (status == CELLGATE_OK)
        status = cellgate_chain_check_weights(segment, error);
    if (status == CELLGATE_OK &&
        (pack >= CUD_PACKS ||
         (pack == CUD_PACK_FUSED && !device->cudnn.version)))
        status = cellgate_fail(error, CELLGATE_INVALID, "no pack %u", pack);
    return status == CELLGATE_OK
               ? read_layers(device, segment, pack, digest, error)
               : status;
}

cellgate_status cud_prepare(cellgate_device *device,
                            const cellgate_segment *segment, uint32_t pack,
                            cellgate_weights **weights, cellgate_error *error)
{
    struct cellgate_weights *made;
    uint64_t digest = 0;
    cellgate_status status = check(device, segment, pack, &digest, error);

    if (status != CELLGATE_OK)
        return status;
    made = allocate(device, segment->op_count);
    if (!made)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
    made->pack = (enum cud_pack)pack;
    made->digest = digest;
    made->op_count = segment->op_count;
    made->input_width = input_width(segment->ops[0]);
    status = fill(made, segment, error);
    if (status == CELLGATE_OK)
        status = warm_up(made, error);
    if (status == CELLGATE_OK) {
        *weights = made;
        return CELLGATE_OK;
    }
    cud_weights_free(made);
    return pack == CUD_PACK_FUSED && !cud_concerns_all(status)
               ? cud_refuse_fused(device, digest, error)
               : status;
}

void cud_weights_free(cellgate_weights *weights)
{
    cellgate_device *device;
    uint32_t i;

    if (!weights)
        return;
    device = weights->device;
    for (i = 0; i < weights->stage_count; i++) {
        struct cud_stage *stage = &weights->stages[i];
        uint32_t space;

        for (space = 0; space < stage->space_count; space++)
            cud_buffer_destroy(device, &stage->spaces[space].memory);
        cud_buffer_destroy(device, &stage->own.kernel);
        cud_buffer_destroy(device, &stage->own.recurrent);
        cud_buffer_destroy(device, &stage->own.projection);
        cud_buffer_destroy(device, &stage->own.bias);
        cud_buffer_destroy(device, &stage->own.peephole);
    }
    cud_buffer_destroy(device, &weights->table);
    free(weights->stages);
    free(weights->lstms);
    free(weights->finishes);
    free(weights);
}
