"""The full-size set: the embedded models, each with a branch of random weights beside it.

The branch is a chain of 3×3 convolutions, as most weights of face models are. It begins with the
mean of the model's first output and is added to that output, scaled so that no bit changes: no
optimiser can leave it out, and every check of results holds.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from function.process.wiring.service import embedded

MEGABYTES = {"centerface": 17, "face_identity_128": 174, "face_mesh_468": 554}
FOLDER = Path("build/bench-cold/models")
_CHANNELS = 1024
_LAYER = 9 * _CHANNELS * _CHANNELS * 4
_SIDE = 2


def manifest() -> Path:
    """The manifest of the full-size set, made when it is not there yet."""
    path = FOLDER.absolute() / "models.toml"
    if path.exists():
        return path
    FOLDER.mkdir(parents=True, exist_ok=True)
    folder = embedded().parent
    text = embedded().read_text()
    for file in ("golden.png", "../samples/"):
        text = text.replace(f'"{file}', f'"{folder / file}' + "/" * file.endswith("/"))
    for name, megabytes in MEGABYTES.items():
        data = (folder / f"{name}.onnx").read_bytes()
        heavy = _loaded(data, megabytes * 10**6 - len(data))
        (path.parent / f"{name}.onnx").write_bytes(heavy)
        for old, new in (
            (str(len(data)), str(len(heavy))),
            (hashlib.sha256(data).hexdigest(), hashlib.sha256(heavy).hexdigest()),
        ):
            text, times = re.subn(rf"\b{old}\b", new, text)
            assert times == 1, f"{name}: {old} is not in {embedded()}"
    path.write_text(text)
    return path


def _loaded(data: bytes, more: int) -> bytes:
    """A model with about `more` bytes of weights more."""
    model = onnx.load_from_string(data)
    graph, rng = model.graph, np.random.default_rng(7)
    output = graph.output[0].name
    for node in graph.node:
        node.output[:] = ["bare" if name == output else name for name in node.output]
        node.input[:] = ["bare" if name == output else name for name in node.input]

    def constant(name: str, value: np.ndarray) -> str:
        graph.initializer.append(numpy_helper.from_array(value, f"ballast.{name}"))
        return f"ballast.{name}"

    def then(kind: str, *inputs: str, **attributes: object) -> str:
        name = f"ballast.{len(graph.node)}"
        graph.node.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    shape = constant("shape", np.array([1, _CHANNELS, _SIDE, _SIDE], np.int64))
    flat = then("Reshape", "bare", constant("flat", np.array([-1], np.int64)))
    here = then("Expand", then("ReduceMean", flat, keepdims=1), shape)
    full, rest = divmod(more, _LAYER)
    for number, channels in enumerate([_CHANNELS] * full + [rest * _CHANNELS // _LAYER]):
        weights = rng.standard_normal((channels, _CHANNELS, 3, 3), np.float32)
        weights /= np.float32((9 * _CHANNELS) ** 0.5)
        here = then("Relu", then("Conv", here, constant(f"w{number}", weights), pads=[1] * 4))
    mean = then("ReduceMean", then("Reshape", here, "ballast.flat"), keepdims=1)
    nothing = then("Mul", mean, constant("scale", np.array([1e-30], np.float32)))
    graph.node.append(helper.make_node("Add", ["bare", nothing], [output], "ballast"))
    assert graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT
    onnx.checker.check_model(model)
    return model.SerializeToString()
