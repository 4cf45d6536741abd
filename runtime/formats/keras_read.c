/* SPDX-License-Identifier: Apache-2.0 */
/* A model of its configuration and its weights, whatever file they lie in. */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>

#include "runtime/formats/keras_source.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while reading the model");
}

/* ---- Versions ------------------------------------------------------------ */

/* "2.2.4-tf" -> 2, 2 */
static bool parse_version(const char *text, int *major, int *minor)
{
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return false;
    *major = (int)strtol(text, &end, 10);
    *minor = 0;
    if (end[0] == '.' && isdigit((unsigned char)end[1]))
        *minor = (int)strtol(end + 1, NULL, 10);
    return true;
}

static cellgate_status read_version(cg_keras_reader *reader,
                                    const char *version, cellgate_error *error)
{
    if (!parse_version(version, &reader->keras_major, &reader->keras_minor))
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "'%.20s' is not a keras_version", version);
    reader->keras_version = version;
    if (reader->keras_major >= 1 && reader->keras_major <= 3)
        return CELLGATE_OK;
    return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                         "the file is of Keras %.20s; versions 1 to 3 are "
                         "supported",
                         version);
}

/* ---- Building ------------------------------------------------------------ */

static void reader_finish(cg_keras_reader *reader)
{
    json_decref(reader->loaded);
    json_decref(reader->steps_first);
    json_decref(reader->shared);
    json_decref(reader->names);
    json_decref(reader->made);
    free(reader->weights);
    free(reader->shapes);
    free(reader->claimed);
    free(reader->declared);
    cellgate_model_destroy(reader->model);
}

size_t cg_keras_most_numbers(const cg_keras_file *file)
{
    const size_t size = file->weights_size;

    return size < (1u << 26) / 20 ? 1u << 24 : size * 5;
}

cellgate_status cg_keras_build(const cg_keras_file *file,
                               cg_keras_source *source, cellgate_model **model,
                               cellgate_error *error)
{
    cg_keras_reader reader = { .source = source,
                               .derivable = cg_keras_most_numbers(file),
                               .loaded = json_object(),
                               .steps_first = json_object(),
                               .shared = json_object(),
                               .names = json_object(),
                               .made = json_object() };
    cellgate_status status = CELLGATE_OK;

    if (reader.loaded == NULL || reader.steps_first == NULL ||
        reader.shared == NULL || reader.names == NULL || reader.made == NULL)
        status = no_memory(error);
    if (status == CELLGATE_OK)
        status = read_version(&reader, file->version, error);
    if (status == CELLGATE_OK)
        status = cg_model_create(file->path, "keras", file->version,
                                 &reader.model, error);
    if (status == CELLGATE_OK)
        status = cg_keras_find_shared(reader.shared, file->config, error);
    if (status == CELLGATE_OK)
        status =
            cg_keras_find_steps_first(reader.steps_first, file->config, error);
    if (status == CELLGATE_OK)
        status = cg_keras_build_top(&reader, file->config, error);
    if (status == CELLGATE_OK) {
        *model = reader.model;
        reader.model = NULL;
    }
    reader_finish(&reader);
    return status;
}

/* ---- Weights ------------------------------------------------------------- */

/* Whether the group is of a file in which layers have groups in order. */
static cellgate_status is_by_order(cg_h5 *h5, const char *root, bool *is,
                                   cellgate_error *error)
{
    static const char *const names[] = { "layer_names", "layer_names0" };
    cg_h5_strings texts;

    *is = false;
    if (!cg_h5_has(h5, root))
        return CELLGATE_OK;
    for (size_t i = 0; i < 2; i++) {
        const cellgate_status status =
            cg_h5_texts(h5, root, names[i], &texts, error);

        if (status == CELLGATE_OK)
            *is = true;
        if (status != CELLGATE_NOT_FOUND)
            return status;
    }
    return CELLGATE_OK;
}

cellgate_status cg_keras_layout(cg_h5 *h5, const char **root, bool *by_order,
                                cellgate_error *error)
{
    static const char *const roots[] = { "model_weights", "" };
    cellgate_status status = CELLGATE_OK;

    *by_order = false;
    for (size_t i = 0; status == CELLGATE_OK && !*by_order && i < 2; i++) {
        *root = roots[i];
        status = is_by_order(h5, *root, by_order, error);
    }
    return status;
}

static cellgate_status open_weights(const cg_keras_file *file, cg_h5 *h5,
                                    cg_keras_source **source,
                                    cellgate_error *error)
{
    const char *root = "";
    bool by_order = false;
    cellgate_status status = cg_keras_layout(h5, &root, &by_order, error);

    if (status != CELLGATE_OK)
        return status;
    return by_order ? cg_keras_by_order(h5, root, file, source, error)
                    : cg_keras_by_path(h5, file, source, error);
}

cellgate_status cg_keras_assemble(const cg_keras_file *file, cg_h5 *h5,
                                  cellgate_model **model, cellgate_error *error)
{
    cg_keras_source *source = NULL;
    cellgate_model *made = NULL;
    cellgate_status status =
        cg_keras_upgrade(file->config, file->version, error);

    if (status == CELLGATE_OK)
        status = open_weights(file, h5, &source, error);
    if (status == CELLGATE_OK)
        status = cg_keras_build(file, source, &made, error);
    if (source != NULL)
        source->destroy(source);
    if (status == CELLGATE_OK)
        status = cg_model_finish(made, error);
    if (status == CELLGATE_OK)
        *model = made;
    else
        cellgate_model_destroy(made);
    return status;
}
