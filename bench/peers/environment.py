# SPDX-License-Identifier: Apache-2.0
"""The peers' packages: a virtual environment for what Python drives and one
for each oneDNN, whose libraries would get into each other's way; and a library
of onednn_side.c for each oneDNN."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
KINDS = {"python": "requirements.txt", "onednn": "requirements-onednn.txt",
         "onednn-gomp": "requirements-onednn-gomp.txt"}


def make(folder):
    """The environments below `folder`, at the versions that are pinned."""
    for kind, requirements in KINDS.items():
        where = folder / kind
        print(f"bench/peers: {where}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", where], check=True)
        subprocess.run([where / "bin/python", "-m", "pip", "install",
                        "--quiet", "--requirement", HERE / requirements],
                       check=True)


def python(folder):
    """The interpreter that has the peers, or None."""
    path = folder / "python/bin/python"
    return path if path.exists() else None


def onednn_prefixes(folder, more=()):
    """Where a oneDNN may be: the system's, those of the environment, others
    that the user names."""
    return [pathlib.Path("/usr"), folder / "onednn", folder / "onednn-gomp",
            *map(pathlib.Path, more)]


def build_onednn(prefix, number, build, work):
    """A library of onednn_side.c and the oneDNN below `prefix`; None without
    one, RuntimeError with the compiler's words."""
    if not (prefix / "include/oneapi/dnnl/dnnl.h").exists():
        return None
    library = work / f"onednn{number}.so"
    if prefix == pathlib.Path("/usr"):
        where = []
    else:
        where = [f"-I{prefix}/include", f"-L{prefix}/lib",
                 f"-Wl,-rpath-link,{prefix}/lib"]
    done = subprocess.run(
        [*os.environ.get("CC", "cc").split(), "-O2", "-shared", "-fPIC",
         "-fopenmp", "-DHAVE_CONFIG_H", f"-I{build}", f"-I{TOP}",
         f"-I{TOP}/include", *where, TOP / "bench/onednn_side.c", "-o",
         library, "-ldnnl"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return library


def onednn_variables(prefix):
    """What a process needs to load the oneDNN below `prefix`."""
    if prefix == pathlib.Path("/usr"):
        return {}
    variables = {"LD_LIBRARY_PATH": f"{prefix}/lib", "ONEDNN_VERBOSE": "0"}
    driver = prefix / "lib/libintelocl.so"
    if driver.exists():  # SYCL's CPU is found as an OpenCL device
        variables["OCL_ICD_FILENAMES"] = str(driver)
    return variables


def is_sycl(prefix):
    """Whether its threads are oneTBB's, which follow the process's affinity
    and nothing else."""
    return (prefix / "lib/libintelocl.so").exists()
