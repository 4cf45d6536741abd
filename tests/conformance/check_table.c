/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's table, its keys, its devices, and the variants they list. */
#include "config.h"

#include <stdbool.h>

#include "tests/conformance/crash.h"
#include "tests/conformance/suite.h"

static const char what_table[] = "entry, table and keys";
static const char what_device[] = "description of the device";
static const char what_variants[] = "lists of variants";

/* ---- The table ----------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static int
wrong_table(suite *s, const char *format, ...)
{
    char text[500];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    report_failed(s->report, "table", NULL, what_table, "%s", text);
    return -1;
}

static int check_entry(suite *s)
{
    const plugin_file *plugin = &s->plugin;

    if (plugin->entry(CELLGATE_ABI_VERSION + 1000, UINT32_MAX) != NULL)
        return wrong_table(s, "the entry gave a table for versions that it "
                              "can't know");
    if (plugin->entry(CELLGATE_ABI_VERSION, UINT32_MAX) == NULL)
        return wrong_table(s, "the entry has no table for a host that talks "
                              "this version and newer ones");
    if (plugin->entry(CELLGATE_ABI_VERSION, CELLGATE_ABI_VERSION) !=
        plugin->declared)
        return wrong_table(s, "the entry gave another table the second time");
    return 0;
}

#define WORD "abcdefghijklmnopqrstuvwxyz0123456789_"

static int is_made_of(const char *text, const char *characters)
{
    return text != NULL && text[0] != '\0' &&
           strspn(text, characters) == strlen(text);
}

static int check_key(suite *s, const cellgate_key *key)
{
    static const char *const reserved[] = { "plugin", "enabled", "match",
                                            "index" };
    char canonical[512];

    if (!is_made_of(key->name, WORD))
        return wrong_table(s, "a key's name is not lower case, digits and _");
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
        if (strcmp(key->name, reserved[i]) == 0)
            return wrong_table(s, "the key %s belongs to the host", key->name);
    if (key->help == NULL || key->help[0] == '\0')
        return wrong_table(s, "the key %s has no help", key->name);
    if (key->type < CELLGATE_KEY_TEXT || key->type > CELLGATE_KEY_CHOICE)
        return wrong_table(s, "the key %s has type %d", key->name,
                           (int)key->type);
    if ((key->type == CELLGATE_KEY_CHOICE) != (key->choices != NULL))
        return wrong_table(s,
                           "the key %s: choices are for CHOICE, and only "
                           "for it",
                           key->name);
    if (key->default_text == NULL)
        return wrong_table(s, "the key %s has no default", key->name);
    if (!host_canonical(key, key->default_text, canonical, sizeof canonical))
        return wrong_table(s, "the default of %s, '%s', is no valid value",
                           key->name, key->default_text);
    if (key->type != CELLGATE_KEY_SECONDS &&
        strcmp(canonical, key->default_text) != 0)
        return wrong_table(s, "the default of %s, '%s', is not canonical (%s)",
                           key->name, key->default_text, canonical);
    return 0;
}

static int check_keys(suite *s)
{
    const cellgate_plugin *table = &s->plugin.table;

    for (size_t i = 0; i < s->plugin.host.key_count; i++) {
        if (check_key(s, &table->keys[i]) != 0)
            return -1;
        for (size_t k = 0; k < i; k++)
            if (strcmp(table->keys[i].name, table->keys[k].name) == 0)
                return wrong_table(s, "two keys are named %s",
                                   table->keys[i].name);
    }
    return 0;
}

static int check_names(suite *s)
{
    const cellgate_plugin *table = &s->plugin.table;

    if (!is_made_of(table->name, WORD "-") || strlen(table->name) > 63)
        return wrong_table(s,
                           "its name, '%s', is not 1 to 63 of lower case, "
                           "digits, _ and -",
                           table->name);
    for (size_t i = 0; table->watched != NULL && table->watched[i] != NULL; i++)
        if (table->watched[i][0] != '/' && table->watched[i][0] != '$')
            return wrong_table(s,
                               "the watched path '%s' is not absolute, and "
                               "no $NAME",
                               table->watched[i]);
    return 0;
}

void group_table(suite *s)
{
    static int (*const checks[])(suite *) = { check_entry, check_names,
                                              check_keys };

    if (!suite_wants_check(s, "table", what_table))
        return;
    crash_context(what_table, NULL);
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (checks[i](s) == 0)
            report_passed(s->report, "table", NULL, 0);
}

/* ---- Devices ------------------------------------------------------------- */

static const char *wrong_description(const cellgate_device_description *d)
{
    const struct {
        const char *text;
        size_t size;
        const char *what;
        int needed;
    } texts[] = {
        { d->name, sizeof d->name, "its name", 1 },
        { d->vendor, sizeof d->vendor, "its vendor", 0 },
        { d->driver, sizeof d->driver, "its driver", 0 },
        { d->resource, sizeof d->resource, "its resource", 1 },
        { d->identity, sizeof d->identity, "its identity", 1 },
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (memchr(texts[i].text, '\0', texts[i].size) == NULL ||
            (texts[i].needed && texts[i].text[0] == '\0'))
            return texts[i].what;
    if (d->kind < CELLGATE_DEVICE_CPU || d->kind > CELLGATE_DEVICE_ACCELERATOR)
        return "its kind";
    return NULL;
}

void group_devices(suite *s)
{
    const cellgate_plugin *table = &s->plugin.table;
    cellgate_device_description again = { .struct_size = sizeof again };
    cellgate_error error = CELLGATE_ERROR_INIT;
    const char *wrong;

    if (!suite_wants_check(s, "devices", what_device))
        return;
    crash_context(what_device, NULL);
    wrong = wrong_description(&s->description);
    if (wrong != NULL)
        report_failed(s->report, "devices", NULL, what_device,
                      "%s is missing or malformed", wrong);
    else if (table->device_describe(s->plugin.instance, s->device_index, &again,
                                    &error) != CELLGATE_OK ||
             strcmp(again.identity, s->description.identity) != 0 ||
             strcmp(again.resource, s->description.resource) != 0)
        report_failed(s->report, "devices", NULL, what_device,
                      "identity or resource changed from call to call");
    else
        report_passed(s->report, "devices", NULL, 0);
}

/* ---- Variants ------------------------------------------------------------ */

__attribute__((format(printf, 3, 4))) static int
wrong_variants(suite *s, const test_case *c, const char *format, ...)
{
    char text[500], description[1000];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    case_describe(c, description, sizeof description);
    report_failed(s->report, "variants", NULL, description, "%s", text);
    return -1;
}

/* Lists all variants into `list`; the count, or -1. */
static int list_variants(suite *s, const case_data *data,
                         const cellgate_segment *segment,
                         const cellgate_shape *shape, cellgate_variant *list)
{
    for (uint32_t i = 0; i < SUITE_MAX_VARIANTS; i++) {
        cellgate_error error = CELLGATE_ERROR_INIT;
        cellgate_status status;
        list[i] = (cellgate_variant){ .struct_size = sizeof list[i] };
        status = s->plugin.table.support(s->device, segment, shape, i, &list[i],
                                         &error);
        if (status == CELLGATE_END && i > 0)
            return (int)i;
        if (status != CELLGATE_OK)
            return wrong_variants(s, &data->c,
                                  "support() of index %u gave status %d: %s", i,
                                  (int)status, error.text);
    }
    return wrong_variants(s, &data->c, "more than %d variants",
                          SUITE_MAX_VARIANTS);
}

/* Whether the table lists the name, or lists none. Its '*' is one at the end
   alone: `exclude` could not be held against more. */
static bool is_listed(const suite *s, const char *name)
{
    const char *const *at = s->plugin.table.variants;

    for (; at != NULL && *at != NULL; at++) {
        const size_t length = strlen(*at);
        const bool open = length > 0 && (*at)[length - 1] == '*';

        if (open ? strncmp(*at, name, length - 1) == 0 : strcmp(*at, name) == 0)
            return true;
    }
    return s->plugin.table.variants == NULL;
}

static int check_variant(suite *s, const case_data *data,
                         const cellgate_variant *list, int index)
{
    const cellgate_variant *v = &list[index];
    uint32_t budget = s->plugin.host.table.thread_budget(
        &s->plugin.host, s->description.resource);

    if (v->struct_size != sizeof *v)
        return wrong_variants(s, &data->c, "support() changed struct_size");
    if (memchr(v->name, '\0', sizeof v->name) == NULL || v->name[0] == '\0')
        return wrong_variants(s, &data->c, "variant %d has no name", index);
    if (!is_listed(s, v->name))
        return wrong_variants(
            s, &data->c, "%s is not in the table's list of variants", v->name);
    if (tolerance_class_name(v->numeric) == NULL)
        return wrong_variants(s, &data->c, "%s: numeric class %d", v->name,
                              (int)v->numeric);
    if (v->threads < 1 || v->threads > budget)
        return wrong_variants(s, &data->c,
                              "%s: %u threads, and the budget is %u", v->name,
                              v->threads, budget);
    for (int k = 0; k < index; k++)
        if (strcmp(list[k].name, v->name) == 0 || list[k].id == v->id)
            return wrong_variants(s, &data->c,
                                  "two variants have the name "
                                  "%s or the id of it",
                                  v->name);
    return 0;
}

static int check_list(suite *s, const case_data *data,
                      const cellgate_shape *shape)
{
    static const uint32_t beyond[] = { 0, 1, 7, 1000 };
    cellgate_variant list[SUITE_MAX_VARIANTS], again[SUITE_MAX_VARIANTS];
    int count = list_variants(s, data, &data->structure, shape, list);

    if (count < 0)
        return -1;
    for (int i = 0; i < count; i++)
        if (check_variant(s, data, list, i) != 0)
            return -1;
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
        cellgate_error error = CELLGATE_ERROR_INIT;
        cellgate_variant v = { .struct_size = sizeof v };
        if (s->plugin.table.support(s->device, &data->structure, shape,
                                    (uint32_t)count + beyond[i], &v,
                                    &error) != CELLGATE_END)
            return wrong_variants(s, &data->c,
                                  "there are %d variants, and support() of "
                                  "index %u isn't END",
                                  count, (uint32_t)count + beyond[i]);
    }
    /* With the weights there it answers the same. */
    if (list_variants(s, data, &data->segment, shape, again) != count)
        return wrong_variants(s, &data->c, "the count of variants changes");
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].name, again[i].name) != 0 ||
            list[i].id != again[i].id || list[i].pack != again[i].pack)
            return wrong_variants(s, &data->c,
                                  "the variants change from call "
                                  "to call");
    return 0;
}

void group_variants(suite *s)
{
    static const int64_t hidden[] = { 1, 8, 32, 100, 512 };
    const cellgate_shape shapes[] = { { sizeof shapes[0], 1, 0 },
                                      { sizeof shapes[0], 1, 1 },
                                      { sizeof shapes[0], 64, 20 },
                                      { sizeof shapes[0], 67, 300 } };

    if (!suite_wants_check(s, "variants", what_variants))
        return;
    crash_context(what_variants, NULL);
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        test_case c = case_of("variants", i, case_lstm(hidden[i]));
        case_data data;
        if (case_data_init(&data, &c) != 0)
            return;
        if (check_list(s, &data, NULL) == 0)
            report_passed(s->report, "variants", NULL, 0);
        for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
            if (check_list(s, &data, &shapes[k]) == 0)
                report_passed(s->report, "variants", NULL, 0);
        case_data_finish(&data);
    }
}
