"""The picture of a TIFF is decoded, not its thumbnail; a camera raw is refused by its name."""

from __future__ import annotations

import struct

import pytest

from function.images import kinds, tiff
from function.images.decode import decode
from function.images.size import pixels
from function.problems import Problem
from tests.function.images.make import GREEN, RED

SMALL, LARGE = (8, 6), (32, 24)
RGB, SENSOR, LINEAR = 2, 32803, 34892
DNG = (50706, 1, b"\1\4\0\0")


class Image:
    """One image of a TIFF: its size and colour, whether it is reduced, further tags."""

    def __init__(self, size, colour, *more, reduced=False, light=RGB, inner=()):
        self.size, self.colour, self.more = size, colour, more
        self.reduced, self.light, self.inner = reduced, light, inner


def tiff_of(*images, order="<", big=False, padding=0):
    """A TIFF of these images in a row, each with those inside of it."""
    out = bytearray(b"II" if order == "<" else b"MM")
    out += struct.pack(order + ("HHHQ" if big else "HI"), *((43, 8, 0) if big else (42,)), 0)
    out += bytes(padding)
    head, number, kind, room = ("Q", "Q", 16, 8) if big else ("H", "I", 4, 4)

    def place(value):
        return struct.pack(order + number, value)

    def put(data):
        at = len(out)
        out.extend(data + bytes(len(data) % 2))
        return at

    def directory(image, following):
        width, height = image.size
        samples = 1 if image.light == SENSOR else 3
        strip = put(bytes(image.colour[:samples]) * (width * height))
        inner = b"".join(place(directory(each, 0)) for each in image.inner)
        short = order + "H"
        tags = [
            (254, 4, struct.pack(order + "I", int(image.reduced))),
            (256, 3, struct.pack(short, width)),
            (257, 3, struct.pack(short, height)),
            (258, 3, struct.pack(short, 8) * samples),
            (259, 3, struct.pack(short, 1)),
            (262, 3, struct.pack(short, image.light)),
            (273, kind, place(strip)),
            (277, 3, struct.pack(short, samples)),
            (278, 3, struct.pack(short, height)),
            (279, 4, struct.pack(order + "I", width * height * samples)),
            *([(330, kind, inner)] if inner else []),
            *image.more,
        ]
        sizes = {1: 1, 3: 2, 4: 4, 16: 8}
        entries = b""
        for tag, type_, value in sorted(tags):
            count = len(value) // sizes[type_]
            kept = value if len(value) <= room else place(put(value))
            entries += struct.pack(order + "HH" + number, tag, type_, count) + kept.ljust(
                room, b"\0"
            )
        return put(struct.pack(order + head, len(tags)) + entries + place(following))

    following = 0
    for image in reversed(images):
        following = directory(image, following)
    at = 8 if big else 4
    out[at : at + room] = place(following)
    return bytes(out)


THUMBNAIL = Image(SMALL, RED, reduced=True)
PICTURE = Image(LARGE, GREEN)


@pytest.mark.parametrize(
    ("order", "big"),
    [("<", False), (">", False), ("<", True)],
    ids=["little", "big-endian", "bigtiff"],
)
@pytest.mark.parametrize(
    "images",
    [
        (Image(SMALL, RED, reduced=True, inner=[PICTURE]),),
        (THUMBNAIL, PICTURE),
        (THUMBNAIL, Image((16, 12), RED, reduced=True), PICTURE),
        (Image(SMALL, RED, reduced=True, inner=[Image((9, 9), RED, reduced=True), PICTURE]),),
        (Image(SMALL, RED, inner=[PICTURE]),),
        (Image(LARGE, GREEN, inner=[Image((90, 90), RED, reduced=True)]),),
        (PICTURE, Image((90, 90), RED, reduced=True)),
    ],
    ids=["inside", "behind", "last", "inside-second", "not-said", "larger-reduced", "first"],
)
def test_the_picture_is_decoded_whatever_comes_before_it(images, big, order):
    data = tiff_of(*images, order=order, big=big)
    found = decode(data)
    assert found.size == LARGE
    assert found.pixels[5, 5].tolist() == list(GREEN)
    assert pixels(data) == LARGE[0] * LARGE[1]


def test_where_all_are_thumbnails_the_first_is_taken():
    assert decode(tiff_of(THUMBNAIL)).size == SMALL


def test_of_pages_the_first_is_taken_and_a_warning_says_so():
    found = decode(tiff_of(Image(SMALL, GREEN), Image(LARGE, RED)))
    assert (found.size, found.warnings) == (SMALL, ("first_frame",))


@pytest.mark.parametrize(
    "images",
    [
        (Image(SMALL, RED, DNG, reduced=True, inner=[Image(LARGE, GREEN, light=SENSOR)]),),
        (Image(SMALL, RED, DNG, reduced=True, inner=[Image(LARGE, GREEN, light=LINEAR)]),),
        (Image(SMALL, RED, reduced=True, inner=[PICTURE, Image(LARGE, GREEN, light=SENSOR)]),),
        (Image(SMALL, RED), Image(LARGE, GREEN, light=SENSOR)),
        (Image(LARGE, GREEN, light=SENSOR),),
        (Image(SMALL, RED, inner=[Image(LARGE, RED, (259, 3, struct.pack("<H", 34713)))]),),
    ],
    ids=["dng", "linear-dng", "preview-and-sensor", "behind", "alone", "nef"],
)
def test_a_raw_is_refused_by_its_name(images):
    with pytest.raises(Problem) as raised:
        decode(tiff_of(*images), name="target")
    assert raised.value.code == "unsupported_media_type"
    assert "The target is a camera raw" in raised.value.detail
    assert "JPEG" in raised.value.extra["hint"]


@pytest.mark.parametrize(
    "head",
    [
        b"II*\0\x10\0\0\0CR\2\0",
        b"\0\0\0\x18ftypcrx \0\0\0\1crx isom",
        b"FUJIFILMCCD-RAW 0201",
        b"IIRO\x08\0\0\0",
        b"IIU\0\x18\0\0\0",
        b"FOVb\1\0\2\0",
        b"II\x1a\0\0\0HEAPCCDR",
    ],
    ids=["cr2", "cr3", "raf", "orf", "rw2", "x3f", "crw"],
)
def test_raws_of_other_forms_are_refused_by_their_name_and_are_no_films(head):
    with pytest.raises(Problem, match="camera raw") as raised:
        decode(head + bytes(200))
    assert raised.value.code == "unsupported_media_type"
    assert kinds.clip(head + bytes(200)) is None


def test_directories_that_point_at_each_other_are_read_once():
    data = bytearray(tiff_of(Image(SMALL, RED, inner=[PICTURE]), PICTURE))
    for each in tiff.directories(bytes(data)):
        count = int.from_bytes(data[each.at : each.at + 2], "little")
        following = each.at + 2 + 12 * count
        data[following : following + 4] = data[4:8]
    assert len(tiff.directories(bytes(data))) == 2


def test_facts_behind_megabytes_of_padding_are_found():
    data = tiff_of(PICTURE, padding=3_000_000)
    assert pixels(data) == LARGE[0] * LARGE[1]
    assert decode(data).size == LARGE
