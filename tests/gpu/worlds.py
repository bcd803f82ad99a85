"""Where `make gpu-check` runs: on a GPU, or, to rehearse it, on this machine's CPU."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import asdict, replace

import numpy as np
import onnxruntime as ort
import pytest

from function.faces import families
from function.process.wiring.service import build_service, embedded
from function.requests import SwapRequest, Upload
from function.runtime.backends.cuda import Cuda
from function.runtime.backends.fallback import open_first
from function.runtime.backends.onnx import OnnxEngine
from function.runtime.backends.plan import PlanEngine
from function.runtime.backends.tensorrt import NoPlanError, open_plan
from function.runtime.engine import NotOnDeviceError
from function.runtime.gpu import device
from function.runtime.proof import Proof
from function.service import opening
from function.service.engine_config import EngineConfig
from function.service.plans import LatePlans
from function.service.service import Service, sample
from function.settings import load
from function.telemetry.timings import Timings
from tests.function.runtime.backends.host import HostMemory, OnnxPlan
from tests.graphs import convolved
from warmup.failures import UnavailableError
from warmup.models import manifest
from warmup.plans import nvml
from warmup.plans.plan_key import Recipe, key_for, profiles_for
from warmup.plans.proven_build import BuildRequest, build
from warmup.plans.stored import open_plans
from warmup.plans.tensorrt import FULL, RTX, library, runner_of
from warmup.settings.variables import replace as changed

ITEM = (3, 128, 128)
SIZES = (1, 2, 4, 8)
MODELS = manifest.read(embedded())
ORDER = SwapRequest((Upload(sample("hopper"), "source"),), Upload(sample("collins"), "target"))


class Missing(Exception):
    """Something that a step needs is not installed here."""


class World:
    """What both have in common: a graph, its inputs, and services over the embedded models."""

    def __init__(self, folder):
        self.folder = folder
        self.graph = convolved(folder / "model.onnx", size=ITEM[1])
        self.settings = load(
            {
                "EMBER_STORE": str(folder / "store"),
                "EMBER_BACKENDS": self.backends,
                "EMBER_ALLOW_DEGRADED": "true",
            }
        )
        self.plans = open_plans(self.settings)
        self.built = {}

    backends = "tensorrt,cuda,cpu"

    def batch(self, size):
        return np.random.default_rng(size).random((size, *ITEM), np.float32)

    def cpu(self):
        return OnnxEngine(self.graph)

    def feeds(self):
        yield from ({"x": self.batch(1)} for _ in range(8))

    def order(self, precision, tool, facts, target=None):
        recipe = Recipe(precision, self.flags(tool))
        profiles = profiles_for([("", ITEM, ITEM)], SIZES)
        facts = {"runtime": tool.runtime, "version": tool.version, "gpu": facts}
        key = key_for("a" * 64, profiles, recipe, sm=target or "any", **facts)
        feeds = self.feeds if precision == "int8" else None
        return BuildRequest("check", self.graph, key, recipe, target, feeds, slower=True)

    def flags(self, tool):
        return ()

    def proof(self, precision):
        shapes = [[(size, *ITEM)] for size in SIZES]
        return Proof("check", self.graph, shapes, precision)

    async def swap(self, service):
        result = await service.swap(ORDER, Timings())
        assert result.faces


class Real(World):
    """The first GPU of this machine."""

    def __init__(self, folder):
        super().__init__(folder)
        device.check(0)
        self.gpu = nvml.first()

    def facts(self):
        return {**asdict(self.gpu), "onnxruntime": ort.__version__, **self.gpu.vitals()._asdict()}

    def onnx(self):
        try:
            kinds = {"cuda": Cuda(), "cuda with graphs": Cuda(graphs=True)}
            return {name: OnnxEngine(self.graph, cuda=how) for name, how in kinds.items()}
        except NotOnDeviceError as error:
            raise Missing(str(error)) from error

    def tool(self):
        for name in (FULL, RTX):
            try:
                return library(name)
            except UnavailableError:
                continue
        raise Missing("neither tensorrt nor tensorrt-rtx is installed")

    def build(self, precision):
        tool = self.tool()
        order = self.order(precision, tool, self.gpu)
        sidecar = build(order, self.plans, tool, self.proof(precision))
        self.built[precision] = order.key
        return sidecar

    def plan(self, precision):
        if precision not in self.built:
            self.build(precision)
        sidecar, held = self.plans.find(self.built[precision])
        held.close()
        return open_plan(held.file.path, sidecar, runner_of(sidecar.key))

    @asynccontextmanager
    async def service(self):
        async with self._service(build_plans=True) as service:
            if service.lesser:
                await service.upgrade()
            yield service

    @asynccontextmanager
    async def service_without_plans(self):
        store = self.folder / "without"
        async with self._service(build_plans=True, store=store) as service:
            yield service

    @asynccontextmanager
    async def _service(self, **changes):
        self.tool()
        settings = changed(self.settings, **changes)
        service = build_service(settings)
        # The builder is a process of its own, which reads its settings from the environment.
        service.engines.loader.config = replace(
            service.engines.loader.config, plans=_Here(settings, settings.engines)
        )
        try:
            await service.fetch()
            await service.load(whole=True)
            await service.warm()
            yield service
        finally:
            service.close()


class _Here(LatePlans):
    """Builds in a process that has these settings."""

    def _build(self, roles):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("EMBER_STORE", str(self._settings.stores.store))
            super()._build(roles)


class Rehearsal(World):
    """No GPU: plans run on the CPU, and are built by TensorRT-RTX only to see that they can be."""

    backends = "cpu"

    def facts(self):
        return {"name": "none: this is a rehearsal on the CPU"}

    def onnx(self):
        return {"cuda": self.cpu()}

    def build(self, precision):
        try:
            tool = library(RTX)
        except UnavailableError as error:
            raise Missing(str(error)) from error
        proof = self.proof(precision)
        return build(self.order(precision, tool, None, "8.9"), self.plans, tool, proof)

    def plan(self, precision):
        memory = HostMemory()
        return PlanEngine(OnnxPlan(self.graph, SIZES, memory, {}), memory)

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
        try:
            await service.load(whole=True)
            await service.warm()
            yield service
        finally:
            service.close()


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
        def on(backend):
            if backend == "cpu":
                return opening.open_engine(model)
            if not self.here:
                raise NoPlanError("there is no plan")
            memory = HostMemory()
            (item,) = families.FAMILIES[model.role, model.family].items
            plan = OnnxPlan(model.path, families.buckets(model), memory, {})
            plan.items[plan.inputs[0].name] = (None, *item)
            return PlanEngine(plan, memory)

        return open_first(model.role, backends, on, passed=skipped)
