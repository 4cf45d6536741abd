/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_get FILE PATH: prints the scalar at a dotted path, such as
 * devices.0.name; the size of an array or object. Exit 1: nothing there.
 */
#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const json_t *step(const json_t *at, const char *name)
{
    if (json_is_array(at))
        return json_array_get(at, (size_t)strtoul(name, NULL, 10));
    return json_object_get(at, name);
}

static int print(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return puts(json_string_value(value));
    case JSON_INTEGER:
        return printf("%" JSON_INTEGER_FORMAT "\n", json_integer_value(value));
    case JSON_REAL:
        return printf("%.9g\n", json_real_value(value));
    case JSON_ARRAY:
        return printf("%zu\n", json_array_size(value));
    case JSON_OBJECT:
        return printf("%zu\n", json_object_size(value));
    default:
        return puts(json_is_true(value)    ? "true"
                    : json_is_false(value) ? "false"
                                           : "null");
    }
}

int main(int argc, char **argv)
{
    json_error_t error;
    json_t *root = argc == 3 ? json_load_file(argv[1], 0, &error) : NULL;
    const json_t *at = root;
    char *path, *name;

    if (root == NULL || (path = strdup(argv[2])) == NULL)
        return 1;
    for (name = strtok(path, "."); name != NULL && at != NULL;
         name = strtok(NULL, "."))
        at = step(at, name);
    if (at != NULL)
        print(at);
    free(path);
    json_decref(root);
    return at != NULL ? 0 : 1;
}
