/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of keys: text checked against a cellgate_key, and brought into the
 * canonical form that cellgate_host.setting() promises. The same rules hold for
 * the core's own keys and for those of plugins. The locale plays no part.
 */
#ifndef CELLGATE_RUNTIME_CONFIG_VALUE_H
#define CELLGATE_RUNTIME_CONFIG_VALUE_H

#include <stdbool.h>

#include "cellgate/plugin.h"

/* The longest time that SECONDS takes, about 31 years. */
#define CG_VALUE_SECONDS_MAX 1000000000

typedef struct cg_value {
    /* BOOLEAN 0 or 1; INTEGER; SIZE in bytes; CHOICE: position, from 0 */
    int64_t integer;
    double seconds; /* SECONDS */
    /* Canonical form: points to `buffer`, or to the text that was parsed. */
    const char *text;
    char buffer[64];
} cg_value;

/*
 * Parses `text`, which is trimmed already. When it is wrong: false, and
 * `problem` says what was expected and, for a near miss, what was probably
 * meant. Do not copy *value: `text` may point into it.
 */
bool cg_value_parse(const cellgate_key *key, const char *text, cg_value *value,
                    char *problem, size_t problem_size);

#endif
