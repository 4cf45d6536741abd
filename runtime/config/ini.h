/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The syntax of a configuration: INI text, line by line, by the system's inih.
 *
 * inih copes with anything by guessing: it takes an indented line for more of
 * the value above, cuts long lines and section names, cuts a value at " ;", and
 * merges sections of the same name. Each of these would change what a person
 * meant, so every line is checked before inih sees it and refused, with its
 * number, if inih would make something else of it.
 */
#ifndef CELLGATE_RUNTIME_CONFIG_INI_H
#define CELLGATE_RUNTIME_CONFIG_INI_H

#include "cellgate/plugin.h"

/* Bytes of a section's name that inih keeps. */
#define CG_INI_SECTION_MAX 49

/*
 * What the text holds, in its order. Strings live during the call. A callback
 * that returns other than OK has filled *error and ends the reading.
 */
typedef struct cg_ini_events {
    /* A header; also of a section without keys. */
    cellgate_status (*section)(void *context, const char *name, int line,
                               cellgate_error *error);
    /* "key = value" in the section of the last header; both are trimmed. */
    cellgate_status (*entry)(void *context, const char *key, const char *value,
                             int line, cellgate_error *error);
} cg_ini_events;

/*
 * Reads `size` bytes of UTF-8 (with or without a byte order mark, lines ended
 * by LF or CR LF). `file` stands for the text in messages. BAD_CONFIG: a line
 * that is not INI or that inih would mangle; or what a callback returned.
 */
cellgate_status cg_ini_read(const char *file, const char *text, size_t size,
                            const cg_ini_events *events, void *context,
                            cellgate_error *error);

#endif
