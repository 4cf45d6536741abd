/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The .npy format: one array.
 *
 * Layout (NumPy's numpy/lib/format, "NEP 1"): the magic "\x93NUMPY", two bytes
 * of version, the header's length (little-endian, 2 bytes in version 1, 4 in
 * versions 2 and 3), the header, the elements. The header is a Python dict
 * literal with exactly the keys descr, fortran_order and shape, padded with
 * spaces to a multiple of 64 bytes and ended by a newline.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_NPY_H
#define CELLGATE_RUNTIME_FORMATS_NPY_H

#include "cellgate/types.h"

#define CG_NPY_MAGIC "\x93NUMPY"
#define CG_NPY_MAGIC_SIZE 6u
/* Magic, version, and the widest length field. */
#define CG_NPY_PREFIX_SIZE 12u
/* NumPy writes 118 bytes; longer headers belong to structured dtypes. */
#define CG_NPY_HEADER_MAX 65535u
/* Room for the prefix and the longest header that is written. */
#define CG_NPY_WRITTEN_MAX 384u

/* Integers that no cellgate_dtype has; each becomes one that holds it. */
typedef enum cg_npy_stored {
    CG_NPY_AS_IS, /* the elements are of the dtype */
    CG_NPY_I8,    /* int32 */
    CG_NPY_I16,   /* int32 */
    CG_NPY_U16,   /* int32 */
    CG_NPY_U32,   /* int64 */
    CG_NPY_U64    /* int64; what does not fit is an error */
} cg_npy_stored;

/* What a header says. */
typedef struct cg_npy_header {
    int32_t dtype;        /* a cellgate_dtype: what elements become */
    cg_npy_stored stored; /* what they are in the file */
    size_t item;          /* bytes an element in the file */
    int32_t rank;
    int64_t shape[CELLGATE_MAX_RANK];
    int swapped; /* elements are big-endian */
    int fortran; /* the first axis is contiguous */
} cg_npy_header;

/*
 * Where an array's bytes come from. `read` gives at most `size` bytes of what
 * comes next and says in *count how many, 0 only at the end; it fills *error
 * when it fails.
 */
typedef struct cg_npy_source {
    const char *where; /* "FILE" or "FILE: array 'NAME'", for messages */
    uint64_t size;     /* of the whole .npy, bytes */
    cellgate_status (*read)(void *stream, void *buffer, size_t size,
                            size_t *count, cellgate_error *error);
    void *stream;
} cg_npy_source;

/*
 * Parses the text of a header, `length` bytes that need no terminator. A
 * strict reader of that dict alone, nothing is evaluated. BAD_FILE: not such a
 * dict, or a shape that no memory holds. UNSUPPORTED: a dtype or a rank that
 * Cellgate has not.
 */
cellgate_status cg_npy_parse_header(const char *text, size_t length,
                                    const char *where, cg_npy_header *header,
                                    cellgate_error *error);

/*
 * Reads as far as the elements, checks that the source has exactly the bytes
 * that they take, and fills dtype, rank and shape of *whole; the offset of the
 * first element goes to *offset.
 */
cellgate_status cg_npy_open(const cg_npy_source *source, cg_npy_header *header,
                            cellgate_tensor *whole, uint64_t *offset,
                            cellgate_error *error);

/*
 * Turns `count` elements as they lie in the file, at the end of `memory`, into
 * elements of header->dtype that fill it. OUT_OF_RANGE: an integer that does
 * not fit in int64; its index is `first` and on.
 */
cellgate_status cg_npy_decode(const cg_npy_header *header, const char *where,
                              void *memory, size_t count, uint64_t first,
                              cellgate_error *error);

/*
 * Reads one array: checks that the source has exactly the bytes its header
 * asks for, and only then allocates. The result is dense, row-major and in this
 * machine's byte order; tensor->data is aligned to CG_TENSOR_ALIGNMENT and the
 * caller's to free(). The source is left at its end. Integers that are widened
 * may be OUT_OF_RANGE.
 */
cellgate_status cg_npy_read(const cg_npy_source *source,
                            cellgate_tensor *tensor, cellgate_error *error);

/*
 * The bytes in front of the elements, version 1.0, for a tensor whose size is
 * known to be valid. Returns how many, a multiple of 64, or 0 when NumPy has no
 * such dtype; `bytes` has room for CG_NPY_WRITTEN_MAX.
 */
size_t cg_npy_format_header(const cellgate_tensor *tensor, char *bytes);

#endif
