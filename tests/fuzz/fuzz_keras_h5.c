/* SPDX-License-Identifier: Apache-2.0 */
/* A whole model in an HDF5 file, as Keras 1 to 3 write it. */
#include "config.h"

#include <string.h>

#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/model_use.h"
#include "tests/fuzz/target.h"

const char fuzz_target[] = "keras_h5";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_load_model(memory_file(data, size));
    return 0;
}

/* The architecture: from its first brace to where its braces are even again;
   0 without one. */
static size_t find_json(const uint8_t *data, size_t size, size_t *begin)
{
    static const char first[] = "{\"";
    int depth = 0;

    for (*begin = 0; *begin + 2 < size; ++*begin)
        if (memcmp(data + *begin, first, 2) == 0)
            break;
    for (size_t at = *begin; at < size; at++) {
        depth += (data[at] == '{') - (data[at] == '}');
        if (depth == 0)
            return at + 1 - *begin;
    }
    return 0;
}

/* Changes the text where it lies: what becomes shorter is filled with spaces,
   and what becomes longer is cut. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room,
                               unsigned seed)
{
    size_t begin, length = find_json(data, size, &begin), made;

    if (length == 0 || seed % 2 == 0)
        return LLVMFuzzerMutate(data, size, room);
    made = LLVMFuzzerMutate(data + begin, length, length);
    memset(data + begin + made, ' ', length - made);
    return size;
}
