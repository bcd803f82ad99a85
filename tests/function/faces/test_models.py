"""Which models fit together, what is said of those that do not, and what callers may choose."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from function.faces.families import CUTOUT, FAMILIES, check, plan_key, ports, shapes
from function.faces.models import fitting
from function.faces.options import Mask, SwapOptions, parse_masks
from function.problems import Problem
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.sanity import attempt
from tests import neural
from warmup.failures import ManifestError
from warmup.models.file import File
from warmup.models.manifest import Model, read
from warmup.plans.plan_key import Recipe
from warmup.plans.tensorrt import Library

if TYPE_CHECKING:
    from pathlib import Path


def entry(role: str, family: str, **options: object) -> Model:
    return Model(role, family, File(role, "gs://a/b", 1, "0" * 64), "MIT", options=options)


def manifest(**families: str) -> list[Model]:
    return [entry(role, family) for role, family in families.items()]


EMBEDDED = {
    "detect": "centerface",
    "landmarks": "face_mesh_468",
    "identity": "face_identity_128",
}
MESH = "needs a model for landmarks of the family face_mesh_468"
PACK = {"detect": "scrfd", "identity": "arcface", "swap": "inswapper_128"}


@pytest.mark.parametrize(
    "families",
    [
        EMBEDDED,
        PACK,
        PACK | {"landmarks": "insightface_2d106"},
        PACK | {"detect": "yunet", "landmarks": "fan_68"},
        EMBEDDED | {"identity": "arcface", "detect": "retinaface"},
        EMBEDDED | {"identity": "arcface", "swap": "hyperswap_256", "enhance": "gpen_512"},
        EMBEDDED | {"swap": "uniface_256"},
        EMBEDDED | {"enhance": "codeformer_512"},
        PACK | {"swap": "simswap_512", "convert": "crossface"},
        PACK | {"occlusion": "xseg", "region": "bisenet", "enhance": "gfpgan_512"},
    ],
)
def test_models_that_fit_together_are_accepted(families: dict[str, str]):
    check(manifest(**families))


@pytest.mark.parametrize(
    ("families", "message"),
    [
        ({}, "there is no model for detect; every swap needs one"),
        (PACK | {"identity": None}, "there is no model for identity; every swap needs one"),
        (PACK | {"swap": None}, f"the embedded swap, as there is no model for swap, {MESH}"),
        (EMBEDDED | {"landmarks": "fan_68", "swap": "blendswap_256"},
         f"the identity model face_identity_128 {MESH}"),
        (EMBEDDED | {"swap": "inswapper_128"},
         "the swapper inswapper_128 needs a model for identity of the family arcface"),
        (PACK | {"swap": "ghost_256"},
         "the swapper ghost_256 needs a model for convert of the family crossface"),
        (PACK | {"swap": "inswapper_256"}, "unknown family 'inswapper_256' for swap; known: "),
        (PACK | {"swop": "inswapper_128"}, "unknown role 'swop'; known: "),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_what_is_missing(families: dict, message: str):
    given = {role: family for role, family in families.items() if family}
    with pytest.raises(ManifestError) as caught:
        check(manifest(**given))
    assert message in str(caught.value)


def test_everything_that_is_wrong_is_reported_at_once():
    with pytest.raises(ManifestError) as caught:
        check(manifest(detect="sfd", swap="ghost_256"))
    assert str(caught.value).count("\n") == 2


@pytest.mark.parametrize(
    ("family", "options", "message"),
    [
        (("swap", "inswapper_128"), {"latent": "facefusion"}, None),
        (("swap", "inswapper_128"), {"latent": "other"},
         "swap: option 'latent' is one of insightface, facefusion"),
        (("swap", "hyperswap_256"), {"latent": "facefusion"},
         "swap: the family has no option 'latent'"),
        (("enhance", "codeformer_512"), {"weight": 1}, None),
        (("enhance", "codeformer_512"), {"weight": 1, "cutout": 640}, None),
        (("swap", "inswapper_128"), {"cutout": 5000},
         "swap: option 'cutout' is a whole number from 256 to 4096"),
        (("swap", "inswapper_128"), {"cutout": 255},
         "swap: option 'cutout' is a whole number from 256 to 4096"),
        (("swap", "inswapper_128"), {"cutout": 384.5},
         "swap: option 'cutout' is a whole number from 256 to 4096"),
        (("enhance", "codeformer_512"), {"cutout": 511},
         "enhance: option 'cutout' is a whole number from 512 to 4096"),
        (("enhance", "codeformer_512"), {"weight": 1.5},
         "enhance: option 'weight' is a number from 0 to 1"),
        (("enhance", "codeformer_512"), {"weight": True},
         "enhance: option 'weight' is a number from 0 to 1"),
    ],
)  # fmt: skip
def test_options_of_a_family_are_checked(family: tuple, options: dict, message: str | None):
    chosen = [*manifest(**(PACK | {family[0]: family[1]}))]
    chosen = [replace(each, options=options) if each.role == family[0] else each for each in chosen]
    if message is None:
        check(chosen)
    else:
        with pytest.raises(ManifestError) as caught:
            check(chosen)
        assert message in str(caught.value)


def test_options_come_from_the_manifest(tmp_path: Path):
    path = tmp_path / "models.toml"
    lines = [
        "[[model]]", 'role = "enhance"', 'family = "codeformer_512"', 'uri = "a.onnx"', "size = 1",
        f'sha256 = "{"0" * 64}"', 'licence = "MIT"', "options = { weight = 0.7 }",
    ]  # fmt: skip
    path.write_text("\n".join(lines))
    (model,) = read(path)
    assert ports(model).constants == {"weight": 0.7}
    path.write_text("\n".join([*lines[:-1], "options = 3"]))
    with pytest.raises(ManifestError, match="`options` must be a table"):
        read(path)


RUN = [(role, family) for family, role in neural.ROLES.items() if family != "gpen_2048"]
"""The one left out takes seconds, and is gpen_1024 but for its size."""


@pytest.mark.parametrize(("role", "family"), RUN)
def test_every_family_runs_a_graph_of_its_signature(role: str, family: str, tmp_path: Path):
    known = FAMILIES[role, family]
    path = neural.make(tmp_path / "model.onnx", family)
    engine = OnnxEngine(path, ports=known.ports(entry(role, family)))
    attempt(role, engine, [(1, *item) for item in known.items])
    outputs = engine.run(*(np.zeros((1, *item), np.float32) for item in known.items))
    assert all(len(output) == 1 for output in outputs)
    assert known.stage(engine, replace(entry(role, family), file=File(role, "", 1, "", path)))


def test_a_constant_reaches_the_graph(tmp_path: Path):
    path = neural.make(tmp_path / "model.onnx", "codeformer_512")
    known = FAMILIES["enhance", "codeformer_512"]
    image = np.full((1, 3, 512, 512), 0.3, np.float32)
    results = [
        OnnxEngine(path, ports=known.ports(entry("enhance", "codeformer_512", weight=weight))).run(
            image
        )[0]
        for weight in (0.0, 1.0)
    ]
    assert abs(results[0] - results[1]).max() > 0.01


# --- what callers may choose --------------------------------------------------------------------


def have(*roles: str, takes_identity: bool = True) -> SimpleNamespace:
    every = dict.fromkeys(("swap", "enhance", "landmarks", "occlusion", "region"))
    generator = SimpleNamespace(takes_identity=takes_identity)
    return SimpleNamespace(**(every | dict.fromkeys(roles, generator)))


@pytest.mark.parametrize(
    ("look", "roles", "field"),
    [
        (SwapOptions(), (), None),
        (SwapOptions(enhance=0), (), None),
        (SwapOptions(boost=512), (), "boost"),
        (SwapOptions(boost=512), ("swap",), None),
        (SwapOptions(weight=0.7), (), "weight"),
        (SwapOptions(enhance=30), ("swap",), "enhance"),
        (SwapOptions(enhance=30), ("enhance",), None),
        (SwapOptions(masks=(Mask.BOX,)), (), "masks"),
        (SwapOptions(masks=(Mask.BOX,)), ("swap",), None),
        (SwapOptions(masks=(Mask.OCCLUSION,)), ("swap",), "masks"),
        (SwapOptions(masks=(Mask.AREA,)), ("swap",), "masks"),
        (SwapOptions(masks=(Mask.AREA, Mask.REGION)), ("swap", "landmarks", "region"), None),
    ],
)
def test_what_needs_a_model_that_is_not_there_is_refused(
    look: SwapOptions, roles: tuple, field: str
):
    if field is None:
        assert fitting(look, have(*roles)) is look
        return
    with pytest.raises(Problem) as caught:
        fitting(look, have(*roles))
    assert (caught.value.code, caught.value.extra["field"]) == ("bad_value", field)


def test_a_swapper_that_is_shown_a_photo_has_no_weight():
    with pytest.raises(Problem) as caught:
        fitting(SwapOptions(weight=1.0), have("swap", takes_identity=False))
    assert caught.value.extra["field"] == "weight"


def test_masks_are_read():
    assert parse_masks("box") == (Mask.BOX,)
    assert parse_masks(" area , box,area") == (Mask.AREA, Mask.BOX)
    for wrong in ("", "hair", "box,", "BOX"):
        with pytest.raises(Problem) as caught:
            parse_masks(wrong)
        assert caught.value.extra["field"] == "masks"


def test_a_model_that_takes_cutouts_has_other_shapes_and_another_plan():
    plain, cut = entry("swap", "inswapper_128"), entry("swap", "inswapper_128", cutout=384)
    assert shapes(plain) == [((1, 3, 128, 128), (1, 512)), ((4, 3, 128, 128), (4, 512))]
    assert shapes(cut)[1] == (
        (4, 384, 384, 3), (4, 2, 3), (4, 2, 3), (4, 256, 256), (4, 512)
    )  # fmt: skip
    assert ports(cut).inputs == (*CUTOUT, "source")
    assert ports(entry("enhance", "codeformer_512", cutout=640)).constants == {"weight": 0.5}
    library = Library("tensorrt", None, "11.4")
    one, other = (plan_key(each, Recipe(), library, None).digest for each in (plain, cut))
    assert one != other
