#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random Keras models, computed by Keras in float64 and by Cellgate on the
host and on the OpenMP plugin, directly and through the native file. See
README.md beside this file."""

import argparse
import collections
import pathlib
import random
import re
import shlex
import shutil
import sys
import tempfile
import warnings

import numpy as np

from cellgate_command import TOLERANCE, Cellgate, Failed, compare, difference
from keras_peer import Peer, is_float
from random_models import ModelMaker

# What Keras's own float32 may be off, and what rounding each weight once more
# may change in float64. A model that is worse amplifies rounding, whoever
# computes it, and is drawn again.
WELL_CONDITIONED = 2e-6
ATTEMPTS = 40
LEVELS = ["scalar", "avx2", "avx512"]
# What this machine has not becomes the best that it has.
FLAGS = pathlib.Path("/proc/cpuinfo").read_text()
HERE = {level: level if level == "scalar" or level in FLAGS else "auto"
        for level in LEVELS}
# What README.md does not promise: each says why it is drawn nevertheless.
OUTSIDE = [
    # Of Softmax behind a mask: Keras fails, but where batch, steps and features
    # happen to be alike or 1.
    "its input has a mask of steps, which Keras cannot apply in it",
    # Of layers of recurrence in a TimeDistributed.
    "this one would take every step for a sequence of its own",
]


class Unsuitable(Exception):
    """Keras itself cannot build, compute or store the model that was drawn."""


# ---- Drawing ------------------------------------------------------------------

def randomise(model, numbers):
    """Weights of a size that training gives; no bias left at zero."""
    values = []
    for weight, old in zip(model.weights, model.get_weights()):
        name = getattr(weight, "path", weight.name)
        if not is_float(old) or "count" in name or \
                "normalization" in name and "batch" not in name and \
                ("mean" in name or "variance" in name):
            values.append(old)
            continue
        if "variance" in name:
            value = numbers.uniform(0.3, 1.8, old.shape)
        elif old.ndim == 0:
            value = numbers.uniform(0.4, 1.2, old.shape)
        elif old.ndim == 1:
            value = numbers.uniform(-0.8, 0.8, old.shape)
        else:
            fan_in = np.prod(old.shape[:-1])
            value = numbers.normal(0.0, 1.1 / np.sqrt(fan_in), old.shape)
        values.append(value.astype(old.dtype))
    model.set_weights(values)


class Feed:
    """Inputs of a model, and the masks that are given beside them."""

    def __init__(self, maker, model, numbers):
        self.inputs, self.masks, self.lengths, self.patterns = [], [], {}, {}
        for number, tensor in enumerate(model.inputs):
            shape = [maker.batch] + [maker.steps if extent is None else extent
                                     for extent in tensor.shape[1:]]
            given = None
            if maker.steps_first:
                x = self.series(maker, numbers,
                                [maker.steps, maker.batch, shape[-1]])
            elif "bool" in str(tensor.dtype):
                x = self.pattern(numbers, shape)
            elif number in maker.vocabularies:
                x = self.ids(maker, numbers, shape, number)
            else:
                x = self.series(maker, numbers, shape)
                if len(shape) == 3:
                    given = self.mask(maker, numbers, shape, number)
            self.inputs.append(x)
            self.masks.append(given)

    def ids(self, maker, numbers, shape, number):
        x = numbers.integers(0, maker.vocabularies[number], shape)
        if maker.maybe(0.5):
            lengths = numbers.integers(0, shape[1] + 1, (shape[0], 1))
            x = np.where(np.arange(shape[1]) < lengths, x, 0)
        return x.astype(np.int32)

    def series(self, maker, numbers, shape):
        x = numbers.normal(0, 1, shape).astype(np.float32)
        if len(shape) == 3 and maker.maybe(0.4):      # for Masking
            blank = numbers.random(shape[:2]) < 0.4
            x[blank] = maker.rng.choice([0.0, 0.0, -1.0, 0.5])
        return x

    def mask(self, maker, numbers, shape, number):
        kind = maker.rng.choice(["none", "none", "lengths", "holes"])
        name = f"in_{number}"
        if kind == "lengths":
            lengths = numbers.integers(0, shape[1] + 1, shape[0], np.int32)
            self.lengths[name] = lengths
            return np.arange(shape[1]) < lengths[:, None]
        if kind == "holes":
            self.patterns[name] = self.pattern(numbers, shape[:2])
            return self.patterns[name]
        return None

    def pattern(self, numbers, shape):
        """Valid steps with holes; no step of some rows is valid."""
        valid = numbers.random(shape) < 0.6
        valid[numbers.random(shape[0]) < 0.15] = False
        return valid


class Drawn:
    """A model, its file, its inputs and what Keras computes in float64."""

    def __init__(self, peer, seed, attempt, folder, without):
        rng = random.Random(f"{seed}.{attempt}")
        numbers = np.random.default_rng(rng.getrandbits(32))
        peer.reset()
        maker = ModelMaker(peer, rng)
        self.model = maker.model()
        if without & set(self.kinds()):
            raise Unsuitable("it has a layer that is not wanted")
        randomise(self.model, numbers)
        self.path = self.save(maker, peer, folder)
        self.feed = Feed(maker, self.model, numbers)
        self.level = HERE[rng.choice(LEVELS)]
        self.calls = 2 if maker.stateful == "all" and any(
            getattr(layer, "stateful", False)
            for layer in self.model._flatten_layers()) else 1
        loaded = peer.load(self.path)
        exact = peer.in_float64(loaded)
        self.expected = self.compute(peer, exact, "float64")
        if not all(np.isfinite(y).all() for y in self.expected):
            raise Unsuitable("an output is not finite")
        self.check_conditioning(peer, exact, loaded, numbers)

    def save(self, maker, peer, folder):
        """A whole model, or weights with the architecture beside them."""
        kinds = [".keras", ".h5", ".weights.h5"], [6, 2, 2]
        if not peer.is_keras3:
            kinds = [".keras", ".h5", ".weights.h5", "weights in .h5"], \
                [2, 4, 1, 2]
        kind = maker.rng.choices(*kinds)[0]
        if kind in (".keras", ".h5"):
            if kind == ".h5" and peer.is_keras3 and \
                    self.has_ambiguous_operation(peer):
                raise Unsuitable("Keras loads an operation as a layer")
            path = folder / f"model{kind}"
            self.model.save(path)
            return path
        path = folder / "model.json"
        path.write_text(self.model.to_json())
        self.model.save_weights(
            folder / ("model" + kind.removeprefix("weights in ")))
        return path

    def has_ambiguous_operation(self, peer):
        """Of keras.ops, and called as a layer is: the .h5 of Keras 3 says no
        more, and Keras makes a layer of it, which passes masks on."""
        return any(hasattr(peer.layers, type(operation).__name__) and
                   not isinstance(operation, peer.layers.Layer)
                   for operation in getattr(self.model, "operations", []))

    def check_conditioning(self, peer, exact, loaded, numbers):
        others = [self.compute(peer, peer.in_dtype(loaded, "float32"),
                               "float32")]
        weights = exact.get_weights()
        for _ in range(2):
            exact.set_weights([
                w * (1 + numbers.choice([-1, 1], w.shape) * 2.0 ** -24)
                if is_float(w) else w for w in weights])
            others.append(self.compute(peer, exact, "float64"))
        for outputs in others:
            if not difference(self.expected, outputs) <= WELL_CONDITIONED:
                raise Unsuitable("it amplifies rounding")

    def compute(self, peer, model, dtype):
        """The outputs of each call, which go on from the states of the one
        before."""
        peer.reset_states(model)
        return [y for _ in range(self.calls) for y in peer.compute(
            model, self.feed.inputs, self.feed.masks, dtype)]

    def kinds(self, model=None):
        for layer in (model or self.model).layers:
            yield type(layer).__name__
            if hasattr(layer, "layers"):
                yield from self.kinds(layer)
            if hasattr(layer, "layer"):
                yield f"{type(layer).__name__}({type(layer.layer).__name__})"


def draw(peer, seed, folder, discarded, without):
    for attempt in range(ATTEMPTS):
        for old in folder.iterdir():
            old.unlink()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return Drawn(peer, seed, attempt, folder, without)
        except Unsuitable as unsuitable:
            discarded[str(unsuitable)] += 1
        except Exception as error:      # of Keras, whatever it is
            discarded[f"{type(error).__name__}: "
                      f"{str(error).splitlines()[0][:90]}"] += 1
    raise SystemExit(f"seed {seed}: no usable model in {ATTEMPTS} attempts")


# ---- Comparing ----------------------------------------------------------------

def unseen_mask(failed, feed):
    """Cellgate refuses a mask that nothing would look at. Takes it away, and
    Keras, which was given it, has to have ignored it."""
    name = re.match(r"cellgate: no layer of the model would look at (?:a mask|"
                    r"lengths) of input '([^']+)'", str(failed))
    if name is None:
        return False
    for named in (feed.lengths, feed.patterns):
        named.pop(name[1], None)
    return True


def judge(drawn, program, folder):
    """("agree" | "disagree" | "refuse" | "outside", text, difference)"""
    cellgate = Cellgate(program, folder, drawn.level)
    feed, worst, where = drawn.feed, 0.0, "nowhere"
    try:
        for how, share in compare(cellgate, drawn.path, feed.inputs,
                                  drawn.expected, feed.lengths,
                                  feed.patterns, drawn.calls):
            if not share <= worst:
                worst, where = share, how
    except Failed as failed:
        if unseen_mask(failed, feed):
            return judge(drawn, program, folder)
        if any(known in str(failed) for known in OUTSIDE):
            return "outside", str(failed), 0.0
        return "refuse", f"exit code {failed.code}: {failed}", 0.0
    verdict = "agree" if worst <= TOLERANCE else "disagree"
    return verdict, f"{worst:.1e} on {where} at level {drawn.level}", worst


def keep(options, seed, drawn, folder):
    if options.keep is None:
        return ""
    target = options.keep / f"seed{seed}"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    np.savez(target / "expected.npz",
             **{f"out{i}": y for i, y in enumerate(drawn.expected)})
    return f" (kept in {target})"


def again(options, seed):
    """The command that makes one model again."""
    command = [sys.executable, sys.argv[0], "--cellgate", options.cellgate,
               "--peer", options.peer, "--only", str(seed)]
    if options.without:
        command += ["--without", options.without]
    return shlex.join(command)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cellgate", required=True,
                        help="the cellgate command of a build tree")
    parser.add_argument("--peer", choices=["keras", "tf_keras"],
                        default="keras")
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--only", type=int, metavar="SEED")
    parser.add_argument("--without", default="", metavar="LAYER,...",
                        help="draw no model with these layers, such as Conv1D")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR",
                        help="keep the files of models that fail here")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    if options.only is not None:
        seeds = [options.only]
    peer = Peer(options.peer)
    worst = 0.0
    verdicts, kinds = collections.Counter(), collections.Counter()
    discarded = collections.Counter()
    for number, seed in enumerate(seeds, 1):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            drawn = draw(peer, seed, folder, discarded,
                         set(options.without.split(",")))
            verdict, text, share = judge(drawn, options.cellgate, folder)
            worst = max(worst, share) if verdict == "agree" else worst
            verdicts[verdict] += 1
            kinds.update(set(drawn.kinds()))
            if verdict != "agree" or options.only is not None:
                print(f"seed {seed}: {verdict}: {text}"
                      f"{keep(options, seed, drawn, folder)}; again with: "
                      f"{again(options, seed)}", flush=True)
        if number % 10 == 0:
            print(f"{number} models, {verdicts['agree']} agree",
                  file=sys.stderr, flush=True)
    print(f"{peer.name} {peer.version}; models with each layer: " + ", ".join(
        f"{kind} {count}" for kind, count in sorted(kinds.items())))
    for reason, count in discarded.most_common():
        print(f"drawn again {count} times: {reason}", file=sys.stderr)
    print(f"{verdicts['agree']} agree, {verdicts['disagree']} disagree, "
          f"{verdicts['refuse']} refused, {verdicts['outside']} outside of what "
          f"is promised; the worst of those that agree: {worst:.1e}")
    return 1 if verdicts["disagree"] or verdicts["refuse"] else 0


if __name__ == "__main__":
    sys.exit(main())
