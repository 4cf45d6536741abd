/* SPDX-License-Identifier: Apache-2.0 */
/* One .npy array, from a source that gives its bytes in pieces, and as a file
   in pieces of rows: the same elements. */
#include "config.h"

#include <string.h>

#include "cellgate/cellgate.h"
#include "runtime/formats/npy.h"
#include "runtime/formats/tensor.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"

const char fuzz_target[] = "npy";

typedef struct bytes {
    const uint8_t *data;
    size_t size, at;
} bytes;

static cellgate_status read_piece(void *stream, void *buffer, size_t size,
                                  size_t *count, cellgate_error *error)
{
    bytes *from = stream;
    /* Pieces of unlike sizes, that depend on nothing but the place. */
    const size_t most = 1 + from->at % 37;

    (void)error;
    *count = size < most ? size : most;
    if (*count > from->size - from->at)
        *count = from->size - from->at;
    memcpy(buffer, from->data + from->at, *count);
    from->at += *count;
    return CELLGATE_OK;
}

/* `whole` is what cg_npy_read() made of it, or has no data. */
static void read_pieces(const char *path, const cellgate_tensor *whole)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_array_reader *reader = NULL;
    cellgate_tensor piece = { .struct_size = sizeof piece };
    cellgate_status status = cellgate_array_reader_open(path, &reader, &error);
    size_t done = 0, size;

    fuzz_check_error(status, &error);
    FUZZ_REQUIRE((status == CELLGATE_OK) == (reader != NULL));
    if (reader == NULL)
        return;
    while ((status = cellgate_array_reader_next(reader, 3, &piece, &error)) ==
           CELLGATE_OK) {
        if (whole->data == NULL)
            continue;
        FUZZ_REQUIRE(piece.rank == whole->rank && piece.dtype == whole->dtype);
        FUZZ_REQUIRE(cg_tensor_size(&piece, NULL, &size));
        FUZZ_REQUIRE(size == 0 ||
                     memcmp(piece.data, (char *)whole->data + done, size) == 0);
        done += size;
    }
    /* What is wrong with a number is found when its piece is read. */
    FUZZ_REQUIRE((status == CELLGATE_END) == (whole->data != NULL));
    FUZZ_REQUIRE(whole->data == NULL ||
                 (cg_tensor_size(whole, NULL, &size) && done == size));
    cellgate_array_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bytes from = { data, size, 0 };
    const cg_npy_source source = { "x.npy", size, read_piece, &from };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_tensor tensor = { 0 };
    const cellgate_status status = cg_npy_read(&source, &tensor, &error);
    size_t wanted = 0;

    fuzz_check_error(status, &error);
    FUZZ_REQUIRE((status == CELLGATE_OK) == (tensor.data != NULL));
    read_pieces(memory_file(data, size), &tensor);
    if (tensor.data == NULL)
        return 0;
    FUZZ_REQUIRE(from.at == size);
    FUZZ_REQUIRE(cg_tensor_size(&tensor, NULL, &wanted));
    FUZZ_REQUIRE(wanted <= 4 * size); /* int8 becomes int32 */
    free(tensor.data);
    return 0;
}
