"""How the GPUs of a replica are used: which, how many, and what for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from function.runtime.backends.cuda import Cuda
from function.runtime.gpu.replicated import ReplicatedEngine
from warmup.plans.plan_key import Recipe

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.runtime.engine import Engine
    from warmup.plans.stored import Plans


@dataclass(frozen=True, slots=True)
class GpuOptions:
    """The operator's choices.

    Attributes:
        required: whether nothing of any model may run on the CPU.
        count: how many GPUs are used, of those that this process can see; each has an engine of
            its own for each model.
        onnx: how ONNX Runtime uses one.
        plans: where plans are found; None for nowhere.
        recipe: how they were made.
    """

    required: bool = False
    count: int = 1
    onnx: Cuda = field(default_factory=Cuda)
    plans: Plans | None = None
    recipe: Recipe = field(default_factory=Recipe)

    def cuda(self, device: int) -> Cuda:
        """How ONNX Runtime uses the GPU of this number."""
        return replace(self.onnx, device=device, alone=self.required)

    def spread(self, open_on: Callable[[int], Engine]) -> Engine:
        """A model on every GPU that is used.

        Args:
            open_on: opens it on the GPU of that number.
        """
        if self.count == 1:
            return open_on(0)
        return ReplicatedEngine([open_on(device) for device in range(self.count)])
