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

static const cg_refusal classes[] = {
    { "Lambda", "code of your own, in the file as Python bytecode, which is "
                "never run; rebuild the model with layers of Keras in its "
                "place and the same weights" },
    { "SlicingOpLambda", OPERATION },
    { "TFOpLambda", OPERATION },
    { "TensorFlowOpLayer", OPERATION },
};

static const cg_refusal options[] = {
    { "time_major", "time_major=True, steps before rows, is not supported; "
                    "build the layer with time_major=False and the same "
                    "weights, and give rows before steps" },
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

const char *cg_keras_option_advice(const char *key)
{
    return find(options, sizeof options / sizeof options[0], key);
}
