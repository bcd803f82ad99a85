"""Where `make gpu-check` runs: on a GPU, or, to rehearse it, on the CPU and the stand-in."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import onnxruntime as ort

from function.faces import families
from function.images.decode import decode
from function.process.wiring.service import build_service, embedded
from function.requests import SwapRequest, Upload
from function.runtime.backends import tensorrt as backend
from function.runtime.backends.cuda import Cuda
from function.runtime.backends.fallback import open_first
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.backends.plan import PlanEngine
from function.runtime.backends.tensorrt import NoPlanError, open_plan
from function.runtime.engine import PROVIDERS, Ports
from function.runtime.gpu import device
from function.runtime.gpu.cuda_errors import CudaError
from function.runtime.gpu.device_health import DeviceHealth, DeviceLostError, GuardedEngine
from function.runtime.gpu.driver import driver
from function.runtime.proof import Proof
from function.service import opening
from function.service.engine_config import EngineConfig
from function.service.service import Service, sample
from function.settings import load
from function.telemetry.timings import Timings
from function.weights import cutout
from tests import neural
from tests.function.runtime.backends.host import HostMemory, OnnxPlan
from tests.function.runtime.gpu.on_standin import Still
from tests.gpu import killed
from tests.gpu.check import Missing
from tests.gpu.standin import control
from tests.graphs import convolved
from warmup.failures import ManifestError, UnavailableError
from warmup.models import manifest
from warmup.plans import nvml
from warmup.plans.plan_key import Recipe, key_for, profiles_for
from warmup.plans.proven_build import BuildRequest, build
from warmup.plans.stored import open_plans
from warmup.plans.tensorrt import FULL, LEAN, RTX, library, runner_of

ITEM = (3, 128, 128)
SIZES = (1, 2, 4, 8)
MODELS = manifest.read(embedded())
ORDER = SwapRequest((Upload(sample("hopper"), "source"),), Upload(sample("collins"), "target"))
BINDINGS = ("cuda-bindings", "pycuda", "nvidia-ml-py")
_LEFT = 1 << 30
"""Bytes that are left of a GPU that is full."""


@dataclass(frozen=True)
class Crowd:
    """A model on a device that can be filled.

    Attributes:
        engine: runs it.
        sizes: of batches, the last of which is too large once the device is full.
        batch: gives a batch of a size.
        full: fills the device while its body runs.
        right: raises unless outputs are those of a batch.
    """

    engine: object
    sizes: tuple[int, ...]
    batch: object
    full: object
    right: object


class World:
    """What both have in common: a graph, its inputs, and services over the embedded models.

    Args:
        folder: what parts leave for each other: plans.
    """

    def __init__(self, folder):
        self.folder = folder
        self.shared, self.late = folder / "shared", folder / "late"
        self.graph = convolved(folder / "model.onnx", size=ITEM[1])
        self.settings = load(self.environ())
        self.plans = open_plans(self.settings)

    def environ(self, **more):
        """The settings of a server, as an environment."""
        own = {"EMBER_STORE": str(self.folder / "store"), "EMBER_PLANS": str(self.shared)}
        return own | {"EMBER_BACKENDS": self.backends_wanted} | more

    def batch(self, size):
        return np.random.default_rng(size).random((size, *ITEM), np.float32)

    def cpu(self):
        return OnnxEngine(self.graph)

    def feeds(self):
        yield from ({"x": self.batch(1)} for _ in range(8))

    def order(self, precision, tool, facts, target=None, flags=()):
        recipe = Recipe(precision, flags)
        profiles = profiles_for([("", ITEM, ITEM)], SIZES)
        facts = {"runtime": tool.runtime, "version": tool.version, "gpu": facts}
        key = key_for("a" * 64, profiles, recipe, sm=target or "any", **facts)
        feeds = self.feeds if precision == "int8" else None
        return BuildRequest("check", self.graph, key, recipe, target, feeds, slower=True)

    def proof(self, precision):
        shapes = [[(size, *ITEM)] for size in SIZES]
        return Proof("check", self.graph, shapes, precision)

    lossless = replace(ORDER, format="png")

    def before(self):
        """The pixels of what swaps change."""
        return decode(ORDER.target.data, name="target").pixels.astype(int)

    def swappers(self):
        """Manifests with a neural swapper that takes crops, and with the same one for cutouts."""
        detect = next(model for model in MODELS if model.role == "detect")
        identity = neural.make(self.folder / "arcface.onnx", "arcface")
        crops = neural.make(self.folder / "inswapper_128.onnx", "inswapper_128", dynamic=True)
        cut = self.folder / "cutouts.onnx"
        side = cutout.make(crops, cut, "swap", "inswapper_128")
        shared = _entry("detect", detect.family, detect.path)
        shared += _entry("identity", "arcface", identity)
        found = {}
        for name, path, more in (
            ("crops", crops, ""),
            ("cutouts", cut, f"options = {{ cutout = {side} }}\n"),
        ):
            found[name] = self.folder / f"{name}.toml"
            found[name].write_text(shared + _entry("swap", "inswapper_128", path) + more)
        return found

    @asynccontextmanager
    async def serving(self, path):
        """A service of a manifest, whose outputs have no marks in their pixels."""
        if self.of_onnx == "cuda":
            self._cuda()
        environ = self.environ(
            EMBER_MANIFEST=str(path), EMBER_BACKENDS=self.of_onnx, EMBER_WATERMARK="off"
        )
        del environ["EMBER_PLANS"]
        async with _running(build_service(load(environ))) as service:
            yield service

    def _build_embedded(self, *words):
        """Build the plans of the embedded models, as an operator does; what was said."""
        command = [sys.executable, "-m", "function", "engines", "build", "--slower", *words]
        environ = os.environ | self.environ()
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().rpartition("\n")[2])
        made = (line.rpartition("  ")[0] for line in done.stdout.splitlines())  # less where it is
        return {"embedded": ["; ".join(re.split(" {2,}", line)) for line in made if line]}

    def lost(self):
        health = DeviceHealth()
        engines, batch = self.pair()
        first, second = (GuardedEngine(engine, health) for engine in engines)
        first.run(batch)
        killed.trap()
        said = [_lost(first, batch), _lost(second, batch)]
        if None in said:
            raise AssertionError(f"after the context was killed an engine has run: {said}")
        return {"said": said[0], "of_the_other": said[1]}

    async def swap(self, service):
        result = await service.swap(ORDER, Timings())
        assert result.faces


def _entry(role, family, path):
    content = path.read_bytes()
    return (
        f'[[model]]\nrole = "{role}"\nfamily = "{family}"\nuri = "{path}"\nlicence = "MIT"\n'
        f'size = {len(content)}\nsha256 = "{hashlib.sha256(content).hexdigest()}"\n'
    )


def _lost(engine, batch):
    try:
        engine.run(batch)
    except DeviceLostError as error:
        return str(error)
    return None


class Real(World):
    """The first GPU of this machine."""

    backends_wanted, of_onnx = "tensorrt,cuda", "cuda"
    judges, repeats, callers, swaps = True, 30, 8, 20

    def __init__(self, folder):
        super().__init__(folder)
        device.check(0)
        self.gpu = nvml.first()

    killer = staticmethod(lambda: killed.trap)

    def backends(self):
        found = _bindings() | {"driver_through": {"is": type(driver()).__name__.lstrip("_")}}
        found["onnxruntime"] = {"missing": "onnxruntime-gpu: make install EXTRAS=gpu"}
        if PROVIDERS["cuda"] in ort.get_available_providers():
            found["onnxruntime"] = _tried(lambda: (ort.__version__, self._cuda()), self.batch(1))
        for name in (FULL, LEAN, RTX):
            try:
                library(name)
                found[name] = _tried(partial(self._plan_of, name), self.batch(1))
            except UnavailableError as error:
                found[name] = {"missing": str(error)}
        return found

    def _plan_of(self, name):
        """The version of one of NVIDIA's libraries, and a plan that it runs."""
        tool, flags = library(name), ()
        if name == LEAN:
            tool, flags = library(FULL), ("version-compatible",)
        order = self.order("fp32", tool, self.gpu, flags=flags)
        build(order, self.plans, tool, self.proof("fp32"))
        return library(name).version, self._open(order.key)

    def _cuda(self, **how):
        if PROVIDERS["cuda"] not in ort.get_available_providers():
            raise Missing("onnxruntime-gpu is not installed: make install EXTRAS=gpu")
        return OnnxEngine(self.graph, cuda=Cuda(**how))

    def tool(self):
        """What builds plans for this GPU."""
        for name in (FULL, RTX):
            try:
                tool = library(name)
                self.order("fp32", tool, self.gpu)
            except (UnavailableError, ManifestError):
                continue
            return tool
        raise Missing("no library that builds plans for this GPU is installed: docs/install.md")

    def build(self, precision):
        tool = self.tool()
        return build(self.order(precision, tool, self.gpu), self.plans, tool, self.proof(precision))

    def build_embedded(self):
        return self._build_embedded("--time-limit=60")

    def _open(self, key):
        found = self.plans.find(key)
        if found is None:
            raise Missing("there is no plan: see the part plans")
        sidecar, held = found
        held.close()
        return open_plan(held.file.path, sidecar, runner_of(sidecar.key))

    def engines(self):
        """Each way to run the graph here."""
        found = {}
        try:
            found["cuda"] = self._cuda()
        except Missing as missing:
            reason = missing
        for precision in ("fp32", "fp16"):
            try:
                found[f"plan {precision}"] = self._open(
                    self.order(precision, self.tool(), self.gpu).key
                )
            except Missing as missing:
                reason = missing
        if not found:
            raise reason
        return found

    def pair(self):
        (engine, *_) = self.engines().values()
        return (engine, engine), self.batch(1)

    def graphs(self):
        return self._cuda(), self._cuda(graphs=True)

    def crowd(self):
        cpu = self.cpu()

        def right(found, batch):
            for part in (slice(4), slice(-4, None)):
                wanted = cpu.run(batch[part])[0]
                assert np.allclose(found[0][part], wanted, rtol=1e-2, atol=1e-3)

        sizes = tuple(2**n for n in range(12))
        return Crowd(self._cuda(), sizes, self.batch, _filled, right)

    @asynccontextmanager
    async def service(self):
        async with _running(build_service(self.settings)) as service:
            yield service

    @asynccontextmanager
    async def service_without_plans(self):
        self._cuda()
        if not list(self.shared.glob("plans/*/plan")):
            raise Missing("there are no plans of the embedded models: see the part plans")
        environ = self.environ(EMBER_STORE=str(self.folder / "without"), EMBER_PLANS=str(self.late))
        async with _running(build_service(load(environ))) as service:
            yield service

    def share_plans(self):
        shutil.copytree(self.shared, self.late, dirs_exist_ok=True)


@contextmanager
def _filled():
    """The first GPU with little memory left."""
    memory = device.CudaMemory(0)
    try:
        with memory.current():
            for size in (1 << 30, 1 << 26):
                while (free := nvml.memory()) and free.free > _LEFT + size:
                    memory.allocate(size)
        yield
    finally:
        memory.close()


@asynccontextmanager
async def _running(service):
    try:
        await service.fetch()
        await service.load(whole=True)
        await service.warm()
        yield service
    finally:
        service.close()


class Rehearsal(World):
    """No GPU: plans run on the CPU, and are built by TensorRT-RTX only to see that they can be."""

    backends_wanted, of_onnx = "tensorrt", "cpu"
    judges, repeats, callers, swaps = False, 3, 2, 1
    target = "8.9"

    @staticmethod
    def killer():
        """Have plans run on the CPU, in memory that can be lost."""

        def open_kept(gpu, keys_on, number, ports):
            return _hosted(keys_on.args[0], _Losable())

        def kill():
            _Losable.lost = True

        backend.open_kept = open_kept
        return kill

    def backends(self):
        found = _bindings()
        self.cpu().run(self.batch(1))
        found["onnxruntime"] = {"version": ort.__version__, "ran_on": "the CPU"}
        for name in (FULL, LEAN, RTX):
            try:
                found[name] = {"version": library(name).version, "ran_on": "nothing"}
            except UnavailableError as error:
                found[name] = {"missing": str(error)}
        return found

    def build(self, precision):
        try:
            tool = library(RTX)
        except UnavailableError as error:
            raise Missing(str(error)) from error
        order = self.order(precision, tool, None, self.target)
        return build(order, self.plans, tool, self.proof(precision))

    def build_embedded(self):
        return self._build_embedded(f"--target={self.target}", "--role=landmarks")

    def engines(self):
        memory = HostMemory()
        return {
            "cuda": self.cpu(),
            "plan fp32": PlanEngine(OnnxPlan(self.graph, SIZES, memory, {}), memory),
        }

    def pair(self):
        ports = Ports(constants={"w": 0.5})
        engines = [PlanEngine(Still(), device.CudaMemory(0), ports) for _ in range(2)]
        return engines, np.ones((1, 8), np.float32)

    def graphs(self):
        return self.cpu(), self.cpu()

    def crowd(self):
        def batch(size):
            return np.arange(size, dtype=np.float32)[:, None]

        def right(found, batch):
            np.testing.assert_array_equal(found[0], 2 * batch)

        return Crowd(_Taking(), SIZES, batch, _crowded, right)

    @asynccontextmanager
    async def service(self):
        async with self.service_without_plans() as service:
            await service.upgrade()
            yield service

    @asynccontextmanager
    async def service_without_plans(self):
        node = _Node()
        config = EngineConfig(
            open=node.open, backends=("tensorrt", "cpu"), allow_degraded=True, plans=node
        )
        service = Service(MODELS, workers=2, max_pixels=4_000_000, config=config)
        async with _running(service):
            yield service

    def share_plans(self):
        pass


def _tried(open_engine, batch):
    """What a backend has run, or why it has not."""
    try:
        version, engine = open_engine()
        engine.run(batch)
    except (UnavailableError, ManifestError, Missing) as error:  # not for this GPU, or not whole
        return {"not_here": str(error)}
    except Exception as error:
        return {"failed": " ".join(str(error).split())[:300]}
    return {"version": version, "ran_on": engine.provider}


def _bindings():
    found = {}
    for name in BINDINGS:
        try:
            found[name] = {"version": version(name)}
        except PackageNotFoundError:
            found[name] = {"missing": "not installed"}
    return found


class _Taking:
    """An engine that takes a mebibyte of the stand-in's memory for each item, and doubles it."""

    provider, items = PROVIDERS["tensorrt"], None

    def run(self, batch):
        memory = device.CudaMemory(0)
        try:
            with memory.current():
                memory.allocate(len(batch) << 20)
        finally:
            memory.close()
        return [2 * batch]


@contextmanager
def _crowded():
    """The stand-in with room for three items."""
    control.room(3 << 20)
    try:
        yield
    finally:
        control.room(1 << 30)


class _Losable(HostMemory):
    """Memory of a device that can be lost."""

    lost = False

    def wait(self):
        if self.lost:
            raise CudaError(719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure")
        super().wait()


class _Node:
    """Has plans as soon as somebody asks for them."""

    def __init__(self):
        self.here = False

    def obtain(self, wanted):
        self.here = True
        return {model.role for model in wanted}

    def close(self):
        pass

    def open(self, model, *, backends, skipped, **options):
        def on(name):
            if name == "cpu":
                return opening.open_engine(model)
            if not self.here:
                raise NoPlanError("there is no plan")
            return _hosted(model, HostMemory())

        stays = families.on_cpu(model)
        return open_first(
            model.role, ("cpu",) if stays else backends, on, left_out=False, passed=skipped
        )


def _hosted(model, memory):
    """A plan of a model on the CPU."""
    (item,) = families.FAMILIES[model.role, model.family].items
    plan = OnnxPlan(model.path, families.buckets(model), memory, {})
    plan.items[plan.inputs[0].name] = (None, *item)
    return PlanEngine(plan, memory, families.ports(model))
