/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras_source.h"

typedef struct surveyor {
    cg_keras_source source;
    cg_keras_survey *survey;
    size_t room;
    json_t *index; /* group -> number of its item */
    size_t left;   /* numbers that may still be asked for */
} surveyor;

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while looking for the weights");
}

static cellgate_status add_group(surveyor *to, const cg_keras_wanted *wanted,
                                 const cg_weight *weight, cellgate_error *error)
{
    cg_keras_survey *survey = to->survey;
    cg_keras_asked *item;

    if (survey->count == to->room) {
        const size_t room = 2 * to->room + 16;
        cg_keras_asked *items =
            realloc(survey->items, room * sizeof *survey->items);

        if (items == NULL)
            return no_memory(error);
        survey->items = items;
        to->room = room;
    }
    item = &survey->items[survey->count];
    *item = (cg_keras_asked){ .group = strdup(wanted->group),
                              .number = survey->count,
                              .kind = wanted->kind };
    if (weight->rank > 0)
        item->last = weight->shape[weight->rank - 1];
    if (item->group == NULL)
        return no_memory(error);
    survey->count++;
    if (json_object_set_new(to->index, wanted->group,
                            json_integer((json_int_t)item->number)) != 0)
        return no_memory(error);
    return CELLGATE_OK;
}

static cellgate_status load(cg_keras_source *source,
                            const cg_keras_wanted *wanted, cg_weight *weight,
                            cellgate_error *error)
{
    surveyor *to = (surveyor *)source;
    const size_t elements = cg_keras_elements(weight);
    const json_t *number;
    cg_keras_asked *item;
    float *data = NULL;
    cellgate_status status = CELLGATE_OK;

    if (elements > to->left)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "the layers need more weights than fit into %s",
                             source->name);
    to->left -= elements;
    if (json_object_get(to->index, wanted->group) == NULL)
        status = add_group(to, wanted, weight, error);
    if (status == CELLGATE_OK)
        status = cg_keras_new_data(wanted, weight, &data, error);
    if (status != CELLGATE_OK)
        return status;
    number = json_object_get(to->index, wanted->group);
    item = &to->survey->items[json_integer_value(number)];
    if (item->count <= wanted->index)
        item->count = wanted->index + 1;
    weight->data = data;
    return CELLGATE_OK;
}

static cellgate_status check_end(cg_keras_source *source,
                                 const cg_keras_wanted *end,
                                 cellgate_error *error)
{
    (void)source, (void)end, (void)error;
    return CELLGATE_OK;
}

static int compare_groups(const void *a, const void *b)
{
    const cg_keras_asked *one = a, *other = b;

    return strcmp(one->group, other->group);
}

cellgate_status cg_keras_survey_model(const cg_keras_file *file,
                                      cg_keras_survey *survey,
                                      cellgate_error *error)
{
    surveyor to = { .source = { file->weights_name, load, check_end, NULL },
                    .survey = survey,
                    .index = json_object(),
                    .left = cg_keras_most_numbers(file) };
    cellgate_model *model = NULL;
    cellgate_status status;

    *survey = (cg_keras_survey){ 0 };
    if (to.index == NULL)
        return no_memory(error);
    status = cg_keras_build(file, &to.source, &model, error);
    cellgate_model_destroy(model);
    json_decref(to.index);
    if (status != CELLGATE_OK) {
        cg_keras_survey_finish(survey);
        return status;
    }
    if (survey->count != 0)
        qsort(survey->items, survey->count, sizeof *survey->items,
              compare_groups);
    return CELLGATE_OK;
}

void cg_keras_survey_finish(cg_keras_survey *survey)
{
    for (size_t i = 0; i < survey->count; i++)
        free(survey->items[i].group);
    free(survey->items);
    *survey = (cg_keras_survey){ 0 };
}

size_t cg_keras_first_asked(const cg_keras_survey *survey, const char *text)
{
    size_t low = 0, high = survey->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (strcmp(survey->items[middle].group, text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const cg_keras_asked *cg_keras_find_asked(const cg_keras_survey *survey,
                                          const char *group)
{
    const size_t at = cg_keras_first_asked(survey, group);

    return at < survey->count && strcmp(survey->items[at].group, group) == 0
               ? &survey->items[at]
               : NULL;
}
