"""TensorRT's runtime, as far as we call it, over an ONNX graph on the CPU.

It stands in at the boundary of the library, as that ends the process where there is no GPU.
`test_tensorrt.py` holds the names in it equal to those of the real library.
"""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace
from typing import ClassVar
from weakref import WeakSet

import numpy as np

from tests.function.runtime.backends.host import OnnxPlan

TensorIOMode = Enum("TensorIOMode", "INPUT OUTPUT")
ExecutionContextAllocationStrategy = Enum("Strategy", "STATIC USER_MANAGED")
KINDS = {"float32": "FLOAT", "float16": "HALF", "int64": "INT64", "uint8": "UINT8"}


class ILogger:
    Severity = Enum("Severity", "INTERNAL_ERROR ERROR WARNING INFO VERBOSE")


LIFE: list = []
"""What went, in order: which, whether its memory was gone, whether its device was current."""

FAULTS: dict = {}
"""What a call does instead of its work, by name: what it says, and then gives or raises."""


def fault(name, fine):
    """What a call gives: what is fine, or what its fault gives after it was said."""
    if name not in FAULTS:
        return fine()
    said, given = FAULTS[name]
    for text in said:
        _logger[0].log(ILogger.Severity.ERROR, text)
    if isinstance(given, Exception):
        raise type(given)(*given.args)
    return given


_logger: list = []


class _Mortal:
    """Notes when and where it goes, as the real one would use its device then."""

    def __del__(self):
        memory = self._memory
        here = getattr(memory.owner, "here", False)
        LIFE.append((type(self).__name__, memory.closed, here))


class Runtime:
    """Its plans are what the test put into `plans`, by content."""

    plans: ClassVar[dict] = {}

    def __init__(self, logger):
        self.logger = logger
        if not _logger:  # as the library, which keeps the first for the whole process
            _logger.append(logger)

    def load_runtime(self, path):
        self._loaded = path
        return self

    def deserialize_cuda_engine(self, content):
        if content not in self.plans:
            self.logger.log(ILogger.Severity.ERROR, "the engine plan file is not compatible")
            return None
        return ICudaEngine(*self.plans[content])


class ICudaEngine(_Mortal):
    def __init__(self, path, sizes, memory, items):
        self._memory = memory
        self.plan, self.sizes = OnnxPlan(path, sizes, memory, items), sizes
        self.names = [each.name for each in (*self.plan.inputs, *self.plan.outputs)]
        self.num_io_tensors = len(self.names)
        self.num_optimization_profiles = len(sizes)
        self.contexts = WeakSet()

    def get_tensor_name(self, index):
        return self.names[index]

    def get_tensor_mode(self, name):
        inputs = [each.name for each in self.plan.inputs]
        return TensorIOMode.INPUT if name in inputs else TensorIOMode.OUTPUT

    def get_tensor_dtype(self, name):
        every = (*self.plan.inputs, *self.plan.outputs)
        kind = next(each.dtype for each in every if each.name == name)
        return SimpleNamespace(name=KINDS[str(kind)])

    def get_tensor_shape(self, name):
        if self.plan.fixed:
            return self.plan.largest(self.sizes[0])[name] if self._is_input(name) else (1,)
        one = self.plan.largest(1)
        return (-1, *one[name][1:]) if self._is_input(name) else (-1,)

    def get_tensor_profile_shape(self, name, index):
        shape = self.plan.largest(self.sizes[index])[name]
        return [shape, shape, shape]

    def get_device_memory_size_for_profile_v2(self, index):
        return 1000 * self.sizes[index]

    def create_execution_context(self, how):
        if isinstance(how, IRuntimeConfig):
            how = how._strategy
        assert how is ExecutionContextAllocationStrategy.USER_MANAGED
        return fault("create_execution_context", lambda: IExecutionContext(self))

    def create_runtime_config(self):
        return IRuntimeConfig()

    def _is_input(self, name):
        return self.get_tensor_mode(name) is TensorIOMode.INPUT


class IRuntimeConfig:
    def set_execution_context_allocation_strategy(self, strategy):
        self._strategy = strategy

    def create_runtime_cache(self):
        return IRuntimeCache()

    def set_runtime_cache(self, cache):
        IRuntimeCache._used = cache


class IRuntimeCache:
    _used: ClassVar = None

    def __init__(self):
        self._kernels = b""

    def deserialize(self, content):
        def take():
            self._kernels = bytes(content)
            return True

        return fault("deserialize", take)

    def serialize(self):
        return self._kernels


class IExecutionContext(_Mortal):
    def __init__(self, engine):
        self._memory = engine._memory
        engine.contexts.add(self)
        self.engine, self.shapes, self.addresses = engine, {}, {}
        self.scratch = self.size = None

    def set_device_memory(self, address, size):
        self.scratch = (address, size)

    def set_optimization_profile_async(self, index, stream):
        self.size = self.engine.sizes[index]
        return fault("set_optimization_profile_async", lambda: True)

    def set_input_shape(self, name, shape):
        largest = self.engine.plan.largest(self.size)[name]
        if shape[0] != largest[0] or any(map(int.__gt__, shape, largest)):
            return False
        self.shapes[name] = tuple(shape)
        return True

    def get_tensor_shape(self, name):
        return self.engine.plan.shape(self.size, self.shapes)[name]

    def set_tensor_address(self, name, address):
        self.addresses[name] = address
        return True

    def execute_async_v3(self, stream):
        assert self.scratch[1] >= 1000 * self.size
        self.engine.plan.shape(self.size, self.shapes)
        self.engine.plan.enqueue(self.size, self.addresses, stream)
        if cache := IRuntimeCache._used:  # a kernel for each new shape
            kernel = repr(sorted(self.shapes.items())).encode()
            cache._kernels += b"" if kernel in cache._kernels else kernel
        return fault("execute_async_v3", lambda: True)


MODULE = SimpleNamespace(
    ILogger=ILogger,
    Runtime=Runtime,
    TensorIOMode=TensorIOMode,
    ExecutionContextAllocationStrategy=ExecutionContextAllocationStrategy,
)


def used(kind):
    """The names of a class of the library that we call."""
    return [name for name in vars(kind) if not name.startswith("_")]


def numbers(size, width):
    return np.arange(size * width, dtype=np.float32).reshape(size, width)
