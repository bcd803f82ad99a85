"""Neural swaps: where the face goes, what the network is given, and what stays as it was."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest

from function.faces import align, geometry
from function.faces.identity import ArcFace
from function.faces.options import Mask, SwapOptions
from function.faces.pipeline import Pipeline
from function.faces.swappers import crop_masks
from function.faces.swappers.crop_masks import Occlusion, Regions
from function.faces.swappers.generator import SPECS, Generator, join, split
from function.faces.swappers.neural import NeuralSwapper
from function.faces.swappers.protocol import SourceFace
from function.images.picture import Picture
from function.quality_warning import QualityWarning
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.engine import Ports
from function.telemetry.timings import Timings
from tests import neural as graphs
from tests.function.faces.conftest import Counting
from tests.graphs import swapping
from warmup.failures import ManifestError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from function.faces.face import Face
    from tests.function.faces.swappers.conftest import FaceFinder

    Pixels = np.ndarray

FROM_PHOTOS = ("uniface_256", "blendswap_256")
PORTS = Ports(("target", "source"))


class Several(Counting):
    """Counts the runs of an engine with several inputs, and what they had."""

    def run(self, *inputs: np.ndarray) -> list[np.ndarray]:
        self.runs += 1
        self.inputs = inputs
        return self._engine.run(*inputs)


@pytest.fixture(scope="session")
def arcface(tmp_path_factory: pytest.TempPathFactory) -> ArcFace:
    path = graphs.make(tmp_path_factory.mktemp("identity") / "model.onnx", "arcface")
    return ArcFace(OnnxEngine(path))


@pytest.fixture(scope="session")
def scene(finder: FaceFinder, arcface: ArcFace) -> Callable[..., tuple[Pipeline, list[Face]]]:
    """A pipeline around a swapper, and the faces that it finds in a photo."""

    def make(swapper: NeuralSwapper, pixels: Pixels) -> tuple[Pipeline, list[Face]]:
        pipeline = Pipeline(replace(finder.pipeline.models, identity=arcface), swapper)
        return pipeline, pipeline.find(Picture(pixels), Timings(), identify=True)

    return make


def generator(
    path: Path, family: str, formula: str, shift: float = 0.0, latent: str = "insightface"
) -> Generator:
    """A generator of a family whose graph is a formula."""
    graph = swapping(path / f"{family}-{formula}.onnx", SPECS[family].size, formula, shift=shift)
    engine = Several(OnnxEngine(graph, ports=PORTS))
    return Generator(engine, SPECS[family], lambda: graph, latent)


def random(path: Path, family: str, **options: bool) -> Generator:
    """A generator of a family with random weights."""
    graph = graphs.make(path / f"{family}.onnx", family, dynamic=True, **options)
    return Generator(Several(OnnxEngine(graph, ports=PORTS)), SPECS[family], lambda: graph)


def swapped(scene, made: Generator, pixels: Pixels, look: SwapOptions | None = None, **parts):
    """The photo with all of its faces replaced, the faces, and the warnings."""
    pipeline, faces = scene(NeuralSwapper(made, **parts), pixels)
    source, _ = pipeline.portrait(Picture(pixels), Timings())
    canvas, warnings = pipeline.swap(
        Picture(pixels), faces, {"": source}, Timings(), look or SwapOptions()
    )
    return canvas, faces, warnings


def inside(faces: list[Face], pixels: Pixels) -> np.ndarray:
    """The pixels in the boxes of faces."""
    mask = np.zeros(pixels.shape[:2], bool)
    for face in faces:
        box = face.box
        mask[int(box.top) : int(box.bottom), int(box.left) : int(box.right)] = True
    return mask


@pytest.fixture
def two(collins: Pixels, hopper: Pixels) -> Pixels:
    """Two people beside each other, one of them tilted."""
    height, width = hopper.shape[:2]
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), 20, 0.9)
    return np.hstack([collins, cv2.warpAffine(hopper, turn, (width, 512))])


PLAIN = [family for family in SPECS if SPECS[family].source in {"unit", "projected"}]


@pytest.mark.parametrize("family", PLAIN)
def test_a_network_that_changes_nothing_leaves_the_photo_as_it_was(
    family: str, tmp_path: Path, scene, collins: Pixels
):
    soft = cv2.GaussianBlur(
        collins, (0, 0), 2
    )  # what is left are errors of place, not of sharpness
    made = generator(tmp_path, family, "same")
    canvas, faces, _ = swapped(scene, made, soft, SwapOptions(boost=1024))
    within = inside(faces, soft)
    change = cv2.absdiff(canvas, soft)[within].max(-1)
    moved = cv2.absdiff(np.roll(soft, 1, 1), soft)[within].max(-1)
    assert np.percentile(change, 99) <= 2
    assert np.percentile(change, 99) < np.percentile(moved, 99) / 8


@pytest.mark.parametrize("name", ["collins", "hopper", "two"])
@pytest.mark.parametrize("family", ["inswapper_128", "hyperswap_256"])
def test_nothing_changes_outside_the_boxes_and_much_inside(
    family: str, name: str, tmp_path: Path, scene, request: pytest.FixtureRequest
):
    pixels = request.getfixturevalue(name)
    shift = 1.0 if family == "inswapper_128" else 0.0  # what makes black of white
    canvas, faces, _ = swapped(scene, generator(tmp_path, family, "invert", shift), pixels)
    within = inside(faces, pixels)
    assert (canvas[~within] == pixels[~within]).all()
    for face in faces:
        x, y = face.five[2].astype(int)
        np.testing.assert_allclose(canvas[y, x].astype(int), 255 - pixels[y, x].astype(int), atol=9)
        box = face.box
        edge = canvas[int(box.top), int(box.left) : int(box.right)]
        assert (edge == pixels[int(box.top), int(box.left) : int(box.right)]).all()


def test_a_face_at_the_border_of_the_photo_is_swapped(tmp_path: Path, scene, collins: Pixels):
    pixels = np.ascontiguousarray(collins[60:260, 195:400])
    canvas, (face,), _ = swapped(scene, generator(tmp_path, "inswapper_128", "invert", 1.0), pixels)
    assert (face.box.left, face.box.top) == (0, 0)
    assert cv2.absdiff(canvas, pixels).max() > 100


@pytest.mark.parametrize("names", [("", ""), ("a", "b"), ("b", "a")])
@pytest.mark.parametrize("family", ["inswapper_128", "simswap_256", "uniface_256"])
def test_faces_that_are_swapped_together_are_those_that_are_swapped_alone(
    family: str, names: tuple[str, str], tmp_path: Path, scene, two: Pixels, hopper: Pixels
):
    made = random(tmp_path, family)
    convert = OnnxEngine(graphs.make(tmp_path / "c.onnx", "crossface"))
    look = SwapOptions(boost=256)
    pipeline, faces = scene(NeuralSwapper(made, convert), two)
    assert len(faces) == 2
    faces = [replace(face, person=name) for face, name in zip(faces, names, strict=True)]
    one, other = (pipeline.portrait(Picture(each), Timings())[0] for each in (two, hopper))
    people = {"": one, "a": one, "b": other}
    together, _ = pipeline.swap(Picture(two), faces, people, Timings(), look)
    engine = made._engine
    assert engine.runs == 1
    tiles = 2 * (256 // made.spec.size) ** 2
    assert [len(each) for each in engine.inputs] == [tiles, tiles]
    alone = two
    for face in faces:
        alone, _ = pipeline.swap(Picture(alone), [face], people, Timings(), look)
    assert cv2.absdiff(together, alone).max() <= 1
    first = [replace(face, person="a") for face in faces]
    same, _ = pipeline.swap(Picture(two), first, people, Timings(), look)
    assert (same == together).all() == ("b" not in names)


def test_faces_close_together_are_swapped_one_after_the_other(
    tmp_path: Path, scene, collins: Pixels
):
    near = np.hstack([collins[:300, 160:290], collins[:300, 160:290], collins[:300, 160:512]])
    made = generator(tmp_path, "inswapper_128", "invert", 1.0)
    pipeline, faces = scene(NeuralSwapper(made), near)
    assert len(faces) == 3
    assert align.rounds(faces, align.ARCFACE_128) == [[0], [1], [2]]
    assert align.rounds([faces[0], faces[2], faces[1]], align.ARCFACE_128) == [[0, 1], [2]]
    source, _ = pipeline.portrait(Picture(near), Timings())
    together, warnings = pipeline.swap(Picture(near), faces, {"": source}, Timings())
    assert len(warnings) == 3
    alone = near
    for face in faces:
        alone, _ = pipeline.swap(Picture(alone), [face], {"": source}, Timings())
    assert (together == alone).all()
    for face in faces:  # none has its old face back
        x, y = face.five[2].astype(int)
        np.testing.assert_allclose(together[y, x].astype(int), 255 - near[y, x].astype(int), atol=9)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_boosted_faces_are_made_of_every_kth_pixel(k: int):
    crop = np.random.default_rng(k).integers(0, 256, (32 * k, 32 * k, 3), dtype=np.uint8)
    tiles = split(crop, 32)
    assert tiles.shape == (k * k, 3, 32, 32)
    for i in range(k):
        for j in range(k):
            wanted = crop[i::k, j::k].transpose(2, 0, 1)
            assert (tiles[i * k + j] == wanted).all()
    assert (join(tiles, 1.0, 0.0) == crop).all()


@pytest.mark.parametrize(
    ("family", "boost", "wanted"),
    [
        ("inswapper_128", None, 256),  # the face has 324 pixels in the photo
        ("inswapper_128", 1, 128),
        ("inswapper_128", 700, 640),
        ("hyperswap_256", None, 256),
        ("hyperswap_256", 1024, 1024),
    ],
)
def test_a_face_is_made_as_large_as_wanted(
    family: str, boost: int | None, wanted: int, tmp_path: Path, scene, hopper: Pixels
):
    made = generator(tmp_path, family, "same")
    swapped(scene, made, hopper, SwapOptions(boost=boost))
    assert len(made._engine.inputs[0]) == (wanted // made.spec.size) ** 2


def test_a_small_face_is_not_boosted_by_itself(tmp_path: Path, scene, collins: Pixels):
    made = generator(tmp_path, "inswapper_128", "same")
    swapped(scene, made, collins)
    assert len(made._engine.inputs[0]) == 1


def test_a_large_face_is_shrunk_by_areas_before_the_network_sees_it(
    tmp_path: Path, scene, hopper: Pixels
):
    large = cv2.resize(hopper, None, fx=4, fy=4, interpolation=cv2.INTER_NEAREST)
    stripes = large.copy()
    stripes[::2] = np.clip(stripes[::2].astype(int) + 60, 0, 255)
    stripes[1::2] = np.clip(stripes[1::2].astype(int) - 60, 0, 255)
    made = generator(tmp_path, "inswapper_128", "same")
    swapped(scene, made, large, SwapOptions(boost=1))
    plain = made._engine.inputs[0]
    swapped(scene, made, stripes, SwapOptions(boost=1))
    seen = made._engine.inputs[0]
    # bilinear sampling alone would let the stripes through; what is left is what clipping did
    assert np.abs(seen - plain).mean() < 0.05


# --- what the network is given -------------------------------------------------------------------


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


@pytest.fixture
def pair(scene, tmp_path: Path, two: Pixels) -> tuple[SourceFace, Face]:
    """One person, and the face of another."""
    _, faces = scene(NeuralSwapper(generator(tmp_path, "inswapper_128", "same")), two)
    return SourceFace(Picture(two), faces[0], faces[0].embedding), faces[1]


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("latent", ["insightface", "facefusion"])
def test_inswapper_gets_the_projected_identity(weight: float, latent: str, tmp_path: Path, pair):
    source, target = pair
    e, t = unit(source.embedding), unit(target.embedding)
    share = 0.35 - 0.7 * weight  # of the target's identity
    flipped = e[::-1]  # what the matrix of this graph does
    other = t[::-1] if latent == "insightface" else t
    wanted = flipped * (1 - share) + other * share
    made = generator(tmp_path, "inswapper_128", "tell", latent=latent)
    (given,) = made.source_inputs([source], [target], weight, None)
    np.testing.assert_allclose(given, wanted, atol=1e-6)


def test_the_conventions_differ_by_the_length_of_what_was_projected(tmp_path: Path, pair):
    source, target = pair
    path = graphs.make(tmp_path / "model.onnx", "inswapper_128")
    engine = OnnxEngine(path)
    given = {
        latent: Generator(engine, SPECS["inswapper_128"], lambda: path, latent).source_inputs(
            [source], [target], 0.5, None
        )[0]
        for latent in ("insightface", "facefusion")
    }
    projected = unit(source.embedding) @ graphs.emap(path)
    np.testing.assert_allclose(given["facefusion"], projected, atol=1e-5)
    np.testing.assert_allclose(given["insightface"], unit(projected), atol=1e-5)


@pytest.mark.parametrize("family", SPECS)
def test_each_family_gets_the_source_as_it_was_trained(family: str, tmp_path: Path, pair):
    source, target = pair
    made = random(tmp_path, family)
    convert = OnnxEngine(graphs.make(tmp_path / "c.onnx", "crossface"))
    converted = convert.run(source.embedding[None])[0][0]
    (given,) = made.source_inputs([source], [target], 0.5, convert)
    if family in FROM_PHOTOS:
        side = {"uniface_256": 256, "blendswap_256": 112}[family]
        assert given.shape == (3, side, side)
        assert 0 <= given.min() < 0.2 < 0.7 < given.max() <= 1
        return
    wanted = {
        "inswapper_128": lambda: unit(
            unit(source.embedding) @ graphs.emap(tmp_path / f"{family}.onnx")
        ),
        "hyperswap_256": lambda: unit(source.embedding),
        "ghost_256": lambda: converted,
    }.get(family, lambda: unit(converted))()
    np.testing.assert_allclose(given, wanted, atol=1e-5)


@pytest.mark.parametrize("family", SPECS)
def test_each_family_sees_values_as_it_was_trained(family: str, tmp_path: Path):
    made = random(tmp_path, family)
    size = made.spec.size
    crop = np.zeros((size, size, 3), np.uint8)
    crop[:] = (255, 0, 51)
    given = np.zeros(made._engine._engine._session.get_inputs()[0].shape[1:] or 512)
    shapes = {each.name: each.shape[1:] for each in made._engine._engine._session.get_inputs()}
    given = np.zeros(shapes["source"], np.float32)
    (result,) = made.make([crop], [given])
    assert result.shape == crop.shape
    seen = made._engine.inputs[0][0, :, 0, 0]
    levels = np.array([1, 0, 0.2])
    wanted = {
        "inswapper_128": levels,
        "simswap_512": levels,
        "blendswap_256": levels,
        "simswap_256": (levels - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225),
    }.get(family, levels * 2 - 1)
    np.testing.assert_allclose(seen, wanted, atol=1e-5)


def test_the_identity_reaches_the_network(tmp_path: Path, scene, collins: Pixels):
    made = generator(tmp_path, "hyperswap_256", "tell")
    canvas, (face,), _ = swapped(scene, made, collins)
    value = 127.5 + 127.5 * unit(face.embedding)[0]
    x, y = face.five[2].astype(int)
    np.testing.assert_allclose(canvas[y, x], value, atol=1)


def test_a_graph_without_the_projection_says_so(tmp_path: Path, pair):
    path = graphs.make(tmp_path / "model.onnx", "hyperswap_256", dynamic=True)
    made = Generator(OnnxEngine(path), SPECS["inswapper_128"], lambda: path)
    with pytest.raises(ManifestError, match="has 0 weights of 512 × 512"):
        made.source_inputs([pair[0]], [pair[1]], 0.5, None)


# --- masks --------------------------------------------------------------------------------------


class Painted:
    """An engine that gives a picture of its own for each item."""

    provider, items = "CPUExecutionProvider", None

    def __init__(self, picture: np.ndarray) -> None:
        self._picture = picture

    def run(self, batch: np.ndarray) -> list[np.ndarray]:
        self.batch = batch
        return [np.repeat(self._picture[None].astype(np.float32), len(batch), 0)]


def half(left: float, right: float, *shape: int) -> np.ndarray:
    """A picture of two values, beside each other; shape [H, W]."""
    picture = np.full(shape, left)
    picture[:, shape[1] // 2 :] = right
    return picture


def sides(canvas: Pixels, pixels: Pixels, face: Face) -> tuple[float, float]:
    """How much changed to the left and to the right of the nose, in its row."""
    x, y = face.five[2].astype(int)
    change = cv2.absdiff(canvas, pixels)[y - 3 : y + 4]
    return float(change[:, x - 30 : x - 12].mean()), float(change[:, x + 12 : x + 30].mean())


def test_what_covers_a_face_stays(tmp_path: Path, scene, collins: Pixels):
    made = generator(tmp_path, "inswapper_128", "invert", 1.0)
    occlusion = Occlusion(Painted(half(0, 1, 256, 256)[..., None]))
    canvas, (face,), (warnings,) = swapped(scene, made, collins, occlusion=occlusion)
    left, right = sides(canvas, collins, face)
    assert left == 0
    assert right > 30
    assert QualityWarning.OCCLUDED in warnings
    batch = occlusion._engine.batch
    assert batch.shape == (1, 256, 256, 3)
    assert 0 <= batch.min() < batch.max() <= 1
    ignored, *_ = swapped(scene, made, collins, SwapOptions(masks=(Mask.BOX,)), occlusion=occlusion)
    assert min(sides(ignored, collins, face)) > 30


def test_only_parts_of_a_face_are_replaced_where_that_is_wanted(
    tmp_path: Path, scene, collins: Pixels
):
    made = generator(tmp_path, "inswapper_128", "invert", 1.0)
    scores = np.zeros((19, 512, 512))
    scores[17, :, :256] = 1  # hair
    scores[1, :, 256:] = 1  # skin
    regions = Regions(Painted(scores))
    canvas, (face,), _ = swapped(
        scene, made, collins, SwapOptions(masks=(Mask.REGION,)), regions=regions
    )
    left, right = sides(canvas, collins, face)
    assert left == 0
    assert right > 30
    everything, *_ = swapped(scene, made, collins, regions=regions)
    assert min(sides(everything, collins, face)) > 30


def test_outside_of_the_landmarks_nothing_is_replaced_where_that_is_wanted(
    tmp_path: Path, scene, collins: Pixels
):
    made = generator(tmp_path, "inswapper_128", "invert", 1.0)
    canvas, (face,), _ = swapped(scene, made, collins, SwapOptions(masks=(Mask.AREA,)))
    hull = np.zeros(collins.shape[:2], np.uint8)
    cv2.fillConvexPoly(hull, cv2.convexHull(np.round(face.outline).astype(np.int32)), 1)
    hull = cv2.dilate(hull, np.ones((5, 5), np.uint8)) > 0
    change = cv2.absdiff(canvas, collins)
    assert not change[~hull].any()
    assert change[hull].mean() > 30


@pytest.mark.parametrize("size", [128, 256, 640])
def test_the_box_mask_is_soft_and_ends_before_the_edge(size: int):
    mask = crop_masks.box(size)
    assert mask[[0, -1]].max() == mask[:, [0, -1]].max() == 0
    assert mask[size // 2, size // 2] == pytest.approx(1)
    assert mask.max() <= 1
    assert np.diff(mask[size // 2, : size // 2]).min() >= -1e-6
    assert not mask.flags.writeable


def test_a_gray_photo_stays_gray(tmp_path: Path, scene, collins: Pixels):
    flat = cv2.cvtColor(cv2.cvtColor(collins, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    pipeline, faces = scene(NeuralSwapper(random(tmp_path, "inswapper_128")), flat)
    source, _ = pipeline.portrait(Picture(collins), Timings())
    canvas, _ = pipeline.swap(Picture(flat, gray=True), faces, {"": source}, Timings())
    assert (canvas[..., 0] == canvas[..., 1]).all()
    assert (canvas[..., 1] == canvas[..., 2]).all()
    assert (canvas != flat).any()


def test_a_turned_face_is_warned_of(tmp_path: Path, scene, collins: Pixels):
    pipeline, (face,) = scene(NeuralSwapper(generator(tmp_path, "inswapper_128", "same")), collins)
    source = SourceFace(Picture(collins), face, face.embedding)
    turned = replace(face, pose=replace(face.pose, yaw=70.0))
    _, warnings = pipeline.swap(Picture(collins), [face, turned], {"": source}, Timings())
    assert warnings == [(), (QualityWarning.EXTREME_POSE,)]


def test_the_crop_reaches_as_far_as_the_box_says(collins: Pixels, scene, tmp_path: Path):
    _, (face,) = scene(NeuralSwapper(generator(tmp_path, "inswapper_128", "same")), collins)
    back = geometry.invert(align.matrix(face.five, align.ARCFACE_128, 128))
    square = np.array([[0, 0], [128, 0], [128, 128], [0, 128]])
    wanted = geometry.apply(back, square)
    np.testing.assert_allclose(align.corners(face.five, align.ARCFACE_128), wanted, atol=0.01)
    assert face.box.left <= wanted[:, 0].min()
    assert face.box.bottom >= wanted[:, 1].max()
