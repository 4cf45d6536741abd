/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/config/locate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/config/complaint.h"
#include "runtime/config/settings.h"

#define SYSTEM_FILE CELLGATE_SYSCONFDIR "/cellgate/cellgate.ini"

/* A place to look. */
typedef struct candidate {
    const char *path;
    const char *origin; /* who named it, for messages */
    bool required;      /* its absence is an error */
} candidate;

static cellgate_status fail_io(cellgate_error *error, const candidate *file,
                               const char *what)
{
    return cellgate_fail(error, CELLGATE_IO, "%s: %s (%s)", file->path, what,
                         file->origin);
}

/* Why a file of this kind is not read; NULL: it is. */
static const char *kind_problem(mode_t mode, bool required)
{
    if (S_ISREG(mode))
        return NULL;
    if (S_ISDIR(mode))
        return "this is a folder; name the file in it";
    /* /dev/null, and pipes such as a shell's <(command), if asked for. */
    if ((S_ISFIFO(mode) || S_ISCHR(mode)) && required)
        return NULL;
    return "this is not a regular file";
}

/* Opens without waiting for a pipe's writer. -1: no such file, if it need not
   be there, with status OK. */
static int open_file(const candidate *file, cellgate_status *status,
                     cellgate_error *error)
{
    const char *problem;
    struct stat about;
    int flags;
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    *status = CELLGATE_OK;
    if (fd < 0) {
        if (file->required || (errno != ENOENT && errno != ENOTDIR))
            *status = fail_io(error, file, strerror(errno));
        return -1;
    }
    if (fstat(fd, &about) != 0)
        problem = strerror(errno);
    else
        problem = kind_problem(about.st_mode, file->required);
    if (problem == NULL && ((flags = fcntl(fd, F_GETFL)) < 0 ||
                            fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0))
        problem = strerror(errno);
    if (problem != NULL) {
        *status = fail_io(error, file, problem);
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Reads to the end, but no more than `limit` bytes. -1: errno says why. */
static ssize_t read_all(int fd, char *bytes, size_t limit)
{
    size_t size = 0;

    while (size < limit) {
        ssize_t got = read(fd, bytes + size, limit - size);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        size += (size_t)got;
    }
    return (ssize_t)size;
}

static bool is_pipe(int fd)
{
    struct stat about;

    return fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode);
}

static cellgate_status read_descriptor(int fd, const candidate *file,
                                       cg_config_text *text,
                                       cellgate_error *error)
{
    cg_place place = { file->path, 0, NULL, NULL };
    /* One more than is allowed tells whether there is more. */
    char *bytes = malloc(CG_CONFIG_BYTES_MAX + 1);
    ssize_t size;

    if (bytes == NULL || (text->path = strdup(file->path)) == NULL) {
        free(bytes);
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while reading %s", file->path);
    }
    text->bytes = bytes;
    size = read_all(fd, bytes, CG_CONFIG_BYTES_MAX + 1);
    if (size < 0)
        return fail_io(error, file, strerror(errno));
    if (size == 0 && is_pipe(fd)) /* not the default by mistake */
        return fail_io(error, file, "nothing was written to this pipe");
    if (size > CG_CONFIG_BYTES_MAX)
        return cg_complain(error, &place,
                           "the file has more than %d bytes, so it is no "
                           "configuration",
                           CG_CONFIG_BYTES_MAX);
    text->size = (size_t)size;
    return CELLGATE_OK;
}

/* *found tells whether the file was there. */
static cellgate_status read_candidate(const candidate *file,
                                      cg_config_text *text, bool *found,
                                      cellgate_error *error)
{
    cg_config_text made = { NULL, NULL, 0 };
    cellgate_status status;
    int fd = open_file(file, &status, error);

    *found = fd >= 0;
    if (fd < 0)
        return status;
    status = read_descriptor(fd, file, &made, error);
    (void)close(fd);
    if (status == CELLGATE_OK)
        *text = made;
    else
        cg_config_text_finish(&made);
    return status;
}

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && *value != '\0' ? value : NULL;
}

/* The user's file, or NULL in *path without a home; the caller frees it. */
static cellgate_status user_file(char **path, cellgate_error *error)
{
    const char *folder = environment("XDG_CONFIG_HOME");
    const char *middle = "";
    size_t size;

    *path = NULL;
    if (folder == NULL || *folder != '/') { /* as its specification says */
        folder = environment("HOME");
        middle = "/.config";
    }
    if (folder == NULL)
        return CELLGATE_OK;
    size = strlen(folder) + sizeof "/.config/cellgate/cellgate.ini";
    *path = malloc(size);
    if (*path == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while looking for the "
                             "configuration");
    (void)snprintf(*path, size, "%s%s/cellgate/cellgate.ini", folder, middle);
    return CELLGATE_OK;
}

static cellgate_status read_user_file(cg_config_text *text, bool *found,
                                      cellgate_error *error)
{
    candidate file = { NULL, "the user's configuration", false };
    char *path;
    cellgate_status status = user_file(&path, error);

    *found = false;
    if (status != CELLGATE_OK || path == NULL)
        return status;
    file.path = path;
    status = read_candidate(&file, text, found, error);
    free(path);
    return status;
}

static cellgate_status built_in(cg_config_text *text, cellgate_error *error)
{
    char *path = strdup("");

    if (path == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while looking for the "
                             "configuration");
    text->path = path;
    text->bytes = NULL;
    text->size = 0;
    return CELLGATE_OK;
}

cellgate_status cg_config_locate(const char *path, cg_config_text *text,
                                 cellgate_error *error)
{
    const candidate system = { SYSTEM_FILE, "the system's configuration",
                               false };
    candidate named = { path, "given by the application", true };
    bool privileged = cg_privileged();
    bool found = false;
    cellgate_status status = CELLGATE_OK;

    if (privileged && path != NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "%s: a setuid or setgid program reads no other "
                             "configuration than %s",
                             path, SYSTEM_FILE);
    if (!privileged && named.path == NULL) {
        named.path = environment("CELLGATE_CONFIG");
        named.origin = "named by $CELLGATE_CONFIG";
    }
    if (named.path != NULL)
        return read_candidate(&named, text, &found, error);
    if (!privileged)
        status = read_user_file(text, &found, error);
    if (status == CELLGATE_OK && !found)
        status = read_candidate(&system, text, &found, error);
    if (status == CELLGATE_OK && !found)
        status = built_in(text, error);
    return status;
}

void cg_config_text_finish(cg_config_text *text)
{
    free(text->path);
    free(text->bytes);
    text->path = NULL;
    text->bytes = NULL;
    text->size = 0;
}
