"""What is asked of a service and what it gives: values without code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from function.faces.look import Look
from function.faces.select import Selection

if TYPE_CHECKING:
    from function.caution import Caution
    from function.faces.face import Face
    from function.faces.pipeline import SwappedFace


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
        look: how the faces are to be.
    """

    sources: tuple[Upload, ...]
    target: Upload
    faces: Selection = field(default_factory=Selection)
    like: Upload | None = None
    format: str | None = None
    quality: int | None = None
    look: Look = field(default_factory=Look)


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


class Swap(Protocol):
    """Makes a swap, when its turn has come."""

    async def __call__(self, order: SwapOrder) -> SwapResult:
        """See `Service.swap`."""
        ...
