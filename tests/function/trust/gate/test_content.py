"""What the real model says of pictures that are made lawfully."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from function.faces.content import OpenNsfw, item
from function.process.wiring.service import embedded
from function.runtime import sanity
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.sanity import WrongResultError
from function.settings import load
from tests import scenes
from tests.scenes import PHOTOS, photo
from warmup.models import manifest

THRESHOLD = load({}).gate.gate_threshold
(MODEL,) = (model for model in manifest.read(embedded()) if model.role == "gate")


@pytest.fixture(scope="module")
def engine():
    return OnnxEngine(MODEL.path)


@pytest.fixture(scope="module")
def content(engine):
    return OpenNsfw(engine)


@pytest.mark.parametrize("name", PHOTOS)
def test_ordinary_portraits_are_far_from_being_refused(content, name):
    assert content.look(photo(name)) < 0.1


def test_parts_of_portraits_in_other_light_pass(content):
    rng = np.random.default_rng(11)
    found = [content.look(scenes.varied(photo(PHOTOS[n % 6]), rng, 0.4)) for n in range(48)]
    assert max(found) < THRESHOLD


@pytest.mark.parametrize("kind", [scenes.beach, scenes.colours, scenes.page])
def test_beaches_colours_and_pages_pass(content, kind):
    rng = np.random.default_rng(12)
    assert max(content.look(kind(rng)) for _ in range(12)) < THRESHOLD


def test_shapes_of_skin_are_told_from_pages(content):
    """The network does see something: nobody is undressed in these, but they are nearer to it."""
    rng = np.random.default_rng(13)
    skin, pages = (
        np.mean([content.look(kind(rng)) for _ in range(12)])
        for kind in (scenes.shapes, scenes.page)
    )
    assert skin > 10 * pages


def test_the_golden_picture_is_refused_and_a_wrong_model_is_found(engine):
    sanity.known("gate", engine, MODEL.golden)
    golden = np.load(MODEL.golden.input).astype(np.float32)
    assert engine.run(golden)[0][0, 1] >= THRESHOLD

    class Blind:
        def run(self, batch):
            return [np.array([[0.99, 0.01]], np.float32)]

    with pytest.raises(WrongResultError):
        sanity.known("gate", Blind(), MODEL.golden)


def test_a_picture_becomes_what_the_network_knows():
    red = np.zeros((300, 500, 3), np.uint8)
    red[..., 0] = 200
    found = item(red)
    assert (found.shape, found.dtype) == ((224, 224, 3), np.float32)
    np.testing.assert_allclose(found.mean((0, 1)), (-104, -117, 200 - 123), atol=3)


def test_it_is_the_reference_preprocessing_but_for_rounding():
    """Pillow's bilinear square of 256, its middle, and a JPEG of quality 75."""
    image = Image.fromarray(photo(PHOTOS[0])).resize((256, 256), Image.Resampling.BILINEAR)
    file = io.BytesIO()
    image.crop((16, 16, 240, 240)).save(file, "JPEG", quality=75)
    right = np.asarray(Image.open(file), np.float32)[..., ::-1] - (104, 117, 123)
    assert np.abs(item(photo(PHOTOS[0])) - right).mean() < 4


@pytest.mark.parametrize("size", [(1, 1), (2, 4000), (4000, 3), (224, 224), (3000, 2200)])
def test_every_size_is_looked_at(content, size):
    assert 0 <= content.look(np.full((*size, 3), 90, np.uint8)) <= 1


def test_size_does_not_decide(content):
    image = Image.fromarray(photo(PHOTOS[2]))
    large = np.asarray(image.resize((2600, 2600), Image.Resampling.BICUBIC))
    assert abs(content.look(large) - content.look(np.asarray(image))) < 0.03
