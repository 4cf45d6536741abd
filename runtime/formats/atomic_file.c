/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cellgate/plugin.h"

struct cg_atomic_file {
    char *path;      /* what the caller named, for messages */
    char *target;    /* what is replaced: `path` with links followed */
    char *temporary; /* in the folder of `target` */
    char *folder;    /* that folder */
    FILE *stream;
};

/* Length of the folder part of a path, with its slash; 0 without one. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

/*
 * The file that a rename has to replace, and its permissions if it is there.
 * Without this check a rename would put a file where a device was.
 */
static cellgate_status find_target(const char *path, char **target,
                                   mode_t *mode, int *exists,
                                   cellgate_error *error)
{
    struct stat status;

    if (path[folder_length(path)] == '\0')
        return cellgate_fail(error, CELLGATE_IO, "%s: names no file",
                             path[0] == '\0' ? "an empty path" : path);
    *exists = stat(path, &status) == 0;
    if (*exists && !S_ISREG(status.st_mode))
        return cellgate_fail(error, CELLGATE_IO,
                             "%s: not a regular file, so it cannot be "
                             "replaced; name another output",
                             path);
    if (!*exists && errno != ENOENT)
        return cellgate_fail(error, CELLGATE_IO, "%s: cannot be written: %s",
                             path, strerror(errno));
    *mode = *exists ? status.st_mode & 07777 : 0;
    *target = *exists ? realpath(path, NULL) : strdup(path);
    if (*target == NULL && errno == ENOMEM)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    if (*target == NULL)
        return cellgate_fail(error, CELLGATE_IO, "%s: cannot be written: %s",
                             path, strerror(errno));
    return CELLGATE_OK;
}

/*
 * Creates a file of a new name in the folder of `target`, with permissions as
 * `mode` and the umask say; -1 and errno.
 */
static int create_temporary(const char *target, mode_t mode, char **name)
{
    static atomic_uint serial;
    size_t folder = folder_length(target);
    size_t size = folder + sizeof ".cellgate-0000000000000000-00000000.tmp";
    char *text = malloc(size);
    int descriptor = -1;

    if (text == NULL) {
        errno = ENOMEM;
        return -1;
    }
    memcpy(text, target, folder);
    for (int tries = 0; descriptor < 0 && tries < 100; tries++) {
        struct timespec now = { 0, 0 };
        (void)clock_gettime(CLOCK_REALTIME, &now);
        uint64_t stamp = (uint64_t)now.tv_sec * 1000000000u +
                         (uint64_t)now.tv_nsec + ((uint64_t)getpid() << 40);
        (void)snprintf(text + folder, size - folder,
                       ".cellgate-%016" PRIx64 "-%08x.tmp", stamp,
                       atomic_fetch_add(&serial, 1u) & 0xffffffffu);
        descriptor = open(text, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (descriptor < 0 && errno != EEXIST)
            break;
    }
    if (descriptor < 0) {
        int cause = errno;
        free(text);
        errno = cause;
        return -1;
    }
    *name = text;
    return descriptor;
}

static cellgate_status open_temporary(cg_atomic_file *file, mode_t mode,
                                      int keep_mode, cellgate_error *error)
{
    /* Nobody may open it before it has the permissions of the file that it
       replaces. */
    int descriptor = create_temporary(file->target, keep_mode ? 0600 : 0666,
                                      &file->temporary);

    if (descriptor < 0 && errno == ENOMEM)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    if (descriptor < 0)
        return cellgate_fail(error, CELLGATE_IO,
                             "%s: no file can be made in its folder: %s",
                             file->path, strerror(errno));
    /* Best effort: some file systems have no permissions to set. */
    if (keep_mode)
        (void)fchmod(descriptor, mode);
    file->stream = fdopen(descriptor, "w+b");
    if (file->stream == NULL) {
        int cause = errno;
        (void)close(descriptor);
        return cellgate_fail(
            error, cause == ENOMEM ? CELLGATE_NO_MEMORY : CELLGATE_IO,
            "%s: cannot be written: %s", file->path, strerror(cause));
    }
    return CELLGATE_OK;
}

/* The folder of the target, as a path that can be opened. */
static cellgate_status find_folder(cg_atomic_file *file, cellgate_error *error)
{
    size_t length = folder_length(file->target);

    file->folder = length == 0 ? strdup(".") : strndup(file->target, length);
    if (file->folder == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    return CELLGATE_OK;
}

cellgate_status cg_atomic_file_open(const char *path, cg_atomic_file **file,
                                    cellgate_error *error)
{
    cg_atomic_file *opened = calloc(1, sizeof *opened);
    mode_t mode = 0;
    int exists = 0;
    cellgate_status status;

    if (opened == NULL || (opened->path = strdup(path)) == NULL) {
        free(opened);
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    }
    status = find_target(path, &opened->target, &mode, &exists, error);
    if (status == CELLGATE_OK)
        status = find_folder(opened, error);
    if (status == CELLGATE_OK)
        status = open_temporary(opened, mode, exists, error);
    if (status != CELLGATE_OK) {
        cg_atomic_file_abandon(opened);
        return status;
    }
    *file = opened;
    return CELLGATE_OK;
}

FILE *cg_atomic_file_stream(cg_atomic_file *file)
{
    return file->stream;
}

/* A rename is only as durable as the folder's own entry. */
static void sync_folder(const char *folder)
{
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (descriptor < 0)
        return;
    /* Not all file systems take it; the file itself is already safe. */
    (void)fsync(descriptor);
    (void)close(descriptor);
}

/* Writes what is buffered to the disk and closes; 0, or the errno. */
static int finish_stream(FILE *stream)
{
    int cause = 0;

    if (fflush(stream) != 0)
        cause = errno;
    else if (ferror(stream))
        cause = EIO; /* an earlier write failed, and its errno is gone */
    else if (fsync(fileno(stream)) != 0 && errno != EINVAL)
        cause = errno;
    if (fclose(stream) != 0 && cause == 0)
        cause = errno;
    return cause;
}

cellgate_status cg_atomic_file_commit(cg_atomic_file *file,
                                      cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    int cause = finish_stream(file->stream);

    file->stream = NULL;
    if (cause == 0 && rename(file->temporary, file->target) != 0)
        cause = errno;
    if (cause == 0) {
        sync_folder(file->folder);
        free(file->temporary);
        file->temporary = NULL;
    } else {
        status = cellgate_fail(
            error, cause == ENOMEM ? CELLGATE_NO_MEMORY : CELLGATE_IO,
            "%s: cannot be written: %s", file->path, strerror(cause));
    }
    cg_atomic_file_abandon(file);
    return status;
}

void cg_atomic_file_abandon(cg_atomic_file *file)
{
    if (file == NULL)
        return;
    if (file->stream != NULL)
        (void)fclose(file->stream);
    if (file->temporary != NULL)
        (void)unlink(file->temporary);
    free(file->folder);
    free(file->temporary);
    free(file->target);
    free(file->path);
    free(file);
}
