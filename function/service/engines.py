"""The models of a replica on their way from a file to an engine."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from function.faces import models
from function.runtime.engine import PROVIDERS
from function.runtime.gpu import free_memory
from function.runtime.gpu.device_health import DeviceHealth, GuardedEngine
from function.runtime.gpu.options import GpuOptions
from function.runtime.lazy_engine import LazyEngine, LoadState
from warmup.failures import WarmupError
from warmup.models.manifest import narrowed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from function.runtime.backends.fallback import SkippedBackend
    from function.runtime.engine import Engine
    from function.runtime.scheduling.batcher import Batcher
    from function.runtime.scheduling.permits import ComputePermits
    from warmup.models.manifest import Model
    from warmup.models.progress import FetchProgress
    from warmup.timeline import Timeline

    Fetch = Callable[[Sequence[Model], Callable[[FetchProgress], None]], Sequence[Model]]
    """Gets the files of a manifest and tells where they are; it blocks, and reports meanwhile."""

    class PlanSource(Protocol):
        """Where plans come from."""

        def obtain(self, models: Sequence[Model]) -> Collection[str]:
            """Try to have the plans of some models; the roles whose plans are here. It blocks."""
            ...

        def close(self) -> None:
            """End what `obtain` has begun."""
            ...


log = logging.getLogger("ember.engines")

_LOOPS = "its graph was made for so many items, so that larger batches run in parts"


class NoPlanYetError(WarmupError):
    """A plan that may come has not come."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How engines are come by.

    Attributes:
        preload: whether models are loaded at start; a model's own `preload` can only say no.
        backends: what they may run on, the most wanted first.
        allow_degraded: whether they may go from a GPU to the CPU.
        gpu: how GPUs are used.
        plans: where plans come from that are missing; None when none will.
        wait_s: how long a start waits until the GPU has room.
        store: where optimised graphs are kept; None for nowhere.
        fetch: None when every file is here.
        variant: the name of the variants that are loaded first, where models have them.
        window: for how many seconds a batch may wait for more items; see `Batcher`.
        tune: whether it is measured how batches use the CPUs best; needs a store.
        open: loads one model; see `models.open_engine`.
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
    open: Callable[..., Engine] = models.open_engine


class Engines:
    """The engine of each role, each loaded once.

    Args:
        manifest: one model for each role.
        supply: how they are come by.
        timeline: gets a span for each loading.
        permits: to compute.

    Attributes:
        slots: by role; an upgrade gives new slots to the roles that it changes.
        device_health: whether the GPU is lost.
        on_passed: is told of each backend that does not run a model, in any thread.

    Raises:
        ManifestError: the manifest has not what is needed.
    """

    def __init__(
        self,
        manifest: Sequence[Model],
        supply: EngineConfig,
        timeline: Timeline,
        permits: ComputePermits,
    ) -> None:
        models.check(manifest)
        chosen = narrowed(manifest, supply.variant)
        self._full = [replace(model, variants=()) for model in chosen]
        self._models = {
            model.role: replace(model, file=(*model.variants, model.file)[0], variants=())
            for model in chosen
        }
        self._variants = frozenset(model.role for model in chosen if model.variants)
        self._supply = supply
        self._timeline = timeline
        self._permits = permits
        self._tuning = threading.Lock()  # two measurements at once would measure each other
        self._pool = ThreadPoolExecutor(len(manifest), "load")
        self._fetching: dict[str, FetchProgress] = {}
        self._fetch_job: Future[Sequence[Model]] | None = None
        self._obtaining: Future[Collection[str]] | None = None
        self._coming: dict[str, LazyEngine] = {}
        self._passed: dict[str, list[SkippedBackend]] = {}
        self.device_health = DeviceHealth()
        self.on_passed: Callable[[SkippedBackend], None] = lambda _: None
        self.slots = {
            role: LazyEngine(partial(self._open, role), self._pool) for role in self._models
        }

    @property
    def wants_gpu(self) -> bool:
        """Whether any model may run on a GPU."""
        return any(backend != "cpu" for backend in self._supply.backends)

    @property
    def upgrades(self) -> bool:
        """Whether there can ever be something to upgrade."""
        return bool(self._variants) or self._supply.plans is not None

    @property
    def lesser(self) -> frozenset[str]:
        """The roles whose models are variants, or wait for a plan; the best is still to come."""
        return self._variants | self._waiting

    @property
    def _waiting(self) -> frozenset[str]:
        """The roles that run on a lesser backend for want of a plan that may come."""
        if self._supply.plans is None:
            return frozenset()
        loaded = {role for role, slot in self.slots.items() if slot.loaded}
        return frozenset(each.role for each in self.passed if each.may_come and each.role in loaded)

    @property
    def fetches(self) -> bool:
        """Whether there may be something to fetch."""
        return self._supply.fetch is not None

    @property
    def cold(self) -> bool:
        """Whether one of them is not loaded."""
        return not all(slot.loaded for slot in self.slots.values())

    @property
    def busy(self) -> bool:
        """Whether a thread fetches or loads, be it for nobody."""
        fetches = self._fetch_job is not None and self._fetch_job.running()
        obtains = self._obtaining is not None and self._obtaining.running()
        slots = [*self.slots.values(), *self._coming.values()]
        return fetches or obtains or any(slot.state is LoadState.LOADING for slot in slots)

    @property
    def providers(self) -> dict[str, str]:
        """What really executes each model that is loaded."""
        return {role: slot.provider for role, slot in self.slots.items() if slot.loaded}

    @property
    def passed(self) -> list[SkippedBackend]:
        """The backends that do not run a model, as it was last loaded."""
        return [passed for each in list(self._passed.values()) for passed in each]

    @property
    def degraded(self) -> tuple[str, ...]:
        """The roles whose models run on something else than was wanted first."""
        wanted = PROVIDERS[self._supply.backends[0]]
        slots = self.slots.items()
        return tuple(role for role, slot in slots if slot.loaded and slot.provider != wanted)

    def stages(self) -> models.Models:
        """The models in their roles; heavy to import."""
        return models.build(list(self._models.values()), self.slots)

    def shapes(self, role: str) -> list[tuple[tuple[int, ...], ...]]:
        """The shapes of a model's inputs, for each batch that a warm-up has to run."""
        return models.shapes(self._models[role])

    @property
    def largest(self) -> int:
        """The most items that any batch may have."""
        return max(models.buckets(model)[-1] for model in self._full)

    def batcher(self, role: str) -> Batcher | None:
        """What runs a model, once it is loaded."""
        return cast("Batcher | None", self.slots[role].engine)

    def facts(self) -> dict[str, dict[str, Any]]:
        """How far each model is, as JSON knows it."""
        return {
            role: {
                "state": str(slot.state),
                "provider": slot.provider or None,
                "variant": self._supply.variant if role in self._variants else None,
                "passed_over": [
                    {"backend": each.backend, "reason": each.reason}
                    for each in self._passed.get(role, ())
                ],
                "fetch": self._fetching[role].facts() if role in self._fetching else None,
            }
            for role, slot in self.slots.items()
        }

    async def fetch(self) -> None:
        """Get the models' files; those of variants, where these are loaded first."""
        found = await self._fetch(list(self._models.values()))
        self._models = {model.role: model for model in found}

    async def load(self, *, whole: bool) -> None:
        """Load the models that are not loaded yet, at the same time.

        Args:
            whole: also those that may wait for the first request that needs them.

        Raises:
            Exception: what loading raised, of the first model that failed.
        """
        await self._have_room()
        early = {role for role, model in self._models.items() if model.preload}
        await self.need(self.slots if whole else early if self._supply.preload else ())

    async def _have_room(self) -> None:
        """Wait until the GPU has room for what is to be loaded."""
        missing = [self._models[role] for role, slot in self.slots.items() if not slot.loaded]
        if missing and self._supply.wait_s and self.wants_gpu:
            with self._timeline.span("wait for the GPU"):
                needed = free_memory.needed(missing)
                waiting = self._pool.submit(free_memory.wait, needed, self._supply.wait_s)
                await asyncio.wrap_future(waiting)

    async def need(self, roles: Iterable[str]) -> None:
        """Load the models of some roles, where they are not loaded; see `load`."""
        loads = (self.slots[role].load() for role in roles)
        for result in await asyncio.gather(*loads, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    async def upgrade(self, prove: Callable[[str, Engine], Awaitable[None]]) -> bool:
        """Replace what is less than it could be, when what replaces it has proved right.

        First all variants at once by the full models, then engines that wait for a plan by the
        plans that have come. A variant that nobody has loaded never will be: its role opens the
        full model instead.

        Args:
            prove: runs the model of a role; raises when it cannot be used, and what serves stays.

        Returns:
            Whether anything has changed.

        Raises:
            Exception: what fetching, loading or proving raised.
        """
        if self._variants:
            await self._replace_variants(prove)
            return True
        return await self._take_plans(prove)

    async def _replace_variants(self, prove: Callable[[str, Engine], Awaitable[None]]) -> None:
        full = {model.role: model for model in await self._fetch(self._full)}
        cold = {
            role
            for role in self._variants
            if self.slots[role].state in (LoadState.WAITING, LoadState.FAILED)
        }
        self._models |= {role: full[role] for role in cold}
        self._variants -= cold
        for role in self._variants:
            await self.slots[role].load()
        await self._replace({role: full[role] for role in self._variants}, prove)
        self._models, self._variants = full, frozenset()

    async def _take_plans(self, prove: Callable[[str, Engine], Awaitable[None]]) -> bool:
        waiting, source = self._waiting, self._supply.plans
        if not waiting or source is None:
            return False
        wanted = [self._models[role] for role in sorted(waiting)]
        self._obtaining = self._pool.submit(source.obtain, wanted)
        here = await asyncio.wrap_future(self._obtaining)
        ready = {model.role: model for model in wanted if model.role in here}
        await self._replace(ready, prove, backends=("tensorrt",))
        if not ready:
            raise NoPlanYetError(f"there are no plans yet for {', '.join(sorted(waiting))}")
        return True

    async def _replace(
        self,
        wanted: dict[str, Model],
        prove: Callable[[str, Engine], Awaitable[None]],
        backends: tuple[str, ...] = (),
    ) -> None:
        """Open some models beside what serves, and let them take over together."""
        passed = self._passed.copy()
        try:
            for role, model in wanted.items():
                open_engine = partial(self._opened, model, backends)
                self._coming[role] = slot = LazyEngine(open_engine, self._pool)
                await slot.load()
                await prove(role, slot)
            self.slots = self.slots | self._coming
        except BaseException:
            self._passed |= passed  # what served goes on, and for the reasons that it had
            raise
        finally:  # one that nobody waits for any more still keeps a thread busy
            loading = (item for item in self._coming.items() if item[1].state is LoadState.LOADING)
            self._coming = dict(loading)

    def close(self) -> None:
        """Load nothing more; what is being loaded is not waited for."""
        if self._supply.plans:
            self._supply.plans.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _fetch(self, wanted: Sequence[Model]) -> Sequence[Model]:
        if self._supply.fetch is None:
            return wanted
        self._fetch_job = self._pool.submit(self._supply.fetch, wanted, self._on_fetching)
        return await asyncio.wrap_future(self._fetch_job)

    def _open(self, role: str) -> Engine:
        return self._opened(self._models[role])

    def _opened(self, model: Model, backends: tuple[str, ...] = ()) -> Engine:
        """Load a model, check it, and let many threads share it.

        Args:
            model: its file is here.
            backends: what it may run on; empty for all that the operator named.
        """
        supply = self._supply
        open_engine = partial(
            supply.open,
            model,
            backends=backends or supply.backends,
            allow_degraded=supply.allow_degraded,
            store=supply.store,
            gpu=supply.gpu,
            passed=self._on_passed,
        )
        self._passed[model.role] = []
        with self._timeline.span(f"load {model.role}"):
            engine = open_engine()
        if engine.provider != PROVIDERS["cpu"]:
            engine = GuardedEngine(engine, self.device_health)
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
            if models.buckets(model)[-1] > engine.items:
                log.info(_LOOPS, extra={"role": model.role, "items": engine.items})
        else:
            buckets = Buckets(models.buckets(model), pads=not on_cpu)
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
            window=self._supply.window,
        )

    def _tuned(
        self, model: Model, engine: Engine, open_engine: Callable[..., Engine]
    ) -> tuple[Engine, int, int]:
        """The engine that uses the CPUs best, how many batches at once, and of which size."""
        from function.runtime.scheduling import tuning

        store, cpus, sizes = self._supply.store, self._permits.total, models.buckets(model)
        if not self._supply.tune or store is None:
            return engine, cpus, sizes[-1]
        kept = tuning.TuningFile.of(store, model.file.sha256, cpus, sizes)
        wide = partial(open_engine, threads=cpus)
        if plan := kept.load():
            return engine if plan.threads == 1 else wide(), plan.runs, plan.size
        items = models.FAMILIES[model.role, model.family].items
        with self._tuning, self._timeline.span(f"tune {model.role}"):
            plan, engine = tuning.measure(engine, wide, items, sizes, cpus=cpus)
        log.info("tuned", extra={"role": model.role} | asdict(plan))
        kept.save(plan)
        return engine, plan.runs, plan.size

    def _on_passed(self, passed: SkippedBackend) -> None:
        self._passed[passed.role].append(passed)
        self.on_passed(passed)

    def _on_fetching(self, progress: FetchProgress) -> None:
        self._fetching[progress.name.partition("/")[0]] = progress  # a variant's is role/variant
