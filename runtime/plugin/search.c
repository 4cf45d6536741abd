/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/plugin/search.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool add_path(cg_search *search, const char *path, size_t length,
                     const char *origin)
{
    size_t count = search->path_count;
    cg_search_path *paths =
        realloc(search->paths, (count + 1) * sizeof *search->paths);

    if (paths == NULL)
        return false;
    search->paths = paths;
    memset(&paths[count], 0, sizeof paths[count]);
    paths[count].origin = origin;
    paths[count].path = strndup(path, length);
    if (paths[count].path == NULL)
        return false;
    search->path_count++;
    return true;
}

/* Empty parts are skipped: unlike in PATH, they don't mean the working one. */
static bool add_list(cg_search *search, const char *list, const char *origin)
{
    while (list != NULL && *list != '\0') {
        size_t length = strcspn(list, ":");
        if (length > 0 && !add_path(search, list, length, origin))
            return false;
        list += length + (list[length] == ':');
    }
    return true;
}

static bool add_paths(cg_search *search, const cg_config *config,
                      const char *extra_paths)
{
    size_t i;

    if (!cg_privileged()) {
        const char *list = getenv("CELLGATE_PLUGIN_PATH");
        if (extra_paths != NULL ? !add_list(search, extra_paths, "option")
                                : !add_list(search, list, "environment"))
            return false;
    }
    for (i = 0; i < config->plugin_path_count; i++)
        if (!add_path(search, config->plugin_paths[i],
                      strlen(config->plugin_paths[i]), "configuration"))
            return false;
    return add_path(search, CELLGATE_PLUGINDIR, strlen(CELLGATE_PLUGINDIR),
                    "built-in");
}

static bool add_file(cg_search *search, const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char **files =
        realloc(search->files, (search->file_count + 1) * sizeof *files);

    if (files == NULL)
        return false;
    search->files = files;
    files[search->file_count] = malloc(size);
    if (files[search->file_count] == NULL)
        return false;
    (void)snprintf(files[search->file_count], size, "%s/%s", folder, name);
    search->file_count++;
    return true;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static bool is_plugin_name(const char *name)
{
    size_t length = strlen(name);

    return name[0] != '.' && length > 3 &&
           strcmp(name + length - 3, ".so") == 0;
}

/* Reads the folder's names; false only without memory. */
static bool read_folder(cg_search *search, cg_search_path *path)
{
    size_t first = search->file_count;
    DIR *folder = opendir(path->path);
    const struct dirent *entry;

    if (folder == NULL) {
        path->problem = strdup(strerror(errno));
        return path->problem != NULL;
    }
    while ((entry = readdir(folder)) != NULL) {
        if (is_plugin_name(entry->d_name) &&
            !add_file(search, path->path, entry->d_name)) {
            (void)closedir(folder);
            return false;
        }
    }
    (void)closedir(folder);
    path->file_count = (uint32_t)(search->file_count - first);
    if (path->file_count > 0)
        qsort(search->files + first, path->file_count, sizeof *search->files,
              by_name);
    return true;
}

/* The earlier path that is the same folder, or NULL. */
static const cg_search_path *same_folder(const cg_search *search, size_t index)
{
    struct stat self, other;
    size_t i;

    if (stat(search->paths[index].path, &self) != 0)
        return NULL;
    for (i = 0; i < index; i++)
        if (stat(search->paths[i].path, &other) == 0 &&
            self.st_dev == other.st_dev && self.st_ino == other.st_ino)
            return &search->paths[i];
    return NULL;
}

static bool search_path(cg_search *search, size_t index)
{
    const cg_search_path *same = same_folder(search, index);
    cg_search_path *path = &search->paths[index];
    static const char text[] = "searched already, as ";
    size_t size;

    if (same == NULL)
        return read_folder(search, path);
    size = sizeof text + strlen(same->path);
    path->problem = malloc(size);
    if (path->problem == NULL)
        return false;
    (void)snprintf(path->problem, size, "%s%s", text, same->path);
    return true;
}

bool cg_search_run(cg_search *search, const cg_config *config,
                   const char *extra_paths)
{
    bool done;
    size_t i;

    memset(search, 0, sizeof *search);
    done = add_paths(search, config, extra_paths);
    for (i = 0; done && i < search->path_count; i++)
        done = search_path(search, i);
    if (!done)
        cg_search_finish(search);
    return done;
}

void cg_search_finish(cg_search *search)
{
    size_t i;

    for (i = 0; i < search->path_count; i++) {
        free(search->paths[i].path);
        free(search->paths[i].problem);
    }
    for (i = 0; i < search->file_count; i++)
        free(search->files[i]);
    free(search->paths);
    free(search->files);
    memset(search, 0, sizeof *search);
}
