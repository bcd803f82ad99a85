"""Plans on TensorRT, its lean runtime, or TensorRT-RTX."""

from __future__ import annotations

import logging
from traceback import clear_frames
from typing import TYPE_CHECKING, Any

import numpy as np

from function.runtime.backends.kernel_cache import KernelCache
from function.runtime.backends.plan import PlanEngine, PlanTensor
from function.runtime.engine import NotOnDeviceError
from function.runtime.gpu import device
from warmup.failures import WarmupError
from warmup.plans.nvml import visible
from warmup.plans.plan_key import is_newer
from warmup.plans.tensorrt import FULL, RTX, lean_runtime, listening, logger, runner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from function.runtime.engine import Ports
    from function.runtime.gpu.device import DeviceMemory
    from function.runtime.gpu.options import GpuOptions
    from warmup.models.store import Held
    from warmup.plans.nvml import Gpu as GpuFacts
    from warmup.plans.plan_key import PlanKey, Sidecar
    from warmup.plans.stored import Plans
    from warmup.plans.tensorrt import Library

log = logging.getLogger("ember.tensorrt")

_DTYPES = {
    "FLOAT": np.float32,
    "HALF": np.float16,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT32": np.int32,
    "INT64": np.int64,
    "BOOL": np.bool_,
}


class NoPlanError(NotOnDeviceError):
    """No plan was made for what is here; one may come."""

    may_come = True


def open_plan(
    path: Path,
    sidecar: Sidecar,
    library: Library,
    *,
    number: int = 0,
    ports: Ports | None = None,
    kept: Path | None = None,
) -> PlanEngine:
    """Load a plan that was found right, on the GPU of a number.

    Args:
        path: the plan.
        sidecar: what it depends on.
        library: runs it.
        number: of the GPU, as CUDA counts those that this process can see.
        ports: how arrays become inputs, and outputs arrays.
        kept: the file in which TensorRT-RTX keeps the kernels that it compiles.

    Raises:
        NoPlanError: a newer library has built it.
        NotOnDeviceError: there is no driver or no such GPU, or the library refuses the plan.
        UnavailableError: the full TensorRT lacks the lean runtime that a compatible plan needs.
    """
    if is_newer(sidecar.built_by, library.version):
        raise NoPlanError(
            f"the plan was built by TensorRT {sidecar.built_by}, which is newer than"
            f" {library.version} here; build it anew"
        )
    device.check(number)  # before anything of TensorRT exists, which without a driver ends us
    memory = device.CudaMemory(number)
    try:
        with memory.current():
            compatible = "version-compatible" in sidecar.key.flags
            executor = _Plan(path.read_bytes(), library, memory, kept, compatible=compatible)
    except BaseException:
        memory.close()
        raise
    return PlanEngine(executor, memory, ports)


def open_kept(
    gpu: GpuOptions,
    keys_on: Callable[[Library, GpuFacts], Sequence[PlanKey]],
    number: int,
    ports: Ports,
) -> PlanEngine:
    """Load the plan that was made for the GPU of a number.

    It is in the store, as it was fetched at the start; or others have shared it since.

    Args:
        gpu: how GPUs are used.
        keys_on: the keys of the plans that will do, with a library on a GPU, the best first.
        number: of the GPU, as CUDA counts those that this process can see.
        ports: how arrays become inputs, and outputs arrays.

    Raises:
        NoPlanError: there is none.
        NotOnDeviceError: there is no driver or no such GPU, or the library refuses the plan.
        UnavailableError: no library that runs plans is installed.
    """
    device.check(number)
    library = runner(gpu.recipe.flags)
    facts = visible()[number]
    if gpu.plans is None:
        raise NoPlanError("there is no store to have plans in")
    keys = keys_on(library, facts)
    for key in keys:
        if found := gpu.plans.find(key) or _fetched(gpu.plans, key):
            sidecar, held = found
            kept = gpu.plans.kernels(key.digest, facts.uuid)
            try:
                assert held.file.path is not None  # noqa: S101 (what is held lies somewhere)
                return open_plan(
                    held.file.path, sidecar, library, number=number, ports=ports, kept=kept
                )
            finally:
                held.close()  # it is in memory now
    raise NoPlanError(
        f"there is no plan {keys[0].digest} for {facts.name} (compute capability {facts.sm},"
        f" driver {facts.driver}) and {library.name} {library.version}, of the precision"
        f" {gpu.recipe.precision}: `ember engines build` makes it"
    )


def _fetched(plans: Plans, key: PlanKey) -> tuple[Sidecar, Held] | None:
    """The plan from where nodes share plans; None when it cannot be had."""
    try:
        return plans.find(key) if plans.fetch(key) else None
    except WarmupError as error:
        log.warning("a plan cannot be fetched", extra={"plan": key.digest, "reason": str(error)})
        return None


class _Plan:
    """A loaded plan. Each profile has a context; all share one piece of scratch memory.

    When it cannot be loaded, what there is of it goes at once: before its memory, and while its
    device is that of the thread.

    Args:
        content: the plan.
        library: runs it.
        memory: of the device; current.
        kept: the file in which TensorRT-RTX keeps the kernels that it compiles.
        compatible: whether it is version-compatible.
    """

    def __init__(
        self,
        content: bytes,
        library: Library,
        memory: DeviceMemory,
        kept: Path | None,
        *,
        compatible: bool = False,
    ) -> None:
        self._trt, self._library = library.module, library
        self._full: Any = None
        self._runtime: Any = None
        self._engine: Any = None
        self._contexts: dict[int, Any] = {}
        self._kernels = KernelCache(kept)
        try:
            self._load(content, memory, compatible=compatible)
        except BaseException as error:
            clear_frames(error.__traceback__)  # they would keep parts of it
            self.close()
            raise

    def _load(self, content: bytes, memory: DeviceMemory, *, compatible: bool) -> None:
        trt = self._trt
        with listening(trt) as said:
            self._runtime = trt.Runtime(logger(trt))
            if compatible and self._library.name == FULL:
                self._runtime.engine_host_code_allowed = True  # the plan brings some along
                self._full = self._runtime
                self._runtime = self._full.load_runtime(str(lean_runtime()))
            self._engine = self._runtime.deserialize_cuda_engine(content)
        if self._engine is None:
            name, version = self._library.name, self._library.version
            raise NotOnDeviceError(f"{name} {version} refuses the plan: {said.text}")
        count = self._engine.num_io_tensors
        names = [self._engine.get_tensor_name(index) for index in range(count)]
        are_inputs = {
            name: self._engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT for name in names
        }
        self.inputs = [_tensor(self._engine, name) for name in names if are_inputs[name]]
        self.outputs = [_tensor(self._engine, name) for name in names if not are_inputs[name]]
        shapes = [tuple(self._engine.get_tensor_shape(name)) for name in names]
        self.fixed = not any(-1 in shape for shape in shapes)
        self._profiles = self._by_size()
        self.sizes = sorted(self._profiles)
        scratch = max(
            self._engine.get_device_memory_size_for_profile_v2(n) for n in self._numbers()
        )
        address = memory.allocate(scratch)
        for size, number in self._profiles.items():
            with listening(trt) as said:
                self._contexts[size] = self._context()
                if not self._takes(size, number, address, scratch, memory.stream):
                    raise NotOnDeviceError(
                        f"the plan cannot be run in batches of {size}: {said.text}"
                    )
        memory.wait()

    def _takes(self, size: int, number: int, address: int, scratch: int, stream: int) -> bool:
        """Whether the context of a size takes its scratch memory and its profile."""
        context = self._contexts[size]
        if context is None:
            return False
        context.set_device_memory(address, scratch)
        try:
            return bool(context.set_optimization_profile_async(number, stream))
        except RuntimeError as error:  # instead of False; why is what the library has said
            log.debug("TensorRT", extra={"said": str(error)})
            return False

    def largest(self, size: int) -> Mapping[str, tuple[int, ...]]:
        """The largest shape of every input, for a batch of one of `sizes`."""
        number = self._profiles[size]
        return {each.name: self._input_shape(each.name, number) for each in self.inputs}

    def shape(
        self, size: int, inputs: Mapping[str, tuple[int, ...]]
    ) -> Mapping[str, tuple[int, ...]]:
        """Set the shapes of all inputs for the next run; the shape of every output."""
        context = self._contexts[size]
        for name, shape in inputs.items():
            if not context.set_input_shape(name, shape):
                raise ValueError(f"the plan was not compiled for {name} of the shape {shape}")
        return {each.name: tuple(context.get_tensor_shape(each.name)) for each in self.outputs}

    def enqueue(self, size: int, addresses: Mapping[str, int], stream: int) -> None:
        """Have a stream execute it on tensors at these addresses."""
        context = self._contexts[size]
        with listening(self._trt) as said:
            done = all(
                context.set_tensor_address(name, address) for name, address in addresses.items()
            ) and context.execute_async_v3(stream)
        if not done:
            raise RuntimeError(f"the plan cannot be executed: {said.text}")

    def keep(self) -> None:
        """Keep what TensorRT-RTX has compiled."""
        self._kernels.keep()

    def close(self) -> None:
        """Give everything back, in the order in which it may go."""
        self._contexts.clear()
        self._kernels.close()
        self._engine = None
        self._runtime = None
        self._full = None

    def _numbers(self) -> range:
        return range(self._engine.num_optimization_profiles)

    def _by_size(self) -> dict[int, int]:
        """The profile for each batch size."""
        # A constant, like the weight of an enhancer, has no axis for items, and few axes.
        names = [each.name for each in self.inputs]
        name = max(names, key=lambda each: len(self._engine.get_tensor_shape(each)))
        return {self._input_shape(name, number)[0]: number for number in self._numbers()}

    def _input_shape(self, name: str, number: int) -> tuple[int, ...]:
        """The largest shape that an input has in a profile."""
        shape = tuple(self._engine.get_tensor_shape(name))
        if -1 not in shape:
            return shape
        return tuple(self._engine.get_tensor_profile_shape(name, number)[2])

    def _context(self) -> Any:
        """A context without scratch memory of its own; None when the library makes none."""
        none = self._trt.ExecutionContextAllocationStrategy.USER_MANAGED
        if self._library.name != RTX:
            return self._engine.create_execution_context(none)
        config = self._engine.create_runtime_config()
        config.set_execution_context_allocation_strategy(none)
        self._kernels.use(config, self._trt)
        return self._engine.create_execution_context(config)


def _tensor(engine: Any, name: str) -> PlanTensor:
    kind = engine.get_tensor_dtype(name).name
    if kind not in _DTYPES:
        raise NotOnDeviceError(f"the plan's {name} is of the type {kind}, which is not supported")
    return PlanTensor(name, np.dtype(_DTYPES[kind]))
