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
 *     inputs  [{"value": number, "mask": number or null}, ...]
 *     outputs [number, ...]
 *     nodes   [{"name", "layer", "kind", "inputs": [number or null, ...],
 *              "outputs": likewise, "attributes": {...},
 *              "weights": {"kernel": tensor}}, ...]
 *
 * Other metadata keys are left to later versions: a reader passes over them.
 * Attributes are those of the kind's table (model/kinds.c), all of them, in its
 * order; an activation is ["leaky_relu", alpha], a choice its name, a list of
 * extents an array. Optional ones are left out where they are 0. Loading a file
 * and saving it again gives the same bytes.
 *
 * The file must not change while a model loaded from it is in use. Private to
 * native_*.c.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_NATIVE_H
#define CELLGATE_RUNTIME_FORMATS_NATIVE_H

#include <jansson.h>

#include "runtime/formats/safetensors.h"
#include "runtime/model/kinds.h"

#define CG_NATIVE_FORMAT "cellgate"
#define CG_NATIVE_VERSION "1"
#define CG_NATIVE_ALIGNMENT 64

/* native_attributes.c. A new object, or NULL without memory. */
json_t *cg_native_write_attributes(const cg_node *node);
/* Into node->as, for the node's kind; `name` is for messages. */
cellgate_status cg_native_read_attributes(const json_t *json, cg_node *node,
                                          cellgate_error *error);

#endif
