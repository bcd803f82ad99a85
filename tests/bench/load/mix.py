"""The two sets of models: the embedded one, and one in which batching has something to gain.

In the second one a branch of random weights stands beside the identity model. It reads all of them
for every batch, whatever its size, so that a batch of eight costs little more than one item. It
begins with the model's output and is added to it, scaled so that no bit changes: no optimiser can
leave it out, and every check of results holds.
"""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from function.process.wiring.service import embedded

FOLDER = Path("build/bench-load/models")
_WIDTHS = (128, 6144, 6144, 6144, 128)
_MODEL = "face_identity_128.onnx"


def batching(buckets: tuple[int, ...]) -> Path:
    """The manifest of the second set, with these batch sizes for its identity model."""
    folder, here = embedded().parent, FOLDER.absolute()
    here.mkdir(parents=True, exist_ok=True)
    data = (folder / _MODEL).read_bytes()
    heavy = here / _MODEL
    if not heavy.exists():
        heavy.write_bytes(_branched(data))
    text = embedded().read_text()
    for file in ("golden.png", "../samples/", "centerface", "face_mesh_468.onnx"):
        text = text.replace(f'"{file}', f'"{folder / file}' + "/" * file.endswith("/"))
    text = text.replace(f'family = "{folder}/', 'family = "')
    size, digest = heavy.stat().st_size, hashlib.sha256(heavy.read_bytes()).hexdigest()
    for old, new in (
        (rf"size = {len(data)}\b", f"size = {size}\nbuckets = {list(buckets)}"),
        (hashlib.sha256(data).hexdigest(), digest),
    ):
        text, times = re.subn(old, new, text)
        assert times == 1, f"{old} is not in {embedded()}"
    path = here / f"models-{buckets[-1]}.toml"
    path.write_text(text)
    return path


def _branched(data: bytes) -> bytes:
    """The identity model with the branch."""
    model, rng = onnx.load_from_string(data), np.random.default_rng(7)
    graph = model.graph
    output = graph.output[0].name
    for node in graph.node:
        node.output[:] = ["bare" if name == output else name for name in node.output]
        node.input[:] = ["bare" if name == output else name for name in node.input]
    at = "bare"
    for number, (inputs, outputs) in enumerate(pairwise(_WIDTHS)):
        weights = rng.standard_normal((inputs, outputs), np.float32) / np.float32(inputs**0.5)
        graph.initializer.append(numpy_helper.from_array(weights, f"branch.w{number}"))
        graph.node.append(
            helper.make_node("MatMul", [at, f"branch.w{number}"], [f"branch.{number}"])
        )
        graph.node.append(
            helper.make_node("Relu", [f"branch.{number}"], [at := f"branch.r{number}"])
        )
    scale = numpy_helper.from_array(np.array([1e-30], np.float32), "branch.scale")
    graph.initializer.append(scale)
    graph.node.append(helper.make_node("Mul", [at, "branch.scale"], ["branch.nothing"]))
    graph.node.append(helper.make_node("Add", ["bare", "branch.nothing"], [output]))
    onnx.checker.check_model(model)
    return model.SerializeToString()
