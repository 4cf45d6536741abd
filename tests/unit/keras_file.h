/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .keras files made by a test, so that they can be wrong. Files go to the
 * scratch folder (scratch_folder.h). Whatever cannot be done ends the test.
 */
#ifndef CELLGATE_TESTS_UNIT_KERAS_FILE_H
#define CELLGATE_TESTS_UNIT_KERAS_FILE_H

#include "cellgate/cellgate.h"

/* A dataset of model.weights.h5, filled with 0.01, 0.02 ... */
typedef struct keras_weight {
    const char *path; /* "layers/dense/vars/0"; NULL ends a list */
    int rank;
    int shape[3];
} keras_weight;

/* The weights of LSTM(units) on `features` at PATH/cell, and of Dense. */
#define LSTM_WEIGHTS(path, features, units)                                    \
    { path "/vars/0", 2, { features, 4 * (units) } },                          \
        { path "/vars/1", 2, { units, 4 * (units) } },                         \
    {                                                                          \
        path "/vars/2", 1,                                                     \
        {                                                                      \
            4 * (units)                                                        \
        }                                                                      \
    }
#define DENSE_WEIGHTS(path, features, units)                                   \
    { path "/vars/0", 2, { features, units } },                                \
    {                                                                          \
        path "/vars/1", 1,                                                     \
        {                                                                      \
            units                                                              \
        }                                                                      \
    }

/*
 * Writes a file and returns its path. `version` is the keras_version; the
 * configuration is text, in which ' stands for ".
 */
const char *keras_file_write(const char *version, const char *config,
                             const keras_weight *weights);
/* The same, loaded; `error` may be NULL. *model is NULL after a failure. */
cellgate_status keras_file_load(const char *config, const keras_weight *weights,
                                cellgate_model **model, cellgate_error *error);

/* Loading fails with this status, and the text holds `part`. */
#define assert_keras_refuses(config, weights, status, part)                    \
    keras_file_refuses(config, weights, status, part, __FILE__, __LINE__)
void keras_file_refuses(const char *config, const keras_weight *weights,
                        cellgate_status status, const char *part,
                        const char *file, int line);

/* An image of an HDF5 file with these datasets; the caller frees it. */
unsigned char *keras_weights_image(const keras_weight *weights, size_t *size);

/* Pieces of configurations. */
#define INPUT(name, shape)                                                     \
    "{'module': 'keras.layers', 'class_name': 'InputLayer', 'config': {"       \
    "'batch_shape': " shape ", 'dtype': 'float32', 'name': '" name "'}, "      \
    "'name': '" name "', 'inbound_nodes': []}"
#define LAYER(class_name, name, options)                                       \
    "{'module': 'keras.layers', 'class_name': '" class_name "', 'config': {"   \
    "'name': '" name "'" options "}, 'registered_name': null}"
#define SEQUENTIAL(layers)                                                     \
    "{'module': 'keras', 'class_name': 'Sequential', 'config': {"              \
    "'name': 'seq', 'layers': [" layers "]}}"
/* A layer of a functional model, called once, on tensors. */
#define CALLED(class_name, name, options, tensors, keywords)                   \
    "{'module': 'keras.layers', 'class_name': '" class_name "', 'config': {"   \
    "'name': '" name "'" options "}, 'name': '" name "', 'inbound_nodes': ["   \
    "{'args': [" tensors "], 'kwargs': {" keywords "}}]}"
#define TENSOR(layer, call, output)                                            \
    "{'class_name': '__keras_tensor__', 'config': {'keras_history': ['" layer  \
    "', " call ", " output "]}}"
#define FUNCTIONAL(layers, inputs, outputs)                                    \
    "{'module': 'keras', 'class_name': 'Functional', 'config': {"              \
    "'name': 'fun', 'layers': [" layers "], 'input_layers': " inputs           \
    ", 'output_layers': " outputs "}}"

#endif
