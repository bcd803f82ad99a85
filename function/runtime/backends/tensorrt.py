"""Plans on TensorRT, its lean runtime, or TensorRT-RTX."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from function.runtime.backends.plan import PlanEngine, PlanTensor
from function.runtime.engine import NotOnDeviceError
from function.runtime.gpu import device
from warmup.failures import WarmupError
from warmup.models.store import replace_file
from warmup.plans.nvml import visible
from warmup.plans.tensorrt import RTX, runner

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
        NotOnDeviceError: there is no driver or no such GPU, or the library refuses the plan.
    """
    if _numbers(sidecar.built_by) > _numbers(library.version):
        raise NotOnDeviceError(
            f"the plan was built by TensorRT {sidecar.built_by}, which is newer than"
            f" {library.version} here; build it anew"
        )
    device.check(number)  # before anything of TensorRT exists, which without a driver ends us
    memory = device.CudaMemory(number)
    try:
        with memory.current():
            executor = _Plan(path.read_bytes(), library, memory, kept)
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
            kept = gpu.plans.store.root / "plans" / f"kernels-{key.digest}"
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

    Args:
        content: the plan.
        library: runs it.
        memory: of the device; current.
        kept: the file in which TensorRT-RTX keeps the kernels that it compiles.
    """

    def __init__(
        self, content: bytes, library: Library, memory: DeviceMemory, kept: Path | None
    ) -> None:
        trt = library.module
        self._logger = _logger(trt)
        self._runtime = trt.Runtime(self._logger)
        self._engine = engine = self._runtime.deserialize_cuda_engine(content)
        if engine is None:
            said = self._logger.last or "it does not say why"
            raise NotOnDeviceError(f"{library.name} {library.version} refuses the plan: {said}")
        self._cache: Any = None
        self._kept = kept
        names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
        are_inputs = {
            name: engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT for name in names
        }
        self.inputs = [_tensor(engine, name) for name in names if are_inputs[name]]
        self.outputs = [_tensor(engine, name) for name in names if not are_inputs[name]]
        self.fixed = not any(-1 in tuple(engine.get_tensor_shape(name)) for name in names)
        self._profiles = self._by_size()
        self.sizes = sorted(self._profiles)
        self._contexts: dict[int, Any] = {}
        scratch = max(engine.get_device_memory_size_for_profile_v2(n) for n in self._numbers())
        address = memory.allocate(scratch)
        for size, number in self._profiles.items():
            context = self._context(trt, library)
            context.set_device_memory(address, scratch)
            if not context.set_optimization_profile_async(number, memory.stream):
                raise NotOnDeviceError(f"the plan cannot be run in batches of {size}")
            self._contexts[size] = context
        memory.wait()

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
        for name, address in addresses.items():
            context.set_tensor_address(name, address)
        if not context.execute_async_v3(stream):
            raise RuntimeError(f"the plan cannot be executed: {self._logger.last}")

    def close(self) -> None:
        """Give everything back; what TensorRT-RTX has compiled is kept."""
        if self._cache is not None and self._kept is not None:
            with suppress(OSError):
                self._kept.parent.mkdir(parents=True, exist_ok=True)
                replace_file(self._kept, bytes(self._cache.serialize()))
        self._contexts.clear()
        self._cache = self._engine = self._runtime = None  # in the order in which they may go

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

    def _context(self, trt: Any, library: Library) -> Any:
        """A context without scratch memory of its own."""
        none = trt.ExecutionContextAllocationStrategy.USER_MANAGED
        if library.name != RTX:
            return self._engine.create_execution_context(none)
        config = self._engine.create_runtime_config()
        config.set_execution_context_allocation_strategy(none)
        if self._cache is None:
            self._cache = config.create_runtime_cache()
            if self._kept is not None:
                with suppress(OSError):
                    self._cache.deserialize(self._kept.read_bytes())
        config.set_runtime_cache(self._cache)
        return self._engine.create_execution_context(config)


def _tensor(engine: Any, name: str) -> PlanTensor:
    kind = engine.get_tensor_dtype(name).name
    if kind not in _DTYPES:
        raise NotOnDeviceError(f"the plan's {name} is of the type {kind}, which is not supported")
    return PlanTensor(name, np.dtype(_DTYPES[kind]))


def _logger(trt: Any) -> Any:
    """A logger of the library that writes to ours, and remembers the last thing that went wrong."""

    class Logger(trt.ILogger):  # type: ignore[misc]
        last = ""

        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, message: str) -> None:
            if severity in {trt.ILogger.Severity.INTERNAL_ERROR, trt.ILogger.Severity.ERROR}:
                self.last = message
                log.error("TensorRT", extra={"said": message})
            elif severity == trt.ILogger.Severity.WARNING:
                log.info("TensorRT", extra={"said": message})

    return Logger()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in version.split(".") if each.isdecimal())
