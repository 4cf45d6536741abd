/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/unit/keras_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hdf5.h>
#include <zip.h>

#include "tests/unit/scratch_folder.h"

static void write_weight(hid_t file, const keras_weight *weight)
{
    hsize_t shape[3];
    size_t count = 1;
    hid_t links = H5Pcreate(H5P_LINK_CREATE), space, dataset;
    float *data;

    for (int axis = 0; axis < weight->rank; axis++) {
        shape[axis] = (hsize_t)weight->shape[axis];
        count *= (size_t)weight->shape[axis];
    }
    data = malloc(count * sizeof *data);
    assert_non_null(data);
    for (size_t i = 0; i < count; i++)
        data[i] = 0.01f * (float)(i + 1);
    assert_true(H5Pset_create_intermediate_group(links, 1) >= 0);
    space = H5Screate_simple(weight->rank, shape, NULL);
    dataset = H5Dcreate2(file, weight->path, H5T_IEEE_F32LE, space, links,
                         H5P_DEFAULT, H5P_DEFAULT);
    assert_true(dataset >= 0);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL,
                         H5P_DEFAULT, data) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(links);
    free(data);
}

unsigned char *keras_weights_image(const keras_weight *weights, size_t *size)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file;
    unsigned char *image;
    ssize_t needed;

    assert_true(H5Pset_fapl_core(access, 4096, 0) >= 0);
    file = H5Fcreate("keras_file", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    assert_true(file >= 0);
    for (; weights != NULL && weights->path != NULL; weights++)
        write_weight(file, weights);
    assert_true(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    needed = H5Fget_file_image(file, NULL, 0);
    assert_true(needed > 0);
    image = malloc((size_t)needed);
    assert_non_null(image);
    assert_true(H5Fget_file_image(file, image, (size_t)needed) == needed);
    H5Fclose(file);
    H5Pclose(access);
    *size = (size_t)needed;
    return image;
}

/* A copy, which the archive frees. */
static void add_member(zip_t *zip, const char *name, const void *data,
                       size_t size)
{
    /* libzip forgets to free a copy of no bytes. */
    void *copy = size != 0 ? malloc(size) : NULL;
    zip_source_t *source;
    zip_int64_t number;

    if (size != 0) {
        assert_non_null(copy);
        memcpy(copy, data, size);
    }
    source = zip_source_buffer(zip, copy, size, 1);
    assert_non_null(source);
    number = zip_file_add(zip, name, source, 0);
    assert_true(number >= 0);
    assert_int_equal(
        zip_set_file_compression(zip, (zip_uint64_t)number, ZIP_CM_STORE, 0),
        0);
}

const char *keras_file_write(const char *version, const char *config,
                             const keras_weight *weights)
{
    const char *path = scratch_path("model.keras");
    char *text = strdup(config), metadata[100];
    unsigned char *image;
    size_t size;
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);

    assert_non_null(zip);
    assert_non_null(text);
    for (char *at = text; *at != '\0'; at++)
        if (*at == '\'')
            *at = '"';
    snprintf(metadata, sizeof metadata, "{\"keras_version\": \"%s\"}", version);
    image = keras_weights_image(weights, &size);
    add_member(zip, "metadata.json", metadata, strlen(metadata));
    add_member(zip, "config.json", text, strlen(text));
    add_member(zip, "model.weights.h5", image, size);
    assert_int_equal(zip_close(zip), 0);
    free(image);
    free(text);
    return path;
}

cellgate_status keras_file_load(const char *config, const keras_weight *weights,
                                cellgate_model **model, cellgate_error *error)
{
    *model = NULL;
    return cellgate_model_load(keras_file_write("3.15.1", config, weights),
                               model, error);
}

void keras_file_refuses(const char *config, const keras_weight *weights,
                        cellgate_status status, const char *part,
                        const char *file, int line)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model;
    const cellgate_status got =
        keras_file_load(config, weights, &model, &error);

    cellgate_model_destroy(model);
    if (got != status || strstr(error.text, part) == NULL) {
        print_error("%s: %s, not %s with '%s'\n", cellgate_status_name(got),
                    error.text, cellgate_status_name(status), part);
        _fail(file, line);
    }
}
