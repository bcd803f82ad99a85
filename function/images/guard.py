"""What must be known about an image file before its pixels are decoded.

How many there are, whether the file is made to waste time, and whether it is whole. Nothing here
decodes, and nothing here knows about problems or requests.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from function.images import avif_file
from function.images.jpeg import jpeg

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

_MAX_SCANS = 64
"""Scans of a progressive JPEG; encoders write about ten, and each costs a pass over all pixels."""

_USUAL_SCANS = 12
"""Scans that a progressive JPEG takes no longer for than others do."""

_SLOW = {"bmp_rle": 16}
"""Decoders that Pillow has in Python only, and how much slower than the others they are."""


def pixels_before_opening(kind: str, data: bytes) -> int:
    """Pixels that the header states, for formats whose decoders allocate or refuse on opening.

    Args:
        kind: Pillow's name of the format.
        data: the file.

    Returns:
        The number, or 0 when the header can wait for the decoder (or states none).
    """
    if kind == "WEBP" and data[12:16] == b"VP8X":
        canvas = data[24:30].ljust(6, b"\0")
        return (_little(canvas[:3]) + 1) * (_little(canvas[3:]) + 1)
    if kind in {"AVIF", "HEIF"}:
        # the image, its tiles and its thumbnails each have one
        sizes = re.finditer(rb"ispe\0{4}(.{4})(.{4})", data, re.DOTALL)
        stated = max((_big(size[1]) * _big(size[2]) for size in sizes), default=0)
        return max(stated, avif_file.pixels(data) if kind == "AVIF" else 0)
    return 0


def pixels(opened: ImageFile) -> int:
    """Pixels that the decoder will allocate: those of the image, or of one tile of a TIFF."""
    width, height = opened.size
    tags = getattr(opened, "tag_v2", {})
    return max(width * height, int(tags.get(322, 0)) * int(tags.get(323, 0)))


def slowness(opened: ImageFile) -> int:
    """How many times slower than others the image's decoder is."""
    return max((_SLOW.get(tile[0], 1) for tile in opened.tile), default=1)


def passes(opened: ImageFile, data: bytes) -> int:
    """How many times longer than those of other images the image's pixels take.

    Args:
        opened: the file, not loaded yet.
        data: its bytes.
    """
    scans = jpeg(data).scans if opened.info.get("progressive") else 1
    return max(slowness(opened), -(-scans // _USUAL_SCANS))


def refuse_traps(opened: ImageFile, data: bytes) -> None:
    """Refuse files made so that few bytes cost much time: the same pixels again and again.

    Args:
        opened: the file, not loaded yet.
        data: its bytes.

    Raises:
        ValueError: it is such a file.
    """
    if opened.format == "AVIF" and not avif_file.pixels(data):
        raise ValueError("no stream, or far too many")
    width, height = opened.size
    area = sum((e[2] - e[0]) * (e[3] - e[1]) for _, e, *_ in opened.tile if e)
    if area > 8 * width * height:  # at most one layer per channel is honest
        raise ValueError("pixels are stated more than once")
    if opened.info.get("progressive") and jpeg(data).scans > _MAX_SCANS:
        raise ValueError("too many scans")
    if sum(size for _, size in _strips(opened)) > 2 * len(data):
        raise ValueError("strips overlap")


def pixels_end(opened: ImageFile) -> int:
    """Where a TIFF's pixel data ends, in bytes; 0 for other formats."""
    return max((start + size for start, size in _strips(opened)), default=0)


def ends_early(kind: str, data: bytes) -> bool:
    """Whether a WebP, AVIF or HEIC file is shorter than it states; other decoders run out."""
    if kind == "WEBP":
        return _little(data[4:8]) + 8 > len(data)
    if kind in {"AVIF", "HEIF"}:
        at = 0
        while at + 8 <= len(data) and (size := _big(data[at : at + 4])) > 1:
            at += size
        return at > len(data)
    return False


def _strips(opened: ImageFile) -> list[tuple[int, int]]:
    """(start, length) in bytes of a TIFF's strips or tiles."""
    tags = getattr(opened, "tag_v2", {})
    starts, sizes = (
        np.ravel(tags.get(strip, tags.get(tile, ()))).tolist()
        for strip, tile in ((273, 324), (279, 325))
    )
    return list(zip(starts, sizes, strict=False))


def _little(raw: bytes) -> int:
    return int.from_bytes(raw, "little")


def _big(raw: bytes) -> int:
    return int.from_bytes(raw, "big")
