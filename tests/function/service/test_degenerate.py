"""No replica is ready whose models do the same to everybody, or nothing: for every role."""

from __future__ import annotations

import zlib
from dataclasses import replace

import cv2
import numpy as np
import pytest

from function import settings
from function.faces import models
from function.faces.enhance import SPECS, Enhancer
from function.faces.families import FAMILIES
from function.faces.swappers.crop_masks import Occlusion, Regions
from function.process.wiring.service import embedded
from function.runtime.sanity import WrongResultError
from function.service import degenerate, opening
from function.service.engine_config import EngineConfig
from function.service.service import Service
from warmup.models import manifest
from warmup.models.golden import read

GOLDEN = read(embedded())
EMBEDDED = manifest.read(embedded())


class Broken:
    """A real engine, whose outputs are spoilt.

    Args:
        engine: the real one.
        spoil: makes outputs from its outputs and its inputs.
    """

    def __init__(self, engine, spoil):
        self.engine, self.spoil = engine, spoil
        self.provider, self.items = engine.provider, engine.items

    def run(self, *inputs):
        outputs = self.spoil(self.engine.run(*inputs), inputs)
        return [np.asarray(each, np.float32) for each in outputs]


class First:
    """What it gave first for the first picture that it saw, for every picture."""

    def __init__(self):
        self.seen = None

    def __call__(self, outputs, inputs):
        if self.seen is None and inputs[0].any():  # warming begins with zeros
            self.seen = outputs[0][:1]
        first = outputs[0] if self.seen is None else np.repeat(self.seen, len(outputs[0]), 0)
        return [first, *outputs[1:]]


def noise(outputs, inputs):
    """Another vector for every picture, the same for the same."""
    seeds = [zlib.crc32(item.tobytes()) for item in inputs[0]]
    made = [np.random.default_rng(seed).normal(0, 0.1, outputs[0].shape[1:]) for seed in seeds]
    return [np.stack(made)]


def collapsed(outputs, _):
    """Hardly any difference between people, as where weights underflow."""
    return [outputs[0] * 0.02]


async def warmed(**spoils):
    """Warm the embedded set with some of its models spoilt."""

    def opened(model, **options):
        engine = opening.open_engine(model, **options)
        spoil = spoils.get(model.role)
        return Broken(engine, spoil) if spoil else engine

    service = Service(
        EMBEDDED,
        workers=2,
        max_pixels=settings.load({}).images.max_pixels,
        config=EngineConfig(open=opened),
        expected=GOLDEN,
    )
    try:
        await service.load()
        await service.warm()
    finally:
        service.close()


async def test_the_embedded_set_passes():
    await warmed()


@pytest.mark.parametrize(
    ("role", "spoil"),
    [
        ("identity", First()),
        ("identity", noise),
        ("identity", collapsed),
        ("landmarks", First()),
        ("landmarks", lambda outputs, _: [outputs[0] * 0 + 96, *outputs[1:]]),
        ("detect", lambda outputs, _: [outputs[0] * 0 + 0.9, *outputs[1:]]),
    ],
    ids=["one person", "noise", "collapsed", "same points", "one point", "faces everywhere"],
)
async def test_a_set_with_a_broken_model_does_not_get_ready(role, spoil):
    with pytest.raises(WrongResultError):
        await warmed(**{role: spoil})


async def test_a_swapper_that_gives_back_its_target_does_not_get_ready(monkeypatch):
    from function.faces.swappers.mesh import MeshSwapper

    monkeypatch.setattr(MeshSwapper, "swap_all", lambda _, __, faces, *a, **k: [()] * len(faces))
    with pytest.raises(WrongResultError, match="golden check"):
        await warmed()


def test_strangers_are_apart_and_nan_is_not():
    degenerate.apart(0.7, 0.6)
    for wrong in (0.0, 0.59, float("nan")):
        with pytest.raises(WrongResultError, match="identity"):
            degenerate.apart(wrong, 0.6)


RNG = np.random.default_rng(3)
POINTS = RNG.normal(0, 50, (68, 2)).astype(np.float32)
TURN = np.array([[0.8, -0.6], [0.6, 0.8]], np.float32)


@pytest.mark.parametrize(
    "other",
    [POINTS, POINTS * 2 + 9, POINTS @ TURN, POINTS * 0, RNG.normal(0, 50, POINTS.shape), None],
    ids=["equal", "moved and larger", "turned", "all in one", "noise", "none"],
)
def test_points_that_are_the_same_for_two_people_or_anywhere_are_wrong(other):
    other = None if other is None else other.astype(np.float32)
    with pytest.raises(WrongResultError, match="landmarks"):
        degenerate.differ(POINTS, other)


def test_points_of_two_faces_are_alike_and_not_the_same():
    degenerate.differ(POINTS, POINTS @ TURN + RNG.normal(0, 3, POINTS.shape).astype(np.float32))


class Gives:
    """An engine that gives what a function makes of its input."""

    provider, items = "", None

    def __init__(self, gives):
        self.gives = gives

    def run(self, *inputs):
        return [np.asarray(self.gives(*inputs), np.float32)]


CROP = RNG.integers(0, 256, (256, 256, 3)).astype(np.uint8)
DISC = cv2.circle(np.zeros((512, 512), np.float32), (256, 256), 150, (1.0,), -1)
PARTS = np.eye(19, dtype=np.float32)[DISC.astype(int)].transpose(2, 0, 1)  # skin, 1, on background
EMPTY = np.eye(19, dtype=np.float32)[np.zeros((512, 512), int)].transpose(2, 0, 1)
SKIN = np.eye(19, dtype=np.float32)[np.ones((512, 512), int)].transpose(2, 0, 1)


def xseg(mask):
    small = cv2.resize(mask, (256, 256))[None, ..., None]
    return Occlusion(Gives(lambda _: small))


@pytest.mark.parametrize(
    ("role", "model"),
    [("occlusion", xseg(DISC)), ("region", Regions(Gives(lambda _: PARTS[None])))],
)
def test_a_mask_of_the_face_is_right(role, model):
    degenerate.masked(role, model.masks([CROP])[0])


@pytest.mark.parametrize(
    ("role", "model"),
    [
        ("occlusion", xseg(DISC * 0)),
        ("occlusion", xseg(DISC * 0 + 1)),
        ("occlusion", xseg(1 - DISC)),
        ("occlusion", xseg(DISC * 0 + 0.6)),
        ("region", Regions(Gives(lambda _: EMPTY[None]))),
        ("region", Regions(Gives(lambda _: SKIN[None]))),
    ],
)
def test_a_mask_of_nothing_or_of_everything_is_wrong(role, model):
    with pytest.raises(WrongResultError, match=role):
        degenerate.masked(role, model.masks([CROP])[0])


def enhanced(gives):
    from function.faces.face import Box, Face
    from function.images.decode import decode

    picture = decode(GOLDEN.target.read_bytes())
    five = np.float32([[200, 200], [310, 200], [255, 265], [210, 320], [300, 320]])
    face = Face(0, Box(100, 100, 410, 430), None, five, 1.0, None)
    enhancer = Enhancer(Gives(gives), SPECS["gpen_256"])
    degenerate._enhanced(models.Models(None, None, {}, enhance=enhancer), picture, face)


def test_an_enhancer_that_sharpens_is_right():
    enhanced(lambda images: np.clip(images * 1.2, -1, 1))


@pytest.mark.parametrize(
    "gives",
    [lambda images: images, lambda images: -images, lambda images: images * 0 + 1],
    ids=["nothing", "negative", "white"],
)
def test_an_enhancer_that_does_nothing_or_anything_is_wrong(gives):
    with pytest.raises(WrongResultError, match="enhance"):
        enhanced(gives)


def test_a_converter_that_gives_one_for_all_is_wrong():
    one, other = RNG.normal(0, 1, (2, 512)).astype(np.float32)
    degenerate.converted(one, other)
    for wrong in (one, one * 3, one * float("nan")):
        with pytest.raises(WrongResultError, match="convert"):
            degenerate.converted(one, wrong)


def test_a_gate_that_refuses_portraits_or_takes_all_pictures_for_one_is_wrong():
    degenerate.gated(0.01, 0.03)
    for wrong in ((0.9, 0.03), (0.01, 0.9), (0.2, 0.2), (float("nan"), 0.1), (0.1, float("nan"))):
        with pytest.raises(WrongResultError, match="gate"):
            degenerate.gated(*wrong)


def test_a_golden_image_that_an_idle_swap_passes_is_refused():
    from function.service import golden

    lax = replace(GOLDEN, min_psnr=3.0)
    with pytest.raises(WrongResultError, match="did nothing would pass"):
        golden.check(lax, GOLDEN.target.read_bytes(), [type("Face", (), {"after": 0.1})])


def test_every_role_of_a_manifest_is_held_to_something():
    proven = {
        "identity",
        "landmarks",
        "detect",
        "occlusion",
        "region",
        "enhance",
        "convert",
        "gate",
    }
    # What a swap gives is the picture. Nobody's age is known so well that it could be held to it.
    assert {role for role, _ in FAMILIES} == proven | {"swap", "age"}
