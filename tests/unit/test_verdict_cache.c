/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/config/settings.h"
#include "runtime/plugin/verdict_cache.h"
#include "tests/unit/plugin_folder.h"

static bool privileged;

bool __wrap_cg_privileged(void);
bool __wrap_cg_privileged(void)
{
    return privileged;
}

static cg_verdict_cache *cache;
static char plugin[256];

static int enter(void **state)
{
    privileged = false;
    if (plugin_folder_enter(state) != 0)
        return -1;
    (void)snprintf(plugin, sizeof plugin, "%s",
                   plugin_write("plugin.so", "1234", 4));
    (void)unsetenv("LD_LIBRARY_PATH");
    cache = cg_verdict_cache_open(NULL);
    return cache != NULL ? 0 : -1;
}

static int leave(void **state)
{
    (void)unsetenv("LD_LIBRARY_PATH");
    cg_verdict_cache_close(cache);
    return plugin_folder_leave(state);
}

/* A verdict with devices, or without and with that status. */
static cg_verdict *make_verdict(cellgate_status status, uint32_t devices,
                                const char *const *watched)
{
    const cellgate_plugin table = {
        .name = "name", .version = "", .build = "", .watched = watched
    };
    cg_verdict *verdict = cg_verdict_create();

    assert_non_null(verdict);
    assert_true(cg_verdict_identify(verdict, &table));
    cg_verdict_set(verdict, status, "reason");
    if (devices > 0)
        verdict->devices = calloc(devices, sizeof *verdict->devices);
    verdict->device_count = devices;
    return verdict;
}

/* Keeps such a verdict on `path`. */
static void keep_at(const char *path, cellgate_status status, uint32_t devices,
                    const char *const *watched)
{
    cg_verdict *verdict = make_verdict(status, devices, watched);
    cg_file_identity identity;

    cg_verdict_destroy(cg_verdict_cache_get(cache, path, &identity));
    cg_verdict_cache_put(cache, path, &identity, verdict);
    cg_verdict_destroy(verdict);
}

static void keep(cellgate_status status, uint32_t devices,
                 const char *const *watched)
{
    keep_at(plugin, status, devices, watched);
}

static bool is_kept(void)
{
    cg_file_identity identity;
    cg_verdict *verdict = cg_verdict_cache_get(cache, plugin, &identity);
    bool kept = verdict != NULL;

    if (kept) {
        assert_string_equal(verdict->name, "name");
        assert_string_equal(verdict->reason, "reason");
    }
    cg_verdict_destroy(verdict);
    return kept;
}

/* The path of the only file in the cache. */
static const char *kept_file(void)
{
    DIR *folder = opendir(plugin_path("cache/cellgate"));
    const struct dirent *entry;
    char name[300] = "";

    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        assert_string_equal(name, "");
        (void)snprintf(name, sizeof name, "cache/cellgate/%s", entry->d_name);
    }
    (void)closedir(folder);
    assert_string_not_equal(name, "");
    return plugin_path(name);
}

static void test_kept(void **state)
{
    struct stat about;

    (void)state;
    assert_false(is_kept());
    keep(CELLGATE_OK, 2, NULL);
    assert_true(is_kept());
    assert_int_equal(stat(kept_file(), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(stat(plugin_path("cache/cellgate"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);
    cg_verdict_cache_drop(cache, plugin);
    assert_false(is_kept());
    cg_verdict_cache_drop(cache, plugin);
}

static void test_not_kept(void **state)
{
    const char *absent = plugin_path("absent.so");
    cg_file_identity identity;

    (void)state;
    keep(CELLGATE_INTERNAL, 0, NULL);
    assert_false(is_kept());
    keep(CELLGATE_NO_MEMORY, 0, NULL);
    assert_false(is_kept());
    keep_at(absent, CELLGATE_BAD_PLUGIN, 0, NULL);
    assert_null(cg_verdict_cache_get(cache, absent, &identity));
    assert_string_equal(identity.text, "");
    assert_null(cg_verdict_cache_get(NULL, plugin, &identity));
    assert_string_not_equal(identity.text, "");
    cg_verdict_cache_put(NULL, plugin, &identity, NULL);
    cg_verdict_cache_drop(NULL, plugin);
    cg_verdict_cache_close(NULL);
}

static void test_file_changes(void **state)
{
    struct timespec times[2];
    struct stat about;

    (void)state;
    keep(CELLGATE_OK, 1, NULL);
    (void)plugin_write("plugin.so", "12345", 5); /* size */
    assert_false(is_kept());

    keep(CELLGATE_OK, 1, NULL);
    assert_int_equal(stat(plugin, &about), 0);
    times[0] = about.st_atim;
    times[1] = about.st_mtim;
    times[1].tv_nsec = (times[1].tv_nsec + 1) % 1000000000; /* time */
    assert_int_equal(utimensat(AT_FDCWD, plugin, times, 0), 0);
    assert_false(is_kept());

    keep(CELLGATE_OK, 1, NULL);
    (void)plugin_write("other.so", "12345", 5); /* another file */
    times[0] = about.st_atim;
    assert_int_equal(utimensat(AT_FDCWD, plugin_path("other.so"), times, 0), 0);
    assert_int_equal(rename(plugin_path("other.so"), plugin), 0);
    assert_false(is_kept());
}

/* The file is replaced while it is being probed. */
static void test_changes_meanwhile(void **state)
{
    cg_verdict *verdict = make_verdict(CELLGATE_OK, 1, NULL);
    cg_file_identity identity;

    (void)state;
    assert_null(cg_verdict_cache_get(cache, plugin, &identity));
    (void)plugin_write("plugin.so", "123456", 6);
    cg_verdict_cache_put(cache, plugin, &identity, verdict);
    assert_false(is_kept());
    cg_verdict_destroy(verdict);
}

static void test_watched(void **state)
{
    const char *watched[] = { strdup(plugin_path("driver")), "$DRIVER", NULL };

    (void)state;
    (void)unsetenv("DRIVER");
    keep(CELLGATE_OK, 1, watched);
    assert_true(is_kept());
    (void)plugin_write("driver", "1", 1); /* it is there now */
    assert_false(is_kept());
    keep(CELLGATE_OK, 1, watched);
    assert_true(is_kept());
    (void)plugin_write("driver", "22", 2); /* and another one now */
    assert_false(is_kept());
    keep(CELLGATE_OK, 1, watched);
    (void)setenv("DRIVER", "", 1);
    assert_false(is_kept());
    keep(CELLGATE_OK, 1, watched);
    assert_true(is_kept());
    (void)setenv("DRIVER", "1", 1);
    assert_false(is_kept());
    (void)unsetenv("DRIVER");
    free((char *)watched[0]);

    keep(CELLGATE_OK, 1, NULL);
    (void)setenv("LD_LIBRARY_PATH", "/somewhere", 1);
    assert_false(is_kept());
}

/* A library that appears in a folder that the loader looks in, is replaced and
   goes. */
static void test_watched_in_folders(void **state)
{
    static const char *const watched[] = { "$FOLDERS/library.so", NULL };
    char folders[600];

    (void)state;
    (void)unsetenv("FOLDERS");
    keep(CELLGATE_OK, 1, watched);
    assert_true(is_kept());
    (void)snprintf(folders, sizeof folders, "/nowhere::%s/",
                   plugin_path("cache"));
    (void)setenv("FOLDERS", folders, 1);
    assert_true(is_kept()); /* it is in none of them */
    (void)plugin_write("cache/library.so", "1", 1);
    assert_false(is_kept());
    keep(CELLGATE_OK, 1, watched);
    assert_true(is_kept());
    (void)plugin_write("cache/library.so", "22", 2);
    assert_false(is_kept());
    keep(CELLGATE_OK, 1, watched);
    (void)unlink(plugin_path("cache/library.so"));
    assert_false(is_kept());
    keep(CELLGATE_OK, 1, watched);
    assert_true(is_kept());
    (void)unsetenv("FOLDERS");
    assert_true(is_kept());
}

/* Changes a member of the kept file. */
static void edit(const char *member, json_t *value)
{
    const char *path = kept_file();
    json_t *json = json_load_file(path, 0, NULL);

    assert_non_null(json);
    assert_non_null(json_object_get(json, member));
    assert_int_equal(json_object_set_new(json, member, value), 0);
    assert_int_equal(json_dump_file(json, path, 0), 0);
    json_decref(json);
}

static void test_life(void **state)
{
    json_int_t now = (json_int_t)time(NULL);

    (void)state;
    keep(CELLGATE_OK, 1, NULL);
    edit("written", json_integer(0));
    assert_true(is_kept());
    keep(CELLGATE_BAD_PLUGIN, 0, NULL);
    assert_true(is_kept());
    edit("written", json_integer(now - CG_VERDICT_SHORT_LIFE - 1));
    assert_false(is_kept());
    keep(CELLGATE_OK, 0, NULL); /* no device here */
    assert_true(is_kept());
    edit("written", json_integer(now + 1000)); /* the clock went back */
    assert_false(is_kept());
    edit("written", json_integer(now - CG_VERDICT_SHORT_LIFE / 2));
    assert_true(is_kept());
}

static void test_other_build(void **state)
{
    (void)state;
    keep(CELLGATE_OK, 1, NULL);
    edit("host", json_string("0.0.1 abi 0-0"));
    assert_false(is_kept());
    keep(CELLGATE_OK, 1, NULL);
    edit("format", json_integer(2));
    assert_false(is_kept());
    keep(CELLGATE_OK, 1, NULL);
    edit("path", json_string("/another/plugin.so"));
    assert_false(is_kept());
    keep(CELLGATE_OK, 1, NULL);
    edit("verdict", json_object());
    assert_false(is_kept());
    keep(CELLGATE_OK, 1, NULL);
    edit("watched", json_pack("{s:i}", "/etc/passwd", 1));
    assert_false(is_kept());
    keep(CELLGATE_OK, 1, NULL);
    assert_true(is_kept());
}

static void write_kept(const char *text)
{
    const char *path = kept_file();
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_damaged(void **state)
{
    static const char *const texts[] = {
        "", "{", "[]", "null", "\377\376", "{\"format\": 1}"
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        keep(CELLGATE_OK, 1, NULL);
        write_kept(texts[i]);
        assert_false(is_kept());
    }
    keep(CELLGATE_OK, 1, NULL);
    assert_true(is_kept());
}

static void test_untrusted_file(void **state)
{
    char *path;

    (void)state;
    keep(CELLGATE_OK, 1, NULL);
    path = strdup(kept_file());
    assert_int_equal(chmod(path, 0620), 0);
    assert_false(is_kept());
    assert_int_equal(chmod(path, 0602), 0);
    assert_false(is_kept());
    assert_int_equal(chmod(path, 0644), 0);
    assert_true(is_kept());
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 1, 1), 0);
        assert_false(is_kept());
        assert_int_equal(chown(path, 0, 0), 0);
        assert_true(is_kept());
    }
    assert_int_equal(rename(path, plugin_path("elsewhere")), 0);
    assert_int_equal(symlink(plugin_path("elsewhere"), path), 0);
    assert_false(is_kept());
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(is_kept());
    free(path);
}

static void check_no_cache(void)
{
    cg_verdict_cache *none = cg_verdict_cache_open(NULL);

    assert_null(none);
}

static void test_untrusted_folder(void **state)
{
    const char *folder = plugin_path("cache/cellgate");

    (void)state;
    assert_int_equal(chmod(folder, 0770), 0);
    check_no_cache();
    assert_int_equal(chmod(folder, 0707), 0);
    check_no_cache();
    assert_int_equal(chmod(folder, 0700), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(folder, 1, 1), 0);
        check_no_cache();
        assert_int_equal(chown(folder, 0, 0), 0);
    }
    privileged = true;
    check_no_cache();
    privileged = false;
    assert_int_equal(rmdir(folder), 0);
    (void)plugin_write("cache/cellgate", "", 0);
    check_no_cache();
}

static void test_folder(void **state)
{
    char *home = getenv("HOME");
    struct stat about;

    (void)state;
    home = home != NULL ? strdup(home) : NULL;
    (void)setenv("HOME", plugin_path("home"), 1);
    (void)setenv("XDG_CACHE_HOME", "relative", 1);
    cg_verdict_cache_close(cache);
    cache = cg_verdict_cache_open(NULL);
    assert_non_null(cache);
    assert_int_equal(stat(plugin_path("home/.cache/cellgate"), &about), 0);
    (void)unsetenv("XDG_CACHE_HOME");
    (void)unsetenv("HOME");
    check_no_cache();
    if (home != NULL)
        (void)setenv("HOME", home, 1);
    free(home);
}

/* JSON has no way to say such a path: nothing is kept, nothing breaks. */
static void test_path_that_is_no_utf8(void **state)
{
    const char *path = plugin_write("\377.so", "", 0);
    cg_file_identity identity;

    (void)state;
    keep_at(path, CELLGATE_OK, 1, NULL);
    assert_null(cg_verdict_cache_get(cache, path, &identity));
}

static atomic_int misses;

static void *keep_often(void *context)
{
    cg_verdict *verdict = context;
    cg_file_identity identity;
    int i;

    for (i = 0; i < 200; i++) {
        cg_verdict *kept = cg_verdict_cache_get(cache, plugin, &identity);
        if (kept == NULL)
            atomic_fetch_add(&misses, 1);
        cg_verdict_destroy(kept);
        cg_verdict_cache_put(cache, plugin, &identity, verdict);
    }
    return NULL;
}

/* A reader sees a whole verdict, whoever writes. */
static void test_several_writers(void **state)
{
    cg_verdict *verdict = make_verdict(CELLGATE_OK, 100, NULL);
    pthread_t threads[4];
    int i;

    (void)state;
    keep(CELLGATE_OK, 100, NULL);
    for (i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_often, verdict),
                         0);
    for (i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&misses), 0);
    (void)kept_file(); /* and no temporary file is left */
    cg_verdict_destroy(verdict);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)
    const struct CMUnitTest tests[] = {
        TEST(test_kept),
        TEST(test_not_kept),
        TEST(test_file_changes),
        TEST(test_changes_meanwhile),
        TEST(test_watched),
        TEST(test_watched_in_folders),
        TEST(test_life),
        TEST(test_other_build),
        TEST(test_damaged),
        TEST(test_untrusted_file),
        TEST(test_untrusted_folder),
        TEST(test_folder),
        TEST(test_path_that_is_no_utf8),
        TEST(test_several_writers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
