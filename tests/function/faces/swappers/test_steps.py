"""The steps that finish a swapped face, each alone on made pictures with known right answers."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from function.faces.swappers.mesh import blend, calm, crisp, detail, heal, spectacles
from function.faces.swappers.mesh.grain import Grain
from function.faces.swappers.mesh.mask import Zones
from function.faces.swappers.mesh.recipe import RECIPE
from function.faces.swappers.mesh.warp import Grid, Warp
from function.faces.topology import Topology
from tests.function.faces.swappers import photo_edits as edit

SKIN = np.array([200, 150, 125], np.float32)


def plain(height=60, width=80, colour=SKIN):
    return np.broadcast_to(colour, (height, width, 3)).astype(np.float32)


def patch(shape, rows, columns):
    mask = np.zeros(shape, bool)
    mask[rows, columns] = True
    return mask


def test_a_hole_in_a_slope_is_filled_with_the_slope():
    slope = plain() + np.linspace(-40, 40, 80, dtype=np.float32)[None, :, None]
    hole = patch((60, 80), slice(25, 35), slice(30, 50))
    torn = np.where(hole[..., None], 0, slope).astype(np.float32)
    filled = heal.fill(torn, (~hole).astype(np.float32), 1.0)
    assert np.abs(filled - slope)[hole].max() < 8
    assert np.abs(filled - slope)[5:20, 5:75].max() < 1.5


def test_a_picture_of_which_nothing_is_known_is_filled_with_something_finite():
    assert np.isfinite(heal.fill(plain(), np.zeros((60, 80), np.float32), 1.0)).all()


def test_a_brow_is_no_hair_and_a_fringe_over_it_is():
    brows = patch((60, 80), slice(20, 30), slice(10, 70))
    face = plain().copy()
    face[24:27, 15:35] = 30
    face[:28, 45:65] = 30
    hair = heal.hair(face, np.ones((60, 80), bool), brows, RECIPE.hair)
    assert not hair[24:27, 15:35].any()
    assert hair[:28, 45:65].all()


def test_only_the_hole_is_healed_and_it_is_as_grainy_as_the_rest():
    rng = np.random.default_rng(1)
    region = np.clip(plain(120, 160) + rng.normal(0, 6, (120, 160, 1)), 0, 255).astype(np.uint8)
    region[50:60, 70:90] = 20
    share = patch((60, 80), slice(24, 31), slice(34, 46)).astype(np.float32)
    before = region.copy()
    heal.Hole(plain(), share).heal(region, Grain())
    assert np.abs(region[52:58, 74:86].mean((0, 1)) - SKIN).max() < 4
    assert 1 < region[52:58, 74:86, 0].std() < 9
    untouched = cv2.dilate(cv2.resize(share, (160, 120)), np.ones((5, 5))) == 0
    assert (region[untouched] == before[untouched]).all()


class Stands:
    """A relit face on a target, as far as calm looks at it."""

    def __init__(self, face, under):
        self.face, self.under, self.light = face, under, plain()


ALL = np.ones((60, 80), bool)


def test_skin_keeps_its_own_chroma_as_far_as_the_targets_has_it():
    spots = np.zeros((60, 80, 1), np.float32)
    spots[::10, ::10] = 1
    spots = cv2.GaussianBlur(spots, (0, 0), 2)[..., None] * 400
    lively = (plain() + spots * (1, -0.5, -0.5)).astype(np.float32)
    nowhere = np.zeros((60, 80), np.float32)
    alike = calm.calmed(Stands(lively, lively), 70, nowhere, (ALL, ALL))
    assert np.abs(alike).max() < 0.01
    pulled = lively + calm.calmed(Stands(lively, plain()), 70, nowhere, (ALL, ALL))
    away = [calm.lab(each) - calm.lab(plain()) for each in (lively, pulled)]
    have, left = (np.abs(each[..., 1:]).mean() for each in away)
    assert left == pytest.approx(RECIPE.calm_skin * have, rel=0.1)


def test_red_rims_are_pulled_to_the_light_and_nothing_else_is_touched():
    face = plain().copy()
    face[20:40, 30:50] += (30, -25, -20)
    rims = patch((60, 80), slice(15, 45), slice(25, 55)).astype(np.float32)
    calmed = face + calm.calmed(Stands(face, face), 70, rims, (ALL, ALL))
    away = np.linalg.norm((calm.lab(face) - calm.lab(plain()))[30, 40, 1:])
    left = np.linalg.norm((calm.lab(calmed) - calm.lab(plain()))[30, 40, 1:])
    assert left == pytest.approx(RECIPE.calm_rims * away, rel=0.1)
    assert np.abs(calmed - face)[rims == 0].max() < 0.01


def test_glare_is_bent_down_around_spectacled_eyes_only():
    face = np.minimum(plain() + 50, 255)
    everywhere, nowhere = np.ones((60, 80), np.float32), np.zeros((60, 80), np.float32)
    bent = face + calm.calmed(Stands(face, face), 70, everywhere, (ALL, ALL))
    lightness = [calm.lab(each)[30, 40, 0] for each in (plain(), bent)]
    assert 0 < lightness[1] - lightness[0] <= RECIPE.calm_light + 0.1
    assert np.abs(calm.calmed(Stands(face, face), 70, nowhere, (ALL, ALL))).max() < 0.01


def test_livelier_skin_is_calmed_to_the_limit_and_like_skin_stays():
    rng = np.random.default_rng(2)
    skin = np.ones((60, 80), bool)
    target = plain() + rng.normal(0, 3, (60, 80, 1)).astype(np.float32)
    lively = plain() + 3 * (target - plain())
    change = detail.matched(lively, target, 70, (skin, skin))
    inside = np.s_[15:45, 20:60, 0]
    ratio = (lively + change)[inside].std() / lively[inside].std()
    assert ratio == pytest.approx(RECIPE.detail_luma[0], abs=0.05)
    assert np.abs(detail.matched(target, target, 70, (skin, skin))[inside]).max() < 0.5
    assert (detail.matched(lively, target, 70, (~skin, skin)) == 0).all()


def test_eyes_get_sharper_and_the_rest_stays(finder, hopper):
    face = finder.face(hopper)
    width = float(np.ptp(face.mesh[:, 0]))
    soft = cv2.GaussianBlur(hopper, (0, 0), 1.5)
    drawn = soft.copy()
    crisp.sharpen(drawn, face.mesh, width, hopper, face.mesh)
    changed = np.abs(drawn.astype(int) - soft).max(2)
    x, y = face.mesh[[159, 386], :2].round().astype(int).T
    assert min(changed[b - 8 : b + 8, a - 8 : a + 8].max() for a, b in zip(x, y, strict=True)) > 4
    x, y = face.mesh[[1, 13, 152, 10], :2].round().astype(int).T
    assert changed[y, x].max() == 0
    assert changed.max() <= RECIPE.crisp_most + 1
    drawn = hopper.copy()
    crisp.sharpen(drawn, face.mesh, width, soft, face.mesh)
    assert (drawn == hopper).all()


def test_the_second_band_softens_a_step_and_leaves_equal_faces_alone():
    soft = patch((60, 80), slice(None), slice(40, None)).astype(np.float32)
    whole = np.ones_like(soft)
    dark = plain() - 20
    band = blend.second_band(dark, plain(), soft, whole, 3)
    mixed = plain() + soft[..., None] * (dark - plain()) + band
    steps = [np.abs(np.diff(each[30, :, 0])).max() for each in (mixed, dark * soft[..., None])]
    assert steps[0] < 6
    assert np.abs(band[:, [0, -1]]).max() < 0.01
    assert (blend.second_band(plain(), plain(), soft, whole, 3) == 0).all()


def test_a_blend_is_the_face_where_the_mask_is_one_and_the_target_where_it_is_zero():
    rng = np.random.default_rng(3)
    region, drawn = (rng.integers(0, 256, (90, 120, 3), np.uint8) for _ in range(2))
    before = region.copy()
    soft = patch((30, 40), slice(10, 20), slice(10, 30)).astype(np.float32)
    one, nothing = np.ones((30, 40, 3), np.float32), np.zeros((30, 40, 3), np.float32)
    blend.blend(region, drawn, blend.Layers(one, nothing, soft, nothing), None)
    assert (region[36:54, 36:84] == drawn[36:54, 36:84]).all()
    assert (region[:24] == before[:24]).all()


@pytest.fixture(scope="module")
def worn(finder):
    """Whether spectacles are found on a photo, and where they stick out: rows, columns, zones."""
    topology = Topology.load()

    def found(pixels):
        face = finder.face(pixels)
        box = face.box
        part = pixels[int(box.top) : int(box.bottom), int(box.left) : int(box.right)]
        grid = Grid.over(part.shape[1], part.shape[0], RECIPE.cells)
        mesh = grid.place(face.mesh - np.array([int(box.left), int(box.top), 0], np.float32))
        zones = Zones.of(mesh, grid, topology)
        return spectacles.frame(calm.lab(grid.shrink(part)), mesh, zones), mesh

    return found


def test_spectacles_are_found_where_they_are_worn(worn, hopper, collins, finder):
    for pixels in (hopper, np.ascontiguousarray(hopper[:, ::-1])):
        frame, mesh = worn(pixels)
        for corner, side in ((33, -1), (263, 1)):
            x, y = mesh[corner, :2].round().astype(int)
            beside = slice(x, x + 16) if side > 0 else slice(x - 16, x)
            assert frame.tips[y - 14 : y + 6, beside].any()
        assert not frame.tips[int(mesh[1, 1]) :].any()
    assert worn(collins)[0] is None
    drawn = edit.spectacles(collins, finder.face(collins))
    assert worn(drawn)[0] is not None


def test_a_source_larger_than_the_target_is_averaged():
    texture = np.indices((160, 160)).sum(0) % 2 * 255
    texture = np.repeat(texture[..., None], 3, 2).astype(np.uint8)
    ys, xs = np.mgrid[:80, :80].astype(np.float32)
    warp = Warp(np.dstack([2 * xs + 0.5, 2 * ys + 0.5]), np.ones((80, 80), bool))
    assert np.abs(warp.sample(texture, (80, 80), finer=True)[5:-5, 5:-5] - 127.5).max() < 2
    ys, xs = np.mgrid[:400, :300].astype(np.float32)
    large = np.random.default_rng(6).integers(0, 256, (800, 600, 3), np.uint8)
    warp = Warp(np.dstack([2 * xs + 0.5, 2 * ys + 0.5]), np.ones((400, 300), bool))
    right = cv2.resize(large, (300, 400), interpolation=cv2.INTER_AREA)
    drawn = warp.sample(large, (300, 400), finer=True).astype(int)
    assert np.abs(drawn - right)[1:-1, 1:-1].max() <= 2


def test_the_ring_lies_outside_of_the_oval_and_behind_it(finder, hopper):
    topology, mesh = Topology.load(), finder.face(hopper).mesh
    wide = topology.outward(mesh, 1.3)
    assert (wide[:468] == mesh).all()
    hull = cv2.convexHull(mesh[topology.oval, :2])
    assert all(cv2.pointPolygonTest(hull, point.tolist(), False) < 0 for point in wide[468:, :2])
    assert wide[468:, 2].min() > mesh[:, 2].max()
    a, b, c = (wide[topology.ring[:, k], :2] for k in range(3))
    area = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    assert (area > 0).all()
