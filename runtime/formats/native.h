/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cellgate's native file: a valid safetensors file.
 *
 * The weights are F32 tensors "NODE/WEIGHT", each at a multiple of 64 bytes of
 * the file, so that they are used where the mapped file has them; since
 * safetensors allows no gaps, U8 tensors "__padding_N__" fill them. A weight
 * that several nodes share is stored once, under the first one's name.
 * __metadata__ holds
 *
 *   format          "cellgate"
 *   format_version  "1"; a reader refuses any other
 *   fingerprint     of the model; a file that was changed does not match it
 *   graph           JSON text:
 *     values  [{"name", "dtype", "shape": [null, 20, 16]}, ...]
 *     inputs  [{"value": number, "mask": number or null,
 *              "steps_first": true}, ...]; the last where it is so
 *     outputs [number, ...]
 *     steps_first_outputs  [index into outputs, ...], where there are any
 *     nodes   [{"name", "layer", "kind", "inputs": [number or null, ...],
 *              "outputs": likewise, "attributes": {...},
 *              "weights": {"kernel": tensor}}, ...]
 *
 *   note            optional; what cellgate_model_note() says
 *   selftest        optional; JSON text, see below
 *
 * Other metadata keys are left to later versions: a reader passes over them.
 * Attributes are those of the kind's table (model/kinds.c), all of them, in its
 * order; an activation is ["leaky_relu", alpha], a choice its name, a list of
 * extents an array. Optional ones are left out where they are 0. Loading a file
 * and saving it again gives the same bytes.
 *
 * The self-test is one small request with the answers of the host ops, made by
 * cellgate_model_make_selftest() and run by cellgate_session_selftest():
 *     inputs   [{"tensor": name, "mask": name or null}, ...], as the model's
 *     outputs  [name, ...]
 *     checksum 32 hex digits over all of it; what was damaged does not match
 * Its arrays are tensors of the file, "selftest/input_0", "selftest/mask_0",
 * "selftest/output_0": F32, I32 (ids) or U8 (masks). A device agrees with it if
 * its largest difference is at most 1e-5 (float32) of the largest magnitude of
 * the output: what the readers are held to against Keras in float64.
 *
 * A file on a local disk is mapped: it must not be cut or written to while a
 * model loaded from it is in use, but may be replaced by renaming another one
 * over it, as `cellgate convert` does. On a network file system it is read
 * instead. Private to native_*.c.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_NATIVE_H
#define CELLGATE_RUNTIME_FORMATS_NATIVE_H

#include <jansson.h>

#include "runtime/formats/safetensors.h"
#include "runtime/model/kinds.h"

#define CG_NATIVE_FORMAT "cellgate"
#define CG_NATIVE_VERSION "1"
#define CG_NATIVE_ALIGNMENT 64

/* A tensor on its way into the file: a weight, or one of the self-test. */
typedef struct cg_native_tensor {
    const cg_node *node;     /* of a weight, or NULL */
    const cg_weight *weight; /* likewise */
    const char *what;        /* of a self-test: "input", "mask", "output" */
    size_t index;            /* likewise */
    const char *dtype;       /* "F32" */
    const void *data;
    int32_t rank;
    const int64_t *shape;
    uint64_t size;  /* bytes */
    uint64_t begin; /* in the data */
    size_t owner;   /* index of the first weight with the same data */
    char *name;     /* in the file; the owner's alone */
} cg_native_tensor;

typedef struct cg_native_layout {
    cg_native_tensor *tensors; /* weights in the order of nodes and slots, then
                                  the self-test's */
    size_t count;
} cg_native_layout;

/* native_layout.c. _finish() after a failure too. */
cellgate_status cg_native_layout_init(cg_native_layout *layout,
                                      const cellgate_model *model,
                                      cellgate_error *error);
void cg_native_layout_finish(cg_native_layout *layout);
/* safetensors's name of F32, I32 or U8. */
const char *cg_native_dtype(int32_t dtype);

/* native_selftest.c. A new object for the metadata, or NULL without memory. */
json_t *cg_native_write_selftest(const cellgate_model *model,
                                 const cg_native_layout *layout);
/* Gives the finished model the self-test that the metadata have, if any; its
   data stay the file's. */
cellgate_status cg_native_read_selftest(const cg_safetensors *tensors,
                                        cellgate_model *model,
                                        cellgate_error *error);

/*
 * native_image.c. All bytes of an open file, page-aligned, to be given up with
 * munmap(): a mapping, or a copy where cg_native_is_remote() says that the file
 * system (statfs's f_type) is one whose files others may change.
 */
cellgate_status cg_native_image(int fd, size_t size, void **image,
                                cellgate_error *error);
cellgate_status cg_native_copy(int fd, size_t size, void **image,
                               cellgate_error *error);
bool cg_native_is_remote(uint32_t type);

/* native_attributes.c. A new object, or NULL without memory. */
json_t *cg_native_write_attributes(const cg_node *node);
/* Into node->as, for the node's kind; `name` is for messages. */
cellgate_status cg_native_read_attributes(const json_t *json, cg_node *node,
                                          cellgate_error *error);

#endif
