"""What an ONNX file says about itself, against the package `onnx`, and files that are none."""

from __future__ import annotations

import os
import random
from importlib.resources import files
from pathlib import Path

import numpy as np
import onnx
import pytest

from function.runtime import onnxfile
from tests import neural
from warmup.failures import DamagedError

EMBEDDED = Path(str(files("function"))) / "models"


def _dims(value: onnx.ValueInfoProto) -> tuple[int | str, ...]:
    dims = value.type.tensor_type.shape.dim
    return tuple(each.dim_param or each.dim_value for each in dims)


@pytest.fixture(scope="module")
def swapper(tmp_path_factory):
    return neural.make(tmp_path_factory.mktemp("neural") / "swapper.onnx", "inswapper_128")


@pytest.mark.parametrize("family", ["scrfd", "codeformer_512", "inswapper_128", "xseg"])
def test_a_graph_is_read_as_the_package_reads_it(family, tmp_path):
    path = neural.make(tmp_path / "a.onnx", family)
    found, right = onnxfile.read(path), onnx.load(path)
    assert found.size == path.stat().st_size
    assert found.opset == right.opset_import[0].version
    assert found.producer == right.producer_name
    for ours, theirs in ((found.inputs, right.graph.input), (found.outputs, right.graph.output)):
        assert [(each.name, each.dims) for each in ours] == [
            (each.name, _dims(each)) for each in theirs
        ]
    assert [(each.name, each.dims) for each in found.tensors] == [
        (each.name, tuple(each.dims)) for each in right.graph.initializer
    ]
    assert found.operators.total() == len(right.graph.node)
    assert found.items == (None if family == "xseg" else 1)
    assert found.precision == "float32"


@pytest.mark.parametrize("path", sorted(EMBEDDED.glob("*.onnx")), ids=lambda path: path.stem)
def test_the_embedded_models_are_read(path):
    right = onnx.load(path)
    found = onnxfile.read(path)
    assert [each.name for each in found.inputs] == [each.name for each in right.graph.input]
    assert [each.name for each in found.outputs] == [each.name for each in right.graph.output]


def test_half_weights_and_float64_inputs_are_told(tmp_path):
    half = onnxfile.read(neural.make(tmp_path / "a.onnx", "inswapper_128", half=True))
    assert half.precision == "float16"
    assert {each.kind for each in half.inputs} == {"float32"}
    weighted = onnxfile.read(neural.make(tmp_path / "b.onnx", "codeformer_512"))
    assert [each.kind for each in weighted.inputs] == ["float32", "float64"]


def test_weights_beside_the_graph_are_told(tmp_path, swapper):
    model = onnx.load(swapper)
    model.metadata_props.add(key="licence", value="none")
    path = tmp_path / "outside.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin")
    found = onnxfile.read(path)
    assert any(each.outside for each in found.tensors)
    assert [each.dims for each in found.tensors] == [
        each.dims for each in onnxfile.read(swapper).tensors
    ]
    assert found.metadata == {"licence": "none"}


class TestValues:
    """The values of single tensors."""

    ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)

    def _saved(self, path, tensor, **options):
        nodes = [onnx.helper.make_node("Add", ["x", "w"], ["y"])]
        shape = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3])
        result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 3])
        graph = onnx.helper.make_graph(nodes, "g", [shape], [result], [tensor])
        onnx.save(onnx.helper.make_model(graph), path, **options)
        return onnxfile.read(path)

    @pytest.mark.parametrize("kind", [np.float32, np.float16, np.int64])
    def test_they_are_those_that_were_written(self, kind, tmp_path):
        right = self.ARRAY.astype(kind)
        graph = self._saved(tmp_path / "a.onnx", onnx.numpy_helper.from_array(right, "w"))
        found = onnxfile.values(graph, graph.tensors[0])
        assert found.dtype == kind
        np.testing.assert_array_equal(found, right)
        assert graph.used == {"x", "w"}

    def test_a_list_of_floats_counts_as_well(self, tmp_path):
        tensor = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, (2, 3), self.ARRAY.ravel())
        assert not tensor.raw_data
        graph = self._saved(tmp_path / "a.onnx", tensor)
        np.testing.assert_array_equal(onnxfile.values(graph, graph.tensors[0]), self.ARRAY)

    def test_a_file_beside_the_graph_is_looked_into(self, tmp_path):
        tensor = onnx.numpy_helper.from_array(self.ARRAY, "w")
        outside = {"save_as_external_data": True, "location": "w.bin", "size_threshold": 0}
        graph = self._saved(tmp_path / "a.onnx", tensor, **outside)
        np.testing.assert_array_equal(onnxfile.values(graph, graph.tensors[0]), self.ARRAY)
        (tmp_path / "w.bin").unlink()
        with pytest.raises(DamagedError, match=r"w\.bin: w cannot be read"):
            onnxfile.values(graph, graph.tensors[0])

    def test_halves_as_a_list_of_numbers_are_an_error(self, tmp_path):
        kind = onnx.TensorProto.FLOAT16
        tensor = onnx.helper.make_tensor("w", kind, (2, 3), self.ARRAY.ravel())
        assert not tensor.raw_data
        graph = self._saved(tmp_path / "a.onnx", tensor)
        with pytest.raises(DamagedError, match="is not written as an array is in memory"):
            onnxfile.values(graph, graph.tensors[0])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b"<!DOCTYPE html><html>", "it is an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "it is a Git LFS pointer"),
        (b"PK\x03\x04" + bytes(100), "is no ONNX model"),
        (b"\x08\x06\x12\x04test", "it has no graph"),
        (b"\x08\x06\x3a\x00", "its graph has no outputs"),
        (b"\xff" * 50, "it has no fields of protocol buffers"),
    ],
)
def test_what_is_no_model_is_an_error_that_says_what_it_is(content, said, tmp_path):
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    with pytest.raises(DamagedError, match=said) as caught:
        onnxfile.read(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_cut_anywhere_is_an_error(swapper, tmp_path):
    content = swapper.read_bytes()
    path = tmp_path / "cut.onnx"
    rng = random.Random(0)
    for _ in range(50):
        path.write_bytes(content[: rng.randrange(1, len(content) - 200)])
        with pytest.raises(DamagedError, match="is no ONNX model"):
            onnxfile.read(path)


def test_any_bytes_are_read_or_refused_and_never_crash(swapper, tmp_path):
    content = bytearray(neural.make(tmp_path / "a.onnx", "gfpgan_512").read_bytes())
    path = tmp_path / "bad.onnx"
    rng = random.Random(0)
    refused = 0
    for _ in range(200):
        damaged = bytearray(content)
        for _ in range(20):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(damaged)
        try:
            onnxfile.read(path)
        except DamagedError:
            refused += 1
    assert refused > 50


def test_a_file_that_is_not_there_or_a_folder_is_named(tmp_path):
    with pytest.raises(DamagedError, match="No such file"):
        onnxfile.read(tmp_path / "none.onnx")
    with pytest.raises(DamagedError, match="Is a directory"):
        onnxfile.read(tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(DamagedError, match="is no regular file"):
        onnxfile.read(tmp_path / "pipe.onnx")
