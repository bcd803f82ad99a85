"""The kind of a clip by its bytes; light to import, as HTTP and the command line need it."""

from __future__ import annotations

from enum import StrEnum

from function.images import signature
from function.images.frames import frames

HEAD = 4096
"""How many bytes of a file suffice to recognise a video."""

_ATOMS = {b"moov", b"mdat", b"wide", b"skip", b"free"}  # with which old QuickTime files begin
_RAW = b"crx "  # a camera's, in the form of a film
_EBML = b"\x1aE\xdf\xa3"


class FileKind(StrEnum):
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
        return self in {FileKind.GIF, FileKind.WEBP}

    @property
    def suffix(self) -> str:
        """How names of such files end."""
        return next(suffix for suffix, kind in SUFFIXES.items() if kind is self)


SUFFIXES = {
    ".mp4": FileKind.MP4,
    ".m4v": FileKind.MP4,
    ".mov": FileKind.MOV,
    ".webm": FileKind.WEBM,
    ".mkv": FileKind.MKV,
    ".gif": FileKind.GIF,
    ".webp": FileKind.WEBP,
}


def video(head: bytes | bytearray) -> FileKind | None:
    """The kind of a video; None for whatever else it is.

    Args:
        head: the file, or its first `HEAD` bytes.
    """
    if head.startswith(_EBML):
        return FileKind.WEBM if b"webm" in head[:64] else FileKind.MKV
    if head[4:8] == b"ftyp":
        brand = head[8:12]
        if brand == _RAW or signature.image_format(bytes(head[:HEAD])) is not None:
            return None
        return FileKind.MOV if brand == b"qt  " else FileKind.MP4
    return FileKind.MOV if head[4:8] in _ATOMS else None


def animation(data: bytes | bytearray) -> FileKind | None:
    """The kind of an animated image; None for whatever else it is, also for a GIF of one image.

    Args:
        data: the whole file.
    """
    if frames(data, 2).count < 2:
        return None
    return FileKind.WEBP if data.startswith(b"RIFF") else FileKind.GIF


def clip(data: bytes | bytearray) -> FileKind | None:
    """The kind of a clip, be it a video or an animation, from the whole file."""
    return video(data[:HEAD]) or animation(data)


def media_type(head: bytes | bytearray) -> str:
    """The media type of a photo or a video; "" for whatever else it is.

    Args:
        head: the file, or its first `HEAD` bytes.
    """
    if kind := video(head):
        return str(kind)
    found = signature.image_format(bytes(head[:HEAD]))
    return f"image/{found.lower()}" if found else ""
