"""The mesh fits whichever way up a face is, and says when there is none."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest

from function.faces.face import Box, Detection
from function.faces.landmarks import LEFT_EYE, RIGHT_EYE

if TYPE_CHECKING:
    from function.faces.landmarks import FaceMesh
    from tests.function.faces.conftest import Counting, Find, Pixels


def apart(a: np.ndarray, b: np.ndarray) -> float:
    """Mean distance of two meshes in the plane, in eye distances of the second."""
    eyes = np.linalg.norm(b[RIGHT_EYE, :2] - b[LEFT_EYE, :2])
    return float(np.linalg.norm(a[:, :2] - b[:, :2], axis=1).mean() / eyes)


@pytest.mark.parametrize("name", ["collins", "hopper"])
def test_an_ordinary_face_takes_two_runs(
    name: str, find: Find, mesh: FaceMesh, mesh_engine: Counting, request: pytest.FixtureRequest
):
    pixels: Pixels = request.getfixturevalue(name)
    detection = find(pixels)[0].detection
    mesh_engine.reset()
    fitted = mesh.fit(pixels, detection)
    points, presence = fitted.mesh, fitted.presence
    assert mesh_engine.runs == 2
    assert points.shape == (468, 3)
    assert points.dtype == np.float32
    assert presence > 0.99
    assert type(presence) is float
    # The eyes that the detector saw lie inside the mesh's eyes.
    for eye, corners in ((0, (33, 133)), (1, (362, 263))):
        middle = points[list(corners), :2].mean(0)
        assert np.linalg.norm(middle - detection.points[eye]) < 0.1 * detection.box.width


@pytest.mark.parametrize("degrees", [90, 180, -90, 60, -135])
def test_wrong_eyes_of_the_detector_do_not_mislead_it(
    degrees: int, find: Find, mesh: FaceMesh, mesh_engine: Counting, collins: Pixels
):
    right = find(collins)[0]
    a = np.radians(degrees)
    turn = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    center = np.array(right.detection.box.center)
    points = ((right.detection.points - center) @ turn.T + center).astype(np.float32)
    mesh_engine.reset()
    got = mesh.fit(collins, replace(right.detection, points=points))
    assert got.presence > 0.99
    assert apart(got.mesh, right.mesh) < 0.05
    assert mesh_engine.runs <= 14


def test_a_larger_photo_gives_a_larger_mesh_in_all_three_axes(find: Find, hopper: Pixels):
    small = find(hopper)[0].mesh
    large = find(cv2.resize(hopper, None, fx=3, fy=3, interpolation=cv2.INTER_CUBIC))[0].mesh
    assert apart(large / 3, small) < 0.02
    assert np.ptp(large[:, 2]) == pytest.approx(3 * np.ptp(small[:, 2]), rel=0.05)


def test_a_moved_face_gives_a_moved_mesh(find: Find, collins: Pixels):
    moved = np.pad(collins, ((150, 50), (31, 200), (0, 0)), mode="edge")
    assert apart(find(moved)[0].mesh - (31, 150, 0), find(collins)[0].mesh) < 0.02


def test_the_nose_is_nearer_than_the_ears(find: Find, hopper: Pixels):
    mesh = find(hopper)[0].mesh
    assert mesh[1, 2] < mesh[234, 2]
    assert mesh[1, 2] < mesh[454, 2]


@pytest.mark.parametrize("box", [(0, 0, 90, 90), (-50, -50, 40, 60), (5000, 0, 5001, 1)])
def test_where_there_is_no_face_the_presence_is_low_and_the_cost_bounded(
    box: tuple[int, int, int, int], mesh: FaceMesh, mesh_engine: Counting
):
    noise = np.random.default_rng(0).integers(0, 256, (100, 100, 3), dtype=np.uint8)
    mesh_engine.reset()
    fitted = mesh.fit(noise, Detection(Box(*box), np.zeros((5, 2), np.float32), 0.5))
    assert fitted.presence < 0.5
    assert np.isfinite(fitted.mesh).all()
    assert mesh_engine.runs <= 14


def test_a_face_in_a_photo_longer_than_opencv_warps_is_fitted(
    find: Find, mesh: FaceMesh, collins: Pixels
):
    alone = find(collins)[0]
    photo = np.zeros((512, 33_000, 3), np.uint8)
    photo[:, -512:] = collins
    box, shift = alone.detection.box, 33_000 - 512
    moved = Detection(
        Box(box.left + shift, box.top, box.right + shift, box.bottom),
        alone.detection.points + np.array([shift, 0], np.float32),
        1.0,
    )
    fitted = mesh.fit(photo, moved)
    assert fitted.presence > 0.99
    assert apart(fitted.mesh - (shift, 0, 0), alone.mesh) < 0.02
