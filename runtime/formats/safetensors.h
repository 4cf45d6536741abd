/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The safetensors container: eight bytes with the size of a JSON header, the
 * header, and the tensors' data without a gap.
 *
 *   {"__metadata__": {"key": "text", ...},
 *    "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 *
 * The reader is strict: every byte of the data belongs to exactly one tensor,
 * and every size follows from dtype and shape. Nothing is copied.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_SAFETENSORS_H
#define CELLGATE_RUNTIME_FORMATS_SAFETENSORS_H

#include <jansson.h>

#include "cellgate/plugin.h"

/* The limit of the format's own implementation. */
#define CG_SAFETENSORS_MAX_HEADER 100000000u

typedef struct cg_safetensor {
    const char *name;
    const char *dtype; /* "F32"; always one of known size */
    int32_t rank;
    int64_t shape[CELLGATE_MAX_RANK];
    const void *data; /* in the image; aligned as the file has it */
    uint64_t size;
} cg_safetensor;

typedef struct cg_safetensors {
    json_t *header;                /* strings of the tensors are its own */
    json_t *metadata;              /* of strings; NULL without one */
    cg_safetensor *tensors;        /* in the order of their data */
    const cg_safetensor **by_name; /* sorted */
    size_t count;
} cg_safetensors;

/*
 * Reads the header of an image of a whole file, which stays the caller's and
 * unchanged as long as the result is used. NOT_FOUND, without an error text:
 * these bytes do not begin like a safetensors file.
 */
cellgate_status cg_safetensors_read(const void *image, uint64_t size,
                                    cg_safetensors *out, cellgate_error *error);
void cg_safetensors_finish(cg_safetensors *safetensors);

/* By name; NULL if there is none. */
const cg_safetensor *cg_safetensors_find(const cg_safetensors *safetensors,
                                         const char *name);

#endif
