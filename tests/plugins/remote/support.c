/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/plugins/remote/support.h"

/*
 * Those of exact shapes come first: a core that takes the first variant has to
 * make a plan for each shape it meets.
 */
static const cellgate_variant variants[] = {
    { .struct_size = sizeof(cellgate_variant),
      .name = "batch",
      .id = 1,
      .pack = REMOTE_PACK_F32,
      .numeric = CELLGATE_NUMERIC_F32,
      .threads = 1,
      .exact_batch = 1 },
    { .struct_size = sizeof(cellgate_variant),
      .name = "exact",
      .id = 2,
      .pack = REMOTE_PACK_F32,
      .numeric = CELLGATE_NUMERIC_F32,
      .threads = 1,
      .exact_batch = 1,
      .exact_steps = 1 },
    { .struct_size = sizeof(cellgate_variant),
      .name = "any",
      .id = 3,
      .pack = REMOTE_PACK_F32,
      .numeric = CELLGATE_NUMERIC_F32,
      .threads = 1 },
    { .struct_size = sizeof(cellgate_variant),
      .name = "bf16",
      .id = 4,
      .pack = REMOTE_PACK_BF16,
      .numeric = CELLGATE_NUMERIC_BF16,
      .threads = 1 },
};

#define VARIANT_COUNT (sizeof variants / sizeof variants[0])

const cellgate_variant *remote_variant(uint64_t id)
{
    size_t at;

    for (at = 0; at < VARIANT_COUNT; at++)
        if (variants[at].id == id)
            return &variants[at];
    return NULL;
}

/* Number `index` among the variants that the settings leave. */
static const cellgate_variant *offered(const cellgate_device *device,
                                       uint32_t index)
{
    const bool all = strcmp(device->variants, "all") == 0;
    size_t at;

    for (at = 0; at < VARIANT_COUNT; at++)
        if (all || strcmp(device->variants, variants[at].name) == 0)
            if (index-- == 0)
                return &variants[at];
    return NULL;
}

cellgate_status remote_check_segment(const cellgate_segment *segment,
                                     cellgate_error *error)
{
    struct remote_op ops[2] = { { 0 }, { 0 } };
    cellgate_status status = CELLGATE_OK;
    uint32_t at;

    if (!cellgate_struct_known(segment, sizeof *segment) ||
        segment->reserved != 0)
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "the segment has a field that is newer than "
                               "this plugin");
    if (segment->op_count == 0)
        return cellgate_fail(error, CELLGATE_INVALID, "a segment without ops");
    for (at = 0; status == CELLGATE_OK && at < segment->op_count; at++)
        status = remote_read_op(segment, at, at > 0 ? &ops[(at - 1) % 2] : NULL,
                                &ops[at % 2], error);
    return status;
}

cellgate_status remote_read_shape(const cellgate_shape *given,
                                  cellgate_shape *shape, cellgate_error *error)
{
    shape->struct_size = sizeof *shape;
    cellgate_struct_copy(shape, given);
    if (!cellgate_struct_known(given, sizeof *shape))
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "the shape has a field that is newer than this "
                               "plugin");
    if (shape->batch < 1 || shape->steps < 0)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "no shape: batch %lld, steps %lld",
                             (long long)shape->batch, (long long)shape->steps);
    return CELLGATE_OK;
}

static int is_plain(const struct remote_op *op)
{
    static const int32_t kinds[3] = { CELLGATE_SIGMOID, CELLGATE_TANH,
                                      CELLGATE_TANH };

    for (int direction = 0; direction < op->directions; direction++)
        for (int at = 0; at < 3; at++)
            if (op->activations[direction][at].kind != kinds[at])
                return 0;
    return 1;
}

/* As an accelerator whose library fuses plain LSTMs alone would say. */
static void note(const cellgate_segment *segment, cellgate_variant *variant)
{
    struct remote_op ops[2] = { { 0 }, { 0 } };
    cellgate_error error = CELLGATE_ERROR_INIT;

    for (uint32_t at = 0; at < segment->op_count; at++) {
        struct remote_op *op = &ops[at % 2];

        if (remote_read_op(segment, at, at > 0 ? &ops[(at - 1) % 2] : NULL, op,
                           &error) != CELLGATE_OK)
            return;
        if (op->kind == CELLGATE_OP_LSTM && !is_plain(op))
            (void)snprintf(variant->note, sizeof variant->note,
                           "activations other than sigmoid and tanh are not "
                           "fused: each step is a kernel of its own");
    }
}

cellgate_status remote_support(cellgate_device *device,
                               const cellgate_segment *segment,
                               const cellgate_shape *shape, uint32_t index,
                               cellgate_variant *variant, cellgate_error *error)
{
    const cellgate_variant *found;
    cellgate_variant told;
    cellgate_status status = remote_device_check(device, error);
    cellgate_shape checked = { .batch = 0 };

    if (status == CELLGATE_OK)
        status = remote_check_segment(segment, error);
    if (status == CELLGATE_OK && shape != NULL)
        status = remote_read_shape(shape, &checked, error);
    if (status == CELLGATE_OK && shape != NULL)
        status = remote_check_batch(device, checked.batch, error);
    if (status != CELLGATE_OK)
        return status;
    found = offered(device, index);
    if (found == NULL)
        return CELLGATE_END;
    told = *found;
    note(segment, &told);
    if (atomic_load(&device->prepared) &&
        strcmp(device->refused, told.name) == 0)
        (void)snprintf(told.refusal, sizeof told.refusal,
                       "its kernel did not compile");
    cellgate_struct_copy(variant, &told);
    return CELLGATE_OK;
}
