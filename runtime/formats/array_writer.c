/* SPDX-License-Identifier: Apache-2.0 */
/* A .npy file that is written in pieces of rows, atomically. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "cellgate/cellgate.h"
#include "cellgate/plugin.h"
#include "runtime/formats/atomic_file.h"
#include "runtime/formats/npy.h"
#include "runtime/formats/tensor.h"
#include "runtime/given.h"

struct cellgate_array_writer {
    char *path;
    cg_atomic_file *file;
    int64_t rows;    /* of the whole array */
    int64_t written; /* so far */
    size_t row_size; /* bytes */
};

static cellgate_status check_whole(const char *path,
                                   const cellgate_tensor *whole, size_t *bytes,
                                   cellgate_error *error)
{
    const size_t length = strlen(path);

    if (length < 4 || strcmp(path + length - 4, ".npy") != 0)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "%s: pieces are written to a file whose name ends "
                             "in .npy",
                             path);
    if (!cg_given_known(whole, CG_FIRST_TENSOR, sizeof *whole) ||
        !cg_tensor_size(whole, NULL, bytes) || whole->rank < 1)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "%s: the array has no valid shape with rows, or "
                             "no dtype (rank %d, dtype %d)",
                             path, (int)whole->rank, (int)whole->dtype);
    return CELLGATE_OK;
}

static cellgate_status write_bytes(cellgate_array_writer *writer,
                                   const void *bytes, size_t size,
                                   cellgate_error *error)
{
    errno = 0;
    if (size == 0 ||
        fwrite(bytes, 1, size, cg_atomic_file_stream(writer->file)) == size)
        return CELLGATE_OK;
    return cellgate_fail(error, CELLGATE_IO, "%s: cannot be written: %s",
                         writer->path, strerror(errno));
}

static cellgate_status writer_init(cellgate_array_writer *writer,
                                   const char *path,
                                   const cellgate_tensor *whole,
                                   cellgate_error *error)
{
    char header[CG_NPY_WRITTEN_MAX];
    const size_t size = cg_npy_format_header(whole, header);
    cellgate_status status;

    writer->path = strdup(path);
    if (writer->path == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    if (size == 0)
        return cellgate_refuse(error, CELLGATE_REASON_DTYPE,
                               "%s: the array is %s, which .npy has not", path,
                               cellgate_dtype_name(whole->dtype));
    status = cg_atomic_file_open(path, &writer->file, error);
    return status == CELLGATE_OK ? write_bytes(writer, header, size, error)
                                 : status;
}

cellgate_status cellgate_array_writer_open(const char *path,
                                           const cellgate_tensor *whole,
                                           cellgate_array_writer **writer,
                                           cellgate_error *error)
{
    cellgate_array_writer *made;
    size_t bytes = 0;
    cellgate_status status;

    if (path == NULL || whole == NULL || writer == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "a path, a shape and a place for the writer are "
                             "needed");
    status = check_whole(path, whole, &bytes, error);
    if (status != CELLGATE_OK)
        return status;
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    made->rows = whole->shape[0];
    made->row_size = made->rows > 0 ? bytes / (size_t)made->rows : 0;
    status = writer_init(made, path, whole, error);
    if (status != CELLGATE_OK) {
        cellgate_array_writer_abandon(made);
        return status;
    }
    *writer = made;
    return CELLGATE_OK;
}

cellgate_status cellgate_array_writer_append(cellgate_array_writer *writer,
                                             const void *data, int64_t rows,
                                             cellgate_error *error)
{
    cellgate_status status;

    if (rows < 0 || rows > writer->rows - writer->written ||
        (data == NULL && rows > 0 && writer->row_size > 0))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "%s: %lld rows do not follow row %lld of %lld",
                             writer->path, (long long)rows,
                             (long long)writer->written,
                             (long long)writer->rows);
    status = write_bytes(writer, data, (size_t)rows * writer->row_size, error);
    if (status == CELLGATE_OK)
        writer->written += rows;
    return status;
}

cellgate_status cellgate_array_writer_commit(cellgate_array_writer *writer,
                                             cellgate_error *error)
{
    cellgate_status status;

    if (writer->written != writer->rows) {
        status = cellgate_fail(
            error, CELLGATE_INVALID, "%s: %lld of %lld rows were written",
            writer->path, (long long)writer->written, (long long)writer->rows);
    } else {
        status = cg_atomic_file_commit(writer->file, error);
        writer->file = NULL;
    }
    cellgate_array_writer_abandon(writer);
    return status;
}

void cellgate_array_writer_abandon(cellgate_array_writer *writer)
{
    if (writer == NULL)
        return;
    cg_atomic_file_abandon(writer->file);
    free(writer->path);
    free(writer);
}

/* ---- Any file ----------------------------------------------------------- */

cellgate_status cellgate_file_write(const char *path, const void *data,
                                    size_t size, cellgate_error *error)
{
    cg_atomic_file *file = NULL;
    cellgate_status status;

    if (path == NULL || (data == NULL && size > 0))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "a path and data are needed");
    status = cg_atomic_file_open(path, &file, error);
    if (status != CELLGATE_OK)
        return status;
    if (size > 0)
        (void)fwrite(data, 1, size, cg_atomic_file_stream(file));
    return cg_atomic_file_commit(file, error);
}
