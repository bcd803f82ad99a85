"""Whether a graph that was made from another gives what that one gives: both run, on the CPU."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from function.runtime import onnxfile
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.cpus import usable_cpus
from function.runtime.sanity import cosine
from warmup.failures import WarmupError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from function.runtime.onnxfile import Graph, GraphValue

    Feed = Mapping[str, NDArray[Any]]

SIZES = (2, 3)
"""Batches that are compared with single runs."""

_FREE = 64  # for an axis that may have any length; what networks halve several times
_TOLERANCE = 1e-4  # of the largest value: sums are added up in another order


class UnprovenError(WarmupError):
    """A graph that was made from another is not as good; it is not kept."""

    exit_code = 65


def feed(graph: Graph, items: int, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Random inputs: values from 0 to 1 for images, normal ones of length 1 for embeddings.

    An input that is a single number belongs to no item.
    """
    rng = np.random.default_rng(seed)
    return {each.name: _random(rng, each, items) for each in graph.inputs}


def batched(graph: Graph, single: Path, batch: Path) -> None:
    """Check that a batch of n gives what n runs of one item give.

    Args:
        graph: what the files take.
        single: the graph for one item.
        batch: the graph for any number.

    Raises:
        UnprovenError: it does not, or cannot run.
    """
    one, many = _engine(single), _engine(batch)
    for size in SIZES:
        inputs = feed(graph, size, seed=size)
        try:
            together = many.run(*inputs.values())
        except Exception as error:
            raise UnprovenError(f"a batch of {size} cannot be run: {_message(error)}") from None
        for n in range(size):
            alone = one.run(
                *(rows[n : n + 1] if rows.ndim > 1 else rows for rows in inputs.values())
            )
            for output, ours, right in zip(graph.outputs, together, alone, strict=True):
                _same(output.name, size, ours, right, n)


def alike(graph: Graph, right: Path, other: Path, inputs: Feed) -> dict[str, float]:
    """How alike the outputs of two graphs are for the same inputs.

    Both run as they are written: optimising takes casts away that round.

    Returns:
        The cosine for each output; NaN for one that is not finite.

    Raises:
        UnprovenError: one of the graphs cannot be loaded, or run with these inputs.
    """
    runs = []
    for path in (right, other):
        kinds = {each.name: each.kind for each in onnxfile.read(path).inputs}
        arrays = (array.astype(kinds[name]) for name, array in inputs.items())
        engine = _engine(path, optimise=False)
        try:
            runs.append(engine.run(*arrays))
        except Exception as error:
            raise UnprovenError(f"{path.name} cannot be run: {_message(error)}") from None
    names = (each.name for each in graph.outputs)
    return dict(zip(names, map(_likeness, *runs), strict=True))


def _likeness(right: NDArray[Any], other: NDArray[Any]) -> float:
    if not np.isfinite(other).all():
        return math.nan
    if not right.any() and not other.any():
        return 1.0
    return cosine(np.asarray(other, np.float32), np.asarray(right, np.float32))


def _engine(path: Path, *, optimise: bool = True) -> OnnxEngine:
    try:
        return OnnxEngine(path, usable_cpus(), optimise=optimise)
    except Exception as error:
        raise UnprovenError(f"{path.name} cannot be loaded: {_message(error)}") from None


def _message(error: Exception) -> str:
    """The runtime's message as one line."""
    return " ".join(str(error).split())


def _same(name: str, size: int, ours: NDArray[Any], right: NDArray[Any], n: int) -> None:
    said = f"a batch of {size} gives other results than {size} runs of one item"
    if len(ours) != size:
        raise UnprovenError(f"{said}: {name} has {len(ours)} rows")
    one = ours[n].astype(np.float64).ravel()
    other = right.astype(np.float64).ravel()
    if one.size != other.size:
        raise UnprovenError(f"{said}: {name} has {one.size} values for each, not {other.size}")
    most = float(np.abs(one - other).max(initial=0))
    scale = float(np.abs(other).max(initial=0))
    if not most <= _TOLERANCE * max(scale, _TOLERANCE):
        raise UnprovenError(f"{said}: {name} differs by {most:.2g} of {scale:.2g}")


def _random(rng: np.random.Generator, value: GraphValue, items: int) -> NDArray[Any]:
    shape = [side if isinstance(side, int) else _FREE for side in value.item]
    if not shape:
        return rng.random(1).astype(value.kind)
    if len(shape) == 1:
        rows = rng.standard_normal((items, *shape))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    else:
        rows = rng.random((items, *shape))
    return rows.astype(value.kind)
