/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime/formats/json_text.h"

cellgate_status cg_json_parse(const char *name, const char *text, size_t size,
                              json_t **json, cellgate_error *error)
{
    json_error_t problem;
    json_t *made;

    errno = 0;
    made = json_loadb(text, size, JSON_REJECT_DUPLICATES, &problem);
    if (json_is_object(made) && errno != ENOMEM) {
        *json = made;
        return CELLGATE_OK;
    }
    /* Jansson 2.14 drops characters of a text when it cannot grow its buffer,
       and may say nothing; malloc() alone has told. */
    if (made != NULL && errno == ENOMEM) {
        json_decref(made);
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while reading %s", name);
    }
    if (made != NULL) {
        json_decref(made);
        return cellgate_fail(error, CELLGATE_BAD_FILE,
                             "%s is not a JSON object", name);
    }
    /* Jansson says nothing when most of its allocations fail; after some it
       blames the text, and malloc() alone has told. */
    if (problem.text[0] == '\0' || errno == ENOMEM ||
        json_error_code(&problem) == json_error_out_of_memory)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "out of memory while reading %s", name);
    return cellgate_fail(error, CELLGATE_BAD_FILE, "%s:%d:%d: %s", name,
                         problem.line, problem.column, problem.text);
}

/* Not json_dumps(): Jansson 2.14 leaves pieces out of its result, and says
   nothing, when an allocation fails in the middle. */
char *cg_json_write(const json_t *json)
{
    const size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(9);
    const size_t size = json_dumpb(json, NULL, 0, flags);
    char *text = size != 0 ? malloc(size + 1) : NULL;

    if (text == NULL)
        return NULL;
    if (json_dumpb(json, text, size, flags) != size) {
        free(text);
        return NULL;
    }
    text[size] = '\0';
    return text;
}
