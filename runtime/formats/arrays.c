/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cellgate/cellgate.h"
#include "cellgate/plugin.h"
#include "runtime/formats/atomic_file.h"
#include "runtime/formats/npy.h"
#include "runtime/formats/npz.h"
#include "runtime/formats/tensor.h"
#include "runtime/given.h"

struct cellgate_arrays {
    size_t count;
    cg_named_array *list;
};

/* ---- Reading ----------------------------------------------------------- */

/* A file that is being read. */
typedef struct input {
    FILE *stream;
    const char *path;
    uint64_t size;
} input;

static cellgate_status open_input(input *in, cellgate_error *error)
{
    struct stat status;

    /* Looked at first: opening a pipe would wait for its writer. */
    if (stat(in->path, &status) != 0)
        return cellgate_fail(error, CELLGATE_IO, "%s: %s", in->path,
                             strerror(errno));
    if (S_ISDIR(status.st_mode))
        return cellgate_fail(error, CELLGATE_IO,
                             "%s: this is a folder; a .npy or .npz file is "
                             "expected",
                             in->path);
    if (!S_ISREG(status.st_mode))
        return cellgate_fail(error, CELLGATE_IO, "%s: not a regular file",
                             in->path);
    in->size = (uint64_t)status.st_size;
    in->stream = fopen(in->path, "rbe");
    if (in->stream == NULL)
        return cellgate_fail(error,
                             errno == ENOMEM ? CELLGATE_NO_MEMORY : CELLGATE_IO,
                             "%s: %s", in->path, strerror(errno));
    return CELLGATE_OK;
}

static cellgate_status read_stream(void *stream, void *buffer, size_t size,
                                   size_t *count, cellgate_error *error)
{
    input *in = stream;

    *count = fread(buffer, 1, size, in->stream);
    if (*count < size && ferror(in->stream))
        return cellgate_fail(error, CELLGATE_IO, "%s: %s", in->path,
                             strerror(errno));
    return CELLGATE_OK;
}

static cellgate_status read_npy(input *in, cellgate_arrays *arrays,
                                cellgate_error *error)
{
    cg_npy_source source = { in->path, in->size, read_stream, in };

    arrays->list = calloc(1, sizeof *arrays->list);
    if (arrays->list == NULL || (arrays->list[0].name = strdup("")) == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    arrays->count = 1;
    rewind(in->stream);
    return cg_npy_read(&source, &arrays->list[0].tensor, error);
}

/* The content decides: a .npy's magic, or that of a zip, empty or not. */
static cellgate_status read_input(input *in, cellgate_arrays *arrays,
                                  cellgate_error *error)
{
    char magic[CG_NPY_MAGIC_SIZE] = { 0 };
    size_t count = 0;
    cellgate_status status =
        read_stream(in, magic, sizeof magic, &count, error);

    if (status != CELLGATE_OK)
        return status;
    if (count == sizeof magic && memcmp(magic, CG_NPY_MAGIC, count) == 0)
        return read_npy(in, arrays, error);
    if (memcmp(magic, "PK\3\4", 4) == 0 || memcmp(magic, "PK\5\6", 4) == 0)
        return cg_npz_read(in->path, in->size, &arrays->list, &arrays->count,
                           error);
    return cellgate_fail(error, CELLGATE_BAD_FILE,
                         "%s: neither a .npy array nor a .npz archive; "
                         "numpy.save() and numpy.savez() write them",
                         in->path);
}

cellgate_status cellgate_arrays_read(const char *path, cellgate_arrays **arrays,
                                     cellgate_error *error)
{
    input in = { NULL, path, 0 };
    cellgate_arrays *result;
    cellgate_status status;

    if (path == NULL || arrays == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "a path and a place for the arrays are needed");
    result = calloc(1, sizeof *result);
    if (result == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    status = open_input(&in, error);
    if (status == CELLGATE_OK)
        status = read_input(&in, result, error);
    if (in.stream != NULL)
        (void)fclose(in.stream);
    if (status != CELLGATE_OK) {
        cellgate_arrays_destroy(result);
        return status;
    }
    *arrays = result;
    return CELLGATE_OK;
}

void cellgate_arrays_destroy(cellgate_arrays *arrays)
{
    if (arrays == NULL)
        return;
    cg_named_arrays_free(arrays->list, arrays->count);
    free(arrays);
}

size_t cellgate_arrays_count(const cellgate_arrays *arrays)
{
    return arrays->count;
}

cellgate_status cellgate_arrays_get(const cellgate_arrays *arrays, size_t index,
                                    const char **name, cellgate_tensor *tensor)
{
    if (index >= arrays->count)
        return CELLGATE_END;
    if (tensor != NULL) {
        if (!cg_given_fillable(tensor))
            return CELLGATE_INVALID;
        cellgate_struct_copy(tensor, &arrays->list[index].tensor);
    }
    if (name != NULL)
        *name = arrays->list[index].name;
    return CELLGATE_OK;
}

/* ---- Writing ----------------------------------------------------------- */

static int ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text);
    size_t tail = strlen(ending);
    return length >= tail && memcmp(text + length - tail, ending, tail) == 0;
}

static cellgate_status check_tensor(const char *path,
                                    const cellgate_tensor *tensor, size_t index,
                                    cellgate_error *error)
{
    char header[CG_NPY_WRITTEN_MAX];
    size_t bytes = 0;

    if (!cg_given_known(tensor, CG_FIRST_TENSOR, sizeof *tensor))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "%s: array %zu has no struct_size, or members "
                             "that this libcellgate does not know",
                             path, index);
    if (!cg_tensor_size(tensor, NULL, &bytes))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "%s: array %zu has no valid shape and dtype "
                             "(rank %d, dtype %d)",
                             path, index, (int)tensor->rank,
                             (int)tensor->dtype);
    if (bytes > 0 && tensor->data == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "%s: array %zu has no data", path, index);
    if (cg_npy_format_header(tensor, header) == 0)
        return cellgate_refuse(error, CELLGATE_REASON_DTYPE,
                               "%s: array %zu is %s, which .npy has not; "
                               "convert it to float32",
                               path, index, cellgate_dtype_name(tensor->dtype));
    return CELLGATE_OK;
}

/* What a zip can hold and a reader can print. */
static cellgate_status check_name(const char *path, const char *name,
                                  size_t index, cellgate_error *error)
{
    size_t length = name == NULL ? 0 : strlen(name);

    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
            length = 0;
    if (length == 0 || length > 1000)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "%s: array %zu needs a name of 1 to 1000 "
                             "printable bytes",
                             path, index);
    return CELLGATE_OK;
}

static cellgate_status check_arrays(const char *path, const char *const *names,
                                    const cellgate_tensor *tensors,
                                    size_t count, int archive,
                                    cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    if (!archive && count != 1)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "%s: a .npy file holds one array, not %zu; name "
                             "it .npz",
                             path, count);
    if (count == 0 || count > CG_NPZ_MEMBERS_MAX)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "%s: a .npz file is written with 1 to %d arrays, "
                             "not %zu",
                             path, CG_NPZ_MEMBERS_MAX, count);
    if (tensors == NULL || (archive && names == NULL))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "%s: no arrays or no names were given", path);
    for (size_t i = 0; status == CELLGATE_OK && i < count; i++) {
        status = check_tensor(path, &tensors[i], i, error);
        if (status == CELLGATE_OK && archive)
            status = check_name(path, names[i], i, error);
    }
    return status;
}

/* Errors of the stream are found when the file is committed. */
static void write_npy(FILE *stream, const cellgate_tensor *tensor)
{
    char header[CG_NPY_WRITTEN_MAX];
    size_t size = cg_npy_format_header(tensor, header);
    size_t bytes = 0;

    (void)cg_tensor_size(tensor, NULL, &bytes);
    if (fwrite(header, 1, size, stream) == size && bytes > 0)
        (void)fwrite(tensor->data, 1, bytes, stream);
}

cellgate_status cellgate_arrays_write(const char *path,
                                      const char *const *names,
                                      const cellgate_tensor *tensors,
                                      size_t count, cellgate_error *error)
{
    cg_atomic_file *file = NULL;
    int archive;
    cellgate_status status;

    if (path == NULL)
        return cellgate_fail(error, CELLGATE_INVALID, "a path is needed");
    archive = ends_with(path, ".npz");
    if (!archive && !ends_with(path, ".npy"))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "%s: the name has to end in .npy or .npz", path);
    status = check_arrays(path, names, tensors, count, archive, error);
    if (status == CELLGATE_OK)
        status = cg_atomic_file_open(path, &file, error);
    if (status != CELLGATE_OK)
        return status;
    if (archive)
        status = cg_npz_write(cg_atomic_file_stream(file), path, names, tensors,
                              count, error);
    else
        write_npy(cg_atomic_file_stream(file), &tensors[0]);
    if (status != CELLGATE_OK) {
        cg_atomic_file_abandon(file);
        return status;
    }
    return cg_atomic_file_commit(file, error);
}
