"""Engines on ONNX Runtime, on a device of choice."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read by the library when it is loaded

import numpy as np
import onnxruntime as ort

from function.runtime import installed
from function.runtime.backends.binding import Binding
from function.runtime.backends.dtypes import inward, of_onnx, outward
from function.runtime.engine import PROVIDERS, NotOnDeviceError, Ports
from function.runtime.gpu.device import pinned, prepare

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from function.runtime.backends.cuda import Cuda

ort.disable_telemetry_events()

VERSION: str = ort.__version__
"""Of the library."""

_OUTSIDE = "session.optimized_model_external_initializers"


class OnnxEngine:
    """One ONNX Runtime session.

    Inputs and outputs are float32 outside, whatever types the graph has.

    Args:
        path: the .onnx file.
        threads: threads of one inference. One is best when several run at once; see
            `function.runtime.cpus`.
        cuda: the GPU to run on; None for the CPU.
        optimise: whether the graph is optimised first; one that was kept is already.
        keep: where to write the optimised graph, and the name of the file next to it for weights.
        ports: how arrays become inputs, and outputs arrays.

    Raises:
        ValueError: the graph has other inputs, or inputs of a type without arrays.
        NotOnDeviceError: the session does not run on the GPU.
    """

    def __init__(
        self,
        path: Path,
        threads: int = 1,
        *,
        cuda: Cuda | None = None,
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
        # A CPU without VNNI adds 8-bit products in pairs, which overflow at 16 bits; this way it
        # gives what others and GPUs give. Graphs of floats are not concerned.
        options.add_session_config_entry("session.x64quantprecision", "1")
        if not optimise:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        if keep:
            graph, weights = keep
            options.optimized_model_filepath = str(graph)
            options.add_session_config_entry(f"{_OUTSIDE}_file_name", weights)
            options.add_session_config_entry(f"{_OUTSIDE}_min_size_in_bytes", "1024")
        self._session = _session(path, options, cuda)
        self._provider = str(self._session.get_providers()[0])  # each request asks for it
        ports = ports or Ports()
        types = {
            each.name: of_onnx(each.type, f"the input {each.name} of {path.name}")
            for each in self._session.get_inputs()
        }
        self._constants = {
            name: np.array([ports.constants[name]], types[name])
            for name in types
            if name in ports.constants
        }
        found = tuple(name for name in types if name not in self._constants)
        if ports.inputs and sorted(ports.inputs) != sorted(found):
            raise ValueError(f"{path.name} has the inputs {found}, not {ports.inputs}")
        self._types = {name: types[name] for name in ports.inputs or found}
        self._bare = [len(each.shape) < ports.rank for each in self._session.get_outputs()]
        self._binding = cuda and Binding(
            self._session,
            "cuda",
            cuda.device,
            graphs=cuda.graphs,
            pinned=partial(pinned, device=cuda.device),
        )

    def run(self, *inputs: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """Run the model once."""
        feed = self.feed(*inputs)
        found = self._binding.run(feed) if self._binding else self._session.run(None, feed)
        return [
            output[None] if bare else output
            for output, bare in zip(outward(found), self._bare, strict=True)
        ]

    def feed(self, *inputs: NDArray[np.float32]) -> dict[str, NDArray[np.generic]]:
        """What the graph gets for these inputs, by name."""
        wanted = zip(self._types.items(), inputs, strict=True)
        return {name: inward(array, dtype) for (name, dtype), array in wanted} | self._constants

    @property
    def provider(self) -> str:
        """The provider that the session uses, not the one that was asked for."""
        return self._provider

    @property
    def items(self) -> int | None:
        """How many items the graph takes at once, by its first axis; None for any number."""
        if any(self._bare):
            return 1
        name = next(iter(self._types))
        first = next(each.shape[0] for each in self._session.get_inputs() if each.name == name)
        return first if isinstance(first, int) else None


def _session(path: Path, options: ort.SessionOptions, cuda: Cuda | None) -> ort.InferenceSession:
    """A session on the GPU or on the CPU, and on nothing else.

    Where ONNX Runtime cannot use a GPU it says nothing and takes the CPU: what counts is what the
    session has, not what the library offers.
    """
    wanted = PROVIDERS["cuda" if cuda else "cpu"]
    if wanted not in ort.get_available_providers():
        raise NotOnDeviceError(
            f"{path.name} does not run on {wanted}: this ONNX Runtime ({VERSION}) has been built"
            " without it; onnxruntime-gpu has it"
        )
    providers: list[str | tuple[str, dict[str, str]]] = [wanted]
    if cuda:
        installed.preload()
        prepare(cuda.device)
        providers = [(wanted, cuda.options())]
        if cuda.alone:
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        else:
            providers.append(PROVIDERS["cpu"])  # for the few operations that work on shapes
    session = ort.InferenceSession(str(path), options, providers=providers)
    if (found := session.get_providers()[0]) != wanted:
        raise NotOnDeviceError(
            f"{path.name} runs on {found}, not on {wanted}: the driver, or a library of CUDA or"
            " cuDNN, cannot be loaded; docs/gpu.md names them"
        )
    return session
