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

FLOATS = ["float32", "float64", "float16", "bfloat16", "mixed_float16",
          "mixed_bfloat16"]


def with_dtype(config, dtype):
    """A copy of a model's configuration whose layers have weights of `dtype`
    and compute in it, whatever their policies were."""
    if isinstance(config, dict):
        return {key: with_dtype(value, dtype)
                for key, value in config.items()}
    if isinstance(config, (list, tuple)):
        return type(config)(with_dtype(value, dtype) for value in config)
    return dtype if isinstance(config, str) and config in FLOATS else config


def is_float(array):
    """bfloat16 is no kind of NumPy's own."""
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


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
        self.set_policy(dtype)

    def set_policy(self, name):
        """What dtypes layers have from now on."""
        if self.is_keras3:
            self.keras.config.set_dtype_policy(name)
        else:
            self.keras.mixed_precision.set_global_policy(name)

    def load(self, path):
        """From a whole model, or from NAME.json and the weights beside it."""
        if path.suffix != ".json":
            return self.keras.models.load_model(path, compile=False)
        model = self.keras.models.model_from_json(path.read_text())
        (weights,) = path.parent.glob("*.h5")
        model.load_weights(weights)
        return model

    def in_dtype(self, model, dtype):
        """The same model with the same weights, computed in `dtype`."""
        weights = model.get_weights()
        self.keras.backend.set_floatx(dtype)
        self.set_policy(dtype)
        try:
            made = type(model).from_config(
                with_dtype(model.get_config(), dtype))
            if not made.built:
                made.build(model.input_shape)
            made.set_weights([w.astype(dtype) if is_float(w) else w
                              for w in weights])
        finally:
            self.keras.backend.set_floatx("float32")
            self.set_policy("float32")
        return made

    def in_float64(self, model):
        return self.in_dtype(model, "float64")

    def reset_states(self, model):
        for layer in model._flatten_layers():
            if getattr(layer, "stateful", False) and layer is not model:
                reset = getattr(layer, "reset_state", None) or \
                    getattr(layer, "reset_states", None)
                if reset is not None:
                    reset()

    def compute(self, model, inputs, masks, dtype):
        """Outputs, in order, of a call with a Keras mask (or None) an
        input."""
        feeds = [self.tensorflow.constant(
            x.astype(dtype) if x.dtype == np.float32 else x) for x in inputs]
        given = list(masks) if any(m is not None for m in masks) else None
        if isinstance(getattr(model, "_inputs_struct", None), dict):
            feeds = dict(zip((t.name for t in model.inputs), feeds))
            given = given and dict(zip(feeds, given))
        elif len(feeds) == 1:
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
