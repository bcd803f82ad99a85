"""What the main container does with plans when it starts, where NVML is there."""

from __future__ import annotations

import asyncio
import os
import sys
from types import ModuleType

from function.faces import families
from function.process.wiring.service import build_service, embedded
from function.settings import load
from warmup.models import manifest
from warmup.plans.nvml import first
from warmup.plans.stored import described, open_plans, recipe
from warmup.plans.tensorrt import LEAN, runner

SETTINGS = {"EMBER_BACKENDS": "tensorrt", "EMBER_PLAN_FLAGS": "version-compatible"}
VERSION = "11.4.0.106"
MODELS = [each for each in manifest.read(embedded()) if not families.on_cpu(each)]


def _installed():
    """Let there be a lean runtime, of which nothing but its version is asked here."""
    module = ModuleType(LEAN)
    module.__version__ = VERSION
    sys.modules[LEAN] = module


def _keys():
    """The key of each model's plan on the GPU here."""
    _installed()
    made_by = recipe(load(os.environ).plans)
    return {m.role: families.plan_key(m, made_by, runner(made_by.flags), first()) for m in MODELS}


def publish(store):
    """As the Job does: plans for the GPU here, into the place that is shared; how many."""
    plans = open_plans(load({**os.environ, "EMBER_STORE": store}))
    keys = _keys().values()
    for key in keys:
        content = key.digest.encode()
        plans.keep(described(key, content, built_by=VERSION, seconds=1), content)
        plans.publish(key)
    return len(keys)


def here():
    """The roles of the models whose plans the store has."""
    plans, found = open_plans(load(os.environ)), []
    for role, key in _keys().items():
        if held := plans.find(key):
            held[1].close()
            found.append(role)
    return sorted(found)


class OpenedError(Exception):
    """The test has seen what it came for."""


def when_the_first_model_is_opened():
    """The roles of the models whose plans are here at that moment, with the server's own wiring."""
    seen = []
    _installed()

    def open_engine(*_, **__):
        seen.append(here())
        raise OpenedError

    service = build_service(load(os.environ), open_engine=open_engine)

    async def start():
        await service.fetch()
        try:
            await service.load(whole=True)
        except OpenedError:
            return

    try:
        asyncio.run(start())
    finally:
        service.close()
    return seen[0]
