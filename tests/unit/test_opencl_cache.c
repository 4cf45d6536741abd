/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenCL plugin's programs on disk: whole or not there, bounded, private.
 */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "plugins/opencl/cache.h"

#define KEY "device\noptions\nsource"
#define OTHER "device\noptions\nsourcf"

static char folder[64];
static char why[400];

static void open_cache(struct ocl_cache *cache, uint64_t limit)
{
    ocl_cache_init(cache, folder, limit, why, sizeof why);
    assert_string_equal(why, "");
    assert_true(cache->folder >= 0);
}

/* The name of some file in the folder; how many there are. */
static int files(char *name, size_t size)
{
    DIR *directory = opendir(folder);
    struct dirent *entry;
    int count = 0;

    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.') {
            (void)snprintf(name, size, "%.60s/%.60s", folder, entry->d_name);
            count++;
        }
    (void)closedir(directory);
    return count;
}

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/cellgate-cache-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    char name[160];

    (void)state;
    while (files(name, sizeof name) > 0)
        if (unlink(name) != 0)
            return -1;
    return rmdir(folder);
}

static void assert_kept(const struct ocl_cache *cache, const char *key,
                        const char *binary)
{
    size_t size = 0;
    char *got = ocl_cache_get(cache, key, strlen(key), &size);

    if (!binary) {
        assert_null(got);
        return;
    }
    assert_non_null(got);
    assert_int_equal(size, strlen(binary));
    assert_memory_equal(got, binary, size);
    free(got);
}

static void put(const struct ocl_cache *cache, const char *key,
                const char *binary)
{
    ocl_cache_put(cache, key, strlen(key), binary, strlen(binary));
}

static void test_kept_by_key(void **state)
{
    struct ocl_cache cache;

    (void)state;
    open_cache(&cache, 1 << 20);
    assert_kept(&cache, KEY, NULL);
    put(&cache, KEY, "first");
    put(&cache, OTHER, "second");
    ocl_cache_finish(&cache);
    open_cache(&cache, 1 << 20); /* another process */
    assert_kept(&cache, KEY, "first");
    assert_kept(&cache, OTHER, "second");
    put(&cache, KEY, "newer");
    assert_kept(&cache, KEY, "newer");
    ocl_cache_drop(&cache, KEY, strlen(KEY));
    assert_kept(&cache, KEY, NULL);
    assert_kept(&cache, OTHER, "second");
    ocl_cache_finish(&cache);
}

/* Every byte of the file matters; what is damaged is removed. */
static void test_damage(void **state)
{
    struct ocl_cache cache;
    char name[160];
    struct stat about;

    (void)state;
    open_cache(&cache, 1 << 20);
    put(&cache, KEY, "binary");
    assert_int_equal(files(name, sizeof name), 1);
    assert_int_equal(stat(name, &about), 0);
    for (off_t at = 0; at <= about.st_size; at++) {
        int file = open(name, O_RDWR);
        char byte;

        assert_true(file >= 0);
        if (at == about.st_size) {
            assert_int_equal(ftruncate(file, at - 1), 0);
        } else {
            assert_int_equal(pread(file, &byte, 1, at), 1);
            byte ^= 1;
            assert_int_equal(pwrite(file, &byte, 1, at), 1);
        }
        (void)close(file);
        if (at >= 19 && at < 24) { /* after the magic's zero: padding */
            put(&cache, KEY, "binary");
            continue;
        }
        assert_kept(&cache, KEY, NULL);
        assert_int_equal(files(name, sizeof name), 0);
        put(&cache, KEY, "binary");
        assert_int_equal(files(name, sizeof name), 1);
    }
    assert_kept(&cache, KEY, "binary");
    ocl_cache_finish(&cache);
}

/* What was not used for longest goes; what a dead process left goes too. */
static void test_bounded(void **state)
{
    const struct timespec long_ago[2] = { { 1000, 0 }, { 1000, 0 } };
    struct ocl_cache cache;
    char name[160], half[100], key[32];
    static char large[1000];
    int i, file;

    (void)state;
    memset(large, 'x', sizeof large - 1);
    (void)snprintf(half, sizeof half, "%.60s/0123456789abcdef.77", folder);
    file = open(half, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(file, large, sizeof large), sizeof large);
    assert_int_equal(futimens(file, long_ago), 0);
    (void)close(file);
    open_cache(&cache, 3500);
    for (i = 0; i < 10; i++) {
        (void)snprintf(key, sizeof key, "key %d", i);
        put(&cache, key, large);
        assert_kept(&cache, key, large);
        (void)usleep(20000); /* clocks of file systems are coarse */
        if (i > 0)
            assert_kept(&cache, "key 0", large); /* in use */
        (void)usleep(20000);
    }
    assert_int_equal(files(name, sizeof name), 3);
    assert_int_not_equal(access(half, F_OK), 0);
    assert_kept(&cache, "key 0", large);
    assert_kept(&cache, "key 5", NULL);
    ocl_cache_put(&cache, "huge", 4, large, 4000); /* never fits */
    assert_kept(&cache, "huge", NULL);
    ocl_cache_finish(&cache);
}

/* A folder that the user keeps other things in: these are not the cache's to
   remove, however old and large. */
static void test_others_stay(void **state)
{
    static const char *const others[] = { "model.keras", "0123456789abcdef.key",
                                          "0123456789abcdef0.bin", "notes" };
    const struct timespec long_ago[2] = { { 1000, 0 }, { 1000, 0 } };
    struct ocl_cache cache;
    char name[160];
    size_t i;

    (void)state;
    open_cache(&cache, 1000);
    for (i = 0; i < sizeof others / sizeof others[0]; i++) {
        int file;

        (void)snprintf(name, sizeof name, "%.60s/%.60s", folder, others[i]);
        file = open(name, O_WRONLY | O_CREAT, 0600);
        assert_true(file >= 0);
        assert_int_equal(ftruncate(file, 5000), 0);
        assert_int_equal(futimens(file, long_ago), 0);
        (void)close(file);
    }
    put(&cache, KEY, "binary");
    for (i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(faccessat(cache.folder, others[i], F_OK, 0), 0);
    assert_kept(&cache, KEY, "binary");
    ocl_cache_finish(&cache);
}

/* More files than any program has kernels are counted all the same. */
static void test_many_files(void **state)
{
    enum { FILES = 4200, SIZE = 4 };
    struct ocl_cache cache;
    char name[160];
    int i;

    (void)state;
    open_cache(&cache, 400);
    for (i = 0; i < FILES; i++) {
        int file;

        (void)snprintf(name, sizeof name, "%016x.bin", i);
        file = openat(cache.folder, name, O_WRONLY | O_CREAT, 0600);
        assert_true(file >= 0);
        assert_int_equal(write(file, "text", SIZE), SIZE);
        (void)close(file);
    }
    put(&cache, KEY, "binary");
    assert_true(files(name, sizeof name) <= 400 / SIZE);
    ocl_cache_finish(&cache);
}

/* Threads that put the same: whoever reads finds nothing or a whole file. */
static atomic_int putting;

static void *put_often(void *argument)
{
    static char large[200000];
    const struct ocl_cache *cache = argument;
    int i;

    for (i = 0; i < 200; i++)
        ocl_cache_put(cache, KEY, strlen(KEY), large, sizeof large);
    atomic_fetch_sub(&putting, 1);
    return NULL;
}

static void test_same_at_once(void **state)
{
    struct ocl_cache cache;
    pthread_t threads[3];
    char name[160];
    size_t size = 0, i;
    int torn = 0;

    (void)state;
    open_cache(&cache, 1 << 24);
    ocl_cache_put(&cache, KEY, strlen(KEY), "x", 1);
    atomic_store(&putting, 3);
    for (i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_often, &cache),
                         0);
    while (atomic_load(&putting) > 0) {
        void *got = ocl_cache_get(&cache, KEY, strlen(KEY), &size);

        torn += !got; /* removed as damaged, and not there for a while */
        free(got);
    }
    for (i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(torn, 0);
    assert_int_equal(files(name, sizeof name), 1);
    ocl_cache_finish(&cache);
}

/* A disk that takes no more, for which a bound of a file's size stands: nothing
   half-written is left. */
static void test_full_disk(void **state)
{
    static char large[100000];
    struct rlimit before, little;
    struct ocl_cache cache;
    char name[160];

    (void)state;
    open_cache(&cache, 1 << 20);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = before;
    little.rlim_cur = 50000;
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    ocl_cache_put(&cache, KEY, strlen(KEY), large, sizeof large);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(files(name, sizeof name), 0);
    assert_kept(&cache, KEY, NULL);
    put(&cache, KEY, "binary");
    assert_kept(&cache, KEY, "binary");
    ocl_cache_finish(&cache);
}

/* Binaries are code: nobody else may have written them. */
static void test_private(void **state)
{
    struct ocl_cache cache;

    (void)state;
    assert_int_equal(chmod(folder, 0777), 0);
    ocl_cache_init(&cache, folder, 1 << 20, why, sizeof why);
    assert_int_equal(cache.folder, -1);
    assert_non_null(strstr(why, "chmod 700"));
    put(&cache, KEY, "binary");
    assert_kept(&cache, KEY, NULL);
    assert_int_equal(chmod(folder, 0700), 0);
}

static void test_none(void **state)
{
    struct ocl_cache cache;

    (void)state;
    ocl_cache_init(&cache, "none", 1 << 20, why, sizeof why);
    assert_string_equal(why, "");
    put(&cache, KEY, "binary");
    assert_kept(&cache, KEY, NULL);
    ocl_cache_init(&cache, "/proc/no/such", 1 << 20, why, sizeof why);
    assert_int_equal(cache.folder, -1);
    assert_non_null(strstr(why, "/proc/no/such"));
}

/* The user's own folder, made on first use. */
static void test_default_folder(void **state)
{
    struct ocl_cache cache;
    char below[100];

    (void)state;
    assert_int_equal(setenv("XDG_CACHE_HOME", folder, 1), 0);
    ocl_cache_init(&cache, "", 1 << 20, why, sizeof why);
    assert_string_equal(why, "");
    ocl_cache_finish(&cache);
    (void)snprintf(below, sizeof below, "%s/cellgate/opencl", folder);
    assert_int_equal(rmdir(below), 0);
    (void)snprintf(below, sizeof below, "%s/cellgate", folder);
    assert_int_equal(rmdir(below), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kept_by_key, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_others_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_same_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_private, setup, teardown),
        cmocka_unit_test_setup_teardown(test_none, setup, teardown),
        cmocka_unit_test_setup_teardown(test_default_folder, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
