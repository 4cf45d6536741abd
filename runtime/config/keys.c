/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/config/keys.h"
#include "runtime/config/store.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *check_positive(const cg_value *value)
{
    return value->seconds > 0 ? NULL : "a time above 0";
}

static const char *check_plugin(const cg_value *value)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    const char *text = value->text;

    if (text[0] == '\0' || text[strspn(text, allowed)] != '\0')
        return "the name of a plugin, as \"cellgate devices\" lists it "
               "(folders "
               "go into [cellgate] plugin_path)";
    return NULL;
}

static const char *check_match(const cg_value *value)
{
    return value->text[0] != '\0' ? NULL
                                  : "a pattern such as *H200*, or no such line";
}

static const char *check_exclude(const cg_value *value)
{
    return value->text[0] != '\0'
               ? NULL
               : "names of variants with blanks between them, or no such line";
}

#define KEY(name, type, fallback, choices, minimum, maximum, help)             \
    {                                                                          \
        sizeof(cellgate_key), (name), (type), (fallback), (choices),           \
            (minimum), (maximum), (help)                                       \
    }

static const cg_key cellgate_keys[] = {
    { KEY("log", CELLGATE_KEY_CHOICE, "warning", "error|warning|info|debug", 0,
          0, "least important log lines to show"),
      CG_STORE_CHOICE, offsetof(cg_config, log), NULL },
    { KEY("plugin_path", CELLGATE_KEY_TEXT, "", NULL, 0, 0,
          "more folders to look for plugins in, separated by colons"),
      CG_STORE_PATHS, offsetof(cg_config, plugin_paths), NULL },
    { KEY("probe_timeout", CELLGATE_KEY_SECONDS, "10", NULL, 0, 0,
          "time a plugin may take to say which devices it has"),
      CG_STORE_SECONDS, offsetof(cg_config, probe_timeout), check_positive },
    { KEY("probe_cache", CELLGATE_KEY_BOOLEAN, "yes", NULL, 0, 0,
          "remember what plugins said, from one process to the next"),
      CG_STORE_BOOLEAN, offsetof(cg_config, probe_cache), NULL },
    { KEY("unlisted", CELLGATE_KEY_BOOLEAN, "yes", NULL, 0, 0,
          "offer devices that no section names"),
      CG_STORE_BOOLEAN, offsetof(cg_config, unlisted), NULL },
};

static const cg_key scheduler_keys[] = {
    { KEY("fallback", CELLGATE_KEY_CHOICE, "load", "never|load|run", 0, 0,
          "when a request may go to another device than the one meant for it"),
      CG_STORE_CHOICE, offsetof(cg_config, fallback), NULL },
    { KEY("watchdog", CELLGATE_KEY_SECONDS, "60", NULL, 0, 0,
          "time one run on a device may take; 0 means no limit"),
      CG_STORE_SECONDS, offsetof(cg_config, watchdog), NULL },
    { KEY("readmit", CELLGATE_KEY_SECONDS, "30", NULL, 0, 0,
          "time until a device out of service is tried again; 0 means never"),
      CG_STORE_SECONDS, offsetof(cg_config, readmit), NULL },
    { KEY("failures", CELLGATE_KEY_INTEGER, "5", NULL, 0, 16,
          "failed runs within a minute that take a device out of service; 0 "
          "means none do"),
      CG_STORE_COUNT, offsetof(cg_config, failures), NULL },
    { KEY("threads", CELLGATE_KEY_INTEGER, "0", NULL, 0, 65536,
          "host threads to use at once; 0 means one a core"),
      CG_STORE_COUNT, offsetof(cg_config, threads), NULL },
    { KEY("queue", CELLGATE_KEY_INTEGER, "1024", NULL, 1, 1000000,
          "submitted requests of a session that may wait at once"),
      CG_STORE_COUNT, offsetof(cg_config, queue), NULL },
    { KEY("measured", CELLGATE_KEY_BOOLEAN, "yes", NULL, 0, 0,
          "choose by what was measured; no: the first usable device"),
      CG_STORE_BOOLEAN, offsetof(cg_config, measured), NULL },
    { KEY("objective", CELLGATE_KEY_CHOICE, "latency", "latency|throughput", 0,
          0, "what the best device is best at"),
      CG_STORE_CHOICE, offsetof(cg_config, objective), NULL },
    { KEY("regime", CELLGATE_KEY_CHOICE, "back-to-back",
          "back-to-back|spaced|auto", 0, 0, "how requests follow each other"),
      CG_STORE_CHOICE, offsetof(cg_config, regime), NULL },
    { KEY("precision", CELLGATE_KEY_CHOICE, "float32", "float32|mixed|int8", 0,
          0, "the least exact results that a device may give"),
      CG_STORE_CHOICE, offsetof(cg_config, precision), NULL },
    { KEY("margin", CELLGATE_KEY_INTEGER, "5", NULL, 0, 1000,
          "gain, in percent, that another device must promise to be taken"),
      CG_STORE_COUNT, offsetof(cg_config, margin), NULL },
    { KEY("learn", CELLGATE_KEY_BOOLEAN, "yes", NULL, 0, 0,
          "let requests in service correct what was measured"),
      CG_STORE_BOOLEAN, offsetof(cg_config, learn), NULL },
    { KEY("shadow", CELLGATE_KEY_INTEGER, "0", NULL, 0, 50,
          "time, in percent of the requests', to spend on timing the second "
          "best"),
      CG_STORE_COUNT, offsetof(cg_config, shadow), NULL },
    { KEY("split", CELLGATE_KEY_BOOLEAN, "yes", NULL, 0, 0,
          "run a batch on two devices where that ends sooner"),
      CG_STORE_BOOLEAN, offsetof(cg_config, split), NULL },
    { KEY("requests", CELLGATE_KEY_INTEGER, "0", NULL, 0, 1000000000,
          "requests that a session is expected to serve, over which what is "
          "done once is spread; 0 means many"),
      CG_STORE_COUNT, offsetof(cg_config, requests), NULL },
};

static const char *check_file(const cg_value *value)
{
    return value->text[0] == '\0' || value->text[0] == '/'
               ? NULL
               : "the absolute path of a file";
}

static const cg_key calibration_keys[] = {
    { KEY("store", CELLGATE_KEY_TEXT, "", NULL, 0, 0,
          "file that measurements are kept in"),
      CG_STORE_TEXT, offsetof(cg_config, store), check_file },
    { KEY("site", CELLGATE_KEY_TEXT, "", NULL, 0, 0,
          "file of measurements that is only read"),
      CG_STORE_TEXT, offsetof(cg_config, site), check_file },
};

static const cg_key device_keys[] = {
    { KEY("plugin", CELLGATE_KEY_TEXT, "", NULL, 0, 0,
          "name of the plugin that offers the device; required"),
      CG_STORE_TEXT, offsetof(cg_device_section, plugin), check_plugin },
    { KEY("enabled", CELLGATE_KEY_CHOICE, "auto", "auto|yes|no", 0, 0,
          "auto: if it works; yes: it must work; no: never"),
      CG_STORE_CHOICE, offsetof(cg_device_section, enabled), NULL },
    { KEY("match", CELLGATE_KEY_TEXT, "", NULL, 0, 0,
          "pattern for the device's name, vendor, driver, resource or "
          "identity"),
      CG_STORE_TEXT, offsetof(cg_device_section, match), check_match },
    { KEY("index", CELLGATE_KEY_INTEGER, "0", NULL, 0, 65535,
          "which of the plugin's devices that match, from 0"),
      CG_STORE_INTEGER, offsetof(cg_device_section, index), NULL },
    { KEY("exclude", CELLGATE_KEY_TEXT, "", NULL, 0, 0,
          "variants that are left out: patterns of their names, with blanks "
          "between them"),
      CG_STORE_TEXT, offsetof(cg_device_section, exclude), check_exclude },
};

static const char *check_given(const cg_value *value)
{
    return value->text[0] != '\0' ? NULL : "the name of a device";
}

static const char *check_range(const cg_value *value)
{
    cg_range range;

    return cg_range_parse(value->text, &range)
               ? NULL
               : "a number, such as 16, a range, such as 1-8 or 64-, or any";
}

static const cg_key pin_keys[] = {
    { KEY("model", CELLGATE_KEY_TEXT, "", NULL, 0, 0,
          "pattern for the name of the model's file"),
      CG_STORE_TEXT, offsetof(cg_pin_section, model), check_match },
    { KEY("batch", CELLGATE_KEY_TEXT, "any", NULL, 0, 0,
          "rows of the requests that are meant"),
      CG_STORE_RANGE, offsetof(cg_pin_section, batch), check_range },
    { KEY("steps", CELLGATE_KEY_TEXT, "any", NULL, 0, 0,
          "time steps of the requests that are meant"),
      CG_STORE_RANGE, offsetof(cg_pin_section, steps), check_range },
    { KEY("device", CELLGATE_KEY_TEXT, "", NULL, 0, 0,
          "name of the device that they go to; required"),
      CG_STORE_TEXT, offsetof(cg_pin_section, device), check_given },
    { KEY("variant", CELLGATE_KEY_TEXT, "", NULL, 0, 0,
          "name of the variant that runs them"),
      CG_STORE_TEXT, offsetof(cg_pin_section, variant), NULL },
};

const cg_section cg_sections[] = {
    { "cellgate", "cellgate", CG_FILLS_CONFIG, cellgate_keys,
      COUNT(cellgate_keys) },
    { "scheduler", "scheduler", CG_FILLS_CONFIG, scheduler_keys,
      COUNT(scheduler_keys) },
    { "calibration", "calibration", CG_FILLS_CONFIG, calibration_keys,
      COUNT(calibration_keys) },
    { "device", "device NAME", CG_FILLS_DEVICE, device_keys,
      COUNT(device_keys) },
    { "pin", "pin NAME", CG_FILLS_PIN, pin_keys, COUNT(pin_keys) },
};
const size_t cg_section_count = COUNT(cg_sections);

const cg_key *cg_section_key(const cg_section *section, const char *name)
{
    for (size_t i = 0; i < section->key_count; i++)
        if (strcmp(section->keys[i].key.name, name) == 0)
            return &section->keys[i];
    return NULL;
}

const cg_section *cg_section_with_key(const char *name)
{
    for (size_t i = 0; i < cg_section_count; i++)
        if (cg_section_key(&cg_sections[i], name) != NULL)
            return &cg_sections[i];
    return NULL;
}

const cg_section *cg_section_device(void)
{
    size_t at = 0;

    while (cg_sections[at].fills != CG_FILLS_DEVICE)
        at++;
    return &cg_sections[at];
}
