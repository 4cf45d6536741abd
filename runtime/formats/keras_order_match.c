/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras_order.h"

/* ---- What a layer asks for ----------------------------------------------- */

/* A group of the file while its layers are gone through: what they ask for, in
   the order in which they do. */
typedef struct matching {
    cg_keras_order *order;
    const json_t *shared;
    size_t layers;            /* of the model at the top that have weights */
    const char *layer;        /* name of the one at the top, or "" */
    bool lora;                /* it may have weights of LoRA beside its own */
    cg_keras_asked **members; /* of this group */
    size_t *frozen;           /* how many of each training leaves alone */
    size_t count;
} matching;

static void add_member(matching *to, cg_keras_asked *asked, size_t frozen)
{
    cg_keras_spot *spot = &to->order->spots[asked - to->order->survey.items];

    if (spot->seen == to->layers + 1)
        return;
    spot->seen = to->layers + 1;
    to->frozen[to->count] = frozen < asked->count ? frozen : asked->count;
    to->members[to->count++] = asked;
}

static void sort_members(matching *to, size_t begin)
{
    for (size_t i = begin; i < to->count; i++)
        for (size_t j = i;
             j > begin && to->members[j - 1]->number > to->members[j]->number;
             j--) {
            cg_keras_asked *other = to->members[j];
            const size_t frozen = to->frozen[j];

            to->members[j] = to->members[j - 1];
            to->members[j - 1] = other;
            to->frozen[j] = to->frozen[j - 1];
            to->frozen[j - 1] = frozen;
        }
}

/* Those of group `path` and of groups in it, as they were asked for. */
static void add_members(matching *to, const char *path, size_t frozen)
{
    const cg_keras_survey *survey = &to->order->survey;
    const size_t length = strlen(path), begin = to->count;

    for (size_t i = cg_keras_first_asked(survey, path); i < survey->count;
         i++) {
        cg_keras_asked *asked = &survey->items[i];

        /* Paths have no character before the slash. */
        if (strncmp(asked->group, path, length) != 0 ||
            (unsigned char)asked->group[length] > '/')
            break;
        add_member(to, asked, frozen);
    }
    sort_members(to, begin);
}

/* ---- Going through the layers -------------------------------------------- */

static bool is_frozen(const json_t *layer)
{
    const json_t *config = json_object_get(layer, "config");

    return cg_keras_truth(json_object_get(config, "trainable")) == 0;
}

typedef struct descent {
    matching *to;
    bool frozen; /* a model around it is */
} descent;

static cellgate_status visit_inner(void *context, const json_t *layer,
                                   const char *path, int depth,
                                   cellgate_error *error);

/* What a TimeDistributed holds may be a model, whose layers count each. */
static cellgate_status visit_wrapped(descent *below, const json_t *wrapped,
                                     const char *path, int depth,
                                     cellgate_error *error)
{
    const size_t size = strlen(path) + sizeof "/layer";
    char *own = malloc(size);
    cellgate_status status;

    if (own == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while looking for the weights");
    (void)snprintf(own, size, "%s/layer", path);
    status = visit_inner(below, wrapped, own, depth, error);
    free(own);
    return status;
}

static cellgate_status visit_inner(void *context, const json_t *layer,
                                   const char *path, int depth,
                                   cellgate_error *error)
{
    const descent *at = context;
    const cg_keras_class *class = cg_keras_find_class(layer);
    const json_t *wrapped =
        json_object_get(json_object_get(layer, "config"), "layer");
    const bool frozen = at->frozen || is_frozen(layer) || is_frozen(wrapped);
    const char *saved = cg_keras_saved_path(at->to->shared, layer, path);
    descent below = { at->to, frozen };

    if (class != NULL && (class->flags & CG_KERAS_MODEL))
        return cg_keras_visit_layers(layer, saved, depth + 1, visit_inner,
                                     &below, error);
    if (class != NULL && class->build == cg_keras_build_time_distributed)
        return visit_wrapped(&below, wrapped, saved, depth, error);
    add_members(at->to, saved,
                frozen          ? SIZE_MAX
                : class != NULL ? class->flags >> 8
                                : 0);
    /* What it wraps may be saved elsewhere. */
    saved = cg_keras_saved_path(at->to->shared, wrapped, "");
    if (saved[0] != '\0')
        add_members(at->to, saved, frozen ? SIZE_MAX : 0);
    return CELLGATE_OK;
}

/* ---- A layer at the top and its group ------------------------------------ */

/* Whether the file holds the gates' weights one by one, as Keras 1 did. */
static cellgate_status see_form(const cg_keras_order *order,
                                const cg_keras_asked *asked, size_t group,
                                size_t at, bool *gate_by_gate,
                                cellgate_error *error)
{
    const int64_t gates = (int64_t)cg_keras_gates(asked->kind);
    cellgate_error inner = CELLGATE_ERROR_INIT;
    cg_h5_extents shape;
    cellgate_status status;

    *gate_by_gate = false;
    if (gates == 0 || at >= order->groups[group].names.count)
        return CELLGATE_OK;
    /* What else may be wrong with the dataset is told when it is loaded. */
    status = cg_keras_dataset_shape(order, group, at, &shape, &inner);
    if (status == CELLGATE_NO_MEMORY)
        return cellgate_fail(error, status, "%s", inner.text);
    *gate_by_gate = status == CELLGATE_OK && shape.rank == 2 &&
                    asked->last % gates == 0 &&
                    shape.extents[1] == asked->last / gates;
    return CELLGATE_OK;
}

/* Trained weights of all members first, the others after them. */
static cellgate_status place_members(const matching *to, size_t group,
                                     bool trained, size_t *at,
                                     cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < to->count; i++) {
        const cg_keras_asked *asked = to->members[i];
        const size_t count =
            trained ? asked->count - to->frozen[i] : to->frozen[i];
        cg_keras_spot made = to->order->spots[asked - to->order->survey.items];
        cg_keras_spot *spot =
            &to->order->spots[asked - to->order->survey.items];

        if (count == 0)
            continue;
        made.group = group;
        if (trained) {
            made.trained = count;
            made.first = *at;
        } else {
            made.trained = asked->count - count;
            made.rest = *at;
        }
        status =
            see_form(to->order, asked, group, *at, &made.gate_by_gate, error);
        *at += made.gate_by_gate ? count * cg_keras_gates(asked->kind) : count;
        /* One that stands in several groups is stored in each. */
        if (!spot->placed || spot->group == group) {
            *spot = made;
            spot->placed = true;
        }
    }
    return status;
}

static cellgate_status match_group(matching *to, cellgate_error *error)
{
    const cg_keras_order *order = to->order;
    const size_t group = to->layers;
    size_t needed = 0;
    cellgate_status status;

    if (group >= order->group_count)
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%s has weights for %zu layers, and none for "
                             "layer '%.60s'",
                             order->source.name, order->group_count, to->layer);
    status = place_members(to, group, true, &needed, error);
    if (status == CELLGATE_OK)
        status = place_members(to, group, false, &needed, error);
    if (status == CELLGATE_OK && to->lora &&
        needed != order->groups[group].names.count)
        return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                             "layer '%.60s' has the weights of enable_lora() "
                             "beside its own in %s; save the model as .keras, "
                             "where Keras adds them up",
                             to->layer, order->source.name);
    if (status == CELLGATE_OK && needed != order->groups[group].names.count)
        status =
            cellgate_fail(error, CELLGATE_BAD_FILE,
                          "layer '%.60s' has %zu weights; '%s' in %s, "
                          "which stands in its place, has %zu",
                          to->layer, needed, order->groups[group].path,
                          order->source.name, order->groups[group].names.count);
    return status;
}

static cellgate_status visit_top(void *context, const json_t *layer,
                                 const char *path, int depth,
                                 cellgate_error *error)
{
    matching *to = context;
    descent below = { to, false };
    const char *name = json_string_value(
        json_object_get(json_object_get(layer, "config"), "name"));
    cellgate_status status;

    to->layer = name != NULL ? name : "";
    to->lora = json_is_integer(
        json_object_get(json_object_get(layer, "config"), "lora_rank"));
    to->count = 0;
    status = visit_inner(&below, layer, path, depth, error);
    if (status == CELLGATE_OK && to->count != 0) {
        status = match_group(to, error);
        to->layers++;
    }
    return status;
}

static cellgate_status match_all(matching *to, const cg_keras_file *file,
                                 cellgate_error *error)
{
    const cg_keras_order *order = to->order;
    cellgate_status status =
        cg_keras_visit_layers(file->config, "", 0, visit_top, to, error);

    if (status == CELLGATE_OK && to->layers != order->group_count)
        status = cellgate_fail(error, CELLGATE_BAD_FILE,
                               "%s has weights for %zu layers, of which the "
                               "model has %zu: '%s' belongs to none",
                               order->source.name, order->group_count,
                               to->layers, order->groups[to->layers].path);
    return status;
}

cellgate_status cg_keras_match_groups(cg_keras_order *order,
                                      const cg_keras_file *file,
                                      cellgate_error *error)
{
    const size_t room = order->survey.count + 1;
    json_t *shared = json_object();
    matching to = { .order = order,
                    .shared = shared,
                    .members = calloc(room, sizeof *to.members),
                    .frozen = calloc(room, sizeof *to.frozen) };
    cellgate_status status;

    order->spots = calloc(room, sizeof *order->spots);
    if (shared == NULL || to.members == NULL || to.frozen == NULL ||
        order->spots == NULL)
        status = cellgate_fail(error, CELLGATE_NO_MEMORY,
                               "out of memory while looking for the weights");
    else
        status = cg_keras_find_shared(shared, file->config, error);
    if (status == CELLGATE_OK)
        status = match_all(&to, file, error);
    json_decref(shared);
    free(to.members);
    free(to.frozen);
    return status;
}
