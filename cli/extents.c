/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/extents.h"

static bool read_one(const char *text, const char **end, int64_t *value)
{
    char *after;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *value = strtoll(text, &after, 10);
    *end = after;
    return errno == 0 && *value >= 1 && *value <= INT32_MAX;
}

cellgate_status cli_extents_read(cli_extents *extents, const char *text,
                                 const char *option, cellgate_error *error)
{
    cli_extents read;
    const char *end;
    bool good;

    if (text == NULL)
        return CELLGATE_OK;
    good = read_one(text, &end, &read.least);
    read.most = read.least;
    if (good && *end == '-')
        good = read_one(end + 1, &end, &read.most);
    if (!good || *end != '\0' || read.most < read.least)
        return cli_error(error, CELLGATE_INVALID,
                         "--%s takes a number from 1 on, or a range such as "
                         "1-64, not \"%s\"",
                         option, text);
    *extents = read;
    return CELLGATE_OK;
}

size_t cli_extents_list(const cli_extents *extents,
                        int64_t values[CLI_EXTENTS_MOST])
{
    int64_t at = 1;
    size_t count = 0;

    values[count++] = extents->least;
    while (at <= extents->least)
        at *= 2;
    for (; at < extents->most; at *= 2)
        values[count++] = at;
    if (extents->most > extents->least)
        values[count++] = extents->most;
    return count;
}

bool cli_free_steps(const cellgate_model *model)
{
    cellgate_value_info info = { .struct_size = sizeof info };

    for (size_t i = 0; cellgate_model_input_get(model, i, &info) == CELLGATE_OK;
         i++)
        for (int32_t axis = 1; axis < info.rank; axis++)
            if (info.shape[axis] < 0)
                return true;
    return false;
}

void cli_time_text(char *text, size_t size, double seconds)
{
    if (seconds < 1e-3)
        snprintf(text, size, "%.3g us", seconds * 1e6);
    else if (seconds < 1)
        snprintf(text, size, "%.3g ms", seconds * 1e3);
    else
        snprintf(text, size, "%.3g s", seconds);
}
