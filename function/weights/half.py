"""A graph with weights and arithmetic in float16, where that gives nearly the same results.

It is half as large, and faster on GPUs; on CPUs it is slower, as they compute in float32.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.transformers import float16
from onnxruntime.transformers.onnx_model import OnnxModel

from function.runtime import onnxfile
from function.weights import proof
from function.weights.change import changed, kinds, loaded
from warmup.failures import DamagedError
from warmup.plans.precision import exact

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_ADVICE = "--keep can leave operators in float32, e.g. ReduceMean"
_HALF, _WHOLE = TensorProto.FLOAT16, TensorProto.FLOAT

LEAST = 0.999
"""How alike outputs must be (cosine), unless something else is wanted."""


def make(
    source: Path,
    out: Path,
    *,
    inputs: Sequence[NDArray[Any]] = (),
    least: float = LEAST,
    keep: Sequence[str] = (),
    outside: bool = False,
) -> float:
    """Write a graph in float16, if it gives nearly what the source gives.

    Args:
        source: a graph in float32.
        out: the file to write.
        inputs: known ones, for each input of the graph; random ones if there are none.
        least: the cosine that outputs must have with those of the source.
        keep: operators that stay in float32, besides those that have to.
        outside: whether inputs and outputs become float16 as well.

    Returns:
        The least cosine that was found.

    Raises:
        DamagedError: the source is no ONNX model, or takes another number of inputs.
        UnprovenError: it is not in float32, or the outputs are too unlike or not finite.
        StoreError: the file cannot be written.
    """
    graph = onnxfile.read(source)
    if graph.precision != "float32":
        raise proof.UnprovenError(f"{source}: its weights are {graph.precision}, not float32")
    names = [each.name for each in graph.inputs]
    if inputs and len(inputs) != len(names):
        raise DamagedError(
            f"{source}: it takes the inputs {', '.join(names)}; {len(inputs)} were given"
        )
    known = dict(zip(names, inputs, strict=False))
    blocked = [*float16.DEFAULT_OP_BLOCK_LIST, *keep]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of values that are rounded; the outputs count
        model = loaded(graph)
        model = float16.convert_float_to_float16(
            model, keep_io_types=not outside, op_block_list=blocked, node_block_list=exact(model)
        )
    _join(model.graph)
    OnnxModel(model).topological_sort()  # casts were put last
    with changed(model, graph, out, "float16") as draft:
        trial = draft.with_name("rounded.onnx")
        onnx.save(rounded(model), trial)
        try:
            found = proof.alike(graph, source, trial, known or proof.feed(graph, 1))
        except proof.UnprovenError as error:
            raise proof.UnprovenError(f"{source}: {error}") from None
        for name, likeness in found.items():
            if not likeness >= least:
                said = f"is like that in float32 to {likeness:.5f} (cosine), not to {least:g}"
                if math.isnan(likeness):
                    said = "has values that are not finite"
                raise proof.UnprovenError(
                    f"{source}: in float16 its output {name} {said}; {_ADVICE}"
                )
    return min(found.values())


def rounded(model: onnx.ModelProto) -> onnx.ModelProto:
    """A graph in float32 that gives on a CPU what one in float16 gives on a GPU.

    On CPUs the runtime computes float16 in float32 and passes values on as they are. Here each is
    rounded on its way, by a cast there and one back.

    Args:
        model: in float16; it is changed.
    """
    graph = model.graph
    halves = {name for name, kind in kinds(model).items() if kind.elem_type == _HALF}
    for tensor in graph.initializer:
        _widen(tensor)
    for value in (*graph.input, *graph.output):
        if value.type.tensor_type.elem_type == _HALF:
            value.type.tensor_type.elem_type = _WHOLE
    nodes = []
    for node in graph.node:
        for attribute in node.attribute:
            _widen(attribute.t)
            if node.op_type == "Cast" and attribute.i == _HALF:
                attribute.i = _WHOLE
        nodes.append(node)
        for at, name in enumerate(node.output):
            if name in halves:
                node.output[at] = f"{name}_exact"
                for before, after, to in (("exact", "half", _HALF), ("half", "", _WHOLE)):
                    out = f"{name}_{after}" if after else name
                    nodes.append(helper.make_node("Cast", [f"{name}_{before}"], [out], to=to))
    del graph.node[:], graph.value_info[:]
    graph.node.extend(nodes)
    return model


def _join(graph: onnx.GraphProto) -> None:
    """Pass values of float32 from one operator that stays to the next, not through float16."""
    casts = {
        node.output[0]: (node.input[0], node.attribute[0].i)
        for node in graph.node
        if node.op_type == "Cast"
    }
    outputs = {each.name for each in graph.output}
    for node in graph.node:
        for at, name in enumerate(node.input):
            half, to = casts.get(name, ("", 0))
            whole, first = casts.get(half, ("", 0))
            if (first, to) == (_HALF, _WHOLE):
                node.input[at] = whole
    used = {name for node in graph.node for name in node.input} | outputs
    while unused := [each for each in graph.node if not used.intersection(each.output)]:
        for node in unused:
            graph.node.remove(node)
        used = {name for node in graph.node for name in node.input} | outputs


def _widen(tensor: onnx.TensorProto) -> None:
    """Make an array of halves one of float32, with the same values."""
    if tensor.data_type == _HALF:
        values = numpy_helper.to_array(tensor).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def read_inputs(paths: Sequence[Path]) -> list[NDArray[Any]]:
    """Arrays from `.npy` files; nothing in them is ever executed.

    Raises:
        DamagedError: a file is none.
    """
    arrays = []
    for path in paths:
        try:
            arrays.append(np.asarray(np.load(path, allow_pickle=False)))
        except (OSError, EOFError, ValueError) as error:
            raise DamagedError(f"{path}: is no array of numbers: {error}") from error
    return arrays
