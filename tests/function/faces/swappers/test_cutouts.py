"""What graphs make of cutouts is what is made of crops on the CPU, to a level of 255."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from function.faces import families, geometry
from function.faces.enhance import SPECS as ENHANCERS
from function.faces.enhance import Enhancer
from function.faces.identity import ArcFace
from function.faces.options import Mask, SwapOptions
from function.faces.pipeline import Pipeline
from function.faces.swappers import crop_masks
from function.faces.swappers.cutouts import Cutouts
from function.faces.swappers.generator import SPECS, Generator
from function.faces.swappers.neural import NeuralSwapper
from function.faces.swappers.paste import paste
from function.images.picture import Picture
from function.runtime.backends.onnx import OnnxEngine
from function.telemetry.timings import Timings
from function.weights import cutout
from tests import neural
from tests.graphs import swapping

SOURCE = np.arange(512, dtype=np.float32) / 512


class Noting:
    """Keeps what an engine gets."""

    def __init__(self, engine):
        self._engine, self.fed = engine, []
        self.provider, self.items = engine.provider, engine.items

    def run(self, *inputs):
        self.fed.append(inputs)
        return self._engine.run(*inputs)


def engine(path, role, family, side=0):
    found = families.FAMILIES[role, family]
    model = SimpleNamespace(options={})
    return Noting(OnnxEngine(path, ports=(found.cut(side) if side else found).ports(model)))


class Pair:
    """A network as it is, and the graph around it that takes cutouts."""

    def __init__(self, folder, family, side, path):
        self.spec, self.side = SPECS[family], side
        self.file = folder / f"{path.stem}.cutout.onnx"
        cutout.make(path, self.file, "swap", family, side)
        self.crops = Generator(engine(path, "swap", family), self.spec, lambda: path)
        own = engine(self.file, "swap", family, side)
        self.cutouts = Generator(own, self.spec, lambda: self.file, cutout=side)

    def by_crops(self, canvas, places, masks):
        size = self.spec.made
        there = size, size
        crops = [geometry.crop(canvas, each, there, cv2.BORDER_REPLICATE) for each in places]
        made = self.crops.make(crops, [SOURCE] * len(crops))
        for each in zip(made, masks, places, strict=True):
            paste(canvas, *each, gray=False)
        return canvas

    def by_cutouts(self, canvas, places, masks):
        assert all(self.cutouts.cutouts.take(canvas, each, self.spec.made) for each in places)
        self.cutouts.cutouts.change(canvas, places, masks, [SOURCE] * len(places))
        return canvas


@pytest.fixture(scope="session")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cutouts")
    shown = swapping(folder / "invert.onnx", 128, "invert", shift=1.0)
    return {
        "tiled": Pair(folder, "inswapper_128", 384, shown),
        "signed": Pair(
            folder, "hyperswap_256", 320, swapping(folder / "hyper.onnx", 256, "invert")
        ),
    }


def noise(width, height, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def patchy(size, seed):
    """A mask of no particular shape, but for its edge, at which nothing is replaced."""
    rough = np.random.default_rng(seed).random((size, size), np.float32)
    rough = crop_masks.stepped(cv2.GaussianBlur(rough, (0, 0), 3) * 3 - 1)
    return np.minimum(rough, crop_masks.box(size))


def place(middle, side, turn, size=256):
    """image → crop, for a face with a crop of that side there."""
    scale = size / side
    linear = scale * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    return np.column_stack([linear, size / 2 - linear @ np.asarray(middle)])


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(["tiled", "signed"]),
    width=st.integers(8, 700),
    height=st.integers(8, 700),
    x=st.floats(-0.1, 1.1),
    y=st.floats(-0.1, 1.1),
    side=st.floats(129, 220),
    turn=st.floats(-np.pi, np.pi),
    seed=st.integers(0, 9),
)
@example("tiled", 600, 600, 0.5, 0.5, 256.0, 0.0, 1)
@example("tiled", 600, 400, 0.0, 0.0, 200.0, 1.0, 2)
@example("signed", 600, 400, 1.0, 1.0, 200.0, -2.0, 3)
@example("tiled", 50, 60, 0.5, 0.5, 200.0, 0.1, 4)
@example("signed", 600, 400, 2.0, 2.0, 130.0, 0.1, 4)
def test_any_face_anywhere_is_changed_as_by_crops(
    pairs, name, width, height, x, y, side, turn, seed
):
    pair, pixels = pairs[name], noise(width, height, seed)
    mask = crop_masks.box(256) if seed % 2 else patchy(256, seed)
    places = [place((x * width, y * height), side, turn)]
    right = pair.by_crops(pixels.copy(), places, [mask])
    assert cv2.absdiff(right, pair.by_cutouts(pixels.copy(), places, [mask])).max() <= 1


def test_the_faces_of_a_photo_are_one_batch_and_of_several_photos_too(pairs):
    pair, own = pairs["tiled"], pairs["tiled"].cutouts._engine
    photos = [noise(900, 700, 1), noise(300, 500, 2)]
    faces = [
        [place((150, 160), 220, 0.3), place((700, 400), 260, -0.6), place((180, 560), 200, 2.0)],
        [place((290, 20), 210, 0.0)],
    ]
    fed, results = [], []
    for pixels, places in zip(photos, faces, strict=True):
        masks = [patchy(256, n) for n in range(len(places))]
        own.fed.clear()
        result = pair.by_cutouts(pixels.copy(), places, masks)
        assert [len(each[0]) for each in own.fed] == [len(places)]
        assert cv2.absdiff(pair.by_crops(pixels.copy(), places, masks), result).max() <= 1
        fed += own.fed
        results.append(own.run(*own.fed[0])[0])
    together = own.run(*(np.concatenate(each) for each in zip(*fed[:2], strict=True)))[0]
    assert together.dtype == np.uint8
    assert (together == np.concatenate(results)).all()


@pytest.mark.parametrize("name", ["tiled", "signed"])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_crops_of_any_size_are_made_as_ever(name, k, pairs):
    pair = pairs[name]
    side = k * pair.spec.size
    crops, sources = [noise(side, side, 1), noise(128 * 2, 128 * 2, 2)], [SOURCE, -SOURCE]
    right = pair.crops.make(crops, sources)
    found = pair.cutouts.make(crops, sources)
    assert all((one == other).all() for one, other in zip(found, right, strict=True))


@pytest.mark.parametrize(
    ("side", "size", "taken"),
    [
        (257, 256, True),
        (382, 256, True),
        (384, 256, False),  # no room
        (500, 256, False),
        (127, 256, False),  # it would have to be halved on its way back
        (120, 128, False),  # another size than the graph makes
        (200, 512, False),
    ],
)
def test_what_would_come_out_otherwise_is_not_taken(pairs, side, size, taken):
    cutouts = pairs["tiled"].cutouts.cutouts
    assert cutouts.take(noise(900, 900), place((450, 450), side, 0.0, size), size) is taken


@pytest.fixture(scope="session")
def arcface(tmp_path_factory):
    return ArcFace(OnnxEngine(neural.make(tmp_path_factory.mktemp("id") / "a.onnx", "arcface")))


def swapped(finder, arcface, pixels, options, *, gray=False, enhance=None, occlusion=None, **parts):
    """The photo with all of its faces swapped."""
    models = replace(finder.pipeline.models, identity=arcface, enhance=enhance, occlusion=occlusion)
    pipeline = Pipeline(models, NeuralSwapper(parts.pop("made"), occlusion=occlusion, **parts))
    picture = Picture(pixels, gray=gray)
    faces = pipeline.find(picture, Timings(), identify=True)
    source, _ = pipeline.portrait(picture, Timings())
    return pipeline.swap(picture, faces, {"": source}, Timings(), options)


class Half:
    """Masks that leave out the upper half of each crop."""

    def masks(self, crops):
        masks = [np.ones(crop.shape[:2], np.float32) for crop in crops]
        for mask in masks:
            mask[: len(mask) // 2] = 0
        return [crop_masks.softened(mask) for mask in masks]


@pytest.fixture
def two(collins, hopper):
    """Two people beside each other, one of them too small to be taken."""
    turn = cv2.getRotationMatrix2D((300, 256), 20, 0.9)
    return np.hstack([collins, cv2.warpAffine(hopper, turn, (hopper.shape[1], 512))])


@pytest.mark.parametrize(
    ("photo", "options", "parts", "direct"),
    [
        ("two", {}, {}, 1),
        ("two", {"boost": 256}, {"occlusion": Half()}, 2),
        ("collins", {"boost": 512}, {}, 0),
        ("hopper", {}, {"occlusion": Half()}, 1),
        ("hopper", {"masks": (Mask.AREA,)}, {"occlusion": Half()}, 1),
        ("hopper", {"masks": (Mask.REGION,)}, {"regions": Half()}, 0),
        ("hopper", {}, {"gray": True}, 0),
    ],
)
def test_whole_swaps_are_the_same(
    photo, options, parts, direct, pairs, finder, arcface, request: pytest.FixtureRequest
):
    pixels, pair = request.getfixturevalue(photo), pairs["tiled"]
    if parts.get("gray"):
        pixels = np.repeat(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)[..., None], 3, 2)
    look = SwapOptions(**options)
    pair.cutouts._engine.fed.clear()
    results = [
        swapped(finder, arcface, pixels, look, made=made, **parts)
        for made in (pair.crops, pair.cutouts)
    ]
    (right, warnings), (found, warned) = results
    assert cv2.absdiff(right, found).max() <= 1
    assert cv2.absdiff(right, pixels).max() > 50
    masks = [mask for each in pair.cutouts._engine.fed for mask in each[3]]
    assert sum(mask.min() == 0 for mask in masks) == direct
    assert warned == warnings


@pytest.mark.parametrize("occlusion", [None, Half()])
@pytest.mark.parametrize("gray", [False, True])
def test_enhancers_take_cutouts_too(occlusion, gray, tmp_path, finder, hopper):
    family = "gpen_256"
    path = neural.make(tmp_path / "a.onnx", family)
    file = tmp_path / "b.onnx"
    assert cutout.make(path, file, "enhance", family, 400) == 400
    kinds = (engine(path, "enhance", family), 0), (engine(file, "enhance", family, 400), 400)
    results = []
    for own, side in kinds:
        canvas, faces = hopper.copy(), finder.faces(hopper)
        Enhancer(own, ENHANCERS[family], side).enhance(
            canvas, faces, SwapOptions(enhance=70), occlusion, gray=gray
        )
        results.append(canvas)
        assert len(own.fed) == 1
    mask = own.fed[0][3][0]
    assert (mask.max() < 255) == (not gray)  # the CPU puts back what must be gray
    assert cv2.absdiff(*results).max() <= 1
    assert cv2.absdiff(results[0], hopper).max() > 20


def test_a_crop_that_fits_is_one_cutout(pairs):
    own = pairs["tiled"].cutouts._engine
    own.fed.clear()
    pairs["tiled"].cutouts.make([noise(256, 256), noise(128, 128)], [SOURCE] * 2)
    ((pixels, *_, mask, source),) = own.fed
    assert pixels.shape == (2, 384, 384, 3)
    assert (pixels[1, :256:2, :256:2] == noise(128, 128)).all()
    assert mask.min() == 255
    assert source.shape == (2, 512)


def test_cutouts_need_no_more_of_a_canvas_than_there_is():
    cutouts = Cutouts(None, 128, 256, 384)
    small = noise(100, 500)
    found = cutouts._cut(small, 0, 116)
    assert found.shape == (384, 384, 3)
    assert (found[:, :100] == small[116:]).all()
    assert (found[:, 100:] == small[116:, -1:]).all()
