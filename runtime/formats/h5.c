/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/h5.h"

#ifdef HAVE_HDF5

#include <hdf5.h>
#include <pthread.h>
#include <stdlib.h>

#define MAX_PATH 1024

/* How far weights may unpack: times the file's size, unless they stay below
   so many bytes. */
#define UNPACKED_MOST 20
#define UNPACKED_FREE (1u << 26)

struct cg_h5 {
    hid_t file;
    const void *image;
    size_t size;
    hsize_t read;     /* bytes of the file that datasets took so far */
    hsize_t unpacked; /* bytes of memory that they fill */
    H5E_auto2_t print;
    void *print_data;
};

static pthread_mutex_t only_one = PTHREAD_MUTEX_INITIALIZER;

/* ---- The image ---------------------------------------------------------- */

/* HDF5 copies an image three times over unless told to use it where it lies. */

static void *image_allocate(size_t size, H5FD_file_image_op_t operation,
                            void *data)
{
    const cg_h5 *h5 = data;

    (void)operation;
    return size == h5->size ? (void *)(uintptr_t)h5->image : NULL;
}

static void *image_copy(void *to, const void *from, size_t size,
                        H5FD_file_image_op_t operation, void *data)
{
    (void)from, (void)size, (void)operation, (void)data;
    return to;
}

static void *image_resize(void *old, size_t size,
                          H5FD_file_image_op_t operation, void *data)
{
    (void)old, (void)size, (void)operation, (void)data;
    return NULL; /* the file is read only */
}

static herr_t image_free(void *image, H5FD_file_image_op_t operation,
                         void *data)
{
    (void)image, (void)operation, (void)data;
    return 0;
}

static void *data_copy(void *data)
{
    return data;
}

static herr_t data_free(void *data)
{
    (void)data;
    return 0;
}

static hid_t open_image(cg_h5 *h5)
{
    H5FD_file_image_callbacks_t callbacks = {
        image_allocate, image_copy, image_resize, image_free, data_copy,
        data_free,      h5
    };
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    hid_t file = -1;

    if (access < 0)
        return -1;
    if (H5Pset_fapl_core(access, 1 << 16, 0) >= 0 &&
        H5Pset_file_image_callbacks(access, &callbacks) >= 0 &&
        H5Pset_file_image(access, (void *)(uintptr_t)h5->image, h5->size) >= 0)
        file = H5Fopen("model.weights.h5", H5F_ACC_RDONLY, access);
    (void)H5Pclose(access);
    return file;
}

cellgate_status cg_h5_open(const void *image, size_t size, const char *name,
                           cg_h5 **h5, cellgate_error *error)
{
    cg_h5 *made = calloc(1, sizeof *made);

    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while opening the weights");
    (void)pthread_mutex_lock(&only_one);
    made->image = image;
    made->size = size;
    (void)H5Eget_auto2(H5E_DEFAULT, &made->print, &made->print_data);
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    made->file = open_image(made);
    if (made->file < 0) {
        cg_h5_close(made);
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%s is not a valid HDF5 file", name);
    }
    *h5 = made;
    return CELLGATE_OK;
}

void cg_h5_close(cg_h5 *h5)
{
    if (h5 == NULL)
        return;
    if (h5->file >= 0)
        (void)H5Fclose(h5->file);
    (void)H5Eset_auto2(H5E_DEFAULT, h5->print, h5->print_data);
    free(h5);
    (void)pthread_mutex_unlock(&only_one);
}

/* ---- Paths -------------------------------------------------------------- */

static H5L_type_t link_type(hid_t group, const char *name)
{
    H5L_info_t info;

    return H5Lget_info(group, name, &info, H5P_DEFAULT) >= 0 ? info.type
                                                             : H5L_TYPE_ERROR;
}

/*
 * Opens the object at `path`, one link after the other, so that none but hard
 * links are followed: soft and external ones can lead out of the file. -1 if
 * that fails; *type is then that of the last link looked at.
 */
static hid_t open_object(const cg_h5 *h5, const char *path, H5L_type_t *type)
{
    char copy[MAX_PATH];
    char *rest = copy, *name;
    hid_t at = h5->file;

    *type = H5L_TYPE_ERROR;
    if (strlen(path) >= sizeof copy)
        return -1;
    memcpy(copy, path, strlen(path) + 1);
    while ((name = strtok_r(rest, "/", &rest)) != NULL) {
        hid_t next = -1;

        *type = link_type(at, name);
        if (*type == H5L_TYPE_HARD)
            next = H5Oopen(at, name, H5P_DEFAULT);
        if (at != h5->file)
            (void)H5Oclose(at);
        if (next < 0)
            return -1;
        at = next;
    }
    return at;
}

bool cg_h5_has(cg_h5 *h5, const char *path)
{
    H5L_type_t type;
    const hid_t object = open_object(h5, path, &type);

    if (object < 0)
        return false;
    if (object != h5->file)
        (void)H5Oclose(object);
    return true;
}

static hid_t open_dataset(const cg_h5 *h5, const char *path,
                          cellgate_error *error)
{
    H5L_type_t type;
    const hid_t object = open_object(h5, path, &type);

    if (object < 0 && type != H5L_TYPE_ERROR && type != H5L_TYPE_HARD) {
        (void)cellgate_fail(error, CELLGATE_BAD_FILE,
                            "%s link leads to '%s' in model.weights.h5; only "
                            "hard links are followed",
                            type == H5L_TYPE_SOFT ? "a soft" : "an external",
                            path);
        return -1;
    }
    if (object < 0) {
        (void)cellgate_fail(error, CELLGATE_BAD_FILE,
                            "model.weights.h5 has nothing at '%s'", path);
        return -1;
    }
    if (object != h5->file && H5Iget_type(object) == H5I_DATASET)
        return object;
    (void)cellgate_fail(error, CELLGATE_BAD_FILE,
                        "'%s' in model.weights.h5 is not a dataset", path);
    if (object != h5->file)
        (void)H5Oclose(object);
    return -1;
}

/* ---- Checks ------------------------------------------------------------- */

static cellgate_status check_filters(hid_t creation, const char *path,
                                     cellgate_error *error)
{
    const int count = H5Pget_nfilters(creation);

    for (int i = 0; i < count; i++) {
        unsigned flags, config;
        size_t values = 0;
        const H5Z_filter_t filter = H5Pget_filter2(
            creation, (unsigned)i, &flags, &values, NULL, 0, NULL, &config);

        /* Any other one would make HDF5 look for a plugin to load. */
        if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
            filter != H5Z_FILTER_FLETCHER32)
            return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                                 "'%s' in model.weights.h5 is packed by filter "
                                 "number %d; only deflate is read",
                                 path, (int)filter);
    }
    return count >= 0
               ? CELLGATE_OK
               : cellgate_fail(error, CELLGATE_BAD_FILE,
                               "'%s' in model.weights.h5 is damaged", path);
}

static cellgate_status check_layout(hid_t dataset, const char *path,
                                    cellgate_error *error)
{
    const hid_t creation = H5Dget_create_plist(dataset);
    cellgate_status status;

    if (creation < 0)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "'%s' in model.weights.h5 is damaged", path);
    if (H5Pget_layout(creation) == H5D_VIRTUAL ||
        H5Pget_external_count(creation) != 0)
        status = cellgate_fail(error, CELLGATE_BAD_FILE,
                               "the data of '%s' in model.weights.h5 lies in "
                               "another file; that is refused",
                               path);
    else
        status = check_filters(creation, path, error);
    (void)H5Pclose(creation);
    return status;
}

static cellgate_status check_shape(hid_t dataset, const char *path,
                                   int32_t rank, const int64_t *shape,
                                   cellgate_error *error)
{
    const hid_t space = H5Dget_space(dataset);
    hsize_t extents[H5S_MAX_RANK] = { 0 };
    const int found =
        space >= 0 ? H5Sget_simple_extent_dims(space, extents, NULL) : -1;
    bool same = found == rank;
    cellgate_status status = CELLGATE_OK;

    for (int32_t axis = 0; same && axis < rank; axis++)
        same = extents[axis] == (hsize_t)shape[axis];
    if (!same && found == 2 && rank == 2)
        status = cellgate_fail(
            error, CELLGATE_BAD_FILE,
            "'%s' in model.weights.h5 is %llu x %llu; the layer needs "
            "%lld x %lld",
            path, (unsigned long long)extents[0],
            (unsigned long long)extents[1], (long long)shape[0],
            (long long)shape[1]);
    else if (!same)
        status = cellgate_fail(error, CELLGATE_BAD_FILE,
                               "'%s' in model.weights.h5 has %d axes, the "
                               "first of extent %llu; the layer needs %d, the "
                               "first of extent %lld",
                               path, found, (unsigned long long)extents[0],
                               (int)rank, (long long)shape[0]);
    if (space >= 0)
        (void)H5Sclose(space);
    return status;
}

static hsize_t count_elements(int32_t rank, const hsize_t *shape)
{
    hsize_t elements = 1;

    for (int32_t axis = 0; axis < rank; axis++)
        if (__builtin_mul_overflow(elements, shape[axis], &elements))
            return (hsize_t)-1;
    return elements;
}

/* HDF5 unpacks whole chunks, and one may be larger than its dataset. */
static hsize_t chunk_elements(hid_t creation, int32_t rank)
{
    hsize_t shape[H5S_MAX_RANK];

    if (H5Pget_layout(creation) != H5D_CHUNKED)
        return 0;
    return H5Pget_chunk(creation, H5S_MAX_RANK, shape) == rank
               ? count_elements(rank, shape)
               : (hsize_t)-1;
}

/*
 * A dataset may claim any size without storing a byte of it. The bytes stored
 * must account for the elements (deflate packs 1032 to 1 at best).
 */
static bool is_stored(hid_t dataset, int32_t rank, hsize_t elements,
                      hsize_t stored)
{
    const hid_t creation = H5Dget_create_plist(dataset);
    hsize_t chunk, most;

    if (creation < 0)
        return false;
    chunk = chunk_elements(creation, rank);
    most = H5Pget_nfilters(creation) > 0 ? 1100 : 1;
    (void)H5Pclose(creation);
    return elements / most <= stored &&
           (chunk <= elements || chunk <= UNPACKED_FREE / sizeof(float));
}

/*
 * The bytes stored of all datasets together fit into the file. Trained weights
 * hardly pack: what unpacks to many times the file is a bomb.
 */
static cellgate_status check_storage(cg_h5 *h5, hid_t dataset, const char *path,
                                     int32_t rank, const int64_t *shape,
                                     cellgate_error *error)
{
    const hsize_t stored = H5Dget_storage_size(dataset);
    const hsize_t elements = count_elements(rank, (const hsize_t *)shape);

    h5->read += stored < h5->size ? stored : h5->size;
    if (stored > h5->size || h5->read > h5->size ||
        !is_stored(dataset, rank, elements, stored))
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "'%s' in model.weights.h5 claims more data than "
                             "the file holds",
                             path);
    h5->unpacked += elements * sizeof(float);
    if (h5->unpacked > UNPACKED_FREE && h5->unpacked / UNPACKED_MOST > h5->size)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "with '%s', model.weights.h5 unpacks from %zu to "
                             "%llu bytes: refused as a decompression bomb",
                             path, h5->size, (unsigned long long)h5->unpacked);
    return CELLGATE_OK;
}

cellgate_status cg_h5_check(cg_h5 *h5, const char *path, int32_t rank,
                            const int64_t *shape, cellgate_error *error)
{
    const hid_t dataset = open_dataset(h5, path, error);
    cellgate_status status;

    if (dataset < 0)
        return CELLGATE_BAD_FILE;
    status = check_shape(dataset, path, rank, shape, error);
    if (status == CELLGATE_OK)
        status = check_layout(dataset, path, error);
    if (status == CELLGATE_OK)
        status = check_storage(h5, dataset, path, rank, shape, error);
    (void)H5Oclose(dataset);
    return status;
}

/* ---- Data --------------------------------------------------------------- */

/* h5py stores NumPy's bfloat16 as two opaque bytes beside an attribute. */
static bool says_bfloat16(hid_t dataset)
{
    char *text = NULL;
    bool says = false;
    const hid_t attribute = H5Aexists(dataset, "dtype") > 0
                                ? H5Aopen(dataset, "dtype", H5P_DEFAULT)
                                : -1;
    hid_t type, space;

    if (attribute < 0)
        return false;
    type = H5Aget_type(attribute);
    space = H5Aget_space(attribute);
    if (type >= 0 && space >= 0 && H5Tis_variable_str(type) > 0 &&
        H5Sget_simple_extent_npoints(space) == 1 &&
        H5Aread(attribute, type, &text) >= 0) {
        says = text != NULL && strcmp(text, "bfloat16") == 0;
        (void)H5Dvlen_reclaim(type, space, H5P_DEFAULT, &text);
    }
    if (space >= 0)
        (void)H5Sclose(space);
    if (type >= 0)
        (void)H5Tclose(type);
    (void)H5Aclose(attribute);
    return says;
}

/* Widens in place: the bfloat16 values lie in the second half of `data`. */
static bool read_bfloat16(hid_t dataset, hid_t type, size_t elements,
                          float *data)
{
    unsigned char *half = (unsigned char *)data + elements * (sizeof *data - 2);

    if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, half) < 0)
        return false;
    for (size_t i = 0; i < elements; i++) {
        uint16_t bits;
        uint32_t wide;

        memcpy(&bits, half + 2 * i, sizeof bits);
        wide = (uint32_t)bits << 16;
        memcpy(&data[i], &wide, sizeof wide);
    }
    return true;
}

cellgate_status cg_h5_read(cg_h5 *h5, const char *path, size_t elements,
                           float *data, cellgate_error *error)
{
    const hid_t dataset = open_dataset(h5, path, error);
    hid_t type;
    bool taken = false, done = false;

    if (dataset < 0)
        return CELLGATE_BAD_FILE;
    type = H5Dget_type(dataset);
    if (type >= 0 && H5Tget_class(type) == H5T_FLOAT) {
        taken = true;
        done = H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                       data) >= 0;
    } else if (type >= 0 && H5Tget_class(type) == H5T_OPAQUE &&
               H5Tget_size(type) == 2 && says_bfloat16(dataset)) {
        taken = true;
        done = read_bfloat16(dataset, type, elements, data);
    }
    if (type >= 0)
        (void)H5Tclose(type);
    (void)H5Oclose(dataset);
    if (!taken)
        return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                             "'%s' in model.weights.h5 is not of a floating-"
                             "point type",
                             path);
    return done ? CELLGATE_OK
                : cellgate_fail(error, CELLGATE_BAD_FILE,
                                "the data of '%s' in model.weights.h5 cannot "
                                "be read",
                                path);
}

#else /* without HDF5 */

cellgate_status cg_h5_open(const void *image, size_t size, const char *name,
                           cg_h5 **h5, cellgate_error *error)
{
    (void)image, (void)size, (void)name, (void)h5;
    return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                         "this libcellgate was built without HDF5, in which "
                         "Keras stores weights; build it with --with-hdf5=yes, "
                         "or convert the model elsewhere (cellgate convert)");
}

void cg_h5_close(cg_h5 *h5)
{
    (void)h5;
}

bool cg_h5_has(cg_h5 *h5, const char *path)
{
    (void)h5, (void)path;
    return false;
}

cellgate_status cg_h5_check(cg_h5 *h5, const char *path, int32_t rank,
                            const int64_t *shape, cellgate_error *error)
{
    (void)h5, (void)path, (void)rank, (void)shape;
    return cellgate_fail(error, CELLGATE_UNSUPPORTED, "built without HDF5");
}

cellgate_status cg_h5_read(cg_h5 *h5, const char *path, size_t elements,
                           float *data, cellgate_error *error)
{
    (void)h5, (void)path, (void)elements, (void)data;
    return cellgate_fail(error, CELLGATE_UNSUPPORTED, "built without HDF5");
}

#endif
