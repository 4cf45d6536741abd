# SPDX-License-Identifier: Apache-2.0
"""Sides of a row take turns, so that what else the machine does disturbs all of
them alike."""

import math
import time

import ratios

TURN = 3e-3     # seconds that a side's timed runs should take
SETTLE = 12e-3  # pause in which most sides' threads fall asleep after a turn
LONG = 0.25     # a run of more seconds is its own warming up
FEWEST = 5      # turns
FEWEST_LONG = 3  # turns of a side whose run takes more than VERY_LONG
VERY_LONG = 2.0
MOST_SKIPPED = 10  # a slow side has a turn at least every so many


class Refused(Exception):
    """The side cannot do it; the text says why."""


class Side:
    """One configuration of a worker, by name. `worker` has
    turn(index, warm, runs) -> seconds a run, and `settle`: the seconds after
    which its threads are asleep."""

    def __init__(self, name, worker, index):
        self.name, self.worker, self.index = name, worker, index
        self.runs, self.warm, self.stride, self.once = 1, 1, 1, 0.0

    def size(self):
        """How many runs make a turn."""
        self.once = min(self.worker.turn(self.index, 0, 1) for _ in range(2))
        self.runs = max(1, math.ceil(TURN / self.once))
        self.warm = 0 if self.once > LONG else 1

    def cost(self):
        return (self.warm + self.runs) * self.once + self.worker.settle

    def fewest(self):
        return FEWEST_LONG if self.once > VERY_LONG else FEWEST

    def turn(self):
        return self.worker.turn(self.index, self.warm, self.runs)


def strides(costs, first):
    """Turns from one of a side to its next, where `first` is what the sides
    that are in every turn cost: slow sides may not starve fast ones."""
    return [min(MOST_SKIPPED, max(1, int(cost / first)))
            for cost in costs]


class Round:
    """Sides that take turns. `times` is what comes out; `failed` has the
    reason of each side that did not go through with it."""

    def __init__(self, sides, always, clock=time.monotonic,
                 sleep=time.sleep):
        self.sides, self.always = list(sides), list(sides[:always])
        self.clock, self.sleep = clock, sleep
        self.times, self.failed = ratios.Times(), {}

    def attempt(self, side, action):
        """What action() gives; None, and the side is out, where it fails."""
        try:
            return action()
        except Refused as error:
            if side in self.always:
                raise
            self.failed[side.name] = str(error)
            self.times.of.pop(side.name, None)
            self.sides.remove(side)
            return None
        finally:
            self.sleep(side.worker.settle)

    def prepare(self):
        for side in list(self.sides):
            self.attempt(side, side.size)
        others = [side for side in self.sides if side not in self.always]
        for side, stride in zip(others, strides(
                [side.cost() for side in others],
                sum(side.cost() for side in self.always))):
            side.stride = stride

    def enough(self):
        return all(self.times.turns(side.name) >= side.fewest()
                   for side in self.sides)

    def run(self, wanted, budget):
        self.prepare()
        end = self.clock() + budget
        for turn in range(max(wanted, FEWEST * MOST_SKIPPED)):
            if self.enough() and (turn >= wanted or self.clock() > end):
                break
            for side in list(self.sides):
                if turn % side.stride == 0:
                    seconds = self.attempt(side, side.turn)
                    if seconds is not None:
                        self.times.add(side.name, turn, seconds)
        return self


def take_turns(sides, always, wanted, budget, clock=time.monotonic,
               sleep=time.sleep):
    """A Round of all sides: `wanted` turns, fewer once `budget` seconds are
    over and each side has had its fewest. The first `always` sides are in
    every turn, and the round ends where one of them fails."""
    return Round(sides, always, clock, sleep).run(wanted, budget)


def fastest(sides, rounds, budget, clock=time.monotonic, sleep=time.sleep):
    """The side whose shortest turn is the shortest."""
    if len(sides) == 1:
        return sides[0]
    times = take_turns(sides, len(sides), rounds, budget, clock, sleep).times
    return min(sides, key=lambda side: times.best(side.name))
