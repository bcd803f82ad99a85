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

    Span = tuple[int, int]

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
            return _Model(data, path).projection()
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise ManifestError(f"{path}: is no graph that can be read: {error}") from error


class _Model:
    """A file, taken apart into spans of bytes.

    Args:
        data: all of it.
        path: where it is.
    """

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self._data, self._path = data, path

    def projection(self) -> NDArray[np.float32]:
        """See `read`."""
        used: set[bytes] = set()
        found: dict[bytes, Span] = {}
        (graph,) = self._all((0, len(self._data)), _GRAPH)
        for number, part in self._fields(graph):
            if number == _NODE:
                used.update(map(self._bytes, self._all(part, _INPUT)))
            elif number == _WEIGHT and self._dims(part) == SHAPE:
                found[b"".join(map(self._bytes, self._all(part, _NAME)))] = part
        if len(found) > 1:
            found = {name: part for name, part in found.items() if name not in used}
        if len(found) != 1:
            raise ManifestError(
                f"{self._path}: has {len(found)} weights of 512 × 512 that no node uses, where"
                " inswapper's projection of identities should be one: take the file as it was"
                " published, as some tools remove such weights"
            )
        return self._values(next(iter(found.values()))).reshape(SHAPE).astype(np.float32)

    def _values(self, tensor: Span) -> NDArray[Any]:
        """The values of a tensor, which may lie in a file beside the graph."""
        types = [self._varint(at)[0] for at, _ in self._all(tensor, _TYPE)]
        kind = _KINDS[types[-1]]
        outside = {
            self._bytes(key): self._bytes(value)
            for pair in self._all(tensor, _OUTSIDE)
            for key, value in [(self._all(pair, 1)[0], self._all(pair, 2)[0])]
        }
        if outside:
            place = self._path.parent / outside[b"location"].decode()
            start = int(outside.get(b"offset", b"0"))
            return np.fromfile(place, kind, SHAPE[0] * SHAPE[1], offset=start)
        parts = [*self._all(tensor, _RAW), *self._all(tensor, _FLOATS)]
        return np.frombuffer(b"".join(map(self._bytes, parts)), kind)

    def _dims(self, tensor: Span) -> tuple[int, ...]:
        dims = []
        for begin, end in self._all(tensor, _DIMS):
            at = begin
            while at < end:
                one, at = self._varint(at)
                dims.append(one)
        return tuple(dims)

    def _bytes(self, span: Span) -> bytes:
        return self._data[span[0] : span[1]]

    def _all(self, message: Span, number: int) -> list[Span]:
        """What a message has under a number."""
        return [span for each, span in self._fields(message) if each == number]

    def _fields(self, message: Span) -> Iterator[tuple[int, Span]]:
        """Numbers and contents of the fields of a message; a number's content is its varint."""
        at, end = message
        while at < end:
            key, begin = self._varint(at)
            kind = key & 7
            if kind == 0:
                _, at = self._varint(begin)
            elif kind == 2:
                size, begin = self._varint(begin)
                at = begin + size
            elif kind in {1, 5}:
                at = begin + (8 if kind == 1 else 4)
            else:
                raise ValueError("it is no protobuf message")
            yield key >> 3, (begin, at)

    def _varint(self, at: int) -> tuple[int, int]:
        """A number of 7 bits in each byte, the lowest first, and where it ends."""
        value = shift = 0
        while True:
            byte = self._data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7
