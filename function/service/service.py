"""The service: bytes in, bytes out, on a few threads, so that the event loop never blocks.

It knows nothing about HTTP; the command line uses it as well. It is light to import: what is heavy
is in `function.service.work` and in the engines, which are imported when they are loaded.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import TYPE_CHECKING

from function.problems import NoFaceError, RetryLaterError
from function.request_context import SHARES, Lane, RequestContext, current
from function.requests import SwapRequest, Upload
from function.runtime.gpu.device_health import DeviceLostError
from function.runtime.imports import Imports
from function.runtime.scheduling.permits import ComputePermits
from function.runtime.scheduling.slots import RequestSlots
from function.runtime.scheduling.workers import Workers
from function.service.engine_config import EngineConfig
from function.service.engines import Engines
from function.telemetry.timings import Timings
from function.trust.gate.verdict import GateRefusedError
from function.trust.trust import Trust
from function.video.limits import ClipLimits
from warmup.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Sequence

    from function.requests import (
        ClipRequest,
        ClipResult,
        FoundFaces,
        PartStore,
        ProgressCallback,
        SwapResult,
    )
    from function.runtime.engine import Engine
    from function.runtime.scheduling.observer import Observer
    from function.service.verification import Verification
    from function.service.work import Work
    from warmup.models.golden import Golden
    from warmup.models.manifest import Model

_JOBS = 3
"""How many threads one request can use at the same time: for its target, source and reference."""
_FINDING = ("detect", "landmarks")
"""The models that finding faces needs, where they are there; swapping needs all."""


class Service:
    """Finds and swaps faces. It is `Warmable`: fetch, load, warm, then serve.

    Args:
        manifest: the models to load.
        workers: how many threads compute at once.
        max_pixels: the largest image that is decoded.
        clips: what videos and animations may have.
        config: how the models become engines.
        swaps: how many swaps a warm-up makes.
        expected: the photos for that and what they must give; None for the sample photos, of which
            any result counts as right.
        timeline: gets the spans of the start.
        trust: what every swap passes through besides being made; None for an open gate, no audit,
            and marks that everybody can read.

    Attributes:
        imports: what is heavy to import.
        clips, trust: as given.

    Raises:
        ManifestError: the manifest has not what is needed.
    """

    def __init__(
        self,
        manifest: Sequence[Model],
        *,
        workers: int,
        max_pixels: int,
        clips: ClipLimits | None = None,
        config: EngineConfig | None = None,
        swaps: int = 1,
        expected: Golden | None = None,
        timeline: Timeline | None = None,
        trust: Trust | None = None,
    ) -> None:
        self.trust = trust or Trust()
        self.trust.models = lambda: self.engines.digests
        self.timeline = timeline or Timeline()
        self.imports = Imports(self.timeline)
        self._permits = ComputePermits(workers)
        self.engines = Engines(manifest, config or EngineConfig(), self.timeline, self._permits)
        self.on_load_error: Callable[[Exception], None] = lambda _: None
        self._max_pixels = max_pixels
        self.clips = clips or ClipLimits()
        self._swaps = swaps
        self._expected = expected
        self._work: Work | None = None
        # Twice as many requests as CPUs are in work, so that no CPU waits for the event loop; where
        # there are batches, one can fill while another runs. Everyone else holds only their bytes,
        # which bounds the decoded pixels in memory.
        batch = self.engines.largest
        self.slots = 2 * workers if batch == 1 else workers + 2 * batch
        extra = max(workers, len(SHARES))
        self._slots = RequestSlots(self.slots, extra, self._permits.shares)
        self._clips, self._ahead = RequestSlots(1, extra=0), workers + batch + 1
        self._workers = Workers(self._permits, _JOBS * (self.slots + extra))
        self._waiting = 0
        self._last_work = time.monotonic()

    @property
    def fetches(self) -> bool:
        """Whether there may be something to fetch."""
        return self.engines.fetches

    @property
    def cold(self) -> bool:
        """Whether a request may have to wait for a model to be loaded."""
        return self.engines.cold

    @property
    def upgrades(self) -> bool:
        """Whether there can ever be something to upgrade."""
        return self.engines.upgrades

    @property
    def lesser(self) -> bool:
        """Whether a model is a variant or waits for a plan, so that there is something to do."""
        return bool(self.engines.lesser)

    async def fetch(self) -> None:
        """Get the models' files."""
        await self.engines.fetch()

    async def load(self, *, whole: bool = True) -> None:
        """Verify and load the models, or (not whole) those that are wanted at start."""
        await self.imports.have("runtime")
        await self.engines.load(whole=whole)

    async def warm(self) -> None:
        """Run what will be served: every shape of every model that is loaded, then whole swaps.

        What is left to import is imported during the first inferences, which leave the interpreter
        to it. All swaps are made at once, as requests would come.

        Raises:
            WrongResultError: a result is not what it must be.
        """
        engines = self.engines.by_role.items()
        loaded = (self._exercise(role, engine) for role, engine in engines if engine.loaded)
        await asyncio.gather(self._ready_work(), *loaded)
        if not self.cold:
            with self.timeline.span("warm swap"):
                await asyncio.gather(*(self.beat() for _ in range(self._swaps)))

    async def upgrade(self) -> None:
        """Replace variants by full models, and other engines by plans, once these are right.

        What a request has begun on an engine ends there. When it fails, what serves stays.

        Raises:
            Exception: what getting, loading or running a model raised.
        """
        if await self.engines.upgrade(self._exercise):
            self._work = None
            await self._ready_work()

    async def beat(self) -> None:
        """A sign of life: swap the expected pair, or the sample photos, as a request would.

        Raises:
            WrongResultError: the result is not what it must be.
        """
        expected = self._expected
        if expected:
            source, target = expected.source.read_bytes(), expected.target.read_bytes()
        else:
            source, target = sample("hopper"), sample("collins")
        wanted = SwapRequest((Upload(source, "source"),), Upload(target, "target"))
        try:
            result = await self.swap(wanted, Timings())
        except GateRefusedError as problem:
            from function.runtime.sanity import WrongResultError

            raise WrongResultError(
                "golden check: the gate refuses the photos that a warm-up swaps; is"
                " EMBER_GATE_THRESHOLD too low, or is this another model than it was made for?"
            ) from problem
        except NoFaceError as problem:
            if not expected:
                raise
            from function.runtime.sanity import WrongResultError

            raise WrongResultError(f"golden check: {problem.detail}") from None
        if expected:
            with self.timeline.span("golden"):
                await (await self._ready_work()).check(expected, result)

    @property
    def in_work(self) -> int:
        """How many requests hold a slot."""
        return self._slots.held

    @property
    def waiting(self) -> int:
        """How many requests wait for a slot, or for a model that was left cold."""
        return self._waiting

    @property
    def observer(self) -> Observer:
        """Notes how long requests wait, and what runs together."""
        return self._permits.observer

    @observer.setter
    def observer(self, observer: Observer) -> None:
        self._permits.observer = observer

    @property
    def idle_s(self) -> float:
        """Seconds since the last request has left its slot; 0 while one holds a slot."""
        return 0.0 if self.in_work else time.monotonic() - self._last_work

    @property
    def longest_job_s(self) -> float:
        """Seconds for which the oldest job of the workers has been running; 0 when none is."""
        return self._permits.watch.longest_s

    @property
    def busy(self) -> bool:
        """Whether a thread is at work, be it for nobody."""
        return self.longest_job_s > 0 or self.engines.busy

    def close(self) -> None:
        """Stop the threads; work that has not begun is dropped, what runs is not waited for."""
        self.imports.close()
        self._workers.close()
        self.engines.close()

    async def faces(self, upload: Upload, timings: Timings) -> FoundFaces:
        """Find the faces of one photo.

        Raises:
            Problem: the image cannot be used, or the replica is not ready. No face is no problem.
        """
        roles = [role for role in _FINDING if role in self.engines.by_role]
        async with self._slot(timings, roles) as work:
            return await work.faces(upload, timings)

    async def verify(self, upload: Upload, timings: Timings) -> Verification:
        """Say what a photo or a clip carries that tells whether it is a swap.

        Raises:
            Problem: the file cannot be used, or the replica is not ready. Nothing found is none.
        """
        roles = [role for role in _FINDING if role in self.engines.by_role]
        async with self._slot(timings, roles) as work:
            return await work.verify(upload, timings)

    async def swap(self, wanted: SwapRequest, timings: Timings) -> SwapResult:
        """Swap faces as ordered. Cancelling the call drops every step that has not begun.

        Raises:
            Problem: an image cannot be used, a face is missing, or the replica is not ready.
        """
        async with self._slot(timings, self.engines.by_role) as work:
            return await work.swap(wanted, timings)

    async def clip(
        self,
        wanted: ClipRequest,
        timings: Timings,
        *,
        progress: ProgressCallback = lambda *_: None,
        parts: PartStore | None = None,
    ) -> ClipResult:
        """Swap faces in a video or an animation, from file to file.

        One clip at a time is in work, the most urgent lane first, together with photos; its frames
        are worked on in the lane of the caller. Cancelling the call drops what has not begun.

        Args:
            wanted: what is wanted.
            timings: gets spans of what comes before the first frame.
            progress: called after every frame.
            parts: keeps what is done, for another call with the same request to go on from.

        Raises:
            Problem: the clip cannot be used, a face is missing, or the replica is not ready.
        """
        context = current.get(None) or RequestContext(Lane.INTERACTIVE)
        with await self._clips.acquire(context):
            await self.imports.have("video")
            async with self._slot(timings, self.engines.by_role) as work:
                return await work.clip(wanted, timings, self._ahead, progress, parts)

    async def _exercise(self, role: str, engine: Engine) -> None:
        """Run every shape of one model for the first time."""
        from function.runtime.sanity import attempt

        for shapes in self.engines.shapes(role):
            with self.timeline.span(f"warm {role} {'×'.join(map(str, shapes[0]))}"):
                await self._workers.run(attempt, role, engine, shapes)

    @asynccontextmanager
    async def _slot(self, timings: Timings, roles: Collection[str]) -> AsyncIterator[Work]:
        """Hold a slot while the body runs.

        Args:
            timings: gets the spans `load`, where something had to be loaded, and `queue`.
            roles: the models that the body needs.
        """
        context = current.get(None) or RequestContext(Lane.INTERACTIVE)
        token = current.set(context)
        try:
            with self._permits.shares.in_flight(context.lane):
                self._waiting += 1
                try:
                    work = await self._ready_work()
                    await self._need(timings, roles)
                    with timings.span("queue"):
                        slot = await self._slots.acquire(context)
                finally:
                    self._waiting -= 1
                with slot:
                    self.observer.waited("place", context.lane, slot.waited_s)
                    context.started_at = time.monotonic()
                    try:
                        yield work
                    finally:
                        self._last_work = time.monotonic()
        except DeviceLostError as error:
            raise RetryLaterError(
                "not_ready", "The replica has lost its GPU.", again_s=1
            ) from error
        except asyncio.CancelledError:
            context.abandoned = True  # what waits in a batch leaves it
            raise
        finally:
            current.reset(token)

    async def _need(self, timings: Timings, roles: Collection[str]) -> None:
        """Make sure that these models are loaded."""
        if all(self.engines.by_role[role].loaded for role in roles):
            return
        with timings.span("load"):
            try:
                await self.engines.need(roles)
            except Exception as error:
                self.on_load_error(error)
                raise RetryLaterError(
                    "not_ready", "A model cannot be loaded.", again_s=1
                ) from error

    async def _ready_work(self) -> Work:
        """What does the work, imported when it is first needed."""
        if self._work is None:
            self.imports.begin("runtime")
            await self.imports.have("work")
            from function.service.work import Work

            self._work = self._work or Work(
                self.engines, self._workers, self._max_pixels, self.clips, self.trust
            )
        return self._work


def sample(name: str) -> bytes:
    """One of the sample photos that ship with Ember ("collins" or "hopper"), as JPEG bytes."""
    return (files("function") / "samples" / f"{name}.jpg").read_bytes()
