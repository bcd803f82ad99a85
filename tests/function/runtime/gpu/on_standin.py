"""What is done on GPUs that the stand-in has; each function gives what a test looks at."""

from __future__ import annotations

import gc
import os
import sys
import threading

import numpy as np

from function.runtime.backends.plan import PlanEngine, PlanTensor
from function.runtime.engine import Ports
from function.runtime.gpu import device, device_health
from function.runtime.gpu import driver as driver_module
from tests.gpu.standin import control
from warmup.plans.nvml import first

SLEEPS = 4


def only(binding):
    """Let one of the bindings be the only one that is installed."""

    def missing():
        raise ModuleNotFoundError

    if binding == "pycuda":
        sys.setdlopenflags(os.RTLD_LAZY)  # it asks for calls that nobody makes
        driver_module._with_bindings = missing
    else:
        driver_module._with_pycuda = missing


def have_pycuda():
    try:
        only("pycuda")
        import pycuda.driver  # noqa: F401
    except ImportError as error:
        return str(error)
    return None


def there_and_back(binding):
    """Copies go both ways, and only when somebody waits."""
    only(binding)
    memory = device.CudaMemory(1)
    with memory.current():
        there, back = memory.pinned(1000), memory.pinned(1000)
        there[:], back[:] = np.arange(1000) % 251, 0
        address = memory.allocate(1000)
        memory.upload(address, there)
        memory.download(back, address)
        early = bool(back.any())
        memory.wait()
    same = bool((there == back).all())
    held = control.held()
    memory.close()
    places = {line.split()[-1] for line in control.log() if line.startswith(("cuMem", "cuStream"))}
    return {
        "early": early,
        "same": same,
        "held": held,
        "left": control.held(),
        "places": sorted(places),
        "wrong": control.wrong(),
    }


def contexts(binding):
    """Many users of two GPUs, in several threads."""
    only(binding)
    found = []
    use = lambda number: found.append(device.CudaMemory(number % 2))  # noqa: E731
    work = [threading.Thread(target=use, args=(number,)) for number in range(6)]
    for each in work:
        each.start()
    for each in work:
        each.join()
    device.pinned((3,), np.float32, 1)
    for each in found:
        each.close()
    flags = [control.library().standin_flags(number) for number in range(2)]
    return {"held": control.held(), "flags": flags, "wrong": control.wrong()}


def errors(binding, numbers):
    """For each number what an error of a wait, with it, is: its text, its number, lost, short."""
    only(binding)
    from function.runtime.out_of_memory import is_out_of_memory

    memory, found = device.CudaMemory(0), {}
    for number in numbers:
        control.fail("cuStreamSynchronize", number)
        try:
            with memory.current():
                memory.wait()
        except device.CudaError as error:
            found[number] = [
                error.number,
                device_health.is_lost(error),
                is_out_of_memory(error),
                str(error),
            ]
    return found


class Engine:
    """Fails with what it is told."""

    provider, items, error = "TensorRT", None, RuntimeError("something")

    def run(self, *inputs):
        raise self.error


def unknown(call, number, forever):
    """An engine fails with a text that says nothing; the GPU is asked."""
    only("bindings")
    memory, health = device.CudaMemory(0), device_health.DeviceHealth()
    engine = device_health.GuardedEngine(Engine(), health)
    if call:
        control.fail(call, number, forever=forever)
    try:
        engine.run(np.zeros(1))
    except Exception as error:
        raised = type(error).__name__
    left = control.held()
    memory.close() if not forever else None
    return {
        "raised": raised,
        "lost": str(health.error or ""),
        "left": left,
        "wrong": control.wrong(),
    }


def short_probe():
    """The GPU is asked when it has no byte left."""
    only("bindings")
    memory = device.CudaMemory(0)
    control.room(0)
    lost = device_health.loss(RuntimeError("something"))
    memory.close()
    return {"lost": lost, "left": control.held()}


def pinned(binding, failing):
    """Pinned memory where a call fails."""
    only(binding)
    if failing:
        control.fail(failing, 2)
    array = device.pinned((2, 3), np.float16, 1)
    array[...] = 4
    right = array.shape == (2, 3) and bool((array == 4).all())
    held = control.held()["host"]
    retained = list(driver_module.driver().used) if held else []
    del array
    gc.collect()
    left = control.held()["host"]
    wrong = control.wrong()
    return {"right": right, "held": held, "left": left, "devices": retained, "wrong": wrong}


def unpinned_when_lost():
    """Pinned memory is forgotten after the GPU was lost."""
    only("bindings")
    array, said = device.pinned((2, 3), np.float32), []
    sys.unraisablehook = lambda found: said.append(str(found.exc_value))
    control.fail("cuMemFreeHost", 719, forever=True)
    del array
    gc.collect()
    return said


def closed_half():
    """One thing cannot be given back; the others are."""
    only("bindings")
    memory = device.CudaMemory(0)
    with memory.current():
        for _ in range(3):
            memory.allocate(10), memory.pinned(10)
    control.fail("cuMemFree_v2", 1)
    try:
        memory.close()
    except device.CudaError as error:
        return {"said": str(error), "left": control.held()}
    return {}


def order(module):
    """The GPUs in the order of whoever asks CUDA after some module was imported, and of NVML."""
    __import__(module)
    from cuda.bindings import driver

    from warmup.plans import nvml

    driver.cuInit(0)
    _, count = driver.cuDeviceGetCount()
    cuda = [driver.cuDeviceGetUuid(number)[1].bytes.hex() for number in range(count)]
    seen = [each.uuid.partition("-")[2].replace("-", "") for each in nvml.visible()]
    return [cuda, seen]


class Still:
    """A plan that computes nothing; all that it does needs its device, as a real one does."""

    inputs = (PlanTensor("x", np.dtype(np.float32)), PlanTensor("w", np.dtype(np.float16)))
    outputs = (PlanTensor("y", np.dtype(np.float32)),)
    sizes, fixed = (1, 4), False

    def largest(self, size):
        return {"x": (size, 8), "w": (1,)}

    def shape(self, size, inputs):
        return {"y": (size, 2)}

    def enqueue(self, size, addresses, stream):
        self.on_device()

    def keep(self):
        self.on_device()

    def close(self):
        self.on_device()

    def on_device(self):
        from cuda.bindings import driver

        driver.cuCtxGetDevice()


def lived(memory):
    """The whole life of a plan."""
    try:
        plan = PlanEngine(Still(), memory(), Ports(constants={"w": 0.5}))
        try:
            for rows in (1, 3, 9):
                plan.run(np.ones((rows, 8), np.float32))
        finally:
            plan.close()
    except device.CudaError:
        return False
    return True


def failing_anywhere():
    """Plans in whose lives one call after the other fails; what each time was not given back."""
    only("bindings")
    assert lived(lambda: device.CudaMemory(0))
    made = control.calls()
    start = made.index("cuStreamCreate")
    calls = [each for each in made[start:] if each != "cuCtxGetDevice"]
    found, seen = {}, {}
    for call in calls:
        seen[call] = seen.get(call, 0) + 1
        control.fail(call, 1, number=seen[call])
        before = control.held()
        fine = lived(lambda: device.CudaMemory(0))
        control.mend()
        left = {kind: n - before[kind] for kind, n in control.held().items() if n != before[kind]}
        found[f"{call} {seen[call]}"] = [fine, left]
    return [found, sorted(set(control.wrong()))]


def vitals():
    """What NVML tells of the first GPU; the stand-in's has as few functions as an old one."""
    return first().vitals()
