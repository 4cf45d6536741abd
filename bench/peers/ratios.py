# SPDX-License-Identifier: Apache-2.0
"""Numbers of one row: times of sides that took turns. Only times of the same
turn are divided, and the median of the ratios counts."""

import math


def quantile(values, part):
    """The value at `part` (0 to 1) of the sorted values, none between two."""
    ordered = sorted(values)
    return ordered[int(part * (len(ordered) - 1) + 0.5)]


def median(values):
    return quantile(values, 0.5)


def ratios(of, to):
    """Turn's number -> time; the ratios of the turns that both have."""
    return [of[turn] / to[turn] for turn in sorted(of) if turn in to]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


class Times:
    """What the turns of a row gave: side's name -> {turn: seconds}."""

    def __init__(self):
        self.of = {}

    def add(self, side, turn, seconds):
        self.of.setdefault(side, {})[turn] = seconds

    def extend(self, other):
        """Takes in the turns of `other`, after its own."""
        first = 1 + max((turn for side in self.of.values() for turn in side),
                        default=-1)
        for side, times in other.of.items():
            for turn, seconds in times.items():
                self.add(side, first + turn, seconds)

    def turns(self, side):
        return len(self.of.get(side, ()))

    def median(self, side):
        return median(self.of[side].values())

    def best(self, side):
        return min(self.of[side].values())

    def ratio(self, of, to, part=0.5):
        return quantile(ratios(self.of[of], self.of[to]), part)

    def ratio_of_bests(self, of, to):
        return self.best(of) / self.best(to)
