"""A `Picture` to the bytes of an image file: the only encoder of photos in Ember.

What is written is upright and in sRGB, and carries nothing else of the photo that it came from: no
EXIF, GPS position, camera data, comments or thumbnails.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageCms, features

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


def encode(picture: Picture, format: str, quality: int | None = None) -> bytes:  # noqa: A002
    """Write a picture.

    Colour files carry an sRGB profile. Gray pictures become gray files where the format has them
    (JPEG, PNG, AVIF); these carry none, as an RGB profile does not belong there and untagged gray
    is read as sRGB. Transparency is put on white where the format has none (see `flattens`).

    Args:
        picture: what to write.
        format: a key of `FORMATS`.
        quality: 1 to 100, or None for the format's default; PNG ignores it.

    Returns:
        The file; the same bytes for the same picture and options.

    Raises:
        Problem: `bad_value` for an unknown format, an impossible quality, or a picture that is too
            long for the format; `unsupported_media_type` when this build cannot write the format.
    """
    output = FORMATS.get(format)
    if output is None:
        raise Problem(
            "bad_value", f"The format must be one of {', '.join(FORMATS)}.", field="format"
        )
    if quality is not None and not 1 <= quality <= 100:
        raise Problem(
            "bad_value", "The quality must be a whole number from 1 to 100.", field="quality"
        )
    if max(picture.size) > output.max_side:
        raise Problem(
            "bad_value",
            f"A side of the result has {max(picture.size)} pixels; {format} can have at most"
            f" {output.max_side}. Use png.",
            field="format",
            limit=output.max_side,
            value=max(picture.size),
        )
    if format in {"webp", "avif"} and not features.check(format):
        raise Problem("unsupported_media_type", f"This server cannot write {format}. Use png.")
    out = io.BytesIO()
    _image(picture, alpha=output.alpha).save(
        out,
        format,
        quality=quality or output.quality,
        icc_profile=None if picture.gray else _SRGB,
        **output.options,
    )
    return out.getvalue()


def _image(picture: Picture, *, alpha: bool) -> Image.Image:
    """The picture as L or RGB; with its alpha as LA or RGBA, or flattened on white."""
    pixels = picture.pixels[..., 0] if picture.gray else picture.pixels
    image = Image.fromarray(np.ascontiguousarray(pixels))
    if picture.alpha is None:
        return image
    mask = Image.fromarray(picture.alpha)
    if alpha:
        image.putalpha(mask)
        return image
    flat = Image.new(image.mode, image.size, "white")
    flat.paste(image, mask=mask)
    return flat


def _srgb() -> bytes:
    """The profile to embed, with a fixed date of creation: equal pictures make equal files."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    return profile[:24] + np.array([2000, 1, 1, 0, 0, 0], ">u2").tobytes() + profile[36:]


_SRGB = _srgb()
