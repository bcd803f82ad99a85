"""The seam between face code and whatever executes a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


PROVIDERS = {"cuda": "CUDAExecutionProvider", "cpu": "CPUExecutionProvider"}
"""ONNX Runtime's names for what a model can run on."""


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
