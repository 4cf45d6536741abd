/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HDF5 files made by a test, in memory: groups and datasets of float32 in the
 * plainest form that the format has. (Files by other writers, in every other
 * form, are in tests/fixtures/h5.) Whatever cannot be done ends the test.
 */
#ifndef CELLGATE_TESTS_UNIT_H5_IMAGE_H
#define CELLGATE_TESTS_UNIT_H5_IMAGE_H

#include <stddef.h>
#include <stdint.h>

typedef struct h5_image_dataset {
    const char *path; /* "layers/dense/vars/0"; NULL ends a list */
    int rank;         /* up to 4 */
    uint64_t shape[4];
    const float *data;
    /* Not 0: deflated, in one chunk of this extent along the first axis. What
       is beyond the shape is in `data` too. */
    uint64_t chunk_rows;
} h5_image_dataset;

/* The caller frees it. `datasets` may be NULL. */
unsigned char *h5_image(const h5_image_dataset *datasets, size_t *size);

#endif
