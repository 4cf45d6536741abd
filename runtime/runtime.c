/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/runtime.h"

#include <stdlib.h>

#include "runtime/given.h"
#include "runtime/session/readmission.h"
#include "runtime/stores.h"

cellgate_status cellgate_runtime_create(const cellgate_runtime_options *options,
                                        cellgate_runtime **runtime,
                                        cellgate_error *error)
{
    cellgate_runtime_options given = { .struct_size = sizeof given };
    cg_config *config = NULL;
    cellgate_runtime *made;
    cellgate_status status;
    cg_log log;

    if (runtime == NULL)
        return cellgate_fail(error, CELLGATE_INVALID, "runtime is NULL");
    if (options != NULL) {
        if (!cg_given_known(options, CG_FIRST_ANY, sizeof given))
            return cellgate_fail(error, CELLGATE_INVALID,
                                 "struct_size of the runtime options is not "
                                 "set, or they have a field that this "
                                 "libcellgate %s does not know",
                                 PACKAGE_VERSION);
        cellgate_struct_copy(&given, options);
    }
    status = cg_process_check(error);
    if (status != CELLGATE_OK)
        return status;
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    status = cg_config_read(given.config_path, &config, error);
    if (status == CELLGATE_OK) {
        log.write = given.log != NULL ? given.log : cg_log_stderr;
        log.context = given.log_context;
        log.level = config->log;
        status = cg_device_table_create(config, given.plugin_path, &log,
                                        &made->table, error);
    }
    if (status == CELLGATE_OK)
        status = cg_stores_open(made->table, &made->book, error);
    if (status == CELLGATE_OK) {
        made->loads = cg_loads_create(&cg_real_clock);
        if (made->loads == NULL)
            status = cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    }
    if (status == CELLGATE_OK)
        status = cg_readmission_create(made->table, &made->readmission, error);
    if (status != CELLGATE_OK) {
        cg_loads_release(made->loads);
        cg_cost_book_release(made->book);
        cg_device_table_release(made->table);
        free(made);
        return status;
    }
    *runtime = made;
    return CELLGATE_OK;
}

void cellgate_runtime_destroy(cellgate_runtime *runtime)
{
    if (runtime == NULL)
        return;
    /* The store's connection is the parent's, in a child after fork(). */
    if (!cg_process_forked())
        cg_cost_book_release(runtime->book);
    cg_loads_release(runtime->loads);
    cg_readmission_release(runtime->readmission);
    cg_device_table_release(runtime->table);
    free(runtime);
}

const char *cellgate_runtime_config_path(const cellgate_runtime *runtime)
{
    return cg_device_table_config(runtime->table)->path;
}

size_t cellgate_path_count(const cellgate_runtime *runtime)
{
    return cg_device_table_path_count(runtime->table);
}

cellgate_status cellgate_path_get(const cellgate_runtime *runtime, size_t index,
                                  cellgate_path_info *info)
{
    if (!cg_given_fillable(info))
        return CELLGATE_INVALID;
    return cg_device_table_path_get(runtime->table, index, info);
}

size_t cellgate_plugin_count(const cellgate_runtime *runtime)
{
    return cg_device_table_plugin_count(runtime->table);
}

cellgate_status cellgate_plugin_get(const cellgate_runtime *runtime,
                                    size_t index, cellgate_plugin_info *info)
{
    if (!cg_given_fillable(info))
        return CELLGATE_INVALID;
    return cg_device_table_plugin_get(runtime->table, index, info);
}

size_t cellgate_device_count(const cellgate_runtime *runtime)
{
    return cg_device_table_count(runtime->table);
}

cellgate_status cellgate_device_get(const cellgate_runtime *runtime,
                                    size_t index, cellgate_device_info *info)
{
    const cg_device *device = cg_device_table_at(runtime->table, index);

    if (!cg_given_fillable(info))
        return CELLGATE_INVALID;
    if (device == NULL)
        return CELLGATE_END;
    cg_device_info_get(device, info);
    return CELLGATE_OK;
}
