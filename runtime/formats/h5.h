/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights out of an HDF5 file that lies in memory.
 *
 * Only what trained weights need is taken: groups and datasets reached by hard
 * links, of numbers, stored in the file itself, that do not unpack to more than
 * 20 times the file or 64 MiB. The library below is not so strict: bytes damaged
 * on purpose make HDF5 1.10 read where nothing is, before anything here could
 * look at them. A damaged zip is found by its checksum; a hostile file is not. Debian's HDF5 is not thread
 * safe, so one reader is open at a time: cg_h5_open() waits for the other one's
 * cg_h5_close(), which the same thread has to call.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_H5_H
#define CELLGATE_RUNTIME_FORMATS_H5_H

#include "runtime/model/model.h"

typedef struct cg_h5 cg_h5;

/*
 * `image` stays the caller's, unchanged until cg_h5_close(). UNSUPPORTED: built
 * without HDF5.
 */
cellgate_status cg_h5_open(const void *image, size_t size, cg_h5 **h5,
                           cellgate_error *error);
void cg_h5_close(cg_h5 *h5); /* NULL is allowed */

/* Whether hard links lead to `path` ("layers/lstm"). */
bool cg_h5_has(cg_h5 *h5, const char *path);

/* Checks that `path` is a dataset of this shape, with its data in the file. */
cellgate_status cg_h5_check(cg_h5 *h5, const char *path, int32_t rank,
                            const int64_t *shape, cellgate_error *error);
/*
 * Reads a checked dataset into `data`, converted to float32: float16, 32 and 64
 * as HDF5 does, bfloat16 where its attribute "dtype" says so.
 */
cellgate_status cg_h5_read(cg_h5 *h5, const char *path, size_t elements,
                           float *data, cellgate_error *error);

#endif
