"""How models become engines, as the operator wants it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from function.runtime.gpu.options import GpuOptions
from function.service import opening

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from function.runtime.engine import Engine
    from warmup.models.manifest import Model
    from warmup.models.progress import FetchProgress

    Fetch = Callable[[Sequence[Model], Callable[[FetchProgress], None]], Sequence[Model]]
    """Fetches the files of models and returns these with their paths; it blocks, and reports."""


class PlanSource(Protocol):
    """Where plans come from."""

    def obtain(self, models: Sequence[Model]) -> Collection[str]:
        """Try to get the plans of some models; the roles that then have them. It blocks."""
        ...

    def close(self) -> None:
        """End what `obtain` has begun."""
        ...


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How models become engines.

    Attributes:
        preload: whether models are loaded at start; a model's own `preload` can only say no.
        backends: what they may run on, the most wanted first.
        allow_degraded: whether they may go from a GPU to the CPU.
        gpu: how GPUs are used.
        plans: where missing plans come from; None when none will.
        wait_s: how long a start waits until the GPU has room.
        store: where optimised graphs are kept; None for nowhere.
        fetch: None when every file is here.
        variant: the name of the variants that are loaded first, where models have them.
        window: for how many seconds a batch may wait for more items.
        tune: whether it is measured how batches use the CPUs best; needs a store.
        open: opens the engine of one model, as `opening.open_engine` does.
    """

    preload: bool = True
    backends: tuple[str, ...] = ("cpu",)
    allow_degraded: bool = False
    gpu: GpuOptions = field(default_factory=GpuOptions)
    plans: PlanSource | None = None
    wait_s: float = 0.0
    store: Path | None = None
    fetch: Fetch | None = None
    variant: str | None = None
    window: float = 0.025
    tune: bool = False
    open: Callable[..., Engine] = opening.open_engine
