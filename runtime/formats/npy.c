/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/npy.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cellgate/cellgate.h"
#include "cellgate/plugin.h"
#include "runtime/formats/tensor.h"

/* All of `size` bytes, or an error that names what was cut. */
static cellgate_status read_whole(const cg_npy_source *source, void *buffer,
                                  size_t size, const char *what,
                                  cellgate_error *error)
{
    size_t done = 0;

    while (done < size) {
        size_t count = 0;
        cellgate_status status = source->read(
            source->stream, (char *)buffer + done, size - done, &count, error);
        if (status != CELLGATE_OK)
            return status;
        if (count == 0)
            return cellgate_fail(error, CELLGATE_BAD_FILE, "%s: ends within %s",
                                 source->where, what);
        done += count;
    }
    return CELLGATE_OK;
}

/* Magic, version and length; the header's text comes next. */
static cellgate_status read_prefix(const cg_npy_source *source,
                                   size_t *prefix_size, size_t *header_size,
                                   cellgate_error *error)
{
    unsigned char prefix[CG_NPY_PREFIX_SIZE];
    uint32_t length;
    cellgate_status status = read_whole(source, prefix, 10, "the magic", error);

    if (status != CELLGATE_OK)
        return status;
    if (memcmp(prefix, CG_NPY_MAGIC, CG_NPY_MAGIC_SIZE) != 0)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%s: not a .npy array: the magic is missing",
                             source->where);
    if (prefix[6] < 1 || prefix[6] > 3 || prefix[7] != 0)
        return cellgate_refuse(error, CELLGATE_REASON_OTHER,
                               "%s: .npy version %d.%d; 1.0 to 3.0 are known",
                               source->where, prefix[6], prefix[7]);
    *prefix_size = prefix[6] == 1 ? 10 : 12;
    length = (uint32_t)prefix[8] | (uint32_t)prefix[9] << 8;
    if (*prefix_size == 12) {
        status = read_whole(source, prefix + 10, 2, "the magic", error);
        if (status != CELLGATE_OK)
            return status;
        length |= (uint32_t)prefix[10] << 16 | (uint32_t)prefix[11] << 24;
    }
    if (length > CG_NPY_HEADER_MAX)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%s: a header of %" PRIu32 " bytes; at most %u "
                             "are read",
                             source->where, length, CG_NPY_HEADER_MAX);
    if (source->size < *prefix_size || length > source->size - *prefix_size)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%s: ends within the header", source->where);
    *header_size = length;
    return CELLGATE_OK;
}

static cellgate_status read_header(const cg_npy_source *source,
                                   cg_npy_header *header, uint64_t *offset,
                                   cellgate_error *error)
{
    size_t prefix_size = 0;
    size_t length = 0;
    char *text;
    cellgate_status status = read_prefix(source, &prefix_size, &length, error);

    if (status != CELLGATE_OK)
        return status;
    text = malloc(length + 1);
    if (text == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    status = read_whole(source, text, length, "the header", error);
    if (status == CELLGATE_OK)
        status =
            cg_npy_parse_header(text, length, source->where, header, error);
    free(text);
    *offset = prefix_size + length;
    return status;
}

static void swap_bytes(void *data, size_t elements, size_t item)
{
    unsigned char *bytes = data;

    for (size_t i = 0; i < elements; i++, bytes += item) {
        for (size_t low = 0, high = item - 1; low < high; low++, high--) {
            unsigned char kept = bytes[low];
            bytes[low] = bytes[high];
            bytes[high] = kept;
        }
    }
}

/* Copies from first-axis-contiguous to last-axis-contiguous order. */
static void turn_order(const cellgate_tensor *tensor, const char *from,
                       size_t elements, size_t item)
{
    char *to = tensor->data;
    size_t stride[CELLGATE_MAX_RANK];
    int64_t index[CELLGATE_MAX_RANK] = { 0 };
    size_t at = 0;
    size_t step = item;

    for (int32_t axis = 0; axis < tensor->rank; axis++) {
        stride[axis] = step;
        step *= (size_t)tensor->shape[axis];
    }
    for (size_t i = 0; i < elements; i++, to += item) {
        memcpy(to, from + at, item);
        for (int32_t axis = tensor->rank - 1; axis >= 0; axis--) {
            at += stride[axis];
            if (++index[axis] < tensor->shape[axis])
                break;
            at -= stride[axis] * (size_t)tensor->shape[axis];
            index[axis] = 0;
        }
    }
}

/* ---- Elements ---------------------------------------------------------- */

static int64_t wide_value(cg_npy_stored stored, const void *at)
{
    int8_t i8;
    int16_t i16;
    uint16_t u16;
    uint32_t u32;

    switch (stored) {
    case CG_NPY_I8:
        memcpy(&i8, at, sizeof i8);
        return i8;
    case CG_NPY_I16:
        memcpy(&i16, at, sizeof i16);
        return i16;
    case CG_NPY_U16:
        memcpy(&u16, at, sizeof u16);
        return u16;
    default: /* CG_NPY_U32 */
        memcpy(&u32, at, sizeof u32);
        return u32;
    }
}

/* Front to back: what is written never reaches what is still to be read. */
static void widen(const cg_npy_header *header, const char *from, void *memory,
                  size_t count)
{
    for (size_t i = 0; i < count; i++, from += header->item) {
        const int64_t value = wide_value(header->stored, from);

        if (header->dtype == CELLGATE_I32)
            ((int32_t *)memory)[i] = (int32_t)value;
        else
            ((int64_t *)memory)[i] = value;
    }
}

static cellgate_status check_unsigned(const uint64_t *values, size_t count,
                                      const char *where, uint64_t first,
                                      cellgate_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (values[i] > INT64_MAX)
            return cellgate_fail(error, CELLGATE_OUT_OF_RANGE,
                                 "%s: %" PRIu64 " at flat index %" PRIu64
                                 " does not fit in int64",
                                 where, values[i], first + i);
    return CELLGATE_OK;
}

cellgate_status cg_npy_decode(const cg_npy_header *header, const char *where,
                              void *memory, size_t count, uint64_t first,
                              cellgate_error *error)
{
    const size_t wide = cellgate_dtype_size(header->dtype);
    char *from = (char *)memory + count * (wide - header->item);

    if (header->swapped)
        swap_bytes(from, count, header->item);
    if (header->stored == CG_NPY_U64)
        return check_unsigned(memory, count, where, first, error);
    if (header->stored != CG_NPY_AS_IS)
        widen(header, from, memory, count);
    return CELLGATE_OK;
}

/* All elements, in memory of their own. */
static cellgate_status read_elements(const cg_npy_source *source,
                                     const cg_npy_header *header,
                                     size_t elements, void **data,
                                     cellgate_error *error)
{
    const size_t bytes = elements * cellgate_dtype_size(header->dtype);
    const size_t stored = elements * header->item;
    void *memory = cg_tensor_allocate(bytes);
    cellgate_status status;

    if (memory == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "%s: no memory for %zu bytes", source->where,
                             bytes);
    status = read_whole(source, (char *)memory + (bytes - stored), stored,
                        "the elements", error);
    if (status == CELLGATE_OK)
        status =
            cg_npy_decode(header, source->where, memory, elements, 0, error);
    if (status != CELLGATE_OK) {
        free(memory);
        return status;
    }
    *data = memory;
    return CELLGATE_OK;
}

/* Replaces data in Fortran order by a turned copy. */
static cellgate_status turn_tensor(cellgate_tensor *tensor, size_t elements,
                                   size_t bytes, const char *where,
                                   cellgate_error *error)
{
    void *from = tensor->data;

    tensor->data = cg_tensor_allocate(bytes);
    if (tensor->data == NULL) {
        free(from);
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "%s: no memory for %zu bytes", where, bytes);
    }
    turn_order(tensor, from, elements, bytes / elements);
    free(from);
    return CELLGATE_OK;
}

/* ---- The array --------------------------------------------------------- */

cellgate_status cg_npy_open(const cg_npy_source *source, cg_npy_header *header,
                            cellgate_tensor *whole, uint64_t *offset,
                            cellgate_error *error)
{
    cellgate_tensor result = { .struct_size = sizeof result };
    size_t elements = 0;
    cellgate_status status = read_header(source, header, offset, error);

    if (status != CELLGATE_OK)
        return status;
    result.dtype = header->dtype;
    result.rank = header->rank;
    memcpy(result.shape, header->shape, sizeof result.shape);
    if (!cg_tensor_size(&result, &elements, NULL))
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%s: the shape is too large for memory",
                             source->where);
    if (source->size - *offset != elements * header->item)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%s: %" PRIu64 " bytes follow the header, where "
                             "its shape and dtype ask for %zu",
                             source->where, source->size - *offset,
                             elements * header->item);
    *whole = result;
    return CELLGATE_OK;
}

cellgate_status cg_npy_read(const cg_npy_source *source,
                            cellgate_tensor *tensor, cellgate_error *error)
{
    cg_npy_header header = { 0 };
    cellgate_tensor result = { 0 };
    size_t elements = 0;
    size_t bytes = 0;
    uint64_t offset = 0;
    cellgate_status status =
        cg_npy_open(source, &header, &result, &offset, error);

    if (status != CELLGATE_OK)
        return status;
    (void)cg_tensor_size(&result, &elements, &bytes);
    status = read_elements(source, &header, elements, &result.data, error);
    if (status != CELLGATE_OK)
        return status;
    if (header.fortran && result.rank > 1 && elements > 1) {
        status = turn_tensor(&result, elements, bytes, source->where, error);
        if (status != CELLGATE_OK)
            return status;
    }
    *tensor = result;
    return CELLGATE_OK;
}
