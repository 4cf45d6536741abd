/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/config/store.h"

#include <assert.h>
#include <stdlib.h>

_Static_assert(sizeof(cg_enabled) == sizeof(int) &&
                   sizeof(cg_fallback) == sizeof(int) &&
                   sizeof(cellgate_log_level) == sizeof(int),
               "CG_STORE_CHOICE stores an int");

void cg_paths_free(char **paths, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
}

static size_t count_colons(const char *text)
{
    size_t count = 0;

    for (; *text != '\0'; text++)
        count += *text == ':';
    return count;
}

/* "/a:/b" as an array of as many as *count; the caller frees it. */
static cellgate_status split_paths(const char *text, char ***paths,
                                   size_t *count, char *problem,
                                   size_t problem_size)
{
    size_t total = count_colons(text) + 1;
    char **made = calloc(total, sizeof *made);

    if (made == NULL)
        return CELLGATE_NO_MEMORY;
    for (size_t i = 0; i < total; i++) {
        size_t length = strcspn(text, ":");

        if (*text != '/') {
            (void)snprintf(problem, problem_size,
                           "expected absolute folders separated by colons, not "
                           "\"%.*s\"",
                           (int)length, text);
            cg_paths_free(made, i);
            return CELLGATE_BAD_CONFIG;
        }
        made[i] = strndup(text, length);
        if (made[i] == NULL) {
            cg_paths_free(made, i);
            return CELLGATE_NO_MEMORY;
        }
        text += length + (text[length] == ':');
    }
    *paths = made;
    *count = total;
    return CELLGATE_OK;
}

static cellgate_status store_paths(cg_config *config, const char *text,
                                   char *problem, size_t problem_size)
{
    char **paths = NULL;
    size_t count = 0;

    if (*text != '\0') {
        cellgate_status status =
            split_paths(text, &paths, &count, problem, problem_size);

        if (status != CELLGATE_OK)
            return status;
    }
    cg_paths_free(config->plugin_paths, config->plugin_path_count);
    config->plugin_paths = paths;
    config->plugin_path_count = count;
    return CELLGATE_OK;
}

static cellgate_status store_text(char **at, const char *text)
{
    char *copy = NULL;

    if (*text != '\0' && (copy = strdup(text)) == NULL)
        return CELLGATE_NO_MEMORY;
    free(*at);
    *at = copy;
    return CELLGATE_OK;
}

/* Digits up to a size that no axis has; -1 without any. */
static int64_t read_count(const char **text)
{
    int64_t number = -1;

    for (; **text >= '0' && **text <= '9'; ++*text) {
        number = (number < 0 ? 0 : number) * 10 + (**text - '0');
        if (number > INT32_MAX)
            return -1;
    }
    return number;
}

bool cg_range_parse(const char *text, cg_range *range)
{
    cg_range read = { 0, INT64_MAX };

    if (strcmp(text, "any") != 0) {
        read.least = read_count(&text);
        if (read.least < 0)
            return false;
        if (*text == '-') {
            text++;
            if (*text != '\0')
                read.most = read_count(&text);
        } else {
            read.most = read.least;
        }
        if (*text != '\0' || read.most < read.least)
            return false;
    }
    *range = read;
    return true;
}

cellgate_status cg_store_value(void *owner, const cg_key *key,
                               const cg_value *value, char *problem,
                               size_t problem_size)
{
    void *at = (char *)owner + key->offset;
    int choice = (int)value->integer;
    uint32_t count = (uint32_t)value->integer;
    bool truth = value->integer != 0;
    cg_range range;

    switch (key->store) {
    case CG_STORE_CHOICE:
        memcpy(at, &choice, sizeof choice);
        break;
    case CG_STORE_BOOLEAN:
        memcpy(at, &truth, sizeof truth);
        break;
    case CG_STORE_SECONDS:
        memcpy(at, &value->seconds, sizeof value->seconds);
        break;
    case CG_STORE_INTEGER:
        memcpy(at, &value->integer, sizeof value->integer);
        break;
    case CG_STORE_COUNT:
        memcpy(at, &count, sizeof count);
        break;
    case CG_STORE_TEXT:
        return store_text(at, value->text);
    case CG_STORE_RANGE:
        if (cg_range_parse(value->text, &range))
            memcpy(at, &range, sizeof range);
        break;
    case CG_STORE_PATHS:
        return store_paths(owner, value->text, problem, problem_size);
    }
    return CELLGATE_OK;
}

cellgate_status cg_store_defaults(const cg_section *section, void *owner)
{
    for (size_t i = 0; i < section->key_count; i++) {
        const cg_key *key = &section->keys[i];
        char problem[sizeof((cellgate_error *)0)->text];
        cg_value value;
        bool parses = cg_value_parse(&key->key, key->key.default_text, &value,
                                     problem, sizeof problem);

        assert(parses); /* the table is our own */
        if (!parses || cg_store_value(owner, key, &value, problem,
                                      sizeof problem) != CELLGATE_OK)
            return CELLGATE_NO_MEMORY;
    }
    return CELLGATE_OK;
}
