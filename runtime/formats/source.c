/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cellgate/plugin.h"

static cellgate_status fail_read(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_IO, "cannot be read: %s",
                         strerror(errno));
}

static cellgate_status fail_folder(const char *path, cellgate_error *error)
{
    char inside[4096];
    const int length =
        snprintf(inside, sizeof inside, "%s/saved_model.pb", path);

    if (length > 0 && (size_t)length < sizeof inside &&
        access(inside, F_OK) == 0)
        return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                             "this is a TensorFlow SavedModel, which holds a "
                             "traced program; save the Keras model it was made "
                             "from as .keras");
    return cellgate_fail(error, CELLGATE_BAD_FILE,
                         "this is a folder, and a model is one file, such as "
                         "the .keras that model.save() of Keras writes");
}

static cellgate_status read_head(cg_source *source, cellgate_error *error)
{
    while (source->head_size < sizeof source->head) {
        const ssize_t got = pread(source->fd, source->head + source->head_size,
                                  sizeof source->head - source->head_size,
                                  (off_t)source->head_size);

        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return fail_read(error);
        if (got > 0)
            source->head_size += (size_t)got;
    }
    return CELLGATE_OK;
}

static cellgate_status inspect(cg_source *source, cellgate_error *error)
{
    struct stat about;

    if (fstat(source->fd, &about) != 0)
        return cellgate_fail(error, CELLGATE_IO, "cannot be examined: %s",
                             strerror(errno));
    if (S_ISDIR(about.st_mode))
        return fail_folder(source->path, error);
    if (!S_ISREG(about.st_mode))
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "this is not a regular file");
    source->size = (uint64_t)about.st_size;
    return read_head(source, error);
}

cellgate_status cg_source_open(const char *path, cg_source *source,
                               cellgate_error *error)
{
    cg_source opened = { .path = path };
    cellgate_status status;

    /* Without O_NONBLOCK a FIFO would hold the caller up. */
    opened.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (opened.fd < 0)
        return cellgate_fail(error, CELLGATE_IO, "cannot be opened: %s",
                             strerror(errno));
    status = inspect(&opened, error);
    if (status == CELLGATE_OK)
        *source = opened;
    else
        (void)close(opened.fd);
    return status;
}

void cg_source_close(cg_source *source)
{
    (void)close(source->fd);
}

static cellgate_status read_bytes(const cg_source *source, char *bytes,
                                  cellgate_error *error)
{
    uint64_t done = 0;

    while (done < source->size) {
        const ssize_t got = pread(source->fd, bytes + done,
                                  (size_t)(source->size - done), (off_t)done);

        if (got == 0)
            return cellgate_fail(error, CELLGATE_IO,
                                 "the file became shorter while it was read");
        if (got < 0 && errno != EINTR)
            return fail_read(error);
        if (got > 0)
            done += (uint64_t)got;
    }
    return CELLGATE_OK;
}

cellgate_status cg_source_read(const cg_source *source, uint64_t most,
                               char **bytes, cellgate_error *error)
{
    char *made;
    cellgate_status status;

    if (source->size > most || source->size >= PTRDIFF_MAX)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "the file has %llu bytes; at most %llu are read",
                             (unsigned long long)source->size,
                             (unsigned long long)most);
    made = malloc((size_t)source->size + 1);
    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while reading the file");
    status = read_bytes(source, made, error);
    if (status != CELLGATE_OK) {
        free(made);
        return status;
    }
    made[source->size] = '\0';
    *bytes = made;
    return CELLGATE_OK;
}
