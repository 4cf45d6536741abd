/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugins/opencl/cache.h"

#define MAGIC "cellgate opencl 1\n"
#define NAME_SIZE 40
#define LARGEST ((uint64_t)256 << 20)

/* What a file begins with; then the key, then the binary. */
struct header {
    char magic[24];
    uint64_t key_size, binary_size, sum;
};

/* FNV-1a; the whole key is compared as well. */
static uint64_t digest(const void *data, size_t size, uint64_t sum)
{
    const unsigned char *bytes = data;
    size_t i;

    for (i = 0; i < size; i++)
        sum = (sum ^ bytes[i]) * 0x100000001b3u;
    return sum;
}

static void file_name(const char *key, size_t key_size, char *name)
{
    (void)snprintf(
        name, NAME_SIZE, "%016llx.bin",
        (unsigned long long)digest(key, key_size, 0xcbf29ce484222325u));
}

/* ---- The folder -------------------------------------------------------- */

/* Makes every folder of the path that is not there. */
static bool make_folders(char *path)
{
    char *at;

    for (at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST) {
            *at = '/';
            return false;
        }
        *at = '/';
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static bool default_folder(char *path, size_t size)
{
    const char *base = secure_getenv("XDG_CACHE_HOME");
    const char *below = "/cellgate/opencl";

    if (!base || base[0] != '/') {
        base = secure_getenv("HOME");
        below = "/.cache/cellgate/opencl";
    }
    if (!base || base[0] != '/')
        return false;
    return snprintf(path, size, "%s%s", base, below) < (int)size;
}

static bool is_ours_alone(int folder)
{
    struct stat about;

    return fstat(folder, &about) == 0 && about.st_uid == geteuid() &&
           (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

void ocl_cache_init(struct ocl_cache *cache, const char *folder, uint64_t limit,
                    char *why, size_t why_size)
{
    char path[4096];

    *cache = (struct ocl_cache){ -1, limit };
    why[0] = '\0';
    if (strcmp(folder, "none") == 0 || limit == 0)
        return;
    if (folder[0] == '\0' && !default_folder(path, sizeof path)) {
        (void)snprintf(why, why_size,
                       "neither XDG_CACHE_HOME nor HOME is set; set cache = "
                       "FOLDER");
        return;
    }
    if (folder[0] != '\0' &&
        snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path) {
        (void)snprintf(why, why_size, "the name of its folder is too long");
        return;
    }
    if (make_folders(path))
        cache->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cache->folder < 0) {
        (void)snprintf(why, why_size, "%.300s: %s", path, strerror(errno));
    } else if (!is_ours_alone(cache->folder)) {
        (void)snprintf(why, why_size,
                       "%.300s is not this user's alone; chmod 700 it", path);
        ocl_cache_finish(cache);
    }
}

void ocl_cache_finish(struct ocl_cache *cache)
{
    if (cache->folder >= 0)
        (void)close(cache->folder);
    cache->folder = -1;
}

/* ---- Reading ----------------------------------------------------------- */

static bool read_all(int file, void *to, size_t size)
{
    char *at = to;

    while (size > 0) {
        ssize_t got = read(file, at, size);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

/* Reads and checks a whole file; NULL if it is not what was put there. */
static void *read_binary(int file, const char *key, size_t key_size,
                         size_t *size)
{
    struct header header;
    struct stat about;
    char *content;

    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) ||
        about.st_uid != geteuid() || !read_all(file, &header, sizeof header) ||
        memcmp(header.magic, MAGIC, sizeof MAGIC) != 0 ||
        header.key_size != key_size || header.binary_size > LARGEST ||
        (uint64_t)about.st_size !=
            sizeof header + header.key_size + header.binary_size)
        return NULL;
    content = malloc(key_size + header.binary_size + 1);
    if (content && read_all(file, content, key_size + header.binary_size) &&
        memcmp(content, key, key_size) == 0 &&
        digest(content + key_size, header.binary_size, header.key_size) ==
            header.sum) {
        memmove(content, content + key_size, header.binary_size);
        *size = header.binary_size;
        return content;
    }
    free(content);
    return NULL;
}

void *ocl_cache_get(const struct ocl_cache *cache, const char *key,
                    size_t key_size, size_t *size)
{
    char name[NAME_SIZE];
    void *binary;
    int file;

    if (cache->folder < 0)
        return NULL;
    file_name(key, key_size, name);
    file = openat(cache->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return NULL;
    binary = read_binary(file, key, key_size, size);
    if (binary)
        (void)futimens(file, NULL); /* in use: others go first */
    else
        (void)unlinkat(cache->folder, name, 0);
    (void)close(file);
    return binary;
}

void ocl_cache_drop(const struct ocl_cache *cache, const char *key,
                    size_t key_size)
{
    char name[NAME_SIZE];

    if (cache->folder < 0)
        return;
    file_name(key, key_size, name);
    (void)unlinkat(cache->folder, name, 0);
}

/* ---- Writing ----------------------------------------------------------- */

static bool write_all(int file, const void *from, size_t size)
{
    const char *at = from;

    while (size > 0) {
        ssize_t put = write(file, at, size);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        size -= (size_t)put;
    }
    return true;
}

struct kept {
    char name[NAME_SIZE];
    struct timespec used;
    uint64_t size;
};

static int by_use(const void *left, const void *right)
{
    const struct kept *a = left, *b = right;

    if (a->used.tv_sec != b->used.tv_sec)
        return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    return (a->used.tv_nsec > b->used.tv_nsec) -
           (a->used.tv_nsec < b->used.tv_nsec);
}

/* Whether a file has a name that file_name() or open_temporary() gave it: the
   folder may be one that the user keeps other things in. */
static bool is_ours(const char *name)
{
    size_t digits = strspn(name, "0123456789abcdef"), end;

    if (digits != 16 || name[16] != '.')
        return false;
    if (strcmp(name + 16, ".bin") == 0)
        return true;
    end = 17 + strspn(name + 17, "0123456789.");
    return end > 17 && end < NAME_SIZE && name[end] == '\0';
}

/* Room for one more; false: no memory. */
static bool grow(struct kept **kept, size_t count, size_t *room)
{
    const size_t more = *room ? 2 * *room : 64;
    struct kept *grown;

    if (count < *room)
        return true;
    grown = realloc(*kept, more * sizeof **kept);
    if (!grown)
        return false;
    *kept = grown;
    *room = more;
    return true;
}

/* The cache's files in the folder, to be freed with free(); those that a dead
   process left half-written too. */
static struct kept *list_kept(int folder, size_t *count)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *entry;
    struct kept *kept = NULL;
    size_t room = 0;

    *count = 0;
    if (!directory) {
        if (copy >= 0)
            (void)close(copy);
        return NULL;
    }
    while ((entry = readdir(directory)) != NULL) {
        struct stat about;

        if (!is_ours(entry->d_name) ||
            fstatat(folder, entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(about.st_mode))
            continue;
        if (!grow(&kept, *count, &room))
            break;
        memcpy(kept[*count].name, entry->d_name, strlen(entry->d_name) + 1);
        kept[*count].used = about.st_mtim;
        kept[(*count)++].size = (uint64_t)about.st_size;
    }
    (void)closedir(directory);
    return kept;
}

/* Removes what was not used for longest, until the rest fits. */
static void shrink(const struct ocl_cache *cache)
{
    size_t count, i;
    struct kept *kept = list_kept(cache->folder, &count);
    uint64_t total = 0;

    for (i = 0; i < count; i++)
        total += kept[i].size;
    if (total > cache->limit)
        qsort(kept, count, sizeof *kept, by_use);
    for (i = 0; i < count && total > cache->limit; i++)
        if (unlinkat(cache->folder, kept[i].name, 0) == 0)
            total -= kept[i].size;
    free(kept);
}

/* A new file, under a name that no other thread or process writes to: two
   containers that share the folder may have the same process id. */
static int open_temporary(int folder, const char *name, char *temporary)
{
    static atomic_uint counter;
    int tries, file = -1;

    for (tries = 0; file < 0 && tries < 100; tries++) {
        (void)snprintf(temporary, NAME_SIZE, "%.16s.%d.%u", name, (int)getpid(),
                       atomic_fetch_add(&counter, 1));
        file =
            openat(folder, temporary,
                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (file < 0 && errno != EEXIST)
            break;
    }
    return file;
}

void ocl_cache_put(const struct ocl_cache *cache, const char *key,
                   size_t key_size, const void *binary, size_t size)
{
    struct header header = { .magic = MAGIC,
                             .key_size = key_size,
                             .binary_size = size };
    char name[NAME_SIZE], temporary[NAME_SIZE];
    bool written = false;
    int file;

    if (cache->folder < 0 || size > LARGEST || size > cache->limit)
        return;
    header.sum = digest(binary, size, key_size);
    file_name(key, key_size, name);
    file = open_temporary(cache->folder, name, temporary);
    if (file < 0)
        return;
    written = write_all(file, &header, sizeof header) &&
              write_all(file, key, key_size) && write_all(file, binary, size);
    written = close(file) == 0 && written;
    if (!written ||
        renameat(cache->folder, temporary, cache->folder, name) != 0)
        (void)unlinkat(cache->folder, temporary, 0);
    shrink(cache);
}
