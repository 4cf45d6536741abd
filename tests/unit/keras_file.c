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
#include <zip.h>

#include "tests/unit/h5_image.h"
#include "tests/unit/scratch_folder.h"

#define MAX_WEIGHTS 64

static h5_image_dataset make_dataset(const keras_weight *weight)
{
    h5_image_dataset dataset = { .path = weight->path, .rank = weight->rank };
    size_t count = 1;
    float *data;

    for (int axis = 0; axis < weight->rank; axis++) {
        dataset.shape[axis] = (uint64_t)weight->shape[axis];
        count *= (size_t)weight->shape[axis];
    }
    data = malloc(count * sizeof *data + 1);
    assert_non_null(data);
    for (size_t i = 0; i < count; i++)
        data[i] = 0.01f * (float)(i + 1);
    dataset.data = data;
    return dataset;
}

unsigned char *keras_weights_image(const keras_weight *weights, size_t *size)
{
    h5_image_dataset datasets[MAX_WEIGHTS + 1] = { 0 };
    size_t count = 0;
    unsigned char *image;

    for (; weights != NULL && weights->path != NULL; weights++) {
        assert_in_range(count, 0, MAX_WEIGHTS - 1);
        datasets[count++] = make_dataset(weights);
    }
    image = h5_image(datasets, size);
    while (count > 0)
        free((void *)(uintptr_t)datasets[--count].data);
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
