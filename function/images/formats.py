"""The formats that Ember writes: a table without the code that does so, which is heavy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from function.images.picture import Picture


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """One format that Ember writes.

    Attributes:
        media_type: for Content-Type.
        alpha: whether transparency survives.
        quality: the default, 1 to 100; None when the format is lossless and ignores it.
        max_side: the most pixels that a side can have in a file that others can read.
        options: Pillow's options.
    """

    media_type: str
    alpha: bool
    quality: int | None
    max_side: int
    options: dict[str, Any] = field(default_factory=dict)


# Measured on 2-MP photos. JPEG without chroma subsampling (4:4:4) gains 2 to 3 dB for a quarter
# more bytes and 3 ms, and the edges of lips and eyes do not bleed. The fast levels of PNG, WebP and
# AVIF take less than half the time of the defaults (AVIF: a tenth) for at most a sixth more bytes;
# AVIF gains nothing from threads at these sizes.
FORMATS: dict[str, OutputFormat] = {
    "jpeg": OutputFormat("image/jpeg", False, 92, 65_500, {"subsampling": "4:4:4"}),
    "png": OutputFormat("image/png", True, None, 2**31 - 1, {"compress_level": 1}),
    "webp": OutputFormat("image/webp", True, 90, 16_383, {"method": 1}),
    "avif": OutputFormat("image/avif", True, 80, 32_768, {"speed": 9, "max_threads": 1}),
}


def default_format(picture: Picture) -> str:
    """The output format when the caller names none.

    The picture's own where Ember writes it. Otherwise JPEG for an opaque HEIC, which is a phone's
    photo and would be huge without loss, and PNG for the rest (GIF, BMP, TIFF, transparent HEIC),
    so that nothing is lost that the file had.

    Args:
        picture: the target.
    """
    if picture.format in FORMATS:
        return picture.format
    return "jpeg" if picture.format == "heic" and picture.alpha is None else "png"


def flattens(picture: Picture, format: str) -> bool:  # noqa: A002
    """Whether writing the picture in this format puts transparent pixels on white."""
    return picture.alpha is not None and not FORMATS[format].alpha
