/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/stores.h"

#define SITE_FILE CELLGATE_SYSCONFDIR "/cellgate/costs"

static char *joined(const char *base, const char *below)
{
    char *path = NULL;

    if (base == NULL || base[0] != '/' ||
        asprintf(&path, "%s%s", base, below) < 0)
        return NULL;
    return path;
}

char *cg_stores_user_path(const cg_config *config)
{
    char *path;

    if (cg_privileged())
        return NULL;
    if (config->store != NULL)
        return strdup(config->store);
    path = joined(getenv("XDG_DATA_HOME"), "/cellgate/costs");
    if (path == NULL)
        path = joined(getenv("HOME"), "/.local/share/cellgate/costs");
    return path;
}

static void log_notes(const cg_device_table *table, const cg_cost_store *store)
{
    const char *note;

    for (size_t at = 0; (note = cg_cost_store_note(store, at)) != NULL; at++)
        cg_log_line(cg_device_table_log(table), CELLGATE_LOG_WARNING,
                    "calibration: %s", note);
}

cellgate_status cg_stores_open(const cg_device_table *table,
                               cg_cost_book **book, cellgate_error *error)
{
    const cg_config *config = cg_device_table_config(table);
    char *user = cg_stores_user_path(config);
    const char *site = config->site != NULL ? config->site : SITE_FILE;
    cg_cost_store *store;
    cellgate_status status = cg_cost_store_open(user, site, &store, error);

    free(user);
    if (status != CELLGATE_OK)
        return status;
    log_notes(table, store);
    return cg_cost_book_create(store, book, error);
}
