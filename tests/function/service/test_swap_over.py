"""A replica without plans serves at once; plans that come take over while it serves.

The plans here run on the CPU (`tests.function.runtime.backends.host`), through the runner, the
fallback, the batcher and the service that plans on a GPU go through.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import cv2
import numpy as np
import pytest

from function.faces import families
from function.process.wiring.service import embedded
from function.requests import SwapRequest, Upload
from function.runtime.backends.fallback import allowed, open_first
from function.runtime.backends.plan import PlanEngine
from function.runtime.backends.tensorrt import NoPlanError
from function.runtime.engine import NotOnDeviceError
from function.runtime.sanity import WrongResultError
from function.service import opening
from function.service.engine_config import EngineConfig
from function.service.engines import NoPlanYetError
from function.service.service import Service, sample
from function.telemetry.timings import Timings
from tests.function.runtime.backends.host import HostMemory, OnnxPlan
from warmup.models import manifest

MODELS = [model for model in manifest.read(embedded()) if not families.on_cpu(model)]
ROLES = {model.role for model in MODELS}
ORDER = SwapRequest((Upload(sample("hopper"), "source"),), Upload(sample("collins"), "target"))


class Node:
    """Has plans of some roles; also the source that they come from."""

    def __init__(self):
        self.plans, self.coming = set(), set()
        self.refused, self.wrong = set(), set()
        self.opened, self.runs, self.shapes = Counter(), Counter(), set()
        self.obtaining, self.go = threading.Event(), threading.Event()
        self.go.set()
        self.closed = False

    def obtain(self, wanted):
        self.obtaining.set()
        assert self.go.wait(30)
        self.plans |= self.coming
        return {model.role for model in wanted if model.role in self.plans}

    def close(self):
        self.closed = True

    def open(self, model, *, backends, allow_degraded, skipped, **options):
        def on(backend):
            if backend == "cpu":
                engine = opening.open_engine(model)
            elif model.role not in self.plans:
                raise NoPlanError("there is no plan")
            elif model.role in self.refused:
                raise NotOnDeviceError("the library refuses the plan")
            else:
                engine = self.plan(model)
            self.opened[model.role, backend] += 1
            return Counted(engine, model.role, backend, self)

        may = allowed(backends, allow_degraded=allow_degraded)
        return open_first(model.role, may, on, passed=skipped)

    def plan(self, model):
        memory = HostMemory()
        (item,) = families.FAMILIES[model.role, model.family].items
        executor = OnnxPlan(model.path, families.buckets(model), memory, {})
        executor.items[executor.inputs[0].name] = (None, *item)
        return PlanEngine(executor, memory)


class Counted:
    def __init__(self, engine, role, backend, node):
        self.engine, self.role, self.backend, self.node = engine, role, backend, node
        self.provider, self.items = engine.provider, engine.items

    def run(self, *inputs):
        self.node.runs[self.role, self.backend] += 1
        if self.backend == "tensorrt":
            self.node.shapes.add((self.role, *(each.shape[1:] for each in inputs)))
        outputs = self.engine.run(*inputs)
        if self.backend == "tensorrt" and self.role in self.node.wrong:
            return [np.full_like(each, np.nan) for each in outputs]
        return outputs


@pytest.fixture
def node():
    return Node()


@pytest.fixture
async def service(node):
    config = EngineConfig(
        open=node.open, backends=("tensorrt", "cpu"), allow_degraded=True, plans=node
    )
    service = Service(MODELS, workers=2, max_pixels=4_000_000, config=config)
    await service.load(whole=True)
    await service.warm()
    yield service
    service.close()
    assert node.closed


def providers(service):
    return set(service.engines.providers.values())


async def test_without_plans_it_serves_on_the_next_backend_and_says_why(service):
    assert providers(service) == {"CPUExecutionProvider"}
    assert service.lesser
    assert service.upgrades
    passed = service.engines.facts()["detect"]["passed_over"]
    assert passed == [{"backend": "tensorrt", "reason": "NoPlanError: there is no plan"}]
    assert set(service.engines.degraded) == ROLES


async def test_while_no_plan_comes_it_goes_on_as_it_is(service, node):
    with pytest.raises(NoPlanYetError, match="no plans yet for detect, identity, landmarks"):
        await service.upgrade()
    assert service.lesser
    assert node.opened == dict.fromkeys([(role, "cpu") for role in ROLES], 1)


async def test_plans_take_over_under_load_and_no_request_is_lost(service, node):
    node.coming, over = ROLES, asyncio.Event()
    results = []

    async def client():
        while not over.is_set():
            results.append(await service.swap(ORDER, Timings()))

    node.go.clear()
    clients = [asyncio.create_task(client()) for _ in range(2)]
    upgrading = asyncio.create_task(service.upgrade())
    await asyncio.to_thread(node.obtaining.wait, 30)
    await service.swap(ORDER, Timings())  # while the plans are still being made
    node.go.set()
    await upgrading
    assert providers(service) == {"TensorRT"}
    assert not service.lesser
    assert service.engines.degraded == ()
    count = len(results)
    while len(results) < count + 4:
        await asyncio.sleep(0.01)
    over.set()
    await asyncio.gather(*clients)  # raises what any request raised
    before = node.runs["detect", "cpu"]
    await service.swap(ORDER, Timings())
    assert node.runs["detect", "cpu"] == before
    assert len({len(result.faces) for result in results}) == 1
    distances = [result.faces[0].after for result in results]
    np.testing.assert_allclose(distances, distances[0], atol=0.01)


async def test_after_a_plan_serves_no_shape_reaches_it_that_it_has_not_run(service, node):
    node.coming = ROLES
    await service.upgrade()
    await service.swap(ORDER, Timings())
    ran = set(node.shapes)
    assert {role for role, *_ in ran} == ROLES
    photo = cv2.imdecode(np.frombuffer(sample("collins"), np.uint8), cv2.IMREAD_COLOR)
    for rows, columns in ((0, 200), (350, 0), (97, 31)):
        border = (rows, 0, columns, 0, cv2.BORDER_REPLICATE)
        _, made = cv2.imencode(".png", cv2.copyMakeBorder(photo, *border))
        target = Upload(made.tobytes(), "target")
        await service.swap(SwapRequest(ORDER.sources, target), Timings())
    assert node.shapes == ran


async def test_each_plan_takes_over_when_it_comes(service, node):
    node.coming = {"detect"}
    await service.upgrade()
    assert service.engines.providers["detect"] == "TensorRT"
    assert set(service.engines.degraded) == ROLES - {"detect"}
    with pytest.raises(NoPlanYetError, match="identity, landmarks"):
        await service.upgrade()
    node.coming = ROLES
    await service.upgrade()
    assert not service.lesser
    assert node.opened["detect", "tensorrt"] == 1


async def test_a_plan_that_gives_wrong_values_never_serves(service, node):
    node.coming, node.wrong = ROLES, {"identity"}
    with pytest.raises(WrongResultError):
        await service.upgrade()
    assert providers(service) == {"CPUExecutionProvider"}
    assert service.lesser
    assert (await service.swap(ORDER, Timings())).faces


async def test_a_plan_that_is_refused_costs_nothing_but_the_try(service, node):
    node.coming, node.refused = ROLES, {"identity"}
    with pytest.raises(NotOnDeviceError, match="refuses the plan"):
        await service.upgrade()
    assert node.opened["identity", "cpu"] == 1, "it was opened on the CPU once more"
    assert providers(service) == {"CPUExecutionProvider"}
    assert (await service.swap(ORDER, Timings())).faces
    node.refused.clear()
    await service.upgrade()
    assert providers(service) == {"TensorRT"}
