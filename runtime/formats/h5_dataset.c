/* SPDX-License-Identifier: Apache-2.0 */
/* What an object's header says of its data: shape, type, layout, filters. */
#include "config.h"

#include "runtime/formats/h5_file.h"

enum { VIRTUAL = 3 };

/* A chunk may be larger than its dataset by so much. */
#define CHUNK_FREE ((uint64_t)1 << 26)

static cellgate_status fail_elsewhere(cg_h5 *h5)
{
    return cg_h5_fail(h5, CELLGATE_BAD_FILE,
                      "has its data in another file; that is refused");
}

static cellgate_status fail_missing(cg_h5 *h5)
{
    return cg_h5_fail(h5, CELLGATE_BAD_FILE,
                      "claims more data than the file holds");
}

/* ---- Filters ------------------------------------------------------------- */

static cellgate_status read_filter(cg_h5 *h5, cg_h5_cursor *body,
                                   uint8_t version, cg_h5_dataset *dataset)
{
    const uint16_t filter = cg_h5_u16(body);
    /* Version 2 leaves out the names of the filters that HDF5 defines. */
    const uint16_t name = version == 1 || filter >= 256 ? cg_h5_u16(body) : 0;
    uint16_t values;

    cg_h5_skip(body, 2); /* flags */
    values = cg_h5_u16(body);
    cg_h5_skip(body, version == 1 ? (name + 7u) & ~7u : name);
    cg_h5_skip(body, 4 * (uint64_t)values);
    if (version == 1 && values % 2 != 0)
        cg_h5_skip(body, 4);
    if (body->bad)
        return cg_h5_damaged(h5, "its list of filters");
    if (filter != CG_H5_DEFLATE && filter != CG_H5_SHUFFLE &&
        filter != CG_H5_FLETCHER32)
        return cg_h5_fail(h5, CELLGATE_UNSUPPORTED,
                          "is packed by filter number %d; only deflate is read",
                          filter);
    dataset->filters[dataset->filter_count++] = (uint8_t)filter;
    return CELLGATE_OK;
}

cellgate_status cg_h5_filters_read(cg_h5 *h5, cg_h5_cursor body,
                                   cg_h5_dataset *dataset)
{
    const uint8_t version = cg_h5_u8(&body), count = cg_h5_u8(&body);
    cellgate_status status = CELLGATE_OK;

    if (version == 1)
        cg_h5_skip(&body, 6);
    if (body.bad || version < 1 || version > 2)
        return cg_h5_damaged(h5, "its list of filters");
    if (count > CG_H5_MAX_FILTERS)
        return cg_h5_fail(h5, CELLGATE_UNSUPPORTED,
                          "is packed by %d filters; %d are read at most", count,
                          CG_H5_MAX_FILTERS);
    for (uint8_t i = 0; status == CELLGATE_OK && i < count; i++)
        status = read_filter(h5, &body, version, dataset);
    return status;
}

/* ---- Layouts ------------------------------------------------------------- */

static uint64_t data_size(const cg_h5_dataset *dataset)
{
    uint64_t size;

    return __builtin_mul_overflow(dataset->space.elements,
                                  (uint64_t)dataset->type.size, &size)
               ? UINT64_MAX
               : size;
}

static cellgate_status read_compact(cg_h5 *h5, cg_h5_cursor body,
                                    cg_h5_dataset *dataset)
{
    const uint16_t size = cg_h5_u16(&body);

    dataset->data = cg_h5_part(&body, size);
    if (body.bad)
        return cg_h5_damaged(h5, "its layout");
    return data_size(dataset) <= size ? CELLGATE_OK : fail_missing(h5);
}

static cellgate_status read_contiguous(cg_h5 *h5, cg_h5_cursor body,
                                       cg_h5_dataset *dataset)
{
    const uint64_t address = cg_h5_address(&body);
    const uint64_t size = cg_h5_length(&body);
    const uint64_t needed = data_size(dataset);

    if (body.bad)
        return cg_h5_damaged(h5, "its layout");
    if (needed == 0) {
        dataset->data = body;
        dataset->data.left = 0;
        return CELLGATE_OK;
    }
    if (address == CG_H5_NOWHERE || size < needed || needed > h5->size)
        return fail_missing(h5);
    return cg_h5_bytes(h5, address, needed, "its data", &dataset->data);
}

/* How many chunks the shape takes, and how large they are. */
static cellgate_status size_chunks(cg_h5 *h5, cg_h5_dataset *dataset)
{
    const cg_h5_space *space = &dataset->space;
    uint64_t size = dataset->type.size;

    dataset->chunks = 1;
    for (int32_t axis = 0; axis < space->rank; axis++) {
        const uint64_t chunk = dataset->chunk[axis];
        const uint64_t extent = space->extents[axis];

        if (chunk == 0 || __builtin_mul_overflow(size, chunk, &size))
            return cg_h5_damaged(h5, "the size of its chunks");
        dataset->grid[axis] = extent / chunk + (extent % chunk != 0);
        /* No more than elements, which were counted. */
        dataset->chunks *= dataset->grid[axis];
    }
    dataset->chunk_size = size;
    if (size > CHUNK_FREE && size > data_size(dataset))
        return fail_missing(h5);
    return CELLGATE_OK;
}

static cellgate_status read_chunk_extents(cg_h5 *h5, cg_h5_cursor *body,
                                          uint8_t dimensions, size_t width,
                                          cg_h5_dataset *dataset)
{
    uint64_t element;

    if (body->bad || dataset->space.rank < 1 ||
        dimensions != dataset->space.rank + 1)
        return cg_h5_damaged(h5, "its chunks have another rank than it has");
    for (int32_t axis = 0; axis < dataset->space.rank; axis++)
        dataset->chunk[axis] = cg_h5_number(body, width);
    element = cg_h5_number(body, width);
    if (body->bad || element != dataset->type.size)
        return cg_h5_damaged(h5, "its chunks have elements of another size");
    return size_chunks(h5, dataset);
}

/* Version 3: a rank, the address of a B-tree, extents. */
static cellgate_status read_chunked_old(cg_h5 *h5, cg_h5_cursor body,
                                        cg_h5_dataset *dataset)
{
    const uint8_t dimensions = cg_h5_u8(&body);

    dataset->index = CG_H5_INDEX_BTREE1;
    dataset->address = cg_h5_address(&body);
    return read_chunk_extents(h5, &body, dimensions, 4, dataset);
}

static cellgate_status read_index(cg_h5 *h5, cg_h5_cursor *body, uint8_t flags,
                                  cg_h5_dataset *dataset)
{
    const uint8_t index = cg_h5_u8(body);

    dataset->single_size = dataset->chunk_size;
    dataset->whole_edges = (flags & 1) != 0;
    if (index == CG_H5_INDEX_SINGLE && (flags & 2) != 0) {
        dataset->single_size = cg_h5_length(body);
        dataset->single_mask = cg_h5_u32(body);
    } else if (index == CG_H5_INDEX_FIXED) {
        cg_h5_skip(body, 1); /* said again in the array */
    } else if (index != CG_H5_INDEX_SINGLE && index != CG_H5_INDEX_IMPLICIT) {
        return cg_h5_fail(h5, CELLGATE_UNSUPPORTED,
                          "may still grow; data with an index of kind %d is "
                          "not read: save it with a fixed shape",
                          index);
    }
    dataset->index = (cg_h5_index)index;
    dataset->address = cg_h5_address(body);
    return body->bad ? cg_h5_damaged(h5, "its layout") : CELLGATE_OK;
}

/* Version 4: flags, a rank, extents of a stated width, an index. */
static cellgate_status read_chunked_new(cg_h5 *h5, cg_h5_cursor body,
                                        cg_h5_dataset *dataset)
{
    const uint8_t flags = cg_h5_u8(&body), dimensions = cg_h5_u8(&body);
    const uint8_t width = cg_h5_u8(&body);
    cellgate_status status =
        read_chunk_extents(h5, &body, dimensions, width, dataset);

    return status == CELLGATE_OK ? read_index(h5, &body, flags, dataset)
                                 : status;
}

static cellgate_status read_layout(cg_h5 *h5, cg_h5_cursor body,
                                   cg_h5_dataset *dataset)
{
    const uint8_t version = cg_h5_u8(&body), layout = cg_h5_u8(&body);

    if (body.bad)
        return cg_h5_damaged(h5, "its layout");
    if (version != 3 && version != 4)
        return cg_h5_fail(h5, CELLGATE_UNSUPPORTED,
                          "has a layout of version %d; 3 and 4 are read",
                          version);
    if (layout == VIRTUAL)
        return fail_elsewhere(h5);
    if (layout > CG_H5_CHUNKED)
        return cg_h5_damaged(h5, "its layout");
    dataset->layout = (cg_h5_layout)layout;
    if (layout == CG_H5_COMPACT)
        return read_compact(h5, body, dataset);
    if (layout == CG_H5_CONTIGUOUS)
        return read_contiguous(h5, body, dataset);
    return version == 3 ? read_chunked_old(h5, body, dataset)
                        : read_chunked_new(h5, body, dataset);
}

/* ---- Datasets ------------------------------------------------------------ */

/* A message that has to be there, with its body in place. */
static cellgate_status need_message(cg_h5 *h5, const cg_h5_object *object,
                                    unsigned type, const char *what)
{
    if (!cg_h5_object_has(object, type))
        return cg_h5_fail(h5, CELLGATE_BAD_FILE, "is damaged: it has no %s",
                          what);
    if (object->messages[type].shared)
        return cg_h5_fail(h5, CELLGATE_UNSUPPORTED,
                          "has a %s that is kept elsewhere (a committed "
                          "datatype, shared messages); that is not read",
                          what);
    return CELLGATE_OK;
}

cellgate_status cg_h5_dataset_space(cg_h5 *h5, const cg_h5_object *object,
                                    cg_h5_space *space)
{
    cellgate_status status;

    if (!cg_h5_is_dataset(object))
        return cg_h5_fail(h5, CELLGATE_BAD_FILE, "is not a dataset");
    status = need_message(h5, object, CG_H5_DATASPACE, "shape");
    return status == CELLGATE_OK
               ? cg_h5_space_read(h5, object->messages[CG_H5_DATASPACE].body,
                                  space)
               : status;
}

static cellgate_status read_filters(cg_h5 *h5, const cg_h5_object *object,
                                    cg_h5_dataset *dataset)
{
    cellgate_status status;

    if (!cg_h5_object_has(object, CG_H5_FILTERS))
        return CELLGATE_OK;
    status = need_message(h5, object, CG_H5_FILTERS, "list of filters");
    return status == CELLGATE_OK
               ? cg_h5_filters_read(h5, object->messages[CG_H5_FILTERS].body,
                                    dataset)
               : status;
}

cellgate_status cg_h5_dataset_read(cg_h5 *h5, const cg_h5_object *object,
                                   cg_h5_dataset *dataset)
{
    cellgate_status status;

    memset(dataset, 0, sizeof *dataset);
    status = cg_h5_dataset_space(h5, object, &dataset->space);
    if (status == CELLGATE_OK)
        status = need_message(h5, object, CG_H5_DATATYPE, "datatype");
    if (status == CELLGATE_OK)
        status = cg_h5_type_read(h5, object->messages[CG_H5_DATATYPE].body,
                                 &dataset->type);
    if (status == CELLGATE_OK && dataset->type.size == 0)
        status = cg_h5_damaged(h5, "its datatype has no size");
    if (status == CELLGATE_OK && cg_h5_object_has(object, CG_H5_EXTERNAL))
        status = fail_elsewhere(h5);
    if (status == CELLGATE_OK)
        status = read_filters(h5, object, dataset);
    if (status == CELLGATE_OK)
        status = need_message(h5, object, CG_H5_LAYOUT, "layout");
    return status == CELLGATE_OK
               ? read_layout(h5, object->messages[CG_H5_LAYOUT].body, dataset)
               : status;
}
