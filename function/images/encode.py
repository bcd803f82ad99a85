"""A `Picture` to the bytes of an image file: the only encoder of photos in Ember."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageCms

from function.problems import Problem

if TYPE_CHECKING:
    from function.images.picture import Picture


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """One format that Ember writes.

    Attributes:
        media_type: for Content-Type.
        alpha: whether transparency survives.
        quality: the default, 1 to 100; None when the format is lossless and ignores it.
    """

    media_type: str
    alpha: bool
    quality: int | None


FORMATS: dict[str, OutputFormat] = {
    "jpeg": OutputFormat("image/jpeg", alpha=False, quality=92),
    "png": OutputFormat("image/png", alpha=True, quality=None),
    "webp": OutputFormat("image/webp", alpha=True, quality=90),
    "avif": OutputFormat("image/avif", alpha=True, quality=80),
}

_SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
_OPTIONS: dict[str, dict[str, Any]] = {
    "jpeg": {},
    "png": {"compress_level": 1},
    "webp": {"method": 2},
    "avif": {"speed": 8},
}


def default_format(picture: Picture) -> str:
    """The output format when the caller names none: the picture's own, else PNG."""
    return picture.format if picture.format in FORMATS else "png"


def flattens(picture: Picture, format: str) -> bool:  # noqa: A002
    """Whether writing the picture in this format puts transparent pixels on white."""
    return picture.alpha is not None and not FORMATS[format].alpha


def encode(picture: Picture, format: str, quality: int | None = None) -> bytes:  # noqa: A002
    """Write a picture.

    Args:
        picture: what to write.
        format: a key of `FORMATS`.
        quality: 1 to 100, or None for the format's default.

    Returns:
        The file.

    Raises:
        Problem: `bad_value` for an unknown format or quality.
    """
    if format not in FORMATS:
        raise Problem("bad_value", f"format is one of {', '.join(FORMATS)}.", field="format")
    if quality is not None and not 1 <= quality <= 100:
        raise Problem("bad_value", "quality is a whole number from 1 to 100.", field="quality")
    pixels = picture.pixels
    if flattens(picture, format):
        alpha = picture.alpha[..., None].astype(np.uint16)  # type: ignore[index]
        pixels = ((pixels * alpha + 255 * (255 - alpha) + 127) // 255).astype(np.uint8)
    elif picture.alpha is not None:
        pixels = np.dstack([pixels, picture.alpha])
    options = _OPTIONS[format] | {"quality": quality or FORMATS[format].quality or 0}
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, format, icc_profile=_SRGB, **options)
    return out.getvalue()
