/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/native.h"

/* ---- Writing ------------------------------------------------------------- */

static json_t *write_activation(const cellgate_activation *activation)
{
    const cg_activation_entry *entry = &cg_activations[activation->kind];
    const double alpha = (double)activation->alpha;
    const double beta = (double)activation->beta;

    switch (entry->parameters) {
    case 0:
        return json_pack("[s]", entry->name);
    case 1:
        return json_pack("[sf]", entry->name, alpha);
    default:
        return json_pack("[sff]", entry->name, alpha, beta);
    }
}

static json_t *write_extents(const cg_extents *extents)
{
    json_t *json = json_array();

    for (int32_t i = 0; json != NULL && i < extents->count; i++)
        if (json_array_append_new(json, json_integer(extents->extent[i]))) {
            json_decref(json);
            json = NULL;
        }
    return json;
}

static json_t *write_attribute(const cg_node *node,
                               const cg_attribute *attribute)
{
    const void *at = (const char *)node + attribute->offset;

    switch (attribute->type) {
    case CG_ATTRIBUTE_SIZE:
    case CG_ATTRIBUTE_INTEGER:
        return json_integer(*(const int64_t *)at);
    case CG_ATTRIBUTE_COUNT:
        return json_integer(*(const int32_t *)at);
    case CG_ATTRIBUTE_FLAG:
        return json_boolean(*(const int32_t *)at != 0);
    case CG_ATTRIBUTE_BOOL:
        return json_boolean(*(const bool *)at);
    case CG_ATTRIBUTE_FLOAT:
        return json_real((double)*(const float *)at);
    case CG_ATTRIBUTE_ACTIVATION:
        return write_activation(at);
    case CG_ATTRIBUTE_CHOICE:
        return json_string(attribute->choices[*(const int *)at]);
    case CG_ATTRIBUTE_EXTENTS:
        return write_extents(at);
    }
    return NULL;
}

json_t *cg_native_write_attributes(const cg_node *node)
{
    const cg_kind_entry *kind = cg_kind_get((int)node->kind);
    json_t *json = json_object();

    for (size_t i = 0; json != NULL && i < kind->attribute_count; i++) {
        const cg_attribute *attribute = &kind->attributes[i];

        if (cg_attribute_left_out(node, attribute))
            continue;
        if (json_object_set_new(json, attribute->name,
                                write_attribute(node, attribute)) != 0) {
            json_decref(json);
            json = NULL;
        }
    }
    return json;
}

/* ---- Reading ------------------------------------------------------------- */

static bool read_activation(const json_t *json, cellgate_activation *out)
{
    const char *name = json_string_value(json_array_get(json, 0));
    const size_t given = json_array_size(json);

    for (int32_t i = 0; name != NULL && i < CELLGATE_ACTIVATION_COUNT; i++) {
        if (strcmp(name, cg_activations[i].name) != 0)
            continue;
        if (given != 1 + (size_t)cg_activations[i].parameters)
            return false;
        *out = (cellgate_activation){ .kind = i };
        if (given > 1) {
            if (!json_is_number(json_array_get(json, 1)))
                return false;
            out->alpha = (float)json_number_value(json_array_get(json, 1));
        }
        if (given > 2) {
            if (!json_is_number(json_array_get(json, 2)))
                return false;
            out->beta = (float)json_number_value(json_array_get(json, 2));
        }
        return true;
    }
    return false;
}

static bool read_choice(const json_t *json, const char *const *choices,
                        int *out)
{
    const char *name = json_string_value(json);

    for (int i = 0; name != NULL && choices[i] != NULL; i++)
        if (strcmp(name, choices[i]) == 0) {
            *out = i;
            return true;
        }
    return false;
}

static bool read_extents(const json_t *json, cg_extents *out)
{
    const size_t count = json_array_size(json);

    if (!json_is_array(json) || count > CELLGATE_MAX_RANK)
        return false;
    *out = (cg_extents){ .count = (int32_t)count };
    for (size_t i = 0; i < count; i++) {
        const json_t *extent = json_array_get(json, i);

        if (!json_is_integer(extent))
            return false;
        out->extent[i] = json_integer_value(extent);
    }
    return true;
}

static bool read_attribute(const json_t *json, cg_node *node,
                           const cg_attribute *attribute)
{
    void *at = (char *)node + attribute->offset;

    switch (attribute->type) {
    case CG_ATTRIBUTE_SIZE:
    case CG_ATTRIBUTE_INTEGER:
        *(int64_t *)at = json_integer_value(json);
        return json_is_integer(json);
    case CG_ATTRIBUTE_COUNT:
        *(int32_t *)at = (int32_t)json_integer_value(json);
        return json_is_integer(json) &&
               *(int32_t *)at == json_integer_value(json);
    case CG_ATTRIBUTE_FLAG:
        *(int32_t *)at = json_is_true(json);
        return json_is_boolean(json);
    case CG_ATTRIBUTE_BOOL:
        *(bool *)at = json_is_true(json);
        return json_is_boolean(json);
    case CG_ATTRIBUTE_FLOAT:
        *(float *)at = (float)json_number_value(json);
        return json_is_number(json);
    case CG_ATTRIBUTE_ACTIVATION:
        return read_activation(json, at);
    case CG_ATTRIBUTE_CHOICE:
        return read_choice(json, attribute->choices, at);
    case CG_ATTRIBUTE_EXTENTS:
        return read_extents(json, at);
    }
    return false;
}

cellgate_status cg_native_read_attributes(const json_t *json, cg_node *node,
                                          cellgate_error *error)
{
    const cg_kind_entry *kind = cg_kind_get((int)node->kind);
    size_t known = 0;

    for (size_t i = 0; i < kind->attribute_count; i++) {
        const cg_attribute *attribute = &kind->attributes[i];
        const json_t *value = json_object_get(json, attribute->name);

        if (value == NULL && attribute->optional)
            continue;
        known++;
        if (value == NULL || !read_attribute(value, node, attribute))
            return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                                "attribute '%s' is missing or not usable",
                                attribute->name);
    }
    if (json_object_size(json) != known)
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "it has an unknown attribute");
    return CELLGATE_OK;
}
