/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/unit/scratch_folder.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "scratch-XXXXXX";

const char *scratch_folder(void)
{
    return folder;
}

const char *scratch_path(const char *name)
{
    static char paths[9][300];
    static unsigned next;
    char *path = paths[next++ % 9];

    assert_true((size_t)snprintf(path, sizeof paths[0], "%s/%s", folder, name) <
                sizeof paths[0]);
    return path;
}

const char *scratch_absolute(const char *name)
{
    static char path[4096];

    assert_non_null(realpath(folder, path));
    assert_true(strlen(path) + strlen(name) + 2 < sizeof path);
    strcat(strcat(path, "/"), name);
    return path;
}

/* Calls `visit`, unless NULL, with each entry's name; returns how many. */
static size_t walk(void (*visit)(const char *name))
{
    DIR *directory = opendir(folder);
    size_t count = 0;

    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        count++;
        if (visit != NULL)
            visit(entry->d_name);
    }
    (void)closedir(directory);
    return count;
}

size_t scratch_count(void)
{
    return walk(NULL);
}

static void remove_entry(const char *name)
{
    const char *path = scratch_path(name);
    if (unlink(path) != 0)
        (void)rmdir(path);
}

int scratch_folder_setup(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL ? -1 : 0;
}

int scratch_folder_teardown(void **state)
{
    (void)state;
    (void)walk(remove_entry);
    return rmdir(folder);
}

const char *scratch_write(const char *name, const void *data, size_t size)
{
    const char *path = scratch_path(name);
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}

unsigned char *read_whole_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    unsigned char *data;
    long length;

    if (file == NULL)
        fail_msg("%s cannot be opened", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    length = ftell(file);
    assert_true(length >= 0);
    rewind(file);
    data = malloc((size_t)length + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)length, file), (size_t)length);
    (void)fclose(file);
    *size = (size_t)length;
    return data;
}
