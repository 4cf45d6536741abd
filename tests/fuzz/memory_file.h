/* SPDX-License-Identifier: Apache-2.0 */
/* A file in memory, for functions that take a path. */
#ifndef CELLGATE_TESTS_FUZZ_MEMORY_FILE_H
#define CELLGATE_TESTS_FUZZ_MEMORY_FILE_H

#include <stddef.h>

/* Fills the process's one such file and returns its path. */
const char *memory_file(const void *data, size_t size);

#endif
