"""The service: bytes in, bytes out, on a few threads, so that the event loop never blocks.

It knows nothing about HTTP; the command line uses it as well.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import numpy as np

from function import golden
from function.caution import Caution
from function.engines import Engines, Supply
from function.faces.face import embedding_of
from function.faces.pipeline import Pipeline
from function.faces.select import Selection, choose
from function.faces.swappers.mesh import MeshSwapper
from function.images.decode import decode
from function.images.encode import FORMATS, default_format, encode, flattens
from function.problems import Problem
from function.runtime.watch import Watch
from function.trace import Trace
from warmup.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Awaitable,
        Callable,
        Collection,
        Coroutine,
        Iterable,
        Sequence,
    )

    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.pipeline import SwappedFace
    from function.images.picture import Picture
    from warmup.golden import Golden
    from warmup.manifest import Model

P = ParamSpec("P")
T = TypeVar("T")

_LOOKING = ("detect", "landmarks")
"""The models that finding faces needs; swapping needs all."""


@dataclass(frozen=True, slots=True)
class Upload:
    """One image as it came: bytes, the declared media type, and the field that it came in."""

    data: bytes
    field: str
    media_type: str | None = None


@dataclass(frozen=True, slots=True)
class SwapOrder:
    """What is to be swapped.

    Attributes:
        sources: one or more photos of the person to put in.
        target: the photo to change.
        faces: which faces of the target.
        like: a reference photo of the person to replace; needed by, and only by, `faces=like`.
        format: "jpeg", "png", "webp" or "avif"; None for the target's own (see `default_format`).
        quality: 1–100, or None for the format's default.
    """

    sources: tuple[Upload, ...]
    target: Upload
    faces: Selection = field(default_factory=Selection)
    like: Upload | None = None
    format: str | None = None
    quality: int | None = None


@dataclass(frozen=True, slots=True)
class SwapResult:
    """The swapped photo and what is to be known about it."""

    image: bytes
    media_type: str
    size: tuple[int, int]
    faces: tuple[SwappedFace, ...]
    source: Face
    cautions: tuple[Caution, ...]


@dataclass(frozen=True, slots=True)
class FoundFaces:
    """The faces of one photo, its (width, height) after orientation, and cautions of decoding."""

    size: tuple[int, int]
    faces: tuple[Face, ...]
    cautions: tuple[Caution, ...]


class Service:
    """Finds and swaps faces. It is `Warmable`: fetch, load, warm, then serve.

    Args:
        manifest: the models to load.
        workers: how many threads compute; best the number of CPUs, each inference using one.
        max_pixels: the largest image that is decoded.
        supply: how the models become engines.
        swaps: how many swaps each worker makes in a warm-up.
        expected: the photos for that and what they must give; None for the sample photos, of which
            any result counts as right.
        timeline: gets the spans of the start.

    Raises:
        ManifestError: the manifest has not what is needed.
    """

    def __init__(
        self,
        manifest: Sequence[Model],
        *,
        workers: int,
        max_pixels: int,
        supply: Supply | None = None,
        swaps: int = 1,
        expected: Golden | None = None,
        timeline: Timeline | None = None,
    ) -> None:
        self.timeline = timeline or Timeline()
        self.engines = Engines(manifest, supply or Supply(), self.timeline)
        self.on_load_error: Callable[[Exception], None] = lambda _: None
        self._pipeline = Pipeline(self.engines.stages, MeshSwapper())
        self._workers = workers
        self._max_pixels = max_pixels
        self._swaps = swaps
        self._expected = expected
        self._pool = ThreadPoolExecutor(workers, "work")
        self._watch = Watch()
        # Twice as many requests as threads are in work, so that a thread never waits for the event
        # loop; everyone else holds only their bytes, which bounds the decoded pixels in memory.
        self.places = 2 * workers
        self._places = asyncio.Semaphore(self.places)
        self._in_work = self._waiting = 0
        self._last_work = time.monotonic()

    @property
    def fetches(self) -> bool:
        """Whether there may be something to fetch."""
        return self.engines.fetches

    @property
    def cold(self) -> bool:
        """Whether a request may have to wait for a model to be loaded."""
        return self.engines.cold

    async def fetch(self) -> None:
        """Get the models' files."""
        await self.engines.fetch()

    async def load(self, *, whole: bool = True) -> None:
        """Verify and load the models, or (not whole) those that are wanted at start."""
        await self.engines.load(whole=whole)

    async def warm(self) -> None:
        """Run what will be served: every shape of every model that is loaded, then whole swaps.

        All workers do so at once, as threads and memory must be there for all of them.

        Raises:
            WrongResultError: a result is not what it must be.
        """
        for role, shape in self.engines.shapes():
            with self.timeline.span(f"warm {role} {'×'.join(map(str, shape))}"):
                await self._everywhere(partial(self._run, self._try, role, shape))
        if not self.cold:
            for _ in range(self._swaps):
                with self.timeline.span("warm swap"):
                    await self._everywhere(self.beat)

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
        order = SwapOrder((Upload(source, "source"),), Upload(target, "target"))
        result = await self.swap(order, Trace())
        if expected:
            await self._run(golden.check, expected, result.image, result.faces)

    @property
    def in_work(self) -> int:
        """How many requests hold a place."""
        return self._in_work

    @property
    def waiting(self) -> int:
        """How many requests wait for a place, or for a model that was left cold."""
        return self._waiting

    @property
    def idle_s(self) -> float:
        """Seconds since the last request has left its place; 0 while one holds a place."""
        return 0.0 if self._in_work else time.monotonic() - self._last_work

    @property
    def longest_job_s(self) -> float:
        """Seconds for which the oldest job of the workers has been running; 0 when none is."""
        return self._watch.longest_s

    @property
    def busy(self) -> bool:
        """Whether a thread is at work, be it for nobody."""
        return self._watch.longest_s > 0 or self.engines.busy

    def close(self) -> None:
        """Stop the threads; work that has not begun is dropped, what runs is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.engines.close()

    async def faces(self, upload: Upload, trace: Trace) -> FoundFaces:
        """Find the faces of one photo.

        Raises:
            Problem: the image cannot be used, or the replica is not ready. No face is no problem.
        """
        async with self._place(trace, _LOOKING):
            picture, faces = await self._run(self._look, upload, trace, identify=False)
        return FoundFaces(picture.size, tuple(faces), picture.cautions)

    async def swap(self, order: SwapOrder, trace: Trace) -> SwapResult:
        """Swap faces as ordered. Cancelling the call drops every step that has not begun.

        Raises:
            Problem: an image cannot be used, a face is missing, or the replica is not ready.
        """
        uploads = [order.target, *order.sources, *([order.like] if order.like else [])]
        pipeline = self._pipeline
        async with self._place(trace, self.engines.slots):
            (target, faces), *photos = await _all(
                self._run(self._look, upload, trace, identify=True) for upload in uploads
            )
            reference = _reference(photos.pop()[1]) if order.like else None
            if not faces:
                raise Problem("no_face", "No face was found in the target photo.", image="target")
            source, cautions = pipeline.person(photos)
            chosen = choose(faces, order.faces, reference)
            canvas, own = await self._run(pipeline.swap, target, chosen, source, trace)
            result = replace(target, pixels=canvas)
            name = order.format or default_format(target)
            image, judged = await asyncio.gather(
                self._run(_encode, result, name, order.quality, trace),
                self._run(pipeline.judge, canvas, chosen, own, source, trace),
            )
        flattened = (Caution.ALPHA_FLATTENED,) if flattens(result, name) else ()
        every = [
            *target.cautions,
            *(c for picture, _ in photos for c in picture.cautions),
            *cautions,
            *(c for face in judged for c in face.cautions),
            *flattened,
        ]
        return SwapResult(
            image=image,
            media_type=FORMATS[name].media_type,
            size=target.size,
            faces=tuple(judged),
            source=source.face,
            cautions=tuple(dict.fromkeys(every)),
        )

    def _look(self, upload: Upload, trace: Trace, *, identify: bool) -> tuple[Picture, list[Face]]:
        """Decode one image and find its faces."""
        with trace.span("decode"):
            picture = decode(
                upload.data,
                max_pixels=self._max_pixels,
                name=upload.field,
                media_type=upload.media_type,
            )
        return picture, self._pipeline.find(picture, trace, identify=identify)

    @asynccontextmanager
    async def _place(self, trace: Trace, roles: Collection[str]) -> AsyncIterator[None]:
        """Hold a place while the body runs; leaving it, however that happens, frees the place.

        Args:
            trace: gets the spans `load`, where something had to be loaded, and `queue`.
            roles: the models that the body needs.
        """
        self._waiting += 1
        try:
            await self._need(trace, roles)
            with trace.span("queue"):
                await self._places.acquire()
        finally:
            self._waiting -= 1
        self._in_work += 1
        try:
            yield
        finally:
            self._in_work -= 1
            self._last_work = time.monotonic()
            self._places.release()

    async def _need(self, trace: Trace, roles: Collection[str]) -> None:
        """Make sure that these models are loaded."""
        if all(self.engines.slots[role].loaded for role in roles):
            return
        with trace.span("load"):
            try:
                await self.engines.need(roles)
            except Exception as error:
                self.on_load_error(error)
                raise Problem(
                    "not_ready", "A model cannot be loaded.", headers={"Retry-After": "1"}
                ) from error

    async def _everywhere(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do the same as often as there are workers, at once."""
        await asyncio.gather(*(work() for _ in range(self._workers)))

    def _try(self, role: str, shape: tuple[int, ...]) -> None:
        """Run one model on zeros."""
        golden.finite(role, self.engines.slots[role].run(np.zeros(shape, np.float32)))

    async def _run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` on a worker; cancelled before it begins, it never begins."""

        def job() -> T:
            with self._watch.job():
                return work(*args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._pool, job)


def sample(name: str) -> bytes:
    """One of the sample photos that ship with Ember ("collins" or "hopper"), as JPEG bytes."""
    return (files("function") / "samples" / f"{name}.jpg").read_bytes()


async def _all(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Await all calls; when some fail, raise the first of them in order (not in time)."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return cast("list[T]", results)


def _reference(faces: Sequence[Face]) -> NDArray[np.float32]:
    """The embedding of the person on the reference photo: its largest face."""
    if not faces:
        raise Problem("no_face", "No face was found in the reference photo.", image="like")
    return embedding_of(max(faces, key=lambda face: face.box.area))


def _encode(picture: Picture, name: str, quality: int | None, trace: Trace) -> bytes:
    with trace.span("encode"):
        return encode(picture, name, quality)
