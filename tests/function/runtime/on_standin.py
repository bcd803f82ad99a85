"""A proof of a plan where the driver is a stand-in; the functions give what a test looks at."""

from __future__ import annotations

import sys
from pathlib import Path

from function.runtime import proof
from warmup.plans.plan_key import Recipe, Sidecar, key_for


class Noting(proof.Proof):
    """Tells which process would run the plan, and what that has imported of NVIDIA's."""

    def run_plan(self, path, sidecar):
        libraries = sorted(each for each in sys.modules if each.startswith("tensorrt"))
        path.write_text(repr((libraries, proof.runner_of.__module__)))
        return 1.5


class Ending(proof.Proof):
    """The plan ends the process, as a library may that is used wrongly."""

    def run_plan(self, path, sidecar):
        import os

        os._exit(9)


def sidecar(sm):
    key = key_for("a" * 64, (), Recipe(), runtime="tensorrt_rtx", version="1.7", gpu=None, sm=sm)
    return Sidecar(key, 1, "b" * 64, "1.7")


def proven(kind, sm, path):
    """What the proof of a plan for a compute capability gives, with a builder in this process."""
    sys.modules["tensorrt"] = sys  # whatever builds
    made = {"noting": Noting, "ending": Ending}[kind]("swap", Path("model.onnx"), [], "fp32")
    try:
        found = made.plan(Path(path), sidecar(sm))
    except proof.WrongResultError as error:
        return str(error)
    return [found, Path(path).read_text() if Path(path).exists() else ""]
