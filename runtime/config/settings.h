/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings: an INI text, checked. Everything about the syntax and the meaning
 * of keys is decided here; other rooms read plain fields.
 *
 * Immutable once read, so any thread may read it.
 */
#ifndef CELLGATE_RUNTIME_CONFIG_SETTINGS_H
#define CELLGATE_RUNTIME_CONFIG_SETTINGS_H

#include <stdbool.h>

#include "cellgate/plugin.h"

typedef enum cg_enabled {
    CG_ENABLED_AUTO, /* use it if it works; else list it with the reason */
    CG_ENABLED_YES,  /* it must work: a failure is fatal */
    CG_ENABLED_NO
} cg_enabled;

/* When a request may go to another device than the one meant for it. */
typedef enum cg_fallback {
    CG_FALLBACK_NEVER,
    CG_FALLBACK_LOAD, /* when a session is created */
    CG_FALLBACK_RUN   /* also when a run fails */
} cg_fallback;

/* What the best device is best at. */
typedef enum cg_aim { CG_AIM_LATENCY, CG_AIM_THROUGHPUT } cg_aim;

/* How exact results must be: float32; products of 8 bits of mantissa or more;
   weights of 8 bits in all. */
typedef enum cg_precision {
    CG_PRECISION_FLOAT32,
    CG_PRECISION_MIXED,
    CG_PRECISION_INT8
} cg_precision;

/* How requests follow each other. */
typedef enum cg_arrivals {
    CG_ARRIVALS_BACK_TO_BACK,
    CG_ARRIVALS_SPACED,
    CG_ARRIVALS_AUTO /* as each session sees them */
} cg_arrivals;

/* A line of a [device NAME] section that belongs to its plugin. */
typedef struct cg_entry {
    char *key;
    char *value;
    int line;
} cg_entry;

/* [device NAME] */
typedef struct cg_device_section {
    char *name;
    char *plugin; /* name of the plugin */
    cg_enabled enabled;
    /* fnmatch() pattern, in any case, over the texts of the device's
       description; NULL: any */
    char *match;
    int64_t index; /* among the plugin's devices that match */
    /* fnmatch() patterns of variants that are left out, with blanks between
       them; NULL: none */
    char *exclude;
    int exclude_line;
    int line; /* of the section's header */
    cg_entry *entries;
    size_t entry_count;
} cg_device_section;

/* A range of numbers, both ends in it. */
typedef struct cg_range {
    int64_t least, most;
} cg_range;

/* [pin NAME]: requests of some shapes go to a device whatever it costs. */
typedef struct cg_pin_section {
    char *name;
    char *model;   /* fnmatch() pattern over the name of the model's file; NULL:
                      any */
    char *device;  /* name of the device */
    char *variant; /* NULL: the device's first */
    cg_range batch, steps;
    int line; /* of the section's header */
} cg_pin_section;

typedef struct cg_config {
    char *path; /* "" for the built-in default */

    /* [cellgate] */
    cellgate_log_level log;
    char **plugin_paths; /* in order; the built-in folder is not among them */
    size_t plugin_path_count;
    double probe_timeout; /* seconds a plugin may take to answer a probe */
    bool probe_cache;     /* keep verdicts between processes */
    bool unlisted;        /* offer devices that no section names */

    /* [scheduler] */
    cg_fallback fallback;
    double watchdog;   /* seconds a device run may take; 0: no limit */
    double readmit;    /* seconds until a device out of service is tried again;
                          0: never */
    uint32_t failures; /* runs of a device that may fail within a minute; 0:
                          any number */
    uint32_t threads;  /* thread budget of the host's cores; 0: all of them */
    uint32_t queue;    /* submitted requests that may wait */
    bool measured;     /* choose by what was measured */
    cg_aim objective;
    cg_arrivals regime;
    cg_precision precision;
    uint32_t margin;   /* percent */
    bool learn;        /* from requests in service */
    uint32_t shadow;   /* percent */
    bool split;        /* a batch over two devices */
    uint32_t requests; /* that a session is expected to serve; 0: many */

    /* [calibration] */
    char *store; /* files; NULL: where they are by default */
    char *site;

    cg_device_section *devices; /* in file order */
    size_t device_count;
    cg_pin_section *pins; /* likewise */
    size_t pin_count;
} cg_config;

/*
 * Finds the file as cellgate_runtime_options says, reads and checks it.
 * `path` NULL means look. BAD_CONFIG: error->text begins with "file:line: ".
 * IO: a file that is named is not there, or one that is there cannot be read.
 * INVALID: a path is given where cg_privileged().
 */
cellgate_status cg_config_read(const char *path, cg_config **config,
                               cellgate_error *error);
/* The same from memory; `name` stands for the file in messages. */
cellgate_status cg_config_parse(const char *name, const char *text, size_t size,
                                cg_config **config, cellgate_error *error);
void cg_config_destroy(cg_config *config);

/*
 * Checks a section's entries against the keys that its plugin declares.
 * Unknown keys, wrong values: BAD_CONFIG with file:line, what was expected, and
 * what was probably meant. `section` NULL: every key has its default. The
 * caller destroys the settings, which refer to neither argument.
 */
cellgate_status cg_settings_create(const cg_config *config,
                                   const cg_device_section *section,
                                   const cellgate_key *keys, size_t key_count,
                                   cellgate_settings **settings,
                                   cellgate_error *error);
void cg_settings_destroy(cellgate_settings *settings);
/* The canonical value, or NULL for a key that was not declared. */
const char *cg_settings_value(const cellgate_settings *settings,
                              const char *key);

/* Whether the section leaves out variants of that name. */
bool cg_settings_excludes(const cellgate_settings *settings,
                          const char *variant);

/* All of the plugin's, "key=value key=value", on one line: two devices with the
   same text are set alike. malloc'ed; NULL: no memory. */
char *cg_settings_text(const cellgate_settings *settings);

/* Whether the process runs with someone else's rights: the environment and
   path overrides are then not to be trusted. */
bool cg_privileged(void);

#endif
