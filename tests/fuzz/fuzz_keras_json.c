/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.json of a .keras file, or the JSON of Keras 1 or 2. Weights are
 * whatever the layers ask for: the functions of h5.h are replaced (by the
 * linker) with ones that have every dataset, of small sizes, so that changed
 * models load and run.
 */
#include "config.h"

#include <jansson.h>
#include <string.h>

#include "runtime/formats/json_text.h"
#include "runtime/formats/keras.h"
#include "tests/fuzz/model_use.h"
#include "tests/fuzz/target.h"

const char fuzz_target[] = "keras_json";

#define WEIGHTS_MOST (1 << 18) /* elements, of all datasets of a model */

/* ---- In place of h5.c ---------------------------------------------------- */

static int64_t elements_left;

cellgate_status __wrap_cg_h5_open(const void *image, size_t size,
                                  const char *name, cg_h5 **h5,
                                  cellgate_error *error);
void __wrap_cg_h5_close(cg_h5 *h5);
bool __wrap_cg_h5_has(cg_h5 *h5, const char *path);
cellgate_status __wrap_cg_h5_texts(cg_h5 *h5, const char *path,
                                   const char *name, cg_h5_strings *texts,
                                   cellgate_error *error);
cellgate_status __wrap_cg_h5_check(cg_h5 *h5, const char *path, int32_t rank,
                                   const int64_t *shape, cellgate_error *error);
cellgate_status __wrap_cg_h5_read(cg_h5 *h5, const char *path, size_t elements,
                                  float *data, cellgate_error *error);

/* No attributes: weights lie at paths. */
cellgate_status __wrap_cg_h5_texts(cg_h5 *h5, const char *path,
                                   const char *name, cg_h5_strings *texts,
                                   cellgate_error *error)
{
    (void)h5, (void)path, (void)name, (void)texts, (void)error;
    return CELLGATE_NOT_FOUND;
}

cellgate_status __wrap_cg_h5_open(const void *image, size_t size,
                                  const char *name, cg_h5 **h5,
                                  cellgate_error *error)
{
    (void)image, (void)size, (void)name, (void)error;
    *h5 = (cg_h5 *)&elements_left;
    elements_left = WEIGHTS_MOST;
    return CELLGATE_OK;
}

void __wrap_cg_h5_close(cg_h5 *h5)
{
    (void)h5;
}

/* Groups; no weights beyond those that are asked for. */
bool __wrap_cg_h5_has(cg_h5 *h5, const char *path)
{
    (void)h5;
    return strstr(path, "/vars/") == NULL;
}

cellgate_status __wrap_cg_h5_check(cg_h5 *h5, const char *path, int32_t rank,
                                   const int64_t *shape, cellgate_error *error)
{
    int64_t elements = 1;

    (void)h5;
    for (int32_t axis = 0; axis < rank; axis++) {
        FUZZ_REQUIRE(shape[axis] >= 0);
        if (shape[axis] > elements_left ||
            (elements *= shape[axis]) > elements_left)
            return cellgate_fail(error, CELLGATE_BAD_FILE, "'%s' is too large",
                                 path);
    }
    return CELLGATE_OK;
}

cellgate_status __wrap_cg_h5_read(cg_h5 *h5, const char *path, size_t elements,
                                  float *data, cellgate_error *error)
{
    (void)h5, (void)path, (void)error;
    FUZZ_REQUIRE((int64_t)elements <= elements_left);
    elements_left -= (int64_t)elements;
    for (size_t i = 0; i < elements; i++)
        data[i] = (float)(i % 7) * 0.125f - 0.25f;
    return CELLGATE_OK;
}

/* ---- The target ---------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cg_keras_file file = { .path = "model.keras",
                           .weights_name = "model.weights.h5",
                           .weights_size = WEIGHTS_MOST * sizeof(float) };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = NULL;
    cg_h5 *h5 = NULL;
    char version[64] = "3.15.1";
    const char *said;
    cellgate_status status = cg_json_parse("config.json", (const char *)data,
                                           size, &file.config, &error);

    if (status == CELLGATE_OK) {
        /* Where Keras 1 and 2 say it. */
        said = json_string_value(json_object_get(file.config, "keras_version"));
        if (said != NULL)
            (void)snprintf(version, sizeof version, "%s", said);
        file.version = version;
        (void)cg_h5_open(NULL, 0, "", &h5, NULL);
        status = cg_keras_assemble(&file, h5, &model, &error);
    }
    fuzz_check_error(status, &error);
    FUZZ_REQUIRE((status == CELLGATE_OK) == (model != NULL));
    if (model != NULL)
        fuzz_use_model(model);
    cellgate_model_destroy(model);
    json_decref(file.config);
    return 0;
}
