"""The work itself: photos to faces and to swapped photos, on a service's threads.

Everything that this imports (numpy, OpenCV, Pillow) takes longer than all the rest of the start, so
the service imports it in a thread, while the port already answers.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, cast

from function import degenerate, golden, turn
from function.caution import Caution
from function.faces.look import SMALLEST
from function.faces.models import fitting
from function.faces.person import Person
from function.faces.pipeline import Pipeline
from function.faces.select import choose
from function.images import kinds
from function.images.decode import decode
from function.images.encode import encode
from function.images.formats import FORMATS, default_format, flattens
from function.images.kinds import Kind
from function.orders import FoundFaces, SwapResult
from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from function.engines import Engines
    from function.faces.face import Face
    from function.faces.look import Look
    from function.faces.swappers.protocol import Source
    from function.images.picture import Picture
    from function.orders import ClipOrder, ClipResult, Parts, Progress, SwapOrder, Upload
    from function.runtime.workers import Workers
    from function.trace import Trace
    from function.video.limits import Limits
    from warmup.golden import Golden

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")

_FRAMES_AHEAD = 3
"""Frames of an animation that are in work at once: a request has about as many threads."""


class Work:
    """Finds and swaps faces over engines that are loaded.

    Args:
        engines: what the models run on. It stays with the slots that they have now, so that no
            request mixes what two graphs of one model give.
        workers: where everything that takes time is done.
        max_pixels: the largest image that is decoded.
        clips: what videos and animations may have.
    """

    def __init__(self, engines: Engines, workers: Workers, max_pixels: int, clips: Limits) -> None:
        stages = engines.stages()
        self._pipeline = Pipeline(stages, stages.swapper())
        self._run = workers.run
        self._max_pixels = max_pixels
        self._clips = clips

    async def faces(self, upload: Upload, trace: Trace) -> FoundFaces:
        """See `Service.faces`."""
        picture, faces = await self._run(
            self._look, upload, trace, identify=False, quick=turn.mine().quick
        )
        return FoundFaces(picture.size, tuple(faces), picture.cautions)

    async def swap(self, order: SwapOrder, trace: Trace) -> SwapResult:
        """See `Service.swap`."""
        if order.format in {None, "webp"} and (kind := kinds.animation(order.target.data)):
            return await self._animation(order, kind, trace)
        pipeline = self._pipeline
        look = _cheaper(fitting(order.look, pipeline.models))
        (target, faces), (source, cautions), reference = await _all(
            self._run(self._look, order.target, trace, identify=True, quick=turn.mine().quick),
            self._person(order.sources, trace),
            self._reference(order.like, trace),
        )
        if not faces:
            raise Problem("no_face", "No face was found in the target photo.", image="target")
        chosen = choose(faces, order.faces, reference, pipeline.models.identity.metric)
        canvas, own = await self._run(pipeline.swap, target, chosen, source, trace, look)
        result = replace(target, pixels=canvas)
        name = order.format or default_format(target)
        image, judged = await asyncio.gather(
            self._run(_encode, result, name, order.quality, trace),
            self._run(pipeline.judge, canvas, chosen, own, source, trace),
        )
        flattened = (Caution.ALPHA_FLATTENED,) if flattens(result, name) else ()
        every = [
            *target.cautions,
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

    async def _person(
        self, uploads: Sequence[Upload], trace: Trace
    ) -> tuple[Source, tuple[Caution, ...]]:
        """The person on the source photos, which are opened one after the other to save memory."""
        person, cautions = Person(self._pipeline.models.identity.metric), []
        for number, upload in enumerate(uploads):
            portrait, more = await self._run(self._portrait, upload, trace)
            if portrait is None:
                raise Problem(
                    "no_face",
                    f"No face was found in source photo {number}.",
                    image="source",
                    index=number,
                )
            person.add(portrait)
            cautions += [*portrait.picture.cautions, *[Caution.SEVERAL_SOURCE_FACES] * more]
        return person.source(), (*cautions, *person.cautions)

    async def _reference(self, upload: Upload | None, trace: Trace) -> NDArray[np.float32] | None:
        """The identity of the person to replace, if a photo says who that is."""
        if upload is None:
            return None
        portrait, _ = await self._run(self._portrait, upload, trace)
        if portrait is None:
            raise Problem("no_face", "No face was found in the reference photo.", image="like")
        return portrait.embedding

    async def clip(
        self,
        order: ClipOrder,
        trace: Trace,
        ahead: int,
        progress: Progress,
        parts: Parts | None,
    ) -> ClipResult:
        """See `Service.clip`."""
        from function.video.clip import swap_clip
        from function.video.studio import Studio

        (source, cautions), like = await asyncio.gather(
            self._person(order.sources, trace), self._reference(order.like, trace)
        )
        look = _cheaper(fitting(order.look, self._pipeline.models))
        studio = Studio(self._pipeline, self._run, source, look, ahead=ahead, progress=progress)
        result = await swap_clip(studio, order, like, self._clips, parts)
        every = dict.fromkeys((*cautions, *result.cautions))
        return replace(result, cautions=tuple(every))

    async def _animation(self, order: SwapOrder, kind: Kind, trace: Trace) -> SwapResult:
        """Swap faces in an animated image, frame by frame."""
        from function.video.animation import swap_animation
        from function.video.studio import Studio

        (source, cautions), like = await asyncio.gather(
            self._person(order.sources, trace), self._reference(order.like, trace)
        )
        look = _cheaper(fitting(order.look, self._pipeline.models))
        studio = Studio(
            self._pipeline,
            self._run,
            source,
            look,
            ahead=_FRAMES_AHEAD,
            progress=lambda *_: None,
        )
        with trace.span("frames"):
            image, told = await swap_animation(
                studio,
                order.target.data,
                (kind, Kind.WEBP if order.format else kind),
                order.faces,
                like,
                quality=order.quality,
                limits=self._clips,
            )
        return SwapResult(
            image=image,
            media_type=told.media_type,
            size=told.size,
            faces=tuple(studio.judged),
            source=source.face,
            cautions=tuple(dict.fromkeys((*cautions, *told.cautions))),
            most_faces=told.most_faces,
        )

    async def check(self, expected: Golden, result: SwapResult) -> None:
        """Compare the swap of the golden pair with what it must give; see what models tell apart.

        Raises:
            WrongResultError: it is not that, or a model does the same to everybody.
        """
        await self._run(golden.check, expected, result.image, result.faces)
        await self._run(degenerate.prove, self._pipeline, expected.target.read_bytes(), result)

    def _portrait(self, upload: Upload, trace: Trace) -> tuple[Source | None, bool]:
        """Decode one image and find its person; see `Pipeline.portrait`."""
        return self._pipeline.portrait(self._decoded(upload, trace), trace)

    def _look(
        self, upload: Upload, trace: Trace, *, identify: bool, quick: bool
    ) -> tuple[Picture, list[Face]]:
        """Decode one image and find its faces."""
        picture = self._decoded(upload, trace)
        most = turn.mine().faces
        return picture, self._pipeline.find(
            picture, trace, identify=identify, quick=quick, most=most
        )

    def _decoded(self, upload: Upload, trace: Trace) -> Picture:
        with trace.span("decode"):
            return decode(
                upload.data,
                max_pixels=self._max_pixels,
                name=upload.field,
                media_type=upload.media_type,
            )


async def _all(first: Awaitable[A], second: Awaitable[B], third: Awaitable[C]) -> tuple[A, B, C]:
    """Await them together; when several fail, raise the first of them in order (not in time)."""
    results = await asyncio.gather(first, second, third, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return cast("tuple[A, B, C]", results)


def _cheaper(look: Look) -> Look:
    """The look with less of what the running turn has to do without."""
    mine = turn.mine()
    return replace(
        look,
        enhance=0 if mine.plain else look.enhance,
        boost=SMALLEST if mine.small else look.boost,
    )


def _encode(picture: Picture, name: str, quality: int | None, trace: Trace) -> bytes:
    with trace.span("encode"):
        return encode(picture, name, quality)
