/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in a .keras file: a zip with metadata.json, config.json and
 * model.weights.h5.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zip.h>

#include "runtime/formats/formats.h"
#include "runtime/formats/json_text.h"
#include "runtime/formats/keras.h"

#define MAX_MEMBERS 65536

/* How far a member may unpack; a stored one is bounded by the file. */
typedef struct member_limits {
    zip_uint64_t most;      /* bytes */
    zip_uint64_t expansion; /* times its size in the zip ... */
    zip_uint64_t free;      /* ... unless it is no larger than this */
} member_limits;

static const member_limits metadata_limits = { 1 << 20, 1000, 1 << 16 };
/* In memory JSON takes up to 50 times its text. */
static const member_limits config_limits = { 1 << 24, 100, 1 << 20 };
/* Keras stores without packing, and trained weights hardly pack. */
static const member_limits weights_limits = { PTRDIFF_MAX / 2, 20, 1 << 26 };

/* A member's content; `bytes` has a NUL after it. */
typedef struct member {
    char *bytes;
    size_t size;
} member;

/* ---- The zip ------------------------------------------------------------- */

/*
 * libzip blames the file after some of its own allocations fail; errno, which
 * was set to zero before, then tells.
 */
static cellgate_status fail_zip(cellgate_error *error, const char *name,
                                const char *problem)
{
    if (errno == ENOMEM)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while reading %s", name);
    return cellgate_fail(error, CELLGATE_BAD_FILE, "%s%s", name, problem);
}

static cellgate_status open_zip(const cg_source *source, zip_t **zip,
                                cellgate_error *error)
{
    const int fd = dup(source->fd);

    errno = 0;
    *zip =
        fd >= 0 && lseek(fd, 0, SEEK_SET) == 0 ? zip_fdopen(fd, 0, NULL) : NULL;
    if (*zip != NULL)
        return CELLGATE_OK;
    if (fd >= 0)
        (void)close(fd);
    return fail_zip(error, "the zip", " is damaged or cut short");
}

/* Number of the member of that name; -1 without one. */
static cellgate_status find_member(zip_t *zip, const char *name,
                                   zip_int64_t *number, cellgate_error *error)
{
    const zip_int64_t count = zip_get_num_entries(zip, 0);

    *number = -1;
    if (count > MAX_MEMBERS)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "the zip has %lld members", (long long)count);
    for (zip_int64_t i = 0; i < count; i++) {
        const char *found = zip_get_name(zip, (zip_uint64_t)i, ZIP_FL_ENC_RAW);

        if (found == NULL || strcmp(found, name) != 0)
            continue;
        if (*number != -1)
            return cellgate_fail(error, CELLGATE_BAD_FILE,
                                 "the zip has two members '%s'", name);
        *number = i;
    }
    return CELLGATE_OK;
}

static cellgate_status check_member(const cg_source *source, const char *name,
                                    const zip_stat_t *about,
                                    const member_limits *limits,
                                    cellgate_error *error)
{
    const zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;

    if ((about->valid & needed) != needed || about->comp_size > source->size)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "the zip's entry for %s is damaged", name);
    if ((about->valid & ZIP_STAT_ENCRYPTION_METHOD) &&
        about->encryption_method != ZIP_EM_NONE)
        return cellgate_fail(error, CELLGATE_UNSUPPORTED, "%s is encrypted",
                             name);
    if (about->size > limits->most)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%s has %llu bytes; at most %llu are read", name,
                             (unsigned long long)about->size,
                             (unsigned long long)limits->most);
    if (about->size > limits->free &&
        about->size / limits->expansion > about->comp_size)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%s unpacks from %llu to %llu bytes: refused as a "
                             "decompression bomb (store it without packing if "
                             "it is not)",
                             name, (unsigned long long)about->comp_size,
                             (unsigned long long)about->size);
    return CELLGATE_OK;
}

/* Exactly `size` bytes, and no more: reading past the end checks the CRC. */
static bool read_whole(zip_file_t *file, char *bytes, size_t size)
{
    size_t done = 0;
    char beyond;

    while (done < size) {
        const zip_int64_t got = zip_fread(file, bytes + done, size - done);

        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return zip_fread(file, &beyond, 1) == 0;
}

static cellgate_status read_member(const cg_source *source, zip_t *zip,
                                   zip_uint64_t number, const char *name,
                                   const member_limits *limits, member *content,
                                   cellgate_error *error)
{
    zip_stat_t about;
    zip_file_t *file;
    cellgate_status status;

    if (zip_stat_index(zip, number, 0, &about) != 0)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "the zip's entry for %s is damaged", name);
    status = check_member(source, name, &about, limits, error);
    if (status != CELLGATE_OK)
        return status;
    errno = 0;
    file = zip_fopen_index(zip, number, 0);
    if (file == NULL) {
        char problem[128];

        (void)snprintf(problem, sizeof problem, ": %s", zip_strerror(zip));
        return fail_zip(error, name, problem);
    }
    content->size = (size_t)about.size;
    content->bytes = malloc(content->size + 1);
    if (content->bytes == NULL)
        status = cellgate_fail(error, CELLGATE_NO_MEMORY,
                               "out of memory while reading %s", name);
    else if (!read_whole(file, content->bytes, content->size))
        status = fail_zip(error, name, " is damaged or cut short");
    else
        content->bytes[content->size] = '\0';
    (void)zip_fclose(file);
    if (status != CELLGATE_OK) {
        free(content->bytes);
        *content = (member){ 0 };
    }
    return status;
}

/* A member that has to be there. */
static cellgate_status need_member(const cg_source *source, zip_t *zip,
                                   const char *name,
                                   const member_limits *limits, member *content,
                                   cellgate_error *error)
{
    zip_int64_t number;
    cellgate_status status = find_member(zip, name, &number, error);

    if (status == CELLGATE_OK && number < 0)
        status = cellgate_fail(error, CELLGATE_BAD_FILE,
                               "the .keras file has no %s", name);
    if (status == CELLGATE_OK)
        status = read_member(source, zip, (zip_uint64_t)number, name, limits,
                             content, error);
    return status;
}

/* A zip without config.json: whose is it? */
static cellgate_status fail_other_zip(zip_t *zip, cellgate_error *error)
{
    const zip_int64_t count = zip_get_num_entries(zip, 0);

    for (zip_int64_t i = 0; i < count && i < MAX_MEMBERS; i++) {
        const char *name = zip_get_name(zip, (zip_uint64_t)i, ZIP_FL_ENC_RAW);
        const size_t length = name != NULL ? strlen(name) : 0;

        if (length >= 8 && strcmp(name + length - 8, "data.pkl") == 0)
            return cellgate_fail(
                error, CELLGATE_UNSUPPORTED,
                "this is a PyTorch file, a Python pickle: reading one can run "
                "any code, so Cellgate never does; rebuild the model in Keras "
                "with these weights and save it as .keras");
        if (length >= 4 && strcmp(name + length - 4, ".npy") == 0)
            return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                                 "this is a .npz file of arrays, not a model: "
                                 "is it meant as an --input?");
    }
    return cellgate_fail(error, CELLGATE_BAD_FILE,
                         "this zip file is not a .keras file: it has no "
                         "config.json");
}

/* ---- The JSON ------------------------------------------------------------ */

static cellgate_status read_json(const cg_source *source, zip_t *zip,
                                 const char *name, const member_limits *limits,
                                 json_t **json, cellgate_error *error)
{
    member content = { 0 };
    cellgate_status status =
        need_member(source, zip, name, limits, &content, error);

    if (status == CELLGATE_OK)
        status = cg_json_parse(name, content.bytes, content.size, json, error);
    free(content.bytes);
    return status;
}

/* ---- Reading ------------------------------------------------------------- */

static cellgate_status read_parts(const cg_source *source, zip_t *zip,
                                  json_t **metadata, json_t **config,
                                  member *weights, cellgate_error *error)
{
    cellgate_status status = read_json(source, zip, "metadata.json",
                                       &metadata_limits, metadata, error);

    if (status == CELLGATE_OK)
        status = read_json(source, zip, "config.json", &config_limits, config,
                           error);
    if (status == CELLGATE_OK)
        status = need_member(source, zip, "model.weights.h5", &weights_limits,
                             weights, error);
    return status;
}

static cellgate_status assemble(const cg_source *source, const json_t *metadata,
                                json_t *config, const member *weights,
                                cellgate_model **model, cellgate_error *error)
{
    const cg_keras_file file = { .path = source->path,
                                 .version = json_string_value(json_object_get(
                                     metadata, "keras_version")),
                                 .config = config,
                                 .weights_name = "model.weights.h5",
                                 .weights_size = weights->size };
    cg_h5 *h5 = NULL;
    cellgate_status status;

    if (file.version == NULL)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "metadata.json does not say the keras_version");
    status = cg_h5_open(weights->bytes, weights->size, file.weights_name, &h5,
                        error);
    if (status == CELLGATE_OK)
        status = cg_keras_assemble(&file, h5, model, error);
    cg_h5_close(h5);
    return status;
}

static cellgate_status read_keras(const cg_source *source, zip_t *zip,
                                  cellgate_model **model, cellgate_error *error)
{
    json_t *metadata = NULL, *config = NULL;
    member weights = { 0 };
    cellgate_status status =
        read_parts(source, zip, &metadata, &config, &weights, error);

    if (status == CELLGATE_OK)
        status = assemble(source, metadata, config, &weights, model, error);
    json_decref(metadata);
    json_decref(config);
    free(weights.bytes);
    return status;
}

cellgate_status cg_keras_read(const cg_source *source, cellgate_model **model,
                              cellgate_error *error)
{
    zip_t *zip;
    zip_int64_t config = -1;
    cellgate_status status;

    if (source->head_size < 4 || memcmp(source->head, "PK\3\4", 4) != 0)
        return CELLGATE_NOT_FOUND;
    status = open_zip(source, &zip, error);
    if (status != CELLGATE_OK)
        return status;
    status = find_member(zip, "config.json", &config, error);
    if (status == CELLGATE_OK && config < 0)
        status = fail_other_zip(zip, error);
    if (status == CELLGATE_OK)
        status = read_keras(source, zip, model, error);
    zip_discard(zip);
    return status;
}
