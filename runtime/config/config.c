/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/config/settings.h"

#include <stdlib.h>

#include "runtime/config/complaint.h"
#include "runtime/config/ini.h"
#include "runtime/config/keys.h"
#include "runtime/config/locate.h"
#include "runtime/config/store.h"
#include "runtime/config/suggest.h"

/* Keys of the core in one section; keys.c has far fewer. */
#define SECTION_KEYS_MAX 16
#define SECTIONS_MAX 8

/* The state of reading one file. */
typedef struct builder {
    cg_config *config;
    const char *file;
    const cg_section *section; /* the one being read; NULL before the first */
    char name[CG_INI_SECTION_MAX + 1]; /* its name as written */
    cg_device_section *device;         /* for [device NAME] */
    cg_pin_section *pin;               /* for [pin NAME] */
    int section_lines[SECTIONS_MAX];   /* where each began; 0: not yet */
    int key_lines[SECTION_KEYS_MAX];   /* the same, of this section's keys */
} builder;

static cg_place place_at(const builder *b, int line, const char *key)
{
    cg_place place = { b->file, line, b->section != NULL ? b->name : NULL,
                       key };

    return place;
}

static cellgate_status no_memory(const builder *b, cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while reading configuration \"%s\"",
                         b->file);
}

/* ---- Sections ----------------------------------------------------------- */

/* Whether sections of that kind have a name behind it. */
static bool is_named(const char *kind)
{
    for (size_t i = 0; i < cg_section_count; i++)
        if (strcmp(cg_sections[i].name, kind) == 0)
            return cg_sections[i].fills != CG_FILLS_CONFIG;
    return false;
}

static cellgate_status refuse_section(const builder *b, const char *name,
                                      int line, cellgate_error *error)
{
    cg_place place = { b->file, line, name, NULL };
    size_t kind_length = strcspn(name, " \t");
    char kind[CG_INI_SECTION_MAX + 1];
    cg_suggestion meant;

    (void)snprintf(kind, sizeof kind, "%.*s", (int)kind_length, name);
    cg_suggestion_init(&meant, kind);
    for (size_t i = 0; i < cg_section_count; i++)
        cg_suggestion_offer(&meant, cg_sections[i].name,
                            strlen(cg_sections[i].name));
    if (meant.best != NULL && is_named(meant.best))
        return cg_complain(
            error, &place, "unknown section; did you mean [%s%s]?", meant.best,
            name[kind_length] == '\0' ? " NAME" : name + kind_length);
    if (meant.best != NULL)
        return cg_complain(error, &place,
                           "unknown section; did you mean [%.*s]?",
                           meant.length, meant.best);
    return cg_complain(error, &place,
                       "unknown section; there are [cellgate], [scheduler], "
                       "[calibration], [device NAME] and [pin NAME]");
}

/* What is wrong with the NAME of [device NAME]; NULL: nothing. */
static const char *device_name_problem(const char *name)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    static const char others[] = "abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    if (name[0] == '\0')
        return "a device needs a name: [device NAME]";
    if (strchr(name, ':') != NULL)
        return "a device's name has no colon: PLUGIN:INDEX names the devices "
               "that have no section";
    if (strchr(first, name[0]) == NULL || name[strspn(name, others)] != '\0')
        return "a device's name begins with a letter or a digit and has only "
               "letters, digits, . _ and -";
    if (strcmp(name, "host") == 0)
        return "\"host\" names the operations of the core itself; choose "
               "another name";
    return NULL;
}

static cellgate_status add_device(builder *b, const char *name, int line,
                                  cellgate_error *error)
{
    cg_place place = { b->file, line, b->name, NULL };
    const char *problem = device_name_problem(name);
    cg_config *config = b->config;
    cg_device_section *grown;

    if (problem != NULL)
        return cg_complain(error, &place, "%s", problem);
    for (size_t i = 0; i < config->device_count; i++)
        if (strcmp(config->devices[i].name, name) == 0)
            return cg_complain(error, &place,
                               "this section is in line %d already; give each "
                               "device one section",
                               config->devices[i].line);
    grown =
        realloc(config->devices, (config->device_count + 1) * sizeof *grown);
    if (grown == NULL)
        return no_memory(b, error);
    config->devices = grown;
    b->device = &grown[config->device_count];
    memset(b->device, 0, sizeof *b->device);
    b->device->line = line;
    b->device->name = strdup(name);
    if (b->device->name == NULL)
        return no_memory(b, error);
    config->device_count++; /* from here on the config frees it */
    if (cg_store_defaults(b->section, b->device) != CELLGATE_OK)
        return no_memory(b, error);
    return CELLGATE_OK;
}

static cellgate_status add_pin(builder *b, const char *name, int line,
                               cellgate_error *error)
{
    cg_place place = { b->file, line, b->name, NULL };
    cg_config *config = b->config;
    cg_pin_section *grown;

    if (name[0] == '\0')
        return cg_complain(error, &place, "a pin needs a name: [pin NAME]");
    for (size_t i = 0; i < config->pin_count; i++)
        if (strcmp(config->pins[i].name, name) == 0)
            return cg_complain(error, &place,
                               "this section is in line %d already; give each "
                               "pin a name of its own",
                               config->pins[i].line);
    grown = realloc(config->pins, (config->pin_count + 1) * sizeof *grown);
    if (grown == NULL)
        return no_memory(b, error);
    config->pins = grown;
    b->pin = &grown[config->pin_count];
    memset(b->pin, 0, sizeof *b->pin);
    b->pin->line = line;
    b->pin->name = strdup(name);
    if (b->pin->name == NULL)
        return no_memory(b, error);
    config->pin_count++; /* from here on the config frees it */
    if (cg_store_defaults(b->section, b->pin) != CELLGATE_OK)
        return no_memory(b, error);
    return CELLGATE_OK;
}

/* What a section must have is checked when it ends. */
static cellgate_status end_section(builder *b, cellgate_error *error)
{
    cg_place place;

    if (b->device != NULL && b->device->plugin == NULL) {
        place = place_at(b, b->device->line, "plugin");
        return cg_complain(error, &place,
                           "missing; write plugin = NAME, with a name that "
                           "\"cellgate devices\" lists");
    }
    if (b->pin != NULL && b->pin->device == NULL) {
        place = place_at(b, b->pin->line, "device");
        return cg_complain(error, &place,
                           "missing; write device = NAME, with a name that "
                           "\"cellgate devices\" lists");
    }
    return CELLGATE_OK;
}

static cellgate_status begin_section(void *context, const char *name, int line,
                                     cellgate_error *error)
{
    builder *b = context;
    size_t kind_length = strcspn(name, " \t");
    size_t which = 0;
    cg_place place = { b->file, line, name, NULL };
    cellgate_status status = end_section(b, error);

    if (status != CELLGATE_OK)
        return status;
    while (which < cg_section_count &&
           (strlen(cg_sections[which].name) != kind_length ||
            memcmp(cg_sections[which].name, name, kind_length) != 0 ||
            (cg_sections[which].fills == CG_FILLS_CONFIG &&
             name[kind_length] != '\0')))
        which++;
    if (which == cg_section_count)
        return refuse_section(b, name, line, error);
    b->section = &cg_sections[which];
    b->device = NULL;
    b->pin = NULL;
    memset(b->key_lines, 0, sizeof b->key_lines);
    (void)snprintf(b->name, sizeof b->name, "%s", name);
    name += kind_length + strspn(name + kind_length, " \t");
    if (b->section->fills == CG_FILLS_DEVICE)
        return add_device(b, name, line, error);
    if (b->section->fills == CG_FILLS_PIN)
        return add_pin(b, name, line, error);
    if (b->section_lines[which] != 0)
        return cg_complain(error, &place,
                           "this section is in line %d already; merge the two",
                           b->section_lines[which]);
    b->section_lines[which] = line;
    return CELLGATE_OK;
}

/* ---- Keys --------------------------------------------------------------- */

static cellgate_status refuse_key(const builder *b, const char *key, int line,
                                  cellgate_error *error)
{
    cg_place place = place_at(b, line, key);
    const cg_section *owner = cg_section_with_key(key);
    char known[256] = "";
    size_t at = 0;
    cg_suggestion meant;

    if (owner != NULL)
        return cg_complain(error, &place, "this key belongs in [%s], not here",
                           owner->shown);
    cg_suggestion_init(&meant, key);
    for (size_t i = 0; i < b->section->key_count; i++) {
        const char *name = b->section->keys[i].key.name;

        cg_suggestion_offer(&meant, name, strlen(name));
        if (at < sizeof known)
            at += (size_t)snprintf(known + at, sizeof known - at, "%s%s",
                                   i == 0 ? "" : ", ", name);
    }
    if (meant.best != NULL)
        return cg_complain(error, &place, "unknown key; did you mean %.*s?",
                           meant.length, meant.best);
    return cg_complain(error, &place, "unknown key; this section takes %s",
                       known);
}

static cellgate_status refuse_repeated(const builder *b, const char *key,
                                       int line, int before,
                                       cellgate_error *error)
{
    cg_place place = place_at(b, line, key);

    return cg_complain(error, &place, "this key is in line %d already", before);
}

/* Keeps a key that the device's plugin will judge. */
static cellgate_status add_entry(builder *b, const char *key, const char *value,
                                 int line, cellgate_error *error)
{
    cg_device_section *device = b->device;
    cg_entry entry = { NULL, NULL, line };
    cg_entry *grown;

    for (size_t i = 0; i < device->entry_count; i++)
        if (strcmp(device->entries[i].key, key) == 0)
            return refuse_repeated(b, key, line, device->entries[i].line,
                                   error);
    grown = realloc(device->entries, (device->entry_count + 1) * sizeof *grown);
    if (grown == NULL)
        return no_memory(b, error);
    device->entries = grown;
    entry.key = strdup(key);
    entry.value = strdup(value);
    if (entry.key == NULL || entry.value == NULL) {
        free(entry.key);
        free(entry.value);
        return no_memory(b, error);
    }
    device->entries[device->entry_count++] = entry;
    return CELLGATE_OK;
}

static cellgate_status set_key(builder *b, const cg_key *key, const char *text,
                               int line, cellgate_error *error)
{
    void *owner = b->config;
    cg_place place = place_at(b, line, key->key.name);
    char problem[sizeof((cellgate_error *)0)->text];
    const char *expected;
    cg_value value;
    cellgate_status status;

    if (!cg_value_parse(&key->key, text, &value, problem, sizeof problem))
        return cg_complain(error, &place, "%s", problem);
    if (b->device != NULL)
        owner = b->device;
    else if (b->pin != NULL)
        owner = b->pin;
    expected = key->check != NULL ? key->check(&value) : NULL;
    if (expected != NULL)
        return cg_complain(error, &place, "expected %s, not \"%s\"", expected,
                           text);
    status = cg_store_value(owner, key, &value, problem, sizeof problem);
    if (status == CELLGATE_BAD_CONFIG)
        return cg_complain(error, &place, "%s", problem);
    return status == CELLGATE_OK ? status : no_memory(b, error);
}

static cellgate_status take_key(void *context, const char *key,
                                const char *value, int line,
                                cellgate_error *error)
{
    builder *b = context;
    const cg_key *known = cg_section_key(b->section, key);
    size_t which;

    if (known == NULL && b->section->fills == CG_FILLS_DEVICE)
        return add_entry(b, key, value, line, error);
    if (known == NULL)
        return refuse_key(b, key, line, error);
    which = (size_t)(known - b->section->keys);
    if (b->key_lines[which] != 0)
        return refuse_repeated(b, key, line, b->key_lines[which], error);
    b->key_lines[which] = line;
    if (b->device != NULL && strcmp(key, "exclude") == 0)
        b->device->exclude_line = line;
    return set_key(b, known, value, line, error);
}

/* ---- The whole ---------------------------------------------------------- */

static cellgate_status build(builder *b, const char *text, size_t size,
                             cellgate_error *error)
{
    static const cg_ini_events events = { begin_section, take_key };
    cellgate_status status;

    b->config->path = strdup(b->file);
    if (b->config->path == NULL)
        return no_memory(b, error);
    for (size_t i = 0; i < cg_section_count; i++)
        if (cg_sections[i].fills == CG_FILLS_CONFIG &&
            cg_store_defaults(&cg_sections[i], b->config) != CELLGATE_OK)
            return no_memory(b, error);
    status = cg_ini_read(b->file, text, size, &events, b, error);
    return status == CELLGATE_OK ? end_section(b, error) : status;
}

cellgate_status cg_config_parse(const char *name, const char *text, size_t size,
                                cg_config **config, cellgate_error *error)
{
    builder b = { .file = name };
    cg_place place = { name, 0, NULL, NULL };
    cellgate_status status;

    if (size > CG_CONFIG_BYTES_MAX)
        return cg_complain(error, &place,
                           "the file has more than %d bytes, so it is no "
                           "configuration",
                           CG_CONFIG_BYTES_MAX);
    b.config = calloc(1, sizeof *b.config);
    if (b.config == NULL)
        return no_memory(&b, error);
    status = build(&b, text, size, error);
    if (status == CELLGATE_OK)
        *config = b.config;
    else
        cg_config_destroy(b.config);
    return status;
}

cellgate_status cg_config_read(const char *path, cg_config **config,
                               cellgate_error *error)
{
    cg_config_text text;
    cellgate_status status = cg_config_locate(path, &text, error);

    if (status != CELLGATE_OK)
        return status;
    status = cg_config_parse(text.path, text.bytes, text.size, config, error);
    cg_config_text_finish(&text);
    return status;
}

static void device_section_finish(cg_device_section *device)
{
    for (size_t i = 0; i < device->entry_count; i++) {
        free(device->entries[i].key);
        free(device->entries[i].value);
    }
    free(device->entries);
    free(device->name);
    free(device->plugin);
    free(device->match);
    free(device->exclude);
}

static void pin_section_finish(cg_pin_section *pin)
{
    free(pin->name);
    free(pin->model);
    free(pin->device);
    free(pin->variant);
}

void cg_config_destroy(cg_config *config)
{
    if (config == NULL)
        return;
    for (size_t i = 0; i < config->device_count; i++)
        device_section_finish(&config->devices[i]);
    free(config->devices);
    for (size_t i = 0; i < config->pin_count; i++)
        pin_section_finish(&config->pins[i]);
    free(config->pins);
    cg_paths_free(config->plugin_paths, config->plugin_path_count);
    free(config->store);
    free(config->site);
    free(config->path);
    free(config);
}
