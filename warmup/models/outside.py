"""Whether a model is whole in itself, or its file names others that a runtime would open as well.

ONNX calls that external data. The digest of a manifest covers the file that it names and no other,
so weights in a second file could be changed by anybody who can write it, and nobody would know.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import TYPE_CHECKING

from warmup.failures import OutsideError

if TYPE_CHECKING:
    from warmup.models.file import File

_ENTRY = b"\x0a\x08location\x12"
"""A pair of texts of protocol buffers whose first one is "location"."""
_TENSORS = 0x6A
"""The tag of a pair that belongs to the external data of a tensor (field 13 of `TensorProto`)."""


def check_whole(file: File, path: Path) -> None:
    """See that a copy of a file is all that there is of it.

    Raises:
        OutsideError: it has values in another file.
    """
    if other := elsewhere(path):
        one = Path(file.uri).name or file.name
        raise OutsideError(
            f"{file.name}: {file.source} has values in a second file ({other}), which no digest"
            " covers. Make one file of both, with the package onnx:"
            f' onnx.save(onnx.load("{one}"), "whole-{one}"), and name that in the manifest'
        )


def elsewhere(path: Path) -> str | None:
    """The name of the first other file that an ONNX file has values in; None when it has none.

    What is searched for are bytes, wherever in the graph a tensor may stand: with the initialisers,
    in an attribute, in a branch, in a function. Files of other kinds do not have them.
    """
    with path.open("rb") as file:
        if not path.stat().st_size:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            at = data.find(_ENTRY)
            while at >= 0:
                if _TENSORS in data[max(0, at - 3) : at]:
                    begin = at + len(_ENTRY)
                    return data[begin + 1 : begin + 1 + data[begin]].decode("utf-8", "replace")
                at = data.find(_ENTRY, at + 1)
    return None
