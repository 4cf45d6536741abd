/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/plugin/admission.h"

#include <stdlib.h>

#include "runtime/plugin/library.h"
#include "runtime/plugin/services.h"

/* The context of the host services during an admission. */
typedef struct host_context {
    cellgate_host host;
    cg_library library;
    uint32_t thread_budget;
    /* The plugin's last error or warning, else its last line. */
    char said[512];
    int32_t said_level;
} host_context;

static void service_log(void *context, int32_t level, const char *text)
{
    host_context *self = context;

    if (text == NULL || (self->said[0] != '\0' && level > self->said_level))
        return;
    self->said_level = level;
    (void)snprintf(self->said, sizeof self->said, "%s", text);
}

static const char *service_setting(void *context,
                                   const cellgate_settings *settings,
                                   const char *key)
{
    const host_context *self = context;

    (void)settings;
    return cg_service_default(self->library.table.keys,
                              self->library.table.key_count, key);
}

/* A probe opens no device. */
static int32_t service_excludes(void *context,
                                const cellgate_settings *settings,
                                const char *variant)
{
    (void)context;
    (void)settings;
    (void)variant;
    return 0;
}

static uint32_t service_thread_budget(void *context, const char *resource)
{
    const host_context *self = context;

    (void)resource;
    return self->thread_budget;
}

static void progress(const cg_admission *admission, const char *stage,
                     const cg_verdict *verdict)
{
    if (admission->progress != NULL)
        admission->progress(admission->progress_context, stage, verdict);
}

/* NULL, or the name of a text that has no end or must not be empty. */
static const char *wrong_text(const cellgate_device_description *device)
{
#define HAS_END(field) (memchr(device->field, 0, sizeof device->field) != NULL)
    if (!HAS_END(name) || device->name[0] == '\0')
        return "name";
    if (!HAS_END(vendor))
        return "vendor";
    if (!HAS_END(driver))
        return "driver";
    if (!HAS_END(resource) || device->resource[0] == '\0')
        return "resource";
    if (!HAS_END(identity) || device->identity[0] == '\0')
        return "identity";
#undef HAS_END
    return NULL;
}

/* Puts a text of a device through cg_verdict_clean(), in place. */
static bool clean(char *text)
{
    char *cleaned = cg_verdict_clean(text);

    if (cleaned == NULL)
        return false;
    memcpy(text, cleaned, strlen(cleaned) + 1); /* never longer */
    free(cleaned);
    return true;
}

static bool describe(const cellgate_plugin *table, cellgate_instance *instance,
                     uint32_t index, cellgate_device_description *device,
                     cg_verdict *verdict)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    const char *wrong;
    cellgate_status status;

    device->struct_size = sizeof *device;
    status = table->device_describe(instance, index, device, &error);
    error.text[sizeof error.text - 1] = '\0';
    if (status != CELLGATE_OK) {
        cg_verdict_set(verdict, CELLGATE_DEVICE_FAILED,
                       "cannot describe its device %u: %s", index,
                       error.text[0] != '\0' ? error.text : "no reason given");
        return false;
    }
    wrong = wrong_text(device);
    if (wrong != NULL) {
        cg_verdict_set(verdict, CELLGATE_BAD_PLUGIN,
                       "describes its device %u with a %s that is empty or "
                       "has no terminating zero",
                       index, wrong);
        return false;
    }
    return clean(device->name) && clean(device->vendor) &&
           clean(device->driver) && clean(device->resource) &&
           clean(device->identity);
}

static void enumerate(const host_context *self, cellgate_instance *instance,
                      cg_verdict *verdict)
{
    const cellgate_plugin *table = &self->library.table;
    uint32_t count = table->device_count(instance);
    uint32_t i;

    if (count > CG_VERDICT_DEVICES_MAX) {
        cg_verdict_set(verdict, CELLGATE_BAD_PLUGIN,
                       "states %u devices, more than the %d that can be right",
                       count, CG_VERDICT_DEVICES_MAX);
        return;
    }
    if (count == 0) {
        cg_verdict_set(verdict, CELLGATE_OK, "has no device here%s%s",
                       self->said[0] != '\0' ? ": " : " and says no reason",
                       self->said);
        return;
    }
    verdict->devices = calloc(count, sizeof *verdict->devices);
    if (verdict->devices == NULL) {
        cg_verdict_set(verdict, CELLGATE_NO_MEMORY, "out of memory");
        return;
    }
    for (i = 0; i < count; i++)
        if (!describe(table, instance, i, &verdict->devices[i], verdict))
            return;
    verdict->device_count = count;
    cg_verdict_set(verdict, CELLGATE_OK, "%s", "");
}

/* init()'s own status, but for the ones that an admission must not say. */
static cellgate_status refusal(cellgate_status status)
{
    return status == CELLGATE_NO_DEVICE || status == CELLGATE_NO_MEMORY ||
                   status == CELLGATE_UNSUPPORTED
               ? status
               : CELLGATE_DEVICE_FAILED;
}

static void initialise(host_context *self, const cg_admission *admission,
                       cg_verdict *verdict)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_instance *instance = NULL;
    cellgate_status status;

    progress(admission, "in init()", verdict);
    status = self->library.table.init(&self->host, &instance, &error);
    error.text[sizeof error.text - 1] = '\0';
    if (status != CELLGATE_OK) {
        const char *why = error.text[0] != '\0' ? error.text : self->said;
        cg_verdict_set(verdict, refusal(status), "%s",
                       why[0] != '\0' ? why
                                      : "its init() failed without a reason");
        return;
    }
    progress(admission, "while it described its devices", verdict);
    enumerate(self, instance, verdict);
}

void cg_admit(const char *path, const cg_admission *admission,
              cg_verdict *verdict)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_plugin_entry_fn entry = NULL;
    host_context *self = calloc(1, sizeof *self);

    if (self == NULL) {
        cg_verdict_set(verdict, CELLGATE_NO_MEMORY, "out of memory");
        return;
    }
    self->host = (cellgate_host){ .struct_size = sizeof self->host,
                                  .context = self,
                                  .log = service_log,
                                  .allocate = cg_service_allocate,
                                  .release = cg_service_release,
                                  .setting = service_setting,
                                  .thread_budget = service_thread_budget,
                                  .clock = cg_service_clock,
                                  .excludes = service_excludes };
    self->thread_budget = admission->thread_budget;
    progress(admission, "while it was loaded", verdict);
    if (cg_library_open(path, &entry, &error) != CELLGATE_OK) {
        cg_verdict_set(verdict, CELLGATE_BAD_PLUGIN, "%s", error.text);
        free(self);
        return;
    }
    progress(admission, "in its entry", verdict);
    if (cg_library_negotiate(entry, &self->library, &error) != CELLGATE_OK) {
        cg_verdict_set(verdict, CELLGATE_BAD_PLUGIN, "%s", error.text);
        free(self);
        return;
    }
    if (!cg_verdict_identify(verdict, &self->library.table)) {
        cg_verdict_set(verdict, CELLGATE_NO_MEMORY, "out of memory");
        return;
    }
    initialise(self, admission, verdict);
}
