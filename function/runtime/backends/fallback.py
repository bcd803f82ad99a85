"""From the most wanted backend to the least: the first that really runs a model has it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.runtime.engine import NotOnDeviceError
from function.runtime.gpu.device_health import loss
from warmup.failures import public_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from function.runtime.engine import Engine

log = logging.getLogger("ember.backends")

_CPU_ALLOWED = "EMBER_ALLOW_DEGRADED=true would let it run on the CPU"


@dataclass(frozen=True, slots=True)
class SkippedBackend:
    """A backend that does not run a model.

    Attributes:
        role: of the model.
        backend: its name in `EMBER_BACKENDS`.
        reason: why, fit to be published.
        may_come: whether it may run it later, as only a plan is missing.
    """

    role: str
    backend: str
    reason: str
    may_come: bool = False


def allowed(
    backends: Sequence[str], *, allow_degraded: bool, require_gpu: bool = False
) -> tuple[str, ...]:
    """The backends that may serve, best first.

    From one GPU backend to the next a model may always go. From a GPU to the CPU it may go only
    where degraded service is allowed, and never where a GPU is required.
    """
    cpu_may = not require_gpu and (allow_degraded or backends[0] == "cpu")
    return tuple(each for each in backends if each != "cpu" or cpu_may)


def open_first(
    role: str,
    backends: Sequence[str],
    open_on: Callable[[str], Engine],
    *,
    left_out: bool = False,
    passed: Callable[[SkippedBackend], None] = lambda _: None,
) -> Engine:
    """The model on the first backend on which it opens.

    Args:
        role: of the model.
        backends: those that may serve; see `allowed`.
        open_on: opens it on one, and sees that it runs there; raises when it does not.
        left_out: whether the operator named the CPU too, without allowing it.
        passed: called with each backend that failed.

    Raises:
        NotOnDeviceError: it opens on none; says why on each.
        DeviceLostError: the GPU broke on the way; then no backend of this process helps.
        Exception: what opening has raised, where there was only one to choose from.
    """
    reasons = []
    for backend in backends:
        try:
            return open_on(backend)
        except Exception as error:
            if backend == "cpu":
                raise
            if lost := loss(error):
                raise lost from error
            fall = SkippedBackend(
                role, backend, public_reason(error), getattr(error, "may_come", False)
            )
            facts = {"role": role, "backend": backend, "reason": str(error)}
            log.warning("a backend is passed over", extra=facts)
            passed(fall)
            reasons.append(f"{backend}: {fall.reason}")
    raise NotOnDeviceError(
        f"{role} runs on none of its backends: {'; '.join(reasons)}"
        + (f"; {_CPU_ALLOWED}" if left_out else "")
    )
