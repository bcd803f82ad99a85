"""Bytes to an upright sRGB `Picture`: the only decoder of photos in Ember."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from function.caution import Caution
from function.images.picture import Picture
from function.problems import Problem

FORMATS = ("JPEG", "PNG", "WEBP", "AVIF", "GIF", "TIFF", "BMP")


def decode(
    data: bytes,
    *,
    max_pixels: int = 50_000_000,
    name: str = "image",
    media_type: str | None = None,
) -> Picture:
    """Decode one photo.

    Args:
        data: the file.
        max_pixels: more pixels than this are refused before anything is decoded.
        name: the request's field, for problems.
        media_type: what the sender declared, if anything.

    Returns:
        The picture, upright, in sRGB.

    Raises:
        Problem: `bad_image`, `unsupported_media_type` or `too_many_pixels`.
    """
    if not data:
        raise Problem("bad_image", f"The {name} is empty.", image=name)
    try:
        image: Image.Image = Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError:
        declared = f" (declared as {media_type})" if media_type else ""
        raise Problem(
            "unsupported_media_type", f"The {name} is not an image{declared}.", image=name
        ) from None
    value = image.width * image.height
    if value > max_pixels:
        raise Problem(
            "too_many_pixels",
            f"The {name} has {value} pixels; the limit is {max_pixels}.",
            image=name,
            limit=max_pixels,
            value=value,
        )
    kind = "jpeg" if image.format == "MPO" else str(image.format).lower()
    try:
        frames = getattr(image, "n_frames", 1)
        image.load()
        image = ImageOps.exif_transpose(image)
        gray = image.mode in {"1", "L", "LA", "I;16", "I", "F"}
        rgba = np.asarray(image.convert("RGBA")) if image.has_transparency_data else None
        pixels = np.array(image.convert("RGB"))
    except Exception:
        raise Problem("bad_image", f"The {name} cannot be decoded.", image=name) from None
    alpha = None if rgba is None or rgba[..., 3].min() == 255 else rgba[..., 3].copy()
    cautions = (Caution.FIRST_FRAME,) if frames > 1 and image.format != "MPO" else ()
    return Picture(pixels, alpha, gray, kind, cautions)
