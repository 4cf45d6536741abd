/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdict: what became of one plugin file. Formed by the probe's process,
 * carried as JSON over a pipe and in the cache, read by the table of devices.
 */
#ifndef CELLGATE_RUNTIME_PLUGIN_VERDICT_H
#define CELLGATE_RUNTIME_PLUGIN_VERDICT_H

#include <stdbool.h>

#include <jansson.h>

#include "cellgate/plugin.h"

/* Beyond these a plugin is taken to be broken, not large. */
#define CG_VERDICT_DEVICES_MAX 256
#define CG_VERDICT_KEYS_MAX 256
#define CG_VERDICT_WATCHED_MAX 64
#define CG_VERDICT_VARIANTS_MAX 256
#define CG_VERDICT_TEXT_MAX 4096

typedef struct cg_verdict {
    cellgate_status status; /* OK: admitted, perhaps without a device */
    /* Never NULL. "" when admitted with devices; else why, and the remedy. */
    char *reason;

    /* Known from negotiation on; "" and 0 before. Never NULL. */
    char *name;
    char *version;
    char *build;
    uint32_t abi;
    cellgate_key *keys; /* the verdict's own copies */
    size_t key_count;
    char **watched; /* see cellgate_plugin.watched */
    size_t watched_count;
    char **variants; /* see cellgate_plugin.variants */
    size_t variant_count;

    /* Known when admitted. */
    cellgate_device_description *devices;
    uint32_t device_count;
} cg_verdict;

/* No verdict yet: INTERNAL, every text "". NULL without memory. */
cg_verdict *cg_verdict_create(void);
void cg_verdict_destroy(cg_verdict *verdict);

/*
 * Sets status and reason. The text is made fit for one line of a terminal:
 * control characters and bytes that are not UTF-8 become '?'. Without memory
 * the old reason stays.
 */
CELLGATE_PRINTF_LIKE(3, 4)
void cg_verdict_set(cg_verdict *verdict, cellgate_status status,
                    const char *format, ...);

/* Copies what a plugin's table says of itself. false: no memory. */
bool cg_verdict_identify(cg_verdict *verdict, const cellgate_plugin *table);

/* A copy of `text` of at most CG_VERDICT_TEXT_MAX bytes, cleaned as above. */
char *cg_verdict_clean(const char *text);
/* Puts one in place of *text, "" for NULL; false without memory. */
bool cg_verdict_text(char **text, const char *from);

/* A new JSON object; NULL without memory. */
json_t *cg_verdict_to_json(const cg_verdict *verdict);
/* NULL without memory, or for JSON that is no verdict: it is checked. */
cg_verdict *cg_verdict_from_json(const json_t *json);

#endif
