"""What stands beside a JPEG's picture does not count for it, and a lost end loses nothing."""

from __future__ import annotations

import io
import random
import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest

from function.images.decode import decode
from function.images.jpeg import jpeg
from function.problems import Problem
from function.quality_warning import QualityWarning
from tests.function.images.make import exif, noise, quarters, save

if TYPE_CHECKING:
    from PIL import Image

KINDS = {
    "baseline": {},
    "progressive": {"progressive": True},
    "restarts": {"restart_marker_rows": 1},
    "gray": {},
    "4:4:4": {"subsampling": 0},
}
SCANS = b"\xff\xda\0\0" * 300
FILM = struct.pack(">I", 24) + b"ftypmp42" + bytes(12) + random.Random(2).randbytes(2_000_000)


def made(kind: str, image: Image.Image | None = None, **more: object) -> bytes:
    image = image or noise(97, 66)
    return save(image.convert("L") if kind == "gray" else image, "JPEG", **KINDS[kind], **more)


def with_segments(data: bytes, marker: int, content: bytes, count: int = 1) -> bytes:
    """The JPEG with so many more segments at its beginning."""
    segment = bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content
    return data[:2] + segment * count + data[2:]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "around",
    [
        lambda data: data + FILM,
        lambda data: data + SCANS,
        lambda data: data + data * 40,
        lambda data: with_segments(data, 0xE2, (SCANS * 50)[:60_000], 40),
        lambda data: with_segments(data, 0xFE, SCANS),
        lambda data: with_segments(data, 0xEF, b"\xff\xd9" * 500),
    ],
    ids=["film", "scans", "pictures", "large-segments", "comment", "ends-in-segment"],
)
def test_streams_apart_from_the_picture_change_nothing(kind, around):
    data = made(kind)
    found, alone = decode(around(data)), decode(data)
    assert (found.pixels == alone.pixels).all()
    assert found.warnings == ()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lost", [1, 2], ids=["half-an-end", "no-end"])
def test_a_jpeg_that_lacks_only_its_end_is_taken_with_a_warning(kind, lost):
    data = made(kind, exif=exif(1))
    found = decode(data[:-lost])
    assert found.warnings == (QualityWarning.NO_END,)
    assert (found.pixels == decode(data).pixels).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lost", [20, 90, 400, 1500])
def test_a_jpeg_that_lacks_pixels_is_cut_short(kind, lost):
    with pytest.raises(Problem) as raised:
        decode(made(kind)[:-lost])
    assert raised.value.code == "bad_image"
    assert raised.value.extra["cut_short"]


@pytest.mark.parametrize("kind", ["baseline", "progressive", "gray"])
@pytest.mark.parametrize("seed", range(8))
def test_what_is_taken_without_its_end_shows_what_was_there(kind, seed):
    """Wherever it is cut, it is refused or (a bit or two lost at the most) as good as whole."""
    data = made(kind, noise(40, 32, seed))
    whole = decode(data).pixels.astype(int)
    for lost in range(1, 40):
        try:
            found = decode(data[:-lost]).pixels
        except Problem:
            continue
        assert np.abs(found - whole)[:-8].max() == 0, lost


def test_a_progressive_jpeg_that_lacks_its_last_scans_is_cut_short():
    data = made("progressive", quarters())
    last = data.rindex(b"\xff\xda")
    cut = data[: data.rindex(b"\xff\xc4", 0, last)]
    assert not jpeg(cut).refined
    with pytest.raises(Problem) as raised:
        decode(cut)
    assert raised.value.extra["cut_short"]


def test_scans_are_counted_to_the_end_of_the_picture():
    assert jpeg(made("baseline")).scans == 1
    assert jpeg(made("progressive")).scans == 10
    assert jpeg(made("progressive") + SCANS).scans == 10
    assert jpeg(with_segments(made("progressive"), 0xE5, SCANS)).scans == 10


def test_the_versions_of_a_phone_s_photo_are_not_decoded():
    out = io.BytesIO()
    quarters().save(out, "MPO", save_all=True, append_images=[noise(24, 16)], progressive=True)
    found = decode(out.getvalue() + FILM)
    assert (found.size, found.warnings) == ((48, 32), ())
