/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/plugin/verdict_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <xxhash.h>

#include "runtime/config/settings.h"
#include "runtime/plugin/library.h"

#define FORMAT 1
#define FILE_MAX (16 << 20) /* bytes; a larger one isn't ours */

struct cg_verdict_cache {
    int folder;
};

/* What every verdict depends on, whatever the plugin says. */
static const char *const always_watched[] = { "/etc/ld.so.cache",
                                              "$LD_LIBRARY_PATH",
                                              "$LD_PRELOAD" };
#define ALWAYS_WATCHED (sizeof always_watched / sizeof always_watched[0])

/* ---- The folder -------------------------------------------------------- */

static bool make_path(char *path, size_t size)
{
    const char *base = getenv("XDG_CACHE_HOME");
    const char *below = "/cellgate";
    int length;

    if (base == NULL || base[0] != '/') {
        base = getenv("HOME");
        below = "/.cache/cellgate";
    }
    if (base == NULL || base[0] != '/')
        return false;
    length = snprintf(path, size, "%s%s", base, below);
    return length > 0 && (size_t)length < size;
}

/* The folders of the path that aren't there yet, for the user alone. */
static void make_folders(char *path)
{
    char *slash;

    for (slash = strchr(path + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    (void)mkdir(path, 0700);
}

static bool is_ours_alone(const struct stat *about)
{
    return about->st_uid == geteuid() &&
           (about->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

cg_verdict_cache *cg_verdict_cache_open(const cg_log *log)
{
    char path[4096];
    struct stat about;
    cg_verdict_cache *cache;
    int folder;

    if (cg_privileged())
        return NULL;
    if (!make_path(path, sizeof path)) {
        cg_log_line(log, CELLGATE_LOG_DEBUG,
                    "verdicts on plugins are not kept: neither XDG_CACHE_HOME "
                    "nor HOME names a folder");
        return NULL;
    }
    make_folders(path);
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        cg_log_line(log, CELLGATE_LOG_DEBUG,
                    "verdicts on plugins are not kept: %s: %s", path,
                    strerror(errno));
        return NULL;
    }
    cache = malloc(sizeof *cache);
    if (cache == NULL || fstat(folder, &about) != 0 || !is_ours_alone(&about)) {
        cg_log_line(log, CELLGATE_LOG_DEBUG,
                    "verdicts on plugins are not kept: %s is another user's, "
                    "or others may write to it",
                    path);
        free(cache);
        (void)close(folder);
        return NULL;
    }
    cache->folder = folder;
    return cache;
}

void cg_verdict_cache_close(cg_verdict_cache *cache)
{
    if (cache == NULL)
        return;
    (void)close(cache->folder);
    free(cache);
}

/* ---- Identities -------------------------------------------------------- */

static void identify(const char *path, cg_file_identity *identity)
{
    struct stat about;

    identity->text[0] = '\0';
    if (stat(path, &about) != 0)
        return;
    (void)snprintf(identity->text, sizeof identity->text,
                   "%ju:%ju:%jd:%jd.%09ld:%jd.%09ld", (uintmax_t)about.st_dev,
                   (uintmax_t)about.st_ino, (intmax_t)about.st_size,
                   (intmax_t)about.st_mtim.tv_sec, about.st_mtim.tv_nsec,
                   (intmax_t)about.st_ctim.tv_sec, about.st_ctim.tv_nsec);
}

/* Into a text that begins with '='. */
static void put_hash(XXH128_hash_t hash, cg_file_identity *identity)
{
    (void)snprintf(identity->text, sizeof identity->text,
                   "=%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64,
                   (uint64_t)hash.low64);
}

/* Of the files of one name in the folders of a list; "" without any. */
static void identify_in(const char *folders, const char *name,
                        cg_file_identity *identity)
{
    cg_file_identity one[2]; /* all up to here, and this one */
    char path[4096];
    bool found = false;

    memset(one, 0, sizeof one);
    for (; *folders != '\0'; folders += *folders == ':') {
        const size_t length = strcspn(folders, ":");

        if (snprintf(path, sizeof path, "%.*s/%s", (int)length, folders, name) <
            (int)sizeof path)
            identify(path, &one[1]);
        else
            one[1].text[0] = '\0';
        found = found || one[1].text[0] != '\0';
        put_hash(XXH3_128bits(one, sizeof one), &one[0]);
        memset(&one[1], 0, sizeof one[1]);
        folders += length;
    }
    memcpy(identity->text, found ? one[0].text : "",
           found ? sizeof one[0].text : 1);
}

/* Of a watched thing: a path, a variable behind a '$', or a file in the folders
   that a variable lists. */
static void identify_watched(const char *watched, cg_file_identity *identity)
{
    const char *slash = strchr(watched, '/');
    char name[64];
    const char *value;

    if (watched[0] != '$') {
        identify(watched, identity);
        return;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(watched + 1, "/"),
                   watched + 1);
    value = getenv(name);
    identity->text[0] = '\0';
    if (value != NULL && slash != NULL)
        identify_in(value, slash + 1, identity);
    else if (value != NULL) /* not it: it may be none of the cache's business */
        put_hash(XXH3_128bits(value, strlen(value)), identity);
}

/* This build, as far as a plugin's answers may depend on it. */
static void identify_host(char *text, size_t size)
{
    (void)snprintf(text, size, "%s abi %u-%u table %zu host %zu device %zu",
                   PACKAGE_VERSION, CG_ABI_LOWEST, CG_ABI_HIGHEST,
                   sizeof(cellgate_plugin), sizeof(cellgate_host),
                   sizeof(cellgate_device_description));
}

static void make_file_name(const char *path, char *name, size_t size)
{
    XXH128_hash_t hash = XXH3_128bits(path, strlen(path));

    (void)snprintf(name, size, "verdict-%016" PRIx64 "%016" PRIx64 ".json",
                   (uint64_t)hash.high64, (uint64_t)hash.low64);
}

/* ---- Reading ----------------------------------------------------------- */

static json_t *read_json(const cg_verdict_cache *cache, const char *name)
{
    struct stat about;
    json_t *json = NULL;
    int file = openat(cache->folder, name,
                      O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

    if (file < 0)
        return NULL;
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) &&
        is_ours_alone(&about) && about.st_size <= FILE_MAX)
        json = json_loadfd(file, 0, NULL);
    (void)close(file);
    return json;
}

static bool still_holds(const json_t *watched)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)watched, name, value)
    {
        const char *was = json_string_value(value);
        cg_file_identity is;
        identify_watched(name, &is);
        if (was == NULL || strcmp(was, is.text) != 0)
            return false;
    }
    return json_is_object(watched);
}

static bool is_alive(const cg_verdict *verdict, json_int_t written)
{
    json_int_t now = (json_int_t)time(NULL);

    if (verdict->status == CELLGATE_OK && verdict->device_count > 0)
        return true;
    return written <= now && now - written < CG_VERDICT_SHORT_LIFE;
}

static cg_verdict *take(const json_t *json, const char *path,
                        const cg_file_identity *identity)
{
    const char *kept_path, *kept_identity, *kept_host;
    char host[128];
    json_t *watched, *body;
    json_int_t written;
    cg_verdict *verdict;
    int format;

    identify_host(host, sizeof host);
    if (json_unpack((json_t *)json, "{s:i, s:s, s:s, s:s, s:I, s:o, s:o}",
                    "format", &format, "path", &kept_path, "file",
                    &kept_identity, "host", &kept_host, "written", &written,
                    "watched", &watched, "verdict", &body) != 0 ||
        format != FORMAT || strcmp(kept_path, path) != 0 ||
        strcmp(kept_identity, identity->text) != 0 ||
        strcmp(kept_host, host) != 0 || !still_holds(watched))
        return NULL;
    verdict = cg_verdict_from_json(body);
    if (verdict != NULL && !is_alive(verdict, written)) {
        cg_verdict_destroy(verdict);
        return NULL;
    }
    return verdict;
}

cg_verdict *cg_verdict_cache_get(cg_verdict_cache *cache, const char *path,
                                 cg_file_identity *identity)
{
    cg_verdict *verdict = NULL;
    char name[64];
    json_t *json;

    identify(path, identity);
    if (cache == NULL || identity->text[0] == '\0')
        return NULL;
    make_file_name(path, name, sizeof name);
    json = read_json(cache, name);
    if (json != NULL)
        verdict = take(json, path, identity);
    json_decref(json);
    return verdict;
}

/* ---- Writing ----------------------------------------------------------- */

static json_t *watched_to_json(const cg_verdict *verdict)
{
    json_t *watched = json_object();
    size_t i;

    for (i = 0; i < ALWAYS_WATCHED + verdict->watched_count; i++) {
        const char *name = i < ALWAYS_WATCHED
                               ? always_watched[i]
                               : verdict->watched[i - ALWAYS_WATCHED];
        cg_file_identity is;
        identify_watched(name, &is);
        if (json_object_set_new(watched, name, json_string(is.text)) != 0) {
            json_decref(watched);
            return NULL;
        }
    }
    return watched;
}

/* Whole or not at all, also when several processes write at once. */
static bool write_text(const cg_verdict_cache *cache, const char *name,
                       const char *text)
{
    static atomic_uint number;
    size_t size = strlen(text);
    char temporary[96];
    ssize_t written;
    int file;

    (void)snprintf(temporary, sizeof temporary, "%s.%ld.%u", name,
                   (long)getpid(), atomic_fetch_add(&number, 1));
    (void)unlinkat(cache->folder, temporary, 0); /* a dead namesake's */
    file = openat(cache->folder, temporary,
                  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return false;
    do
        written = write(file, text, size);
    while (written < 0 && errno == EINTR);
    if ((close(file) == 0) & (written == (ssize_t)size) &&
        renameat(cache->folder, temporary, cache->folder, name) == 0)
        return true;
    (void)unlinkat(cache->folder, temporary, 0);
    return false;
}

void cg_verdict_cache_put(cg_verdict_cache *cache, const char *path,
                          const cg_file_identity *identity,
                          const cg_verdict *verdict)
{
    char name[64], host[128];
    json_t *json;
    char *text;

    if (cache == NULL || identity->text[0] == '\0' ||
        verdict->status == CELLGATE_INTERNAL ||
        verdict->status == CELLGATE_NO_MEMORY)
        return;
    identify_host(host, sizeof host);
    json =
        json_pack("{s:i, s:s, s:s, s:s, s:I, s:o, s:o}", "format", FORMAT,
                  "path", path, "file", identity->text, "host", host, "written",
                  (json_int_t)time(NULL), "watched", watched_to_json(verdict),
                  "verdict", cg_verdict_to_json(verdict));
    text = json != NULL ? json_dumps(json, JSON_INDENT(1)) : NULL;
    json_decref(json);
    if (text == NULL)
        return;
    make_file_name(path, name, sizeof name);
    (void)write_text(cache, name, text);
    free(text);
}

void cg_verdict_cache_drop(cg_verdict_cache *cache, const char *path)
{
    char name[64];

    if (cache == NULL)
        return;
    make_file_name(path, name, sizeof name);
    (void)unlinkat(cache->folder, name, 0);
}
