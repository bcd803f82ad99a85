"""Engines on ONNX Runtime, on a device of choice."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read by the library when it is loaded

import numpy as np
import onnxruntime as ort

from function.runtime.engine import PROVIDERS, Ports

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

ort.disable_telemetry_events()

VERSION: str = ort.__version__
"""Of the library."""

_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
_OUTSIDE = "session.optimized_model_external_initializers"


class OnnxEngine:
    """One ONNX Runtime session.

    Args:
        path: the .onnx file.
        threads: threads of one inference. One is best when several run at once; see
            `function.runtime.cpus`.
        backends: keys of `PROVIDERS`, the most wanted first. What the library does not have is
            passed over, so `provider` tells what became of them.
        optimise: whether the graph is optimised first; one that was kept is already.
        keep: where to write the optimised graph, and the name of the file beside it for weights.
        ports: how arrays become inputs, and outputs arrays.

    Raises:
        ValueError: the graph has other inputs.
    """

    def __init__(
        self,
        path: Path,
        threads: int = 1,
        backends: Sequence[str] = ("cpu",),
        *,
        optimise: bool = True,
        keep: tuple[Path, str] | None = None,
        ports: Ports | None = None,
    ) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Threads that spin between two inferences would starve the others on shared CPUs.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # Memory planned for one shape is of no use to the next, and is touched on the second run of
        # a shape instead of the first: such a run costs up to twice the time, for no gain later.
        options.enable_mem_pattern = False
        if not optimise:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        if keep:
            graph, weights = keep
            options.optimized_model_filepath = str(graph)
            options.add_session_config_entry(f"{_OUTSIDE}_file_name", weights)
            options.add_session_config_entry(f"{_OUTSIDE}_min_size_in_bytes", "1024")
        available = ort.get_available_providers()
        providers = [PROVIDERS[name] for name in backends if PROVIDERS[name] in available]
        self._session = ort.InferenceSession(str(path), options, providers=providers)
        ports = ports or Ports()
        every = self._session.get_inputs()
        self._constants = {
            each.name: np.array([ports.constants[each.name]], _TYPES[each.type])
            for each in every
            if each.name in ports.constants
        }
        found = tuple(each.name for each in every if each.name not in self._constants)
        if ports.inputs and sorted(ports.inputs) != sorted(found):
            raise ValueError(f"{path.name} has the inputs {found}, not {ports.inputs}")
        self._inputs = ports.inputs or found
        self._first = next(each.shape[0] for each in every if each.name == self._inputs[0])
        self._bare = [len(each.shape) < ports.rank for each in self._session.get_outputs()]

    def run(self, *inputs: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """See `Engine.run`."""
        feed = dict(zip(self._inputs, inputs, strict=True)) | self._constants
        outputs = self._session.run(None, feed)
        return [
            output[None] if bare else output
            for output, bare in zip(outputs, self._bare, strict=True)
        ]

    @property
    def provider(self) -> str:
        """The provider that the session uses, not the one that was asked for."""
        return str(self._session.get_providers()[0])

    @property
    def items(self) -> int | None:
        """See `Engine.items`: what the graph says about its first axis."""
        if any(self._bare):
            return 1
        return self._first if isinstance(self._first, int) else None
