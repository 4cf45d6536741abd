# SPDX-License-Identifier: Apache-2.0
"""Keras on TensorFlow: predict_step as a tf.function, the same compiled by
XLA, and predict(), which is what most people call."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf

import answer


def build(data, masked=False):
    """With `masked`, a second input says which steps are valid."""
    row, layers = data.row, keras.layers
    x = keras.Input(batch_shape=(row.batch, None, row.input))
    mask = keras.Input(batch_shape=(row.batch, None), dtype="bool") \
        if masked else None
    y = x
    for number in range(row.layers):
        sequence = not row.dense or row.on_each_step or \
            number + 1 < row.layers
        layer = layers.LSTM(
            row.hidden, return_sequences=sequence,
            recurrent_activation="hard_sigmoid" if row.hard_gates
            else "sigmoid")
        if row.directions == 2:
            layer = layers.Bidirectional(layer)
        y = layer(y, mask=mask) if masked else layer(y)
    if row.dense:
        y = layers.Dense(row.dense, activation="softmax" if row.on_each_step
                         else None)(y)
    model = keras.Model([x, mask] if masked else x, y)
    weights = [array for layer in data.layers for direction in layer
               for array in direction]
    model.set_weights(weights + list(data.dense or ()))
    return model


class Peer:
    def __init__(self, threads):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        self.version = f"Keras {keras.__version__}, " \
            f"TensorFlow {tf.__version__}"

    def configurations(self, data):
        keras.backend.clear_session()
        x = data.batch_major()
        if data.lengths is None:
            model, given = build(data), x
        else:
            model = build(data, masked=True)
            given = [x, np.arange(data.row.steps) < data.lengths[:, None]]
        made = [(name, self.function(model.predict_step, given, jit))
                for name, jit in (("predict_step", False), ("XLA", True))]

        def predict():
            return model.predict(given, batch_size=data.row.batch, verbose=0)
        return made + [("predict", predict)]

    def function(self, step, given, jit):
        """A call of a step that is traced once; like predict(), the step takes
        a batch as a tuple."""
        batch = tf.nest.map_structure(tf.constant, given)
        batch = (tuple(batch),) if isinstance(batch, list) else batch
        call = tf.function(step, jit_compile=jit, autograph=False) \
            .get_concrete_function(batch)
        return lambda: call(batch)

    def array(self, result):
        return answer.time_major(np.asarray(result))

    def smallest(self):
        return self.function(tf.identity, np.zeros(1, np.float32), False)

    def save(self, data, path):
        keras.backend.clear_session()
        build(data).save(path)


if __name__ == "__main__":
    answer.main(Peer)
