"""A graph for one item made one for any number, where that gives the same results.

Many published graphs were traced with a batch of one, which is written into the shapes of inputs
and outputs, and into constants of `Reshape` and `Resize`. All of these can be rewritten; whether
that was all that binds a graph to one item is proven by running it. See docs/models.md.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import helper, numpy_helper

from function.runtime import onnxfile
from function.weights import proof
from function.weights.change import SMALL, changed, kinds, loaded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    Shape = list[int | str | None]
    Shapes = defaultdict[str, Shape | None]

AXIS = "N"
"""The name of the axis that is free afterwards."""


def make(source: Path, out: Path) -> list[str]:
    """Write a graph that takes any number of items, if it gives what the source gives.

    Args:
        source: a graph for one item at a time.
        out: the file to write.

    Returns:
        What was rewritten, a sentence each.

    Raises:
        DamagedError: the source is no ONNX model.
        UnprovenError: it takes any number already, or cannot be made to.
        StoreError: the file cannot be written.
    """
    graph = onnxfile.read(source)
    if graph.items is None:
        raise proof.UnprovenError(f"{source}: it takes any number of items already")
    if graph.items != 1:
        raise proof.UnprovenError(f"{source}: it was made for {graph.items} items, not for one")
    model = loaded(graph)
    done = rewrite(model)
    with changed(model, graph, out, "batches of any size") as draft:
        try:
            proof.batched(graph, source, draft)
        except proof.UnprovenError as error:
            raise proof.UnprovenError(f"{source}: {error}; it is run item by item") from None
    return done


def rewrite(model: onnx.ModelProto) -> list[str]:
    """Free the first axis of all inputs and outputs, and what constants say about it.

    Returns:
        What was rewritten, a sentence each.
    """
    graph = model.graph
    done: list[str] = []
    shapes = _shapes(model)
    constants = _constants(graph)
    reached = {each.name for each in graph.input} - {each.name for each in graph.initializer}
    for node in list(graph.node):
        if not reached.intersection(node.input):
            continue  # made of weights alone, the same for any number of items
        reached.update(node.output)
        if node.op_type == "Reshape" and node.input[1] in constants:
            before = constants[node.input[1]]
            after = _rows(graph, node, before) or _first_free(before, shapes[node.output[0]])
            at, kind = 1, "int64"
        elif node.op_type == "Resize" and len(node.input) > 3 and node.input[3] in constants:
            before = constants[node.input[3]]
            after = _factors(before, shapes[node.input[0]])
            at, kind = 2, "float32"
        else:
            continue
        if after != before:
            done.append(f"{node.op_type} {node.name or node.output[0]}: {before} to {after}")
            name = f"{node.output[0]}_for_any_number"
            graph.initializer.append(numpy_helper.from_array(np.array(after, kind), name))
            node.input[at] = name
            del node.input[at + 1 :]
    for each in (*graph.input, *graph.output):
        done += [f"{each.name}: {AXIS} items"] if each.name in reached and _free(each) else []
    del graph.value_info[:]
    _declare(graph, _shapes(model))
    return done


def _shapes(model: onnx.ModelProto) -> Shapes:
    """The shapes of all values, as far as they are known."""
    shapes: Shapes = defaultdict(lambda: None)
    for name, kind in kinds(model).items():
        if kind.HasField("shape"):
            shapes[name] = [
                each.dim_value if each.HasField("dim_value") else each.dim_param or None
                for each in kind.shape.dim
            ]
    return shapes


def _constants(graph: onnx.GraphProto) -> dict[str, list[float]]:
    """The values of small constants, flat."""
    tensors = {each.name: each for each in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            tensors[node.output[0]] = node.attribute[0].t
    return {
        name: numpy_helper.to_array(each).ravel().tolist()
        for name, each in tensors.items()
        if each.ByteSize() <= SMALL
    }


def _first_free(shape: Sequence[float], result: Shape | None) -> list[float]:
    """The constant of a `Reshape` to [1, …], with the first axis free instead.

    Only one axis may be free: another one gets the length that it has for one item.
    """
    if shape[:1] != [1]:
        return [*shape]
    if -1 not in shape:
        return [-1, *shape[1:]]
    at = shape.index(-1)
    length = result[at] if result else None
    if not isinstance(length, int):
        return [0, *shape[1:]]  # as many as the input has
    return [-1, *shape[1:at], length, *shape[at + 1 :]]


def _rows(
    graph: onnx.GraphProto, node: onnx.NodeProto, shape: Sequence[float]
) -> list[float] | None:
    """The constant of a `Reshape` that lists the cells of a grid, for the grid of each item.

    Detectors are traced with cells first, [H, W, N, values], and then as rows without an axis for
    items, [-1, values]. With items first, the rows of one item are the same in the same order.
    """
    makers = [each for each in graph.node if node.input[0] in each.output]
    users = [each for each in graph.node if node.input[0] in each.input]
    if len(shape) != 2 or shape[0] != -1 or len(users) != 1 or not makers:
        return None
    perm = next((each for each in makers[0].attribute if each.name == "perm"), None)
    if makers[0].op_type != "Transpose" or perm is None or list(perm.ints) != [2, 3, 0, 1]:
        return None
    perm.ints[:] = [0, 2, 3, 1]
    return [0, *shape]


def _factors(sizes: Sequence[float], before: Shape | None) -> list[float]:
    """The factors with which a `Resize` gives these sizes; the sizes where that is not known."""
    known = [each for each in before or [] if isinstance(each, int)]
    if sizes[0] != 1 or len(known) != len(sizes):
        return [*sizes]
    return [to / size for to, size in zip(sizes, known, strict=True)]


def _free(value: onnx.ValueInfoProto) -> bool:
    """Free the first axis, where it is that of one item; a single number belongs to none."""
    dims = value.type.tensor_type.shape.dim
    if len(dims) < 2 or dims[0].dim_value != 1:
        return False
    dims[0].dim_param = AXIS
    return True


def _declare(graph: onnx.GraphProto, shapes: Shapes) -> None:
    """Give outputs that have more axes than before the shapes that they have."""
    for each in graph.output:
        kind, shape = each.type.tensor_type, shapes[each.name]
        if shape and len(shape) != len(kind.shape.dim):
            first: Shape = [AXIS, *shape[1:]]
            made = helper.make_tensor_value_info(each.name, kind.elem_type, first)
            each.CopyFrom(made)
