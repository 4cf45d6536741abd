# SPDX-License-Identifier: Apache-2.0
"""Steps of a functional model that are more than a layer on one tensor:
operations on tensors, masks and states given to calls, layers and models that
are called twice, layers of time_major=True."""

from random_layers import SEQUENCE_ACTIVATIONS

HEEDS_MASK = ["LSTM", "LSTM", "GRU", "SimpleRNN", "RNN", "Bidirectional",
              "TimeDistributed", "GlobalAveragePooling1D", "BatchNormalization"]

# What TensorFlow calls otherwise than Keras 3.
TENSORFLOW = {
    "relu": lambda tf: tf.nn.relu, "silu": lambda tf: tf.nn.silu,
    "softplus": lambda tf: tf.math.softplus, "elu": lambda tf: tf.nn.elu,
    "absolute": lambda tf: tf.abs, "mean": lambda tf: tf.reduce_mean,
    "sum": lambda tf: tf.reduce_sum, "max": lambda tf: tf.reduce_max,
    "min": lambda tf: tf.reduce_min, "concatenate": lambda tf: tf.concat,
    "softmax": lambda tf: tf.nn.softmax}


def extents(tensor):
    """The shape of a Keras tensor without the batch."""
    return tuple(tensor.shape[1:])


class CallMaker:
    """What ModelMaker is besides; it has the pool of tensors."""

    # ---- Operations ----------------------------------------------------------

    def operations(self, *names):
        """Functions of Keras 3's name, in Keras 2 TensorFlow's."""
        if self.is_keras3:
            return [getattr(self.keras.ops, name) for name in names]
        tf = self.peer.tensorflow
        return [TENSORFLOW[name](tf) if name in TENSORFLOW
                else getattr(tf, name) for name in names]

    def unary(self):
        return self.rng.choice([
            *self.operations("tanh", "sigmoid", "relu", "silu", "softplus",
                             "exp", "negative", "absolute", "square", "elu"),
            lambda x: -x])

    def with_number(self):
        number = self.rng.choice([0.5, 2, -1.5, 1 / 3, 10.0])
        maximum, minimum = self.operations("maximum", "minimum")
        return self.rng.choice([
            lambda x: x * number, lambda x: number * x, lambda x: x + number,
            lambda x: number + x, lambda x: x - number, lambda x: number - x,
            lambda x: x / number, lambda x: maximum(x, number),
            lambda x: minimum(x, number), lambda x: x ** 2])

    def binary(self):
        return self.rng.choice([
            *self.operations("add", "subtract", "multiply", "maximum",
                             "minimum"),
            lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y,
            lambda x, y: x / (y * y + 1.0)])

    def operate(self):
        tensor = self.pick()
        kind = self.rng.choice(["unary", "with_number", "binary"])
        if kind != "binary":
            made = getattr(self, kind)()(tensor)
            if self.maybe(0.3):
                made = self.with_number()(made)
            self.add(made, tensor)
            return
        other = self.alike(tensor)
        if len(tensor.shape) == 3 and self.maybe(0.3):
            other = self.layers.Dense(extents(tensor)[-1])(other[:, -1:])
        self.add(self.binary()(tensor, other), tensor, other)

    def take(self):
        """A part of a tensor, by indices."""
        tensor = self.pick()
        width = extents(tensor)[-1]
        cut = self.rng.randint(1, width)
        parts = [lambda x: x[..., :cut], lambda x: x[..., cut - 1:],
                 lambda x: x[..., ::-1], lambda x: x[..., cut - 1::2],
                 lambda x: x[..., cut::-3]]
        if len(tensor.shape) == 3:
            parts += [lambda x: x[:, -1], lambda x: x[:, 0, :],
                      lambda x: x[:, :, 0], lambda x: x[:, -1:],
                      lambda x: x[:, ::-1], lambda x: x[:, :1, :cut],
                      lambda x: x[:, ::2], lambda x: x[:, ::-3]]
        elif len(tensor.shape) == 2:
            parts += [lambda x: x[:, None], lambda x: x[:, :, None]]
        self.add(self.rng.choice(parts)(tensor), tensor)

    def reduce(self):
        tensor = self.pick()
        axes = list(range(1, len(tensor.shape))) + [-1]
        function = self.rng.choice(self.operations("mean", "sum", "max",
                                                   "min"))
        options = {"axis": self.rng.choice(axes), "keepdims": self.maybe(0.5)}
        if len(tensor.shape) == 2:
            options["keepdims"] = True
        self.add(function(tensor, **options), tensor)

    def rearrange(self):
        tensor = self.pick()
        expand, concatenate, stack, softmax = self.operations(
            "expand_dims", "concatenate", "stack", "softmax")
        kind = self.rng.choice(["expand", "concatenate", "stack", "softmax"])
        if kind == "softmax":
            self.add(softmax(tensor), tensor)
        elif kind == "expand" and len(tensor.shape) == 2:
            self.add(expand(tensor, self.rng.choice([1, -1])), tensor)
        elif kind == "stack" and len(tensor.shape) == 2:
            other = self.alike(tensor)
            self.add(stack([tensor, other], axis=1), tensor, other)
        else:
            other = self.alike(tensor)
            self.add(concatenate([tensor, other], axis=-1), tensor, other)

    # ---- Masks given to calls ------------------------------------------------

    def mask_of(self, series):
        """A mask with the steps of a tensor: an input, or what Keras makes of
        numbers. None: its steps are nobody's."""
        steps = extents(series)[0]
        if steps is None and not any(series is t for t in self.first):
            return None
        if self.is_keras3 and self.maybe(0.3):
            return self.layers.Masking(0.0).compute_mask(series)
        return self.input((steps,), "bool")

    def masked_layer(self, shape):
        kind = self.rng.choice(HEEDS_MASK)
        if kind == "TimeDistributed":
            return self.layers.TimeDistributed(self.layers.Dense(3, "tanh"))
        if kind == "GlobalAveragePooling1D":
            return self.layers.GlobalAveragePooling1D()
        if kind == "BatchNormalization":
            return self.maker.batch_normalization(shape)
        if kind == "Bidirectional":
            return self.maker.bidirectional(shape)
        return self.maker.recurrent(shape)

    def masked_call(self):
        series = self.rng.choice(self.series())
        mask = self.mask_of(series)
        if mask is None:
            self.apply(series)
            return
        if self.maybe(0.2):
            self.attend_masked(series, mask)
            return
        self.add_all(self.masked_layer(extents(series))(series, mask=mask),
                     series)

    def attend_masked(self, series, mask):
        layer = self.rng.choice([self.layers.Attention,
                                 self.layers.AdditiveAttention])()
        masks = self.rng.choice([[mask, mask], [None, mask], [mask, None]])
        self.add(layer([series, series], mask=masks), series)

    # ---- States --------------------------------------------------------------

    def state(self, units):
        if self.maybe(0.4):
            return self.input((units,))
        vectors = [t for t in self.pool if len(t.shape) == 2]
        if not vectors:
            return self.input((units,))
        return self.layers.Dense(units, "tanh")(self.rng.choice(vectors))

    def start(self):
        """A recurrent layer starts from what other layers make."""
        series = self.rng.choice(self.series())
        kind = self.rng.choice(["LSTM", "LSTM", "GRU", "SimpleRNN"])
        units = self.maker.units()
        options = self.maker.recurrent_options(kind, units)
        sequences = {"return_sequences": self.maybe(0.5)}
        if self.maybe(0.3):
            cell = getattr(self.layers, kind + "Cell")(**options)
            layer = self.layers.RNN(cell, **sequences)
        else:
            layer = getattr(self.layers, kind)(**options, **sequences)
        count = 2 if kind == "LSTM" else 1
        if self.maybe(0.3):
            layer = self.layers.Bidirectional(layer)
            count *= 2
        states = [self.state(units) for _ in range(count)]
        mask = self.mask_of(series) if self.maybe(0.3) else None
        if mask is None:
            made = layer(series, states) if self.maybe(0.3) else \
                layer(series, initial_state=states)
        elif self.is_keras3 and self.maybe(0.4):
            made = layer(series, states, mask)
        else:
            made = layer(series, initial_state=states, mask=mask)
        self.add_all(made, series)

    def encode_decode(self):
        """A recurrent layer starts from the states of another one."""
        series = self.series()
        kind = self.rng.choice(["LSTM", "LSTM", "GRU", "SimpleRNN"])
        units = self.maker.units()
        encoder = getattr(self.layers, kind)(
            units, return_state=True, return_sequences=self.maybe(0.5),
            go_backwards=self.maybe(0.3))
        decoder = getattr(self.layers, kind)(
            units, return_sequences=self.maybe(0.7),
            activation=self.rng.choice(SEQUENCE_ACTIVATIONS))
        source, target = self.rng.choice(series), self.rng.choice(series)
        made, *states = encoder(source)
        if self.maybe(0.5):
            self.add(made, source)
        self.add(decoder(target, initial_state=states), source, target)

    # ---- Layers and models that are called twice -----------------------------

    def share(self):
        tensor = self.pick()
        other = self.alike(tensor)
        layer = self.maker.layer(extents(tensor), stateful=False)
        self.add_all(layer(tensor), tensor)
        self.add_all(layer(other), other)

    def inner(self, shapes):
        """A model to be nested."""
        inputs = [self.keras.Input(shape) for shape in shapes]
        made = [self.chain(x, self.rng.randint(1, 3), []) for x in inputs]
        if len(made) > 1 and len({t.shape for t in made}) == 1 and \
                self.maybe(0.5):
            made = [self.layers.Concatenate()(made)]
        if len(inputs) == 1 and self.maybe(0.3):
            made.append(self.layers.Dense(3)(made[0]))
        if self.is_keras3 and self.maybe(0.2):
            return self.keras.Model(
                inputs, {f"part_{i}": t for i, t in enumerate(made)})
        return self.keras.Model(inputs if len(inputs) > 1 else inputs[0],
                                made if len(made) > 1 else made[0])

    def inner_sequential(self, shape):
        kept = []
        x = self.keras.Input(shape)
        self.chain(x, self.rng.randint(1, 3), kept)
        return self.keras.Sequential(kept if self.maybe(0.4) else [x, *kept])

    def nest(self):
        """A model as a layer."""
        outer = [self.pick()]
        if self.maybe(0.3):
            model = self.inner_sequential(extents(outer[0]))
            if self.maybe(0.5):
                model = self.keras.Sequential([model])
        else:
            if self.maybe(0.4):
                outer.append(self.pick())
            model = self.inner([extents(t) for t in outer])
        given = outer if len(outer) > 1 else outer[0]
        self.add_all(model(given), *outer)
        if len(outer) == 1 and self.maybe(0.3):
            other = self.alike(outer[0])
            self.add_all(model(other), other)

    # ---- Steps before rows, in Keras 2 ---------------------------------------

    def turned_layers(self, tensor):
        """Layers of time_major=True, the last of which may give no steps."""
        for _ in range(self.rng.choice([1, 1, 2])):
            kind = self.maker.kind()
            options = self.maker.recurrent_options(kind, self.maker.units())
            layer = getattr(self.layers, kind)(
                **options, time_major=True, return_sequences=True,
                go_backwards=self.maybe(0.2))
            tensor = layer(tensor)
            if self.maybe(0.4):
                tensor = self.layers.Dense(self.rng.randint(1, 5),
                                           "tanh")(tensor)
        return tensor

    def time_major(self):
        series = self.rng.choice(self.series())
        transpose = self.peer.tensorflow.transpose
        made = self.turned_layers(transpose(series, [1, 0, 2]))
        if self.maybe(0.5):
            made = transpose(made, [1, 0, 2])
        else:
            made = self.layers.LSTM(3, time_major=True)(made)
        self.add(made, series)
