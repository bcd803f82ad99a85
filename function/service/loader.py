"""Loading an engine: opened, checked, tuned, and shared by many threads through a batcher."""

from __future__ import annotations

import logging
import threading
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from function.faces import families
from function.runtime.engine import PROVIDERS
from function.runtime.gpu.device_health import GuardedEngine

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.runtime.backends.fallback import SkippedBackend
    from function.runtime.engine import Engine
    from function.runtime.gpu.device_health import DeviceHealth
    from function.runtime.scheduling.permits import ComputePermits
    from function.service.engine_config import EngineConfig
    from warmup.models.manifest import Model
    from warmup.timeline import Timeline

log = logging.getLogger("ember.engines")

_LOOPS = "its graph was made for so many items, so that larger batches run in parts"


class EngineLoader:
    """Makes the engines of a replica, in any thread.

    Args:
        config: how models become engines.
        permits: to compute.
        timeline: gets the spans of loading, checking and tuning.
        device_health: learns when the GPU is lost.
    """

    def __init__(
        self,
        config: EngineConfig,
        permits: ComputePermits,
        timeline: Timeline,
        device_health: DeviceHealth,
    ) -> None:
        self.config, self._permits = config, permits
        self._timeline, self._device_health = timeline, device_health
        self._tuning = threading.Lock()  # two measurements at once would measure each other

    def load(
        self,
        model: Model,
        backends: tuple[str, ...],
        skipped: Callable[[SkippedBackend], None],
    ) -> Engine:
        """Load a model, check it, and let many threads share it.

        Args:
            model: its file is here.
            backends: what it may run on; empty for all that the operator named.
            skipped: called with each backend that does not run it.
        """
        config = self.config
        open_engine = partial(
            config.open,
            model,
            backends=backends or config.backends,
            allow_degraded=config.allow_degraded,
            store=config.store,
            gpu=config.gpu,
            skipped=skipped,
        )
        with self._timeline.span(f"load {model.role}"):
            engine = open_engine()
        if engine.provider != PROVIDERS["cpu"]:
            engine = GuardedEngine(engine, self._device_health)
        if model.golden:
            from function.runtime import sanity

            with self._timeline.span(f"check {model.role}"):
                sanity.known(model.file.name, engine, model.golden)
        return self._shared(model, engine, open_engine)

    def _shared(self, model: Model, engine: Engine, open_engine: Callable[..., Engine]) -> Engine:
        """The engine as many threads share it."""
        from function.runtime.scheduling.batcher import Batcher
        from function.runtime.scheduling.buckets import Buckets

        on_cpu = engine.provider == PROVIDERS["cpu"]
        runs: int | None = getattr(engine, "width", 1)  # of several GPUs each runs one batch
        if engine.items is not None:
            buckets = Buckets((engine.items,), pads=True)
            if families.buckets(model)[-1] > engine.items:
                log.info(_LOOPS, extra={"role": model.role, "items": engine.items})
        else:
            buckets = Buckets(families.buckets(model), pads=not on_cpu)
        if on_cpu and buckets.largest > 1 and engine.items is None:
            engine, runs, size = self._tuned(model, engine, open_engine)
            buckets = buckets.up_to(size)
        if on_cpu and buckets.largest == 1:  # nothing to share: whoever may compute, runs
            runs = None
        return Batcher(
            model.role,
            engine,
            self._permits,
            runs=runs,
            buckets=buckets,
            window=self.config.window,
        )

    def _tuned(
        self, model: Model, engine: Engine, open_engine: Callable[..., Engine]
    ) -> tuple[Engine, int, int]:
        """The engine that uses the CPUs best, how many batches at once, and of which size."""
        from function.runtime.scheduling import tuning

        store, cpus, sizes = self.config.store, self._permits.total, families.buckets(model)
        if not self.config.tune or store is None:
            return engine, cpus, sizes[-1]
        kept = tuning.TuningFile.of(store, model.file.sha256, cpus, sizes)
        wide = partial(open_engine, threads=cpus)
        if plan := kept.load():
            return engine if plan.threads == 1 else wide(), plan.runs, plan.size
        items = families.family_of(model).items
        with self._tuning, self._timeline.span(f"tune {model.role}"):
            plan, engine = tuning.measure(engine, wide, items, sizes, cpus=cpus)
        log.info("tuned", extra={"role": model.role} | asdict(plan))
        kept.save(plan)
        return engine, plan.runs, plan.size
