"""The parts of the mesh swap by themselves: shape, warp, light, grain."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from function.faces.swappers.mesh import mask, shape
from function.faces.swappers.mesh.colour import Light, balance, unclipped
from function.faces.swappers.mesh.grain import Grain, roughness
from function.faces.swappers.mesh.warp import Enlarged, Grid, Warp
from function.faces.topology import Topology


@pytest.fixture(scope="module")
def topology():
    return Topology.load()


@pytest.fixture(scope="module")
def meshes(finder, collins, hopper):
    return finder.face(collins).mesh, finder.face(hopper).mesh


def turn(mesh, degrees, scale, move):
    a = np.radians(degrees)
    about_y = np.array([[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]])
    return (mesh @ about_y.T * scale + move).astype(np.float32)


def test_the_outline_stays_and_the_middle_goes_to_the_source(meshes, topology):
    collins, hopper = meshes
    moved = shape.blend(hopper, collins, topology, False)
    assert (moved[topology.oval] == collins[topology.oval]).all()
    goal = shape.align(hopper, collins, topology.from_lips > 4)
    nose = [1, 4, 5, 195]
    before = np.linalg.norm(collins[nose, :2] - goal[nose, :2], axis=1)
    after = np.linalg.norm(moved[nose, :2] - goal[nose, :2], axis=1)
    assert (after < 0.5 * before).all()


def test_a_kept_mouth_does_not_move(meshes, topology):
    collins, hopper = meshes
    moved = shape.blend(hopper, collins, topology, True)
    np.testing.assert_allclose(moved[topology.lips], collins[topology.lips], atol=1e-4)


def test_the_pose_of_the_source_does_not_matter(meshes, topology):
    collins, hopper = meshes
    turned = turn(hopper, 25, 1.7, (30, -12, 5))
    straight = shape.blend(hopper, collins, topology, False)
    np.testing.assert_allclose(shape.blend(turned, collins, topology, False), straight, atol=0.01)


def test_a_smile_with_teeth_is_open_and_closed_lips_are_not(meshes):
    collins, hopper = meshes
    assert shape.opening(collins) > 0.1 > 0.05 > shape.opening(hopper)


def test_a_warp_takes_every_point_to_its_counterpart(meshes, topology):
    collins, hopper = meshes
    corner = np.floor(collins.min(0)) * (1, 1, 0)
    place = (collins - corner).astype(np.float32)
    width, height = np.ceil(place[:, :2].max(0)).astype(int) + 1
    grid = Grid.over(int(width), int(height), 400)
    warp = Warp.fit(grid.place(place), hopper, grid, topology)
    inner = topology.from_oval > 2
    x, y = np.round(place[inner, :2]).astype(int).T
    miss = np.linalg.norm(warp.maps[y, x] - hopper[inner, :2], axis=1)
    assert np.median(miss) < 1.5  # of 190 pixels; rounding to whole cells is half of one


def test_a_warp_onto_itself_changes_nothing(collins, finder, topology):
    mesh = finder.face(collins).mesh
    grid = Grid.over(collins.shape[1], collins.shape[0], 2000)
    warp = Warp.fit(grid.place(mesh), mesh, grid, topology)
    drawn = warp.sample(np.ascontiguousarray(collins), grid.size)
    assert np.abs(drawn.astype(int) - collins).max() <= 2


@pytest.mark.parametrize("shape", [(9, 7), (40, 31, 3), (1, 1, 2), (64, 2)])
@pytest.mark.parametrize("size", [(700, 900), (31, 40), (1, 1), (90_000, 3)])
def test_a_part_enlarged_in_bands_is_the_part_enlarged(shape, size):
    part = np.random.default_rng(2).uniform(0, 255, shape).astype(np.float32)
    enlarged = Enlarged(part, size)
    bands = list(enlarged.bands())
    whole = np.concatenate([enlarged[rows] for rows in bands])
    assert len(bands) > 1 or size[0] * size[1] < 190_000
    np.testing.assert_allclose(whole, cv2.resize(part, size).reshape(whole.shape), atol=0.02)


def test_triangles_that_face_away_are_not_used(meshes, topology):
    collins, hopper = meshes
    grid = Grid((120, 120), (1.0, 1.0))
    place = ((collins - collins.min(0)) + 5).astype(np.float32)
    straight = Warp.fit(place, hopper, grid, topology).usable.mean()
    profile = Warp.fit(place, turn(hopper, 75, 1, 0), grid, topology).usable.mean()
    assert straight > 0.95
    assert profile < straight - 0.15


def test_the_light_of_the_target_is_taken_over():
    rng = np.random.default_rng(3)
    detail = cv2.GaussianBlur(rng.normal(0, 20, (90, 80, 3)).astype(np.float32), (0, 0), 1)
    warped = 120 + detail
    ramp = np.linspace(60, 180, 80, dtype=np.float32)[None, :, None]
    target = np.broadcast_to(ramp * (1.1, 0.9, 0.7), warped.shape).astype(np.float32)
    skin = np.ones((90, 80), bool)
    light = Light.of(warped, target, (skin, skin), 12)
    gain, offset = light.correction(warped, target, skin.astype(np.float32))
    result = gain * warped + offset
    middle = np.s_[20:-20, 20:-20]
    assert np.abs(result - target)[middle].mean() < 8
    assert (result - target)[middle].std() > 0.5  # the detail is still there


def test_two_photos_are_balanced_by_what_is_not_clipped():
    skin = np.random.default_rng(4).uniform(0.4, 1, (50, 50, 1)) * (200, 150, 120)
    here = np.ones((50, 50), bool)
    source, target = (np.minimum(skin * gain, 255).astype(np.float32) for gain in (0.3, 1.5))
    np.testing.assert_allclose(balance(source, target, here), 5, rtol=0.1)
    assert (balance(source, target, ~here) == 1).all()
    cold = (skin * (0.1, 0.2, 0.4)).astype(np.float32)
    np.testing.assert_allclose(balance(source, cold, here), np.divide((0.1, 0.2, 0.4), 0.3), 1e-3)


def test_only_what_is_clipped_gets_the_others_light():
    white = np.full(3, 255, np.float32)
    image = np.array([[[255, 200, 20]]], np.float32)
    bright, dim = (unclipped(image, np.full_like(image, level), white) for level in (280, 90))
    np.testing.assert_allclose(bright[0, 0], (280, 200, 20))
    assert (dim == image).all()


def test_what_is_no_skin_does_not_darken_the_light():
    target = np.full((60, 60, 3), 150, np.float32)
    target[20:30, 20:40] = 10
    skin = target[..., 0] > 100
    light = Light.of(target, target, (skin, skin), 5)
    assert np.abs(light.target - 150).max() < 8


def test_missing_grain_is_made_up_for():
    flat = np.full((64, 64, 3), 128, np.uint8)
    noise = np.random.default_rng(5).normal(0, 6, (64, 64, 1))
    grainy = np.clip(flat + noise, 0, 255).astype(np.uint8)
    have, want = roughness(flat), roughness(grainy)
    added = Grain().missing(have, want, 200).rows(slice(230, 300), 300)
    assert added.shape == (70, 300)
    assert (
        0.2 * want
        < roughness(np.clip(128 + added[..., None], 0, 255).astype(np.uint8).repeat(3, 2))
        < want
    )
    assert Grain().missing(want, have, 200) is None
    assert Grain().missing(have, want, 64) is None
    assert roughness(flat[:, :2]) == 0


def test_skin_is_distinguished_from_hair_hat_and_frames_in_any_light(finder, hopper):
    face = finder.face(hopper)
    for light in (1.0, 0.3):
        image = (hopper * light).astype(np.float32)
        seen = mask.skin(image, face.mesh)
        x, y = face.mesh[[205, 425, 200, 151], :2].round().astype(int).T
        assert seen[y, x].all()
        assert not seen[110:125, 230:290].any()  # the hat
        assert mask.covered(seen, face.mesh) < 0.15


def test_a_face_without_visible_points_counts_as_skin(finder, hopper):
    face = finder.face(hopper)
    elsewhere = face.mesh + np.array([900, 0, 0], np.float32)
    seen = mask.skin(hopper.astype(np.float32), elsewhere)
    assert seen.all()
    assert mask.covered(seen, elsewhere) == 0
