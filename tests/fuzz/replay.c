/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main program of a fuzz target in a build without libFuzzer: every file of
 * its corpus, and all that once brought a fault to light, goes through the
 * target. Arguments are files to take instead.
 */
#include "config.h"

#include <dirent.h>
#include <string.h>

#include "tests/fuzz/target.h"

/* The mutators are linked, and never called. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room)
{
    (void)data, (void)room;
    return size;
}

static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rbe");
    uint8_t *data;
    long size;

    FUZZ_REQUIRE(file != NULL);
    FUZZ_REQUIRE(fseek(file, 0, SEEK_END) == 0);
    size = ftell(file);
    FUZZ_REQUIRE(size >= 0 && fseek(file, 0, SEEK_SET) == 0);
    /* Exactly as large as the input: what reads beyond it is seen. */
    data = malloc(size > 0 ? (size_t)size : 1);
    FUZZ_REQUIRE(data != NULL);
    FUZZ_REQUIRE(fread(data, 1, (size_t)size, file) == (size_t)size);
    (void)fclose(file);
    (void)LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
}

/* Number of files; a folder that is not there has none. */
static int replay_folder(const char *srcdir, const char *kind)
{
    char path[4096];
    DIR *folder;
    struct dirent *entry;
    int count = 0;

    (void)snprintf(path, sizeof path, "%s/tests/fuzz/%s/%s", srcdir, kind,
                   fuzz_target);
    folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char file[4096 + 300];

        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        /* The one at hand when something ends the process. */
        (void)fprintf(stderr, "%s\n", file);
        replay_file(file);
        count++;
    }
    if (folder != NULL)
        (void)closedir(folder);
    return count;
}

int main(int argc, char **argv)
{
    const char *srcdir = getenv("srcdir");
    int count = argc - 1;

    for (int i = 1; i < argc; i++)
        replay_file(argv[i]);
    if (argc == 1) {
        srcdir = srcdir != NULL ? srcdir : ".";
        count = replay_folder(srcdir, "corpus");
        if (count == 0)
            (void)fprintf(stderr, "there is no corpus below %s\n", srcdir);
        count += count > 0 ? replay_folder(srcdir, "findings") : 0;
    }
    printf("%d passed, 0 failed\n", count);
    return count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
