"""What a file is by its first bytes. Declared types and names are never trusted.

Deciding this before any decoder runs means that exactly one decoder sees the bytes, and that
whatever is no photo is refused by name ("a PDF document") instead of as a failed decoding.
"""

from __future__ import annotations

import re

_PHOTOS: tuple[tuple[tuple[bytes, ...], str], ...] = (
    ((b"\xff\xd8\xff",), "JPEG"),
    ((b"\x89PNG\r\n\x1a\n",), "PNG"),
    ((b"GIF87a", b"GIF89a"), "GIF"),
    ((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"), "TIFF"),
)
_AVIF = {b"avif", b"avis"}
_HEIF = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"}
_BMP_HEADERS = {12, 40, 52, 56, 64, 108, 124}  # sizes of the second header, one per version

RAW = "a camera raw, which has no finished picture"
"""DNG, NEF, CR2, CR3, ARW, RAF, ORF, RW2 and their relatives."""

_OTHERS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"%PDF", "a PDF document"),
    (0, b"%!PS", "a PostScript file"),
    (0, b"\xc5\xd0\xd3\xc6", "a PostScript file"),
    (0, b"IIRO", RAW),
    (0, b"IIRS", RAW),
    (0, b"MMOR", RAW),
    (0, b"IIU\0", RAW),
    (0, b"II\x1a\0\0\0HEAPCCDR", RAW),
    (0, b"FUJIFILMCCD-RAW", RAW),
    (0, b"FOVb", RAW),
    (0, b"\0MRM", RAW),
    (4, b"ftypcrx ", RAW),
    (0, b"8BPS", "a Photoshop document"),
    (0, b"gimp xcf", "a GIMP document"),
    (0, b"\xff\x0a", "a JPEG XL image"),
    (0, b"\0\0\0\x0cJXL \r\n\x87\n", "a JPEG XL image"),
    (0, b"\0\0\0\x0cjP  \r\n\x87\n", "a JPEG 2000 image"),
    (0, b"\xff\x4f\xff\x51", "a JPEG 2000 image"),
    (0, b"\0\0\1\0", "a Windows icon"),
    (0, b"v/1\x01", "an OpenEXR image"),
    (0, b"#?RADIANCE", "a Radiance HDR image"),
    (0, b"DDS ", "a DirectDraw texture"),
    (0, b"qoif", "a QOI image"),
    (0, b"PK\x03\x04", "a ZIP archive or an office document"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"Rar!", "a RAR archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (0, b"\x1aE\xdf\xa3", "a WebM or Matroska video"),
    (0, b"\0\0\1\xba", "an MPEG video"),
    (0, b"ID3", "an MP3 recording"),
    (0, b"OggS", "an Ogg recording"),
    (8, b"AVI ", "an AVI video"),
    (8, b"WAVE", "a WAV recording"),
    (0, b"version https://git-lfs", "a Git LFS pointer instead of the file that it stands for"),
)
_MARKUP = (
    (re.compile(rb"<!doctype html|<html|<head|<body", re.IGNORECASE), "an HTML page"),
    (re.compile(rb"<svg[\s>]"), "an SVG drawing"),
    (re.compile(rb"<\?xml|<[A-Za-z!]"), "an XML document"),
)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def image_format(data: bytes) -> str | None:
    """The photo format whose signature the bytes carry.

    Args:
        data: the file.

    Returns:
        Pillow's name of the format ("JPEG", "PNG", "WEBP", "AVIF", "HEIF", "GIF", "TIFF", "BMP"),
        or None when it is none of these.
    """
    for magics, name in _PHOTOS:
        if data.startswith(magics):
            return name
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "WEBP"
    if data.startswith(b"BM") and int.from_bytes(data[14:18], "little") in _BMP_HEADERS:
        return "BMP"
    brands = _brands(data)
    if brands & _AVIF:
        return "AVIF"
    return "HEIF" if brands & _HEIF else None


def describe(data: bytes) -> str:
    """What a file that is no photo seems to be, as a phrase: "a PDF document".

    Args:
        data: the file, not empty.

    Returns:
        A phrase that completes "The target is …".
    """
    for offset, magic, phrase in _OTHERS:
        if data.startswith(magic, offset):
            return phrase
    if data[4:8] == b"ftyp":
        return "a video (MP4 or QuickTime)"
    start = data[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"<"):
        return next((phrase for pattern, phrase in _MARKUP if pattern.search(start)), "text")
    return "not an image of any known kind" if _CONTROL.search(start) else "text"


def _brands(data: bytes) -> set[bytes]:
    """The brands of an ISO media file: the major one and the compatible ones."""
    if data[4:8] != b"ftyp":
        return set()
    box = data[8 : min(int.from_bytes(data[:4], "big"), 256)]
    return {box[:4], *(box[i : i + 4] for i in range(8, len(box), 4))}
