"""Image files made by hand, for what Pillow cannot or will not write."""

from __future__ import annotations

import io
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageCms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RED, GREEN, BLUE, PALE = (220, 30, 30), (30, 180, 40), (20, 40, 200), (230, 220, 200)


def quarters(width: int = 48, height: int = 32) -> Image.Image:
    """An upright test image: red, green / blue, pale."""
    pixels = np.empty((height, width, 3), np.uint8)
    for rows, cols, colour in (
        (slice(None, height // 2), slice(None, width // 2), RED),
        (slice(None, height // 2), slice(width // 2, None), GREEN),
        (slice(height // 2, None), slice(None, width // 2), BLUE),
        (slice(height // 2, None), slice(width // 2, None), PALE),
    ):
        pixels[rows, cols] = colour
    return Image.fromarray(pixels)


def noise(width: int = 96, height: int = 64, seed: int = 0) -> Image.Image:
    """Something that no codec can make small."""
    return Image.fromarray(
        np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    )


def save(image: Image.Image, format: str, **options: Any) -> bytes:  # noqa: A002
    """The image as a file."""
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def chunk(kind: bytes, data: bytes = b"") -> bytes:
    """A PNG chunk."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    size: tuple[int, int],
    depth: int,
    colour: int,
    rows: bytes,
    *chunks: tuple[bytes, bytes],
) -> bytes:
    """A PNG of raw rows (each with its leading filter byte), with chunks before the pixels."""
    header = struct.pack(">IIBBBBB", *size, depth, colour, 0, 0, 0)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            *(chunk(*extra) for extra in chunks),
            chunk(b"IDAT", zlib.compress(rows)),
            chunk(b"IEND"),
        ]
    )


def png_with(data: bytes, *chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG with further chunks right after its header."""
    return data[:33] + b"".join(chunk(*extra) for extra in chunks) + data[33:]


_TIFF_CODES = {1: "B", 2: "B", 3: "H", 4: "I", 7: "B", 11: "f"}


def tiff(
    size: tuple[int, int],
    strips: Sequence[bytes],
    tags: Mapping[int, tuple[int, Sequence[float]]],
    *,
    next_ifd: int = 0,
) -> bytes:
    """A little-endian TIFF with one directory.

    Tags are {number: (type, values)}. Size, strip offsets (273) and lengths (279) are filled in
    unless given; offsets are those of `strips`, which lie at the end.
    """
    full: dict[int, tuple[int, Sequence[float]]] = {
        256: (4, [size[0]]),
        257: (4, [size[1]]),
        259: (3, [1]),
        277: (3, [1]),
        278: (4, [size[1]]),
        279: (4, [len(strip) for strip in strips]),
    }
    where = 324 if 322 in tags else 273
    full |= {where: (4, [0] * len(strips))} | dict(tags)
    if where == 324:
        del full[278], full[279]
        full.setdefault(325, (4, [len(strip) for strip in strips]))
    start = 8 + 2 + 12 * len(full) + 4

    def pack(kind: int, values: Sequence[float]) -> bytes:
        raw = struct.pack(f"<{len(values)}{_TIFF_CODES[kind]}", *values)
        return raw if len(raw) <= 4 else raw + b"\0" * (len(raw) % 2)

    outside = sum(len(raw) for raw in (pack(*tag) for tag in full.values()) if len(raw) > 4)
    if where not in tags:
        offsets = np.cumsum([start + outside, *(len(strip) for strip in strips)])[:-1]
        full[where] = (4, offsets.tolist())
    entries, extra = b"", b""
    for number in sorted(full):
        kind, values = full[number]
        raw = pack(kind, values)
        entries += struct.pack("<HHI", number, kind, len(values))
        if len(raw) > 4:
            entries += struct.pack("<I", start + len(extra))
            extra += raw
        else:
            entries += raw.ljust(4, b"\0")
    directory = struct.pack("<H", len(full)) + entries + struct.pack("<I", next_ifd)
    return b"II*\0" + struct.pack("<I", 8) + directory + extra + b"".join(strips)


def gray_tiff(
    bits: int, strip: bytes, size: tuple[int, int], kind: int = 1, photometric: int = 1
) -> bytes:
    """One channel: `kind` 1 unsigned, 2 signed, 3 float; photometric 0 white is zero, 1 black."""
    return tiff(size, [strip], {258: (3, [bits]), 262: (3, [photometric]), 339: (3, [kind])})


def colour_tiff(strip: bytes, size: tuple[int, int], photometric: int, channels: int = 3) -> bytes:
    """8-bit channels: photometric 2 RGB, 5 CMYK, 6 YCbCr, 8 CIE L*a*b*."""
    return tiff(
        size,
        [strip],
        {258: (3, [8] * channels), 262: (3, [photometric]), 277: (3, [channels])},
    )


def exif(orientation: int) -> bytes:
    """EXIF with an orientation, and a camera and a place that must not survive."""
    data = Image.Exif()
    data[0x010F] = "Camera Maker"
    data[0x0112] = orientation
    data.get_ifd(0x8825)[1] = "N"
    return data.tobytes()


def jpeg_segments(data: bytes) -> list[tuple[int, bytes]]:
    """The (marker, segment) pairs of a JPEG up to its first scan, and the rest as marker 0."""
    found, at = [(0xD8, data[:2])], 2
    while data[at + 1] != 0xDA:
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        found.append((data[at + 1], data[at:end]))
        at = end
    return [*found, (0, data[at:])]


def without_segment(data: bytes, marker: int) -> bytes:
    """A JPEG without the segments of one marker, e.g. 0xEE for Adobe's."""
    return b"".join(segment for code, segment in jpeg_segments(data) if code != marker)


def bmp(size: tuple[int, int], bits: int, compression: int, pixels: bytes, table: bytes) -> bytes:
    """A BMP with a 40-byte header; `table` is its palette or its masks."""
    offset = 54 + len(table)
    header = struct.pack("<IiiHHIIiiII", 40, *size, 1, bits, compression, len(pixels), 0, 0, 0, 0)
    return (
        b"BM" + struct.pack("<IHHI", offset + len(pixels), 0, 0, offset) + header + table + pixels
    )


P3_PRIMARIES = (
    (0.51512, 0.24120, -0.00105),
    (0.29198, 0.69225, 0.04189),
    (0.15710, 0.06657, 0.78407),
)
"""XYZ (D50) of Display P3's red, green and blue; its curve is that of sRGB."""


def s15(*values: float) -> bytes:
    """Numbers as ICC's s15Fixed16."""
    return b"".join(struct.pack(">i", round(value * 65536)) for value in values)


def srgb_profile() -> bytes:
    """An sRGB profile."""
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def rgb_profile(primaries: Sequence[Sequence[float]]) -> bytes:
    """The sRGB profile with other primaries, each (X, Y, Z) at D50."""
    profile = bytearray(srgb_profile())
    for i in range(struct.unpack_from(">I", profile, 128)[0]):
        name, offset, _ = struct.unpack_from(">4sII", profile, 132 + 12 * i)
        if name in {b"rXYZ", b"gXYZ", b"bXYZ"}:
            xyz = s15(*primaries[b"rgb".index(name[:1])])
            profile[offset : offset + 20] = b"XYZ \0\0\0\0" + xyz
    return bytes(profile)


def swapped_profile() -> bytes:
    """The sRGB profile with red and green exchanged."""
    srgb = srgb_profile()
    primaries = {}
    for i in range(struct.unpack_from(">I", srgb, 128)[0]):
        name, offset, _ = struct.unpack_from(">4sII", srgb, 132 + 12 * i)
        primaries[name] = [v / 65536 for v in struct.unpack_from(">3i", srgb, offset + 8)]
    return rgb_profile([primaries[b"gXYZ"], primaries[b"rXYZ"], primaries[b"bXYZ"]])


def profile(device: bytes, space: bytes, connection: bytes, tags: Mapping[bytes, bytes]) -> bytes:
    """A minimal ICC 2 profile."""
    start = 128 + 4 + 12 * len(tags)
    table, body = struct.pack(">I", len(tags)), b""
    for name, data in tags.items():
        table += name + struct.pack(">II", start + len(body), len(data))
        body += data + b"\0" * (-len(data) % 4)
    header = bytearray(128)
    header[:4] = struct.pack(">I", start + len(body))
    header[8:12] = b"\x02\x40\0\0"
    header[12:24] = device + space + connection
    header[36:40] = b"acsp"
    header[68:80] = s15(0.9642, 1.0, 0.8249)
    return bytes(header) + table + body


def gray_profile(gamma: float) -> bytes:
    """One channel with a power curve."""
    white = b"XYZ \0\0\0\0" + s15(0.9642, 1.0, 0.8249)
    curve = b"curv\0\0\0\0" + struct.pack(">IH", 1, round(gamma * 256))
    return profile(b"mntr", b"GRAY", b"XYZ ", {b"wtpt": white, b"kTRC": curve})


def ink_profile() -> bytes:
    """CMYK in which every ink is a neutral gray that takes L* down by 25."""
    white = b"XYZ \0\0\0\0" + s15(0.9642, 1.0, 0.8249)
    identity = bytes(range(256))
    corners = b"".join(
        bytes([round(255 * (1 - inks.bit_count() / 4)), 128, 128]) for inks in range(16)
    )
    matrix = s15(1, 0, 0, 0, 1, 0, 0, 0, 1)
    lut = b"mft1\0\0\0\0" + bytes([4, 3, 2, 0]) + matrix + identity * 4 + corners + identity * 3
    return profile(b"prtr", b"CMYK", b"Lab ", {b"wtpt": white, b"A2B0": lut, b"A2B1": lut})


def gif_of(
    images: Sequence[Image.Image],
    *,
    times: Sequence[int] = (),
    between: Mapping[int, bytes] | None = None,
    places: Mapping[int, tuple[int, int]] | None = None,
) -> bytes:
    """A GIF with one frame for each image, the first of which sets the screen.

    Args:
        images: what is shown.
        times: of each, in hundredths of a second.
        between: bytes that stand before a frame, by its number.
        places: (left, top) of frames that do not begin at the corner.
    """
    out = b"GIF89a" + struct.pack("<HHBBB", *images[0].size, 0x70, 0, 0)
    for number, image in enumerate(images):
        file = save(image.quantize(64), "GIF", optimize=False, interlace=0)
        colours = file[10] & 7
        end = 13 + (3 << colours + 1)
        pixels = file[file.index(b",", end) + 10 : -1]
        out += (between or {}).get(number, b"")
        out += struct.pack("<4sHBB", b"!\xf9\4\4", times[number] if times else 4, 0, 0)
        place = (places or {}).get(number, (0, 0))
        out += struct.pack("<BHHHHB", 0x2C, *place, *image.size, 0x80 | colours)
        out += file[13:end] + pixels
    return out + b";"
