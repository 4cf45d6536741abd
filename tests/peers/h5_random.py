#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random HDF5 files, read by h5py and by Cellgate's own reader: all that one
reads has to be what the other reads. See README.md beside this file."""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

import h5py
import numpy as np

LIBVERS = ["earliest", ("earliest", "v108"), ("v108", "v108"),
           ("v110", "v110"), ("v112", "v112"), ("v114", "v114"), "latest"]
DTYPES = ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]
LETTERS = "abcdefghijklmnopqrstuvwxyz_0123456789:.äß中"


class Dump:
    """A running h5_dump."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def ask(self, *parts):
        self.process.stdin.write("\t".join(parts).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().decode(errors="replace")
        if not line:
            raise SystemExit(f"h5_dump ended over {parts}")
        status, count, *text = line.rstrip("\n").split(" ", 2)
        return status, int(count), " ".join(text)

    def number(self):
        return int(self.process.stdout.readline())

    def texts(self, *parts):
        status, count, text = self.ask(*parts)
        if status != "OK":
            return status, text
        return status, [self.process.stdout.read(self.number())
                        for _ in range(count)]

    def shape(self, path):
        status, count, text = self.ask("shape", path)
        return status, tuple(self.number() for _ in range(count))

    def data(self, path):
        status, count, text = self.ask("data", path)
        if status != "OK":
            return status, text
        return status, np.frombuffer(self.process.stdout.read(4 * count),
                                     "<f4")


# ---- Files -----------------------------------------------------------------

def random_name(rng, longest=40):
    length = rng.choice([1, 3, 8, rng.randint(1, longest)])
    name = "".join(rng.choice(LETTERS) for _ in range(length))
    return name if name.strip(".") else "x" + name


def random_values(rng, numbers, shape, dtype):
    values = numbers.standard_normal(shape)
    if rng.random() < 0.3:
        values = np.round(values, 1)        # packs better
    if rng.random() < 0.1:
        values = np.where(values > 1, np.inf, values)
    return np.asarray(values).astype(dtype)


def random_dataset(rng, numbers, group, name):
    rank = rng.choice([0, 1, 1, 2, 2, 2, 3, 4])
    shape = tuple(rng.choice([0, 1, 2, 3, 5, 16, rng.randint(1, 60)])
                  if rng.random() < 0.9 else 1 for _ in range(rank))
    while np.prod(shape, dtype=int) > 5000:
        shape = shape[1:]
    values = random_values(rng, numbers, shape, rng.choice(DTYPES))
    options = {}
    if shape and 0 not in shape and rng.random() < 0.6:
        options["chunks"] = tuple(rng.randint(1, extent) for extent in shape)
        if np.prod(options["chunks"]) * 300 < np.prod(shape):
            options["chunks"] = shape
        if rng.random() < 0.6:
            options["compression"] = "gzip"
            options["compression_opts"] = rng.randint(0, 9)
        options["shuffle"] = rng.random() < 0.4
        options["fletcher32"] = rng.random() < 0.4
        if rng.random() < 0.15:
            options["maxshape"] = tuple(
                rng.choice([extent, extent + 3, None]) for extent in shape)
    elif rng.random() < 0.2 and values.nbytes < 4000:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple(shape) if shape else \
            h5py.h5s.create(h5py.h5s.SCALAR)
        made = h5py.h5d.create(group.id, name.encode(),
                               h5py.h5t.py_create(values.dtype), space, plist)
        if values.size:
            made.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
        return
    group.create_dataset(name, data=values, **options)


def random_texts(rng):
    kind = rng.choice(["one", "bytes", "array", "fixed", "long", "none",
                       "void"])
    words = [random_name(rng) for _ in range(rng.choice([1, 1, 3, 3, 20, 200]))]
    if kind == "one":
        return rng.choice([words[0], "", "x" * rng.randint(1, 200000)])
    if kind == "bytes":
        return words[0].encode()
    if kind == "array":
        return words
    if kind == "fixed":
        return np.array([w.encode() for w in words])
    if kind == "long":
        return np.array([w.encode() * 20 for w in words[:25]])
    if kind == "void":
        return np.void(words[0].encode())
    return []


def random_attributes(rng, holder):
    for _ in range(rng.choice([0, 0, 1, 3, 12, 40])):
        value = random_texts(rng)
        try:
            holder.attrs[random_name(rng)] = value
        except (OSError, RuntimeError, ValueError):
            pass                             # too long for this version
    if rng.random() < 0.2:
        holder.attrs["number"] = rng.random()


def fill(rng, numbers, group, depth):
    random_attributes(rng, group)
    for _ in range(rng.choice([0, 1, 2, 3, 5, 9, rng.randint(10, 60)])):
        name = random_name(rng)
        if name in group:
            continue
        if depth < 4 and rng.random() < 0.1:
            inner = group.create_group(
                name, track_order=rng.choice([None, True]))
            fill(rng, numbers, inner, depth + 1)
        elif rng.random() < 0.03:
            group[name] = h5py.SoftLink("/nowhere")
        elif rng.random() < 0.03:
            group[name] = h5py.ExternalLink("other.h5", "/nowhere")
        else:
            random_dataset(rng, numbers, group, name)
            if rng.random() < 0.2:
                random_attributes(rng, group[name])
    if rng.random() < 0.3 and len(group):    # leaves gaps in heaps
        for name in rng.sample(list(group), len(group) // 2):
            del group[name]


def random_file(rng, path):
    numbers = np.random.default_rng(rng.getrandbits(32))
    options = {"libver": rng.choice(LIBVERS),
               "track_order": rng.choice([None, True])}
    if rng.random() < 0.1:
        options["userblock_size"] = rng.choice([512, 1024, 4096])
    with h5py.File(path, "w", **options) as file:
        fill(rng, numbers, file, 0)
    return options


# ---- Comparison ------------------------------------------------------------

def expected_texts(value):
    if isinstance(value, str):
        return [value.encode()]
    if isinstance(value, bytes):
        return [value]
    if isinstance(value, np.void):
        return [value.tobytes().rstrip(b"\0")]
    if value.size == 0:
        return []
    return [v.encode() if isinstance(v, str) else v for v in value.ravel()]


class Comparison:
    def __init__(self, dump):
        self.dump = dump
        self.numbers = self.texts = self.refused = 0

    def attributes(self, path, holder):
        for name, value in holder.attrs.items():
            status, got = self.dump.texts("texts", path, name)
            if isinstance(value, (float, np.floating)):
                assert status == "UNSUPPORTED", (path, name, status, got)
                continue
            assert status == "OK", (path, name, status, got)
            assert got == expected_texts(value), (path, name, got, value)
            self.texts += len(got)
        status, got = self.dump.texts("texts", path, "no such name")
        assert status == "NOT_FOUND" and got == "", (path, status, got)

    def dataset(self, path, dataset):
        status, shape = self.dump.shape(path)
        assert (status, shape) == ("OK", dataset.shape), (path, status, shape)
        status, got = self.dump.data(path)
        if status == "UNSUPPORTED":
            assert "may still grow" in got, (path, got)
            assert dataset.maxshape != dataset.shape, (path, got)
            self.refused += 1
            return
        assert status == "OK", (path, status, got)
        with np.errstate(over="ignore"):
            expected = dataset[()].astype("<f4").ravel()
        assert np.array_equal(got.view("<u4"), expected.view("<u4")), path
        self.numbers += got.size

    def group(self, path, group):
        self.attributes(path, group)
        status, names = self.dump.texts("members", path)
        assert status == "OK", (path, status, names)
        assert names == sorted(n.encode() for n in group), (path, names)
        for name in group:
            inner = f"{path}/{name}"
            link = group.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                status, _ = self.dump.data(inner)
                assert status == "BAD_FILE", (inner, status)
            elif isinstance(group[name], h5py.Group):
                self.group(inner, group[name])
            else:
                self.dataset(inner, group[name])
                self.attributes(inner, group[name])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dump", required=True, help="the h5_dump to test")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    comparison = Comparison(Dump(options.dump))
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seed, options.seed + options.count):
            path = pathlib.Path(folder) / "random.h5"
            how = random_file(random.Random(seed), path)
            status, _, text = comparison.dump.ask("open", str(path))
            try:
                assert status == "OK", (status, text)
                with h5py.File(path, "r") as file:
                    comparison.group("", file)
            except AssertionError as error:
                sys.exit(f"seed {seed} ({how}): {error}")
            if (seed - options.seed) % 100 == 99:
                print(f"{seed - options.seed + 1} files", file=sys.stderr)
    print(f"{options.count} files agree: {comparison.numbers} numbers, "
          f"{comparison.texts} texts; {comparison.refused} datasets that may "
          f"grow were refused")


if __name__ == "__main__":
    main()
