/* SPDX-License-Identifier: Apache-2.0 */
/* variants.c: the ways there are, and which of them a segment can go. */
#include "config.h"

#include <stdlib.h>

#include "plugins/cuda/segment.h"

/*
 * X(name, ...): how cuDNN runs it and in which numeric class; or which of our
 * own ways it is and in which type, with cuBLASLt's input products or without.
 * The first that a segment has is the one that unmeasured requests take: the
 * two that run everywhere come before those that want much of a device at once.
 */
#define VARIANT_LIST(FUSED, OWN, BLAS)                                         \
    FUSED("cudnn", STANDARD, FMA_MATH, F32)                                    \
    OWN("step", STEP, F32)                                                     \
    FUSED("cudnn-static", PERSIST_STATIC, FMA_MATH, F32)                       \
    FUSED("cudnn-dynamic", PERSIST_DYNAMIC, FMA_MATH, F32)                     \
    FUSED("cudnn-small", PERSIST_STATIC_SMALL_H, FMA_MATH, F32)                \
    OWN("block", BLOCK, F32)                                                   \
    OWN("persistent", PERSISTENT, F32)                                         \
    BLAS("step-blas", STEP)                                                    \
    BLAS("block-blas", BLOCK)                                                  \
    BLAS("persistent-blas", PERSISTENT)                                        \
    FUSED("cudnn-tf32", STANDARD, DEFAULT_MATH, TF32)                          \
    FUSED("cudnn-static-tf32", PERSIST_STATIC, DEFAULT_MATH, TF32)             \
    FUSED("cudnn-dynamic-tf32", PERSIST_DYNAMIC, DEFAULT_MATH, TF32)           \
    FUSED("cudnn-small-tf32", PERSIST_STATIC_SMALL_H, DEFAULT_MATH, TF32)      \
    FUSED("cudnn-f16", STANDARD, TENSOR_OP_MATH_ALLOW_CONVERSION, F16)         \
    FUSED("cudnn-static-f16", PERSIST_STATIC, TENSOR_OP_MATH_ALLOW_CONVERSION, \
          F16)                                                                 \
    FUSED("cudnn-dynamic-f16", PERSIST_DYNAMIC,                                \
          TENSOR_OP_MATH_ALLOW_CONVERSION, F16)                                \
    FUSED("cudnn-small-f16", PERSIST_STATIC_SMALL_H,                           \
          TENSOR_OP_MATH_ALLOW_CONVERSION, F16)                                \
    OWN("step-f16", STEP, F16)                                                 \
    OWN("block-f16", BLOCK, F16)                                               \
    OWN("persistent-f16", PERSISTENT, F16)                                     \
    OWN("step-bf16", STEP, BF16)                                               \
    OWN("block-bf16", BLOCK, BF16)                                             \
    OWN("persistent-bf16", PERSISTENT, BF16)

#define FUSED_ENTRY(name, algorithm, math, numeric)                            \
    { name,                                                                    \
      CUD_FUSED,                                                               \
      CUD_PACK_FUSED,                                                          \
      CELLGATE_NUMERIC_##numeric,                                              \
      CUD_RNN_ALGO_##algorithm,                                                \
      CUD_##math,                                                              \
      false },
#define OWN_ENTRY(name, way, type)                                             \
    { name, CUD_##way, CUD_PACK_##type, CELLGATE_NUMERIC_##type, 0, 0, false },
#define BLAS_ENTRY(name, way)                                                  \
    { name, CUD_##way, CUD_PACK_F32, CELLGATE_NUMERIC_F32, 0, 0, true },

static const struct cud_variant variants[] = { VARIANT_LIST(
    FUSED_ENTRY, OWN_ENTRY, BLAS_ENTRY) };

#define FUSED_NAME(name, algorithm, math, numeric) name,
#define OWN_NAME(name, way, type) name,
#define BLAS_NAME(name, way) name,
const char *const cud_variant_names[] = {
    VARIANT_LIST(FUSED_NAME, OWN_NAME, BLAS_NAME) "rows", NULL
};
#define ROWS_ID CUD_STEP_ID /* what a segment without an LSTM is run by */

const struct cud_variant *cud_variant_at(uint64_t id)
{
    return id < sizeof variants / sizeof variants[0] ? &variants[id] : NULL;
}

/* A host that is older than `excludes` has nothing there. */
bool cud_variant_excluded(const cellgate_device *device, uint64_t id)
{
    cellgate_host host = { .struct_size = sizeof host };

    cellgate_struct_copy(&host, device->host);
    return host.excludes && host.excludes(host.context, device->settings,
                                          cud_variant_at(id)->name) != 0;
}

uint64_t cud_standard_id(const struct cud_variant *variant)
{
    uint64_t id = CUD_CUDNN_ID;

    while (variants[id].way != CUD_FUSED ||
           variants[id].algorithm != CUD_RNN_ALGO_STANDARD ||
           variants[id].math != variant->math)
        id++;
    return id;
}

bool cud_exact_batch(const struct cud_variant *variant)
{
    return variant->way == CUD_FUSED &&
           variant->algorithm == CUD_RNN_ALGO_PERSIST_DYNAMIC;
}

enum cuk_type cud_pack_type(enum cud_pack pack)
{
    return pack == CUD_PACK_F16    ? CUK_F16
           : pack == CUD_PACK_BF16 ? CUK_BF16
                                   : CUK_F32;
}

/* ---- Layers ------------------------------------------------------------ */

void cud_lstm_read(const cellgate_op *op, uint32_t at, struct cud_lstm *lstm)
{
    cellgate_lstm from = { .op = { sizeof from, 0, 0 } };

    cellgate_struct_copy(&from, op);
    *lstm = (struct cud_lstm){
        .input = from.input_size,
        .hidden = from.hidden_size,
        .output =
            from.projection_size ? from.projection_size : from.hidden_size,
        .directions = from.directions,
        .reverse = from.reverse != 0,
        .projects = from.projection_size != 0,
        .has_bias = from.has_bias != 0,
        .peepholes = from.has_peepholes != 0,
        .coupled = from.coupled != 0,
        .clip = from.clip,
        .outputs = from.outputs,
        .op = at,
    };
    memcpy(lstm->activations, from.activations, sizeof lstm->activations);
}

struct cuk_device cud_kernel_device(const cellgate_device *device)
{
    return (struct cuk_device){
        .major = device->found->major,
        .minor = device->found->minor,
        .multiprocessors = device->found->multiprocessors,
        .shared = device->found->shared,
        .cooperative = device->found->cooperative,
    };
}

struct cuk_lstm cud_kernel_lstm(const struct cud_lstm *lstm, enum cuk_type type,
                                int64_t batch, int64_t steps)
{
    /* What says only whether it is there. */
    static const float there;
    struct cuk_lstm of = {
        .batch = (int32_t)batch,
        .steps = (int32_t)steps,
        .hidden = (int32_t)lstm->hidden,
        .output = (int32_t)lstm->output,
        .directions = lstm->directions,
        .end = (int32_t)steps,
        .reverse = { lstm->reverse, 1 },
        .coupled = lstm->coupled,
        .clip = lstm->clip,
        .type = (int32_t)type,
        .projection = lstm->projects ? &there : NULL,
        .peephole = lstm->peepholes ? &there : NULL,
    };

    memcpy(of.activations, lstm->activations, sizeof of.activations);
    return of;
}

bool cud_own_fits(const cellgate_device *device, enum cud_way way,
                  const struct cuk_lstm *lstm, char *why, size_t size)
{
    const struct cuk_device of = cud_kernel_device(device);
    struct cuk_fit fit = { .fits = 1 };

    if (way == CUD_BLOCK)
        cuk_block_fit(&of, lstm, &fit);
    else if (way == CUD_PERSISTENT)
        cuk_persistent_fit(&of, lstm, &fit);
    if (!fit.fits)
        (void)snprintf(why, size, "%s", fit.why);
    return fit.fits != 0;
}

/* ---- The layers of a segment ------------------------------------------- */

static uint64_t mix(uint64_t sum, int64_t number)
{
    return (sum ^ (uint64_t)number) * 0x100000001b3u;
}

static uint64_t mix_lstm(uint64_t sum, const struct cud_lstm *of)
{
    const int flags = of->reverse | of->projects << 1 | of->peepholes << 2 |
                      of->coupled << 3 | (of->clip > 0) << 4;
    int a;

    sum = mix(mix(mix(sum, of->op), of->input), of->hidden);
    sum = mix(mix(mix(sum, of->output), of->directions), flags);
    sum = mix(sum, of->outputs);
    for (a = 0; a < 3 * of->directions; a++)
        sum = mix(sum, of->activations[a / 3][a % 3].kind);
    return sum;
}

/* Any other op. */
static uint64_t mix_op(uint64_t sum, const cellgate_op *op)
{
    cellgate_dense dense = { .op = { sizeof dense, 0, 0 } };
    cellgate_embedding embedding = { .op = { sizeof embedding, 0, 0 } };
    cellgate_activation_op act = { .op = { sizeof act, 0, 0 } };
    cellgate_softmax softmax = { .op = { sizeof softmax, 0, 0 } };

    switch (op->kind) {
    case CELLGATE_OP_DENSE:
        cellgate_struct_copy(&dense, op);
        sum = mix(mix(sum, dense.input_size), dense.units);
        return mix(mix(sum, dense.has_bias), dense.activation.kind);
    case CELLGATE_OP_EMBEDDING:
        cellgate_struct_copy(&embedding, op);
        return mix(mix(sum, embedding.vocabulary), embedding.size);
    case CELLGATE_OP_ACTIVATION:
        cellgate_struct_copy(&act, op);
        return mix(mix(sum, act.size), act.activation.kind);
    default:
        cellgate_struct_copy(&softmax, op);
        return mix(sum, softmax.size);
    }
}

/* A variant is refused for segments that are alike in it: one that fails at a
   dense layer may run the same LSTMs without. */
static uint64_t digest_of(const cellgate_segment *segment,
                          const struct cud_layers *layers)
{
    const struct cud_lstm *lstm = layers->of;
    uint64_t sum = 0xcbf29ce484222325u;
    uint32_t at;

    for (at = 0; at < segment->op_count; at++) {
        const cellgate_op *op = segment->ops[at];

        sum = mix(sum, op->kind);
        sum = op->kind == CELLGATE_OP_LSTM ? mix_lstm(sum, lstm++)
                                           : mix_op(sum, op);
    }
    return sum;
}

static void check_fused(const cellgate_device *device,
                        struct cud_layers *layers)
{
    uint32_t i;

    layers->fused = device->cudnn.version != 0;
    if (!layers->fused)
        (void)cellgate_refuse(&layers->why, CELLGATE_REASON_DEVICE,
                              "not fused: %.140s", device->cudnn.lacks);
    for (i = 0; layers->fused && i < layers->count; i++)
        layers->fused =
            cud_fused_check(&layers->of[i], &layers->why) == CELLGATE_OK;
}

cellgate_status cud_layers_read(const cellgate_device *device,
                                const cellgate_segment *segment,
                                struct cud_layers *layers,
                                cellgate_error *error)
{
    uint32_t op;

    *layers = (struct cud_layers){ .why = CELLGATE_ERROR_INIT };
    layers->of = calloc(segment->op_count, sizeof *layers->of);
    if (!layers->of)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
    for (op = 0; op < segment->op_count; op++)
        if (segment->ops[op]->kind == CELLGATE_OP_LSTM)
            cud_lstm_read(segment->ops[op], op, &layers->of[layers->count++]);
    layers->digest = digest_of(segment, layers);
    check_fused(device, layers);
    return CELLGATE_OK;
}

void cud_layers_free(struct cud_layers *layers)
{
    free(layers->of);
    layers->of = NULL;
}

/* ---- What a segment is offered ----------------------------------------- */

/* Layers that are one stack from `first` on. */
static uint32_t stack_height(const struct cud_layers *layers, uint32_t first)
{
    uint32_t count = 1;

    while (first + count < layers->count &&
           layers->of[first + count].op == layers->of[first].op + count &&
           cud_fused_stacks(&layers->of[first + count - 1],
                            &layers->of[first + count]))
        count++;
    return count;
}

static cellgate_status ask_fused(cellgate_device *device,
                                 const struct cud_layers *layers,
                                 const struct cud_variant *variant,
                                 const cellgate_shape *shape,
                                 cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    uint32_t i, height;

    for (i = 0; status == CELLGATE_OK && i < layers->count; i += height) {
        height = stack_height(layers, i);
        status = cud_fused_ask(device, &layers->of[i], height, variant, shape,
                               error);
    }
    return status;
}

static cellgate_status ask_own(const cellgate_device *device,
                               const struct cud_layers *layers,
                               const struct cud_variant *variant,
                               const cellgate_shape *shape,
                               cellgate_error *error)
{
    char why[200];
    uint32_t i;

    for (i = 0; i < layers->count; i++) {
        const struct cuk_lstm lstm =
            cud_kernel_lstm(&layers->of[i], cud_pack_type(variant->pack),
                            shape ? shape->batch : 1, shape ? shape->steps : 1);

        if (!cud_own_fits(device, variant->way, &lstm, why, sizeof why))
            return cellgate_refuse(error, CELLGATE_REASON_SHAPE, "%s", why);
    }
    return CELLGATE_OK;
}

bool cud_variant_exists(const cellgate_device *device, uint64_t id)
{
    const struct cud_variant *variant = cud_variant_at(id);

    if (variant->way != CUD_FUSED)
        return !variant->blas || device->blaslt.version != 0;
    return device->cudnn.version != 0 &&
           (variant->numeric != CELLGATE_NUMERIC_TF32 ||
            device->found->major >= 8);
}

/* Whether a variant is there for such layers, to run or to be refused. */
static bool is_offered(const cellgate_device *device,
                       const struct cud_layers *layers, uint64_t id)
{
    const struct cud_variant *variant = cud_variant_at(id);

    if (layers->count == 0) /* they have nothing to differ in */
        return id == ROWS_ID;
    return (variant->way != CUD_FUSED || layers->fused) &&
           cud_variant_exists(device, id);
}

bool cud_variant_offered(const cellgate_device *device,
                         const struct cud_layers *layers, uint32_t index,
                         uint64_t *id)
{
    uint64_t at;

    for (at = 0; cud_variant_at(at); at++)
        if (is_offered(device, layers, at) && index-- == 0)
            break;
    *id = at;
    return cud_variant_at(at) != NULL;
}

cellgate_status cud_variant_check(cellgate_device *device,
                                  const struct cud_layers *layers, uint64_t id,
                                  const cellgate_shape *shape,
                                  cellgate_error *error)
{
    const struct cud_variant *variant = cud_variant_at(id);
    char why[160];

    if (cud_variant_refused(device, layers->digest, id, shape, why))
        return cellgate_refuse(error, CELLGATE_REASON_DEVICE, "%s", why);
    return variant->way == CUD_FUSED
               ? ask_fused(device, layers, variant, shape, error)
               : ask_own(device, layers, variant, shape, error);
}

/* ---- support() --------------------------------------------------------- */

/* How rows of several lengths run in the fused variants that have them not. */
static void note_lengths(const cellgate_device *device,
                         const struct cud_variant *of, char note[160])
{
    const uint64_t standard = cud_standard_id(of);

    if (cud_variant_excluded(device, standard))
        (void)snprintf(note, 160,
                       "rows of several lengths are refused: %s, which runs "
                       "them, is excluded",
                       cud_variant_at(standard)->name);
    else
        (void)snprintf(note, 160,
                       "rows of several lengths run by cuDNN's standard "
                       "algorithm");
}

static void describe(const cellgate_device *device,
                     const struct cud_layers *layers, uint64_t id,
                     cellgate_variant *variant)
{
    const struct cud_variant *of = cud_variant_at(id);

    variant->id = id;
    variant->pack = of->pack;
    variant->numeric = of->numeric;
    variant->threads = 1;
    variant->exact_batch = cud_exact_batch(of);
    (void)snprintf(variant->name, sizeof variant->name, "%s",
                   layers->count > 0 ? of->name : "rows");
    if (layers->count > 0 && !layers->fused)
        (void)snprintf(variant->note, sizeof variant->note, "%.159s",
                       layers->why.text);
    else if (of->way == CUD_FUSED && of->algorithm != CUD_RNN_ALGO_STANDARD)
        note_lengths(device, of, variant->note);
}

static cellgate_status find(cellgate_device *device,
                            const struct cud_layers *layers,
                            const cellgate_shape *shape, uint32_t index,
                            cellgate_variant *variant, cellgate_error *error)
{
    cellgate_error why = CELLGATE_ERROR_INIT;
    cellgate_status status;
    uint64_t id;

    if (!cud_variant_offered(device, layers, index, &id))
        return CELLGATE_END;
    describe(device, layers, id, variant);
    status = cud_variant_check(device, layers, id, shape, &why);
    if (status == CELLGATE_OK)
        return CELLGATE_OK;
    if (cud_concerns_all(status)) {
        *error = why;
        return status;
    }
    (void)snprintf(variant->refusal, sizeof variant->refusal, "%.159s",
                   why.text);
    return CELLGATE_OK;
}

cellgate_status cud_support(cellgate_device *device,
                            const cellgate_segment *segment,
                            const cellgate_shape *shape, uint32_t index,
                            cellgate_variant *variant, cellgate_error *error)
{
    cellgate_variant known = { .struct_size = sizeof known };
    cellgate_status status = cud_device_enter(device, error);
    struct cud_layers layers;
    cellgate_shape checked;

    if (status == CELLGATE_OK)
        status = cud_segment_check(segment, error);
    if (status == CELLGATE_OK && shape)
        status = cud_shape_read(shape, &checked, error);
    if (status == CELLGATE_OK)
        status = cud_layers_read(device, segment, &layers, error);
    if (status != CELLGATE_OK)
        return status;
    status =
        find(device, &layers, shape ? &checked : NULL, index, &known, error);
    if (status == CELLGATE_OK)
        cellgate_struct_copy(variant, &known);
    cud_layers_free(&layers);
    return status;
}
