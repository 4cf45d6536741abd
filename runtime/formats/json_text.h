/* SPDX-License-Identifier: Apache-2.0 */
/* JSON texts from files. */
#ifndef CELLGATE_RUNTIME_FORMATS_JSON_TEXT_H
#define CELLGATE_RUNTIME_FORMATS_JSON_TEXT_H

#include <jansson.h>

#include "cellgate/plugin.h"

/*
 * Parses an object; a key twice in one object is an error. The text begins with
 * NAME:LINE:COLUMN. The caller releases *json with json_decref().
 */
cellgate_status cg_json_parse(const char *name, const char *text, size_t size,
                              json_t **json, cellgate_error *error);

/*
 * Writes compact JSON, numbers with nine digits (which give every float back).
 * The caller frees the text; NULL if there is no memory.
 */
char *cg_json_write(const json_t *json);

#endif
