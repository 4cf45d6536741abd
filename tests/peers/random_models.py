# SPDX-License-Identifier: Apache-2.0
"""Random Keras models. All that is random comes from one random.Random, so
that a seed makes a model again."""

import inspect

from random_calls import CallMaker, extents
from random_layers import LayerMaker

POLICIES = ["mixed_float16", "mixed_float16", "mixed_bfloat16",
            "mixed_bfloat16", "float64", "float16", "bfloat16"]


class ModelMaker(CallMaker):
    """`steps` is what inputs of any number of steps will be fed."""

    def __init__(self, peer, rng):
        self.peer = peer
        self.keras = peer.keras
        self.layers = peer.layers
        self.is_keras3 = peer.is_keras3
        self.rng = rng
        self.steps = rng.choice([1, *range(1, 13)])
        self.batch = rng.choice([1, *range(1, 10)])
        self.any_steps = rng.random() < 0.25
        # A layer that is stateful knows the batch. "all": the state of the
        # whole model goes from call to call.
        self.stateful = rng.choices(["none", "some", "all"], [88, 6, 6])[0]
        self.fixed_batch = self.stateful != "none"
        self.steps_first = not peer.is_keras3 and rng.random() < 0.05
        self.policy = "float32" if rng.random() < 0.8 else rng.choice(POLICIES)
        self.maker = LayerMaker(peer, rng, self.stateful)
        self.pool, self.unused, self.inputs = [], [], []
        self.first = []         # as many steps as an input has
        self.vocabularies = {}  # input's number -> ids

    def maybe(self, chance):
        return self.rng.random() < chance

    # ---- Inputs --------------------------------------------------------------

    def input(self, shape, dtype="float32"):
        options = {"name": f"in_{len(self.inputs)}", "dtype": dtype}
        if self.fixed_batch:
            tensor = self.keras.Input(
                batch_shape=(self.batch, *shape), **options)
        else:
            tensor = self.keras.Input(shape, **options)
        self.inputs.append(tensor)
        return tensor

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
        tensor = self.input(shape, dtype)
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

    def add_all(self, made, *consumed):
        """What a call gave: a tensor, or several."""
        if isinstance(made, dict):
            made = list(made.values())
        for output in made if isinstance(made, (list, tuple)) else [made]:
            self.add(output, *consumed)

    def apply(self, tensor):
        layer = self.maker.layer(extents(tensor))
        told = {}
        if self.maybe(0.1) and "training" in \
                inspect.signature(layer.call).parameters:
            told = {"training": False}
        self.add_all(layer(tensor, **told), tensor)

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
            layer = self.layers.LSTM(width, return_sequences=True,
                                     stateful=self.stateful == "all")
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

    STEPS = {"apply": 12, "merge": 4, "operate": 3, "take": 1,
             "reduce": 1, "rearrange": 1, "attend": 1,
             "masked_call": 2, "encode_decode": 1, "start": 1, "share": 1,
             "nest": 2, "time_major": 1}
    OF_SERIES = ["attend", "masked_call", "encode_decode", "start",
                 "time_major"]
    # In a model whose layers are all stateful: what has states of its own.
    OF_STATES = ["encode_decode", "start", "share", "nest", "time_major"]

    def step(self):
        kinds = list(self.STEPS)
        if self.is_keras3:
            kinds.remove("time_major")
        if not self.series():
            kinds = [k for k in kinds if k not in self.OF_SERIES]
        if self.stateful == "all":
            kinds = [k for k in kinds if k not in self.OF_STATES]
        kind = self.rng.choices(kinds, [self.STEPS[k] for k in kinds])[0]
        if kind == "apply":
            self.apply(self.pick())
        else:
            getattr(self, kind)()

    def functional(self):
        for number in range(self.rng.randint(1, 3)):
            self.first.append(self.first_tensor(number))
        self.pool, self.unused = list(self.first), list(self.first)
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
        return self.whole(outputs)

    def whole(self, outputs):
        """The model, whose inputs and outputs may have names in Keras 3."""
        inputs = self.inputs
        if self.is_keras3 and self.maybe(0.1):
            outputs = {self.rng.choice("abcdef") + str(i): t
                       for i, t in enumerate(outputs)}
        if self.is_keras3 and self.maybe(0.1):
            inputs = {t.name: t for t in inputs}
        return self.keras.Model(inputs, outputs)

    def flat(self, tensor):
        if len(tensor.shape) == 2:
            return tensor
        if None not in extents(tensor):
            return self.layers.Flatten()(tensor)
        return self.layers.LSTM(3, stateful=self.stateful == "all")(tensor)

    def turned(self):
        """A model of Keras 2 whose arrays have steps before rows."""
        x = self.keras.Input((None, self.rng.randint(1, 9)),
                             batch_size=self.steps, name="in_0")
        self.inputs.append(x)
        made = self.turned_layers(x)
        if self.maybe(0.5):
            made = self.layers.LSTM(self.maker.units(), time_major=True)(made)
        return self.keras.Model(x, made)

    def model(self):
        self.peer.set_policy(self.policy)
        if self.steps_first:
            return self.turned()
        return self.sequential() if self.maybe(0.3) else self.functional()
