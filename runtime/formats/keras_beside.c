/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/file_name.h"
#include "runtime/formats/keras_beside.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cellgate/plugin.h"

static const char *const endings[] = { ".weights.h5", ".h5", ".hdf5" };
#define ENDINGS (sizeof endings / sizeof endings[0])

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while looking for the model's other "
                         "part");
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);

    return length > tail && strcmp(text + length - tail, end) == 0;
}

/* `path` with another ending in the place of its own; NULL: no memory. */
static char *with_ending(const char *path, size_t stem, const char *ending)
{
    const size_t size = stem + strlen(ending) + 1;
    char *made = malloc(size);

    if (made != NULL)
        (void)snprintf(made, size, "%.*s%s", (int)stem, path, ending);
    return made;
}

/* Length of the path without its ending. */
static size_t stem_length(const char *path)
{
    const char *name = cg_file_name(path), *dot = strrchr(name, '.');

    for (size_t i = 0; i < ENDINGS; i++)
        if (ends_with(name, endings[i]))
            return strlen(path) - strlen(endings[i]);
    return dot != NULL && dot != name ? (size_t)(dot - path) : strlen(path);
}

cellgate_status cg_keras_find_json(const char *weights, char **json,
                                   cellgate_error *error)
{
    char *path = with_ending(weights, stem_length(weights), ".json");

    if (path == NULL)
        return no_memory(error);
    if (access(path, F_OK) == 0) {
        *json = path;
        return CELLGATE_OK;
    }
    (void)cellgate_fail(error, CELLGATE_BAD_FILE,
                        "this file holds weights and not the model they belong "
                        "to, which is looked for in '%.60s' beside it; write "
                        "it in Keras: open(\"%.60s\", \"w\").write("
                        "model.to_json())",
                        cg_file_name(path), cg_file_name(path));
    free(path);
    return CELLGATE_BAD_FILE;
}

static cellgate_status fail_without(const char *json, size_t stem,
                                    cellgate_error *error)
{
    const char *name = cg_file_name(json);
    const int length = (int)(stem - (size_t)(name - json));

    return cellgate_fail(error, CELLGATE_BAD_FILE,
                         "this file holds a model without its weights, which "
                         "are looked for in '%.*s.weights.h5', '%.*s.h5' and "
                         "'%.*s.hdf5' beside it; write them in Keras: "
                         "model.save_weights(\"%.*s.weights.h5\")",
                         length, name, length, name, length, name, length,
                         name);
}

cellgate_status cg_keras_find_weights(const char *json, char **weights,
                                      cellgate_error *error)
{
    const size_t stem = stem_length(json);
    char *found = NULL;

    for (size_t i = 0; i < ENDINGS; i++) {
        char *path = with_ending(json, stem, endings[i]);

        if (path == NULL) {
            free(found);
            return no_memory(error);
        }
        if (access(path, F_OK) != 0) {
            free(path);
        } else if (found == NULL) {
            found = path;
        } else {
            (void)cellgate_fail(error, CELLGATE_INVALID,
                                "its weights may be in '%.80s' or in '%.80s'; "
                                "give the one that is meant as the model",
                                cg_file_name(found), cg_file_name(path));
            free(found);
            free(path);
            return CELLGATE_INVALID;
        }
    }
    *weights = found;
    return found != NULL ? CELLGATE_OK : fail_without(json, stem, error);
}
