"""How many pixels a photo has, from the first bytes of its file, without decoding anything."""

from __future__ import annotations

import io

from function.images import signature

_LOSSY, _LOSSLESS = b"VP8 ", b"VP8L"


def pixels(data: bytes) -> int | None:
    """Width times height as the header states them; None when it cannot be read.

    Args:
        data: the file.
    """
    from PIL import Image

    from function.images import guard

    kind = signature.image_format(data)
    if kind is None:
        return None
    if stated := guard.pixels_before_opening(kind, data) or _of_webp(kind, data):
        return stated
    if kind == "HEIF":
        return None
    try:
        with Image.open(io.BytesIO(data), formats=[kind]) as opened:
            return opened.width * opened.height
    except Exception:  # whatever a decoder may raise about a damaged file
        return None


def _of_webp(kind: str, data: bytes) -> int:
    """Pixels of a WebP file without an extended header, whose decoder would make room for them."""
    if kind == "WEBP" and data[12:16] == _LOSSY:
        width, height = (int.from_bytes(data[at : at + 2], "little") & 0x3FFF for at in (26, 28))
        return width * height
    if kind == "WEBP" and data[12:16] == _LOSSLESS:
        bits = int.from_bytes(data[21:25], "little")
        return ((bits & 0x3FFF) + 1) * ((bits >> 14 & 0x3FFF) + 1)
    return 0
