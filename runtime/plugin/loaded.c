/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/plugin/loaded.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runtime/config/settings.h"
#include "runtime/plugin/library.h"
#include "runtime/plugin/services.h"

struct cg_loaded {
    struct cg_loaded *next;
    dev_t device;
    ino_t inode;
    pthread_mutex_t mutex; /* held while the plugin loads and initialises */
    bool done;
    cellgate_error failure; /* status OK: initialised */
    cg_library library;
    cellgate_host host;
    cellgate_instance *instance;
    pthread_rwlock_t users_lock;
    cg_loaded_user *users;
};

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static cg_loaded *plugins; /* under `registry` */

static void service_log(void *context, int32_t level, const char *text)
{
    cg_loaded *self = context;
    const cg_loaded_user *user;
    const char *name = self->library.table.name;

    if (text == NULL)
        return;
    pthread_rwlock_rdlock(&self->users_lock);
    for (user = self->users; user != NULL; user = user->next)
        cg_log_line(&user->log, level, "%s: %.*s", name,
                    (int)strcspn(text, "\n"), text);
    pthread_rwlock_unlock(&self->users_lock);
}

static const char *service_setting(void *context,
                                   const cellgate_settings *settings,
                                   const char *key)
{
    const cg_loaded *self = context;

    if (settings != NULL)
        return cg_settings_value(settings, key);
    return cg_service_default(self->library.table.keys,
                              self->library.table.key_count, key);
}

static int32_t service_excludes(void *context,
                                const cellgate_settings *settings,
                                const char *variant)
{
    (void)context;
    return cg_settings_excludes(settings, variant);
}

/* Every resource is driven by threads of the same host. */
static uint32_t service_thread_budget(void *context, const char *resource)
{
    cg_loaded *self = context;
    const cg_loaded_user *user;
    uint32_t widest = 1;

    (void)resource;
    pthread_rwlock_rdlock(&self->users_lock);
    for (user = self->users; user != NULL; user = user->next)
        if (user->thread_budget > widest)
            widest = user->thread_budget;
    pthread_rwlock_unlock(&self->users_lock);
    return widest;
}

static cg_loaded *create(const struct stat *about)
{
    cg_loaded *loaded = calloc(1, sizeof *loaded);

    if (loaded == NULL)
        return NULL;
    if (pthread_mutex_init(&loaded->mutex, NULL) != 0) {
        free(loaded);
        return NULL;
    }
    if (pthread_rwlock_init(&loaded->users_lock, NULL) != 0) {
        pthread_mutex_destroy(&loaded->mutex);
        free(loaded);
        return NULL;
    }
    loaded->device = about->st_dev;
    loaded->inode = about->st_ino;
    loaded->failure.struct_size = sizeof loaded->failure;
    loaded->host = (cellgate_host){ .struct_size = sizeof loaded->host,
                                    .context = loaded,
                                    .log = service_log,
                                    .allocate = cg_service_allocate,
                                    .release = cg_service_release,
                                    .setting = service_setting,
                                    .thread_budget = service_thread_budget,
                                    .clock = cg_service_clock,
                                    .excludes = service_excludes };
    loaded->next = plugins;
    plugins = loaded;
    return loaded;
}

static cg_loaded *find(const struct stat *about)
{
    cg_loaded *loaded;

    pthread_mutex_lock(&registry);
    for (loaded = plugins; loaded != NULL; loaded = loaded->next)
        if (loaded->device == about->st_dev && loaded->inode == about->st_ino)
            break;
    if (loaded == NULL)
        loaded = create(about);
    pthread_mutex_unlock(&registry);
    return loaded;
}

/* Loads and initialises: once, with the mutex held. */
static cellgate_status load(cg_loaded *loaded, const char *path)
{
    cellgate_error *failure = &loaded->failure;
    cellgate_plugin_entry_fn entry = NULL;
    cellgate_status status = cg_library_open(path, &entry, failure);

    if (status == CELLGATE_OK)
        status = cg_library_negotiate(entry, &loaded->library, failure);
    if (status == CELLGATE_OK)
        status = loaded->library.table.init(&loaded->host, &loaded->instance,
                                            failure);
    failure->status = (int32_t)status;
    failure->text[sizeof failure->text - 1] = '\0';
    return status;
}

static void enter(cg_loaded *loaded, cg_loaded_user *user)
{
    if (user->loaded != NULL)
        return;
    pthread_rwlock_wrlock(&loaded->users_lock);
    user->loaded = loaded;
    user->next = loaded->users;
    loaded->users = user;
    pthread_rwlock_unlock(&loaded->users_lock);
}

cellgate_status cg_loaded_use(const char *path, cg_loaded_user *user,
                              const cellgate_plugin **ops,
                              cellgate_instance **instance,
                              cellgate_error *error)
{
    struct stat about;
    cg_loaded *loaded;
    cellgate_status status;

    if (stat(path, &about) != 0)
        return cellgate_fail(error, CELLGATE_BAD_PLUGIN,
                             "%s: cannot be read: %s", path, strerror(errno));
    loaded = find(&about);
    if (loaded == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    pthread_mutex_lock(&loaded->mutex);
    enter(loaded, user);
    if (!loaded->done) {
        (void)load(loaded, path);
        loaded->done = true;
    }
    status = (cellgate_status)loaded->failure.status;
    pthread_mutex_unlock(&loaded->mutex);
    if (status != CELLGATE_OK)
        return cellgate_fail(error, status, "%s: %s", path,
                             loaded->failure.text);
    *ops = &loaded->library.table;
    *instance = loaded->instance;
    return CELLGATE_OK;
}

void cg_loaded_leave(cg_loaded_user *user)
{
    cg_loaded *loaded = user->loaded;
    cg_loaded_user **link;

    if (loaded == NULL)
        return;
    pthread_rwlock_wrlock(&loaded->users_lock);
    for (link = &loaded->users; *link != user; link = &(*link)->next)
        ;
    *link = user->next;
    pthread_rwlock_unlock(&loaded->users_lock);
    user->loaded = NULL;
    user->next = NULL;
}
