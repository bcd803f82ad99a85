"""Requests to a service and its results, as values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from function.faces.options import SwapOptions
from function.faces.select import Selection
from function.images import kinds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from function.faces.face import Face
    from function.faces.pipeline import SwappedFace
    from function.images.kinds import FileKind
    from function.quality_warning import QualityWarning
    from function.trust.marks import Marks

ProgressCallback = Callable[[int, int], None]
"""Called in the event loop with how many frames of a clip are done, and how many it has."""


@dataclass(frozen=True)
class Upload:
    """One file as it came.

    Attributes:
        data: its bytes.
        field: of the request.
        media_type: as it was declared.
        name: of the person whom it shows, where a request names several; else "".
    """

    data: bytes
    field: str
    media_type: str | None = None
    name: str = ""

    @cached_property
    def clip(self) -> FileKind | None:
        """The kind of video or animation that it is; None for a photo, and for anything else.

        It is told from the bytes, once; that takes time for a large animation.
        """
        return kinds.clip(self.data)


@dataclass(frozen=True, slots=True)
class SwapRequest:
    """A photo to swap.

    Attributes:
        sources: one or more photos of the person to put in; of several people, each with its name.
        target: the photo to change.
        faces: which faces of the target, and who is put onto each where there are several people.
        likes: the photo of the person to replace, for `faces=like`; those that `faces` names.
        format: "jpeg", "png", "webp" or "avif"; None for the target's own (see `default_format`).
        quality: 1–100, or None for the format's default.
        options: what the caller chose about the result.
        consent: that the people on the sources agree: who says so, in words or as signed tokens.
        label: the language of a visible label, where the caller wants one.
    """

    sources: tuple[Upload, ...]
    target: Upload
    faces: Selection = field(default_factory=Selection)
    likes: tuple[Upload, ...] = ()
    format: str | None = None
    quality: int | None = None
    options: SwapOptions = field(default_factory=SwapOptions)
    consent: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class SwapResult:
    """The swapped photo or clip, with facts about it.

    Attributes:
        image: the file.
        faces: those that were swapped; of a clip those of one frame.
        source: the source face that was used.
        sources: of several people, those of each, by name; then `source` is the first.
        most_faces: how many were swapped at most in one frame of a clip; None for a photo.
        marks: what it carries that tells that it is a swap.
    """

    image: bytes
    media_type: str
    size: tuple[int, int]
    faces: tuple[SwappedFace, ...]
    source: Face
    warnings: tuple[QualityWarning, ...]
    most_faces: int | None = None
    marks: Marks | None = None
    sources: Mapping[str, Face] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """The facts for jobs and events, ready for JSON."""
        return {
            "media_type": self.media_type,
            "bytes": len(self.image),
            "width": self.size[0],
            "height": self.size[1],
            "faces": len(self.faces) if self.most_faces is None else self.most_faces,
            "warnings": [str(each) for each in self.warnings],
            "marks": self.marks.facts() if self.marks else None,
        }


@dataclass(frozen=True, slots=True)
class ClipRequest:
    """A video or an animation to swap.

    Attributes:
        sources, likes: as in `SwapRequest`.
        target: the file.
        out: the file to write; it is there whole or not at all.
        faces: which faces, counted in the first frame that shows some; they are followed from then.
        kind: what `out` becomes; None for the target's own.
        quality: 1–100, or None for a good one.
        options: what the caller chose about the result.
        consent, label: as in `SwapRequest`.
    """

    sources: tuple[Upload, ...]
    target: Path
    out: Path
    faces: Selection = field(default_factory=Selection)
    likes: tuple[Upload, ...] = ()
    kind: FileKind | None = None
    quality: int | None = None
    options: SwapOptions = field(default_factory=SwapOptions)
    consent: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class ClipResult:
    """The facts of a swapped clip.

    Attributes:
        media_type: of the file that was written.
        size: (width, height) as it is shown.
        frames: how many there are.
        seconds: how long it is.
        swapped: in how many frames faces were swapped.
        most_faces: how many were swapped at most in one frame.
        warnings: what may look wrong.
        source: the source face that was used.
        marks: what it carries that tells that it is a swap.
    """

    media_type: str
    size: tuple[int, int]
    frames: int
    seconds: float
    swapped: int
    most_faces: int
    warnings: tuple[QualityWarning, ...]
    source: Face
    marks: Marks | None = None


@dataclass(frozen=True, slots=True)
class FoundFaces:
    """The faces of one photo, its (width, height) when upright, and the warnings of decoding."""

    size: tuple[int, int]
    faces: tuple[Face, ...]
    warnings: tuple[QualityWarning, ...]


class PartStore(Protocol):
    """Keeps bytes by name, until the clip is whole. What it raises ends the work on the clip."""

    async def get(self, name: str) -> bytes | None:
        """A part that is there, whole; else None."""
        ...

    async def put(self, name: str, data: bytes) -> None:
        """Keep a part; it is there whole or not at all."""
        ...


class Swap(Protocol):
    """Makes a swap as soon as the replica has room for it."""

    async def __call__(self, wanted: SwapRequest, watch: ClipProgress | None = None) -> SwapResult:
        """Swap a photo, or a video: then `watch` keeps its parts, and counts its frames."""
        ...


class ClipProgress(PartStore, Protocol):
    """Keeps the parts of a clip, and notes how far it is."""

    def progress(self, done: int, total: int) -> None:
        """Note that so many of its frames are done; called in the event loop."""
        ...
