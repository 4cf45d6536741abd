# SPDX-License-Identifier: Apache-2.0
"""One row: its sides prepared, compared, then timed."""

import dataclasses
import sys

import ratios
import turns
from worker import Refused

MOST_DIFFERENCE = 1e-3  # of outputs, relative
OURS, AGAIN, CORE, CORE_ONE = "ours", "again", "core", "core 1"


@dataclasses.dataclass
class Entry:
    """A peer in a row."""
    version: str
    configuration: str
    first: float  # seconds of its first call
    difference: float


@dataclasses.dataclass
class Result:
    row: object
    threads: int
    limit: float  # seconds
    variant: str = ""
    core_variant: str = ""
    first: float = 0.0
    times: ratios.Times = dataclasses.field(default_factory=ratios.Times)
    peers: dict = dataclasses.field(default_factory=dict)
    refused: dict = dataclasses.field(default_factory=dict)
    wrong: list = dataclasses.field(default_factory=list)
    # Ours with narrower weights: side's name -> (variant, difference)
    narrow: dict = dataclasses.field(default_factory=dict)

    def share(self):
        """Of the limit."""
        return self.limit / self.times.best(OURS)

    def ratio(self, peer):
        return self.times.ratio(peer, OURS)

    def best_peer(self):
        """Its name, or None."""
        return min(self.peers, key=self.ratio, default=None)


class Contest:
    """`ours` is the worker that has the data; `peers` are Peers."""

    def __init__(self, row, threads, seed, ours, options):
        self.row, self.seed, self.ours = row, seed, ours
        self.pairs, self.budget = options.pairs, options.budget
        made = ours.prepare(row.number, seed)
        ours.ask("write")
        self.result = Result(row, threads, float(ours.ask("limit")))
        self.by_class = {}  # numeric class -> sides
        for index, (name, numeric) in enumerate(made):
            self.by_class.setdefault(numeric, []).append(
                turns.Side(name, ours, index))
        self.variants = self.by_class["f32"]
        self.first = {side.index: ours.output(side.index, f"ours{side.index}")
                      for side in self.variants}
        self.base, self.sides = [], []

    def choose_variant(self):
        """The faster of ours, as the scheduler would pick it."""
        side = turns.fastest(self.variants, 21, self.budget / 3)
        self.result.variant = side.name
        self.result.first = self.first[side.index]
        self.base = [turns.Side(OURS, self.ours, side.index),
                     turns.Side(AGAIN, self.ours, side.index)]

    def add_narrow(self):
        """Ours with narrower weights, beside float32."""
        for numeric in self.by_class:
            if numeric == "f32":
                continue
            side = turns.fastest(self.by_class[numeric], 9, self.budget / 6)
            self.ours.output(side.index, "narrow")
            self.result.narrow[numeric] = side.name, self.difference("narrow")
            self.sides.append(turns.Side(numeric, self.ours, side.index))

    def refuse(self, name, reason):
        self.result.refused[name] = str(reason)

    def difference(self, name):
        """From all variants of ours, the largest."""
        return max(float(self.ours.ask(f"compare ours{side.index} {name}"))
                   for side in self.variants)

    def checked(self, name, worker, index, configuration):
        """(first call, difference) of a configuration whose output is right;
        None where it is not, or where it fails."""
        try:
            first = worker.output(index, "theirs")
            difference = self.difference("theirs")
        except Refused as error:
            self.refuse(f"{name} {configuration}", error)
            return None
        if not difference <= MOST_DIFFERENCE:
            self.refuse(f"{name} {configuration}",
                        f"outputs differ by {difference:.1e}")
            self.result.wrong.append(name)
            return None
        return first, difference

    def add_core(self, name, worker):
        """A side that runs the model through the core."""
        if not worker.alive():
            worker.start()
        try:
            worker.prepare(self.row.number, self.seed)
        except Refused as error:
            return self.refuse(name, error)
        if self.checked(name, worker, 0, ""):
            self.sides.append(turns.Side(name, worker, 0))
        return None

    def add_peer(self, peer):
        if not peer.worker.alive():
            peer.worker.start()
        try:
            configurations = peer.worker.prepare(self.row.number, self.seed)
        except Refused as error:
            return self.refuse(peer.name, error)
        right = {}
        for index, (configuration, _) in enumerate(configurations):
            found = self.checked(peer.name, peer.worker, index, configuration)
            if found:
                right[configuration] = (turns.Side("", peer.worker, index),
                                        *found)
        if peer.each:
            for configuration, found in right.items():
                self.enter(peer, f"{peer.name} {configuration}",
                           configuration, *found)
        elif right:
            configuration = self.fastest(right)
            self.enter(peer, peer.name, configuration, *right[configuration])
        return None

    def fastest(self, right):
        for configuration, (side, _, _) in right.items():
            side.name = configuration
        return turns.fastest([side for side, _, _ in right.values()], 5,
                             self.budget / 6).name

    def enter(self, peer, name, configuration, side, first, difference):
        side.name = name
        self.sides.append(side)
        self.result.peers[name] = Entry(peer.version, configuration, first,
                                        difference)

    def run(self):
        """Times what was added since the last time; the result of all."""
        taken = turns.take_turns(self.base + self.sides, len(self.base),
                                 self.pairs, self.budget)
        self.result.times.extend(taken.times)
        for name, reason in taken.failed.items():
            self.refuse(name, reason)
            self.result.peers.pop(name, None)
            self.result.narrow.pop(name, None)
        self.sides = []
        return self.result

    def name_core(self, worker):
        if CORE in self.result.times.of:
            self.result.core_variant = worker.ask("name 0")


@dataclasses.dataclass
class Peer:
    """`each`: every configuration is a peer of its own."""
    name: str
    worker: object
    version: str
    call: float = 0.0  # seconds of a Python call, 0: it is called from C
    each: bool = False


def say(text):
    print(f"bench/peers: {text}", file=sys.stderr, flush=True)
