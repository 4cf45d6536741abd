/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cellgate/chain.h"
#include "plugins/openmp/device.h"
#include "plugins/openmp/plan.h"
#include "plugins/openmp/segment.h"

/* The largest size of one axis; products of two stay far from overflow. */
#define SIZE_MOST (((int64_t)1 << 31) - 1)

cellgate_status cpu_segment_check(const cellgate_segment *segment,
                                  cellgate_error *error)
{
    return cellgate_chain_check(segment, SIZE_MOST, error);
}

cellgate_status cpu_shape_read(const cellgate_shape *given,
                               cellgate_shape *shape, cellgate_error *error)
{
    return cellgate_shape_read(given, SIZE_MOST, shape, error);
}

/* ---- Variants ---------------------------------------------------------- */

/* Where an id has its pack; the threads are below. */
#define PACK_SHIFT 32

bool cpu_variant_read(const cellgate_device *device, uint64_t id,
                      enum cpu_pack *pack, uint32_t *threads)
{
    *pack = (enum cpu_pack)(id >> PACK_SHIFT);
    *threads = (uint32_t)id;
    return id >> PACK_SHIFT < CPU_PACKS &&
           (*threads == 1 || *threads == device->threads);
}

/* Whether there is a matrix, which a narrower type would make smaller. */
static bool has_matrix(const cellgate_segment *segment)
{
    uint32_t op;

    for (op = 0; op < segment->op_count; op++)
        if (segment->ops[op]->kind == CELLGATE_OP_LSTM ||
            segment->ops[op]->kind == CELLGATE_OP_DENSE)
            return true;
    return false;
}

static void variant_write(enum cpu_pack pack, uint32_t threads,
                          cellgate_variant *variant)
{
    cellgate_variant known = { .struct_size = sizeof known };

    known.id = (uint64_t)pack << PACK_SHIFT | threads;
    known.pack = pack;
    known.numeric = cpu_pack_numeric(pack);
    known.threads = threads;
    (void)snprintf(known.name, sizeof known.name, "t%u%s", (unsigned)threads,
                   cpu_pack_suffix(pack));
    cellgate_struct_copy(variant, &known);
}

cellgate_status cpu_support(cellgate_device *device,
                            const cellgate_segment *segment,
                            const cellgate_shape *shape, uint32_t index,
                            cellgate_variant *variant, cellgate_error *error)
{
    const uint32_t widths = device->threads > 1 ? 2 : 1;
    cellgate_status status = cpu_segment_check(segment, error);
    cellgate_shape checked;

    if (status == CELLGATE_OK && shape)
        status = cpu_shape_read(shape, &checked, error);
    if (status != CELLGATE_OK)
        return status;
    if (index >= widths * (has_matrix(segment) ? CPU_PACKS : 1))
        return CELLGATE_END;
    variant_write((enum cpu_pack)(index / widths),
                  index % widths == 0 ? 1 : device->threads, variant);
    return CELLGATE_OK;
}
