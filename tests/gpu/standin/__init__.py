"""Runs a function where NVIDIA's driver is a stand-in, in a process of its own.

The stand-in (`cuda.c`, `nvml.c`) is built by the system's compiler when a test asks for it first.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

HERE = Path(__file__).parent
LIBRARIES = {"cuda.c": "libcuda.so.1", "nvml.c": "libnvidia-ml.so.1"}
_TAKEN = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "STANDIN_CARDS", "STANDIN_MIG")


@cache
def folder() -> TemporaryDirectory[str]:
    """The folder of the libraries; the test is skipped where they cannot be built."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        reason = "the stand-in for NVIDIA's driver needs Linux and cc: apt-get install gcc"
        if os.environ.get("EMBER_TEST_STRICT") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    made = TemporaryDirectory(prefix="ember-standin-")
    for source, name in LIBRARIES.items():
        words = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{name}"]
        target = Path(made.name, name)
        subprocess.run([compiler, *words, "-o", target, HERE / source, "-lpthread"], check=True)
    return made


def run(function, *arguments, **environ):
    """What a function gives that is called where the driver is the stand-in.

    Args:
        function: of a module; it and what it imports are imported there.
        arguments: for it, that JSON can tell.
        environ: more variables of the environment.
    """
    code = (
        f"import json, sys; from {function.__module__} import {function.__name__} as function\n"
        "print(json.dumps(function(*json.loads(sys.argv[1]))))"
    )
    inherited = {name: text for name, text in os.environ.items() if name not in _TAKEN}
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(arguments)],
        env=inherited | {"LD_LIBRARY_PATH": folder().name} | environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
