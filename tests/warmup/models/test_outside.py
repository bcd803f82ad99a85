"""Models that are not whole in themselves are refused: no digest covers the rest of them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.warmup.conftest import content_of, file_of, model_of
from warmup.failures import OutsideError
from warmup.models.outside import elsewhere
from warmup.models.prefetch import prefetch

ARRAY = np.arange(1024, dtype=np.float32)


def outside(name="weights.bin"):
    """A tensor whose values are in another file."""
    tensor = numpy_helper.from_array(ARRAY, "weights")
    onnx.external_data_helper.set_external_data(tensor, location=name, offset=0, length=4096)
    tensor.ClearField("raw_data")
    return tensor


def model(*nodes, initializer=(), functions=(), **more):
    floats = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1024])
    graph = helper.make_graph(nodes, "g", [], [floats], initializer=initializer)
    made = helper.make_model(graph, functions=functions, **more)
    return made.SerializeToString()


def plain():
    return helper.make_node("Identity", ["weights"], ["y"])


def constant(tensor):
    return helper.make_node("Constant", [], ["y"], value=tensor)


def branch(tensor):
    floats = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1024])
    graph = helper.make_graph([constant(tensor)], "b", [], [floats])
    return helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=graph)


def function(tensor):
    opset = [helper.make_opsetid("", 17)]
    return helper.make_function("own", "F", [], ["y"], [constant(tensor)], opset)


SPLIT = {
    "an initialiser": lambda: model(plain(), initializer=[outside()]),
    "an attribute": lambda: model(constant(outside())),
    "a branch": lambda: model(branch(outside())),
    "a function": lambda: model(helper.make_node("F", [], ["y"], domain="own"),
                                functions=[function(outside())]),
    "one of many": lambda: model(plain(), initializer=[numpy_helper.from_array(ARRAY, "a"),
                                                       outside()]),
    "a long name": lambda: model(plain(), initializer=[outside("folder/" + "w" * 90 + ".bin")]),
}  # fmt: skip
WHOLE = {
    "a graph": lambda: model(plain(), initializer=[numpy_helper.from_array(ARRAY, "weights")]),
    "a note": lambda: noted(location="weights.bin"),
    "no model": lambda: content_of(10_000, 3),
    "a word": lambda: b"x" * 50 + b"location\x12\x03abc",
    "nothing": lambda: b"",
}


def noted(**notes):
    made = onnx.load_from_string(WHOLE["a graph"]())
    helper.set_model_props(made, notes)
    return made.SerializeToString()


@pytest.mark.parametrize("kind", SPLIT)
def test_another_file_is_found_wherever_in_the_graph_it_is_named(kind, tmp_path):
    (tmp_path / "a.onnx").write_bytes(SPLIT[kind]())
    assert elsewhere(tmp_path / "a.onnx").endswith(".bin")


@pytest.mark.parametrize("kind", WHOLE)
def test_what_is_whole_has_none(kind, tmp_path):
    (tmp_path / "a.onnx").write_bytes(WHOLE[kind]())
    assert elsewhere(tmp_path / "a.onnx") is None


def test_as_the_package_writes_it(tmp_path):
    made = onnx.load_from_string(WHOLE["a graph"]())
    onnx.save(made, tmp_path / "a.onnx", save_as_external_data=True, size_threshold=0, location="w")
    assert elsewhere(tmp_path / "a.onnx") == "w"
    onnx.save(onnx.load(tmp_path / "a.onnx"), tmp_path / "whole-a.onnx")  # what the error says
    assert elsewhere(tmp_path / "whole-a.onnx") is None


@pytest.mark.parametrize("own", [True, False], ids=["in its place", "fetched"])
def test_a_manifest_with_such_a_file_is_refused_each_time(own, site, settings, tmp_path):
    content = SPLIT["an initialiser"]()
    file = file_of(content, site.put(content), "identity")
    if own:
        (tmp_path / "own.onnx").write_bytes(content)
        (tmp_path / "weights.bin").write_bytes(ARRAY.tobytes())
        file = replace(file, path=tmp_path / "own.onnx")
    for _ in range(2):
        with pytest.raises(OutsideError) as raised:
            prefetch([model_of(file)], settings)
        assert "identity" in str(raised.value)
        assert "weights.bin" in str(raised.value)
        assert "onnx.save" in str(raised.value)
        assert raised.value.final


def test_what_was_proven_before_this_was_looked_at_is_looked_at_again(settings, store, tmp_path):
    content = SPLIT["an initialiser"]()
    (tmp_path / "own.onnx").write_bytes(content)
    file = replace(file_of(content, "file:///own.onnx", "m"), path=tmp_path / "own.onnx")
    found = (tmp_path / "own.onnx").stat()
    old = {"size": found.st_size, "mtime_ns": found.st_mtime_ns, "inode": found.st_ino}
    (store.root / "verified").mkdir(parents=True)
    (store.root / "verified" / file.sha256).write_text(json.dumps(old))
    with pytest.raises(OutsideError):
        prefetch([model_of(file)], settings)
