#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keras models that others published inside Python packages, in their own
Keras and in Cellgate. See README.md beside this file."""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

from cellgate_command import TOLERANCE, Cellgate, Failed, compare
from keras_peer import Peer

# (package and version, licence it states, file in its wheel, Keras to load it)
MODELS = [
    ("asmscan-bilstm==1.0.0", "GPL-3.0",
     "asmscan/bilstm/resources/model/cvms/bass-model1.h5", "tf_keras"),
    ("ethnicolr==0.9.6", "MIT",
     "ethnicolr/models/census/lstm/census2010_ln_lstm.h5", "tf_keras"),
    ("ethnicolr==0.9.6", "MIT",
     "ethnicolr/models/fl_voter_reg/lstm/fl_all_name_lstm.h5", "tf_keras"),
    ("ethnicolr==0.9.6", "MIT",
     "ethnicolr/models/nc_voter_reg/lstm/nc_voter_name_lstm.h5", "tf_keras"),
    ("flavorfetcher==1.0.0", "GPL-3.0-or-later",
     "flavorfetcher/data/100_2021-04-20 10_38_24.203316_3_epochs_re-run_"
     "model.h5", "tf_keras"),
    ("network-intrusion-detection==0.1.4", "MIT",
     "network_intrusion_detection/cnn_lstm_unsw_finetuned.h5", "keras"),
    ("seeker==1.0.3", "GPL", "seeker/models/MatModel0.h5", "tf_keras"),
    ("seeker==1.0.3", "GPL", "seeker/models/model.h5", "tf_keras"),
]
BATCH = 3
STEPS = 17  # where the model takes any number


def take(package, member, folder):
    """The model file out of the package's wheel, which is not installed."""
    wheels = folder / package.replace("==", "-")
    if not wheels.exists():
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet",
             "--disable-pip-version-check", "--no-deps", "--only-binary",
             ":all:", "--dest", wheels, package], check=True)
    wheel, = wheels.glob("*.whl")
    path = wheels / pathlib.Path(member).name
    with zipfile.ZipFile(wheel) as archive:
        path.write_bytes(archive.read(member))
    return path


def vocabulary(model):
    """Ids that the model's Embedding layers all take; None without one."""
    sizes = [layer.input_dim for layer in model.layers
             if type(layer).__name__ == "Embedding"]
    return min(sizes) if sizes else None


def make_inputs(model, numbers):
    ids = vocabulary(model)
    for tensor in model.inputs:
        shape = [BATCH] + [extent or STEPS for extent in tensor.shape[1:]]
        if ids is not None and len(shape) == 2:
            yield numbers.integers(0, ids, shape).astype(np.int32)
        else:
            yield numbers.standard_normal(shape).astype(np.float32)


def judge(peer, path, program, folder, seed):
    model = peer.load(path)
    kinds = " ".join(type(layer).__name__ for layer in model.layers
                     if type(layer).__name__ != "InputLayer")
    inputs = list(make_inputs(model, np.random.default_rng(seed)))
    masks = [None] * len(inputs)
    expected = peer.compute(peer.in_float64(model), inputs, masks, "float64")
    cellgate = Cellgate(program, folder)
    try:
        worst = max((share for _, share in
                     compare(cellgate, path, inputs, expected)),
                    key=lambda share: np.inf if np.isnan(share) else share)
    except Failed as failed:
        return kinds, f"refused: {failed}", False
    return kinds, f"{worst:.1e}", worst <= TOLERANCE


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cellgate", required=True,
                        help="the cellgate command of a build tree")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--peer", help="for each Keras, this command runs "
                        "itself; not for use by hand")
    options = parser.parse_args()
    if options.peer is None:
        codes = [subprocess.run([sys.executable, *sys.argv, "--peer", name]
                                ).returncode for name in ("tf_keras", "keras")]
        return max(codes)
    peer, agree = Peer(options.peer), True
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for package, licence, member, needed in MODELS:
            if needed != peer.name:
                continue
            path = take(package, member, folder)
            kinds, result, good = judge(peer, path, options.cellgate, folder,
                                        options.seed)
            agree = agree and good
            print(f"{package} ({licence}) {path.name}, {peer.name} "
                  f"{peer.version}\n  {kinds}\n  "
                  f"{'agrees' if good else 'DISAGREES'}: {result}", flush=True)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
