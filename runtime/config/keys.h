/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys that the core itself takes: one table, which drives parsing,
 * defaults, errors and suggestions, and against which the documentation is
 * tested.
 */
#ifndef CELLGATE_RUNTIME_CONFIG_KEYS_H
#define CELLGATE_RUNTIME_CONFIG_KEYS_H

#include "runtime/config/settings.h"
#include "runtime/config/value.h"

/* How a checked value lies in the struct that its section fills. */
typedef enum cg_store {
    CG_STORE_CHOICE,  /* an enum: the choice's position */
    CG_STORE_BOOLEAN, /* bool */
    CG_STORE_SECONDS, /* double */
    CG_STORE_INTEGER, /* int64_t */
    CG_STORE_COUNT,   /* uint32_t */
    CG_STORE_TEXT,    /* char *, NULL for an empty value */
    CG_STORE_RANGE,   /* cg_range; "any" is all from 0 on */
    CG_STORE_PATHS    /* plugin_paths and plugin_path_count */
} cg_store;

typedef struct cg_key {
    cellgate_key key;
    cg_store store;
    size_t offset; /* in the struct that the section fills */
    /* What the type alone does not say: NULL, or returns NULL for a good value
       and what was expected for a wrong one. */
    const char *(*check)(const cg_value *value);
} cg_key;

typedef enum cg_fills {
    CG_FILLS_CONFIG, /* the cg_config: the section is there once */
    CG_FILLS_DEVICE, /* a cg_device_section; keys that are not in the table are
                        left to the device's plugin */
    CG_FILLS_PIN     /* a cg_pin_section */
} cg_fills;

typedef struct cg_section {
    const char *name;  /* "device" stands for [device NAME] */
    const char *shown; /* as written in messages: "device NAME" */
    cg_fills fills;
    const cg_key *keys;
    size_t key_count;
} cg_section;

extern const cg_section cg_sections[];
extern const size_t cg_section_count;

/* NULL: the section has no such key. */
const cg_key *cg_section_key(const cg_section *section, const char *name);
/* The section that has such a key; NULL: none. */
const cg_section *cg_section_with_key(const char *name);
/* The section [device NAME]. */
const cg_section *cg_section_device(void);

#endif
