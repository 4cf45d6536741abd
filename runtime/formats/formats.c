/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "runtime/formats/formats.h"

/* Tried in this order. */
static const cg_reader readers[] = { cg_keras_read, cg_keras_read_hdf5,
                                     cg_native_read, cg_keras_read_json };

/* ---- What no reader takes ---------------------------------------------- */

/* A format known by the bytes at `offset`, and what to do about it. */
typedef struct cg_stranger {
    const char *bytes;
    size_t size;
    size_t offset;
    const char *what;
} cg_stranger;

#define STRANGER(bytes, offset, what)                                          \
    {                                                                          \
        bytes, sizeof(bytes) - 1, offset, what                                 \
    }

static const cg_stranger strangers[] = {
    STRANGER("TFL3", 4,
             "a TensorFlow Lite file, which holds a model compiled for another "
             "runtime; save the Keras model it was made from as .keras"),
    STRANGER("\200\002", 0, "a Python pickle"),
    STRANGER("\200\003", 0, "a Python pickle"),
    STRANGER("\200\004", 0, "a Python pickle"),
    STRANGER("\200\005", 0, "a Python pickle"),
    STRANGER("\223NUMPY", 0,
             "a NumPy array, not a model: is it meant as an --input?"),
};

static const char pickle_advice[] =
    ": reading one can run any code, so Cellgate never does; rebuild the model "
    "in Keras with these weights and save it as .keras";

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);

    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* ONNX has no magic number: a protobuf whose first field is ir_version. */
static bool looks_like_onnx(const cg_source *source)
{
    return source->head_size >= 3 && source->head[0] == 0x08 &&
           source->head[1] < 0x40 &&
           (source->head[2] == 0x12 || source->head[2] == 0x3a ||
            ends_with(source->path, ".onnx"));
}

static cellgate_status fail_strange(const cg_source *source,
                                    cellgate_error *error)
{
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        const cg_stranger *stranger = &strangers[i];

        if (source->head_size < stranger->offset + stranger->size ||
            memcmp(source->head + stranger->offset, stranger->bytes,
                   stranger->size) != 0)
            continue;
        return cellgate_fail(error, CELLGATE_UNSUPPORTED, "this is %s%s",
                             stranger->what,
                             source->head[0] == 0x80 ? pickle_advice : "");
    }
    if (looks_like_onnx(source))
        return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                             "this is an ONNX file, which this version doesn't "
                             "read; if the model comes from Keras, save it as "
                             ".keras");
    if (source->size == 0)
        return cellgate_fail(error, CELLGATE_BAD_FILE, "the file is empty");
    return cellgate_fail(error, CELLGATE_BAD_FILE,
                         "this is neither a Keras file (.keras, .h5, or the "
                         ".json of an architecture) nor a native Cellgate "
                         "file");
}

/* ---- Opening ------------------------------------------------------------ */

static cellgate_status read_model(const cg_source *source,
                                  cellgate_model **model, cellgate_error *error)
{
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        const cellgate_status status = readers[i](source, model, error);

        if (status != CELLGATE_NOT_FOUND)
            return status;
    }
    return fail_strange(source, error);
}

static cellgate_status load(const char *path, cellgate_model **model,
                            cellgate_error *error)
{
    cg_source source;
    cellgate_status status = cg_source_open(path, &source, error);

    if (status != CELLGATE_OK)
        return status;
    status = read_model(&source, model, error);
    cg_source_close(&source);
    return status;
}

/* ---- The public functions ----------------------------------------------- */

/* Puts the path in front; a long path gives way to the text. */
static cellgate_status name_file(const char *path, const cellgate_error *inner,
                                 cellgate_status status, cellgate_error *error)
{
    size_t length = strlen(path);
    bool named =
        strncmp(inner->text, path, length) == 0 && inner->text[length] == ':';

    if (error != NULL && named) {
        *error = *inner;
    } else if (error != NULL) {
        const size_t room = sizeof error->text - 160;

        (void)cellgate_fail(error, status, "%.*s: %s", (int)room, path,
                            inner->text);
        error->reason = inner->reason;
        error->vendor_code = inner->vendor_code;
    }
    return status;
}

cellgate_status cellgate_model_load(const char *path, cellgate_model **model,
                                    cellgate_error *error)
{
    cellgate_error inner = CELLGATE_ERROR_INIT;
    cellgate_status status;

    if (path == NULL || model == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "cellgate_model_load() needs a path and a model");
    status = load(path, model, &inner);
    return status == CELLGATE_OK ? status
                                 : name_file(path, &inner, status, error);
}

cellgate_status cellgate_model_save(const cellgate_model *model,
                                    const char *path, cellgate_error *error)
{
    cellgate_error inner = CELLGATE_ERROR_INIT;
    cellgate_status status;

    if (path == NULL || model == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "cellgate_model_save() needs a model and a path");
    status = cg_native_write(model, path, &inner);
    return status == CELLGATE_OK ? status
                                 : name_file(path, &inner, status, error);
}
