# SPDX-License-Identifier: Apache-2.0
"""The tables in Markdown, the numbers as CSV."""

import csv

import ratios
import rows
from contest import AGAIN, CORE, CORE_ONE, OURS

KERAS = "Keras predict_step"
COLUMNS = ["row", "threads", "peer", "version", "configuration",
           "cellgate_variant", "cellgate_seconds", "peer_seconds", "ratio",
           "ratio_of_bests", "aa_5", "aa_95", "turns", "limit_seconds",
           "first_call_seconds", "difference", "not_measured"]


def micro(seconds):
    return f"{seconds * 1e6:.1f}" if seconds < 1 else f"{seconds * 1e6:.0f}"


def table(head, lines):
    """`head`: (title, alignment) pairs."""
    yield "| " + " | ".join(title for title, _ in head) + " |"
    yield "|" + "|".join(mark for _, mark in head) + "|"
    for line in lines:
        yield "| " + " | ".join(str(cell) for cell in line) + " |"


def a_a(result):
    times = result.times
    return [times.ratio(AGAIN, OURS, part) for part in (0.05, 0.95)]


def goal(result):
    """"met", or by how much it is missed; "-" without a peer."""
    peer = result.best_peer()
    if peer is None:
        return "-"
    ratio, share = result.ratio(peer), result.share()
    met, text = rows.goal(result.row.number, ratio, share)
    return "met" if met else f"missed ({text})"


def summary_line(result):
    times, peer = result.times, result.best_peer()
    low, high = a_a(result)
    theirs = ["-"] * 5
    if peer is not None:
        theirs = [peer, result.peers[peer].configuration,
                  micro(times.median(peer)), f"**{result.ratio(peer):.2f}**",
                  f"{times.ratio_of_bests(peer, OURS):.2f}"]
    return [result.row.number, result.row.text, result.variant,
            micro(times.median(OURS)), *theirs, f"{low:.2f}-{high:.2f}",
            times.turns(OURS), f"{result.share():.0%}", goal(result)]


SUMMARY = [("row", "--:"), ("batch, steps, input, hidden, layers", "---"),
           ("variant", "---"), ("Cellgate us", "--:"), ("best peer", "---"),
           ("as", "---"), ("its us", "--:"), ("ratio", "--:"),
           ("of bests", "--:"), ("A/A 5-95%", "---"), ("turns", "--:"),
           ("of limit", "--:"), ("goal", "---")]


def summary(results):
    yield from table(SUMMARY, map(summary_line, results))
    means = [result.ratio(result.best_peer()) for result in results
             if result.peers]
    if means:
        yield ""
        yield "Geometric mean of the ratios to the best peers: " \
            f"{ratios.geometric_mean(means):.2f}"


def peer_names(results):
    names = []
    for result in results:
        names += [name for name in result.peers if name not in names]
    return names


def each_peer(results):
    """A ratio a row and peer."""
    names = peer_names(results)
    yield from table(
        [("row", "--:")] + [(name, "--:") for name in names],
        [[result.row.number] +
         [f"{result.ratio(name):.2f}" if name in result.peers else "-"
          for name in names] for result in results])


def reasons(results):
    """Why a ratio is missing: a line a reason, with its rows."""
    found = {}
    for result in results:
        for name, reason in result.refused.items():
            found.setdefault((name, reason), []).append(
                str(result.row.number))
    for (name, reason), numbers in found.items():
        yield f"- {name}, row {', '.join(numbers)}: {reason}"


def first_calls(results):
    names = peer_names(results)
    yield from table(
        [("row", "--:"), ("Cellgate", "--:")] +
        [(name, "--:") for name in names],
        [[result.row.number, micro(result.first)] +
         [micro(result.peers[name].first) if name in result.peers else "-"
          for name in names] for result in results])


def narrow(results):
    """Ours with narrower weights against ours in float32."""
    lines = [[result.row.number, variant, numeric,
              micro(result.times.median(numeric)),
              f"**{result.times.ratio(OURS, numeric):.2f}**",
              f"{result.times.ratio_of_bests(OURS, numeric):.2f}",
              "{:.2f}-{:.2f}".format(*a_a(result)), f"{difference:.1e}"]
             for result in results
             for numeric, (variant, difference) in result.narrow.items()]
    if lines:
        yield from table([("row", "--:"), ("variant", "---"),
                          ("weights", "---"), ("us", "--:"),
                          ("times float32's speed", "--:"),
                          ("of bests", "--:"), ("A/A 5-95%", "---"),
                          ("difference", "--:")], lines)
    yield from narrow_goal(results)


def narrow_goal(results):
    numeric, number, speed, error = rows.NARROW
    for result in results:
        if result.row.number == number and numeric in result.narrow:
            met = result.times.ratio(OURS, numeric) >= speed and \
                result.narrow[numeric][1] <= error
            yield ""
            yield f"Row {number} with {numeric}: {speed} times and a " \
                f"difference up to {error:.0e} are wanted: " \
                f"{'met' if met else 'missed'}"


def slower(result):
    """Whether all threads are slower than one beyond what A/A explains."""
    ratio = result.times.ratio(CORE_ONE, CORE)
    return ratio < min(0.95, a_a(result)[0])


def scaling(results):
    """From one thread to all, through the core and what was calibrated."""
    lines = [[result.row.number, result.core_variant,
              micro(result.times.median(CORE_ONE)),
              micro(result.times.median(CORE)),
              f"{result.times.ratio(CORE_ONE, CORE):.2f}",
              f"{result.times.ratio(CORE, OURS):.2f}",
              "{:.2f}-{:.2f}".format(*a_a(result))]
             for result in results
             if {CORE, CORE_ONE} <= set(result.times.of)]
    if not lines:
        return
    yield from table([("row", "--:"), ("chosen", "---"),
                      ("one thread us", "--:"), ("all us", "--:"),
                      ("one / all", "--:"), ("core / plugin", "--:"),
                      ("A/A 5-95%", "---")], lines)
    bad = [str(result.row.number) for result in results
           if {CORE, CORE_ONE} <= set(result.times.of) and slower(result)]
    yield ""
    yield "Rows that more threads make slower: " + (", ".join(bad) or "none")


def application(result, prefix):
    """A row through the core, from a model file, against the peers whose name
    begins so: what a reader of the article runs."""
    times = result.times
    names = [name for name in result.peers if name.startswith(prefix)]
    if CORE not in times.of or not names:
        return
    yield f"Row {result.row.number}, {result.row.text}, " \
        f"{result.threads} thread{'s' if result.threads > 1 else ''}: " \
        f"Cellgate {micro(times.median(CORE))} us ({result.core_variant})"
    yield ""
    yield from table([("peer", "---"), ("us", "--:"), ("ratio", "--:"),
                      ("of bests", "--:"), ("turns", "--:")],
                     [[name, micro(times.median(name)),
                       f"**{times.ratio(name, CORE):.2f}**",
                       f"{times.ratio_of_bests(name, CORE):.2f}",
                       times.turns(name)] for name in names])
    yield ""
    if KERAS in names:
        met = times.ratio(KERAS, CORE) >= rows.OVER_KERAS
        yield f"{rows.OVER_KERAS:.0f} times {KERAS} is wanted: " \
            f"{'met' if met else 'missed'}"
        yield ""


def csv_lines(results):
    for result in results:
        times = result.times
        base = [result.row.number, result.threads]
        aa = [f"{value:.4f}" for value in a_a(result)]
        ours = f"{times.median(OURS):.9g}"
        for numeric, (variant, difference) in result.narrow.items():
            yield base + [f"Cellgate {numeric}", "", variant, result.variant,
                          ours, *numbers(times, numeric), *aa,
                          times.turns(numeric), f"{result.limit:.9g}", "",
                          f"{difference:.3g}", ""]
        for name in (CORE, CORE_ONE):
            if name in times.of:
                yield base + [f"Cellgate {name}", "", result.core_variant
                              if name == CORE else "", result.variant, ours,
                              *numbers(times, name), *aa, times.turns(name),
                              f"{result.limit:.9g}", "", "", ""]
        for name, entry in result.peers.items():
            yield base + [name, entry.version, entry.configuration,
                          result.variant, ours, *numbers(times, name), *aa,
                          times.turns(name), f"{result.limit:.9g}",
                          f"{entry.first:.9g}", f"{entry.difference:.3g}", ""]
        for name, reason in result.refused.items():
            yield base + [name] + [""] * (len(COLUMNS) - 4) + [reason]


def numbers(times, name):
    return [f"{times.median(name):.9g}", f"{times.ratio(name, OURS):.4f}",
            f"{times.ratio_of_bests(name, OURS):.4f}"]


def in_words(result):
    """A row in a line, to be seen while others run."""
    peer, (low, high) = result.best_peer(), a_a(result)
    against = f"{result.ratio(peer):.2f} against {peer}" if peer else "no peer"
    return f"row {result.row.number}, {result.threads} thread(s): " \
        f"{against}, A/A {low:.2f}-{high:.2f}, " \
        f"{result.share():.0%} of the limit"


def write_csv(path, results):
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(COLUMNS)
        out.writerows(csv_lines(results))
