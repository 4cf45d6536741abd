/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/command.h"

static const char *kind_name(int32_t kind)
{
    switch (kind) {
    case CELLGATE_DEVICE_CPU:
        return "cpu";
    case CELLGATE_DEVICE_GPU:
        return "gpu";
    default:
        return "accelerator";
    }
}

/* ---- JSON -------------------------------------------------------------- */

static json_t *paths_json(const cellgate_runtime *runtime)
{
    json_t *array = json_array();
    cellgate_path_info info = { .struct_size = sizeof info };
    size_t i;

    for (i = 0; cellgate_path_get(runtime, i, &info) == CELLGATE_OK; i++)
        json_array_append_new(
            array, json_pack("{s:s, s:s, s:s?, s:i}", "path", info.path,
                             "origin", info.origin, "problem", info.problem,
                             "plugins", (int)info.plugin_count));
    return array;
}

static json_t *plugins_json(const cellgate_runtime *runtime)
{
    json_t *array = json_array();
    cellgate_plugin_info info = { .struct_size = sizeof info };
    size_t i;

    for (i = 0; cellgate_plugin_get(runtime, i, &info) == CELLGATE_OK; i++)
        json_array_append_new(
            array,
            json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:i}", "path", info.path,
                      "name", info.name, "version", info.version, "status",
                      cellgate_status_name((cellgate_status)info.status),
                      "cached", info.cached != 0, "reason", info.reason,
                      "devices", (int)info.device_count));
    return array;
}

static json_t *devices_json(const cellgate_runtime *runtime)
{
    json_t *array = json_array();
    cellgate_device_info info = { .struct_size = sizeof info };
    size_t i;

    for (i = 0; cellgate_device_get(runtime, i, &info) == CELLGATE_OK; i++)
        json_array_append_new(
            array,
            json_pack(
                "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, "
                "s:I, s:i, s:f, s:o}",
                "name", info.name, "plugin", info.plugin, "status",
                cellgate_status_name((cellgate_status)info.status), "reason",
                info.reason, "kind", kind_name(info.kind), "description",
                info.description, "vendor", info.vendor, "driver", info.driver,
                "resource", info.resource, "identity", info.identity, "memory",
                (json_int_t)info.memory, "queue_depth", (int)info.queue_depth,
                "out_seconds", info.out_seconds, "retry_seconds",
                info.retry_seconds >= 0 ? json_real(info.retry_seconds)
                                        : json_null()));
    return array;
}

static int print_as_json(const cellgate_runtime *runtime)
{
    return cli_print_json(json_pack(
        "{s:s, s:o, s:o, s:o}", "config", cellgate_runtime_config_path(runtime),
        "paths", paths_json(runtime), "plugins", plugins_json(runtime),
        "devices", devices_json(runtime)));
}

/* ---- Text -------------------------------------------------------------- */

static void print_paths(const cellgate_runtime *runtime)
{
    cellgate_path_info info = { .struct_size = sizeof info };
    size_t i;

    puts("Plugin folders:");
    for (i = 0; cellgate_path_get(runtime, i, &info) == CELLGATE_OK; i++) {
        printf("  %s (%s): ", info.path, info.origin);
        if (info.problem != NULL)
            puts(info.problem);
        else
            printf("%" PRIu32 " plugin%s\n", info.plugin_count,
                   info.plugin_count == 1 ? "" : "s");
    }
}

static void print_plugins(const cellgate_runtime *runtime)
{
    cellgate_plugin_info info = { .struct_size = sizeof info };
    size_t i;

    puts("\nPlugins:");
    for (i = 0; cellgate_plugin_get(runtime, i, &info) == CELLGATE_OK; i++) {
        printf("  %s: ", info.path);
        if (info.status == CELLGATE_OK)
            printf("%s %s, %" PRIu32 " device%s%s%s\n", info.name, info.version,
                   info.device_count, info.device_count == 1 ? "" : "s",
                   info.reason[0] != '\0' ? "; " : "", info.reason);
        else
            printf("not used: %s\n", info.reason);
    }
    if (i == 0)
        puts("  none found; install one into a folder above, or name its "
             "folder with\n  --plugin-path or plugin_path = in [cellgate]");
}

static void print_unusable(const cellgate_device_info *info)
{
    printf("  %s: not usable: %s", info->name, info->reason);
    if (info->out_seconds > 0)
        printf("; out of service for %.0f s", info->out_seconds);
    if (info->retry_seconds >= 0)
        printf("; tried again in %.0f s", info->retry_seconds);
    putchar('\n');
}

static void print_device(const cellgate_device_info *info)
{
    if (info->status != CELLGATE_OK) {
        print_unusable(info);
        return;
    }
    printf("  %s: %s, %s %s", info->name, info->description,
           kind_name(info->kind), info->resource);
    if (info->memory != 0)
        printf(", %.1f GiB", (double)info->memory / 1073741824.0);
    if (info->driver[0] != '\0')
        printf(", driver %s", info->driver);
    putchar('\n');
}

static int print_as_text(const cellgate_runtime *runtime)
{
    const char *config = cellgate_runtime_config_path(runtime);
    cellgate_device_info info = { .struct_size = sizeof info };
    size_t i;

    printf("Configuration: %s\n\n",
           config[0] != '\0' ? config : "built-in default");
    print_paths(runtime);
    print_plugins(runtime);
    puts("\nDevices, in the order in which they are tried:");
    for (i = 0; cellgate_device_get(runtime, i, &info) == CELLGATE_OK; i++)
        print_device(&info);
    if (i == 0)
        puts("  none");
    return CLI_OK;
}

static int devices_main(const cli_command *command, int argc, const char **argv)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_runtime *runtime = NULL;
    cli_shared shared = { 0 };
    cli_arguments arguments;
    int exit_code;

    if (!cli_parse(command, argc, argv, NULL, 0, &shared, &arguments))
        exit_code = arguments.exit_code;
    else if (cli_open(&shared, &runtime, &error) != CELLGATE_OK)
        exit_code = cli_fail(&error);
    else if (shared.json)
        exit_code = print_as_json(runtime);
    else
        exit_code = print_as_text(runtime);
    cellgate_runtime_destroy(runtime);
    cli_finish(&shared, &arguments);
    return exit_code;
}

const cli_command cli_devices = {
    "devices",
    "[OPTION...]",
    "list plugin folders, plugins and devices, and why any is not usable",
    devices_main,
};
