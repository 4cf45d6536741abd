/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a fuzz target is: one file fuzz_NAME.c with the functions below, which
 * libFuzzer calls, or replay.c in a build without it. See README.md.
 */
#ifndef CELLGATE_TESTS_FUZZ_TARGET_H
#define CELLGATE_TESTS_FUZZ_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cellgate/types.h"

/* NAME, which its folders in corpus/ and findings/ are called too. */
extern const char fuzz_target[];

/* Tries one input; returns 0. A fault ends the process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Optional: changes an input in place; returns its new size, at most `room`. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room,
                               unsigned seed);
/* libFuzzer's own way of changing bytes. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

/* Ends the process, with the place, unless `condition` holds. */
#define FUZZ_REQUIRE(condition)                                                \
    do {                                                                       \
        if (!(condition)) {                                                    \
            (void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__,   \
                          #condition);                                         \
            abort();                                                           \
        }                                                                      \
    } while (0)

/*
 * What holds after any call: success leaves the error alone, a failure has a
 * status of the list and a text of one line. Never NOT_FOUND, which readers say
 * among themselves.
 */
void fuzz_check_error(cellgate_status status, const cellgate_error *error);

#endif
