"""What kind of clip a file is, told from its bytes; light, as HTTP and the command line ask it."""

from __future__ import annotations

from enum import StrEnum

from function.images import signature
from function.images.frames import frames

HEAD = 4096
"""How many bytes of a file suffice to tell a video."""

_ATOMS = {b"moov", b"mdat", b"wide", b"skip", b"free"}  # with which old QuickTime files begin
_RAW = b"crx "  # a camera's, in the form of a film
_EBML = b"\x1aE\xdf\xa3"


class Kind(StrEnum):
    """A kind of clip by its media type."""

    MP4 = "video/mp4"
    MOV = "video/quicktime"
    WEBM = "video/webm"
    MKV = "video/x-matroska"
    GIF = "image/gif"
    WEBP = "image/webp"

    @property
    def still(self) -> bool:
        """Whether it is an animated image: it has no sound, and Pillow reads it."""
        return self in {Kind.GIF, Kind.WEBP}

    @property
    def suffix(self) -> str:
        """How names of such files end."""
        return next(suffix for suffix, kind in SUFFIXES.items() if kind is self)


SUFFIXES = {
    ".mp4": Kind.MP4,
    ".m4v": Kind.MP4,
    ".mov": Kind.MOV,
    ".webm": Kind.WEBM,
    ".mkv": Kind.MKV,
    ".gif": Kind.GIF,
    ".webp": Kind.WEBP,
}


def video(head: bytes | bytearray) -> Kind | None:
    """The kind of a video; None for whatever else it is.

    Args:
        head: the file, or its first `HEAD` bytes.
    """
    if head.startswith(_EBML):
        return Kind.WEBM if b"webm" in head[:64] else Kind.MKV
    if head[4:8] == b"ftyp":
        brand = head[8:12]
        if brand == _RAW or signature.image_format(bytes(head[:HEAD])) is not None:
            return None
        return Kind.MOV if brand == b"qt  " else Kind.MP4
    return Kind.MOV if head[4:8] in _ATOMS else None


def animation(data: bytes | bytearray) -> Kind | None:
    """The kind of an animated image; None for whatever else it is, also for a GIF of one image.

    Args:
        data: the whole file.
    """
    if frames(data, 2).count < 2:
        return None
    return Kind.WEBP if data.startswith(b"RIFF") else Kind.GIF


def clip(data: bytes | bytearray) -> Kind | None:
    """The kind of a clip, be it a video or an animation, from the whole file."""
    return video(data[:HEAD]) or animation(data)
