"""One person stays one person under other light, size and position; two stay two."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest

from function.faces.identity import DLIB, distance

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.faces.face import Face
    from function.faces.identity import DlibIdentity
    from tests.function.faces.conftest import Pixels

    Analyse = Callable[[Pixels], list[Face]]


def embedding(pixels: Pixels, analyse: Analyse) -> np.ndarray:
    (face,) = analyse(np.ascontiguousarray(pixels))
    return face.embedding


def test_the_two_sample_people_are_two(collins: Pixels, hopper: Pixels, analyse: Analyse):
    a, b = embedding(collins, analyse), embedding(hopper, analyse)
    assert a.shape == (128,)
    assert a.dtype == np.float32
    assert distance(a, b) == distance(b, a)
    assert distance(a, a) == 0
    assert 0.63 < distance(a, b) < 0.70


CHANGES = {
    "half the size": lambda x: cv2.resize(x, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA),
    "five times the size": lambda x: cv2.resize(x, None, fx=5, fy=5),
    "mirrored": lambda x: x[:, ::-1],
    "lying on the side": np.rot90,
    "upside down": lambda x: np.rot90(x, 2),
    "half the light": lambda x: (x * 0.5).astype(np.uint8),
    "nearly black": lambda x: (x * 0.03).astype(np.uint8),
    "in fog": lambda x: (x * 0.1 + 110).astype(np.uint8),
    "gray": lambda x: np.repeat(cv2.cvtColor(x, cv2.COLOR_RGB2GRAY)[..., None], 3, 2),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["collins", "hopper"])
def test_a_changed_photo_shows_the_same_person(
    name: str, change: str, analyse: Analyse, request: pytest.FixtureRequest
):
    own: Pixels = request.getfixturevalue(name)
    other: Pixels = request.getfixturevalue("hopper" if name == "collins" else "collins")
    changed = embedding(CHANGES[change](own), analyse)
    to_self = distance(changed, embedding(own, analyse))
    assert to_self < 0.45
    assert to_self < distance(changed, embedding(other, analyse)) - 0.15
    assert to_self < DLIB.same_person


def test_faces_that_are_identified_together_are_who_they_are_alone(
    collins: Pixels, analyse: Analyse, identity: DlibIdentity
):
    (face,) = analyse(collins)
    faces = [replace(face, mesh=face.mesh + shift) for shift in (0, 9, -9)]
    together = identity.embed(collins, faces)
    for each, own in zip(faces, together, strict=True):
        np.testing.assert_allclose(own, identity.embed(collins, [each])[0], atol=1e-5)
