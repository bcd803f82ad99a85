"""Small ONNX graphs, made on the spot: for tests and benchmarks of what runs between models."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def dense(path: Path, *sizes: int, batch: int | str = "N", seed: int = 0) -> Path:
    """Layers of a matrix product and a ReLU: float32 [batch, sizes[0]] to [batch, sizes[-1]].

    Such a graph reads all of its weights for each batch, whatever its size, which is what makes
    batching pay. Weights are -1, 0 or 1, so that small whole numbers give exact sums, in whatever
    order they are added up.
    """
    rng = np.random.default_rng(seed)
    nodes, weights, at = [], [], "x"
    for n, (inputs, outputs) in enumerate(pairwise(sizes)):
        matrix = rng.integers(-1, 2, (inputs, outputs)).astype(np.float32)
        weights.append(numpy_helper.from_array(matrix, f"w{n}"))
        nodes.append(helper.make_node("MatMul", [at, f"w{n}"], [f"m{n}"]))
        nodes.append(helper.make_node("Relu", [f"m{n}"], [at := f"r{n}"]))
    graph = helper.make_graph(
        nodes,
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, sizes[0]])],
        [helper.make_tensor_value_info(at, TensorProto.FLOAT, [batch, sizes[-1]])],
        weights,
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path


def rows(count: int, width: int, seed: int = 0) -> NDArray[np.float32]:
    """Random whole numbers from 0 to 3 as float32 [count, width]."""
    return np.random.default_rng(seed).integers(0, 4, (count, width)).astype(np.float32)


def joined(path: Path, width: int, batch: int | str = "N") -> Path:
    """A model of two inputs, whose outputs are `left * right` and `left - right`.

    Args:
        path: where to write it.
        width: values in a row.
        batch: the first axis, a number or a name.
    """
    shape = [batch, width]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("left", "right")
    ]
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("mul", "sub")
    ]
    nodes = [
        helper.make_node("Mul", ["left", "right"], ["mul"]),
        helper.make_node("Sub", ["left", "right"], ["sub"]),
    ]
    graph = helper.make_graph(nodes, "joined", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)
    return path


def typed(path: Path, dtype: int) -> Path:
    """A model that gives back what it gets: [N, 4], of a type of `TensorProto`."""
    ends = [helper.make_tensor_value_info(name, dtype, ["N", 4]) for name in ("x", "y")]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])], "typed", ends[:1], ends[1:]
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path


def convolved(path: Path, size: int = 16, seed: int = 0) -> Path:
    """Two convolutions, a pool and a product: float32 [N, 3, size, size] to [N, 8]."""
    rng = np.random.default_rng(seed)

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        scale = float(np.prod(shape[1:])) ** -0.5
        return numpy_helper.from_array(rng.normal(0, scale, shape).astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c0"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("Conv", ["r0", "w1"], ["c1"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("GlobalAveragePool", ["r1"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "w2"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "convolved",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, size, size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 8])],
        [weights("w0", 16, 3, 3, 3), weights("w1", 32, 16, 3, 3), weights("w2", 32, 8)],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path


def swapping(path: Path, side: int, formula: str, *, shift: float = 0.0) -> Path:
    """A swapper of a simple formula, whose results one can foresee.

    Args:
        path: where to write it.
        side: of its images.
        formula: "invert": `shift` less the target; "same": the target; "tell": every value is the
            first number of what it is told about the source.
        shift: see `formula`.
    """
    inputs = [
        helper.make_tensor_value_info("target", TensorProto.FLOAT, ["N", 3, side, side]),
        helper.make_tensor_value_info("source", TensorProto.FLOAT, ["N", 512]),
    ]
    outputs = [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["N", 3, side, side])]
    weights = [
        numpy_helper.from_array(np.float32([shift]), "shift"),
        numpy_helper.from_array(np.float32([0]), "zero"),
        numpy_helper.from_array(np.int64([0]), "from"),
        numpy_helper.from_array(np.int64([1]), "to"),
        numpy_helper.from_array(np.int64([2, 3]), "last"),
        numpy_helper.from_array(np.int64([1]), "one"),
        numpy_helper.from_array(np.eye(512, dtype=np.float32)[::-1].copy(), "emap"),
    ]
    nodes = [
        helper.make_node("Slice", ["source", "from", "to", "one"], ["first"]),
        helper.make_node("Unsqueeze", ["first", "last"], ["told"]),
        helper.make_node("Mul", ["target", "zero"], ["black"]),
        helper.make_node("Mul", ["told", "zero"], ["nothing"]),
    ]
    nodes += {
        "invert": [
            helper.make_node("Sub", ["shift", "target"], ["inverted"]),
            helper.make_node("Add", ["inverted", "nothing"], ["output"]),
        ],
        "same": [helper.make_node("Add", ["target", "nothing"], ["output"])],
        "tell": [helper.make_node("Add", ["black", "told"], ["output"])],
    }[formula]
    graph = helper.make_graph(nodes, formula, inputs, outputs, weights)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path
