/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fingerprint says whether two models compute the same numbers: it covers
 * the graph, the attributes and the weights, and leaves out names, the path
 * and the format. It enters caches of measured costs, so what is hashed, and
 * in which order, may change only together with `recipe`.
 */
#include "config.h"

#include <xxhash.h>

#include "runtime/model/kinds.h"

static const char recipe[] = "cellgate model 1";

static void hash_number(XXH3_state_t *state, int64_t number)
{
    (void)XXH3_128bits_update(state, &number, sizeof number);
}

static void hash_float(XXH3_state_t *state, float number)
{
    number += 0.0f; /* -0 and 0 are the same number */
    (void)XXH3_128bits_update(state, &number, sizeof number);
}

static void hash_extents(XXH3_state_t *state, const cg_extents *extents)
{
    hash_number(state, extents->count);
    for (int32_t i = 0; i < extents->count; i++)
        hash_number(state, extents->extent[i]);
}

static void hash_attribute(XXH3_state_t *state, const cg_node *node,
                           const cg_attribute *attribute)
{
    const void *at = (const char *)node + attribute->offset;
    const cellgate_activation *activation;

    switch (attribute->type) {
    case CG_ATTRIBUTE_SIZE:
    case CG_ATTRIBUTE_INTEGER:
        hash_number(state, *(const int64_t *)at);
        break;
    case CG_ATTRIBUTE_COUNT:
    case CG_ATTRIBUTE_FLAG:
        hash_number(state, *(const int32_t *)at);
        break;
    case CG_ATTRIBUTE_BOOL:
        hash_number(state, *(const bool *)at);
        break;
    case CG_ATTRIBUTE_FLOAT:
        hash_float(state, *(const float *)at);
        break;
    case CG_ATTRIBUTE_CHOICE:
        hash_number(state, *(const int *)at);
        break;
    case CG_ATTRIBUTE_EXTENTS:
        hash_extents(state, at);
        break;
    case CG_ATTRIBUTE_ACTIVATION:
        activation = at;
        hash_number(state, activation->kind);
        hash_float(state, activation->alpha);
        hash_float(state, activation->beta);
        break;
    }
}

static void hash_weight(XXH3_state_t *state, const cg_weight *weight)
{
    size_t elements = 1;

    hash_number(state, weight->data != NULL ? weight->rank : -1);
    if (weight->data == NULL)
        return;
    for (int32_t axis = 0; axis < weight->rank; axis++) {
        hash_number(state, weight->shape[axis]);
        elements *= (size_t)weight->shape[axis];
    }
    (void)XXH3_128bits_update(state, weight->data,
                              elements * sizeof *weight->data);
}

static void hash_node(XXH3_state_t *state, const cg_node *node)
{
    const cg_kind_entry *kind = cg_kind_get((int)node->kind);

    (void)XXH3_128bits_update(state, kind->name, strlen(kind->name) + 1);
    hash_number(state, (int64_t)node->input_count);
    for (size_t i = 0; i < node->input_count; i++)
        hash_number(state, node->inputs[i]);
    hash_number(state, (int64_t)node->output_count);
    for (size_t i = 0; i < node->output_count; i++)
        hash_number(state, node->outputs[i]);
    for (size_t i = 0; i < kind->attribute_count; i++)
        if (!cg_attribute_left_out(node, &kind->attributes[i]))
            hash_attribute(state, node, &kind->attributes[i]);
    for (size_t i = 0; i < node->weight_count; i++)
        hash_weight(state, &node->weights[i]);
}

static void hash_model(XXH3_state_t *state, const cellgate_model *model)
{
    (void)XXH3_128bits_update(state, recipe, sizeof recipe);
    hash_number(state, (int64_t)model->value_count);
    for (size_t i = 0; i < model->value_count; i++) {
        const cg_value *value = &model->values[i];

        hash_number(state, value->dtype);
        hash_number(state, value->rank);
        for (int32_t axis = 0; axis < value->rank; axis++)
            hash_number(state, value->shape[axis]);
    }
    hash_number(state, (int64_t)model->input_count);
    for (size_t i = 0; i < model->input_count; i++) {
        hash_number(state, model->inputs[i].value);
        hash_number(state, model->inputs[i].mask);
    }
    hash_number(state, (int64_t)model->output_count);
    for (size_t i = 0; i < model->output_count; i++)
        hash_number(state, model->outputs[i]);
    hash_number(state, (int64_t)model->node_count);
    for (size_t i = 0; i < model->node_count; i++)
        hash_node(state, &model->nodes[i]);
}

cellgate_status cg_fingerprint(const cellgate_model *model, char text[33],
                               cellgate_error *error)
{
    XXH3_state_t *state = XXH3_createState();
    XXH128_hash_t hash;

    if (state == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory for the fingerprint");
    (void)XXH3_128bits_reset(state);
    hash_model(state, model);
    hash = XXH3_128bits_digest(state);
    (void)XXH3_freeState(state);
    (void)snprintf(text, 33, "%016llx%016llx", (unsigned long long)hash.high64,
                   (unsigned long long)hash.low64);
    return CELLGATE_OK;
}
