"""What is asked of a rollout, and how it says no."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keepalive.rollout import judge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from keepalive.prometheus import Prometheus


@dataclass(frozen=True, slots=True)
class RolloutConfig:
    """What is asked for.

    Attributes:
        image: the new one.
        service: the name of the Knative Service.
        tag: under which the new revision has an address of its own.
        steps: percentages of the traffic, rising, the last one 100.
        pause_s: for how long each step is watched.
        wait_s: how long the new revision may take until it is ready.
        swaps: how many golden swaps it has to make at its own address.
        most_s: the most seconds that one of them may take.
        timeout_s: how long to wait for an answer.
        headers: of these swaps.
        single_gpu: whether the old revision has to go before the new one can come.
        replicas: that the new one starts with; None for as many as serve.
        prometheus: compares the revisions; None to compare nothing.
        matchers: of its series.
        limits: by how much the new one may be worse.
    """

    image: str
    service: str = "ember"
    tag: str = "next"
    steps: tuple[int, ...] = (5, 25, 50, 100)
    pause_s: float = 120.0
    wait_s: float = 1260.0
    swaps: int = 3
    most_s: float | None = None
    timeout_s: float = 45.0
    headers: Mapping[str, str] = field(default_factory=dict)
    single_gpu: bool = False
    replicas: int | None = None
    prometheus: Prometheus | None = None
    matchers: str = ""
    limits: judge.JudgeLimits = field(default_factory=judge.JudgeLimits)


class RevisionRejected(Exception):
    """The new revision is not good enough; the text says why."""
