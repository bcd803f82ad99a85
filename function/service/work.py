"""The work itself: photos to faces and to swapped photos, on a service's threads.

Everything that this imports (numpy, OpenCV, Pillow) takes longer than all the rest of the start, so
the service imports it in a thread, while the port already answers.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, overload

from function.faces.models import fitting
from function.faces.options import SMALLEST
from function.faces.person import People, Person
from function.faces.pipeline import Pipeline
from function.faces.select import choose, missing
from function.images.decode import decode
from function.images.encode import encode
from function.images.formats import FORMATS, default_format, flattens
from function.images.kinds import FileKind
from function.problems import NoFaceError
from function.quality_warning import QualityWarning
from function.request_context import current
from function.requests import FoundFaces, SwapResult, Upload
from function.service import degenerate, golden
from function.service.verifier import Verifier
from function.trust.case import Wish

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.options import SwapOptions
    from function.faces.swappers.protocol import SourceFace
    from function.images.picture import Picture
    from function.requests import (
        ClipRequest,
        ClipResult,
        PartStore,
        ProgressCallback,
        SwapRequest,
    )
    from function.runtime.scheduling.workers import Workers
    from function.service.engines import Engines
    from function.service.verification import Verification
    from function.telemetry.timings import Timings
    from function.trust.case import Case
    from function.trust.trust import Trust
    from function.video.clip_swapper import ClipSwapper
    from function.video.limits import ClipLimits
    from warmup.models.golden import Golden

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
        trust: what every swap passes through besides being made.
    """

    def __init__(
        self,
        engines: Engines,
        workers: Workers,
        max_pixels: int,
        clips: ClipLimits,
        trust: Trust,
    ) -> None:
        stages = engines.stages()
        self._pipeline = Pipeline(stages, stages.swapper())
        self._run = workers.run
        self._max_pixels = max_pixels
        self._clips = clips
        self._trust = trust

    async def faces(self, upload: Upload, timings: Timings) -> FoundFaces:
        """The faces of a photo, as `Service.faces` returns them."""
        picture, faces = await self._run(
            self._find, upload, timings, identify=False, quick=current.get().quick_search
        )
        return FoundFaces(picture.size, tuple(faces), picture.warnings)

    async def verify(self, upload: Upload, timings: Timings) -> Verification:
        """What a file carries, as `Service.verify` does."""
        verifier = Verifier(self._pipeline, self._trust.marker, self._max_pixels, self._clips)
        return await self._run(verifier.verify, upload, timings)

    async def swap(self, wanted: SwapRequest, timings: Timings) -> SwapResult:
        """Swap a photo or an animation, as `Service.swap` does."""
        async with self._case(wanted, timings) as case:
            kind = wanted.target.clip
            if wanted.format in {None, "webp"} and kind and kind.still:
                result = await self._animation(wanted, kind, timings, case)
            else:
                result = await self._photo(wanted, timings, case)
            await case.made(result.image)
        return result

    async def _photo(self, wanted: SwapRequest, timings: Timings, case: Case) -> SwapResult:
        """Swap a photo."""
        pipeline = self._pipeline
        options = _cheaper(fitting(wanted.options, pipeline.models))
        (target, faces), (people, warnings), references = await _all(
            self._run(
                self._find, wanted.target, timings, identify=True, quick=current.get().quick_search
            ),
            self._people(wanted.sources, timings, case),
            self._references(wanted.likes, timings),
        )
        if not faces:
            raise NoFaceError(f"No face was found in the {wanted.target.field}.", image="target")
        metric = pipeline.models.identity.metric
        chosen = choose(faces, wanted.faces, references, metric)
        case.cast(chosen)
        absent = missing(faces, wanted.faces, references, metric)

        def swap() -> tuple[NDArray[np.uint8], list[tuple[QualityWarning, ...]]]:
            case.check_people(target, chosen)
            return pipeline.swap(target, chosen, people.sources, timings, options)

        # Looking at the target needs a CPU that swapping leaves idle; a refusal drops the result.
        _, (canvas, own) = await _all(self._run(case.look, target), self._run(swap))
        result = await self._run(case.mark, replace(target, pixels=canvas), chosen)
        name = wanted.format or default_format(target)
        image, judged = await asyncio.gather(
            self._run(_encode, result, name, wanted.quality, timings, case),
            self._run(pipeline.judge, result.pixels, chosen, own, people.sources, timings),
        )
        flattened = (QualityWarning.ALPHA_FLATTENED,) if flattens(result, name) else ()
        every = [
            *target.warnings,
            *warnings,
            *(c for face in judged for c in face.warnings),
            *([QualityWarning.PERSON_MISSING] if absent else []),
            *flattened,
            *case.warnings,
        ]
        first, named = _faces(people)
        return SwapResult(
            image=image,
            media_type=FORMATS[name].media_type,
            size=target.size,
            faces=tuple(judged),
            source=first,
            warnings=tuple(dict.fromkeys(every)),
            marks=case.marks,
            sources=named,
        )

    async def _people(
        self, uploads: Sequence[Upload], timings: Timings, case: Case
    ) -> tuple[People, list[QualityWarning]]:
        """The people on the source photos, which are opened one after the other to save memory."""
        people, warnings = People(self._max_pixels), list[QualityWarning]()
        for name in dict.fromkeys(upload.name for upload in uploads):
            photos = [upload for upload in uploads if upload.name == name]
            source, more = await self._person(photos, timings, case)
            people.add(name, source)
            warnings += more
        return people, warnings

    async def _person(
        self, uploads: Sequence[Upload], timings: Timings, case: Case
    ) -> tuple[SourceFace, tuple[QualityWarning, ...]]:
        """The person on some photos, and what to warn of."""
        person, warnings = Person(self._pipeline.models.identity.metric), []
        for number, upload in enumerate(uploads):
            portrait, more = await self._run(self._portrait, upload, timings, case)
            if portrait is None:
                of = f" (photo {number}, from 0)" if len(uploads) > 1 else ""
                raise NoFaceError(
                    f"No face was found in the {upload.field}{of}.",
                    image=f"sources.{upload.name}" if upload.name else "source",
                    index=number,
                )
            person.add(portrait)
            warnings += [*portrait.picture.warnings, *[QualityWarning.SEVERAL_SOURCE_FACES] * more]
        return person.source(), (*warnings, *person.warnings)

    async def _references(
        self, uploads: Sequence[Upload], timings: Timings
    ) -> dict[str, NDArray[np.float32]]:
        """The identities of the people to replace, by name, as far as photos say who that is."""
        found = {}
        for upload in uploads:
            portrait, _ = await self._run(self._portrait, upload, timings)
            if portrait is None:
                image = f"likes.{upload.name}" if upload.name else "like"
                raise NoFaceError(f"No face was found in the {upload.field}.", image=image)
            found[upload.name] = portrait.embedding
        return found

    async def clip(
        self,
        wanted: ClipRequest,
        timings: Timings,
        ahead: int,
        progress: ProgressCallback,
        parts: PartStore | None,
    ) -> ClipResult:
        """Swap a clip, as `Service.clip` does."""
        from function.video.clip import swap_clip

        async with self._case(wanted, timings) as case:
            swapper, warnings = await self._clip_swapper(wanted, timings, case, ahead, progress)
            result = await swap_clip(swapper, wanted, self._clips, parts)
            await case.made(wanted.out)
        every = dict.fromkeys((*warnings, *result.warnings, *case.warnings))
        return replace(result, warnings=tuple(every), marks=case.marks)

    async def _clip_swapper(
        self,
        wanted: SwapRequest | ClipRequest,
        timings: Timings,
        case: Case,
        ahead: int,
        progress: ProgressCallback = lambda *_: None,
    ) -> tuple[ClipSwapper, list[QualityWarning]]:
        """What swaps the frames of a clip, and what to warn of."""
        from function.video.clip_swapper import ClipSwapper

        (people, warnings), references = await asyncio.gather(
            self._people(wanted.sources, timings, case), self._references(wanted.likes, timings)
        )
        await self._run(case.check_people)
        options = _cheaper(fitting(wanted.options, self._pipeline.models))
        swapper = ClipSwapper(
            self._pipeline,
            self._run,
            people,
            wanted.faces,
            references,
            options=options,
            case=case,
            ahead=ahead,
            progress=progress,
        )
        return swapper, warnings

    async def _animation(
        self, wanted: SwapRequest, kind: FileKind, timings: Timings, case: Case
    ) -> SwapResult:
        """Swap faces in an animated image, frame by frame."""
        from function.video.animation import swap_animation

        swapper, warnings = await self._clip_swapper(wanted, timings, case, _FRAMES_AHEAD)
        with timings.span("frames"):
            image, facts = await swap_animation(
                swapper,
                wanted.target.data,
                (kind, FileKind.WEBP if wanted.format else kind),
                quality=wanted.quality,
                limits=self._clips,
            )
        return SwapResult(
            image=image,
            media_type=facts.media_type,
            size=facts.size,
            faces=tuple(swapper.judged),
            source=facts.source,
            warnings=tuple(dict.fromkeys((*warnings, *facts.warnings, *case.warnings))),
            most_faces=facts.most_faces,
            marks=case.marks,
            sources=_faces(swapper.people)[1],
        )

    def _case(self, wanted: SwapRequest | ClipRequest, timings: Timings) -> Case:
        """The way of one swap through all that it passes besides being made."""
        options, models = wanted.options, self._pipeline.models
        generated = models.swap is not None or bool(models.enhance and options.enhance)
        target = wanted.target
        wish = Wish(
            tuple((each.name, each.data) for each in wanted.sources),
            tuple((each.name, each.data) for each in wanted.likes),
            target.data if isinstance(target, Upload) else target,
            wanted.consent,
            wanted.label,
            generated,
        )
        return self._trust.open(models, self._run, timings, wish)

    async def check(self, expected: Golden, result: SwapResult) -> None:
        """Check the swap of the golden pair, and that models distinguish what they must.

        Raises:
            WrongResultError: it is not that, or a model does the same to everybody.
        """
        await self._run(golden.check, expected, result.image, result.faces)
        await self._run(degenerate.prove, self._pipeline, expected.target.read_bytes(), result)

    def _portrait(
        self, upload: Upload, timings: Timings, case: Case | None = None
    ) -> tuple[SourceFace | None, bool]:
        """Decode one image and find its person, as `portrait` does; a source has a case."""
        found, more = self._pipeline.portrait(self._decoded(upload, timings), timings)
        if case and found:
            case.check_source(found, upload.name)
        return found, more

    def _find(
        self, upload: Upload, timings: Timings, *, identify: bool, quick: bool
    ) -> tuple[Picture, list[Face]]:
        """Decode one image and find its faces."""
        picture = self._decoded(upload, timings)
        most = current.get().max_faces
        return picture, self._pipeline.find(
            picture, timings, identify=identify, quick=quick, most=most
        )

    def _decoded(self, upload: Upload, timings: Timings) -> Picture:
        with timings.span("decode"):
            return decode(
                upload.data,
                max_pixels=self._max_pixels,
                name=upload.field,
                media_type=upload.media_type,
            )


def _faces(people: People) -> tuple[Face, dict[str, Face]]:
    """The first source's face, and those of all by name where they have names."""
    first = next(iter(people.faces.values()))
    return first, {name: face for name, face in people.faces.items() if name}


@overload
async def _all(first: Awaitable[A], second: Awaitable[B], /) -> tuple[A, B]: ...
@overload
async def _all(
    first: Awaitable[A], second: Awaitable[B], third: Awaitable[C], /
) -> tuple[A, B, C]: ...
async def _all(*each: Awaitable[Any]) -> tuple[Any, ...]:
    """Await them together; when several fail, raise the first of them in order (not in time)."""
    results = await asyncio.gather(*each, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return tuple(results)


def _cheaper(options: SwapOptions) -> SwapOptions:
    """The look with less of what the running turn has to do without."""
    request = current.get()
    return replace(
        options,
        enhance=0 if request.skip_enhancer else options.enhance,
        boost=SMALLEST if request.smallest_boost else options.boost,
    )


def _encode(
    picture: Picture, name: str, quality: int | None, timings: Timings, case: Case
) -> bytes:
    with timings.span("encode"):
        data = encode(picture, name, quality)
    return case.sign(data, FORMATS[name].media_type)
