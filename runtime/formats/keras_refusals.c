/* SPDX-License-Identifier: Apache-2.0 */
/* What Keras files can hold that is not taken, and the way out. */
#include "config.h"

#include "runtime/formats/keras.h"

typedef struct cg_refusal {
    const char *name;
    const char *advice;
} cg_refusal;

#define OPERATION                                                              \
    "an operation of TensorFlow on a tensor, which only TensorFlow knows; "    \
    "rebuild the model with a layer of Keras in its place (Add, Multiply, "    \
    "Rescaling ...) and the same weights"

#define PREPARES                                                               \
    "a layer that prepares data for a model is not run; do what it does in "   \
    "your program, and rebuild the model from the layers behind it with the "  \
    "same weights"

static const cg_refusal classes[] = {
    { "CategoryEncoding", PREPARES },
    { "Discretization", PREPARES },
    { "HashedCrossing", PREPARES },
    { "Hashing", PREPARES },
    { "IntegerLookup", PREPARES },
    { "Lambda", "code of your own, in the file as Python bytecode, which is "
                "never run; rebuild the model with layers of Keras in its "
                "place and the same weights" },
    { "StringLookup", PREPARES },
    { "TensorFlowOpLayer", OPERATION },
    { "TextVectorization", PREPARES },
};

#define MERGING                                                                \
    "the layer of this name (Rescaling where one side is a constant)"
#define SCALING "Rescaling"
#define PICKING "Cropping1D (return_sequences=False for an LSTM's last step)"
#define ACTIVATION "Activation"

/* What Keras 3 has as operations, and the layer that does the same. */
static const cg_refusal operations[] = {
    { "Add", MERGING },
    { "Average", "GlobalAveragePooling1D" },
    { "Concatenate", "the layer of this name" },
    { "Divide", SCALING },
    { "Dot", "the layer of this name" },
    { "Einsum", "Dot" },
    { "Elu", ACTIVATION },
    { "ExpandDims", "Reshape" },
    { "GetItem", PICKING },
    { "Gelu", ACTIVATION },
    { "HardSigmoid", ACTIVATION },
    { "LeakyRelu", "LeakyReLU" },
    { "Matmul", "Dot" },
    { "Max", "GlobalMaxPooling1D" },
    { "Maximum", "the layer of this name" },
    { "Mean", "GlobalAveragePooling1D" },
    { "Minimum", "the layer of this name" },
    { "Multiply", MERGING },
    { "Negative", SCALING },
    { "Normalize", "UnitNormalization" },
    { "Relu", ACTIVATION },
    { "Repeat", "UpSampling1D or RepeatVector" },
    { "Reshape", "the layer of this name" },
    { "Sigmoid", ACTIVATION },
    { "Silu", ACTIVATION },
    { "Softmax", ACTIVATION },
    { "Softplus", ACTIVATION },
    { "Squeeze", "Reshape" },
    { "Subtract", MERGING },
    { "Tanh", ACTIVATION },
    { "Transpose", "Permute" },
    { "TrueDivide", SCALING },
};

static const char *find(const cg_refusal *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return list[i].advice;
    return NULL;
}

const char *cg_keras_class_advice(const char *class_name)
{
    return find(classes, sizeof classes / sizeof classes[0], class_name);
}

/* Keras 2 has one class for all of them. */
static cellgate_status refuse_function(const cg_keras_layer *layer,
                                       const char *function,
                                       cellgate_error *error)
{
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                         "tf.%.60s, as it is called here, is " OPERATION
                         "; README.md lists the operations that are supported",
                         function);
}

cellgate_status cg_keras_refuse_operation(const cg_keras_layer *layer,
                                          cellgate_error *error)
{
    /* Its options are in place of the configuration while it is built. */
    const char *function = json_string_value(
        json_object_get(json_object_get(layer->json, "config"), "function"));
    const char *instead =
        find(operations, sizeof operations / sizeof operations[0],
             layer->class_name);

    if (function != NULL && strstr(layer->class_name, "OpLambda") != NULL)
        return refuse_function(layer, function, error);
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                         "an operation on tensors, as x[:, 0] and keras.ops "
                         "make them, that is not supported, or not as it is "
                         "used here; README.md lists those that are. Rebuild "
                         "the model with %s in its place and the same weights",
                         instead != NULL ? instead : "layers of Keras");
}
