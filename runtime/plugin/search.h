/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where plugins are looked for, and the files found there.
 *
 * In order: the colon-separated folders that the application names, or else
 * those of $CELLGATE_PLUGIN_PATH (neither in a setuid program); the
 * configuration's; the built-in one. In each, the files whose name ends in
 * .so, by name in byte order.
 */
#ifndef CELLGATE_RUNTIME_PLUGIN_SEARCH_H
#define CELLGATE_RUNTIME_PLUGIN_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/config/settings.h"

/* A folder. */
typedef struct cg_search_path {
    char *path;
    const char *origin; /* "option", "environment", "configuration",
                           "built-in" */
    char *problem;      /* NULL, or why it gave nothing */
    uint32_t file_count;
} cg_search_path;

typedef struct cg_search {
    cg_search_path *paths;
    size_t path_count;
    char **files; /* absolute where the folder was */
    size_t file_count;
} cg_search;

/*
 * Searches. `extra_paths` is what the application names, or NULL. Folders that
 * can't be read are listed with their problem. false: no memory; *search is
 * then empty.
 */
bool cg_search_run(cg_search *search, const cg_config *config,
                   const char *extra_paths);
void cg_search_finish(cg_search *search);

#endif
