/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keras models in HDF5 files: a whole model, or its weights with the
 * architecture in a JSON file beside them.
 */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>

#include "runtime/formats/formats.h"
#include "runtime/formats/json_text.h"
#include "runtime/formats/keras.h"
#include "runtime/formats/keras_beside.h"

#define MOST_JSON (1u << 24) /* bytes; in memory it takes up to 50 times */

/* What is being read; all of it is released by parts_finish(). */
typedef struct parts {
    const char *path;      /* the caller's, of the model */
    const char *json_name; /* of the architecture, for messages */
    const char *weights_name;
    char *image;
    size_t size;
    cg_h5 *h5;
    json_t *config;
    char *version;
} parts;

static void parts_finish(parts *of)
{
    cg_h5_close(of->h5);
    free(of->image);
    free(of->version);
    json_decref(of->config);
}

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while reading the model");
}

/* ---- The two files ------------------------------------------------------- */

static bool is_hdf5(const cg_source *source)
{
    static const char magic[] = "\211HDF\r\n\032\n";

    return source->head_size >= sizeof magic - 1 &&
           memcmp(source->head, magic, sizeof magic - 1) == 0;
}

/* {"..." : no other format that is read begins so. */
static bool is_json(const cg_source *source)
{
    size_t at = 1;

    if (source->head_size == 0 || source->head[0] != '{')
        return false;
    while (at < source->head_size && isspace(source->head[at]))
        at++;
    return at < source->head_size && source->head[at] == '"';
}

static cellgate_status open_hdf5(const cg_source *source, parts *of,
                                 cellgate_error *error)
{
    cellgate_status status;

    if (!is_hdf5(source))
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "this is not an HDF5 file of weights");
    status = cg_source_read(source, UINT64_MAX, &of->image, error);
    of->size = (size_t)source->size;
    return status == CELLGATE_OK ? cg_h5_open(of->image, of->size,
                                              of->weights_name, &of->h5, error)
                                 : status;
}

static cellgate_status parse_json(const cg_source *source, parts *of,
                                  cellgate_error *error)
{
    char *text = NULL;
    cellgate_status status = cg_source_read(source, MOST_JSON, &text, error);

    if (status == CELLGATE_OK)
        status = cg_json_parse(of->json_name, text, (size_t)source->size,
                               &of->config, error);
    free(text);
    return status;
}

typedef cellgate_status (*part_reader)(const cg_source *source, parts *of,
                                       cellgate_error *error);

/* The other file; what goes wrong there begins with its path. */
static cellgate_status read_other(const char *path, part_reader read, parts *of,
                                  cellgate_error *error)
{
    cellgate_error inner = CELLGATE_ERROR_INIT;
    cg_source source;
    cellgate_status status = cg_source_open(path, &source, &inner);

    if (status == CELLGATE_OK) {
        status = read(&source, of, &inner);
        cg_source_close(&source);
    }
    return status == CELLGATE_OK
               ? status
               : cellgate_fail(error, status, "%.200s: %s", path, inner.text);
}

/* ---- Versions ------------------------------------------------------------ */

/* One text; NOT_FOUND if it is not there. */
static cellgate_status get_text(cg_h5 *h5, const char *path, const char *name,
                                const char **text, cellgate_error *error)
{
    cg_h5_strings texts;
    const cellgate_status status = cg_h5_texts(h5, path, name, &texts, error);

    if (status != CELLGATE_OK)
        return status;
    if (texts.count != 1)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "the attribute '%s' is not one text", name);
    *text = texts.items[0];
    return CELLGATE_OK;
}

static cellgate_status weights_version(cg_h5 *h5, const char **version,
                                       cellgate_error *error)
{
    cellgate_status status = get_text(h5, "", "keras_version", version, error);

    if (status == CELLGATE_NOT_FOUND && cg_h5_has(h5, "model_weights"))
        status = get_text(h5, "model_weights", "keras_version", version, error);
    return status;
}

/*
 * model.to_json() says the version in Keras 1 and 2, the weights' file in any
 * legacy form since 1.0.4. Neither does for Keras 3's new layout, which a
 * configuration of Keras 3 gives away by naming modules.
 */
static cellgate_status find_version(parts *of, cellgate_error *error)
{
    const char *version =
        json_string_value(json_object_get(of->config, "keras_version"));
    cellgate_status status = CELLGATE_OK;

    if (version == NULL)
        status = weights_version(of->h5, &version, error);
    if (status == CELLGATE_NOT_FOUND) {
        version = json_object_get(of->config, "module") != NULL ? "3" : "1";
        status = CELLGATE_OK;
    }
    if (status != CELLGATE_OK)
        return status;
    of->version = strdup(version);
    return of->version != NULL ? CELLGATE_OK : no_memory(error);
}

static cellgate_status assemble(parts *of, cellgate_model **model,
                                cellgate_error *error)
{
    cg_keras_file file = { .path = of->path,
                           .config = of->config,
                           .weights_name = of->weights_name,
                           .weights_size = of->size };
    cellgate_status status = find_version(of, error);

    file.version = of->version;
    return status == CELLGATE_OK
               ? cg_keras_assemble(&file, of->h5, model, error)
               : status;
}

/* ---- An HDF5 file -------------------------------------------------------- */

static cellgate_status find_config(parts *of, const char *path,
                                   cellgate_error *error)
{
    const char *root, *text = NULL;
    bool by_order = false;
    char *json = NULL;
    cellgate_status status = get_text(of->h5, "", "model_config", &text, error);

    if (status == CELLGATE_OK)
        return cg_json_parse("model_config", text, strlen(text), &of->config,
                             error);
    if (status != CELLGATE_NOT_FOUND)
        return status;
    status = cg_keras_layout(of->h5, &root, &by_order, error);
    if (status == CELLGATE_OK && !by_order && !cg_h5_has(of->h5, "layers") &&
        !cg_h5_has(of->h5, "_layer_checkpoint_dependencies"))
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "this HDF5 file holds neither a Keras model nor "
                             "weights of one");
    if (status == CELLGATE_OK)
        status = cg_keras_find_json(path, &json, error);
    if (status == CELLGATE_OK)
        status = read_other(json, parse_json, of, error);
    free(json);
    return status;
}

cellgate_status cg_keras_read_hdf5(const cg_source *source,
                                   cellgate_model **model,
                                   cellgate_error *error)
{
    parts of = { .path = source->path,
                 .json_name = "the architecture",
                 .weights_name = "the file" };
    cellgate_status status;

    if (!is_hdf5(source))
        return CELLGATE_NOT_FOUND;
    status = open_hdf5(source, &of, error);
    if (status == CELLGATE_OK)
        status = find_config(&of, source->path, error);
    if (status == CELLGATE_OK)
        status = assemble(&of, model, error);
    parts_finish(&of);
    return status;
}

/* ---- A JSON file --------------------------------------------------------- */

cellgate_status cg_keras_read_json(const cg_source *source,
                                   cellgate_model **model,
                                   cellgate_error *error)
{
    parts of = { .path = source->path, .json_name = "the file" };
    char *weights = NULL;
    cellgate_status status;

    if (!is_json(source))
        return CELLGATE_NOT_FOUND;
    status = parse_json(source, &of, error);
    if (status == CELLGATE_OK &&
        json_object_get(of.config, "class_name") == NULL)
        status = cellgate_fail(error, CELLGATE_BAD_FILE,
                               "this JSON file is not the architecture of a "
                               "Keras model: it has no class_name");
    if (status == CELLGATE_OK)
        status = cg_keras_find_weights(source->path, &weights, error);
    if (status == CELLGATE_OK) {
        of.weights_name = weights;
        status = read_other(weights, open_hdf5, &of, error);
    }
    if (status == CELLGATE_OK)
        status = assemble(&of, model, error);
    parts_finish(&of);
    free(weights);
    return status;
}
