"""One odd file and what must become of it, and what the tables of them share."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from PIL import Image, features

from tests.function.images.make import BLUE, GREEN, PALE, RED, quarters, save

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from function.quality_warning import QualityWarning

Colour = tuple[int, int, int]

AVIF = features.check("avif")
HEIC = importlib.util.find_spec("pillow_heif") is not None

QUARTERS = {(0.1, 0.1): RED, (0.9, 0.1): GREEN, (0.1, 0.9): BLUE, (0.9, 0.9): PALE}


@dataclass(frozen=True, slots=True)
class OddFile:
    """One file.

    Attributes:
        name: what is odd about it, usable in a file name.
        build: makes it.
        problem: the code of the problem that it must cause, or None when it must decode.
        media_type: what a client declares.
        size: (width, height) that it must have.
        colours: by place (x, y from 0 to 1), the RGB that must be there, within `tolerance`.
        alphas: by place, the alpha; empty when there must be none.
        gray: whether it must be taken for gray.
        warning: what decoding must warn of.
        cut_short: whether the problem must say that the file ends too early.
    """

    name: str
    build: Callable[[], bytes]
    problem: str | None = None
    media_type: str = "application/octet-stream"
    size: tuple[int, int] = (48, 32)
    colours: Mapping[tuple[float, float], Colour] = field(default_factory=dict)
    tolerance: int = 0
    alphas: Mapping[tuple[float, float], int] = field(default_factory=dict)
    gray: bool = False
    warning: QualityWarning | None = None
    cut_short: bool = False


def heif(image: Image.Image, **options: object) -> bytes:
    """The image as HEIC; needs pillow-heif."""
    import pillow_heif

    pillow_heif.register_heif_opener()
    return save(image, "HEIF", **options)


def saved(mode: str, format: str, **options: object) -> Callable[[], bytes]:  # noqa: A002
    """Makes the quarters in one of Pillow's modes as a file."""
    return lambda: save(quarters().convert(mode), format, **options)


def with_alpha(mode: str = "RGBA") -> Image.Image:
    """The quarters, the left half fully transparent."""
    image = quarters().convert(mode)
    mask = Image.new("L", image.size, 255)
    mask.paste(0, (0, 0, image.width // 2, image.height))
    image.putalpha(mask)
    return image
