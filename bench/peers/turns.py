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


def take_turns(sides, always, wanted, budget, clock=time.monotonic,
               sleep=time.sleep):
    """Times of all sides: `wanted` turns, fewer once `budget` seconds are over
    and each side has had its fewest. The first `always` sides are in every
    turn."""
    for side in sides:
        side.size()
        sleep(side.worker.settle)
    first = sum(side.cost() for side in sides[:always])
    for side, stride in zip(sides[always:],
                            strides([s.cost() for s in sides[always:]],
                                    first)):
        side.stride = stride
    times, end = ratios.Times(), clock() + budget
    for turn in range(max(wanted, FEWEST * MOST_SKIPPED)):
        enough = all(times.turns(side.name) >= side.fewest()
                     for side in sides)
        if enough and (turn >= wanted or clock() > end):
            break
        for side in sides:
            if turn % side.stride == 0:
                times.add(side.name, turn, side.turn())
                sleep(side.worker.settle)
    return times


def fastest(sides, rounds, budget, clock=time.monotonic, sleep=time.sleep):
    """The side whose shortest turn is the shortest."""
    if len(sides) == 1:
        return sides[0]
    times = take_turns(sides, len(sides), rounds, budget, clock, sleep)
    return min(sides, key=lambda side: times.best(side.name))
