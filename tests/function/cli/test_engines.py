"""`ember engines`, as far as it goes without a GPU: plans are really built, by TensorRT-RTX."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from function.faces import families
from function.process.wiring.service import embedded
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.engine import NotOnDeviceError
from function.runtime.proof import Proof, alike
from function.runtime.sanity import WrongResultError
from tests import neural
from tests.graphs import convolved
from warmup.models import manifest
from warmup.models.file import File
from warmup.models.manifest import Model
from warmup.plans.build import BuildJob, compile_plan
from warmup.plans.plan_key import Recipe
from warmup.plans.tensorrt import Library

MODELS = {model.role: model for model in manifest.read(embedded())}


@pytest.fixture
def ember(tmp_path):
    def ember(*words, **settings):
        environ = {**os.environ, "EMBER_STORE": str(tmp_path / "store")}
        environ |= {"EMBER_PLANS": str(tmp_path / "depot"), **settings}
        command = [sys.executable, "-m", "function", "engines", *words]
        return subprocess.run(
            command, env=environ, capture_output=True, text=True, timeout=240, check=False
        )

    return ember


@pytest.mark.usefixtures("rtx")
def test_plans_are_built_shared_and_listed(ember, tmp_path):
    done = ember("build", "--target", "8.9", "--role", "landmarks")
    assert done.returncode == 0, done.stderr
    assert "not measured" in done.stdout
    assert {"name": "landmarks", "phase": "Building engine"} in [
        json.loads(line) for line in done.stderr.splitlines()
    ]
    (listed,) = ember("ls", "--json").stdout.splitlines()
    facts = json.loads(listed)
    assert (facts["state"], facts["key"]["sm"], facts["key"]["gpu"]) == ("whole", "8.9", "any")
    assert facts["key"]["model"] == MODELS["landmarks"].file.sha256
    (shared,) = (tmp_path / "depot" / "plans").iterdir()
    assert sorted(path.name for path in shared.iterdir()) == ["plan", "plan.json"]
    again = ember(
        "build", "--target", "8.9", "--role", "landmarks", EMBER_STORE=str(tmp_path / "b")
    )
    assert again.returncode == 0
    assert "phase" not in again.stderr  # it was fetched


@pytest.mark.usefixtures("rtx")
def test_a_precision_that_the_model_does_not_bear_makes_no_plan(ember, tmp_path):
    done = ember("build", "--target", "8.9", "--role", "identity", EMBER_PLAN_PRECISION="fp16")
    assert done.returncode == 65
    assert "identity in fp16" in done.stderr
    assert not (tmp_path / "depot").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("rtx")
def test_eight_bits_are_calibrated_with_photos(ember, photos):
    words = ("build", "--target", "8.9", "--role", "landmarks", "--calibrate", str(photos))
    done = ember(*words, EMBER_PLAN_PRECISION="int8")
    assert done.returncode == 0, done.stderr
    assert "int8" in done.stdout


@pytest.mark.parametrize(
    ("words", "settings", "code", "said"),
    [
        (("build", "--target", "9.0"), {}, 78, "Data-centre GPUs"),
        (("build", "--target", "8.9", "--role", "hair"), {}, 78, "no model for hair"),
        (("check",), {"CUDA_VISIBLE_DEVICES": ""}, 69, "no NVIDIA driver|CUDA sees no GPU"),
        (("build",), {"CUDA_VISIBLE_DEVICES": ""}, 69, "no NVIDIA driver|CUDA sees no GPU"),
    ],
)
@pytest.mark.usefixtures("rtx")
def test_what_cannot_be_done_is_said_at_once(ember, words, settings, code, said):
    done = ember(*words, **settings)
    assert done.returncode == code, done.stderr
    assert any(part in done.stderr for part in said.split("|"))
    assert "Traceback" not in done.stderr


# --- keys and proofs --------------------------------------------------------------------------


def test_a_detectors_plan_takes_the_one_shape_that_views_have_on_a_gpu():
    key = families.plan_key(MODELS["detect"], Recipe(), Library("tensorrt", None, "11.4"), None)
    ((extent,),) = key.profiles
    assert extent.shapes == ((1, 3, 640, 640),) * 3


def test_the_batch_sizes_of_the_manifest_are_in_the_key():
    library = Library("tensorrt", None, "11.4")
    one = families.plan_key(MODELS["identity"], Recipe(), library, None)
    more = families.plan_key(replace(MODELS["identity"], buckets=(1, 4)), Recipe(), library, None)
    assert len(more.profiles) == 2
    assert one.digest != more.digest


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("scrfd", {}),
        ("arcface", {}),
        ("inswapper_128", {"dynamic": True}),
        ("inswapper_128", {"half": True}),
        ("uniface_256", {}),
        ("codeformer_512", {}),
        ("xseg", {}),
    ],
)
def test_models_of_the_families_compile_with_the_shapes_of_their_keys(
    rtx, tmp_path, family, options
):
    path = neural.make(tmp_path / "model.onnx", family, **options)
    model = Model(neural.ROLES[family], family, File(family, "", 1, "a" * 64, path), "MIT")
    key = families.plan_key(model, Recipe(), rtx, None)
    assert compile_plan(BuildJob(path, key.profiles, Recipe(), "8.9"), rtx)


@pytest.fixture
def graph(tmp_path):
    return convolved(tmp_path / "model.onnx")


def proof(graph, precision="fp32", **more):
    shapes = [[(size, 3, 16, 16)] for size in (1, 2)]
    return Proof("swap", graph, shapes, precision, **more)


def test_a_graph_that_does_what_the_model_does_is_right(graph):
    proof(graph).graph(graph)


def test_another_graph_is_wrong_and_by_how_much_is_said(graph, tmp_path):
    other = convolved(tmp_path / "other.onnx", seed=1)
    with pytest.raises(WrongResultError, match=r"for a batch of 1 it is like the model to -?0\."):
        proof(graph).graph(other)


def test_without_a_gpu_a_plan_is_not_measured(graph, monkeypatch):
    def none(number):
        raise NotOnDeviceError("no driver")

    monkeypatch.setattr("function.runtime.gpu.device.check", none)
    assert proof(graph).plan(graph, None) is None


def test_real_items_are_what_is_compared_where_there_are_some(graph):
    item = np.full((1, 3, 16, 16), 7, np.float32)
    (batch,) = proof(graph, items=[(item,), (item * 2,)])._inputs([(3, 3, 16, 16)])
    assert batch[:, 0, 0, 0].tolist() == [7, 14, 7]
    assert OnnxEngine(graph).run(batch)


def test_items_of_other_shapes_than_most_are_left_out():
    small, large = np.zeros((1, 2), np.float32), np.zeros((1, 3), np.float32)
    assert alike([(small,), (large,), (large,)]) == [(large,), (large,)]
    assert alike([]) == []
