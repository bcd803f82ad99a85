"""Any mode and any embedded profile that a decoder yields, as 8-bit sRGB."""

from __future__ import annotations

import io
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageCms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_MAX_PROFILE = 4 << 20
"""Bytes; no real profile is larger, and 16 of them are kept."""

_BAND = 1 << 17
"""Bytes that are copied at a time: small enough for the cache, so that no second copy is needed."""


def unpack(
    image: Image.Image,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None, bool]:
    """The pixels of a decoded image, converted from its embedded profile.

    A profile that is broken or belongs to other colours is ignored. CMYK without a profile is
    converted by its complement, as browsers do. Gray of 16 bits is scaled from its full range (12
    bits where TIFF says so), 32-bit integers and floats from the smallest of the ranges 0 to 1,
    255, 65535 or their own largest value that holds them.

    Args:
        image: a loaded image of any mode; may be changed in place.

    Returns:
        uint8 [H, W, 3] RGB in sRGB; uint8 [H, W] alpha, or None when everything is opaque; whether
        the image holds no colour (one channel, or three that are equal everywhere).
    """
    found = image.info.get("icc_profile")
    icc = found if isinstance(found, bytes) and len(found) <= _MAX_PROFILE else None
    if image.mode in {"I", "F"} or image.mode.startswith("I;16"):
        image = _eight_bits(image)
    image = _in_srgb(_plain(image), icc)
    alpha = None
    if image.mode in {"LA", "RGBA"}:
        band = image.getchannel("A")
        if band.getextrema() != (255, 255):
            alpha = np.asarray(band)
        if image.mode == "LA":
            image = image.getchannel("L")
    pixels = np.empty((image.height, image.width, 3), np.uint8)
    for rows, part in _bands(image):
        rgb = part.convert("RGB") if part.mode == "L" else part
        pixels[rows] = np.frombuffer(rgb.tobytes("raw", "RGB"), np.uint8).reshape(-1, part.width, 3)
    return pixels, alpha, image.mode == "L" or _colourless(pixels)


def _plain(image: Image.Image) -> Image.Image:
    """The image as L, LA, RGB, RGBA or (to be converted by its profile) CMYK."""
    if image.mode == "CMYK":
        return image
    base = "L" if image.mode in {"1", "L", "LA", "La"} else "RGB"
    mode = base + "A" * image.has_transparency_data
    return image if image.mode == mode else image.convert(mode)


def _in_srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """Convert L, LA, RGB, RGBA or CMYK from the profile's colours."""
    if image.mode in {"L", "LA"}:
        curve = _gray_curve(profile) if profile else None
        return image.point([*curve, *range(256)][: 256 * len(image.mode)]) if curve else image
    transform = _transform(profile, image.mode) if profile else None
    if image.mode == "CMYK":
        return transform.apply(image) if transform else image.convert("RGB")
    if transform:
        transform.apply_in_place(image)
    return image


def _eight_bits(image: Image.Image) -> Image.Image:
    """Gray of 16 or 32 bits or float as L, or LA where a PNG names one value as transparent."""
    tags = getattr(image, "tag_v2", {})
    full = _peak(image) if image.mode in {"I", "F"} else 4095 if tags.get(258) == (12,) else 65535
    clear = image.info.get("transparency") if image.mode.startswith("I;16") else None
    gray = np.empty((image.height, image.width), np.uint8)
    alpha = None if clear is None else np.empty_like(gray)
    for rows, part in _bands(image):
        levels = np.asarray(part)
        scaled = levels.astype(np.float32) * np.float32(255 / full) + np.float32(0.5)
        gray[rows] = np.clip(np.nan_to_num(scaled), 0, 255)
        if alpha is not None:
            alpha[rows] = np.where(levels == clear, 0, 255)
    if tags.get(262) == 0:  # TIFF's "white is zero", which Pillow inverts up to 8 bits only
        gray = 255 - gray
    plain = Image.fromarray(gray)
    return plain if alpha is None else Image.merge("LA", (plain, Image.fromarray(alpha)))


def _peak(image: Image.Image) -> float:
    """The end of the range of an image of mode I or F: the smallest of the usual ones that fits."""
    parts = (np.asarray(part) for _, part in _bands(image))
    highest = max(float(np.max(part, initial=0, where=np.isfinite(part))) for part in parts)
    usual = (1.0, 255.0, 65535.0) if image.mode == "F" else (255.0, 65535.0)
    return next((end for end in usual if highest <= end), highest)


def _bands(image: Image.Image) -> Iterator[tuple[slice, Image.Image]]:
    """The image a few rows at a time: an array of the whole would need as much again to be made."""
    step = max(1, _BAND // (4 * image.width))
    for top in range(0, image.height, step):
        bottom = min(top + step, image.height)
        yield slice(top, bottom), image.crop((0, top, image.width, bottom))


def _colourless(pixels: NDArray[np.uint8]) -> bool:
    """Whether red, green and blue are equal everywhere; a few pixels tell it of most photos."""
    flat = pixels.reshape(-1, 3)
    return all(
        bool((part[:, 0] == part[:, 1]).all() and (part[:, 1] == part[:, 2]).all())
        for part in (flat[:: 1 + len(flat) // 1000], flat)
    )


@lru_cache(maxsize=16)
def _transform(profile: bytes, mode: str) -> ImageCms.ImageCmsTransform | None:
    """The transform from a profile to sRGB; None when there is nothing to convert or it is broken.

    Safe to share between threads: Little CMS copies a transform's one-pixel cache to the stack of
    each call.
    """
    try:
        transform = ImageCms.buildTransform(
            io.BytesIO(profile),
            ImageCms.createProfile("sRGB"),
            mode,
            "RGB" if mode == "CMYK" else mode,
            ImageCms.Intent.RELATIVE_COLORIMETRIC,
            flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
        )
        # sRGB has many profiles; what they do tells them better than what they are called
        return None if mode != "CMYK" and _changes_nothing(transform, mode) else transform
    except Exception:
        # hostile or merely sloppy: whatever is wrong with a profile, the photo itself is fine
        return None


def _changes_nothing(transform: ImageCms.ImageCmsTransform, mode: str) -> bool:
    """Whether a transform moves no colour of a coarse cube by more than one level."""
    axis = np.arange(0, 256, 15, dtype=np.uint8)
    cube = np.stack(np.meshgrid(axis, axis, axis), -1).reshape(-1, axis.size, 3)
    before = Image.fromarray(cube).convert(mode)
    after = transform.apply(before)
    return bool(np.abs(np.asarray(after, np.int16) - np.asarray(before, np.int16)).max() <= 1)


@lru_cache(maxsize=16)
def _gray_curve(profile: bytes) -> list[int] | None:
    """The 256 sRGB levels of a gray (or RGB) profile's levels; None like `_transform`."""
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        mode = {"GRAY": "L", "RGB": "RGB"}[source.profile.xcolor_space.strip()]
        ramp = Image.fromarray(np.arange(256, dtype=np.uint8)[None]).convert(mode)
        transform = ImageCms.buildTransform(
            source,
            ImageCms.createProfile("sRGB"),
            mode,
            "RGB",
            ImageCms.Intent.RELATIVE_COLORIMETRIC,
            flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
        )
        curve = np.asarray(transform.apply(ramp))[0, :, 1]
    except Exception:
        # as in `_transform`
        return None
    return None if np.abs(curve.astype(int) - np.arange(256)).max() <= 1 else curve.tolist()
