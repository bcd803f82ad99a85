"""The TensorRT plans that models need on the GPUs of this node: fetched, or built here."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from function.faces import families
from warmup.failures import StoppedError, WarmupError
from warmup.plans.nvml import visible
from warmup.plans.plan_key import is_newer
from warmup.plans.stored import open_plans, recipe
from warmup.plans.tensorrt import runner

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence

    from function.settings.engines import EngineSettings
    from warmup.models.manifest import Model
    from warmup.models.progress import FetchProgress
    from warmup.plans.plan_key import PlanKey
    from warmup.settings.settings import PlanSettings, WarmupSettings

log = logging.getLogger("ember.plans")

_NICE = 10


class LatePlans:
    """Gets the plans that a replica lacked when it started.

    Another process may have shared them meanwhile. Where that is wanted, they are built here: in a
    process of its own, as the builder needs much memory, and may end it.

    Args:
        settings: where plans are kept and shared, and how they are made.
        engines: whether they are built here, and for how many GPUs.
    """

    def __init__(self, settings: WarmupSettings, engines: EngineSettings) -> None:
        self._settings, self._engines = settings, engines
        self._builder: subprocess.Popen[bytes] | None = None
        self._closed = False

    def obtain(self, wanted: Sequence[Model]) -> set[str]:
        """The roles of those models that have their plans here, after trying to get them."""
        fetch(wanted, self._settings, self._engines)
        here = self._here(wanted)
        missing = [model.role for model in wanted if model.role not in here]
        if missing and self._engines.build_plans and not self._closed:
            self._build(missing)
            here = self._here(wanted)
        return here

    def close(self) -> None:
        """End a builder that is at work."""
        self._closed = True
        if self._builder and self._builder.poll() is None:
            self._builder.terminate()

    def _here(self, wanted: Sequence[Model]) -> set[str]:
        plans = open_plans(self._settings)
        here: dict[str, bool] = {}
        version = runner(recipe(self._settings.plans).flags).version
        for role, keys in needed(wanted, self._settings.plans, self._engines.gpus):
            found = next(filter(None, map(plans.find, keys)), None)
            if found:
                found[1].close()
            runs = found is not None and not is_newer(found[0].built_by, version)
            here[role] = here.get(role, True) and runs
        return {role for role, is_here in here.items() if is_here}

    def _build(self, roles: Sequence[str]) -> None:
        words = [word for role in roles for word in ("--role", role)]
        command = [sys.executable, "-m", "function", "engines", "build", *words]
        log.info("building plans", extra={"roles": list(roles)})
        self._builder = subprocess.Popen(  # noqa: S603 (our own command)
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        if self._closed:  # since it was checked last
            self._builder.terminate()
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._builder.pid, _NICE)
        _, said = self._builder.communicate()
        if self._builder.returncode and not self._closed:
            reason = said.decode(errors="replace").strip().rpartition("\n")[2]
            log.warning("plans could not be built", extra={"reason": reason})


def fetch(
    wanted: Sequence[Model],
    settings: WarmupSettings,
    engines: EngineSettings,
    report: Callable[[FetchProgress], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> None:
    """Bring the plans of some models, for the GPUs that this process uses, into the store.

    Without a GPU, as in an init container, nobody knows which these are: whoever has it fetches
    them. One that cannot be had costs speed, not the start: that is logged, and the next backend
    serves.

    Raises:
        StoppedError: `stop` was set.
    """
    if "tensorrt" not in engines.backends or settings.plans.plans is None:
        return
    plans = open_plans(settings)
    try:
        keys = list(needed(wanted, settings.plans, engines.gpus))
    except WarmupError as error:
        log.info("plans are left to whoever has the GPU", extra={"reason": str(error)})
        return
    for role, choices in keys:
        try:
            found = any(plans.fetch(key, report=report, stop=stop) for key in choices)
        except StoppedError:
            raise
        except WarmupError as error:
            log.warning("a plan cannot be fetched", extra={"role": role, "reason": str(error)})
        else:
            facts = {"role": role, "plan": choices[0].digest}
            log.info("the plan is here" if found else "there is no such plan", extra=facts)


def needed(
    wanted: Sequence[Model], settings: PlanSettings, gpus: int
) -> Iterator[tuple[str, tuple[PlanKey, ...]]]:
    """For each model and each kind of GPU here: the role, and the keys of which any will do.

    Raises:
        WarmupError: there is no GPU, or nothing that runs plans.
    """
    made_by = recipe(settings)
    library = runner(made_by.flags)
    kinds = {gpu.name: gpu for gpu in visible()[:gpus]}
    for gpu in kinds.values():
        for model in wanted:
            if families.on_cpu(model):
                continue
            yield model.role, families.plan_keys(model, made_by, library, gpu)
