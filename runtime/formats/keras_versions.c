/* SPDX-License-Identifier: Apache-2.0 */
/* What a version of Keras meant where the file does not say. */
#include "config.h"

#include "runtime/formats/keras.h"

/* Versions up to 2.3 are of Keras by itself, but for "2.2.4-tf" and the like.
 */
bool cg_keras_before_tensorflow(const cg_keras_reader *reader)
{
    return reader->keras_major == 1 ||
           (reader->keras_major == 2 && reader->keras_minor <= 3 &&
            strstr(reader->keras_version, "-tf") == NULL);
}

/*
 * Keras's defaults in 1.2.2, 2.2.4 and 2.3.1, and in tf.keras of
 * TensorFlow 1.15 and 2.15. Files of TensorFlow 1.13 to 2.1 all say 2.2.4-tf.
 */
cellgate_status cg_keras_default_gate(const cg_keras_layer *layer,
                                      const char **name, cellgate_error *error)
{
    const cg_keras_reader *reader = layer->reader;
    const char *version = reader->keras_version;

    *name = "sigmoid";
    if (strncmp(layer->class_name, "CuDNN", 5) == 0 || reader->keras_major > 2)
        return CELLGATE_OK;
    if (strncmp(version, "2.2.4-tf", 8) == 0 &&
        json_object_get(layer->config, "recurrent_activation") == NULL)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "the file does not say its "
                             "'recurrent_activation', which in Keras %.20s is "
                             "hard_sigmoid under TensorFlow 1 and sigmoid "
                             "under 2; load the model there and save it again",
                             version);
    if (reader->keras_major == 1 || reader->keras_minor < 3)
        *name = "hard_sigmoid";
    return CELLGATE_OK;
}

/* A GRU did not know it before 2.1.5; in TensorFlow 2 it is the default. */
bool cg_keras_default_reset_after(const cg_keras_layer *layer)
{
    const cg_keras_reader *reader = layer->reader;

    return strncmp(layer->class_name, "CuDNN", 5) == 0 ||
           reader->keras_major > 2 ||
           (!cg_keras_before_tensorflow(reader) && reader->keras_minor >= 3);
}
