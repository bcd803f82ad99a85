"""Graphs in other precisions give what they gave, within what the precision allows."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest

from function.runtime.backends.onnx import OnnxEngine
from tests.graphs import convolved
from warmup.plans import precision
from warmup.plans.build import BuildError


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return convolved(tmp_path_factory.mktemp("graph") / "model.onnx")


def images(count, seed=0):
    rng = np.random.default_rng(seed)
    return [{"x": rng.random((1, 3, 16, 16), np.float32)} for _ in range(count)]


def run(path, feed):
    return OnnxEngine(path).run(*feed.values())[0]


def cosine(one, other):
    return float(one.ravel() @ other.ravel() / np.linalg.norm(one) / np.linalg.norm(other))


def test_half_floats_inside_and_float32_outside(graph, tmp_path):
    half = precision.half(graph, tmp_path / "half.onnx")
    (feed,) = images(1, seed=9)
    found = run(half, feed)
    assert found.dtype == np.float32
    assert cosine(found, run(graph, feed)) > 0.99999
    types = {each.data_type for each in onnx.load(half).graph.initializer}
    assert types == {onnx.TensorProto.FLOAT16}


def test_eight_bits_give_nearly_the_same(graph, tmp_path):
    ranges = precision.calibrate(graph, images(16), tmp_path / "cache" / "ranges", tmp_path)
    eighth = precision.eighth(graph, tmp_path / "eighth.onnx", ranges)
    (feed,) = images(1, seed=9)
    assert cosine(run(eighth, feed), run(graph, feed)) > 0.99
    kinds = {node.op_type for node in onnx.load(eighth).graph.node}
    assert {"QuantizeLinear", "DequantizeLinear"} <= kinds


def test_scales_have_no_offset_as_tensorrt_knows_none(graph, tmp_path):
    ranges = precision.calibrate(graph, images(4), tmp_path / "ranges", tmp_path)
    model = onnx.load(precision.eighth(graph, tmp_path / "eighth.onnx", ranges))
    values = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    offsets = [
        values[node.input[2]]
        for node in model.graph.node
        if node.op_type in {"QuantizeLinear", "DequantizeLinear"} and len(node.input) > 2
    ]
    assert offsets
    assert not any(offset.any() for offset in offsets)


def test_what_was_calibrated_is_not_calibrated_again(graph, tmp_path):
    cache = tmp_path / "ranges"
    first = precision.calibrate(graph, images(4), cache, tmp_path)

    def nobody():
        raise AssertionError("the inputs were asked for again")
        yield

    assert precision.calibrate(graph, nobody(), cache, tmp_path) == first


@pytest.mark.parametrize("text", ["", "[]", json.dumps({"format": 0, "ranges": {}})])
def test_a_cache_that_cannot_be_read_is_made_anew(graph, tmp_path, text):
    cache = tmp_path / "ranges"
    cache.write_text(text)
    ranges = precision.calibrate(graph, images(2), cache, tmp_path)
    assert json.loads(cache.read_text())["ranges"].keys() == ranges.keys()


def test_without_a_single_input_nothing_is_calibrated(graph, tmp_path):
    with pytest.raises(BuildError, match="has not been run once: are there faces"):
        precision.calibrate(graph, [], tmp_path / "ranges", tmp_path)
    assert not (tmp_path / "ranges").exists()
