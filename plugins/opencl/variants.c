/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which variants run a segment. What support() offers, what prepare() starts
 * and what plan_create() takes is decided here, once.
 */
#include "config.h"

#include <stdlib.h>

#include "plugins/opencl/segment.h"

static const struct ocl_variant variants[] = {
    { "fused", OCL_FUSED, 1, OCL_PACK_FLOAT },
    { "fused4", OCL_FUSED, 4, OCL_PACK_FLOAT },
    { "whole", OCL_WHOLE, 1, OCL_PACK_FLOAT },
    { "whole4", OCL_WHOLE, 4, OCL_PACK_FLOAT },
    { "step", OCL_STEP, 1, OCL_PACK_FLOAT },
    { "step4", OCL_STEP, 4, OCL_PACK_FLOAT },
    { "rows", OCL_ROWS, 1, OCL_PACK_FLOAT },
    { "fused-f16", OCL_FUSED, 1, OCL_PACK_HALF },
    { "fused4-f16", OCL_FUSED, 4, OCL_PACK_HALF },
    { "whole-f16", OCL_WHOLE, 1, OCL_PACK_HALF },
    { "whole4-f16", OCL_WHOLE, 4, OCL_PACK_HALF },
    { "step-f16", OCL_STEP, 1, OCL_PACK_HALF },
    { "step4-f16", OCL_STEP, 4, OCL_PACK_HALF },
    { "rows-f16", OCL_ROWS, 1, OCL_PACK_HALF },
    { "whole-clblast", OCL_WHOLE, 1, OCL_PACK_CLBLAST },
    { "whole4-clblast", OCL_WHOLE, 4, OCL_PACK_CLBLAST },
    { "step-clblast", OCL_STEP, 1, OCL_PACK_CLBLAST },
    { "step4-clblast", OCL_STEP, 4, OCL_PACK_CLBLAST },
    { "rows-clblast", OCL_ROWS, 1, OCL_PACK_CLBLAST },
};

/* With the size of a part of a CPU behind some of them. */
const char *const ocl_variant_names[] = { "fused*", "whole*", "step*", "rows*",
                                          NULL };

const struct ocl_variant *ocl_variant_at(uint64_t id)
{
    return id < sizeof variants / sizeof variants[0] ? &variants[id] : NULL;
}

/* ---- Outlines ---------------------------------------------------------- */

uint64_t ocl_whole_memory(const struct ocl_lstm *lstm, uint32_t vector,
                          const struct ocl_variant *variant)
{
    uint64_t hidden = (uint64_t)lstm->blocks * vector;
    uint64_t output = (uint64_t)lstm->output_blocks * vector;
    uint64_t row = 2 * output + hidden;

    if (lstm->projects)
        row += hidden;
    if (variant->way == OCL_FUSED)
        row += (uint64_t)lstm->input;
    return row * variant->rows * sizeof(float);
}

/* FNV-1a, number by number. */
static void mix(uint64_t *digest, int64_t number)
{
    *digest = (*digest ^ (uint64_t)number) * 0x100000001b3u;
}

static void add_lstm(const cellgate_op *op, uint32_t vector,
                     struct ocl_outline *outline)
{
    static const struct ocl_variant whole = { .way = OCL_WHOLE, .rows = 1 };
    static const struct ocl_variant fused = { .way = OCL_FUSED, .rows = 1 };
    struct ocl_lstm lstm;
    uint64_t memory;

    ocl_lstm_read(op, vector, &lstm);
    outline->has_lstm = outline->has_matrix = true;
    memory = ocl_whole_memory(&lstm, vector, &whole);
    if (outline->whole_row < memory)
        outline->whole_row = memory;
    memory = ocl_whole_memory(&lstm, vector, &fused);
    if (outline->fused_row < memory)
        outline->fused_row = memory;
    mix(&outline->digest, lstm.input);
    mix(&outline->digest, lstm.hidden);
    mix(&outline->digest, lstm.output);
    mix(&outline->digest, lstm.directions);
    mix(&outline->digest, lstm.projects | lstm.usual << 1 |
                              lstm.peepholes << 2 | lstm.coupled << 3);
}

void ocl_outline_read(const cellgate_segment *segment, uint32_t vector,
                      struct ocl_outline *outline)
{
    uint32_t op;

    *outline = (struct ocl_outline){ .digest = 0xcbf29ce484222325u };
    for (op = 0; op < segment->op_count; op++) {
        cellgate_dense dense = { .op = { sizeof dense, 0, 0 } };

        mix(&outline->digest, segment->ops[op]->kind);
        if (segment->ops[op]->kind == CELLGATE_OP_LSTM) {
            add_lstm(segment->ops[op], vector, outline);
        } else if (segment->ops[op]->kind == CELLGATE_OP_DENSE) {
            cellgate_struct_copy(&dense, segment->ops[op]);
            outline->has_matrix = true;
            mix(&outline->digest, dense.input_size);
            mix(&outline->digest, dense.units);
        }
    }
}

/* ---- What turned out not to run ---------------------------------------- */

static bool find_refusal(cellgate_device *device,
                         const struct ocl_outline *outline, uint64_t id,
                         char text[160])
{
    const struct ocl_refusal *at;

    (void)pthread_mutex_lock(&device->lock);
    for (at = device->refusals; at; at = at->next)
        if (at->digest == outline->digest && at->variant == id)
            break;
    if (at)
        memcpy(text, at->text, sizeof at->text);
    (void)pthread_mutex_unlock(&device->lock);
    return at != NULL;
}

void ocl_refuse_variant(cellgate_device *device,
                        const struct ocl_outline *outline, uint64_t id,
                        const char *why)
{
    struct ocl_refusal *made = calloc(1, sizeof *made);
    char line[240];

    (void)snprintf(line, sizeof line, "variant %s is left out: %s",
                   ocl_variant_at(id)->name, why);
    device->host->log(device->host->context, CELLGATE_LOG_WARNING, line);
    if (!made)
        return;
    made->digest = outline->digest;
    made->variant = id;
    (void)snprintf(made->text, sizeof made->text, "%s", why);
    (void)pthread_mutex_lock(&device->lock);
    made->next = device->refusals;
    device->refusals = made;
    (void)pthread_mutex_unlock(&device->lock);
}

void ocl_refusals_free(cellgate_device *device)
{
    while (device->refusals) {
        struct ocl_refusal *first = device->refusals;

        device->refusals = first->next;
        free(first);
    }
}

/* ---- Which run --------------------------------------------------------- */

/* OK, or why the device does not offer it for such a segment and batch (0: any)
   at all. */
static cellgate_status check_offer(const cellgate_device *device,
                                   const struct ocl_outline *outline,
                                   const struct ocl_variant *variant,
                                   int64_t batch, cellgate_error *error)
{
    const uint64_t row =
        variant->way == OCL_FUSED ? outline->fused_row : outline->whole_row;

    if ((variant->way == OCL_ROWS) == outline->has_lstm)
        return cellgate_refuse(
            error, CELLGATE_REASON_CHAIN, "variant %s is for chains %s an LSTM",
            variant->name, outline->has_lstm ? "without" : "with");
    if (variant->pack == OCL_PACK_CLBLAST && !device->has_clblast)
        return cellgate_refuse(
            error, CELLGATE_REASON_SETTING,
            "variant %s needs CLBlast, which is not there or "
            "not asked for (clblast = yes)",
            variant->name);
    if (variant->pack != OCL_PACK_FLOAT && !outline->has_matrix)
        return cellgate_refuse(error, CELLGATE_REASON_CHAIN,
                               "variant %s is for chains with a matrix",
                               variant->name);
    if (variant->rows > 1 && batch == 1)
        return cellgate_refuse(error, CELLGATE_REASON_SHAPE,
                               "variant %s is for more samples than one",
                               variant->name);
    if ((variant->way == OCL_WHOLE || variant->way == OCL_FUSED) &&
        row * variant->rows > device->found->local_memory)
        return cellgate_refuse(
            error, CELLGATE_REASON_MEMORY,
            "variant %s needs %llu bytes of local memory, and there are %llu",
            variant->name, (unsigned long long)(row * variant->rows),
            (unsigned long long)device->found->local_memory);
    return CELLGATE_OK;
}

cellgate_status ocl_variant_check(cellgate_device *device,
                                  const struct ocl_outline *outline,
                                  uint64_t id, int64_t batch,
                                  cellgate_error *error)
{
    char why[160];
    cellgate_status status;

    if (!ocl_variant_at(id))
        return cellgate_fail(error, CELLGATE_INVALID, "no variant %llu",
                             (unsigned long long)id);
    status = check_offer(device, outline, ocl_variant_at(id), batch, error);
    if (status == CELLGATE_OK && find_refusal(device, outline, id, why))
        status = cellgate_refuse(error, CELLGATE_REASON_DEVICE,
                                 "variant %s cannot run: %s",
                                 ocl_variant_at(id)->name, why);
    return status;
}

bool ocl_variant_offered(const cellgate_device *device,
                         const struct ocl_outline *outline, int64_t batch,
                         uint32_t index, uint64_t *id)
{
    cellgate_error ignored = CELLGATE_ERROR_INIT;
    uint64_t at;

    for (at = 0; ocl_variant_at(at); at++)
        if (check_offer(device, outline, ocl_variant_at(at), batch, &ignored) ==
                CELLGATE_OK &&
            index-- == 0)
            break;
    *id = at;
    return ocl_variant_at(at) != NULL;
}

/* On a part of a CPU with its size: costs are kept under names. */
static void name(const cellgate_device *device,
                 const struct ocl_variant *variant, char text[32])
{
    if (device->is_part)
        (void)snprintf(text, 32, "%s-t%u", variant->name,
                       (unsigned)device->threads);
    else
        (void)snprintf(text, 32, "%s", variant->name);
}

/* A host that is older than `excludes` has nothing there. */
bool ocl_variant_excluded(const cellgate_device *device, uint64_t id)
{
    cellgate_host host = { .struct_size = sizeof host };
    char text[32];

    cellgate_struct_copy(&host, device->host);
    name(device, ocl_variant_at(id), text);
    return host.excludes &&
           host.excludes(host.context, device->settings, text) != 0;
}

cellgate_status ocl_support(cellgate_device *device,
                            const cellgate_segment *segment,
                            const cellgate_shape *shape, uint32_t index,
                            cellgate_variant *variant, cellgate_error *error)
{
    cellgate_variant known = { .struct_size = sizeof known };
    cellgate_status status = ocl_device_check(device, error);
    cellgate_shape checked = { .batch = 0 };
    struct ocl_outline outline;

    if (status == CELLGATE_OK)
        status = ocl_segment_check(segment, error);
    if (status == CELLGATE_OK && shape)
        status = ocl_shape_read(shape, &checked, error);
    if (status != CELLGATE_OK)
        return status;
    ocl_outline_read(segment, device->vector, &outline);
    if (!ocl_variant_offered(device, &outline, checked.batch, index, &known.id))
        return CELLGATE_END;
    known.threads = device->threads;
    known.pack = ocl_variant_at(known.id)->pack;
    known.numeric = known.pack == OCL_PACK_HALF ? CELLGATE_NUMERIC_F16
                                                : CELLGATE_NUMERIC_F32;
    name(device, ocl_variant_at(known.id), known.name);
    (void)find_refusal(device, &outline, known.id, known.refusal);
    cellgate_struct_copy(variant, &known);
    return CELLGATE_OK;
}
