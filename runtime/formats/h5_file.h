/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of HDF5 files, inside: what h5_*.c share. Structures are those of
 * the HDF5 File Format Specification; its terms are used.
 *
 *   h5.c             the interface (h5.h)
 *   h5_file.c        bytes, bounds and errors of one reader
 *   h5_superblock.c  the start of a file
 *   h5_object.c      object headers and their messages
 *   h5_group.c       links and paths; h5_symbols.c, groups of the old style
 *   h5_btree2.c, h5_fractal.c   where groups and objects keep what is too much
 *                               for a header
 *   h5_type.c        datatypes and dataspaces
 *   h5_attribute.c   attributes; h5_texts.c, texts in them
 *   h5_dataset.c     layouts and filters; h5_chunks.c, where chunks lie;
 *                    h5_unpack.c, filters undone; h5_data.c, numbers
 *
 * BOUNDS. Every byte is looked at through a cursor that begins with
 * cg_h5_span(), which also counts: a call of the interface may look at metadata
 * of 4 times the file's size and 1 MiB, so that loops and structures that are
 * referred to again and again come to an end. What is kept until the end takes
 * at most 16 times the file's size and 4 MiB. Trees and heaps are walked level
 * by level, at most 32 of them.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_H5_FILE_H
#define CELLGATE_RUNTIME_FORMATS_H5_FILE_H

#include "runtime/formats/h5.h"
#include "runtime/formats/h5_cursor.h"

#define CG_H5_MAX_LEVELS 32
#define CG_H5_VERIFIED 256

typedef struct cg_h5_kept cg_h5_kept;

struct cg_h5 {
    const uint8_t *image; /* from the superblock on: address 0 */
    size_t size;
    const char *name;
    uint8_t offset_size, length_size;
    uint64_t root; /* the root group's header */
    /* The call at work. */
    const char *path;
    cellgate_error *error;
    uint64_t walk; /* bytes of metadata it may still look at */
    /* Datasets checked so far: bytes in the file, and in memory. */
    uint64_t stored, unpacked;
    cg_h5_kept *kept;
    uint64_t kept_size;
    /* Addresses of heap blocks whose checksum was right. */
    uint64_t verified[CG_H5_VERIFIED];
};

/* ---- h5_file.c --------------------------------------------------------- */

/* Begins a call of the interface. */
void cg_h5_begin(cg_h5 *h5, const char *path, cellgate_error *error);

/* Fills the call's error with "'PATH' in NAME " and the text. */
CELLGATE_PRINTF_LIKE(3, 4)
cellgate_status cg_h5_fail(cg_h5 *h5, cellgate_status status,
                           const char *format, ...);
/* BAD_FILE: "'PATH' in NAME is damaged: " and what is wrong. */
cellgate_status cg_h5_damaged(cg_h5 *h5, const char *what);
cellgate_status cg_h5_no_memory(cg_h5 *h5);

/* Counts `size` bytes of metadata looked at. BAD_FILE: too many. */
cellgate_status cg_h5_walk(cg_h5 *h5, uint64_t size);

/* A cursor over bytes of the file; cg_h5_span() counts them. BAD_FILE: `what`
   lies outside of the file. */
cellgate_status cg_h5_bytes(cg_h5 *h5, uint64_t address, uint64_t size,
                            const char *what, cg_h5_cursor *cursor);
cellgate_status cg_h5_span(cg_h5 *h5, uint64_t address, uint64_t size,
                           const char *what, cg_h5_cursor *cursor);

/* Memory that lives until cg_h5_close(), aligned for pointers. NULL: there is
   none, or the bound is passed; the error is set. */
void *cg_h5_keep(cg_h5 *h5, uint64_t size, cellgate_status *status);
void cg_h5_kept_free(cg_h5_kept *kept);

/*
 * Jenkins' lookup3, HDF5's checksum of metadata. The 4 bytes at `hole` count as
 * zeros: a block's own checksum. SIZE_MAX: no hole.
 */
uint32_t cg_h5_checksum(const uint8_t *bytes, size_t size, size_t hole);
/* Whether `sum` is that checksum. In builds for fuzzing it always is, since no
   fuzzer hits one by chance. */
bool cg_h5_sum_fits(uint32_t sum, const uint8_t *bytes, size_t size,
                    size_t hole);

/* BAD_FILE unless the cursor's last 4 bytes are the checksum of those before,
   which remain. */
cellgate_status cg_h5_verify(cg_h5 *h5, cg_h5_cursor *block, const char *what);

/* ---- h5_superblock.c ---------------------------------------------------- */

cellgate_status cg_h5_superblock(cg_h5 *h5);

/* ---- h5_object.c -------------------------------------------------------- */

enum {
    CG_H5_DATASPACE = 0x01,
    CG_H5_LINK_INFO = 0x02,
    CG_H5_DATATYPE = 0x03,
    CG_H5_LINK = 0x06,
    CG_H5_EXTERNAL = 0x07,
    CG_H5_LAYOUT = 0x08,
    CG_H5_FILTERS = 0x0b,
    CG_H5_ATTRIBUTE = 0x0c,
    CG_H5_CONTINUATION = 0x10,
    CG_H5_SYMBOL_TABLE = 0x11,
    CG_H5_ATTRIBUTE_INFO = 0x15,
    CG_H5_MESSAGES = 0x18 /* how many types there are */
};

typedef struct cg_h5_message {
    uint8_t type;
    bool shared; /* the body says where it is */
    cg_h5_cursor body;
} cg_h5_message;

/* Visitors return END to stop a walk, which then returns END. */
typedef cellgate_status (*cg_h5_visit_message)(cg_h5 *h5, void *context,
                                               const cg_h5_message *message);
cellgate_status cg_h5_each_message(cg_h5 *h5, uint64_t address,
                                   cg_h5_visit_message visit, void *context);

/* An object's messages by type, those of which it has one at most. */
typedef struct cg_h5_object {
    uint64_t address;
    uint32_t found; /* bits by type */
    cg_h5_message messages[CG_H5_MESSAGES];
} cg_h5_object;

cellgate_status cg_h5_object_read(cg_h5 *h5, uint64_t address,
                                  cg_h5_object *object);
bool cg_h5_object_has(const cg_h5_object *object, unsigned type);
bool cg_h5_is_group(const cg_h5_object *object);
bool cg_h5_is_dataset(const cg_h5_object *object);

/* ---- h5_group.c --------------------------------------------------------- */

typedef struct cg_h5_link {
    const char *name; /* in the image, not terminated */
    size_t length;
    uint8_t kind;     /* as in a link message: 0 hard, 1 soft, 64 external */
    uint64_t address; /* of a hard link */
} cg_h5_link;

typedef cellgate_status (*cg_h5_visit_link)(cg_h5 *h5, void *context,
                                            const cg_h5_link *link);

/* Links of a group; where `name` is given, others may be left out. */
cellgate_status cg_h5_each_link(cg_h5 *h5, const cg_h5_object *group,
                                const char *name, size_t length,
                                cg_h5_visit_link visit, void *context);
cellgate_status cg_h5_each_symbol(cg_h5 *h5, const cg_h5_message *table,
                                  cg_h5_visit_link visit, void *context);

/* The object at the call's path. */
cellgate_status cg_h5_find(cg_h5 *h5, cg_h5_object *object);

/* ---- h5_btree2.c -------------------------------------------------------- */

typedef cellgate_status (*cg_h5_visit_record)(cg_h5 *h5, void *context,
                                              cg_h5_cursor record);
/* Records of the tree at `address`, which has to be of this type. */
cellgate_status cg_h5_each_record(cg_h5 *h5, uint64_t address, uint8_t type,
                                  cg_h5_visit_record visit, void *context);

/* ---- h5_fractal.c ------------------------------------------------------- */

typedef struct cg_h5_fractal {
    uint64_t address, root, huge;
    uint16_t id_size, rows;
    uint8_t offset_bytes, length_bytes; /* of an id */
    /* Logarithms of the table's width, and of the first and the largest direct
       block. */
    uint8_t width, first, largest;
    uint8_t bits; /* of the heap's address space */
    bool checked; /* direct blocks have checksums */
} cg_h5_fractal;

cellgate_status cg_h5_fractal_open(cg_h5 *h5, uint64_t address,
                                   cg_h5_fractal *heap);
/* The object that the id at `id`, which is passed, stands for. */
cellgate_status cg_h5_fractal_get(cg_h5 *h5, const cg_h5_fractal *heap,
                                  cg_h5_cursor *id, cg_h5_cursor *object);

/* ---- h5_type.c ---------------------------------------------------------- */

typedef enum cg_h5_class {
    CG_H5_F16,
    CG_H5_BF16,
    CG_H5_F32,
    CG_H5_F64,
    CG_H5_OPAQUE,
    CG_H5_FIXED_TEXT,
    CG_H5_LONG_TEXT, /* in a global heap */
    CG_H5_OTHER
} cg_h5_class;

typedef struct cg_h5_type {
    cg_h5_class class;
    const char *called; /* "64-bit integers" */
    uint32_t size;      /* bytes an element, never 0 */
    bool big_endian;
    char padding; /* of a fixed text: '\0', ' ', or 't': ends at a NUL */
} cg_h5_type;

typedef struct cg_h5_space {
    int32_t rank; /* 0: a scalar; -1: nothing */
    uint64_t extents[CG_H5_MAX_RANK];
    uint64_t limits[CG_H5_MAX_RANK]; /* how far they may grow */
    uint64_t elements;
} cg_h5_space;

cellgate_status cg_h5_type_read(cg_h5 *h5, cg_h5_cursor body, cg_h5_type *type);
cellgate_status cg_h5_space_read(cg_h5 *h5, cg_h5_cursor body,
                                 cg_h5_space *space);

/* ---- h5_attribute.c, h5_texts.c ----------------------------------------- */

typedef struct cg_h5_attribute {
    cg_h5_cursor type, space, data;
    bool shared_type, shared_space;
} cg_h5_attribute;

/* NOT_FOUND, with the error untouched: there is none of this name. */
cellgate_status cg_h5_attribute_find(cg_h5 *h5, const cg_h5_object *object,
                                     const char *name,
                                     cg_h5_attribute *attribute);
cellgate_status cg_h5_texts_read(cg_h5 *h5, const char *name,
                                 const cg_h5_attribute *attribute,
                                 cg_h5_strings *texts);

/* ---- h5_dataset.c ------------------------------------------------------- */

#define CG_H5_MAX_FILTERS 8

typedef enum cg_h5_filter {
    CG_H5_DEFLATE = 1,
    CG_H5_SHUFFLE = 2,
    CG_H5_FLETCHER32 = 3
} cg_h5_filter;

typedef enum cg_h5_layout {
    CG_H5_COMPACT = 0,
    CG_H5_CONTIGUOUS = 1,
    CG_H5_CHUNKED = 2
} cg_h5_layout;

typedef enum cg_h5_index {
    CG_H5_INDEX_BTREE1 = 0, /* numbers as in a layout message, but this one */
    CG_H5_INDEX_SINGLE = 1,
    CG_H5_INDEX_IMPLICIT = 2,
    CG_H5_INDEX_FIXED = 3
} cg_h5_index;

typedef struct cg_h5_dataset {
    cg_h5_space space;
    cg_h5_type type;
    cg_h5_layout layout;
    cg_h5_cursor data; /* compact, contiguous */
    /* Chunked. */
    cg_h5_index index;
    uint64_t address;
    uint64_t chunk[CG_H5_MAX_RANK];
    uint64_t grid[CG_H5_MAX_RANK]; /* chunks along each axis */
    uint64_t chunks;               /* all of them */
    uint64_t chunk_size;           /* bytes, unpacked */
    uint64_t single_size;          /* of the single chunk, packed */
    uint32_t single_mask;
    bool whole_edges; /* chunks that stick out are not packed */
    uint8_t filter_count;
    uint8_t filters[CG_H5_MAX_FILTERS];
} cg_h5_dataset;

/* The object's shape alone, and all of it. */
cellgate_status cg_h5_dataset_space(cg_h5 *h5, const cg_h5_object *object,
                                    cg_h5_space *space);
cellgate_status cg_h5_dataset_read(cg_h5 *h5, const cg_h5_object *object,
                                   cg_h5_dataset *dataset);
cellgate_status cg_h5_filters_read(cg_h5 *h5, cg_h5_cursor body,
                                   cg_h5_dataset *dataset);

/* ---- h5_chunks.c -------------------------------------------------------- */

typedef struct cg_h5_chunk {
    uint64_t number; /* in the grid, row-major */
    uint64_t address, size;
    uint32_t mask; /* filters left out, by bit */
} cg_h5_chunk;

typedef cellgate_status (*cg_h5_visit_chunk)(cg_h5 *h5, void *context,
                                             const cg_h5_chunk *chunk);
/* Every chunk of the grid, once each. BAD_FILE: one is missing. */
cellgate_status cg_h5_each_chunk(cg_h5 *h5, const cg_h5_dataset *dataset,
                                 cg_h5_visit_chunk visit, void *context);

/* ---- h5_unpack.c -------------------------------------------------------- */

/* Memory for one chunk at work. */
typedef struct cg_h5_scratch {
    uint8_t *from, *to;
    size_t size;
} cg_h5_scratch;

cellgate_status cg_h5_scratch_init(cg_h5 *h5, const cg_h5_dataset *dataset,
                                   cg_h5_scratch *scratch);
void cg_h5_scratch_finish(cg_h5_scratch *scratch);
/* *bytes: the chunk_size bytes of the chunk, in the scratch or in the image. */
cellgate_status cg_h5_unpack(cg_h5 *h5, const cg_h5_dataset *dataset,
                             const cg_h5_chunk *chunk, cg_h5_scratch *scratch,
                             const uint8_t **bytes);

/* ---- h5_data.c ---------------------------------------------------------- */

/* All elements, as float32. */
cellgate_status cg_h5_data_read(cg_h5 *h5, const cg_h5_dataset *dataset,
                                float *data);

#endif
