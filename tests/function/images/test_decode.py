"""Decoding: every kind of file, upright and in sRGB, or a problem that says what is wrong."""

from __future__ import annotations

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from function.images.decode import decode
from function.problems import Problem
from tests.function.images import make
from tests.function.images.make import quarters, save
from tests.function.images.odd_file import HEIC, heif
from tests.function.images.odd_files import ODD_FILES, OddFile

PHOTOS = Path(__file__).parents[2] / "photos"


@pytest.mark.parametrize("odd", ODD_FILES, ids=lambda odd: odd.name)
def test_an_odd_file_decodes_to_what_it_shows_or_is_refused_with_its_code(odd: OddFile):
    if odd.problem:
        with pytest.raises(Problem) as caught:
            decode(odd.build(), name="target", media_type=odd.media_type)
        problem = caught.value
        assert problem.code == odd.problem
        assert problem.extra["image"] == "target"
        assert problem.detail.startswith("The target ")
        assert not odd.cut_short or problem.extra["cut_short"]
        return
    picture = decode(odd.build(), media_type=odd.media_type)
    assert picture.size == odd.size
    assert picture.pixels.dtype == np.uint8
    assert picture.pixels.shape[2] == 3
    assert picture.gray == odd.gray
    assert picture.warnings == ((odd.warning,) if odd.warning else ())
    width, height = picture.size
    for (x, y), colour in odd.colours.items():
        there = picture.pixels[int(y * height), int(x * width)].astype(int)
        assert np.abs(there - colour).max() <= odd.tolerance, (x, y, there, colour)
    assert (picture.alpha is not None) == bool(odd.alphas)
    for (x, y), alpha in odd.alphas.items():
        assert abs(int(picture.alpha[int(y * height), int(x * width)]) - alpha) <= odd.tolerance


@pytest.mark.parametrize("code", ["bad_image", "unsupported_media_type", "too_many_pixels", None])
def test_the_table_of_odd_files_has_something_of_everything(code: str | None):
    names = [odd.name for odd in ODD_FILES]
    assert len(names) == len(set(names)) > 60
    assert sum(odd.problem == code for odd in ODD_FILES) >= 10


def test_the_limit_is_inclusive_and_the_problem_names_limit_and_value():
    data = save(quarters(), "JPEG")
    assert decode(data, max_pixels=48 * 32).size == (48, 32)
    with pytest.raises(Problem) as caught:
        decode(data, max_pixels=48 * 32 - 1, name="source")
    assert caught.value.kind.status == 413
    assert caught.value.extra == {"image": "source", "limit": 1535, "value": 1536}
    assert "1535" in caught.value.detail
    assert "1536" in caught.value.detail


def test_a_heic_photo_without_the_decoder_is_refused_with_the_way_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(Problem) as caught:
        decode(b"\0\0\0\x1cftypheic\0\0\0\0mif1heicmiaf" + bytes(64), name="source")
    assert caught.value.code == "unsupported_media_type"
    assert "make install EXTRAS=heic" in caught.value.detail


@pytest.mark.skipif(not HEIC, reason="pillow-heif is not installed")
def test_a_heic_photo_that_calls_itself_mif1_is_no_avif():
    data = heif(quarters(), quality=95)
    assert decode(data[:8] + b"mif1" + data[12:]).format == "heic"


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("html", "an HTML page, though sent as image/jpeg"),
        ("svg", "an SVG drawing"),
        ("xml", "an XML document"),
        ("text", "text"),
        ("lfs-pointer", "a Git LFS pointer"),
        ("pdf", "a PDF document"),
        ("psd", "a Photoshop document"),
        ("mp4", "a video"),
        ("mov", "a video"),
        ("zip", "a ZIP archive"),
        ("jpeg-xl", "a JPEG XL image"),
        ("jpeg-2000", "a JPEG 2000 image"),
        ("icon", "a Windows icon"),
        ("zeros", "not an image of any known kind"),
    ],
)
def test_what_is_no_photo_is_called_by_its_name(name: str, phrase: str):
    odd = next(odd for odd in ODD_FILES if odd.name == name)
    with pytest.raises(Problem) as caught:
        decode(odd.build(), media_type=odd.media_type)
    assert caught.value.detail.startswith(f"The image is {phrase}")
    wrong = odd.media_type in {"image/jpeg", "image/png"}
    assert (f"though sent as {odd.media_type}" in caught.value.detail) == wrong


def test_problems_keep_no_exception_and_so_no_half_decoded_image():
    with pytest.raises(Problem) as caught:
        decode(save(quarters(), "PNG")[:100])
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_every_level_of_16_bits_is_rounded_to_the_nearest_of_8():
    levels = np.arange(65536)
    data = make.png((65536, 1), 16, 0, b"\0" + levels.astype(">u2").tobytes())
    assert (decode(data).pixels[0, :, 0] == np.round(levels / 257)).all()


@pytest.mark.parametrize("place", [(0, 0), (31, 47), (13, 29)])
def test_one_pixel_of_colour_makes_a_photo_coloured(place: tuple[int, int]):
    pixels = np.full((32, 48, 3), 99, np.uint8)
    assert decode(save(Image.fromarray(pixels), "PNG")).gray
    pixels[place] = 99, 99, 100
    assert not decode(save(Image.fromarray(pixels), "PNG")).gray


def test_pictures_are_equal_to_what_pillow_shows():
    photo = (PHOTOS / "grace_hopper.jpg").read_bytes()
    with Image.open(io.BytesIO(photo)) as image:
        assert (decode(photo).pixels == np.asarray(image.convert("RGB"))).all()


def test_photos_are_decoded_side_by_side_as_one_by_one():
    files = [odd.build() for odd in ODD_FILES if odd.problem is None and "-icc-" in odd.name]
    alone = [decode(data).pixels for data in files]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(10):
            together = list(pool.map(lambda data: decode(data).pixels, files))
            assert all((a == b).all() for a, b in zip(alone, together, strict=True))
