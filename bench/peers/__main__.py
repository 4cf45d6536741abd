# SPDX-License-Identifier: Apache-2.0
"""bench/peers: Cellgate against what else runs LSTMs on a CPU; see README.md
one folder up. It is run in the folder of a build."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import chart
import contest
import environment
import page
import report
import rows
import turns
from contest import CORE, CORE_ONE, Contest, Peer, say
from worker import Refused, Worker

PEERS = ["onednn", "onnxruntime", "openvino", "pytorch", "keras"]
TITLES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO",
          "pytorch": "PyTorch", "keras": "Keras"}
# Its threads wait for work awake for so long.
SETTLE = {"onnxruntime": 50e-3}
# Weights of a row above which its peers are not in memory together: those of
# row 18, half a gigabyte, would be there some twenty times. So many are.
HEAVY, TOGETHER = 1 << 26, 3


def read_options():
    parser = argparse.ArgumentParser(
        prog="bench/peers", description="Times Cellgate and its peers in "
        "turn. Run it in the folder of a build.")
    add = parser.add_argument
    add("--full", action="store_true", help="all rows, not the quick ones")
    add("--rows", type=lambda text: [int(n) for n in text.split(",")],
        help="only these rows: 1,2,...")
    add("--peers", type=lambda text: text.split(","), default=PEERS,
        help=f"only these peers (default: {','.join(PEERS)})")
    add("--threads", type=int, default=len(os.sched_getaffinity(0)),
        help="of the second table (default: all processors)")
    add("--pairs", type=int, default=51, help="turns a row (default: 51)")
    add("--budget", type=float, default=10.0,
        help="seconds a row after which no turn begins (default: 10)")
    add("--seed", type=int, default=1, help="of weights and inputs")
    add("--level", default="auto", help="Cellgate's instruction set")
    add("--calibrate", type=float, default=3.0, metavar="SECONDS",
        help="a row's, before it runs through the core; 0: not through the "
        "core (default: 3)")
    add("--environment", type=pathlib.Path, metavar="FOLDER",
        default=pathlib.Path("peers-environment"),
        help="with the peers' packages (default: ./peers-environment)")
    add("--make-environment", action="store_true",
        help="install the peers' packages there first; some 8 GB")
    add("--onednn", action="append", default=[], metavar="PREFIX",
        help="one more oneDNN, in PREFIX/include and PREFIX/lib")
    add("--csv", help="also write the numbers to this file")
    add("--chart", help="also draw the ratios to this .svg or .png file")
    options = parser.parse_args()
    unknown = set(options.peers) - set(PEERS)
    if unknown:
        parser.error(f"there is no peer {sorted(unknown)[0]}")
    if options.pairs < 1 or options.threads < 1:
        parser.error("--pairs and --threads take 1 or more")
    return options


class Bench:
    """Everything that outlives a table. `work` is a scratch folder."""

    def __init__(self, options, work):
        self.options, self.work = options, work
        self.build = pathlib.Path.cwd()
        text = subprocess.run([self.build / "bench/serve", "--rows"],
                              capture_output=True, text=True,
                              check=True).stdout
        (work / "rows").write_text(text)
        self.rows = rows.select(rows.parse(text), options.rows, options.full)
        self.folder = options.environment.resolve()
        self.missing = {}  # peer -> why it is not there at all
        self.onednn = self.build_onednn() if "onednn" in options.peers else []
        self.interrupted = False

    def build_onednn(self):
        """(prefix, library) of each oneDNN that is there."""
        found = []
        for number, prefix in enumerate(environment.onednn_prefixes(
                self.folder, self.options.onednn)):
            library = environment.build_onednn(prefix, number, self.build,
                                               self.work)
            if library is not None:
                found.append((prefix, library))
            else:
                self.missing[f"oneDNN of {prefix}"] = "there is none"
        return found

    def serve(self, name, side, threads, *arguments, variables=None,
              processor=None):
        return Worker(name, [self.build / "bench/serve", "--folder",
                             self.work, "--threads", str(threads), *arguments,
                             side],
                      {"OMP_NUM_THREADS": str(threads), **(variables or {})},
                      processor)

    def cellgate(self, threads):
        return self.serve("cellgate", "cellgate", threads, "--plugin",
                          self.build / ".libs/openmp.so", "--level",
                          self.options.level)

    def core_variables(self):
        return {"CELLGATE_PROBE": str(self.build / "cellgate-probe"),
                "XDG_CACHE_HOME": str(self.work)}

    def config(self, threads):
        """A configuration that keeps to so many threads."""
        path = self.work / f"threads{threads}.ini"
        path.write_text(
            f"[cellgate]\nplugin_path = {self.build}/.libs\nunlisted = no\n"
            f"[scheduler]\nthreads = {threads}\nlearn = no\n"
            f"[calibration]\nstore = {self.work}/costs{threads}\n"
            f"[device cpu]\nplugin = openmp\nlevel = {self.options.level}\n")
        return path

    def core(self, threads):
        return self.serve("core", "model", threads, "--config",
                          self.config(threads),
                          variables=self.core_variables())

    def onednn_peers(self, threads):
        for prefix, library in self.onednn:
            sycl = environment.is_sycl(prefix)
            only = max(os.sched_getaffinity(0)) if sycl and threads == 1 \
                else None
            worker = self.serve(
                "onednn", library, threads, processor=only,
                variables=environment.onednn_variables(prefix))
            version = worker.ask("version")
            short = ".".join(version.split(".")[:2])
            yield Peer(f"oneDNN {short}", worker,
                       f"{version}, {'SYCL' if sycl else 'OpenMP'}")

    def python_peer(self, name, threads):
        worker = Worker(
            name, [environment.python(self.folder),
                   environment.HERE / f"peer_{name}.py", "--folder",
                   self.work, "--threads", str(threads)],
            {"OMP_NUM_THREADS": str(threads), "CUDA_VISIBLE_DEVICES": "-1",
             "TF_CPP_MIN_LOG_LEVEL": "3"},
            log=(self.work / f"{name}.log").open("w"),
            settle=SETTLE.get(name, turns.SETTLE) if threads > 1
            else turns.SETTLE)
        return Peer(TITLES[name], worker, worker.ask("version"),
                    float(worker.ask("call")), each=name == "keras")

    def peers(self, threads):
        made = []
        for name in self.options.peers:
            try:
                if name == "onednn":
                    made += self.onednn_peers(threads)
                elif environment.python(self.folder) is None:
                    self.missing[TITLES[name]] = \
                        f"no environment in {self.options.environment}"
                else:
                    made.append(self.python_peer(name, threads))
            except Refused as error:
                self.missing[TITLES.get(name, name)] = str(error)
        return made


class Table:
    """All rows with one number of threads."""

    def __init__(self, bench, threads):
        self.bench, self.threads = bench, threads
        self.ours = bench.cellgate(threads)
        self.ours_version = self.ours.ask("version")
        self.limits = self.ours.ask("limits").split("\t")
        self.peers = bench.peers(threads)
        self.cores = {}
        self.keras = next((p for p in self.peers if p.name == "Keras"), None)
        if bench.options.calibrate > 0 and not self.keras:
            bench.missing["Cellgate through the core"] = \
                "its models are saved by Keras"
        elif bench.options.calibrate > 0:
            self.cores[CORE] = (bench.core(threads), threads)
            if threads > 1:
                self.cores[CORE_ONE] = (bench.core(1), 1)
        self.results, self.failed = [], {}

    def calibrate(self, row, threads):
        """Measures the row's model with `cellgate calibrate`."""
        bench = self.bench
        done = subprocess.run(
            [bench.build / "cellgate", "calibrate", bench.work / "row.keras",
             "--config", bench.config(threads), "--seconds",
             str(bench.options.calibrate), "--batch",
             f"{row.batch}-{row.batch}", "--steps",
             f"{row.steps}-{row.steps}"], capture_output=True, text=True,
            env=dict(os.environ, **bench.core_variables()))
        if done.returncode != 0:
            raise Refused(f"cellgate calibrate: {done.stderr.strip()}")

    def add_cores(self, row, of):
        if not self.keras.worker.alive():
            self.keras.worker.start()
        try:
            self.keras.worker.ask(f"save {row.number}")
        except Refused as error:
            for name in self.cores:
                of.refuse(name, error)
            return
        for name, (worker, threads) in self.cores.items():
            try:
                self.calibrate(row, threads)
            except Refused as error:
                of.refuse(name, error)
                continue
            of.add_core(name, worker)

    def groups(self, row):
        """Lists of peers that fit into memory at once; first comes None, our
        own sides."""
        several = 4 * row.hidden * (row.input + row.hidden) > HEAVY
        if not several:
            return [[None, *self.peers]]
        return [[None]] + [self.peers[first:first + TOGETHER] for first in
                           range(0, len(self.peers), TOGETHER)]

    def add_own(self, row, of):
        if row.batch <= 16 and row.hidden >= 256:
            of.add_narrow()
        if self.cores:
            self.add_cores(row, of)

    def run_row(self, row):
        of = Contest(row, self.threads, self.bench.options.seed, self.ours,
                     self.bench.options)
        of.choose_variant()
        for group in self.groups(row):
            for peer in group:
                if peer is None:
                    self.add_own(row, of)
                else:
                    of.add_peer(peer)
            result = of.run()
            if None in group and self.cores:
                of.name_core(self.cores[CORE][0])
            self.release(group)
        return result

    def release(self, group):
        """Their memory of a row."""
        for peer in group:
            workers = [worker for worker, _ in self.cores.values()] \
                if peer is None else [peer.worker]
            for worker in workers:
                if worker.alive():
                    worker.ask("release")

    def workers(self):
        return [self.ours] + [peer.worker for peer in self.peers] + \
            [worker for worker, _ in self.cores.values()]

    def run(self, done):
        """Calls done() after each row."""
        for row in self.bench.rows:
            begin = time.monotonic()
            try:
                result = self.run_row(row)
                self.results.append(result)
                say(f"{report.in_words(result)}; "
                    f"{time.monotonic() - begin:.0f} s")
                done()
            except Refused as error:
                self.failed[row.number] = str(error)
                say(f"row {row.number}: {error}")
                if not self.ours.alive():
                    break
                self.release([None, *self.peers])

    def close(self):
        for worker in self.workers():
            worker.close()


def run(options, work):
    bench = Bench(options, work)
    tables = []

    def keep():
        """What was measured so far: all rows take long."""
        if options.csv:
            report.write_csv(options.csv, [result for table in tables
                                           for result in table.results])
    for threads in sorted({1, options.threads}):
        tables.append(Table(bench, threads))
        try:
            tables[-1].run(keep)
        except KeyboardInterrupt:
            say("interrupted: what was measured follows")
            bench.interrupted = True
            break
        finally:
            tables[-1].close()
    print("\n".join(page.whole(bench, tables)))
    if options.chart and any(table.results for table in tables):
        chart.draw(options.chart, [(t.threads, t.results) for t in tables
                                   if t.results])
    return 1 if any(table.failed or any(r.wrong for r in table.results)
                    for table in tables) else 0


def main():
    options = read_options()
    if not pathlib.Path("bench/serve").exists():
        sys.exit("bench/peers: run it in the folder of a build (there is no "
                 "bench/serve here)")
    if options.make_environment:
        environment.make(options.environment.resolve())
    with tempfile.TemporaryDirectory(prefix="cellgate-peers-") as work:
        try:
            return run(options, pathlib.Path(work))
        except (RuntimeError, ValueError, Refused) as error:
            sys.exit(f"bench/peers: {error}")


if __name__ == "__main__":
    sys.exit(main())
