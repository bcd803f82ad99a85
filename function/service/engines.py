"""The engines of a replica, from a model's file to what runs it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from function.faces import families, models
from function.runtime.engine import PROVIDERS
from function.runtime.gpu import free_memory
from function.runtime.gpu.device_health import DeviceHealth
from function.runtime.lazy_engine import LazyEngine, LoadState
from function.service.loader import EngineLoader
from warmup.failures import WarmupError
from warmup.models.manifest import narrowed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
    from concurrent.futures import Future

    from function.runtime.backends.fallback import SkippedBackend
    from function.runtime.engine import Engine
    from function.runtime.scheduling.batcher import Batcher
    from function.runtime.scheduling.permits import ComputePermits
    from function.service.engine_config import EngineConfig
    from warmup.models.manifest import Model
    from warmup.models.progress import FetchProgress
    from warmup.timeline import Timeline


class NoPlanYetError(WarmupError):
    """A plan that may come has not come."""


class Engines:
    """The engine of each role, each loaded once.

    Args:
        manifest: one model for each role.
        config: how models become engines.
        timeline: gets a span for each loading.
        permits: to compute.

    Attributes:
        loader: makes the engines.
        by_role: each engine by its role; an upgrade replaces those that it changes.
        device_health: whether the GPU is lost.
        on_skipped: called with each backend that does not run a model, in any thread.

    Raises:
        ManifestError: the manifest has not what is needed.
    """

    def __init__(
        self,
        manifest: Sequence[Model],
        config: EngineConfig,
        timeline: Timeline,
        permits: ComputePermits,
    ) -> None:
        families.check(manifest)
        chosen = narrowed(manifest, config.variant)
        self._full = [replace(model, variants=()) for model in chosen]
        self._models = {
            model.role: replace(model, file=(*model.variants, model.file)[0], variants=())
            for model in chosen
        }
        self._variants = frozenset(model.role for model in chosen if model.variants)
        self._timeline = timeline
        self._pool = ThreadPoolExecutor(len(manifest), "load")
        self._fetching: dict[str, FetchProgress] = {}
        self._fetch_job: Future[Sequence[Model]] | None = None
        self._obtaining: Future[Collection[str]] | None = None
        self._coming: dict[str, LazyEngine] = {}
        self._skipped: dict[str, list[SkippedBackend]] = {}
        self.device_health = DeviceHealth()
        self.loader = EngineLoader(config, permits, timeline, self.device_health)
        self.on_skipped: Callable[[SkippedBackend], None] = lambda _: None
        self.by_role = {
            role: LazyEngine(partial(self._open, role), self._pool) for role in self._models
        }

    @property
    def config(self) -> EngineConfig:
        """How models become engines."""
        return self.loader.config

    @property
    def wants_gpu(self) -> bool:
        """Whether any model may run on a GPU."""
        return any(backend != "cpu" for backend in self.config.backends)

    @property
    def upgrades(self) -> bool:
        """Whether there can ever be something to upgrade."""
        return bool(self._variants) or self.config.plans is not None

    @property
    def lesser(self) -> frozenset[str]:
        """The roles with variants of models, or engines that wait for a plan: to be upgraded."""
        return self._variants | self._waiting

    @property
    def _waiting(self) -> frozenset[str]:
        """The roles that run on a lesser backend for want of a plan that may come."""
        if self.config.plans is None:
            return frozenset()
        loaded = {role for role, engine in self.by_role.items() if engine.loaded}
        return frozenset(
            each.role for each in self.skipped if each.may_come and each.role in loaded
        )

    @property
    def fetches(self) -> bool:
        """Whether there may be something to fetch."""
        return self.config.fetch is not None

    @property
    def cold(self) -> bool:
        """Whether one of them is not loaded."""
        return not all(engine.loaded for engine in self.by_role.values())

    @property
    def busy(self) -> bool:
        """Whether a thread fetches or loads, be it for nobody."""
        fetches = self._fetch_job is not None and self._fetch_job.running()
        obtains = self._obtaining is not None and self._obtaining.running()
        engines = [*self.by_role.values(), *self._coming.values()]
        return fetches or obtains or any(engine.state is LoadState.LOADING for engine in engines)

    @property
    def providers(self) -> dict[str, str]:
        """The provider that executes each model that is loaded."""
        return {role: engine.provider for role, engine in self.by_role.items() if engine.loaded}

    @property
    def digests(self) -> dict[str, str]:
        """The first digits of the digest of each model, by role."""
        return {role: model.file.sha256[:12] for role, model in self._models.items()}

    @property
    def skipped(self) -> list[SkippedBackend]:
        """The backends that do not run a model, as it was last loaded."""
        return [skipped for each in list(self._skipped.values()) for skipped in each]

    @property
    def degraded(self) -> tuple[str, ...]:
        """The roles of models that run on another backend than the first one wanted."""
        wanted = PROVIDERS[self.config.backends[0]]
        engines = self.by_role.items()
        return tuple(
            role
            for role, engine in engines
            if engine.loaded
            and engine.provider != wanted
            and not families.on_cpu(self._models[role])
        )

    def stages(self) -> models.Models:
        """The models in their roles; heavy to import."""
        return models.build(list(self._models.values()), self.by_role)

    def shapes(self, role: str) -> list[tuple[tuple[int, ...], ...]]:
        """The shapes of a model's inputs, for each batch that a warm-up has to run."""
        return families.shapes(self._models[role])

    @property
    def largest(self) -> int:
        """The most items that any batch may have."""
        return max(families.buckets(model)[-1] for model in self._full)

    def batcher(self, role: str) -> Batcher | None:
        """What runs a model, once it is loaded."""
        return cast("Batcher | None", self.by_role[role].engine)

    def facts(self) -> dict[str, dict[str, Any]]:
        """How far each model is, as JSON knows it."""
        return {
            role: {
                "state": str(engine.state),
                "provider": engine.provider or None,
                "variant": self.config.variant if role in self._variants else None,
                "passed_over": [
                    {"backend": each.backend, "reason": each.reason}
                    for each in self._skipped.get(role, ())
                ],
                "fetch": self._fetching[role].facts() if role in self._fetching else None,
            }
            for role, engine in self.by_role.items()
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
        await self.need(self.by_role if whole else early if self.config.preload else ())

    async def _have_room(self) -> None:
        """Wait until the GPU has room for what is to be loaded."""
        missing = [self._models[role] for role, engine in self.by_role.items() if not engine.loaded]
        if missing and self.config.wait_s and self.wants_gpu:
            with self._timeline.span("wait for the GPU"):
                needed = free_memory.needed(missing)
                waiting = self._pool.submit(free_memory.wait, needed, self.config.wait_s)
                await asyncio.wrap_future(waiting)

    async def need(self, roles: Iterable[str]) -> None:
        """Load the models of some roles, unless they are loaded; raises as `load` does."""
        loads = (self.by_role[role].load() for role in roles)
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
            if self.by_role[role].state in (LoadState.WAITING, LoadState.FAILED)
        }
        self._models |= {role: full[role] for role in cold}
        self._variants -= cold
        for role in self._variants:
            await self.by_role[role].load()
        await self._replace({role: full[role] for role in self._variants}, prove)
        self._models, self._variants = full, frozenset()

    async def _take_plans(self, prove: Callable[[str, Engine], Awaitable[None]]) -> bool:
        waiting, source = self._waiting, self.config.plans
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
        """Open some models while others serve, and let them take over together."""
        skipped = self._skipped.copy()
        try:
            for role, model in wanted.items():
                open_engine = partial(self._load, model, backends)
                self._coming[role] = engine = LazyEngine(open_engine, self._pool)
                await engine.load()
                await prove(role, engine)
            self.by_role = self.by_role | self._coming
        except BaseException:
            self._skipped |= skipped  # what served goes on, and for the reasons that it had
            raise
        finally:  # one that nobody waits for any more still keeps a thread busy
            loading = (item for item in self._coming.items() if item[1].state is LoadState.LOADING)
            self._coming = dict(loading)

    def close(self) -> None:
        """Load nothing more; what is being loaded is not waited for."""
        if self.config.plans:
            self.config.plans.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _fetch(self, wanted: Sequence[Model]) -> Sequence[Model]:
        if self.config.fetch is None:
            return wanted
        self._fetch_job = self._pool.submit(self.config.fetch, wanted, self._on_fetching)
        return await asyncio.wrap_future(self._fetch_job)

    def _open(self, role: str) -> Engine:
        return self._load(self._models[role])

    def _load(self, model: Model, backends: tuple[str, ...] = ()) -> Engine:
        self._skipped[model.role] = []
        return self.loader.load(model, backends, self._on_skipped)

    def _on_skipped(self, skipped: SkippedBackend) -> None:
        self._skipped[skipped.role].append(skipped)
        self.on_skipped(skipped)

    def _on_fetching(self, progress: FetchProgress) -> None:
        self._fetching[progress.name.partition("/")[0]] = progress  # a variant's is role/variant
