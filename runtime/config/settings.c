/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/config/settings.h"

#include <stdlib.h>

#include "runtime/config/complaint.h"
#include "runtime/config/exclude.h"
#include "runtime/config/keys.h"
#include "runtime/config/suggest.h"
#include "runtime/config/value.h"

#define SECTION_NAME 64

typedef struct setting {
    char *key;
    char *value; /* canonical */
} setting;

struct cellgate_settings {
    char *exclude; /* NULL: nothing */
    size_t count;
    setting settings[];
};

/* Key `index` of a table whose rows may be longer than ours. */
static cellgate_key key_at(const cellgate_key *keys, size_t index)
{
    cellgate_key key = { .struct_size = sizeof key };

    cellgate_struct_copy(&key, (const char *)keys + index * keys->struct_size);
    return key;
}

static const char *plugin_of(const cg_device_section *section)
{
    return section != NULL ? section->plugin : "?";
}

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while reading a device's settings");
}

/* The table is the plugin's: a mistake in it is the plugin's, not the user's.
   Its values are checked as they are used. */
static cellgate_status check_table(const cg_device_section *section,
                                   const cellgate_key *keys, size_t count,
                                   cellgate_error *error)
{
    if (count > 0 && keys->struct_size < sizeof *keys)
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "plugin %s: the rows of its table of keys are "
                             "%zu bytes, at least %zu are needed",
                             plugin_of(section), keys->struct_size,
                             sizeof *keys);
    for (size_t i = 0; i < count; i++) {
        cellgate_key key = key_at(keys, i);

        if (key.name == NULL || key.default_text == NULL)
            return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                                 "plugin %s: row %zu of its table of keys has "
                                 "no name or no default",
                                 plugin_of(section), i);
    }
    return CELLGATE_OK;
}

/* The place of an entry; `name` becomes the section's name as written. */
static cg_place place_of(const cg_config *config,
                         const cg_device_section *section,
                         const cg_entry *entry, char *name, size_t name_size)
{
    cg_place place = { config->path, entry->line, name, entry->key };

    (void)snprintf(name, name_size, "device %s", section->name);
    return place;
}

static cellgate_status refuse_entry(const cg_config *config,
                                    const cg_device_section *section,
                                    const cg_entry *entry,
                                    const cellgate_key *keys, size_t count,
                                    cellgate_error *error)
{
    char name[SECTION_NAME];
    cg_place place = place_of(config, section, entry, name, sizeof name);
    const cg_section *core = cg_section_device();
    const cg_section *owner = cg_section_with_key(entry->key);
    char known[200] = "";
    size_t at = 0;
    cg_suggestion meant;

    if (owner != NULL)
        return cg_complain(error, &place, "this key belongs in [%s], not here",
                           owner->shown);
    cg_suggestion_init(&meant, entry->key);
    for (size_t i = 0; i < core->key_count; i++)
        cg_suggestion_offer(&meant, core->keys[i].key.name,
                            strlen(core->keys[i].key.name));
    for (size_t i = 0; i < count; i++) {
        cellgate_key key = key_at(keys, i);

        cg_suggestion_offer(&meant, key.name, strlen(key.name));
        if (at < sizeof known)
            at += (size_t)snprintf(known + at, sizeof known - at, ", %s",
                                   key.name);
    }
    if (meant.best != NULL)
        return cg_complain(error, &place, "unknown key; did you mean %.*s?",
                           meant.length, meant.best);
    return cg_complain(error, &place,
                       "unknown key; a device of plugin %s takes plugin, "
                       "enabled, match, index, exclude%s",
                       section->plugin, known);
}

static cellgate_status check_entries(const cg_config *config,
                                     const cg_device_section *section,
                                     const cellgate_key *keys, size_t count,
                                     cellgate_error *error)
{
    for (size_t i = 0; section != NULL && i < section->entry_count; i++) {
        const cg_entry *entry = &section->entries[i];
        bool known = false;

        for (size_t k = 0; k < count && !known; k++)
            known = strcmp(key_at(keys, k).name, entry->key) == 0;
        if (!known)
            return refuse_entry(config, section, entry, keys, count, error);
    }
    return CELLGATE_OK;
}

static const cg_entry *find_entry(const cg_device_section *section,
                                  const char *key)
{
    for (size_t i = 0; section != NULL && i < section->entry_count; i++)
        if (strcmp(section->entries[i].key, key) == 0)
            return &section->entries[i];
    return NULL;
}

/* The value of one key, from the section or the default. */
static cellgate_status settle(const cg_config *config,
                              const cg_device_section *section,
                              const cellgate_key *key, setting *out,
                              cellgate_error *error)
{
    const cg_entry *entry = find_entry(section, key->name);
    char problem[sizeof((cellgate_error *)0)->text];
    cg_value value;

    if (!cg_value_parse(key, entry != NULL ? entry->value : key->default_text,
                        &value, problem, sizeof problem)) {
        char name[SECTION_NAME];
        cg_place place;

        if (entry == NULL)
            return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                                 "plugin %s: the default of its key %s is "
                                 "wrong: %s",
                                 plugin_of(section), key->name, problem);
        place = place_of(config, section, entry, name, sizeof name);
        return cg_complain(error, &place, "%s", problem);
    }
    out->key = strdup(key->name);
    out->value = strdup(value.text);
    return out->key != NULL && out->value != NULL ? CELLGATE_OK
                                                  : no_memory(error);
}

cellgate_status cg_settings_create(const cg_config *config,
                                   const cg_device_section *section,
                                   const cellgate_key *keys, size_t key_count,
                                   cellgate_settings **settings,
                                   cellgate_error *error)
{
    cellgate_settings *made;
    cellgate_status status = check_table(section, keys, key_count, error);

    if (status == CELLGATE_OK)
        status = check_entries(config, section, keys, key_count, error);
    if (status != CELLGATE_OK)
        return status;
    if (key_count > (SIZE_MAX - sizeof *made) / sizeof made->settings[0])
        return no_memory(error);
    made = calloc(1, sizeof *made + key_count * sizeof made->settings[0]);
    if (made == NULL)
        return no_memory(error);
    made->count = key_count;
    if (section != NULL && section->exclude != NULL) {
        made->exclude = strdup(section->exclude);
        if (made->exclude == NULL)
            status = no_memory(error);
    }
    for (size_t i = 0; i < key_count && status == CELLGATE_OK; i++) {
        cellgate_key key = key_at(keys, i);

        status = settle(config, section, &key, &made->settings[i], error);
    }
    if (status == CELLGATE_OK)
        *settings = made;
    else
        cg_settings_destroy(made);
    return status;
}

void cg_settings_destroy(cellgate_settings *settings)
{
    if (settings == NULL)
        return;
    for (size_t i = 0; i < settings->count; i++) {
        free(settings->settings[i].key);
        free(settings->settings[i].value);
    }
    free(settings->exclude);
    free(settings);
}

bool cg_settings_excludes(const cellgate_settings *settings,
                          const char *variant)
{
    return settings != NULL && cg_exclude_fits(settings->exclude, variant);
}

const char *cg_settings_value(const cellgate_settings *settings,
                              const char *key)
{
    for (size_t i = 0; settings != NULL && i < settings->count; i++)
        if (strcmp(settings->settings[i].key, key) == 0)
            return settings->settings[i].value;
    return NULL;
}

/* Of one setting, with its NUL. */
static size_t text_size(const setting *of)
{
    return strlen(of->key) + strlen(of->value) + sizeof "= ";
}

char *cg_settings_text(const cellgate_settings *settings)
{
    size_t size = 1;
    char *text, *at;

    for (size_t i = 0; i < settings->count; i++)
        size += text_size(&settings->settings[i]);
    text = at = calloc(size, 1);
    for (size_t i = 0; text != NULL && i < settings->count; i++)
        at += sprintf(at, "%s%s=%s", i > 0 ? " " : "",
                      settings->settings[i].key, settings->settings[i].value);
    for (at = text; at != NULL && *at != '\0'; at++)
        if ((unsigned char)*at < ' ')
            *at = ' ';
    return text;
}
