/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/config/complaint.h"

/* A long path keeps its end, so that the message still fits behind it. */
#define PATH_SHOWN 160

static const char *path_end(const char *path, const char **dots)
{
    size_t length = strlen(path);

    *dots = "";
    if (length <= PATH_SHOWN)
        return path;
    *dots = "...";
    path += length - PATH_SHOWN;
    while (((unsigned char)*path & 0xC0u) == 0x80u) /* not inside a character */
        path++;
    return path;
}

static void place_write(const cg_place *place, char *text, size_t size)
{
    const char *dots;
    const char *path = path_end(place->file, &dots);
    char line[16] = "";

    if (place->line > 0)
        (void)snprintf(line, sizeof line, ":%d", place->line);
    if (place->section != NULL && place->key != NULL)
        (void)snprintf(text, size, "%s%s%s: [%s] %s: ", dots, path, line,
                       place->section, place->key);
    else if (place->section != NULL)
        (void)snprintf(text, size, "%s%s%s: [%s]: ", dots, path, line,
                       place->section);
    else if (place->key != NULL)
        (void)snprintf(text, size, "%s%s%s: %s: ", dots, path, line,
                       place->key);
    else
        (void)snprintf(text, size, "%s%s%s: ", dots, path, line);
}

cellgate_status cg_complain(cellgate_error *error, const cg_place *place,
                            const char *format, ...)
{
    /* cppcheck-suppress ctunullpointer ; an operand of sizeof is not read */
    char start[sizeof error->text];
    char message[sizeof error->text];
    va_list arguments;

    if (error == NULL)
        return CELLGATE_BAD_CONFIG;
    place_write(place, start, sizeof start);
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return cellgate_fail(error, CELLGATE_BAD_CONFIG, "%s%s", start, message);
}
