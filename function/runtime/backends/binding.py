"""Running a session on arrays that lie on its device, in the same place for each batch size.

Inputs go through host memory that the device can read by itself (pinned, where the library for that
is there), into arrays on the device that are made once for each shape. Outputs come back as new
arrays. Results are not handed from one model to the next on the device: between any two of ours are
a warp, a crop or a decision on the CPU, so there is nothing to hand over.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime as ort

from function.runtime.out_of_memory import is_out_of_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

_SHRINK = "memory.enable_memory_arena_shrinkage"


class Binding:
    """Runs a session, one batch at a time.

    Args:
        session: the session.
        kind: ONNX Runtime's name for its device: "cuda"; "cpu" does the same on the host.
        device: the number of the device.
        graphs: whether the session records CUDA graphs. Outputs then stay in their arrays too, and
            the arena is never shrunk: a graph that is replayed uses what it was recorded with.
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
        self._pinned = pinned
        self._lock = threading.Lock()
        self._sets: dict[tuple[tuple[int, ...], ...], _Arrays] = {}
        self._short = False

    def run(self, feed: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """The outputs for some inputs, of the types that the graph has."""
        key = tuple(each.shape for each in feed.values())
        with self._lock:
            arrays = self._sets.get(key)
            try:
                if arrays is None:
                    arrays = _Arrays(self._session, self._device, feed, self._pinned)
                    found = arrays.run(feed, self._options("-1"))
                    if self._graphs:
                        arrays.fix_outputs()
                    self._sets[key] = arrays
                    return found
                number = list(self._sets).index(key)
                return arrays.run(feed, self._options(str(number)))
            except Exception as error:
                self._short = self._short or is_out_of_memory(error)
                raise

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


class _Arrays:
    """The arrays for one batch size."""

    def __init__(
        self,
        session: Any,
        device: tuple[str, int],
        feed: Mapping[str, NDArray[Any]],
        pinned: Callable[..., NDArray[Any]],
    ) -> None:
        self._session, self._binding = session, session.io_binding()
        self._staging = {name: pinned(each.shape, each.dtype) for name, each in feed.items()}
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
            np.copyto(self._staging[name], array)
            self._inputs[name].update_inplace(self._staging[name])
        self._binding.synchronize_inputs()
        self._session.run_with_iobinding(self._binding, options)
        self._binding.synchronize_outputs()
        return [np.array(each) for each in self._binding.copy_outputs_to_cpu()]

    def fix_outputs(self) -> None:
        """Keep the outputs where the last run has put them."""
        names = [output.name for output in self._session.get_outputs()]
        for name, value in zip(names, self._binding.get_outputs(), strict=True):
            self._binding.bind_ortvalue_output(name, value)
