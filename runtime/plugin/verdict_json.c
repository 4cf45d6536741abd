/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/plugin/verdict.h"

static json_t *key_to_json(const cellgate_key *key)
{
    return json_pack("{s:s, s:i, s:s, s:s?, s:I, s:I, s:s}", "name", key->name,
                     "type", (int)key->type, "default", key->default_text,
                     "choices", key->choices, "minimum",
                     (json_int_t)key->minimum, "maximum",
                     (json_int_t)key->maximum, "help", key->help);
}

static json_t *device_to_json(const cellgate_device_description *device)
{
    /* Flags and sizes are unsigned: they travel as their two's complement. */
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:I}", "name",
                     device->name, "vendor", device->vendor, "driver",
                     device->driver, "resource", device->resource, "identity",
                     device->identity, "kind", (int)device->kind, "flags",
                     (json_int_t)device->flags, "memory",
                     (json_int_t)device->memory, "queue_depth",
                     (json_int_t)device->queue_depth);
}

static json_t *texts_to_json(char *const *texts, size_t count)
{
    json_t *json = json_array();
    size_t i;

    for (i = 0; i < count; i++)
        if (json_array_append_new(json, json_string(texts[i])) != 0) {
            json_decref(json);
            return NULL;
        }
    return json;
}

json_t *cg_verdict_to_json(const cg_verdict *verdict)
{
    json_t *keys = json_array();
    json_t *devices = json_array();
    json_t *watched = texts_to_json(verdict->watched, verdict->watched_count);
    json_t *variants = texts_to_json(verdict->variants, verdict->variant_count);
    size_t i;
    int failed = watched == NULL || variants == NULL;

    for (i = 0; i < verdict->key_count; i++)
        failed |= json_array_append_new(keys, key_to_json(&verdict->keys[i]));
    for (i = 0; i < verdict->device_count; i++)
        failed |= json_array_append_new(devices,
                                        device_to_json(&verdict->devices[i]));
    if (failed != 0) {
        json_decref(keys);
        json_decref(watched);
        json_decref(variants);
        json_decref(devices);
        return NULL;
    }
    return json_pack("{s:i, s:s, s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o}",
                     "status", (int)verdict->status, "reason", verdict->reason,
                     "name", verdict->name, "version", verdict->version,
                     "build", verdict->build, "abi", (json_int_t)verdict->abi,
                     "keys", keys, "watched", watched, "variants", variants,
                     "devices", devices);
}

static bool key_from_json(const json_t *json, cellgate_key *key)
{
    const char *name, *default_text, *help;
    const char *choices;
    json_t *choices_json;
    json_int_t minimum, maximum;
    int type;

    if (json_unpack((json_t *)json, "{s:s, s:i, s:s, s:o, s:I, s:I, s:s}",
                    "name", &name, "type", &type, "default", &default_text,
                    "choices", &choices_json, "minimum", &minimum, "maximum",
                    &maximum, "help", &help) != 0)
        return false;
    choices = json_string_value(choices_json); /* NULL for null */
    key->struct_size = sizeof *key;
    key->type = type;
    key->minimum = minimum;
    key->maximum = maximum;
    return cg_verdict_text((char **)&key->name, name) &&
           cg_verdict_text((char **)&key->default_text, default_text) &&
           (choices == NULL ||
            cg_verdict_text((char **)&key->choices, choices)) &&
           cg_verdict_text((char **)&key->help, help);
}

static bool put(char *to, size_t size, const char *from)
{
    size_t length = strlen(from);

    if (length >= size)
        return false;
    memcpy(to, from, length + 1);
    return true;
}

static bool device_from_json(const json_t *json,
                             cellgate_device_description *device)
{
    const char *name, *vendor, *driver, *resource, *identity;
    json_int_t flags, memory, queue_depth;
    int kind;

    if (json_unpack(
            (json_t *)json, "{s:s, s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:I}",
            "name", &name, "vendor", &vendor, "driver", &driver, "resource",
            &resource, "identity", &identity, "kind", &kind, "flags", &flags,
            "memory", &memory, "queue_depth", &queue_depth) != 0)
        return false;
    device->struct_size = sizeof *device;
    device->kind = kind;
    device->flags = (uint32_t)flags;
    device->memory = (uint64_t)memory;
    device->queue_depth = (uint32_t)queue_depth;
    return put(device->name, sizeof device->name, name) &&
           put(device->vendor, sizeof device->vendor, vendor) &&
           put(device->driver, sizeof device->driver, driver) &&
           put(device->resource, sizeof device->resource, resource) &&
           put(device->identity, sizeof device->identity, identity);
}

static bool keys_from_json(const json_t *json, cg_verdict *verdict)
{
    size_t count = json_array_size(json);
    size_t i;

    if (!json_is_array(json) || count > CG_VERDICT_KEYS_MAX)
        return false;
    if (count == 0)
        return true;
    verdict->keys = calloc(count, sizeof *verdict->keys);
    if (verdict->keys == NULL)
        return false;
    verdict->key_count = count;
    for (i = 0; i < count; i++)
        if (!key_from_json(json_array_get(json, i), &verdict->keys[i]))
            return false;
    return true;
}

static bool texts_from_json(const json_t *json, size_t most, char ***texts,
                            size_t *text_count)
{
    size_t count = json_array_size(json);
    size_t i;

    if (!json_is_array(json) || count > most)
        return false;
    if (count == 0)
        return true;
    *texts = calloc(count, sizeof **texts);
    if (*texts == NULL)
        return false;
    *text_count = count;
    for (i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(json, i));
        if (text == NULL || !cg_verdict_text(&(*texts)[i], text))
            return false;
    }
    return true;
}

static bool devices_from_json(const json_t *json, cg_verdict *verdict)
{
    size_t count = json_array_size(json);
    size_t i;

    if (!json_is_array(json) || count > CG_VERDICT_DEVICES_MAX)
        return false;
    if (count == 0)
        return true;
    verdict->devices = calloc(count, sizeof *verdict->devices);
    if (verdict->devices == NULL)
        return false;
    verdict->device_count = (uint32_t)count;
    for (i = 0; i < count; i++)
        if (!device_from_json(json_array_get(json, i), &verdict->devices[i]))
            return false;
    return true;
}

cg_verdict *cg_verdict_from_json(const json_t *json)
{
    cg_verdict *verdict = cg_verdict_create();
    const char *reason, *name, *version, *build;
    json_t *keys, *watched, *variants, *devices;
    json_int_t abi;
    int status;

    if (verdict == NULL)
        return NULL;
    if (json_unpack((json_t *)json,
                    "{s:i, s:s, s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o}",
                    "status", &status, "reason", &reason, "name", &name,
                    "version", &version, "build", &build, "abi", &abi, "keys",
                    &keys, "watched", &watched, "variants", &variants,
                    "devices", &devices) == 0 &&
        status >= 0 && status <= (int)CELLGATE_INTERNAL &&
        cg_verdict_text(&verdict->reason, reason) &&
        cg_verdict_text(&verdict->name, name) &&
        cg_verdict_text(&verdict->version, version) &&
        cg_verdict_text(&verdict->build, build) &&
        keys_from_json(keys, verdict) &&
        texts_from_json(watched, CG_VERDICT_WATCHED_MAX, &verdict->watched,
                        &verdict->watched_count) &&
        texts_from_json(variants, CG_VERDICT_VARIANTS_MAX, &verdict->variants,
                        &verdict->variant_count) &&
        devices_from_json(devices, verdict)) {
        verdict->status = (cellgate_status)status;
        verdict->abi = (uint32_t)abi;
        return verdict;
    }
    cg_verdict_destroy(verdict);
    return NULL;
}
