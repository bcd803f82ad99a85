"""A graph with weights and arithmetic in float16, where that gives nearly the same results.

It is half as large, and faster on GPUs; on CPUs it is slower, as they compute in float32.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from onnxruntime.transformers import float16

from function.runtime import onnxfile
from function.weights import proof
from function.weights.change import changed, loaded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

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
        keep: operators that stay in float32, beside those that have to.
        outside: whether inputs and outputs become float16 as well.

    Returns:
        The least cosine that was found.

    Raises:
        DamagedError: the source is no ONNX model.
        UnprovenError: it is not in float32, or the outputs are too unlike or not finite.
        StoreError: the file cannot be written.
    """
    graph = onnxfile.read(source)
    if graph.precision != "float32":
        raise proof.UnprovenError(f"{source}: its weights are {graph.precision}, not float32")
    known = {each.name: value for each, value in zip(graph.inputs, inputs, strict=bool(inputs))}
    blocked = [*float16.DEFAULT_OP_BLOCK_LIST, *keep]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of values that are rounded; the outputs count
        model = float16.convert_float_to_float16(
            loaded(graph), keep_io_types=not outside, op_block_list=blocked
        )
    with changed(model, graph, out, "float16") as draft:
        try:
            found = proof.alike(graph, source, draft, known or proof.feed(graph, 1))
        except proof.UnprovenError as error:
            raise proof.UnprovenError(f"{source}: in float16 {error}; {_ADVICE}") from None
        if not found >= least:
            said = f"in float16 its outputs are like those in float32 to {found:.5f} (cosine)"
            raise proof.UnprovenError(f"{source}: {said}, not to {least:g}; {_ADVICE}")
    return found


_ADVICE = "--keep can leave operators in float32, e.g. ReduceMean"


def read_inputs(paths: Sequence[Path]) -> list[NDArray[Any]]:
    """Arrays from `.npy` files; nothing in them is ever executed."""
    return [np.load(path, allow_pickle=False) for path in paths]
