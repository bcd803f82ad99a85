"""Another graph from one that is there: loaded whole, and written whole or not at all."""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from function.weights.proof import UnprovenError
from warmup.failures import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.runtime.onnxfile import Graph

_MOST = 2**31 - 2**20  # bytes of one message of protocol buffers


def loaded(graph: Graph) -> onnx.ModelProto:
    """A model with all of its weights.

    Raises:
        UnprovenError: it is too large for that.
    """
    if sum(each.size for each in graph.tensors) > _MOST:
        raise UnprovenError(f"{graph.path}: files of more than 2 GB cannot be rewritten")
    return onnx.load(graph.path)


@contextmanager
def changed(model: onnx.ModelProto, graph: Graph, out: Path, what: str) -> Iterator[Path]:
    """Write a model beside its place; it gets its name when the body has found nothing wrong.

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
