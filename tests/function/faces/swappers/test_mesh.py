"""The mesh swap: as good as promised on the sample photos, and never broken on hard ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from function.faces.face import Pose
from function.faces.swappers.protocol import SourceFace
from function.images.picture import Picture
from function.quality_warning import QualityWarning
from function.telemetry.timings import Timings
from tests.function.faces.swappers import photo_edits as edit
from tests.function.faces.swappers.conftest import enclosing

PHOTOS = Path(__file__).parents[3] / "photos"
PAIRS = [("hopper", "collins"), ("collins", "hopper")]


def swap(swapper, pixels, target, source, *, gray=False):
    """The result on a copy, checked for what holds for every swap, and the warnings."""
    canvas = pixels.copy()
    warnings = swapper.swap(canvas, target, source, gray=gray, timings=Timings())
    outside = np.ones(pixels.shape[:2], bool)
    box = target.box
    outside[int(box.top) : int(box.bottom), int(box.left) : int(box.right)] = False
    assert (canvas[outside] == pixels[outside]).all()
    return canvas, warnings


def part(pixels, face):
    box = face.box
    return pixels[int(box.top) : int(box.bottom), int(box.left) : int(box.right)].astype(float)


def looks_like_light_of(result, pixels, face, reach=25):
    """The swapped part is about as bright and coloured as the target's was, and not blotched."""
    new, old = part(result, face), part(pixels, face)
    assert np.abs(new.mean((0, 1)) - old.mean((0, 1))).max() < reach
    small = [cv2.resize(p, (6, 6), interpolation=cv2.INTER_AREA) for p in (new, old)]
    assert np.abs(small[0] - small[1]).max() < 110


@pytest.mark.parametrize(("giver", "taker"), PAIRS)
def test_the_result_is_the_source_and_no_longer_the_target(giver, taker, finder, swapper, request):
    pixels = request.getfixturevalue(taker)
    source, target = finder.source(request.getfixturevalue(giver)), finder.face(pixels)
    result, warnings = swap(swapper, pixels, target, source)
    to_source, to_target = finder.distances(result, source, target)
    assert to_source <= 0.40
    assert to_target - to_source >= 0.17
    assert warnings == ()
    looks_like_light_of(result, pixels, target)


def test_a_face_swapped_onto_itself_stays_as_it_is(finder, swapper, hopper):
    source = finder.source(hopper)
    result, _ = swap(swapper, hopper, source.face, source)
    assert np.abs(result.astype(int) - hopper).mean() < 0.5


def test_the_same_swap_gives_the_same_pixels_in_every_thread(finder, swapper, collins, hopper):
    source, target = finder.source(hopper), finder.face(collins)
    first, _ = swap(swapper, collins, target, source)
    with ThreadPoolExecutor(4) as pool:
        again = list(pool.map(lambda _: swap(swapper, collins, target, source)[0], range(8)))
    assert all((result == first).all() for result in again)


def test_a_gray_target_stays_gray(finder, swapper, collins, hopper):
    pixels = edit.gray(collins)
    source, target = finder.source(hopper), finder.face(pixels)
    result, _ = swap(swapper, pixels, target, source, gray=True)
    assert (result == result[..., :1]).all()
    assert (result != pixels).any()
    to_source, to_target = finder.distances(result, source, target)
    assert to_source < to_target - 0.15


def test_a_gray_source_takes_the_colour_of_the_target(finder, swapper, collins, hopper):
    source, target = finder.source(edit.gray(collins)), finder.face(hopper)
    result, _ = swap(swapper, hopper, target, source)
    looks_like_light_of(result, hopper, target)
    to_source, to_target = finder.distances(result, source, target)
    assert to_source < to_target - 0.15


def test_a_gray_source_is_warned_of(finder, swapper, collins, hopper):
    source, target = finder.source(edit.gray(collins)), finder.face(hopper)
    source = replace(source, picture=replace(source.picture, gray=True))
    assert swap(swapper, hopper, target, source)[1] == (QualityWarning.GRAY_SOURCE,)
    assert swap(swapper, edit.gray(hopper), target, source, gray=True)[1] == ()


@pytest.mark.parametrize("light", [0.12, 0.3, 0.6])
@pytest.mark.parametrize(("giver", "taker"), PAIRS)
def test_a_swap_in_a_dark_photo_is_the_swap_made_dark(
    light, giver, taker, finder, swapper, request
):
    pixels = request.getfixturevalue(taker)
    source, target = finder.source(request.getfixturevalue(giver)), finder.face(pixels)
    plain = part(swap(swapper, pixels, target, source)[0], target)
    dark, warnings = swap(swapper, edit.lit(light)(pixels, target), target, source)
    assert np.abs(part(dark, target) - light * plain).mean() < 6 * light + 0.5
    assert warnings == ()


@pytest.mark.parametrize("light", [0.15, 0.3])
@pytest.mark.parametrize(("giver", "taker"), PAIRS)
def test_a_dark_source_gives_what_a_bright_one_gives(light, giver, taker, finder, swapper, request):
    pixels, photo = (request.getfixturevalue(name) for name in (taker, giver))
    source, target = finder.source(photo), finder.face(pixels)
    plain = part(swap(swapper, pixels, target, source)[0], target)
    source = replace(source, picture=Picture(edit.lit(light)(photo, source.face)))
    result, warnings = swap(swapper, pixels, target, source)
    assert np.abs(part(result, target) - plain).mean() < 6
    assert warnings == ()


@pytest.mark.parametrize("light", [0.04, 1.8])
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(("giver", "taker"), PAIRS)
def test_extreme_light_is_warned_of(light, side, giver, taker, finder, swapper, request):
    pixels, photo = (request.getfixturevalue(name) for name in (taker, giver))
    source, target = finder.source(photo), finder.face(pixels)
    if side == "source":
        source = replace(source, picture=Picture(edit.lit(light)(photo, source.face)))
    else:
        pixels = edit.lit(light)(pixels, target)
    result, warnings = swap(swapper, pixels, target, source)
    assert warnings == (QualityWarning.EXTREME_LIGHT,)
    looks_like_light_of(result, pixels, target)


def test_swaps_add_up_on_one_canvas(finder, swapper, collins, hopper):
    pixels = np.hstack([collins[:500], hopper[:500], collins[:500, ::-1]])
    faces = finder.faces(pixels)
    assert len(faces) == 3
    canvas = pixels.copy()
    for face in faces[::2]:
        swapper.swap(canvas, face, finder.source(hopper), gray=False, timings=Timings())
    for before, after in zip(faces, finder.faces(canvas), strict=True):
        changed = (part(canvas, before) != part(pixels, before)).mean()
        assert changed > 0.4 if before.index != 1 else changed == 0
        assert np.abs(before.mesh[:, :2] - after.mesh[:, :2]).max() < 25


HARD = {
    "open mouth onto closed": (edit.open_mouth, edit.same),
    "closed mouth onto open": (edit.same, edit.open_mouth),
    "spectacles on the source": (edit.spectacles, edit.same),
    "spectacles on the target": (edit.same, edit.spectacles),
    "side light on the source": (edit.side_light, edit.same),
    "side light on the target": (edit.same, edit.side_light),
    "dark source": (edit.lit(0.25), edit.same),
    "dark target": (edit.same, edit.lit(0.25)),
    "large source": (edit.scaled(4), edit.same),
    "small source": (edit.scaled(0.5), edit.same),
    "large target": (edit.same, edit.scaled(3)),
    "tiny target": (edit.same, edit.scaled(0.25)),
    "rolled source": (edit.rolled(-30), edit.same),
    "rolled target": (edit.same, edit.rolled(30)),
    "source cut on the left": (edit.cut("left"), edit.same),
    "target cut on the left": (edit.same, edit.cut("left")),
    "target cut on the right": (edit.same, edit.cut("right")),
    "target cut at the chin": (edit.same, edit.cut("bottom")),
    "target cut at the brows": (edit.same, edit.cut("top")),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize(("giver", "taker"), PAIRS)
def test_a_hard_pair_gives_a_plausible_face(case, giver, taker, finder, swapper, request):
    photo, pixels = request.getfixturevalue(giver), request.getfixturevalue(taker)
    edit_source, edit_target = HARD[case]
    photo = edit_source(photo, finder.face(photo))
    pixels = edit_target(pixels, finder.face(pixels))
    faces, sources = finder.faces(pixels), finder.faces(photo)
    if not faces or not sources:
        pytest.skip("the plain detector pass does not find the edited face")
    source = SourceFace(Picture(photo), sources[0], sources[0].embedding)
    result, _ = swap(swapper, pixels, faces[0], source)
    assert (part(result, faces[0]) != part(pixels, faces[0])).mean() > 0.2
    looks_like_light_of(result, pixels, faces[0])


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_turned_photo_is_swapped_as_the_upright_one(turns, finder, swapper, collins, hopper):
    source, upright = finder.source(hopper), finder.face(collins)
    pixels, mesh = edit.turned(collins, upright.mesh, turns)
    target = replace(upright, mesh=mesh, box=enclosing(mesh, pixels))
    result, _ = swap(swapper, pixels, target, source)
    back = np.rot90(result, -turns)
    to_source, to_target = finder.distances(np.ascontiguousarray(back), source, upright)
    assert to_source < 0.45
    assert to_source < to_target - 0.15


def test_the_targets_own_teeth_show_when_only_the_target_smiles(finder, swapper, collins, hopper):
    target = finder.face(collins)
    result, _ = swap(swapper, collins, target, finder.source(hopper))
    x, y = target.mesh[[13, 14], :2].mean(0).round().astype(int)
    teeth = np.s_[y - 1 : y + 2, x - 6 : x + 7]
    assert np.abs(result[teeth].astype(int) - collins[teeth]).mean() < 12


def test_no_hair_or_hat_comes_along(finder, swapper, collins, hopper):
    """Above the brows of the target only skin may appear: hair and hats are darker than it."""
    target = finder.face(hopper)
    result, _ = swap(swapper, hopper, target, finder.source(collins))
    x, y = target.mesh[[151, 337, 108], :2].round().astype(int).T
    patch = [result[b - 3 : b + 4, a - 3 : a + 4].mean() for a, b in zip(x, y, strict=True)]
    was = [hopper[b - 3 : b + 4, a - 3 : a + 4].mean() for a, b in zip(x, y, strict=True)]
    assert np.abs(np.subtract(patch, was)).max() < 20


def test_what_covers_the_target_stays_in_front(finder, swapper, collins, hopper):
    pixels = edit.face_mask(collins, finder.face(collins))
    target = finder.face(pixels)
    result, warnings = swap(swapper, pixels, target, finder.source(hopper))
    x, y = target.mesh[[13, 205, 425], :2].round().astype(int).T
    assert np.abs(result[y, x].astype(int) - pixels[y, x]).max() < 20
    assert QualityWarning.OCCLUDED in warnings


@pytest.mark.parametrize("cover", [edit.sunglasses, edit.face_mask])
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_covered_face_is_warned_of(cover, side, finder, swapper, collins, hopper):
    covered = cover(collins, finder.face(collins))
    photo, pixels = (covered, hopper) if side == "source" else (hopper, covered)
    _, warnings = swap(swapper, pixels, finder.face(pixels), finder.source(photo))
    assert QualityWarning.OCCLUDED in warnings


def test_a_beard_is_not_warned_of(finder, swapper, collins):
    lincoln = np.asarray(Image.open(PHOTOS / "lincoln.jpg").convert("RGB"))
    _, warnings = swap(swapper, lincoln, finder.face(lincoln), finder.source(collins))
    assert warnings == ()


def test_a_source_out_of_focus_is_warned_of(finder, swapper, collins, hopper):
    blurred = cv2.GaussianBlur(collins, (0, 0), 3)
    _, warnings = swap(swapper, hopper, finder.face(hopper), finder.source(blurred))
    assert warnings == (QualityWarning.LOW_RESOLUTION_SOURCE,)


def test_half_a_source_face_is_warned_of(finder, swapper, collins, hopper):
    photo = edit.cut("right")(hopper, finder.face(hopper))
    _, warnings = swap(swapper, collins, finder.face(collins), finder.source(photo))
    assert QualityWarning.OCCLUDED in warnings


def test_a_source_with_few_pixels_is_warned_of(finder, swapper, collins, hopper):
    photo = edit.scaled(0.3)(collins, None)
    _, warnings = swap(swapper, hopper, finder.face(hopper), finder.source(photo))
    assert warnings == (QualityWarning.LOW_RESOLUTION_SOURCE,)


@pytest.mark.parametrize(("yaw", "other"), [(50, 0), (0, -50), (20, -20)])
def test_turned_heads_are_warned_of(yaw, other, finder, swapper, collins, hopper):
    target = replace(finder.face(collins), pose=Pose(yaw, 0, 0))
    source = finder.source(hopper)
    source = replace(source, face=replace(source.face, pose=Pose(other, 0, 0)))
    _, warnings = swap(swapper, collins, target, source)
    assert QualityWarning.EXTREME_POSE in warnings


@pytest.mark.parametrize("seed", range(40))
def test_no_mesh_breaks_it(seed, finder, swapper, collins, hopper):
    """Meshes thrown about, squeezed, noisy, turned, far outside: warnings are errors here."""
    rng = np.random.default_rng(seed)
    face, source = finder.face(collins), finder.source(hopper)
    mesh = edit.thrown_about(face.mesh, rng)
    odd = replace(face, mesh=mesh, box=enclosing(mesh, collins))
    swap(swapper, collins, odd, source, gray=bool(seed % 2))
    giver = SourceFace(Picture(collins), odd, face.embedding)
    result, _ = swap(swapper, hopper, source.face, giver)
    assert part(result, source.face).mean() > 20


def test_a_box_without_pixels_changes_nothing(finder, swapper, collins, hopper):
    face = finder.face(collins)
    mesh = face.mesh + np.array([5000, 0, 0], np.float32)
    gone = replace(face, mesh=mesh, box=enclosing(mesh, collins))
    result, warnings = swap(swapper, collins, gone, finder.source(hopper))
    assert (result == collins).all()
    assert warnings == ()
