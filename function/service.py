"""The service: bytes in, bytes out, on a few threads, so that the event loop never blocks.

It knows nothing about HTTP; the command line uses it as well.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from function.caution import Caution
from function.faces import models
from function.faces.face import embedding_of
from function.faces.pipeline import Pipeline
from function.faces.select import Selection, choose
from function.faces.swappers.mesh import MeshSwapper
from function.images.decode import decode
from function.images.encode import FORMATS, default_format, encode, flattens
from function.problems import Problem
from function.trace import Trace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.pipeline import SwappedFace
    from function.images.picture import Picture
    from warmup.manifest import Model

P = ParamSpec("P")
T = TypeVar("T")


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
    """Finds and swaps faces. It is `Warmable`: load, warm, then serve.

    Args:
        manifest: the models to load.
        workers: how many threads compute; best the number of CPUs, each inference using one.
        max_pixels: the largest image that is decoded.
    """

    def __init__(self, manifest: Sequence[Model], *, workers: int, max_pixels: int) -> None:
        self._manifest = manifest
        self._workers = workers
        self._max_pixels = max_pixels
        self._pool = ThreadPoolExecutor(workers, "work")
        # Twice as many requests as threads are in work, so that a thread never waits for the event
        # loop; everyone else holds only their bytes, which bounds the decoded pixels in memory.
        self._places = asyncio.Semaphore(2 * workers)
        self._in_work = 0
        self._pipeline: Pipeline | None = None

    async def load(self) -> None:
        """Verify and load the models."""
        self._pipeline = Pipeline(await self._run(models.load, self._manifest), MeshSwapper())

    async def warm(self) -> None:
        """Swap the sample photos through the path that serves, on every worker at once."""
        order = SwapOrder(
            (Upload(sample("hopper"), "source"),), Upload(sample("collins"), "target")
        )
        await asyncio.gather(*(self.swap(order, Trace()) for _ in range(self._workers)))

    @property
    def providers(self) -> dict[str, str]:
        """What really executes each role's model; empty before `load`."""
        if self._pipeline is None:
            return {}
        return {role: engine.provider for role, engine in self._pipeline.models.engines.items()}

    @property
    def in_work(self) -> int:
        """How many requests hold a place."""
        return self._in_work

    def close(self) -> None:
        """Stop the threads; work that has not begun is dropped."""
        self._pool.shutdown(cancel_futures=True)

    async def faces(self, upload: Upload, trace: Trace) -> FoundFaces:
        """Find the faces of one photo.

        Raises:
            Problem: the image cannot be used, or the replica is not ready. No face is no problem.
        """
        async with self._place(trace) as pipeline:
            picture, faces = await self._run(self._open, pipeline, upload, trace, identify=False)
        return FoundFaces(picture.size, tuple(faces), picture.cautions)

    async def swap(self, order: SwapOrder, trace: Trace) -> SwapResult:
        """Swap faces as ordered. Cancelling the call drops every step that has not begun.

        Raises:
            Problem: an image cannot be used, a face is missing, or the replica is not ready.
        """
        uploads = [order.target, *order.sources, *([order.like] if order.like else [])]
        async with self._place(trace) as pipeline:
            (target, faces), *photos = await _all(
                self._run(self._open, pipeline, upload, trace, identify=True) for upload in uploads
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

    def _open(
        self, pipeline: Pipeline, upload: Upload, trace: Trace, *, identify: bool
    ) -> tuple[Picture, list[Face]]:
        """Decode one image and find its faces."""
        with trace.span("decode"):
            picture = decode(
                upload.data,
                max_pixels=self._max_pixels,
                name=upload.field,
                media_type=upload.media_type,
            )
        return picture, pipeline.find(picture, trace, identify=identify)

    @asynccontextmanager
    async def _place(self, trace: Trace) -> AsyncIterator[Pipeline]:
        """Hold a place while the body runs; leaving it, however that happens, frees the place."""
        if self._pipeline is None:
            raise Problem(
                "not_ready", "The models are still being loaded.", headers={"Retry-After": "1"}
            )
        with trace.span("queue"):
            await self._places.acquire()
        self._in_work += 1
        try:
            yield self._pipeline
        finally:
            self._in_work -= 1
            self._places.release()

    async def _run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` on a worker; cancelled before it begins, it never begins."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, partial(work, *args, **kwargs))


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
