"""The plans that models need on the GPUs of this node: how they are come by."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from function.faces import models
from warmup import plan
from warmup.failures import StoppedError, WarmupError
from warmup.gpu import visible
from warmup.plans import Plans
from warmup.prefetch import open_store
from warmup.tensorrt import runner

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence

    from function.settings import Settings
    from warmup.manifest import Model
    from warmup.plan import PlanKey
    from warmup.progress import Progress

log = logging.getLogger("ember.plans")


def fetch(
    wanted: Sequence[Model],
    settings: Settings,
    report: Callable[[Progress], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> None:
    """Bring the plans of some models, for the GPUs that this process uses, into the store.

    One that cannot be had costs speed, not the start: that is logged, and the next backend serves.

    Raises:
        StoppedError: `stop` was set.
    """
    if "tensorrt" not in settings.backends or settings.plans is None:
        return
    plans = Plans(open_store(settings), settings)
    try:
        keys = list(needed(wanted, settings))
    except WarmupError as error:
        log.warning("no plans are fetched", extra={"reason": str(error)})
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
    wanted: Sequence[Model], settings: Settings
) -> Iterator[tuple[str, tuple[PlanKey, ...]]]:
    """For each model and each kind of GPU here: the role, and the keys of which any will do.

    Raises:
        WarmupError: there is no GPU, or nothing that runs plans.
    """
    recipe = plan.recipe(settings)
    library = runner(recipe.flags)
    kinds = {gpu.name: gpu for gpu in visible()[: settings.gpus]}
    for gpu in kinds.values():
        for model in wanted:
            yield model.role, models.plan_keys(model, recipe, library, gpu)
