/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/h5.h"

#include <stdlib.h>

#include "runtime/formats/h5_file.h"

/* How far weights may unpack: times the file's size, unless they stay below
   so many bytes. */
#define UNPACKED_MOST 20
#define UNPACKED_FREE (1u << 26)
/* Deflate packs 1032 to 1 at best. */
#define DEFLATE_MOST 1100

/* ---- Files --------------------------------------------------------------- */

cellgate_status cg_h5_open(const void *image, size_t size, const char *name,
                           cg_h5 **h5, cellgate_error *error)
{
    cg_h5 *made = calloc(1, sizeof *made);
    cg_h5_object root;
    cellgate_status status;

    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while opening %s", name);
    made->image = image;
    made->size = size;
    made->name = name;
    cg_h5_begin(made, "", error);
    status = cg_h5_superblock(made);
    if (status == CELLGATE_OK)
        status = cg_h5_object_read(made, made->root, &root);
    if (status == CELLGATE_OK && !cg_h5_is_group(&root))
        status = cg_h5_damaged(made, "it is not a group");
    if (status != CELLGATE_OK) {
        cg_h5_close(made);
        return status;
    }
    *h5 = made;
    return CELLGATE_OK;
}

void cg_h5_close(cg_h5 *h5)
{
    if (h5 == NULL)
        return;
    cg_h5_kept_free(h5->kept);
    free(h5);
}

/* ---- Groups -------------------------------------------------------------- */

bool cg_h5_has(cg_h5 *h5, const char *path)
{
    cg_h5_object object;

    cg_h5_begin(h5, path, NULL);
    return cg_h5_find(h5, &object) == CELLGATE_OK;
}

typedef struct member_list {
    const char **names; /* NULL: they are only counted */
    size_t count, room;
} member_list;

static cellgate_status add_member(cg_h5 *h5, void *context,
                                  const cg_h5_link *link)
{
    member_list *members = context;
    cellgate_status status = CELLGATE_OK;
    char *copy;

    if (members->names == NULL) {
        members->count++;
        return CELLGATE_OK;
    }
    if (members->count == members->room)
        return cg_h5_damaged(h5, "a group");
    copy = cg_h5_keep(h5, (uint64_t)link->length + 1, &status);
    if (copy == NULL)
        return status;
    memcpy(copy, link->name, link->length);
    copy[link->length] = '\0';
    members->names[members->count++] = copy;
    return CELLGATE_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static cellgate_status collect_members(cg_h5 *h5, const cg_h5_object *group,
                                       member_list *members)
{
    cellgate_status status =
        cg_h5_each_link(h5, group, NULL, 0, add_member, members);

    if (status != CELLGATE_OK)
        return status;
    members->room = members->count;
    members->names = cg_h5_keep(
        h5, (uint64_t)members->room * sizeof *members->names, &status);
    if (members->names == NULL)
        return status;
    members->count = 0;
    return cg_h5_each_link(h5, group, NULL, 0, add_member, members);
}

cellgate_status cg_h5_members(cg_h5 *h5, const char *path, cg_h5_strings *names,
                              cellgate_error *error)
{
    cg_h5_object group;
    member_list members = { 0 };
    cellgate_status status;

    cg_h5_begin(h5, path, error);
    status = cg_h5_find(h5, &group);
    if (status == CELLGATE_OK && !cg_h5_is_group(&group))
        status = cg_h5_fail(h5, CELLGATE_BAD_FILE, "is not a group");
    if (status == CELLGATE_OK)
        status = collect_members(h5, &group, &members);
    if (status != CELLGATE_OK)
        return status;
    qsort(members.names, members.count, sizeof *members.names, compare_names);
    for (size_t i = 1; i < members.count; i++)
        if (strcmp(members.names[i - 1], members.names[i]) == 0)
            return cg_h5_fail(h5, CELLGATE_BAD_FILE, "has two members '%s'",
                              members.names[i]);
    names->items = members.names;
    names->count = members.count;
    return CELLGATE_OK;
}

/* ---- Attributes ---------------------------------------------------------- */

cellgate_status cg_h5_texts(cg_h5 *h5, const char *path, const char *name,
                            cg_h5_strings *texts, cellgate_error *error)
{
    cg_h5_object object;
    cg_h5_attribute attribute;
    cellgate_status status;

    cg_h5_begin(h5, path, error);
    status = cg_h5_find(h5, &object);
    if (status == CELLGATE_OK)
        status = cg_h5_attribute_find(h5, &object, name, &attribute);
    return status == CELLGATE_OK ? cg_h5_texts_read(h5, name, &attribute, texts)
                                 : status;
}

/* h5py stores NumPy's bfloat16 as two opaque bytes beside an attribute. */
static cellgate_status tell_bfloat16(cg_h5 *h5, const cg_h5_object *object,
                                     cg_h5_type *type)
{
    cg_h5_attribute attribute;
    cg_h5_strings texts;
    cellgate_status status;

    if (type->class != CG_H5_OPAQUE || type->size != 2)
        return CELLGATE_OK;
    status = cg_h5_attribute_find(h5, object, "dtype", &attribute);
    if (status == CELLGATE_OK)
        status = cg_h5_texts_read(h5, "dtype", &attribute, &texts);
    if (status == CELLGATE_OK && texts.count == 1 &&
        strcmp(texts.items[0], "bfloat16") == 0) {
        type->class = CG_H5_BF16;
        type->big_endian = false;
    }
    return status == CELLGATE_NOT_FOUND ? CELLGATE_OK : status;
}

/* ---- Datasets ------------------------------------------------------------ */

cellgate_status cg_h5_shape(cg_h5 *h5, const char *path, cg_h5_extents *shape,
                            cellgate_error *error)
{
    cg_h5_object object;
    cg_h5_space space;
    cellgate_status status;

    cg_h5_begin(h5, path, error);
    status = cg_h5_find(h5, &object);
    if (status == CELLGATE_OK)
        status = cg_h5_dataset_space(h5, &object, &space);
    if (status == CELLGATE_OK && space.rank < 0)
        status = cg_h5_fail(h5, CELLGATE_BAD_FILE, "holds nothing");
    if (status != CELLGATE_OK)
        return status;
    shape->rank = space.rank;
    for (int32_t axis = 0; axis < space.rank; axis++)
        shape->extents[axis] = (int64_t)space.extents[axis];
    return CELLGATE_OK;
}

static cellgate_status check_shape(cg_h5 *h5, const cg_h5_space *space,
                                   int32_t rank, const int64_t *shape)
{
    bool same = space->rank == rank;

    for (int32_t axis = 0; same && axis < rank; axis++)
        same =
            shape[axis] >= 0 && space->extents[axis] == (uint64_t)shape[axis];
    if (same)
        return CELLGATE_OK;
    if (space->rank == 2 && rank == 2)
        return cg_h5_fail(h5, CELLGATE_BAD_FILE,
                          "is %llu x %llu; the layer needs %lld x %lld",
                          (unsigned long long)space->extents[0],
                          (unsigned long long)space->extents[1],
                          (long long)shape[0], (long long)shape[1]);
    return cg_h5_fail(
        h5, CELLGATE_BAD_FILE,
        "has %d axes, the first of extent %llu; the layer needs %d, the first "
        "of extent %lld",
        (int)space->rank,
        (unsigned long long)(space->rank > 0 ? space->extents[0] : 0),
        (int)rank, (long long)(rank > 0 ? shape[0] : 0));
}

static cellgate_status count_chunk(cg_h5 *h5, void *context,
                                   const cg_h5_chunk *chunk)
{
    uint64_t *stored = context;

    *stored += chunk->size < h5->size ? chunk->size : h5->size;
    if (chunk->size > h5->size || *stored > h5->size)
        return cg_h5_fail(h5, CELLGATE_BAD_FILE,
                          "claims more data than the file holds");
    return CELLGATE_OK;
}

/* Bytes in the file, and bytes that they unpack to. */
static cellgate_status measure(cg_h5 *h5, const cg_h5_dataset *dataset,
                               uint64_t *stored, uint64_t *unpacked)
{
    *stored = *unpacked = dataset->space.elements * dataset->type.size;
    if (dataset->layout != CG_H5_CHUNKED)
        return CELLGATE_OK;
    if (__builtin_mul_overflow(dataset->chunks, dataset->chunk_size, unpacked))
        *unpacked = UINT64_MAX;
    *stored = 0;
    return cg_h5_each_chunk(h5, dataset, count_chunk, stored);
}

/*
 * A dataset may claim any size: the bytes stored, of which those of all
 * datasets together fit into the file, must account for it. Trained weights
 * hardly pack: what unpacks to many times the file is a bomb.
 */
static cellgate_status check_storage(cg_h5 *h5, const cg_h5_dataset *dataset)
{
    const uint64_t most = dataset->filter_count > 0 ? DEFLATE_MOST : 1;
    uint64_t stored, unpacked;
    cellgate_status status = measure(h5, dataset, &stored, &unpacked);

    if (status != CELLGATE_OK)
        return status;
    h5->stored += stored;
    if (h5->stored > h5->size || unpacked / most > stored)
        return cg_h5_fail(h5, CELLGATE_BAD_FILE,
                          "claims more data than the file holds");
    /* float32 may be wider than what is stored. */
    if (unpacked < dataset->space.elements * sizeof(float))
        unpacked = dataset->space.elements * sizeof(float);
    h5->unpacked += unpacked;
    if (h5->unpacked > UNPACKED_FREE && h5->unpacked / UNPACKED_MOST > h5->size)
        return cellgate_fail(h5->error, CELLGATE_BAD_FILE,
                             "with '%s', %s unpacks from %zu to %llu bytes: "
                             "refused as a decompression bomb",
                             h5->path, h5->name, h5->size,
                             (unsigned long long)h5->unpacked);
    return CELLGATE_OK;
}

cellgate_status cg_h5_check(cg_h5 *h5, const char *path, int32_t rank,
                            const int64_t *shape, cellgate_error *error)
{
    cg_h5_object object;
    cg_h5_dataset dataset;
    cg_h5_space space;
    cellgate_status status;

    cg_h5_begin(h5, path, error);
    status = cg_h5_find(h5, &object);
    if (status == CELLGATE_OK)
        status = cg_h5_dataset_space(h5, &object, &space);
    if (status == CELLGATE_OK)
        status = check_shape(h5, &space, rank, shape);
    if (status == CELLGATE_OK)
        status = cg_h5_dataset_read(h5, &object, &dataset);
    return status == CELLGATE_OK ? check_storage(h5, &dataset) : status;
}

static cellgate_status check_type(cg_h5 *h5, const cg_h5_type *type)
{
    if (type->class <= CG_H5_F64)
        return CELLGATE_OK;
    return cg_h5_fail(h5, CELLGATE_UNSUPPORTED,
                      "is not of a floating-point type that is read (float16, "
                      "32, 64, bfloat16): it holds %s",
                      type->called);
}

cellgate_status cg_h5_read(cg_h5 *h5, const char *path, size_t elements,
                           float *data, cellgate_error *error)
{
    cg_h5_object object;
    cg_h5_dataset dataset = { 0 };
    cellgate_status status;

    cg_h5_begin(h5, path, error);
    status = cg_h5_find(h5, &object);
    if (status == CELLGATE_OK)
        status = cg_h5_dataset_read(h5, &object, &dataset);
    if (status == CELLGATE_OK)
        status = tell_bfloat16(h5, &object, &dataset.type);
    if (status == CELLGATE_OK)
        status = check_type(h5, &dataset.type);
    if (status == CELLGATE_OK && dataset.space.elements != elements)
        status =
            cg_h5_fail(h5, CELLGATE_BAD_FILE,
                       "has %llu elements, not the %zu that are read",
                       (unsigned long long)dataset.space.elements, elements);
    return status == CELLGATE_OK ? cg_h5_data_read(h5, &dataset, data) : status;
}
