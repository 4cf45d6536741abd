/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights, and the texts beside them, out of an HDF5 file that lies in memory.
 *
 * Only what trained models need is taken: groups and datasets reached by hard
 * links, floating-point numbers stored in the file itself, attributes that are
 * texts. Everything else is refused by name. Any bytes may be given: what is
 * damaged is an error.
 *
 * A reader is used by one thread at a time; there may be any number of them.
 * A `path` is names with slashes between them, from the root: "layers/lstm".
 * "" and "/" are the root itself.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_H5_H
#define CELLGATE_RUNTIME_FORMATS_H5_H

#include "runtime/model/model.h"

#define CG_H5_MAX_RANK 32

typedef struct cg_h5 cg_h5;

/* Texts that live until cg_h5_close(). */
typedef struct cg_h5_strings {
    const char *const *items;
    size_t count;
} cg_h5_strings;

typedef struct cg_h5_extents {
    int32_t rank; /* 0: a scalar */
    int64_t extents[CG_H5_MAX_RANK];
} cg_h5_extents;

/*
 * `image` stays the caller's, unchanged until cg_h5_close(). `name` is what
 * errors call the file ("model.weights.h5", "the file"); it too has to live
 * until then.
 */
cellgate_status cg_h5_open(const void *image, size_t size, const char *name,
                           cg_h5 **h5, cellgate_error *error);
void cg_h5_close(cg_h5 *h5); /* NULL is allowed */

/* Whether hard links lead to `path`. */
bool cg_h5_has(cg_h5 *h5, const char *path);

/*
 * What the group at `path` has as members, whatever kind of link leads there,
 * ordered by their bytes. BAD_FILE: no group is there.
 */
cellgate_status cg_h5_members(cg_h5 *h5, const char *path, cg_h5_strings *names,
                              cellgate_error *error);

/*
 * The attribute `name` of the group or dataset at `path`: one text, or an array
 * of any rank of texts in row-major order. Their encoding (ASCII or UTF-8) is
 * not checked. NOT_FOUND, with *error untouched: there is an object at `path`,
 * and it has no such attribute. UNSUPPORTED: the attribute is no text.
 */
cellgate_status cg_h5_texts(cg_h5 *h5, const char *path, const char *name,
                            cg_h5_strings *texts, cellgate_error *error);

/* The shape of the dataset at `path`, whatever its type. */
cellgate_status cg_h5_shape(cg_h5 *h5, const char *path, cg_h5_extents *shape,
                            cellgate_error *error);

/*
 * Checks that `path` is a dataset of this shape, with its data in the file.
 * All datasets checked, together, may not take more bytes than the file has,
 * nor unpack to more than 20 times the file or 64 MiB, whichever is more.
 */
cellgate_status cg_h5_check(cg_h5 *h5, const char *path, int32_t rank,
                            const int64_t *shape, cellgate_error *error);
/*
 * Reads a checked dataset into `data`, converted to float32: float16, 32 and 64
 * rounded to nearest (beyond float32's range: infinity), bfloat16 where its
 * attribute "dtype" says so.
 */
cellgate_status cg_h5_read(cg_h5 *h5, const char *path, size_t elements,
                           float *data, cellgate_error *error);

#endif
