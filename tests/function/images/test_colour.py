"""Profiles: what a file's numbers mean, by the mathematics of colour rather than by Little CMS."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from function.images.decode import decode
from tests.function.images import make
from tests.function.images.make import noise, save

# IEC 61966-2-1's XYZ to linear RGB, adapted to D50 as profiles are
_SRGB = np.array(
    [
        [0.4360747, 0.3850649, 0.1430804],
        [0.2225045, 0.7168786, 0.0606169],
        [0.0139322, 0.0971045, 0.7141733],
    ]
)


def linear(levels: np.ndarray) -> np.ndarray:
    """SRGB's curve undone: 0 to 255 becomes 0 to 1 of light."""
    v = levels / 255
    return np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)


def coded(light: np.ndarray) -> np.ndarray:
    """0 to 1 of light as 0 to 255 on sRGB's curve, clipped."""
    v = np.clip(light, 0, 1)
    return 255 * np.where(v <= 0.0031308, 12.92 * v, 1.055 * v ** (1 / 2.4) - 0.055)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
def test_display_p3_becomes_srgb_as_the_matrices_say(kind: str):
    image = noise()
    options = {"lossless": True} if kind == "WEBP" else {}
    profile = make.rgb_profile(make.P3_PRIMARIES)
    found = decode(save(image, kind, icc_profile=profile, **options)).pixels
    xyz = linear(np.asarray(image).astype(float)) @ np.array(make.P3_PRIMARIES)
    wanted = coded(xyz @ np.linalg.inv(_SRGB).T)
    assert np.abs(found - wanted).max() <= 3
    assert np.abs(found - wanted).mean() < 0.5
    assert np.abs(found.astype(int) - np.asarray(image)).max() > 50  # it is no small matter


def test_gray_follows_its_curve():
    levels = np.arange(256, dtype=np.uint8)
    profile = make.gray_profile(1.8)
    found = decode(save(Image.fromarray(levels[None]), "PNG", icc_profile=profile))
    assert found.gray
    assert np.abs(found.pixels[0, :, 0] - coded((levels / 255) ** 1.8)).max() <= 2


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
def test_srgb_photos_keep_every_bit(mode: str):
    image = noise().convert(mode)
    tagged, untagged = (
        decode(save(image, "PNG", icc_profile=profile)).pixels
        for profile in (make.srgb_profile(), None)
    )
    assert (tagged == untagged).all()


def test_transparency_is_none_of_a_profiles_business():
    image = noise().convert("RGBA")
    image.putalpha(noise(seed=1).getchannel(0))
    found = decode(save(image, "PNG", icc_profile=make.swapped_profile()))
    assert (found.alpha == np.asarray(image)[..., 3]).all()
