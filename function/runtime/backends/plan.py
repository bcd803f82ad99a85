"""Running a plan: fixed batch sizes, buffers that are made once, one stream.

What executes a plan is behind `Executor`, memory behind `DeviceMemory`; the rest is here, and the
same for every library.
"""

from __future__ import annotations

import logging
import math
import threading
import weakref
from bisect import bisect_left
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from function.runtime.backends.dtypes import inward, plain
from function.runtime.engine import PROVIDERS, Ports

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from function.runtime.gpu.device import DeviceMemory


log = logging.getLogger("ember.plan")


@dataclass(frozen=True, slots=True)
class PlanTensor:
    """An input or an output of a plan: its name and the type of its elements."""

    name: str
    dtype: np.dtype[Any]


class Executor(Protocol):
    """A plan that is loaded."""

    @property
    def inputs(self) -> Sequence[PlanTensor]:
        """Its inputs, in the order of the graph."""
        ...

    @property
    def outputs(self) -> Sequence[PlanTensor]:
        """Its outputs, in the order of the graph."""
        ...

    @property
    def sizes(self) -> Sequence[int]:
        """The batch sizes that it was compiled for, rising."""
        ...

    @property
    def fixed(self) -> bool:
        """Whether the graph itself allows only one size."""
        ...

    def largest(self, size: int) -> Mapping[str, tuple[int, ...]]:
        """The largest shape of every input, for a batch of one of `sizes`."""
        ...

    def shape(
        self, size: int, inputs: Mapping[str, tuple[int, ...]]
    ) -> Mapping[str, tuple[int, ...]]:
        """Set the shapes of all inputs for the next run.

        Args:
            size: one of `sizes`.
            inputs: their shapes, the first axis being `size`.

        Returns:
            The shape of every output.

        Raises:
            ValueError: the plan was not compiled for these.
        """
        ...

    def enqueue(self, size: int, addresses: Mapping[str, int], stream: int) -> None:
        """Have a stream execute it.

        Args:
            size: one of `sizes`.
            addresses: where each tensor lies on the device.
            stream: which.
        """
        ...

    def keep(self) -> None:
        """Keep what was compiled on the way, for the next process that runs this plan here."""
        ...

    def close(self) -> None:
        """Give back everything that it holds."""
        ...


class PlanEngine:
    """One plan on one device.

    After the constructor it allocates nothing but its results. One batch runs at a time, whichever
    thread brings it.

    Args:
        executor: the plan; closed with the engine.
        memory: of its own, on the device of the plan; closed with the engine, after the plan.
        ports: how arrays become inputs, and outputs arrays.

    Raises:
        ValueError: the plan has other inputs than the family. Both are closed then, as after
            whatever else is raised.
    """

    def __init__(
        self, executor: Executor, memory: DeviceMemory, ports: Ports | None = None
    ) -> None:
        self._executor, self._memory, self._ports = executor, memory, ports or Ports()
        self._lock = threading.Lock()
        self._ran: set[tuple[tuple[int, ...], ...]] = set()
        self.close = weakref.finalize(self, _close, executor, memory)
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        """Make all buffers, and upload what is the same in every run."""
        executor, memory, ports = self._executor, self._memory, self._ports
        self._types = types = {each.name: each.dtype for each in executor.inputs}
        constants = [name for name in types if name in ports.constants]
        found = tuple(name for name in types if name not in constants)
        if ports.inputs and sorted(ports.inputs) != sorted(found):
            raise ValueError(f"the plan has the inputs {found}, not {ports.inputs}")
        self._inputs = ports.inputs or found
        with memory.current():
            room = self._room()
            self._addresses = {name: memory.allocate(size) for name, size in room.items()}
            self._pinned = {name: memory.pinned(size) for name, size in room.items()}
            largest = executor.largest(executor.sizes[-1])
            self._constants = {name: largest[name] for name in constants}
            for name, shape in self._constants.items():
                view = self._view(name, shape, types[name])
                view.array[...] = ports.constants[name]
                memory.upload(self._addresses[name], view.raw)
            memory.wait()

    def _room(self) -> dict[str, int]:
        """How many bytes each tensor can take."""
        executor, room = self._executor, dict[str, int]()
        for size in executor.sizes:
            largest = executor.largest(size)
            shapes = {**largest, **executor.shape(size, largest)}
            for each in (*executor.inputs, *executor.outputs):
                room[each.name] = max(room.get(each.name, 0), _bytes(shapes[each.name], each.dtype))
        return room

    @property
    def provider(self) -> str:
        """What executes the model."""
        return PROVIDERS["tensorrt"]

    @property
    def items(self) -> int | None:
        """How many items it takes at once; None for any number."""
        return self._executor.sizes[0] if self._executor.fixed else None

    def run(self, *inputs: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """Run the model once.

        A batch of a size that the plan has not is filled up to the next, or run in parts.
        """
        largest, rows = self._executor.sizes[-1], len(inputs[0])
        parts = [
            self._run([each[start : start + largest] for each in inputs])
            for start in range(0, rows, largest)
        ]
        if len(parts) == 1:
            return parts[0]
        return [np.concatenate(each) for each in zip(*parts, strict=True)]

    def _run(self, inputs: Sequence[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
        rows, sizes = len(inputs[0]), self._executor.sizes
        size = sizes[bisect_left(sizes, rows)]
        memory, executor = self._memory, self._executor
        arrays = dict(zip(self._inputs, inputs, strict=True))
        shapes = {name: (size, *each.shape[1:]) for name, each in arrays.items()}
        with self._lock, memory.current():
            try:
                views = self._executed(size, arrays, shapes)
                memory.wait()
            except BaseException:
                with suppress(Exception):  # what is on its way must not meet the next run
                    memory.wait()
                raise
            if (ran := tuple(shapes.values())) not in self._ran:
                self._ran.add(ran)
                executor.keep()
            return [self._taken(view.array, rows) for view in views]

    def _executed(
        self,
        size: int,
        arrays: Mapping[str, NDArray[np.float32]],
        shapes: Mapping[str, tuple[int, ...]],
    ) -> list[_View]:
        """The outputs of a run, as they are when the stream has come to its end."""
        memory, executor = self._memory, self._executor
        found = executor.shape(size, {**shapes, **self._constants})
        for name, array in arrays.items():
            view = self._view(name, shapes[name], self._types[name])
            _fill(view.array, array)
            memory.upload(self._addresses[name], view.raw)
        executor.enqueue(size, self._addresses, memory.stream)
        views = {
            each.name: self._view(each.name, found[each.name], each.dtype)
            for each in executor.outputs
        }
        for name, view in views.items():
            memory.download(view.raw, self._addresses[name])
        return list(views.values())

    def _view(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> _View:
        """A tensor of that shape in pinned memory."""
        raw = self._pinned[name][: _bytes(shape, dtype)]
        return _View(raw.view(dtype).reshape(shape), raw)

    def _taken(self, array: NDArray[Any], rows: int) -> NDArray[np.float32]:
        """A copy of an output that is the caller's own."""
        if array.ndim < self._ports.rank:
            array = array[None]
        return plain(array[:rows], copy=True)


@dataclass(frozen=True, slots=True)
class _View:
    """A tensor in pinned memory: as an array, and as bytes."""

    array: NDArray[Any]
    raw: NDArray[np.uint8]


def _fill(target: NDArray[Any], rows: NDArray[np.float32]) -> None:
    """Put rows at the beginning, in the target's type, and zeros after them."""
    target[: len(rows)] = inward(rows, target.dtype) if target.dtype.kind in "iu" else rows
    target[len(rows) :] = 0


def _bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return math.prod(shape) * dtype.itemsize


def _close(executor: Executor, memory: DeviceMemory) -> None:
    """Close both in this order, as a plan that outlives its memory ends the process."""
    for close in (executor.close, memory.close):
        try:
            with ExitStack() as stack:
                with suppress(Exception):  # a GPU that is lost is nobody's; it closes regardless
                    stack.enter_context(memory.current())
                close()
        except Exception:  # of a GPU that is lost nothing can be given back
            log.debug("a plan could not be closed", exc_info=True)
