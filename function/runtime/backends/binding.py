"""Running a session on arrays that lie on its device, in the same place for each batch size.

Inputs go through host memory that the device can read by itself (pinned, where the library for that
is there), as much as the largest needs, into arrays on the device that are made for each shape and
kept for those that were used last. Outputs come back as new arrays. What belongs together on the
device is one graph (see `function.weights.cutout`); arrays are not handed from one to the next.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime as ort

from function.runtime.out_of_memory import is_out_of_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

_SHRINK = "memory.enable_memory_arena_shrinkage"
_KEPT = 16
"""For how many shapes arrays are kept: a model has about four batch sizes, detectors any shape."""


_Shapes = tuple[tuple[int, ...], ...]


class Binding:
    """Runs a session, one batch at a time.

    Args:
        session: the session.
        kind: ONNX Runtime's name for its device: "cuda"; "cpu" does the same on the host.
        device: the number of the device.
        graphs: whether the session records CUDA graphs. Outputs then stay in their arrays too, no
            arrays are given up, and the arena is never shrunk: a graph that is replayed uses what
            it was recorded with. All runs are then made by one thread, as ONNX Runtime asks.
        pinned: makes host memory for a shape and a type.
    """

    def __init__(
        self,
        session: Any,
        kind: str,
        device: int,
        *,
        graphs: bool = False,
        pinned: Callable[..., NDArray[Any]] = np.empty,
    ) -> None:
        self._session, self._device, self._graphs = session, (kind, device), graphs
        self._staging = _Staging(pinned)
        self._lock = threading.Lock()
        self._sets: OrderedDict[_Shapes, _Arrays] = OrderedDict()
        self._short = False
        self._thread = ThreadPoolExecutor(1, "cuda-graphs") if graphs else None

    def run(self, feed: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """The outputs for some inputs, of the types that the graph has."""
        if self._thread:
            return self._thread.submit(self._run, feed).result()
        return self._run(feed)

    def _run(self, feed: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        key = tuple(each.shape for each in feed.values())
        with self._lock:
            try:
                return self._first(key, feed) if key not in self._sets else self._again(key, feed)
            except Exception as error:
                self._short = self._short or is_out_of_memory(error)
                raise

    def _first(self, key: _Shapes, feed: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """A run of shapes that have no arrays yet; it records nothing."""
        if len(self._sets) >= _KEPT and not self._graphs:
            self._sets.popitem(last=False)
        arrays = _Arrays(self._session, self._device, feed, self._staging)
        found = arrays.run(feed, self._options("-1"))
        arrays.graph = str(len(self._sets) + 1)  # ONNX Runtime keeps 0 for itself
        if self._graphs:
            arrays.fix_outputs()
        self._sets[key] = arrays
        return found

    def _again(self, key: _Shapes, feed: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        self._sets.move_to_end(key)
        arrays = self._sets[key]
        return arrays.run(feed, self._options(arrays.graph))

    def _options(self, graph: str) -> ort.RunOptions:
        """How one run is done; after memory ran out, the arena gives back what it does not use."""
        options = ort.RunOptions()
        if self._graphs:
            options.add_run_config_entry("gpu_graph_id", graph)
        elif self._short:
            kind, device = self._device
            name = "gpu" if kind == "cuda" else kind
            options.add_run_config_entry(_SHRINK, f"{name}:{device}")
            self._short = False
        return options


class _Staging:
    """Pinned memory for each input, as much as the largest has needed."""

    def __init__(self, pinned: Callable[..., NDArray[Any]]) -> None:
        self._pinned = pinned
        self._room: dict[str, NDArray[np.uint8]] = {}

    def filled(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """A copy of an input, until the next of that name."""
        room = self._room.get(name)
        if room is None or room.nbytes < array.nbytes:
            room = self._room[name] = self._pinned((array.nbytes,), np.uint8)
        view = room[: array.nbytes].view(array.dtype).reshape(array.shape)
        np.copyto(view, array)
        return view


class _Arrays:
    """The arrays on the device for one batch size."""

    graph = ""
    """The number of the graph that is recorded with them."""

    def __init__(
        self,
        session: Any,
        device: tuple[str, int],
        feed: Mapping[str, NDArray[Any]],
        staging: _Staging,
    ) -> None:
        self._session, self._binding = session, session.io_binding()
        self._staging = staging
        self._inputs = {
            name: ort.OrtValue.ortvalue_from_shape_and_type(each.shape, each.dtype, *device)
            for name, each in feed.items()
        }
        for name, value in self._inputs.items():
            self._binding.bind_ortvalue_input(name, value)
        for output in session.get_outputs():
            self._binding.bind_output(output.name, *device)

    def run(self, feed: Mapping[str, NDArray[Any]], options: ort.RunOptions) -> list[NDArray[Any]]:
        for name, array in feed.items():
            self._inputs[name].update_inplace(self._staging.filled(name, array))
        self._binding.synchronize_inputs()
        self._session.run_with_iobinding(self._binding, options)
        self._binding.synchronize_outputs()
        return [np.array(each) for each in self._binding.copy_outputs_to_cpu()]

    def fix_outputs(self) -> None:
        """Keep the outputs where the last run has put them."""
        names = [output.name for output in self._session.get_outputs()]
        for name, value in zip(names, self._binding.get_outputs(), strict=True):
            self._binding.bind_ortvalue_output(name, value)
