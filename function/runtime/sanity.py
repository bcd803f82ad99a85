"""Whether a model works at all: it runs, gives numbers, and for a known input what it must give."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from warmup.failures import ManifestError, WarmupError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from function.runtime.engine import Engine
    from warmup.models.manifest import GoldenEntry


class WrongResultError(WarmupError):
    """An inference gave something else than it must; nothing that this replica makes is right."""


def attempt(role: str, engine: Engine, shapes: Sequence[tuple[int, ...]]) -> None:
    """Run a model on zeros, of one shape for each input; what comes out has to be finite."""
    finite(role, engine.run(*(np.zeros(shape, np.float32) for shape in shapes)))


def finite(name: str, outputs: Sequence[NDArray[np.float32]]) -> None:
    """Check that the outputs of a model are numbers.

    Raises:
        WrongResultError: one of them is NaN or infinite.
    """
    if not all(map(_finite, outputs)):
        raise WrongResultError(f"{name} gives values that are not finite")


def known(name: str, engine: Engine, golden: GoldenEntry) -> None:
    """Run a model on its golden input and compare its first output with the golden one.

    Args:
        name: of the model, for messages.
        engine: the model.
        golden: arrays of numbers, of the shapes that the model takes and gives.

    Raises:
        ManifestError: a file holds no such array.
        WrongResultError: the output has another shape, is not finite, or is too unlike.
    """
    right = _array(golden.output)
    outputs = engine.run(_array(golden.input))
    finite(f"{name}: golden check: it", outputs)
    found = outputs[0]
    if found.shape != right.shape:
        raise WrongResultError(
            f"{name}: golden check: expected an output of shape {right.shape}, got {found.shape}"
        )
    likeness = cosine(found, right)
    if not likeness >= golden.min_cosine:
        raise WrongResultError(
            f"{name}: golden check: expected an output that is like the right one to"
            f" {golden.min_cosine:g} (cosine) at least, got {likeness:.4f}"
        )


def _finite(output: NDArray[np.float32]) -> bool:
    """Whether all are numbers; a sum shows that at once, unless it is too large for its type."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(output.sum()) or np.isfinite(output).all())


def _array(path: Path) -> NDArray[np.float32]:
    """A `.npy` file as float32; nothing in it is ever executed."""
    try:
        return np.asarray(np.load(path, allow_pickle=False), np.float32)
    except (OSError, EOFError, ValueError, TypeError) as error:
        raise ManifestError(f"{path}: is no array of numbers: {error}") from error


def cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """How alike two arrays of one shape are, from -1 to 1; NaN when one of them is zero."""
    a, b = (array.astype(np.float64).ravel() for array in (one, other))
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths else math.nan
