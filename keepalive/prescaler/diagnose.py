"""Whether there are too few replicas, or enough that are too slow: only the first needs more.

A replica that is ready but slow stays slow when there is a second one, which costs a GPU. So
slowness counts as a want of replicas only when those that are there have as much to do as they were
measured for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from keepalive.prescaler.pool import FAILING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepalive.prescaler.pool import ModelLayer, NodeLayer

FULL = 0.8
"""Of the requests that replicas are meant to have at once: from here on they are at their limit."""
_IDLE_GPU = 0.3
"""A GPU that computes less than this is not what requests wait for."""
_FULL_MEMORY = 0.92
_COLD_RATIO = 1.5


class PoolState(StrEnum):
    """How a pool is."""

    FINE = "fine"
    WARMING = "warming"
    TOO_FEW = "too_few"
    SLOW = "slow"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PoolDiagnosis:
    """What is the matter with a pool.

    Attributes:
        state: how it is.
        advice: what else is seen, and what to do about it; for people.
    """

    state: PoolState
    advice: tuple[str, ...] = ()


def diagnose(
    model: ModelLayer | None,
    node: NodeLayer | None,
    *,
    per_replica: float,
    objective_s: float | None,
) -> PoolDiagnosis:
    """Tell too few from too slow."""
    if model is None:
        return PoolDiagnosis(PoolState.UNKNOWN)
    advice = tuple(_advice(model, node))
    late = objective_s is not None and model.p95_s is not None and model.p95_s > objective_s
    if not model.ready:
        lacks = model.in_flight > 0 or model.queued > 0
        state = (
            PoolState.WARMING if model.warming else PoolState.TOO_FEW if lacks else PoolState.FINE
        )
        return PoolDiagnosis(state, advice)
    load = (model.in_flight + model.turned_away) / (model.ready * per_replica)
    crowded = model.queued >= model.ready and model.slope > 0
    refuses = model.turned_away >= 1
    if not late and not ((crowded or refuses) and load >= 1):
        return PoolDiagnosis(PoolState.FINE, advice)
    if load < FULL:
        return PoolDiagnosis(PoolState.SLOW, advice or (_unexplained(load),))
    if node is not None and node.busy is not None and node.busy < _IDLE_GPU:
        idle = (
            f"GPUs compute {node.busy:.0%} of the time while requests wait in the replicas: allow"
            " fewer requests at once in each (containerConcurrency), or give them more CPU"
        )
        return PoolDiagnosis(PoolState.SLOW, (idle, *advice))
    enough = (
        model.in_flight + model.turned_away <= (model.ready + model.warming) * per_replica * FULL
    )
    return PoolDiagnosis(
        PoolState.WARMING if model.warming and enough else PoolState.TOO_FEW, advice
    )


def _advice(model: ModelLayer, node: NodeLayer | None) -> Iterator[str]:
    if model.failed > FAILING:
        yield f"{model.failed:.0%} of swaps fail: see ember_problems_total and the replicas' logs"
    if model.broken:
        yield f"{model.broken} replicas have failed or are stuck, so get no traffic: see their logs"
    if model.degraded:
        yield (
            f"{model.degraded} models run on something else than was wanted: see Ember-Degraded and"
            " the replicas' logs"
        )
    if model.first_ratio is not None and model.first_ratio > _COLD_RATIO:
        yield (
            f"the first swap of a replica took {model.first_ratio:.1f} times the usual: it was"
            " ready but not warm (GET /warmup)"
        )
    if node is None:
        return
    if node.memory is not None and node.memory > _FULL_MEMORY:
        yield (
            f"GPU memory is {node.memory:.0%} taken: end the replicas one by one, for it may be"
            " fragmented; then see whether the largest batch fits"
        )
    if node.drivers is not None and node.drivers > 1:
        yield f"the nodes have {node.drivers} versions of the driver: engines differ between them"
    if node.faults:
        yield f"{node.faults} GPUs have reported an error (XID): take their nodes out"


def _unexplained(load: float) -> str:
    return (
        f"replicas have {load:.0%} of the requests that they are meant for, and are late all the"
        " same: look at ember_stage_seconds; more replicas would not help"
    )
