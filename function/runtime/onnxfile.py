"""What an ONNX file says about itself, without its weights: it is mapped, and they are skipped.

ONNX is protocol buffers, in which messages have the length of what is inside; the numbers of fields
are those of `onnx.proto`. The package `onnx` would read all of the file into memory, and serving
does without it.
"""

from __future__ import annotations

import mmap
from collections import Counter
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from function.runtime.protobuf import MalformedMessageError, MessageReader, as_span, last_number
from warmup.failures import DamagedError
from warmup.models.file import HEAD, looks_like

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from function.runtime.protobuf import Span

_KINDS = {
    1: ("float32", 4),
    2: ("uint8", 1),
    3: ("int8", 1),
    4: ("uint16", 2),
    5: ("int16", 2),
    6: ("int32", 4),
    7: ("int64", 8),
    9: ("bool", 1),
    10: ("float16", 2),
    11: ("float64", 8),
    16: ("bfloat16", 2),
}
"""Names of the types of elements, and their bytes."""


@dataclass(frozen=True, slots=True)
class GraphValue:
    """An input or an output.

    Attributes:
        name: its name.
        kind: the type of its elements, "float32" or the like.
        dims: numbers, or names for what is free; "?" for one without a name.
    """

    name: str
    kind: str
    dims: tuple[int | str, ...]

    @property
    def item(self) -> tuple[int | str, ...]:
        """The shape without the first axis, which is that of items."""
        return self.dims[1:]


@dataclass(frozen=True, slots=True)
class GraphTensor:
    """One constant array of the graph.

    Attributes:
        name: its name.
        kind: the type of its elements.
        dims: its shape.
        size: its bytes.
        outside: the name of the file next to the graph that has its values; empty for the graph.
        begin: where they begin in that file; None where they are not written as they are in memory.
    """

    name: str
    kind: str
    dims: tuple[int, ...]
    size: int
    outside: str = ""
    begin: int | None = None


@dataclass(frozen=True, slots=True)
class Graph:
    """One file.

    Attributes:
        path: the file.
        size: its bytes.
        opset: the version of the standard operators.
        producer: what made it.
        metadata: what its maker has noted in it.
        inputs: without those that the file itself has values for.
        outputs: in their order.
        tensors: the initialisers, in their order.
        operators: how many nodes of each kind.
        used: names of what nodes take.
    """

    path: Path
    size: int
    opset: int
    producer: str
    metadata: dict[str, str]
    inputs: tuple[GraphValue, ...]
    outputs: tuple[GraphValue, ...]
    tensors: tuple[GraphTensor, ...]
    operators: Counter[str]
    used: frozenset[str]

    @property
    def items(self) -> int | None:
        """How many items it takes at once; None for any number. A single number is no item."""
        found = [each.dims[0] for each in self.inputs if each.item]
        return next((each for each in found if isinstance(each, int)), None)

    @property
    def precision(self) -> str:
        """The type of most of its weights, by bytes; empty without any."""
        sizes: Counter[str] = Counter()
        for each in self.tensors:
            sizes[each.kind] += each.size
        return sizes.most_common(1)[0][0] if sizes else ""


def read(path: Path) -> Graph:
    """Read a .onnx file.

    Raises:
        DamagedError: it cannot be read, or is no ONNX model, or was cut short.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe would be waited for
            raise DamagedError(f"{path}: is no regular file")
        with path.open("rb") as file:
            head = file.read(HEAD)
            if not head:
                raise DamagedError(f"{path}: is no ONNX model; it is empty")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                try:
                    return _model(MessageReader(data), path)
                except (MalformedMessageError, ValueError) as error:
                    what = looks_like(head) or f": {error}"
                    raise DamagedError(f"{path}: is no ONNX model{what}") from None
    except OSError as error:
        raise DamagedError(f"{path}: {error.strerror}") from error


def values(graph: Graph, tensor: GraphTensor) -> NDArray[Any]:
    """The values of one of its tensors.

    Raises:
        DamagedError: they are not there, or written in a way that nobody writes arrays of floats.
    """
    import numpy as np

    path = graph.path.parent / tensor.outside if tensor.outside else graph.path
    try:
        if tensor.begin is None:
            raise DamagedError(f"{path}: {tensor.name} is not written as an array is in memory")
        kind = np.dtype(tensor.kind).newbyteorder("<")
        return np.fromfile(path, kind, prod(tensor.dims), offset=tensor.begin).reshape(tensor.dims)
    except (OSError, ValueError, TypeError) as error:
        raise DamagedError(f"{path}: {tensor.name} cannot be read: {error}") from error


def _model(reader: MessageReader, path: Path) -> Graph:
    model = reader.fields((0, len(reader)))
    if not model[7]:
        raise MalformedMessageError("it has no graph")
    graph = reader.fields(as_span(model[7][-1]))
    if not graph[12]:
        raise MalformedMessageError("its graph has no outputs")
    opsets = [reader.fields(as_span(each)) for each in model[8]]
    notes = [reader.fields(as_span(each)) for each in model[14]]
    nodes = [reader.fields(as_span(each)) for each in graph[1]]
    tensors = tuple(_tensor(reader, as_span(each)) for each in graph[5])
    known = {each.name for each in tensors}
    inputs = [_value(reader, as_span(each)) for each in graph[11]]
    return Graph(
        path=path,
        size=len(reader),
        opset=max((last_number(each[2]) for each in opsets if not reader.text(each[1])), default=0),
        producer=reader.text(model[2]),
        metadata={reader.text(each[1]): reader.text(each[2]) for each in notes},
        inputs=tuple(each for each in inputs if each.name not in known),
        outputs=tuple(_value(reader, as_span(each)) for each in graph[12]),
        tensors=tensors,
        operators=Counter(reader.text(node[4]) for node in nodes),
        used=frozenset(reader.text([each]) for node in nodes for each in node[1]),
    )


def _tensor(reader: MessageReader, message: Span) -> GraphTensor:
    tensor = reader.fields(message)
    dims = tuple(number for each in tensor[1] for number in reader.numbers(each))
    name, width = _kind(last_number(tensor[2]))
    size = prod(dims) * width
    pairs = [reader.fields(as_span(each)) for each in tensor[13]]
    outside = {reader.text(pair[1]): reader.text(pair[2]) for pair in pairs}
    begin: int | None = int(outside.get("offset", "0"))
    if not outside:
        spans = [as_span(each) for each in tensor[9] or (tensor[4] if name == "float32" else [])]
        whole = len(spans) == 1 and spans[0][1] - spans[0][0] == size
        begin = spans[0][0] if whole else None
    return GraphTensor(reader.text(tensor[8]), name, dims, size, outside.get("location", ""), begin)


def _value(reader: MessageReader, message: Span) -> GraphValue:
    value = reader.fields(message)
    kind = 0
    dims: tuple[int | str, ...] = ()
    if value[2]:
        of_any_type = reader.fields(as_span(value[2][-1]))
        if of_any_type[1]:  # a tensor; anything else has no shape
            tensor = reader.fields(as_span(of_any_type[1][-1]))
            kind = last_number(tensor[1])
            for shape in tensor[2]:
                axes = reader.fields(as_span(shape))[1]
                dims = tuple(_dim(reader, as_span(each)) for each in axes)
    return GraphValue(reader.text(value[1]), _kind(kind)[0], dims)


def _dim(reader: MessageReader, message: Span) -> int | str:
    dim = reader.fields(message)
    return last_number(dim[1]) if dim[1] else reader.text(dim[2]) or "?"


def _kind(number: int) -> tuple[str, int]:
    return _KINDS.get(number, (f"type {number}", 1))
