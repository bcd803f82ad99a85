"""The seam between face code and whatever executes a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from warmup.failures import WarmupError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray


PROVIDERS = {
    "tensorrt": "TensorRT",
    "cuda": "CUDAExecutionProvider",
    "cpu": "CPUExecutionProvider",
}
"""What executes a model on each backend, as `Engine.provider` and `/readyz` name it."""


class NotOnDeviceError(WarmupError):
    """A model cannot run on what was wanted, or must not run on what is left."""

    exit_code = 69


@dataclass(frozen=True, slots=True)
class Ports:
    """How the arrays of `Engine.run` become the inputs of a graph, and its outputs arrays of items.

    Attributes:
        inputs: names of the inputs that get an array each, in the order in which `run` gets them;
            empty for the order of the graph.
        constants: numbers that belong to no item, by the name of the input, of one value, that gets
            them in each run; a graph without such an input does without.
        rank: the least number of axes of an output; one with fewer has no axis for items, because
            the graph was made for a single one, and gets it.
    """

    inputs: tuple[str, ...] = ()
    constants: Mapping[str, float] = field(default_factory=dict)
    rank: int = 0


class Engine(Protocol):
    """The executable form of one model on one device."""

    def run(self, *inputs: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """Run the model once.

        Args:
            inputs: an array for each input, in the order of the family, first axis = items.

        Returns:
            The outputs in the order of the graph, first axis = items. Safe to call from several
            threads at once.
        """
        ...

    @property
    def provider(self) -> str:
        """What really executes the model, e.g. "CPUExecutionProvider", read from the session."""
        ...

    @property
    def items(self) -> int | None:
        """How many items it takes at once; None for any number."""
        ...
