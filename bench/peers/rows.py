# SPDX-License-Identifier: Apache-2.0
"""The shapes of the table, which bench/rows.c has, and what
is wanted of each."""

import types

# Rows -> (times the best peer, share of the limit): either is enough, but
# slower than the best peer never is. Of rows bound by arithmetic both hold.
SMALL = {1, 2, 3, 4, 5, 8, 9, 11}
MIDDLE = {10, 12, 13, 14, 15}
ARITHMETIC = {16, 18}
SHARE = 0.85
OVER_KERAS = 5.0  # times its predict_step, of a model through the core
# Of weights kept as float16: row, times float32's speed, largest difference.
NARROW = ("f16", 15, 1.7, 1e-3)


def parse(text):
    """Lines of KEY=VALUE, tabs between -> rows by number."""
    rows = {}
    for line in text.splitlines():
        fields = dict(field.split("=", 1) for field in line.split("\t"))
        row = types.SimpleNamespace(
            **{key: value if key == "text" else int(value)
               for key, value in fields.items()})
        rows[row.number] = row
    return rows


def goal(number, ratio, share):
    """Whether the row's goal is met, and in words; None without a goal."""
    if number in ARITHMETIC:
        return ratio >= 1 and share >= SHARE, "1.0x and 85%"
    if number in SMALL or number in MIDDLE:
        times = 2.0 if number in SMALL else 1.3
        return (ratio >= times or (ratio >= 1 and share >= SHARE),
                f"{times:.1f}x or 85%")
    return ratio >= 1, "1.0x"


def select(rows, numbers, full):
    """Rows in order: the given ones, or all, or the quick ones."""
    if numbers:
        unknown = sorted(set(numbers) - set(rows))
        if unknown:
            raise ValueError(f"there is no row {unknown[0]}")
        return [rows[n] for n in sorted(set(numbers))]
    return [row for _, row in sorted(rows.items()) if full or row.quick]
