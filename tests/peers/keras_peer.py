# SPDX-License-Identifier: Apache-2.0
"""A live Keras: Keras 3 ("keras") or the last Keras 2 ("tf_keras"). Both
cannot be imported into one process and keep apart what they register, so a
process uses one."""

import importlib
import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np


def with_dtype(config, dtype):
    """A copy of a model's configuration whose layers compute in `dtype`."""
    if isinstance(config, dict):
        return {key: with_dtype(value, dtype)
                for key, value in config.items()}
    if isinstance(config, (list, tuple)):
        return type(config)(with_dtype(value, dtype) for value in config)
    return dtype if isinstance(config, str) and config == "float32" else config


class Peer:
    def __init__(self, name):
        import tensorflow
        self.name = name
        self.keras = importlib.import_module(name)
        self.layers = self.keras.layers
        self.tensorflow = tensorflow
        self.version = self.keras.__version__
        self.is_keras3 = name == "keras"

    def reset(self, dtype="float32"):
        self.keras.backend.clear_session()
        self.keras.backend.set_floatx(dtype)

    def load(self, path):
        return self.keras.models.load_model(path, compile=False)

    def in_float64(self, model):
        """The same model, computed in float64."""
        weights = model.get_weights()
        self.keras.backend.set_floatx("float64")
        try:
            exact = type(model).from_config(
                with_dtype(model.get_config(), "float64"))
            if not exact.built:
                exact.build(model.input_shape)
            exact.set_weights([w.astype(np.float64) for w in weights])
        finally:
            self.keras.backend.set_floatx("float32")
        return exact

    def compute(self, model, inputs, masks, dtype):
        """Outputs, in order, of a call with a Keras mask (or None) an
        input."""
        feeds = [self.tensorflow.constant(
            x.astype(dtype) if x.dtype == np.float32 else x) for x in inputs]
        given = list(masks) if any(m is not None for m in masks) else None
        if len(feeds) == 1:
            feeds, given = feeds[0], given and given[0]
        self.keras.backend.set_floatx(dtype)
        try:
            outputs = model(feeds, training=False, mask=given)
        finally:
            self.keras.backend.set_floatx("float32")
        outputs = [np.asarray(y)
                   for y in self.tensorflow.nest.flatten(outputs)]
        for y in outputs:
            assert y.dtype == dtype, (y.dtype, dtype)
        return outputs
