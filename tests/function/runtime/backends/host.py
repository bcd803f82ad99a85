"""A device that is this machine, and plans that are ONNX graphs: the same interfaces, no GPU."""

from __future__ import annotations

import ctypes
import threading
from contextlib import contextmanager

import numpy as np
import onnxruntime as ort

from function.runtime.backends.plan import PlanTensor


class HostMemory:
    """`device.Memory` on the heap. What is enqueued happens when somebody waits, as on a stream."""

    def __init__(self):
        self.blocks, self.work = {}, []
        self.allocated = self.waits = 0
        self.closed = False
        self.owner = threading.local()

    stream = 7

    @contextmanager
    def current(self):
        assert not self.closed, "memory is used after it was given back"
        before = getattr(self.owner, "here", False)
        self.owner.here = True
        try:
            yield
        finally:
            self.owner.here = before

    def pinned(self, size):
        self.check()
        self.allocated += 1
        return np.zeros(size, np.uint8)

    def allocate(self, size):
        self.check()
        self.allocated += 1
        block = ctypes.create_string_buffer(max(size, 1))
        self.blocks[ctypes.addressof(block)] = block
        return ctypes.addressof(block)

    def upload(self, address, source):
        self.check()
        self.work.append(lambda: self.at(address, source.nbytes).__setitem__(slice(None), source))

    def download(self, target, address):
        self.check()
        self.work.append(lambda: target.__setitem__(slice(None), self.at(address, target.nbytes)))

    def wait(self):
        self.check()
        self.waits += 1
        work, self.work = self.work, []
        for each in work:
            each()

    def close(self):
        self.closed = True

    def check(self):
        assert not self.closed, "memory is used after it was given back"
        assert getattr(self.owner, "here", False), "the device is not that of this thread"

    def at(self, address, size):
        assert address in self.blocks, "an address that was not allocated"
        assert size <= len(self.blocks[address]), "beyond the end of a block"
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


class OnnxPlan:
    """`Executor` over an ONNX graph on the CPU, for the sizes that it was "compiled" for."""

    def __init__(self, path, sizes, memory, items):
        options = ort.SessionOptions()
        options.log_severity_level = 3
        self.session = ort.InferenceSession(str(path), options)
        self.sizes, self.memory, self.items = list(sizes), memory, items
        self.closed, self.runs, self.set, self.kept = False, [], {}, 0
        kinds = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
        kinds |= {"tensor(int64)": np.int64, "tensor(uint8)": np.uint8}
        self.inputs, self.outputs = (
            [PlanTensor(each.name, np.dtype(kinds[each.type])) for each in found]
            for found in (self.session.get_inputs(), self.session.get_outputs())
        )
        self.fixed = isinstance(self.session.get_inputs()[0].shape[0], int)

    def largest(self, size):
        shapes = {each.name: self.items.get(each.name) for each in self.session.get_inputs()}
        for each in self.session.get_inputs():
            own = shapes[each.name] or (None, *each.shape[1:])
            shapes[each.name] = tuple(size if axis is None else axis for axis in own)
        return shapes

    def shape(self, size, inputs):
        largest = self.largest(size)
        for name, shape in inputs.items():
            if len(shape) != len(largest[name]) or any(map(int.__gt__, shape, largest[name])):
                raise ValueError(f"not compiled for {name} of the shape {shape}")
        feed = {each.name: np.zeros(inputs[each.name], each.dtype) for each in self.inputs}
        found = [output.shape for output in self.session.run(None, feed)]
        self.set = dict(inputs) | dict(zip([o.name for o in self.outputs], found, strict=True))
        return {each.name: self.set[each.name] for each in self.outputs}

    def enqueue(self, size, addresses, stream):
        assert not self.closed, "a plan is run after it was closed"
        assert stream == self.memory.stream
        self.memory.check()
        self.runs.append(size)
        shapes = self.set

        def array(tensor):
            count = int(np.prod(shapes[tensor.name]))
            raw = self.memory.at(addresses[tensor.name], count * tensor.dtype.itemsize)
            return raw.view(tensor.dtype).reshape(shapes[tensor.name])

        def execute():
            feed = {each.name: array(each).copy() for each in self.inputs}
            for each, output in zip(self.outputs, self.session.run(None, feed), strict=True):
                array(each)[...] = output

        self.memory.work.append(execute)

    def keep(self):
        assert not self.memory.work, "what was not waited for is kept"
        self.kept += 1

    def close(self):
        assert not self.memory.closed, "memory went before the plan"
        self.closed = True
