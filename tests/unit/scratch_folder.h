/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder of a test's own, below the current one, for the files it makes.
 * Everything here ends the test with a cmocka failure when it cannot be done.
 */
#ifndef CELLGATE_TESTS_UNIT_SCRATCH_FOLDER_H
#define CELLGATE_TESTS_UNIT_SCRATCH_FOLDER_H

#include <stddef.h>

/* cmocka's group setup and teardown: makes an empty folder; removes it. */
int scratch_folder_setup(void **state);
int scratch_folder_teardown(void **state);

/* The folder's path. */
const char *scratch_folder(void);

/* "FOLDER/name"; valid until eight more calls. */
const char *scratch_path(const char *name);

/* The same as an absolute path, as configurations want it; valid until the next
   call. */
const char *scratch_absolute(const char *name);

/* Entries in the folder, "." and ".." not counted. */
size_t scratch_count(void);

/* Writes a whole file there and returns its path, as scratch_path() does. */
const char *scratch_write(const char *name, const void *data, size_t size);

/* Reads a whole file; the caller frees it. */
unsigned char *read_whole_file(const char *path, size_t *size);

#endif
