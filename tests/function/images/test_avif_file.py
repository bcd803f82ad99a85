"""What an AVIF's streams say counts, wherever they are and whatever its boxes say of them."""

from __future__ import annotations

import io
import random
import re
import struct

import pytest
from PIL import Image, features

from function.images import av1, avif_file, size
from function.images.decode import decode
from function.problems import Problem
from tests.function.images.make import noise, save
from tests.function.images.odd_file import with_alpha

pytestmark = pytest.mark.skipif(not features.check("avif"), reason="Pillow was built without AVIF")

WIDE, HIGH = 300, 200


def avif(**options: object) -> bytes:
    """A photo of `WIDE` by `HIGH` pixels."""
    return save(noise(WIDE, HIGH), "AVIF", speed=10, **options)


def moving() -> bytes:
    """An animation of that size."""
    return avif(save_all=True, append_images=[noise(WIDE, HIGH, 2)], duration=40)


def lying(data: bytes) -> bytes:
    """The same, and its boxes say that it is small."""
    small = b"ispe" + struct.pack(">III", 0, 48, 32)
    return re.sub(rb"ispe\0{4}.{8}", lambda _: small, data, flags=re.DOTALL)


def with_places(data: bytes, entries: list[tuple[int, ...]]) -> bytes:
    """The same with other entries in its `iloc`: of each the parts, (start, size, start, …).

    All are about the first item, and starts are counted from where the first one's stream begins.
    """
    at = data.index(b"iloc") + 4
    id_, _, _, start, _ = struct.unpack(">HHHII", data[at + 8 : at + 22])
    grown = sum(6 + 4 * len(entry) for entry in entries) - 14
    told = b""
    for entry in entries:
        parts = [number + (start + grown) * (n % 2 == 0) for n, number in enumerate(entry)]
        told += struct.pack(f">HHH{len(parts)}I", id_, 0, len(parts) // 2, *parts)
    whole = bytearray(data[: at + 6] + struct.pack(">H", len(entries)) + told + data[at + 22 :])
    for box in (b"meta", b"iloc"):
        head = whole.index(box) - 4
        (length,) = struct.unpack(">I", whole[head : head + 4])
        whole[head : head + 4] = struct.pack(">I", length + grown)
    return bytes(whole)


@pytest.mark.parametrize("make", [avif, moving], ids=["photo", "animation"])
def test_an_image_that_says_less_than_its_stream_is_refused_for_its_stream(make):
    data = lying(make())
    with Image.open(io.BytesIO(data)) as opened:
        assert opened.size[0] < WIDE or make is moving
    assert size.pixels(data) == WIDE * HIGH
    with pytest.raises(Problem) as raised:
        decode(data, max_pixels=WIDE * HIGH - 1)
    assert raised.value.code == "too_many_pixels"
    assert raised.value.extra["value"] == WIDE * HIGH


def test_an_honest_image_counts_once_with_its_alpha_and_thumbnails():
    for data in (
        avif(),
        moving(),
        avif(subsampling="4:4:4"),
        save(noise(WIDE, HIGH).convert("L"), "AVIF"),
    ):
        assert avif_file.pixels(data) == WIDE * HIGH
        assert decode(data, max_pixels=WIDE * HIGH).pixels.shape[:2] == (HIGH, WIDE)
    transparent = with_alpha()
    assert avif_file.pixels(save(transparent, "AVIF")) == transparent.width * transparent.height


def test_a_stream_that_is_cut_into_parts_is_put_together():
    """A decoder does that as well, so no header hides at a cut."""
    data = avif()
    length = len(data) - data.index(b"mdat") - 4
    for cut in range(1, 14):
        whole = with_places(data, [(0, cut, cut, length - cut)])
        assert decode(whole).pixels.shape[:2] == (HIGH, WIDE)
        assert avif_file.pixels(whole) == WIDE * HIGH


def test_where_no_stream_is_found_nothing_is_decoded():
    data = avif().replace(b"av01", b"av02")
    assert avif_file.pixels(data) == 0
    with pytest.raises(Problem, match="damaged"):
        decode(data)


def test_many_large_streams_count_together():
    """As tiles of one picture, each within the limit, would."""
    data = avif()
    many = with_places(data, [(0, len(data))] * 7)
    assert avif_file.pixels(many) == 0  # the same bytes again and again
    assert avif_file.pixels(many + bytes(7 * len(data))) == 7 * WIDE * HIGH // 3


def test_whatever_bytes_there_are_they_are_read_or_not():
    odd, data = random.Random(5), moving()
    for _ in range(500):
        bent = bytearray(data)
        for _ in range(odd.randrange(1, 5)):
            at = odd.randrange(min(len(bent), 900))
            bent[at : at + odd.randrange(5)] = odd.randbytes(odd.randrange(5))
        assert avif_file.pixels(bytes(bent)) >= 0
        assert av1.largest(bytes(bent[-200:])) >= 0


@pytest.mark.parametrize(
    "inside",
    [b"\0\0\0\x08free" * 10_000, b"\0\0\0\0trak" * 10_000, b"\0\0\0\x08infe" * 10_000],
    ids=["many", "deep", "items"],
)
def test_boxes_without_end_are_no_photo(inside):
    head = avif()[:32]
    for kind in (b"moov", b"meta"):
        assert avif_file.pixels(head + struct.pack(">I4s", 8 + len(inside), kind) + inside) == 0


def bits(*numbers: tuple[int, int]) -> bytes:
    """(value, length in bits) of each number, one behind the other, as a unit of a stream."""
    text = "".join(f"{value:0{length}b}" for value, length in numbers)
    return int(text.ljust(-(-len(text) // 8) * 8, "0"), 2).to_bytes(-(-len(text) // 8), "big")


def unit(kind: int, data: bytes) -> bytes:
    """A unit with its length."""
    return bytes([kind << 3 | 2, len(data)]) + data


SMALL = (15, 4), (15, 4), (47, 16), (31, 16)
"""A frame of 48 by 32 pixels, whose sides may have 16 bits."""
TOOLS = (0, 1), (0, 7), (0, 1), (1, 1), (1, 1)


@pytest.mark.parametrize(
    ("times", "shown"),
    [
        (((0, 1), (0, 1), (0, 5), (0, 12), (0, 5)), ()),
        (((0, 1), (1, 1), (0, 5), (0, 12), (9, 5), (1, 1), (1, 1), (0, 4)), ()),
        (
            (
                *((1, 1), (0, 64), (0, 1), (1, 1), (9, 5), (0, 32), (0, 5), (6, 5), (0, 1), (0, 5)),
                *((0, 12), (0, 5), (1, 1), (0, 21)),
            ),
            ((5, 7),),
        ),
    ],
    ids=["plain", "delays", "times"],
)
@pytest.mark.parametrize("own", [0, 1])
def test_a_frame_may_have_a_size_of_its_own_and_counts_with_the_largest(times, shown, own):
    sequence = unit(1, bits((0, 3), (0, 1), (0, 1), *times, *SMALL, *TOOLS))
    frame = unit(6, bits((0, 1), (0, 2), (1, 1), *shown, (0, 1), (0, 1), (own, 1), (0xFFFF, 16)))
    assert av1.largest(sequence + frame) == (2**32 if own else 48 * 32)


def test_a_stream_of_units_without_end_is_no_photo():
    with pytest.raises(ValueError, match="units"):
        av1.largest(b"\x12\0" * 300)
    assert av1.largest(b"") == 0
