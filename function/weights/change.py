"""Another graph from one that is there: loaded whole, and written whole or not at all."""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
from onnx import helper

from function.weights.proof import UnprovenError
from warmup.failures import DamagedError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.runtime.onnxfile import Graph

SMALL = 4096
"""Bytes of a constant that may be a shape; types and shapes are inferred without larger ones."""

_MOST = 2**31 - 2**20  # bytes of one message of protocol buffers


def loaded(graph: Graph) -> onnx.ModelProto:
    """A model with all of its weights.

    Raises:
        UnprovenError: it is too large for that.
        DamagedError: it cannot be read, or weights of it that lie in another file.
    """
    if sum(each.size for each in graph.tensors) > _MOST:
        raise UnprovenError(f"{graph.path}: files of more than 2 GB cannot be rewritten")
    try:
        return onnx.load(graph.path)
    except Exception as error:
        raise DamagedError(f"{graph.path}: cannot be loaded: {error}") from error


def kinds(model: onnx.ModelProto) -> dict[str, onnx.TypeProto.Tensor]:
    """The types and shapes of all values, as far as they are known; weights are left out of it."""
    graph = model.graph
    bare = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    bare.graph.name = graph.name
    bare.graph.node.extend(graph.node)
    bare.graph.input.extend(graph.input)
    listed = {each.name for each in graph.input}  # as old files list their weights, too
    for each in graph.initializer:
        if each.ByteSize() <= SMALL:
            bare.graph.initializer.append(each)
        elif each.name not in listed:
            value = helper.make_tensor_value_info(each.name, each.data_type, each.dims)
            bare.graph.input.append(value)
    for output in graph.output:
        bare.graph.output.add(
            name=output.name
        ).type.tensor_type.elem_type = output.type.tensor_type.elem_type
    found = onnx.shape_inference.infer_shapes(bare, data_prop=True).graph
    values = (*found.input, *found.value_info, *found.output)
    return {each.name: each.type.tensor_type for each in values}


@contextmanager
def changed(model: onnx.ModelProto, graph: Graph, out: Path, what: str) -> Iterator[Path]:
    """Write a model to a draft; it gets its name when the body has found nothing wrong.

    It notes what it was made from, and keeps what its maker has noted.

    Args:
        model: what to write.
        graph: what it was made from.
        out: its place.
        what: was changed.

    Raises:
        StoreError: it cannot be written.
    """
    with graph.path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    model.metadata_props.add(key="ember.change", value=f"{what}; from sha256 {digest}")
    try:
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
            draft = Path(folder) / out.name
            onnx.save(model, draft)
            yield draft
            draft.replace(out)
    except OSError as error:
        raise StoreError(f"{out} cannot be written: {error.strerror}") from error
