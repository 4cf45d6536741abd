/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The .npz format: a zip archive whose members are .npy arrays, named
 * NAME.npy, stored or deflated.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_NPZ_H
#define CELLGATE_RUNTIME_FORMATS_NPZ_H

#include <stdio.h>

#include "cellgate/types.h"

/* More members than this are taken for an attack. */
#define CG_NPZ_MEMBERS_MAX 4096
/* So is more than this many times the file ... */
#define CG_NPZ_RATIO_MAX 100
/* ... unless it is no more than this many bytes. */
#define CG_NPZ_FREE ((uint64_t)64 << 20)

/* A named array; both pointers are malloc()ed. */
typedef struct cg_named_array {
    char *name; /* without ".npy" */
    cellgate_tensor tensor;
} cg_named_array;

/* Frees `count` arrays and the list itself; NULL is allowed. */
void cg_named_arrays_free(cg_named_array *arrays, size_t count);

/*
 * Reads every member, in the archive's order. `size` is the file's. Before
 * anything is allocated for a member, what the archive claims is checked:
 * members take no more bytes than the file has, none inflates by more than
 * deflate can, all together they inflate to no more than CG_NPZ_RATIO_MAX times
 * the file or CG_NPZ_FREE bytes, whichever is more, and each has exactly the
 * size that its array asks for. Checksums are verified. The caller frees the
 * list.
 */
cellgate_status cg_npz_read(const char *path, uint64_t size,
                            cg_named_array **arrays, size_t *count,
                            cellgate_error *error);

/*
 * Writes an archive of stored members to `stream`, which is empty and
 * seekable; `path` is for messages. The tensors are valid and of dtypes that
 * .npy has. INVALID: two names are equal. The same arrays give the same bytes.
 */
cellgate_status cg_npz_write(FILE *stream, const char *path,
                             const char *const *names,
                             const cellgate_tensor *tensors, size_t count,
                             cellgate_error *error);

#endif
