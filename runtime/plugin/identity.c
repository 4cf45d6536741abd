/* SPDX-License-Identifier: Apache-2.0 */
/* What measured costs hold for. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <xxhash.h>

#include "runtime/plugin/table.h"

static void on_one_line(char *text)
{
    for (; text != NULL && *text != '\0'; text++)
        if ((unsigned char)*text < ' ')
            *text = ' ';
}

/* ---- The host ----------------------------------------------------------- */

/* The value of a line "key : value" of /proc/cpuinfo, into `to` if that is
   empty yet. */
static void take_line(const char *line, const char *key, char *to, size_t size)
{
    const size_t length = strlen(key);
    const char *value = strchr(line, ':');

    if (to[0] != '\0' || strncmp(line, key, length) != 0 || value == NULL)
        return;
    value += strspn(value, ": ");
    (void)snprintf(to, size, "%.*s", (int)strcspn(value, "\n"), value);
}

/* The names that x86 and ARM give to the same two things. */
static void read_processor(char *model, size_t model_size, char *features,
                           size_t features_size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char *line = NULL;
    size_t room = 0;

    while (file != NULL && getline(&line, &room, file) >= 0) {
        take_line(line, "model name", model, model_size);
        take_line(line, "CPU part", model, model_size);
        take_line(line, "flags", features, features_size);
        take_line(line, "Features", features, features_size);
    }
    free(line);
    if (file != NULL)
        (void)fclose(file);
}

static char host_text[256];
static pthread_once_t host_once = PTHREAD_ONCE_INIT;

static void describe_host(void)
{
    char model[128] = "", features[8192] = "";
    struct utsname about;

    read_processor(model, sizeof model, features, sizeof features);
    if (uname(&about) != 0)
        about.machine[0] = '\0';
    (void)snprintf(host_text, sizeof host_text,
                   "%s %s features %08x, cellgate %s", about.machine, model,
                   (unsigned)XXH3_64bits(features, strlen(features)),
                   PACKAGE_VERSION);
    on_one_line(host_text);
}

/* ---- The device --------------------------------------------------------- */

static void forget_opened(cg_device *device)
{
    for (int i = 0; i < 4; i++) {
        free(device->identity[i]);
        device->identity[i] = NULL;
    }
}

static cellgate_status make_identity(cg_device *device, cellgate_error *error)
{
    const cellgate_plugin *ops = device->ops;
    char **texts = device->identity;

    if (asprintf(&texts[0], "%s %s", ops->name,
                 ops->version != NULL ? ops->version : "") < 0)
        texts[0] = NULL;
    texts[1] = strdup(ops->build != NULL ? ops->build : "");
    texts[2] = strdup(device->description.identity);
    if (device->settings != NULL) {
        char *settings = cg_settings_text(device->settings);

        /* The threads that there are decide what "all of them" means. */
        if (settings == NULL || asprintf(&texts[3], "%s%sbudget=%u", settings,
                                         settings[0] != '\0' ? " " : "",
                                         (unsigned)device->thread_limit) < 0)
            texts[3] = NULL;
        free(settings);
    }
    for (int i = 0; i < 4; i++) {
        on_one_line(texts[i]);
        if (texts[i] == NULL) {
            forget_opened(device);
            return cellgate_fail(error, CELLGATE_NO_MEMORY,
                                 "no memory for a device's identity");
        }
    }
    return CELLGATE_OK;
}

void cg_device_forget_identity(cg_device *device)
{
    forget_opened(device);
    free(device->probed);
    device->probed = NULL;
}

cellgate_status cg_device_identify_probed(cg_device *device,
                                          cg_device_identity *identity,
                                          cellgate_error *error)
{
    const cg_verdict *verdict =
        device->found != NULL ? device->found->verdict : NULL;
    const char *probed;

    if (verdict == NULL)
        return cellgate_fail(error, CELLGATE_NO_DEVICE, "it has no plugin");
    (void)pthread_once(&host_once, describe_host);
    pthread_mutex_lock(&device->open_mutex);
    if (device->probed == NULL &&
        asprintf(&device->probed, "%s %s", verdict->name, verdict->version) < 0)
        device->probed = NULL;
    on_one_line(device->probed);
    probed = device->probed;
    pthread_mutex_unlock(&device->open_mutex);
    if (probed == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a device's identity");
    *identity = (cg_device_identity){ .plugin = probed,
                                      .build = verdict->build,
                                      .identity = device->description.identity,
                                      .settings = "",
                                      .host = host_text };
    return CELLGATE_OK;
}

cellgate_status cg_device_identify(cg_device *device,
                                   cg_device_identity *identity,
                                   cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    (void)pthread_once(&host_once, describe_host);
    pthread_mutex_lock(&device->open_mutex);
    if (device->identity[0] == NULL)
        status = make_identity(device, error);
    if (status == CELLGATE_OK)
        *identity = (cg_device_identity){ .plugin = device->identity[0],
                                          .build = device->identity[1],
                                          .identity = device->identity[2],
                                          .settings = device->identity[3],
                                          .host = host_text };
    pthread_mutex_unlock(&device->open_mutex);
    return status;
}
