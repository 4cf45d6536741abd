/* SPDX-License-Identifier: Apache-2.0 */
/* A .npy file that is read in pieces of rows. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cellgate/cellgate.h"
#include "cellgate/plugin.h"
#include "runtime/formats/npy.h"
#include "runtime/formats/tensor.h"
#include "runtime/given.h"

struct cellgate_array_reader {
    char *path;
    int fd;
    cg_npy_header header;
    cellgate_tensor whole;
    uint64_t place;      /* in the file, of the next byte to read */
    int64_t next;        /* the next row */
    size_t row_elements; /* elements a row */
    void *memory;        /* of a piece */
    size_t room;         /* rows that it holds */
};

/* ---- Opening ------------------------------------------------------------ */

static cellgate_status open_file(cellgate_array_reader *reader, uint64_t *size,
                                 cellgate_error *error)
{
    struct stat about;

    /* Without O_NONBLOCK a FIFO would hold the caller up. */
    reader->fd = open(reader->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (reader->fd < 0 || fstat(reader->fd, &about) != 0)
        return cellgate_fail(error, CELLGATE_IO, "%s: %s", reader->path,
                             strerror(errno));
    if (!S_ISREG(about.st_mode))
        return cellgate_fail(error, CELLGATE_IO, "%s: not a regular file",
                             reader->path);
    *size = (uint64_t)about.st_size;
    return CELLGATE_OK;
}

static cellgate_status read_at(cellgate_array_reader *reader, void *buffer,
                               size_t size, size_t *count,
                               cellgate_error *error)
{
    ssize_t got;

    do
        got = pread(reader->fd, buffer, size, (off_t)reader->place);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return cellgate_fail(error, CELLGATE_IO, "%s: %s", reader->path,
                             strerror(errno));
    reader->place += (uint64_t)got;
    *count = (size_t)got;
    return CELLGATE_OK;
}

static cellgate_status read_stream(void *stream, void *buffer, size_t size,
                                   size_t *count, cellgate_error *error)
{
    return read_at(stream, buffer, size, count, error);
}

/* What other files there are, and what to do with them. */
static cellgate_status check_magic(cellgate_array_reader *reader,
                                   cellgate_error *error)
{
    char magic[CG_NPY_MAGIC_SIZE] = { 0 };
    size_t count = 0;
    cellgate_status status =
        read_at(reader, magic, sizeof magic, &count, error);

    reader->place = 0;
    if (status == CELLGATE_OK && memcmp(magic, "PK", 2) == 0)
        return cellgate_refuse(error, CELLGATE_REASON_OTHER,
                               "%s: a .npz archive is not read in pieces; "
                               "write its array as a .npy with numpy.save()",
                               reader->path);
    return status;
}

static cellgate_status check_rows(cellgate_array_reader *reader,
                                  cellgate_error *error)
{
    const cellgate_tensor *whole = &reader->whole;
    size_t elements = 0;

    (void)cg_tensor_size(whole, &elements, NULL);
    if (whole->rank < 1)
        return cellgate_refuse(error, CELLGATE_REASON_SHAPE,
                               "%s: one number has no rows to read in pieces",
                               reader->path);
    if (reader->header.fortran && whole->rank > 1 && elements > 1)
        return cellgate_refuse(error, CELLGATE_REASON_OTHER,
                               "%s: in Fortran order no row lies in one piece; "
                               "save it again with numpy.save(FILE, "
                               "numpy.ascontiguousarray(ARRAY))",
                               reader->path);
    if (whole->shape[0] > 0)
        reader->row_elements = elements / (size_t)whole->shape[0];
    return CELLGATE_OK;
}

static cellgate_status reader_init(cellgate_array_reader *reader,
                                   const char *path, cellgate_error *error)
{
    cg_npy_source source = { path, 0, read_stream, reader };
    uint64_t offset = 0;
    cellgate_status status;

    reader->fd = -1;
    reader->path = strdup(path);
    if (reader->path == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    status = open_file(reader, &source.size, error);
    if (status == CELLGATE_OK)
        status = check_magic(reader, error);
    if (status == CELLGATE_OK)
        status = cg_npy_open(&source, &reader->header, &reader->whole, &offset,
                             error);
    return status == CELLGATE_OK ? check_rows(reader, error) : status;
}

cellgate_status cellgate_array_reader_open(const char *path,
                                           cellgate_array_reader **reader,
                                           cellgate_error *error)
{
    cellgate_array_reader *made;
    cellgate_status status;

    if (path == NULL || reader == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "a path and a place for the reader are needed");
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    status = reader_init(made, path, error);
    if (status != CELLGATE_OK) {
        cellgate_array_reader_close(made);
        return status;
    }
    *reader = made;
    return CELLGATE_OK;
}

void cellgate_array_reader_close(cellgate_array_reader *reader)
{
    if (reader == NULL)
        return;
    if (reader->fd >= 0)
        (void)close(reader->fd);
    free(reader->memory);
    free(reader->path);
    free(reader);
}

cellgate_status cellgate_array_reader_shape(const cellgate_array_reader *reader,
                                            cellgate_tensor *whole)
{
    if (!cg_given_fillable(whole))
        return CELLGATE_INVALID;
    cellgate_struct_copy(whole, &reader->whole);
    return CELLGATE_OK;
}

/* ---- Reading ------------------------------------------------------------ */

/* Contents do not survive; rows that are read do not overflow, for the whole
   array's bytes do not. */
static cellgate_status make_room(cellgate_array_reader *reader, size_t rows,
                                 cellgate_error *error)
{
    const size_t bytes =
        rows * reader->row_elements * cellgate_dtype_size(reader->header.dtype);

    if (reader->memory != NULL && rows <= reader->room)
        return CELLGATE_OK;
    free(reader->memory);
    reader->memory = cg_tensor_allocate(bytes);
    reader->room = rows;
    if (reader->memory == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "%s: no memory for %zu bytes, %zu rows",
                             reader->path, bytes, rows);
    return CELLGATE_OK;
}

static cellgate_status read_rows(cellgate_array_reader *reader, size_t rows,
                                 cellgate_error *error)
{
    const size_t count = rows * reader->row_elements;
    const size_t wide = cellgate_dtype_size(reader->header.dtype);
    const size_t stored = count * reader->header.item;
    const uint64_t first = (uint64_t)reader->next * reader->row_elements;
    char *to = (char *)reader->memory + (count * wide - stored);
    size_t done = 0, got = 0;

    while (done < stored) {
        const cellgate_status status =
            read_at(reader, to + done, stored - done, &got, error);

        if (status != CELLGATE_OK)
            return status;
        if (got == 0)
            return cellgate_fail(error, CELLGATE_BAD_FILE,
                                 "%s: ends within the elements: it was cut "
                                 "while it was read",
                                 reader->path);
        done += got;
    }
    return cg_npy_decode(&reader->header, reader->path, reader->memory, count,
                         first, error);
}

cellgate_status cellgate_array_reader_next(cellgate_array_reader *reader,
                                           int64_t rows, cellgate_tensor *piece,
                                           cellgate_error *error)
{
    cellgate_tensor result = reader->whole;
    const int64_t left = reader->whole.shape[0] - reader->next;
    cellgate_status status;

    if (rows < 1 || !cg_given_fillable(piece))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "a piece has one row or more, and a tensor with "
                             "its struct_size set");
    if (left == 0)
        return cellgate_fail(error, CELLGATE_END, "%s: all rows are read",
                             reader->path);
    result.shape[0] = rows < left ? rows : left;
    status = make_room(reader, (size_t)result.shape[0], error);
    if (status == CELLGATE_OK)
        status = read_rows(reader, (size_t)result.shape[0], error);
    if (status != CELLGATE_OK)
        return status;
    reader->next += result.shape[0];
    result.data = reader->memory;
    cellgate_struct_copy(piece, &result);
    return CELLGATE_OK;
}
