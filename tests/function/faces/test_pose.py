"""Head pose from the mesh: exact on turned models, sensible on photos."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.faces import pose
from function.faces.face import Pose

if TYPE_CHECKING:
    from tests.function.faces.conftest import Find, Pixels

NOSE, FOREHEAD, CHIN = 1, 10, 152


def model() -> np.ndarray:
    """A face that looks straight into the camera: x right, y down, z away from the camera."""
    mesh = np.zeros((468, 3), np.float32)
    for left, right, y, z, half in (
        (33, 263, -25, 10, 45),
        (61, 291, 45, 5, 25),
        (234, 454, 0, 60, 70),
    ):
        mesh[left], mesh[right] = (-half, y, z), (half, y, z)
    mesh[FOREHEAD], mesh[CHIN], mesh[NOSE] = (0, -85, 0), (0, 90, 0), (0, 10, -35)
    return mesh


def turned(yaw: float, pitch: float, roll: float) -> np.ndarray:
    """The model nodded, then turned, then tilted."""
    y, p, r = np.radians([yaw, pitch, roll])
    nod = np.array([[1, 0, 0], [0, np.cos(p), -np.sin(p)], [0, np.sin(p), np.cos(p)]])
    turn = np.array([[np.cos(y), 0, -np.sin(y)], [0, 1, 0], [np.sin(y), 0, np.cos(y)]])
    tilt = np.array([[np.cos(r), -np.sin(r), 0], [np.sin(r), np.cos(r), 0], [0, 0, 1]])
    return (model() @ (tilt @ turn @ nod).T).astype(np.float32)


@given(st.floats(-80, 80), st.floats(-80, 80), st.floats(-179, 179))
def test_a_turned_model_has_the_pose_it_was_given(yaw: float, pitch: float, roll: float):
    got = pose.estimate(turned(yaw, pitch, roll) * 3 + 500)
    np.testing.assert_allclose((got.yaw, got.pitch, got.roll), (yaw, pitch, roll), atol=0.01)
    assert all(type(value) is float for value in (got.yaw, got.pitch, got.roll))


def test_the_signs_are_those_of_the_docstring():
    assert turned(30, 0, 0)[NOSE, 0] > 0, "positive yaw: the nose points to the image's right"
    assert turned(0, 30, 0)[NOSE, 1] > model()[NOSE, 1], "positive pitch: the nose points down"
    chin = turned(0, 0, 30)[CHIN]
    assert chin[0] < 0, "positive roll: clockwise, so that the chin goes to the left"


@pytest.mark.parametrize("name", ["collins", "hopper"])
def test_the_sample_people_look_ahead_and_mirror(
    name: str, find: Find, request: pytest.FixtureRequest
):
    pixels: Pixels = request.getfixturevalue(name)
    straight = pose.estimate(find(pixels)[0].mesh)
    mirrored = pose.estimate(find(np.ascontiguousarray(pixels[:, ::-1]))[0].mesh)
    assert max(abs(straight.yaw), abs(straight.pitch), abs(straight.roll)) < 15
    assert mirrored.yaw == pytest.approx(-straight.yaw, abs=5)
    assert mirrored.pitch == pytest.approx(straight.pitch, abs=5)
    assert mirrored.roll == pytest.approx(-straight.roll, abs=3)


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_turning_the_photo_changes_only_the_roll(quarters: int, find: Find, hopper: Pixels):
    straight = pose.estimate(find(hopper)[0].mesh)
    lying = pose.estimate(find(np.ascontiguousarray(np.rot90(hopper, -quarters)))[0].mesh)
    assert (lying.roll - straight.roll - 90 * quarters + 180) % 360 - 180 == pytest.approx(0, abs=4)
    assert lying.yaw == pytest.approx(straight.yaw, abs=5)
    assert lying.pitch == pytest.approx(straight.pitch, abs=5)


@pytest.mark.parametrize("quarters", range(4))
@pytest.mark.parametrize("name", ["collins", "hopper"])
def test_five_points_tell_nearly_what_the_mesh_tells(
    name: str, quarters: int, find: Find, request: pytest.FixtureRequest
):
    pixels: Pixels = request.getfixturevalue(name)
    (fitted,) = find(np.ascontiguousarray(np.rot90(pixels, quarters)))
    wanted, got = pose.estimate(fitted.mesh), pose.of_five(fitted.five)
    assert got.yaw == pytest.approx(wanted.yaw, abs=8)
    assert got.pitch == pytest.approx(wanted.pitch, abs=8)
    assert (got.roll - wanted.roll + 180) % 360 - 180 == pytest.approx(0, abs=4)


@pytest.mark.parametrize("degrees", [-45, -20, 20, 45])
def test_five_points_tell_a_turned_head(degrees: float):
    angle = np.radians(degrees)
    head = pose._HEAD
    turned = head[:, 0] * np.cos(angle) - head[:, 2] * np.sin(angle)
    five = 80 * np.stack([turned, head[:, 1]], 1) + 200
    got = pose.of_five(five.astype(np.float32))
    assert got.yaw == pytest.approx(degrees, abs=1)
    assert got.pitch == pytest.approx(0, abs=1)
    assert got.roll == pytest.approx(0, abs=1)


def test_points_that_coincide_have_some_pose():
    assert np.isfinite(pose.of_five(np.full((5, 2), 7, np.float32)).roll)


@pytest.mark.parametrize(
    ("one", "other", "wanted"), [(0, 0, False), (30, 10, False), (35, 20, True), (16, -16, True)]
)
def test_faces_turned_far_or_apart_are_extreme(one: float, other: float, wanted: bool):
    poses = (Pose(yaw, 0, 0) for yaw in (one, other))
    assert pose.extreme(*poses) == wanted
