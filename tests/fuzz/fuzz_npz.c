/* SPDX-License-Identifier: Apache-2.0 */
/* A .npz archive, or whatever else cellgate_arrays_read() is given. */
#include "config.h"

#include "cellgate/cellgate.h"
#include "runtime/formats/tensor.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/zip_mutator.h"

const char fuzz_target[] = "npz";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_arrays *arrays = NULL;
    const cellgate_status status =
        cellgate_arrays_read(memory_file(data, size), &arrays, &error);

    fuzz_check_error(status, &error);
    FUZZ_REQUIRE((status == CELLGATE_OK) == (arrays != NULL));
    for (size_t i = 0; arrays != NULL && i < cellgate_arrays_count(arrays);
         i++) {
        cellgate_tensor tensor = { .struct_size = sizeof tensor };
        const char *name = NULL;
        size_t bytes = 0;

        FUZZ_REQUIRE(cellgate_arrays_get(arrays, i, &name, &tensor) ==
                     CELLGATE_OK);
        FUZZ_REQUIRE(name != NULL);
        FUZZ_REQUIRE(cg_tensor_size(&tensor, NULL, &bytes));
        for (size_t at = 0; at < bytes; at++)
            (void)((volatile const char *)tensor.data)[at];
    }
    cellgate_arrays_destroy(arrays);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room,
                               unsigned seed)
{
    return zip_mutate(data, size, room, seed);
}
