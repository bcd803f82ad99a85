"""How much a photo is for its decoder, from what its file says, without decoding anything."""

from __future__ import annotations

import io

from function.images import signature

_LOSSY, _LOSSLESS = b"VP8 ", b"VP8L"


def pixels(data: bytes) -> int | None:
    """Pixels that the decoder goes over: width times height, for what is no trick of its sender's.

    The largest image that it makes room for counts, and each pixel as often as it takes longer than
    those of other photos.

    Args:
        data: the file.

    Returns:
        The number; None when it cannot be read, and then no decoder can.
    """
    from PIL import Image

    from function.images import guard, tiff

    kind = signature.image_format(data)
    if kind is None:
        return None
    stated = guard.pixels_before_opening(kind, data) or _of_webp(kind, data)
    if stated or kind == "HEIF":
        return stated or None
    if kind == "TIFF":
        data = tiff.with_picture_first(data)
    try:
        with Image.open(io.BytesIO(data), formats=[kind]) as opened:
            return guard.pixels(opened) * guard.passes(opened, data)
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
