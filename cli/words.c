/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/generate.h"

static cellgate_status read_text(const char *path, char **text, size_t *size,
                                 cellgate_error *error)
{
    FILE *file = fopen(path, "rb");
    size_t room = 0, got;

    if (file == NULL)
        return cli_error(error, CELLGATE_IO, "%s: %s", path, strerror(errno));
    do {
        char *larger = realloc(*text, room + 65536 + 1);

        if (larger == NULL) {
            fclose(file);
            return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
        }
        *text = larger;
        room += 65536;
        got = fread(*text + *size, 1, room - *size, file);
        *size += got;
    } while (got > 0 && *size == room);
    if (ferror(file)) {
        fclose(file);
        return cli_error(error, CELLGATE_IO, "%s: cannot be read", path);
    }
    fclose(file);
    (*text)[*size] = '\0';
    return CELLGATE_OK;
}

cellgate_status cli_words_read(cli_words *words, const char *path,
                               cellgate_error *error)
{
    cellgate_status status;
    size_t size = 0, at, lines = 1;

    memset(words, 0, sizeof *words);
    status = read_text(path, &words->text, &size, error);
    if (status != CELLGATE_OK)
        return status;
    if (memchr(words->text, '\0', size) != NULL)
        return cli_error(error, CELLGATE_BAD_FILE,
                         "%s: this is no text: a word a line is expected, in "
                         "the order of the ids from 0",
                         path);
    for (at = 0; at < size; at++)
        lines += words->text[at] == '\n';
    words->words = calloc(lines, sizeof *words->words);
    if (words->words == NULL)
        return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
    for (at = 0; at < size;) {
        char *end = memchr(words->text + at, '\n', size - at);

        words->words[words->count++] = words->text + at;
        if (end == NULL)
            break;
        *end = '\0';
        if (end > words->text + at && end[-1] == '\r')
            end[-1] = '\0';
        at = (size_t)(end - words->text) + 1;
    }
    return CELLGATE_OK;
}

void cli_words_finish(cli_words *words)
{
    free(words->text);
    free(words->words);
}

char *cli_words_join(const cli_words *words, const int32_t *ids, int64_t length)
{
    size_t room = 1, used = 0;
    int64_t at;
    char *text;

    for (at = 0; at < length; at++)
        room += (size_t)ids[at] < words->count
                    ? strlen(words->words[ids[at]]) + 1
                    : 16;
    text = malloc(room);
    if (text == NULL)
        return NULL;
    text[0] = '\0';
    for (at = 0; at < length; at++) {
        const char *space = at > 0 ? " " : "";

        if ((size_t)ids[at] < words->count)
            used += (size_t)snprintf(text + used, room - used, "%s%s", space,
                                     words->words[ids[at]]);
        else
            used += (size_t)snprintf(text + used, room - used,
                                     "%s<%" PRId32 ">", space, ids[at]);
    }
    return text;
}
