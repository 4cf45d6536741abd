# SPDX-License-Identifier: Apache-2.0
"""The process of a peer that Python drives: it answers as bench/serve does."""

import argparse
import os
import pathlib
import sys
import time

import numpy as np

import rows


class Refused(Exception):
    """The peer cannot do it; the text says why."""


class Data:
    """A row's input and weights, as bench/serve wrote them: files of bare
    numbers. Of each layer and direction follow kernel [I][4H], recurrent
    kernel [H][4H] and bias [4H], gates in the order i, f, c, o; then kernel
    and bias of a dense layer."""

    def __init__(self, row, folder):
        self.row = row
        self.x = np.fromfile(folder / "x.f32", np.float32).reshape(
            row.steps, row.batch, row.input)
        self.lengths = np.fromfile(folder / "lengths.i32", np.int32) \
            if row.ragged else None
        self.left = np.memmap(folder / "weights.f32", np.float32, "r")
        self.layers = []
        for layer in range(row.layers):
            size = row.input if layer == 0 else row.hidden * row.directions
            self.layers.append([
                (self.take(size, 4 * row.hidden),
                 self.take(row.hidden, 4 * row.hidden),
                 self.take(4 * row.hidden)) for _ in range(row.directions)])
        self.dense = (self.take(row.hidden * row.directions, row.dense),
                      self.take(row.dense)) if row.dense else None
        assert self.left.size == 0

    def take(self, *shape):
        count = int(np.prod(shape))
        taken, self.left = self.left[:count], self.left[count:]
        return taken.reshape(shape)

    def batch_major(self):
        return np.ascontiguousarray(self.x.transpose(1, 0, 2))


def reordered(matrix, order):
    """Columns of the gates i, f, c, o (0 to 3) in another order."""
    gates = np.split(matrix, 4, axis=-1)
    return np.concatenate([gates[gate] for gate in order], axis=-1)


def time_major(y):
    """[batch][steps][features] as [steps][batch][features]."""
    return y.transpose(1, 0, 2) if y.ndim == 3 else y


class Server:
    """`peer` has: version; configurations(data) -> [(name, run)]; array(result
    of a run) -> the row's output, time-major; smallest() -> a run through the
    same interface that computes next to nothing."""

    def __init__(self, peer, folder):
        self.peer, self.folder = peer, folder
        self.known = rows.parse((folder / "rows").read_text())
        self.runs = []

    def time(self, run, times):
        begin = time.perf_counter()
        for _ in range(times):
            result = run()
        return (time.perf_counter() - begin) / times, result

    def prepare(self, number, _seed):
        self.runs = []
        made = self.peer.configurations(Data(self.known[int(number)],
                                             self.folder))
        self.runs = [run for _, run in made]
        return "\t".join(name for name, _ in made)

    def output(self, index, name):
        seconds, result = self.time(self.runs[int(index)], 1)
        np.ascontiguousarray(self.peer.array(result), np.float32).tofile(
            self.folder / name)
        return f"{seconds:.9g}"

    def turn(self, index, warm, runs):
        run = self.runs[int(index)]
        if int(warm) > 0:
            self.time(run, int(warm))
        return f"{self.time(run, int(runs))[0]:.9g}"

    def call(self):
        """Seconds of the smallest call, the median of some."""
        run = self.peer.smallest()
        run()
        return f"{sorted(self.time(run, 20)[0] for _ in range(51))[25]:.9g}"

    def version(self):
        return self.peer.version

    def save(self, number):
        self.peer.save(Data(self.known[int(number)], self.folder),
                       self.folder / "row.keras")
        return ""

    def release(self):
        self.runs = []
        return ""

    def answer(self, line):
        verb, *arguments = line.split()
        try:
            return f"ok {getattr(self, verb)(*arguments)}"
        except Exception as error:  # the driver shows it in the table
            text = " ".join(str(error).split())
            name = "" if isinstance(error, Refused) else \
                f"{type(error).__name__}: "
            return f"no {name}{text[:300]}"


def main(make):
    """`make(threads)` makes the peer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    # What libraries print must not look like an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    server = Server(make(options.threads), options.folder)
    for line in sys.stdin:
        print(server.answer(line), file=answers, flush=True)
