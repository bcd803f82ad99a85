"""The models of a replica on their way from a file to an engine."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from function.faces import models
from function.runtime.engine import PROVIDERS
from function.runtime.slot import Slot, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from function.runtime.engine import Engine
    from warmup.manifest import Model
    from warmup.timeline import Timeline


class Fetching(Protocol):
    """How far one file is."""

    name: str
    """Of the file; that of a model's graph is its role."""

    def facts(self) -> dict[str, Any]:
        """What is to be shown of it, as JSON knows it."""
        ...


class Fetch(Protocol):
    """Gets the files of a manifest and tells where they are; it blocks, and reports meanwhile."""

    def __call__(  # noqa: D102
        self, manifest: Sequence[Model], report: Callable[[Fetching], None]
    ) -> Sequence[Model]: ...


@dataclass(frozen=True, slots=True)
class Supply:
    """How engines are come by.

    Attributes:
        preload: whether models are loaded at start; a model's own `preload` can only say no.
        backends: what they may run on, the most wanted first.
        allow_degraded: whether they may run on another than the first.
        store: where optimised graphs are kept; None for nowhere.
        fetch: None when every file is here.
        open: loads one model; see `models.open_engine`.
    """

    preload: bool = True
    backends: tuple[str, ...] = ("cpu",)
    allow_degraded: bool = False
    store: Path | None = None
    fetch: Fetch | None = None
    open: Callable[..., Engine] = models.open_engine


class Engines:
    """The engine of each role, each loaded once.

    Args:
        manifest: one model for each role.
        supply: how they are come by.
        timeline: gets a span for each loading.

    Raises:
        ManifestError: the manifest has not what is needed.
    """

    def __init__(self, manifest: Sequence[Model], supply: Supply, timeline: Timeline) -> None:
        models.check(manifest)
        self._models = {model.role: model for model in manifest}
        self._supply = supply
        self._timeline = timeline
        self._pool = ThreadPoolExecutor(len(manifest), "load")
        self._fetching: dict[str, Fetching] = {}
        self._fetch_job: Future[Sequence[Model]] | None = None
        self.slots = {role: Slot(partial(self._open, role), self._pool) for role in self._models}

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
        return fetches or any(slot.state is State.LOADING for slot in self.slots.values())

    @property
    def providers(self) -> dict[str, str]:
        """What really executes each model that is loaded."""
        return {role: slot.provider for role, slot in self.slots.items() if slot.loaded}

    @property
    def degraded(self) -> tuple[str, ...]:
        """The roles whose models run on something else than was wanted first."""
        wanted = PROVIDERS[self._supply.backends[0]]
        return tuple(role for role, found in self.providers.items() if found != wanted)

    def stages(self) -> models.Models:
        """The models in their roles; heavy to import."""
        return models.build(list(self._models.values()), self.slots)

    def shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Each model that is loaded with each shape that a warm-up has to run."""
        return [
            (role, shape)
            for role, model in self._models.items()
            if self.slots[role].loaded
            for shape in models.FAMILIES[role, model.family].shapes
        ]

    def facts(self) -> dict[str, dict[str, Any]]:
        """How far each model is, as JSON knows it."""
        return {
            role: {
                "state": str(slot.state),
                "provider": slot.provider or None,
                "fetch": self._fetching[role].facts() if role in self._fetching else None,
            }
            for role, slot in self.slots.items()
        }

    async def fetch(self) -> None:
        """Get the models' files."""
        if self._supply.fetch:
            work = partial(self._supply.fetch, list(self._models.values()), self._on_fetching)
            self._fetch_job = self._pool.submit(work)
            found = await asyncio.wrap_future(self._fetch_job)
            self._models = {model.role: model for model in found}

    async def load(self, *, whole: bool) -> None:
        """Load the models that are not loaded yet, at the same time.

        Args:
            whole: also those that may wait for the first request that needs them.

        Raises:
            Exception: what loading raised, of the first model that failed.
        """
        early = {role for role, model in self._models.items() if model.preload}
        await self.need(self.slots if whole else early if self._supply.preload else ())

    async def need(self, roles: Iterable[str]) -> None:
        """Load the models of some roles, where they are not loaded; see `load`."""
        loads = (self.slots[role].load() for role in roles)
        for result in await asyncio.gather(*loads, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    def close(self) -> None:
        """Load nothing more; what is being loaded is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _open(self, role: str) -> Engine:
        supply = self._supply
        with self._timeline.span(f"load {role}"):
            return supply.open(
                self._models[role],
                backends=supply.backends,
                allow_degraded=supply.allow_degraded,
                store=supply.store,
                timeline=self._timeline,
            )

    def _on_fetching(self, progress: Fetching) -> None:
        self._fetching[progress.name] = progress
