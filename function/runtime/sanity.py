"""Whether a model works at all: it runs, and gives numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warmup.failures import WarmupError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from function.runtime.engine import Engine


class WrongResultError(WarmupError):
    """An inference gave something else than it must; nothing that this replica makes is right."""


def attempt(role: str, engine: Engine, shape: tuple[int, ...]) -> None:
    """Run a model on zeros of a shape; see `finite`."""
    finite(role, engine.run(np.zeros(shape, np.float32)))


def finite(role: str, outputs: Sequence[NDArray[np.float32]]) -> None:
    """Check that the outputs of a model are numbers.

    Raises:
        WrongResultError: one of them is NaN or infinite.
    """
    if not all(np.isfinite(output).all() for output in outputs):
        raise WrongResultError(f"{role} gives values that are not finite")
