"""Plans that were built before: in the store of this node, and in a place that nodes share.

In the store a plan is a file like weights, `sha256/DIGEST`, proven in the same way; beside them
`plans/KEY.json` says what it depends on. In the shared place, a bucket or a folder, there are
`plans/KEY/plan` and `plans/KEY/plan.json`. Whatever does not say exactly what was asked for is
passed over as if it were not there.
"""

from __future__ import annotations

import hashlib
import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from warmup.failures import DamagedError, UnavailableError, WarmupError
from warmup.models import lock
from warmup.models.file import File
from warmup.models.manifest import Model
from warmup.models.prefetch import open_store, prefetch
from warmup.models.store import replace_file
from warmup.plans import plan_key, shared_cache
from warmup.plans.plan_key import Recipe

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from warmup.models.progress import FetchProgress
    from warmup.models.store import Held, Store
    from warmup.plans.plan_key import PlanKey, Sidecar
    from warmup.settings.settings import PlanSettings, StoreSettings, WarmupSettings

log = logging.getLogger("ember.plans")

_KERNELS = "kernels-"


@dataclass(frozen=True, slots=True)
class Plans:
    """The plans of one node.

    Attributes:
        store: where they are kept.
        settings: how they come into it.
        place: the bucket or folder in which nodes share plans; None for none.
    """

    store: Store
    settings: StoreSettings
    place: str | None = None

    def find(self, key: PlanKey) -> tuple[Sidecar, Held] | None:
        """A plan that is here and right; None when there is none."""
        path = self._sidecar(key.digest)
        try:
            sidecar = plan_key.read(path.read_bytes(), path.name)
            if sidecar.key != key:
                raise DamagedError(f"{path.name}: describes another plan")
            held = self.store.find(_file(sidecar))
        except FileNotFoundError:
            return None
        except (OSError, WarmupError) as error:
            log.warning("a plan is passed over", extra={"plan": key.digest, "reason": str(error)})
            return None
        return (sidecar, held) if held else None

    def fetch(
        self,
        key: PlanKey,
        *,
        report: Callable[[FetchProgress], None] = lambda _: None,
        stop: threading.Event | None = None,
    ) -> bool:
        """Bring a plan from the shared place into the store; False when there is none of that key.

        Raises:
            WarmupError: as `prefetch`.
        """
        if found := self.find(key):
            found[1].close()
            return True
        remote = urlsplit(self.place or "").scheme == "gs"
        if self.place is None or (self.settings.offline and remote):
            return False
        where = self._shared(self.place, key)
        text = shared_cache.read(f"{where}/plan.json", self.settings.fetch.fetch_stall_s)
        if text is None:
            return False
        sidecar = plan_key.read(text, f"{where}/plan.json")
        if sidecar.key != key:
            raise DamagedError(f"{where}/plan.json: describes another plan than its name says")
        entry = Model("plan", "plan", _file(sidecar, shared_cache.uri(f"{where}/plan")), "")
        with prefetch([entry], self.settings, report=report, stop=stop):
            self._note(sidecar)
        return True

    def keep(self, sidecar: Sidecar, content: bytes | memoryview) -> None:
        """Put a plan that was built here into the store.

        Raises:
            StoreError: the store cannot take it.
        """
        self.store.create()
        file = _file(sidecar)
        with lock.exclusive(self.store.lock(file.sha256)):
            held = self.store.find(file)
            if held is None:
                path = self.store.partial(file.sha256).with_suffix(".data")
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
                try:
                    self.store.allocate(file, fd, {file.sha256})
                    with self.store.writing(file.name):
                        _write(fd, content)
                    held = self.store.commit(file, fd)
                except BaseException:
                    os.close(fd)
                    path.unlink(missing_ok=True)
                    raise
            held.close()
        self._note(sidecar)

    def publish(self, key: PlanKey) -> str:
        """Put a plan of the store where other nodes find it; its address.

        The sidecar comes last, so that whoever sees it finds the plan.

        Raises:
            UnavailableError: no place is named, or it does not take it.
        """
        found = self.find(key)
        if found is None:
            raise UnavailableError(f"the plan {key.digest} is not in the store {self.store.root}")
        sidecar, held = found
        try:
            if self.place is None:
                raise UnavailableError("EMBER_PLANS names no place to publish plans in")
            assert held.file.path is not None  # noqa: S101 (what is held lies somewhere)
            where = self._shared(self.place, key)
            shared_cache.write(f"{where}/plan", held.file.path)
            shared_cache.write(f"{where}/plan.json", sidecar.text())
        finally:
            held.close()
        return where

    def entries(self) -> Iterator[Sidecar]:
        """Every plan that the store has a sidecar of, whole or not."""
        for path in sorted((self.store.root / "plans").glob("*.json")):
            with suppress(OSError, DamagedError):
                yield plan_key.read(path.read_bytes(), path.name)

    def forget(self, sidecar: Sidecar) -> None:
        """Remove the sidecar of a plan that is gone."""
        self._sidecar(sidecar.key.digest).unlink(missing_ok=True)

    def kernels(self, digest: str, gpu: str) -> Path:
        """Where kernels are kept that were compiled for a plan on a GPU, by its UUID."""
        return self.store.root / "plans" / f"{_KERNELS}{digest}-{gpu}"

    def orphans(self, kept: Collection[str]) -> Iterator[Path]:
        """Kept kernels of other plans than those of some keys, by digest."""
        for path in sorted((self.store.root / "plans").glob(f"{_KERNELS}*")):
            if path.name.removeprefix(_KERNELS).partition("-")[0] not in kept:
                yield path

    def _note(self, sidecar: Sidecar) -> None:
        path = self._sidecar(sidecar.key.digest)
        with self.store.writing(path.name):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, sidecar.text())

    def _shared(self, place: str, key: PlanKey) -> str:
        return f"{place.rstrip('/')}/plans/{key.digest}"

    def _sidecar(self, digest: str) -> Path:
        return self.store.root / "plans" / f"{digest}.json"


def open_plans(settings: WarmupSettings) -> Plans:
    """The plans of the store that the settings name, shared where they say."""
    return Plans(open_store(settings.stores), settings.stores, settings.plans.plans)


def recipe(settings: PlanSettings) -> Recipe:
    """How the settings want plans made."""
    return Recipe(
        precision=settings.plan_precision,
        flags=settings.plan_flags,
        level=settings.plan_level,
        workspace=settings.plan_workspace,
    )


def described(
    key: PlanKey, content: bytes | memoryview, *, built_by: str, seconds: float
) -> Sidecar:
    """The sidecar of a plan that was just built."""
    digest = hashlib.sha256(content).hexdigest()
    return plan_key.Sidecar(key, len(content), digest, built_by, round(seconds, 3))


def _file(sidecar: Sidecar, uri: str = "") -> File:
    return File(f"plan {sidecar.key.digest[:12]}", uri, sidecar.size, sidecar.sha256)


def _write(fd: int, content: bytes | memoryview) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(fd, left) :]
