"""A `Picture` to the bytes of an image file: the only encoder of photos in Ember.

What is written is upright and in sRGB, and carries nothing else of the photo that it came from: no
EXIF, GPS position, camera data, comments or thumbnails.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageCms, features

from function.images.formats import FORMATS
from function.problems import Problem

if TYPE_CHECKING:
    from function.images.picture import Picture


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
