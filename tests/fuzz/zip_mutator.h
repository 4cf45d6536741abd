/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes what is inside a zip archive, and packs it again: changed bytes alone
 * would end at the checksums.
 */
#ifndef CELLGATE_TESTS_FUZZ_ZIP_MUTATOR_H
#define CELLGATE_TESTS_FUZZ_ZIP_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

/*
 * As LLVMFuzzerCustomMutator(): mostly changes one member, and now and then
 * removes one, says it twice, or changes the archive's own bytes.
 */
size_t zip_mutate(uint8_t *data, size_t size, size_t room, unsigned seed);

#endif
