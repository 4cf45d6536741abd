/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/npz.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include <zip.h>

#include "cellgate/plugin.h"
#include "runtime/formats/npy.h"
#include "runtime/formats/tensor.h"

#define ENDING ".npy"
#define ENDING_LENGTH (sizeof ENDING - 1)
/* A match of 258 bytes takes at least two bits. */
#define DEFLATE_RATIO_MAX 1032u

void cg_named_arrays_free(cg_named_array *arrays, size_t count)
{
    for (size_t i = 0; arrays != NULL && i < count; i++) {
        free(arrays[i].name);
        free(arrays[i].tensor.data);
    }
    free(arrays);
}

/*
 * An archive that cannot be read is a bad file, unless the system refused.
 * libzip blames the file after some of its own allocations fail; errno, which
 * was set to zero before, then tells.
 */
static cellgate_status archive_failed(zip_error_t *cause, const char *where,
                                      cellgate_error *error)
{
    cellgate_status status = CELLGATE_BAD_FILE;

    if (zip_error_code_zip(cause) == ZIP_ER_MEMORY || errno == ENOMEM)
        status = CELLGATE_NO_MEMORY;
    else if (zip_error_system_type(cause) == ZIP_ET_SYS)
        status = CELLGATE_IO;
    return cellgate_fail(error, status, "%s: %s", where,
                         zip_error_strerror(cause));
}

/* ---- Reading ----------------------------------------------------------- */

/* One member that is being read. */
typedef struct member {
    zip_file_t *file;
    const char *where;
} member;

static cellgate_status read_member(void *stream, void *buffer, size_t size,
                                   size_t *count, cellgate_error *error)
{
    const member *from = stream;
    zip_int64_t done = zip_fread(from->file, buffer, size);

    if (done < 0)
        return archive_failed(zip_file_get_error(from->file), from->where,
                              error);
    *count = (size_t)done;
    return CELLGATE_OK;
}

/* Reaching the end is what makes libzip compare the checksum. */
static cellgate_status expect_end(member *from, cellgate_error *error)
{
    char byte;
    size_t count = 0;
    cellgate_status status = read_member(from, &byte, 1, &count, error);

    if (status == CELLGATE_OK && count != 0)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%s: longer than the archive says", from->where);
    return status;
}

/* "PATH: array 'NAME'", for messages. */
static char *describe_member(const char *path, const char *name, size_t length)
{
    size_t size = strlen(path) + length + sizeof ": array ''";
    char *text = malloc(size);

    if (text != NULL)
        (void)snprintf(text, size, "%s: array '%.*s'", path, (int)length, name);
    return text;
}

/* The name without ".npy"; its length is 0 if it is not one of an array. */
static size_t array_name_length(const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
            return 0;
    if (length <= ENDING_LENGTH ||
        strcmp(name + length - ENDING_LENGTH, ENDING) != 0)
        return 0;
    return length - ENDING_LENGTH;
}

/* Bytes of the file, and of the members so far. */
typedef struct totals {
    uint64_t file, packed, unpacked;
} totals;

/* `size` bytes more of it are read into memory. */
static cellgate_status count_unpacked(totals *sums, uint64_t size,
                                      const char *where, cellgate_error *error)
{
    const uint64_t file = sums->file > UINT64_MAX / CG_NPZ_RATIO_MAX
                              ? UINT64_MAX
                              : sums->file * CG_NPZ_RATIO_MAX;
    const uint64_t most = file > CG_NPZ_FREE ? file : CG_NPZ_FREE;

    if (size > most - sums->unpacked)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%s: unpacks to %" PRIu64 " bytes, with which "
                             "the archive of %" PRIu64 " bytes would take more "
                             "than %" PRIu64 ": refused as a decompression "
                             "bomb (save it with numpy.savez(), which does not "
                             "pack, if it is not)",
                             where, size, sums->file, most);
    sums->unpacked += size;
    return CELLGATE_OK;
}

/* Whether the archive's word on one member can be true. */
static cellgate_status check_member(const zip_stat_t *entry, const char *where,
                                    totals *sums, cellgate_error *error)
{
    const zip_uint64_t needed =
        ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;

    if ((entry->valid & needed) != needed)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%s: the archive lacks its size", where);
    if ((entry->valid & ZIP_STAT_ENCRYPTION_METHOD) &&
        entry->encryption_method != ZIP_EM_NONE)
        return cellgate_refuse(error, CELLGATE_REASON_OTHER,
                               "%s: encrypted; save it without a password",
                               where);
    if (entry->comp_method != ZIP_CM_STORE &&
        entry->comp_method != ZIP_CM_DEFLATE)
        return cellgate_refuse(error, CELLGATE_REASON_OTHER,
                               "%s: compression method %u; stored and deflated "
                               "members are read",
                               where, (unsigned)entry->comp_method);
    if (entry->comp_size > sums->file - sums->packed)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%s: larger than the file that it is in", where);
    sums->packed += entry->comp_size;
    if (entry->comp_method == ZIP_CM_STORE
            ? entry->size != entry->comp_size
            : entry->size / DEFLATE_RATIO_MAX > entry->comp_size)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%s: %" PRIu64 " bytes cannot come of %" PRIu64,
                             where, (uint64_t)entry->size,
                             (uint64_t)entry->comp_size);
    return count_unpacked(sums, entry->size, where, error);
}

/* Reads the array of an entry that has been checked. */
static cellgate_status read_array(zip_t *archive, const zip_stat_t *entry,
                                  const char *where, cellgate_tensor *tensor,
                                  cellgate_error *error)
{
    member from = { zip_fopen_index(archive, entry->index, 0), where };
    cg_npy_source source = { where, entry->size, read_member, &from };
    cellgate_status status;

    if (from.file == NULL)
        return archive_failed(zip_get_error(archive), where, error);
    status = cg_npy_read(&source, tensor, error);
    if (status == CELLGATE_OK) {
        status = expect_end(&from, error);
        if (status != CELLGATE_OK) {
            free(tensor->data);
            tensor->data = NULL;
        }
    }
    (void)zip_fclose(from.file);
    return status;
}

static cellgate_status read_entry(zip_t *archive, zip_uint64_t index,
                                  const char *path, totals *sums,
                                  cg_named_array *array, cellgate_error *error)
{
    zip_stat_t entry;
    size_t length;
    char *where;
    cellgate_status status;

    if (zip_stat_index(archive, index, 0, &entry) != 0)
        return archive_failed(zip_get_error(archive), path, error);
    length = (entry.valid & ZIP_STAT_NAME) ? array_name_length(entry.name) : 0;
    if (length == 0)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%s: member %" PRIu64 " is not named like an "
                             "array, NAME.npy%s",
                             path, (uint64_t)index,
                             zip_name_locate(archive, "config.json", 0) >= 0
                                 ? ": this is a Keras model, and a .npy or "
                                   ".npz file of arrays is expected"
                                 : "");
    where = describe_member(path, entry.name, length);
    array->name = strndup(entry.name, length);
    if (where == NULL || array->name == NULL)
        status = cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    else if (zip_name_locate(archive, entry.name, 0) != (zip_int64_t)index)
        status =
            cellgate_fail(error, CELLGATE_BAD_FILE, "%s: there twice", where);
    else
        status = check_member(&entry, where, sums, error);
    if (status == CELLGATE_OK)
        status = read_array(archive, &entry, where, &array->tensor, error);
    free(where);
    return status;
}

static cellgate_status read_entries(zip_t *archive, const char *path,
                                    uint64_t size, cg_named_array **arrays,
                                    size_t *count, cellgate_error *error)
{
    zip_int64_t entries = zip_get_num_entries(archive, 0);
    cellgate_status status = CELLGATE_OK;
    cg_named_array *list;
    totals sums = { .file = size };

    if (entries < 0 || entries > CG_NPZ_MEMBERS_MAX)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%s: %" PRId64 " members; at most %d are read",
                             path, (int64_t)entries, CG_NPZ_MEMBERS_MAX);
    list = calloc(entries == 0 ? 1 : (size_t)entries, sizeof *list);
    if (list == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    for (zip_int64_t i = 0; status == CELLGATE_OK && i < entries; i++)
        status =
            read_entry(archive, (zip_uint64_t)i, path, &sums, &list[i], error);
    if (status != CELLGATE_OK) {
        cg_named_arrays_free(list, (size_t)entries);
        return status;
    }
    *arrays = list;
    *count = (size_t)entries;
    return CELLGATE_OK;
}

cellgate_status cg_npz_read(const char *path, uint64_t size,
                            cg_named_array **arrays, size_t *count,
                            cellgate_error *error)
{
    int code = 0;
    zip_t *archive;
    cellgate_status status;

    errno = 0;
    archive = zip_open(path, ZIP_RDONLY, &code);
    if (archive == NULL) {
        zip_error_t cause;
        zip_error_init_with_code(&cause, code);
        /* libzip says the same of some damaged archives. */
        status = code == ZIP_ER_NOENT && access(path, F_OK) != 0
                     ? cellgate_fail(error, CELLGATE_IO, "%s: %s", path,
                                     zip_error_strerror(&cause))
                     : archive_failed(&cause, path, error);
        zip_error_fini(&cause);
        return status;
    }
    status = read_entries(archive, path, size, arrays, count, error);
    zip_discard(archive);
    return status;
}

/* ---- Writing ----------------------------------------------------------- */

/* The stream as libzip's destination: it knows how to write and to seek. */
typedef struct sink {
    FILE *stream;
    zip_error_t error;
} sink;

static zip_int64_t sink_failed(sink *to, int code)
{
    zip_error_set(&to->error, code, errno);
    return -1;
}

static zip_int64_t sink_seek(sink *to, void *data, zip_uint64_t length)
{
    static const int FROM[] = { SEEK_SET, SEEK_CUR, SEEK_END };
    zip_source_args_seek_t *seek =
        ZIP_SOURCE_GET_ARGS(zip_source_args_seek_t, data, length, &to->error);

    if (seek == NULL)
        return -1;
    if (seek->whence < 0 || seek->whence > 2) {
        errno = EINVAL;
        return sink_failed(to, ZIP_ER_SEEK);
    }
    if (fseeko(to->stream, (off_t)seek->offset, FROM[seek->whence]) != 0)
        return sink_failed(to, ZIP_ER_SEEK);
    return 0;
}

static zip_int64_t sink_write(sink *to, const void *data, zip_uint64_t length)
{
    if (fwrite(data, 1, length, to->stream) != length)
        return sink_failed(to, ZIP_ER_WRITE);
    return (zip_int64_t)length;
}

static zip_int64_t sink_tell(sink *to)
{
    off_t at = ftello(to->stream);
    return at < 0 ? sink_failed(to, ZIP_ER_TELL) : (zip_int64_t)at;
}

/* libzip asks for a whole file's operations; a new archive is never read. */
static zip_int64_t sink_command(void *state, void *data, zip_uint64_t length,
                                zip_source_cmd_t command)
{
    sink *to = state;

    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_WRITABLE;
    case ZIP_SOURCE_STAT: /* nothing is there yet */
        zip_error_set(&to->error, ZIP_ER_READ, ENOENT);
        return -1;
    case ZIP_SOURCE_WRITE:
        return sink_write(to, data, length);
    case ZIP_SOURCE_SEEK_WRITE:
        return sink_seek(to, data, length);
    case ZIP_SOURCE_TELL_WRITE:
        return sink_tell(to);
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&to->error, data, length);
    case ZIP_SOURCE_BEGIN_WRITE:
    case ZIP_SOURCE_COMMIT_WRITE:
    case ZIP_SOURCE_ROLLBACK_WRITE:
    case ZIP_SOURCE_FREE:
        return 0;
    default:
        zip_error_set(&to->error, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
}

/* The moment that every member carries; a zip knows none earlier. */
static time_t first_moment(void)
{
    struct tm parts = { .tm_year = 80, .tm_mday = 1, .tm_isdst = -1 };
    return mktime(&parts);
}

/* Adds one array; `header` has to stay until the archive is closed. */
static int add_array(zip_t *archive, const char *name, char *header,
                     size_t header_size, const cellgate_tensor *tensor,
                     size_t bytes)
{
    zip_buffer_fragment_t parts[2] = {
        { (zip_uint8_t *)header, header_size },
        { tensor->data, bytes },
    };
    zip_source_t *source = zip_source_buffer_fragment_create(
        parts, bytes > 0 ? 2 : 1, 0, zip_get_error(archive));
    zip_int64_t index;

    if (source == NULL)
        return -1;
    index = zip_file_add(archive, name, source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
        zip_source_free(source);
        return -1;
    }
    if (zip_set_file_compression(archive, (zip_uint64_t)index, ZIP_CM_STORE,
                                 0) != 0)
        return -1;
    return zip_file_set_mtime(archive, (zip_uint64_t)index, first_moment(), 0);
}

static cellgate_status add_arrays(zip_t *archive, const char *path,
                                  const char *const *names,
                                  const cellgate_tensor *tensors, size_t count,
                                  char *headers, cellgate_error *error)
{
    for (size_t i = 0; i < count; i++) {
        char *header = headers + i * CG_NPY_WRITTEN_MAX;
        size_t header_size = cg_npy_format_header(&tensors[i], header);
        size_t bytes = 0;
        size_t length = strlen(names[i]);
        char *name = malloc(length + sizeof ENDING);
        int failed;

        if (name == NULL)
            return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
        memcpy(name, names[i], length);
        memcpy(name + length, ENDING, sizeof ENDING);
        (void)cg_tensor_size(&tensors[i], NULL, &bytes);
        failed = add_array(archive, name, header, header_size, &tensors[i],
                           bytes) != 0;
        free(name);
        if (failed &&
            zip_error_code_zip(zip_get_error(archive)) == ZIP_ER_EXISTS)
            return cellgate_fail(error, CELLGATE_INVALID,
                                 "%s: two arrays are named '%s'", path,
                                 names[i]);
        if (failed)
            return archive_failed(zip_get_error(archive), path, error);
    }
    return CELLGATE_OK;
}

/* An empty archive whose bytes will go to `to`. */
static cellgate_status open_archive(sink *to, const char *path, zip_t **archive,
                                    cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    zip_error_t cause;
    zip_source_t *source;

    zip_error_init(&cause);
    source = zip_source_function_create(sink_command, to, &cause);
    *archive =
        source == NULL
            ? NULL
            : zip_open_from_source(source, ZIP_CREATE | ZIP_TRUNCATE, &cause);
    if (*archive == NULL) {
        status = archive_failed(&cause, path, error);
        zip_source_free(source);
    }
    zip_error_fini(&cause);
    return status;
}

cellgate_status cg_npz_write(FILE *stream, const char *path,
                             const char *const *names,
                             const cellgate_tensor *tensors, size_t count,
                             cellgate_error *error)
{
    sink to = { .stream = stream };
    char *headers = calloc(count, CG_NPY_WRITTEN_MAX);
    zip_t *archive = NULL;
    cellgate_status status;

    if (headers == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    zip_error_init(&to.error);
    errno = 0;
    status = open_archive(&to, path, &archive, error);
    if (status == CELLGATE_OK)
        status =
            add_arrays(archive, path, names, tensors, count, headers, error);
    if (status == CELLGATE_OK && zip_close(archive) != 0)
        status = cellgate_fail(error, CELLGATE_IO, "%s: cannot be written: %s",
                               path, zip_strerror(archive));
    else if (status == CELLGATE_OK)
        archive = NULL;
    if (archive != NULL)
        zip_discard(archive);
    zip_error_fini(&to.error);
    free(headers);
    return status;
}
