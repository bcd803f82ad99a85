"""A graph becomes float16 when its outputs stay what they were, and not otherwise."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from function.runtime import onnxfile
from function.runtime.backends.onnx import OnnxEngine
from function.weights import half
from function.weights.proof import UnprovenError
from tests import neural
from warmup.failures import DamagedError


def _overflowing(path, factor):
    """A graph that squares on its way, so that float16 is too small for large factors."""
    text = """<ir_version: 7, opset_import: ["" : 11]>
    g (float[N,4] x) => (float[N,4] y)
    { a = Mul(x, f)
      b = Mul(a, a)
      m = ReduceMean<axes = [1], keepdims = 1>(b)
      y = Div(b, m) }"""
    model = parser.parse_model(text)
    model.graph.initializer.append(numpy_helper.from_array(np.float32(factor), "f"))
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("family", ["scrfd", "arcface", "inswapper_128", "codeformer_512", "xseg"])
def test_outputs_stay_what_they_were(family, tmp_path):
    source, out = neural.make(tmp_path / "a.onnx", family), tmp_path / "b.onnx"
    assert half.make(source, out) > 0.999
    before, after = onnxfile.read(source), onnxfile.read(out)
    assert after.precision == "float16" or family == "inswapper_128"  # most of it is the projection
    assert after.inputs == before.inputs
    assert [each.name for each in after.outputs] == [each.name for each in before.outputs]
    assert {each.kind for each in after.outputs} == {"float32"}
    assert after.metadata["ember.change"].startswith("float16; from sha256 ")


def test_the_projection_keeps_its_precision(tmp_path):
    source, out = neural.make(tmp_path / "a.onnx", "inswapper_128"), tmp_path / "b.onnx"
    half.make(source, out)
    np.testing.assert_array_equal(neural.emap(source), neural.emap(out))


def test_inputs_and_outputs_can_be_halves_too(tmp_path):
    source, out = neural.make(tmp_path / "a.onnx", "arcface"), tmp_path / "b.onnx"
    half.make(source, out, outside=True)
    graph = onnxfile.read(out)
    assert {each.kind for each in (*graph.inputs, *graph.outputs)} == {"float16"}
    rows = np.random.default_rng(0).random((2, 3, 112, 112), np.float32)
    found, right = (OnnxEngine(path).run(rows)[0] for path in (out, source))
    np.testing.assert_allclose(found, right, atol=0.01 * np.abs(right).max())


def test_values_that_float16_cannot_hold_are_refused(tmp_path):
    source = _overflowing(tmp_path / "a.onnx", 1000)
    with pytest.raises(UnprovenError, match="y has values that are not finite; --keep can"):
        half.make(source, tmp_path / "b.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["a.onnx"]


def test_operators_that_are_kept_mend_that(tmp_path):
    source, out = _overflowing(tmp_path / "a.onnx", 1000), tmp_path / "b.onnx"
    assert half.make(source, out, keep=["Mul", "ReduceMean", "Div"]) > 0.999


def test_the_known_input_decides(tmp_path):
    source = _overflowing(tmp_path / "a.onnx", 200)
    small, large = (np.full((1, 4), value, np.float32) for value in (0.5, 2))
    half.make(source, tmp_path / "b.onnx", inputs=[small])
    with pytest.raises(UnprovenError, match="not finite"):
        half.make(source, tmp_path / "c.onnx", inputs=[large])


def test_outputs_that_are_too_unlike_are_refused_with_both_numbers(tmp_path):
    source = neural.make(tmp_path / "a.onnx", "inswapper_128")
    with pytest.raises(
        UnprovenError, match=r"output output is like .* \(cosine\), not to 1; --keep"
    ):
        half.make(source, tmp_path / "b.onnx", least=1.0)


def test_halves_are_not_halved(tmp_path):
    source = neural.make(tmp_path / "a.onnx", "simswap_256", half=True)
    with pytest.raises(UnprovenError, match="its weights are float16, not float32"):
        half.make(source, tmp_path / "b.onnx")


def test_a_wrong_number_of_known_inputs_is_an_error(tmp_path):
    source = neural.make(tmp_path / "a.onnx", "inswapper_128")
    with pytest.raises(DamagedError, match="takes the inputs target, source; 1 were given"):
        half.make(source, tmp_path / "b.onnx", inputs=[np.zeros((1, 3, 128, 128), np.float32)])


def test_a_known_input_of_another_shape_is_an_error(tmp_path):
    source = neural.make(tmp_path / "a.onnx", "arcface")
    with pytest.raises(UnprovenError, match=r"a\.onnx cannot be run: .*Got: 100 Expected: 112"):
        half.make(source, tmp_path / "b.onnx", inputs=[np.zeros((1, 3, 100, 112), np.float32)])


def test_what_is_no_array_is_an_error(tmp_path):
    path = tmp_path / "a.npy"
    path.write_text("nothing")
    with pytest.raises(DamagedError, match=r"a\.npy: is no array of numbers"):
        half.read_inputs([path])


def test_weights_that_are_missing_are_named(tmp_path):
    source = neural.make(tmp_path / "a.onnx", "simswap_256")
    onnx.save(onnx.load(source), source, save_as_external_data=True, location="weights.bin")
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(DamagedError, match=r"a\.onnx: cannot be loaded"):
        half.make(source, tmp_path / "b.onnx")
