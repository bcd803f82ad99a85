"""A graph for one item takes any number afterwards, or is left as it is."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

from function.runtime import onnxfile
from function.runtime.backends.onnx import OnnxEngine
from function.weights import batches, proof
from function.weights.proof import UnprovenError
from tests import neural
from warmup.failures import StoreError

FREE = {"centerface", "insightface_2d106", "arcface", "xseg", "open_nsfw"}
LARGE = {"gpen_1024", "gpen_2048"}


def _graph(text, path, **tensors):
    """Write a graph that is given as text; `tensors` are its large constants."""
    model = parser.parse_model(f'<ir_version: 7, opset_import: ["" : 11]>\n{text}')
    for name, array in tensors.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def _runs(path, *inputs):
    return OnnxEngine(path).run(*inputs)


@pytest.mark.parametrize("family", sorted(neural.ROLES.keys() - FREE - LARGE))
def test_every_family_for_one_item_takes_batches_afterwards(family, tmp_path):
    source = neural.make(tmp_path / "a.onnx", family)
    out = tmp_path / "b.onnx"
    batches.make(source, out)
    graph = onnxfile.read(out)
    assert graph.items is None
    inputs = [*proof.feed(graph, 4, seed=9).values()]
    together = _runs(out, *inputs)
    for n in range(4):
        alone = _runs(source, *(rows[n : n + 1] if rows.ndim > 1 else rows for rows in inputs))
        for ours, right in zip(together, alone, strict=True):
            np.testing.assert_allclose(ours[n].ravel(), right.ravel(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", sorted(FREE))
def test_one_that_takes_any_number_is_left_alone(family, tmp_path):
    source = neural.make(tmp_path / "a.onnx", family)
    with pytest.raises(UnprovenError, match="takes any number of items already"):
        batches.make(source, tmp_path / "b.onnx")


def test_a_detectors_rows_get_an_axis_of_items(tmp_path):
    out = tmp_path / "b.onnx"
    batches.make(neural.make(tmp_path / "a.onnx", "retinaface"), out)
    dims = [each.dims for each in onnxfile.read(out).outputs]
    assert dims[0] == ("N", 12800, 1)
    assert dims[8] == ("N", 800, 10)


def test_the_projection_and_the_makers_notes_are_kept(tmp_path):
    source = neural.make(tmp_path / "a.onnx", "inswapper_128", shuffled=True)
    model = onnx.load(source)
    model.metadata_props.add(key="licence", value="research")
    onnx.save(model, source)
    out = tmp_path / "b.onnx"
    batches.make(source, out)
    np.testing.assert_array_equal(neural.emap(source), neural.emap(out))
    noted = onnxfile.read(out).metadata
    assert noted["licence"] == "research"
    assert "batches of any size; from sha256" in noted["ember.change"]


def test_weights_in_another_file_come_along(tmp_path):
    source = tmp_path / "outside.onnx"
    model = onnx.load(neural.make(tmp_path / "a.onnx", "simswap_256"))
    onnx.save(model, source, save_as_external_data=True, location="weights.bin")
    out = tmp_path / "b.onnx"
    batches.make(source, out)
    assert not any(each.outside for each in onnxfile.read(out).tensors)


@pytest.mark.parametrize("family", ["ghost_256", "scrfd"])
def test_old_files_that_list_their_weights_as_inputs_are_rewritten_too(family, tmp_path):
    source = neural.make(tmp_path / "a.onnx", family)
    model = onnx.load(source)
    for tensor in model.graph.initializer:
        value = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        model.graph.input.append(value)
    onnx.save(model, source)
    out = tmp_path / "b.onnx"
    batches.make(source, out)
    assert onnxfile.read(out).items is None


class TestConstants:
    """What constants say about one item."""

    def test_a_length_that_was_left_open_becomes_a_number(self, tmp_path):
        text = """g (float[1,2,3,4] x) => (float[1,6,4] y) <int64[3] s = {1, -1, 4}>
        { y = Reshape(x, s) }"""
        out = tmp_path / "b.onnx"
        done = batches.make(_graph(text, tmp_path / "a.onnx"), out)
        assert any("[1, -1, 4] to [-1, 6, 4]" in line for line in done)

    def test_constants_of_nodes_count_as_well(self, tmp_path):
        text = """g (float[1,2,3] x) => (float[1,6] y)
        { s = Constant<value = int64[2] {1, 6}>()
          y = Reshape(x, s) }"""
        done = batches.make(_graph(text, tmp_path / "a.onnx"), tmp_path / "b.onnx")
        assert any("[1, 6] to [-1, 6]" in line for line in done)

    def test_a_constant_that_weights_use_too_is_kept_for_them(self, tmp_path):
        text = """g (float[1,2,3] x) => (float[1,6] y) <int64[2] s = {1, 6}>
        { a = Reshape(x, s)
          b = Reshape(w, s)
          y = Add(a, b) }"""
        weights = np.arange(6, dtype=np.float32).reshape(2, 3)
        source = _graph(text, tmp_path / "a.onnx", w=weights)
        batches.make(source, tmp_path / "b.onnx")
        (found,) = _runs(tmp_path / "b.onnx", np.zeros((3, 2, 3), np.float32))
        np.testing.assert_array_equal(found, np.tile(weights.reshape(1, 6), (3, 1)))

    def test_sizes_of_a_resize_become_factors(self, tmp_path):
        text = """g (float[1,2,4,6] x) => (float[1,2,8,9] y) <int64[4] s = {1, 2, 8, 9}>
        { y = Resize<mode = "linear">(x, r, f, s) }"""
        empty = np.zeros(0, np.float32)
        done = batches.make(
            _graph(text, tmp_path / "a.onnx", r=empty, f=empty), tmp_path / "b.onnx"
        )
        assert any("Resize" in line and "[1.0, 1.0, 2.0, 1.5]" in line for line in done)


class TestRefusals:
    """Graphs of which a batch gives something else; nothing is written."""

    def _refused(self, text, tmp_path, said, **tensors):
        out = tmp_path / "b.onnx"
        with pytest.raises(UnprovenError, match=said):
            batches.make(_graph(text, tmp_path / "a.onnx", **tensors), out)
        assert [path.name for path in tmp_path.iterdir()] == ["a.onnx"]

    def test_items_that_are_averaged(self, tmp_path):
        text = """g (float[1,8] x) => (float[1,8] y)
        { m = ReduceMean<axes = [0], keepdims = 1>(x)
          y = Mul(x, m) }"""
        self._refused(text, tmp_path, "gives other results than 2 runs of one item: y differs")

    def test_items_that_become_channels(self, tmp_path):
        text = """g (float[1,4,5,5] x) => (float[1,4,5,5] y) <int64[4] s = {4, -1, 1, 1}>
        { m = GlobalAveragePool(x)
          w = Reshape(m, s)
          y = Conv<group = 4>(x, w) }"""
        self._refused(text, tmp_path, "a batch of 2 cannot be run")

    def test_an_axis_of_items_that_is_dropped(self, tmp_path):
        text = """g (float[1,8] x) => (float[8] y)
        { y = Squeeze<axes = [0]>(x) }"""
        self._refused(text, tmp_path, "a batch of 2 cannot be run")

    def test_a_graph_for_several_items(self, tmp_path):
        text = """g (float[4,8] x) => (float[4,8] y) { y = Relu(x) }"""
        self._refused(text, tmp_path, "made for 4 items, not for one")


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    source = neural.make(tmp_path / "a.onnx", "crossface")
    with pytest.raises(StoreError, match="cannot be written: No such file"):
        batches.make(source, tmp_path / "none" / "b.onnx")
