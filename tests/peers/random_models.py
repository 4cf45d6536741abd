# SPDX-License-Identifier: Apache-2.0
"""Random Keras models. All that is random comes from one random.Random, so
that a seed makes a model again."""

from random_layers import SEQUENCE_ACTIVATIONS, LayerMaker


def extents(tensor):
    """The shape of a Keras tensor without the batch."""
    return tuple(tensor.shape[1:])


class ModelMaker:
    """`steps` is what inputs of any number of steps will be fed."""

    def __init__(self, peer, rng):
        self.keras = peer.keras
        self.layers = peer.layers
        self.is_keras3 = peer.is_keras3
        self.rng = rng
        self.steps = rng.randint(1, 12)
        self.batch = rng.randint(1, 5)
        self.any_steps = rng.random() < 0.25
        self.fixed_batch = rng.random() < 0.1
        self.maker = LayerMaker(peer, rng, self.fixed_batch)
        self.pool, self.unused, self.inputs = [], [], []
        self.vocabularies = {}  # input's number -> ids

    def maybe(self, chance):
        return self.rng.random() < chance

    # ---- Inputs --------------------------------------------------------------

    def input(self, number, shape, dtype="float32"):
        options = {"name": f"in_{number}", "dtype": dtype}
        if self.fixed_batch:
            return self.keras.Input(
                batch_shape=(self.batch, *shape), **options)
        return self.keras.Input(shape, **options)

    def first_tensor(self, number):
        """An input, and what stands behind it: ids need an Embedding."""
        kind = self.rng.choices(["series", "ids", "vector"], [7, 3, 1])[0]
        steps = None if self.any_steps else self.steps
        if number > 0 and not self.any_steps and self.maybe(0.3):
            steps = self.rng.randint(1, 12)
        if kind == "vector" and number > 0:
            shape, dtype = (self.rng.randint(1, 9),), "float32"
        elif kind == "ids":
            shape, dtype = (steps,), "int32"
        else:
            shape, dtype = (steps, self.rng.randint(1, 9)), "float32"
        tensor = self.input(number, shape, dtype)
        self.inputs.append(tensor)
        if dtype != "int32":
            return tensor
        size = self.rng.randint(2, 12)
        self.vocabularies[number] = size
        embedding = self.layers.Embedding(size, self.rng.randint(1, 8),
                                          mask_zero=self.maybe(0.6))
        return embedding(tensor)

    # ---- A chain and a graph -------------------------------------------------

    def chain(self, tensor, count, kept):
        """`count` layers behind a tensor, added to the list `kept`."""
        for _ in range(count):
            layer = self.maker.layer(extents(tensor))
            made = layer(tensor)
            if isinstance(made, (list, tuple)):
                made = made[0]
            kept.append(layer)
            tensor = made
        return tensor

    def sequential(self):
        tensor = self.first_tensor(0)
        kept = []
        embedding = getattr(tensor, "_keras_history", None)
        self.chain(tensor, self.rng.randint(1, 5), kept)
        first = [] if tensor is self.inputs[0] else [embedding[0]]
        return self.keras.Sequential([self.inputs[0], *first, *kept])

    def add(self, tensor, *consumed):
        self.pool.append(tensor)
        self.unused = [t for t in self.unused
                       if not any(t is c for c in consumed)] + [tensor]

    def pick(self):
        """A tensor, rather one that nothing has used yet."""
        return self.rng.choice(self.unused if self.maybe(0.7) else self.pool)

    def apply(self, tensor):
        made = self.maker.layer(extents(tensor))(tensor)
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        for output in made:
            self.add(output, tensor)

    def series(self):
        """The tensors with steps."""
        return [t for t in self.pool if len(t.shape) == 3]

    def alike(self, tensor):
        """Another tensor of the same shape."""
        same = [t for t in self.pool if t is not tensor
                and extents(t) == extents(tensor)]
        if same and self.maybe(0.4):
            return self.rng.choice(same)
        width = extents(tensor)[-1]
        layer = self.layers.Dense(width, "tanh")
        if len(tensor.shape) == 3 and self.maybe(0.5):
            layer = self.layers.LSTM(width, return_sequences=True)
        return layer(tensor)

    def merge(self):
        tensor = self.pick()
        other = self.alike(tensor)
        kind = self.rng.choice(["Add", "Subtract", "Multiply", "Average",
                                "Maximum", "Minimum", "Concatenate",
                                "Concatenate", "Dot"])
        operands = [tensor, other]
        if kind == "Dot":
            return self.dot(tensor, other)
        if kind != "Subtract" and self.maybe(0.3):
            operands.append(self.alike(tensor))
        if kind == "Concatenate":
            axes = [-1] if None in extents(tensor) else \
                [-1, *range(1, len(tensor.shape))]
            layer = self.layers.Concatenate(axis=self.rng.choice(axes))
        else:
            layer = getattr(self.layers, kind)()
        self.add(layer(operands), *operands)

    def dot(self, tensor, other):
        if None in extents(tensor):
            return self.apply(tensor)
        axes = self.rng.choice([-1, *range(1, len(tensor.shape))])
        layer = self.layers.Dot(axes, normalize=self.maybe(0.3))
        self.add(layer([tensor, other]), tensor, other)

    def attend(self):
        series = self.series()
        query = self.rng.choice(series)
        value = self.rng.choice(series)
        width = extents(query)[-1]
        if extents(value)[-1] != width:
            value = self.layers.Dense(width)(value)
        operands = [query, value]
        if self.maybe(0.3):
            operands.append(self.layers.Dense(width, "tanh")(value))
        if self.maybe(0.5):
            layer = self.layers.AdditiveAttention(use_scale=self.maybe(0.5))
        else:
            layer = self.layers.Attention(
                use_scale=self.maybe(0.5),
                score_mode=self.rng.choice(["dot", "concat"]))
        causal = {"use_causal_mask": True} if self.maybe(0.25) else {}
        self.add(layer(operands, **causal), query, value)

    def encode_decode(self):
        """A recurrent layer starts from the states of another one."""
        series = self.series()
        kind = self.rng.choice(["LSTM", "LSTM", "GRU", "SimpleRNN"])
        units = self.rng.randint(1, 9)
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

    def nest(self):
        """A model as a layer."""
        outer = self.pick()
        inner = self.keras.Input(extents(outer))
        made = self.chain(inner, self.rng.randint(1, 3), [])
        model = self.keras.Model(inner, made)
        self.add(model(outer), outer)

    def step(self):
        kind = self.rng.choices(["apply", "merge", "attend", "encode_decode",
                                 "nest"], [12, 4, 1, 1, 1])[0]
        if kind in ("attend", "encode_decode") and not self.series():
            kind = "apply"
        if kind == "apply":
            self.apply(self.pick())
        else:
            getattr(self, kind)()

    def functional(self):
        for number in range(self.rng.randint(1, 3)):
            tensor = self.first_tensor(number)
            self.pool.append(tensor)
            self.unused.append(tensor)
        for _ in range(self.rng.randint(2, 6)):
            self.step()
        for tensor in list(self.unused):
            if any(tensor is t for t in self.inputs):
                self.apply(tensor)
        outputs = self.unused
        if len(outputs) > 3:
            outputs = outputs[:2] + [self.layers.Concatenate()(
                [self.flat(t) for t in outputs[2:]])]
        self.rng.shuffle(outputs)
        return self.keras.Model(self.inputs, outputs)

    def flat(self, tensor):
        if len(tensor.shape) == 2:
            return tensor
        if None not in extents(tensor):
            return self.layers.Flatten()(tensor)
        return self.layers.LSTM(3)(tensor)

    def model(self):
        return self.sequential() if self.maybe(0.3) else self.functional()
