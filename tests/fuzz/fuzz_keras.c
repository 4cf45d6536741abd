/* SPDX-License-Identifier: Apache-2.0 */
/* A whole .keras file. */
#include "config.h"

#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/model_use.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/zip_mutator.h"

const char fuzz_target[] = "keras";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_load_model(memory_file(data, size));
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room,
                               unsigned seed)
{
    return zip_mutate(data, size, room, seed);
}
