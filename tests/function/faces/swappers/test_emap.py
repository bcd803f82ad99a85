"""inswapper's projection is found by its shape, however the file was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from function.faces.swappers import emap
from warmup.failures import DamagedError, ManifestError

if TYPE_CHECKING:
    from pathlib import Path

MATRIX = np.random.default_rng(0).standard_normal((512, 512)).astype(np.float32)


def model(path: Path, *tensors: onnx.TensorProto, uses: tuple[str, ...] = (), **save) -> Path:
    """A graph with these weights, some of which a node uses."""
    shape = ["N", 512]
    values = ["x", *(f"after {name}" for name in uses)]
    nodes = [
        helper.make_node("MatMul", [before, name], [after])
        for before, name, after in zip(values, uses, values[1:], strict=False)
    ]
    nodes.append(helper.make_node("Relu", [values[-1]], ["y"]))
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        list(tensors),
    )
    onnx.save(helper.make_model(graph), path, **save)
    return path


def tensor(name: str, values: np.ndarray) -> onnx.TensorProto:
    return numpy_helper.from_array(values, name)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_it_is_found_in_any_place(place: int, tmp_path: Path):
    others = [tensor("a", np.zeros((512, 256))), tensor("b", np.zeros((256, 512), np.float32))]
    others.insert(place, tensor("buff2fs", MATRIX))
    assert (emap.read(model(tmp_path / "m.onnx", *others)) == MATRIX).all()


def test_of_two_the_one_that_no_node_uses_is_taken(tmp_path: Path):
    used = tensor("used", MATRIX + 1)
    for tensors in ([used, tensor("p", MATRIX)], [tensor("p", MATRIX), used]):
        assert (emap.read(model(tmp_path / "m.onnx", *tensors, uses=("used",))) == MATRIX).all()


def test_the_only_one_is_taken_even_where_a_node_uses_it(tmp_path: Path):
    path = model(tmp_path / "m.onnx", tensor("p", MATRIX), uses=("p",))
    assert (emap.read(path) == MATRIX).all()


def test_values_may_be_numbers_of_float16_or_in_another_file(tmp_path: Path):
    half = MATRIX.astype(np.float16)
    assert (emap.read(model(tmp_path / "a.onnx", tensor("p", half))) == half).all()
    numbers = helper.make_tensor("p", TensorProto.FLOAT, (512, 512), MATRIX.ravel())
    assert not numbers.raw_data
    assert (emap.read(model(tmp_path / "b.onnx", numbers)) == MATRIX).all()
    both = [tensor("other", np.ones((300, 100), np.float32)), tensor("p", MATRIX)]
    outside = model(tmp_path / "c.onnx", *both, save_as_external_data=True, location="weights.bin")
    assert outside.stat().st_size < 10_000
    assert (emap.read(outside) == MATRIX).all()


@pytest.mark.parametrize(
    ("tensors", "uses", "count"),
    [
        ([tensor("a", np.zeros((512, 511), np.float32))], (), 0),
        ([tensor("a", MATRIX), tensor("b", MATRIX)], (), 2),
        ([tensor("a", MATRIX), tensor("b", MATRIX)], ("a", "b"), 0),
    ],
)
def test_none_or_several_are_an_error_that_says_what_to_do(
    tensors: list, uses: tuple, count: int, tmp_path: Path
):
    with pytest.raises(ManifestError, match=f"has {count} weights of 512 × 512.*as it was pub"):
        emap.read(model(tmp_path / "m.onnx", *tensors, uses=uses))


@pytest.mark.parametrize("data", [b"", b"<html>", b"\x3a\xff\xff\xff\xff\x0f" + bytes(9)])
def test_what_is_no_graph_is_an_error_that_names_the_file(data: bytes, tmp_path: Path):
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    with pytest.raises(DamagedError, match=r"m\.onnx: is no ONNX model"):
        emap.read(path)
    with pytest.raises(DamagedError, match=r"gone\.onnx"):
        emap.read(tmp_path / "gone.onnx")


def test_values_that_are_gone_are_an_error_that_names_their_file(tmp_path: Path):
    path = model(
        tmp_path / "m.onnx", tensor("p", MATRIX), save_as_external_data=True, location="w.bin"
    )
    (tmp_path / "w.bin").write_bytes(b"short")
    with pytest.raises(DamagedError, match=r"w\.bin: p cannot be read"):
        emap.read(path)
