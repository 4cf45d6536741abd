/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/config/exclude.h"

#include <fnmatch.h>

#include "runtime/config/complaint.h"
#include "runtime/config/suggest.h"

#define PATTERN_MAX 200 /* with its end; a line of the file has no more */

/* Takes the next pattern off the list; false: there is none. */
static bool next(const char **list, char pattern[PATTERN_MAX])
{
    size_t length;

    *list += strspn(*list, " \t");
    length = strcspn(*list, " \t");
    if (length == 0)
        return false;
    (void)snprintf(pattern, PATTERN_MAX, "%.*s", (int)length, *list);
    *list += length;
    return true;
}

bool cg_exclude_fits(const char *patterns, const char *variant)
{
    char pattern[PATTERN_MAX];

    while (patterns != NULL && next(&patterns, pattern))
        if (fnmatch(pattern, variant, 0) == 0)
            return true;
    return false;
}

/* Whether it fits the name, or one of the names that begin like it where it
   ends in '*': then a first part of the pattern fits what those share, and the
   rest fits something. A part that ends inside brackets fits no name, as there
   a '[' is itself. */
static bool may_fit(const char *pattern, const char *name)
{
    const size_t length = strlen(name);
    char shared[PATTERN_MAX], part[PATTERN_MAX];

    if (length == 0 || name[length - 1] != '*')
        return fnmatch(pattern, name, 0) == 0;
    (void)snprintf(shared, sizeof shared, "%.*s", (int)length - 1, name);
    for (size_t at = 0; at <= strlen(pattern); at++) {
        (void)snprintf(part, sizeof part, "%.*s", (int)at, pattern);
        if (fnmatch(part, shared, 0) == 0)
            return true;
    }
    return false;
}

static bool is_known(const char *pattern, char *const *variants, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (may_fit(pattern, variants[i]))
            return true;
    return false;
}

static cellgate_status refuse(const cg_config *config,
                              const cg_device_section *section,
                              const char *pattern, char *const *variants,
                              size_t count, cellgate_error *error)
{
    char name[64], known[360] = "";
    const cg_place place = { config->path, section->exclude_line, name,
                             "exclude" };
    cg_suggestion meant;
    size_t at = 0;

    (void)snprintf(name, sizeof name, "device %s", section->name);
    cg_suggestion_init(&meant, pattern);
    for (size_t i = 0; i < count; i++) {
        cg_suggestion_offer(&meant, variants[i], strlen(variants[i]));
        if (at < sizeof known)
            at += (size_t)snprintf(known + at, sizeof known - at, "%s%s",
                                   i > 0 ? ", " : "", variants[i]);
    }
    if (meant.best != NULL)
        return cg_complain(error, &place,
                           "plugin %s has no variant %s (did you mean %.*s?); "
                           "it has %s",
                           section->plugin, pattern, meant.length, meant.best,
                           known);
    return cg_complain(error, &place, "plugin %s has no variant %s; it has %s",
                       section->plugin, pattern, known);
}

cellgate_status cg_exclude_check(const cg_config *config,
                                 const cg_device_section *section,
                                 char *const *variants, size_t count,
                                 cellgate_error *error)
{
    const char *list = section->exclude;
    char pattern[PATTERN_MAX];

    while (list != NULL && count > 0 && next(&list, pattern))
        if (!is_known(pattern, variants, count))
            return refuse(config, section, pattern, variants, count, error);
    return CELLGATE_OK;
}
