# SPDX-License-Identifier: Apache-2.0
"""What a run prints: where it ran, the tables, what is missing."""

import os
import platform
import subprocess

import report


def cpu():
    """(name, vector flags) of the first processor."""
    name, flags = platform.processor() or platform.machine(), []
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    name = value.strip()
                if key.strip() == "flags" and not flags:
                    flags = [flag for flag in value.split()
                             if flag.startswith(("avx", "amx")) or
                             flag in ("fma", "f16c")]
    except OSError:
        pass
    return name, flags


def compiler():
    command = os.environ.get("CC", "cc").split()
    done = subprocess.run([*command, "--version"], capture_output=True,
                          text=True)
    return done.stdout.splitlines()[0] if done.stdout else "unknown"


def surroundings(bench, tables):
    name, flags = cpu()
    yield f"- CPU: {name}; {len(os.sched_getaffinity(0))} processors"
    yield f"- Its vector flags: {' '.join(flags)}"
    yield f"- Load averages at the end: {os.getloadavg()[0]:.1f}, " \
        f"{os.getloadavg()[1]:.1f}, {os.getloadavg()[2]:.1f}"
    yield f"- Cellgate: {tables[0].ours_version}, level {bench.options.level}"
    yield f"- Compiler of oneDNN's side: {compiler()}; Python " \
        f"{platform.python_version()}"
    yield f"- Seed {bench.options.seed}, {bench.options.pairs} turns, " \
        f"{bench.options.budget:g} s a row"
    for peer in tables[0].peers:
        yield f"- {peer.name}: {peer.version}" + (
            f"; a Python call costs {peer.call * 1e6:.1f} us"
            if peer.call else "; called from C")
    if bench.interrupted:
        yield "- Interrupted: rows are missing"
    for peer, why in bench.missing.items():
        yield f"- {peer}: not measured: {why}"


def limits(of):
    vectors, operations, *bandwidth = of
    levels = ", ".join(f"{level} {float(rate) * 1e-9:.0f} GB/s" for level, rate
                       in zip(("L1", "L2", "L3", "memory"), bandwidth))
    return f"Measured with {vectors}: {float(operations) * 1e-9:.0f} " \
        f"GFLOP/s, {levels}"


def section(title, lines):
    lines = list(lines)
    if lines:
        yield from ["", title, "", *lines]


def of_table(table):
    several = "s" if table.threads > 1 else ""
    yield from ["", f"## {table.threads} thread{several}", "",
                limits(table.limits)]
    yield from section("### Against the best peer of each row",
                       report.summary(table.results))
    yield from section("### Ratio to each peer",
                       report.each_peer(table.results))
    yield from section("Not measured:", list(report.reasons(table.results)) +
                       [f"- row {number}: {why}"
                        for number, why in table.failed.items()])
    yield from section("### First calls, us",
                       report.first_calls(table.results))
    yield from section("### Weights kept narrower, against float32",
                       report.narrow(table.results))
    yield from section("### From one thread to all, through the core",
                       report.scaling(table.results))


def of_application(tables):
    for table in tables:
        for result in table.results:
            if result.row.number == 1:
                yield from report.application(result, "Keras")
            if result.row.number == 5:
                yield from report.application(result, "oneDNN")


def whole(bench, tables):
    yield from surroundings(bench, tables)
    for table in tables:
        yield from of_table(table)
    yield from section(
        "## As an application runs them: a model file, through the core",
        of_application(tables))
