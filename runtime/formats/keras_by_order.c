/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights of legacy files: a group for each layer of the model at the top, in
 * the order of the layers, with a list of its datasets. Names in the file
 * differ from version to version, so that, as in Keras, order is what counts:
 * layers without weights stand beside groups without datasets, and a layer's
 * weights are those that training changes, in order, then those that it does
 * not. A nested model's group holds those of all layers in it.
 */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras_order.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while looking for the weights");
}

/* ---- Lists of names ------------------------------------------------------ */

/* Appends the attribute's texts; *found says whether it is there. One that is
   no text is an empty array of numbers: Keras writes no names so. */
static cellgate_status append_texts(cg_h5 *h5, const char *path,
                                    const char *attribute,
                                    cg_keras_names *names, bool *found,
                                    cellgate_error *error)
{
    cellgate_error inner = CELLGATE_ERROR_INIT;
    cg_h5_strings texts = { 0 };
    const char **items;
    const cellgate_status status =
        cg_h5_texts(h5, path, attribute, &texts, &inner);

    *found = status == CELLGATE_OK;
    if (status == CELLGATE_NOT_FOUND || status == CELLGATE_UNSUPPORTED)
        return CELLGATE_OK;
    if (status != CELLGATE_OK)
        return cellgate_fail(error, status, "%s", inner.text);
    items =
        realloc(names->items, (names->count + texts.count + 1) * sizeof *items);
    if (items == NULL)
        return no_memory(error);
    names->items = items;
    for (size_t i = 0; i < texts.count; i++)
        items[names->count++] = texts.items[i];
    return CELLGATE_OK;
}

/* A list too large for one attribute is split into NAME0, NAME1 ... */
cellgate_status cg_keras_read_names(cg_h5 *h5, const char *path,
                                    const char *attribute,
                                    cg_keras_names *names,
                                    cellgate_error *error)
{
    bool found = false;
    cellgate_status status =
        append_texts(h5, path, attribute, names, &found, error);
    bool more = !found;

    for (size_t part = 0; status == CELLGATE_OK && more; part++) {
        char name[64];

        (void)snprintf(name, sizeof name, "%s%zu", attribute, part);
        status = append_texts(h5, path, name, names, &more, error);
    }
    return status;
}

static char *join(const char *first, const char *second)
{
    const size_t size = strlen(first) + strlen(second) + 2;
    char *joined = malloc(size);

    if (joined != NULL)
        (void)snprintf(joined, size, "%s%s%s", first,
                       first[0] != '\0' ? "/" : "", second);
    return joined;
}

/* ---- Groups -------------------------------------------------------------- */

static cellgate_status read_group(cg_keras_order *order, const char *name,
                                  cellgate_error *error)
{
    cg_keras_group *group = &order->groups[order->group_count];
    cellgate_status status;

    *group = (cg_keras_group){ .path = join(order->root, name) };
    if (group->path == NULL)
        return no_memory(error);
    order->group_count++;
    if (!cg_h5_has(order->h5, group->path))
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "layer_names in %s lists '%.60s', which has no "
                             "group",
                             order->source.name, name);
    status = cg_keras_read_names(order->h5, group->path, "weight_names",
                                 &group->names, error);
    if (status == CELLGATE_OK && group->names.count == 0) {
        free(group->path);
        free(group->names.items);
        order->group_count--;
    }
    return status;
}

/* Those with weights, in order. */
static cellgate_status read_groups(cg_keras_order *order, cellgate_error *error)
{
    cg_keras_names layers = { 0 };
    cellgate_status status = cg_keras_read_names(order->h5, order->root,
                                                 "layer_names", &layers, error);

    order->groups = calloc(layers.count + 1, sizeof *order->groups);
    if (status == CELLGATE_OK && order->groups == NULL)
        status = no_memory(error);
    for (size_t i = 0; status == CELLGATE_OK && i < layers.count; i++)
        status = read_group(order, layers.items[i], error);
    free(layers.items);
    return status;
}

/* ---- Datasets ------------------------------------------------------------ */

cellgate_status cg_keras_dataset(const cg_keras_order *order, size_t group,
                                 size_t number, char **path,
                                 cellgate_error *error)
{
    const cg_keras_group *of = &order->groups[group];

    *path = number < of->names.count ? join(of->path, of->names.items[number])
                                     : NULL;
    if (*path != NULL)
        return CELLGATE_OK;
    if (number < of->names.count)
        return no_memory(error);
    return cellgate_fail(error, CELLGATE_BAD_FILE,
                         "'%s' in %s has %zu weights; the layer needs more",
                         of->path, order->source.name, of->names.count);
}

cellgate_status cg_keras_dataset_shape(const cg_keras_order *order,
                                       size_t group, size_t number,
                                       cg_h5_extents *shape,
                                       cellgate_error *error)
{
    char *path;
    cellgate_status status =
        cg_keras_dataset(order, group, number, &path, error);

    if (status != CELLGATE_OK)
        return status;
    status = cg_h5_shape(order->h5, path, shape, error);
    free(path);
    return status;
}

static cellgate_status load(cg_keras_source *source,
                            const cg_keras_wanted *wanted, cg_weight *weight,
                            cellgate_error *error)
{
    const cg_keras_order *order = (const cg_keras_order *)source;
    const cg_keras_asked *asked =
        cg_keras_find_asked(&order->survey, wanted->group);
    const cg_keras_spot *spot;
    float *data = NULL;
    cellgate_status status;

    if (asked == NULL || wanted->index >= asked->count)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%s has no weights for it", source->name);
    if (weight->rank < 0)
        return CELLGATE_OK;
    spot = &order->spots[asked - order->survey.items];
    status = cg_keras_order_check(order, spot, wanted, weight, error);
    if (status == CELLGATE_OK)
        status = cg_keras_new_data(wanted, weight, &data, error);
    if (status == CELLGATE_OK)
        status = cg_keras_order_read(order, spot, wanted, weight, data, error);
    if (status == CELLGATE_OK)
        weight->data = data;
    return status;
}

/* Groups were compared with what the layers ask for in advance. */
static cellgate_status check_end(cg_keras_source *source,
                                 const cg_keras_wanted *end,
                                 cellgate_error *error)
{
    (void)source, (void)end, (void)error;
    return CELLGATE_OK;
}

static void destroy(cg_keras_source *source)
{
    cg_keras_order *order = (cg_keras_order *)source;

    for (size_t i = 0; i < order->group_count; i++) {
        free(order->groups[i].path);
        free(order->groups[i].names.items);
    }
    free(order->groups);
    free(order->spots);
    cg_keras_survey_finish(&order->survey);
    free(order);
}

cellgate_status cg_keras_by_order(cg_h5 *h5, const char *root,
                                  const cg_keras_file *file,
                                  cg_keras_source **source,
                                  cellgate_error *error)
{
    cg_keras_order *order = calloc(1, sizeof *order);
    cellgate_status status;

    if (order == NULL)
        return no_memory(error);
    order->source =
        (cg_keras_source){ file->weights_name, load, check_end, destroy };
    order->h5 = h5;
    order->root = root;
    status = cg_keras_survey_model(file, &order->survey, error);
    if (status == CELLGATE_OK)
        status = read_groups(order, error);
    if (status == CELLGATE_OK)
        status = cg_keras_match_groups(order, file, error);
    if (status == CELLGATE_OK)
        *source = &order->source;
    else
        destroy(&order->source);
    return status;
}
