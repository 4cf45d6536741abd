# SPDX-License-Identifier: Apache-2.0
"""The `cellgate` command of a built tree, as a user runs it."""

import os
import pathlib
import subprocess

import numpy as np

TOLERANCE = 1e-5  # of an output's largest magnitude


class Failed(Exception):
    """The command ended with an error; `code` is its exit code."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Cellgate:
    """`folder` is a scratch folder; `program` the command of a build tree,
    whose OpenMP plugin is used at the level that `level` names."""

    def __init__(self, program, folder, level="auto"):
        build = pathlib.Path(program).resolve().parent
        self.program = str(build / "cellgate")
        self.folder = pathlib.Path(folder)
        self.config = self.folder / "cellgate.ini"
        self.config.write_text(
            f"[cellgate]\nplugin_path = {build}/.libs\n"
            f"[device cpu]\nplugin = openmp\nlevel = {level}\n")
        self.environment = dict(os.environ, XDG_CACHE_HOME=str(self.folder))
        if (build / "cellgate-probe").exists():
            self.environment["CELLGATE_PROBE"] = str(build / "cellgate-probe")

    def call(self, *arguments):
        done = subprocess.run(
            [self.program, *map(str, arguments)], env=self.environment,
            capture_output=True, text=True, errors="replace", timeout=600)
        if done.returncode != 0:
            raise Failed(done.returncode, done.stderr.strip())

    def convert(self, model, native):
        self.call("convert", model, native)

    def run(self, model, inputs, device, lengths=None, masks=None, calls=1):
        """The model's outputs, in order. `lengths` and `masks`: input's name
        -> array. Of several calls, each goes on from the states of the one
        before."""
        arrays = self.folder / "inputs.npz"
        output = self.folder / "outputs.npz"
        stored = {f"in{i}": x for i, x in enumerate(inputs)}
        arguments = []
        for i in range(len(inputs)):
            arguments += ["--input", f"{arrays}:in{i}"]
        for option, named in (("lengths", lengths), ("mask", masks)):
            for name, array in (named or {}).items():
                stored[f"{option}_{name}"] = array
                arguments += [f"--{option}",
                              f"{name}={arrays}:{option}_{name}"]
        np.savez(arrays, **stored)
        states, outputs = self.folder / "states.npz", []
        for number in range(calls):
            carried = ["--state-in", states] if number > 0 else []
            carried += ["--state-out", states] if number + 1 < calls else []
            self.call("run", model, "--config", self.config, "--device",
                      device, *arguments, *carried, "--output", output)
            with np.load(output) as made:
                outputs += [made[name] for name in made.files]
        return outputs


def difference(expected, outputs):
    """The worst output's largest difference, as a share of its largest
    magnitude."""
    if len(expected) != len(outputs):
        return np.inf
    worst = 0.0
    for exact, got in zip(expected, outputs):
        if exact.shape != got.shape:
            return np.inf
        scale = np.abs(exact).max(initial=0.0)
        error = np.abs(exact - got).max(initial=0.0)
        if error > 0 or np.isnan(error):
            share = error / scale if scale > 0 else np.inf
            worst = share if np.isnan(share) else max(worst, share)
    return worst


def compare(cellgate, model, inputs, expected, lengths=None, masks=None,
            calls=1):
    """The worst difference on the host and on the OpenMP plugin, directly and
    through the native file. Yields (how, difference)."""
    native = cellgate.folder / "converted.safetensors"
    cellgate.convert(model, native)
    for file, how in ((model, "directly"), (native, "native file")):
        for device in ("host", "cpu"):
            outputs = cellgate.run(file, inputs, device, lengths, masks,
                                   calls)
            yield f"{device}, {how}", difference(expected, outputs)
