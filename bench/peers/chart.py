# SPDX-License-Identifier: Apache-2.0
"""The ratios as a picture, drawn by gnuplot: a panel a number of threads, a
group of bars a row, a bar a peer, over a logarithmic scale."""

import shutil
import subprocess

import report


def script(path, panels):
    """`panels`: (threads, results) pairs. What gnuplot is told."""
    kind = "svg" if str(path).endswith(".svg") else "pngcairo"
    yield f"set terminal {kind} noenhanced size 1200,{450 * len(panels)}"
    yield f"set output '{path}'"
    yield "set style data histograms"
    yield "set style histogram clustered gap 1"
    yield "set style fill solid 0.8 noborder"
    yield "set logscale y"
    yield "set yrange [0.25:*]"
    yield "set linetype 9 linecolor rgb '#8c564b'"
    yield "set grid y"
    yield "set key outside right top"
    yield "set ylabel 'times of the peer over times of Cellgate'"
    yield "set xlabel 'row'"
    for number, (_, results) in enumerate(panels):
        yield f"$data{number} << END"
        names = report.peer_names(results)
        for result in results:
            yield " ".join([str(result.row.number)] + [
                f"{result.ratio(name):.4g}" if name in result.peers else "NaN"
                for name in names])
        yield "END"
    yield f"set multiplot layout {len(panels)},1"
    for number, (threads, results) in enumerate(panels):
        yield f"set title '{threads} thread{'s' if threads > 1 else ''}; " \
            "above 1 Cellgate is faster'"
        yield "plot 1 with lines lc 'black' notitle, " + ", ".join(
            f"$data{number} using {column + 2}:xtic(1) title '{name}'"
            for column, name in enumerate(report.peer_names(results)))
    yield "unset multiplot"


def draw(path, panels):
    """RuntimeError where there is no gnuplot or it fails."""
    if shutil.which("gnuplot") is None:
        raise RuntimeError("--chart needs gnuplot")
    done = subprocess.run(["gnuplot"], input="\n".join(script(path, panels)),
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"gnuplot: {done.stderr.strip()}")
