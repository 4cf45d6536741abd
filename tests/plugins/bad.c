/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin that is bad in the way that its file's name says: a test copies it
 * to hang_in_init.so, to short_table.so and so on. One that has no name listed
 * below offers one device that can be opened and refuses every segment.
 */
#include "config.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cellgate/plugin.h"

struct cellgate_instance {
    int unused;
};

struct cellgate_device {
    int unused;
};

static cellgate_instance the_instance;
static cellgate_device the_device;

/* Whether this file is a copy made under that name. */
static bool is(const char *name)
{
    Dl_info where;
    const char *base;
    size_t length = strlen(name);

    if (dladdr((void *)&the_instance, &where) == 0)
        return false;
    base = strrchr(where.dli_fname, '/');
    base = base != NULL ? base + 1 : where.dli_fname;
    return strncmp(base, name, length) == 0 &&
           strcmp(base + length, ".so") == 0;
}

static void hang(void)
{
    for (;;)
        (void)pause();
}

static void print(int file, const char *text)
{
    if (write(file, text, strlen(text)) < 0)
        _exit(9);
}

__attribute__((constructor)) static void on_load(void)
{
    if (is("exit_on_load"))
        exit(5);
    if (is("hang_on_load"))
        hang();
    if (is("crash_on_load"))
        (void)raise(SIGSEGV);
}

/* Looks like an answer of the probe, but for the token. */
static void forge(int file)
{
    print(file,
          "{\"token\":\"00000000000000000000000000000000\",\"stage\":"
          "\"done\",\"verdict\":{\"status\":0,\"reason\":\"\",\"name\":"
          "\"forger\",\"version\":\"\",\"build\":\"\",\"abi\":0,\"keys\":[],"
          "\"watched\":[],\"devices\":[]}}\n");
}

/* A child in the background that keeps every descriptor open. */
static void leave_child(void)
{
    if (fork() == 0)
        hang();
}

static void misbehave_and_return(void)
{
    const struct timespec half_second = { 0, 500000000 };
    int i;

    if (is("chatter"))
        for (i = 0; i < 20000; i++)
            print(i % 2 + 1, "blah blah blah blah blah\n\033[31m\377\n");
    if (is("forger"))
        for (i = 1; i < 4; i++)
            forge(i);
    if (is("slow"))
        (void)nanosleep(&half_second, NULL);
    if (is("leaves_child"))
        leave_child();
}

static void misbehave(void)
{
    if (is("crash_in_init"))
        (void)raise(SIGSEGV);
    if (is("abort_in_init")) {
        print(2, "first line\nthe driver is cross\n\n");
        abort();
    }
    if (is("exit0_in_init")) {
        forge(1);
        exit(0);
    }
    if (is("exit3_in_init"))
        _exit(3);
    if (is("exit_leaving_child")) {
        leave_child();
        _exit(4);
    }
    if (is("hang_in_init"))
        hang();
    if (is("hang_without_files")) {
        int file;
        for (file = 0; file < 64; file++)
            (void)close(file);
        hang();
    }
    if (is("endless_answer"))
        for (;;)
            print(3, "0123456789012345678901234567890123456789");
    if (is("endless_output"))
        for (;;)
            print(1, "0123456789012345678901234567890123456789\n");
}

static cellgate_status init(const cellgate_host *host,
                            cellgate_instance **instance, cellgate_error *error)
{
    misbehave_and_return();
    misbehave();
    if (is("no_driver"))
        return cellgate_fail(error, CELLGATE_NO_DEVICE,
                             "no driver: install the package named driver");
    if (is("silent_failure"))
        return CELLGATE_INTERNAL;
    if (is("endless_reason")) {
        memset(error->text, 'x', sizeof error->text);
        return CELLGATE_NO_DEVICE;
    }
    if (is("no_devices"))
        host->log(host->context, CELLGATE_LOG_WARNING, "no card in any slot");
    *instance = &the_instance;
    return CELLGATE_OK;
}

static void finish(cellgate_instance *instance)
{
    (void)instance;
}

static uint32_t device_count(cellgate_instance *instance)
{
    (void)instance;
    if (is("no_devices") || is("no_devices_no_word"))
        return 0;
    return is("many_devices") ? UINT32_MAX : 1;
}

static cellgate_status device_describe(cellgate_instance *instance,
                                       uint32_t index,
                                       cellgate_device_description *out,
                                       cellgate_error *error)
{
    cellgate_device_description about = { .struct_size = sizeof about };

    (void)instance;
    (void)index;
    if (is("describe_fails"))
        return cellgate_fail(error, CELLGATE_DEVICE_FAILED, "the card is gone");
    if (is("crash_in_describe"))
        (void)raise(SIGFPE);
    (void)snprintf(about.name, sizeof about.name, "Bad");
    (void)snprintf(about.resource, sizeof about.resource, "bad:0");
    (void)snprintf(about.identity, sizeof about.identity, "bad");
    if (is("endless_name"))
        memset(about.name, 'x', sizeof about.name);
    if (is("no_resource"))
        about.resource[0] = '\0';
    if (is("no_utf8"))
        (void)snprintf(about.name, sizeof about.name, "B\xFF\033[2Jd \xC3\xA9");
    cellgate_struct_copy(out, &about);
    return CELLGATE_OK;
}

static cellgate_status device_open(cellgate_instance *instance, uint32_t index,
                                   const cellgate_settings *settings,
                                   cellgate_device **device,
                                   cellgate_error *error)
{
    (void)instance;
    (void)index;
    (void)settings;
    (void)error;
    *device = &the_device;
    return CELLGATE_OK;
}

static void device_close(cellgate_device *device)
{
    (void)device;
}

static cellgate_status support(cellgate_device *device,
                               const cellgate_segment *segment,
                               const cellgate_shape *shape, uint32_t index,
                               cellgate_variant *variant, cellgate_error *error)
{
    (void)device;
    (void)segment;
    (void)shape;
    (void)index;
    (void)variant;
    return cellgate_refuse(error, CELLGATE_REASON_OTHER, "it computes nothing");
}

static cellgate_status prepare(cellgate_device *device,
                               const cellgate_segment *segment, uint32_t pack,
                               cellgate_weights **weights,
                               cellgate_error *error)
{
    (void)device;
    (void)segment;
    (void)pack;
    (void)weights;
    return cellgate_fail(error, CELLGATE_UNSUPPORTED, "it computes nothing");
}

static void weights_free(cellgate_weights *weights)
{
    (void)weights;
}

static cellgate_status plan_create(cellgate_device *device,
                                   cellgate_weights *weights, uint64_t variant,
                                   const cellgate_shape *shape,
                                   cellgate_plan **plan, cellgate_error *error)
{
    (void)device;
    (void)weights;
    (void)variant;
    (void)shape;
    (void)plan;
    return cellgate_fail(error, CELLGATE_UNSUPPORTED, "it computes nothing");
}

static void plan_destroy(cellgate_plan *plan)
{
    (void)plan;
}

static cellgate_status run_plan(cellgate_plan *plan,
                                const cellgate_segment_run *run,
                                cellgate_error *error)
{
    (void)plan;
    (void)run;
    return cellgate_fail(error, CELLGATE_UNSUPPORTED, "it computes nothing");
}

/* Beyond what an older or a shorter table has, what must not be read. */
static uint64_t poison(cellgate_device *device)
{
    (void)device;
    abort();
}

static void *allocate(cellgate_device *device, size_t size)
{
    (void)device;
    return malloc(size);
}

static void resident_destroy(cellgate_resident *resident)
{
    (void)resident;
}

static cellgate_key keys[] = {
    { .struct_size = sizeof(cellgate_key),
      .name = "key",
      .default_text = "",
      .help = "a key" },
};

static cellgate_plugin table = {
    .magic = CELLGATE_PLUGIN_MAGIC,
    .abi_version = CELLGATE_ABI_VERSION,
    .struct_size = sizeof table,
    .name = "bad",
    .version = "0",
    .build = "0",
    .keys = keys,
    .key_count = 1,
    .init = init,
    .finish = finish,
    .device_count = device_count,
    .device_describe = device_describe,
    .device_open = device_open,
    .device_close = device_close,
    .support = support,
    .prepare = prepare,
    .weights_free = weights_free,
    .plan_create = plan_create,
    .plan_destroy = plan_destroy,
    .run = run_plan,
};

static void spoil_table(void)
{
    if (is("version_99"))
        table.abi_version = 99;
    if (is("bad_magic"))
        table.magic = 0x12345678;
    if (is("tiny_table"))
        table.struct_size = offsetof(cellgate_plugin, init);
    if (is("short_table")) {
        table.struct_size = offsetof(cellgate_plugin, breakdown);
        table.memory_used = poison;
    }
    if (is("no_run"))
        table.run = NULL;
    if (is("some_resident"))
        table.resident_destroy = resident_destroy;
    if (is("half_host_memory"))
        table.host_allocate = allocate;
    if (is("no_name"))
        table.name = NULL;
    if (is("strange_name"))
        table.name = "../Bad";
    if (is("no_version_text"))
        table.version = NULL;
    if (is("key_without_default"))
        keys[0].default_text = NULL;
    if (is("key_of_host"))
        keys[0].name = "enabled";
    if (is("key_of_no_type"))
        keys[0].type = 77;
    if (is("too_many_keys"))
        table.key_count = SIZE_MAX / 2;
}

const cellgate_plugin *cellgate_plugin_entry(uint32_t lowest, uint32_t highest)
{
    (void)lowest;
    (void)highest;
    if (is("exit_in_entry"))
        exit(6);
    if (is("no_common_version"))
        return NULL;
    spoil_table();
    return &table;
}
