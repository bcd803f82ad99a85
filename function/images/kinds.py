"""What kind of clip a file is, told from its bytes; light, as HTTP and the command line ask it."""

from __future__ import annotations

from enum import StrEnum

from function.images import signature

HEAD = 4096
"""How many bytes of a file suffice to tell a video."""

_ATOMS = {b"moov", b"mdat", b"wide", b"skip", b"free"}  # with which old QuickTime files begin
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
        if signature.image_format(bytes(head[:HEAD])) is not None:
            return None
        return Kind.MOV if brand == b"qt  " else Kind.MP4
    return Kind.MOV if head[4:8] in _ATOMS else None


def animation(data: bytes | bytearray) -> Kind | None:
    """The kind of an animated image; None for whatever else it is, also for a GIF of one image.

    Args:
        data: the whole file.
    """
    if data.startswith(b"RIFF") and data[8:16] == b"WEBPVP8X":
        return Kind.WEBP if frames(data, 2) == 2 else None
    return Kind.GIF if data.startswith((b"GIF87a", b"GIF89a")) and frames(data, 2) == 2 else None


def frames(data: bytes | bytearray, most: int = 1_000_000) -> int:
    """How many images a GIF or a WebP has, found without decoding; it stops counting at `most`."""
    count, at = 0, 12
    if data.startswith(b"RIFF"):
        while at + 8 <= len(data) and count < most:
            count += data[at : at + 4] == b"ANMF"
            size = int.from_bytes(data[at + 4 : at + 8], "little")
            at += 8 + size + size % 2
        return count
    at = 13 + _table(data, 10)
    while at < len(data) and count < most:
        if data[at] == 0x21:  # an extension: its label, then parts
            at = _parts_end(data, at + 2)
        elif data[at] == 0x2C:
            count += 1
            at = _parts_end(data, at + 11 + _table(data, at + 9))
        else:
            break
    return count


def clip(data: bytes | bytearray) -> Kind | None:
    """The kind of a clip, be it a video or an animation, from the whole file."""
    return video(data[:HEAD]) or animation(data)


def _table(data: bytes | bytearray, at: int) -> int:
    """Bytes of the table of colours that the flags at this place announce."""
    flags = data[at] if at < len(data) else 0
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _parts_end(data: bytes | bytearray, at: int) -> int:
    """Where a row of parts, each with its length before it, ends."""
    while at < len(data) and data[at]:
        at += data[at] + 1
    return at + 1
