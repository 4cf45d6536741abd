/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras_source.h"

typedef struct by_path {
    cg_keras_source source;
    cg_h5 *h5;
    json_t *old; /* paths of layers -> those in a file of 2.13; else NULL */
} by_path;

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while reading the weights");
}

/* ---- Keras 2.13 ---------------------------------------------------------- */

/*
 * Before version 2.14 the group of a model's layers was called by another name,
 * and held each layer with weights twice: once as such, once as a layer. It was
 * saved once, and counted both times: lstm, lstm_2, lstm_4 ...
 */
static const char old_layers[] = "_layer_checkpoint_dependencies";

/* The layers of one model. */
typedef struct renaming {
    json_t *old;
    const json_t *shared;
    const cg_keras_survey *survey;
    const char *base; /* path of the model in the file: "", "x/y" */
    json_t *counts;   /* of classes so far */
} renaming;

static bool has_weights(const renaming *to, const json_t *layer,
                        const char *path)
{
    const char *saved = cg_keras_saved_path(to->shared, layer, path);
    const size_t at = cg_keras_first_asked(to->survey, saved);
    const size_t length = strlen(saved);
    const char *group;

    if (at >= to->survey->count)
        return false;
    group = to->survey->items[at].group;
    return strncmp(group, saved, length) == 0 &&
           (group[length] == '\0' || group[length] == '/');
}

/* Malloc'ed; NULL if there is no memory. */
static char *old_path(renaming *to, const json_t *layer, bool twice)
{
    const size_t size = strlen(to->base) + sizeof old_layers + 2;
    char *base = malloc(size), *path = NULL, *again = NULL;

    if (base == NULL)
        return NULL;
    (void)snprintf(base, size, "%s%s%s/", to->base,
                   to->base[0] != '\0' ? "/" : "", old_layers);
    path = cg_keras_path(to->counts, base, layer);
    if (path != NULL && twice) {
        again = cg_keras_path(to->counts, base, layer);
        if (again == NULL) {
            free(path);
            path = NULL;
        }
    }
    free(again);
    free(base);
    return path;
}

static cellgate_status rename_layer(void *context, const json_t *layer,
                                    const char *path, int depth,
                                    cellgate_error *error)
{
    renaming *to = context;
    const cg_keras_class *class = cg_keras_find_class(layer);
    char *old = old_path(to, layer, has_weights(to, layer, path));
    renaming below = *to;
    cellgate_status status = CELLGATE_OK;

    if (old == NULL ||
        json_object_set_new(to->old, path, json_string(old)) != 0) {
        free(old);
        return no_memory(error);
    }
    if (class != NULL && (class->flags & CG_KERAS_MODEL)) {
        below.base = old;
        below.counts = json_object();
        status = below.counts != NULL
                     ? cg_keras_visit_layers(layer, path, depth + 1,
                                             rename_layer, &below, error)
                     : no_memory(error);
        json_decref(below.counts);
    }
    free(old);
    return status;
}

static cellgate_status rename_layers(by_path *from, const cg_keras_file *file,
                                     cellgate_error *error)
{
    cg_keras_survey survey;
    json_t *shared = json_object();
    renaming to = {
        .shared = shared, .survey = &survey, .base = "", .counts = json_object()
    };
    cellgate_status status = cg_keras_survey_model(file, &survey, error);

    from->old = json_object();
    to.old = from->old;
    if (status == CELLGATE_OK &&
        (shared == NULL || to.counts == NULL || to.old == NULL))
        status = no_memory(error);
    if (status == CELLGATE_OK)
        status = cg_keras_find_shared(shared, file->config, error);
    if (status == CELLGATE_OK)
        status = cg_keras_visit_layers(file->config, "", 0, rename_layer, &to,
                                       error);
    json_decref(shared);
    json_decref(to.counts);
    cg_keras_survey_finish(&survey);
    return status;
}

/* ---- Datasets ------------------------------------------------------------ */

/* Cuts `group` down to the path of a layer, and returns what it is in the file;
   NULL for a group of no layer. */
static const char *find_old(const by_path *from, char *group)
{
    const char *old = json_string_value(json_object_get(from->old, group));

    while (old == NULL) {
        char *slash = strrchr(group, '/');

        if (slash == NULL)
            return NULL;
        *slash = '\0';
        old = json_string_value(json_object_get(from->old, group));
    }
    return old;
}

/* Malloc'ed; NULL if there is no memory. */
static char *data_path(const by_path *from, const cg_keras_wanted *wanted)
{
    char *group = strdup(wanted->group), *path;
    const char *begin, *end = wanted->group;
    size_t size;

    if (group == NULL)
        return NULL;
    begin = from->old != NULL ? find_old(from, group) : NULL;
    if (begin != NULL)
        end += strlen(group);
    else
        begin = "";
    size = strlen(begin) + strlen(end) + 32;
    path = malloc(size);
    if (path != NULL)
        (void)snprintf(path, size, "%s%s/vars/%zu", begin, end, wanted->index);
    free(group);
    return path;
}

static cellgate_status load(cg_keras_source *source,
                            const cg_keras_wanted *wanted, cg_weight *weight,
                            cellgate_error *error)
{
    const by_path *from = (const by_path *)source;
    char *path = data_path(from, wanted);
    float *data = NULL;
    cellgate_status status;

    if (path == NULL)
        return no_memory(error);
    if (weight->rank < 0) {
        free(path);
        return CELLGATE_OK;
    }
    status = cg_h5_check(from->h5, path, weight->rank, weight->shape, error);
    if (status == CELLGATE_OK)
        status = cg_keras_new_data(wanted, weight, &data, error);
    if (status == CELLGATE_OK)
        status =
            cg_h5_read(from->h5, path, cg_keras_elements(weight), data, error);
    if (status == CELLGATE_OK)
        weight->data = data;
    free(path);
    return status;
}

static cellgate_status check_end(cg_keras_source *source,
                                 const cg_keras_wanted *end,
                                 cellgate_error *error)
{
    const by_path *from = (const by_path *)source;
    char *path = data_path(from, end);
    cellgate_status status = CELLGATE_OK;

    if (path == NULL)
        return no_memory(error);
    if (cg_h5_has(from->h5, path))
        status = cellgate_fail(error, CELLGATE_BAD_FILE,
                               "%s has more weights than its options account "
                               "for: '%s'",
                               source->name, path);
    free(path);
    return status;
}

static void destroy(cg_keras_source *source)
{
    by_path *from = (by_path *)source;

    json_decref(from->old);
    free(from);
}

cellgate_status cg_keras_by_path(cg_h5 *h5, const cg_keras_file *file,
                                 cg_keras_source **source,
                                 cellgate_error *error)
{
    by_path *from = malloc(sizeof *from);
    cellgate_status status = CELLGATE_OK;

    if (from == NULL)
        return no_memory(error);
    *from =
        (by_path){ { file->weights_name, load, check_end, destroy }, h5, NULL };
    if (!cg_h5_has(h5, "layers") && cg_h5_has(h5, old_layers))
        status = rename_layers(from, file, error);
    if (status == CELLGATE_OK)
        *source = &from->source;
    else
        destroy(&from->source);
    return status;
}
