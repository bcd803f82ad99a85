"""Odd files that must decode: every format, mode, orientation, profile and size."""

from __future__ import annotations

import struct
import zlib
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageChops

from function.quality_warning import QualityWarning
from tests.function.images import make
from tests.function.images.make import RED, noise, quarters, save
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
    from collections.abc import Iterator

_GRAYS = {
    place: (v := round(0.299 * r + 0.587 * g + 0.114 * b), v, v)
    for place, (r, g, b) in QUARTERS.items()
}
_SEE_THROUGH = {(0.1, 0.1): 0, (0.9, 0.9): 255}


def sound_files() -> Iterator[OddFile]:
    """All of them."""
    for part in (_plain, _modes, _orientations, _profiles, _several, _sizes):
        yield from part()


def _plain() -> Iterator[OddFile]:
    good = partial(OddFile, colours=QUARTERS)
    yield good("jpeg", saved("RGB", "JPEG", quality=95), tolerance=6, media_type="image/jpeg")
    yield good("jpeg-420", saved("RGB", "JPEG", subsampling=2, quality=95), tolerance=8)
    yield good("jpeg-progressive", saved("RGB", "JPEG", progressive=True), tolerance=6)
    yield good("jpeg-restarts", saved("RGB", "JPEG", restart_marker_blocks=1), tolerance=6)
    yield good("jpeg-as-rgb", saved("RGB", "JPEG", keep_rgb=True, quality=95), tolerance=6)
    yield good("png", saved("RGB", "PNG"), media_type="image/png")
    yield good("png-interlaced", _interlaced)
    yield good("webp", saved("RGB", "WEBP", quality=95), tolerance=8, media_type="image/webp")
    yield good("webp-lossless", saved("RGB", "WEBP", lossless=True))
    yield good("gif", saved("RGB", "GIF"), tolerance=30, media_type="image/gif")
    yield good("bmp", saved("RGB", "BMP"), media_type="image/bmp")
    yield good("tiff", saved("RGB", "TIFF"), media_type="image/tiff")
    for name in ("lzw", "deflate", "packbits"):
        compression = {"lzw": "tiff_lzw", "deflate": "tiff_adobe_deflate"}.get(name, name)
        yield good(f"tiff-{name}", saved("RGB", "TIFF", compression=compression))
    yield good("tiff-jpeg", saved("RGB", "TIFF", compression="jpeg", quality=95), tolerance=8)
    yield good("tiff-big", saved("RGB", "TIFF", big_tiff=True))
    yield good("tiff-planar", _planar_tiff)
    yield good("tiff-tiled", _tiled_tiff)
    yield good("mpo", _mpo, tolerance=6, media_type="image/jpeg")
    if AVIF:
        yield good("avif", saved("RGB", "AVIF", quality=95), tolerance=10)
    if HEIC:
        yield good("heic", lambda: heif(quarters(), quality=95), tolerance=10)


def _modes() -> Iterator[OddFile]:
    grays = partial(OddFile, colours=_GRAYS, gray=True)
    yield grays("jpeg-gray", saved("L", "JPEG", quality=95), tolerance=4)
    yield grays("png-gray", saved("L", "PNG"))
    yield grays("png-gray-alpha", lambda: save(with_alpha("L"), "PNG"), alphas=_SEE_THROUGH)
    yield grays("png-gray-as-rgb", lambda: save(quarters().convert("L").convert("RGB"), "PNG"))
    yield grays("gif-gray", saved("L", "GIF"))
    yield grays("bmp-gray", saved("L", "BMP"))
    yield grays("tiff-gray-alpha", lambda: save(with_alpha("L"), "TIFF"), alphas=_SEE_THROUGH)
    good = partial(OddFile, colours=QUARTERS)
    yield good("png-rgba", lambda: save(with_alpha(), "PNG"), alphas=_SEE_THROUGH)
    yield good("png-rgba-opaque", saved("RGBA", "PNG"))
    yield good(
        "webp-rgba",
        lambda: save(with_alpha(), "WEBP", exact=True, quality=95),
        tolerance=8,
        alphas=_SEE_THROUGH,
    )
    yield good("tiff-rgba", lambda: save(with_alpha(), "TIFF"), alphas=_SEE_THROUGH)
    yield good("png-palette", lambda: save(_few_colours(), "PNG"))
    yield good(
        "png-palette-one-clear",
        lambda: save(_few_colours(), "PNG", transparency=_few_colours().getpixel((2, 2))),
        alphas=_SEE_THROUGH,
    )
    yield good(
        "png-palette-alphas",
        _palette_alphas,
        alphas={(0.1, 0.1): 0, (0.9, 0.1): 128, (0.1, 0.9): 255},
    )
    yield good(
        "gif-clear",
        lambda: save(_few_colours(), "GIF", transparency=_few_colours().getpixel((2, 2))),
        alphas=_SEE_THROUGH,
    )
    yield good(
        "png-rgb-one-clear",
        lambda: make.png_with(save(quarters(), "PNG"), (b"tRNS", struct.pack(">3H", *RED))),
        alphas=_SEE_THROUGH,
    )
    yield good("png-16-bit", _png_16, tolerance=1)
    yield good("jpeg-cmyk-adobe", saved("CMYK", "JPEG", quality=95), tolerance=8)
    yield good("jpeg-cmyk-unmarked", _cmyk_unmarked, tolerance=8)
    yield good("jpeg-ycck", _ycck, tolerance=8)
    yield good("tiff-cmyk", saved("CMYK", "TIFF"))
    yield good("tiff-lab", saved("LAB", "TIFF"), tolerance=13)
    yield good(
        "tiff-ycbcr",
        lambda: make.colour_tiff(quarters().convert("YCbCr").tobytes(), (48, 32), 6),
        tolerance=3,
    )
    if AVIF:
        yield grays("avif-gray", saved("L", "AVIF", quality=95), tolerance=6)
        yield good(
            "avif-rgba",
            lambda: save(with_alpha(), "AVIF", quality=95),
            tolerance=10,
            alphas=_SEE_THROUGH,
        )
    if HEIC:
        yield good(
            "heic-rgba", lambda: heif(with_alpha(), quality=95), tolerance=10, alphas=_SEE_THROUGH
        )
    ramp = partial(
        OddFile,
        size=(3, 1),
        gray=True,
        colours={(0.0, 0.0): (0,) * 3, (0.5, 0.0): (128,) * 3, (0.99, 0.0): (255,) * 3},
        tolerance=1,
    )
    words = struct.pack(">3H", 0, 0x8080, 0xFFFF)
    yield ramp("png-gray-16", lambda: make.png((3, 1), 16, 0, b"\0" + words))
    yield ramp(
        "png-gray-16-one-clear",
        lambda: make.png((3, 1), 16, 0, b"\0" + words, (b"tRNS", b"\xff\xff")),
        alphas={(0.0, 0.0): 255, (0.99, 0.0): 0},
    )
    yield ramp(
        "png-gray-16-alpha",
        lambda: make.png(
            (3, 1), 16, 4, b"\0" + struct.pack(">6H", 0, 0xFFFF, 0x8080, 0xFFFF, 0xFFFF, 0)
        ),
        alphas={(0.0, 0.0): 255, (0.99, 0.0): 0},
    )
    yield OddFile(
        "png-1-bit",
        lambda: make.png((4, 1), 1, 0, b"\0\x50"),
        size=(4, 1),
        gray=True,
        colours={(0.0, 0.0): (0,) * 3, (0.99, 0.0): (255,) * 3},
    )
    yield OddFile(
        "png-2-bit",
        lambda: make.png((4, 1), 2, 0, b"\0\x1b"),
        size=(4, 1),
        gray=True,
        colours={(0.3, 0.0): (85,) * 3},
    )
    yield OddFile(
        "bmp-1-bit",
        lambda: save(Image.new("1", (9, 3), 1), "BMP"),
        size=(9, 3),
        gray=True,
        colours={(0.5, 0.5): (255,) * 3},
    )
    yield OddFile(
        "tiff-group4",
        lambda: save(Image.new("1", (9, 3), 1), "TIFF", compression="group4"),
        size=(9, 3),
        gray=True,
        colours={(0.5, 0.5): (255,) * 3},
    )
    yield ramp("tiff-gray-12", lambda: make.gray_tiff(12, b"\x00\x08\x08\xff\xf0", (3, 1)))
    yield ramp(
        "tiff-gray-16", lambda: make.gray_tiff(16, struct.pack("<3H", 0, 0x8080, 0xFFFF), (3, 1))
    )
    yield ramp(
        "tiff-gray-16-white-is-zero",
        lambda: make.gray_tiff(16, struct.pack("<3H", 0xFFFF, 0x7F7F, 0), (3, 1), photometric=0),
    )
    yield ramp(
        "tiff-gray-16-big-endian", lambda: save(Image.frombytes("I;16B", (3, 1), words), "TIFF")
    )
    yield ramp(
        "tiff-gray-32", lambda: make.gray_tiff(32, struct.pack("<3i", 0, 0x8080, 0xFFFF), (3, 1), 2)
    )
    yield ramp(
        "tiff-float-to-1", lambda: make.gray_tiff(32, struct.pack("<3f", 0, 0.502, 1), (3, 1), 3)
    )
    yield ramp(
        "tiff-float-to-255", lambda: make.gray_tiff(32, struct.pack("<3f", 0, 128, 255), (3, 1), 3)
    )
    yield ramp(
        "tiff-float-to-1e6",
        lambda: make.gray_tiff(32, struct.pack("<3f", -5, 502e3, 1e6), (3, 1), 3),
    )
    yield ramp(
        "tiff-float-not-finite",
        lambda: make.gray_tiff(
            32, struct.pack("<3f", float("nan"), 0.502, float("inf")), (3, 1), 3
        ),
    )
    yield OddFile(
        "tiff-palette-alpha",
        _palette_alpha_tiff,
        size=(2, 1),
        alphas={(0.0, 0.0): 255, (0.9, 0.0): 10},
        gray=True,
        colours={(0.0, 0.0): (51,) * 3},
    )
    yield OddFile(
        "tiff-gray-premultiplied",
        lambda: make.tiff(
            (2, 1),
            [bytes([100, 128, 50, 255])],
            {258: (3, [8, 8]), 262: (3, [1]), 277: (3, [2]), 338: (3, [1])},
        ),
        size=(2, 1),
        gray=True,
        alphas={(0.0, 0.0): 128},
        colours={(0.0, 0.0): (199,) * 3},
        tolerance=1,
    )
    yield good(
        "bmp-top-down", lambda: make.bmp((48, -32), 24, 0, quarters().tobytes("raw", "BGR"), b"")
    )
    yield good("bmp-565", _bmp_565, tolerance=8)
    yield OddFile(
        "bmp-rle",
        lambda: make.bmp((4, 1), 8, 1, b"\4\1\0\1", _two_colours),
        size=(4, 1),
        colours={(0.5, 0.0): (1, 2, 3)},
    )
    yield good("bmp-rgba", lambda: save(with_alpha(), "BMP"))


_two_colours = b"\0\0\0\0" + b"\3\2\1\0" + b"\0\0\0\0" * 254


def _interlaced() -> bytes:
    """Adam7 of a 48 × 32 image; Pillow only reads it."""
    pixels = np.asarray(quarters())
    rows = b""
    for x, y, dx, dy in (
        (0, 0, 8, 8),
        (4, 0, 8, 8),
        (0, 4, 4, 8),
        (2, 0, 4, 4),
        (0, 2, 2, 4),
        (1, 0, 2, 2),
        (0, 1, 1, 2),
    ):
        rows += b"".join(b"\0" + row.tobytes() for row in pixels[y::dy, x::dx])
    data = bytearray(make.png((48, 32), 8, 2, rows))
    data[28] = 1
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    return bytes(data)


def _few_colours() -> Image.Image:
    return quarters().quantize(4)


def _palette_alphas() -> bytes:
    image = _few_colours()
    alphas = bytearray(b"\xff" * 4)
    alphas[image.getpixel((2, 2))], alphas[image.getpixel((46, 2))] = 0, 128
    return save(image, "PNG", transparency=bytes(alphas))


def _png_16() -> bytes:
    pixels = np.asarray(quarters()).astype(">u2") * 257
    return make.png((48, 32), 16, 2, b"".join(b"\0" + row.tobytes() for row in pixels))


def _cmyk_unmarked() -> bytes:
    """CMYK as the JPEG standard has it: no marker, 0 is no ink. (Pillow inverts when it writes.)"""
    inverted = ImageChops.invert(quarters().convert("CMYK"))
    return make.without_segment(save(inverted, "JPEG", quality=95), 0xEE)


def _ycck() -> bytes:
    """Photoshop's: inverted inks, three of them as YCbCr, as the Adobe segment says."""
    luma = ImageChops.invert(ImageChops.invert(quarters()).convert("YCbCr")).split()
    stored = Image.merge("CMYK", (*luma, Image.new("L", (48, 32), 0)))
    data = save(stored, "JPEG", quality=95)
    adobe = dict(make.jpeg_segments(data))[0xEE]
    return data.replace(adobe, adobe[:-1] + b"\2")


def _planar_tiff() -> bytes:
    bands = [band.tobytes() for band in quarters().split()]
    return make.tiff(
        (48, 32), bands, {258: (3, [8] * 3), 262: (3, [2]), 277: (3, [3]), 284: (3, [2])}
    )


def _tiled_tiff() -> bytes:
    pixels = np.asarray(quarters())
    tiles = [pixels[y : y + 16, x : x + 16].tobytes() for y in (0, 16) for x in (0, 16, 32)]
    return make.tiff(
        (48, 32),
        tiles,
        {258: (3, [8] * 3), 262: (3, [2]), 277: (3, [3]), 322: (3, [16]), 323: (3, [16])},
    )


def _palette_alpha_tiff() -> bytes:
    table = [0x1100 * (i % 16) for i in range(768)]
    tags = {258: (3, [8, 8]), 262: (3, [3]), 277: (3, [2]), 338: (3, [2]), 320: (3, table)}
    return make.tiff((2, 1), [bytes([3, 255, 4, 10])], tags)


def _bmp_565() -> bytes:
    r, g, b = (np.asarray(quarters())[::-1].astype("<u2")[..., i] for i in range(3))
    return make.bmp(
        (48, 32),
        16,
        3,
        ((r >> 3) << 11 | (g >> 2) << 5 | b >> 3).tobytes(),
        struct.pack("<3I", 0xF800, 0x7E0, 0x1F),
    )


def _mpo() -> bytes:
    return save(quarters(), "MPO", save_all=True, append_images=[noise(24, 16)], quality=95)


_STORED = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


def turned(orientation: int, format: str = "JPEG", **options: object) -> bytes:  # noqa: A002
    """The quarters as a camera held that way stores them."""
    turn = _STORED[orientation]
    stored = quarters() if turn is None else quarters().transpose(turn)
    write = partial(heif, stored) if format == "HEIF" else partial(save, stored, format)
    return write(exif=make.exif(orientation), **options)


def _orientations() -> Iterator[OddFile]:
    good = partial(OddFile, colours=QUARTERS)
    for number in _STORED:
        yield good(f"jpeg-orientation-{number}", partial(turned, number, quality=95), tolerance=6)
    for number in (5, 6):
        yield good(f"png-orientation-{number}", partial(turned, number, "PNG"))
        yield good(f"webp-orientation-{number}", partial(turned, number, "WEBP", lossless=True))
        yield good(f"tiff-orientation-{number}", partial(turned, number, "TIFF"))
        if AVIF:
            yield good(
                f"avif-orientation-{number}",
                partial(turned, number, "AVIF", quality=95),
                tolerance=10,
            )
        if HEIC:
            yield good(
                f"heic-orientation-{number}",
                partial(turned, number, "HEIF", quality=95),
                tolerance=10,
            )
    jpeg = partial(saved, "RGB", "JPEG", quality=95)
    yield good("jpeg-orientation-9", jpeg(exif=make.exif(9)), tolerance=6)
    yield good("jpeg-orientation-text", jpeg(exif=_exif_as_text()), tolerance=6)
    yield good(
        "jpeg-exif-garbage", jpeg(exif=b"Exif\0\0II*\0\xff\xff\xff\x7f" + b"\xff" * 99), tolerance=6
    )
    yield good("jpeg-exif-cut", jpeg(exif=make.exif(1)[:30]), tolerance=6)


def _exif_as_text() -> bytes:
    entry = struct.pack(">HHIHH", 0x0112, 3, 1, 6, 0)
    return make.exif(6).replace(entry, struct.pack(">HHI4s", 0x0112, 2, 4, b"six"))


def _profiles() -> Iterator[OddFile]:
    swapped = {place: (g, r, b) for place, (r, g, b) in QUARTERS.items()}
    png = partial(saved, "RGB", "PNG")
    yield OddFile(
        "png-icc-swapped", png(icc_profile=make.swapped_profile()), colours=swapped, tolerance=1
    )
    yield OddFile(
        "jpeg-icc-swapped",
        saved("RGB", "JPEG", quality=95, icc_profile=make.swapped_profile()),
        colours=swapped,
        tolerance=8,
    )
    yield OddFile(
        "png-icc-swapped-rgba",
        lambda: save(with_alpha(), "PNG", icc_profile=make.swapped_profile()),
        colours=swapped,
        tolerance=1,
        alphas=_SEE_THROUGH,
    )
    yield OddFile(
        "png-icc-swapped-palette",
        lambda: save(_few_colours(), "PNG", icc_profile=make.swapped_profile()),
        colours=swapped,
        tolerance=1,
    )
    good = partial(OddFile, colours=QUARTERS)
    yield good("png-icc-srgb", png(icc_profile=make.srgb_profile()))
    yield good("png-icc-broken", png(icc_profile=b"no profile at all"))
    yield good("png-icc-cut", png(icc_profile=make.srgb_profile()[:300]))
    yield good("png-icc-of-other-colours", png(icc_profile=make.ink_profile()))
    yield good(
        "jpeg-icc-huge",
        saved("RGB", "JPEG", quality=95, icc_profile=make.srgb_profile() + bytes(5_000_000)),
        tolerance=6,
    )
    yield OddFile(
        "jpeg-icc-ink",
        lambda: save(
            Image.new("CMYK", (9, 9), (255, 0, 0, 0)), "JPEG", icc_profile=make.ink_profile()
        ),
        size=(9, 9),
        gray=True,
        colours={(0.5, 0.5): (184,) * 3},
        tolerance=2,
    )
    yield OddFile(
        "png-icc-gray-linear",
        lambda: save(Image.new("L", (9, 9), 128), "PNG", icc_profile=make.gray_profile(1.0)),
        size=(9, 9),
        gray=True,
        colours={(0.5, 0.5): (188,) * 3},
        tolerance=1,
    )
    yield OddFile(
        "png-icc-gray-is-rgb",
        saved("L", "PNG", icc_profile=make.srgb_profile()),
        gray=True,
        colours=_GRAYS,
        tolerance=1,
    )


def _several() -> Iterator[OddFile]:
    first = partial(OddFile, colours=QUARTERS, warning=QualityWarning.FIRST_FRAME)
    more = {"save_all": True, "append_images": [noise(48, 32)]}
    yield first("gif-animated", lambda: save(quarters(), "GIF", **more), tolerance=30)
    yield first("gif-animated-cut-in-second", _gif_cut_in_second, tolerance=30)
    yield first("png-animated", lambda: save(quarters(), "PNG", **more))
    yield first("webp-animated", lambda: save(quarters(), "WEBP", **more, lossless=True))
    yield first("tiff-pages", lambda: save(quarters(), "TIFF", **more))
    if AVIF:
        yield first(
            "avif-animated", lambda: save(quarters(), "AVIF", **more, quality=95), tolerance=10
        )
    if HEIC:
        yield first("heic-several", lambda: heif(quarters(), quality=95, **more), tolerance=10)
    yield OddFile("gif-small-frame", _gif_small_frame, size=(48, 32), alphas={(0.9, 0.9): 0})


def _gif_cut_in_second() -> bytes:
    data = save(quarters(), "GIF", save_all=True, append_images=[noise(48, 32)])
    return data[: len(data) - 900]


def _gif_small_frame() -> bytes:
    """A canvas of 48 × 32 whose only frame is smaller and has a transparent colour."""
    image = _few_colours()
    part = image.crop((20, 0, 28, 10))
    data = bytearray(save(part, "GIF", transparency=image.getpixel((2, 2))))
    data[6:10] = struct.pack("<2H", 48, 32)
    return bytes(data)


def _sizes() -> Iterator[OddFile]:
    for name in ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", *(["AVIF"] if AVIF else [])):
        for size in ((1, 1), (2, 3), (1, 2000), (16_000, 1)):
            yield OddFile(
                f"{name.lower()}-{size[0]}x{size[1]}",
                partial(lambda f, s: save(Image.new("RGB", s, RED), f), name, size),
                size=size,
                colours={(0.5, 0.5): RED},
                tolerance=12,
            )
    for size in ((20_000, 1), (1, 20_000), (65_500, 1)):
        yield OddFile(
            f"jpeg-{size[0]}x{size[1]}",
            partial(lambda s: save(Image.new("RGB", s, RED), "JPEG"), size),
            size=size,
            colours={(0.5, 0.5): RED},
            tolerance=6,
        )
    if HEIC:
        yield OddFile(
            "heic-1x1",
            lambda: heif(Image.new("RGB", (1, 1), RED)),
            size=(1, 1),
            colours={(0.5, 0.5): RED},
            tolerance=12,
        )
