/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other part of a Keras model that was saved in two: weights in an HDF5
 * file, the architecture in a JSON file, in the same folder under the same name
 * but for the ending.
 *
 *   X.weights.h5, X.h5, X.hdf5   with X.json
 *
 * Private to keras_*.c.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_KERAS_BESIDE_H
#define CELLGATE_RUNTIME_FORMATS_KERAS_BESIDE_H

#include "runtime/formats/source.h"

/*
 * Path of the JSON file for this file of weights; malloc'ed. BAD_FILE:
 * there is none; the text says which name was looked for, and how to write it.
 */
cellgate_status cg_keras_find_json(const char *weights, char **json,
                                   cellgate_error *error);
/* Path of the weights for this JSON file, likewise. INVALID: there are several,
   and any of them could be meant. */
cellgate_status cg_keras_find_weights(const char *json, char **weights,
                                      cellgate_error *error);

#endif
