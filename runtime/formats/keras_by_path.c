/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras_source.h"

typedef struct by_path {
    cg_keras_source source;
    cg_h5 *h5;
} by_path;

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while reading the weights");
}

/* Before version 2.14 the group was called by another name. */
static const char old_layers[] = "_layer_checkpoint_dependencies";

/* Malloc'ed; NULL if there is no memory. */
static char *data_path(const by_path *from, const cg_keras_wanted *wanted)
{
    const char *group = wanted->group;
    const size_t size = strlen(group) + sizeof old_layers + 32;
    const size_t skip = strlen("layers");
    char *path = malloc(size);

    if (path == NULL)
        return NULL;
    if (strncmp(group, "layers", skip) == 0 && !cg_h5_has(from->h5, "layers") &&
        cg_h5_has(from->h5, old_layers))
        (void)snprintf(path, size, "%s%s/vars/%zu", old_layers, group + skip,
                       wanted->index);
    else
        (void)snprintf(path, size, "%s/vars/%zu", group, wanted->index);
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
    free(source);
}

cellgate_status cg_keras_by_path(cg_h5 *h5, const char *name,
                                 cg_keras_source **source,
                                 cellgate_error *error)
{
    by_path *from = malloc(sizeof *from);

    if (from == NULL)
        return no_memory(error);
    *from = (by_path){ { name, load, check_end, destroy }, h5 };
    *source = &from->source;
    return CELLGATE_OK;
}
