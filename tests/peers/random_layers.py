# SPDX-License-Identifier: Apache-2.0
"""Random layers of one input, by the shape of what they are called on."""

SEQUENCE_ACTIVATIONS = [
    "tanh", "tanh", "tanh", "sigmoid", "hard_sigmoid", "softsign", "relu",
    "linear", "elu", "selu", "softplus", "gelu", "silu"]
GATES = ["sigmoid", "sigmoid", "hard_sigmoid", "tanh", "relu", "softplus",
         "linear"]
SINGLE_ACTIVATIONS = SEQUENCE_ACTIVATIONS + [
    "exponential", "mish", "swish", "relu6", "leaky_relu"]
KERAS3_SINGLE_ACTIVATIONS = [
    "celu", "hard_silu", "hard_swish", "hard_tanh", "hard_shrink",
    "log_sigmoid", "soft_shrink", "sparse_plus", "sparse_sigmoid",
    "squareplus", "tanh_shrink"]
ACTIVATIONS = SINGLE_ACTIVATIONS + ["softmax"]
KERAS3_ACTIVATIONS = KERAS3_SINGLE_ACTIVATIONS + ["log_softmax", "sparsemax"]
TF_KERAS_UNKNOWN = ["silu", "relu6", "leaky_relu"]
# Tails of vectors of 8 and of 16 numbers, and what needs none.
UNITS = [1, 1, *range(1, 10), 13, 15, 16, 17, 23, 31, 32, 33]
INITIALIZERS = ["glorot_uniform", "orthogonal", "zeros", "he_normal"]


class LayerMaker:
    """`stateful`: how many recurrent layers are, "none", "some" or "all"."""

    def __init__(self, peer, rng, stateful):
        self.layers = peer.layers
        self.is_keras3 = peer.is_keras3
        self.rng = rng
        self.stateful = stateful
        self.activations = ACTIVATIONS + KERAS3_ACTIVATIONS
        self.single = SINGLE_ACTIVATIONS + KERAS3_SINGLE_ACTIVATIONS
        if not self.is_keras3:
            self.activations = [a for a in ACTIVATIONS
                                if a not in TF_KERAS_UNKNOWN]
            self.single = SINGLE_ACTIVATIONS

    def maybe(self, chance):
        return self.rng.random() < chance

    def choose(self, names):
        if not self.is_keras3:
            names = [n for n in names if n not in TF_KERAS_UNKNOWN]
        return self.rng.choice(names)

    def units(self):
        return self.rng.choice(UNITS)

    def layer(self, shape, stateful=True):
        """A layer for a tensor of this shape, the batch left out; None is any
        number of steps. `stateful`: it may be."""
        before = self.stateful
        if not stateful:
            self.stateful = "none"
        try:
            return self.any_layer(shape)
        finally:
            self.stateful = before

    def any_layer(self, shape):
        makers = list(self.ANY)
        if len(shape) == 2:
            makers += self.SERIES
            if None not in shape:
                makers += self.KNOWN_SERIES
        elif len(shape) == 1:
            makers += self.VECTOR
        else:
            makers += self.HIGHER
        weights = [weight for _, weight in makers]
        maker = self.rng.choices([m for m, _ in makers], weights)[0]
        return maker(self, shape)

    # ---- Recurrent -----------------------------------------------------------

    def recurrent_options(self, kind, units, cell=False):
        options = {"units": units,
                   "activation": self.choose(
                       self.single if self.maybe(0.3) else
                       SEQUENCE_ACTIVATIONS),
                   "use_bias": self.maybe(0.8),
                   "kernel_initializer": self.rng.choice(INITIALIZERS),
                   "dropout": self.rng.choice([0, 0, 0.3]),
                   "recurrent_dropout": self.rng.choice([0, 0, 0.2])}
        if kind != "SimpleRNN":
            options["recurrent_activation"] = self.choose(GATES)
        if kind == "LSTM":
            options["unit_forget_bias"] = self.maybe(0.5)
        if kind == "GRU":
            options["reset_after"] = self.maybe(0.5)
        if self.maybe(0.3):       # what most people train
            options["activation"] = "tanh"
            if kind != "SimpleRNN":
                options["recurrent_activation"] = "sigmoid"
        return options

    def kind(self):
        return self.rng.choice(["LSTM", "LSTM", "LSTM", "GRU", "SimpleRNN"])

    def cells(self):
        made = []
        for _ in range(self.rng.choice([1, 1, 2, 3])):
            kind = self.kind()
            made.append(getattr(self.layers, kind + "Cell")(
                **self.recurrent_options(kind, self.rng.randint(1, 8))))
        if len(made) > 1:
            return made if self.maybe(0.5) else \
                self.layers.StackedRNNCells(made)
        return made[0]

    def recurrent(self, shape, wrapped=False):
        running = {"return_sequences": self.maybe(0.6),
                   "go_backwards": self.maybe(0.05 if wrapped else 0.25)}
        if self.maybe(0.15) and None not in shape:
            running["unroll"] = True
        if self.stateful == "all" or self.stateful == "some" and \
                self.maybe(0.5):
            running["stateful"] = True
        if self.maybe(0.15):
            running["return_state"] = True
        if self.maybe(0.15):
            return self.layers.RNN(self.cells(), **running)
        kind = self.kind()
        options = self.recurrent_options(kind, self.units())
        return getattr(self.layers, kind)(**options, **running)

    def backward(self, layer):
        """A layer for the other direction that is not the same."""
        kind = type(layer).__name__
        running = {name: getattr(layer, name) for name in
                   ("return_sequences", "return_state", "stateful")}
        return getattr(self.layers, kind)(
            **self.recurrent_options(kind, layer.units), **running,
            go_backwards=not layer.go_backwards)

    def bidirectional(self, shape):
        layer = self.recurrent(shape, wrapped=True)
        options = {"merge_mode": self.rng.choice(
            ["concat", "concat", "sum", "mul", "ave", None])}
        if self.maybe(0.3) and type(layer).__name__ != "RNN":
            options["backward_layer"] = self.backward(layer)
        return self.layers.Bidirectional(layer, **options)

    # ---- Step by step --------------------------------------------------------

    def dense(self, shape):
        return self.layers.Dense(
            self.rng.randint(1, 9), use_bias=self.maybe(0.8),
            activation=self.rng.choice([None, *self.activations]))

    def activation(self, shape):
        return self.layers.Activation(self.rng.choice(self.activations))

    def advanced_activation(self, shape):
        kind = self.rng.choice(["LeakyReLU", "ELU", "ReLU", "Softmax",
                                "PReLU"])
        if kind == "LeakyReLU":
            return self.layers.LeakyReLU(self.rng.choice([0.1, 0.3, 0.7]))
        if kind == "ELU":
            return self.layers.ELU(self.rng.choice([0.5, 1.0, 1.7]))
        if kind == "ReLU":
            return self.layers.ReLU(
                max_value=self.rng.choice([None, None, 0.75, 6.0]),
                negative_slope=self.rng.choice([0.0, 0.2]),
                threshold=self.rng.choice([0.0, 0.0, 0.25]))
        if kind == "Softmax":
            axes = [-1] if None in shape else [-1, *range(1, len(shape) + 1)]
            return self.layers.Softmax(axis=self.rng.choice(axes))
        shared = None
        if len(shape) > 1 and (None in shape or self.maybe(0.5)):
            shared = [1]
        return self.layers.PReLU(shared_axes=shared)

    def inert(self, shape):
        kinds = ["Dropout", "GaussianNoise", "GaussianDropout",
                 "ActivityRegularization", "Identity"]
        if self.is_keras3 or self.maybe(0.5):
            kinds.append("AlphaDropout")
        kind = self.rng.choice(kinds)
        if kind == "Identity" and not self.is_keras3:
            kind = "Dropout"
        if kind == "ActivityRegularization":
            return self.layers.ActivityRegularization(l2=0.01)
        if kind == "Identity":
            return self.layers.Identity()
        return getattr(self.layers, kind)(0.25)

    def time_distributed(self, shape):
        inner = self.layer(shape[1:])
        return self.layers.TimeDistributed(inner)

    # ---- Normalisation -------------------------------------------------------

    def layer_normalization(self, shape):
        axis = -1
        if None not in shape and len(shape) > 1 and self.maybe(0.3):
            axis = self.rng.choice([1, [1, 2]])
        options = {"center": self.maybe(0.8), "scale": self.maybe(0.8),
                   "epsilon": self.rng.choice([1e-3, 1e-2])}
        return self.layers.LayerNormalization(axis=axis, **options)

    def batch_normalization(self, shape):
        axis = -1
        if None not in shape and len(shape) > 1 and self.maybe(0.2):
            axis = 1
        return self.layers.BatchNormalization(
            axis=axis, center=self.maybe(0.8), scale=self.maybe(0.8),
            epsilon=self.rng.choice([1e-3, 1e-2]))

    def rescaling(self, shape):
        return self.layers.Rescaling(self.rng.choice([0.5, 1 / 127.5]),
                                     self.rng.choice([0.0, -1.0]))

    def normalization(self, shape):
        width = shape[-1]
        return self.layers.Normalization(
            mean=[self.rng.uniform(-1, 1) for _ in range(width)],
            variance=[self.rng.uniform(0.3, 2) for _ in range(width)])

    # ---- Along the steps -----------------------------------------------------

    def conv(self, shape):
        padding = self.rng.choice(["valid", "same", "causal"])
        size = self.rng.randint(1, 4)
        if padding == "valid":
            size = min(size, shape[0])
        options = {"use_bias": self.maybe(0.8), "padding": padding,
                   "activation": self.rng.choice([None, "relu", "tanh"])}
        filters = self.rng.randint(1, 8)
        if self.maybe(0.4):
            options["strides"] = self.rng.randint(1, 3)
        elif padding != "valid" or (size - 1) * 2 < shape[0]:
            options["dilation_rate"] = self.rng.randint(
                1, 2 if padding == "valid" else 4)
        if self.maybe(0.2):
            options["groups"] = self.rng.choice(
                [n for n in range(1, shape[1] + 1) if shape[1] % n == 0])
            filters = options["groups"] * self.rng.randint(1, 3)
        return self.layers.Conv1D(filters, size, **options)

    def pool(self, shape):
        kind = self.rng.choice(["MaxPooling1D", "AveragePooling1D"])
        size = self.rng.randint(1, max(1, min(3, shape[0])))
        return getattr(self.layers, kind)(
            size, strides=self.rng.choice([None, 1, 2]),
            padding=self.rng.choice(["valid", "same"]))

    def global_pool(self, shape):
        kind = self.rng.choice(["GlobalMaxPooling1D",
                                "GlobalAveragePooling1D"])
        return getattr(self.layers, kind)(keepdims=self.maybe(0.25))

    def move_steps(self, shape):
        kind = self.rng.choice(["UpSampling1D", "ZeroPadding1D", "Cropping1D"])
        if kind == "UpSampling1D":
            return self.layers.UpSampling1D(self.rng.randint(1, 3))
        before, after = self.rng.randint(0, 2), self.rng.randint(0, 2)
        if kind == "ZeroPadding1D" or before + after >= shape[0]:
            return self.layers.ZeroPadding1D((before, after))
        return self.layers.Cropping1D((before, after))

    def move(self, shape):
        kind = self.rng.choice(["Permute", "Reshape", "Flatten"])
        if kind == "Permute":
            order = list(range(1, len(shape) + 1))
            self.rng.shuffle(order)
            return self.layers.Permute(order)
        if kind == "Flatten":
            return self.layers.Flatten()
        count = 1
        for extent in shape:
            count *= extent
        first = self.rng.choice([d for d in range(1, count + 1)
                                 if count % d == 0])
        target = [first, count // first]
        if self.maybe(0.4):
            target[self.rng.randrange(2)] = -1
        return self.layers.Reshape(target)

    def repeat(self, shape):
        return self.layers.RepeatVector(self.rng.randint(1, 7))

    def masking(self, shape):
        return self.layers.Masking(self.rng.choice([0.0, 0.0, -1.0, 0.5]))

    def spatial_dropout(self, shape):
        return self.layers.SpatialDropout1D(0.25)

    ANY = [(dense, 3), (activation, 2), (advanced_activation, 2), (inert, 1),
           (layer_normalization, 1), (batch_normalization, 1),
           (rescaling, 0.3), (normalization, 0.3)]
    VECTOR = [(repeat, 5)]
    SERIES = [(recurrent, 7), (bidirectional, 4), (masking, 1.5),
              (global_pool, 0.5), (time_distributed, 2),
              (spatial_dropout, 0.3)]
    KNOWN_SERIES = [(conv, 1.5), (pool, 1), (move_steps, 1.5), (move, 1.5)]
    HIGHER = [(time_distributed, 6), (move, 3)]
