/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/json_text.h"
#include "runtime/formats/safetensors.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while reading the header");
}

static uint64_t dtype_size(const char *dtype)
{
    static const struct {
        const char *name;
        uint64_t size;
    } dtypes[] = { { "F64", 8 }, { "F32", 4 }, { "F16", 2 }, { "BF16", 2 },
                   { "I64", 8 }, { "I32", 4 }, { "I16", 2 }, { "I8", 1 },
                   { "U64", 8 }, { "U32", 4 }, { "U16", 2 }, { "U8", 1 },
                   { "BOOL", 1 } };

    for (size_t i = 0; dtype != NULL && i < sizeof dtypes / sizeof dtypes[0];
         i++)
        if (strcmp(dtype, dtypes[i].name) == 0)
            return dtypes[i].size;
    return 0;
}

static cellgate_status fail_tensor(cellgate_error *error, const char *name,
                                   const char *problem)
{
    return cellgate_fail(error, CELLGATE_BAD_FILE, "tensor '%.100s': %s", name,
                         problem);
}

static cellgate_status read_shape(const json_t *json, cg_safetensor *tensor,
                                  uint64_t *size, cellgate_error *error)
{
    const size_t rank = json_array_size(json);

    if (!json_is_array(json) || rank > CELLGATE_MAX_RANK)
        return fail_tensor(error, tensor->name,
                           "its shape must be an array of at most 8 numbers");
    tensor->rank = (int32_t)rank;
    *size = dtype_size(tensor->dtype);
    for (size_t axis = 0; axis < rank; axis++) {
        const json_t *extent = json_array_get(json, axis);

        tensor->shape[axis] = json_integer_value(extent);
        if (!json_is_integer(extent) || tensor->shape[axis] < 0 ||
            __builtin_mul_overflow(*size, (uint64_t)tensor->shape[axis], size))
            return fail_tensor(error, tensor->name,
                               "its shape is not possible");
    }
    return CELLGATE_OK;
}

/* Fills everything but the check of its place between the others. */
static cellgate_status read_tensor(const char *name, const json_t *json,
                                   const char *data, uint64_t data_size,
                                   cg_safetensor *tensor, cellgate_error *error)
{
    const json_t *offsets = json_object_get(json, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0);
    const json_t *end = json_array_get(offsets, 1);
    uint64_t size = 0;
    cellgate_status status;

    tensor->name = name;
    tensor->dtype = json_string_value(json_object_get(json, "dtype"));
    if (dtype_size(tensor->dtype) == 0)
        return fail_tensor(error, name, "its dtype is not known");
    if (json_object_size(json) != 3)
        return fail_tensor(error, name,
                           "it must have dtype, shape and data_offsets alone");
    status = read_shape(json_object_get(json, "shape"), tensor, &size, error);
    if (status != CELLGATE_OK)
        return status;
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) ||
        !json_is_integer(end) || json_integer_value(begin) < 0 ||
        json_integer_value(end) < json_integer_value(begin) ||
        (uint64_t)json_integer_value(end) > data_size)
        return fail_tensor(error, name, "its data_offsets are out of range");
    tensor->size =
        (uint64_t)(json_integer_value(end) - json_integer_value(begin));
    if (tensor->size != size)
        return fail_tensor(error, name,
                           "its data_offsets do not fit its dtype and shape");
    tensor->data = data + json_integer_value(begin);
    return CELLGATE_OK;
}

static cellgate_status read_metadata(cg_safetensors *out, json_t *json,
                                     cellgate_error *error)
{
    const char *key;
    json_t *value;

    json_object_foreach(json, key, value)
    {
        if (!json_is_string(value))
            return cellgate_fail(error, CELLGATE_BAD_FILE,
                                 "__metadata__: '%.100s' is not a string", key);
    }
    if (!json_is_object(json))
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "__metadata__ is not an object");
    out->metadata = json;
    return CELLGATE_OK;
}

static int compare_places(const void *a, const void *b)
{
    const cg_safetensor *x = a, *y = b;

    if (x->data != y->data)
        return (const char *)x->data < (const char *)y->data ? -1 : 1;
    /* An empty tensor goes before the one that begins where it lies. */
    return (x->size > y->size) - (x->size < y->size);
}

/* Each begins where the one before it ends, the last one ends the file. */
static cellgate_status check_places(const cg_safetensors *out, const char *data,
                                    uint64_t data_size, cellgate_error *error)
{
    const char *expected = data;

    for (size_t i = 0; i < out->count; i++) {
        const cg_safetensor *tensor = &out->tensors[i];

        if ((const char *)tensor->data != expected)
            return fail_tensor(error, tensor->name,
                               (const char *)tensor->data < expected
                                   ? "it overlaps another tensor"
                                   : "there is a gap before it");
        expected += tensor->size;
    }
    if (expected != data + data_size)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%llu bytes at the end belong to no tensor",
                             (unsigned long long)(data + data_size - expected));
    return CELLGATE_OK;
}

static int compare_names(const void *a, const void *b)
{
    const cg_safetensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static cellgate_status read_entries(cg_safetensors *out, const char *data,
                                    uint64_t data_size, cellgate_error *error)
{
    const char *key;
    json_t *value;
    cellgate_status status = CELLGATE_OK;
    const size_t room = json_object_size(out->header) + 1;

    out->tensors = calloc(room, sizeof *out->tensors);
    out->by_name = calloc(room, sizeof *out->by_name);
    if (out->tensors == NULL || out->by_name == NULL)
        return no_memory(error);
    json_object_foreach(out->header, key, value)
    {
        if (strcmp(key, "__metadata__") == 0)
            status = read_metadata(out, value, error);
        else
            status = read_tensor(key, value, data, data_size,
                                 &out->tensors[out->count++], error);
        if (status != CELLGATE_OK)
            return status;
    }
    qsort(out->tensors, out->count, sizeof *out->tensors, compare_places);
    for (size_t i = 0; i < out->count; i++)
        out->by_name[i] = &out->tensors[i];
    qsort(out->by_name, out->count, sizeof *out->by_name, compare_names);
    return check_places(out, data, data_size, error);
}

cellgate_status cg_safetensors_read(const void *image, uint64_t size,
                                    cg_safetensors *out, cellgate_error *error)
{
    const char *bytes = image;
    cg_safetensors made = { 0 };
    uint64_t header_size;
    cellgate_status status;

    if (size < 9 || bytes[8] != '{')
        return CELLGATE_NOT_FOUND;
    memcpy(&header_size, bytes, sizeof header_size);
    if (header_size > CG_SAFETENSORS_MAX_HEADER)
        return CELLGATE_NOT_FOUND;
    if (header_size > size - 8)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "the file is cut short: its header has %llu bytes",
                             (unsigned long long)header_size);
    status = cg_json_parse("the header", bytes + 8, (size_t)header_size,
                           &made.header, error);
    if (status != CELLGATE_OK)
        return status;
    status = read_entries(&made, bytes + 8 + header_size,
                          size - 8 - header_size, error);
    if (status == CELLGATE_OK)
        *out = made;
    else
        cg_safetensors_finish(&made);
    return status;
}

void cg_safetensors_finish(cg_safetensors *safetensors)
{
    free(safetensors->tensors);
    free(safetensors->by_name);
    json_decref(safetensors->header);
    *safetensors = (cg_safetensors){ 0 };
}

const cg_safetensor *cg_safetensors_find(const cg_safetensors *safetensors,
                                         const char *name)
{
    const cg_safetensor wanted = { .name = name };
    const cg_safetensor *key = &wanted;
    const cg_safetensor **found =
        safetensors->count != 0
            ? bsearch(&key, safetensors->by_name, safetensors->count,
                      sizeof *safetensors->by_name, compare_names)
            : NULL;

    return found != NULL ? *found : NULL;
}
