/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/formats/native.h"

static const char *const merge_modes[] = {
    [CG_MERGE_SUM] = "sum",
    [CG_MERGE_AVERAGE] = "average",
    [CG_MERGE_PRODUCT] = "product",
};

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

static json_t *write_attribute(const cg_node *node,
                               const cg_attribute *attribute)
{
    const void *at = (const char *)node + attribute->offset;

    switch (attribute->type) {
    case CG_ATTRIBUTE_SIZE:
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
    case CG_ATTRIBUTE_MERGE:
        return json_string(merge_modes[*(const cg_merge_mode *)at]);
    }
    return NULL;
}

json_t *cg_native_write_attributes(const cg_node *node)
{
    const cg_kind_entry *kind = cg_kind_get((int)node->kind);
    json_t *json = json_object();

    for (size_t i = 0; json != NULL && i < kind->attribute_count; i++) {
        const cg_attribute *attribute = &kind->attributes[i];

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

static bool read_merge(const json_t *json, cg_merge_mode *out)
{
    const char *name = json_string_value(json);

    for (int i = 0; name != NULL && i <= (int)CG_MERGE_PRODUCT; i++)
        if (strcmp(name, merge_modes[i]) == 0) {
            *out = (cg_merge_mode)i;
            return true;
        }
    return false;
}

static bool read_attribute(const json_t *json, cg_node *node,
                           const cg_attribute *attribute)
{
    void *at = (char *)node + attribute->offset;

    switch (attribute->type) {
    case CG_ATTRIBUTE_SIZE:
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
    case CG_ATTRIBUTE_MERGE:
        return read_merge(json, at);
    }
    return false;
}

cellgate_status cg_native_read_attributes(const json_t *json, cg_node *node,
                                          cellgate_error *error)
{
    const cg_kind_entry *kind = cg_kind_get((int)node->kind);

    for (size_t i = 0; i < kind->attribute_count; i++) {
        const cg_attribute *attribute = &kind->attributes[i];
        const json_t *value = json_object_get(json, attribute->name);

        if (value == NULL || !read_attribute(value, node, attribute))
            return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                                "attribute '%s' is missing or not usable",
                                attribute->name);
    }
    if (json_object_size(json) != kind->attribute_count)
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "it has an unknown attribute");
    return CELLGATE_OK;
}
