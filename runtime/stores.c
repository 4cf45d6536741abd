/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime/formats/atomic_file.h"
#include "runtime/runtime.h"
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

/* The table outlives the book: whoever holds a book holds its table, too. */
static void log_complaint(void *context, const char *text)
{
    const cg_device_table *table = context;

    cg_log_line(cg_device_table_log(table), CELLGATE_LOG_WARNING,
                "calibration: %s", text);
}

cellgate_status cg_stores_open(cg_device_table *table, cg_cost_book **book,
                               cellgate_error *error)
{
    const cg_config *config = cg_device_table_config(table);
    char *user = cg_stores_user_path(config);
    const char *site = config->site != NULL ? config->site : SITE_FILE;
    cg_cost_store *store;
    cellgate_status status = cg_cost_store_open(user, site, &store, error);

    free(user);
    if (status != CELLGATE_OK)
        return status;
    return cg_cost_book_create(store, log_complaint, table, book, error);
}

/* ---- As text ------------------------------------------------------------ */

cellgate_status cellgate_calibration_export(const cellgate_runtime *runtime,
                                            const char *path,
                                            cellgate_error *error)
{
    cg_atomic_file *file;
    cellgate_status status;

    if (runtime == NULL || path == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "an export needs a runtime and a path");
    status = cg_atomic_file_open(path, &file, error);
    if (status != CELLGATE_OK)
        return status;
    status = cg_cost_store_export(cg_cost_book_lock(runtime->book),
                                  cg_atomic_file_stream(file), error);
    cg_cost_book_unlock(runtime->book, false);
    if (status == CELLGATE_OK)
        return cg_atomic_file_commit(file, error);
    cg_atomic_file_abandon(file);
    return status;
}

/* Rows that would be gone with the process are not taken in. */
static cellgate_status import(cg_cost_store *store, FILE *stream,
                              const char *path, size_t *rows,
                              cellgate_error *error)
{
    const char *note = cg_cost_store_note(store, 0);

    if (!cg_cost_store_keeps(store))
        return cellgate_fail(error, CELLGATE_IO,
                             "%s is not imported: there is no store that "
                             "could keep it%s%s",
                             path, note != NULL ? ": " : "",
                             note != NULL ? note : "");
    return cg_cost_store_import(store, stream, path, rows, error);
}

cellgate_status cellgate_calibration_import(cellgate_runtime *runtime,
                                            const char *path, uint64_t *rows,
                                            cellgate_error *error)
{
    cellgate_status status;
    size_t count = 0;
    FILE *stream;

    if (runtime == NULL || path == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "an import needs a runtime and a path");
    stream = fopen(path, "re");
    if (stream == NULL)
        return cellgate_fail(error, CELLGATE_IO, "%s: cannot be read: %s", path,
                             strerror(errno));
    status =
        import(cg_cost_book_lock(runtime->book), stream, path, &count, error);
    cg_cost_book_unlock(runtime->book, status == CELLGATE_OK);
    (void)fclose(stream);
    if (status == CELLGATE_OK && rows != NULL)
        *rows = count;
    return status;
}
