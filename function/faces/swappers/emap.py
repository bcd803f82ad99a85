"""The matrix by which inswapper's graph expects an identity to be projected.

It lies among the weights of the .onnx file, where no node uses it, and is found there by its shape:
tools write weights in any order. Only the headers of the file are read, and the matrix itself; no
more of protobuf is needed for that than what is here.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

import numpy as np

from warmup.failures import ManifestError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    Bytes = memoryview

SHAPE = (512, 512)

_GRAPH = 7  # of a model
_NODE, _WEIGHT = 1, 5  # of a graph
_INPUT = 1  # of a node
_DIMS, _TYPE, _FLOATS, _NAME, _RAW, _OUTSIDE = 1, 2, 4, 8, 9, 13  # of a weight
_KINDS: dict[int, np.dtype[Any]] = {1: np.dtype("<f4"), 10: np.dtype("<f2")}


def read(path: Path) -> NDArray[np.float32]:
    """The projection, float32 [512, 512]: row vectors are multiplied from the left.

    Args:
        path: the graph of an inswapper.

    Raises:
        ManifestError: the file has no such matrix, or several.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            view = memoryview(data)
            try:
                return _find(view, path)
            finally:
                view.release()
    except (OSError, ValueError, IndexError) as error:
        raise ManifestError(f"{path}: is no graph that can be read: {error}") from error


def _find(model: Bytes, path: Path) -> NDArray[np.float32]:
    used: set[bytes] = set()
    found: dict[bytes, NDArray[np.float32]] = {}
    for number, graph in _fields(model):
        for kind, part in _fields(graph) if number == _GRAPH else ():
            if kind == _NODE:
                used |= {bytes(value) for each, value in _fields(part) if each == _INPUT}
            elif kind == _WEIGHT and _dims(part) == SHAPE:
                name = b"".join(bytes(value) for each, value in _fields(part) if each == _NAME)
                found[name] = _values(part, path)
    if len(found) > 1:
        found = {name: values for name, values in found.items() if name not in used}
    if len(found) != 1:
        raise ManifestError(
            f"{path}: has {len(found)} weights of 512 × 512 that no node uses, where inswapper's"
            " projection of identities should be one: take the file as it was published, as some"
            " tools remove such weights"
        )
    return next(iter(found.values()))


def _dims(tensor: Bytes) -> tuple[int, ...]:
    dims: list[int] = []
    for number, value in _fields(tensor):
        if number == _DIMS:
            at = 0
            while at < len(value):
                one, at = _varint(value, at)
                dims.append(one)
    return tuple(dims)


def _values(tensor: Bytes, path: Path) -> NDArray[np.float32]:
    """The values of a tensor of `SHAPE`, which may lie in a file beside the graph."""
    kind: np.dtype[Any] = np.dtype("<f4")
    raw = b""
    outside: dict[bytes, bytes] = {}
    for number, value in _fields(tensor):
        if number == _TYPE:
            kind = _KINDS[_varint(value, 0)[0]]
        elif number in {_FLOATS, _RAW}:
            raw += bytes(value)
        elif number == _OUTSIDE:
            pair = dict(_fields(value))
            outside[bytes(pair[1])] = bytes(pair[2])
    if outside:
        place = path.parent / outside[b"location"].decode()
        start = int(outside.get(b"offset", b"0"))
        return np.fromfile(place, kind, SHAPE[0] * SHAPE[1], offset=start).reshape(SHAPE)
    return np.frombuffer(raw, kind).reshape(SHAPE).astype(np.float32)


def _fields(message: Bytes) -> Iterator[tuple[int, Bytes]]:
    """Numbers and contents of the fields of a message; a number's content is its varint."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        begin = at
        if kind == 0:
            _, at = _varint(message, at)
        elif kind == 2:
            size, begin = _varint(message, at)
            at = begin + size
        elif kind in {1, 5}:
            at += 8 if kind == 1 else 4
        else:
            raise ValueError("it is no protobuf message")
        yield number, message[begin:at]


def _varint(message: Bytes, at: int) -> tuple[int, int]:
    """A number of 7 bits in each byte, the lowest first, and where it ends."""
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
