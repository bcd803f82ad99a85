"""Encoding: four formats, in sRGB, with nothing of the original but its pixels."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms, features

from function.images.decode import decode
from function.images.encode import encode
from function.images.formats import FORMATS, default_format, flattens
from function.images.picture import Picture
from function.problems import Problem
from tests.function.images import make
from tests.function.images.make import noise, quarters, save
from tests.function.images.odd_file import HEIC, heif, with_alpha
from tests.function.images.sound_files import turned

PHOTO = Path(__file__).parents[2] / "photos" / "astronaut.png"


@pytest.fixture(scope="module")
def photo() -> Picture:
    return decode(PHOTO.read_bytes())


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def psnr(a: Picture, b: Picture) -> float:
    error = (a.pixels.astype(float) - b.pixels) ** 2
    return float(10 * np.log10(255**2 / max(error.mean(), 1e-9)))


@pytest.mark.parametrize(("kind", "least"), [("jpeg", 38), ("png", 99), ("webp", 35), ("avif", 35)])
def test_what_is_written_reads_back_as_it_was(photo: Picture, kind: str, least: float):
    data = encode(photo, kind)
    back = decode(data)
    assert back.format == kind
    assert back.size == photo.size
    assert psnr(photo, back) > least
    assert opened(data).get_format_mimetype() == FORMATS[kind].media_type
    assert encode(photo, kind) == data


def test_a_png_loses_nothing_not_even_under_full_transparency():
    picture = decode(save(with_alpha(), "PNG"))
    back = decode(encode(picture, "png"))
    assert (back.pixels == picture.pixels).all()
    assert (back.alpha == picture.alpha).all()


@pytest.mark.parametrize("kind", ["jpeg", "webp", "avif"])
def test_a_higher_quality_means_more_bytes_and_less_error(photo: Picture, kind: str):
    files = [encode(photo, kind, quality) for quality in (1, 50, 100)]
    assert [len(data) for data in files] == sorted(len(data) for data in files)
    errors = [psnr(photo, decode(data)) for data in files]
    assert errors == sorted(errors)


@pytest.mark.parametrize("kind", FORMATS)
def test_colours_are_tagged_as_srgb(photo: Picture, kind: str):
    profile = opened(encode(photo, kind)).info["icc_profile"]
    assert "sRGB" in ImageCms.getProfileDescription(ImageCms.ImageCmsProfile(io.BytesIO(profile)))
    assert len(profile) < 1000
    assert (decode(encode(photo, "png")).pixels == photo.pixels).all()


@pytest.mark.parametrize("kind", FORMATS)
def test_orientation_place_and_camera_do_not_survive(kind: str):
    data = encode(decode(turned(6)), kind)
    assert not opened(data).getexif()
    assert b"Exif" not in data
    assert b"Camera Maker" not in data
    assert decode(data).size == (48, 32)


@pytest.mark.parametrize("kind", ["png", "webp", "avif"])
def test_transparency_is_put_back_where_the_format_has_it(kind: str):
    picture = decode(save(with_alpha(), "PNG"))
    assert not flattens(picture, kind)
    back = decode(encode(picture, kind))
    assert np.abs(back.alpha.astype(int) - picture.alpha).max() <= 2


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_transparent_pixels_become_white_in_a_jpeg(mode: str):
    image = quarters().convert(mode[:-1])
    image.putalpha(Image.new("L", image.size, 64))
    picture = decode(save(image, "PNG"))
    assert flattens(picture, "jpeg")
    back = decode(encode(picture, "jpeg"))
    wanted = 255 + (picture.pixels.astype(float) - 255) * 64 / 255
    assert np.abs(back.pixels - wanted)[4:12, 4:20].max() <= 3
    assert back.alpha is None


def test_an_opaque_picture_is_not_flattened(photo: Picture):
    assert not flattens(photo, "jpeg")


@pytest.mark.parametrize("kind", FORMATS)
def test_a_gray_picture_stays_gray(kind: str):
    picture = decode(save(quarters().convert("L"), "JPEG", quality=95))
    data = encode(picture, kind)
    back = decode(data)
    assert psnr(picture, back) > 40
    spread = np.ptp(back.pixels.astype(int), axis=2).max()
    assert spread == 0 or (kind == "webp" and spread <= 2)  # WebP has no gray, only YCbCr
    assert (opened(data).mode == "L") == (kind != "webp")
    assert "icc_profile" not in opened(data).info


@pytest.mark.parametrize("quality", [0, 101, -1])
def test_an_impossible_quality_is_refused(photo: Picture, quality: int):
    with pytest.raises(Problem) as caught:
        encode(photo, "jpeg", quality)
    assert caught.value.code == "bad_value"
    assert caught.value.extra["field"] == "quality"


def test_an_unknown_format_is_refused_with_the_known_ones(photo: Picture):
    with pytest.raises(Problem, match="jpeg, png, webp, avif") as caught:
        encode(photo, "tiff")
    assert caught.value.code == "bad_value"


@pytest.mark.parametrize(("kind", "limit"), [("jpeg", 65_500), ("webp", 16_383), ("avif", 32_768)])
@pytest.mark.parametrize("tall", [False, True])
def test_a_format_takes_its_longest_side_and_refuses_one_pixel_more(
    kind: str, limit: int, tall: bool
):
    def strip(length: int) -> Picture:
        pixels = np.zeros((length, 1, 3) if tall else (1, length, 3), np.uint8)
        return Picture(pixels, gray=True)

    assert decode(encode(strip(limit), kind)).size == ((1, limit) if tall else (limit, 1))
    with pytest.raises(Problem, match="png") as caught:
        encode(strip(limit + 1), kind)
    assert caught.value.code == "bad_value"
    assert caught.value.extra == {"field": "format", "limit": limit, "value": limit + 1}
    assert decode(encode(strip(limit + 1), "png")).size == strip(limit + 1).size


def test_a_build_without_avif_says_so(photo: Picture, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(features, "check", lambda name: name != "avif")
    with pytest.raises(Problem) as caught:
        encode(photo, "avif")
    assert caught.value.code == "unsupported_media_type"
    assert encode(photo, "jpeg")


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        (lambda: save(quarters(), "JPEG"), "jpeg"),
        (lambda: save(quarters(), "MPO"), "jpeg"),
        (lambda: save(with_alpha(), "PNG"), "png"),
        (lambda: save(quarters(), "WEBP"), "webp"),
        (lambda: save(quarters(), "AVIF"), "avif"),
        (lambda: save(quarters(), "GIF"), "png"),
        (lambda: save(quarters(), "BMP"), "png"),
        (lambda: save(with_alpha(), "TIFF"), "png"),
        *(
            [(lambda: heif(quarters()), "jpeg"), (lambda: heif(with_alpha()), "png")]
            if HEIC
            else []
        ),
    ],
)
def test_the_target_decides_the_format_when_the_caller_does_not(file, wanted: str):
    picture = decode(file())
    assert default_format(picture) == wanted
    assert not flattens(picture, wanted)
    assert encode(picture, default_format(picture))


def test_pixels_may_be_views_and_read_only():
    pixels = np.asarray(noise())[::-1, ::2]
    pixels.flags.writeable = False
    picture = Picture(pixels)
    assert (decode(encode(picture, "png")).pixels == pixels).all()
    gray = dataclasses.replace(picture, pixels=np.repeat(pixels[..., :1], 3, 2), gray=True)
    assert (decode(encode(gray, "png")).pixels == gray.pixels).all()


def test_a_wide_gamut_photo_comes_out_in_srgb():
    data = save(noise(), "PNG", icc_profile=make.rgb_profile(make.P3_PRIMARIES))
    picture = decode(data)
    assert (decode(encode(picture, "png")).pixels == picture.pixels).all()
