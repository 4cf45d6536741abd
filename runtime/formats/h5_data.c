/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers out of a dataset, as float32. */
#include "config.h"

#include "runtime/formats/convert.h"
#include "runtime/formats/h5_file.h"

static uint64_t load(const uint8_t *bytes, size_t size, bool big_endian)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < size; i++)
        bits = bits << 8 | bytes[big_endian ? i : size - 1 - i];
    return bits;
}

static float from_f32(uint64_t bits)
{
    const uint32_t word = (uint32_t)bits;
    float value;

    memcpy(&value, &word, sizeof value);
    return value;
}

static float from_f64(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return (float)value;
}

static void convert(const cg_h5_type *type, const uint8_t *bytes, size_t count,
                    float *data)
{
    const size_t size = type->size;
    const bool big = type->big_endian;

    for (size_t i = 0; i < count; i++, bytes += size) {
        if (type->class == CG_H5_F32)
            data[i] = from_f32(load(bytes, 4, big));
        else if (type->class == CG_H5_F64)
            data[i] = from_f64(load(bytes, 8, big));
        else if (type->class == CG_H5_F16)
            data[i] = cg_half_to_float((uint16_t)load(bytes, 2, big));
        else
            data[i] = cg_bfloat16_to_float((uint16_t)load(bytes, 2, big));
    }
}

/* ---- Chunks -------------------------------------------------------------- */

typedef struct copy_work {
    const cg_h5_dataset *dataset;
    cg_h5_scratch scratch;
    float *data;
} copy_work;

/* The part of a chunk that lies within the data. */
typedef struct chunk_box {
    uint64_t first[CG_H5_MAX_RANK]; /* its corner in the data */
    uint64_t count[CG_H5_MAX_RANK];
} chunk_box;

static chunk_box find_box(const cg_h5_dataset *dataset, uint64_t number)
{
    chunk_box box = { 0 };

    for (int32_t axis = dataset->space.rank - 1; axis >= 0; axis--) {
        const uint64_t chunk = dataset->chunk[axis];
        uint64_t rest;

        box.first[axis] = number % dataset->grid[axis] * chunk;
        number /= dataset->grid[axis];
        rest = dataset->space.extents[axis] - box.first[axis];
        box.count[axis] = rest < chunk ? rest : chunk;
    }
    return box;
}

/* The next row of the box, the last axis left out. False: that was the last. */
static bool next_row(const chunk_box *box, int32_t rank, uint64_t *at)
{
    for (int32_t axis = rank - 2; axis >= 0; axis--) {
        if (++at[axis] < box->count[axis])
            return true;
        at[axis] = 0;
    }
    return false;
}

static void copy_box(const copy_work *copy, const chunk_box *box,
                     const uint8_t *bytes)
{
    const cg_h5_dataset *dataset = copy->dataset;
    const int32_t rank = dataset->space.rank;
    uint64_t at[CG_H5_MAX_RANK] = { 0 };

    do {
        uint64_t from = 0, to = 0;

        for (int32_t axis = 0; axis < rank; axis++) {
            from = from * dataset->chunk[axis] + at[axis];
            to =
                to * dataset->space.extents[axis] + box->first[axis] + at[axis];
        }
        convert(&dataset->type, bytes + from * dataset->type.size,
                (size_t)box->count[rank - 1], copy->data + to);
    } while (next_row(box, rank, at));
}

static cellgate_status copy_chunk(cg_h5 *h5, void *context,
                                  const cg_h5_chunk *chunk)
{
    copy_work *copy = context;
    const uint8_t *bytes;
    chunk_box box;
    cellgate_status status =
        cg_h5_unpack(h5, copy->dataset, chunk, &copy->scratch, &bytes);

    if (status != CELLGATE_OK)
        return status;
    box = find_box(copy->dataset, chunk->number);
    copy_box(copy, &box, bytes);
    return CELLGATE_OK;
}

cellgate_status cg_h5_data_read(cg_h5 *h5, const cg_h5_dataset *dataset,
                                float *data)
{
    copy_work copy = { .dataset = dataset, .data = data };
    cellgate_status status;

    if (dataset->layout != CG_H5_CHUNKED) {
        convert(&dataset->type, dataset->data.at,
                (size_t)dataset->space.elements, data);
        return CELLGATE_OK;
    }
    status = cg_h5_scratch_init(h5, dataset, &copy.scratch);
    if (status == CELLGATE_OK)
        status = cg_h5_each_chunk(h5, dataset, copy_chunk, &copy);
    cg_h5_scratch_finish(&copy.scratch);
    return status;
}
