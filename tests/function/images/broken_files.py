"""Files that must be refused, and some that look as if they should be."""

from __future__ import annotations

import struct
import zlib
from functools import partial
from typing import TYPE_CHECKING

from PIL import Image

from tests.function.images import make
from tests.function.images.make import noise, quarters, save
from tests.function.images.odd_file import (
    AVIF,
    HEIC,
    QUARTERS,
    OddFile,
    heif,
    saved,
    with_alpha,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def broken_files() -> Iterator[OddFile]:
    """All of them."""
    for part in (_bombs, _cut, _broken, _foreign):
        yield from part()


def _bombs() -> Iterator[OddFile]:
    many = partial(OddFile, problem="too_many_pixels")
    yield many("png-60000x60000", lambda: make.png((60_000, 60_000), 8, 2, b""))
    yield many("png-9500x9500", lambda: make.png((9500, 9500), 8, 2, b""))  # Pillow would warn
    yield many(
        "png-20000x20000-whole", lambda: make.png((20_000, 20_000), 1, 0, bytes(2501 * 20_000))
    )
    yield many("jpeg-65000x65000", lambda: _jpeg_of_size(65_000, 65_000))
    yield many(
        "gif-65000x65000",
        lambda: _patched(save(quarters(), "GIF"), 6, struct.pack("<2H", 65_000, 65_000)),
    )
    yield many("gif-frame-60000x60000", _gif_huge_frame)
    yield many(
        "bmp-60000x60000",
        lambda: _patched(save(quarters(), "BMP"), 18, struct.pack("<2i", 60_000, 60_000)),
    )
    yield many("bmp-rle-4000x4000", lambda: make.bmp((4000, 4000), 8, 1, b"\0\1", bytes(1024)))
    yield many("tiff-60000x60000", lambda: make.colour_tiff(b"\0" * 9, (60_000, 60_000), 2))
    yield many(
        "tiff-tile-60000x60000",
        lambda: make.tiff(
            (9, 9),
            [zlib.compress(bytes(9999))],
            {258: (3, [8]), 259: (3, [8]), 262: (3, [1]), 322: (4, [60_000]), 323: (4, [60_000])},
        ),
    )
    yield many(
        "webp-lossy-16383x16383",
        lambda: _patched(save(quarters(), "WEBP"), 26, struct.pack("<2H", 0x3FFF, 0x3FFF)),
    )
    yield many(
        "webp-canvas-16000000x200",
        lambda: _patched(
            save(with_alpha(), "WEBP"),
            24,
            (16_000_000).to_bytes(3, "little") + (200).to_bytes(3, "little"),
        ),
    )
    if AVIF:
        yield many("avif-60000x60000", lambda: _ispe(save(quarters(), "AVIF")))
    if HEIC:
        yield many("heic-60000x60000", lambda: _ispe(heif(quarters())))
    bad = partial(OddFile, problem="bad_image")
    yield bad(
        "png-text-bomb",
        lambda: make.png_with(
            save(quarters(), "PNG"), (b"zTXt", b"k\0\0" + zlib.compress(bytes(1 << 26)))
        ),
    )
    yield bad(
        "png-icc-bomb",
        lambda: make.png_with(
            save(quarters(), "PNG"), (b"iCCP", b"k\0\0" + zlib.compress(bytes(1 << 26)))
        ),
    )
    yield bad("jpeg-scan-bomb", _scan_bomb)
    yield bad(
        "tiff-strips-on-each-other",
        lambda: make.tiff(
            (9, 900),
            [zlib.compress(bytes(9999))],
            {
                258: (3, [8]),
                259: (3, [8]),
                262: (3, [1]),
                273: (4, [8] * 900),
                278: (3, [1]),
                279: (4, [20_000] * 900),
            },
        ),
    )
    yield bad(
        "tiff-same-pixels-again",
        lambda: make.tiff(
            (100, 100),
            [bytes(10_000)],
            {
                258: (3, [8]),
                262: (3, [1]),
                273: (4, [8] * 5000),
                278: (3, [99]),
                279: (4, [2] * 5000),
            },
        ),
    )


def _patched(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def _jpeg_of_size(width: int, height: int) -> bytes:
    data = save(quarters(), "JPEG")
    return _patched(data, data.index(b"\xff\xc0") + 5, struct.pack(">2H", height, width))


def _gif_huge_frame() -> bytes:
    data = save(Image.new("P", (1, 1)), "GIF")
    return _patched(data, data.rindex(b",\0\0\0\0\1\0\1\0") + 5, struct.pack("<2H", 60_000, 60_000))


def _ispe(data: bytes) -> bytes:
    return _patched(data, data.index(b"ispe") + 8, struct.pack(">2I", 60_000, 60_000))


def _scan_bomb() -> bytes:
    """A progressive JPEG whose last scan is there a thousand times."""
    data = save(quarters(), "JPEG", progressive=True)
    scan = data[data.rindex(b"\xff\xda") : -2]
    return data[:-2] + scan * 1000 + b"\xff\xd9"


def whole_files() -> dict[str, Callable[[], bytes]]:
    """Sound files that are cut short, byte by byte or by tenths, by several tests."""
    files: dict[str, Callable[[], bytes]] = {
        "jpeg": lambda: save(noise(), "JPEG", exif=make.exif(1)),
        "jpeg-progressive": lambda: save(noise(), "JPEG", progressive=True),
        "png": lambda: save(noise(), "PNG"),
        "webp": lambda: save(noise(), "WEBP"),
        "gif": lambda: save(noise(), "GIF"),
        "bmp": lambda: save(noise(), "BMP"),
        "tiff": lambda: save(noise(), "TIFF"),
        "tiff-lzw": lambda: save(noise(), "TIFF", compression="tiff_lzw"),
        "tiff-jpeg": lambda: save(noise(), "TIFF", compression="jpeg"),
    }
    if AVIF:
        files["avif"] = lambda: save(noise(), "AVIF")
    if HEIC:
        files["heic"] = lambda: heif(noise())
    return files


def _cut() -> Iterator[OddFile]:
    for name, build in whole_files().items():
        for tenth in range(1, 10):
            yield OddFile(
                f"{name}-cut-at-{tenth}-tenths",
                partial(lambda b, t: (d := b())[: len(d) * t // 10], build, tenth),
                problem="bad_image",
                cut_short=True,
            )


def _broken() -> Iterator[OddFile]:
    bad = partial(OddFile, problem="bad_image")
    yield bad("empty", lambda: b"", media_type="image/jpeg")
    yield bad("jpeg-start-only", lambda: b"\xff\xd8\xff", media_type="image/jpeg")
    yield bad(
        "jpeg-no-scan", lambda: make.without_segment(save(quarters(), "JPEG"), 0)[:-2] + b"\xff\xd9"
    )
    yield bad("jpeg-12-bit", lambda: _jpeg_precision(12))
    yield bad(
        "jpeg-lossless", lambda: save(quarters(), "JPEG").replace(b"\xff\xc0", b"\xff\xc3", 1)
    )
    yield bad("jpeg-0-high", lambda: _jpeg_of_size(48, 0))
    yield bad("png-0x0", lambda: make.png((0, 0), 8, 2, b""))
    yield bad("png-signature-only", lambda: b"\x89PNG\r\n\x1a\n")
    yield bad("png-bad-checksum", lambda: _patched(save(quarters(), "PNG"), 30, b"\0\0"))
    yield bad("png-bad-pixels", _png_bad_pixels)
    yield bad("png-no-pixels", lambda: make.png((9, 9), 8, 2, b"").replace(b"IDAT", b"IDAX"))
    yield bad("png-depth-3", lambda: make.png((9, 9), 3, 2, bytes(999)))
    yield bad("gif-no-frame", lambda: b"GIF89a" + struct.pack("<2H", 9, 9) + b"\0\0\0;")
    yield bad("gif-bad-code-size", _gif_bad_code_size)
    yield bad("bmp-unknown-compression", lambda: _patched(save(quarters(), "BMP"), 30, b"\x77"))
    yield bad("bmp-0-bits", lambda: _patched(save(quarters(), "BMP"), 28, b"\0"))
    yield bad("tiff-nowhere", lambda: b"II*\0\xff\xff\xff\x7f" + bytes(99))
    yield bad("tiff-no-tags", lambda: b"II*\0\x08\0\0\0\0\0" + bytes(99))
    yield bad("tiff-float-64", lambda: make.gray_tiff(64, bytes(16), (2, 1), 3))
    yield bad(
        "tiff-float-rgb",
        lambda: make.tiff(
            (1, 1),
            [bytes(12)],
            {258: (3, [32] * 3), 262: (3, [2]), 277: (3, [3]), 339: (3, [3] * 3)},
        ),
    )
    yield bad(
        "tiff-unknown-compression",
        lambda: make.tiff((1, 1), [bytes(3)], {258: (3, [8]), 259: (3, [4711]), 262: (3, [1])}),
    )
    yield bad(
        "tiff-65535-channels",
        lambda: make.tiff((1, 1), [bytes(3)], {258: (3, [8]), 262: (3, [1]), 277: (3, [65_535])}),
    )
    yield bad(
        "tiff-size-is-text",
        lambda: make.tiff((1, 1), [bytes(3)], {256: (7, b"wide"), 258: (3, [8]), 262: (3, [1])}),
    )
    yield bad("webp-no-image", lambda: b"RIFF\x1a\0\0\0WEBPVP8X\x0a\0\0\0" + bytes(10))
    yield bad(
        "webp-vp8-garbage",
        lambda: (
            b"RIFF" + struct.pack("<I", 112) + b"WEBPVP8 " + struct.pack("<I", 100) + b"\x55" * 100
        ),
    )
    yield bad("avif-empty-box", lambda: b"\0\0\0\x1cftypavif" + bytes(16))
    if HEIC:
        yield bad("heic-empty-box", lambda: b"\0\0\0\x1cftypheic" + bytes(16))
    good = partial(OddFile, colours=QUARTERS)
    yield good(
        "jpeg-junk-after", lambda: save(quarters(), "JPEG", quality=95) + b"junk" * 500, tolerance=6
    )
    yield good("png-junk-after", lambda: save(quarters(), "PNG") + b"\0" * 500)
    yield good("jpeg-malformed-mpo", _malformed_mpo, tolerance=6)
    yield good(
        "jpeg-no-tables",
        lambda: make.without_segment(save(quarters(), "JPEG", quality=95), 0xC4),
        tolerance=6,
    )
    yield OddFile(
        "tiff-loop",
        lambda: make.tiff((1, 1), [bytes(3)], {}, next_ifd=8),
        size=(1, 1),
        gray=True,
        colours={(0.0, 0.0): (255,) * 3},
    )
    yield good("png-sent-as-jpeg", saved("RGB", "PNG"), media_type="image/jpeg")
    yield good(
        "jpeg-sent-as-png", saved("RGB", "JPEG", quality=95), tolerance=6, media_type="image/png"
    )
    yield good("png-sent-as-html", saved("RGB", "PNG"), media_type="text/html")
    yield good(
        "jpeg-sent-as-video", saved("RGB", "JPEG", quality=95), tolerance=6, media_type="video/mp4"
    )


def _jpeg_precision(bits: int) -> bytes:
    data = save(quarters(), "JPEG")
    return _patched(data, data.index(b"\xff\xc0") + 4, bytes([bits]))


def _png_bad_pixels() -> bytes:
    data = make.png((9, 9), 8, 2, bytes(28 * 9))
    pixels = data.index(b"IDAT") + 4
    return data[:pixels] + b"\xff" * 9 + data[pixels + 9 :]


def _gif_bad_code_size() -> bytes:
    data = save(quarters(), "GIF")
    return _patched(data, data.index(b",\0\0\0\0") + 10, b"\xff")


def _malformed_mpo() -> bytes:
    data = save(quarters(), "JPEG", quality=95)
    segment = b"MPF\0II*\0\x08\0\0\0\0\0"
    return data[:2] + b"\xff\xe2" + struct.pack(">H", len(segment) + 2) + segment + data[2:]


def _foreign() -> Iterator[OddFile]:
    files: list[tuple[str, str, bytes]] = [
        ("one-byte", "image/jpeg", b"\xff"),
        ("zeros", "image/jpeg", bytes(4096)),
        ("random", "application/octet-stream", noise().tobytes()),
        ("html", "image/jpeg", b"<!DOCTYPE html><html><body>404 Not Found</body></html>"),
        ("html-declared", "text/html", b"\n\n<html><head></head></html>"),
        ("svg", "image/svg+xml", b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>'),
        ("xml", "image/png", b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>'),
        ("text", "text/plain", b"This is no photo."),
        ("text-utf-8", "image/png", "Das ist kein Föto.".encode()),
        ("text-that-starts-like-bmp", "image/bmp", b"BMW is a maker of motor cars."),
        ("json", "application/json", b'{"source": "https://example.org/a.jpg"}'),
        ("base64", "image/jpeg", b"/9j/4AAQSkZJRgABAQAAAQABAAD/2wBD"),
        (
            "lfs-pointer",
            "image/jpeg",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        ),
        ("pdf", "application/pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"),
        ("postscript", "application/postscript", b"%!PS-Adobe-3.0 EPSF-3.0\n"),
        ("psd", "image/vnd.adobe.photoshop", b"8BPS\0\1" + bytes(40)),
        ("icon", "image/x-icon", save(quarters(), "ICO")),
        ("jpeg-2000", "image/jp2", b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(40)),
        ("jpeg-xl", "image/jxl", b"\xff\x0a" + bytes(40)),
        ("tga", "image/x-tga", save(quarters(), "TGA")),
        ("ppm", "image/x-portable-pixmap", save(quarters(), "PPM")),
        ("zip", "application/zip", b"PK\x03\x04" + bytes(40)),
        ("gzip", "application/gzip", b"\x1f\x8b\x08" + bytes(40)),
        ("mp4", "video/mp4", b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + bytes(40)),
        ("mov", "video/quicktime", b"\0\0\0\x14ftypqt  \0\0\0\0qt  " + bytes(40)),
        ("webm", "video/webm", b"\x1aE\xdf\xa3" + bytes(40)),
        ("avi", "video/x-msvideo", b"RIFF\x24\0\0\0AVI LIST" + bytes(40)),
        ("wav", "audio/wav", b"RIFF\x24\0\0\0WAVEfmt " + bytes(40)),
        ("exe", "application/octet-stream", b"MZ\x90\0" + bytes(60)),
    ]
    for name, media_type, data in files:
        yield OddFile(
            name, partial(bytes, data), problem="unsupported_media_type", media_type=media_type
        )
